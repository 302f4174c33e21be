/*
 * check.c
 *		geonn_check(): which rows of a relation a join would leave out or refuse, or may be mistakes.
 *
 * The function reads all rows as a join reads them, of shapes all vertices.  A value that is an error of a join
 * is counted, and the first of each kind is named.  Duplicates are found by sorting, so
 * that memory does not grow with the relation.  Warnings name the mistakes that the
 * coordinates show (point_row.c); a swap of points that are valid either way shows in the
 * extents alone.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

#include "common/geodesy.h"
#include "base/compat.h"
#include "points/describe.h"
#include "points/reader.h"
#include "points/sources.h"
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
	CHECK_COUNTS,				/* the number of columns that are counts; the columns of extents follow */
	CHECK_LATITUDE_MIN = CHECK_COUNTS,
	CHECK_LATITUDE_MAX,
	CHECK_LONGITUDE_MIN,
	CHECK_LONGITUDE_MAX,
	CHECK_NULL_RADIUSES,
	CHECK_NAN_RADIUSES,
	CHECK_NEGATIVE_RADIUSES,
	CHECK_WINDOW_TYPES,			/* from here on the columns are arrays, with an element for each column of overlaps */
	CHECK_COMPARED_AS,
	CHECK_NULL_WINDOWS,
	CHECK_EMPTY_WINDOWS,
	CHECK_INFINITE_WINDOWS,
	CHECK_EMPTY_SHAPES,			/* from here on values of PostGIS's types */
	CHECK_CURVED_SHAPES,
	CHECK_INVALID_SHAPES,
	CHECK_EXAMPLES,
	CHECK_COLUMNS
};

/* why a join leaves a row out, or is an error; the result has an example of each, in this order */
typedef enum Fault
{
	FAULT_NOT_FINITE,
	FAULT_LATITUDE,
	FAULT_LONGITUDE,
	FAULT_EMPTY,
	FAULT_CURVED,
	FAULT_INVALID
} Fault;

#define FAULTS (FAULT_INVALID + 1)

/* The range of a coordinate; lowest > highest: no value yet. */
typedef struct Extent
{
	double		lowest;
	double		highest;
} Extent;

/* the ranges of valid places */
typedef struct Extents
{
	Extent		latitude;
	Extent		longitude;
	bool		fits_swapped;	/* all would also be valid with latitude and longitude swapped */
} Extents;

/* a sort of rows, which finds equal ones */
typedef struct Sorting
{
	Tuplesortstate *state;
	TupleTableSlot *row;		/* for a row that goes into the sort */
	int			columns;
	TypeCacheEntry *type;		/* the type of each column */
	Oid			collation;
} Sorting;

typedef struct Check
{
	const PointSource *source;
	int64		counts[CHECK_WINDOW_TYPES];	/* counts by result column; columns of extents leave theirs unused */
	uint64		statuses[POINT_STATUSES];	/* how many rows with coordinates have each status */
	int64		shape_counts[FAULTS];	/* of empty, curved and invalid values */
	char	   *examples[FAULTS];	/* NULL: none */
	Extents		extents;
	Sorting    *places;			/* sorts latitudes and longitudes of valid points; NULL: the rows are shapes */
	Sorting    *ids;			/* NULL: their type has no order */
	MemoryContext context;		/* in which the check lives */
	MemoryContext row_context;

	/* where points have windows */
	int64		windows[WINDOW_KINDS][GEONN_WINDOWS_MAX];
} Check;

/* ---- duplicates ---- */

/* Begin to sort rows of this many columns, all of this type.  Returns NULL if the type has no order. */
static Sorting *
begin_sorting(Oid type, Oid collation, int columns)
{
	Sorting    *sorting = palloc(sizeof(Sorting));
	TupleDesc	descriptor = CreateTemplateTupleDesc(columns);
	AttrNumber	keys[] = {1, 2};
	Oid			operators[lengthof(keys)];
	Oid			collations[] = {collation, collation};
	bool		nulls_first[lengthof(keys)] = {false};

	sorting->columns = columns;
	sorting->collation = collation;
	sorting->type = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_CMP_PROC_FINFO);
	if (!OidIsValid(sorting->type->lt_opr) || !OidIsValid(sorting->type->cmp_proc_finfo.fn_oid))
		return NULL;
	for (int i = 0; i < columns; i++)
	{
		operators[i] = sorting->type->lt_opr;
		TupleDescInitEntry(descriptor, keys[i], "value", type, -1, 0);
	}
	TupleDescFinalize(descriptor);
	sorting->state = tuplesort_begin_heap(descriptor, columns, keys, operators, collations,
										  nulls_first, work_mem, NULL, TUPLESORT_NONE);
	sorting->row = MakeSingleTupleTableSlot(descriptor, &TTSOpsVirtual);
	return sorting;
}

static void
sort_row(Sorting *sorting, Datum first, Datum second)
{
	TupleTableSlot *row = sorting->row;
	const Datum values[] = {first, second};

	ExecClearTuple(row);
	for (int i = 0; i < sorting->columns; i++)
	{
		row->tts_values[i] = values[i];
		row->tts_isnull[i] = false;
	}
	ExecStoreVirtualTuple(row);
	tuplesort_puttupleslot(sorting->state, row);
}

static bool
rows_equal(const Sorting *sorting, TupleTableSlot *a, TupleTableSlot *b)
{
	for (int i = 0; i < sorting->columns; i++)
	{
		if (DatumGetInt32(FunctionCall2Coll(&sorting->type->cmp_proc_finfo, sorting->collation,
											a->tts_values[i], b->tts_values[i])) != 0)
			return false;
	}
	return true;
}

/* Sort, count the rows that equal the row before, and end the sort. */
static int64
count_equal(const Check *check, Sorting *sorting)
{
	TupleTableSlot *slots[2];	/* the present row, and the row before */
	MemoryContext former = CurrentMemoryContext;
	int64		equal = 0;

	for (int i = 0; i < 2; i++)
		slots[i] = MakeSingleTupleTableSlot(sorting->row->tts_tupleDescriptor, &TTSOpsMinimalTuple);
	tuplesort_performsort(sorting->state);
	for (int64 i = 0; tuplesort_gettupleslot(sorting->state, true, true, slots[i % 2], NULL); i++)
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slots[i % 2]);
		MemoryContextSwitchTo(check->row_context);
		if (i > 0 && rows_equal(sorting, slots[0], slots[1]))
			equal++;
		MemoryContextSwitchTo(former);
		MemoryContextReset(check->row_context);
	}
	for (int i = 0; i < 2; i++)
		ExecDropSingleTupleTableSlot(slots[i]);
	tuplesort_end(sorting->state);
	return equal;
}

/* ---- rows ---- */

/* Add a point in normal form: a pole gets longitude 0, and longitude 181 becomes -179. */
static void
put_place(Check *check, double latitude, double longitude)
{
	if (latitude == 90 || latitude == -90)
		longitude = 0;
	else if (longitude >= 180)
		longitude -= 360;
	sort_row(check->places, Float8GetDatum(latitude), Float8GetDatum(longitude));
}

static void
extend(Extent *extent, double coordinate)
{
	extent->lowest = Min(extent->lowest, coordinate);
	extent->highest = Max(extent->highest, coordinate);
}

/* Extend the ranges of coordinates by this valid place. */
static void
extend_place(Extents *extents, double latitude, double longitude)
{
	if (!geonn_coordinates_valid(longitude, latitude))
		extents->fits_swapped = false;
	extend(&extents->latitude, latitude);
	extend(&extents->longitude, longitude);
}

static bool
is_zero_zero(double latitude, double longitude)
{
	return latitude == 0 && longitude == 0;
}

/* Keep the first example of a fault. */
static void
note_fault(Check *check, const PointRow *row, Fault fault, const char *what)
{
	MemoryContext former;

	if (check->examples[fault] != NULL)
		return;
	former = MemoryContextSwitchTo(check->context);
	check->examples[fault] = psprintf("%s: %s", geonn_named_row(check->source, row), what);
	MemoryContextSwitchTo(former);
}

static void
note_refusal(Check *check, const PointRow *row, const GeonnRefusal *refusal)
{
	Fault		fault = refusal->is_curve ? FAULT_CURVED : FAULT_INVALID;

	check->shape_counts[fault]++;
	note_fault(check, row, fault, refusal->reason);
}

/* what is known of a shape once all of its parts have been read */
typedef struct CheckedShape
{
	GeonnShapeReader *reader;
	Extents		extents;
	bool		is_zero;
	bool		is_over;
} CheckedShape;

static void
check_parts(void *state)
{
	CheckedShape *shape = state;
	double		latitude;
	double		longitude;
	GeonnPart	part;

	while (geonn_shape_next_checked(shape->reader, &part))
	{
		for (uint32 i = 0; i < part.vertices.count; i++)
		{
			geonn_vertex(&part.vertices, i, &latitude, &longitude);
			shape->is_zero |= is_zero_zero(latitude, longitude);
			shape->is_over |= longitude > 180;
			extend_place(&shape->extents, latitude, longitude);
		}
	}
}

/*
 * Check the row's shape, whose vertices are valid.  Returns false if its parts cannot be those of a reference.
 */
static bool
consume_shape(Check *check, const PointRow *row)
{
	CheckedShape shape = {.reader = row->shape,.extents = check->extents};
	const GeonnRefusal *refusal = geonn_refusal_of(check_parts, &shape);

	if (refusal != NULL)
	{
		note_refusal(check, row, refusal);
		return false;
	}
	check->extents = shape.extents;
	check->counts[CHECK_ZERO_ZERO] += shape.is_zero;
	check->counts[CHECK_LONGITUDE_OVER_180] += shape.is_over;
	return true;
}

/* Is the row's value empty, and not NULL? */
static bool
is_empty_shape(const PointSource *source, const PointRow *row)
{
	int			number = source->columns[geonn_has_shapes(source) ? COLUMN_SHAPE : COLUMN_POINT].attribute - 1;

	return source->point_kind != GEONN_POINT_NONE && !row->nulls[number];
}

/* Note a row whose place is out of range; a row without an id has no status. */
static void
note_invalid(Check *check, const PointRow *row, PointStatus status)
{
	PointRow	invalid = *row;

	invalid.status = status;
	note_fault(check, row, status == POINT_NOT_FINITE ? FAULT_NOT_FINITE :
			   status == POINT_LONGITUDE_OUT ? FAULT_LONGITUDE : FAULT_LATITUDE,
			   geonn_written_invalid(check->source, &invalid));
}

static void
count_radius(Check *check, const PointRow *row)
{
	const PointColumn *column = &check->source->columns[COLUMN_RADIUS];
	int			number = column->attribute - 1;
	double		radius;

	if (row->nulls[number])
	{
		check->counts[CHECK_NULL_RADIUSES]++;
		return;
	}
	radius = geonn_number(column->base_type, row->values[number]);
	if (isnan(radius))
		check->counts[CHECK_NAN_RADIUSES]++;
	else if (radius < 0)
		check->counts[CHECK_NEGATIVE_RADIUSES]++;
}

/* Count the row's radius and windows, whether or not its coordinates are valid. */
static void
count_limits(Check *check, const PointRow *row)
{
	const PointSource *source = check->source;

	if (geonn_has_radius(source))
		count_radius(check, row);
	for (int i = 0; i < source->window_count; i++)
	{
		int			number = source->windows[i].attribute - 1;
		WindowKind	kind = geonn_window_kind(&source->window_types[i], row->values[number],
											 row->nulls[number]);

		check->windows[kind][i]++;
	}
}

static void
consume_point(Check *check, double latitude, double longitude)
{
	check->counts[CHECK_ZERO_ZERO] += is_zero_zero(latitude, longitude);
	check->counts[CHECK_LONGITUDE_OVER_180] += longitude > 180;
	extend_place(&check->extents, latitude, longitude);
	put_place(check, latitude, longitude);
}

/* Check the place or shape of a row. */
static void
consume_place(Check *check, const PointRow *row)
{
	PointStatus status;

	if (row->refusal != NULL)
	{
		note_refusal(check, row, row->refusal);
		return;
	}
	if (row->latitude_is_null || row->longitude_is_null)
	{
		check->counts[CHECK_NULL_COORDINATES]++;
		if (is_empty_shape(check->source, row))
		{
			check->shape_counts[FAULT_EMPTY]++;
			note_fault(check, row, FAULT_EMPTY, "the value is empty");
		}
		return;
	}

	status = geonn_point_status(row->latitude, row->longitude);
	if (status != POINT_VALID)
		note_invalid(check, row, status);
	else if (row->shape == NULL)
		consume_point(check, row->latitude, row->longitude);
	else if (!consume_shape(check, row))
		return;
	check->statuses[status]++;
}

static void
consume_row(void *state, const PointRow *row)
{
	Check	   *check = state;
	MemoryContext former;

	check->counts[CHECK_ROWS]++;
	if (row->id_is_null)
		check->counts[CHECK_NULL_IDS]++;
	else if (check->ids != NULL)
		sort_row(check->ids, row->id, (Datum) 0);
	former = MemoryContextSwitchTo(check->row_context);
	if (geonn_has_limits(check->source))
		count_limits(check, row);
	consume_place(check, row);
	MemoryContextSwitchTo(former);
	MemoryContextReset(check->row_context);
}

/* ---- radians ---- */

/*
 * Warn if all coordinates lie in the ranges of radians: taken as degrees, these hold no land.  Do not warn
 * if all are at 0, 0, because these are more often missing coordinates.
 */
static void
warn_of_radians(const Check *check)
{
	if (check->statuses[POINT_VALID] == (uint64) check->counts[CHECK_ZERO_ZERO] ||
		check->extents.latitude.lowest < -M_PI_2 || check->extents.latitude.highest > M_PI_2 ||
		check->extents.longitude.lowest < -M_PI || check->extents.longitude.highest > M_PI)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("coordinates of %s may be radians", check->source->title),
			 errdetail("All latitudes are from -pi/2 to pi/2, and all longitudes from -pi to pi: in degrees that is sea."),
			 errhint("If they are, convert them in a view, as in degrees(lat) AS lat, degrees(lon) AS lon.")));
}

/* ---- other SRIDs ---- */

/* Tell of the SRID from which values were transformed. */
static void
tell_srid(const PointSource *source)
{
	int32		srid = source->transform != NULL ? geonn_transform_srid(source->transform) : 0;
	ColumnRole	role = geonn_has_shapes(source) ? COLUMN_SHAPE : COLUMN_POINT;

	if (srid != 0 && srid != GEONN_POINT_SRID)
		ereport(NOTICE,
				(errmsg("column \"%s\" of %s has SRID %d, and is transformed to %d", source->columns[role].name,
						source->title, srid, GEONN_POINT_SRID)));
}

/* ---- the result ---- */

static void
begin(Check *check, const PointSource *source)
{
	const PointColumn *id = &source->columns[COLUMN_ID];

	*check = (Check)
	{
		.source = source,
			.extents = {
			.latitude = {get_float8_infinity(), -get_float8_infinity()},
			.longitude = {get_float8_infinity(), -get_float8_infinity()},
			.fits_swapped = true
		},
			.context = CurrentMemoryContext,
			.row_context = AllocSetContextCreate(CurrentMemoryContext, "geonn row", ALLOCSET_SMALL_SIZES)
	};
	check->places = geonn_has_shapes(source) ? NULL : begin_sorting(FLOAT8OID, InvalidOid, 2);
	check->ids = begin_sorting(id->base_type, id->collation, 1);
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
	{
		values[i] = Int64GetDatum(check->counts[i]);
		nulls[i] = !geonn_has_radius(source);
	}
	for (int i = CHECK_WINDOW_TYPES; i <= CHECK_INFINITE_WINDOWS; i++)
		nulls[i] = count == 0;
	for (int i = 0; i < count; i++)
	{
		types[i] = ObjectIdGetDatum(source->windows[i].type);
		families[i] = ObjectIdGetDatum(source->window_types[i].family);
	}
	values[CHECK_WINDOW_TYPES] = types_array(types, count);
	values[CHECK_COMPARED_AS] = types_array(families, count);
	values[CHECK_NULL_WINDOWS] = counts_array(check->windows[WINDOW_NULL], count);
	values[CHECK_EMPTY_WINDOWS] = counts_array(check->windows[WINDOW_EMPTY], count);
	values[CHECK_INFINITE_WINDOWS] = counts_array(check->windows[WINDOW_INFINITE], count);
}

/* Set what is said of values of PostGIS's types; NULL without a column of these.  Examples are of all rows. */
static void
set_shapes(const Check *check, Datum *values, bool *nulls)
{
	Datum		examples[FAULTS];
	int			count = 0;

	for (int i = CHECK_EMPTY_SHAPES; i <= CHECK_INVALID_SHAPES; i++)
	{
		values[i] = Int64GetDatum(check->shape_counts[FAULT_EMPTY + i - CHECK_EMPTY_SHAPES]);
		nulls[i] = check->source->point_kind == GEONN_POINT_NONE || check->source->point_kind == GEONN_POINT_NATIVE;
	}
	for (int i = 0; i < FAULTS; i++)
	{
		if (check->examples[i] != NULL)
			examples[count++] = CStringGetTextDatum(check->examples[i]);
	}
	values[CHECK_EXAMPLES] = PointerGetDatum(construct_array(examples, count, TEXTOID, -1, false, TYPALIGN_INT));
}

static void
end_sorting(Sorting *sorting)
{
	if (sorting != NULL)
		tuplesort_end(sorting->state);
}

/* Check all rows; begin anew, with shapes, where a value of a column of points is none. */
static void
check_rows(Check *check, PointSource *source)
{
	begin(check, source);
	if (geonn_read_points(source, GEONN_INVALID_NAMED, consume_row, check))
		return;
	end_sorting(check->places);
	end_sorting(check->ids);
	geonn_read_as_shapes(source);
	begin(check, source);
	(void) geonn_read_points(source, GEONN_INVALID_NAMED, consume_row, check);
}

Datum
geonn_check(PG_FUNCTION_ARGS)
{
	TupleDesc	type = geonn_result_type(fcinfo, CHECK_COLUMNS);
	PointSource *source;
	Check		check;
	Datum		values[CHECK_COLUMNS];
	bool		nulls[CHECK_COLUMNS] = {false};

	source = geonn_called_relation(fcinfo);
	if (source == NULL)
		PG_RETURN_NULL();
	(void) geonn_check_tables(source);
	check_rows(&check, source);
	check.counts[CHECK_NOT_FINITE] = (int64) check.statuses[POINT_NOT_FINITE];
	check.counts[CHECK_LATITUDE_OUT_OF_RANGE] =
		(int64) (check.statuses[POINT_SWAPPED] + check.statuses[POINT_LATITUDE_OUT]);
	check.counts[CHECK_LONGITUDE_OUT_OF_RANGE] = (int64) check.statuses[POINT_LONGITUDE_OUT];
	nulls[CHECK_DUPLICATE_COORDINATES] = check.places == NULL;
	if (check.places != NULL)
		check.counts[CHECK_DUPLICATE_COORDINATES] = count_equal(&check, check.places);
	nulls[CHECK_DUPLICATE_IDS] = check.ids == NULL;
	if (check.ids != NULL)
		check.counts[CHECK_DUPLICATE_IDS] = count_equal(&check, check.ids);
	for (int i = 0; i < CHECK_COUNTS; i++)
		values[i] = Int64GetDatum(check.counts[i]);
	for (int i = CHECK_LATITUDE_MIN; i <= CHECK_LONGITUDE_MAX; i++)
		nulls[i] = check.extents.latitude.lowest > check.extents.latitude.highest;
	values[CHECK_LATITUDE_MIN] = Float8GetDatum(check.extents.latitude.lowest);
	values[CHECK_LATITUDE_MAX] = Float8GetDatum(check.extents.latitude.highest);
	values[CHECK_LONGITUDE_MIN] = Float8GetDatum(check.extents.longitude.lowest);
	values[CHECK_LONGITUDE_MAX] = Float8GetDatum(check.extents.longitude.highest);
	set_limits(&check, values, nulls);
	set_shapes(&check, values, nulls);
	tell_srid(source);
	geonn_warn_of_mistake(source, check.statuses, check.extents.fits_swapped);
	warn_of_radians(&check);
	return HeapTupleGetDatum(heap_form_tuple(type, values, nulls));
}
