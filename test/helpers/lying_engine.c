/*
 * lying_engine.c
 *		An engine that breaks the protocol, to see that the module notices.
 *
 * The program takes the place of geonn-engine and serves one client at a time: it is
 * hostile_engine.c, with a script a lie.  The first word of the file "lie" in its working
 * directory, the server's data directory, says which lie it tells the next client, as
 * named in scripts.  Without a lie it answers every observation with tag 0 at 0 m, and
 * has two calls under way.
 *
 * The lies that begin with "start" are for the supervisor, in place of the first pong, which
 * otherwise comes when the settings have.
 *
 * The lies from "kept" on are about a dataset that it says to have kept; "kept" itself
 * is told as it should be.  Those from "list_none" on are about the list of calls under way.
 * A number after the lie is the hash that all slots of the table of groups have.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/channel.h"
#include "../fuzz/protocol/hostile_engine.h"

/* the step follows the one before it at once */
#define THEN			(-1)

/* a number as the bytes of a step's value */
#define BYTE(number, i)	((uint8_t) ((uint64_t) (number) >> 8 * (i)))
#define VALUE(number)	{BYTE(number, 0), BYTE(number, 1), BYTE(number, 2), BYTE(number, 3), \
						 BYTE(number, 4), BYTE(number, 5), BYTE(number, 6), BYTE(number, 7)}

/* a field of a message is this number, or with STEP_MORE larger by it */
#define SIZE(message, field) sizeof(((struct message *) NULL)->field)
#define SPOILED(message, field, bits, number) \
	.how = STEP_SPOILED | (bits), .place = offsetof(struct message, field) / SIZE(message, field), \
	.width = SIZE(message, field) == 8 ? 3 : SIZE(message, field) == 4 ? 2 : 1, .value = VALUE(number)

/* a word of a file or a list is this number, and so are so many words behind it */
#define ODD(bits, word, number) .how = HOW_ODD | (bits), .numbers = {word, 1}, .value = VALUE(number)

/* a descriptor in place of the sound one, by numbers that hostile_engine.c knows */
#define SOCKET(bits)	.how = HOW_DESCRIPTOR | (bits), .numbers = {0, 1}
#define NO_FILE			.how = HOW_DESCRIPTOR, .numbers = {0, 2}
#define WRITABLE(bits, bytes) .how = HOW_DESCRIPTOR | (bits), .numbers = {bytes, 3}
#define UNSEALED		.how = HOW_DESCRIPTOR, .numbers = {0, 4}

struct move
{
	int			at;				/* the request that it is the answer to, or THEN; 0: none */
	struct step step;
};

struct script
{
	const char *lie;
	struct move moves[4];		/* what follows the last is zero */
};

/* records have an id and two coordinates; the words of groups are key, two slots, count */
#define RECORD_BYTES	24
#define FIRST_KEY		2
#define SLOT_COUNT		5

static const struct script scripts[] = {
	{"none", {{0}}},
	{"start_noise", {{0}}},
	{"start_settings", {{0}}},
	{"start_version", {{0}}},
	{"start_status", {{0}}},
	{"start_device", {{0}}},
	{"unsealed", {{GEONN_ALLOCATE, {UNSEALED}}}},
	{"short", {{GEONN_ALLOCATE, {WRITABLE(0, 4096)}}}},
	{"no_memory", {{GEONN_ALLOCATE, {NO_FILE}}}},
	{"rows", {{GEONN_ALLOCATE, {SPOILED(geonn_batch, rows, 0, GEONN_BATCH_ROWS_MAX + 1)}}}},
	{"slot", {{GEONN_ALLOCATE, {SPOILED(geonn_batch, slot, 0, 4000000000)}}}},
	{"other_slot", {{GEONN_SEARCH, {SPOILED(geonn_results, slot, STEP_MORE, 1)}}}},
	{"metric", {{GEONN_OPEN, {SPOILED(geonn_opened, metric, 0, GEONN_METRIC_SPHEROID)}}}},
	{"columns", {{GEONN_OPEN, {SPOILED(geonn_opened, columns, STEP_MORE, GEONN_COLUMN_GROUP)}}}},
	{"references", {{GEONN_OPEN, {SPOILED(geonn_opened, references, 0, 1)}}}},
	{"files", {{GEONN_OPEN, {SPOILED(geonn_opened, files, 0, 1)}}}},
	{"file", {{GEONN_REFERENCES, {.action = LIE_UNASKED, .numbers = {GEONN_FILE - GEONN_WELCOME, 0}, .how = HOW_DESCRIPTOR}}}},
	{"sealed", {{GEONN_SEAL, {SPOILED(geonn_sealed, references, STEP_MORE, 1)}}}},
	/* batches with room for three pairs, so that observations have another one than references; and then a fourth pair */
	{"pairs", {{GEONN_ALLOCATE, {.how = HOW_ODD, .numbers = {98, 2}}}, {GEONN_ALLOCATE, {.how = HOW_ODD, .numbers = {98, 2}}},
	{GEONN_SEARCH, {SPOILED(geonn_results, pairs, STEP_MORE, 1)}}}},
	{"observations", {{GEONN_SEARCH, {SPOILED(geonn_results, observations, STEP_MORE, 1)}}}},
	{"no_observations", {{GEONN_SEARCH, {SPOILED(geonn_results, observations, 0, 0)}}}},
	{"first", {{GEONN_SEARCH, {SPOILED(geonn_results, first, STEP_MORE, 1)}}}},
	/* one pair each, and the count of the last or the first observation is another */
	{"count_large", {{GEONN_SEARCH, {.how = HOW_ODD, .numbers = {1 + 4, 0}, .slot = 2, .value = VALUE(UINT32_MAX)}}}},
	{"count_small", {{GEONN_SEARCH, {.how = HOW_ODD, .numbers = {1 + 4, 0}, .slot = 0, .value = VALUE(0)}}}},
	/* two pairs where one was asked for */
	{"count_two", {{GEONN_SEARCH, {.how = HOW_ODD, .numbers = {2, 0}}}}},
	{"flags", {{GEONN_SEARCH, {SPOILED(geonn_results, flags, 0, 4)}}}},
	{"way", {{GEONN_SEARCH, {SPOILED(geonn_results, ways[GEONN_KIND_CUDA], 0, 1 << GEONN_WAY_COUNT)}}}},
	{"cpu_reason", {{GEONN_SEARCH, {SPOILED(geonn_results, cpu_reason, 0, GEONN_CPU_REASON_COUNT)}}}},
	{"one_each", {{GEONN_SEARCH, {SPOILED(geonn_results, pairs, STEP_MORE, UINT32_MAX), .numbers = {0, 1}}}}},
	/* references that were never sent */
	{"tag", {{GEONN_SEARCH, {.how = HOW_ODD, .numbers = {1 + 8, 0}}}}},
	/* a nearest reference that is but a part, so that another one follows */
	{"partial", {{GEONN_SEARCH, {.how = HOW_ODD, .numbers = {1, 4}}}}},
	/* a message for the engine, and none at all */
	{"type", {{GEONN_REFERENCES, {SPOILED(geonn_header, type, 0, GEONN_REFERENCES)}}}},
	{"noise", {{GEONN_SEAL, {.action = LIE_NOISE, .numbers = {5, 0}}}}},
	{"silent_end", {{GEONN_SEAL, {.action = LIE_ANSWER}}, {THEN, {.action = LIE_CLOSE}}}},
	{"queued_twice", {{GEONN_OPEN, {.action = LIE_QUEUED, .numbers = {1, 0}}}, {THEN, {.action = LIE_QUEUED, .numbers = {1, 0}}}}},
	{"queued_late", {{GEONN_OPEN, {.action = LIE_ANSWER}}, {THEN, {.action = LIE_QUEUED, .numbers = {1, 0}}}}},
	{"kept", {{GEONN_OPEN, {.how = HOW_KEPT}}}},
	/* for a dataset without a label */
	{"kept_unasked", {{GEONN_OPEN, {.how = HOW_KEPT | HOW_ODD, .slot = GEONN_FILE_KINDS}}}},
	{"kept_no_file", {{GEONN_OPEN, {SPOILED(geonn_opened, files, HOW_KEPT, 0), .slot = GEONN_FILE_KINDS}}}},
	{"kept_pipe", {{GEONN_OPEN, {SOCKET(HOW_KEPT), .slot = GEONN_FILE_RECORDS}}}},
	{"kept_open", {{GEONN_OPEN, {WRITABLE(HOW_KEPT, KEPT_REFERENCES * RECORD_BYTES), .slot = GEONN_FILE_RECORDS}}}},
	/* records of fewer references */
	{"kept_records", {{GEONN_OPEN, {.how = HOW_KEPT | HOW_ODD, .numbers = {0, RECORD_BYTES}, .slot = GEONN_FILE_RECORDS}}}},
	/* ids beyond the end of their file, in it but somewhere else in memory, and longer than it */
	{"kept_place", {{GEONN_OPEN, {ODD(HOW_KEPT, 0, UINT64_MAX - 7), .slot = GEONN_FILE_RECORDS}}}},
	{"kept_external", {{GEONN_OPEN, {ODD(HOW_KEPT, 0, 0x0101), .slot = GEONN_FILE_VALUES}}}},
	{"kept_long", {{GEONN_OPEN, {ODD(HOW_KEPT, 0, 4000 * 4), .slot = GEONN_FILE_VALUES}}}},
	/* more slots of groups than the file has, no power of two of them, and a key that is nowhere */
	{"kept_table", {{GEONN_OPEN, {ODD(HOW_KEPT, SLOT_COUNT, UINT64_MAX / 2 + 1), .slot = GEONN_FILE_GROUPS}}}},
	{"kept_slots", {{GEONN_OPEN, {ODD(HOW_KEPT, SLOT_COUNT, 0), .slot = GEONN_FILE_GROUPS}}}},
	{"kept_keys", {{GEONN_OPEN, {ODD(HOW_KEPT, FIRST_KEY, 1 << 20), .slot = GEONN_FILE_GROUPS}}}},
	{"list_none", {{GEONN_LIST, {NO_FILE}}}},
	{"list_open", {{GEONN_LIST, {WRITABLE(0, 2 * sizeof(struct geonn_call_status))}}}},
	/* of fewer entries than it says */
	{"list_short", {{GEONN_LIST, {SPOILED(geonn_listed, entries, STEP_MORE, 1)}}}},
	/* of an entry and most of another one */
	{"list_odd", {{GEONN_LIST, {SPOILED(geonn_listed, entries, STEP_MORE | HOW_ODD, UINT64_MAX), .numbers = {0, 3}}}}},
	{"list_phase", {{GEONN_LIST, {ODD(0, offsetof(struct geonn_call_status, phase) / 8, GEONN_PHASES)}}}},
	/* with a text that does not end */
	{"list_label", {{GEONN_LIST, {ODD(0, offsetof(struct geonn_call_status, label.arguments) / 8, UINT64_MAX / 255 * 'a'),
	.width = GEONN_ARGUMENTS_BYTES / 8 - 1}}}}
};

static const struct script *
read_lie(unsigned *hash)
{
	FILE	   *file = fopen("lie", "r");
	char		name[32] = "none";

	if (file != NULL)
	{
		if (fscanf(file, "%31s %u", name, hash) < 1)
			exit(EXIT_FAILURE);
		fclose(file);
	}
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (strcmp(name, scripts[i].lie) == 0)
			return &scripts[i];
	exit(EXIT_FAILURE);
}

/*
 * Answer truly, but where the script has a move.
 */
static void
serve(int socket)
{
	static const struct step sound;
	struct pollfd wait = {.fd = socket,.events = POLLIN};
	unsigned	hash = 0;
	const struct move *next = read_lie(&hash)->moves;

	hostile_engine_accept(socket, hash);
	while (hostile_engine_listen())
	{
		int			request = hostile_engine_request();

		if (next->at == THEN || (next->at != 0 && next->at == request))
			hostile_engine_do(&(next++)->step);
		else if (request != 0)
			hostile_engine_do(&sound);
		else
			poll(&wait, 1, -1);
	}
}

/*
 * Wait for the settings, and tell the supervisor a lie where one is asked for: false, as this
 * engine then never listens.
 */
static bool
begin(void)
{
	struct pollfd wait = {.fd = GEONN_SUPERVISOR_DESCRIPTOR,.events = POLLIN};
	union geonn_message message;
	unsigned	hash;
	const char *lie = read_lie(&hash)->lie;

	poll(&wait, 1, -1);
	if (geonn_channel_receive(GEONN_SUPERVISOR_DESCRIPTOR, &message, NULL) != GEONN_CHANNEL_OK ||
		message.header.type != GEONN_CONFIGURE)
		return false;
	if (strcmp(lie, "start_noise") == 0)
		send(GEONN_SUPERVISOR_DESCRIPTOR, "noise", 5, MSG_NOSIGNAL);
	else if (strcmp(lie, "start_settings") == 0)
		geonn_channel_send(GEONN_SUPERVISOR_DESCRIPTOR, GEONN_CONFIGURE, &message, -1);
	else if (strcmp(lie, "start_version") == 0)
	{
		message.header.version++;
		send(GEONN_SUPERVISOR_DESCRIPTOR, &message, sizeof(message.configure), MSG_NOSIGNAL);
	}
	else if (strcmp(lie, "start_status") == 0)
	{
		message.engine_status.devices = GEONN_DEVICES_MAX + 1;
		geonn_channel_send(GEONN_SUPERVISOR_DESCRIPTOR, GEONN_ENGINE_STATUS, &message, -1);
	}
	else if (strcmp(lie, "start_device") == 0)
		geonn_channel_send(GEONN_SUPERVISOR_DESCRIPTOR, GEONN_DEVICE_STATUS, &message, -1);
	else
		return true;
	pause();					/* until the supervisor ends it */
	return false;
}

/*
 * Pings are answered by a process of their own, which ends everything when
 * the supervisor does.
 */
static void
answer_pings(void)
{
	struct pollfd wait = {.fd = GEONN_SUPERVISOR_DESCRIPTOR,.events = POLLIN};
	struct geonn_ping ready = {.number = 0};
	union geonn_message message;

	geonn_channel_send(GEONN_SUPERVISOR_DESCRIPTOR, GEONN_PONG, &ready, -1);
	for (;;)
	{
		poll(&wait, 1, -1);
		switch (geonn_channel_receive(GEONN_SUPERVISOR_DESCRIPTOR, &message, NULL))
		{
			case GEONN_CHANNEL_OK:
				if (message.header.type == GEONN_PING)
					geonn_channel_send(GEONN_SUPERVISOR_DESCRIPTOR, GEONN_PONG, &message, -1);
				break;
			case GEONN_CHANNEL_AGAIN:
				break;
			default:
				return;
		}
	}
}

int
main(int argument_count, char **words)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int			listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pid_t		server;

	/* the supervisor's only option is the socket */
	if (argument_count < 3 || !begin())
		return EXIT_FAILURE;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", words[2]);
	unlink(address.sun_path);
	if (bind(listener, (struct sockaddr *) &address, sizeof(address)) != 0 ||
		listen(listener, 8) != 0)
		return EXIT_FAILURE;

	server = fork();
	if (server == 0)
	{
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			serve(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
	}
	answer_pings();
	kill(server, SIGKILL);
	return EXIT_SUCCESS;
}
