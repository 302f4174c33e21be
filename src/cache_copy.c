/*
 * cache_copy.c
 *		What the last refresh of a cache saw: copies of its points.
 *
 * A refresh that is to do less than search for everything must know what has changed since
 * the last one.  So there is a copy of the points that the last one saw, of both
 * sides, in tables of the extension that are unlogged: it can be had anew.
 *
 * The points of a copy are in parts of some dozens that are near each other: they are in the
 * order of a key, which is a space-filling curve (Morton's) through a grid of
 * latitudes and longitudes; its last bits are of a hash of the point, so that many
 * points at one place have different keys.  A part has all points whose keys are between
 * its own first key and the next part's.  The parts' contents are rows of
 * geonn_cache_part; the directory, which a refresh reads whole, has of each part
 *
 *	 - the first key;
 *	 - a sum of the hashes of its points.  A point's hash is of all its bytes: id,
 *	   coordinates, by columns.  When the table is read again each row's hash is added to
 *	   the sum of the part where its key says that it belongs; where the sum comes out
 *	   the same the part has not changed.  So what has changed is found by one
 *	   scan of a table in no particular order, with memory for the directory
 *	   alone.  Sums and hashes have 128 bits and depend on a secret seed of the
 *	   copy, the hash's key; two states of a part have the same one by an accident that has
 *	   to be waited for longer than for any other fault of a machine, as with the sums
 *	   that file systems and version control trust;
 *	 - a ball around all its points, and the greatest of their bounds, by which
 *	   cache_incremental.c passes over what changes of the references cannot reach.
 *
 * A point's bound is how far its neighbours reach: the distance of the last of its k
 * nearest, or the greatest distance that was asked for where it has fewer.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "cache_copy.h"
#include "common/siphash.h"

/* parts that are read by one statement */
#define PARTS_A_READING	1024

/* bits of a key that tell which of the jumps it is in */
#define JUMP_BITS		16

/* bits of a key that are not of its place */
#define HASH_BITS		16

/* the key of a point without a place is the last one */
#define UNPLACED_KEY	PG_UINT64_MAX

/* ---- shape ---- */

static CopyType
type_of(const PointColumn *column)
{
	CopyType	type;

	get_typlenbyval(column->base_type, &type.length, &type.by_value);
	return type;
}

GeonnCopy *
geonn_copy_create(const GeonnCache *cache, CacheSide side, const PointSource *source, int metric,
				  bool keeps_unplaced, const uint64 *seed)
{
	GeonnCopy  *copy = palloc0(sizeof(GeonnCopy));

	copy->cache = cache;
	copy->context = CurrentMemoryContext;
	copy->keep_room = (Size) maintenance_work_mem * 1024 / 2;
	copy->side = side;
	copy->metric = metric;
	copy->seed[0] = seed[0];
	copy->seed[1] = seed[1];
	copy->shape.id = type_of(&source->columns[COLUMN_ID]);
	copy->shape.by_count = source->by_count;
	copy->shape.by = palloc(source->by_count * sizeof(CopyType));
	for (int i = 0; i < source->by_count; i++)
		copy->shape.by[i] = type_of(&source->by[i]);
	copy->shape.keeps_unplaced = keeps_unplaced;
	return copy;
}

bool
geonn_copy_has(const CopyShape *shape, const PointRow *row)
{
	return row->status == POINT_VALID || shape->keeps_unplaced;
}

/* ---- bytes ---- */

static void
write_value(StringInfo bytes, CopyType type, Datum value)
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
read_value(const char *bytes, CopyType type, Datum *value)
{
	uint32		length;
	char	   *copy;

	if (type.by_value)
	{
		memcpy(value, bytes, sizeof(*value));
		return bytes + sizeof(*value);
	}
	if (type.length > 0)
	{
		copy = palloc(type.length);
		memcpy(copy, bytes, type.length);
		*value = PointerGetDatum(copy);
		return bytes + type.length;
	}
	memcpy(&length, bytes, sizeof(length));
	bytes += sizeof(length);
	if (type.length == -1)
	{
		copy = palloc(length + VARHDRSZ);
		SET_VARSIZE(copy, length + VARHDRSZ);
		memcpy(VARDATA(copy), bytes, length);
	}
	else
	{
		copy = palloc(length + 1);
		memcpy(copy, bytes, length);
		copy[length] = '\0';
	}
	*value = PointerGetDatum(copy);
	return bytes + length;
}

/* ---- keys ---- */

/*
 * Spread the bits of a number over the even ones.
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

	/* what is not a number is nowhere */
	return !(number > 0) ? 0 : number >= 4294967295.0 ? PG_UINT32_MAX : (uint32) number;
}

static uint64
key_of(double latitude, double longitude, uint64 hash)
{
	uint64		place;

	if (longitude >= 180)
		longitude -= 360;
	place = spread(cell((longitude + 180) / 360)) << 1 | spread(cell((latitude + 90) / 180));
	place = place >> HASH_BITS << HASH_BITS | (hash & ((1 << HASH_BITS) - 1));
	return Min(place, UNPLACED_KEY - 1);
}

CopyPlace
geonn_copy_place(const GeonnCopy *copy, const char *bytes, Size length)
{
	CopyPlace	place;
	bool		placed;
	double		coordinates[2];

	geonn_siphash(copy->seed, bytes, length, place.hash);
	memcpy(&placed, bytes, sizeof(placed));
	memcpy(coordinates, bytes + sizeof(placed), sizeof(coordinates));
	place.key = placed ? key_of(coordinates[0], coordinates[1], place.hash[0]) : UNPLACED_KEY;
	return place;
}

/* ---- rows ---- */

void
geonn_copy_write(const GeonnCopy *copy, const PointRow *row, StringInfo bytes, CopyPlace *place)
{
	const CopyShape *shape = &copy->shape;
	bool		placed = row->status == POINT_VALID;
	double		coordinates[2] = {0, 0};
	int			start = bytes->len;

	if (placed)
	{
		coordinates[0] = row->latitude;
		coordinates[1] = row->longitude;
	}
	else if (row->id_is_null)
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("an observation without an id cannot be kept in the table of cache \"%s\"",
						copy->cache->name),
				 errdetail("With keep_unmatched all rows are kept, by their ids.")));
	enlargeStringInfo(bytes, sizeof(placed) + sizeof(coordinates));
	memcpy(bytes->data + start, &placed, sizeof(placed));
	memcpy(bytes->data + start + sizeof(placed), coordinates, sizeof(coordinates));
	bytes->len += sizeof(placed) + sizeof(coordinates);
	write_value(bytes, shape->id, row->id);
	for (int i = 0; i < shape->by_count; i++)
	{
		appendStringInfoChar(bytes, !row->by_is_null[i]);
		if (!row->by_is_null[i])
			write_value(bytes, shape->by[i], row->by[i]);
	}
	*place = geonn_copy_place(copy, bytes->data + start, bytes->len - start);
}

CopyRow
geonn_copy_row(const CopyShape *shape)
{
	return (CopyRow)
	{
		.by = palloc(shape->by_count * sizeof(Datum)),
			.by_is_null = palloc(shape->by_count * sizeof(bool))
	};
}

const char *
geonn_copy_read(const CopyShape *shape, const char *bytes, CopyRow *row)
{
	memcpy(&row->placed, bytes, sizeof(row->placed));
	bytes += sizeof(row->placed);
	memcpy(&row->latitude, bytes, sizeof(row->latitude));
	bytes += sizeof(row->latitude);
	memcpy(&row->longitude, bytes, sizeof(row->longitude));
	bytes += sizeof(row->longitude);
	bytes = read_value(bytes, shape->id, &row->id);
	for (int i = 0; i < shape->by_count; i++)
	{
		row->by_is_null[i] = *bytes++ == 0;
		if (!row->by_is_null[i])
			bytes = read_value(bytes, shape->by[i], &row->by[i]);
	}
	return bytes;
}

const char *
geonn_copy_id(const CopyShape *shape, const char *bytes, Size *length)
{
	uint32		stored;

	bytes += sizeof(bool) + 2 * sizeof(double);
	if (shape->id.by_value)
		*length = sizeof(Datum);
	else if (shape->id.length > 0)
		*length = shape->id.length;
	else
	{
		memcpy(&stored, bytes, sizeof(stored));
		*length = sizeof(stored) + stored;
	}
	return bytes;
}

bool
geonn_copy_next(const CopyShape *shape, const char **contents, const char *end, CopyRow *row,
				float *bound, const char **bytes, Size *length)
{
	if (*contents >= end)
		return false;
	memcpy(bound, *contents, sizeof(*bound));
	*bytes = *contents + sizeof(*bound);
	*contents = geonn_copy_read(shape, *bytes, row);
	*length = *contents - *bytes;
	return true;
}

/* ---- points of searches ---- */

typedef struct Points
{
	GivenPoints given;
	const CopyShape *shape;
	CopyRow		row;
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
	(void) geonn_copy_read(points->shape, points->bytes(points->source, number), &points->row);
	row->id = points->row.id;
	row->latitude_is_null = row->longitude_is_null = !points->row.placed;
	row->latitude = points->row.latitude;
	row->longitude = points->row.longitude;
	row->by = points->row.by;
	row->by_is_null = points->row.by_is_null;
	MemoryContextSwitchTo(former);
}

const GivenPoints *
geonn_copy_points(const CopyShape *shape, uint64 count, const void *source,
				  const char *(*bytes) (const void *source, uint64 number))
{
	Points	   *points = palloc0(sizeof(Points));

	points->given = (GivenPoints)
	{
		count, give_point, points
	};
	points->shape = shape;
	points->row = geonn_copy_row(shape);
	points->context = AllocSetContextCreate(CurrentMemoryContext, "geonn point",
											ALLOCSET_SMALL_SIZES);
	points->source = source;
	points->bytes = bytes;
	return &points->given;
}

/* ---- the directory ---- */

/*
 * The last part whose first key is not greater.  jumps has, for each value of a key's first
 * bits, the last part that begins before all keys with them: from there it is not far.
 * first_keys is small, beside the parts, and likely to be in the processor's cache.
 */
uint32
geonn_copy_find(const GeonnCopy *copy, uint64 key)
{
	uint32		jump = (uint32) (key >> (64 - JUMP_BITS));
	uint32		low = copy->jumps[jump];
	uint32		high = copy->jumps[jump + 1];

	while (low < high)
	{
		uint32		middle = low + (high - low + 1) / 2;

		if (copy->first_keys[middle] <= key)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

void
geonn_copy_prefetch(const GeonnCopy *copy, uint64 key)
{
	__builtin_prefetch(&copy->first_keys[copy->jumps[key >> (64 - JUMP_BITS)]]);
}

static void
make_jumps(GeonnCopy *copy)
{
	uint32		part = 0;

	copy->first_keys = MemoryContextAllocHuge(CurrentMemoryContext, copy->count * sizeof(uint64));
	for (uint32 i = 0; i < copy->count; i++)
		copy->first_keys[i] = copy->parts[i].first_key;
	copy->jumps = palloc(((1 << JUMP_BITS) + 1) * sizeof(uint32));
	for (uint64 jump = 0; jump < 1 << JUMP_BITS; jump++)
	{
		while (part + 1 < copy->count &&
			   copy->parts[part + 1].first_key <= jump << (64 - JUMP_BITS))
			part++;
		copy->jumps[jump] = part;
	}
	copy->jumps[1 << JUMP_BITS] = copy->count - 1;
}

void
geonn_copy_load(GeonnCopy *copy, Snapshot snapshot)
{
	MemoryContext context = CurrentMemoryContext;
	Oid			types[] = {INT4OID, INT2OID};
	Datum		values[] = {Int32GetDatum(copy->cache->id), Int16GetDatum(copy->side)};
	uint32		room = 0;

	SPI_connect();
	(void) geonn_catalog_run(copy->cache->schema,
							 "SELECT contents FROM $S.geonn_cache_directory"
							 " WHERE cache OPERATOR(pg_catalog.=) $1 AND side OPERATOR(pg_catalog.=) $2"
							 " ORDER BY number",
							 snapshot, 2, types, values, NULL);
	copy->parts = MemoryContextAllocHuge(context,
										 Max(SPI_processed, 1) * PARTS_A_ROW * sizeof(CopyPart));
	room = (uint32) SPI_processed * PARTS_A_ROW;
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		is_null;
		bytea	   *contents = DatumGetByteaPP(SPI_getbinval(SPI_tuptable->vals[i],
															 SPI_tuptable->tupdesc, 1, &is_null));
		uint32		parts = (uint32) (VARSIZE_ANY_EXHDR(contents) / sizeof(CopyPart));

		if (parts > PARTS_A_ROW || copy->count + parts > room)
			elog(ERROR, "the directory of cache %d is damaged", copy->cache->id);
		memcpy(copy->parts + copy->count, VARDATA_ANY(contents), parts * sizeof(CopyPart));
		copy->count += parts;
	}
	SPI_finish();
	if (copy->count == 0)
		elog(ERROR, "the directory of cache %d is not there", copy->cache->id);
	for (uint32 i = 0; i < copy->count; i++)
	{
		copy->rows += copy->parts[i].rows;
		copy->next_number = Max(copy->next_number, copy->parts[i].number + 1);
	}
	make_jumps(copy);
}

/* ---- parts ---- */

/*
 * Parts are often read twice, to be looked at and to be put together anew: those that there is
 * room for are kept.
 */
static void
keep(GeonnCopy *copy, uint32 part, const bytea *contents)
{
	Size		size = VARSIZE_ANY(contents);

	if (size > copy->keep_room)
		return;
	copy->keep_room -= size;
	copy->kept[part] = MemoryContextAlloc(copy->context, size);
	memcpy(copy->kept[part], contents, size);
}

/*
 * The parts of one statement.  Each is looked up by the primary key, whatever the planner thinks
 * that there is: a join would be one with all parts, as long as nobody has analyzed the table
 * since it was filled.
 */
static void
read_some_parts(GeonnCopy *copy, const uint32 *parts, uint32 count, Snapshot snapshot,
				CopyPartConsumer consume, void *state)
{
	Oid			types[] = {INT4OID, INT2OID, INT4ARRAYOID};
	Datum		numbers[PARTS_A_READING];
	Datum		values[] = {Int32GetDatum(copy->cache->id), Int16GetDatum(copy->side), (Datum) 0};

	SPI_connect();
	for (uint32 i = 0; i < count; i++)
		numbers[i] = Int32GetDatum((int32) copy->parts[parts[i]].number);
	values[2] = PointerGetDatum(construct_array(numbers, (int) count, INT4OID, sizeof(int32), true,
												TYPALIGN_INT));
	if (geonn_catalog_run(copy->cache->schema,
						  "SELECT (SELECT p.contents FROM $S.geonn_cache_part p"
						  " WHERE p.cache OPERATOR(pg_catalog.=) $1"
						  " AND p.side OPERATOR(pg_catalog.=) $2"
						  " AND p.number OPERATOR(pg_catalog.=) n.number)"
						  " FROM pg_catalog.unnest($3) AS n(number)",
						  snapshot, lengthof(types), types, values, NULL) != count)
		elog(ERROR, "parts of cache %d are missing", copy->cache->id);
	for (uint32 i = 0; i < count; i++)
	{
		bool		is_null;
		Datum		value = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &is_null);
		bytea	   *contents;

		if (is_null)
			elog(ERROR, "part %u of cache %d is missing", copy->parts[parts[i]].number,
				 copy->cache->id);
		contents = DatumGetByteaPP(value);
		keep(copy, parts[i], contents);
		consume(state, parts[i], VARDATA_ANY(contents), VARSIZE_ANY_EXHDR(contents));
	}
	SPI_finish();
}

void
geonn_copy_read_parts(GeonnCopy *copy, const uint32 *parts, uint32 count, Snapshot snapshot,
					  CopyPartConsumer consume, void *state)
{
	if (copy->kept == NULL)
		copy->kept = MemoryContextAllocExtended(copy->context, copy->count * sizeof(bytea *),
												MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	while (count > 0)
	{
		uint32		some = 0;

		CHECK_FOR_INTERRUPTS();
		while (some < Min(count, PARTS_A_READING) && copy->kept[parts[some]] == NULL)
			some++;
		if (some > 0)
			read_some_parts(copy, parts, some, snapshot, consume, state);
		else
		{
			const bytea *contents = copy->kept[parts[some++]];

			consume(state, parts[0], VARDATA_ANY(contents), VARSIZE_ANY_EXHDR(contents));
		}
		parts += some;
		count -= some;
	}
}
