/*
 * lying_engine.c
 *		An engine that breaks the protocol, to see that the module notices.
 *
 * It is put in the place of geonn-engine and serves one client at a time.  The
 * first word of the file "lie" in its working directory, the server's data
 * directory, says which lie it tells the next client; the names stand in
 * lie_names.  Without a lie it answers every observation with tag 0 at 0 m.
 *
 * The lies that begin with "start" are for the supervisor, in place of the first pong, which
 * otherwise comes when the settings have.
 *
 * The lies from "kept" on are about a dataset that it says to have kept: three
 * references with ids of type text, the first of them "kept", and groups; "kept"
 * itself is told as it should be.  Those from "list" on are about the list of calls
 * under way, which has one of nobody.  A number after the lie is the hash that all
 * slots of the table of groups have.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/batch_layout.h"
#include "common/channel.h"

enum lie
{
	LIE_NONE,
	LIE_UNSEALED,				/* a batch that could shrink under the client */
	LIE_SHORT,					/* a batch smaller than it says */
	LIE_NO_MEMORY,				/* a batch without a descriptor */
	LIE_ROWS,					/* a batch of rows out of range */
	LIE_SLOT,					/* a message for a slot that does not exist */
	LIE_OTHER_SLOT,				/* results of a slot that searches nothing */
	LIE_METRIC,					/* a dataset of another metric */
	LIE_COLUMNS,				/* a dataset with columns that batches then have */
	LIE_REFERENCES,				/* a new dataset that has references */
	LIE_FILES,					/* a new dataset that has files */
	LIE_FILE,					/* a file that nobody waits for */
	LIE_SEALED,					/* another number of references */
	LIE_DATASET,				/* another dataset than was sent */
	LIE_PAIRS,					/* more pairs than the batch has room for */
	LIE_OBSERVATIONS,			/* more observations than were sent */
	LIE_NO_OBSERVATIONS,		/* an answer to nothing */
	LIE_FIRST,					/* answers that begin elsewhere */
	LIE_COUNT_LARGE,			/* a count above the pairs */
	LIE_COUNT_SMALL,			/* counts below the pairs */
	LIE_COUNT_TWO,				/* two pairs where one was asked for */
	LIE_FLAGS,					/* a flag that nobody knows */
	LIE_ONE_EACH,				/* one pair each, and fewer pairs than that */
	LIE_PARTIAL,				/* a nearest reference that is but a part */
	LIE_TYPE,					/* a message for the engine */
	LIE_NOISE,					/* no message at all */
	LIE_SILENT_END,				/* the end of the connection */
	LIE_QUEUED_TWICE,			/* a session waits that does already */
	LIE_QUEUED_LATE,			/* one that has been let in */
	LIE_START_NOISE,			/* no message at all */
	LIE_START_SETTINGS,			/* the settings come back */
	LIE_START_VERSION,			/* a message of another protocol */
	LIE_KEPT,					/* none */
	LIE_KEPT_UNASKED,			/* for a dataset without a label */
	LIE_KEPT_NO_FILE,			/* no file comes with it */
	LIE_KEPT_PIPE,				/* files that are none */
	LIE_KEPT_OPEN,				/* files that can be changed */
	LIE_KEPT_RECORDS,			/* records of fewer references */
	LIE_KEPT_PLACE,				/* an id beyond the end of its file */
	LIE_KEPT_EXTERNAL,			/* an id that is somewhere else in memory */
	LIE_KEPT_LONG,				/* an id that goes on after its file */
	LIE_KEPT_TABLE,				/* more slots of groups than the file has */
	LIE_KEPT_SLOTS,				/* no power of two of them */
	LIE_KEPT_KEYS,				/* groups whose keys are nowhere */
	LIE_LIST_NONE,				/* a list without a file */
	LIE_LIST_OPEN,				/* one in a file that can be changed */
	LIE_LIST_SHORT,				/* of fewer entries than it says */
	LIE_LIST_ODD,				/* of some entries and a bit */
	LIE_LIST_PHASE,				/* of a call in a phase that there is not */
	LIE_LIST_LABEL,				/* with a text that does not end */
	LIE_NAMES
};

static const char *const lie_names[LIE_NAMES] = {
	"none", "unsealed", "short", "no_memory", "rows", "slot", "other_slot",
	"metric", "columns", "references", "files", "file", "sealed", "dataset", "pairs", "observations", "no_observations",
	"first", "count_large", "count_small", "count_two", "flags", "one_each",
	"partial", "type", "noise", "silent_end", "queued_twice", "queued_late",
	"start_noise", "start_settings", "start_version", "kept", "kept_unasked",
	"kept_no_file", "kept_pipe", "kept_open", "kept_records", "kept_place",
	"kept_external", "kept_long", "kept_table", "kept_slots", "kept_keys",
	"list_none", "list_open", "list_short", "list_odd", "list_phase", "list_label"
};

struct liar
{
	int			socket;
	enum lie	lie;
	unsigned	hash;			/* after the lie */
	uint32_t	present;		/* columns of batches: GEONN_COLUMN_... */
	uint64_t	references;
	struct geonn_batch_columns columns[GEONN_RING_SLOTS];
};

static enum lie
read_lie(unsigned *hash)
{
	FILE	   *file = fopen("lie", "r");
	char		name[32] = "none";
	int			lie = LIE_NONE;

	if (file != NULL)
	{
		if (fscanf(file, "%31s %u", name, hash) >= 1)
			for (lie = LIE_NAMES - 1; lie > LIE_NONE && strcmp(name, lie_names[lie]) != 0; lie--)
				;
		fclose(file);
	}
	return (enum lie) lie;
}

static void
give_batch(struct liar *liar, const struct geonn_allocate *allocate)
{
	struct geonn_batch batch = {
		.slot = allocate->slot,
		.rows = allocate->rows,
		.room = allocate->room
	};
	struct geonn_batch_columns *columns = &liar->columns[allocate->slot % GEONN_RING_SLOTS];
	size_t		bytes = geonn_batch_layout(NULL, batch.rows, batch.room, liar->present, columns);
	int			descriptor = memfd_create("lying batch", MFD_ALLOW_SEALING);
	size_t		size = liar->lie == LIE_SHORT ? 4096 : bytes;

	if (fallocate(descriptor, 0, 0, (off_t) size) != 0)
		exit(EXIT_FAILURE);
	if (liar->lie != LIE_UNSEALED)
		fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	geonn_batch_layout(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
					   batch.rows, batch.room, liar->present, columns);
	if (liar->lie == LIE_ROWS)
		batch.rows = GEONN_BATCH_ROWS_MAX + 1;
	if (liar->lie == LIE_SLOT)
		batch.slot = 4000000000u;
	geonn_channel_send(liar->socket, GEONN_BATCH, &batch,
					   liar->lie == LIE_NO_MEMORY ? -1 : descriptor);
	close(descriptor);
}

static void
give_results(struct liar *liar, const struct geonn_search *search)
{
	struct geonn_batch_columns *columns = &liar->columns[search->slot % GEONN_RING_SLOTS];
	struct geonn_results results = {
		.slot = search->slot,
		.first = search->first,
		.observations = search->rows - search->first,
		.pairs = search->rows - search->first
	};

	memset(columns->tag, 0, results.pairs * sizeof(*columns->tag));
	memset(columns->distance, 0, results.pairs * sizeof(*columns->distance));
	for (uint32_t i = search->first; i < search->rows; i++)
		columns->count[i] = 1;

	switch (liar->lie)
	{
		case LIE_OTHER_SLOT:
			results.slot = (search->slot + 1) % GEONN_RING_SLOTS;
			break;
		case LIE_PAIRS:
			results.pairs = columns->room + 1;
			break;
		case LIE_OBSERVATIONS:
			results.observations++;
			break;
		case LIE_NO_OBSERVATIONS:
			results.observations = 0;
			break;
		case LIE_FIRST:
			results.first++;
			break;
		case LIE_COUNT_LARGE:
			columns->count[search->rows - 1] = UINT32_MAX;
			break;
		case LIE_COUNT_SMALL:
			columns->count[search->first] = 0;
			break;
		case LIE_COUNT_TWO:
			columns->count[search->first] = 2;
			columns->count[search->rows - 1] = 0;
			break;
		case LIE_FLAGS:
			results.flags = 4;
			break;
		case LIE_ONE_EACH:
			results.flags = GEONN_RESULTS_ONE_EACH;
			results.pairs--;
			break;
		case LIE_PARTIAL:
			results.flags = GEONN_RESULTS_PARTIAL;
			results.observations = 0;
			results.pairs = 1;
			break;
		default:
			break;
	}
	geonn_channel_send(liar->socket, GEONN_RESULTS, &results, -1);
}

/* a file of the kept dataset */
static void
give_file(const struct liar *liar, enum geonn_file_kind kind, const void *bytes, size_t length)
{
	struct geonn_file file = {.kind = kind};
	int			descriptor = memfd_create("lying file", MFD_ALLOW_SEALING);

	if (write(descriptor, bytes, length) != (ssize_t) length)
		exit(EXIT_FAILURE);
	fcntl(descriptor, F_ADD_SEALS, liar->lie == LIE_KEPT_OPEN ? F_SEAL_SHRINK | F_SEAL_GROW :
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	geonn_channel_send(liar->socket, GEONN_FILE, &file,
					   liar->lie == LIE_KEPT_PIPE ? liar->socket : descriptor);
	close(descriptor);
}

/* as groups.c has it: two slots without keys, and their number */
struct table
{
	struct
	{
		uint32_t	hash;
		int32_t		number;
		uint64_t	key;
	}			slots[2];
	uint64_t	count;
};

/*
 * The dataset that was kept.  Values of type text begin with four times their
 * length, on these processors; 1 as the first byte says that they are elsewhere.
 */
static void
give_kept(struct liar *liar)
{
	struct geonn_opened opened = {
		.dataset = 1,
		.references = 3,
		.columns = liar->present,
		.files = liar->lie == LIE_KEPT_NO_FILE ? 0 :
		1 << GEONN_FILE_RECORDS | 1 << GEONN_FILE_VALUES | 1 << GEONN_FILE_GROUPS,
		.sealed = 1
	};
	uint64_t	records[3] = {0, 8, 16};
	struct
	{
		uint32_t	length;
		char		text[4];
	}			values[3] = {
		{8 * 4, {'k', 'e', 'p', 't'}}, {8 * 4, {'a', 'l', 's', 'o'}}, {8 * 4, {'m', 'o', 'r', 'e'}}
	};
	struct table table = {
		.slots = {{liar->hash, 0, 1 << 20}, {liar->hash, 1, 1 << 20}},
		.count = 2
	};

	if (liar->lie == LIE_KEPT_PLACE)
		records[0] = UINT64_MAX - 7;
	if (liar->lie == LIE_KEPT_EXTERNAL)
		values[0].length = 0x0101;
	if (liar->lie == LIE_KEPT_LONG)
		values[0].length = 4000 * 4;
	if (liar->lie == LIE_KEPT_TABLE)
		table.count = UINT64_MAX / 2 + 1;
	if (liar->lie == LIE_KEPT_SLOTS)
		table.count = 0;
	liar->references = 3;
	geonn_channel_send(liar->socket, GEONN_OPENED, &opened, -1);
	if (opened.files == 0)
		return;
	give_file(liar, GEONN_FILE_RECORDS, records,
			  liar->lie == LIE_KEPT_RECORDS ? 2 * sizeof(*records) : sizeof(records));
	give_file(liar, GEONN_FILE_VALUES, values, sizeof(values));
	give_file(liar, GEONN_FILE_GROUPS, &table, sizeof(table));
}

/*
 * A list of one call, or of no statistics.
 */
static void
give_list(struct liar *liar, uint32_t listing)
{
	struct geonn_call_status calls[2] = {{.pid = 1}};
	struct geonn_listed listed = {.entries = listing == GEONN_LIST_CALLS};
	size_t		bytes = listed.entries * sizeof(calls[0]) + (liar->lie == LIE_LIST_ODD);
	int			file = memfd_create("lying list", MFD_ALLOW_SEALING);

	if (liar->lie == LIE_LIST_PHASE)
		calls[0].phase = GEONN_PHASES;
	if (liar->lie == LIE_LIST_LABEL)
		memset(&calls[0].label, 'a', sizeof(calls[0].label));
	listed.entries += liar->lie == LIE_LIST_SHORT;
	if (write(file, calls, bytes) != (ssize_t) bytes)
		exit(EXIT_FAILURE);
	if (liar->lie != LIE_LIST_OPEN)
		fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	geonn_channel_send(liar->socket, GEONN_LISTED, &listed,
					   liar->lie == LIE_LIST_NONE ? -1 : file);
	close(file);
}

/*
 * Answer a message; false ends the connection.
 */
static bool
answer(struct liar *liar, const union geonn_message *message)
{
	struct geonn_welcome welcome = {.release = GEONN_VERSION};
	struct geonn_queued queued = {.limit = 1};
	struct geonn_opened opened = {.dataset = 1};
	struct geonn_released released = {.slot = message->references.slot};
	struct geonn_sealed sealed = {.references = liar->references,.dataset = opened.dataset};
	struct geonn_file file = {.kind = GEONN_FILE_RECORDS};
	struct geonn_seal misplaced = {0};

	switch (message->header.type)
	{
		case GEONN_HELLO:
			geonn_channel_send(liar->socket, GEONN_WELCOME, &welcome, -1);
			return true;
		case GEONN_CALL:
		case GEONN_RETURN:
		case GEONN_FINISHED:
			return true;
		case GEONN_LIST:
			give_list(liar, message->list.listing);
			return true;
		case GEONN_OPEN:
			opened.metric = liar->lie == LIE_METRIC ? GEONN_METRIC_SPHEROID : GEONN_METRIC_SPHERE;
			liar->present = message->open.columns;
			if (liar->lie >= LIE_KEPT &&
				(message->open.labels > 0) == (liar->lie != LIE_KEPT_UNASKED))
			{
				give_kept(liar);
				return true;
			}
			opened.columns = liar->present ^ (liar->lie == LIE_COLUMNS ? GEONN_COLUMN_GROUP : 0);
			opened.references = liar->lie == LIE_REFERENCES;
			opened.files = liar->lie == LIE_FILES;
			for (int i = 0; i < 2 && liar->lie == LIE_QUEUED_TWICE; i++)
				geonn_channel_send(liar->socket, GEONN_QUEUED, &queued, -1);
			geonn_channel_send(liar->socket, GEONN_OPENED, &opened, -1);
			if (liar->lie == LIE_QUEUED_LATE)
				geonn_channel_send(liar->socket, GEONN_QUEUED, &queued, -1);
			return true;
		case GEONN_ALLOCATE:
			give_batch(liar, &message->allocate);
			return true;
		case GEONN_REFERENCES:
			liar->references += message->references.rows;
			if (liar->lie == LIE_FILE)
				geonn_channel_send(liar->socket, GEONN_FILE, &file, liar->socket);
			geonn_channel_send(liar->socket, GEONN_RELEASED, &released, -1);
			return true;
		case GEONN_SEAL:
			if (liar->lie == LIE_TYPE)
				geonn_channel_send(liar->socket, GEONN_SEAL, &misplaced, -1);
			if (liar->lie == LIE_NOISE)
				send(liar->socket, "noise", 5, MSG_NOSIGNAL);
			sealed.references += liar->lie == LIE_SEALED;
			sealed.dataset += liar->lie == LIE_DATASET;
			geonn_channel_send(liar->socket, GEONN_SEALED, &sealed, -1);
			return liar->lie != LIE_SILENT_END;
		case GEONN_SEARCH:
			give_results(liar, &message->search);
			return true;
	}
	return false;
}

static void
serve(int socket)
{
	struct liar liar = {.socket = socket};
	struct pollfd wait = {.fd = socket,.events = POLLIN};
	union geonn_message message;
	int			descriptor;
	enum geonn_channel_status status;

	liar.lie = read_lie(&liar.hash);
	do
	{
		poll(&wait, 1, -1);
		status = geonn_channel_receive(socket, &message, &descriptor);
	} while (status == GEONN_CHANNEL_AGAIN ||
			 (status == GEONN_CHANNEL_OK && answer(&liar, &message)));
	close(socket);
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
	int			descriptor;
	unsigned	hash;

	poll(&wait, 1, -1);
	if (geonn_channel_receive(GEONN_SUPERVISOR_DESCRIPTOR, &message, &descriptor) != GEONN_CHANNEL_OK ||
		message.header.type != GEONN_CONFIGURE)
		return false;
	switch (read_lie(&hash))
	{
		case LIE_START_NOISE:
			send(GEONN_SUPERVISOR_DESCRIPTOR, "noise", 5, MSG_NOSIGNAL);
			break;
		case LIE_START_SETTINGS:
			geonn_channel_send(GEONN_SUPERVISOR_DESCRIPTOR, GEONN_CONFIGURE, &message, -1);
			break;
		case LIE_START_VERSION:
			message.header.version++;
			send(GEONN_SUPERVISOR_DESCRIPTOR, &message, sizeof(message.configure), MSG_NOSIGNAL);
			break;
		default:
			return true;
	}
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
	int			descriptor;

	geonn_channel_send(GEONN_SUPERVISOR_DESCRIPTOR, GEONN_PONG, &ready, -1);
	for (;;)
	{
		poll(&wait, 1, -1);
		switch (geonn_channel_receive(GEONN_SUPERVISOR_DESCRIPTOR, &message, &descriptor))
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
