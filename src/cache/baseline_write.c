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

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "cache/baseline.h"
#include "common/geodesy.h"
#include "common/metric.h"

/* a block is full when it has so many rows, or bytes */
#define ROWS_A_BLOCK		64
#define BYTES_A_BLOCK	6000

/* blocks that one statement writes */
#define BLOCKS_A_WRITING	256

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

	/* blocks that are to be written */
	MemoryContext waiting;
	Datum		numbers[BLOCKS_A_WRITING];
	Datum		values[BLOCKS_A_WRITING];
	int			waiting_count;
	bool		waiting_there;	/* they overwrite those with their numbers */
	uint32		first_new;		/* blocks with smaller numbers are stored already */
};

static const char *const tables[] = {"geonn_cache_block", "geonn_cache_directory"};

void
geonn_baseline_delete(const GeonnCache *cache, CacheSide side)
{
	Oid			types[] = {INT4OID, INT2OID};
	Datum		values[] = {Int32GetDatum(cache->id), Int16GetDatum(side)};

	SPI_connect();
	for (int i = 0; i < (int) lengthof(tables); i++)
		(void) geonn_catalog_run(cache->schema,
								 psprintf("DELETE FROM $S.%s WHERE cache OPERATOR(pg_catalog.=) $1"
										  " AND side OPERATOR(pg_catalog.=) $2",
										  tables[i]),
								 NULL, lengthof(types), types, values, NULL);
	SPI_finish();
}

/* ---- tables ---- */

/* statements that write rows of a table: that insert new ones, and that overwrite */
static const char *const writing[] = {
	"INSERT INTO $S.%s (cache, side, number, contents)"
	" SELECT $1, $2, n.number, n.contents FROM ROWS FROM"
	" (pg_catalog.unnest($3), pg_catalog.unnest($4)) AS n(number, contents)",
	"UPDATE $S.%s AS t SET contents = n.contents FROM ROWS FROM"
	" (pg_catalog.unnest($3), pg_catalog.unnest($4)) AS n(number, contents)"
	" WHERE t.cache OPERATOR(pg_catalog.=) $1 AND t.side OPERATOR(pg_catalog.=) $2"
	" AND t.number OPERATOR(pg_catalog.=) n.number"
};

/*
 * Write rows of a table for this side.
 */
static void
write_rows(const GeonnBaseline *baseline, const char *table, bool are_there, Datum *numbers,
		   Datum *contents, int count)
{
	Oid			types[] = {INT4OID, INT2OID, INT4ARRAYOID, BYTEAARRAYOID};
	Datum		values[] = {
		Int32GetDatum(baseline->cache->id), Int16GetDatum(baseline->side), (Datum) 0, (Datum) 0
	};

	SPI_connect();
	values[2] = PointerGetDatum(construct_array(numbers, count, INT4OID, sizeof(int32), true,
												TYPALIGN_INT));
	values[3] = PointerGetDatum(construct_array(contents, count, BYTEAOID, -1, false,
												TYPALIGN_INT));
	if (geonn_catalog_run(baseline->cache->schema, psprintf(writing[are_there], table), NULL,
						  lengthof(types), types, values, NULL) != (uint64) count)
		elog(ERROR, "rows of table %s of cache %d are missing", table, baseline->cache->id);
	SPI_finish();
}

static void
write_waiting(BaselineWriter *writer)
{
	if (writer->waiting_count > 0)
		write_rows(writer->baseline, "geonn_cache_block", writer->waiting_there, writer->numbers,
				   writer->values, writer->waiting_count);
	writer->waiting_count = 0;
	MemoryContextReset(writer->waiting);
}

static bytea *
make_bytea(const char *bytes, Size length)
{
	bytea	   *value = palloc(length + VARHDRSZ);

	SET_VARSIZE(value, length + VARHDRSZ);
	memcpy(VARDATA(value), bytes, length);
	return value;
}

/* ---- blocks ---- */

/*
 * Find a ball around the block's points.  Any centre would do; one among the points makes the ball
 * small.
 */
static void
find_ball(BaselineWriter *writer)
{
	BaselineBlock *block = &writer->block;
	int			metric = writer->baseline->metric;
	struct geonn_vector centre = {0, 0, 0};

	block->radius = -1;
	block->latitude = block->longitude = 0;
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
	block->latitude = Max(-90, Min(90, atan2(centre.z, hypot(centre.x, centre.y)) * (180 / M_PI)));
	block->longitude = Max(-180, Min(180, atan2(centre.y, centre.x) * (180 / M_PI)));
	centre = geonn_unit_vector(block->latitude, block->longitude);
	for (uint32 i = 0; i < writer->placed; i++)
		block->radius = Max(block->radius, geonn_metric_chord_decides(metric) ?
							geonn_metric_distance_of(metric, centre, writer->vectors[i]) :
							geonn_metric_distance(metric, block->latitude, block->longitude,
												  writer->latitude[i], writer->longitude[i]));
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
	bool		is_there = block->number < writer->first_new;
	MemoryContext former;

	add_entry(writer, block);
	if (writer->waiting_there != is_there)
		write_waiting(writer);
	writer->waiting_there = is_there;
	former = MemoryContextSwitchTo(writer->waiting);
	writer->numbers[writer->waiting_count] = Int32GetDatum((int32) block->number);
	writer->values[writer->waiting_count++] = PointerGetDatum(make_bytea(contents, length));
	MemoryContextSwitchTo(former);
	if (writer->waiting_count == BLOCKS_A_WRITING)
		write_waiting(writer);
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
	writer->waiting = AllocSetContextCreate(CurrentMemoryContext, "geonn blocks",
											ALLOCSET_DEFAULT_SIZES);
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
	for (uint32 first = 0; first < writer->count; first += BLOCKS_A_ROW)
	{
		uint32		count = Min(BLOCKS_A_ROW, writer->count - first);
		Datum		number = Int32GetDatum((int32) (first / BLOCKS_A_ROW));
		Datum		contents;

		if (is_same(writer, first, count))
			continue;
		contents = PointerGetDatum(make_bytea((char *) (writer->blocks + first),
											  count * sizeof(BaselineBlock)));
		write_rows(writer->baseline, "geonn_cache_directory",
				   !writer->anew && first < writer->baseline->count, &number, &contents, 1);
		pfree(DatumGetPointer(contents));
	}
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
	write_waiting(writer);
	write_directory(writer);
	MemoryContextSwitchTo(former);
}
