/*
 * affected.c
 *		A cache's table is brought up to date by what has changed.
 *
 * Let X be the points of the references that were added since the last refresh, and of those that
 * were removed, each in its group and with its limits (point_limits.h): its radius and windows.  These
 * are part of a point's contents, as its coordinates are: a reference that moved, or whose limits
 * changed, was removed with the former ones and added with the present ones.  Let o be an observation
 * that has not changed itself, and so has the same limits as before.  Its reach is the distance of the
 * last of its k rows; or if it has fewer than k, or if all references within a radius are asked for, the
 * smaller of the greatest distance asked for and o's own radius.  A point of X is a candidate of o if it
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
 * An observation with a NULL or empty window, or a negative radius, has no candidates: its reach is -1.
 *
 * The engine computes all of these distances, and always the same for the same two points, so
 * "within" needs no tolerance: o is searched for again if the distance of its nearest candidate in X,
 * by the same metric, is not greater than the reach (which is stored rounded up).  exclude_self may
 * leave this nearest point out of o's rows; o is then searched for in vain.
 *
 * So two kinds of observations are searched for among all references: those that were added
 * themselves, and those within whose reach X has a point.  The second kind is found in three steps,
 * the first two of which pass over most observations and need no engine: points that are within a
 * distance have a squared chord within the metric's limit for it, and latitudes that differ by no
 * more than so many degrees (common/metric.h).  cache/point_tree.c tells whether X has a point
 * within such a limit, whatever its group and limits.
 *
 *	 - A block of the baseline counts only if the distance of X from its centre is not greater than
 *	   the block's radius and its greatest reach together (distances on a surface obey the triangle
 *	   inequality; rounding is far below the margin).
 *	 - An observation of such a block counts only if one of these points of X is within the latitudes
 *	   and the limit of its reach.
 *	 - The engine searches for the others' nearest candidates in X.
 *
 * The rows found are compared with those that the table has for the same ids, and the table's rows
 * of removed ids are deleted.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "cache/affected.h"
#include "cache/point_tree.h"
#include "common/metric.h"
#include "base/compat.h"

/* metres by which rounding may make computed distances break the triangle inequality, at most */
#define MARGIN			1e-5

/* points of X that are looked at one by one for each observation of a block */
#define MOST_NEAR		16

/* observations for which memory is allocated first */
#define INITIAL_ROOM	1024

/* blocks whose observations are searched for among X together */
#define BLOCKS_A_SLICE	4096

typedef struct Refresh
{
	const GeonnIncrement *increment;
	MemoryContext context;		/* of all that lives to the end */
	MemoryContext row_context;
	BaselineRow row;			/* for values that are not used */
	const PointTree *changes;	/* X */
	TreePoint	near[MOST_NEAR];	/* the points of X that are near the present block */
	uint32		near_count;		/* greater: not all of them are known */

	/* all affected observations */
	Affected   *affected;
	uint64		count;
	uint64		room;

	/* the observations of some blocks; some of them are affected */
	MemoryContext slice_context;
	Affected   *slice;
	uint64		slice_count;
	uint64		slice_room;
	uint64		removed;		/* index of the next removed observation */
} Refresh;

/* ---- searches among X ---- */

static const char *
bytes_of_change(const void *source, uint64 number)
{
	const BaselineChanges *changes = source;

	return number < changes->added_count ? changes->added[number].bytes :
		changes->removed[number - changes->added_count].bytes;
}

/*
 * Find the nearest candidate in X of each of these points.  Consumes the point's number and the
 * distance in metres.
 */
static void
search_changes(const GeonnIncrement *increment, const GivenPoints *given,
			   void (*consume) (void *state, uint64 number, double distance), void *state)
{
	const BaselineChanges *changes = &increment->reference_changes;
	GeonnJoin	join = {
		.observations = increment->join->observations,
		.references = increment->join->references,
		.label = increment->join->label,
		.question = increment->join->question,
		.invalid = GEONN_INVALID_COUNTED,
		.given = given,
		.given_references = geonn_baseline_points(&increment->references->schema,
												  changes->added_count + changes->removed_count, changes,
												  bytes_of_change)
	};
	TupleDesc	type = CreateTemplateTupleDesc(2);
	GeonnSearch *search;
	Datum		values[2];
	bool		nulls[2];

	TupleDescInitEntry(type, 1, "ord", INT8OID, -1, 0);
	TupleDescInitEntry(type, 2, "distance", FLOAT8OID, -1, 0);
	TupleDescFinalize(type);
	join.question.k = 1;
	join.question.max_distance = INFINITY;
	join.question.ties = false;
	search = geonn_search_begin(&join, type);
	while (geonn_search_next(search, values, nulls))
		consume(state, (uint64) DatumGetInt64(values[0]) - 1, DatumGetFloat8(values[1]));
	geonn_search_end(search);
}

/* ---- blocks that X may affect ---- */

/*
 * Make the tree of X.
 */
static const PointTree *
tree_of_changes(Refresh *refresh)
{
	const GeonnIncrement *increment = refresh->increment;
	const BaselineChanges *changes = &increment->reference_changes;
	uint64		count = changes->added_count + changes->removed_count;
	TreePoint  *points = MemoryContextAllocHuge(refresh->context, count * sizeof(TreePoint));
	MemoryContext former = MemoryContextSwitchTo(refresh->row_context);
	BaselineRow row = geonn_baseline_row(&increment->references->schema);

	for (uint64 i = 0; i < count; i++)
	{
		(void) geonn_baseline_read(&increment->references->schema, bytes_of_change(changes, i), &row);
		points[i].at = geonn_metric_vector(increment->join->question.metric, row.latitude, row.longitude);
		points[i].latitude = row.latitude;
	}
	MemoryContextSwitchTo(former);
	MemoryContextReset(refresh->row_context);
	return geonn_point_tree_create(points, (uint32) count);
}

/*
 * The limit for X to affect some row of the block.
 */
static double
limit_of_block(const Refresh *refresh, const BaselineBlock *block)
{
	return geonn_metric_wide_limit(refresh->increment->join->question.metric,
								   (double) block->radius + block->reach + MARGIN);
}

/*
 * Find the blocks, in their order, with observations that X may affect.  Returns how many.
 */
static uint32
find_near_blocks(const Refresh *refresh, uint32 *blocks)
{
	const GeonnBaseline *baseline = refresh->increment->observations;
	uint32		count = 0;

	for (uint32 i = 0; i < baseline->count; i++)
	{
		const BaselineBlock *block = &baseline->blocks[i];

		CHECK_FOR_INTERRUPTS();
		if (block->radius >= 0 && block->reach >= 0 &&
			geonn_point_tree_has_near(refresh->changes, block->centre, limit_of_block(refresh, block)))
			blocks[count++] = i;
	}
	return count;
}

/* ---- observations that X affects ---- */

static void
add_affected(Refresh *refresh, const Affected *affected)
{
	char	   *bytes = MemoryContextAlloc(refresh->context, affected->length);

	if (refresh->count == refresh->room)
	{
		refresh->room = Max(refresh->room * 2, INITIAL_ROOM);
		refresh->affected = refresh->count == 0 ?
			MemoryContextAllocHuge(refresh->context, refresh->room * sizeof(Affected)) :
			repalloc_huge(refresh->affected, refresh->room * sizeof(Affected));
	}
	memcpy(bytes, affected->bytes, affected->length);
	refresh->affected[refresh->count] = *affected;
	refresh->affected[refresh->count++].bytes = bytes;
}

/*
 * Is this row of a block a removed observation?  Callers ask for rows in their order.
 */
static bool
was_removed(Refresh *refresh, uint32 block, uint32 row)
{
	const BaselineChanges *changes = &refresh->increment->observation_changes;

	while (refresh->removed < changes->removed_count &&
		   (changes->removed[refresh->removed].block < block ||
			(changes->removed[refresh->removed].block == block &&
			 changes->removed[refresh->removed].row < row)))
		refresh->removed++;
	return refresh->removed < changes->removed_count &&
		changes->removed[refresh->removed].block == block &&
		changes->removed[refresh->removed].row == row;
}

/*
 * Read the next row of a block.  Returns false at the end.
 */
static bool
next_row(Refresh *refresh, const char **contents, const char *end, Affected *row)
{
	MemoryContext former = MemoryContextSwitchTo(refresh->row_context);
	Size		length;
	bool		found;

	MemoryContextReset(refresh->row_context);
	found = geonn_baseline_next(&refresh->increment->observations->schema, contents, end, &refresh->row,
								&row->reach, &row->bytes, &length);
	if (found)
		row->length = (uint32) length;
	MemoryContextSwitchTo(former);
	return found;
}

/*
 * May the present row of a block, with this reach, be affected?
 */
static bool
may_be_affected(const Refresh *refresh, float reach)
{
	enum geonn_metric metric = refresh->increment->join->question.metric;
	const BaselineRow *row = &refresh->row;
	double		latitudes = geonn_metric_latitudes(metric, reach);
	double		limit = geonn_metric_wide_limit(metric, reach);
	struct geonn_vector at;
	bool		has_vector = false;

	if (!row->placed || reach < 0)
		return false;
	if (refresh->near_count > MOST_NEAR)
		return geonn_point_tree_has_near(refresh->changes,
										 geonn_metric_vector(metric, row->latitude, row->longitude), limit);
	for (uint32 i = 0; i < refresh->near_count; i++)
	{
		if (fabs(refresh->near[i].latitude - row->latitude) > latitudes)
			continue;
		if (!has_vector)
			at = geonn_metric_vector(metric, row->latitude, row->longitude);
		has_vector = true;
		if (geonn_tree_point_is_near(&refresh->near[i], at, limit))
			return true;
	}
	return false;
}

static void
take_block(void *state, uint32 block, const char *contents, Size length)
{
	Refresh    *refresh = state;
	const char *end = contents + length;
	const BaselineBlock *entry = &refresh->increment->observations->blocks[block];
	Affected	row = {.block = block};

	refresh->near_count = geonn_point_tree_find(refresh->changes, entry->centre,
												limit_of_block(refresh, entry), refresh->near, MOST_NEAR);
	for (row.row = 0; next_row(refresh, &contents, end, &row); row.row++)
	{
		char	   *bytes;

		if (!may_be_affected(refresh, row.reach) || was_removed(refresh, block, (uint32) row.row))
			continue;
		if (refresh->slice_count == refresh->slice_room)
		{
			refresh->slice_room *= 2;
			refresh->slice = repalloc_huge(refresh->slice, refresh->slice_room * sizeof(Affected));
		}
		bytes = MemoryContextAlloc(refresh->slice_context, row.length);
		memcpy(bytes, row.bytes, row.length);
		refresh->slice[refresh->slice_count] = row;
		refresh->slice[refresh->slice_count++].bytes = bytes;
	}
}

static void
take_distance(void *state, uint64 number, double distance)
{
	Refresh    *refresh = state;
	Affected   *row = &refresh->slice[number];

	if (distance <= row->reach)
	{
		row->fingerprint = geonn_baseline_fingerprint(refresh->increment->observations, row->bytes,
													  row->length);
		add_affected(refresh, row);
	}
}

/*
 * Find the observations of these blocks within whose reach X has a point.
 */
static void
search_blocks(Refresh *refresh, const uint32 *blocks, uint32 count)
{
	const GeonnIncrement *increment = refresh->increment;
	MemoryContext former;

	refresh->slice_context = AllocSetContextCreate(refresh->context, "geonn slice",
												   ALLOCSET_DEFAULT_SIZES);
	refresh->removed = 0;
	former = MemoryContextSwitchTo(refresh->slice_context);
	while (count > 0)
	{
		uint32		some = Min(count, BLOCKS_A_SLICE);

		refresh->slice_count = 0;
		refresh->slice_room = INITIAL_ROOM;
		refresh->slice = MemoryContextAllocHuge(refresh->slice_context,
												refresh->slice_room * sizeof(Affected));
		geonn_baseline_read_blocks(increment->observations, blocks, some, GetActiveSnapshot(),
								   take_block, refresh);
		if (refresh->slice_count > 0)
			search_changes(increment,
						   geonn_baseline_points(&increment->observations->schema, refresh->slice_count,
												 refresh->slice, geonn_bytes_of_affected),
						   take_distance, refresh);
		MemoryContextReset(refresh->slice_context);
		blocks += some;
		count -= some;
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(refresh->slice_context);
}

/* ---- all affected observations ---- */

static int
by_row(const void *first, const void *second)
{
	const Affected *a = first;
	const Affected *b = second;

	if (a->block != b->block)
		return a->block < b->block ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

/*
 * Find all affected observations.  Returns false if they are more than this share.
 */
static bool
find_affected(Refresh *refresh, double most)
{
	const GeonnIncrement *increment = refresh->increment;
	const BaselineChanges *changes = &increment->observation_changes;
	uint64		limit = (uint64) (most * (double) increment->observations->rows);

	if (increment->reference_changes.added_count + increment->reference_changes.removed_count > 0)
	{
		uint32	   *blocks = MemoryContextAllocHuge(refresh->context,
													increment->observations->count * sizeof(uint32));
		uint32		count;

		refresh->changes = tree_of_changes(refresh);
		count = find_near_blocks(refresh, blocks);
		search_blocks(refresh, blocks, count);
		pfree(blocks);
	}
	if (most < 1 && refresh->count + changes->added_count > limit)
		return false;
	if (refresh->count > 0)
		qsort(refresh->affected, refresh->count, sizeof(Affected), by_row);
	for (uint64 i = 0; i < changes->added_count; i++)
	{
		const BaselineChange *added = &changes->added[i];
		Affected	affected = {
			.block = added->block,
			.row = -1,
			.fingerprint = added->fingerprint,
			.bytes = added->bytes,
			.length = (uint32) added->length,
			.reach = -1
		};

		add_affected(refresh, &affected);
	}
	return true;
}

bool
geonn_increment(const GeonnIncrement *increment, double most, GeonnDifference *difference,
				int64 *searched)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn increment",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	Refresh		refresh = {.increment = increment,.context = context};
	bool		found;

	refresh.row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_SMALL_SIZES);
	refresh.row = geonn_baseline_row(&increment->observations->schema);
	found = find_affected(&refresh, most);
	if (found)
	{
		geonn_increment_rows(increment, refresh.affected, refresh.count, difference);
		geonn_increment_baselines(increment, refresh.affected, refresh.count);
		*searched = (int64) refresh.count;
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return found;
}
