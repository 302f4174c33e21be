/*
 * observations.c
 *		What becomes of an observation that a search has read: it is sent to the engine, answered here, or left out;
 *		and how pairs become rows.
 *
 * An observation, a point or a shape, that can have a neighbour goes to the engine, or is answered by what this process
 * knows of the references.  One that can have none, for its NULLs, its group, its limits or its coordinates, stays here.  Where
 * the unmatched are kept its row is stored.
 *
 * A count has a row of each valid observation for each radius: of zeros, which are stored, if the observation stays
 * here or if no references are there.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "base/value.h"
#include "join/search.h"

/* Under exclude_self, this many observations are sent at a time. */
#define EXCLUDED_AT_ONCE	256

/* ---- pairs ---- */

/*
 * Store search->values as a row.
 */
void
geonn_search_store_row(GeonnSearch *search)
{
	/* all stored rows have been returned */
	if (search->waiting == 0)
		tuplestore_clear(search->store);
	search->values[search->row.descriptor->natts] = UInt64GetDatum(search->number);
	tuplestore_putvalues(search->store, search->slot->tts_tupleDescriptor, search->values, search->nulls);
	search->waiting++;
}

/*
 * Checks for interrupts: as long as pairs arrive, this process never waits for the engine, and
 * would not notice a cancellation.
 */
bool
geonn_search_take_pair(GeonnSearch *search, bool wait)
{
	GeonnClient *client = search->prepared.client;

	CHECK_FOR_INTERRUPTS();
	search->block = client == NULL ? NULL : geonn_client_next_pair(client, wait);
	if (search->arcs_memory != NULL)
		geonn_reference_memory_keep_bytes(search->arcs_memory, geonn_client_shape_bytes(client));
	if (search->block != NULL && search->asking != NULL)
		geonn_search_name_assigned(search);
	return search->block != NULL;
}

bool
geonn_search_store_pair(GeonnSearch *search)
{
	if (!geonn_search_take_pair(search, true))
		return false;
	geonn_search_show_pair(search, search->values, search->nulls);
	geonn_search_store_row(search);
	return true;
}

/* ---- observations ---- */

InvalidPolicy
geonn_observations_policy(const GeonnJoin *join)
{
	return join->keep_unmatched && join->invalid == GEONN_INVALID_SKIPPED ? GEONN_INVALID_KEPT :
		join->invalid;
}

static Datum
result_id(const GeonnSearch *search, const PointRow *row)
{
	return search->join->given == NULL ? row->id :
		Int64GetDatum((int64) geonn_reading_rows(search->reading));
}

/* Find an observation's neighbours among the references that this process knows, and store the rows. */
static void
answer_observation(GeonnSearch *search, const PointRow *row, const GeonnPointColumns *columns)
{
	const PreparedJoin *prepared = &search->prepared;
	Datum		id = result_id(search, row);
	GeonnBlock	block = {
		.observation_id = &id,
		.observation_latitude = &row->latitude,
		.observation_longitude = &row->longitude
	};
	uint32		count;

	CHECK_FOR_INTERRUPTS();
	count = prepared->own->find(prepared->own_state, row, columns->group);
	search->number = search->answered++;
	search->work.pairs += count;
	search->work.unmatched += count == 0;
	for (uint32 i = 0; i < Max(count, prepared->question.unmatched); i++)
	{
		CHECK_FOR_INTERRUPTS();
		block.matched = i < count;
		if (block.matched)
			prepared->own->pair(prepared->own_state, i, &block);
		block.rank = i + 1;
		geonn_result_row_fill(&search->row, &block, prepared->references, search->values, search->nulls);
		geonn_search_store_row(search);
	}
}

/*
 * Return whether the memory limit leaves room for so many bytes.  If not, send the batch that is being filled: room comes when
 * its pairs have been taken.  Where no batch is under way, returns true, and counting the bytes is an error.
 */
static bool
leaves_room(const GeonnSearch *search, uint64 bytes)
{
	if (geonn_reference_memory_has_room(bytes))
		return true;
	geonn_client_flush(search->prepared.client);
	return geonn_client_shape_bytes(search->prepared.client) == 0;
}

/* Send an observation to a search whose observations are shapes. */
static void
add_shape(GeonnSearch *search, const PointRow *row, Datum id, const GeonnPointColumns *columns)
{
	const PointSource *source = search->join->observations; /* NULL: they are given, none of them too large */
	GeonnClient *client = search->prepared.client;
	uint64		arcs = geonn_row_arcs(row);
	uint64		bytes;
	uint64		reading = row->shape == NULL ? 0 : geonn_shape_memory(row->shape);

	if (arcs > GEONN_BATCH_ROWS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the shape of %s has " UINT64_FORMAT " arcs", geonn_whose_row(source, row), arcs),
				 errdetail("An observation has at most %d arcs. A line has an arc between each two of its vertices.",
						   GEONN_BATCH_ROWS_MAX),
				 errhint("Divide it, as ST_Subdivide does, and keep the nearest of all answers; or use ST_Simplify.")));
	if (search->arcs == NULL)
	{
		MemoryContext former = MemoryContextSwitchTo(search->context);

		search->arcs = geonn_arcs_create(source == NULL ? "the given shapes" : source->title, client, NULL);
		search->arcs_memory = geonn_observed_memory_create(source == NULL ? "the given shapes" :
														   psprintf("the shapes of %s", source->title));
		MemoryContextSwitchTo(former);
	}
	bytes = geonn_arcs_observed_bytes(row);
	while (!leaves_room(search, bytes + reading) || !geonn_client_find_room(client, (uint32) arcs))
		(void) geonn_search_store_pair(search);
	geonn_reference_memory_add_bytes(search->arcs_memory, bytes + reading, "shapes");
	geonn_arcs_observe(search->arcs, row, id, columns, bytes);
	geonn_reference_memory_return_bytes(search->arcs_memory, reading);
}

static void
add_observation(GeonnSearch *search, const PointRow *row, GeonnPointColumns *columns)
{
	GeonnClient *client = search->prepared.client;
	Datum		id = result_id(search, row);

	if (search->join->exclude_self)
		geonn_references_excluded(search->prepared.references, row->id, &columns->excluded_first,
								  &columns->excluded_last);
	if (search->asking != NULL)
	{
		geonn_search_add_assigned(search, row, columns);
		return;
	}
	if (search->prepared.question.shapes)
	{
		add_shape(search, row, id, columns);
		return;
	}
	/* Ids can be so long that a batch is full before the ring's places are used up. */
	while (geonn_client_places(client) == 0)
		(void) geonn_search_store_pair(search);
	geonn_client_add_observations(client, 1, &id, &row->latitude, &row->longitude, columns);
}

/* Send observations, which have no groups, parties and limits; under exclude_self, with the tags that they exclude. */
static void
add_observations(const GeonnSearch *search, uint32 rows, const Datum *ids, const double *latitudes,
				 const double *longitudes)
{
	GeonnPointColumns columns[EXCLUDED_AT_ONCE];
	uint32		count;

	for (uint32 first = 0; first < rows; first += count)
	{
		count = search->join->exclude_self ? Min(rows - first, EXCLUDED_AT_ONCE) : rows - first;
		for (uint32 i = 0; i < count && search->join->exclude_self; i++)
			geonn_references_excluded(search->prepared.references, ids[first + i],
									  &columns[i].excluded_first, &columns[i].excluded_last);
		geonn_client_add_observations(search->prepared.client, count, ids + first, latitudes + first,
									  longitudes + first, columns);
	}
}

/*
 * Send these observations, except those that search->watch rejects.
 */
void
geonn_search_consume_observations(void *state, uint32 rows, const Datum *ids, const double *latitudes,
								  const double *longitudes)
{
	GeonnSearch *search = state;
	uint32		first = 0;

	for (uint32 i = 0; search->watch != NULL && i < rows; i++)
	{
		PointRow	row = {
			.status = POINT_VALID,
			.id = ids[i],
			.latitude = latitudes[i],
			.longitude = longitudes[i],
			.page = geonn_reading_page(search->reading)
		};

		if (search->watch(search->watch_state, &row, true))
			continue;
		add_observations(search, i - first, ids + first, latitudes + first, longitudes + first);
		first = i + 1;
	}
	add_observations(search, rows - first, ids + first, latitudes + first, longitudes + first);
}

/* Store the rows of an observation without candidates: a count finds none within each radius. */
static void
store_zeros(GeonnSearch *search, const PointRow *row)
{
	uint32		weights = search->join->question.weights;
	const int64 count = 0;
	double		none[3 * GEONN_WEIGHTS_MAX] = {0};
	Datum		id = result_id(search, row);
	GeonnBlock	block = {
		.matched = true,
		.observation_id = &id,
		.observation_latitude = &row->latitude,
		.observation_longitude = &row->longitude,
		.tag = &count,
		.distance = none
	};

	for (uint32 i = 0; i < weights; i++)
	{
		none[weights + i] = get_float8_infinity();
		none[2 * weights + i] = -get_float8_infinity();
	}
	search->number = GEONN_NOT_SENT;
	for (uint32 i = 0; i < search->join->question.radii; i++)
	{
		block.rank = i + 1;
		geonn_result_row_fill(&search->row, &block, search->prepared.references, search->values, search->nulls);
		search->local_rows++;
		geonn_search_store_row(search);
	}
}

/*
 * Store the row of an observation that was not sent.
 */
static void
store_unmatched(GeonnSearch *search, const PointRow *row)
{
	Datum		id = result_id(search, row);
	const GeonnBlock block = {
		.rank = 1,
		.observation_id = row->id_is_null ? NULL : &id,
		.observation_latitude = row->latitude_is_null ? NULL : &row->latitude,
		.observation_longitude = row->longitude_is_null ? NULL : &row->longitude
	};

	search->number = GEONN_NOT_SENT;
	geonn_result_row_fill(&search->row, &block, search->prepared.references, search->values, search->nulls);
	search->local_rows++;
	geonn_search_store_row(search);
}

/* Return whether no observation of a count, or of an assignment, has candidates, because the dataset has no references. */
bool
geonn_search_counts_nothing(const GeonnSearch *search)
{
	return (search->join->question.radii > 0 || search->join->question.assigns) &&
		geonn_client_references(search->prepared.client) == 0;
}

/*
 * Find the group and the parties of an observation, and set its columns.  Returns false if the observation
 * can have no candidate.
 */
static bool
find_columns(const GeonnSearch *search, const PointRow *row, GeonnPointColumns *columns)
{
	const PreparedJoin *prepared = &search->prepared;

	if (row->status != POINT_VALID || geonn_row_is_limited_to_none(row) || geonn_search_counts_nothing(search))
		return false;
	columns->limits = row->limits;
	if (prepared->groups != NULL)
		columns->group = geonn_groups_find(prepared->groups, row->by, row->by_is_null);
	if (columns->group == GEONN_NO_GROUP)
		return false;
	for (int i = 0; i < GEONN_PARTIES_MAX && prepared->parties[i] != NULL; i++)
	{
		if (geonn_groups_has_null(prepared->parties[i], row->by_is_null))
			return false;
		columns->party[i] = geonn_groups_find(prepared->parties[i], row->by, row->by_is_null);
	}
	return true;
}

/* ---- the first shape among points ---- */

void
geonn_search_note_prepared(GeonnSearch *search)
{
	search->row.has_places = search->prepared.own != NULL || geonn_join_has_shapes(search->join);
	if (search->prepared.own == NULL && search->prepared.references != NULL &&
		geonn_references_have_ids_as_tags(search->prepared.references))
		geonn_result_row_take_tags(&search->row);
}

/*
 * An observation is a shape, and those before it were points: take the answers to all of them, and begin anew, with
 * references that are shapes.  The former client stays until the end: other processes may still begin with its dataset.
 * Invalid references have been reported.
 */
static void
turn_to_shapes(GeonnSearch *search)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);
	GeonnJoin	join = *search->join;
	instr_time	begun;
	double		spent;

	Assert(search->former == NULL && search->prepared.own == NULL);
	geonn_note_shapes_of_observations(&join);
	geonn_client_finish(search->prepared.client);
	while (geonn_search_store_pair(search))
		;
	search->former = search->prepared.client;
	join.invalid = GEONN_INVALID_COUNTED;
	INSTR_TIME_SET_CURRENT(begun);
	search->prepared = geonn_join_prepare(&join, &search->row, &search->call, NULL, search);
	geonn_search_note_prepared(search);
	/* the reading of observations is under way, and counts this time as its own */
	spent = geonn_milliseconds_since(begun);
	search->preparing += spent;
	search->spent_reading -= spent;
	MemoryContextSwitchTo(former);
}

/* ---- observations read ahead ---- */

static Datum
copy_value(const PointColumn *column, Datum value)
{
	int16		length;
	bool		by_value;

	get_typlenbyval(column->base_type, &length, &by_value);
	return geonn_copy_value(value, by_value, length);
}

/* Have a row keep its shape in the current memory context. */
static void
keep_shape(const PointSource *source, PointRow *row)
{
	ShapeOwner *owner = palloc(sizeof(ShapeOwner));

	*owner = (ShapeOwner) {source, row};
	geonn_reopen_shape(owner, geonn_copy_value(geonn_shape_value(row->shape), false, -1), row);
}

/*
 * Keep an observation, which has no limits, until the references are prepared.
 */
static void
keep_ahead(GeonnSearch *search, const PointRow *row)
{
	const PointSource *observations = search->join->observations;
	MemoryContext former = MemoryContextSwitchTo(search->context);
	PointRow   *kept = &search->ahead[search->ahead_count++];
	Datum	   *by = palloc(observations->by_count * sizeof(Datum));
	bool	   *by_is_null = palloc(observations->by_count * sizeof(bool));

	Assert(row->limits == NULL);
	*kept = *row;
	kept->values = NULL;
	kept->nulls = NULL;
	if (!row->id_is_null)
		kept->id = copy_value(&observations->columns[COLUMN_ID], row->id);
	for (int i = 0; i < observations->by_count; i++)
	{
		by_is_null[i] = row->by_is_null[i];
		if (!by_is_null[i])
			by[i] = copy_value(&observations->by[i], row->by[i]);
	}
	kept->by = by;
	kept->by_is_null = by_is_null;
	if (row->shape != NULL)
		keep_shape(observations, kept);
	MemoryContextSwitchTo(former);
}

bool
geonn_search_look_ahead(void *state)
{
	GeonnSearch *search = state;
	instr_time	begun;
	bool		more;
	/* the caller's context may go before what is kept here, and what the reading makes when it first needs it */
	MemoryContext former = MemoryContextSwitchTo(search->context);

	INSTR_TIME_SET_CURRENT(begun);
	search->ahead = palloc((POINTS_ALONE + 1) * sizeof(PointRow));
	search->looks_ahead = true;
	more = geonn_reading_next(search->reading, POINTS_ALONE + 1);
	search->looks_ahead = false;
	MemoryContextSwitchTo(former);
	search->spent_reading += geonn_milliseconds_since(begun);
	return !more && !geonn_has_shapes(search->join->observations);
}

void
geonn_search_take_ahead(GeonnSearch *search)
{
	for (int i = 0; i < search->ahead_count; i++)
		geonn_search_consume_observation(search, &search->ahead[i]);
}

void
geonn_search_consume_observation(void *state, const PointRow *row)
{
	GeonnSearch *search = state;
	MemoryContext former;
	GeonnPointColumns columns = {0};
	bool		may_match;

	if (search->looks_ahead)
	{
		keep_ahead(search, row);
		return;
	}
	if (row->shape != NULL && !search->prepared.question.shapes)
		turn_to_shapes(search);
	former = MemoryContextSwitchTo(search->prepared.row_context);
	MemoryContextReset(search->prepared.row_context);
	may_match = find_columns(search, row, &columns);
	if (search->watch == NULL || search->watch(search->watch_state, row, may_match))
	{
		if (may_match && search->prepared.own != NULL)
			answer_observation(search, row, &columns);
		else if (may_match)
			add_observation(search, row, &columns);
		else if (row->status == POINT_VALID)
			search->without_candidates++;
		if (!may_match && search->join->question.radii > 0 && row->status == POINT_VALID)
			store_zeros(search, row);
		if (!may_match && search->join->keep_unmatched)
			store_unmatched(search, row);
	}
	MemoryContextSwitchTo(former);
}
