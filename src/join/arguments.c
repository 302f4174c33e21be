/*
 * arguments.c
 *		The arguments of geonn_nearest() and its siblings, by name.
 *
 * One table has a row for each argument: which functions have it, its type and default, how it
 * is read, and how the texts of geonn_stat and of the log show it.  An argument's place in its function
 * comes from the names that pg_proc has for the function, so SQL may list them in any order.  Where
 * a function lacks an argument that the table knows, as before ALTER EXTENSION UPDATE,
 * the argument has its default; so it does where a cache was made before the argument was new.
 *
 * The table serves the functions themselves (join/nearest.c), the planner's estimates
 * (plan/estimate.c), the plan node (plan/scan_plan.c, plan/scan.c) and the caches, which keep
 * arguments as JSON (cache/definition.c).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/inval.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "join/arguments.h"
#include "join/metric_names.h"

/* ---- how arguments are read ---- */

static void
read_name(const GeonnArgument *argument pg_attribute_unused(), Datum value,
		  GeonnArguments *arguments)
{
	arguments->name = TextDatumGetCString(value);
}

static void
read_obs(const GeonnArgument *argument pg_attribute_unused(), Datum value,
		 GeonnArguments *arguments)
{
	arguments->obs = DatumGetObjectId(value);
}

static void
read_ref(const GeonnArgument *argument pg_attribute_unused(), Datum value,
		 GeonnArguments *arguments)
{
	arguments->ref = DatumGetObjectId(value);
}

static void
read_obs_sql(const GeonnArgument *argument pg_attribute_unused(), Datum value,
			 GeonnArguments *arguments)
{
	arguments->obs_sql = TextDatumGetCString(value);
}

static void
read_ref_sql(const GeonnArgument *argument pg_attribute_unused(), Datum value,
			 GeonnArguments *arguments)
{
	arguments->ref_sql = TextDatumGetCString(value);
}

static void
read_lat(const GeonnArgument *argument pg_attribute_unused(), Datum value,
		 GeonnArguments *arguments)
{
	arguments->latitudes = DatumGetArrayTypeP(value);
}

static void
read_lon(const GeonnArgument *argument pg_attribute_unused(), Datum value,
		 GeonnArguments *arguments)
{
	arguments->longitudes = DatumGetArrayTypeP(value);
}

static void
read_k(const GeonnArgument *argument pg_attribute_unused(), Datum value,
	   GeonnArguments *arguments)
{
	int32		k = DatumGetInt32(value);

	if (k < 1 || k > GEONN_K_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("k is out of range: %d", k),
				 errdetail("The argument k is from 1 to %d.", GEONN_K_MAX),
				 k < 1 ? errhint("Give 1 for the nearest reference alone.") :
				 errhint("geonn_within returns all references within a radius.")));
	arguments->join->question.k = (uint32) k;
}

static void
read_max_distance(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	double		distance = DatumGetFloat8(value);

	if (!(distance >= 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is out of range: %s", argument->name, float8out_internal(distance)),
				 errdetail("Distances are in metres, 0 or more."),
				 argument->hint != NULL ? errhint("%s", argument->hint) :
				 errhint("For references at any distance, leave %s out.", argument->name)));
	arguments->join->question.max_distance = distance;
}

/* a cache has a radius in place of k */
static void
read_radius(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	read_max_distance(argument, value, arguments);
	arguments->join->question.k = 0;
}

/*
 * Which of these words it is, counted from 0; NULL ends them.
 */
static int
read_word(const GeonnArgument *argument, Datum value, const char *const *words)
{
	char	   *word = TextDatumGetCString(value);

	for (int i = 0; words[i] != NULL; i++)
	{
		if (strcmp(word, words[i]) == 0)
			return i;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown %s: \"%s\"", argument->name, word),
			 errhint("%s", argument->hint)));
}

static char *
list_metrics(void)
{
	return psprintf("Give %s.", geonn_list_metrics("'", "or"));
}

static void
read_metric(const GeonnArgument *argument pg_attribute_unused(), Datum value,
			GeonnArguments *arguments)
{
	enum geonn_metric metric;
	char	   *name = TextDatumGetCString(value);

	if (!geonn_find_metric(name, strlen(name), &metric))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown metric: \"%s\"", name),
				 errhint("%s", list_metrics())));
	arguments->join->question.metric = metric;
}

static void
read_by(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	arguments->by = geonn_column_names(argument->name, value);
}

static void
read_overlaps(const GeonnArgument *argument pg_attribute_unused(), Datum value,
			  GeonnArguments *arguments)
{
	arguments->overlaps = geonn_overlaps_names(value);
}

static void
read_windows(const GeonnArgument *argument pg_attribute_unused(), Datum value,
			 GeonnArguments *arguments)
{
	arguments->windows = DatumGetArrayTypeP(value);
}

static void
read_exclude_self(const GeonnArgument *argument pg_attribute_unused(), Datum value,
				  GeonnArguments *arguments)
{
	arguments->join->exclude_self = DatumGetBool(value);
}

static void
read_keep_unmatched(const GeonnArgument *argument pg_attribute_unused(), Datum value,
					GeonnArguments *arguments)
{
	arguments->join->keep_unmatched = DatumGetBool(value);
}

static void
read_ties(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	static const char *const words[] = {"first", "all", NULL};

	arguments->join->question.ties = read_word(argument, value, words) == 1;
}

static void
read_invalid(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	static const char *const words[] = {"skip", "error", NULL};

	arguments->join->invalid = read_word(argument, value, words) == 0 ?
		GEONN_INVALID_SKIPPED : GEONN_INVALID_IS_ERROR;
}

static void
read_options(const GeonnArgument *argument pg_attribute_unused(), Datum value,
			 GeonnArguments *arguments)
{
	GeonnQuestion *question = &arguments->join->question;

	geonn_parse_options(DatumGetJsonbP(value),
						arguments->function == GEONN_NEAREST_POINTS ? GEONN_OPTIONS_POINTS :
						GEONN_OPTIONS_JOIN, &arguments->options);
	question->device = arguments->options.device;
	question->algorithm = arguments->options.algorithm;
	question->batch_rows = arguments->options.batch_rows;
}

static void
read_target(const GeonnArgument *argument pg_attribute_unused(), Datum value,
			GeonnArguments *arguments)
{
	arguments->target = DatumGetTextPP(value);
}

static void
read_replace(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	static const char *const words[] = {
		[GEONN_REPLACE_AUTO] = "auto",
		[GEONN_REPLACE_NEVER] = "never",
		[GEONN_REPLACE_ALWAYS] = "always",
		NULL
	};

	arguments->replace = read_word(argument, value, words);
}

/* ---- how texts show them ---- */

/*
 * A number.  SQL has no literal for an infinite one without quotes.
 */
static char *
number(const char *output)
{
	return strcmp(output, "Infinity") == 0 ? quote_literal_cstr(output) : pstrdup(output);
}

static char *
truth(const char *output)
{
	return pstrdup(output[0] == 't' ? "true" : "false");
}

static char *
quoted(const char *output)
{
	return quote_literal_cstr(output);
}

/* ---- the table ---- */

#define BIT(function)	(1 << (function))
#define RELATIONS		(BIT(GEONN_NEAREST) | BIT(GEONN_WITHIN))
#define QUERIES			(BIT(GEONN_NEAREST_SQL) | BIT(GEONN_WITHIN_SQL))
#define POINTS			BIT(GEONN_NEAREST_POINTS)
#define CREATE			BIT(GEONN_CACHE_CREATE)
#define KEPT			(CREATE | BIT(GEONN_CACHE))
#define SHARDS			BIT(GEONN_SHARD_DDL)
#define CACHES			(KEPT | SHARDS)
#define WITHIN			(BIT(GEONN_WITHIN) | BIT(GEONN_WITHIN_SQL))
#define NEAREST			(BIT(GEONN_NEAREST) | BIT(GEONN_NEAREST_SQL) | POINTS)
#define JOINS			(RELATIONS | QUERIES | CACHES)
#define ALL				(JOINS | POINTS)

static const char relation_hint[] = "Name a table or view";
static const char query_hint[] = "Give a query with columns id, lat and lon, as in 'SELECT id, lat, lon FROM city'.";
static const char metric_hint[] = "Give one of the metrics";
static const char radius_hint[] = "Give a radius in metres, or name columns of radiuses, by obs_radius or ref_radius in options.";
static const char flag_hint[] = "Give true or false.";

/* in the order in which they are read and shown */
const GeonnArgument geonn_arguments[] = {
	{"name", CREATE, TEXTOID, NULL, "Give the name of the cache.", read_name, NULL},
	{"obs", RELATIONS | CREATE | SHARDS, REGCLASSOID, NULL, relation_hint, read_obs, NULL},
	{"obs_sql", QUERIES, TEXTOID, NULL, query_hint, read_obs_sql, NULL},
	{"lat", POINTS, FLOAT8ARRAYOID, NULL, "Give an array of degrees.", read_lat, NULL},
	{"lon", POINTS, FLOAT8ARRAYOID, NULL, "Give an array of degrees.", read_lon, NULL},
	{"ref", RELATIONS | POINTS | CREATE | SHARDS, REGCLASSOID, NULL, relation_hint, read_ref, NULL},
	{"ref_sql", QUERIES, TEXTOID, NULL, query_hint, read_ref_sql, NULL},
	{"k", NEAREST | CACHES, INT4OID, "1", "Give the number of neighbours wanted, from 1 on.", read_k, number},
	{"max_distance", NEAREST | CACHES, FLOAT8OID, "Infinity", NULL, read_max_distance, number},
	{"radius", WITHIN | CACHES, FLOAT8OID, NULL, radius_hint, read_radius, number},
	{"metric", ALL, TEXTOID, "sphere", metric_hint, read_metric, quoted},
	{"by", JOINS, NAMEARRAYOID, NULL, NULL, read_by, quoted},
	{"overlaps", ALL, NAMEARRAYOID, NULL, NULL, read_overlaps, quoted},
	{"windows", POINTS, ANYCOMPATIBLEARRAYOID, NULL, NULL, read_windows, NULL},
	{"exclude_self", JOINS, BOOLOID, "f", flag_hint, read_exclude_self, truth},
	{"keep_unmatched", ALL, BOOLOID, "f", flag_hint, read_keep_unmatched, truth},
	{"ties", NEAREST | CACHES, TEXTOID, "first", "Give 'first' or 'all'.", read_ties, quoted},
	{"invalid", ALL, TEXTOID, "skip", "Give 'skip' or 'error'.", read_invalid, quoted},
	{"options", ALL, JSONBOID, "{}", "Give an object, as in '{}'.", read_options, quoted},
	{"target", CREATE, TEXTOID, NULL, NULL, read_target, NULL},
	{"replace", KEPT, TEXTOID, "auto", "Give 'auto', 'never' or 'always'.", read_replace, NULL}
};

#define ARGUMENTS ((int) lengthof(geonn_arguments))

const int	geonn_argument_count = ARGUMENTS;

bool
geonn_argument_has(const GeonnArgument *argument, GeonnFunction function)
{
	return (argument->functions & BIT(function)) != 0;
}

bool
geonn_argument_of_k(const GeonnArgument *argument)
{
	return (argument->functions & NEAREST) != 0 && (argument->functions & WITHIN) == 0;
}

bool
geonn_argument_of_radius(const GeonnArgument *argument)
{
	return (argument->functions & WITHIN) != 0 && (argument->functions & NEAREST) == 0;
}

/* functions, and how their observations are given */
static const struct
{
	const char *name;
	const char *observations;
}			functions[] = {
	[GEONN_NEAREST] = {"geonn_nearest", "'city'"},
	[GEONN_NEAREST_SQL] = {"geonn_nearest_sql", NULL},
	[GEONN_WITHIN] = {"geonn_within", "'city'"},
	[GEONN_WITHIN_SQL] = {"geonn_within_sql", NULL},
	[GEONN_NEAREST_POINTS] = {"geonn_nearest_points", "'{52.52}', '{13.405}'"},
	[GEONN_CACHE_CREATE] = {"geonn_cache_create", "'near', 'city'"},
	[GEONN_CACHE] = {"geonn_refresh", NULL},
	[GEONN_SHARD_DDL] = {"geonn_shard_ddl", "'{shard1, shard2}', 'city'"}
};

/* ---- where they are ---- */

/* the function that a plan asked for last */
static struct
{
	Oid			function;		/* InvalidOid: none */
	int			places[ARGUMENTS];
}			planned;

/*
 * Where the function has each argument of the table, [ARGUMENTS]; -1: it has none of this name
 * and type.
 */
static void
find_places(Oid function, int *places)
{
	HeapTuple	row = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	const oidvector *types;
	Datum		names_value;
	Datum		modes_value;
	bool		no_names;
	bool		no_modes;
	char	  **names = NULL;
	int			count = 0;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for function %u", function);
	types = &((Form_pg_proc) GETSTRUCT(row))->proargtypes;
	names_value = SysCacheGetAttr(PROCOID, row, Anum_pg_proc_proargnames, &no_names);
	modes_value = SysCacheGetAttr(PROCOID, row, Anum_pg_proc_proargmodes, &no_modes);
	if (!no_names)
		count = get_func_input_arg_names(names_value, no_modes ? (Datum) 0 : modes_value, &names);
	for (int i = 0; i < ARGUMENTS; i++)
	{
		places[i] = -1;
		for (int place = 0; place < Min(count, types->dim1); place++)
		{
			if (names[place] != NULL && strcmp(names[place], geonn_arguments[i].name) == 0 &&
				types->values[place] == geonn_arguments[i].type)
				places[i] = place;
		}
	}
	ReleaseSysCache(row);
}

/*
 * Where the called function has each argument, looked up once a FmgrInfo.
 */
static const int *
called_places(FunctionCallInfo fcinfo)
{
	FmgrInfo   *function = fcinfo->flinfo;

	if (function->fn_extra == NULL)
	{
		int		   *places = MemoryContextAlloc(function->fn_mcxt, sizeof(int[ARGUMENTS]));

		find_places(function->fn_oid, places);
		function->fn_extra = places;
	}
	return function->fn_extra;
}

static void
forget_planned(Datum argument pg_attribute_unused(), int cache pg_attribute_unused(),
			   uint32 hash pg_attribute_unused())
{
	planned.function = InvalidOid;
}

/*
 * Where a function in a plan has each argument: the planner asks many times for one function.
 */
static const int *
planned_places(Oid function)
{
	static bool told = false;

	if (function == planned.function)
		return planned.places;
	if (!told)
		CacheRegisterSyscacheCallback(PROCOID, forget_planned, (Datum) 0);
	told = true;
	planned.function = InvalidOid;
	find_places(function, planned.places);
	planned.function = function;
	return planned.places;
}

Node *
geonn_expression_argument(const FuncExpr *expression, const char *name)
{
	const int  *places = planned_places(expression->funcid);

	for (int i = 0; i < ARGUMENTS; i++)
	{
		if (strcmp(geonn_arguments[i].name, name) == 0 && places[i] >= 0 &&
			places[i] < list_length(expression->args))
			return list_nth(expression->args, places[i]);
	}
	return NULL;
}

Node *
geonn_expression_observations(const FuncExpr *expression)
{
	Node	   *relation = geonn_expression_argument(expression, "obs");

	return relation != NULL ? relation : geonn_expression_argument(expression, "obs_sql");
}

Node *
geonn_expression_references(const FuncExpr *expression)
{
	Node	   *relation = geonn_expression_argument(expression, "ref");

	return relation != NULL ? relation : geonn_expression_argument(expression, "ref_sql");
}

/* ---- their values ---- */

static const char *
hint_of(GeonnFunction function, const GeonnArgument *argument)
{
	if (argument->hint == metric_hint)
		return list_metrics();
	if (argument->hint == relation_hint)
		return psprintf("%s, as in %s(%s, 'airport').", relation_hint, functions[function].name,
						functions[function].observations);
	return argument->hint;
}

__attribute__((noreturn))
static void
raise_null(GeonnFunction function, const GeonnArgument *argument)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("argument \"%s\" of %s is NULL", argument->name, functions[function].name),
			 errhint("%s", hint_of(function, argument))));
}

NullableDatum *
geonn_arguments_called(FunctionCallInfo fcinfo, GeonnFunction function)
{
	const int  *places = called_places(fcinfo);
	NullableDatum *values = palloc0(sizeof(NullableDatum[ARGUMENTS]));

	for (int i = 0; i < ARGUMENTS; i++)
	{
		const GeonnArgument *argument = &geonn_arguments[i];

		values[i].isnull = true;
		if (!geonn_argument_has(argument, function))
			continue;
		if (places[i] >= 0 && places[i] < fcinfo->nargs)
			values[i] = fcinfo->args[places[i]];
		else if (argument->hint != NULL && argument->standard == NULL)
			elog(ERROR, "function %u has no argument \"%s\"", fcinfo->flinfo->fn_oid,
				 argument->name);
		else
			continue;

		/* a cache, or shards, without radius have k, and a join may have radiuses of its points */
		if (values[i].isnull && argument->hint != NULL && !geonn_argument_of_radius(argument))
			raise_null(function, argument);
	}
	return values;
}

static char *
output_of(const GeonnArgument *argument, Datum value)
{
	Oid			function;
	bool		is_varlena;

	getTypeOutputInfo(argument->type, &function, &is_varlena);
	return OidOutputFunctionCall(function, value);
}

static NullableDatum
standard_value(const GeonnArgument *argument)
{
	NullableDatum value = {.isnull = argument->standard == NULL};
	Oid			function;
	Oid			parameter;

	if (value.isnull)
		return value;
	getTypeInputInfo(argument->type, &function, &parameter);
	value.value = OidInputFunctionCall(function, unconstify(char *, argument->standard),
									   parameter, -1);
	return value;
}

static bool
is_standard(const GeonnArgument *argument, const char *output)
{
	return argument->standard != NULL && strcmp(output, argument->standard) == 0;
}

bool
geonn_argument_is_default(const GeonnArgument *argument, NullableDatum value)
{
	return value.isnull || is_standard(argument, output_of(argument, value.value));
}

/*
 * geonn_within without a radius: its points have radiuses of their own.
 */
static void
read_no_radius(GeonnFunction function, const GeonnArgument *argument, GeonnArguments *arguments)
{
	if (arguments->options.observation.radius == NULL && arguments->options.reference.radius == NULL)
		raise_null(function, argument);
	arguments->join->question.max_distance = get_float8_infinity();
	arguments->join->question.k = 0;
}

GeonnArguments *
geonn_arguments_read(GeonnFunction function, const NullableDatum *values)
{
	GeonnArguments *arguments = palloc0(sizeof(GeonnArguments));
	const GeonnArgument *missing_radius = NULL;
	StringInfoData text;

	arguments->function = function;
	arguments->function_name = functions[function].name;
	arguments->join = palloc0(sizeof(GeonnJoin));
	initStringInfo(&text);
	for (int i = 0; i < ARGUMENTS; i++)
	{
		const GeonnArgument *argument = &geonn_arguments[i];
		NullableDatum value = values[i];
		char	   *output;

		if (!geonn_argument_has(argument, function))
			continue;
		if (value.isnull)
			value = standard_value(argument);
		if (value.isnull && (BIT(function) & WITHIN) != 0 && geonn_argument_of_radius(argument))
			missing_radius = argument;
		if (value.isnull)
			continue;
		argument->read(argument, value.value, arguments);
		if (argument->describe == NULL || values[i].isnull)
			continue;
		output = output_of(argument, value.value);
		if (!is_standard(argument, output))
			appendStringInfo(&text, "%s%s => %s", text.len > 0 ? ", " : "", argument->name,
							 argument->describe(output));
	}
	if (missing_radius != NULL)
		read_no_radius(function, missing_radius, arguments);
	arguments->text = text.data;
	return arguments;
}
