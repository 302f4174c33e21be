/*
 * nearest.c
 *		geonn_nearest() and its siblings: arguments in, a join out.
 *
 * They share arguments, which have the same names in all of them (arguments.c).  They differ
 * in where their points come from (relations, queries, arrays), and in what is asked of
 * them (k neighbours, all within a radius, how many are within radii, the clusters or thinning of one side, or to
 * which reference each observation is assigned).
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

#include "base/extension.h"
#include "join/arguments.h"
#include "join/call.h"
#include "join/join_prepare.h"
#include "join/nearest.h"
#include "points/column_hints.h"
#include "points/column_pairs.h"
#include "points/point_row.h"
#include "points/remembered_source.h"
#include "points/sources.h"

PG_FUNCTION_INFO_V1(geonn_nearest);
PG_FUNCTION_INFO_V1(geonn_nearest_sql);
PG_FUNCTION_INFO_V1(geonn_within);
PG_FUNCTION_INFO_V1(geonn_within_sql);
PG_FUNCTION_INFO_V1(geonn_nearest_points);
PG_FUNCTION_INFO_V1(geonn_within_count);
PG_FUNCTION_INFO_V1(geonn_within_count_sql);
PG_FUNCTION_INFO_V1(geonn_within_count_points);
PG_FUNCTION_INFO_V1(geonn_cluster);
PG_FUNCTION_INFO_V1(geonn_cluster_sql);
PG_FUNCTION_INFO_V1(geonn_thin);
PG_FUNCTION_INFO_V1(geonn_thin_sql);
PG_FUNCTION_INFO_V1(geonn_assign);
PG_FUNCTION_INFO_V1(geonn_assign_sql);

/* ---- points of arrays ---- */

typedef struct ArrayPoints
{
	GivenPoints given;
	Datum	   *latitude;		/* of float8; 0 in place of a NULL */
	Datum	   *longitude;
	bool	   *latitude_is_null;
	bool	   *longitude_is_null;

	/* where the argument windows is given */
	NamedWindow window;
	Datum	   *windows;
	bool	   *window_is_null;
	GeonnLimits limits;			/* the limits of the present point */
} ArrayPoints;

static void
read_coordinates(ArrayType *array, const char *name, Datum **values, bool **is_null, int *count)
{
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("the array %s has %d dimensions", name, ARR_NDIM(array)),
				 errdetail("Arrays of coordinates have one dimension, and an element for each point."),
				 errhint("Give a flat array, as in '{52.5, 48.9}'.")));
	deconstruct_array(array, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
					  values, is_null, count);
}

static void
array_point(void *state, uint64 number, PointRow *row)
{
	ArrayPoints *points = state;

	row->latitude_is_null = points->latitude_is_null[number];
	row->longitude_is_null = points->longitude_is_null[number];
	row->latitude = DatumGetFloat8(points->latitude[number]);
	row->longitude = DatumGetFloat8(points->longitude[number]);
	if (points->windows == NULL)
		return;
	geonn_limits_begin(&points->limits);
	geonn_window_read(&points->window.type, points->windows[number], points->window_is_null[number], 0,
					  &points->limits);
	row->limits = &points->limits;
}

/*
 * Read the array of windows.  It has one element for each point, for the one column that the
 * argument overlaps names.
 */
static void
read_windows(const GeonnArguments *arguments, ArrayPoints *points, int count)
{
	ArrayType  *array = arguments->windows;
	NamedWindow *window = &points->window;
	int16		length;
	bool		by_value;
	char		alignment;
	int			elements;

	if (array == NULL || arguments->overlaps == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 array == NULL ? errmsg("the argument overlaps is given without windows") :
				 errmsg("the argument windows is given without overlaps"),
				 errdetail("The array windows has a value for each point, and overlaps the name of the column of ref that it goes with."),
				 array == NULL ? errhint("Give both, as in overlaps => '{%s}', windows => '{2026-01-01}'::timestamptz[].",
										 quote_identifier(linitial(arguments->overlaps))) :
				 errhint("Give both: name the column in overlaps, as in overlaps => '{valid}'.")));
	if (list_length(arguments->overlaps) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the argument overlaps names %d columns", list_length(arguments->overlaps)),
				 errdetail("Points of arrays have one window each."),
				 errhint("Use geonn_nearest_sql, with unnest of several arrays in its first query.")));
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("the array windows has %d dimensions", ARR_NDIM(array)),
				 errdetail("Arrays of windows have one dimension, and an element for each point."),
				 errhint("Give a flat array, as in '{2026-01-01, 2026-01-02}'::timestamptz[].")));
	window->title = "the array windows";
	window->name = linitial(arguments->overlaps);
	window->declared = ARR_ELEMTYPE(array);
	window->is_array = true;
	if (!geonn_window_find_type(window->declared, &window->type))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the array windows has elements of type %s", format_type_be(window->declared)),
				 errdetail_internal("%s", geonn_window_types),
				 errhint("Cast it, as in windows => '{2026-01-01}'::timestamptz[].")));
	get_typlenbyvalalign(window->declared, &length, &by_value, &alignment);
	deconstruct_array(array, window->declared, length, by_value, alignment, &points->windows,
					  &points->window_is_null, &elements);
	if (elements != count)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("the arrays lat and windows have %d and %d elements", count, elements),
				 errdetail("An element of the array windows is the window of the point that has its number."),
				 errhint("Give the array windows as many elements as lat.")));
}

/* Return the points of the arrays; *window becomes their window, or NULL if they have none. */
static const GivenPoints *
read_points(const GeonnArguments *arguments, const NamedWindow **window)
{
	ArrayPoints *points = palloc0(sizeof(ArrayPoints));
	int			latitudes;
	int			longitudes;

	read_coordinates(arguments->latitudes, "lat", &points->latitude, &points->latitude_is_null,
					 &latitudes);
	read_coordinates(arguments->longitudes, "lon", &points->longitude, &points->longitude_is_null,
					 &longitudes);
	if (latitudes != longitudes)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("the arrays lat and lon have %d and %d elements", latitudes, longitudes),
				 errdetail("Together they are points: element by element, latitude and longitude."),
				 errhint("Give arrays with as many elements each; an element may be NULL.")));
	if (arguments->overlaps != NIL || arguments->windows != NULL)
		read_windows(arguments, points, latitudes);
	points->given.count = (uint64) latitudes;
	points->given.point = array_point;
	points->given.state = points;
	*window = points->windows != NULL ? &points->window : NULL;
	return &points->given;
}

/* ---- calls ---- */

static const PGFunction joins[] = {
	[GEONN_NEAREST] = geonn_nearest,
	[GEONN_NEAREST_SQL] = geonn_nearest_sql,
	[GEONN_WITHIN] = geonn_within,
	[GEONN_WITHIN_SQL] = geonn_within_sql,
	[GEONN_NEAREST_POINTS] = geonn_nearest_points,
	[GEONN_WITHIN_COUNT] = geonn_within_count,
	[GEONN_WITHIN_COUNT_SQL] = geonn_within_count_sql,
	[GEONN_WITHIN_COUNT_POINTS] = geonn_within_count_points,
	[GEONN_CLUSTER] = geonn_cluster,
	[GEONN_CLUSTER_SQL] = geonn_cluster_sql,
	[GEONN_THIN] = geonn_thin,
	[GEONN_THIN_SQL] = geonn_thin_sql,
	[GEONN_ASSIGN] = geonn_assign,
	[GEONN_ASSIGN_SQL] = geonn_assign_sql
};

bool
geonn_is_join(PGFunction function)
{
	for (int i = 0; i < (int) lengthof(joins); i++)
	{
		if (joins[i] == function)
			return true;
	}
	return false;
}

/* Complete a join for clusters, or a thinning: the points are references, and ask about each other. */
static GeonnJoin *
make_clusters(const GeonnArguments *arguments)
{
	GeonnJoin  *join = arguments->join;
	GeonnColumnNames named = arguments->options.reference;

	named.weights = arguments->weights;
	named.weights_are = join->question.thins ? WEIGHTS_PRIORITY : WEIGHTS_SUMMED;
	join->references = arguments->ref_sql != NULL ?
		geonn_query_source("points_sql", arguments->ref_sql, &named, arguments->by, arguments->overlaps) :
		geonn_relation_source(arguments->ref, &named, arguments->by, arguments->overlaps);
	join->observations = join->references;
	geonn_check_question_of_shapes(join);
	geonn_call_describe(&join->label, InvalidOid, join->references->relation, arguments->function_name, arguments->text);
	return join;
}

GeonnJoin *
geonn_make_join(const GeonnArguments *arguments)
{
	GeonnJoin  *join = arguments->join;
	GeonnColumnNames observation = arguments->options.observation;
	GeonnColumnNames reference = arguments->options.reference;
	List	   *by = geonn_names_of_side(arguments->by, true);
	List	   *overlaps = arguments->latitudes != NULL ? arguments->overlaps :
		geonn_names_of_side(arguments->overlaps, true);

	if (join->question.min_points > 0)
		return make_clusters(arguments);
	observation.differs = geonn_names_of_side(arguments->differs, false);
	reference.differs = geonn_names_of_side(arguments->differs, true);
	reference.weights = arguments->weights;
	if (arguments->capacity_column != NULL)
	{
		reference.weights = list_make1(arguments->capacity_column);
		reference.weights_are = WEIGHTS_CAPACITY;
		join->question.weights = 1;
	}
	if (join->question.assigns)
	{
		observation.points_alone = observation.names[COLUMN_SHAPE] == NULL;
		reference.points_alone = reference.names[COLUMN_SHAPE] == NULL;
	}
	if (arguments->latitudes != NULL)
		join->given = read_points(arguments, &join->given_window);
	else if (arguments->obs_sql != NULL)
		join->observations = geonn_query_source("obs_sql", arguments->obs_sql, &observation,
												geonn_names_of_side(arguments->by, false),
												geonn_names_of_side(arguments->overlaps, false));
	else
		join->observations = geonn_relation_source(arguments->obs, &observation,
												   geonn_names_of_side(arguments->by, false),
												   geonn_names_of_side(arguments->overlaps, false));
	join->references = arguments->ref_sql != NULL ?
		geonn_query_source("ref_sql", arguments->ref_sql, &reference, by, overlaps) :
		arguments->latitudes != NULL && by == NIL && overlaps == NIL ?
		geonn_remembered_source(arguments->ref, &reference) :
		geonn_relation_source(arguments->ref, &reference, by, overlaps);
	if (join->observations != NULL)
		geonn_tell_unused_shape(join->observations);
	geonn_tell_unused_shape(join->references);
	for (int i = 0; i < join->references->window_count; i++)
	{
		NamedWindow reference_window = geonn_named_window(join->references, i);
		NamedWindow observation_window = join->given_window != NULL ? *join->given_window :
			geonn_named_window(join->observations, i);

		geonn_window_check_pair(&observation_window, &reference_window);
	}
	geonn_check_question_of_shapes(join);
	geonn_call_describe(&join->label,
						join->observations == NULL ? InvalidOid : join->observations->relation,
						join->references->relation, arguments->function_name, arguments->text);
	return join;
}

GeonnJoin *
geonn_read_join(FunctionCallInfo fcinfo)
{
	GeonnFunction function = GEONN_NEAREST;

	while (joins[function] != fcinfo->flinfo->fn_addr)
		function++;
	return geonn_make_join(geonn_arguments_read(function, geonn_arguments_called(fcinfo, function)));
}

/*
 * Answers with a tuplestore of all rows.  It keeps what fits into work_mem and spills the rest, so
 * the result may be larger than memory.
 */
static Datum
answer(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GeonnJoin  *join;
	TupleDesc	row_type;
	GeonnSearch *search;
	Datum	   *values;
	bool	   *nulls;
	GeonnReport report;

	geonn_check_may_search();
	join = geonn_read_join(fcinfo);
	if (get_call_result_type(fcinfo, NULL, &row_type) != TYPEFUNC_COMPOSITE)
		row_type = NULL;
	search = geonn_search_begin(join, row_type);

	/* A record's row_type belongs to the executor: have it copied, because the result's type is freed with the result. */
	InitMaterializedSRF(fcinfo, row_type == result->expectedDesc ? MAT_SRF_USE_EXPECTED_DESC : 0);
	values = palloc(result->setDesc->natts * sizeof(Datum));
	nulls = palloc(result->setDesc->natts * sizeof(bool));
	while (geonn_search_next(search, values, nulls))
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	report = geonn_search_report(search);
	geonn_search_log(search, &report);
	geonn_search_end(search);
	return (Datum) 0;
}

#define JOIN(name) \
	Datum name(PG_FUNCTION_ARGS) \
	{ \
		return answer(fcinfo); \
	}

JOIN(geonn_nearest)
JOIN(geonn_nearest_sql)
JOIN(geonn_within)
JOIN(geonn_within_sql)
JOIN(geonn_nearest_points)
JOIN(geonn_within_count)
JOIN(geonn_within_count_sql)
JOIN(geonn_within_count_points)
JOIN(geonn_cluster)
JOIN(geonn_cluster_sql)
JOIN(geonn_thin)
JOIN(geonn_thin_sql)
JOIN(geonn_assign)
JOIN(geonn_assign_sql)
