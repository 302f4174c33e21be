/*
 * shares_test.c
 *		What processes and roles may have of the engine, beside greedy others: transfer
 *		memory, places under a limit of sessions, and descriptors.
 *
 * Usage: shares_test ENGINE [cpu|cuda [SEED [sanitized]]]
 *
 * rooms: engine/server
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../lib/random.h"
#include "nearest.h"

#define MB				((uint64_t) 1 << 20)
#define LIMIT			(64 * MB)

/* rows of a batch that takes all of the memory: 151 MB */
#define GREEDY_ROWS		((uint32_t) GEONN_BATCH_ROWS_MAX)

/* no smallest batch has as many rows */
#define SMALL_ROWS		512

#define CLIENTS_MOST	400

/* clients with the calls that they work for */
struct crowd
{
	int			count;
	struct client clients[CLIENTS_MOST];
	struct geonn_call calls[CLIENTS_MOST];
};

static struct crowd *
crowd_create(void)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));

	if (crowd == NULL)
		exit(EXIT_FAILURE);
	return crowd;
}

static void
crowd_free(struct crowd *crowd)
{
	for (int i = 0; i < crowd->count; i++)
		client_close(&crowd->clients[i]);
	free(crowd);
}

/*
 * Another session of this process and role; NULL where it was not opened.
 */
static struct client *
add_session(struct crowd *crowd, const struct engine *engine, int32_t pid, uint32_t role)
{
	struct client *client = &crowd->clients[crowd->count];
	struct geonn_call *call = &crowd->calls[crowd->count];

	if (crowd->count == CLIENTS_MOST)
		return NULL;
	*call = (struct geonn_call) {.pid = pid,.role = role,.number = (uint64_t) crowd->count};
	client_connect(client, engine);
	client->call = call;
	crowd->count++;
	return client_open(client, request.device, 0) ? client : NULL;
}

/*
 * Take all batches that the session gets.  Returns the rows of the first.
 */
static uint32_t
take_batches(struct client *client)
{
	uint32_t	rows = 0;

	for (uint32_t slot = 0; client != NULL && slot < GEONN_RING_SLOTS; slot++)
	{
		if (!client_allocate(client, slot, GREEDY_ROWS, GREEDY_ROWS))
			break;
		if (slot == 0)
			rows = client->slots[0].columns.rows;
	}
	return rows;
}

/*
 * Set another limit on transfer memory, and wait until the engine has it.
 */
static bool
lower_limit(const struct engine *engine, uint64_t bytes)
{
	struct geonn_configure lower = {.transfer_memory_limit = bytes};
	struct geonn_engine_status status = {0};
	bool		right = geonn_channel_send(engine->supervisor, GEONN_CONFIGURE, &lower, -1) == GEONN_CHANNEL_OK;

	while (right && status.transfer_memory_limit != bytes)
		right = engine_status(engine, &status, NULL, 0);
	return right;
}

/*
 * Another session, with the smallest batch in each slot; NULL where it has none.
 */
static struct client *
add_small_session(struct crowd *crowd, const struct engine *engine, int32_t pid, uint32_t role)
{
	struct client *client = add_session(crowd, engine, pid, role);

	for (uint32_t slot = 0; client != NULL && slot < GEONN_RING_SLOTS; slot++)
		if (!client_allocate(client, slot, 1, 1))
			return NULL;
	return client;
}

static uint64_t
memory_in_use(const struct engine *engine)
{
	struct geonn_engine_status status;

	return engine_status(engine, &status, NULL, 0) ? status.transfer_memory : UINT64_MAX;
}

static void
test_process(void)
{
	struct crowd *crowd = crowd_create();
	struct engine engine;
	int			sessions = 0;
	uint64_t	taken;
	uint32_t	rows;
	bool		right = true;

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.transfer_memory_limit = LIMIT});
	while (sessions < 300 && take_batches(add_session(crowd, &engine, 1, 10)) > 0)
		sessions++;
	taken = memory_in_use(&engine);
	report("a process with sessions without number has little more than half of the transfer memory",
		   taken > LIMIT / 4 && taken <= LIMIT / 2);
	report("and many of them have a batch", sessions >= 16);
	report("the next one gets an error with both numbers and a step",
		   crowd->clients[crowd->count - 1].message.header.type == GEONN_ERROR &&
		   crowd->clients[crowd->count - 1].message.error.code == GEONN_ERROR_LIMIT &&
		   strstr(crowd->clients[crowd->count - 1].message.error.message, "a batch needs 12 kB, and of the 1024 kB reserved for further sessions of a process ") != NULL &&
		   strstr(crowd->clients[crowd->count - 1].message.error.hint, "which is 65536 kB") != NULL);
	rows = take_batches(add_session(crowd, &engine, 2, 10));
	report("beside it another process of the role finds large batches", rows > 32 * SMALL_ROWS);
	for (int32_t pid = 3; pid < 60; pid++)
		right = right && take_batches(add_session(crowd, &engine, pid, 10)) > 0;
	report("and 57 more have batches", right && memory_in_use(&engine) <= LIMIT);
	rows = take_batches(add_session(crowd, &engine, 99, 11));
	report("beside a role with all of these another role finds large batches", rows > 32 * SMALL_ROWS);
	crowd_free(crowd);
	engine_stop(&engine);
}

/*
 * The limit is lowered below what open cursors hold.
 */
static void
test_lowered(void)
{
	struct crowd *crowd = crowd_create();
	struct engine engine;
	uint64_t	taken;
	bool		right = true;

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.transfer_memory_limit = LIMIT});
	for (int32_t pid = 1; pid <= 4; pid++)
		right = right && take_batches(add_session(crowd, &engine, pid, 10 + (uint32_t) pid)) > 0;
	taken = memory_in_use(&engine);
	right = right && lower_limit(&engine, LIMIT / 4) && taken > LIMIT / 4;
	for (int32_t pid = 5; pid < 60; pid++)
		right = right && take_batches(add_session(crowd, &engine, pid, 10 + (uint32_t) pid % 7)) > 0;
	report("while sessions hold more than a lowered limit, others have batches of the reserve", right);
	report("and no more than the reserve", memory_in_use(&engine) <= taken + LIMIT / 16);
	crowd_free(crowd);
	engine_stop(&engine);
}

/*
 * Processes of random roles come and go, take what they get and give some of it back.
 */
static void
test_any_order(void)
{
	struct crowd *crowd = crowd_create();
	struct engine engine;
	bool		served = true;
	bool		within = true;

	random_state = request.seed;
	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.transfer_memory_limit = LIMIT});
	for (int i = 0; i < 350 && served; i++)
	{
		struct client *client = &crowd->clients[random_below(crowd->count + 1)];
		struct geonn_return give_back = {.slot = (uint32_t) random_below(GEONN_RING_SLOTS)};
		struct client_slot *slot = &client->slots[give_back.slot];

		if (client < crowd->clients + crowd->count && slot->start != NULL)
		{
			munmap(slot->start, slot->bytes);
			slot->start = NULL;
			client_send(client, GEONN_RETURN, &give_back);
			within = within && memory_in_use(&engine) <= LIMIT;
			continue;
		}
		client = add_session(crowd, &engine, 100 + i, (uint32_t) random_below(20));
		if (take_batches(client) == 0)
		{
			served = false;
			printf("# step %d of seed %llu: %s\n", i, (unsigned long long) request.seed,
				   crowd->clients[crowd->count - 1].message.error.message);
		}
	}
	report("the first session of a process gets a batch, whatever others have", served);
	report("and all of them are within the limit", within && memory_in_use(&engine) <= LIMIT);
	crowd_free(crowd);
	engine_stop(&engine);
}

static void
test_return(void)
{
	struct geonn_return give_back = {.slot = 1};
	struct crowd *crowd = crowd_create();
	struct engine engine;
	struct client *client;
	uint32_t	rows;
	uint32_t	more;
	bool		right;

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.transfer_memory_limit = LIMIT});
	client = add_session(crowd, &engine, 1, 10);
	right = take_batches(client) > 0;
	rows = take_batches(add_session(crowd, &engine, 2, 10));
	for (uint32_t slot = 0; right && slot < GEONN_RING_SLOTS; slot++)
	{
		if (client->slots[slot].start == NULL)
			continue;
		munmap(client->slots[slot].start, client->slots[slot].bytes);
		client->slots[slot].start = NULL;
		give_back.slot = slot;
		client_send(client, GEONN_RETURN, &give_back);
	}
	client_close(&crowd->clients[1]);
	client_connect(&crowd->clients[1], &engine);
	more = take_batches(add_session(crowd, &engine, 3, 10));
	report("other sessions get the batches that a session returns", right && more > rows);
	right = right && take_batches(client) > 0;
	report("and it gets others when it asks", right);
	client_send(client, GEONN_RETURN, &give_back);
	client_send(client, GEONN_RETURN, &give_back);
	report("a batch that is not there cannot be returned",
		   client_expect(client, GEONN_ERROR) && client->message.error.code == GEONN_ERROR_PROTOCOL);
	crowd_free(crowd);
	engine_stop(&engine);
}

static void
test_shapes(void)
{
	static const uint32_t shapes[][2] = {{1, GREEDY_ROWS}, {GREEDY_ROWS, 1}, {300, GREEDY_ROWS}};
	struct crowd *crowd = crowd_create();
	struct engine engine;
	bool		right = true;

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.transfer_memory_limit = 1048576});
	for (int i = 0; i < 3; i++)
		for (int32_t pid = 1; pid < 7; pid++)
		{
			struct client *client = add_session(crowd, &engine, 10 * i + pid, 10);

			right = right && client != NULL &&
				client_allocate(client, 0, shapes[i][0], shapes[i][1]);
		}
	report("a session gets a batch whatever shape it asks for", right);
	crowd_free(crowd);
	engine_stop(&engine);
}

/*
 * With few descriptors, which this process has from here on, too.
 */
static void
test_descriptors(void)
{
	const struct rlimit limit = {1024, 1024};	/* of some 200 sessions with 5 each */
	struct crowd *crowd = crowd_create();
	struct client *refused;
	struct engine engine;
	int			sessions = 0;
	int			others = 0;
	bool		right = setrlimit(RLIMIT_NOFILE, &limit) == 0;

	engine_start(&engine, request.engine_program, NULL);
	while (right && sessions < 250 && add_small_session(crowd, &engine, 1, 10) != NULL)
		sessions++;
	refused = &crowd->clients[crowd->count - 1];
	printf("# %d sessions\n", sessions);
	report("a process gets sessions until descriptors run out", right && sessions > 100);
	report("but not the last ones: the error has the numbers and a step",
		   refused->message.header.type == GEONN_ERROR &&
		   refused->message.error.code == GEONN_ERROR_LIMIT &&
		   strstr(refused->message.error.message, " of which a process may have ") != NULL &&
		   strstr(refused->message.error.hint, "LimitNOFILE") != NULL);
	client_close(refused);
	client_connect(refused, &engine);

	/* what the engine has open besides, as of a driver, decides about one more */
	while (others < 10 && add_small_session(crowd, &engine, 2, 10) != NULL)
		others++;
	report("another process of the role has a session, and few more", others > 0 && others < 4);
	for (int32_t pid = 3; pid < 10; pid++)
		right = right && add_small_session(crowd, &engine, pid, 10) != NULL;
	report("further processes of the role have a session all the same", right);
	right = right && add_small_session(crowd, &engine, 10, 11) != NULL &&
		add_small_session(crowd, &engine, 10, 11) != NULL;
	report("and another role has several", right);
	crowd_free(crowd);
	engine_stop(&engine);
}

/* ---- places ---- */

/* what a client waits for an answer that does not come */
#define SILENT_MS 300

/*
 * A session of this process that asks for a dataset; returns the type of what it is told.
 */
static int
ask_for_place(struct crowd *crowd, const struct engine *engine, int32_t pid)
{
	struct geonn_open open = {.device = (uint32_t) request.device};
	struct client *client = &crowd->clients[crowd->count];
	struct geonn_call *call = &crowd->calls[crowd->count];

	*call = (struct geonn_call) {.pid = pid,.role = 10,.number = (uint64_t) crowd->count};
	client_connect(client, engine);
	client->call = call;
	crowd->count++;
	if (!client_hello(client))
		return 0;
	client_send(client, GEONN_OPEN, &open);
	return client_receive(client, PATIENCE_MS);
}

static void
test_places(void)
{
	struct crowd *crowd = crowd_create();
	struct client *clients = crowd->clients;
	struct engine engine;
	bool		right;

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.max_sessions = 2});
	right = ask_for_place(crowd, &engine, 1) == GEONN_OPENED &&
		ask_for_place(crowd, &engine, 2) == GEONN_OPENED &&
		ask_for_place(crowd, &engine, 2) == GEONN_OPENED;
	for (int32_t pid = 3; pid < 7; pid++)
		right = right && ask_for_place(crowd, &engine, pid) == GEONN_QUEUED;
	report("so many processes have places, and others are queued", right);
	client_close(&clients[2]);
	client_connect(&clients[2], &engine);
	report("a process keeps its place as long as it has a session",
		   client_receive(&clients[3], SILENT_MS) == -1);
	client_close(&clients[0]);
	client_connect(&clients[0], &engine);
	report("a free place goes to the first of the queue", client_receive(&clients[3], PATIENCE_MS) == GEONN_OPENED);
	client_close(&clients[4]);
	client_connect(&clients[4], &engine);
	client_close(&clients[1]);
	client_connect(&clients[1], &engine);
	report("one that left the queue is passed over", client_receive(&clients[5], PATIENCE_MS) == GEONN_OPENED);
	report("and the last one stays queued", client_receive(&clients[6], SILENT_MS) == -1);
	crowd_free(crowd);
	engine_stop(&engine);
}

int
main(int argument_count, char **words)
{
	tests_begin(argument_count, words);
	test_process();
	test_lowered();
	test_any_order();
	test_return();
	test_shapes();
	test_places();
	test_descriptors();
	return summed_up();
}
