/*
 * window_column.c
 *		Columns with the windows of points, and with their radiuses.
 *
 * A window (common/window.h) is a range or a single value, which stands for the range that has it
 * alone.  The engine compares bounds as int64, so each value becomes one, in the order of the type:
 *
 *	 - integers, and what PostgreSQL stores as an integer: date, time, timestamp, timestamptz.  The
 *	   infinite ones are the least and the greatest integers, as stored.
 *	 - numbers of floating point: the bits of the double, which for numbers from 0 on have their order as
 *	   integers; those of a negative number are those of its absolute value, with the sign in front
 *	   as of an integer.  -0 is 0, and NaN is one value, greater than all others, as PostgreSQL has it.
 *
 * Two values of one family, as of integer and bigint, get numbers that compare as the values do.
 * Other types have more values than 64 bits (numeric, text), or an order that is not that of their
 * bits.  Ranges count if their order is the default one of the type of their bounds, which a range
 * type need not have.
 *
 * Whether a bound belongs to its range is left to the edges, so ranges without a canonical form are
 * compared exactly as the operator && compares them.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/rangetypes.h"
#include "utils/timestamp.h"

#include "points/column_pairs.h"
#include "points/window_column.h"
#include "base/value.h"

/* ---- types ---- */

const char	geonn_window_types[] = "Windows are of type integer, smallint, bigint, double precision, real, date, time, timestamp or timestamptz, or ranges of one of these.";

/* Return the family of a type of single values; InvalidOid: the type has none. */
static Oid
family_of(Oid element)
{
	switch (element)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
			return INT8OID;
		case FLOAT4OID:
		case FLOAT8OID:
			return FLOAT8OID;
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return element;
		default:
			return InvalidOid;
	}
}

/*
 * Return the first type of windows to which the type can be cast, such as a range for other extensions'
 * spans; InvalidOid: none.
 */
static Oid
cast_target(Oid type)
{
	static const Oid targets[] = {TSTZRANGEOID, TSRANGEOID, DATERANGEOID, INT8RANGEOID, INT4RANGEOID,
	TIMESTAMPTZOID, TIMESTAMPOID, DATEOID, INT8OID, FLOAT8OID};
	Oid			function;

	for (int i = 0; i < (int) lengthof(targets); i++)
	{
		CoercionPathType path = find_coercion_pathway(targets[i], type, COERCION_EXPLICIT, &function);

		if (path != COERCION_PATH_NONE && path != COERCION_PATH_COERCEVIAIO)
			return targets[i];
	}
	return InvalidOid;
}

/* Return the hint for a column of this type, which is a type below domains. */
static char *
hint_of_type(Oid type, const char *name)
{
	const char *column = quote_identifier(name);
	Oid			target = cast_target(type);

	switch (get_typtype(type))
	{
		case TYPTYPE_MULTIRANGE:
			return psprintf("Give a row for each of its ranges in a view or query, as unnest(%s) does, or one range around all of them, as range_merge(%s) does.",
							column, column);
		case TYPTYPE_RANGE:
			return psprintf("Use a range of another type, in a view or query: such as int8range(lower(%s)::bigint, upper(%s)::bigint), tstzrange(lower(%s)::timestamptz, upper(%s)::timestamptz), or a range type of your own: CREATE TYPE floatrange AS RANGE (subtype = double precision).",
							column, column, column, column);
	}
	if (type == NUMERICOID)
		return psprintf("Cast it in a view or query, as in %s::double precision or %s::bigint.",
						column, column);
	if (type == INTERVALOID)
		return psprintf("Give it as a number in a view or query, as in extract(epoch FROM %s)::double precision.",
						column);
	if (TypeCategory(type) == TYPCATEGORY_STRING)
		return psprintf("Cast it in a view or query, as in %s::timestamptz.", column);
	if (OidIsValid(target))
		return psprintf("Cast it in a view or query, as in %s::%s.", column, format_type_be(target));
	return pstrdup("Cast it to one of these types in a view or query.");
}

static void
raise_unsuitable(const NamedWindow *window, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("column \"%s\" of the argument overlaps has type %s in %s", window->name,
					format_type_be(window->declared), window->title),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint_of_type(getBaseType(window->declared), window->name))));
}

bool
geonn_window_find_type(Oid declared, WindowType *type)
{
	type->type = getBaseType(declared);
	type->element = type->type;
	type->range = get_typtype(type->type) != TYPTYPE_RANGE ? NULL :
		lookup_type_cache(type->type, TYPECACHE_RANGE_INFO);
	if (type->range != NULL)
		type->element = getBaseType(type->range->rngelemtype->type_id);
	type->family = family_of(type->element);
	/* A range type may have another order than the default one of its bounds' type. */
	return OidIsValid(type->family) &&
		(type->range == NULL || type->range->rng_cmp_proc_finfo.fn_oid ==
		 lookup_type_cache(type->element, TYPECACHE_CMP_PROC)->cmp_proc);
}

void
geonn_window_describe(NamedWindow *window)
{
	if (geonn_window_find_type(window->declared, &window->type))
		return;
	if (OidIsValid(window->type.family))
		raise_unsuitable(window, psprintf("The range type has an order of its own, other than that of type %s.",
										  format_type_be(window->type.element)));
	raise_unsuitable(window, geonn_window_types);
}

/* Return the cast that gives the column the family of the other column. */
static char *
cast_to_family(const NamedWindow *window, const NamedWindow *other)
{
	const char *column = quote_identifier(window->name);
	const char *family = format_type_be(other->type.family);

	if (window->is_array)
		return psprintf("windows => ...::%s[]", family);
	if (window->type.range == NULL)
		return psprintf("%s::%s", column, family);
	return psprintf("%s(lower(%s)::%s, upper(%s)::%s)",
					other->type.range != NULL ? format_type_be(other->type.type) :
					other->type.family == INT8OID ? "int8range" :
					other->type.family == TIMESTAMPOID ? "tsrange" :
					other->type.family == TIMESTAMPTZOID ? "tstzrange" :
					other->type.family == DATEOID ? "daterange" : "floatrange",
					column, family, column, family);
}

void
geonn_window_check_pair(const NamedWindow *observation, const NamedWindow *reference)
{
	/* a single value is easier to cast */
	const NamedWindow *cast = observation->type.range != NULL && reference->type.range == NULL &&
		!observation->is_array ? reference : observation;
	const NamedWindow *other = cast == observation ? reference : observation;

	if (observation->type.family == reference->type.family)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("column \"%s\" of the argument overlaps has two types",
					geonn_pair_of_names(observation->name, reference->name)),
			 errdetail("The column has type %s in %s, and type %s in %s.",
					   format_type_be(observation->declared), observation->title,
					   format_type_be(reference->declared), reference->title),
			 cast->is_array ? errhint("Cast the array, as in %s.", cast_to_family(cast, other)) :
			 errhint("Cast one of them in a view, or in a query of geonn_nearest_sql, as in %s for %s.",
					 cast_to_family(cast, other), cast->title)));
}

/* ---- values ---- */

static int64
float_image(double number)
{
	int64		bits;

	if (isnan(number))
		number = get_float8_nan();
	else if (number == 0)
		number = 0;
	memcpy(&bits, &number, sizeof(bits));
	return bits >= 0 ? bits : PG_INT64_MIN - bits;
}

/* Return the integer that stands for a single value. */
static int64
image(Oid element, Datum value)
{
	switch (element)
	{
		case FLOAT4OID:
			return float_image(DatumGetFloat4(value));
		case FLOAT8OID:
			return float_image(DatumGetFloat8(value));
		case DATEOID:
			return DatumGetInt32(value);
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return DatumGetInt64(value);
		default:
			return geonn_integer(element, value);
	}
}

static enum geonn_edge
edge_of(const RangeBound *bound)
{
	return bound->infinite ? GEONN_EDGE_UNBOUNDED :
		bound->inclusive ? GEONN_EDGE_INCLUSIVE : GEONN_EDGE_EXCLUSIVE;
}

void
geonn_window_read(const WindowType *type, Datum value, bool is_null, int number,
				  GeonnLimits *limits)
{
	GeonnWindow *window = &limits->windows[number];
	RangeBound	low;
	RangeBound	high;
	bool		is_empty = false;

	Assert(number >= 0 && number < GEONN_WINDOWS_MAX && OidIsValid(type->family));
	if (!is_null && type->range != NULL)
		range_deserialize(type->range, DatumGetRangeTypeP(value), &low, &high, &is_empty);
	if (is_null || is_empty)
	{
		*window = (GeonnWindow) {0, 0};
		limits->none = true;
		return;
	}
	if (type->range == NULL)
	{
		window->low = window->high = image(type->element, value);
		return;
	}
	window->low = low.infinite ? PG_INT64_MIN : image(type->element, low.val);
	window->high = high.infinite ? PG_INT64_MAX : image(type->element, high.val);
	Assert(window->low <= window->high);
	limits->edges |= geonn_edges_of(number, edge_of(&low), edge_of(&high));
}

static bool
is_infinite_value(Oid element, Datum value)
{
	switch (element)
	{
		case FLOAT4OID:
			return isinf(DatumGetFloat4(value));
		case FLOAT8OID:
			return isinf(DatumGetFloat8(value));
		case DATEOID:
			return DATE_NOT_FINITE(DatumGetDateADT(value));
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return TIMESTAMP_NOT_FINITE(DatumGetTimestamp(value));
		default:
			return false;
	}
}

WindowKind
geonn_window_kind(const WindowType *type, Datum value, bool is_null)
{
	RangeBound	low = {.val = value};
	RangeBound	high = {.val = value};
	bool		is_empty = false;

	if (is_null)
		return WINDOW_NULL;
	if (type->range != NULL)
		range_deserialize(type->range, DatumGetRangeTypeP(value), &low, &high, &is_empty);
	if (is_empty)
		return WINDOW_EMPTY;
	return low.infinite || high.infinite || is_infinite_value(type->element, low.val) ||
		is_infinite_value(type->element, high.val) ? WINDOW_INFINITE : WINDOW_FINITE;
}

void
geonn_limits_begin(GeonnLimits *limits)
{
	memset(limits, 0, sizeof(*limits));
	limits->radius = get_float8_infinity();
}

void
geonn_limits_set_radius(GeonnLimits *limits, double radius, bool is_null)
{
	if (is_null || isnan(radius))
		return;
	if (radius < 0)
		limits->none = true;
	else
		limits->radius = radius;
}
