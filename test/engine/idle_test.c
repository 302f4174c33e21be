/*
 * idle_test.c
 *		Sessions that stay for their clients' next calls: what they keep, what they give up,
 *		and when they end.
 *
 * Usage: idle_test ENGINE [cpu|cuda [SEED [sanitized]]]
 *
 * rooms: engine/server
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "nearest.h"

#define MB				((uint64_t) 1 << 20)
#define LIMIT			(16 * MB)
#define TIMEOUT_MS		4000

/* no session of a test is idle for so long, however busy the host is */
#define NEVER_MS		(60 * 60 * 1000)

#define POINTS			500
#define ROWS			1024

/* sessions that have a batch of BATCH_ROWS each, of some 300 kB, take half of the memory */
#define CROWD			20
#define BATCH_ROWS		8192

/* more sessions, with two descriptors each, than DESCRIPTORS suffice for */
#define DESCRIPTORS		128
#define SESSIONS		70

static struct geonn_call
call_of(int32_t pid, uint32_t role)
{
	static uint64_t calls;
	struct geonn_call call = {.pid = pid,.role = role,.number = ++calls};

	return call;
}

static void
stay(struct client *client, uint32_t slot)
{
	struct geonn_finished finished = {.stays = 1,.slot = slot};

	client_send(client, GEONN_FINISHED, &finished);
}

/*
 * Name another call on the same connection, and open a dataset with these columns.  Returns
 * the type of the answer.
 */
static int
open_again(struct client *client, struct geonn_call call, uint32_t columns)
{
	struct geonn_open open = {.device = request.device,.columns = columns};
	int			type;

	client_send(client, GEONN_CALL, &call);
	client_send(client, GEONN_OPEN, &open);
	type = client_receive(client, PATIENCE_MS);
	client->dataset = type == GEONN_OPENED ? client->message.opened.dataset : 0;
	return type;
}

/*
 * Connect, and ask for the nearest of some references through a batch of slot 0.
 */
static bool
begin(struct client *client, const struct engine *engine, struct geonn_call *call,
	  const struct points *points, uint32_t rows)
{
	struct answer answers[POINTS];

	client_connect(client, engine);
	client->call = call;
	return client_open(client, request.device, 0) && client_allocate(client, 0, rows, rows) &&
		client_send_references(client, POINTS, points->latitude, points->longitude, points->tag, false) &&
		client_search(client, POINTS, points->latitude, points->longitude, answers) &&
		answers_right(points, points, answers, 1);
}

/*
 * Does the engine have so many sessions at work and idle ones, or does it soon?
 */
static bool
has_sessions(const struct engine *engine, uint32_t sessions, uint32_t idle,
			 struct geonn_engine_status *status)
{
	double		begun = now_ms();

	while (engine_status(engine, status, NULL, 0))
	{
		if (status->sessions == sessions && status->idle == idle)
			return true;
		if (!wait_more(begun))
			return false;
	}
	return false;
}

/*
 * Do all batches of the engine take so many bytes, or does it soon?
 */
static bool
transfer_memory_is(const struct engine *engine, uint64_t bytes, struct geonn_engine_status *status)
{
	double		begun = now_ms();

	while (engine_status(engine, status, NULL, 0))
	{
		if (status->transfer_memory == bytes)
			return true;
		if (!wait_more(begun))
			return false;
	}
	return false;
}

static void
test_staying(const struct engine *engine)
{
	struct points first = uniform_points(POINTS);
	struct points second = uniform_points(POINTS);
	struct geonn_call call = call_of(1, 1);
	struct answer answers[POINTS];
	struct geonn_engine_status status;
	struct client client;
	struct geonn_configure settings = {.idle_session_timeout = NEVER_MS,.transfer_memory_limit = 1};
	uint64_t	memory;
	bool		right = begin(&client, engine, &call, &first, ROWS) &&
		engine_status(engine, &status, NULL, 0) && client_allocate(&client, 1, ROWS, ROWS);

	memory = status.transfer_memory;
	stay(&client, 0);
	right = right && has_sessions(engine, 0, 1, &status);
	report("a session that stays is idle, and not at work", right);

	/* with so low a limit, batches that no session has are freed at once */
	geonn_channel_send(engine->supervisor, GEONN_CONFIGURE, &settings, -1);
	right = right && transfer_memory_is(engine, memory, &status);
	report("its dataset is gone, and it has the memory of one batch",
		   right && memory > 0 && status.datasets == 0 && status.idle == 1);
	settings.transfer_memory_limit = LIMIT;
	geonn_channel_send(engine->supervisor, GEONN_CONFIGURE, &settings, -1);

	right = open_again(&client, call_of(1, 1), 0) == GEONN_OPENED &&
		client_send_references(&client, POINTS, second.latitude, second.longitude, second.tag, false) &&
		client_search(&client, POINTS, second.latitude, second.longitude, answers) &&
		answers_right(&second, &second, answers, 1) && has_sessions(engine, 1, 0, &status);
	report("with its batch it answers the next call, of other references", right);
	client_close(&client);
	report("and ends with its client", has_sessions(engine, 0, 0, &status));
	points_free(&first);
	points_free(&second);
}

/*
 * A process that logs in as another role has sessions of both, and one share.
 */
static void
test_two_roles(const struct engine *engine)
{
	struct points points = uniform_points(POINTS);
	struct geonn_call first_call = call_of(1, 1);
	struct geonn_call second_call = call_of(1, 2);
	struct geonn_engine_status status;
	struct client first;
	struct client second;
	bool		right = begin(&first, engine, &first_call, &points, ROWS) &&
		begin(&second, engine, &second_call, &points, ROWS);

	stay(&second, 0);
	report("of a process's sessions with two roles, each goes on for its own",
		   right && open_again(&second, call_of(1, 2), 0) == GEONN_OPENED);
	client_close(&second);
	right = begin(&second, engine, &second_call, &points, ROWS);
	stay(&second, 0);
	report("and for no other", right && open_again(&second, call_of(1, 1), 0) == GEONN_ERROR);
	client_close(&first);
	client_close(&second);
	report("both end with their clients", has_sessions(engine, 0, 0, &status));
	points_free(&points);
}

/*
 * Each of these sessions ends with an error of the protocol.
 */
static void
test_abuse(const struct engine *engine)
{
	struct points points = uniform_points(POINTS);
	struct geonn_call call = call_of(1, 1);
	struct geonn_search search = {.rows = 1,.k = POINTS,.max_distance = INFINITY};
	struct geonn_list list = {0};
	struct geonn_engine_status status;
	struct client client;
	bool		right;

	client_connect(&client, engine);
	client.call = &call;
	right = client_open(&client, request.device, 0);
	stay(&client, GEONN_RING_SLOTS);
	report("a session that collects references cannot stay", right && client_expect(&client, GEONN_ERROR));
	client_close(&client);

	right = begin(&client, engine, &call, &points, ROWS);
	stay(&client, 1);
	report("nor can one stay with a batch that it does not have", right && client_expect(&client, GEONN_ERROR));
	client_close(&client);

	right = begin(&client, engine, &call, &points, ROWS);
	stay(&client, 0);
	client_send(&client, GEONN_SEARCH, &search);
	report("an idle session does not search", right && client_expect(&client, GEONN_ERROR));
	client_close(&client);

	right = begin(&client, engine, &call, &points, ROWS);
	stay(&client, 0);
	client_send(&client, GEONN_LIST, &list);
	report("nor does it list", right && client_expect(&client, GEONN_ERROR));
	client_close(&client);

	right = begin(&client, engine, &call, &points, ROWS);
	stay(&client, 0);
	right = right && open_again(&client, call_of(2, 1), 0) == GEONN_ERROR;
	client_close(&client);
	right = begin(&client, engine, &call, &points, ROWS) && right;
	stay(&client, 0);
	right = right && open_again(&client, call_of(1, 2), 0) == GEONN_ERROR;
	client_close(&client);
	report("nor does it go on for another process or role", right);

	right = begin(&client, engine, &call, &points, ROWS);
	stay(&client, 0);
	right = right && open_again(&client, call_of(1, 1), GEONN_COLUMNS_ALL & ~GEONN_COLUMNS_OF_ARCS) == GEONN_ERROR;
	report("nor with a batch that has no room for the columns", right);
	client_close(&client);

	/* one observation has more pairs than the batch has room for */
	right = begin(&client, engine, &call, &points, ROWS) && client_allocate(&client, 0, POINTS, POINTS / 2);
	client_send(&client, GEONN_SEARCH, &search);
	right = right && client_expect(&client, GEONN_RESULTS) &&
		(client.message.results.flags & GEONN_RESULTS_PARTIAL) != 0;
	stay(&client, 0);
	right = right && open_again(&client, call_of(1, 1), 0) == GEONN_OPENED &&
		client_send_references(&client, POINTS, points.latitude, points.longitude, points.tag, false);
	search.flags = GEONN_SEARCH_RESUME;
	client_send(&client, GEONN_SEARCH, &search);
	report("nor with the rest of a search before", right && client_expect(&client, GEONN_ERROR));
	client_close(&client);
	report("none of these is left", has_sessions(engine, 0, 0, &status));
	points_free(&points);
}

static void
test_crowding_out(const struct engine *engine)
{
	struct points points = uniform_points(POINTS);
	struct geonn_call calls[CROWD];
	struct geonn_call last = call_of(CROWD + 1, CROWD + 1);
	static struct client crowd[CROWD];
	struct geonn_engine_status status;
	struct client client;
	uint32_t	granted = 0;
	uint32_t	idle;
	int			ended = 0;
	bool		right = true;

	for (int i = 0; i < CROWD; i++)
	{
		calls[i] = call_of(i + 1, (uint32_t) i + 1);
		right = begin(&crowd[i], engine, &calls[i], &points, BATCH_ROWS) && right;
		stay(&crowd[i], 0);
	}
	right = has_sessions(engine, 0, CROWD, &status) && right;

	/* 4.5 MB: more than half of what the idle sessions leave of 12 MB, and of 12 MB less */
	client_connect(&client, engine);
	client.call = &last;
	right = client_open(&client, request.device, 0) && client_allocate(&client, 0, 131072, 131072) && right;
	granted = client.slots[0].columns.rows;
	right = right && engine_status(engine, &status, NULL, 0);
	report("a session at work gets memory that idle ones have", right && granted == 131072);
	report("but not from more of them than it must take", right && status.idle > 0 && status.idle < CROWD);
	idle = status.idle;
	right = client_allocate(&client, 1, 131072, 131072) && right &&
		engine_status(engine, &status, NULL, 0) && client.slots[1].columns.rows < 131072;
	report("nor more than its process may have without any", right && status.idle == idle);
	for (int i = 0; i < CROWD; i++)
	{
		int			type = open_again(&crowd[i], calls[i], 0);

		/* the oldest ones, and without an error */
		right = right && type == (i < (int) (CROWD - status.idle) ? 0 : GEONN_OPENED);
		ended += type == 0;
		client_close(&crowd[i]);
	}
	report("the oldest end, without an error", right && ended == (int) (CROWD - status.idle));
	client_close(&client);
	points_free(&points);
}

static void
test_timeout(const struct engine *engine)
{
	struct points points = uniform_points(POINTS);
	struct geonn_call call = call_of(1, 1);
	struct geonn_engine_status status;
	struct geonn_configure settings = {.idle_session_timeout = TIMEOUT_MS,.transfer_memory_limit = LIMIT};
	struct client client;
	double		begun;
	bool		right;

	geonn_channel_send(engine->supervisor, GEONN_CONFIGURE, &settings, -1);
	right = begin(&client, engine, &call, &points, ROWS);
	begun = now_ms();
	stay(&client, 0);
	right = right && client_receive(&client, PATIENCE_MS) == 0;
	report("an idle session ends when its time is over, without an error",
		   right && now_ms() - begun > TIMEOUT_MS * 0.9);
	client_close(&client);

	right = begin(&client, engine, &call, &points, ROWS);
	stay(&client, 0);
	right = right && open_again(&client, call_of(1, 1), 0) == GEONN_OPENED &&
		client_receive(&client, TIMEOUT_MS * 3 / 2) == -1 && has_sessions(engine, 1, 0, &status);
	report("but not when it is at work again", right);
	client_close(&client);

	settings.idle_session_timeout = 0;
	geonn_channel_send(engine->supervisor, GEONN_CONFIGURE, &settings, -1);
	right = begin(&client, engine, &call, &points, ROWS);
	stay(&client, 0);
	right = right && client_receive(&client, PATIENCE_MS) == 0;
	report("with a time of 0 none stays", right);
	client_close(&client);
	points_free(&points);
}

/*
 * Last, as the limit stays that of this program.  With one more client, the descriptor that
 * the engine lacks is that of a connection, without it that of a batch, or the other way round.
 */
static void
test_descriptors(bool one_more)
{
	const struct rlimit limit = {DESCRIPTORS, DESCRIPTORS};
	const struct geonn_configure settings = {
		.idle_session_timeout = NEVER_MS,
		.transfer_memory_limit = 1024 * MB
	};
	struct points points = uniform_points(POINTS);
	static struct client clients[SESSIONS];
	struct geonn_call calls[SESSIONS];
	struct geonn_engine_status status;
	struct engine engine;
	struct client more;
	int			count = 0;
	bool		right = setrlimit(RLIMIT_NOFILE, &limit) == 0;

	engine_start(&engine, request.engine_program, &settings);
	if (one_more)
	{
		client_connect(&more, &engine);
		right = client_hello(&more) && right;
	}
	for (; right && count < SESSIONS; count++)
	{
		calls[count] = call_of(count + 1, 1);
		right = begin(&clients[count], &engine, &calls[count], &points, ROWS);
		stay(&clients[count], 0);
	}
	report("a session at work gets descriptors that idle ones have", right);
	right = engine_status(&engine, &status, NULL, 0);
	report("and most of these stay", right && status.idle > SESSIONS / 2 && status.idle < SESSIONS);
	for (int i = 0; i < count; i++)
		client_close(&clients[i]);
	if (one_more)
		client_close(&more);
	report("the engine ends as it should, after all", engine_stop(&engine) == 0);
	points_free(&points);
}

int
main(int argument_count, char **words)
{
	const struct geonn_configure settings = {
		.idle_session_timeout = NEVER_MS,
		.transfer_memory_limit = LIMIT
	};
	struct engine engine;

	tests_begin(argument_count, words);
	engine_start(&engine, request.engine_program, &settings);
	test_staying(&engine);
	test_two_roles(&engine);
	test_abuse(&engine);
	test_crowding_out(&engine);
	test_timeout(&engine);
	report("the engine ends as it should", engine_stop(&engine) == 0);
	test_descriptors(false);
	test_descriptors(true);
	return summed_up();
}
