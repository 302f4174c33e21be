/*
 * baseline_build.c
 *		A baseline is made of all rows of a source.
 *
 * The points are read once and sorted by their keys, in a file if they do not fit into
 * maintenance_work_mem.  For observations, the cache's own search then runs once more, in this
 * order, and fills an array with their reaches.  Then the points are read from the sort again, and
 * written with their reaches.
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

#include "cache/baseline.h"

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
	GeonnBaseline *baseline;
	Tuplesortstate *sort;
	TupleTableSlot *write_slot;
	TupleTableSlot *read_slot;
	StringInfoData bytes;
	MemoryContext row_context;
	uint64		rows;
	uint64		placed;
	float	   *reaches;		/* [placed] */
} Building;

/*
 * Map a key to a signed number of the same order, for the sort.
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
	Fingerprint fingerprint;

	if (!geonn_baseline_has(&building->baseline->schema, row))
		return;
	former = MemoryContextSwitchTo(building->row_context);
	MemoryContextReset(building->row_context);
	building->bytes.len = VARHDRSZ;
	geonn_baseline_write(building->baseline, row, &building->bytes, &fingerprint);
	SET_VARSIZE(building->bytes.data, building->bytes.len);
	ExecClearTuple(slot);
	slot->tts_values[SORTED_KEY] = Int64GetDatum(to_signed(fingerprint.key));
	slot->tts_values[SORTED_HASH0] = Int64GetDatum((int64) fingerprint.hash[0]);
	slot->tts_values[SORTED_HASH1] = Int64GetDatum((int64) fingerprint.hash[1]);
	slot->tts_values[SORTED_BYTES] = PointerGetDatum(building->bytes.data);
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(building->sort, slot);
	building->rows++;
	building->placed += row->status == POINT_VALID;
	MemoryContextSwitchTo(former);
}

/*
 * Read the next of the sorted rows.
 */
static bool
next_row(Building *building, Fingerprint *fingerprint, const char **bytes, Size *length)
{
	TupleTableSlot *slot = building->read_slot;
	struct varlena *value;

	if (!tuplesort_gettupleslot(building->sort, true, false, slot, NULL))
		return false;
	slot_getallattrs(slot);
	fingerprint->key = (uint64) DatumGetInt64(slot->tts_values[SORTED_KEY]) ^ (UINT64CONST(1) << 63);
	fingerprint->hash[0] = (uint64) DatumGetInt64(slot->tts_values[SORTED_HASH0]);
	fingerprint->hash[1] = (uint64) DatumGetInt64(slot->tts_values[SORTED_HASH1]);
	value = (struct varlena *) DatumGetPointer(slot->tts_values[SORTED_BYTES]);
	*bytes = VARDATA_ANY(value);
	*length = VARSIZE_ANY_EXHDR(value);
	return true;
}

/* ---- reaches ---- */

float
geonn_baseline_reach(const GeonnQuestion *question, uint64 rows, double distance)
{
	double		exact = question->neighbours > 0 && rows >= question->neighbours ? distance :
		question->max_distance;
	float		reach = (float) exact;

	return reach < exact ? nextafterf(reach, INFINITY) : reach;
}

/*
 * The search asks for points in the order in which they are sorted.
 */
static const char *
bytes_of_sorted(const void *source, uint64 number pg_attribute_unused())
{
	Building   *building = unconstify(Building *, (const Building *) source);
	Fingerprint fingerprint;
	const char *bytes;
	Size		length;

	if (!next_row(building, &fingerprint, &bytes, &length))
		elog(ERROR, "sorted points are missing");
	return bytes;
}

/*
 * Find the reach of each observation.  Those without coordinates come last, and are not searched
 * for: no reference is near them.
 */
static void
find_reaches(Building *building, GeonnJoin *join)
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
		building->reaches[i] = geonn_baseline_reach(&join->question, 0, 0);
	numbered.given = geonn_baseline_points(&building->baseline->schema, building->placed, building,
										   bytes_of_sorted);
	numbered.keep_unmatched = false;
	numbered.invalid = GEONN_INVALID_COUNTED;
	search = geonn_search_begin(&numbered, type);
	while (geonn_search_next(search, values, nulls))
		building->reaches[DatumGetInt64(values[0]) - 1] =
			geonn_baseline_reach(&join->question, (uint64) DatumGetInt64(values[1]),
								 DatumGetFloat8(values[2]));
	geonn_search_end(search);
}

/* ---- all of it ---- */

static void
write_baseline(Building *building)
{
	BaselineWriter *writer = geonn_baseline_writer_begin(building->baseline, true);
	Fingerprint fingerprint;
	const char *bytes;
	Size		length;

	for (uint64 i = 0; next_row(building, &fingerprint, &bytes, &length); i++)
		geonn_baseline_add(writer, &fingerprint,
						   building->reaches == NULL || i >= building->placed ? -1 : building->reaches[i],
						   bytes, length);
	geonn_baseline_writer_end(writer);
}

void
geonn_baseline_build(GeonnBaseline *baseline, const PointSource *source, GeonnJoin *join)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn baseline",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	Building   *building = palloc0(sizeof(Building));
	TupleDesc	type = sorted_type();
	AttrNumber	column = SORTED_KEY + 1;
	Oid			order = Int8LessOperator;
	Oid			collation = InvalidOid;
	bool		nulls_first = false;

	building->baseline = baseline;
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
		building->reaches = MemoryContextAllocHuge(context, Max(building->placed, 1) * sizeof(float));
		find_reaches(building, join);
		tuplesort_rescan(building->sort);
	}
	write_baseline(building);

	ExecDropSingleTupleTableSlot(building->write_slot);
	ExecDropSingleTupleTableSlot(building->read_slot);
	tuplesort_end(building->sort);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}
