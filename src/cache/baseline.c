/*
 * baseline.c
 *		Baselines: the points that the last refresh of a cache read.
 *
 * A refresh that is to do less than search for everything must know what has changed since the last
 * one.  So the last one stores the points that it read of each side, the side's baseline.
 * Baselines are in unlogged tables of the extension, as a refresh can make them anew.
 *
 * A baseline has its points in blocks of some dozens that are near each other.  The points are in
 * the order of a key, which follows a space-filling curve (Morton's) through a grid of latitudes
 * and longitudes; the key's last bits are of a hash of the point, so that many points at the same
 * coordinates have different keys.  Points without coordinates come last, in the order of their hashes.
 * A block has all points whose keys are between its own first key and the next block's.  The contents
 * of blocks are rows of geonn_cache_block.  The directory, which a refresh reads whole, has for each block
 *
 *	 - the first key;
 *	 - a sum of the hashes of its points.  A point's hash is of all its bytes: coordinates, limits
 *	   (point_limits.h), id, by columns.  When the table is read again, each row's hash is added to the sum of the
 *	   block to which its key belongs; a block whose sum is the same as before has not changed.
 *	   So one scan of a table, in no particular order, finds what has changed, with memory for
 *	   the directory alone.  Sums and hashes have 128 bits and depend on a secret seed of the
 *	   baseline, the hash's key.  Two states of a block have the same sum by an accident that is
 *	   less likely than any other fault of a machine, as with the sums that file systems and
 *	   version control trust;
 *	 - a ball around all its points, and the greatest of their reaches, by which
 *	   cache/affected.c passes over blocks that changes of the references cannot affect.
 *
 * The reach of an observation is how far its neighbours are: the distance of the last of its k
 * nearest, or where it has fewer the greatest distance that was asked for, or its own radius.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "cache/baseline.h"
#include "cache/block_table.h"
#include "cache/siphash.h"

/* first bits of a key, by which jumps are indexed */
#define JUMP_BITS		16

/* bits of a point's place in its key, which begins with a 0, and those of its hash, which follow */
#define PLACE_BITS		48
#define HASH_BITS		15

/* how keys of points without coordinates begin; all other bits are of the hash */
#define UNPLACED_BIT	(UINT64CONST(1) << 63)

/* ---- schema ---- */

static BaselineType
type_of(const PointColumn *column)
{
	BaselineType type;

	get_typlenbyval(column->base_type, &type.length, &type.by_value);
	return type;
}

GeonnBaseline *
geonn_baseline_create(const GeonnCache *cache, CacheSide side, const PointSource *source, int metric,
					  bool keeps_unplaced, const uint64 *seed)
{
	GeonnBaseline *baseline = palloc0(sizeof(GeonnBaseline));

	baseline->cache = cache;
	baseline->context = CurrentMemoryContext;
	baseline->keep_room = (Size) maintenance_work_mem * 1024 / 2;
	baseline->side = side;
	baseline->metric = metric;
	baseline->seed[0] = seed[0];
	baseline->seed[1] = seed[1];
	baseline->schema.id = type_of(&source->columns[COLUMN_ID]);
	baseline->schema.by_count = source->by_count;
	baseline->schema.by = palloc(source->by_count * sizeof(BaselineType));
	for (int i = 0; i < source->by_count; i++)
		baseline->schema.by[i] = type_of(&source->by[i]);
	if (geonn_has_limits(source))
		baseline->schema.limits_bytes = geonn_limits_bytes(source->window_count);
	baseline->schema.keeps_unplaced = keeps_unplaced;
	return baseline;
}

bool
geonn_baseline_has(const BaselineSchema *schema, const PointRow *row)
{
	return row->status == POINT_VALID || schema->keeps_unplaced;
}

/* ---- bytes ---- */

void
geonn_baseline_write_value(StringInfo bytes, BaselineType type, Datum value)
{
	if (type.by_value)
		appendBinaryStringInfo(bytes, (char *) &value, sizeof(value));
	else if (type.length > 0)
		appendBinaryStringInfo(bytes, DatumGetPointer(value), type.length);
	else
	{
		const char *start;
		uint32		length;

		if (type.length == -1)
		{
			struct varlena *flat = PG_DETOAST_DATUM_PACKED(value);

			start = VARDATA_ANY(flat);
			length = (uint32) VARSIZE_ANY_EXHDR(flat);
		}
		else
		{
			start = DatumGetCString(value);
			length = (uint32) strlen(start);
		}
		appendBinaryStringInfo(bytes, (char *) &length, sizeof(length));
		appendBinaryStringInfo(bytes, start, (int) length);
	}
}

static const char *
read_value(const char *bytes, BaselineType type, Datum *value)
{
	uint32		length;
	char	   *owned;

	if (type.by_value)
	{
		memcpy(value, bytes, sizeof(*value));
		return bytes + sizeof(*value);
	}
	if (type.length > 0)
	{
		owned = palloc(type.length);
		memcpy(owned, bytes, type.length);
		*value = PointerGetDatum(owned);
		return bytes + type.length;
	}
	memcpy(&length, bytes, sizeof(length));
	bytes += sizeof(length);
	if (type.length == -1)
	{
		owned = palloc(length + VARHDRSZ);
		SET_VARSIZE(owned, length + VARHDRSZ);
		memcpy(VARDATA(owned), bytes, length);
	}
	else
	{
		owned = palloc(length + 1);
		memcpy(owned, bytes, length);
		owned[length] = '\0';
	}
	*value = PointerGetDatum(owned);
	return bytes + length;
}

/* ---- numbers ---- */

float
geonn_rounded_up(double exact)
{
	float		rounded = (float) exact;

	return rounded < exact ? nextafterf(rounded, INFINITY) : rounded;
}

/* ---- keys ---- */

/*
 * Spread the bits of a number over the even bits.
 */
static uint64
spread(uint32 number)
{
	uint64		bits = number;

	bits = (bits | bits << 16) & UINT64CONST(0x0000ffff0000ffff);
	bits = (bits | bits << 8) & UINT64CONST(0x00ff00ff00ff00ff);
	bits = (bits | bits << 4) & UINT64CONST(0x0f0f0f0f0f0f0f0f);
	bits = (bits | bits << 2) & UINT64CONST(0x3333333333333333);
	bits = (bits | bits << 1) & UINT64CONST(0x5555555555555555);
	return bits;
}

static uint32
cell(double share)
{
	double		number = share * 4294967296.0;

	/* NaN is in the first cell */
	return !(number > 0) ? 0 : number >= 4294967295.0 ? PG_UINT32_MAX : (uint32) number;
}

static uint64
key_of(double latitude, double longitude, uint64 hash)
{
	uint64		cells;

	if (longitude >= 180)
		longitude -= 360;
	cells = spread(cell((longitude + 180) / 360)) << 1 | spread(cell((latitude + 90) / 180));
	return cells >> (64 - PLACE_BITS) << HASH_BITS | (hash & ((1 << HASH_BITS) - 1));
}

Fingerprint
geonn_baseline_fingerprint(const GeonnBaseline *baseline, const char *bytes, Size length)
{
	Fingerprint fingerprint;
	bool		placed;
	double		coordinates[2];

	geonn_siphash(baseline->seed, bytes, length, fingerprint.hash);
	memcpy(&placed, bytes, sizeof(placed));
	memcpy(coordinates, bytes + sizeof(placed), sizeof(coordinates));
	fingerprint.key = placed ? key_of(coordinates[0], coordinates[1], fingerprint.hash[0]) :
		UNPLACED_BIT | fingerprint.hash[0];
	return fingerprint;
}

/* ---- rows ---- */

void
geonn_baseline_write(const GeonnBaseline *baseline, const PointRow *row, StringInfo bytes,
					 Fingerprint *fingerprint)
{
	const BaselineSchema *schema = &baseline->schema;
	bool		placed = row->status == POINT_VALID;
	double		coordinates[2] = {0, 0};
	int			start = bytes->len;

	if (placed)
	{
		coordinates[0] = row->latitude;
		coordinates[1] = row->longitude;
	}
	else if (row->id_is_null)
		geonn_cache_raise_null(baseline->cache);
	enlargeStringInfo(bytes, sizeof(placed) + sizeof(coordinates));
	memcpy(bytes->data + start, &placed, sizeof(placed));
	memcpy(bytes->data + start + sizeof(placed), coordinates, sizeof(coordinates));
	bytes->len += sizeof(placed) + sizeof(coordinates);
	if (schema->limits_bytes > 0)
		appendBinaryStringInfo(bytes, (const char *) row->limits, (int) schema->limits_bytes);
	geonn_baseline_write_value(bytes, schema->id, row->id);
	for (int i = 0; i < schema->by_count; i++)
	{
		appendStringInfoChar(bytes, !row->by_is_null[i]);
		if (!row->by_is_null[i])
			geonn_baseline_write_value(bytes, schema->by[i], row->by[i]);
	}
	*fingerprint = geonn_baseline_fingerprint(baseline, bytes->data + start, bytes->len - start);
}

BaselineRow
geonn_baseline_row(const BaselineSchema *schema)
{
	return (BaselineRow)
	{
		.by = palloc(schema->by_count * sizeof(Datum)),
			.by_is_null = palloc(schema->by_count * sizeof(bool))
	};
}

const char *
geonn_baseline_read(const BaselineSchema *schema, const char *bytes, BaselineRow *row)
{
	memcpy(&row->placed, bytes, sizeof(row->placed));
	bytes += sizeof(row->placed);
	memcpy(&row->latitude, bytes, sizeof(row->latitude));
	bytes += sizeof(row->latitude);
	memcpy(&row->longitude, bytes, sizeof(row->longitude));
	bytes += sizeof(row->longitude);
	memcpy(&row->limits, bytes, schema->limits_bytes);
	bytes += schema->limits_bytes;
	bytes = read_value(bytes, schema->id, &row->id);
	for (int i = 0; i < schema->by_count; i++)
	{
		row->by_is_null[i] = *bytes++ == 0;
		if (!row->by_is_null[i])
			bytes = read_value(bytes, schema->by[i], &row->by[i]);
	}
	return bytes;
}

Datum
geonn_baseline_id(const BaselineSchema *schema, const char *bytes)
{
	Datum		id;

	(void) read_value(bytes + sizeof(bool) + 2 * sizeof(double) + schema->limits_bytes, schema->id, &id);
	return id;
}

const GeonnLimits *
geonn_baseline_limits(const BaselineSchema *schema, const char *bytes, GeonnLimits *limits)
{
	if (schema->limits_bytes == 0)
		return NULL;
	memcpy(limits, bytes + sizeof(bool) + 2 * sizeof(double), schema->limits_bytes);
	return limits;
}

bool
geonn_baseline_next(const BaselineSchema *schema, const char **contents, const char *end, BaselineRow *row,
					float *reach, const char **bytes, Size *length)
{
	if (*contents >= end)
		return false;
	memcpy(reach, *contents, sizeof(*reach));
	*bytes = *contents + sizeof(*reach);
	*contents = geonn_baseline_read(schema, *bytes, row);
	*length = *contents - *bytes;
	return true;
}

/* ---- points of searches ---- */

typedef struct Points
{
	GivenPoints given;
	const BaselineSchema *schema;
	BaselineRow row;
	MemoryContext context;		/* of the present row */
	const void *source;
	const char *(*bytes) (const void *source, uint64 number);	/* of a row */
} Points;

static void
give_point(void *state, uint64 number, PointRow *row)
{
	Points	   *points = state;
	MemoryContext former = MemoryContextSwitchTo(points->context);

	MemoryContextReset(points->context);
	(void) geonn_baseline_read(points->schema, points->bytes(points->source, number), &points->row);
	row->id = points->row.id;
	row->latitude_is_null = row->longitude_is_null = !points->row.placed;
	row->latitude = points->row.latitude;
	row->longitude = points->row.longitude;
	row->by = points->row.by;
	row->by_is_null = points->row.by_is_null;
	row->limits = points->schema->limits_bytes > 0 ? &points->row.limits : NULL;
	MemoryContextSwitchTo(former);
}

const GivenPoints *
geonn_baseline_points(const BaselineSchema *schema, uint64 count, const void *source,
					  const char *(*bytes) (const void *source, uint64 number))
{
	Points	   *points = palloc0(sizeof(Points));

	points->given = (GivenPoints)
	{
		.count = count,
		.point = give_point,
		.state = points
	};
	points->schema = schema;
	points->row = geonn_baseline_row(schema);
	points->context = AllocSetContextCreate(CurrentMemoryContext, "geonn point",
											ALLOCSET_SMALL_SIZES);
	points->source = source;
	points->bytes = bytes;
	return &points->given;
}

/* ---- the directory ---- */

/*
 * Find the last block whose first key is not greater.  For each value of a key's first bits, jumps
 * has the last block that begins before all keys with these bits: the search begins there.
 * first_keys is small beside the blocks, and likely to be in the processor's cache.
 */
uint32
geonn_baseline_find_block(const GeonnBaseline *baseline, uint64 key)
{
	uint32		jump = (uint32) (key >> (64 - JUMP_BITS));
	uint32		low = baseline->jumps[jump];
	uint32		high = baseline->jumps[jump + 1];

	while (low < high)
	{
		uint32		middle = low + (high - low + 1) / 2;

		if (baseline->first_keys[middle] <= key)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

void
geonn_baseline_prefetch(const GeonnBaseline *baseline, uint64 key)
{
	__builtin_prefetch(&baseline->first_keys[baseline->jumps[key >> (64 - JUMP_BITS)]]);
}

static void
make_jumps(GeonnBaseline *baseline)
{
	uint32		block = 0;

	baseline->first_keys = MemoryContextAllocHuge(CurrentMemoryContext, baseline->count * sizeof(uint64));
	for (uint32 i = 0; i < baseline->count; i++)
		baseline->first_keys[i] = baseline->blocks[i].first_key;
	baseline->jumps = palloc(((1 << JUMP_BITS) + 1) * sizeof(uint32));
	for (uint64 jump = 0; jump < 1 << JUMP_BITS; jump++)
	{
		while (block + 1 < baseline->count &&
			   baseline->blocks[block + 1].first_key <= jump << (64 - JUMP_BITS))
			block++;
		baseline->jumps[jump] = block;
	}
	baseline->jumps[1 << JUMP_BITS] = baseline->count - 1;
}

/*
 * Append a row of the directory to the blocks, which have room for so many.  Returns the new room.
 */
static uint32
add_entries(GeonnBaseline *baseline, const bytea *contents, uint32 room)
{
	Size		length = VARSIZE_ANY_EXHDR(contents);
	uint32		count = (uint32) (length / sizeof(BaselineBlock));

	if (count > BLOCKS_A_ROW)
		elog(ERROR, "the directory of cache %d is damaged", baseline->cache->id);
	if (baseline->count + count > room)
	{
		room = Max(room * 2, BLOCKS_A_ROW);
		baseline->blocks = baseline->blocks == NULL ?
			MemoryContextAllocHuge(CurrentMemoryContext, room * sizeof(BaselineBlock)) :
			repalloc_huge(baseline->blocks, room * sizeof(BaselineBlock));
	}
	memcpy(baseline->blocks + baseline->count, VARDATA_ANY(contents), count * sizeof(BaselineBlock));
	baseline->count += count;
	return room;
}

void
geonn_baseline_load(GeonnBaseline *baseline, Snapshot snapshot)
{
	BlockTable *table = geonn_block_table_open(baseline->cache, (int16) baseline->side,
											   "geonn_cache_directory", AccessShareLock, snapshot);
	const bytea *contents;
	uint32		room = 0;

	geonn_block_table_rewind(table);
	while ((contents = geonn_block_table_next(table)) != NULL)
		room = add_entries(baseline, contents, room);
	geonn_block_table_close(table);
	if (baseline->count == 0)
		elog(ERROR, "the directory of cache %d is missing", baseline->cache->id);
	for (uint32 i = 0; i < baseline->count; i++)
	{
		baseline->rows += baseline->blocks[i].rows;
		baseline->next_number = Max(baseline->next_number, baseline->blocks[i].number + 1);
	}
	make_jumps(baseline);
}

/* ---- blocks ---- */

/*
 * Keep a block's contents if they fit: blocks are often read twice, once to look at them and once
 * to rebuild them.
 */
static void
keep(GeonnBaseline *baseline, uint32 block, const bytea *contents)
{
	Size		size = VARSIZE_ANY(contents);

	if (size > baseline->keep_room)
		return;
	baseline->keep_room -= size;
	baseline->kept[block] = MemoryContextAlloc(baseline->context, size);
	memcpy(baseline->kept[block], contents, size);
}

static const bytea *
read_block(GeonnBaseline *baseline, BlockTable *table, uint32 block)
{
	const bytea *contents = geonn_block_table_find(table, baseline->blocks[block].number);

	if (contents == NULL)
		elog(ERROR, "block %u of cache %d is missing", baseline->blocks[block].number,
			 baseline->cache->id);
	keep(baseline, block, contents);
	return contents;
}

void
geonn_baseline_read_blocks(GeonnBaseline *baseline, const uint32 *blocks, uint32 count, Snapshot snapshot,
						   BlockConsumer consume, void *state)
{
	BlockTable *table = geonn_block_table_open(baseline->cache, (int16) baseline->side,
											   "geonn_cache_block", AccessShareLock, snapshot);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn block",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);

	if (baseline->kept == NULL)
		baseline->kept = MemoryContextAllocExtended(baseline->context, baseline->count * sizeof(bytea *),
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint32 i = 0; i < count; i++)
	{
		const bytea *contents = baseline->kept[blocks[i]];

		CHECK_FOR_INTERRUPTS();
		if (contents == NULL)
			contents = read_block(baseline, table, blocks[i]);
		consume(state, blocks[i], VARDATA_ANY(contents), VARSIZE_ANY_EXHDR(contents));
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	geonn_block_table_close(table);
}
