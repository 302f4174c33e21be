/*
 * client_slots.c
 *		The slots of a session's ring: what the engine's messages make of them,
 *		and their batches.
 *
 * client.c has the essay.
 */
#include "postgres.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "utils/memutils.h"

#include "client/admission.h"
#include "client/client_slots.h"

/*
 * The numbers of rows of the first and of the largest batch; after BATCHES_OF_A_SIZE batches the
 * number grows by GROWTH.  Rows that the backend writes should still be in the CPU's cache when the
 * answers come.  Where many processes share a dataset, all their batches together must be small
 * beside the server's memory.  Batches of references stay small for another reason: while the engine
 * takes one in, the client waits for the memory of the next, and at the end for the dataset.
 */
#define FIRST_ROWS		4096
#define MOST_ROWS		131072
#define MOST_ROWS_SHARED	32768
#define MOST_ROWS_REFERENCES	32768
#define GROWTH			8
#define BATCHES_OF_A_SIZE 2

/*
 * After the engine has given a smaller batch than the session asked for, the session asks for a larger one again this many
 * batches later.
 */
#define BATCHES_UNTIL_MORE 32

/* A batch has room for at most this many pairs, in all and for each row; but LEAST_PAIRS are always allowed. */
#define MOST_PAIRS		(1024 * 1024)
#define MOST_PAIRS_SHARED	(256 * 1024)
#define PAIRS_A_ROW		16
#define LEAST_PAIRS		1024

/* an observation is assumed to have this many pairs if the number is not known */
#define UNKNOWN_PAIRS	8

/* ---- messages from the engine ---- */

static Slot *
slot_in_state(GeonnClient *client, uint32 number, SlotState state)
{
	if (number >= GEONN_RING_SLOTS || client->slots[number].state != state)
		geonn_connection_violation("a message out of turn for a slot");
	return &client->slots[number];
}

static void
attach_batch(GeonnClient *client, Slot *slot, void *start, size_t bytes, uint32 rows, uint32 room)
{
	Assert(slot->start == NULL && rows > 0 && room > 0);
	slot->start = start;
	slot->bytes = bytes;
	geonn_batch_layout(start, rows, room, client->question.columns, &slot->columns);
	slot->observation_id = MemoryContextAllocHuge(client->context, rows * sizeof(Datum));
}

static void
take_batch(GeonnClient *client, const struct geonn_batch *batch)
{
	struct geonn_batch_columns columns;
	size_t		bytes = geonn_batch_layout(NULL, batch->rows, batch->room,
										   client->question.columns, &columns);
	int			file = client->connection->file;
	void	   *start;
	Slot	   *slot = slot_in_state(client, batch->slot, SLOT_ALLOCATING);

	slot->state = SLOT_IDLE;
	if (batch->rows == 0 && file < 0)
	{
		client->no_more_batches = true;
		return;
	}
	if (file < 0 || bytes == 0)
		geonn_connection_violation("a batch with malformed memory");
	start = geonn_batch_map(file, bytes);
	if (start == NULL)
	{
		if (errno == EPERM)
			geonn_connection_violation("a batch with malformed memory");
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not map a batch of %zu bytes: %m", bytes),
				 errhint("Reduce geonn.transfer_memory_limit, or the number of sessions that search at the same time.")));
	}
	close(geonn_connection_take_file(client->connection));
	attach_batch(client, slot, start, bytes, batch->rows, batch->room);
}

/*
 * Check the ways that results tell of, before they are numbers of words, and add them to the client's figures.
 */
static void
take_ways(GeonnWork *work, const struct geonn_results *results)
{
	if (results->cpu_reason >= GEONN_CPU_REASON_COUNT)
		geonn_connection_violation("results with an unknown reason for the CPU");
	if (results->cpu_reason != GEONN_CPU_NONE)
		work->cpu_reasons |= 1u << results->cpu_reason;
	for (int kind = 0; kind < GEONN_DEVICE_KIND_COUNT; kind++)
	{
		if (results->ways[kind] >> GEONN_WAY_COUNT != 0)
			geonn_connection_violation("results with an unknown way");
		work->ways[kind] |= results->ways[kind];
	}
}

static void
take_results(GeonnClient *client, const struct geonn_results *results)
{
	Slot	   *slot = slot_in_state(client, results->slot, SLOT_SEARCHING);
	bool		one_each = (results->flags & GEONN_RESULTS_ONE_EACH) != 0;
	bool		partial = (results->flags & GEONN_RESULTS_PARTIAL) != 0;
	uint32		left = slot->observations - slot->first;

	if (results->first != slot->first ||
		results->observations > left ||
		(partial && client->question.radii > 0) || (!one_each && (client->question.min_points > 0 || client->question.assigns)) ||
		(partial ? results->observations == left || one_each || results->pairs == 0 :
		 results->observations == 0) ||
		results->pairs > slot->columns.room ||
		results->device >= GEONN_DEVICES_MAX || results->algorithm > GEONN_ALGORITHM_BRUTE ||
		(results->flags & ~(GEONN_RESULTS_ONE_EACH | GEONN_RESULTS_PARTIAL)) != 0 ||
		(one_each && results->pairs != results->observations * (client->question.assigns ? 2 : 1)))
		geonn_connection_violation("results larger than their batch, or at odds with it");

	client->work.devices |= UINT64CONST(1) << Min(results->device, 63);
	client->work.algorithms |= 1u << results->algorithm;
	client->work.building += results->build_microseconds / 1000.0;
	take_ways(&client->work, results);

	slot->state = SLOT_ANSWERED;
	slot->end = results->first + results->observations + (partial ? 1 : 0);
	slot->pairs = results->pairs;
	slot->one_each = one_each;
	slot->partial = partial;
	Assert(client->searching > 0 && slot->end <= slot->observations);
	client->searching--;
}

static void
take_sealed(GeonnClient *client, const struct geonn_sealed *sealed)
{
	if (sealed->references != client->references)
		geonn_connection_violation("a different number of references from that which it was sent");
	if (sealed->keeping >= GEONN_KEEPING_COUNT)
		geonn_connection_violation("an unknown answer to the request to keep references");
	client->sealing = *sealed;
}

static void
take_opened(GeonnClient *client, const struct geonn_opened *opened)
{
	if (opened->metric != (uint32) client->question.metric ||
		opened->columns != client->question.columns)
		geonn_connection_violation("a different kind of dataset from the one that it was asked for");
	if (client->sealed ? !opened->sealed : opened->sealed && !client->labelled)
		geonn_connection_violation("a new dataset in place of a kept one, or the other way round");
	client->sealed = opened->sealed != 0;
	if (opened->references > (client->sealed ? GEONN_REFERENCES_MAX : 0) ||
		(opened->files >> (client->sealed ? GEONN_FILE_KINDS : 0)) != 0)
		geonn_connection_violation("a dataset with counts out of range");
	memcpy(client->note, opened->note, sizeof(client->note));
	client->dataset = opened->dataset;
	client->references = opened->references;
	client->files_awaited = opened->files;
}

static void
take_file(GeonnClient *client, const struct geonn_file *file)
{
	bool		awaited = file->kind < GEONN_FILE_KINDS &&
		(client->files_awaited & (1u << file->kind)) != 0;

	if (!awaited || client->connection->file < 0)
		geonn_connection_violation("a file out of turn, or without its descriptor");
	client->files_awaited &= ~(1u << file->kind);
	client->files[file->kind] = geonn_connection_take_file(client->connection);
}

bool
geonn_client_take_message(GeonnClient *client, GeonnWait wait)
{
	union geonn_message message;

	if (!geonn_connection_receive(client->connection, wait, &message))
		return false;
	switch (message.header.type)
	{
		case GEONN_BATCH:
			take_batch(client, &message.batch);
			break;
		case GEONN_FILE:
			take_file(client, &message.file);
			break;
		case GEONN_RELEASED:
			slot_in_state(client, message.released.slot,
						  SLOT_RELEASING)->state = SLOT_IDLE;
			break;
		case GEONN_RESULTS:
			take_results(client, &message.results);
			break;
		case GEONN_QUEUED:
			if (client->awaited != GEONN_OPENED || client->queued)
				geonn_connection_violation("\"queued\" out of turn");
			client->queued = true;
			geonn_await_admission(client->connection, &message.queued);
			break;
		case GEONN_OPENED:
		case GEONN_SEALED:
			if (message.header.type != client->awaited)
				geonn_connection_violation("an answer out of turn");
			client->awaited = 0;
			if (message.header.type == GEONN_SEALED)
				take_sealed(client, &message.sealed);
			else
				take_opened(client, &message.opened);
			break;
		default:
			geonn_connection_violation("a message of the wrong type");
	}
	return true;
}

/* ---- filling batches ---- */

/* Return for how many pairs a batch of this many rows should have room. */
static uint32
room_for(const GeonnClient *client, uint32 rows)
{
	const GeonnQuestion *question = &client->question;
	bool		unknown = question->k == 0 || question->ties;
	uint64		each = question->k > 0 ? question->k : UNKNOWN_PAIRS;
	uint64		most = Min((uint64) rows * PAIRS_A_ROW,
						   client->question.shared ? MOST_PAIRS_SHARED : MOST_PAIRS);
	uint64		room = Max(rows * each, unknown ? LEAST_PAIRS : 0);

	Assert(rows > 0 && rows <= GEONN_BATCH_ROWS_MAX);
	return (uint32) Max(rows, Min(room, Max(most, LEAST_PAIRS)));
}

/*
 * Return how many rows to send in a batch with room for this many pairs: so few that one answer
 * usually has all their pairs.
 */
static uint32
rows_for(const GeonnClient *client, uint32 rows, uint32 room)
{
	uint32		k = Max(client->question.k, 1);

	if (client->sealed && client->question.batch_rows == 0)
		return Max(1, Min(rows, room / k));
	return rows;
}

/*
 * Return the idle slot that suits a batch of this many rows best, or -1.  The best is a slot whose batch is large enough;
 * the second best a slot without a batch, unless the engine has no more to give; the last any other idle slot.
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

void
geonn_client_unmap_batch(GeonnClient *client, int number)
{
	Slot	   *slot = &client->slots[number];

	if (slot->start == NULL)
		return;
	munmap(slot->start, slot->bytes);
	slot->start = NULL;
	pfree(slot->observation_id);
	slot->observation_id = NULL;
}

bool
geonn_client_use_batch(GeonnClient *client, int number, void *start, size_t bytes,
					   uint32 rows, uint32 room)
{
	struct geonn_batch_columns columns;

	if (room < room_for(client, rows) ||
		geonn_batch_layout(start, rows, room, client->question.columns, &columns) > bytes)
		return false;
	attach_batch(client, &client->slots[number], start, bytes, rows, room);
	return true;
}

void
geonn_client_return_batch(GeonnClient *client, int number)
{
	Slot	   *slot = &client->slots[number];
	struct geonn_return message = {.slot = number};

	if (slot->state != SLOT_IDLE || slot->start == NULL)
		return;
	geonn_client_unmap_batch(client, number);
	if (slot->ids != NULL)
		MemoryContextReset(slot->ids);

	/* The client has no more use for this batch, whether or not the message is sent. */
	(void) geonn_connection_try_send(client->connection, GEONN_RETURN, &message);
}

/*
 * Ask the engine for a batch of this many rows, in place of the slot's present one.  Returns false
 * if the engine has none to give.
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

	geonn_client_unmap_batch(client, number);
	slot->state = SLOT_ALLOCATING;
	geonn_connection_send(client->connection, GEONN_ALLOCATE, &allocate);
	while (slot->state == SLOT_ALLOCATING)
		(void) geonn_client_take_message(client, GEONN_WAIT_BATCH);

	if (slot->start == NULL)
		return false;
	if (slot->columns.rows < rows || slot->columns.room < room)
	{
		client->rows_granted_most = slot->columns.rows;
		client->batches_granted = 0;
	}
	return true;
}

bool
geonn_client_begin_filling(GeonnClient *client, uint32 least)
{
	for (;;)
	{
		uint32		rows = Max(Min(client->rows_wanted, client->rows_granted_most), least);
		uint32		room = room_for(client, rows);
		int			number = find_idle(client, rows, room);
		Slot	   *slot;

		if (number < 0)
			return false;
		slot = &client->slots[number];
		if (slot->start == NULL || slot->columns.rows < least ||
			(slot->columns.rows < rows && !client->no_more_batches))
		{
			if (!allocate_batch(client, number, rows, room))
				continue;		/* use the batch of another slot */
		}
		if (slot->columns.rows < least)
		{
			/* give it back, so that the batch of another slot can be larger */
			geonn_client_return_batch(client, number);
			client->no_more_batches = true;
			continue;
		}
		Assert(client->filling < 0 && slot->start != NULL);
		slot->state = SLOT_FILLING;
		slot->target = rows_for(client, Min(client->rows_wanted, slot->columns.rows),
								slot->columns.room);
		Assert(slot->target >= 1 && slot->target <= slot->columns.rows);
		slot->rows = slot->observations = 0;
		slot->shape_bytes = 0;
		if (slot->ids != NULL)
			MemoryContextReset(slot->ids);
		client->filling = number;
		return true;
	}
}

void
geonn_client_end_filling(GeonnClient *client, SlotState state)
{
	Assert(client->filling >= 0 && client->slots[client->filling].state == SLOT_FILLING);
	Assert(state == SLOT_RELEASING || state == SLOT_SEARCHING);
	client->slots[client->filling].state = state;
	client->filling = -1;
	if (++client->batches_granted == BATCHES_UNTIL_MORE)
	{
		client->batches_granted = 0;
		client->no_more_batches = false;
		if (client->rows_granted_most <= PG_UINT32_MAX / GROWTH)
			client->rows_granted_most *= GROWTH;
	}
	if (++client->batches_of_size == BATCHES_OF_A_SIZE &&
		client->question.batch_rows == 0)
	{
		client->batches_of_size = 0;
		client->rows_wanted = Min(client->rows_wanted * GROWTH,
								  client->sealed ? client->rows_most : MOST_ROWS_REFERENCES);
	}
}

void
geonn_client_reset_growth(GeonnClient *client)
{
	uint32		asked = client->question.batch_rows;

	client->rows_wanted = asked > 0 ? asked : FIRST_ROWS;
	client->rows_most = client->question.shared ? MOST_ROWS_SHARED : MOST_ROWS;
	client->batches_of_size = 0;
}

void
geonn_client_expect(GeonnClient *client, uint64 rows)
{
	const GeonnQuestion *question = &client->question;
	uint64		each = (rows + GEONN_RING_SLOTS - 1) / GEONN_RING_SLOTS;

	/* If rows may have more pairs than batches of this size have room for, let batches go on growing. */
	if (question->batch_rows > 0 || question->k == 0 || question->k > PAIRS_A_ROW || question->ties)
		return;
	geonn_client_reset_growth(client);
	client->rows_wanted = client->rows_most = (uint32) Min(Max(each, FIRST_ROWS), client->rows_most);
}

/*
 * Write the radius, the windows and the weights of a row into the columns that are present.  If the question
 * has windows, each point has them; if it has weights, each reference has them.
 */
static void
set_limits(uint32 columns, Slot *slot, uint32 row, const GeonnLimits *limits)
{
	for (int i = 0; i < GEONN_WEIGHTS_MAX && (columns & GEONN_COLUMN_WEIGHT << i) != 0; i++)
		slot->columns.weight[i][row] = limits->weights[i];
	if (columns & GEONN_COLUMN_RADIUS)
		slot->columns.radius[row] = limits != NULL ? limits->radius : INFINITY;
	if ((columns & GEONN_COLUMNS_WINDOWS) == 0)
		return;
	if (limits == NULL)
		elog(ERROR, "a point lacks the windows that the question has");
	for (int i = 0; i < GEONN_WINDOWS_MAX && (columns & GEONN_COLUMN_WINDOW << i) != 0; i++)
	{
		slot->columns.low[i][row] = limits->windows[i].low;
		slot->columns.high[i][row] = limits->windows[i].high;
	}
	slot->columns.edges[row] = limits->edges;
}

void
geonn_client_write_points(uint32 present, Slot *slot, uint32 rows, const double *latitudes, const double *longitudes,
						  const GeonnPointColumns *columns)
{
	Assert(slot->state == SLOT_FILLING && slot->rows + rows <= slot->columns.rows);
	memcpy(slot->columns.latitude + slot->rows, latitudes, rows * sizeof(double));
	memcpy(slot->columns.longitude + slot->rows, longitudes, rows * sizeof(double));
	for (uint32 i = 0; i < rows && present != 0; i++)
	{
		uint32		row = slot->rows + i;

		if (present & GEONN_COLUMN_GROUP)
			slot->columns.group[row] = columns[i].group;
		for (int party = 0; party < GEONN_PARTIES_MAX && (present & GEONN_COLUMN_PARTY << party) != 0; party++)
			slot->columns.party[party][row] = columns[i].party[party];
		if (present & GEONN_COLUMN_ARC)
		{
			slot->columns.end_latitude[row] = columns[i].end_latitude;
			slot->columns.end_longitude[row] = columns[i].end_longitude;
			slot->columns.shape[row] = columns[i].shape;
			slot->columns.polygon[row] = columns[i].polygon;
		}
		if (present & GEONN_COLUMN_SEGMENT)
		{
			slot->columns.segment[row] = columns[i].segment;
			slot->columns.part_end[row] = columns[i].part_end;
		}
		if (present & GEONN_COLUMN_MEASURE)
		{
			slot->columns.measure[row] = columns[i].measure;
			slot->columns.end_measure[row] = columns[i].end_measure;
		}
		if ((present & ~GEONN_COLUMNS_OF_ARCS) >= GEONN_COLUMN_RADIUS)
			set_limits(present, slot, row, columns[i].limits);
	}
	slot->rows += rows;
}
