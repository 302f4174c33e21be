/*
 * client.c
 *		A session with the engine: references in, observations in, pairs out.
 *
 * Rows cross in batches: memory that the engine allocates and this process
 * maps (protocol.h).  A session has a ring of a few.  This process fills one
 * batch while the engine works on others, and takes the answers from another.
 * So the ring bounds the memory.  The ids of observations stay in an array
 * beside their batch and are not sent to the engine.  Where ids are long, a
 * batch is sent as soon as their bytes reach a limit, before it has all its
 * rows.
 *
 * A slot of the ring goes around:
 *
 *	IDLE ------> ALLOCATING ----> FILLING ----> RELEASING (references) --> IDLE
 *	  \____________________________/   \______> SEARCHING (observations)
 *												   |  ^
 *												   v  | (more to answer)
 *												ANSWERED ----------------> IDLE
 *
 * At most one slot is FILLING and one ANSWERED slot is being read.  This
 * process receives messages whenever it looks for an idle slot or for answers;
 * a message only changes the state of its slot.  Each slot has at most one
 * message under way, so unread messages never fill the socket and neither side
 * has to wait to send.  Filling cannot deadlock with answers still to be
 * taken: only add_observations needs room, and its caller takes answers
 * first.
 *
 * The first batches are small, so that small tables cost little and work starts early.
 * Then batches grow, up to a size at which the cost of messages no longer matters.
 * Once all observations are sent, a batch goes back to the engine as soon as its
 * answers are taken, so that a cursor at its end holds no memory that other sessions
 * need.  Of the whole process one small batch is held back for its next call
 * (idle_session.c).
 */
#include "postgres.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "portability/instr_time.h"
#include "utils/memutils.h"

#include "base/extension.h"
#include "client/client.h"
#include "client/client_slots.h"
#include "client/idle_session.h"

static void
release_client(void *argument)
{
	GeonnClient *client = argument;

	geonn_idle_session_let_go(client);
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
	{
		if (client->slots[i].start != NULL)
			munmap(client->slots[i].start, client->slots[i].bytes);
	}
	for (int kind = 0; kind < GEONN_FILE_KINDS; kind++)
	{
		if (client->files[kind] >= 0)
			close(client->files[kind]);
	}
}

static void
await_answer(GeonnClient *client, uint16 type)
{
	client->awaited = type;
	while (client->awaited != 0 || client->files_awaited != 0)
		(void) geonn_client_take_message(client, type == GEONN_SEALED ? GEONN_WAIT_SEAL :
										 GEONN_WAIT_ENGINE);
}

/* ---- the dataset ---- */

static GeonnClient *
make_client(const GeonnQuestion *question)
{
	GeonnClient *client = palloc0(sizeof(GeonnClient));

	/*
	 * The client has a context of its own.  That context is deleted, and with it the batches unmapped, before a callback
	 * of the parent context closes the connection: only then does the engine give the batches to other sessions.
	 */
	client->context = AllocSetContextCreate(CurrentMemoryContext, "geonn client",
											ALLOCSET_SMALL_SIZES);
	client->question = *question;
	for (int kind = 0; kind < GEONN_FILE_KINDS; kind++)
		client->files[kind] = -1;
	client->release.func = release_client;
	client->release.arg = client;
	MemoryContextRegisterResetCallback(client->context, &client->release);

	client->filling = -1;
	client->reading = -1;
	client->resuming = -1;
	client->rows_granted_most = PG_UINT32_MAX;
	if (!question->id_by_value)
	{
		for (int i = 0; i < GEONN_RING_SLOTS; i++)
			client->slots[i].ids = AllocSetContextCreate(client->context, "geonn observation ids",
														 ALLOCSET_DEFAULT_SIZES);
	}
	client->in_order = true;
	geonn_client_reset_growth(client);
	return client;
}

/*
 * Ask for a dataset over the session that this process has kept.  Returns false if this process has
 * kept none, or if the engine has ended that session.
 */
static bool
ask_kept_session(GeonnClient *client, struct geonn_call *call, int type, void *message)
{
	if (!geonn_idle_session_take(client))
		return false;
	if (geonn_connection_try_send(client->connection, GEONN_CALL, call) &&
		geonn_connection_try_send(client->connection, type, message) &&
		geonn_connection_is_answered(client->connection, GEONN_WAIT_ENGINE))
		return true;
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
		geonn_client_unmap_batch(client, i);
	geonn_connection_close(client->connection);
	return false;
}

/*
 * Tell the engine which call this is, ask for a dataset by this message, and wait for the answer.
 */
static void
ask(GeonnClient *client, const struct geonn_call *call, int type, void *message)
{
	struct geonn_call named = *call;

	geonn_check_enabled();
	if (!ask_kept_session(client, &named, type, message))
	{
		client->connection = geonn_connection_open();
		geonn_connection_send(client->connection, GEONN_CALL, &named);
		geonn_connection_send(client->connection, type, message);
	}
	await_answer(client, GEONN_OPENED);
}

static GeonnClient *
open_client(const GeonnQuestion *question, const struct geonn_label *labels, int count, bool any_version,
			const struct geonn_call *call)
{
	GeonnClient *client = make_client(question);
	struct geonn_open open = {
		.device = question->device,
		.metric = question->metric,
		.columns = question->columns,
		.labels = count,
		.any_version = any_version
	};

	Assert(count <= GEONN_LABELS_MAX);
	for (int i = 0; i < count; i++)
		open.label[i] = labels[i];
	client->labelled = count > 0;
	ask(client, call, GEONN_OPEN, &open);
	return client;
}

GeonnClient *
geonn_client_open(const GeonnQuestion *question, const struct geonn_label *labels, int count,
				  const struct geonn_call *call)
{
	return open_client(question, labels, count, false, call);
}

GeonnClient *
geonn_client_find(const GeonnQuestion *question, const struct geonn_label *label,
				  const struct geonn_call *call)
{
	return open_client(question, label, 1, true, call);
}

GeonnClient *
geonn_client_attach(const GeonnQuestion *question, uint64 dataset,
					const struct geonn_call *call)
{
	GeonnClient *client = make_client(question);
	struct geonn_attach attach = {
		.device = question->device,
		.dataset = dataset
	};

	client->sealed = true;
	ask(client, call, GEONN_ATTACH, &attach);
	return client;
}

bool
geonn_client_is_sealed(const GeonnClient *client)
{
	return client->sealed;
}

void
geonn_client_keep(GeonnClient *client, const void *version, const void *note, Size bytes)
{
	Assert(client->labelled && bytes <= sizeof(client->note));
	client->keep = true;
	memcpy(client->version, version, sizeof(client->version));
	memcpy(client->note, note, bytes);
}

const struct geonn_sealed *
geonn_client_sealing(const GeonnClient *client)
{
	return &client->sealing;
}

const void *
geonn_client_note(const GeonnClient *client)
{
	return client->note;
}

uint64
geonn_client_dataset(const GeonnClient *client)
{
	return client->dataset;
}

uint64
geonn_client_references(const GeonnClient *client)
{
	return client->references;
}

void
geonn_client_leave_file(GeonnClient *client, int kind, const MemoryFile *file)
{
	struct geonn_file leave = {.kind = kind};

	geonn_connection_send_file(client->connection, GEONN_LEAVE, &leave,
							   geonn_memory_file_descriptor(file));
}

MemoryFile *
geonn_client_take_file(GeonnClient *client, int kind, const char *purpose)
{
	int			descriptor = client->files[kind];
	MemoryFile *file = NULL;

	client->files[kind] = -1;
	if (descriptor >= 0)
		file = geonn_memory_file_attach(purpose, descriptor);
	if (file == NULL)
		geonn_connection_violation("a dataset with a missing or malformed file");
	return file;
}

/* ---- references ---- */

static void
send_references(GeonnClient *client)
{
	struct geonn_references references = {
		.slot = client->filling,
		.rows = client->slots[client->filling].rows
	};

	client->references += references.rows;
	geonn_client_end_filling(client, SLOT_RELEASING);
	geonn_connection_send(client->connection, GEONN_REFERENCES, &references);
}

/* Return whether the reference is equal to the last one or follows it in the order (tag, latitude, longitude). */
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

/* Note whether this reference follows the last one in order, and remember it as the last one. */
static inline void
note_order(GeonnClient *client, bool is_first, int64 tag, double latitude, double longitude)
{
	client->in_order = is_first || follows_last(client, tag, latitude, longitude);
	client->last_tag = tag;
	client->last_latitude = latitude;
	client->last_longitude = longitude;
}

void
geonn_client_add_references(GeonnClient *client, uint32 rows, const int64 *tags,
							const double *latitudes, const double *longitudes,
							const GeonnPointColumns *columns)
{
	/* The order of arcs depends on their tags alone: the arcs of a shape stay in the order in which they come. */
	bool		has_arcs = (client->question.columns & GEONN_COLUMN_ARC) != 0;
	uint32		taken;

	for (uint32 next = 0; next < rows; next += taken)
	{
		Slot	   *slot;
		bool		is_first;

		while (client->filling < 0 && !geonn_client_begin_filling(client, 1))
			(void) geonn_client_take_message(client, GEONN_WAIT_REFERENCES);
		slot = &client->slots[client->filling];
		is_first = client->references + slot->rows == 0;
		taken = Min(rows - next, slot->target - slot->rows);
		for (uint32 i = 0; i < taken && client->in_order; i++)
			note_order(client, is_first && i == 0, tags[next + i], has_arcs ? 0 : latitudes[next + i],
					   has_arcs ? 0 : longitudes[next + i]);
		memcpy(slot->columns.tag + slot->rows, tags + next, taken * sizeof(int64));
		geonn_client_write_points(client->question.columns & ~GEONN_COLUMN_EXCLUDED, slot, taken, latitudes + next,
								  longitudes + next, columns == NULL ? NULL : columns + next);
		if (slot->rows == slot->target)
			send_references(client);
	}
}

void
geonn_client_seal(GeonnClient *client, bool in_order)
{
	struct geonn_seal seal = {.keep = client->keep};

	if (client->filling >= 0)
		send_references(client);
	seal.order_by_tag = in_order || client->in_order ? 0 : 1;
	memcpy(seal.version, client->version, sizeof(seal.version));
	memcpy(seal.note, client->note, sizeof(seal.note));
	geonn_connection_send(client->connection, GEONN_SEAL, &seal);
	await_answer(client, GEONN_SEALED);
	client->sealed = true;
	geonn_client_reset_growth(client);
}

/* ---- the end of the observations ---- */

/*
 * Give the slot's batch back to the engine, after the last observation, unless this process holds
 * the batch back for its next call.
 */
static void
give_batch_back(GeonnClient *client, int number)
{
	if (!geonn_idle_session_hold(client, number))
		geonn_client_return_batch(client, number);
}

void
geonn_client_flush(GeonnClient *client)
{
	geonn_client_send_filling(client);
}

void
geonn_client_finish(GeonnClient *client)
{
	geonn_client_send_filling(client);
	client->all_sent = true;
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
		give_batch_back(client, i);
}

/* Ask about so many observations, none of which is written into the batch. */
static void
ask_without_rows(GeonnClient *client, uint64 observations)
{
	Slot	   *slot;

	geonn_client_expect(client, observations);
	if (!geonn_client_begin_filling(client, 1))
		geonn_connection_violation("no batch to fill");
	slot = &client->slots[client->filling];
	slot->rows = slot->observations = (uint32) observations;
	geonn_client_finish(client);
}

void
geonn_client_ask_for_clusters(GeonnClient *client)
{
	ask_without_rows(client, client->references);
}

void
geonn_client_ask_to_assign(GeonnClient *client, const GeonnClient *observations)
{
	client->asking = observations->dataset;
	ask_without_rows(client, observations->references);
}

/* ---- pairs ---- */

/* Return how many pairs of the batch were taken, the present one included. */
static uint32
pairs_taken(const GeonnBlock *block)
{
	return block->pair + block->step;
}

/*
 * Return how many pairs the block's observation has.  If it is answered in parts, block->rank is the rank of its last pair
 * in earlier answers.  Reads the count from shared memory once, so that the engine cannot change it after the checks.
 */
static uint32
count_pairs(const GeonnClient *client, const Slot *slot)
{
	const GeonnQuestion *question = &client->question;
	const GeonnBlock *block = &client->block;
	uint32		count = 1;

	if (!slot->one_each)
		count = ((const volatile uint32 *) slot->columns.count)[block->observation];
	if (count > slot->pairs - pairs_taken(block))
		geonn_connection_violation("more pairs than fit its batch");
	if (question->radii > 0 ? count != question->k :
		block->rank + count > client->references ||
		(question->k > 0 && !question->ties && block->rank + count > question->k))
		geonn_connection_violation("more neighbours than it was asked for");
	return count;
}

/*
 * Implements GeonnBlock.next_observation.
 */
static bool
next_observation(GeonnClient *client)
{
	const Slot *slot = &client->slots[client->reading];
	GeonnBlock *block = &client->block;

	while (block->observation + 1 != block->end)
	{
		bool		goes_on;

		/* The first observation's pairs may follow those of an earlier answer: its rank goes on. */
		if (++block->observation != slot->first)
			block->rank = 0;
		goes_on = slot->partial && block->observation + 1 == block->end;
		block->left = count_pairs(client, slot);
		block->matched = block->left > 0;
		if (block->matched)
		{
			block->left -= block->step;
			block->pair += block->step;
			block->rank++;
			return true;
		}
		if (block->rank > 0 || goes_on)
			continue;
		client->work.unmatched++;
		block->rank = 1;
		if (client->question.unmatched)
			return true;
	}
	return false;
}

/*
 * Implements GeonnBlock.next_observation for an assignment: each observation has two pairs, its own and its reference's.
 */
static bool
next_assigned(GeonnClient *client)
{
	GeonnBlock *block = &client->block;

	while (pairs_taken(block) < block->pairs)
	{
		block->pair += 2;
		block->observation = block->pair - 1;
		block->matched = !isnan(block->distance[block->pair]);
		client->work.unmatched += !block->matched;
		if (block->matched || client->question.unmatched)
			return true;
	}
	return false;
}

/* Return how many pairs of the answer so many pairs of the batch are. */
static uint32
pairs_answered(const GeonnClient *client, uint32 pairs)
{
	return client->question.assigns ? pairs / 2 : pairs;
}

/* Begin with the pairs of the slot client->reading. */
static void
begin_block(GeonnClient *client)
{
	const Slot *slot = &client->slots[client->reading];
	const struct geonn_batch_columns *columns = &slot->columns;
	const GeonnQuestion *question = &client->question;
	uint32		step = geonn_question_pairs_of_radius(question);
	bool		one_each = slot->one_each && !slot->resumes && !question->assigns;
	bool		has_rows = question->min_points == 0 && !question->assigns;	/* observations are rows of the batch */

	if (one_each && (question->radii > 0 ? question->k != 1 : client->references == 0))
		geonn_connection_violation("more neighbours than it was asked for");
	client->block = (GeonnBlock) {
		/* the next ones are the first ones */
		.observation = slot->first - 1,
		.pair = -step,
		.matched = true,
		.rank = one_each || question->assigns ? 1 : slot->resumes ? client->block.rank : 0,
		.one_each = one_each,
		.step = step,
		.end = slot->end,
		.pairs = slot->pairs,
		.next_observation = question->assigns ? next_assigned : next_observation,
		.client = client,
		.number = slot->number,
		.observation_id = has_rows ? slot->observation_id : question->assigns ? (const Datum *) columns->tag : NULL,
		.observation_latitude = question->shapes || !has_rows ? NULL : columns->latitude,
		.observation_longitude = question->shapes || !has_rows ? NULL : columns->longitude,
		.tag = columns->tag,
		.distance = columns->distance,
		.place_latitude = question->places ? columns->end_latitude : NULL,
		.place_longitude = question->places ? columns->end_longitude : NULL,
		.place_fraction = question->places ? columns->fraction : NULL,
		.near_latitude = question->places && question->shapes ? columns->latitude : NULL,
		.near_longitude = question->places && question->shapes ? columns->longitude : NULL,
		.place_segment = columns->segment,
		.place_side = columns->part_end,
		.place_measure = columns->measure
	};
}

/*
 * Choose the answered slot whose pairs the caller takes next.  Any slot will do, unless the last answer ended within an
 * observation: then wait for the answer with the rest of that observation's pairs.
 */
static bool
begin_reading(GeonnClient *client, bool wait)
{
	instr_time	begun;
	instr_time	waited;

	for (;;)
	{
		/* Once all batches are answered, read no more messages: it does not matter if the engine has ended. */
		while (client->searching > 0 && geonn_client_take_message(client, GEONN_NO_WAIT))
			;
		for (int i = 0; i < GEONN_RING_SLOTS; i++)
		{
			if (client->slots[i].state == SLOT_ANSWERED &&
				(client->resuming < 0 || client->resuming == i))
			{
				client->reading = i;
				begin_block(client);
				return true;
			}
		}
		if ((!wait && client->resuming < 0) || client->searching == 0)
			return false;
		INSTR_TIME_SET_CURRENT(begun);
		(void) geonn_client_take_message(client, GEONN_WAIT_SEARCH);
		INSTR_TIME_SET_CURRENT(waited);
		INSTR_TIME_SUBTRACT(waited, begun);
		client->work.waiting += INSTR_TIME_GET_MILLISEC(waited);
	}
}

/*
 * After the caller has taken all pairs of the slot's answer, search for the slot's remaining rows,
 * or let the slot be filled again.
 */
static void
end_block(GeonnClient *client)
{
	int			number = client->reading;
	Slot	   *slot = &client->slots[number];

	if (pairs_taken(&client->block) != slot->pairs)
		geonn_connection_violation("counts whose sum differs from the number of pairs");
	client->reading = -1;
	client->work.pairs += pairs_answered(client, slot->pairs);
	client->resuming = slot->partial ? number : -1;
	slot->resumes = slot->partial;
	slot->first = slot->partial ? slot->end - 1 : slot->end;
	if (slot->first < slot->observations)
		geonn_client_send_search(client, number);
	else
		slot->state = SLOT_IDLE;
	if (client->all_sent)
		give_batch_back(client, number);
}

GeonnBlock *
geonn_client_next_pair(GeonnClient *client, bool wait)
{
	while (client->reading >= 0 || begin_reading(client, wait))
	{
		if (geonn_block_next(&client->block))
			return &client->block;
		end_block(client);
	}
	return NULL;
}

GeonnWork
geonn_client_work(const GeonnClient *client)
{
	GeonnWork	work = client->work;

	if (client->reading >= 0)
		work.pairs += pairs_answered(client, pairs_taken(&client->block));
	return work;
}

void
geonn_client_end(GeonnClient *client, const struct geonn_finished *finished)
{
	struct geonn_finished message = *finished;

	geonn_idle_session_keep(client, &message);
}
