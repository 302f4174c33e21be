/*
 * affected_rows.c
 *		Affected observations are searched for again, and their rows compared with the table's.
 *
 * When all rows of an observation are found, the observation joins a batch.  The table's rows for
 * all ids of a batch are read together, and compared rank by rank.  A duplicate id shows in two
 * ways: the table has rows for an observation that was added though none with its id was removed,
 * or one of its rows is found for two observations.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "cache/affected.h"
#include "cache/sorted_rows.h"
#include "cache/target_rows.h"
#include "base/compat.h"

/*
 * Observations, and rows, of a batch: many, as each batch may read the whole table.
 */
#define OBSERVATIONS_A_BATCH	1048576
#define ROWS_A_BATCH			1048576
#define INITIAL_ROOM			1024

typedef struct FoundRow
{
	Datum		values[TARGET_COLUMNS];
	bool		nulls[TARGET_COLUMNS];
	bool		in_table;
} FoundRow;

typedef struct FoundObservation
{
	Datum		id;
	bool		may_be_there;	/* the table may have rows of it */
	uint32		first;			/* of its rows */
	uint32		count;
} FoundObservation;

typedef struct Comparison
{
	const GeonnIncrement *increment;
	GeonnDifference *difference;
	TargetRows *table_rows;
	Form_pg_attribute columns[TARGET_COLUMNS];
	Datum	   *removed;		/* ids of removed observations, sorted */
	uint64		removed_count;
	SortSupportData order;		/* of ids */
	TidSet		handled;		/* rows of the table that were compared */
	bool		forgiving;		/* rows that were compared already are passed over */
	MemoryContext context;

	/* the batch */
	MemoryContext batch_context;
	FoundObservation *observations;
	uint32		count;
	uint32		room;
	FoundRow   *rows;
	uint32		row_count;
	uint32		row_room;
} Comparison;

/* ---- ids of removed observations ---- */

static int
by_id(const void *first, const void *second, void *order)
{
	return ApplySortComparator(*(const Datum *) first, false, *(const Datum *) second, false,
							   order);
}

/*
 * Read the id from a row's bytes, in the current memory context.
 */
static Datum
id_of(const GeonnIncrement *increment, const char *bytes)
{
	const BaselineSchema *schema = &increment->observations->schema;
	BaselineRow row = geonn_baseline_row(schema);

	(void) geonn_baseline_read(schema, bytes, &row);
	return row.id;
}

static void
learn_removed(Comparison *comparison)
{
	const BaselineChanges *changes = &comparison->increment->observation_changes;

	comparison->removed_count = changes->removed_count;
	comparison->removed = MemoryContextAllocHuge(comparison->context,
												 Max(changes->removed_count, 1) * sizeof(Datum));
	geonn_order_of_column(comparison->columns[TARGET_OBSERVATION_ID], &comparison->order);
	for (uint64 i = 0; i < changes->removed_count; i++)
		comparison->removed[i] = id_of(comparison->increment, changes->removed[i].bytes);
	if (changes->removed_count > 0)
		qsort_arg(comparison->removed, comparison->removed_count, sizeof(Datum), by_id,
				  &comparison->order);
}

static bool
was_removed(Comparison *comparison, Datum id)
{
	uint64		low = 0;
	uint64		high = comparison->removed_count;

	while (low < high)
	{
		uint64		middle = low + (high - low) / 2;

		if (by_id(&comparison->removed[middle], &id, &comparison->order) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < comparison->removed_count &&
		by_id(&comparison->removed[low], &id, &comparison->order) == 0;
}

/* ---- a batch ---- */

/*
 * Compare a row of the table with the row that was found.
 */
static void
compare_table_row(void *state, uint32 number, ItemPointer tid, const Datum *values,
				  const bool *nulls)
{
	Comparison *comparison = state;
	FoundObservation *observation = &comparison->observations[number];
	int32		rank;
	FoundRow   *row;
	MemoryContext former = MemoryContextSwitchTo(comparison->context);
	bool		is_first;

	is_first = geonn_tid_add(&comparison->handled, tid);
	MemoryContextSwitchTo(former);
	if (!is_first && comparison->forgiving)
		return;
	if (!is_first || !observation->may_be_there)
		geonn_cache_raise_duplicate(comparison->increment->cache,
									comparison->columns[0]->atttypid, observation->id);
	rank = DatumGetInt32(values[TARGET_RANK]);
	if (rank < 1 || (uint32) rank > observation->count)
	{
		geonn_difference_add(comparison->difference, ROW_DELETED, tid, NULL, NULL);
		return;
	}
	row = &comparison->rows[observation->first + rank - 1];
	row->in_table = true;
	if (!geonn_same_rows(comparison->increment->row_type, values, nulls,
						 row->values, row->nulls))
		geonn_difference_add(comparison->difference, ROW_UPDATED, tid, row->values, row->nulls);
}

static void
compare_batch(Comparison *comparison)
{
	MemoryContext former = MemoryContextSwitchTo(comparison->batch_context);
	Datum	   *ids = MemoryContextAllocHuge(comparison->batch_context,
											 Max(comparison->count, 1) * sizeof(Datum));

	CHECK_FOR_INTERRUPTS();
	for (uint32 i = 0; i < comparison->count; i++)
		ids[i] = comparison->observations[i].id;
	geonn_target_rows_of(comparison->table_rows, ids, comparison->count, compare_table_row,
						 comparison);
	for (uint32 i = 0; i < comparison->row_count; i++)
	{
		FoundRow   *row = &comparison->rows[i];

		if (!row->in_table)
			geonn_difference_add(comparison->difference, ROW_INSERTED, NULL, row->values, row->nulls);
	}
	comparison->count = 0;
	comparison->row_count = 0;
	MemoryContextSwitchTo(former);
	MemoryContextReset(comparison->batch_context);
}

static FoundObservation *
add_observation(Comparison *comparison, const char *bytes, bool is_added)
{
	FoundObservation *observation;
	MemoryContext former;

	if (comparison->count == OBSERVATIONS_A_BATCH || comparison->row_count >= ROWS_A_BATCH)
		compare_batch(comparison);
	if (comparison->count == comparison->room)
	{
		comparison->room *= 2;
		comparison->observations = repalloc_huge(comparison->observations,
												 comparison->room * sizeof(FoundObservation));
	}
	former = MemoryContextSwitchTo(comparison->batch_context);
	observation = &comparison->observations[comparison->count++];
	observation->id = id_of(comparison->increment, bytes);
	observation->may_be_there = !is_added || was_removed(comparison, observation->id);
	observation->first = comparison->row_count;
	observation->count = 0;
	MemoryContextSwitchTo(former);
	return observation;
}

static void
add_row(Comparison *comparison, FoundObservation *observation, const Datum *values,
		const bool *nulls)
{
	MemoryContext former = MemoryContextSwitchTo(comparison->batch_context);
	FoundRow   *row;

	if (comparison->row_count == comparison->row_room)
	{
		comparison->row_room *= 2;
		comparison->rows = repalloc_huge(comparison->rows,
										 comparison->row_room * sizeof(FoundRow));
	}
	row = &comparison->rows[comparison->row_count++];
	row->in_table = false;
	for (int i = 0; i < TARGET_COLUMNS; i++)
	{
		row->nulls[i] = nulls[i];
		row->values[i] = nulls[i] || i == TARGET_OBSERVATION_ID ? observation->id :
			datumCopy(values[i], comparison->columns[i]->attbyval, comparison->columns[i]->attlen);
	}
	observation->count++;
	MemoryContextSwitchTo(former);
}

/* ---- the search ---- */

const char *
geonn_bytes_of_affected(const void *source, uint64 number)
{
	const Affected *affected = source;

	return affected[number].bytes;
}

/*
 * The target's columns, with the number of an observation instead of its id.
 */
static TupleDesc
numbered_type(TupleDesc row_type)
{
	TupleDesc	type = CreateTemplateTupleDesc(TARGET_COLUMNS);

	for (int i = 0; i < TARGET_COLUMNS; i++)
		TupleDescCopyEntry(type, (AttrNumber) (i + 1), row_type, (AttrNumber) (i + 1));
	TupleDescInitEntry(type, TARGET_OBSERVATION_ID + 1, "ord", INT8OID, -1, 0);
	TupleDescFinalize(type);
	return type;
}

/*
 * The reach of an affected observation that has so many rows, the last one at this distance.
 */
static float
reach_of(const Comparison *comparison, const Affected *affected, uint64 rows, double distance)
{
	const GeonnIncrement *increment = comparison->increment;
	GeonnLimits limits;

	return geonn_baseline_reach(&increment->join->question,
								geonn_baseline_limits(&increment->observations->schema,
													  affected->bytes, &limits), rows, distance);
}

static void
search_again(Comparison *comparison, Affected *affected, uint64 count)
{
	const GeonnIncrement *increment = comparison->increment;
	GeonnJoin	join = *increment->join;
	GeonnSearch *search;
	GeonnReport report;
	FoundObservation *observation = NULL;
	Affected   *present = NULL;
	Datum		values[TARGET_COLUMNS];
	bool		nulls[TARGET_COLUMNS];

	join.given = geonn_baseline_points(&increment->observations->schema, count, affected,
									   geonn_bytes_of_affected);
	search = geonn_search_begin(&join, numbered_type(increment->row_type));
	while (geonn_search_next(search, values, nulls))
	{
		Affected   *next = &affected[DatumGetInt64(values[TARGET_OBSERVATION_ID]) - 1];

		if (next != present)
		{
			present = next;
			present->has_rows = true;
			observation = add_observation(comparison, present->bytes, present->row < 0);
			present->reach = reach_of(comparison, present, 0, 0);
		}
		Assert(observation != NULL);
		add_row(comparison, observation, values, nulls);
		if (!nulls[TARGET_DISTANCE])
			present->reach = reach_of(comparison, present, observation->count,
									  DatumGetFloat8(values[TARGET_DISTANCE]));
	}
	report = geonn_search_report(search);
	geonn_search_log(search, &report);
	geonn_search_end(search);
}

/*
 * Add the observations for which no rows were found, and set the reach of those without
 * coordinates, which no change affects.
 */
static void
finish_affected(Comparison *comparison, Affected *affected, uint64 count)
{
	for (uint64 i = 0; i < count; i++)
	{
		bool		placed;

		memcpy(&placed, affected[i].bytes, sizeof(placed));
		if (!affected[i].has_rows)
		{
			(void) add_observation(comparison, affected[i].bytes, affected[i].row < 0);
			affected[i].reach = reach_of(comparison, &affected[i], 0, 0);
		}
		if (!placed)
			affected[i].reach = -1;
	}
}

void
geonn_increment_rows(const GeonnIncrement *increment, Affected *affected, uint64 count,
					 GeonnDifference *difference)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn rows",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	Comparison *comparison = palloc0(sizeof(Comparison));
	const BaselineChanges *changes = &increment->observation_changes;

	comparison->increment = increment;
	comparison->difference = difference;
	comparison->context = context;
	comparison->batch_context = AllocSetContextCreate(context, "geonn batch",
													  ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < TARGET_COLUMNS; i++)
		comparison->columns[i] = TupleDescAttr(increment->row_type, i);
	comparison->room = INITIAL_ROOM;
	comparison->observations = palloc(comparison->room * sizeof(FoundObservation));
	comparison->row_room = INITIAL_ROOM;
	comparison->rows = palloc(comparison->row_room * sizeof(FoundRow));
	comparison->table_rows = geonn_target_rows_create(increment->cache, increment->row_type);
	learn_removed(comparison);

	if (count > 0)
		search_again(comparison, affected, count);
	finish_affected(comparison, affected, count);
	compare_batch(comparison);
	comparison->forgiving = true;
	for (uint64 i = 0; i < changes->removed_count; i++)
		(void) add_observation(comparison, changes->removed[i].bytes, false);
	compare_batch(comparison);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}
