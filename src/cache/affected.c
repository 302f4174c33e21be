/*
 * affected.c
 *		A cache's table is brought up to date by what has changed.
 *
 * Let X be the points of the references that were added since the last refresh, and of those that
 * were removed, each in its group and with its limits (point_limits.h): its radius and windows, and the
 * weights that counts add up.  These are part of a point's contents, as its coordinates are: a reference
 * that moved, or whose limits or weights changed, was removed with the former ones and added with the
 * present ones.  Let o be an observation that has not changed itself, and so has the same limits as
 * before.  Its reach is the distance of the last of its k rows.  If it has fewer than k, or if all references
 * within a radius are asked for, its reach is the smaller of the greatest distance asked for and o's own
 * radius.  A point of X is a candidate of o if it
 * is in o's group, its windows overlap o's, and it is within both radiuses.  Whether it is depends on
 * o's contents and its own alone, neither of which has changed: a reference that was a candidate and no
 * longer is, or the other way round, has changed, and is in X.  The rows that the table has for o are
 * still right if no candidate in X is within o's reach:
 *
 *	 - All references of its rows still exist and have not moved, and still are candidates: each of them
 *	   is within the reach, and a former state of those that were removed or have changed is a candidate
 *	   in X.
 *	 - Suppose that a reference belongs among its rows now and did not before.  Then this
 *	   reference was added, or another one was removed: both are candidates in X.  A removed one
 *	   that made room for it was within the reach.  An added one belongs there only if it is as near
 *	   as the k-th or nearer, that is, within the reach, whatever its id; with ties => 'all' also at
 *	   exactly the reach.  If o has fewer than k rows, all candidates within the greatest
 *	   distance belong there, and none is farther away than o's radius.
 *
 * If counts within radii are asked for, o's rows follow from its candidates within the largest radius and
 * from their weights.  The reach is the smaller of that radius and o's own.  If no candidate in X is within
 * it, these candidates are the same as before, with the same weights; so the counts and sums are, too.
 *
 * An observation with a NULL or empty window, or a negative radius, has no candidates: its reach is -1.
 *
 * The engine computes all of these distances, and always the same for the same two points, so
 * "within" needs no tolerance.  o is searched for again if its nearest candidate in X, by the same
 * metric, is at most as far away as the reach (which is stored rounded up).  exclude_self may
 * leave this nearest point out of o's rows; o is then searched for in vain.
 *
 * So two kinds of observations are searched for among all references: those that were added
 * themselves, and those within whose reach X has a point.  The second kind is found in three steps.
 * The first two pass over most observations and need no engine: points that are within a distance
 * have a squared chord within the metric's limit for it, and latitudes that differ by no more than
 * so many degrees (common/metric.h).  A tree tells whether X has a point within such
 * a limit, whatever its group and limits.
 *
 *	 - A block of the baseline counts only if the distance of X from its centre is not greater than
 *	   the block's radius and its greatest reach together (distances on a surface obey the triangle
 *	   inequality; rounding is far below the margin).
 *	 - An observation of such a block counts only if one of these points of X is within the latitudes
 *	   and the limit of its reach.
 *	 - The engine searches for the others' nearest candidates in X.
 *
 * The rows that the search finds, and those that the table has of the same observations and of removed
 * ones, are sorted and merged, as those of a full refresh are (cache/sorted_rows.c).
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "cache/affected.h"
#include "cache/sorted_rows.h"
#include "common/metric.h"
#include "base/compat.h"

/*
 * A refresh becomes a full one if more than MOST_CHANGED of a side's points have changed, or if more than
 * MOST_SEARCHED of the observations would have to be searched for again.
 */
#define MOST_CHANGED	0.25
#define MOST_SEARCHED	0.3

/* Rounding may break the triangle inequality by at most this many metres. */
#define MARGIN			1e-5

/* Up to this many changed references near a block are compared one by one; with more, a search in the tree decides. */
#define MOST_NEAR		16

/* one search of the engine takes the observations of this many blocks */
#define BLOCKS_A_SLICE	4096

#define AXES			3

/* ---- a tree of points ---- */

/* a point that is in a tree */
typedef struct TreePoint
{
	struct geonn_vector at;		/* geonn_metric_vector's */
	double		latitude;
} TreePoint;

/*
 * A k-d tree (J. L. Bentley, 1975) in an array: the point in the middle splits the others into halves by one
 * coordinate; each half is a tree by the next coordinate.  A search skips a half that lies beyond the limit
 * by that coordinate.  Rounding keeps the order of differences, squares and sums, so no point within the
 * limit is missed.
 */
typedef struct PointTree
{
	TreePoint  *points;
	uint32		count;
} PointTree;

/* Return whether the squared chord from `at` to the point is at most the limit. */
static inline bool
is_near(const TreePoint *point, struct geonn_vector at, double limit)
{
	double		x = point->at.x - at.x;
	double		y = point->at.y - at.y;
	double		z = point->at.z - at.z;

	return x * x + y * y + z * z <= limit;
}

static inline double
along(struct geonn_vector at, int axis)
{
	return axis == 0 ? at.x : axis == 1 ? at.y : at.z;
}

static int
by_axis(const void *first, const void *second, void *axis)
{
	double		a = along(((const TreePoint *) first)->at, *(int *) axis);
	double		b = along(((const TreePoint *) second)->at, *(int *) axis);

	return a < b ? -1 : a > b;
}

/* Put the points into the order of a k-d tree. */
static void
order_tree(TreePoint *points, uint32 count, int axis)
{
	uint32		middle = count / 2;

	CHECK_FOR_INTERRUPTS();
	if (count < 2)
		return;
	qsort_arg(points, count, sizeof(*points), by_axis, &axis);
	order_tree(points, middle, (axis + 1) % AXES);
	order_tree(points + middle + 1, count - middle - 1, (axis + 1) % AXES);
}

typedef struct Finding
{
	struct geonn_vector at;
	double		limit;
	TreePoint  *found;
	uint32		count;
	uint32		room;
} Finding;

static void
find(const TreePoint *points, uint32 count, int axis, Finding *finding)
{
	uint32		middle = count / 2;
	double		distance;

	if (count == 0 || finding->count > finding->room)
		return;
	if (is_near(&points[middle], finding->at, finding->limit))
	{
		if (finding->count < finding->room)
			finding->found[finding->count] = points[middle];
		finding->count++;
	}
	distance = along(finding->at, axis) - along(points[middle].at, axis);
	if (distance <= 0 || distance * distance <= finding->limit)
		find(points, middle, (axis + 1) % AXES, finding);
	if (distance >= 0 || distance * distance <= finding->limit)
		find(points + middle + 1, count - middle - 1, (axis + 1) % AXES, finding);
}

/*
 * Find the points whose squared chord from `at` is at most the limit.  Returns their number; if found
 * has no room for all, a number greater than room.
 */
static uint32
find_near(PointTree tree, struct geonn_vector at, double limit, TreePoint *found, uint32 room)
{
	Finding		finding = {.at = at,.limit = limit,.found = found,.room = room};

	find(tree.points, tree.count, 0, &finding);
	return finding.count;
}

/* Return whether the squared chord from `at` to some point is at most the limit. */
static bool
has_near(PointTree tree, struct geonn_vector at, double limit)
{
	return find_near(tree, at, limit, NULL, 0) > 0;
}

/* The data that the last run read, and the changes since. */
typedef struct Increment
{
	const GeonnCache *cache;
	GeonnJoin  *join;
	TupleDesc	row_type;
	GeonnBaseline *observations;
	GeonnBaseline *references;
	BaselineChanges observation_changes;
	BaselineChanges reference_changes;
} Increment;

/* ---- searches among X ---- */

/* a search for the affected observations */
typedef struct AffectedSearch
{
	const Increment *increment;
	MemoryContext context;		/* holds what lives until the search ends */
	PointList	changes;		/* X */
	PointTree	tree;			/* the points of X */
	TreePoint	near[MOST_NEAR];	/* changed references near the present block */
	uint32		near_count;		/* how many changed references are near the block; if more than MOST_NEAR, `near` has
								 * only some of them */
	uint64		removed;		/* index of the next removed observation */
	PointList	slice;			/* observations of some blocks that changed references may affect */
	PointList	affected;
} AffectedSearch;

/*
 * Find the observations of the slice that a changed reference affects.
 */
static void
search_changes(AffectedSearch *search)
{
	const Increment *increment = search->increment;
	GeonnJoin	join = {
		.observations = increment->join->observations,
		.references = increment->join->references,
		.label = increment->join->label,
		.question = increment->join->question,
		.invalid = GEONN_INVALID_COUNTED,
		.given = geonn_baseline_points(&increment->observations->schema, &search->slice),
		.given_references = geonn_baseline_points(&increment->references->schema, &search->changes)
	};
	TupleDesc	type = CreateTemplateTupleDesc(2);
	GeonnSearch *nearest;
	Datum		values[2];
	bool		nulls[2];

	TupleDescInitEntry(type, 1, "ord", INT8OID, -1, 0);
	TupleDescInitEntry(type, 2, "distance", FLOAT8OID, -1, 0);
	TupleDescFinalize(type);
	join.question.k = 1;
	join.question.radii = join.question.weights = 0;
	join.question.max_distance = INFINITY;
	join.question.ties = false;
	nearest = geonn_search_begin(&join, type);
	while (geonn_search_next(nearest, values, nulls))
	{
		const BaselinePoint *point = &search->slice.points[DatumGetInt64(values[0]) - 1];

		Assert(point >= search->slice.points && point < search->slice.points + search->slice.count);
		if (DatumGetFloat8(values[1]) <= point->reach)
			geonn_point_list_add(&search->affected, point);
	}
	geonn_search_end(nearest);
}

/* ---- affected blocks ---- */

/*
 * List X, and make its tree.
 */
static void
list_changes(AffectedSearch *search)
{
	const PointList *added = &search->increment->reference_changes.added;
	const PointList *removed = &search->increment->reference_changes.removed;
	PointList  *changes = &search->changes;
	TreePoint  *points;

	changes->count = added->count + removed->count;
	changes->points = MemoryContextAllocHuge(search->context, changes->count * sizeof(BaselinePoint));
	points = MemoryContextAllocHuge(search->context, changes->count * sizeof(TreePoint));
	for (uint64 i = 0; i < changes->count; i++)
	{
		PointHead	head;

		changes->points[i] = i < added->count ? added->points[i] : removed->points[i - added->count];
		head = geonn_point_head(changes->points[i].bytes);
		points[i].at = geonn_metric_vector(search->increment->join->question.metric, head.latitude,
										   head.longitude);
		points[i].latitude = head.latitude;
	}
	order_tree(points, (uint32) changes->count, 0);
	search->tree = (PointTree) {points, (uint32) changes->count};
}

/* Return the squared chord from the block's centre beyond which changed references affect none of its rows. */
static double
limit_of_block(const AffectedSearch *search, const BaselineBlock *block)
{
	return geonn_metric_wide_limit(search->increment->join->question.metric,
								   (double) block->radius + block->reach + MARGIN);
}

/* Find the blocks that a changed reference may affect, in their order.  Returns how many they are. */
static uint32
find_near_blocks(const AffectedSearch *search, uint32 *blocks)
{
	const GeonnBaseline *baseline = search->increment->observations;
	uint32		count = 0;

	for (uint32 i = 0; i < baseline->count; i++)
	{
		const BaselineBlock *block = &baseline->blocks[i];

		CHECK_FOR_INTERRUPTS();
		if (block->radius >= 0 && block->reach >= 0 &&
			has_near(search->tree, block->centre, limit_of_block(search, block)))
			blocks[count++] = i;
	}
	return count;
}

/* ---- observations that X affects ---- */

/* Return whether this point of a block is a removed observation.  The caller passes points in their order. */
static bool
was_removed(AffectedSearch *search, const BaselinePoint *point)
{
	const PointList *removed = &search->increment->observation_changes.removed;
	const BaselinePoint *next;

	for (; search->removed < removed->count; search->removed++)
	{
		next = &removed->points[search->removed];
		if (next->block > point->block || (next->block == point->block && next->row >= point->row))
			return next->block == point->block && next->row == point->row;
	}
	return false;
}

/* Return whether changed references may affect this observation of the present block. */
static bool
may_be_affected(const AffectedSearch *search, const BaselinePoint *point)
{
	enum geonn_metric metric = search->increment->join->question.metric;
	PointHead	head = geonn_point_head(point->bytes);
	double		latitudes = geonn_metric_latitudes(metric, head.reach);
	double		limit = geonn_metric_wide_limit(metric, head.reach);
	struct geonn_vector at;
	bool		has_vector = false;

	if (isnan(head.latitude) || head.reach < 0)
		return false;
	if (search->near_count > MOST_NEAR)
		return has_near(search->tree, geonn_metric_vector(metric, head.latitude, head.longitude), limit);
	for (uint32 i = 0; i < search->near_count; i++)
	{
		if (fabs(search->near[i].latitude - head.latitude) > latitudes)
			continue;
		if (!has_vector)
			at = geonn_metric_vector(metric, head.latitude, head.longitude);
		has_vector = true;
		if (is_near(&search->near[i], at, limit))
			return true;
	}
	return false;
}

static void
take_block(void *state, uint32 block, const char *contents, Size length)
{
	AffectedSearch *search = state;
	const char *end = contents + length;
	const BaselineBlock *entry = &search->increment->observations->blocks[block];
	BaselinePoint point = geonn_baseline_first(block);

	search->near_count = find_near(search->tree, entry->centre, limit_of_block(search, entry), search->near,
								   MOST_NEAR);
	while (geonn_baseline_next(&contents, end, &point))
	{
		if (may_be_affected(search, &point) && !was_removed(search, &point))
			geonn_point_list_add(&search->slice, &point);
	}
}

/* Find the observations in these blocks that changed references affect. */
static void
search_blocks(AffectedSearch *search, const uint32 *blocks, uint32 count)
{
	const Increment *increment = search->increment;
	MemoryContext context = AllocSetContextCreate(search->context, "geonn slice",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	uint32		some;

	for (uint32 done = 0; done < count; done += some)
	{
		some = Min(count - done, BLOCKS_A_SLICE);
		search->slice = (PointList) {.context = context};
		geonn_baseline_read_blocks(increment->observations, blocks + done, some, take_block, search);
		if (search->slice.count > 0)
			search_changes(search);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}

/* ---- all affected observations ---- */

static int
by_row(const void *first, const void *second)
{
	const BaselinePoint *a = first;
	const BaselinePoint *b = second;

	if (a->block != b->block)
		return a->block < b->block ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

#ifdef USE_ASSERT_CHECKING
static bool
is_ordered(const PointList *list)
{
	for (uint64 i = 1; i < list->count; i++)
	{
		if (by_row(&list->points[i - 1], &list->points[i]) >= 0)
			return false;
	}
	return true;
}
#endif

/*
 * Find all affected observations: first the unchanged ones that a changed reference affects, by block and row; then the
 * added ones.  Returns false if the affected observations are more than `most` of all observations.
 */
static bool
find_affected(AffectedSearch *search, double most)
{
	const Increment *increment = search->increment;
	const PointList *added = &increment->observation_changes.added;
	uint64		limit = (uint64) (most * (double) increment->observations->rows);
	PointList  *affected = &search->affected;

	Assert(is_ordered(&increment->observation_changes.removed));
	if (increment->reference_changes.added.count + increment->reference_changes.removed.count > 0)
	{
		uint32	   *blocks = MemoryContextAllocHuge(search->context,
													increment->observations->count * sizeof(uint32));

		list_changes(search);
		search_blocks(search, blocks, find_near_blocks(search, blocks));
		pfree(blocks);
	}
	if (most < 1 && affected->count + added->count > limit)
		return false;
	if (affected->count > 0)
		qsort(affected->points, affected->count, sizeof(BaselinePoint), by_row);
	Assert(is_ordered(affected));
	for (uint64 i = 0; i < added->count; i++)
		geonn_point_list_add(affected, &added->points[i]);
	return true;
}

/* ---- the affected observations' rows ---- */

/* Return the target's row type, with the number of an observation instead of its id. */
static TupleDesc
numbered_type(TupleDesc row_type)
{
	TupleDesc	type = CreateTemplateTupleDesc(row_type->natts);

	for (int i = 0; i < row_type->natts; i++)
		TupleDescCopyEntry(type, (AttrNumber) (i + 1), row_type, (AttrNumber) (i + 1));
	TupleDescInitEntry(type, TARGET_OBSERVATION_ID + 1, "ord", INT8OID, -1, 0);
	TupleDescFinalize(type);
	return type;
}

/* Set the reach of an affected observation that has this many rows, the last of them at this distance. */
static void
set_reach(const Increment *increment, BaselinePoint *affected, int32 rows, double distance)
{
	affected->reach = geonn_baseline_reach(&increment->observations->schema, &increment->join->question,
										   affected->bytes, rows, distance);
}

/*
 * Search again for the neighbours or counts of these observations, and set the reach of each observation
 * whose rows limit it.
 */
static void
search_again(const Increment *increment, PointList *affected, const Datum *ids, SortedRows *found)
{
	GeonnJoin	join = *increment->join;
	GeonnSearch *search;
	GeonnReport report;
	Datum		values[TARGET_COLUMNS_MAX];
	bool		nulls[TARGET_COLUMNS_MAX];

	join.given = geonn_baseline_points(&increment->observations->schema, affected);
	search = geonn_search_begin(&join, numbered_type(increment->row_type));
	while (geonn_search_next(search, values, nulls))
	{
		uint64		number = (uint64) DatumGetInt64(values[TARGET_OBSERVATION_ID]) - 1;

		Assert(number < affected->count);
		values[TARGET_OBSERVATION_ID] = ids[number];
		geonn_sorted_rows_add(found, NULL, values, nulls);
		if (join.question.k > 0 && !nulls[TARGET_DISTANCE])
			set_reach(increment, &affected->points[number], DatumGetInt32(values[TARGET_RANK]),
					  DatumGetFloat8(values[TARGET_DISTANCE]));
	}
	report = geonn_search_report(search);
	geonn_search_log(search, &report);
	geonn_search_end(search);
}

/*
 * Bring the baselines up to date with the changes, and with the new reaches of these observations.
 */
static void
update_baselines(const Increment *increment, const PointList *affected)
{
	const PointList *added = &increment->observation_changes.added;
	uint64		reaches = affected->count - added->count;

	Assert(affected->count >= added->count);
	for (uint64 i = 0; i < added->count; i++)
		added->points[i].reach = affected->points[reaches + i].reach;
	geonn_baseline_update(increment->observations, &increment->observation_changes, affected->points,
						  reaches);
	geonn_baseline_update(increment->references, &increment->reference_changes, NULL, 0);
}

/*
 * Search for these observations' neighbours among all references.  Write the rows that differ from the
 * table's, delete the rows of removed observations, and update the baselines.
 */
static void
update(const Increment *increment, PointList *affected, GeonnRunResult *result)
{
	const BaselineSchema *schema = &increment->observations->schema;
	const PointList *removed = &increment->observation_changes.removed;
	RowMerge	merge = geonn_merge_begin(increment->cache, increment->row_type);
	TargetRows *rows = geonn_target_rows_create(increment->cache, increment->row_type,
												affected->count + removed->count);
	Datum	   *ids = MemoryContextAllocHuge(CurrentMemoryContext, Max(affected->count, 1) * sizeof(Datum));

	for (uint64 i = 0; i < affected->count; i++)
	{
		ids[i] = geonn_baseline_id(schema, affected->points[i].bytes);
		set_reach(increment, &affected->points[i], 0, 0);
		geonn_target_rows_expect(rows, ids[i], true, affected->points[i].row >= 0);
	}
	for (uint64 i = 0; i < removed->count; i++)
		geonn_target_rows_expect(rows, geonn_baseline_id(schema, removed->points[i].bytes), false, true);
	if (affected->count > 0)
		search_again(increment, affected, ids, merge.found);
	update_baselines(increment, affected);
	geonn_target_rows_read(rows, merge.in_table);
	geonn_merge_end(&merge, result);
}

/* ---- all steps ---- */

/*
 * Find the changes of one side.  Returns false if they are too many.
 */
static bool
find_changes(const Increment *increment, GeonnBaseline *baseline, const GeonnLastRun *last_run, bool always,
			 BaselineChanges *changes)
{
	Size		memory = always ? SIZE_MAX : (Size) maintenance_work_mem * 1024;

	geonn_baseline_load(baseline);
	if (last_run->same[baseline->side])
		return true;
	return geonn_baseline_compare(baseline, increment->join, last_run->sides.srid[baseline->side], memory, changes) &&
		(always || Max(changes->added.count, changes->removed.count) <= MOST_CHANGED * baseline->rows);
}

static bool
find_and_update(Increment *increment, const GeonnLastRun *last_run, bool always, GeonnRunResult *result)
{
	BaselineChanges *references = &increment->reference_changes;
	BaselineChanges *observations = &increment->observation_changes;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn increment",
												  ALLOCSET_DEFAULT_SIZES);
	AffectedSearch search = {.increment = increment,.context = context,.affected = {.context = context}};
	MemoryContext former;
	bool		found;

	if (!find_changes(increment, increment->references, last_run, always, references) ||
		!find_changes(increment, increment->observations, last_run, always, observations))
		return false;
	former = MemoryContextSwitchTo(context);
	found = find_affected(&search, always ? 1 : MOST_SEARCHED);
	if (found)
	{
		update(increment, &search.affected, result);
		result->searched = (int64) search.affected.count;
		result->mode = references->added.count + references->removed.count +
			observations->added.count + observations->removed.count == 0 ? "unchanged" : "incremental";
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return found;
}

bool
geonn_refresh_by_changes(const GeonnCache *cache, GeonnJoin *join, TupleDesc row_type, GeonnLastRun *last_run,
						 bool always, GeonnRunResult *result)
{
	uint64		(*seed)[2] = last_run->sides.seed;
	Increment	increment = {
		.cache = cache,
		.join = join,
		.row_type = row_type,
		.observations = geonn_baseline_create(cache, join, SIDE_OBSERVATIONS, seed[SIDE_OBSERVATIONS]),
		.references = geonn_baseline_create(cache, join, SIDE_REFERENCES, seed[SIDE_REFERENCES])
	};
	bool		done = find_and_update(&increment, last_run, always, result);

	geonn_baseline_close(increment.observations);
	geonn_baseline_close(increment.references);
	if (done)
	{
		result->rows = last_run->rows + result->inserted - result->deleted;
		Assert(result->rows >= 0);
		last_run->wasted = 0;
	}
	return done;
}
