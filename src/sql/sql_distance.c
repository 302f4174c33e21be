/*
 * sql_distance.c
 *		Distances in expressions of SQL: which functions and operators measure as geonn does, between which values.
 *
 * The name of a function decides, with the extension that it belongs to, and the types of its arguments; not a schema, since
 * extensions may be in any.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "base/extension.h"
#include "base/settings.h"
#include "common/protocol.h"
#include "plan/known.h"
#include "sql/sql_distance.h"

static const DistanceFunction functions[] = {
	{"geography_distance_knn", "postgis", 2, NULL, GEONN_METRIC_SPHERE, GEONN_POINT_GEOGRAPHY, true},
	{"st_distance", "postgis", 3, "false", GEONN_METRIC_SPHERE, GEONN_POINT_GEOGRAPHY, false},
	{"st_distance", "postgis", 3, "true", GEONN_METRIC_SPHEROID, GEONN_POINT_GEOGRAPHY, false},
	{"st_distance", "postgis", 2, NULL, GEONN_METRIC_SPHEROID, GEONN_POINT_GEOGRAPHY, false},
	{"st_distancesphere", "postgis", 2, NULL, GEONN_METRIC_SPHERE, GEONN_POINT_GEOMETRY, false},
	{"geonn_distance", "geonn", 4, NULL, GEONN_METRIC_SPHERE, GEONN_POINT_NONE, false},
	{"geonn_distance", "geonn", 5, "sphere", GEONN_METRIC_SPHERE, GEONN_POINT_NONE, false},
	{"geonn_distance", "geonn", 5, "spheroid", GEONN_METRIC_SPHEROID, GEONN_POINT_NONE, false}
};

bool
geonn_is_of_extension(Oid function, const char *extension)
{
	return strcmp(geonn_extension_of(ProcedureRelationId, function), extension) == 0;
}

/*
 * Does the argument have this constant's value, of type boolean or text?
 */
static bool
is_constant(const Node *argument, const char *value)
{
	const Const *constant = (const Const *) argument;

	if (!IsA(argument, Const) || constant->constisnull)
		return false;
	if (constant->consttype == BOOLOID)
		return strcmp(DatumGetBool(constant->constvalue) ? "true" : "false", value) == 0;
	return constant->consttype == TEXTOID && strcmp(TextDatumGetCString(constant->constvalue), value) == 0;
}

/*
 * The function's row in the table, if this call has the arguments that the table says; NULL: it has not.
 */
static const DistanceFunction *
find_function(Oid function, List *arguments)
{
	const char *name = get_func_name(function);
	ListCell   *cell;

	/* named arguments come in any order */
	foreach(cell, arguments)
	{
		if (IsA(lfirst(cell), NamedArgExpr))
			return NULL;
	}
	for (int i = 0; name != NULL && i < (int) lengthof(functions); i++)
	{
		const DistanceFunction *row = &functions[i];

		if (strcmp(name, row->name) != 0 || list_length(arguments) != row->arguments ||
			(row->last != NULL && !is_constant(llast(arguments), row->last)))
			continue;

		/* the name will do here: geonn_is_of_extension() asks whether the function is PostGIS's, whose types have it */
		if (row->kind != GEONN_POINT_NONE &&
			geonn_point_kind_by_name(getBaseType(exprType(linitial(arguments)))) != row->kind)
			continue;
		if (geonn_is_of_extension(function, row->extension))
			return row;
	}
	return NULL;
}

/*
 * The function that an operator or a call executes, and its arguments; InvalidOid: the expression is neither.
 */
static Oid
function_of(Node *expression, List **arguments)
{
	if (expression != NULL && IsA(expression, OpExpr))
	{
		*arguments = ((OpExpr *) expression)->args;
		return get_opcode(((OpExpr *) expression)->opno);
	}
	if (expression != NULL && IsA(expression, FuncExpr))
	{
		*arguments = ((FuncExpr *) expression)->args;
		return ((FuncExpr *) expression)->funcid;
	}
	return InvalidOid;
}

const DistanceFunction *
geonn_read_distance(Node *expression, List **one, List **other)
{
	List	   *arguments;
	Oid			function = function_of(expression, &arguments);
	const DistanceFunction *row;
	int			points;

	if (!OidIsValid(function))
		return NULL;
	row = find_function(function, arguments);
	if (row == NULL)
		return NULL;
	points = row->kind == GEONN_POINT_NONE ? 2 : 1;
	*one = list_truncate(list_copy(arguments), points);
	*other = list_truncate(list_copy_tail(arguments, points), points);
	return row;
}

/*
 * Return the value of which the expression is another name of the type: a column of a domain, or of a type with a modifier.  A
 * cast to a domain with constraints stays: it may fail for rows that PostgreSQL never casts.
 */
static Node *
below_relabel(Node *value)
{
	const RelabelType *relabel = (const RelabelType *) value;

	return IsA(value, RelabelType) && !IsA(relabel->arg, CoerceToDomain) &&
		getBaseType(exprType((Node *) relabel->arg)) == relabel->resulttype ? (Node *) relabel->arg : value;
}

/*
 * Return the geometry that PostGIS's function casts to geography without a modifier; NULL: the value is no such cast.
 */
static Node *
cast_geometry(const Node *value, int32 modifier)
{
	const FuncExpr *cast = (const FuncExpr *) value;
	const char *name = IsA(value, FuncExpr) && modifier < 0 && list_length(cast->args) == 1 ?
		get_func_name(cast->funcid) : NULL;

	return name != NULL && strcmp(name, "geography") == 0 && geonn_is_of_extension(cast->funcid, "postgis") ?
		below_relabel(linitial(cast->args)) : NULL;
}

static bool
is_of(Node *value, bool shapes)
{
	int32		modifier;
	Oid			type;
	GeonnPointKind kind;
	Node	   *geometry;

	value = below_relabel(value);
	modifier = exprTypmod(value);
	type = getBaseTypeAndTypmod(exprType(value), &modifier);
	kind = geonn_point_kind(type);
	if (kind != GEONN_POINT_GEOGRAPHY && kind != GEONN_POINT_GEOMETRY)
		return false;
	geometry = cast_geometry(value, modifier);
	if (geometry != NULL)
		return is_of(geometry, shapes);
	if (shapes && geonn_enable_sql_joins == GEONN_SQL_JOINS_POINTS && geonn_typmod_is_polygons(modifier))
		return false;
	if (shapes)
		return geonn_typmod_is_kind_of_shape(modifier) && geonn_shape_typmod_problem(kind, type, modifier) == NULL;
	return geonn_point_typmod_is_point(modifier) && geonn_point_typmod_problem(kind, type, modifier) == NULL;
}

/* Return how long a column's values are on average in a table and those that inherit from it; 0: unknown. */
static int32
inherited_bytes(Oid relation, AttrNumber column)
{
	HeapTuple	statistics = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relation), Int16GetDatum(column),
											 BoolGetDatum(true));
	int32		bytes = 0;

	if (HeapTupleIsValid(statistics))
	{
		bytes = ((Form_pg_statistic) GETSTRUCT(statistics))->stawidth;
		ReleaseSysCache(statistics);
	}
	return bytes;
}

int32
geonn_average_bytes(const List *range_table, const Var *column)
{
	const RangeTblEntry *entry;
	const TargetEntry *target;

	if (column->varno < 1 || column->varno > list_length(range_table) || column->varattno < 1)
		return 0;
	entry = rt_fetch(column->varno, range_table);
	if (entry->rtekind == RTE_RELATION)
	{
		int32		bytes = get_attavgwidth(entry->relid, column->varattno);

		return bytes > 0 || !entry->inh ? bytes : inherited_bytes(entry->relid, column->varattno);
	}
	target = entry->rtekind == RTE_SUBQUERY && entry->subquery != NULL ?
		list_nth(entry->subquery->targetList, column->varattno - 1) : NULL;
	if (target == NULL || !IsA(target->expr, Var) || ((const Var *) target->expr)->varlevelsup > 0)
		return 0;
	return geonn_average_bytes(entry->subquery->rtable, (const Var *) target->expr);
}

Node *
geonn_value_of_point(Node *value)
{
	Node	   *geometry;

	value = below_relabel(value);
	geometry = cast_geometry(value, exprTypmod(value));
	return geometry != NULL && geonn_typmod_is_any(exprTypmod(geometry)) ? geometry : value;
}

/*
 * Is the value, as geonn_value_of_point() returns it, a column whose type leaves open what it is?
 */
static bool
is_open(const Node *value)
{
	int32		modifier = exprTypmod(value);
	Oid			type = getBaseTypeAndTypmod(exprType(value), &modifier);

	return IsA(value, Var) && geonn_typmod_is_any(modifier) &&
		geonn_point_typmod_problem(geonn_point_kind(type), type, modifier) == NULL;
}

const char *
geonn_problem_of_points(const List *range_table, Node *value)
{
	if (is_of(value, false))
		return NULL;
	value = geonn_value_of_point(value);
	if (!is_open(value))
		return "the types of its points do not say that they are points, as geography(Point) and geometry(Point,4326) do";
	return geonn_average_bytes(range_table, (const Var *) value) > POINT_BYTES ?
		"its values are too long for points, as statistics of their table say" : NULL;
}

bool
geonn_is_of_shapes(Node *value)
{
	return is_of(value, true);
}

bool
geonn_may_be_shapes(Node *value)
{
	return is_of(value, true) || (!is_of(value, false) && is_open(geonn_value_of_point(value)));
}

static bool
is_in_degrees(Node *value)
{
	return is_of(value, false) || is_of(value, true);
}

bool
geonn_is_distance_in_degrees(Node *expression)
{
	List	   *arguments;
	Oid			function = function_of(expression, &arguments);
	const char *name = OidIsValid(function) && list_length(arguments) == 2 ? get_func_name(function) : NULL;

	return name != NULL && (strcmp(name, "geometry_distance_centroid") == 0 || strcmp(name, "st_distance") == 0) &&
		geonn_point_kind(getBaseType(exprType(linitial(arguments)))) == GEONN_POINT_GEOMETRY &&
		is_in_degrees(linitial(arguments)) && is_in_degrees(lsecond(arguments)) && geonn_is_of_extension(function, "postgis");
}

bool
geonn_sql_is_distance(Node *expression)
{
	List	   *one;
	List	   *other;

	return geonn_read_distance(expression, &one, &other) != NULL;
}

const char *
geonn_sql_distance_of_geographies(Node *expression, Node **one, Node **other, int *metric)
{
	List	   *points;
	List	   *others;
	const DistanceFunction *function = geonn_read_distance(expression, &points, &others);

	if (function == NULL || function->kind != GEONN_POINT_GEOGRAPHY)
		return NULL;
	*one = linitial(points);
	*other = linitial(others);
	*metric = function->metric;
	return function->name;
}
