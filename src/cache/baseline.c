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
 *	 - a bag of its points (cache/baseline.h).  A point's hash is of all its bytes: coordinates, limits
 *	   (point_limits.h), id, by columns.  When the table is read again, each row's hash is added to the
 *	   bag of the block to which its key belongs; a block whose bag is the same as before has not
 *	   changed.  So one scan of a table, in no particular order, finds what has changed, with memory
 *	   for the directory alone;
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
#include "utils/snapmgr.h"

#include "cache/baseline.h"
#include "cache/siphash.h"

/* a key: a 0 bit, PLACE_BITS bits of the coordinates, then HASH_BITS bits of the hash */
#define PLACE_BITS		48
#define HASH_BITS		15

/* the first bit of a key without coordinates; its other bits are those of the hash */
#define UNPLACED_BIT	(UINT64CONST(1) << 63)

/* ---- schema ---- */

static BaselineType
type_of(const PointColumn *column)
{
	BaselineType type;

	get_typlenbyval(column->base_type, &type.length, &type.by_value);
	return type;
}

void
geonn_baseline_delete(GeonnBaseline *baseline)
{
	geonn_block_table_delete_all(baseline->directory);
	geonn_block_table_delete_all(baseline->contents);
	geonn_block_table_delete_all(baseline->lists);
}

void
geonn_baseline_close(GeonnBaseline *baseline)
{
	geonn_block_table_close(baseline->directory);
	geonn_block_table_close(baseline->contents);
	geonn_block_table_close(baseline->lists);
}

GeonnBaseline *
geonn_baseline_create(const GeonnCache *cache, const GeonnJoin *join, CacheSide side, const uint64 *seed)
{
	GeonnBaseline *baseline = palloc0(sizeof(GeonnBaseline));
	const PointSource *source = geonn_side_source(join, side);

	baseline->cache = cache;
	baseline->context = CurrentMemoryContext;
	baseline->side = side;
	baseline->metric = join->question.metric;
	baseline->seed[0] = seed[0];
	baseline->seed[1] = seed[1];
	baseline->schema.id = type_of(&source->columns[COLUMN_ID]);
	baseline->schema.by_count = source->by_count;
	baseline->schema.by = palloc(source->by_count * sizeof(BaselineType));
	for (int i = 0; i < source->by_count; i++)
		baseline->schema.by[i] = type_of(&source->by[i]);
	baseline->schema.limits_bytes = geonn_limits_bytes_of(source);
	baseline->schema.keeps_unplaced = side == SIDE_OBSERVATIONS && join->keep_unmatched;
	baseline->directory = geonn_block_table_open(cache, side, "geonn_cache_directory");
	baseline->contents = geonn_block_table_open(cache, side, "geonn_cache_block");
	baseline->lists = geonn_block_table_open(cache, side, "geonn_cache_page");
	return baseline;
}

bool
geonn_baseline_has(const BaselineSchema *schema, const PointRow *row)
{
	return row->status == POINT_VALID || schema->keeps_unplaced;
}

/* ---- bytes ---- */

/*
 * Append bytes of a constant length, inline: appendBinaryStringInfo would call two functions more.
 */
static inline void
append_few(StringInfo bytes, const void *from, int length)
{
	if (bytes->maxlen - bytes->len <= length)
		enlargeStringInfo(bytes, length);
	memcpy(bytes->data + bytes->len, from, length);
	bytes->len += length;
}

void
geonn_baseline_write_value(StringInfo bytes, BaselineType type, Datum value)
{
	if (type.by_value)
		append_few(bytes, &value, sizeof(value));
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

void
geonn_baseline_fingerprint(const GeonnBaseline *baseline, BaselinePoint *point)
{
	PointHead	head = geonn_point_head(point->bytes);
	Size		start = offsetof(PointHead, latitude);
	uint64	   *hash = point->fingerprint.hash;

	Assert(point->length > sizeof(head));
	geonn_siphash(baseline->seed, point->bytes + start, point->length - start, hash);
	point->fingerprint.key = isnan(head.latitude) ? UNPLACED_BIT | hash[0] :
		key_of(head.latitude, head.longitude, hash[0]);
	Assert(isnan(head.latitude) == (point->fingerprint.key >= UNPLACED_BIT));
}

/* ---- points ---- */

void
geonn_baseline_write(const GeonnBaseline *baseline, const PointRow *row, StringInfo bytes,
					 BaselinePoint *point)
{
	const BaselineSchema *schema = &baseline->schema;
	int			start = bytes->len;
	PointHead	head = {.reach = -1,.latitude = NAN,.longitude = NAN};

	Assert(geonn_baseline_has(schema, row));
	Assert(schema->limits_bytes == 0 || row->limits != NULL);
	if (row->status == POINT_VALID)
	{
		head.latitude = row->latitude;
		head.longitude = row->longitude;
	}
	else if (row->id_is_null)
		geonn_cache_raise_null(baseline->cache);
	append_few(bytes, &head, sizeof(head));
	if (schema->limits_bytes > 0)
		appendBinaryStringInfo(bytes, (const char *) row->limits, (int) schema->limits_bytes);
	geonn_baseline_write_value(bytes, schema->id, row->id);
	for (int i = 0; i < schema->by_count; i++)
	{
		appendStringInfoChar(bytes, !row->by_is_null[i]);
		if (!row->by_is_null[i])
			geonn_baseline_write_value(bytes, schema->by[i], row->by[i]);
	}
	head.length = (uint32) (bytes->len - start);
	memcpy(bytes->data + start, &head, sizeof(head));
	*point = (BaselinePoint)
	{
		.bytes = bytes->data + start,.length = head.length,.reach = -1,.row = -1
	};
	geonn_baseline_fingerprint(baseline, point);
}

Datum
geonn_baseline_id(const BaselineSchema *schema, const char *bytes)
{
	Datum		id;

	(void) read_value(bytes + sizeof(PointHead) + schema->limits_bytes, schema->id, &id);
	return id;
}

bool
geonn_baseline_next(const char **contents, const char *end, BaselinePoint *point)
{
	PointHead	head;

	if (*contents >= end)
		return false;
	head = geonn_point_head(*contents);
	if (head.length < sizeof(head) || head.length > end - *contents)
		elog(ERROR, "a block of a baseline is damaged");
	point->bytes = *contents;
	point->length = head.length;
	point->reach = head.reach;
	point->row++;
	*contents += head.length;
	return true;
}

float
geonn_baseline_reach(const BaselineSchema *schema, const GeonnQuestion *question, const char *bytes,
					 uint64 rows, double distance)
{
	GeonnLimits limits;

	if (isnan(geonn_point_head(bytes).latitude))
		return -1;
	if (question->k > 0 && rows >= question->k)
		return geonn_rounded_up(distance);
	if (schema->limits_bytes == 0)
		return geonn_rounded_up(question->max_distance);
	memcpy(&limits, bytes + sizeof(PointHead), schema->limits_bytes);
	return limits.none ? -1 : geonn_rounded_up(Min(question->max_distance, limits.radius));
}

/* ---- lists of points ---- */

void
geonn_point_list_add(PointList *list, const BaselinePoint *point)
{
	char	   *bytes = MemoryContextAlloc(list->context, point->length);

	if (list->count == list->room)
	{
		list->room = Max(list->room * 2, 64);
		list->points = list->points == NULL ?
			MemoryContextAllocHuge(list->context, list->room * sizeof(BaselinePoint)) :
			repalloc_huge(list->points, list->room * sizeof(BaselinePoint));
	}
	memcpy(bytes, point->bytes, point->length);
	list->points[list->count] = *point;
	list->points[list->count++].bytes = bytes;
}

/* the points of a search */
typedef struct Points
{
	GivenPoints given;
	const BaselineSchema *schema;
	const PointList *list;
	Datum	   *by;				/* [by_count] values of the present point */
	bool	   *by_is_null;
	GeonnLimits limits;
	MemoryContext context;		/* has the present point's values */
} Points;

static void
give_point(void *state, uint64 number, PointRow *row)
{
	Points	   *points = state;
	const BaselineSchema *schema = points->schema;
	const char *bytes = points->list->points[number].bytes;
	PointHead	head = geonn_point_head(bytes);
	MemoryContext former = MemoryContextSwitchTo(points->context);

	Assert(number < points->list->count);
	MemoryContextReset(points->context);
	bytes += sizeof(head);
	memcpy(&points->limits, bytes, schema->limits_bytes);
	bytes = read_value(bytes + schema->limits_bytes, schema->id, &row->id);
	for (int i = 0; i < schema->by_count; i++)
	{
		points->by_is_null[i] = *bytes++ == 0;
		if (!points->by_is_null[i])
			bytes = read_value(bytes, schema->by[i], &points->by[i]);
	}
	row->latitude_is_null = row->longitude_is_null = isnan(head.latitude);
	row->latitude = head.latitude;
	row->longitude = head.longitude;
	row->by = points->by;
	row->by_is_null = points->by_is_null;
	row->limits = schema->limits_bytes > 0 ? &points->limits : NULL;
	MemoryContextSwitchTo(former);
}

const GivenPoints *
geonn_baseline_points(const BaselineSchema *schema, const PointList *list)
{
	Points	   *points = palloc0(sizeof(Points));

	points->given = (GivenPoints)
	{
		.count = list->count,
			.point = give_point,
			.state = points
	};
	points->schema = schema;
	points->list = list;
	points->by = palloc(schema->by_count * sizeof(Datum));
	points->by_is_null = palloc(schema->by_count * sizeof(bool));
	points->context = AllocSetContextCreate(CurrentMemoryContext, "geonn point",
											ALLOCSET_SMALL_SIZES);
	return &points->given;
}

/* ---- the directory ---- */

/*
 * Find the last block whose first key is at most this key.  For each value of a key's first bits, jumps gives
 * the block where the search begins: the last one that begins at or before all keys with these bits.
 * first_keys is small and mostly in the processor's cache.
 */
uint32
geonn_baseline_find_block(const GeonnBaseline *baseline, uint64 key)
{
	uint32		jump = (uint32) (key >> (64 - BASELINE_JUMP_BITS));
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
	Assert(baseline->first_keys[low] <= key);
	Assert(low + 1 == baseline->count || key < baseline->first_keys[low + 1]);
	return low;
}

static void
make_jumps(GeonnBaseline *baseline)
{
	uint32		block = 0;

	baseline->first_keys = MemoryContextAllocHuge(CurrentMemoryContext, baseline->count * sizeof(uint64));
	for (uint32 i = 0; i < baseline->count; i++)
		baseline->first_keys[i] = baseline->blocks[i].first_key;
	baseline->jumps = palloc(((1 << BASELINE_JUMP_BITS) + 1) * sizeof(uint32));
	for (uint64 jump = 0; jump < 1 << BASELINE_JUMP_BITS; jump++)
	{
		while (block + 1 < baseline->count &&
			   baseline->blocks[block + 1].first_key <= jump << (64 - BASELINE_JUMP_BITS))
			block++;
		baseline->jumps[jump] = block;
	}
	baseline->jumps[1 << BASELINE_JUMP_BITS] = baseline->count - 1;
}

/*
 * Append a directory row to the blocks, allocated for room entries.  Returns the new room.
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
geonn_baseline_load(GeonnBaseline *baseline)
{
	MemoryContext former = MemoryContextSwitchTo(baseline->context);
	const bytea *entries;
	uint32		room = 0;

	Assert(baseline->count == 0 && baseline->rows == 0);
	geonn_block_table_rewind(baseline->directory);
	while ((entries = geonn_block_table_next(baseline->directory)) != NULL)
		room = add_entries(baseline, entries, room);
	if (baseline->count == 0)
		elog(ERROR, "the directory of cache %d is missing", baseline->cache->id);
	for (uint32 i = 0; i < baseline->count; i++)
	{
		baseline->rows += baseline->blocks[i].rows;
		baseline->next_number = Max(baseline->next_number, baseline->blocks[i].number + 1);
	}
	make_jumps(baseline);
	MemoryContextSwitchTo(former);
}

/* ---- blocks ---- */

/*
 * Copy a block's contents, which later reads and writes would change.
 */
static const bytea *
read_block(GeonnBaseline *baseline, uint32 block)
{
	const bytea *contents = geonn_block_table_find(baseline->contents, baseline->blocks[block].number);

	if (contents == NULL)
		elog(ERROR, "block %u of cache %d is missing", baseline->blocks[block].number,
			 baseline->cache->id);
	return memcpy(palloc(VARSIZE_ANY(contents)), contents, VARSIZE_ANY(contents));
}

void
geonn_baseline_read_blocks(GeonnBaseline *baseline, const uint32 *blocks, uint32 count,
						   BlockConsumer consume, void *state)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn block",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);

	for (uint32 i = 0; i < count; i++)
	{
		const bytea *contents = read_block(baseline, blocks[i]);

		Assert(i == 0 || blocks[i - 1] < blocks[i]);
		CHECK_FOR_INTERRUPTS();
		consume(state, blocks[i], VARDATA_ANY(contents), VARSIZE_ANY_EXHDR(contents));
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}
