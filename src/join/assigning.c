/*
 * assigning.c
 *		The observations of a search that are assigned to references.
 *
 * The engine needs all of them at a time, in the order of their ids, which decides among pairs of one distance.  So they become
 * a dataset of their own, by the ways of references (references.c), with their ids and coordinates, and the search of the
 * references asks about that dataset.  The engine names an observation by its tag.
 */
#include "postgres.h"

#include "common/protocol.h"
#include "join/search.h"

#define NEEDS_COORDINATES (GEONN_NEEDS_OBSERVATION_LATITUDE | GEONN_NEEDS_OBSERVATION_LONGITUDE)

/* Add observations, which have no groups, parties and limits; the state is the search. */
static void
consume_observations(void *state, uint32 rows, const Datum *ids, const double *latitudes, const double *longitudes)
{
	GeonnSearch *search = state;

	geonn_references_add_block(search->asking_rows, search->asking, rows, ids, latitudes, longitudes, NULL);
}

void
geonn_search_begin_assigning(GeonnSearch *search)
{
	const GeonnJoin *join = search->join;
	GeonnQuestion question = search->prepared.question;
	struct geonn_call message = geonn_call_message(&search->call, &join->label, 0);
	bool		shows_places = (search->row.needs & NEEDS_COORDINATES) != 0;

	question.columns &= ~GEONN_COLUMNS_WEIGHTS;
	search->asking = geonn_client_open(&question, NULL, 0, &message);
	search->asking_memory = geonn_assigned_memory_create(join->observations->title, question.columns);
	search->asking_rows = geonn_references_begin(join->observations, shows_places ? REFERENCE_COORDINATES : REFERENCE_ID, NULL,
												 question.columns, search->asking_memory, search->asking);
	if (question.columns == 0 && geonn_references_take_blocks(search->asking_rows) &&
		geonn_client_references(search->prepared.client) > 0)
		geonn_reading_in_blocks(search->reading, consume_observations);
}

void
geonn_search_add_assigned(GeonnSearch *search, const PointRow *row, const GeonnPointColumns *columns)
{
	geonn_references_add(search->asking_rows, search->asking, row, columns);
}

void
geonn_search_assign(GeonnSearch *search)
{
	uint64		references = geonn_client_references(search->prepared.client);

	geonn_references_seal(search->asking_rows, search->asking);
	/* its batches are of no more use */
	geonn_client_finish(search->asking);
	geonn_reference_memory_name(search->asking_memory, geonn_client_dataset(search->asking));
	if (references == 0 || geonn_client_references(search->asking) == 0)
		return;
	geonn_reference_memory_add_assignment(search->asking_memory, references + geonn_client_references(search->asking));
	geonn_client_ask_to_assign(search->prepared.client, search->asking);
}

void
geonn_search_name_assigned(GeonnSearch *search)
{
	GeonnBlock *block = search->block;
	bool		has_places = (search->row.needs & NEEDS_COORDINATES) != 0;

	/* integers are their own tags */
	if (geonn_references_have_ids_as_tags(search->asking_rows) || block->observation_id != (const Datum *) block->tag)
		return;
	if (search->asking_ids != NULL)
		pfree(search->asking_ids);
	if (search->asking_latitudes != NULL)
		pfree(search->asking_latitudes);
	search->asking_ids = MemoryContextAllocHuge(search->context, block->pairs * sizeof(Datum));
	search->asking_latitudes = !has_places ? NULL :
		MemoryContextAllocHuge(search->context, 2 * block->pairs * sizeof(double));
	for (uint32 i = 0; i < block->pairs; i += 2)
	{
		search->asking_ids[i] = geonn_reference_id(search->asking_rows, block->tag[i]);
		if (has_places)
			geonn_reference_coordinates(search->asking_rows, block->tag[i], &search->asking_latitudes[i],
										&search->asking_latitudes[block->pairs + i]);
	}
	block->observation_id = search->asking_ids;
	block->observation_latitude = search->asking_latitudes;
	block->observation_longitude = has_places ? search->asking_latitudes + block->pairs : NULL;
}
