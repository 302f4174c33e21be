/*
 * hostile_client.c
 *		A client of the engine that says and does what it must not.
 *
 * Each action makes a message that fits what was said before, lets the step spoil it
 * (steps.h), sends it and, unless the step is in a hurry, waits for its answer.  What the
 * engine answers is looked at as the module does: a wrong answer is a find, too.
 *
 * The memory of one batch at a time can change while the engine reads it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "hostile_client.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/random.h"
#include "scribble.h"

/* rows of a sound batch */
#define ROWS_MAX		700

/* an answer that should have come by now does not come at all */
#define ANSWER_MS		10

/* bits of a step's how */
#define HOW_HURRIED		4u		/* the next step does not wait for the answer */
#define HOW_DESCRIPTOR	8u		/* a descriptor comes along, unasked */

static const char *socket_path; /* the engine's */

/* the dataset that one of them had last */
static uint64_t last_dataset;

/* ---- its connection ---- */

static void
unmap(struct hostile_slot *slot)
{
	if (slot->start == NULL)
		return;
	scribble_stop();
	munmap(slot->start, slot->bytes);
	slot->start = NULL;
}

static void
leave(struct hostile *hostile)
{
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
		unmap(&hostile->slots[i]);
	if (hostile->socket >= 0)
		close(hostile->socket);
	memset(hostile, 0, sizeof(*hostile));
	hostile->socket = -1;
}

static void
join(struct hostile *hostile, const struct step *step)
{
	pid_t		peer;

	(void) step;
	leave(hostile);
	hostile->socket = geonn_channel_connect(socket_path, &peer);
	if (hostile->socket < 0)
		steps_broken("clients can connect");
}

static void
take_batch(struct hostile *hostile, const struct geonn_batch *batch, int descriptor)
{
	struct hostile_slot *slot;
	struct geonn_batch_columns columns;
	size_t		bytes;

	if (batch->slot >= GEONN_RING_SLOTS)
		steps_broken("a batch is for a slot of the ring");
	slot = &hostile->slots[batch->slot];
	if (batch->rows == 0)
		return;
	bytes = geonn_batch_layout(NULL, batch->rows, batch->room, hostile->columns, &columns);
	if (bytes == 0)
		steps_broken("a batch has rows within the limits");
	unmap(slot);
	slot->bytes = bytes;
	slot->start = geonn_batch_map(descriptor, bytes);
	if (slot->start == NULL)
		steps_broken("a batch has memory that is sealed");
	slot->let_go = false;
	geonn_batch_layout(slot->start, batch->rows, batch->room, hostile->columns, &slot->columns);
}

static void
take_results(struct hostile *hostile, const struct geonn_results *results)
{
	struct hostile_slot *slot;
	uint32_t	most;

	if (results->slot >= GEONN_RING_SLOTS)
		steps_broken("results are of a slot of the ring");
	slot = &hostile->slots[results->slot];
	if (slot->start == NULL && slot->let_go)
		return;
	if (slot->start == NULL)
		steps_broken("results are of a batch");
	most = slot->columns.rows > hostile->references ? slot->columns.rows : hostile->references;
	if (results->pairs > slot->columns.room || results->observations > most - results->first)
		steps_broken("results have room in their batch");
	slot->answered = results->first + results->observations;
}

/*
 * Take one message, for which the client waits so long.  Returns its type, or 0 where
 * none comes.
 */
static int
receive(struct hostile *hostile, int patience_ms)
{
	struct pollfd wait = {.fd = hostile->socket,.events = POLLIN};
	union geonn_message message;
	int			descriptor = -1;
	int			type;

	if (hostile->socket < 0 || poll(&wait, 1, patience_ms) != 1)
		return 0;				/* or libFuzzer's clock has rung */
	switch (geonn_channel_receive(hostile->socket, &message, &descriptor))
	{
		case GEONN_CHANNEL_OK:
			break;
		case GEONN_CHANNEL_AGAIN:
			return 0;
		case GEONN_CHANNEL_MALFORMED:
		case GEONN_CHANNEL_OTHER_VERSION:
			steps_broken("what the engine says is of its protocol");
		default:
			leave(hostile);
			return 0;
	}
	type = message.header.type;
	if (type == GEONN_OPENED)
	{
		hostile->dataset = last_dataset = message.opened.dataset;
		hostile->columns = message.opened.columns;
		hostile->references = (uint32_t) message.opened.references;
	}
	else if (type == GEONN_SEALED)
		hostile->references = (uint32_t) message.sealed.references;
	else if (type == GEONN_BATCH)
		take_batch(hostile, &message.batch, descriptor);
	else if (type == GEONN_RESULTS)
		take_results(hostile, &message.results);
	if (descriptor >= 0)
		close(descriptor);
	return type;
}

/* ---- what they send ---- */

/*
 * A descriptor to send along.  Sealed files say that they have any number of bytes.
 */
static int
make_descriptor(const struct step *step)
{
	int			descriptor;
	int			pipes[2];

	switch (step->slot % 8)
	{
		case 0:
			return open("/dev/null", O_RDONLY | O_CLOEXEC);
		case 1:
			if (pipe2(pipes, O_CLOEXEC) != 0)
				return -1;
			close(pipes[1]);
			return pipes[0];
		case 2:
			return memfd_create("not sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		case 3:
			return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		case 4:
			descriptor = memfd_create("large", MFD_CLOEXEC | MFD_ALLOW_SEALING);
			if (ftruncate(descriptor, (off_t) (INT64_MAX >> step->numbers[1] % 64)) != 0)
				return descriptor;
			break;
		default:
			descriptor = memfd_create("sound", MFD_CLOEXEC | MFD_ALLOW_SEALING);
			if (ftruncate(descriptor, (off_t) (step->numbers[1] % 100000)) != 0)
				return descriptor;
			break;
	}
	fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	return descriptor;
}

/*
 * Send a message, after the step has spoiled it, with one descriptor, several of the
 * same, or none.
 */
static void
send_message(struct hostile *hostile, const struct step *step, int type, void *content,
			 int descriptor)
{
	union geonn_message message;
	size_t		length;
	struct iovec part = {.iov_base = &message};
	struct msghdr envelope = {.msg_iov = &part,.msg_iovlen = 1};
	union
	{
		struct cmsghdr alignment;
		char		space[CMSG_SPACE(6 * sizeof(int))];
	}			control = {0};

	steps_write(step, type, content, &message, &length);
	part.iov_len = length;
	if (descriptor >= 0)
	{
		struct cmsghdr *rights;
		int			count = step->how & HOW_DESCRIPTOR ? 1 + step->slot % 6 : 1;

		envelope.msg_control = control.space;
		envelope.msg_controllen = CMSG_SPACE((size_t) count * sizeof(int));
		rights = CMSG_FIRSTHDR(&envelope);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN((size_t) count * sizeof(int));
		for (int i = 0; i < count; i++)
			memcpy(CMSG_DATA(rights) + (size_t) i * sizeof(int), &descriptor, sizeof(int));
	}
	sendmsg(hostile->socket, &envelope, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (descriptor >= 0)
		close(descriptor);
}

/*
 * Send a message that is answered by one of this type, or by none (0).
 */
static void
ask(struct hostile *hostile, const struct step *step, int type, void *content, int answer)
{
	int			got;
	int			descriptor = step->how & HOW_DESCRIPTOR || type == GEONN_LEAVE ?
		make_descriptor(step) : -1;

	send_message(hostile, step, type, content, descriptor);
	if (answer == 0 || step->how & HOW_HURRIED)
		return;
	do
		got = receive(hostile, ANSWER_MS);
	while (got != 0 && got != answer && got != GEONN_ERROR && got != GEONN_QUEUED);
}

static void
say_hello(struct hostile *hostile, const struct step *step)
{
	struct geonn_hello hello = {.release = GEONN_VERSION};

	ask(hostile, step, GEONN_HELLO, &hello, GEONN_WELCOME);
}

static void
say_call(struct hostile *hostile, const struct step *step)
{
	struct geonn_call call = {
		.pid = 1 + (int32_t) (step->numbers[0] % 3),
		.number = step->numbers[1] % 3,
		.label = {.database = 1,.function = "geonn_nearest",.arguments = "k => 1"}
	};

	call.label.references = step->slot;
	ask(hostile, step, GEONN_CALL, &call, 0);
}

static void
say_open(struct hostile *hostile, const struct step *step)
{
	struct geonn_open open = {
		.metric = step->numbers[0] % 2,
		.columns = step->numbers[0] / 2 & GEONN_COLUMNS_ALL,
		.labels = step->numbers[1] % 4
	};

	/* The engine refuses numbers and measures of arcs without arcs: leave most of these requests as they were. */
	if (!(open.columns & GEONN_COLUMN_ARC) && step->slot % 8 > 0)
		open.columns &= ~GEONN_COLUMNS_OF_ARCS;
	for (uint32_t i = 0; i < open.labels; i++)
	{
		open.label[i].subject[0] = (uint8_t) (step->slot % 3);
		open.label[i].version[0] = (uint8_t) (step->numbers[1] / 4 + i);
	}
	ask(hostile, step, GEONN_OPEN, &open, GEONN_OPENED);
}

static void
say_attach(struct hostile *hostile, const struct step *step)
{
	struct geonn_attach attach = {.dataset = last_dataset - step->numbers[0] % 3};

	ask(hostile, step, GEONN_ATTACH, &attach, GEONN_OPENED);
}

static void
say_return(struct hostile *hostile, const struct step *step)
{
	struct geonn_return give_back = {.slot = step->slot % GEONN_RING_SLOTS};

	if (!(step->how & HOW_HURRIED))
	{
		hostile->slots[give_back.slot].let_go |= hostile->slots[give_back.slot].start != NULL;
		unmap(&hostile->slots[give_back.slot]);
	}
	ask(hostile, step, GEONN_RETURN, &give_back, 0);
}

static void
say_allocate(struct hostile *hostile, const struct step *step)
{
	struct geonn_allocate allocate = {
		.slot = step->slot % GEONN_RING_SLOTS,
		.rows = 1 + step->numbers[0] % ROWS_MAX,
		.room = 1 + step->numbers[1] % ROWS_MAX
	};

	/* a client that does as it should has unmapped it; this one may keep it */
	if (!(step->how & HOW_HURRIED))
	{
		hostile->slots[allocate.slot].let_go |= hostile->slots[allocate.slot].start != NULL;
		unmap(&hostile->slots[allocate.slot]);
	}
	ask(hostile, step, GEONN_ALLOCATE, &allocate, GEONN_BATCH);
}

/* Let a point have the conditions of the one before it, as the arcs of a shape have them. */
static void
repeat_conditions(const struct geonn_batch_columns *columns, uint32_t i)
{
	if (columns->group != NULL)
		columns->group[i] = columns->group[i - 1];
	if (columns->radius != NULL)
		columns->radius[i] = columns->radius[i - 1];
	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
		if (columns->low[window] != NULL)
		{
			columns->low[window][i] = columns->low[window][i - 1];
			columns->high[window][i] = columns->high[window][i - 1];
		}
	if (columns->edges != NULL)
		columns->edges[i] = columns->edges[i - 1];
}

/* Make arcs of the points: triangles, as polygons or as lines, or with something wrong among them. */
static void
fill_arcs(const struct geonn_batch_columns *columns, unsigned kind)
{
	for (uint32_t i = 0; i < columns->rows; i++)
	{
		uint32_t	next = i % 3 == 2 ? i - 2 : i + 1 < columns->rows ? i + 1 : i;
		int32_t		polygon = (int32_t) (i / 3 + 1);

		columns->end_latitude[i] = columns->latitude[next];
		columns->end_longitude[i] = columns->longitude[next];
		columns->shape[i] = (int32_t) (i / (kind == 3 ? 6 : 3));
		columns->tag[i] = columns->shape[i];
		if (kind != 5 && i > 0 && columns->shape[i] == columns->shape[i - 1])
			repeat_conditions(columns, i);
		columns->polygon[i] = kind % 2 ? 0 : kind == 4 && polygon % 5 == 0 ? -polygon : polygon;
		if (columns->segment != NULL)
		{
			columns->part_end[i] = (int32_t) (i / 3 * 3 % (kind == 3 ? 6 : 3)) + 3;
			columns->segment[i] = columns->part_end[i] - 2 + (int32_t) (i % 3);
			if (kind == 6 && random_below(200) == 0)
				*(random_below(2) ? &columns->segment[i] : &columns->part_end[i]) = (int32_t) random_bits();
		}
		if (columns->measure != NULL)
			columns->measure[i] = columns->end_measure[i] = kind == 6 ? scribble_number(random_bits()) : i;
		if (kind == 6 && random_below(200) == 0)
			columns->end_longitude[i] = scribble_number(random_bits());
		if (kind == 6 && random_below(200) == 0)
			columns->polygon[i] = (int32_t) random_bits();
	}
}

/*
 * Write points to a batch: some of a few kinds, or, of one of them, anything.
 */
static void
fill(struct hostile *hostile, const struct step *step)
{
	struct hostile_slot *slot = &hostile->slots[step->slot % GEONN_RING_SLOTS];
	struct geonn_batch_columns *columns = &slot->columns;
	unsigned	kind = step->numbers[1] % 8;

	if (slot->start == NULL)
		return;
	random_state = step->numbers[0];
	for (uint32_t i = 0; i < columns->rows; i++)
	{
		columns->latitude[i] = kind < 2 ? random_between(-90, 90) : random_between(50, 50.001);
		columns->longitude[i] = kind < 2 ? random_between(-180, 360) : random_between(8, 8.001);
		columns->tag[i] = kind == 1 ? (int64_t) random_bits() : i;
		if (columns->group != NULL)
			columns->group[i] = kind == 3 ? (int32_t) random_bits() : random_below(4) - 1;
		if (columns->excluded_first != NULL)
		{
			columns->excluded_first[i] = kind == 4 ? (int64_t) random_bits() : (int64_t) i;
			columns->excluded_last[i] = kind == 4 ? (int64_t) random_bits() : (int64_t) i + 2;
		}
		if (columns->radius != NULL)
			columns->radius[i] = random_below(3) == 0 ? INFINITY :
				kind == 6 ? scribble_number(random_bits()) : random_between(-1, 100);
		for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
			if (columns->low[window] != NULL)
			{
				columns->low[window][i] = kind == 2 ? (int64_t) random_bits() : random_below(10);
				columns->high[window][i] = kind == 2 ? (int64_t) random_bits() : random_below(10) + 5;
			}
		if (columns->edges != NULL)
			columns->edges[i] = (uint16_t) (kind < 5 ? random_bits() : 0);
		if (kind == 5)
		{
			columns->latitude[i] = 90;
			columns->longitude[i] = random_below(5) * 90;
		}
		if (kind == 6 && random_below(50) == 0)
			columns->latitude[i] = scribble_number(random_bits());
		if (kind == 7)
			columns->latitude[i] = columns->longitude[i] = 1;
	}
	if (columns->shape != NULL)
		fill_arcs(columns, kind);
}

static void
say_references(struct hostile *hostile, const struct step *step)
{
	uint32_t	number = step->slot % GEONN_RING_SLOTS;
	struct hostile_slot *slot = &hostile->slots[number];
	struct geonn_references references = {
		.slot = number,
		.rows = slot->start != NULL ? 1 + step->numbers[0] % slot->columns.rows : 1
	};

	ask(hostile, step, GEONN_REFERENCES, &references, GEONN_RELEASED);
}

static void
say_leave(struct hostile *hostile, const struct step *step)
{
	struct geonn_file leave = {.kind = step->numbers[0] % GEONN_FILE_KINDS};

	ask(hostile, step, GEONN_LEAVE, &leave, 0);
}

static void
say_seal(struct hostile *hostile, const struct step *step)
{
	struct geonn_seal seal = {
		.order_by_tag = step->numbers[0] % 2,
		.keep = step->numbers[1] % 2
	};

	ask(hostile, step, GEONN_SEAL, &seal, GEONN_SEALED);
}

static void
say_search(struct hostile *hostile, const struct step *step)
{
	uint32_t	number = step->slot % GEONN_RING_SLOTS;
	struct hostile_slot *slot = &hostile->slots[number];
	struct geonn_search search = {
		.slot = number,
		.rows = slot->start != NULL ? 1 + step->numbers[0] % slot->columns.rows : 1,
		.k = step->numbers[1] % 4 != 0 ? step->numbers[1] / 4 % 40 : 1,
		.algorithm = step->numbers[0] / 8 % 3,
		.flags = step->numbers[1] / 160 % 4,
		.max_distance = scribble_number(step->numbers[1] / 8)
	};

	if (slot->columns.shape != NULL && step->numbers[1] / 10240 % 2)
		search.flags |= GEONN_SEARCH_PLACES;
	if (slot->columns.shape != NULL && step->numbers[0] / 24 % 3 != 0)
	{
		/* whole triangles, mostly, and not the places of an answer for their ends */
		bool		sound = step->numbers[0] / 72 % 8 != 0;

		search.flags |= GEONN_SEARCH_SHAPES;
		search.flags &= sound ? ~GEONN_SEARCH_PLACES : UINT32_MAX;
		search.rows -= sound && search.rows > 3 ? search.rows % 3 : 0;
	}

	/* the middle one of the usual questions, and the rest of what it left */
	if (step->numbers[1] % 2 == 0)
		search.max_distance = step->numbers[1] % 4 == 0 ? HUGE_VAL : 100000.0;
	if (step->numbers[1] / 640 % 4 == 3)
	{
		search.k = 0;
		search.flags &= GEONN_SEARCH_SHAPES;
		search.radii = 1 + step->numbers[0] % (GEONN_RADII_MAX + 1);
		for (uint32_t i = 0; i < search.radii && i < GEONN_RADII_MAX; i++)
			search.radius[i] = step->numbers[1] / 2560 % 2 ? scribble_number(step->numbers[1] + i) : 50000.0 * i * i;
	}
	if (step->numbers[1] / 640 % 4 == 2 && slot->columns.shape == NULL)
	{
		search.k = search.flags = 0;
		search.min_points = 1 + step->numbers[0] % 9;
		if (step->numbers[0] / 9 % 2)
		{
			search.flags = GEONN_SEARCH_THIN;
			search.min_points = 1 + step->numbers[0] / 18 % 8 / 7;
		}
		search.rows = hostile->references + (step->numbers[0] / 72 % 8 == 0);
	}
	if (step->numbers[1] / 640 % 4 == 1 && step->numbers[0] / 288 % 2 && slot->columns.shape == NULL)
	{
		/* the references themselves are to be assigned */
		search.k = search.flags = 0;
		search.asking = step->numbers[0] % 7 ? hostile->dataset : last_dataset;
		search.capacity = step->numbers[0] % 5;
		search.rows = hostile->references + (step->numbers[0] / 72 % 8 == 0);
	}
	search.first = step->numbers[0] / 1024 % 2 && slot->answered < search.rows ?
		slot->answered : 0;
	ask(hostile, step, GEONN_SEARCH, &search, GEONN_RESULTS);
}

static void
say_finished(struct hostile *hostile, const struct step *step)
{
	struct geonn_finished finished = {
		.rows = step->numbers[0],
		.stays = step->numbers[1] % 3,
		.slot = step->slot % (GEONN_RING_SLOTS + 2)
	};

	ask(hostile, step, GEONN_FINISHED, &finished, 0);
}

static void
say_status(struct hostile *hostile, const struct step *step)
{
	struct geonn_status status = {.gauges = step->numbers[0] % 2};

	ask(hostile, step, GEONN_STATUS, &status, GEONN_DEVICE_STATUS);
}

static void
say_list(struct hostile *hostile, const struct step *step)
{
	struct geonn_list list = {.listing = step->numbers[0] % 3};

	ask(hostile, step, GEONN_LIST, &list, GEONN_LISTED);
}

static void
say_configure(struct hostile *hostile, const struct step *step)
{
	struct geonn_configure configure = {
		.cpu_threads = step->slot,
		.transfer_memory_limit = step->numbers[0],
		.kept_memory_limit = step->numbers[1]
	};

	ask(hostile, step, GEONN_CONFIGURE, &configure, GEONN_ERROR);
}

static void
begin_scribbling(struct hostile *hostile, const struct step *step)
{
	struct hostile_slot *slot = &hostile->slots[step->slot % GEONN_RING_SLOTS];

	if (slot->start == NULL)
		return;
	scribble_begin(slot->start, slot->bytes, step->numbers[0]);
}

static void
receive_one(struct hostile *hostile, const struct step *step)
{
	(void) step;
	receive(hostile, ANSWER_MS);
}

static void
half_close(struct hostile *hostile, const struct step *step)
{
	shutdown(hostile->socket, step->numbers[0] % 2 ? SHUT_RD : SHUT_WR);
}

static void
close_down(struct hostile *hostile, const struct step *step)
{
	(void) step;
	leave(hostile);
}

void
hostile_act(struct hostile *hostile, const struct step *step)
{
	static void (*const actions[HOSTILE_ACTIONS]) (struct hostile *, const struct step *) = {
		[HOSTILE_CONNECT] = join,
		[HOSTILE_HELLO] = say_hello,
		[HOSTILE_STATUS] = say_status,
		[HOSTILE_LIST] = say_list,
		[HOSTILE_CALL] = say_call,
		[HOSTILE_OPEN] = say_open,
		[HOSTILE_ATTACH] = say_attach,
		[HOSTILE_ALLOCATE] = say_allocate,
		[HOSTILE_FILL] = fill,
		[HOSTILE_REFERENCES] = say_references,
		[HOSTILE_LEAVE] = say_leave,
		[HOSTILE_SEAL] = say_seal,
		[HOSTILE_SEARCH] = say_search,
		[HOSTILE_FINISHED] = say_finished,
		[HOSTILE_SCRIBBLE] = begin_scribbling,
		[HOSTILE_RECEIVE] = receive_one,
		[HOSTILE_HALF_CLOSE] = half_close,
		[HOSTILE_CLOSE] = close_down,
		[HOSTILE_RETURN] = say_return,
		[HOSTILE_CONFIGURE] = say_configure
	};

	if (hostile->socket < 0)
		join(hostile, step);
	actions[step->action % HOSTILE_ACTIONS] (hostile, step);
}

void
hostile_begin(struct hostile *hostiles, int count, const char *path)
{
	socket_path = path;
	for (int i = 0; i < count; i++)
		hostiles[i].socket = -1;
}

void
hostile_end(struct hostile *hostiles, int count)
{
	scribble_stop();
	for (int i = 0; i < count; i++)
		leave(&hostiles[i]);
	last_dataset = 0;
}
