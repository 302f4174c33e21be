/*
 * affected_rows.c
 *		Affected observations are searched for again, and their rows compared with the table's.
 *
 * The rows that the search finds, and those that the table has of the same observations and of removed
 * ones, are sorted and merged, as those of a full refresh are (cache/sorted_rows.c).  A duplicate id
 * shows in two ways: two observations that are searched for have it, or the table has rows of an
 * observation that was added though none with its id was removed.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "cache/affected.h"
#include "cache/target_rows.h"

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
 * The reach of an affected observation that has so many rows, the last one at this distance.  No
 * change affects one without coordinates.
 */
static float
reach_of(const GeonnIncrement *increment, const Affected *affected, int32 rows, double distance)
{
	GeonnLimits limits;
	bool		placed;

	memcpy(&placed, affected->bytes, sizeof(placed));
	return !placed ? -1 :
		geonn_baseline_reach(&increment->join->question,
							 geonn_baseline_limits(&increment->observations->schema, affected->bytes,
												   &limits), rows, distance);
}

/*
 * Search for the observations, and set the reaches of those that have rows.
 */
static void
search_again(const GeonnIncrement *increment, Affected *affected, uint64 count, const Datum *ids,
			 SortedRows *found)
{
	GeonnJoin	join = *increment->join;
	GeonnSearch *search;
	GeonnReport report;
	Datum		values[TARGET_COLUMNS];
	bool		nulls[TARGET_COLUMNS];

	join.given = geonn_baseline_points(&increment->observations->schema, count, affected,
									   geonn_bytes_of_affected);
	search = geonn_search_begin(&join, numbered_type(increment->row_type));
	while (geonn_search_next(search, values, nulls))
	{
		uint64		number = (uint64) DatumGetInt64(values[TARGET_OBSERVATION_ID]) - 1;

		values[TARGET_OBSERVATION_ID] = ids[number];
		geonn_sorted_rows_add(found, NULL, values, nulls);
		if (!nulls[TARGET_DISTANCE])
			affected[number].reach = reach_of(increment, &affected[number],
											  DatumGetInt32(values[TARGET_RANK]),
											  DatumGetFloat8(values[TARGET_DISTANCE]));
	}
	report = geonn_search_report(search);
	geonn_search_log(search, &report);
	geonn_search_end(search);
}

void
geonn_increment_rows(const GeonnIncrement *increment, Affected *affected, uint64 count,
					 GeonnDifference *difference)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn rows",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	const BaselineSchema *schema = &increment->observations->schema;
	const BaselineChanges *changes = &increment->observation_changes;
	RowMerge	merge = geonn_merge_begin(increment->cache, increment->row_type);
	TargetRows *rows = geonn_target_rows_create(increment->cache, increment->row_type,
												count + changes->removed_count);
	Datum	   *ids = MemoryContextAllocHuge(context, Max(count, 1) * sizeof(Datum));

	for (uint64 i = 0; i < count; i++)
	{
		ids[i] = geonn_baseline_id(schema, affected[i].bytes);
		affected[i].reach = reach_of(increment, &affected[i], 0, 0);
		geonn_target_rows_expect(rows, ids[i], true, affected[i].row >= 0);
	}
	for (uint64 i = 0; i < changes->removed_count; i++)
		geonn_target_rows_expect(rows, geonn_baseline_id(schema, changes->removed[i].bytes), false, true);
	if (count > 0)
		search_again(increment, affected, count, ids, merge.found);
	geonn_target_rows_read(rows, merge.in_table);
	geonn_merge_end(&merge, difference);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}
