/*
 * baseline_write.c
 *		Points of a baseline are sorted, and written in blocks.
 *
 * Points arrive in the order of their keys, and a block ends when it is large enough.  In an existing
 * baseline, one or more new blocks replace a block: the first of them keeps its number, and
 * overwrites its contents.  The directory is written last, and of its rows only those that have
 * changed.
 *
 * To bring a baseline up to date, the blocks in which something has changed are read, rebuilt and
 * written: without the points that were removed, with those that were added, and with new reaches.
 *
 * PostgreSQL's tuplesort would make a tuple of each point, and copy it: a first fill of 500,000 observations
 * takes 1.3 times as long with it as with the sort below.  That one sorts points by what they all have: a
 * key of 64 bits and bytes that nothing looks into.  They are appended to a buffer, and an array has for
 * each the key and where it begins.  The array is sorted.  When buffer and array reach
 * maintenance_work_mem, the points are written to a temporary file in their order, a run, and the buffer
 * begins anew.  At the end the runs, of which the last one stays in memory, are merged: a heap has the
 * present point of each run.
 */
#include "postgres.h"

#include <math.h>

#include "commands/tablespace.h"
#include "lib/binaryheap.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

#include "cache/baseline.h"
#include "common/geodesy.h"
#include "common/metric.h"

/*
 * A block is full when it has this many rows, or this many bytes.  With ids of eight bytes, three such blocks
 * fit a page with room left to update one.
 */
#define ROWS_A_BLOCK		60
#define BYTES_A_BLOCK	6000

/* a block's contents are one bytea, which cannot be longer */
#define BYTES_AT_MOST	(MaxAllocSize - VARHDRSZ - 1)

/* ---- points in the order of their keys ---- */

/* a point in the buffer or in a file; its bytes follow */
typedef struct Record
{
	Fingerprint fingerprint;
	uint64		number;
	uint32		length;
} Record;

/* where a point begins in the buffer */
typedef struct Place
{
	uint64		key;
	Size		offset;
} Place;

#define ST_SORT sort_places
#define ST_ELEMENT_TYPE Place
#define ST_COMPARE(a, b) ((a)->key < (b)->key ? -1 : (a)->key > (b)->key)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* read_place prefetches the point this many places ahead */
#define PLACES_AHEAD	16

/* initial sizes of the buffer and of places */
#define FIRST_BYTES		65536
#define FIRST_PLACES	1024

/* a run, and its present point */
typedef struct SortRun
{
	BufFile    *file;			/* NULL: the run's points are in memory */
	uint64		left;			/* how many points follow the present one */
	Record		record;
	char	   *bytes;
	Size		room;			/* size of `bytes`, if the run is in a file */
} SortRun;

struct PointSort
{
	MemoryContext context;
	Size		memory;			/* how many bytes buffer and array may take */
	char	   *buffer;
	Size		used;
	Size		room;
	Place	   *places;
	uint64		count;
	uint64		places_room;
	uint64		next;			/* the index of the place that is read next */
	List	   *runs;
	binaryheap *heap;			/* the unfinished runs; NULL: points are still being added */
};

PointSort *
geonn_point_sort_begin(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn point sort",
												  ALLOCSET_DEFAULT_SIZES);
	PointSort  *sort = MemoryContextAllocZero(context, sizeof(PointSort));

	sort->context = context;
	sort->memory = (Size) maintenance_work_mem * 1024;
	sort->room = FIRST_BYTES;
	sort->buffer = MemoryContextAlloc(context, sort->room);
	sort->places_room = FIRST_PLACES;
	sort->places = MemoryContextAlloc(context, sort->places_room * sizeof(Place));
	return sort;
}

/*
 * Copy the record of a place, and return where its bytes are.
 */
static char *
read_place(const PointSort *sort, uint64 place, Record *record)
{
	char	   *start = sort->buffer + sort->places[place].offset;

	if (place + PLACES_AHEAD < sort->count)
	{
		const char *ahead = sort->buffer + sort->places[place + PLACES_AHEAD].offset;

		__builtin_prefetch(ahead);
		__builtin_prefetch(ahead + sizeof(Record) + 24);
	}
	memcpy(record, start, sizeof(Record));
	return start + sizeof(Record);
}

static SortRun *
add_run(PointSort *sort)
{
	SortRun    *run = palloc0(sizeof(SortRun));

	run->left = sort->count;
	sort->runs = lappend(sort->runs, run);
	sort_places(sort->places, sort->count);
	return run;
}

/*
 * Write the points in memory to a file, in their order.
 */
static void
write_run(PointSort *sort)
{
	MemoryContext former = MemoryContextSwitchTo(sort->context);
	SortRun    *run = add_run(sort);

	PrepareTempTablespaces();
	run->file = BufFileCreateTemp(false);
	for (uint64 i = 0; i < sort->count; i++)
	{
		Record		record;
		char	   *bytes = read_place(sort, i, &record);

		CHECK_FOR_INTERRUPTS();
		BufFileWrite(run->file, bytes - sizeof(Record), sizeof(Record) + record.length);
	}
	if (BufFileSeek(run->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind a temporary file: %m"),
				 errhint("Check the disks of temp_tablespaces, then run the refresh again.")));
	sort->used = sort->count = 0;
	MemoryContextSwitchTo(former);
}

static void
read_file(BufFile *file, void *to, Size length)
{
	if (BufFileRead(file, to, length) != length)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read a temporary file: %m"),
				 errhint("Check the disks of temp_tablespaces, then run the refresh again.")));
}

/*
 * Go to the run's next point.  Returns false at its end.
 */
static bool
advance(PointSort *sort, SortRun *run)
{
	if (run->left == 0)
		return false;
	run->left--;
	if (run->file == NULL)
	{
		run->bytes = read_place(sort, sort->next++, &run->record);
		return true;
	}
	read_file(run->file, &run->record, sizeof(Record));
	if (run->record.length > run->room)
	{
		run->room = Max(run->record.length, 1024);
		run->bytes = MemoryContextAllocHuge(sort->context, run->room);
	}
	read_file(run->file, run->bytes, run->record.length);
	return true;
}

void
geonn_point_sort_add(PointSort *sort, const BaselinePoint *point, uint64 number)
{
	Record		record = {point->fingerprint, number, point->length};
	Size		needed = sizeof(Record) + point->length;

	Assert(sort->heap == NULL);
	if (sort->count > 0 &&
		sort->used + needed + (sort->count + 1) * sizeof(Place) > sort->memory)
		write_run(sort);
	if (sort->used + needed > sort->room)
	{
		sort->room = Max(Min(sort->room * 2, sort->memory), sort->used + needed);
		sort->buffer = repalloc_huge(sort->buffer, sort->room);
	}
	if (sort->count == sort->places_room)
	{
		sort->places_room *= 2;
		sort->places = repalloc_huge(sort->places, sort->places_room * sizeof(Place));
	}
	sort->places[sort->count++] = (Place) {point->fingerprint.key, sort->used};
	memcpy(sort->buffer + sort->used, &record, sizeof(Record));
	memcpy(sort->buffer + sort->used + sizeof(Record), point->bytes, point->length);
	sort->used += needed;
}

/* the heap has its greatest element at the top: here the run with the least key */
static int
by_least_key(Datum first, Datum second, void *arg pg_attribute_unused())
{
	uint64		a = ((const SortRun *) DatumGetPointer(first))->record.fingerprint.key;
	uint64		b = ((const SortRun *) DatumGetPointer(second))->record.fingerprint.key;

	return a > b ? -1 : a < b;
}

static void
begin_merge(PointSort *sort)
{
	MemoryContext former = MemoryContextSwitchTo(sort->context);
	ListCell   *cell;

	(void) add_run(sort);
	sort->heap = binaryheap_allocate(list_length(sort->runs), by_least_key, NULL);
	foreach(cell, sort->runs)
	{
		if (advance(sort, lfirst(cell)))
			binaryheap_add_unordered(sort->heap, PointerGetDatum(lfirst(cell)));
	}
	binaryheap_build(sort->heap);
	MemoryContextSwitchTo(former);
}

/*
 * Go past the point at the top of the heap.
 */
static void
pass_first(PointSort *sort)
{
	Datum		first = binaryheap_first(sort->heap);

	if (advance(sort, (SortRun *) DatumGetPointer(first)))
		binaryheap_replace_first(sort->heap, first);
	else
		(void) binaryheap_remove_first(sort->heap);
}

bool
geonn_point_sort_next(PointSort *sort, BaselinePoint *point, uint64 *number)
{
	const SortRun *run;

	if (sort->heap == NULL)
		begin_merge(sort);
	else if (!binaryheap_empty(sort->heap))
		pass_first(sort);
	if (binaryheap_empty(sort->heap))
		return false;
	run = (const SortRun *) DatumGetPointer(binaryheap_first(sort->heap));
	*number = run->record.number;
	*point = (BaselinePoint)
	{
		.fingerprint = run->record.fingerprint,.bytes = run->bytes,.length = run->record.length
	};
	return true;
}

void
geonn_point_sort_end(PointSort *sort)
{
	ListCell   *cell;

	foreach(cell, sort->runs)
	{
		const SortRun *run = lfirst(cell);

		if (run->file != NULL)
			BufFileClose(run->file);
	}
	MemoryContextDelete(sort->context);
}

/* ---- blocks ---- */

struct BaselineWriter
{
	GeonnBaseline *baseline;

	/* the new directory */
	BaselineBlock *blocks;
	uint32		count;
	uint32		room;
	uint32		next_old;		/* the first old block that was not yet kept or replaced */
	bool		anew;

	/* the block under construction */
	bool		open;
	BaselineBlock block;
	uint64		last_key;
	StringInfoData contents;
	uint32		placed;			/* how many points have coordinates; below, their sums */
	double		latitudes;
	double		longitudes;		/* from -180 to 180 degrees */

	uint32		first_new;		/* blocks with smaller numbers are stored already */
};

/*
 * Find a sphere that encloses the block's points.  Any centre is correct; their mean makes it small.
 */
static inline void
find_ball_with(BaselineWriter *writer)
{
	BaselineBlock *block = &writer->block;
	int			metric = writer->baseline->metric;
	const char *contents = writer->contents.data;
	double		latitude;
	double		longitude;
	double		radius = 0;
	BaselinePoint point = geonn_baseline_first(block->number);

	block->radius = -1;
	if (writer->placed == 0)
		return;
	latitude = Max(-90, Min(90, writer->latitudes / writer->placed));
	longitude = Max(-180, Min(180, writer->longitudes / writer->placed));
	block->centre = geonn_metric_vector(metric, latitude, longitude);
	while (geonn_baseline_next(&contents, writer->contents.data + writer->contents.len, &point))
	{
		PointHead	head = geonn_point_head(point.bytes);

		if (isnan(head.latitude))
			continue;
		radius = Max(radius, geonn_metric_chord_decides(metric) ?
					 geonn_metric_distance_of(metric, block->centre,
											  geonn_unit_vector(head.latitude, head.longitude)) :
					 geonn_metric_distance(metric, latitude, longitude, head.latitude, head.longitude));
	}
	block->radius = geonn_rounded_up(radius);
}

/*
 * Find the same sphere, to the bit, by the processor's FMA instruction: without it, each fma() calls the C
 * library.
 */
#ifdef __x86_64__
__attribute__((target("fma"), flatten))
static void
find_ball_with_fma(BaselineWriter *writer)
{
	find_ball_with(writer);
}
#endif

static void
find_ball(BaselineWriter *writer)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("fma"))
	{
		find_ball_with_fma(writer);
		return;
	}
#endif
	find_ball_with(writer);
}

static void
add_entry(BaselineWriter *writer, const BaselineBlock *block)
{
	if (writer->count == writer->room)
	{
		writer->room *= 2;
		writer->blocks = repalloc_huge(writer->blocks, writer->room * sizeof(BaselineBlock));
	}
	writer->blocks[writer->count++] = *block;
}

static void
end_block(BaselineWriter *writer)
{
	BaselineBlock *block = &writer->block;

	if (!writer->open)
		return;
	find_ball(writer);
	add_entry(writer, block);
	geonn_block_table_write(writer->baseline->contents, block->number < writer->first_new, block->number,
							writer->contents.data, writer->contents.len);
	writer->open = false;
}

static void
begin_block(BaselineWriter *writer, uint64 first_key, uint32 number)
{
	CHECK_FOR_INTERRUPTS();
	writer->block = (BaselineBlock)
	{
		.first_key = first_key,.number = number,.reach = -1
	};
	writer->placed = 0;
	writer->latitudes = writer->longitudes = 0;
	resetStringInfo(&writer->contents);
	writer->open = true;
}

BaselineWriter *
geonn_baseline_writer_begin(GeonnBaseline *baseline, bool anew)
{
	BaselineWriter *writer = palloc0(sizeof(BaselineWriter));

	writer->baseline = baseline;
	writer->anew = anew;
	writer->room = Max(baseline->count, 16);
	writer->blocks = MemoryContextAllocHuge(CurrentMemoryContext,
											writer->room * sizeof(BaselineBlock));
	initStringInfo(&writer->contents);
	if (anew)
	{
		geonn_block_table_delete_all(baseline->directory);
		geonn_block_table_delete_all(baseline->contents);
		baseline->next_number = 0;
		begin_block(writer, 0, baseline->next_number++);
	}
	else
		writer->first_new = baseline->next_number;
	return writer;
}

/*
 * Begin to replace this block: points added next take its points' place, and have keys of its range.  Earlier
 * blocks stay as they are.
 */
static void
replace_block(BaselineWriter *writer, uint32 number)
{
	const BaselineBlock *blocks = writer->baseline->blocks;

	end_block(writer);
	while (writer->next_old < number)
		add_entry(writer, &blocks[writer->next_old++]);
	writer->next_old++;
	begin_block(writer, blocks[number].first_key, blocks[number].number);
}

void
geonn_baseline_add(BaselineWriter *writer, const BaselinePoint *point)
{
	BaselineBlock *block = &writer->block;
	PointHead	head = geonn_point_head(point->bytes);

	if ((block->rows >= ROWS_A_BLOCK || writer->contents.len >= BYTES_A_BLOCK) &&
		point->fingerprint.key != writer->last_key)
	{
		end_block(writer);
		begin_block(writer, point->fingerprint.key, writer->baseline->next_number++);
	}
	writer->last_key = point->fingerprint.key;
	if (point->length > BYTES_AT_MOST - writer->contents.len)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a block of the baseline of cache \"%s\" would have %zu bytes",
						writer->baseline->cache->name, (Size) writer->contents.len + point->length),
				 errdetail("A block has at most %zu bytes, and each point is in one block as a whole.",
						   (Size) BYTES_AT_MOST),
				 errhint("Use a shorter column as id, by obs_id or ref_id in options.")));
	head.reach = point->reach;
	appendBinaryStringInfo(&writer->contents, (char *) &head, sizeof(head));
	appendBinaryStringInfo(&writer->contents, point->bytes + sizeof(head),
						   (int) (point->length - sizeof(head)));
	block->rows++;
	geonn_bag_add(&block->bag, point->fingerprint.hash);
	block->reach = Max(block->reach, point->reach);
	if (isnan(head.latitude))
		return;
	writer->placed++;
	writer->latitudes += head.latitude;
	writer->longitudes += head.longitude >= 180 ? head.longitude - 360 : head.longitude;
}

/* ---- the directory ---- */

/*
 * Has this row of the directory the same entries as before?
 */
static bool
is_same(const BaselineWriter *writer, uint32 first, uint32 count)
{
	const GeonnBaseline *baseline = writer->baseline;

	return !writer->anew && first < baseline->count &&
		Min(BLOCKS_A_ROW, baseline->count - first) == count &&
		memcmp(baseline->blocks + first, writer->blocks + first, count * sizeof(BaselineBlock)) == 0;
}

static void
write_directory(BaselineWriter *writer)
{
	const GeonnBaseline *baseline = writer->baseline;

	for (uint32 first = 0; first < writer->count; first += BLOCKS_A_ROW)
	{
		uint32		count = Min(BLOCKS_A_ROW, writer->count - first);

		if (!is_same(writer, first, count))
			geonn_block_table_write(baseline->directory, !writer->anew && first < baseline->count,
									first / BLOCKS_A_ROW, (char *) (writer->blocks + first),
									count * sizeof(BaselineBlock));
	}
}

void
geonn_baseline_writer_end(BaselineWriter *writer)
{
	end_block(writer);
	if (!writer->anew)
	{
		while (writer->next_old < writer->baseline->count)
			add_entry(writer, &writer->baseline->blocks[writer->next_old++]);
	}
	write_directory(writer);
}

/* ---- bringing up to date ---- */

typedef struct BaselineUpdate
{
	GeonnBaseline *baseline;
	BaselineWriter *writer;
	const BaselineChanges *changes;
	const BaselinePoint *reaches;	/* points that stay and get new reaches, by block and row */
	uint64		reach_count;

	/* the next point of each list */
	uint64		next_removed;
	uint64		next_reach;
	uint64		next_added;

	BaselinePoint *points;		/* points of the present block */
	uint64		count;
	uint64		room;
} BaselineUpdate;

static int
by_key(const void *first, const void *second)
{
	uint64		a = ((const BaselinePoint *) first)->fingerprint.key;
	uint64		b = ((const BaselinePoint *) second)->fingerprint.key;

	return a < b ? -1 : a > b;
}

static void
add_point(BaselineUpdate *update, const BaselinePoint *point)
{
	if (update->count == update->room)
	{
		update->room *= 2;
		update->points = repalloc_huge(update->points, update->room * sizeof(BaselinePoint));
	}
	update->points[update->count++] = *point;
}

/*
 * Is the point the list's next one, by block and row?  If so, advance in the list.
 */
static bool
is_next(const BaselinePoint *point, const BaselinePoint *list, uint64 count, uint64 *next)
{
	if (*next == count || list[*next].block != point->block || list[*next].row != point->row)
		return false;
	(*next)++;
	return true;
}

/*
 * Read the next point that stays in the block, with its present reach.  Returns false at the end.
 */
static bool
next_point(BaselineUpdate *update, const char **contents, const char *end, BaselinePoint *point)
{
	const PointList *removed = &update->changes->removed;

	do
	{
		if (!geonn_baseline_next(contents, end, point))
			return false;
	} while (is_next(point, removed->points, removed->count, &update->next_removed));
	if (is_next(point, update->reaches, update->reach_count, &update->next_reach))
		point->reach = update->reaches[update->next_reach - 1].reach;
	return true;
}

/*
 * Rebuild a block from its points that stay and those that were added.
 */
static void
update_block(void *state, uint32 block, const char *contents, Size length)
{
	BaselineUpdate *update = state;
	const PointList *added = &update->changes->added;
	const char *end = contents + length;
	BaselinePoint point = geonn_baseline_first(block);

	update->count = 0;
	while (next_point(update, &contents, end, &point))
	{
		geonn_baseline_fingerprint(update->baseline, &point);
		add_point(update, &point);
	}
	while (update->next_added < added->count && added->points[update->next_added].block == block)
		add_point(update, &added->points[update->next_added++]);
	qsort(update->points, update->count, sizeof(BaselinePoint), by_key);
	replace_block(update->writer, block);
	for (uint64 i = 0; i < update->count; i++)
		geonn_baseline_add(update->writer, &update->points[i]);
}

/*
 * Find the blocks in which something has changed, in their order.  Returns how many.
 */
static uint32
touched_blocks(const BaselineUpdate *update, uint32 *blocks)
{
	const BaselineChanges *changes = update->changes;
	bool	   *touched = palloc_extended(update->baseline->count * sizeof(bool), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	uint32		count = 0;

	for (uint64 i = 0; i < changes->added.count; i++)
		touched[changes->added.points[i].block] = true;
	for (uint64 i = 0; i < changes->removed.count; i++)
		touched[changes->removed.points[i].block] = true;
	for (uint64 i = 0; i < update->reach_count; i++)
		touched[update->reaches[i].block] = true;
	for (uint32 i = 0; i < update->baseline->count; i++)
	{
		if (touched[i])
			blocks[count++] = i;
	}
	return count;
}

void
geonn_baseline_update(GeonnBaseline *baseline, const BaselineChanges *changes,
				const BaselinePoint *reaches, uint64 reach_count)
{
	BaselineUpdate update = {
		.baseline = baseline,
		.changes = changes,
		.reaches = reaches,
		.reach_count = reach_count,
		.room = 256
	};
	uint32	   *blocks = MemoryContextAllocHuge(CurrentMemoryContext, baseline->count * sizeof(uint32));
	uint32		count = touched_blocks(&update, blocks);

	if (count > 0)
	{
		update.points = palloc(update.room * sizeof(BaselinePoint));
		update.writer = geonn_baseline_writer_begin(baseline, false);
		geonn_baseline_read_blocks(baseline, blocks, count, update_block, &update);
		geonn_baseline_writer_end(update.writer);
	}
}
