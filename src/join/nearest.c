/*
 * nearest.c
 *		geonn_nearest() and its siblings: arguments in, a join out.
 *
 * All of them take the same arguments under the same names, in another order
 * and not each of them all; they differ in where their points come from
 * (relations, queries, arrays) and in what is asked of them (k neighbours, or
 * all within a radius).
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"

#include "common/protocol.h"
#include "join/call.h"
#include "join/join.h"
#include "join/nearest.h"
#include "join/metric_names.h"
#include "points/options.h"

PG_FUNCTION_INFO_V1(geonn_nearest);
PG_FUNCTION_INFO_V1(geonn_nearest_sql);
PG_FUNCTION_INFO_V1(geonn_within);
PG_FUNCTION_INFO_V1(geonn_within_sql);
PG_FUNCTION_INFO_V1(geonn_nearest_points);

/* where the arguments of a function are; -1: it has no such one */
typedef struct ArgumentPlaces
{
	const char *function;
	int			k;
	int			max_distance;	/* or radius */
	int			metric;
	int			by;
	int			exclude_self;
	int			keep_unmatched;
	int			ties;
	int			invalid;
	int			options;
} ArgumentPlaces;

static const ArgumentPlaces nearest_places = {
	"geonn_nearest", 2, 3, 4, 5, 6, 7, 8, 9, 10
};
static const ArgumentPlaces nearest_sql_places = {
	"geonn_nearest_sql", 2, 3, 4, 5, 6, 7, 8, 9, 10
};
static const ArgumentPlaces within_places = {
	"geonn_within", -1, 2, 3, 4, 5, 6, -1, 7, 8
};
static const ArgumentPlaces within_sql_places = {
	"geonn_within_sql", -1, 2, 3, 4, 5, 6, -1, 7, 8
};
static const ArgumentPlaces points_places = {
	"geonn_nearest_points", 3, 4, 5, -1, -1, 6, 7, 8, 9
};

static void
require(FunctionCallInfo fcinfo, const ArgumentPlaces *places, int number, const char *name,
		const char *hint)
{
	if (PG_ARGISNULL(number))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" of %s is NULL", name, places->function),
				 errhint("%s", hint)));
}

/*
 * Which of two words an argument is: 0 or 1.
 */
static int
read_word(FunctionCallInfo fcinfo, const ArgumentPlaces *places, int number, const char *name,
		  const char *first, const char *second)
{
	char	   *word;

	require(fcinfo, places, number, name, psprintf("It is '%s' or '%s'.", first, second));
	word = text_to_cstring(PG_GETARG_TEXT_PP(number));
	if (strcmp(word, first) == 0)
		return 0;
	if (strcmp(word, second) == 0)
		return 1;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown %s: \"%s\"", name, word),
			 errhint("It is '%s' or '%s'.", first, second)));
}

static enum geonn_metric
read_metric(FunctionCallInfo fcinfo, const ArgumentPlaces *places)
{
	enum geonn_metric metric;
	char	   *hint = psprintf("It is %s.", geonn_list_metrics("'", "or"));
	char	   *name;

	require(fcinfo, places, places->metric, "metric", hint);
	name = text_to_cstring(PG_GETARG_TEXT_PP(places->metric));
	if (!geonn_find_metric(name, strlen(name), &metric))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown metric: \"%s\"", name),
				 errhint("%s", hint)));
	return metric;
}

static bool
read_flag(FunctionCallInfo fcinfo, const ArgumentPlaces *places, int number, const char *name)
{
	if (number < 0)
		return false;
	require(fcinfo, places, number, name, "It is true or false.");
	return PG_GETARG_BOOL(number);
}

/* the number of neighbours; 0: all within a radius */
static uint32
read_k(FunctionCallInfo fcinfo, const ArgumentPlaces *places)
{
	int32		k;

	if (places->k < 0)
		return 0;
	require(fcinfo, places, places->k, "k", "It is the number of neighbours wanted, from 1 on.");
	k = PG_GETARG_INT32(places->k);
	if (k < 1 || k > GEONN_NEIGHBOURS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("k is out of range: %d", k),
				 errdetail("It is from 1 to %d.", GEONN_NEIGHBOURS_MAX),
				 k < 1 ? 0 :
				 errhint("geonn_within returns all references within a radius.")));
	return (uint32) k;
}

static double
read_distance(FunctionCallInfo fcinfo, const ArgumentPlaces *places)
{
	const char *name = places->k < 0 ? "radius" : "max_distance";
	double		distance;

	if (places->k >= 0 && PG_ARGISNULL(places->max_distance))
		return get_float8_infinity();
	require(fcinfo, places, places->max_distance, name, "It is in metres.");
	distance = PG_GETARG_FLOAT8(places->max_distance);
	if (!(distance >= 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is out of range: %s", name, float8out_internal(distance)),
				 errdetail("It is in metres, 0 or more.")));
	return distance;
}

/*
 * The names of the columns to join by, as a list of strings.
 */
static List *
read_by(FunctionCallInfo fcinfo, const ArgumentPlaces *places)
{
	ArrayType  *array;
	Datum	   *names;
	bool	   *is_null;
	int			count;
	List	   *by = NIL;

	if (places->by < 0 || PG_ARGISNULL(places->by))
		return NIL;
	array = PG_GETARG_ARRAYTYPE_P(places->by);
	deconstruct_array(array, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR,
					  &names, &is_null, &count);
	for (int i = 0; i < count; i++)
	{
		ListCell   *cell;
		char	   *name;

		if (is_null[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("the argument by has a NULL in it"),
					 errhint("It is an array of column names, as in ARRAY['country'].")));
		name = NameStr(*DatumGetName(names[i]));
		foreach(cell, by)
		{
			if (strcmp(lfirst(cell), name) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_DUPLICATE_COLUMN),
						 errmsg("the argument by names column \"%s\" twice", name)));
		}
		by = lappend(by, pstrdup(name));
	}
	return by;
}

/*
 * What all of the functions take.
 */
static void
read_arguments(FunctionCallInfo fcinfo, const ArgumentPlaces *places, GeonnJoin *join,
			   GeonnOptions *options)
{
	GeonnQuestion *question = &join->question;

	question->neighbours = read_k(fcinfo, places);
	question->max_distance = read_distance(fcinfo, places);
	question->metric = read_metric(fcinfo, places);
	join->exclude_self = read_flag(fcinfo, places, places->exclude_self, "exclude_self");
	join->keep_unmatched = read_flag(fcinfo, places, places->keep_unmatched, "keep_unmatched");
	if (places->ties >= 0)
		question->ties = read_word(fcinfo, places, places->ties, "ties", "first", "all") == 1;
	join->invalid = read_word(fcinfo, places, places->invalid, "invalid", "skip", "error") == 0 ?
		GEONN_INVALID_SKIPPED : GEONN_INVALID_IS_ERROR;
	require(fcinfo, places, places->options, "options", "It is an object, as in '{}'.");
	geonn_parse_options(PG_GETARG_JSONB_P(places->options),
						places->by < 0 ? GEONN_OPTIONS_POINTS : GEONN_OPTIONS_JOIN, options);
	question->device = options->device;
	question->algorithm = options->algorithm;
	question->batch_rows = options->batch_rows;
}

static void
add_argument(StringInfo text, const char *name, const char *value)
{
	appendStringInfo(text, "%s%s => %s", text->len > 0 ? ", " : "", name, value);
}

/*
 * Label the join, with what is asked of it in words: all arguments that do not have their
 * defaults, but for the relations, queries or arrays.
 */
static void
describe(FunctionCallInfo fcinfo, const ArgumentPlaces *places, GeonnJoin *join)
{
	const GeonnQuestion *question = &join->question;
	const char *options = JsonbToCString(NULL, &PG_GETARG_JSONB_P(places->options)->root, 0);
	StringInfoData text;

	initStringInfo(&text);
	if (question->neighbours > 1)
		add_argument(&text, "k", psprintf("%u", question->neighbours));
	if (!isinf(question->max_distance))
		add_argument(&text, places->k < 0 ? "radius" : "max_distance",
					 float8out_internal(question->max_distance));
	if (question->metric != GEONN_METRIC_SPHERE)
		add_argument(&text, "metric", psprintf("'%s'", geonn_metric_name(question->metric)));
	if (places->by >= 0 && !PG_ARGISNULL(places->by))
		add_argument(&text, "by",
					 quote_literal_cstr(OidOutputFunctionCall(F_ARRAY_OUT,
															  PG_GETARG_DATUM(places->by))));
	if (join->exclude_self)
		add_argument(&text, "exclude_self", "true");
	if (join->keep_unmatched)
		add_argument(&text, "keep_unmatched", "true");
	if (question->ties)
		add_argument(&text, "ties", "'all'");
	if (join->invalid == GEONN_INVALID_IS_ERROR)
		add_argument(&text, "invalid", "'error'");
	if (strcmp(options, "{}") != 0)
		add_argument(&text, "options", quote_literal_cstr(options));
	geonn_call_describe(&join->label,
						join->observations == NULL ? InvalidOid : join->observations->relation,
						join->references->relation, places->function, text.data);
}

static Oid
read_relation(FunctionCallInfo fcinfo, const ArgumentPlaces *places, int number,
			  const char *name)
{
	require(fcinfo, places, number, name,
			psprintf("Name a table or view, as in %s(%s, 'airport').", places->function,
					 number < 2 ? "'city'" : "'{52.52}', '{13.405}'"));
	return PG_GETARG_OID(number);
}

static GeonnJoin *
read_relations(FunctionCallInfo fcinfo, const ArgumentPlaces *places)
{
	GeonnJoin  *join = palloc0(sizeof(GeonnJoin));
	GeonnOptions options;
	Oid			observations = read_relation(fcinfo, places, 0, "obs");
	Oid			references = read_relation(fcinfo, places, 1, "ref");
	List	   *by = read_by(fcinfo, places);

	read_arguments(fcinfo, places, join, &options);
	join->observations = geonn_relation_source(observations, &options.observation, by);
	join->references = geonn_relation_source(references, &options.reference, by);
	return join;
}

static GeonnJoin *
read_queries(FunctionCallInfo fcinfo, const ArgumentPlaces *places)
{
	static const char hint[] = "Give a query with columns id, lat and lon, as in 'SELECT id, lat, lon FROM city'.";
	GeonnJoin  *join = palloc0(sizeof(GeonnJoin));
	GeonnOptions options;
	List	   *by = read_by(fcinfo, places);

	require(fcinfo, places, 0, "obs_sql", hint);
	require(fcinfo, places, 1, "ref_sql", hint);
	read_arguments(fcinfo, places, join, &options);
	join->observations = geonn_query_source("obs_sql", text_to_cstring(PG_GETARG_TEXT_PP(0)),
											&options.observation, by);
	join->references = geonn_query_source("ref_sql", text_to_cstring(PG_GETARG_TEXT_PP(1)),
										  &options.reference, by);
	return join;
}

/* points of two arrays */
typedef struct ArrayPoints
{
	GivenPoints given;
	double	   *latitude;
	double	   *longitude;
	const bool *latitude_is_null;
	const bool *longitude_is_null;
} ArrayPoints;

/*
 * The coordinates of an array, which has one dimension or is empty.
 */
static double *
read_coordinates(FunctionCallInfo fcinfo, int number, const char *name,
				 const bool **is_null, int *count)
{
	ArrayType  *array;
	Datum	   *values;
	bool	   *value_is_null;
	double	   *coordinates;

	require(fcinfo, &points_places, number, name, "It is an array of degrees.");
	array = PG_GETARG_ARRAYTYPE_P(number);
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("the array %s has %d dimensions", name, ARR_NDIM(array)),
				 errdetail("It has one: a coordinate for each point.")));
	deconstruct_array(array, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
					  &values, &value_is_null, count);
	coordinates = palloc(*count * sizeof(double));
	for (int i = 0; i < *count; i++)
		coordinates[i] = value_is_null[i] ? 0 : DatumGetFloat8(values[i]);
	*is_null = value_is_null;
	return coordinates;
}

static void
array_point(void *state, uint64 number, PointRow *row)
{
	const ArrayPoints *points = state;

	row->latitude_is_null = points->latitude_is_null[number];
	row->longitude_is_null = points->longitude_is_null[number];
	row->latitude = points->latitude[number];
	row->longitude = points->longitude[number];
}

static GeonnJoin *
read_points(FunctionCallInfo fcinfo, const ArgumentPlaces *places)
{
	GeonnJoin  *join = palloc0(sizeof(GeonnJoin));
	ArrayPoints *points = palloc0(sizeof(ArrayPoints));
	GeonnOptions options;
	int			latitudes;
	int			longitudes;

	points->latitude = read_coordinates(fcinfo, 0, "lat", &points->latitude_is_null, &latitudes);
	points->longitude = read_coordinates(fcinfo, 1, "lon", &points->longitude_is_null, &longitudes);
	if (latitudes != longitudes)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("the arrays lat and lon have %d and %d elements", latitudes, longitudes),
				 errdetail("Together they are points: element by element, latitude and longitude.")));
	points->given.count = (uint64) latitudes;
	points->given.point = array_point;
	points->given.state = points;
	join->given = &points->given;
	read_arguments(fcinfo, places, join, &options);
	join->references = geonn_relation_source(read_relation(fcinfo, places, 2, "ref"),
											 &options.reference, NIL);
	return join;
}

static const struct
{
	PGFunction	function;
	GeonnJoin  *(*read) (FunctionCallInfo fcinfo, const ArgumentPlaces *places);
	const ArgumentPlaces *places;
}			joins[] = {
	{geonn_nearest, read_relations, &nearest_places},
	{geonn_nearest_sql, read_queries, &nearest_sql_places},
	{geonn_within, read_relations, &within_places},
	{geonn_within_sql, read_queries, &within_sql_places},
	{geonn_nearest_points, read_points, &points_places}
};

bool
geonn_is_join(PGFunction function)
{
	for (int i = 0; i < (int) lengthof(joins); i++)
	{
		if (joins[i].function == function)
			return true;
	}
	return false;
}

GeonnJoin *
geonn_read_join(FunctionCallInfo fcinfo)
{
	int			number = 0;
	GeonnJoin  *join;

	while (joins[number].function != fcinfo->flinfo->fn_addr)
		number++;
	join = joins[number].read(fcinfo, joins[number].places);
	describe(fcinfo, joins[number].places, join);
	return join;
}

/*
 * The function's result is a tuplestore of all rows.  It keeps what fits into
 * work_mem and spills the rest, so the result may be larger than memory.
 */
static Datum
answer(FunctionCallInfo fcinfo)
{
	GeonnJoin  *join = geonn_read_join(fcinfo);
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	TupleDesc	row_type;
	GeonnSearch *search;
	GeonnReport report;

	if (get_call_result_type(fcinfo, NULL, &row_type) != TYPEFUNC_COMPOSITE)
		row_type = NULL;
	search = geonn_search_begin(join, row_type);

	/* a record's descriptor is the executor's own, and the result's is freed */
	InitMaterializedSRF(fcinfo, row_type == result->expectedDesc ? MAT_SRF_USE_EXPECTED_DESC : 0);
	geonn_search_store(search, result->setResult);
	report = geonn_search_report(search);
	geonn_search_log(search, &report);
	geonn_search_end(search);
	return (Datum) 0;
}

Datum
geonn_nearest(PG_FUNCTION_ARGS)
{
	return answer(fcinfo);
}

Datum
geonn_nearest_sql(PG_FUNCTION_ARGS)
{
	return answer(fcinfo);
}

Datum
geonn_within(PG_FUNCTION_ARGS)
{
	return answer(fcinfo);
}

Datum
geonn_within_sql(PG_FUNCTION_ARGS)
{
	return answer(fcinfo);
}

Datum
geonn_nearest_points(PG_FUNCTION_ARGS)
{
	return answer(fcinfo);
}
