/*
 * client.c
 *		A session with the engine: references in, observations in, pairs out.
 *
 * Rows cross in batches, memory that the engine allocates and this process
 * maps (protocol.h).  A session has a ring of a few: this process fills one
 * while the engine works on others and the answers in another are taken.  So
 * memory is bounded by the ring, and an observation's id stays in an array
 * beside its batch, not in the engine.
 *
 * A slot of the ring goes around:
 *
 *	IDLE ------> ALLOCATING ----> FILLING ----> RELEASING (references) --> IDLE
 *	  \____________________________/   \______> SEARCHING (observations)
 *												   |  ^
 *												   v  | (more to answer)
 *												ANSWERED ----------------> IDLE
 *
 * At most one slot is FILLING and one ANSWERED slot is being read.  Messages
 * are taken in whenever this process looks for an idle slot or for answers;
 * all that a message does is to change its slot's state.  Since each slot has
 * at most one message under way, neither side can have so many unread ones
 * that the other has to wait, and there is no deadlock in filling while
 * answers are not taken: only add_observation needs room, and its caller
 * takes answers first.
 *
 * The first batches are small, so that small tables cost little and work
 * starts early; then they grow, up to a size at which messages no longer
 * matter.
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "utils/datum.h"
#include "utils/memutils.h"

#include "client.h"
#include "connection.h"
#include "geonn.h"

/* rows of a batch: the first ones, and how they grow */
#define FIRST_ROWS		4096
#define MOST_ROWS		262144
#define GROWTH			8
#define BATCHES_OF_A_SIZE 2

/* pairs that a batch has room for: at most, for each of the rows that a batch
 * for one neighbour each would have, and what small batches may have anyhow */
#define MOST_PAIRS		(1024 * 1024)
#define PAIRS_A_ROW		16
#define LEAST_PAIRS		1024

/* pairs of an observation where nobody knows */
#define UNKNOWN_PAIRS	8

typedef enum SlotState
{
	SLOT_IDLE,
	SLOT_ALLOCATING,			/* waits for a batch */
	SLOT_FILLING,
	SLOT_RELEASING,				/* the engine copies references */
	SLOT_SEARCHING,
	SLOT_ANSWERED
} SlotState;

typedef struct Slot
{
	SlotState	state;

	/* the batch; NULL and 0 where there is none */
	void	   *start;
	size_t		bytes;
	struct geonn_batch_columns columns;
	Datum	   *observation_id; /* [columns.rows] */
	MemoryContext ids;			/* what they point to, where they do */

	uint32		target;			/* rows at which it is sent */
	uint32		rows;			/* in it */
	uint32		first;			/* row from which on the engine answers */

	/* while answered: what of it has been taken */
	uint32		end;			/* row before which answers end */
	uint32		pairs;			/* in the batch */
	bool		one_each;		/* every observation has one pair */
	bool		partial;		/* the last observation has more pairs than these */
	bool		resumes;		/* and these are more of the first one's */
	uint32		observation;	/* the present row */
	uint32		left;			/* pairs that it still has */
	uint32		pair;			/* the next one */
	uint64		rank;			/* of the present row's last pair, 0 before it */
} Slot;

struct GeonnClient
{
	GeonnConnection *connection;
	MemoryContext context;
	GeonnQuestion question;
	Slot		slots[GEONN_RING_SLOTS];
	MemoryContextCallback release;

	int			filling;		/* slot, or -1 */
	int			reading;		/* answered slot, or -1 */
	int			resuming;		/* slot whose last observation has more pairs, or -1 */
	int			searching;		/* how many slots are */

	/* sizes of batches */
	uint32		rows_wanted;
	uint32		rows_granted_most;	/* less where the engine gave less */
	bool		no_more_batches;	/* the engine had none left to give */
	int			batches_of_size;	/* sent with rows_wanted */

	/* references: how many, and are they in their order so far? */
	uint64		references;
	bool		sealed;
	bool		in_order;
	int64		last_tag;
	double		last_latitude;
	double		last_longitude;

	/* the answer to open or seal */
	uint16		awaited;		/* message type, 0 once it has come */
	uint64		sealed_references;
};

static void
release_client(void *argument)
{
	GeonnClient *client = argument;

	for (int i = 0; i < GEONN_RING_SLOTS; i++)
	{
		if (client->slots[i].start != NULL)
			munmap(client->slots[i].start, client->slots[i].bytes);
	}
}

/* ---- messages from the engine ---- */

static Slot *
slot_in_state(GeonnClient *client, uint32 number, SlotState state)
{
	if (number >= GEONN_RING_SLOTS || client->slots[number].state != state)
		geonn_connection_violation("a message for a slot that waits for none");
	return &client->slots[number];
}

static void
take_batch(GeonnClient *client, const struct geonn_batch *batch, int descriptor)
{
	struct geonn_batch_columns columns;
	size_t		bytes = geonn_batch_layout(NULL, batch->rows, batch->room,
										   client->question.columns, &columns);
	void	   *start = NULL;
	int			reason = EPERM;
	Slot	   *slot;

	if (batch->rows == 0 && descriptor < 0)
	{
		slot_in_state(client, batch->slot, SLOT_ALLOCATING)->state = SLOT_IDLE;
		client->no_more_batches = true;
		return;
	}
	if (descriptor >= 0)
	{
		if (bytes != 0)
			start = geonn_batch_map(descriptor, bytes);
		reason = errno;
		close(descriptor);
	}
	if (start == NULL)
	{
		if (bytes == 0 || reason == EPERM)
			geonn_connection_violation("a batch without sound memory");
		errno = reason;
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not map a batch of %zu bytes: %m", bytes),
				 errhint("Reduce geonn.transfer_memory_limit, or the number of sessions that search at the same time.")));
	}

	/* nobody else knows yet that it has to be unmapped */
	if (batch->slot >= GEONN_RING_SLOTS ||
		client->slots[batch->slot].state != SLOT_ALLOCATING)
	{
		munmap(start, bytes);
		geonn_connection_violation("a batch for a slot that waits for none");
	}
	slot = &client->slots[batch->slot];
	slot->start = start;
	slot->bytes = bytes;
	geonn_batch_layout(start, batch->rows, batch->room, client->question.columns,
					   &slot->columns);
	slot->state = SLOT_IDLE;
}

/*
 * Pairs of the slot's present observation, as its turn comes: a count is read
 * once.
 */
static uint32
present_count(const GeonnClient *client, const Slot *slot)
{
	uint32		count;

	if (slot->one_each)
		return 1;
	count = slot->columns.count[slot->observation];
	if (count > slot->pairs - slot->pair)
		geonn_connection_violation("more pairs than its batch has");
	if (slot->rank + count > client->references ||
		(count > client->question.neighbours && client->question.neighbours > 0 &&
		 !client->question.ties))
		geonn_connection_violation("more neighbours than it was asked for");
	return count;
}

static void
take_results(GeonnClient *client, const struct geonn_results *results)
{
	Slot	   *slot = slot_in_state(client, results->slot, SLOT_SEARCHING);
	bool		one_each = (results->flags & GEONN_RESULTS_ONE_EACH) != 0;
	bool		partial = (results->flags & GEONN_RESULTS_PARTIAL) != 0;
	uint32		left = slot->rows - slot->first;

	if (results->first != slot->first ||
		results->observations > left ||
		(partial ? results->observations == left || one_each || results->pairs == 0 :
		 results->observations == 0) ||
		results->pairs > slot->columns.room ||
		(results->flags & ~(GEONN_RESULTS_ONE_EACH | GEONN_RESULTS_PARTIAL)) != 0 ||
		(one_each && results->pairs != results->observations))
		geonn_connection_violation("results that do not fit their batch");

	slot->state = SLOT_ANSWERED;
	slot->end = results->first + results->observations + (partial ? 1 : 0);
	slot->pairs = results->pairs;
	slot->observation = results->first;
	slot->pair = 0;
	slot->one_each = one_each;
	slot->partial = partial;
	if (!slot->resumes)
		slot->rank = 0;
	slot->left = present_count(client, slot);
	client->searching--;
}

/*
 * Take in one message.  Without wait, returns false where there is none.
 */
static bool
take_message(GeonnClient *client, bool wait)
{
	union geonn_message message;
	int			descriptor;

	if (!geonn_connection_receive(client->connection, wait, &message,
								  &descriptor))
		return false;

	if (message.header.type == GEONN_BATCH)
	{
		take_batch(client, &message.batch, descriptor);
		return true;
	}
	if (descriptor >= 0)
		close(descriptor);

	switch (message.header.type)
	{
		case GEONN_RELEASED:
			slot_in_state(client, message.released.slot,
						  SLOT_RELEASING)->state = SLOT_IDLE;
			break;
		case GEONN_RESULTS:
			take_results(client, &message.results);
			break;
		case GEONN_OPENED:
		case GEONN_SEALED:
			if (message.header.type != client->awaited)
				geonn_connection_violation("an answer that nobody asked for");
			client->awaited = 0;
			if (message.header.type == GEONN_SEALED)
				client->sealed_references = message.sealed.references;
			else if (message.opened.metric != (uint32) client->question.metric ||
					 message.opened.columns != client->question.columns)
				geonn_connection_violation("another kind of dataset than it was asked for");
			break;
		default:
			geonn_connection_violation("a message that is not for clients");
	}
	return true;
}

/*
 * Wait for the answer to open or seal.
 */
static void
await_answer(GeonnClient *client, uint16 type)
{
	client->awaited = type;
	while (client->awaited != 0)
		(void) take_message(client, true);
}

/* ---- filling batches ---- */

/*
 * Pairs that a batch of so many rows is to have room for.
 */
static uint32
room_for(const GeonnClient *client, uint32 rows)
{
	const GeonnQuestion *question = &client->question;
	bool		unknown = question->neighbours == 0 || question->ties;
	uint64		each = question->neighbours > 0 ? question->neighbours : UNKNOWN_PAIRS;
	uint64		most = Min((uint64) rows * PAIRS_A_ROW, MOST_PAIRS);
	uint64		room = Max(rows * each, unknown ? LEAST_PAIRS : 0);

	return (uint32) Max(rows, Min(room, Max(most, LEAST_PAIRS)));
}

/*
 * Rows to send in a batch that has room for so many pairs: most of them should
 * come back at once.
 */
static uint32
rows_for(const GeonnClient *client, uint32 rows, uint32 room)
{
	uint32		neighbours = Max(client->question.neighbours, 1);

	if (client->sealed && client->question.batch_rows == 0)
		return Max(1, Min(rows, room / neighbours));
	return rows;
}

/*
 * The idle slot that suits best for a batch of these rows: one that holds
 * them, else one without a batch, if that can still get one, else any.  -1:
 * none is idle.
 */
static int
find_idle(const GeonnClient *client, uint32 rows, uint32 room)
{
	int			found = -1;

	for (int i = 0; i < GEONN_RING_SLOTS; i++)
	{
		const Slot *slot = &client->slots[i];

		if (slot->state != SLOT_IDLE ||
			(slot->start == NULL && client->no_more_batches))
			continue;
		if (slot->start != NULL && slot->columns.rows >= rows && slot->columns.room >= room)
			return i;
		if (found < 0 || slot->start == NULL)
			found = i;
	}
	return found;
}

/*
 * Have the engine give the slot a batch of these rows in place of the one
 * that it may have.  False where it has none to give.
 */
static bool
allocate_batch(GeonnClient *client, int number, uint32 rows, uint32 room)
{
	Slot	   *slot = &client->slots[number];
	struct geonn_allocate allocate = {
		.slot = number,
		.rows = rows,
		.room = room
	};

	if (slot->start != NULL)
	{
		munmap(slot->start, slot->bytes);
		slot->start = NULL;
		pfree(slot->observation_id);
		slot->observation_id = NULL;
	}
	slot->state = SLOT_ALLOCATING;
	geonn_connection_send(client->connection, GEONN_ALLOCATE, &allocate);
	while (slot->state == SLOT_ALLOCATING)
		(void) take_message(client, true);

	if (slot->start == NULL)
		return false;
	if (slot->columns.rows < rows || slot->columns.room < room)
		client->rows_granted_most = slot->columns.rows;
	slot->observation_id = MemoryContextAllocHuge(client->context,
												  slot->columns.rows * sizeof(Datum));
	return true;
}

/*
 * Begin to fill a slot, where one is idle.
 */
static bool
begin_filling(GeonnClient *client)
{
	for (;;)
	{
		uint32		rows = Min(client->rows_wanted, client->rows_granted_most);
		uint32		room = room_for(client, rows);
		int			number = find_idle(client, rows, room);
		Slot	   *slot;

		if (number < 0)
			return false;
		slot = &client->slots[number];
		if (slot->start == NULL ||
			(slot->columns.rows < rows && !client->no_more_batches))
		{
			if (!allocate_batch(client, number, rows, room))
				continue;		/* make do with the others */
		}
		slot->state = SLOT_FILLING;
		slot->target = rows_for(client, Min(client->rows_wanted, slot->columns.rows),
								slot->columns.room);
		slot->rows = 0;
		if (slot->ids != NULL)
			MemoryContextReset(slot->ids);
		client->filling = number;
		return true;
	}
}

/*
 * The slot that was being filled is on its way.
 */
static void
end_filling(GeonnClient *client, SlotState state)
{
	client->slots[client->filling].state = state;
	client->filling = -1;
	if (++client->batches_of_size == BATCHES_OF_A_SIZE &&
		client->question.batch_rows == 0)
	{
		client->batches_of_size = 0;
		client->rows_wanted = Min(client->rows_wanted * GROWTH, MOST_ROWS);
	}
}

/*
 * Start with small batches, or those that were asked for.
 */
static void
reset_growth(GeonnClient *client)
{
	uint32		asked = client->question.batch_rows;

	client->rows_wanted = asked > 0 ? asked : FIRST_ROWS;
	client->batches_of_size = 0;
}

static void
send_search(GeonnClient *client, int number)
{
	Slot	   *slot = &client->slots[number];
	const GeonnQuestion *question = &client->question;
	struct geonn_search search = {
		.slot = number,
		.first = slot->first,
		.rows = slot->rows,
		.neighbours = question->neighbours,
		.algorithm = question->algorithm,
		.flags = (question->ties ? GEONN_SEARCH_TIES : 0) |
		(slot->resumes ? GEONN_SEARCH_RESUME : 0),
		.max_distance = question->max_distance
	};

	slot->state = SLOT_SEARCHING;
	client->searching++;
	geonn_connection_send(client->connection, GEONN_SEARCH, &search);
}

/* ---- references ---- */

GeonnClient *
geonn_client_open(const GeonnQuestion *question)
{
	GeonnClient *client = palloc0(sizeof(GeonnClient));
	struct geonn_open open = {
		.device = question->device,
		.metric = question->metric,
		.columns = question->columns
	};

	client->context = CurrentMemoryContext;
	client->question = *question;
	client->connection = geonn_connection_open();
	client->release.func = release_client;
	client->release.arg = client;
	MemoryContextRegisterResetCallback(client->context, &client->release);

	client->filling = -1;
	client->reading = -1;
	client->resuming = -1;
	client->rows_granted_most = Max(MOST_ROWS, question->batch_rows);
	if (!question->id_by_value)
	{
		for (int i = 0; i < GEONN_RING_SLOTS; i++)
			client->slots[i].ids = AllocSetContextCreate(client->context, "geonn observation ids",
														 ALLOCSET_DEFAULT_SIZES);
	}
	client->in_order = true;
	reset_growth(client);

	geonn_connection_send(client->connection, GEONN_OPEN, &open);
	await_answer(client, GEONN_OPENED);
	return client;
}

static void
send_references(GeonnClient *client)
{
	struct geonn_references references = {
		.slot = client->filling,
		.rows = client->slots[client->filling].rows
	};

	client->references += references.rows;
	end_filling(client, SLOT_RELEASING);
	geonn_connection_send(client->connection, GEONN_REFERENCES, &references);
}

/*
 * Does the reference come at or after the last one in the order (tag,
 * latitude, longitude)?
 */
static inline bool
follows_last(const GeonnClient *client, int64 tag, double latitude,
			 double longitude)
{
	if (tag != client->last_tag)
		return tag > client->last_tag;
	if (latitude != client->last_latitude)
		return latitude > client->last_latitude;
	return longitude >= client->last_longitude;
}

/* the columns of the row that is being added, where there are any */
static inline void
set_columns(const GeonnClient *client, Slot *slot, int32 group, int32 identity)
{
	if (client->question.columns & GEONN_COLUMN_GROUP)
		slot->columns.group[slot->rows] = group;
	if (client->question.columns & GEONN_COLUMN_IDENTITY)
		slot->columns.identity[slot->rows] = identity;
}

void
geonn_client_add_reference(GeonnClient *client, int64 tag, double latitude,
						   double longitude, int32 group, int32 identity)
{
	Slot	   *slot;

	while (client->filling < 0 && !begin_filling(client))
		(void) take_message(client, true);

	slot = &client->slots[client->filling];
	if (client->in_order)
	{
		if (client->references + slot->rows > 0)
			client->in_order = follows_last(client, tag, latitude, longitude);
		client->last_tag = tag;
		client->last_latitude = latitude;
		client->last_longitude = longitude;
	}
	slot->columns.latitude[slot->rows] = latitude;
	slot->columns.longitude[slot->rows] = longitude;
	slot->columns.tag[slot->rows] = tag;
	set_columns(client, slot, group, identity);
	if (++slot->rows == slot->target)
		send_references(client);
}

uint64
geonn_client_seal(GeonnClient *client, bool in_order)
{
	struct geonn_seal seal = {0};

	if (client->filling >= 0)
		send_references(client);
	seal.order_by_tag = in_order || client->in_order ? 0 : 1;
	geonn_connection_send(client->connection, GEONN_SEAL, &seal);
	await_answer(client, GEONN_SEALED);
	if (client->sealed_references != client->references)
		geonn_connection_violation("another number of references than it was sent");
	client->sealed = true;
	reset_growth(client);
	return client->references;
}

/* ---- observations ---- */

bool
geonn_client_has_place(GeonnClient *client)
{
	if (client->filling >= 0)
		return true;
	while (take_message(client, false))
		;
	return begin_filling(client);
}

bool
geonn_client_add_observation(GeonnClient *client, Datum id, double latitude,
							 double longitude, int32 group, int32 identity)
{
	Slot	   *slot = &client->slots[client->filling];

	if (!client->question.id_by_value)
	{
		MemoryContext former = MemoryContextSwitchTo(slot->ids);

		id = client->question.id_length == -1 ? PointerGetDatum(PG_DETOAST_DATUM_COPY(id)) :
			datumCopy(id, false, client->question.id_length);
		MemoryContextSwitchTo(former);
	}

	slot->columns.latitude[slot->rows] = latitude;
	slot->columns.longitude[slot->rows] = longitude;
	slot->observation_id[slot->rows] = id;
	set_columns(client, slot, group, identity);
	if (++slot->rows < slot->target)
		return false;
	geonn_client_finish(client);
	return true;
}

void
geonn_client_finish(GeonnClient *client)
{
	int			number = client->filling;

	if (number < 0)
		return;
	client->slots[number].first = 0;
	client->slots[number].resumes = false;
	end_filling(client, SLOT_SEARCHING);
	send_search(client, number);
}

/* ---- pairs ---- */

/*
 * Choose an answered slot to read from: any, but rows of one observation stay
 * together.
 */
static bool
begin_reading(GeonnClient *client, bool wait)
{
	for (;;)
	{
		while (take_message(client, false))
			;
		for (int i = 0; i < GEONN_RING_SLOTS; i++)
		{
			if (client->slots[i].state == SLOT_ANSWERED &&
				(client->resuming < 0 || client->resuming == i))
			{
				client->reading = i;
				return true;
			}
		}
		if (!wait || client->searching == 0)
			return false;
		(void) take_message(client, true);
	}
}

/*
 * All answers of the slot are taken: have its remaining rows answered, or let
 * it be filled again.
 */
static void
end_reading(GeonnClient *client)
{
	int			number = client->reading;
	Slot	   *slot = &client->slots[number];

	if (slot->pair != slot->pairs)
		geonn_connection_violation("counts that do not add up to its pairs");
	client->reading = -1;
	client->resuming = slot->partial ? number : -1;
	slot->resumes = slot->partial;
	slot->first = slot->partial ? slot->end - 1 : slot->end;
	if (slot->first < slot->rows)
		send_search(client, number);
	else
		slot->state = SLOT_IDLE;
}

/*
 * Go on to the slot's next row.  Returns whether the present one is an
 * observation without a neighbour.
 */
static bool
leave_observation(const GeonnClient *client, Slot *slot)
{
	bool		goes_on = slot->partial && slot->observation + 1 == slot->end;
	bool		unmatched = slot->rank == 0 && !goes_on;

	if (!goes_on)
		slot->rank = 0;
	if (++slot->observation < slot->end)
		slot->left = present_count(client, slot);
	return unmatched;
}

bool
geonn_client_next_pair(GeonnClient *client, bool wait, GeonnPair *pair)
{
	while (client->reading >= 0 || begin_reading(client, wait))
	{
		Slot	   *slot = &client->slots[client->reading];

		while (slot->observation < slot->end)
		{
			uint32		row = slot->observation;

			pair->matched = slot->left > 0;
			if (pair->matched)
			{
				pair->reference = slot->columns.tag[slot->pair];
				pair->distance = slot->columns.distance[slot->pair];
				pair->rank = ++slot->rank;
				slot->pair++;
				slot->left--;
			}
			else if (!leave_observation(client, slot) || !client->question.unmatched)
				continue;
			pair->observation_id = slot->observation_id[row];
			pair->observation_latitude = slot->columns.latitude[row];
			pair->observation_longitude = slot->columns.longitude[row];
			return true;
		}
		end_reading(client);
	}
	return false;
}
