/*
 * client_observations.c
 *		Observations on their way into batches: points, or shapes as their arcs.
 *
 * client.c has the essay.  All arcs of a shape are in one batch.  For a shape with more arcs than batches have rows, the
 * client asks for one larger batch, in place of those that are idle.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "client/client.h"
#include "client/client_slots.h"
#include "base/value.h"

/* the client sends a batch at the latest when the ids of its observations take this many bytes */
#define ID_BYTES	(32 * 1024 * 1024)

void
geonn_client_send_search(GeonnClient *client, int number)
{
	Slot	   *slot = &client->slots[number];
	const GeonnQuestion *question = &client->question;
	struct geonn_search message = {
		.slot = number,
		.first = slot->first,
		.rows = slot->rows,
		.k = question->radii > 0 || question->min_points > 0 || question->assigns ? 0 : question->k,
		.algorithm = question->algorithm,
		.flags = (question->ties ? GEONN_SEARCH_TIES : 0) |
		(question->extremes ? GEONN_SEARCH_EXTREMES : 0) |
		(question->places ? GEONN_SEARCH_PLACES : 0) |
		(question->shapes ? GEONN_SEARCH_SHAPES : 0) |
		(question->thins ? GEONN_SEARCH_THIN : 0) |
		(slot->resumes ? GEONN_SEARCH_RESUME : 0),
		.max_distance = question->max_distance,
		.radii = question->radii,
		.min_points = question->min_points,
		.asking = client->asking,
		.capacity = question->capacity
	};

	memcpy(message.radius, question->radius, sizeof(message.radius));
	slot->state = SLOT_SEARCHING;
	client->searching++;
	geonn_connection_send(client->connection, GEONN_SEARCH, &message);
}

/* Return whether more pairs can be taken, now or after the engine has answered. */
static bool
is_at_work(const GeonnClient *client)
{
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
	{
		if (client->slots[i].state == SLOT_SEARCHING || client->slots[i].state == SLOT_ANSWERED)
			return true;
	}
	return false;
}

uint32
geonn_client_places(GeonnClient *client)
{
	if (client->filling < 0)
	{
		while (geonn_client_take_message(client, GEONN_NO_WAIT))
			;
		if (!geonn_client_begin_filling(client, 1))
		{
			/* No answer will come that frees a batch, so the caller would wait for ever. */
			if (!is_at_work(client))
				geonn_connection_violation("no batch to fill");
			return 0;
		}
	}
	return client->slots[client->filling].target - client->slots[client->filling].rows;
}

void
geonn_client_send_filling(GeonnClient *client)
{
	int			number = client->filling;

	if (number < 0)
		return;
	if (client->slots[number].rows == 0)
	{
		client->slots[number].state = SLOT_IDLE;
		client->filling = -1;
		return;
	}
	client->work.batches++;
	client->slots[number].number = client->sent;
	client->sent += client->slots[number].observations;
	client->slots[number].first = 0;
	client->slots[number].resumes = false;
	geonn_client_end_filling(client, SLOT_SEARCHING);
	geonn_client_send_search(client, number);
}

/* Keep the ids of the slot's next observations.  Returns whether ids take so much memory that the batch should be sent. */
static bool
keep_ids(const GeonnClient *client, Slot *slot, uint32 count, const Datum *ids)
{
	Datum	   *kept = slot->observation_id + slot->observations;
	MemoryContext former;

	slot->observations += count;
	if (client->question.id_by_value)
	{
		memcpy(kept, ids, count * sizeof(Datum));
		return false;
	}
	former = MemoryContextSwitchTo(slot->ids);
	for (uint32 i = 0; i < count; i++)
		kept[i] = geonn_copy_value(ids[i], false, client->question.id_length);
	MemoryContextSwitchTo(former);
	return MemoryContextMemAllocated(slot->ids, false) >= ID_BYTES;
}

/* Write rows of observations. */
static void
write_rows(const GeonnClient *client, Slot *slot, uint32 rows, const double *latitudes, const double *longitudes,
		   const GeonnPointColumns *columns)
{
	const uint32 of_references = GEONN_COLUMNS_WEIGHTS | (client->question.shapes ?
														  GEONN_COLUMNS_OF_ARCS & ~GEONN_COLUMN_ARC : GEONN_COLUMNS_OF_ARCS);

	for (uint32 i = 0; i < rows && client->question.columns & GEONN_COLUMN_EXCLUDED; i++)
	{
		slot->columns.excluded_first[slot->rows + i] = columns[i].excluded_first;
		slot->columns.excluded_last[slot->rows + i] = columns[i].excluded_last;
	}
	geonn_client_write_points(client->question.columns & ~(GEONN_COLUMN_EXCLUDED | of_references), slot, rows, latitudes,
							  longitudes, columns);
}

void
geonn_client_add_observations(GeonnClient *client, uint32 rows, const Datum *ids,
							  const double *latitudes, const double *longitudes,
							  const GeonnPointColumns *columns)
{
	Slot	   *slot = &client->slots[client->filling];
	bool		full = keep_ids(client, slot, rows, ids);

	write_rows(client, slot, rows, latitudes, longitudes, columns);
	if (slot->rows >= slot->target || full)
		geonn_client_send_filling(client);
}

/* ---- observations that are shapes ---- */

static void
raise_no_room(const GeonnClient *client, uint32 arcs)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("the engine has no memory for an observation of %u arcs", arcs),
			 errdetail("All arcs of an observation go to the engine in one batch; it has room for %u.", client->rows_granted_most),
			 errhint("Raise geonn.transfer_memory_limit, or divide the shape, as ST_Subdivide does.")));
}

/* Begin to fill a batch that has room for so many rows.  Returns false if the caller must take pairs first. */
static bool
begin_room(GeonnClient *client, uint32 rows)
{
	while (geonn_client_take_message(client, GEONN_NO_WAIT))
		;
	if (geonn_client_begin_filling(client, rows))
		return true;
	if (is_at_work(client))
		return false;
	/* All batches have been given back: ask once more, for one alone. */
	client->no_more_batches = false;
	if (!geonn_client_begin_filling(client, rows))
		raise_no_room(client, rows);
	return true;
}

bool
geonn_client_find_room(GeonnClient *client, uint32 arcs)
{
	Slot	   *slot = client->filling < 0 ? NULL : &client->slots[client->filling];

	if (slot != NULL && slot->rows + arcs <= (slot->rows > 0 ? slot->target : slot->columns.rows))
		return true;
	geonn_client_send_filling(client);
	return begin_room(client, arcs);
}

uint32
geonn_client_filled(const GeonnClient *client)
{
	return client->slots[client->filling].observations;
}

void
geonn_client_add_arcs(GeonnClient *client, uint32 rows, const double *latitudes, const double *longitudes,
					  const GeonnPointColumns *columns)
{
	write_rows(client, &client->slots[client->filling], rows, latitudes, longitudes, columns);
}

uint64
geonn_client_shape_bytes(const GeonnClient *client)
{
	uint64		bytes = 0;

	for (int i = 0; i < GEONN_RING_SLOTS; i++)
	{
		const Slot *slot = &client->slots[i];

		if (slot->state == SLOT_FILLING || slot->state == SLOT_SEARCHING || slot->state == SLOT_ANSWERED)
			bytes += slot->shape_bytes;
	}
	return bytes;
}

void
geonn_client_end_shape(GeonnClient *client, Datum id, uint64 bytes)
{
	Slot	   *slot = &client->slots[client->filling];
	bool		full = keep_ids(client, slot, 1, &id);

	slot->shape_bytes += bytes;
	if (slot->rows >= slot->target || full)
		geonn_client_send_filling(client);
}
