/*
 * baseline_build.c
 *		A baseline is made of all rows of a source.
 *
 * The points are sorted by their keys, and written in that order.  References are read for this
 * alone.  Observations are read by the search that also finds the rows of the table
 * (cache/full_search.c): while it reads them they are added here, and while it returns rows, an array
 * gets their reaches, by the numbers that the search gives to observations.  A point takes its number
 * through the sort, and is written with the reach that the array has for it.
 *
 * If a baseline of the side is stored that may have the same points, the build has its seed.  Points are
 * then also added to sums of their blocks.  If all sums are those of the directory, the stored baseline
 * can stay, and nothing is sorted to the end or written.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "cache/block_sums.h"
#include "cache/changed_pages.h"
#include "cache/point_sort.h"

/* the number of a point for which the search has no rows */
#define NOT_SEARCHED	PG_UINT64_MAX

/* first room of the reaches */
#define FIRST_REACHES	1024

/* points that are written together: their reaches are fetched into the processor's cache before */
#define POINTS_AT_ONCE	64

struct BaselineBuild
{
	GeonnBaseline *baseline;
	const GeonnQuestion *question;	/* NULL: the points have no reaches */
	MemoryContext context;
	MemoryContext row_context;
	PointSort  *sort;
	StringInfoData bytes;
	BlockSum   *sums;			/* [baseline->count]; NULL: no baseline is stored */
	float	   *reaches;		/* [searched] */
	uint64		searched;
	uint64		room;
};

float
geonn_baseline_reach(const GeonnQuestion *question, const GeonnLimits *limits, uint64 rows,
					 double distance)
{
	if (question->k > 0 && rows >= question->k)
		return geonn_rounded_up(distance);
	if (limits == NULL)
		return geonn_rounded_up(question->max_distance);
	return limits->none ? -1 : geonn_rounded_up(Min(question->max_distance, limits->radius));
}

BaselineBuild *
geonn_baseline_build_begin(GeonnBaseline *baseline, const GeonnQuestion *question)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn baseline",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	BaselineBuild *build = palloc0(sizeof(BaselineBuild));

	build->baseline = baseline;
	build->question = question;
	build->context = context;
	build->row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_SMALL_SIZES);
	build->sort = geonn_point_sort_create(maintenance_work_mem);
	initStringInfo(&build->bytes);
	build->room = FIRST_REACHES;
	build->reaches = palloc(build->room * sizeof(float));
	MemoryContextSwitchTo(former);
	return build;
}

void
geonn_baseline_build_compare(BaselineBuild *build)
{
	MemoryContext former = MemoryContextSwitchTo(build->context);

	geonn_baseline_load(build->baseline, GetActiveSnapshot());
	build->sums = geonn_block_sums_create(build->baseline);
	MemoryContextSwitchTo(former);
}

static void
add_to_sum(BaselineBuild *build, const Fingerprint *fingerprint)
{
	uint32		block = geonn_baseline_find_block(build->baseline, fingerprint->key);

	geonn_block_sum_add(&build->sums[block], fingerprint);
}

/*
 * Are the points those of the stored baseline?
 */
static bool
has_same_points(const BaselineBuild *build)
{
	const GeonnBaseline *baseline = build->baseline;

	for (uint32 i = 0; build->sums != NULL && i < baseline->count; i++)
	{
		if (!geonn_block_sum_is(&build->sums[i], &baseline->blocks[i]))
			return false;
	}
	return build->sums != NULL;
}

/*
 * Number the next observation that is searched for.
 */
static uint64
next_number(BaselineBuild *build, const PointRow *row)
{
	if (build->searched == build->room)
	{
		build->room *= 2;
		build->reaches = repalloc_huge(build->reaches, build->room * sizeof(float));
	}
	build->reaches[build->searched] = geonn_baseline_reach(build->question, row->limits, 0, 0);
	return build->searched++;
}

void
geonn_baseline_build_add(BaselineBuild *build, const PointRow *row, bool is_searched)
{
	uint64		number = is_searched ? next_number(build, row) : NOT_SEARCHED;
	MemoryContext former;
	SortedPoint point;

	if (!geonn_baseline_has(&build->baseline->schema, row))
		return;
	former = MemoryContextSwitchTo(build->row_context);
	resetStringInfo(&build->bytes);
	geonn_baseline_write(build->baseline, row, &build->bytes, &point.fingerprint);
	geonn_pages_add(build->baseline->pages, row, &point.fingerprint);
	if (build->sums != NULL)
		add_to_sum(build, &point.fingerprint);
	point.number = number;
	point.bytes = build->bytes.data;
	point.length = (uint32) build->bytes.len;
	geonn_point_sort_add(build->sort, &point);
	MemoryContextSwitchTo(former);
	MemoryContextReset(build->row_context);
}

void
geonn_baseline_build_reach(BaselineBuild *build, uint64 number, uint64 rank, double distance)
{
	if (number >= build->searched)
		elog(ERROR, "a row is of no observation that was searched for");
	if (build->question->k > 0 && rank >= build->question->k)
		build->reaches[number] = geonn_rounded_up(distance);
}

static float
reach_of(const BaselineBuild *build, uint64 number, const char *bytes)
{
	GeonnLimits limits;
	bool		placed;

	memcpy(&placed, bytes, sizeof(placed));
	if (build->question == NULL || !placed)
		return -1;
	if (number != NOT_SEARCHED)
		return build->reaches[number];
	return geonn_baseline_reach(build->question,
								geonn_baseline_limits(&build->baseline->schema, bytes, &limits), 0, 0);
}

/*
 * Take the next points from the sort, and copy their bytes, one after the other.
 */
static int
take_points(BaselineBuild *build, SortedPoint *points)
{
	int			count = 0;

	resetStringInfo(&build->bytes);
	while (count < POINTS_AT_ONCE && geonn_point_sort_next(build->sort, &points[count]))
	{
		const SortedPoint *point = &points[count++];

		if (point->number != NOT_SEARCHED)
			__builtin_prefetch(&build->reaches[point->number]);
		appendBinaryStringInfo(&build->bytes, point->bytes, (int) point->length);
	}
	return count;
}

/*
 * Write the points in place of the stored baseline.
 */
static void
write_points(BaselineBuild *build)
{
	BaselineWriter *writer = geonn_baseline_writer_begin(build->baseline, true);
	SortedPoint points[POINTS_AT_ONCE];
	int			count;

	while ((count = take_points(build, points)) > 0)
	{
		const char *bytes = build->bytes.data;

		for (int i = 0; i < count; i++)
		{
			geonn_baseline_add(writer, &points[i].fingerprint,
							   reach_of(build, points[i].number, bytes), bytes, points[i].length);
			bytes += points[i].length;
		}
	}
	geonn_baseline_writer_end(writer);
}

bool
geonn_baseline_build_end(BaselineBuild *build, bool may_keep)
{
	MemoryContext former = MemoryContextSwitchTo(build->context);
	bool		keeps = may_keep && has_same_points(build);

	if (!keeps)
		write_points(build);
	geonn_pages_store(build->baseline->pages);
	geonn_point_sort_end(build->sort);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(build->context);
	return keeps;
}

/* ---- a source that is read for its baseline alone ---- */

static void
take_row(void *state, const PointRow *row)
{
	geonn_baseline_build_add(state, row, false);
}

void
geonn_baseline_build_read(BaselineBuild *build, const PointSource *source)
{
	geonn_read_points(source, GEONN_INVALID_COUNTED, take_row, build);
}
