/*
 * check.c
 *		geonn_check(): what to know of a relation's points before a join.
 *
 * All rows are read as a join reads them.  Duplicates are found by sorting, so
 * that memory does not grow with the relation.
 * Warnings name the mistakes that the coordinates show (mistake.c); a swap of points
 * that are valid either way shows in the extents alone.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/float.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

#include "common/geodesy.h"
#include "base/compat.h"
#include "points/describe.h"
#include "points/mistake.h"
#include "points/reader.h"
#include "base/result.h"

PG_FUNCTION_INFO_V1(geonn_check);

/* the columns of the result */
enum
{
	CHECK_ROWS,
	CHECK_NULL_IDS,
	CHECK_NULL_COORDINATES,
	CHECK_NOT_FINITE,
	CHECK_LATITUDE_OUT_OF_RANGE,
	CHECK_LONGITUDE_OUT_OF_RANGE,
	CHECK_ZERO_ZERO,
	CHECK_LONGITUDE_OVER_180,
	CHECK_DUPLICATE_COORDINATES,
	CHECK_DUPLICATE_IDS,
	CHECK_COUNTS,				/* the number of counts; the extents follow */
	CHECK_LATITUDE_MIN = CHECK_COUNTS,
	CHECK_LATITUDE_MAX,
	CHECK_LONGITUDE_MIN,
	CHECK_LONGITUDE_MAX,
	CHECK_NULL_RADIUSES,
	CHECK_NAN_RADIUSES,
	CHECK_NEGATIVE_RADIUSES,
	CHECK_WINDOW_TYPES,			/* arrays, by the argument overlaps, from here on */
	CHECK_COMPARED_AS,
	CHECK_NULL_WINDOWS,
	CHECK_EMPTY_WINDOWS,
	CHECK_INFINITE_WINDOWS,
	CHECK_COLUMNS
};

/* the range of a coordinate; no value yet: lowest > highest */
typedef struct Extent
{
	double		lowest;
	double		highest;
} Extent;

typedef struct Check
{
	const PointSource *source;
	int64		counts[CHECK_COUNTS];
	uint64		statuses[POINT_STATUSES];	/* of the rows with coordinates */
	Extent		latitude;		/* of valid points */
	Extent		longitude;
	bool		fits_swapped;	/* all valid points would be valid with the two swapped */
	Tuplesortstate *places;		/* (latitude, longitude) of valid points */
	TupleTableSlot *place;
	Tuplesortstate *ids;		/* NULL: their type has no order */

	/* where points have a radius, or windows */
	MemoryContext row_context;
	int64		null_radiuses;
	int64		nan_radiuses;
	int64		negative_radiuses;
	TypeCacheEntry *ranges[GEONN_WINDOWS_MAX];	/* of windows that are ranges */
	int64		windows[WINDOW_KINDS][GEONN_WINDOWS_MAX];
} Check;

static void
begin_places(Check *check)
{
	AttrNumber	keys[2] = {1, 2};
	Oid			before = lookup_type_cache(FLOAT8OID, TYPECACHE_LT_OPR)->lt_opr;
	Oid			operators[2] = {before, before};
	Oid			collations[2] = {InvalidOid, InvalidOid};
	bool		nulls_first[2] = {false, false};
	TupleDesc	descriptor = CreateTemplateTupleDesc(2);

	TupleDescInitEntry(descriptor, 1, "latitude", FLOAT8OID, -1, 0);
	TupleDescInitEntry(descriptor, 2, "longitude", FLOAT8OID, -1, 0);
	TupleDescFinalize(descriptor);
	check->places = tuplesort_begin_heap(descriptor, 2, keys, operators, collations,
										 nulls_first, work_mem, NULL, TUPLESORT_NONE);
	check->place = MakeSingleTupleTableSlot(descriptor, &TTSOpsVirtual);
}

/*
 * Add a place under one name: at a pole longitude means nothing, and 181 is
 * -179.
 */
static void
put_place(Check *check, double latitude, double longitude)
{
	TupleTableSlot *slot = check->place;

	if (latitude == 90 || latitude == -90)
		longitude = 0;
	else if (longitude >= 180)
		longitude -= 360;
	ExecClearTuple(slot);
	slot->tts_values[0] = Float8GetDatum(latitude);
	slot->tts_values[1] = Float8GetDatum(longitude);
	slot->tts_isnull[0] = slot->tts_isnull[1] = false;
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(check->places, slot);
}

static void
extend(Extent *extent, double coordinate)
{
	extent->lowest = Min(extent->lowest, coordinate);
	extent->highest = Max(extent->highest, coordinate);
}

static void
count_radius(Check *check, const PointRow *row)
{
	int			number = check->source->radius.attribute - 1;
	double		radius;

	if (row->nulls[number])
	{
		check->null_radiuses++;
		return;
	}
	radius = geonn_number(check->source->radius.base_type, row->values[number]);
	if (isnan(radius))
		check->nan_radiuses++;
	else if (radius < 0)
		check->negative_radiuses++;
}

/*
 * Count the row's radius and windows, whatever its coordinates are.
 */
static void
count_limits(Check *check, const PointRow *row)
{
	const PointSource *source = check->source;
	MemoryContext former = MemoryContextSwitchTo(check->row_context);

	if (geonn_has_radius(source))
		count_radius(check, row);
	for (int i = 0; i < source->window_count; i++)
	{
		int			number = source->windows[i].attribute - 1;
		WindowKind	kind = geonn_window_kind(&source->window_types[i], check->ranges[i],
											 row->values[number], row->nulls[number]);

		check->windows[kind][i]++;
	}
	MemoryContextSwitchTo(former);
	MemoryContextReset(check->row_context);
}

static void
consume_row(void *state, const PointRow *row)
{
	Check	   *check = state;
	PointStatus status;

	check->counts[CHECK_ROWS]++;
	if (geonn_has_limits(check->source))
		count_limits(check, row);
	if (row->id_is_null)
		check->counts[CHECK_NULL_IDS]++;
	else if (check->ids != NULL)
		tuplesort_putdatum(check->ids, row->id, false);
	if (row->latitude_is_null || row->longitude_is_null)
	{
		check->counts[CHECK_NULL_COORDINATES]++;
		return;
	}

	status = geonn_point_status(row->latitude, row->longitude);
	check->statuses[status]++;
	if (status != POINT_VALID)
		return;
	if (!geonn_coordinates_valid(row->longitude, row->latitude))
		check->fits_swapped = false;
	extend(&check->latitude, row->latitude);
	extend(&check->longitude, row->longitude);
	if (row->latitude == 0 && row->longitude == 0)
		check->counts[CHECK_ZERO_ZERO]++;
	if (row->longitude > 180)
		check->counts[CHECK_LONGITUDE_OVER_180]++;
	put_place(check, row->latitude, row->longitude);
}

/*
 * Count the points at the same place as a point before them in the order.
 */
static int64
count_equal_places(Check *check)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(check->place->tts_tupleDescriptor,
													&TTSOpsMinimalTuple);
	double		latitude = 0;
	double		longitude = 0;
	int64		equal = 0;

	tuplesort_performsort(check->places);
	for (int64 i = 0; tuplesort_gettupleslot(check->places, true, false, slot, NULL); i++)
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		if (i > 0 && DatumGetFloat8(slot->tts_values[0]) == latitude &&
			DatumGetFloat8(slot->tts_values[1]) == longitude)
			equal++;
		latitude = DatumGetFloat8(slot->tts_values[0]);
		longitude = DatumGetFloat8(slot->tts_values[1]);
	}
	ExecDropSingleTupleTableSlot(slot);
	tuplesort_end(check->places);
	return equal;
}

/*
 * Count the ids that equal the one before them in the order.
 */
static int64
count_equal_ids(Check *check, const PointColumn *id)
{
	TypeCacheEntry *type = lookup_type_cache(id->base_type, TYPECACHE_CMP_PROC_FINFO);
	MemoryContext contexts[2];	/* one for the present id, one for the previous */
	MemoryContext former = CurrentMemoryContext;
	Datum		previous = (Datum) 0;
	int64		equal = 0;

	for (int i = 0; i < 2; i++)
		contexts[i] = AllocSetContextCreate(former, "geonn id", ALLOCSET_SMALL_SIZES);
	tuplesort_performsort(check->ids);
	for (int64 i = 0;; i++)
	{
		Datum		value;
		bool		is_null;

		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(contexts[i % 2]);
		MemoryContextReset(CurrentMemoryContext);
		if (!geonn_tuplesort_getdatum(check->ids, &value, &is_null))
			break;
		if (i > 0 && DatumGetInt32(FunctionCall2Coll(&type->cmp_proc_finfo, id->collation,
													 previous, value)) == 0)
			equal++;
		previous = value;
	}
	MemoryContextSwitchTo(former);
	tuplesort_end(check->ids);
	return equal;
}

/* ---- radians ---- */

/*
 * Warn if all points are so near to the latitude and longitude 0 as radians are: in degrees no
 * land lies there.  Points at 0, 0 itself are missing coordinates more often.
 */
static void
warn_of_radians(const Check *check)
{
	if (check->statuses[POINT_VALID] == (uint64) check->counts[CHECK_ZERO_ZERO] ||
		check->latitude.lowest < -M_PI_2 || check->latitude.highest > M_PI_2 ||
		check->longitude.lowest < -M_PI || check->longitude.highest > M_PI)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("coordinates of %s may be radians", check->source->title),
			 errdetail("All latitudes are from -pi/2 to pi/2, and all longitudes from -pi to pi: in degrees that is sea."),
			 errhint("If they are, convert them in a view, as in degrees(lat) AS lat, degrees(lon) AS lon.")));
}

/* ---- the result ---- */

/*
 * Begin to count what is wrong with the source's rows.
 */
static void
begin(Check *check, const PointSource *source)
{
	const PointColumn *id = &source->columns[COLUMN_ID];
	TypeCacheEntry *type = lookup_type_cache(id->base_type, TYPECACHE_LT_OPR | TYPECACHE_CMP_PROC_FINFO);

	*check = (Check)
	{
		.source = source,
			.latitude = {get_float8_infinity(), -get_float8_infinity()},
			.longitude = {get_float8_infinity(), -get_float8_infinity()},
			.fits_swapped = true,
			.row_context = AllocSetContextCreate(CurrentMemoryContext, "geonn row", ALLOCSET_SMALL_SIZES)
	};
	for (int i = 0; i < source->window_count; i++)
		check->ranges[i] = geonn_window_range(&source->window_types[i]);
	begin_places(check);
	if (OidIsValid(type->lt_opr) && OidIsValid(type->cmp_proc_finfo.fn_oid))
		check->ids = tuplesort_begin_datum(id->base_type, type->lt_opr, id->collation, false, work_mem,
										   NULL, TUPLESORT_NONE);
}

static void
set_extent(const Check *check, Datum *values, bool *nulls)
{
	for (int i = CHECK_LATITUDE_MIN; i <= CHECK_LONGITUDE_MAX; i++)
		nulls[i] = check->latitude.lowest > check->latitude.highest;
	values[CHECK_LATITUDE_MIN] = Float8GetDatum(check->latitude.lowest);
	values[CHECK_LATITUDE_MAX] = Float8GetDatum(check->latitude.highest);
	values[CHECK_LONGITUDE_MIN] = Float8GetDatum(check->longitude.lowest);
	values[CHECK_LONGITUDE_MAX] = Float8GetDatum(check->longitude.highest);
}

static Datum
types_array(Datum *types, int count)
{
	return PointerGetDatum(construct_array(types, count, REGTYPEOID, sizeof(Oid), true, TYPALIGN_INT));
}

static Datum
counts_array(const int64 *counts, int count)
{
	Datum		values[GEONN_WINDOWS_MAX];

	for (int i = 0; i < count; i++)
		values[i] = Int64GetDatum(counts[i]);
	return PointerGetDatum(construct_array(values, count, INT8OID, sizeof(int64), FLOAT8PASSBYVAL,
										   TYPALIGN_DOUBLE));
}

static void
set_limits(const Check *check, Datum *values, bool *nulls)
{
	const PointSource *source = check->source;
	int			count = source->window_count;
	Datum		types[GEONN_WINDOWS_MAX];
	Datum		families[GEONN_WINDOWS_MAX];

	for (int i = CHECK_NULL_RADIUSES; i < CHECK_WINDOW_TYPES; i++)
		nulls[i] = !geonn_has_radius(source);
	for (int i = CHECK_WINDOW_TYPES; i < CHECK_COLUMNS; i++)
		nulls[i] = count == 0;
	for (int i = 0; i < count; i++)
	{
		types[i] = ObjectIdGetDatum(source->windows[i].type);
		families[i] = ObjectIdGetDatum(source->window_types[i].family);
	}
	values[CHECK_NULL_RADIUSES] = Int64GetDatum(check->null_radiuses);
	values[CHECK_NAN_RADIUSES] = Int64GetDatum(check->nan_radiuses);
	values[CHECK_NEGATIVE_RADIUSES] = Int64GetDatum(check->negative_radiuses);
	values[CHECK_WINDOW_TYPES] = types_array(types, count);
	values[CHECK_COMPARED_AS] = types_array(families, count);
	values[CHECK_NULL_WINDOWS] = counts_array(check->windows[WINDOW_NULL], count);
	values[CHECK_EMPTY_WINDOWS] = counts_array(check->windows[WINDOW_EMPTY], count);
	values[CHECK_INFINITE_WINDOWS] = counts_array(check->windows[WINDOW_INFINITE], count);
}

Datum
geonn_check(PG_FUNCTION_ARGS)
{
	PointSource *source;
	TupleDesc	descriptor;
	Check		check;
	Datum		values[CHECK_COLUMNS];
	bool		nulls[CHECK_COLUMNS] = {false};

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	geonn_require_columns(descriptor, CHECK_COLUMNS);
	source = geonn_called_relation(fcinfo);
	if (source == NULL)
		PG_RETURN_NULL();
	geonn_check_readable(source);
	begin(&check, source);
	geonn_read_points(source, GEONN_INVALID_COUNTED, consume_row, &check);

	check.counts[CHECK_NOT_FINITE] = (int64) check.statuses[POINT_NOT_FINITE];
	check.counts[CHECK_LATITUDE_OUT_OF_RANGE] =
		(int64) (check.statuses[POINT_SWAPPED] + check.statuses[POINT_LATITUDE_OUT]);
	check.counts[CHECK_LONGITUDE_OUT_OF_RANGE] = (int64) check.statuses[POINT_LONGITUDE_OUT];
	check.counts[CHECK_DUPLICATE_COORDINATES] = count_equal_places(&check);
	nulls[CHECK_DUPLICATE_IDS] = check.ids == NULL;
	if (check.ids != NULL)
		check.counts[CHECK_DUPLICATE_IDS] = count_equal_ids(&check, &source->columns[COLUMN_ID]);
	for (int i = 0; i < CHECK_COUNTS; i++)
		values[i] = Int64GetDatum(check.counts[i]);
	set_extent(&check, values, nulls);
	set_limits(&check, values, nulls);
	geonn_warn_of_mistake(source, check.statuses, check.fits_swapped);
	warn_of_radians(&check);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
}
