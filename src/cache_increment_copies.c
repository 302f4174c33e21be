/*
 * cache_increment_copies.c
 *		A cache's copies are brought up to date with what has changed.
 *
 * The parts in which something has changed are read, put together anew and written: without
 * points that have gone, with those that have come, and with new bounds.  Most of them, where few
 * references have moved, have nothing but new bounds.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "cache_incremental.h"

/* a point of a part that is put together */
typedef struct PartRow
{
	CopyPlace	place;
	float		bound;
	const char *bytes;
	uint32		length;
} PartRow;

typedef struct Mending
{
	GeonnCopy  *copy;
	CopyWriter *writer;
	const CopyChanges *changes;
	const Work *bounds;			/* new ones of rows that stay, by part and row */
	uint64		bound_count;
	const Work *come;			/* NULL: those that have come have no bounds; else by part and key */

	/* the next ones of each */
	uint64		gone;
	uint64		bound;
	uint64		added;

	CopyRow		row;
	MemoryContext part_context;
	PartRow    *rows;			/* of the present part */
	uint64		count;
	uint64		room;
} Mending;

static int
by_key(const void *first, const void *second)
{
	const PartRow *a = first;
	const PartRow *b = second;

	return a->place.key < b->place.key ? -1 : a->place.key > b->place.key;
}

static void
add_row(Mending *mending, const CopyPlace *place, float bound, const char *bytes, Size length)
{
	if (mending->count == mending->room)
	{
		mending->room *= 2;
		mending->rows = repalloc_huge(mending->rows, mending->room * sizeof(PartRow));
	}
	mending->rows[mending->count++] = (PartRow)
	{
		*place, bound, bytes, (uint32) length
	};
}

/*
 * The bound of a row that the part has had, whose bound was this one.
 */
static float
bound_now(Mending *mending, uint32 part, uint32 number, float bound)
{
	if (mending->bound < mending->bound_count && mending->bounds[mending->bound].part == part &&
		mending->bounds[mending->bound].row == (int32) number)
		return mending->bounds[mending->bound++].bound;
	return bound;
}

/*
 * A row that the part has had.
 */
static void
take_row(Mending *mending, uint32 part, uint32 number, float bound, const char *bytes, Size length)
{
	const CopyChanges *changes = mending->changes;
	CopyPlace	place;

	if (mending->gone < changes->gone_count && changes->gone[mending->gone].part == part &&
		changes->gone[mending->gone].row == number)
	{
		mending->gone++;
		return;
	}
	place = geonn_copy_place(mending->copy, bytes, length);
	add_row(mending, &place, bound_now(mending, part, number, bound), bytes, length);
}

/*
 * Do all rows of the part stay, and no others come?
 */
static bool
has_same_rows(const Mending *mending, uint32 part)
{
	const CopyChanges *changes = mending->changes;

	return (mending->gone == changes->gone_count || changes->gone[mending->gone].part != part) &&
		(mending->added == changes->added_count || changes->added[mending->added].part != part);
}

static void
mend_bounds(Mending *mending, uint32 part, const char *contents, Size length)
{
	char	   *mended = palloc(length);
	const char *next = contents;
	const char *bytes;
	Size		row_length;
	float		bound;
	float		greatest = -1;

	memcpy(mended, contents, length);
	for (uint32 number = 0; geonn_copy_next(&mending->copy->shape, &next, contents + length,
											&mending->row, &bound, &bytes, &row_length); number++)
	{
		bound = bound_now(mending, part, number, bound);
		memcpy(mended + (bytes - contents) - sizeof(bound), &bound, sizeof(bound));
		greatest = Max(greatest, bound);
	}
	geonn_copy_rebound(mending->writer, part, mended, length, greatest);
}

/*
 * Put it together from its rows that stay and those that come.
 */
static void
mend_rows(Mending *mending, uint32 part, const char *contents, Size length)
{
	const CopyChanges *changes = mending->changes;
	const char *end = contents + length;
	const char *bytes;
	Size		row_length;
	float		bound;

	mending->count = 0;
	for (uint32 number = 0; geonn_copy_next(&mending->copy->shape, &contents, end, &mending->row,
											&bound, &bytes, &row_length); number++)
		take_row(mending, part, number, bound, bytes, row_length);
	for (; mending->added < changes->added_count && changes->added[mending->added].part == part;
		 mending->added++)
	{
		const CopyChange *added = &changes->added[mending->added];

		add_row(mending, &added->place,
				mending->come == NULL ? -1 : mending->come[mending->added].bound,
				added->bytes, added->length);
	}
	qsort(mending->rows, mending->count, sizeof(PartRow), by_key);
	geonn_copy_replace(mending->writer, part);
	for (uint64 i = 0; i < mending->count; i++)
		geonn_copy_add(mending->writer, &mending->rows[i].place, mending->rows[i].bound,
					   mending->rows[i].bytes, mending->rows[i].length);
}

static void
mend_part(void *state, uint32 part, const char *contents, Size length)
{
	Mending    *mending = state;
	MemoryContext former = MemoryContextSwitchTo(mending->part_context);

	if (has_same_rows(mending, part))
		mend_bounds(mending, part, contents, length);
	else
		mend_rows(mending, part, contents, length);
	MemoryContextSwitchTo(former);
	MemoryContextReset(mending->part_context);
}

/*
 * The parts in which something has changed, in their order; returns how many.
 */
static uint32
touched_parts(const Mending *mending, uint32 *parts)
{
	const CopyChanges *changes = mending->changes;
	bool	   *touched = MemoryContextAllocExtended(CurrentMemoryContext,
													 mending->copy->count * sizeof(bool),
													 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	uint32		count = 0;

	for (uint64 i = 0; i < changes->added_count; i++)
		touched[changes->added[i].part] = true;
	for (uint64 i = 0; i < changes->gone_count; i++)
		touched[changes->gone[i].part] = true;
	for (uint64 i = 0; i < mending->bound_count; i++)
		touched[mending->bounds[i].part] = true;
	for (uint32 i = 0; i < mending->copy->count; i++)
	{
		if (touched[i])
			parts[count++] = i;
	}
	pfree(touched);
	return count;
}

static void
mend(GeonnCopy *copy, const CopyChanges *changes, const Work *bounds, uint64 bound_count,
	 const Work *come)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn mending",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	Mending		mending = {
		.copy = copy,
		.changes = changes,
		.bounds = bounds,
		.bound_count = bound_count,
		.come = come,
		.room = 256
	};
	uint32	   *parts = MemoryContextAllocHuge(context, copy->count * sizeof(uint32));
	uint32		count = touched_parts(&mending, parts);

	if (count > 0)
	{
		mending.rows = palloc(mending.room * sizeof(PartRow));
		mending.row = geonn_copy_row(&copy->shape);
		mending.writer = geonn_copy_writer_begin(copy, false);
		mending.part_context = AllocSetContextCreate(context, "geonn part", ALLOCSET_DEFAULT_SIZES);
		geonn_copy_read_parts(copy, parts, count, GetActiveSnapshot(), mend_part, &mending);
		geonn_copy_writer_end(mending.writer);
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}

void
geonn_increment_copies(const GeonnIncrement *increment, const Work *work, uint64 count)
{
	const CopyChanges *observations = &increment->observation_changes;
	uint64		bounds = count - observations->added_count;

	mend(increment->observations, observations, work, bounds, work + bounds);
	mend(increment->references, &increment->reference_changes, NULL, 0, NULL);
}
