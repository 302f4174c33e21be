/*
 * hostile_engine.c
 *		An engine that answers a client, and lies where a step has it lie.
 *
 * The hostile engine knows what a sound one would answer, and says that, unless a step
 * spoils it; so lies come at any place of a conversation.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "hostile_engine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/batch_layout.h"
#include "common/channel.h"
#include "scribble.h"

/* requests of a client that are not answered yet, at most */
#define PENDING_MOST	64

/* pairs of an observation where all within a distance are asked for */
#define PAIRS_OF_ALL	5

/* calls that it says to have under way */
#define CALLS			2

/* the length that a value of type text begins with, on little-endian processors */
#define TEXT_HEADER(bytes) ((uint32_t) (bytes) << 2)

struct pending
{
	uint16_t	type;
	uint32_t	slot;
	uint32_t	first;
	uint32_t	rows;
	uint32_t	room;
	uint32_t	k;
	uint32_t	labels;
	uint32_t	listing;
};

static const struct step sound;

static struct
{
	int			socket;			/* -1: closed */
	uint32_t	hash;
	struct pending pending[PENDING_MOST];
	int			pending_count;
	uint32_t	columns;
	uint32_t	metric;
	uint64_t	references;
	void	   *start[GEONN_RING_SLOTS];
	size_t		bytes[GEONN_RING_SLOTS];
	struct geonn_batch_columns batch[GEONN_RING_SLOTS];
}			engine = {
	.socket = -1
};

static void
unmap(uint32_t slot)
{
	scribble_stop();
	if (engine.start[slot] != NULL)
		munmap(engine.start[slot], engine.bytes[slot]);
	engine.start[slot] = NULL;
}

void
hostile_engine_leave(void)
{
	for (uint32_t slot = 0; slot < GEONN_RING_SLOTS; slot++)
		unmap(slot);
	if (engine.socket >= 0)
	{
		/* the client may hold this end, too: as a descriptor that it was given in place of a file's */
		shutdown(engine.socket, SHUT_RDWR);
		close(engine.socket);
	}
	engine.socket = -1;
}

void
hostile_engine_accept(int socket, uint32_t hash)
{
	hostile_engine_leave();
	engine.pending_count = 0;
	engine.columns = 0;
	engine.metric = 0;
	engine.references = 0;
	engine.socket = socket;
	engine.hash = hash;
}

/* ---- what it hears ---- */

static void
take_request(const union geonn_message *message)
{
	struct pending pending = {.type = message->header.type};

	switch (pending.type)
	{
		case GEONN_OPEN:
			engine.columns = message->open.columns;
			engine.metric = message->open.metric;
			pending.labels = message->open.labels;
			break;
		case GEONN_ALLOCATE:
			pending.slot = message->allocate.slot;
			pending.rows = message->allocate.rows;
			pending.room = message->allocate.room;
			break;
		case GEONN_REFERENCES:
			pending.slot = message->references.slot;
			engine.references += message->references.rows;
			break;
		case GEONN_SEARCH:
			pending.slot = message->search.slot;
			pending.first = message->search.first;
			pending.rows = message->search.rows;
			pending.k = message->search.k;
			break;
		case GEONN_LIST:
			pending.listing = message->list.listing;
			break;
		case GEONN_HELLO:
		case GEONN_ATTACH:
		case GEONN_SEAL:
			break;
		default:
			return;
	}
	if (engine.pending_count < PENDING_MOST)
		engine.pending[engine.pending_count++] = pending;
}

bool
hostile_engine_listen(void)
{
	union geonn_message message;
	enum geonn_channel_status status;

	while (engine.socket >= 0 &&
		   (status = geonn_channel_receive(engine.socket, &message, NULL)) != GEONN_CHANNEL_AGAIN)
	{
		if (status == GEONN_CHANNEL_CLOSED)
			hostile_engine_leave();
		else if (status != GEONN_CHANNEL_OK)
			steps_broken("what the module says is of its protocol");
		else
			take_request(&message);
	}
	return engine.socket >= 0;
}

int
hostile_engine_request(void)
{
	return engine.pending_count > 0 ? engine.pending[0].type : 0;
}

/* ---- what it says ---- */

/*
 * A descriptor in place of the right one.
 */
static int
other_descriptor(const struct step *step)
{
	int			descriptor;

	switch (step->numbers[1] % 6)
	{
		case 0:
			return open("/dev/null", O_RDWR | O_CLOEXEC);
		case 1:
			return fcntl(engine.socket, F_DUPFD_CLOEXEC, 0);
		case 2:
			return -1;
		case 3:
			descriptor = memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING);
			if (ftruncate(descriptor, step->numbers[0] % 8192) != 0)
				abort();
			break;
		case 4:
			descriptor = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
			if (ftruncate(descriptor, 1 << 22) != 0)
				abort();
			return descriptor;
		default:
			return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return descriptor;
}

/*
 * Send bytes with a descriptor, which is closed, or -1.
 */
static void
send_bytes(const void *bytes, size_t length, int descriptor)
{
	struct iovec part = {.iov_base = (void *) bytes,.iov_len = length};
	struct msghdr envelope = {.msg_iov = &part,.msg_iovlen = 1};
	union
	{
		struct cmsghdr alignment;
		char		space[CMSG_SPACE(sizeof(int))];
	}			control = {0};

	if (descriptor >= 0)
	{
		struct cmsghdr *rights;

		envelope.msg_control = control.space;
		envelope.msg_controllen = sizeof(control.space);
		rights = CMSG_FIRSTHDR(&envelope);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
	}
	if (engine.socket >= 0)
		sendmsg(engine.socket, &envelope, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (descriptor >= 0)
		close(descriptor);
}

static void
say(const struct step *step, int type, void *content, int descriptor)
{
	union geonn_message message;
	size_t		length;

	steps_write(step, type, content, &message, &length);
	if (step->how & HOW_DESCRIPTOR)
	{
		if (descriptor >= 0)
			close(descriptor);
		descriptor = other_descriptor(step);
	}
	send_bytes(&message, length, descriptor);
}

/*
 * A sealed file with these bytes, of which an odd step changes some words, and the length.
 */
static int
make_file(const struct step *step, void *bytes, size_t length)
{
	int			descriptor = memfd_create("hostile file", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t		words = length / 8;

	if (step->how & HOW_ODD && words > 0)
	{
		size_t		first = step->numbers[0] % words;

		for (size_t i = first; i < words && i <= first + step->width; i++)
			memcpy((char *) bytes + i * 8, step->value, 8);
		length -= step->numbers[1] % 3 == 0 ? step->numbers[1] % length : 0;
	}
	if (write(descriptor, bytes, length) != (ssize_t) length)
		abort();
	fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	return descriptor;
}

/*
 * The step, where it spoils this one of the messages about a kept dataset.
 */
static const struct step *
kept_step(const struct step *step, unsigned message)
{
	return step->slot % (GEONN_FILE_KINDS + 1) == message ? step : &sound;
}

static void
say_file(const struct step *step, enum geonn_file_kind kind, void *bytes, size_t length)
{
	struct geonn_file file = {.kind = kind};

	step = kept_step(step, kind);
	say(step, GEONN_FILE, &file, make_file(step, bytes, length));
}

/*
 * The files of a kept dataset, as references.c and groups.c have them: records with
 * coordinates, ids of type text, and one group and one party, whose key is an integer.  The base has another form than
 * live_base.c asks for.
 */
static void
say_files(const struct step *step)
{
	struct
	{
		uint64_t	id;
		double		latitude;
		double		longitude;
	}			records[KEPT_REFERENCES];
	struct
	{
		uint32_t	header;
		char		text[4];
	}			values[KEPT_REFERENCES];
	struct
	{
		uint64_t	key;
		struct
		{
			uint32_t	hash;
			int32_t		number;
			uint64_t	key;
		}			slots[2];
		uint64_t	count;
	}			groups = {
		.slots = {{engine.hash, 0, 0}, {engine.hash, 1, 0}},
		.count = 2
	};
	uint64_t	base[12] = {0};

	for (uint32_t i = 0; i < KEPT_REFERENCES; i++)
	{
		records[i].id = i * sizeof(values[0]);
		records[i].latitude = records[i].longitude = i;
		values[i].header = TEXT_HEADER(sizeof(values[0]));
		memcpy(values[i].text, "id  ", 4);
		values[i].text[3] = (char) ('0' + i);
	}
	say_file(step, GEONN_FILE_RECORDS, records, sizeof(records));
	say_file(step, GEONN_FILE_VALUES, values, sizeof(values));
	say_file(step, GEONN_FILE_GROUPS, &groups, sizeof(groups));
	say_file(step, GEONN_FILE_BASE, base, sizeof(base));
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		say_file(step, GEONN_FILE_PARTIES + i, &groups, sizeof(groups));
}

static void
say_opened(const struct step *step, const struct pending *pending)
{
	struct geonn_opened opened = {
		.dataset = 7,
		.metric = engine.metric,
		.columns = engine.columns
	};
	bool		sealed = pending->type == GEONN_ATTACH ||
		(step->how & HOW_KEPT && (pending->labels > 0 || step->how & HOW_ODD));

	if (sealed)
	{
		opened.sealed = 1;
		opened.files = (1 << GEONN_FILE_KINDS) - 1;
		opened.references = engine.references = KEPT_REFERENCES;
	}
	say(sealed ? kept_step(step, GEONN_FILE_KINDS) : step, GEONN_OPENED, &opened, -1);
	if (sealed)
		say_files(step);
}

static void
say_batch(const struct step *step, const struct pending *pending)
{
	uint32_t	slot = pending->slot % GEONN_RING_SLOTS;
	struct geonn_batch batch = {
		.slot = pending->slot,
		.rows = pending->rows,
		.room = pending->room
	};
	int			descriptor;

	if (step->how & HOW_ODD)
	{
		batch.rows = step->numbers[0] % 2 ? 0 : 1 + step->numbers[0] % pending->rows;
		batch.room = 1 + step->numbers[1] % pending->room;
	}
	unmap(slot);
	if (batch.rows == 0)
	{
		say(step, GEONN_BATCH, &batch, -1);
		return;
	}
	engine.bytes[slot] = geonn_batch_layout(NULL, batch.rows, batch.room, engine.columns,
											&engine.batch[slot]);
	descriptor = memfd_create("hostile batch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (ftruncate(descriptor, (off_t) engine.bytes[slot]) != 0)
		abort();
	fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	engine.start[slot] = mmap(NULL, engine.bytes[slot], PROT_READ | PROT_WRITE, MAP_SHARED,
							  descriptor, 0);
	geonn_batch_layout(engine.start[slot], batch.rows, batch.room, engine.columns,
					   &engine.batch[slot]);
	say(step, GEONN_BATCH, &batch, descriptor);
}

/*
 * Answer with so many pairs of each observation, as far as the room goes.
 */
static void
say_results(const struct step *step, const struct pending *pending)
{
	uint32_t	slot = pending->slot % GEONN_RING_SLOTS;
	const struct geonn_batch_columns *columns = &engine.batch[slot];
	struct geonn_results results = {
		.slot = pending->slot,
		.first = pending->first,
		.algorithm = GEONN_ALGORITHM_INDEX
	};
	uint32_t	most = pending->k > 0 ? pending->k : PAIRS_OF_ALL;
	uint32_t	each = engine.references < most ? (uint32_t) engine.references : most;

	if (engine.start[slot] == NULL)
		return;
	if (step->how & HOW_ODD)
		each = step->numbers[0] % 4;
	while (results.first + results.observations < pending->rows &&
		   results.first + results.observations < columns->rows &&
		   results.pairs + each <= columns->room)
	{
		columns->count[results.first + results.observations++] = each;
		for (uint32_t i = 0; i < each; i++, results.pairs++)
		{
			columns->tag[results.pairs] = step->how & HOW_ODD && step->numbers[0] / 8 % 2 ? INT64_C(1) << 40 : i;
			columns->distance[results.pairs] = i;
		}
	}
	if (step->how & HOW_ODD && step->numbers[0] / 4 % 2 && results.observations > 0)
		memcpy(&columns->count[results.first + step->slot % results.observations], step->value,
			   sizeof(*columns->count));
	if (each == 1 && step->numbers[1] % 2)
		results.flags = GEONN_RESULTS_ONE_EACH;
	else if (results.observations == 0 || (step->how & HOW_ODD && step->numbers[1] % 8 == 4))
	{
		/* cut off within an observation */
		results.flags = GEONN_RESULTS_PARTIAL;
		results.observations -= results.observations > 0;
		results.pairs = results.observations * each + 1 < columns->room ?
			results.observations * each + 1 : columns->room;
		columns->count[results.first + results.observations] = results.pairs -
			results.observations * each;
	}
	say(step, GEONN_RESULTS, &results, -1);
}

/*
 * Calls that have done nothing yet, or no statistics.
 */
static void
say_list(const struct step *step, const struct pending *pending)
{
	struct geonn_call_status calls[CALLS];
	struct geonn_listed listed = {.entries = pending->listing == GEONN_LIST_CALLS ? CALLS : 0};

	memset(calls, 0, sizeof(calls));
	for (int i = 0; i < CALLS; i++)
		calls[i].pid = 1 + i;
	say(step, GEONN_LISTED, &listed, make_file(step, calls, listed.entries * sizeof(calls[0])));
}

/*
 * Answer one of the requests.
 */
static void
answer(const struct step *step, int number)
{
	struct pending pending = engine.pending[number];
	struct geonn_hello welcome = {.release = GEONN_VERSION};
	struct geonn_released released = {.slot = pending.slot};
	struct geonn_sealed sealed = {.references = engine.references};

	memmove(&engine.pending[number], &engine.pending[number + 1],
			(size_t) (--engine.pending_count - number) * sizeof(pending));
	switch (pending.type)
	{
		case GEONN_HELLO:
			say(step, GEONN_WELCOME, &welcome, -1);
			break;
		case GEONN_LIST:
			say_list(step, &pending);
			break;
		case GEONN_OPEN:
		case GEONN_ATTACH:
			say_opened(step, &pending);
			break;
		case GEONN_ALLOCATE:
			say_batch(step, &pending);
			break;
		case GEONN_REFERENCES:
			say(step, GEONN_RELEASED, &released, -1);
			break;
		case GEONN_SEAL:
			say(step, GEONN_SEALED, &sealed, -1);
			break;
		case GEONN_SEARCH:
			say_results(step, &pending);
			break;
	}
}

static void
say_error(const struct step *step)
{
	struct geonn_error error = {.code = step->numbers[0] % 8};

	memset(error.message, 'e', sizeof(error.message));
	memset(error.detail, step->numbers[1] % 2 ? '%' : 0, sizeof(error.detail));
	memset(error.hint, step->numbers[1] % 3, sizeof(error.hint));
	say(step, GEONN_ERROR, &error, -1);
}

static void
say_queued(const struct step *step)
{
	struct geonn_queued queued = {.limit = step->numbers[0],.ahead = step->numbers[1]};

	say(step, GEONN_QUEUED, &queued, -1);
}

static void
say_unasked(const struct step *step)
{
	union geonn_message message;
	int			type = GEONN_WELCOME + (int) (step->numbers[0] % (GEONN_QUEUED - GEONN_WELCOME + 1));

	memset(&message, (int) step->numbers[1], sizeof(message));
	say(step, type, &message, -1);
}

static void
change_memory(const struct step *step)
{
	uint32_t	slot = step->slot % GEONN_RING_SLOTS;

	if (engine.start[slot] == NULL)
		return;
	if (step->numbers[1] % 2)
		memset(engine.start[slot], step->value[0], engine.bytes[slot]);
	else
		memcpy((char *) engine.start[slot] + step->numbers[0] % (engine.bytes[slot] / 8) * 8,
			   step->value, 8);
	/* the counts are what a lie can be about */
	engine.batch[slot].count[step->numbers[0] % engine.batch[slot].rows] = step->numbers[1];
}

void
hostile_engine_do(const struct step *step)
{
	uint32_t	slot = step->slot % GEONN_RING_SLOTS;

	switch ((enum lie) (step->action % LIES))
	{
		case LIE_ANSWER:
			if (engine.pending_count > 0)
				answer(step, 0);
			break;
		case LIE_ANSWER_LAST:
			if (engine.pending_count > 0)
				answer(step, engine.pending_count - 1);
			break;
		case LIE_UNASKED:
			say_unasked(step);
			break;
		case LIE_ERROR:
			say_error(step);
			break;
		case LIE_MEMORY:
			change_memory(step);
			break;
		case LIE_SCRIBBLE:
			if (engine.start[slot] != NULL)
				scribble_begin(engine.start[slot], engine.bytes[slot], step->numbers[0]);
			break;
		case LIE_NOISE:
			send_bytes(step, step->numbers[0] % sizeof(*step),
					   step->how & HOW_DESCRIPTOR ? other_descriptor(step) : -1);
			break;
		case LIE_CLOSE:
			hostile_engine_leave();
			break;
		case LIE_QUEUED:
			say_queued(step);
			break;
		case LIE_SILENT:
		case LIE_CANCEL:
		case LIES:
			break;
	}
}
