/*
 * cache_copy_write.c
 *		Parts of a cache's copy are written.
 *
 * Rows come in the order of their keys, and parts are cut off where they are large enough.
 * A copy that is there has parts replaced, each by one or more: the first of them has its
 * number, and replaces its contents.  The directory is written last: those of its rows
 * that are not the same.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "cache_copy.h"
#include "common/geodesy.h"
#include "common/metric.h"

/* a part is full with so many rows, or bytes */
#define ROWS_A_PART		64
#define BYTES_A_PART	6000

/* parts that are written by one statement */
#define PARTS_A_WRITING	256

struct CopyWriter
{
	GeonnCopy  *copy;
	MemoryContext context;

	/* the new directory */
	CopyPart   *parts;
	uint32		count;
	uint32		room;
	uint32		next_old;		/* part of the copy that has not been taken over or replaced */
	bool		anew;

	/* the part under construction */
	bool		open;
	CopyPart	part;
	uint64		last_key;
	StringInfoData contents;
	double	   *latitude;		/* of its placed rows */
	double	   *longitude;
	struct geonn_vector *vectors;
	uint32		placed;
	uint32		placed_room;

	/* parts that are to be written */
	MemoryContext waiting;
	Datum		numbers[PARTS_A_WRITING];
	Datum		values[PARTS_A_WRITING];
	int			waiting_count;
	bool		waiting_there;	/* in place of those with their numbers */
	uint32		first_new;		/* parts with lesser numbers are there */
};

static const char *const tables[] = {"geonn_cache_part", "geonn_cache_directory"};

void
geonn_copy_delete(const GeonnCache *cache, CacheSide side)
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

/* statements that write so many rows, of a table: new ones, and those that are there already */
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
 * Rows of a table of this side.
 */
static void
write_rows(const GeonnCopy *copy, const char *table, bool are_there, Datum *numbers,
		   Datum *contents, int count)
{
	Oid			types[] = {INT4OID, INT2OID, INT4ARRAYOID, BYTEAARRAYOID};
	Datum		values[] = {Int32GetDatum(copy->cache->id), Int16GetDatum(copy->side), (Datum) 0, (Datum) 0};

	SPI_connect();
	values[2] = PointerGetDatum(construct_array(numbers, count, INT4OID, sizeof(int32), true,
												TYPALIGN_INT));
	values[3] = PointerGetDatum(construct_array(contents, count, BYTEAOID, -1, false,
												TYPALIGN_INT));
	if (geonn_catalog_run(copy->cache->schema, psprintf(writing[are_there], table), NULL,
						  lengthof(types), types, values, NULL) != (uint64) count)
		elog(ERROR, "rows of table %s of cache %d are missing", table, copy->cache->id);
	SPI_finish();
}

static void
write_waiting(CopyWriter *writer)
{
	if (writer->waiting_count > 0)
		write_rows(writer->copy, "geonn_cache_part", writer->waiting_there, writer->numbers,
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

/* ---- parts ---- */

/*
 * A ball around the part's points: any centre would do, one among them makes it small.
 */
static void
find_ball(CopyWriter *writer)
{
	CopyPart   *part = &writer->part;
	int			metric = writer->copy->metric;
	struct geonn_vector centre = {0, 0, 0};

	part->radius = -1;
	part->latitude = part->longitude = 0;
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
	part->latitude = Max(-90, Min(90, atan2(centre.z, hypot(centre.x, centre.y)) * (180 / M_PI)));
	part->longitude = Max(-180, Min(180, atan2(centre.y, centre.x) * (180 / M_PI)));
	centre = geonn_unit_vector(part->latitude, part->longitude);
	for (uint32 i = 0; i < writer->placed; i++)
		part->radius = Max(part->radius, geonn_metric_chord_decides(metric) ?
						   geonn_metric_distance_of(metric, centre, writer->vectors[i]) :
						   geonn_metric_distance(metric, part->latitude, part->longitude,
												 writer->latitude[i], writer->longitude[i]));
}

static void
add_entry(CopyWriter *writer, const CopyPart *part)
{
	if (writer->count == writer->room)
	{
		writer->room *= 2;
		writer->parts = repalloc_huge(writer->parts, writer->room * sizeof(CopyPart));
	}
	writer->parts[writer->count++] = *part;
}

static void
write_part(CopyWriter *writer, const CopyPart *part, const char *contents, Size length)
{
	bool		is_there = part->number < writer->first_new;
	MemoryContext former;

	add_entry(writer, part);
	if (writer->waiting_there != is_there)
		write_waiting(writer);
	writer->waiting_there = is_there;
	former = MemoryContextSwitchTo(writer->waiting);
	writer->numbers[writer->waiting_count] = Int32GetDatum((int32) part->number);
	writer->values[writer->waiting_count++] = PointerGetDatum(make_bytea(contents, length));
	MemoryContextSwitchTo(former);
	if (writer->waiting_count == PARTS_A_WRITING)
		write_waiting(writer);
}

static void
end_part(CopyWriter *writer)
{
	if (!writer->open)
		return;
	find_ball(writer);
	write_part(writer, &writer->part, writer->contents.data, writer->contents.len);
	writer->open = false;
}

static void
begin_part(CopyWriter *writer, uint64 first_key, uint32 number)
{
	CHECK_FOR_INTERRUPTS();
	writer->part = (CopyPart)
	{
		.first_key = first_key,.number = number,.bound = -1
	};
	writer->placed = 0;
	resetStringInfo(&writer->contents);
	writer->open = true;
}

CopyWriter *
geonn_copy_writer_begin(GeonnCopy *copy, bool anew)
{
	CopyWriter *writer = palloc0(sizeof(CopyWriter));

	writer->copy = copy;
	writer->context = CurrentMemoryContext;
	writer->waiting = AllocSetContextCreate(CurrentMemoryContext, "geonn parts",
											ALLOCSET_DEFAULT_SIZES);
	writer->anew = anew;
	writer->room = Max(copy->count, 16);
	writer->parts = MemoryContextAllocHuge(CurrentMemoryContext,
										   writer->room * sizeof(CopyPart));
	initStringInfo(&writer->contents);
	writer->placed_room = ROWS_A_PART;
	writer->latitude = palloc(ROWS_A_PART * sizeof(double));
	writer->longitude = palloc(ROWS_A_PART * sizeof(double));
	writer->vectors = palloc(ROWS_A_PART * sizeof(struct geonn_vector));
	if (anew)
	{
		geonn_copy_delete(copy->cache, copy->side);
		copy->next_number = 0;
		begin_part(writer, 0, copy->next_number++);
	}
	else
		writer->first_new = copy->next_number;
	return writer;
}

/*
 * The parts before this one stay as they are.
 */
static void
pass_to(CopyWriter *writer, uint32 part)
{
	end_part(writer);
	while (writer->next_old < part)
		add_entry(writer, &writer->copy->parts[writer->next_old++]);
	writer->next_old++;
}

void
geonn_copy_replace(CopyWriter *writer, uint32 part)
{
	pass_to(writer, part);
	begin_part(writer, writer->copy->parts[part].first_key, writer->copy->parts[part].number);
}

void
geonn_copy_rebound(CopyWriter *writer, uint32 part, const char *contents, Size length, float bound)
{
	CopyPart	entry = writer->copy->parts[part];

	CHECK_FOR_INTERRUPTS();
	pass_to(writer, part);
	entry.bound = bound;
	write_part(writer, &entry, contents, length);
}

void
geonn_copy_add(CopyWriter *writer, const CopyPlace *place, float bound, const char *bytes,
			   Size length)
{
	CopyPart   *part = &writer->part;
	bool		placed;

	if ((part->rows >= ROWS_A_PART || writer->contents.len >= BYTES_A_PART) &&
		place->key != writer->last_key)
	{
		end_part(writer);
		begin_part(writer, place->key, writer->copy->next_number++);
	}
	writer->last_key = place->key;
	appendBinaryStringInfo(&writer->contents, (char *) &bound, sizeof(bound));
	appendBinaryStringInfo(&writer->contents, bytes, (int) length);
	part->rows++;
	part->hash[0] += place->hash[0];
	part->hash[1] += place->hash[1];
	part->bound = Max(part->bound, bound);
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
 * Is this row of the directory as it was?
 */
static bool
is_same(const CopyWriter *writer, uint32 first, uint32 count)
{
	const GeonnCopy *copy = writer->copy;

	return !writer->anew && first < copy->count && Min(PARTS_A_ROW, copy->count - first) == count &&
		memcmp(copy->parts + first, writer->parts + first, count * sizeof(CopyPart)) == 0;
}

static void
write_directory(CopyWriter *writer)
{
	for (uint32 first = 0; first < writer->count; first += PARTS_A_ROW)
	{
		uint32		count = Min(PARTS_A_ROW, writer->count - first);
		Datum		number = Int32GetDatum((int32) (first / PARTS_A_ROW));
		Datum		contents;

		if (is_same(writer, first, count))
			continue;
		contents = PointerGetDatum(make_bytea((char *) (writer->parts + first),
											  count * sizeof(CopyPart)));
		write_rows(writer->copy, "geonn_cache_directory",
				   !writer->anew && first < writer->copy->count, &number, &contents, 1);
		pfree(DatumGetPointer(contents));
	}
}

void
geonn_copy_writer_end(CopyWriter *writer)
{
	MemoryContext former = MemoryContextSwitchTo(writer->context);

	end_part(writer);
	if (!writer->anew)
	{
		while (writer->next_old < writer->copy->count)
			add_entry(writer, &writer->copy->parts[writer->next_old++]);
	}
	write_waiting(writer);
	write_directory(writer);
	MemoryContextSwitchTo(former);
}
