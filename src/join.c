/*
 * join.c
 *		A join: two sources of points, a question, and where the pairs go.
 *
 * In this order: the row type is checked against the ids, and the caller's
 * privileges on both sides, so that a statement which cannot succeed says so
 * before it does any work; the references are read and sealed; the
 * observations are read, and pairs go to the result while they are.  Where
 * there is no reference there is no pair, and the observations are not read
 * unless they are kept.
 *
 * An observation that can have no neighbour, for its NULLs, its group or its
 * coordinates, is not sent to the engine.  Where the unmatched are kept it goes
 * to the result at once, as a left join's does.
 *
 * Rows are had in one of two ways.  A function stores all of them in its
 * result: the observations come by one query, as fast as it gives them, and when
 * the ring is full pairs are stored while they do.  The plan node takes them one
 * by one: observations are read only while nothing can be taken, and no more of
 * them than the ring has places for.  What goes to the result at once waits in a
 * small store meanwhile.
 *
 * All that a call holds (connection, batches, ids) hangs on one memory
 * context of its own, and goes with it at the end, on an error and on a
 * cancellation.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "common/protocol.h"
#include "groups.h"
#include "join.h"
#include "reader.h"
#include "references.h"
#include "sink.h"

/* rows between two resets of the memory that comparing ids and keys uses */
#define ROWS_A_RESET	256

/* observations that are read at a time where rows are taken one by one */
#define ROWS_A_READING	1024

struct GeonnSearch
{
	GeonnJoin  *join;
	MemoryContext context;		/* of all of it */
	MemoryContext row_context;
	GeonnSink	sink;
	GeonnClient *client;		/* NULL: the references have not been read */
	GeonnReferences *references;
	GeonnGroups *groups;		/* NULL: there are none */
	uint64		rows;

	/* where rows go that are not taken at once */
	Tuplestorestate *store;
	Datum	   *values;			/* [sink.descriptor->natts] */
	bool	   *nulls;

	/* where rows are taken one by one */
	PointReading *reading;		/* NULL: of arrays */
	int			point;			/* next one of the arrays */
	uint64		counts[POINT_STATUSES];
	bool		all_read;
	TupleTableSlot *waiting;	/* rows of the store come through it */
	uint64		stored;			/* rows that are there */
};

typedef struct GeonnSearch Search;

static const PointColumn point_number = {
	.name = "ord",
	.type = INT8OID,
	.typmod = -1,
	.base_type = INT8OID
};

/*
 * Store the row that the values are.
 */
static void
store_row(Search *search)
{
	/* those before have been taken */
	if (search->waiting != NULL && search->stored == 0)
		tuplestore_clear(search->store);
	tuplestore_putvalues(search->store, search->sink.descriptor, search->values, search->nulls);
	search->stored++;
}

/*
 * Take a pair as a row; without wait, only if there is one.  Where the engine is
 * ahead nothing waits for as long as there are pairs, so an interrupt is asked
 * for here.
 */
static bool
take_pair(Search *search, bool wait)
{
	GeonnPair	pair;

	CHECK_FOR_INTERRUPTS();
	if (!geonn_client_next_pair(search->client, wait, &pair))
		return false;
	geonn_sink_pair(&search->sink, &pair, search->references, search->values, search->nulls);
	return true;
}

/*
 * Store the pairs that are there; with wait, at least those of one batch.
 */
static void
drain(Search *search, bool wait)
{
	while (take_pair(search, wait))
	{
		store_row(search);
		wait = false;
	}
}

static void
begin_row(Search *search)
{
	if (++search->rows % ROWS_A_RESET == 0)
		MemoryContextReset(search->row_context);
}

static void
consume_reference(void *state, const PointRow *row)
{
	Search	   *search = state;
	MemoryContext former;
	int32		group = 0;

	if (row->status != POINT_VALID)
		return;
	begin_row(search);
	former = MemoryContextSwitchTo(search->row_context);
	if (search->groups != NULL)
		group = geonn_groups_add(search->groups, row->by, row->by_is_null);
	if (group != GEONN_NO_GROUP)
		geonn_references_add(search->references, search->client, row, group);
	MemoryContextSwitchTo(former);
}

/*
 * Send an observation, which may have a neighbour.
 */
static void
add_observation(Search *search, const PointRow *row, int32 group)
{
	int32		identity = GEONN_NO_IDENTITY;

	if (search->join->exclude_self)
		identity = geonn_reference_identity(search->references, row->id);
	while (geonn_client_places(search->client) == 0)
		drain(search, true);
	if (geonn_client_add_observation(search->client, row->id, row->latitude, row->longitude,
									 group, identity) && search->waiting == NULL)
		drain(search, false);
}

static void
consume_observation(void *state, const PointRow *row)
{
	Search	   *search = state;
	MemoryContext former;
	int32		group = GEONN_NO_GROUP;

	begin_row(search);
	former = MemoryContextSwitchTo(search->row_context);
	if (row->status == POINT_VALID)
		group = search->groups == NULL ? 0 :
			geonn_groups_find(search->groups, row->by, row->by_is_null);
	if (group != GEONN_NO_GROUP)
		add_observation(search, row, group);
	else if (search->join->keep_unmatched)
	{
		geonn_sink_unmatched(&search->sink, row->id, row->id_is_null,
							 row->latitude_is_null ? NULL : &row->latitude,
							 row->longitude_is_null ? NULL : &row->longitude,
							 search->values, search->nulls);
		store_row(search);
	}
	MemoryContextSwitchTo(former);
}

static PointRow
array_row(const GeonnJoin *join, int number)
{
	PointRow	row = {
		.status = POINT_NULL,
		.id = Int64GetDatum(number + 1),
		.latitude_is_null = join->latitude_is_null[number],
		.longitude_is_null = join->longitude_is_null[number],
		.latitude = join->latitude[number],
		.longitude = join->longitude[number]
	};

	if (!row.latitude_is_null && !row.longitude_is_null)
		row.status = geonn_point_status(row.latitude, row.longitude);
	return row;
}

/*
 * Read so many of the observations that were given as arrays; false: all are.
 */
static bool
read_arrays(Search *search, uint64 rows)
{
	const GeonnJoin *join = search->join;

	for (uint64 i = 0; i < rows && search->point < join->points; i++)
	{
		PointRow	row = array_row(join, search->point++);

		CHECK_FOR_INTERRUPTS();
		search->counts[row.status]++;
		consume_observation(search, &row);
	}
	if (search->point < join->points)
		return true;
	geonn_warn_of_rows("the arrays lat and lon", search->counts, join->keep_unmatched,
					   "With invalid => 'error' the first of them is named.");
	return false;
}

/*
 * What arrays hold is known before anything is done.
 */
static void
check_arrays(const GeonnJoin *join)
{
	for (int i = 0; i < join->points; i++)
	{
		PointRow	row = array_row(join, i);

		if (row.status != POINT_VALID && row.status != POINT_NULL)
			geonn_raise_invalid(row.status, row.latitude, row.longitude,
								psprintf("point %d of the arrays", i + 1));
	}
}

/*
 * What to do about the observations' invalid coordinates.
 */
static InvalidPolicy
observations_policy(const GeonnJoin *join)
{
	return join->keep_unmatched && join->invalid == GEONN_INVALID_SKIPPED ? GEONN_INVALID_KEPT :
		join->invalid;
}

GeonnSearch *
geonn_search_begin(GeonnJoin *join, TupleDesc row_type)
{
	const PointColumn *reference_id = &join->references->columns[COLUMN_ID];
	const PointColumn *observation_id = join->observations == NULL ? &point_number :
		&join->observations->columns[COLUMN_ID];
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn join",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	Search	   *search = palloc0(sizeof(Search));

	search->join = join;
	search->context = context;
	search->row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_DEFAULT_SIZES);
	geonn_sink_begin(&search->sink, row_type, join->observations == NULL ? "ord" : "obs_id",
					 observation_id, reference_id, join->question.metric);
	get_typlenbyval(observation_id->base_type, &join->question.id_length,
					&join->question.id_by_value);
	MemoryContextSwitchTo(former);
	return search;
}

void
geonn_search_project(GeonnSearch *search, TupleDesc descriptor, const AttrNumber *attributes)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);

	geonn_sink_project(&search->sink, descriptor, attributes);
	MemoryContextSwitchTo(former);
}

/*
 * Check what can be checked, and read the references.  Returns whether there is
 * anything to do about the observations.
 */
static bool
read_references(Search *search)
{
	GeonnJoin  *join = search->join;

	search->values = palloc0(search->sink.descriptor->natts * sizeof(Datum));
	search->nulls = palloc0(search->sink.descriptor->natts * sizeof(bool));
	if (join->observations != NULL)
		geonn_check_readable(join->observations);
	geonn_check_readable(join->references);
	if (join->observations == NULL && join->invalid == GEONN_INVALID_IS_ERROR)
		check_arrays(join);

	if (join->references->by_count > 0)
		search->groups = geonn_groups_create(join->observations, join->references);
	search->references = geonn_references_create(join->references,
												 geonn_sink_needs_coordinates(&search->sink),
												 join->exclude_self ? join->observations : NULL);
	join->question.unmatched = join->keep_unmatched;
	join->question.columns = (search->groups != NULL ? GEONN_COLUMN_GROUP : 0) |
		(join->exclude_self ? GEONN_COLUMN_IDENTITY : 0);
	search->client = geonn_client_open(&join->question);

	geonn_read_points(join->references, join->invalid, consume_reference, search);
	if (search->groups != NULL)
		geonn_groups_seal(search->groups, search->client);
	return geonn_references_seal(search->references, search->client) > 0 ||
		join->keep_unmatched ||
		(join->invalid == GEONN_INVALID_IS_ERROR && join->observations != NULL);
}

void
geonn_search_store(GeonnSearch *search, Tuplestorestate *store)
{
	const GeonnJoin *join = search->join;
	MemoryContext former = MemoryContextSwitchTo(search->context);

	search->store = store;
	if (read_references(search))
	{
		if (join->observations == NULL)
			(void) read_arrays(search, join->points);
		else
			geonn_read_points(join->observations, observations_policy(join),
							  consume_observation, search);
		geonn_client_finish(search->client);
		while (take_pair(search, true))
			store_row(search);
	}
	MemoryContextSwitchTo(former);
}

void
geonn_search_complete(GeonnSearch *search)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);

	geonn_search_store(search, tuplestore_begin_heap(false, false, work_mem));
	search->waiting = MakeSingleTupleTableSlot(search->sink.descriptor, &TTSOpsMinimalTuple);
	search->all_read = true;
	MemoryContextSwitchTo(former);
}

/*
 * Begin to take rows one by one.
 */
static void
begin_taking(Search *search)
{
	const GeonnJoin *join = search->join;

	search->store = tuplestore_begin_heap(false, false, work_mem);
	search->waiting = MakeSingleTupleTableSlot(search->sink.descriptor, &TTSOpsMinimalTuple);
	search->all_read = !read_references(search);
	if (!search->all_read && join->observations != NULL)
		search->reading = geonn_reading_begin(join->observations, observations_policy(join),
											  consume_observation, search);
}

/*
 * Read as many observations as can be sent without pairs being taken first.
 */
static void
read_some(Search *search)
{
	uint64		rows = Min(geonn_client_places(search->client), ROWS_A_READING);

	search->all_read = search->reading != NULL ? !geonn_reading_next(search->reading, rows) :
		!read_arrays(search, rows);
	if (search->all_read)
		geonn_client_finish(search->client);
}

/*
 * The next of the rows that wait in the store.
 */
static void
take_waiting(Search *search)
{
	TupleTableSlot *slot = search->waiting;

	(void) tuplestore_gettupleslot(search->store, true, false, slot);
	slot_getallattrs(slot);
	memcpy(search->values, slot->tts_values, search->sink.descriptor->natts * sizeof(Datum));
	memcpy(search->nulls, slot->tts_isnull, search->sink.descriptor->natts * sizeof(bool));
	search->stored--;
}

bool
geonn_search_next(GeonnSearch *search, Datum **values, bool **nulls)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);
	bool		found = false;

	if (search->waiting == NULL)
		begin_taking(search);
	while (!found)
	{
		if (search->stored > 0)
		{
			take_waiting(search);
			found = true;
		}
		else if (take_pair(search, false))
			found = true;
		else if (!search->all_read && geonn_client_places(search->client) > 0)
			read_some(search);
		else if (take_pair(search, true))
			found = true;
		else if (search->all_read)
			break;
	}
	MemoryContextSwitchTo(former);
	*values = search->values;
	*nulls = search->nulls;
	return found;
}

void
geonn_search_end(GeonnSearch *search)
{
	if (search->reading != NULL)
		geonn_reading_end(search->reading);
	if (search->waiting != NULL)
		tuplestore_end(search->store);
	MemoryContextDelete(search->context);
}
