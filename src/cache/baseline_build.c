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
 * then also added to bags of their blocks.  If all bags are those of the directory, the stored baseline
 * can stay, and nothing is sorted to the end or written.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#include "cache/changed_pages.h"
#include "cache/point_sort.h"

/* the number of a point for which the search has no rows */
#define NOT_SEARCHED	PG_UINT64_MAX

/* first room of the reaches */
#define FIRST_REACHES	1024

struct BaselineBuild
{
	GeonnBaseline *baseline;
	const GeonnQuestion *question;	/* NULL: the points have no reaches */
	MemoryContext context;
	MemoryContext row_context;
	PointSort  *sort;
	StringInfoData bytes;
	Bag		   *bags;			/* [baseline->count]; NULL: no baseline is stored */
	float	   *reaches;		/* [searched]; NaN: the observation has less than k rows so far */
	uint64		searched;
	uint64		room;
};

BaselineBuild *
geonn_baseline_build_begin(GeonnBaseline *baseline, const GeonnQuestion *question, bool compares)
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
	if (compares)
	{
		geonn_baseline_load(baseline);
		build->bags = MemoryContextAllocExtended(context, baseline->count * sizeof(Bag),
												 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	}
	MemoryContextSwitchTo(former);
	return build;
}

/*
 * Does the stored baseline have the same points?
 */
static bool
has_same_points(const BaselineBuild *build)
{
	const GeonnBaseline *baseline = build->baseline;

	for (uint32 i = 0; build->bags != NULL && i < baseline->count; i++)
	{
		if (!geonn_bag_is(&build->bags[i], &baseline->blocks[i].bag))
			return false;
	}
	return build->bags != NULL;
}

/*
 * Number the next observation that is searched for.
 */
static uint64
next_number(BaselineBuild *build)
{
	if (build->searched == build->room)
	{
		build->room *= 2;
		build->reaches = repalloc_huge(build->reaches, build->room * sizeof(float));
	}
	build->reaches[build->searched] = NAN;
	return build->searched++;
}

void
geonn_baseline_build_add(BaselineBuild *build, const PointRow *row, bool is_searched)
{
	GeonnBaseline *baseline = build->baseline;
	uint64		number = is_searched ? next_number(build) : NOT_SEARCHED;
	MemoryContext former;
	BaselinePoint point;

	if (!geonn_baseline_has(&baseline->schema, row))
		return;
	former = MemoryContextSwitchTo(build->row_context);
	resetStringInfo(&build->bytes);
	geonn_baseline_write(baseline, row, &build->bytes, &point);
	geonn_pages_add(baseline->pages, row, &point.fingerprint);
	if (build->bags != NULL)
		geonn_bag_add(&build->bags[geonn_baseline_find_block(baseline, point.fingerprint.key)],
					  point.fingerprint.hash);
	geonn_point_sort_add(build->sort, &(SortedPoint) {point.fingerprint, number, point.length, point.bytes});
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

/*
 * The reach of the point of this number.
 */
static float
reach_of(const BaselineBuild *build, uint64 number, const char *bytes)
{
	if (build->question == NULL)
		return -1;
	if (number != NOT_SEARCHED && !isnan(build->reaches[number]))
		return build->reaches[number];
	return geonn_baseline_reach(&build->baseline->schema, build->question, bytes, 0, 0);
}

/*
 * Write the points in place of the stored baseline.
 */
static void
write_points(BaselineBuild *build)
{
	BaselineWriter *writer = geonn_baseline_writer_begin(build->baseline, true);
	SortedPoint sorted;

	while (geonn_point_sort_next(build->sort, &sorted))
	{
		BaselinePoint point = {
			.fingerprint = sorted.fingerprint,
			.bytes = sorted.bytes,
			.length = sorted.length,
			.reach = reach_of(build, sorted.number, sorted.bytes)
		};

		geonn_baseline_add(writer, &point);
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
	geonn_baseline_close(build->baseline);
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
