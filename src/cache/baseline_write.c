/*
 * baseline_write.c
 *		Points of a baseline are sorted, and written in blocks.
 *
 * Points come in the order of their keys, all points of a side from PostgreSQL's tuplesort.  A block ends when it
 * is large enough.  In an existing baseline, one or more new blocks replace a block: the first of them keeps its
 * number, and overwrites its contents.  The directory is written last, and of its rows only those that have
 * changed.
 *
 * To bring a baseline up to date, the blocks in which something has changed are read, rebuilt and
 * written: without the points that were removed, with those that were added, and with new reaches.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "base/compat.h"
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

/* the columns of the rows that are sorted */
enum
{
	SORT_KEY,
	SORT_NUMBER,
	SORT_BYTES,
	SORT_COLUMNS
};

struct BaselineSort
{
	const GeonnBaseline *baseline;
	Tuplesortstate *state;
	TupleTableSlot *added;
	TupleTableSlot *next;
	bool		sorted;
};

BaselineSort *
geonn_baseline_sort_begin(const GeonnBaseline *baseline)
{
	BaselineSort *sort = palloc0(sizeof(BaselineSort));
	TupleDesc	type = CreateTemplateTupleDesc(SORT_COLUMNS);
	AttrNumber	column = SORT_KEY + 1;
	Oid			before = Int8LessOperator;
	Oid			collation = InvalidOid;
	bool		nulls_first = false;

	TupleDescInitEntry(type, SORT_KEY + 1, "key", INT8OID, -1, 0);
	TupleDescInitEntry(type, SORT_NUMBER + 1, "number", INT8OID, -1, 0);
	TupleDescInitEntry(type, SORT_BYTES + 1, "bytes", BYTEAOID, -1, 0);
	TupleDescFinalize(type);
	sort->baseline = baseline;
	sort->state = tuplesort_begin_heap(type, 1, &column, &before, &collation, &nulls_first,
									   maintenance_work_mem, NULL, TUPLESORT_NONE);
	sort->added = MakeSingleTupleTableSlot(type, &TTSOpsVirtual);
	sort->next = MakeSingleTupleTableSlot(type, &TTSOpsMinimalTuple);
	return sort;
}

void
geonn_baseline_sort_add(BaselineSort *sort, const BaselinePoint *point, uint64 number)
{
	TupleTableSlot *slot = sort->added;
	bytea	   *bytes = cstring_to_text_with_len(point->bytes, (int) point->length);

	ExecClearTuple(slot);
	memset(slot->tts_isnull, false, SORT_COLUMNS * sizeof(bool));
	/* a key has no sign, and its column has one */
	slot->tts_values[SORT_KEY] = UInt64GetDatum(point->fingerprint.key ^ (UINT64CONST(1) << 63));
	slot->tts_values[SORT_NUMBER] = UInt64GetDatum(number);
	slot->tts_values[SORT_BYTES] = PointerGetDatum(bytes);
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(sort->state, slot);
	pfree(bytes);
}

bool
geonn_baseline_sort_next(BaselineSort *sort, BaselinePoint *point, uint64 *number)
{
	TupleTableSlot *slot = sort->next;
	const bytea *bytes;

	if (!sort->sorted)
		tuplesort_performsort(sort->state);
	sort->sorted = true;
	if (!tuplesort_gettupleslot(sort->state, true, false, slot, NULL))
		return false;
	slot_getallattrs(slot);
	bytes = DatumGetByteaPP(slot->tts_values[SORT_BYTES]);
	*number = DatumGetUInt64(slot->tts_values[SORT_NUMBER]);
	*point = (BaselinePoint)
	{
		.bytes = VARDATA_ANY(bytes),.length = VARSIZE_ANY_EXHDR(bytes)
	};
	geonn_baseline_fingerprint(sort->baseline, point);
	return true;
}

void
geonn_baseline_sort_end(BaselineSort *sort)
{
	tuplesort_end(sort->state);
	ExecDropSingleTupleTableSlot(sort->added);
	ExecDropSingleTupleTableSlot(sort->next);
	pfree(sort);
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
	Assert(writer->count == 0 || writer->blocks[writer->count - 1].first_key < block->first_key);
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
	Assert(writer->placed <= block->rows && (block->radius >= 0) == (writer->placed > 0));
	add_entry(writer, block);
	geonn_block_table_write(writer->baseline->contents, block->number < writer->first_new, block->number,
							writer->contents.data, writer->contents.len);
	writer->open = false;
}

static void
begin_block(BaselineWriter *writer, uint64 first_key, uint32 number)
{
	Assert(!writer->open);
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
	Assert(writer->next_old <= number && number < writer->baseline->count);
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

	Assert(point->fingerprint.key >= writer->last_key);
	Assert(writer->open && point->fingerprint.key >= block->first_key);
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
	Assert(writer->anew || writer->count >= writer->baseline->count);
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
		Assert(update.next_removed == changes->removed.count && update.next_added == changes->added.count);
		Assert(update.next_reach == reach_count);
	}
}
