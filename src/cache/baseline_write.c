/*
 * baseline_write.c
 *		Blocks of a baseline are written.
 *
 * Rows arrive in the order of their keys, and a block ends when it is large enough.  In an existing
 * baseline, one or more new blocks replace a block: the first of them keeps its number, and
 * overwrites its contents.  The directory is written last, and of its rows only those that have
 * changed.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "cache/baseline.h"
#include "cache/block_table.h"
#include "common/geodesy.h"
#include "common/metric.h"

/* a block is full when it has so many rows, or bytes */
#define ROWS_A_BLOCK		64
#define BYTES_A_BLOCK	6000

/* it has no more in any case: its contents are one value of a table */
#define BYTES_AT_MOST	(MaxAllocSize - VARHDRSZ - 1)

struct BaselineWriter
{
	GeonnBaseline *baseline;
	MemoryContext context;

	/* the new directory */
	BaselineBlock *blocks;
	uint32		count;
	uint32		room;
	uint32		next_old;		/* next block of the baseline that is neither kept nor replaced so far */
	bool		anew;

	/* the block under construction */
	bool		open;
	BaselineBlock block;
	uint64		last_key;
	StringInfoData contents;
	double	   *latitude;		/* of its rows with coordinates */
	double	   *longitude;
	struct geonn_vector *vectors;
	uint32		placed;
	uint32		placed_room;

	BlockTable *table;			/* of blocks */
	uint32		first_new;		/* blocks with smaller numbers are stored already */
};

/* ---- tables ---- */

/*
 * Open a table to write rows of a side.
 */
static BlockTable *
open_to_write(const GeonnCache *cache, CacheSide side, const char *name)
{
	return geonn_block_table_open(cache, (int16) side, name, RowExclusiveLock, GetTransactionSnapshot());
}

void
geonn_baseline_delete(const GeonnCache *cache, CacheSide side)
{
	static const char *const tables[] = {"geonn_cache_block", "geonn_cache_directory"};

	for (int i = 0; i < (int) lengthof(tables); i++)
	{
		BlockTable *table = open_to_write(cache, side, tables[i]);

		geonn_block_table_delete_all(table);
		geonn_block_table_close(table);
	}
}

/*
 * Write a row of a table, which has one of this number or not.
 */
static void
write_row(BlockTable *table, bool is_there, uint32 number, const char *contents, Size length)
{
	if (is_there)
		geonn_block_table_update(table, number, contents, length);
	else
		geonn_block_table_insert(table, number, contents, length);
}

/* ---- blocks ---- */

/*
 * Find a ball around the block's points.  Any centre would do; one among the points makes the ball
 * small.
 */
static inline void
find_ball_with(BaselineWriter *writer)
{
	BaselineBlock *block = &writer->block;
	int			metric = writer->baseline->metric;
	struct geonn_vector centre = {0, 0, 0};
	double		latitude;
	double		longitude;
	double		radius = 0;

	block->radius = -1;
	for (uint32 i = 0; i < writer->placed; i++)
	{
		struct geonn_vector *at = &writer->vectors[i];

		*at = geonn_unit_vector(writer->latitude[i], writer->longitude[i]);
		centre.x += at->x;
		centre.y += at->y;
		centre.z += at->z;
	}
	if (writer->placed == 0)
		return;
	latitude = Max(-90, Min(90, atan2(centre.z, hypot(centre.x, centre.y)) * (180 / M_PI)));
	longitude = Max(-180, Min(180, atan2(centre.y, centre.x) * (180 / M_PI)));
	block->centre = geonn_metric_vector(metric, latitude, longitude);
	for (uint32 i = 0; i < writer->placed; i++)
		radius = Max(radius, geonn_metric_chord_decides(metric) ?
					 geonn_metric_distance_of(metric, block->centre, writer->vectors[i]) :
					 geonn_metric_distance(metric, latitude, longitude,
										   writer->latitude[i], writer->longitude[i]));
	block->radius = geonn_rounded_up(radius);
}

/*
 * The same, to the bit, where the processor has an instruction for fma: else each is a call of the C
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
write_block(BaselineWriter *writer, const BaselineBlock *block, const char *contents, Size length)
{
	add_entry(writer, block);
	write_row(writer->table, block->number < writer->first_new, block->number, contents, length);
}

static void
end_block(BaselineWriter *writer)
{
	if (!writer->open)
		return;
	find_ball(writer);
	write_block(writer, &writer->block, writer->contents.data, writer->contents.len);
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
	resetStringInfo(&writer->contents);
	writer->open = true;
}

BaselineWriter *
geonn_baseline_writer_begin(GeonnBaseline *baseline, bool anew)
{
	BaselineWriter *writer = palloc0(sizeof(BaselineWriter));

	writer->baseline = baseline;
	writer->context = CurrentMemoryContext;
	writer->anew = anew;
	writer->room = Max(baseline->count, 16);
	writer->blocks = MemoryContextAllocHuge(CurrentMemoryContext,
											writer->room * sizeof(BaselineBlock));
	initStringInfo(&writer->contents);
	writer->placed_room = ROWS_A_BLOCK;
	writer->latitude = palloc(ROWS_A_BLOCK * sizeof(double));
	writer->longitude = palloc(ROWS_A_BLOCK * sizeof(double));
	writer->vectors = palloc(ROWS_A_BLOCK * sizeof(struct geonn_vector));
	if (anew)
	{
		geonn_baseline_delete(baseline->cache, baseline->side);
		baseline->next_number = 0;
		begin_block(writer, 0, baseline->next_number++);
	}
	else
		writer->first_new = baseline->next_number;
	writer->table = open_to_write(baseline->cache, baseline->side, "geonn_cache_block");
	return writer;
}

/*
 * End the present block, and keep the blocks before this one as they are.
 */
static void
pass_to(BaselineWriter *writer, uint32 block)
{
	end_block(writer);
	while (writer->next_old < block)
		add_entry(writer, &writer->baseline->blocks[writer->next_old++]);
	writer->next_old++;
}

void
geonn_baseline_replace(BaselineWriter *writer, uint32 block)
{
	pass_to(writer, block);
	begin_block(writer, writer->baseline->blocks[block].first_key, writer->baseline->blocks[block].number);
}

void
geonn_baseline_set_reaches(BaselineWriter *writer, uint32 block, const char *contents, Size length,
						   float reach)
{
	BaselineBlock entry = writer->baseline->blocks[block];

	CHECK_FOR_INTERRUPTS();
	pass_to(writer, block);
	entry.reach = reach;
	write_block(writer, &entry, contents, length);
}

void
geonn_baseline_add(BaselineWriter *writer, const Fingerprint *fingerprint, float reach, const char *bytes,
				   Size length)
{
	BaselineBlock *block = &writer->block;
	bool		placed;

	if ((block->rows >= ROWS_A_BLOCK || writer->contents.len >= BYTES_A_BLOCK) &&
		fingerprint->key != writer->last_key)
	{
		end_block(writer);
		begin_block(writer, fingerprint->key, writer->baseline->next_number++);
	}
	writer->last_key = fingerprint->key;
	if (length > BYTES_AT_MOST - sizeof(reach) - writer->contents.len)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a block of the baseline of cache \"%s\" would have %zu bytes",
						writer->baseline->cache->name, writer->contents.len + sizeof(reach) + length),
				 errdetail("A block has at most %zu bytes, and each point is in one block as a whole.",
						   (Size) BYTES_AT_MOST),
				 errhint("Use a shorter column as id, by obs_id or ref_id in options.")));
	appendBinaryStringInfo(&writer->contents, (char *) &reach, sizeof(reach));
	appendBinaryStringInfo(&writer->contents, bytes, (int) length);
	block->rows++;
	block->hash[0] += fingerprint->hash[0];
	block->hash[1] += fingerprint->hash[1];
	block->reach = Max(block->reach, reach);
	memcpy(&placed, bytes, sizeof(placed));
	if (!placed)
		return;
	if (writer->placed == writer->placed_room)
	{
		writer->placed_room *= 2;
		writer->latitude = repalloc_huge(writer->latitude, writer->placed_room * sizeof(double));
		writer->longitude = repalloc_huge(writer->longitude, writer->placed_room * sizeof(double));
		writer->vectors = repalloc_huge(writer->vectors,
										writer->placed_room * sizeof(struct geonn_vector));
	}
	memcpy(&writer->latitude[writer->placed], bytes + sizeof(placed), sizeof(double));
	memcpy(&writer->longitude[writer->placed++], bytes + sizeof(placed) + sizeof(double),
		   sizeof(double));
}

/* ---- the directory ---- */

/*
 * Is this row of the directory the same as before?
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
	BlockTable *table = open_to_write(baseline->cache, baseline->side, "geonn_cache_directory");

	for (uint32 first = 0; first < writer->count; first += BLOCKS_A_ROW)
	{
		uint32		count = Min(BLOCKS_A_ROW, writer->count - first);

		if (!is_same(writer, first, count))
			write_row(table, !writer->anew && first < baseline->count, first / BLOCKS_A_ROW,
					  (char *) (writer->blocks + first), count * sizeof(BaselineBlock));
	}
	geonn_block_table_close(table);
}

void
geonn_baseline_writer_end(BaselineWriter *writer)
{
	MemoryContext former = MemoryContextSwitchTo(writer->context);

	end_block(writer);
	if (!writer->anew)
	{
		while (writer->next_old < writer->baseline->count)
			add_entry(writer, &writer->baseline->blocks[writer->next_old++]);
	}
	geonn_block_table_close(writer->table);
	write_directory(writer);
	MemoryContextSwitchTo(former);
}
