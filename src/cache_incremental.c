/*
 * cache_incremental.c
 *		A cache's table is brought up to date by what has changed.
 *
 * Let X be the points of the references that have come since the last refresh, and of those
 * that have gone, each in its group; a reference that moved has gone and come.  The
 * rows that the table has for an observation o that has not changed itself
 * are still right if no point of X in o's group is within o's bound, which is the distance
 * of the last of its k rows, or the greatest distance asked for where it has fewer
 * than k (or where all within a radius are asked for):
 *
 *	 - all references of its rows are still there and where they were, as each of
 *	   them is within the bound, and those that are not are in X;
 *	 - a reference that belongs among its rows now and did not before has come, or
 *	   another one has gone: both are in X, and the latter was within the bound.  One that
 *	   has come belongs there only if it is as near as the k-th or nearer, which is to
 *	   say within the bound, whatever its id; with ties => 'all' also at just the
 *	   bound.  Where o has fewer than k, all within the greatest distance belong there.
 *
 * All of these distances are numbers that the engine computes, always the same for the
 * same two points, so "within" is decided without any tolerance: o is searched for again
 * if the distance of the nearest point of X, by the same metric, is not greater than
 * the bound (which is kept rounded up).  What exclude_self leaves out only makes
 * for some that are searched for in vain.
 *
 * So the observations that are searched for among all references are those that have come
 * themselves, and those within whose bound X has a point.  The latter are found by
 * two searches among X alone: for the centres of the copy's parts, of which
 * only those count from where X is not farther than the part's radius and its greatest
 * bound together (distances on a surface obey the triangle inequality; rounding is
 * far below the margin), and then for the observations of these parts.
 *
 * What is found is compared with the rows that the table has for the same ids,
 * and rows of ids that are there no more are deleted.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "cache_incremental.h"

/* metres by which rounding may make computed distances differ from the triangle's */
#define MARGIN			1e-5

/* parts whose observations are searched for among X at a time */
#define PARTS_A_SLICE	4096

typedef struct Refresh
{
	const GeonnIncrement *increment;
	MemoryContext context;		/* of all of it */
	MemoryContext row_context;
	CopyRow		row;			/* for what is only passed by */

	/* all that are searched for again */
	Work	   *work;
	uint64		count;
	uint64		room;

	/* the observations of some parts, of which some are */
	MemoryContext slice_context;
	Work	   *slice;
	uint64		slice_count;
	uint64		slice_room;
	uint64		gone;			/* next of the observations that have gone */
} Refresh;

/* ---- searches among X ---- */

static const char *
bytes_of_change(const void *source, uint64 number)
{
	const CopyChanges *changes = source;

	return number < changes->added_count ? changes->added[number].bytes :
		changes->gone[number - changes->added_count].bytes;
}

/*
 * The nearest of X to each of these points, all X or those of its group: consumes the
 * point's number and the distance in metres.
 */
static void
search_changes(const GeonnIncrement *increment, const GivenPoints *given, bool by_groups,
			   void (*consume) (void *state, uint64 number, double distance), void *state)
{
	const CopyChanges *changes = &increment->reference_changes;
	PointSource observations = *increment->join->observations;
	PointSource references = *increment->join->references;
	GeonnJoin	join = {
		.observations = &observations,
		.references = &references,
		.label = increment->join->label,
		.question = increment->join->question,
		.invalid = GEONN_INVALID_COUNTED,
		.given = given,
		.given_references = geonn_copy_points(&increment->references->shape,
										  changes->added_count + changes->gone_count, changes,
										  bytes_of_change)
	};
	TupleDesc	type = CreateTemplateTupleDesc(2);
	GeonnSearch *search;
	Datum		values[2];
	bool		nulls[2];

	TupleDescInitEntry(type, 1, "ord", INT8OID, -1, 0);
	TupleDescInitEntry(type, 2, "distance", FLOAT8OID, -1, 0);
	join.question.neighbours = 1;
	join.question.max_distance = INFINITY;
	join.question.ties = false;
	if (!by_groups)
		observations.by_count = references.by_count = 0;
	search = geonn_search_begin(&join, type);
	while (geonn_search_next(search, values, nulls))
		consume(state, (uint64) DatumGetInt64(values[0]) - 1, DatumGetFloat8(values[1]));
	geonn_search_end(search);
}

/* ---- parts that X may reach ---- */

typedef struct Centres
{
	const CopyPart *all;
	uint32	   *parts;			/* those that have a centre */
	uint64		count;
	bool	   *reached;		/* of all */
} Centres;

static void
give_centre(void *state, uint64 number, PointRow *row)
{
	const Centres *centres = state;
	const CopyPart *part = &centres->all[centres->parts[number]];

	row->latitude = part->latitude;
	row->longitude = part->longitude;
}

static void
take_centre(void *state, uint64 number, double distance)
{
	Centres    *centres = state;
	uint32		number_of_all = centres->parts[number];
	const CopyPart *part = &centres->all[number_of_all];

	if (distance <= part->radius + part->bound + MARGIN)
		centres->reached[number_of_all] = true;
}

/*
 * The parts, in their order, of which X may reach observations; returns how many.
 */
static uint32
find_reached(Refresh *refresh, uint32 *parts)
{
	const GeonnCopy *copy = refresh->increment->observations;
	Centres		centres = {.all = copy->parts,.parts = parts};
	GivenPoints given = {0, give_centre, &centres};
	uint32		count = 0;

	centres.reached = MemoryContextAllocExtended(refresh->context, copy->count * sizeof(bool),
												 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint32 i = 0; i < copy->count; i++)
	{
		if (copy->parts[i].radius >= 0 && copy->parts[i].bound >= 0)
			parts[centres.count++] = i;
	}
	given.count = centres.count;
	search_changes(refresh->increment, &given, false, take_centre, &centres);
	for (uint32 i = 0; i < copy->count; i++)
	{
		if (centres.reached[i])
			parts[count++] = i;
	}
	pfree(centres.reached);
	return count;
}

/* ---- observations that X reaches ---- */

static void
add_work(Refresh *refresh, const Work *work)
{
	char	   *bytes = MemoryContextAlloc(refresh->context, work->length);

	if (refresh->count == refresh->room)
	{
		refresh->room = Max(refresh->room * 2, 1024);
		refresh->work = refresh->count == 0 ?
			MemoryContextAllocHuge(refresh->context, refresh->room * sizeof(Work)) :
			repalloc_huge(refresh->work, refresh->room * sizeof(Work));
	}
	memcpy(bytes, work->bytes, work->length);
	refresh->work[refresh->count] = *work;
	refresh->work[refresh->count++].bytes = bytes;
}

/*
 * Is this row of a part one of the observations that have gone?  Rows are asked for in
 * their order.
 */
static bool
has_gone(Refresh *refresh, uint32 part, uint32 row)
{
	const CopyChanges *changes = &refresh->increment->observation_changes;

	while (refresh->gone < changes->gone_count &&
		   (changes->gone[refresh->gone].part < part ||
			(changes->gone[refresh->gone].part == part && changes->gone[refresh->gone].row < row)))
		refresh->gone++;
	return refresh->gone < changes->gone_count && changes->gone[refresh->gone].part == part &&
		changes->gone[refresh->gone].row == row;
}

/*
 * The rows of a part, one after the other: false at the end.
 */
static bool
next_row(Refresh *refresh, const char **contents, const char *end, Work *row)
{
	MemoryContext former = MemoryContextSwitchTo(refresh->row_context);
	Size		length;
	bool		found;

	MemoryContextReset(refresh->row_context);
	found = geonn_copy_next(&refresh->increment->observations->shape, contents, end, &refresh->row,
							&row->bound, &row->bytes, &length);
	if (found)
		row->length = (uint32) length;
	MemoryContextSwitchTo(former);
	return found;
}

static void
take_part(void *state, uint32 part, const char *contents, Size length)
{
	Refresh    *refresh = state;
	const char *end = contents + length;
	Work		row = {.part = part};

	for (row.row = 0; next_row(refresh, &contents, end, &row); row.row++)
	{
		char	   *bytes;

		if (!refresh->row.placed || has_gone(refresh, part, (uint32) row.row))
			continue;
		if (refresh->slice_count == refresh->slice_room)
		{
			refresh->slice_room *= 2;
			refresh->slice = repalloc_huge(refresh->slice, refresh->slice_room * sizeof(Work));
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
	Work	   *row = &refresh->slice[number];

	if (distance <= row->bound)
	{
		row->place = geonn_copy_place(refresh->increment->observations, row->bytes, row->length);
		add_work(refresh, row);
	}
}

/*
 * Find the observations of these parts within whose bound X has a point.
 */
static void
find_affected(Refresh *refresh, const uint32 *parts, uint32 count)
{
	const GeonnIncrement *increment = refresh->increment;
	MemoryContext former;

	refresh->slice_context = AllocSetContextCreate(refresh->context, "geonn slice",
												   ALLOCSET_DEFAULT_SIZES);
	refresh->gone = 0;
	former = MemoryContextSwitchTo(refresh->slice_context);
	while (count > 0)
	{
		uint32		some = Min(count, PARTS_A_SLICE);

		refresh->slice_count = 0;
		refresh->slice_room = 64 * (uint64) some;
		refresh->slice = MemoryContextAllocHuge(refresh->slice_context,
												refresh->slice_room * sizeof(Work));
		geonn_copy_read_parts(increment->observations, parts, some, GetActiveSnapshot(),
							  take_part, refresh);
		search_changes(increment,
					   geonn_copy_points(&increment->observations->shape, refresh->slice_count,
									 refresh->slice, geonn_bytes_of_work),
					   true, take_distance, refresh);
		MemoryContextReset(refresh->slice_context);
		parts += some;
		count -= some;
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(refresh->slice_context);
}

/* ---- all that are searched for again ---- */

static int
by_row(const void *first, const void *second)
{
	const Work *a = first;
	const Work *b = second;

	if (a->part != b->part)
		return a->part < b->part ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

/*
 * Find them; false: they are more than this share.
 */
static bool
find_work(Refresh *refresh, double most)
{
	const GeonnIncrement *increment = refresh->increment;
	const CopyChanges *changes = &increment->observation_changes;
	uint64		limit = (uint64) (most * (double) increment->observations->rows);

	if (increment->reference_changes.added_count + increment->reference_changes.gone_count > 0)
	{
		uint32	   *parts = MemoryContextAllocHuge(refresh->context,
												   increment->observations->count * sizeof(uint32));
		uint32		count = find_reached(refresh, parts);
		find_affected(refresh, parts, count);
		pfree(parts);
	}
	if (most < 1 && refresh->count + changes->added_count > limit)
		return false;
	if (refresh->count > 0)
		qsort(refresh->work, refresh->count, sizeof(Work), by_row);
	for (uint64 i = 0; i < changes->added_count; i++)
	{
		const CopyChange *added = &changes->added[i];
		Work		work = {
			.part = added->part,
			.row = -1,
			.place = added->place,
			.bytes = added->bytes,
			.length = (uint32) added->length,
			.bound = -1
		};

		add_work(refresh, &work);
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
	refresh.row = geonn_copy_row(&increment->observations->shape);
	found = find_work(&refresh, most);
	if (found)
	{
		geonn_increment_rows(increment, refresh.work, refresh.count, difference);
		geonn_increment_copies(increment, refresh.work, refresh.count);
		*searched = (int64) refresh.count;
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return found;
}
