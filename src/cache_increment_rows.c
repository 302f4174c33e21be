/*
 * cache_increment_rows.c
 *		The rows of observations that are searched for again, against the table's.
 *
 * As the rows of an observation are complete they join a batch; the table's rows of all of a
 * batch's ids are read, and compared rank by rank.  An id that is
 * there twice shows when the table has rows of one that has come though none with its id has
 * gone, or when a row of the table turns up for two.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "cache_incremental.h"
#include "cache_sorted_rows.h"
#include "cache_target_rows.h"

/*
 * Observations, and rows, that are compared with the table's at a time: many, as the whole
 * table may be read for them.
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
	bool		may_be_there;	/* in the table */
	uint32		first;			/* of its rows */
	uint32		count;
} FoundObservation;

typedef struct Comparison
{
	const GeonnIncrement *increment;
	GeonnDifference *difference;
	TargetRows *table_rows;
	Form_pg_attribute columns[TARGET_COLUMNS];
	Datum	   *gone;			/* ids that have gone, in their order */
	uint64		gone_count;
	SortSupportData order;		/* of ids */
	PlaceSet	handled;		/* rows of the table */
	bool		forgiving;		/* those that were handled already are passed over */
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

/* ---- ids that have gone ---- */

static int
by_id(const void *first, const void *second, void *order)
{
	return ApplySortComparator(*(const Datum *) first, false, *(const Datum *) second, false,
							   order);
}

/*
 * The id of such bytes, in the current memory context.
 */
static Datum
id_of(const GeonnIncrement *increment, const char *bytes)
{
	const CopyShape *shape = &increment->observations->shape;
	CopyRow		row = geonn_copy_row(shape);

	(void) geonn_copy_read(shape, bytes, &row);
	return row.id;
}

static void
learn_gone(Comparison *comparison)
{
	const CopyChanges *changes = &comparison->increment->observation_changes;

	comparison->gone_count = changes->gone_count;
	comparison->gone = MemoryContextAllocHuge(comparison->context,
											  Max(changes->gone_count, 1) * sizeof(Datum));
	geonn_order_of_column(comparison->columns[TARGET_OBSERVATION_ID], &comparison->order);
	for (uint64 i = 0; i < changes->gone_count; i++)
		comparison->gone[i] = id_of(comparison->increment, changes->gone[i].bytes);
	if (changes->gone_count > 0)
		qsort_arg(comparison->gone, comparison->gone_count, sizeof(Datum), by_id,
				  &comparison->order);
}

static bool
has_gone(Comparison *comparison, Datum id)
{
	uint64		low = 0;
	uint64		high = comparison->gone_count;

	while (low < high)
	{
		uint64		middle = low + (high - low) / 2;

		if (by_id(&comparison->gone[middle], &id, &comparison->order) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < comparison->gone_count &&
		by_id(&comparison->gone[low], &id, &comparison->order) == 0;
}

/* ---- a batch ---- */

/*
 * A row that the table has.
 */
static void
compare_table_row(void *state, uint32 number, ItemPointer place, const Datum *values,
				  const bool *nulls)
{
	Comparison *comparison = state;
	FoundObservation *observation = &comparison->observations[number];
	int32		rank;
	FoundRow   *row;
	MemoryContext former = MemoryContextSwitchTo(comparison->context);
	bool		is_first;

	is_first = geonn_place_add(&comparison->handled, place);
	MemoryContextSwitchTo(former);
	if (!is_first && comparison->forgiving)
		return;
	if (!is_first || !observation->may_be_there)
		geonn_cache_raise_duplicate(comparison->increment->cache,
									comparison->columns[0]->atttypid, observation->id);
	rank = DatumGetInt32(values[TARGET_RANK]);
	if (rank < 1 || (uint32) rank > observation->count)
	{
		geonn_difference_add(comparison->difference, ROW_DELETED, place, NULL, NULL);
		return;
	}
	row = &comparison->rows[observation->first + rank - 1];
	row->in_table = true;
	if (!geonn_same_rows(comparison->increment->row_type, values, nulls,
						 row->values, row->nulls))
		geonn_difference_add(comparison->difference, ROW_UPDATED, place, row->values, row->nulls);
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
add_observation(Comparison *comparison, const char *bytes, bool has_come)
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
	observation->may_be_there = !has_come || has_gone(comparison, observation->id);
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
geonn_bytes_of_work(const void *source, uint64 number)
{
	const Work *work = source;

	return work[number].bytes;
}

/*
 * The target's columns, but with the number of an observation in place of its id.
 */
static TupleDesc
numbered_type(TupleDesc row_type)
{
	TupleDesc	type = CreateTemplateTupleDesc(TARGET_COLUMNS);

	for (int i = 0; i < TARGET_COLUMNS; i++)
		TupleDescCopyEntry(type, (AttrNumber) (i + 1), row_type, (AttrNumber) (i + 1));
	TupleDescInitEntry(type, TARGET_OBSERVATION_ID + 1, "ord", INT8OID, -1, 0);
	return type;
}

static void
search_again(Comparison *comparison, Work *work, uint64 count)
{
	const GeonnIncrement *increment = comparison->increment;
	GeonnJoin	join = *increment->join;
	GeonnSearch *search;
	GeonnReport report;
	FoundObservation *observation = NULL;
	Work	   *present = NULL;
	Datum		values[TARGET_COLUMNS];
	bool		nulls[TARGET_COLUMNS];

	join.given = geonn_copy_points(&increment->observations->shape, count, work,
								   geonn_bytes_of_work);
	search = geonn_search_begin(&join, numbered_type(increment->row_type));
	while (geonn_search_next(search, values, nulls))
	{
		Work	   *next = &work[DatumGetInt64(values[TARGET_OBSERVATION_ID]) - 1];

		if (next != present)
		{
			present = next;
			present->seen = true;
			observation = add_observation(comparison, present->bytes, present->row < 0);
			present->bound = geonn_copy_bound(&join.question, 0, 0);
		}
		Assert(observation != NULL);
		add_row(comparison, observation, values, nulls);
		if (!nulls[TARGET_DISTANCE])
			present->bound = geonn_copy_bound(&join.question, observation->count,
											  DatumGetFloat8(values[TARGET_DISTANCE]));
	}
	report = geonn_search_report(search);
	geonn_search_log(search, &report);
	geonn_search_end(search);
}

/*
 * Those without rows; and points that have no place are reached by nothing.
 */
static void
finish_work(Comparison *comparison, Work *work, uint64 count)
{
	for (uint64 i = 0; i < count; i++)
	{
		bool		placed;

		memcpy(&placed, work[i].bytes, sizeof(placed));
		if (!work[i].seen)
		{
			(void) add_observation(comparison, work[i].bytes, work[i].row < 0);
			work[i].bound = geonn_copy_bound(&comparison->increment->join->question, 0, 0);
		}
		if (!placed)
			work[i].bound = -1;
	}
}

void
geonn_increment_rows(const GeonnIncrement *increment, Work *work, uint64 count,
					 GeonnDifference *difference)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn rows",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	Comparison *comparison = palloc0(sizeof(Comparison));
	const CopyChanges *changes = &increment->observation_changes;

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
	learn_gone(comparison);

	if (count > 0)
		search_again(comparison, work, count);
	finish_work(comparison, work, count);
	compare_batch(comparison);
	comparison->forgiving = true;
	for (uint64 i = 0; i < changes->gone_count; i++)
		(void) add_observation(comparison, changes->gone[i].bytes, false);
	compare_batch(comparison);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}
