/*
 * cache_copy_build.c
 *		A cache's copy is made of all that a source has.
 *
 * The points are read once and sorted by their keys, in a file where they do not fit into
 * maintenance_work_mem.  For observations the cache's own search is then made once
 * more, in this order, for the bounds of all of them, of which there is an array; then the
 * points are read from the sort again, and written with their bounds.
 */
#include "postgres.h"

#include <math.h>

#include "access/tupdesc.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "cache_copy.h"

/* columns of the sort */
enum
{
	SORTED_KEY,
	SORTED_HASH0,
	SORTED_HASH1,
	SORTED_BYTES,
	SORTED_COLUMNS
};

typedef struct Building
{
	GeonnCopy  *copy;
	Tuplesortstate *sort;
	TupleTableSlot *write_slot;
	TupleTableSlot *read_slot;
	StringInfoData bytes;
	MemoryContext row_context;
	uint64		rows;
	uint64		placed;
	float	   *bounds;			/* [placed] */
} Building;

/*
 * Keys are sorted as signed numbers.
 */
static int64
to_signed(uint64 key)
{
	return (int64) (key ^ (UINT64CONST(1) << 63));
}

static TupleDesc
sorted_type(void)
{
	TupleDesc	type = CreateTemplateTupleDesc(SORTED_COLUMNS);

	TupleDescInitEntry(type, SORTED_KEY + 1, "key", INT8OID, -1, 0);
	TupleDescInitEntry(type, SORTED_HASH0 + 1, "hash0", INT8OID, -1, 0);
	TupleDescInitEntry(type, SORTED_HASH1 + 1, "hash1", INT8OID, -1, 0);
	TupleDescInitEntry(type, SORTED_BYTES + 1, "bytes", BYTEAOID, -1, 0);
	return type;
}

static void
take_row(void *state, const PointRow *row)
{
	Building   *building = state;
	TupleTableSlot *slot = building->write_slot;
	MemoryContext former;
	CopyPlace	place;

	if (!geonn_copy_has(&building->copy->shape, row))
		return;
	former = MemoryContextSwitchTo(building->row_context);
	MemoryContextReset(building->row_context);
	building->bytes.len = VARHDRSZ;
	geonn_copy_write(building->copy, row, &building->bytes, &place);
	SET_VARSIZE(building->bytes.data, building->bytes.len);
	ExecClearTuple(slot);
	slot->tts_values[SORTED_KEY] = Int64GetDatum(to_signed(place.key));
	slot->tts_values[SORTED_HASH0] = Int64GetDatum((int64) place.hash[0]);
	slot->tts_values[SORTED_HASH1] = Int64GetDatum((int64) place.hash[1]);
	slot->tts_values[SORTED_BYTES] = PointerGetDatum(building->bytes.data);
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(building->sort, slot);
	building->rows++;
	building->placed += row->status == POINT_VALID;
	MemoryContextSwitchTo(former);
}

/*
 * The next of the sorted rows.
 */
static bool
next_row(Building *building, CopyPlace *place, const char **bytes, Size *length)
{
	TupleTableSlot *slot = building->read_slot;
	struct varlena *value;

	if (!tuplesort_gettupleslot(building->sort, true, false, slot, NULL))
		return false;
	slot_getallattrs(slot);
	place->key = (uint64) DatumGetInt64(slot->tts_values[SORTED_KEY]) ^ (UINT64CONST(1) << 63);
	place->hash[0] = (uint64) DatumGetInt64(slot->tts_values[SORTED_HASH0]);
	place->hash[1] = (uint64) DatumGetInt64(slot->tts_values[SORTED_HASH1]);
	value = (struct varlena *) DatumGetPointer(slot->tts_values[SORTED_BYTES]);
	*bytes = VARDATA_ANY(value);
	*length = VARSIZE_ANY_EXHDR(value);
	return true;
}

/* ---- bounds ---- */

float
geonn_copy_bound(const GeonnQuestion *question, uint64 rows, double distance)
{
	double		reach = question->neighbours > 0 && rows >= question->neighbours ? distance :
		question->max_distance;
	float		bound = (float) reach;

	return bound < reach ? nextafterf(bound, INFINITY) : bound;
}

/*
 * They are asked for in the order in which they are sorted.
 */
static const char *
bytes_of_sorted(const void *source, uint64 number pg_attribute_unused())
{
	Building   *building = unconstify(Building *, (const Building *) source);
	CopyPlace	place;
	const char *bytes;
	Size		length;

	if (!next_row(building, &place, &bytes, &length))
		elog(ERROR, "sorted points are missing");
	return bytes;
}

/*
 * How far the neighbours of each observation reach.  Those without a place come last, and are
 * not searched for: no reference reaches them.
 */
static void
find_bounds(Building *building, GeonnJoin *join)
{
	GeonnJoin	numbered = *join;
	TupleDesc	type = CreateTemplateTupleDesc(3);
	GeonnSearch *search;
	Datum		values[3];
	bool		nulls[3];

	TupleDescInitEntry(type, 1, "ord", INT8OID, -1, 0);
	TupleDescInitEntry(type, 2, "rank", INT8OID, -1, 0);
	TupleDescInitEntry(type, 3, "distance", FLOAT8OID, -1, 0);
	for (uint64 i = 0; i < building->placed; i++)
		building->bounds[i] = geonn_copy_bound(&join->question, 0, 0);
	numbered.given = geonn_copy_points(&building->copy->shape, building->placed, building,
									   bytes_of_sorted);
	numbered.keep_unmatched = false;
	numbered.invalid = GEONN_INVALID_COUNTED;
	search = geonn_search_begin(&numbered, type);
	while (geonn_search_next(search, values, nulls))
		building->bounds[DatumGetInt64(values[0]) - 1] =
			geonn_copy_bound(&join->question, (uint64) DatumGetInt64(values[1]),
							 DatumGetFloat8(values[2]));
	geonn_search_end(search);
}

/* ---- all of it ---- */

static void
write_copy(Building *building)
{
	CopyWriter *writer = geonn_copy_writer_begin(building->copy, true);
	CopyPlace	place;
	const char *bytes;
	Size		length;

	for (uint64 i = 0; next_row(building, &place, &bytes, &length); i++)
		geonn_copy_add(writer, &place,
					   building->bounds == NULL || i >= building->placed ? -1 : building->bounds[i],
					   bytes, length);
	geonn_copy_writer_end(writer);
}

void
geonn_copy_build(GeonnCopy *copy, const PointSource *source, GeonnJoin *join)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn copy",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	Building   *building = palloc0(sizeof(Building));
	TupleDesc	type = sorted_type();
	AttrNumber	column = SORTED_KEY + 1;
	Oid			order = Int8LessOperator;
	Oid			collation = InvalidOid;
	bool		nulls_first = false;

	building->copy = copy;
	building->sort = tuplesort_begin_heap(type, 1, &column, &order, &collation, &nulls_first,
										  maintenance_work_mem, NULL, TUPLESORT_RANDOMACCESS);
	building->write_slot = MakeSingleTupleTableSlot(type, &TTSOpsVirtual);
	building->read_slot = MakeSingleTupleTableSlot(type, &TTSOpsMinimalTuple);
	building->row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_SMALL_SIZES);
	initStringInfo(&building->bytes);
	memset(building->write_slot->tts_isnull, 0, SORTED_COLUMNS * sizeof(bool));

	geonn_read_points(source, GEONN_INVALID_COUNTED, take_row, building);
	tuplesort_performsort(building->sort);
	if (join != NULL)
	{
		building->bounds = MemoryContextAllocHuge(context, Max(building->placed, 1) * sizeof(float));
		find_bounds(building, join);
		tuplesort_rescan(building->sort);
	}
	write_copy(building);

	ExecDropSingleTupleTableSlot(building->write_slot);
	ExecDropSingleTupleTableSlot(building->read_slot);
	tuplesort_end(building->sort);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}
