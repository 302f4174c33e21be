/*
 * arguments.c
 *		The arguments of geonn_nearest() and its siblings, by name.
 *
 * One table has a row for each argument: which functions have it, its type and default, how it
 * is read, and how the texts of geonn_stat and of the log show it.  An argument's position in its function
 * comes from the names that pg_proc has for the function, so SQL may list them in any order.  Where
 * a function lacks an argument that the table knows, as before ALTER EXTENSION UPDATE,
 * the argument has its default; so it does where a cache was made before the argument was new.
 *
 * The table serves the functions themselves (join/nearest.c), the planner's estimates
 * (plan/estimate.c), the plan node (plan/scan.c) and the caches, which keep
 * arguments as JSON (cache/definition.c).
 */
#include "postgres.h"

#include <math.h>

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

#include "common/geodesy.h"
#include "join/arguments.h"
#include "points/column_pairs.h"
#include "base/words.h"

/* sets of functions */
#define BIT(function)	(1 << (function))
#define RELATIONS		(BIT(GEONN_NEAREST) | BIT(GEONN_WITHIN) | BIT(GEONN_WITHIN_COUNT) | BIT(GEONN_ASSIGN))
#define QUERIES			(BIT(GEONN_NEAREST_SQL) | BIT(GEONN_WITHIN_SQL) | BIT(GEONN_WITHIN_COUNT_SQL) | BIT(GEONN_ASSIGN_SQL))
#define POINTS			(BIT(GEONN_NEAREST_POINTS) | BIT(GEONN_WITHIN_COUNT_POINTS))
#define CREATE			BIT(GEONN_CACHE_CREATE)
#define KEPT			(CREATE | BIT(GEONN_CACHE))
#define SHARDS			BIT(GEONN_SHARD_DDL)
#define CACHES			(KEPT | SHARDS)
#define WITHIN			(BIT(GEONN_WITHIN) | BIT(GEONN_WITHIN_SQL))
#define NEAREST			(BIT(GEONN_NEAREST) | BIT(GEONN_NEAREST_SQL) | BIT(GEONN_NEAREST_POINTS))
#define COUNTS			(BIT(GEONN_WITHIN_COUNT) | BIT(GEONN_WITHIN_COUNT_SQL) | BIT(GEONN_WITHIN_COUNT_POINTS))
#define CLUSTERS		(BIT(GEONN_CLUSTER) | BIT(GEONN_CLUSTER_SQL))
#define THINS			(BIT(GEONN_THIN) | BIT(GEONN_THIN_SQL))
#define ONE_SIDE		(CLUSTERS | THINS)
#define ASSIGNS			(BIT(GEONN_ASSIGN) | BIT(GEONN_ASSIGN_SQL))
#define JOINS			(RELATIONS | QUERIES | CACHES)
#define ALL				(JOINS | POINTS | ONE_SIDE)

/* Marks arguments whose hint lists their words (list_words). */
static const char word_hint[] = "Give one of the words";

/* Both structs in one, so that an offset in the table can name a field of either. */
typedef struct ReadArguments
{
	GeonnArguments arguments;
	GeonnJoin	join;
} ReadArguments;

/* ---- how arguments are read ---- */

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

/* Read the radius of clusters, or the spacing of a thinning. */
static void
read_cluster_radius(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	const double half_circle = M_PI * GEONN_SPHERE_RADIUS;
	double		radius = DatumGetFloat8(value);

	if (!(radius > 0 && radius <= half_circle))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is out of range: %s", argument->name, float8out_internal(radius)),
				 errdetail("The %s is in metres, above 0, and at most half the circumference of the Earth, %.0f.",
						   argument->name, floor(half_circle)),
				 errhint("%s", argument->hint)));
	arguments->join->question.max_distance = radius;
}

static void
read_spacing(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	read_cluster_radius(argument, value, arguments);
	arguments->join->question.min_points = 1;
	arguments->join->question.thins = true;
}

static void
read_min_points(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	int32		points = DatumGetInt32(value);

	if (points < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("min_points is out of range: %d", points),
				 errdetail("A point is core if min_points points, itself among them, are within the radius. min_points is 1 or more."),
				 errhint("%s", argument->hint)));
	arguments->join->question.min_points = (uint32) points;
}

static void
read_capacity(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	GeonnQuestion *question = &arguments->join->question;
	int32		capacity = DatumGetInt32(value);

	if (capacity < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity is out of range: %d", capacity),
				 errdetail("A reference may have so many observations at most: 0 or more."),
				 errhint("%s", argument->hint)));
	question->assigns = true;
	question->capacity = (uint32) capacity;
	question->k = 1;
}

/* Read the radius; a cache has a radius in place of k.  The radius of a cache of clusters is read after min_points. */
static void
read_radius(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	if (arguments->join->question.min_points > 0)
		read_cluster_radius(argument, value, arguments);
	else
		read_max_distance(argument, value, arguments);
	arguments->join->question.k = 0;
}

/* Read the relation of a cache of clusters, whose points are observations and references. */
static void
read_cluster(const GeonnArgument *argument pg_attribute_unused(), Datum value, GeonnArguments *arguments)
{
	arguments->obs = arguments->ref = DatumGetObjectId(value);
}

static int
compare_radii(const void *a, const void *b)
{
	double		first = *(const double *) a;
	double		second = *(const double *) b;

	return first < second ? -1 : first > second;
}

/* Read the radii of a count, and sort them.  A cache may have radii in place of k. */
static void
read_radii(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	GeonnQuestion *question = &arguments->join->question;
	Datum	   *radii;
	bool	   *is_null;
	int			count;

	deconstruct_array(DatumGetArrayTypeP(value), FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
					  &radii, &is_null, &count);
	if (count < 1 || count > GEONN_RADII_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the array radii has %d elements", count),
				 errdetail("A call counts within 1 to %d radii.", GEONN_RADII_MAX),
				 errhint("%s", argument->hint)));
	for (int i = 0; i < count; i++)
	{
		double		radius = is_null[i] ? get_float8_nan() : DatumGetFloat8(radii[i]);

		if (!(radius >= 0))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("an element of radii is out of range: %s",
							is_null[i] ? "NULL" : float8out_internal(radius)),
					 errdetail("Radii are in metres, 0 or more."),
					 errhint("%s", argument->hint)));
		question->radius[i] = radius + 0.0; /* -0 is 0 */
	}
	qsort(question->radius, count, sizeof(double), compare_radii);
	for (int i = 1; i < count; i++)
	{
		if (question->radius[i] == question->radius[i - 1])
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("the array radii has the radius %s twice", float8out_internal(question->radius[i])),
					 errhint("Give each radius once.")));
	}
	question->radii = (uint32) count;
	question->max_distance = question->radius[count - 1];
	question->k = 0;
}

static void
read_partitions(const GeonnArgument *argument pg_attribute_unused(), Datum value,
				GeonnArguments *arguments)
{
	arguments->partitions = DatumGetInt32(value);
	if (arguments->partitions < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partitions is out of range: %d", arguments->partitions),
				 errdetail("A table has one partition for each server, or more."),
				 errhint("Leave partitions out for the default number.")));
}

static const struct config_enum_entry *
words_of(const GeonnArgument *argument)
{
	return argument->words != NULL ? argument->words : geonn_metric_words();
}

static char *
list_words(const GeonnArgument *argument)
{
	return psprintf("Give %s.", geonn_list_words(words_of(argument), "'", "or"));
}

static int
read_word(const GeonnArgument *argument, Datum value)
{
	char	   *word = TextDatumGetCString(value);
	int			number;

	if (!geonn_find_word(words_of(argument), word, strlen(word), false, &number))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown %s: \"%s\"", argument->name, word),
				 errhint("%s", list_words(argument))));
	return number;
}

static void
read_ties(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	arguments->join->question.ties = read_word(argument, value) != 0;
}

static void
read_by(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	arguments->by = geonn_column_names(argument->name, value);
}

static void
read_differs(const GeonnArgument *argument pg_attribute_unused(), Datum value, GeonnArguments *arguments)
{
	arguments->differs = geonn_differs_names(value);
}

static void
read_overlaps(const GeonnArgument *argument pg_attribute_unused(), Datum value,
			  GeonnArguments *arguments)
{
	arguments->overlaps = geonn_overlaps_names(value);
}

static void
read_weights(const GeonnArgument *argument pg_attribute_unused(), Datum value, GeonnArguments *arguments)
{
	arguments->weights = geonn_weights_names(value);
	arguments->join->question.weights = (uint32) list_length(arguments->weights);
}

static void
read_priority(const GeonnArgument *argument pg_attribute_unused(), Datum value, GeonnArguments *arguments)
{
	arguments->weights = list_make1(pstrdup(NameStr(*DatumGetName(value))));
	arguments->join->question.weights = 1;
}

static void
read_options(const GeonnArgument *argument pg_attribute_unused(), Datum value,
			 GeonnArguments *arguments)
{
	GeonnQuestion *question = &arguments->join->question;

	geonn_parse_options(DatumGetJsonbP(value),
						arguments->function == GEONN_NEAREST_POINTS ||
						arguments->function == GEONN_WITHIN_COUNT_POINTS ? GEONN_OPTIONS_POINTS :
						question->min_points > 0 ? GEONN_OPTIONS_CLUSTERS :
						GEONN_OPTIONS_JOIN, &arguments->options);
	question->device = arguments->options.device;
	question->algorithm = arguments->options.algorithm;
	question->batch_rows = arguments->options.batch_rows;
}

/* Store a value in the argument's field.  The SQL type tells the field's C type. */
static void
keep_value(const GeonnArgument *argument, Datum value, GeonnArguments *arguments)
{
	void	   *field = (char *) arguments + argument->offset;

	switch (argument->type)
	{
		case REGCLASSOID:
			*(Oid *) field = DatumGetObjectId(value);
			break;
		case BOOLOID:
			*(bool *) field = DatumGetBool(value);
			break;
		case NAMEOID:
			*(char **) field = pstrdup(NameStr(*DatumGetName(value)));
			break;
		case TEXTOID:
			if (argument->hint == word_hint)
				*(int *) field = read_word(argument, value);
			else
				*(char **) field = TextDatumGetCString(value);
			break;
		default:
			*(ArrayType **) field = DatumGetArrayTypeP(value);
			break;
	}
}

/* ---- how texts show them ---- */

/* Return the SQL literal of a value, made of the output of its type; an infinite number needs quotes. */
static char *
describe_value(const GeonnArgument *argument, const char *output)
{
	if (argument->type == BOOLOID)
		return pstrdup(output[0] == 't' ? "true" : "false");
	if ((argument->type == INT4OID || argument->type == FLOAT8OID) && strcmp(output, "Infinity") != 0)
		return pstrdup(output);
	return quote_literal_cstr(output);
}

/* ---- the table ---- */

static const char relation_hint[] = "Name a table or view";
static const char query_hint[] = "Give a query with columns id, lat and lon, as in 'SELECT id, lat, lon FROM city'.";
static const char radius_hint[] = "Give a radius in metres, or name columns of radiuses, by obs_radius or ref_radius in options.";
static const char cluster_radius_hint[] = "Give metres, as in 100.";
static const char cluster_hint[] = "Name a table or view, as in geonn_cache_create('stops', cluster => 'stop', radius => 100, min_points => 3).";
static const char min_points_hint[] = "Give 1 for connected points, 2 for those that are not alone, or more for crowds.";
static const char capacity_hint[] = "Give the most observations that a reference may have; or leave it out, and name a column of the references by capacity_column.";
static const char radii_hint[] = "Give an array of metres, as in '{1000, 5000}'.";
static const char flag_hint[] = "Give true or false.";
static const char servers_hint[] = "Name the foreign servers of the shards, as in '{shard1, shard2}'.";
static const char coordinator_hint[] = "Give the connection string by which shards reach this database, as in 'host=coordinator dbname=geo user=shards'.";

static const struct config_enum_entry ties_words[] = {{"first", 0, false}, {"all", 1, false}, {NULL, 0, false}};
static const struct config_enum_entry invalid_words[] = {
	{"skip", GEONN_INVALID_SKIPPED, false},
	{"error", GEONN_INVALID_IS_ERROR, false},
	{NULL, 0, false}
};
static const struct config_enum_entry replace_words[] = {
	{"auto", GEONN_REPLACE_AUTO, false},
	{"never", GEONN_REPLACE_NEVER, false},
	{"always", GEONN_REPLACE_ALWAYS, false},
	{NULL, 0, false}
};
static const struct config_enum_entry side_words[] = {{"obs", 0, false}, {"ref", 1, false}, {NULL, 0, false}};
static const struct config_enum_entry partition_words[] = {
	{"hash", GEONN_PARTITION_BY_HASH, false},
	{"list", GEONN_PARTITION_BY_LIST, false},
	{"range", GEONN_PARTITION_BY_RANGE, false},
	{NULL, 0, false}
};

#define KEEP(field)		offsetof(ReadArguments, field), NULL, NULL
#define WORD(field, words) offsetof(ReadArguments, field), words, NULL
#define READ(function, words) 0, words, function

/* The arguments, in the order in which they are read and shown. */
const GeonnArgument geonn_arguments[] = {
	{"name", CREATE, GEONN_OWN_ANY, TEXTOID, NULL, "Give the name of the cache.", false, KEEP(arguments.name)},
	{"obs", RELATIONS | CREATE | SHARDS, GEONN_OWN_ANY | GEONN_OF_TWO_SIDES, REGCLASSOID, NULL, relation_hint, false, KEEP(arguments.obs)},
	{"obs_sql", QUERIES, GEONN_OWN_ANY, TEXTOID, NULL, query_hint, false, KEEP(arguments.obs_sql)},
	{"lat", POINTS, GEONN_OWN_ANY, FLOAT8ARRAYOID, NULL, "Give an array of degrees.", false, KEEP(arguments.latitudes)},
	{"lon", POINTS, GEONN_OWN_ANY, FLOAT8ARRAYOID, NULL, "Give an array of degrees.", false, KEEP(arguments.longitudes)},
	{"ref", RELATIONS | POINTS | CREATE | SHARDS, GEONN_OWN_ANY | GEONN_OF_TWO_SIDES, REGCLASSOID, NULL, relation_hint, false, KEEP(arguments.ref)},
	{"ref_sql", QUERIES, GEONN_OWN_ANY, TEXTOID, NULL, query_hint, false, KEEP(arguments.ref_sql)},
	{"points", BIT(GEONN_CLUSTER) | BIT(GEONN_THIN), GEONN_OWN_ANY, REGCLASSOID, NULL, relation_hint, false, KEEP(arguments.ref)},
	{"points_sql", BIT(GEONN_CLUSTER_SQL) | BIT(GEONN_THIN_SQL), GEONN_OWN_ANY, TEXTOID, NULL, query_hint, false, KEEP(arguments.ref_sql)},
	{"k", NEAREST | CACHES, GEONN_OWN_ANY | GEONN_OF_K | GEONN_ASKS, INT4OID, "1", "Give the number of neighbours wanted, from 1 on.", true, READ(read_k, NULL)},
	{"capacity", ASSIGNS, GEONN_OWN_ANY, INT4OID, "1", capacity_hint, true, READ(read_capacity, NULL)},
	{"capacity_column", ASSIGNS, GEONN_OWN_ANY, NAMEOID, NULL, NULL, true, KEEP(arguments.capacity_column)},
	{"max_distance", NEAREST | CACHES | ASSIGNS, GEONN_OWN_ANY | GEONN_OF_K, FLOAT8OID, "Infinity", NULL, true, READ(read_max_distance, NULL)},
	{"radius", WITHIN | SHARDS, GEONN_OWN_ANY | GEONN_OF_RADIUS | GEONN_ASKS, FLOAT8OID, NULL, radius_hint, true, READ(read_radius, NULL)},
	{"radius", CLUSTERS, GEONN_OWN_ANY, FLOAT8OID, NULL, cluster_radius_hint, true, READ(read_cluster_radius, NULL)},
	{"spacing", THINS, GEONN_OWN_ANY, FLOAT8OID, NULL, cluster_radius_hint, true, READ(read_spacing, NULL)},
	{"priority", THINS, GEONN_OWN_ANY, NAMEOID, NULL, NULL, true, READ(read_priority, NULL)},
	{"min_points", CLUSTERS, GEONN_OWN_ANY, INT4OID, "1", min_points_hint, true, READ(read_min_points, NULL)},
	{"min_points", KEPT, GEONN_OWN_ANY | GEONN_OF_CLUSTERS | GEONN_ASKS, INT4OID, NULL, min_points_hint, true, READ(read_min_points, NULL)},
	{"cluster", CREATE, GEONN_OWN_ANY | GEONN_OF_CLUSTERS | GEONN_ASKS, REGCLASSOID, NULL, cluster_hint, false, READ(read_cluster, NULL)},
	{"radius", KEPT, GEONN_OWN_ANY | GEONN_OF_RADIUS | GEONN_OF_CLUSTERS | GEONN_ASKS, FLOAT8OID, NULL, cluster_radius_hint, true, READ(read_radius, NULL)},
	{"radii", COUNTS | KEPT, GEONN_OWN_DEFAULT | GEONN_OF_RADII | GEONN_ASKS, FLOAT8ARRAYOID, NULL, radii_hint, true, READ(read_radii, NULL)},
	{"weights", COUNTS | KEPT, GEONN_OWN_DEFAULT | GEONN_OF_RADII, NAMEARRAYOID, NULL, NULL, true, READ(read_weights, NULL)},
	{"metric", ALL, GEONN_OWN_ANY, TEXTOID, "sphere", word_hint, true, WORD(join.question.metric, NULL)},
	{"by", JOINS | ONE_SIDE, GEONN_OWN_DEFAULT, NAMEARRAYOID, NULL, NULL, true, READ(read_by, NULL)},
	{"differs", JOINS, GEONN_OWN_DEFAULT | GEONN_OF_TWO_SIDES, NAMEARRAYOID, NULL, NULL, true, READ(read_differs, NULL)},
	{"overlaps", ALL, GEONN_OWN_DEFAULT, NAMEARRAYOID, NULL, NULL, true, READ(read_overlaps, NULL)},
	{"windows", POINTS, GEONN_OWN_ANY, ANYCOMPATIBLEARRAYOID, NULL, NULL, false, KEEP(arguments.windows)},
	{"exclude_self", JOINS & ~ASSIGNS, GEONN_OWN_DEFAULT | GEONN_OF_TWO_SIDES, BOOLOID, "f", flag_hint, true, KEEP(join.exclude_self)},
	{"keep_unmatched", ALL & ~(COUNTS | ONE_SIDE), GEONN_OWN_ANY | GEONN_OF_K | GEONN_OF_RADIUS, BOOLOID, "f", flag_hint, true, KEEP(join.keep_unmatched)},
	{"ties", NEAREST | CACHES, GEONN_OWN_ANY | GEONN_OF_K, TEXTOID, "first", word_hint, true, READ(read_ties, ties_words)},
	{"invalid", ALL, GEONN_OWN_DEFAULT, TEXTOID, "skip", word_hint, true, WORD(join.invalid, invalid_words)},
	{"options", ALL, GEONN_OWN_ANY, JSONBOID, "{}", "Give an object, as in '{}'.", true, READ(read_options, NULL)},
	{"target", CREATE, GEONN_OWN_ANY, TEXTOID, NULL, NULL, false, KEEP(arguments.target)},
	{"replace", KEPT, GEONN_OWN_ANY, TEXTOID, "auto", word_hint, false, WORD(arguments.replace, replace_words)},
	{"servers", SHARDS, GEONN_OWN_ANY, NAMEARRAYOID, NULL, servers_hint, false, KEEP(arguments.servers)},
	{"coordinator", SHARDS, GEONN_OWN_ANY, TEXTOID, NULL, coordinator_hint, false, KEEP(arguments.coordinator)},
	{"sharded", SHARDS, GEONN_OWN_ANY, TEXTOID, "obs", word_hint, false, WORD(arguments.sharded, side_words)},
	{"partition_by", SHARDS, GEONN_OWN_ANY, TEXTOID, "hash", word_hint, false, WORD(arguments.partition_by, partition_words)},
	{"key", SHARDS, GEONN_OWN_ANY, NAMEOID, NULL, NULL, false, KEEP(arguments.key)},
	{"partitions", SHARDS, GEONN_OWN_ANY, INT4OID, NULL, NULL, false, READ(read_partitions, NULL)},
	{"bounds", SHARDS, GEONN_OWN_ANY, TEXTARRAYOID, NULL, NULL, false, KEEP(arguments.bounds)},
	{"view", SHARDS, GEONN_OWN_ANY, NAMEOID, NULL, NULL, false, KEEP(arguments.view)},
	{"cache", SHARDS, GEONN_OWN_ANY, BOOLOID, "f", NULL, false, KEEP(arguments.cache)},
	{"schedule", SHARDS, GEONN_OWN_ANY, TEXTOID, NULL, NULL, false, KEEP(arguments.schedule)},
	{"readers", SHARDS, GEONN_OWN_ANY, NAMEARRAYOID, NULL, NULL, false, KEEP(arguments.readers)}
};

#define ARGUMENTS ((int) lengthof(geonn_arguments))

const int	geonn_argument_count = ARGUMENTS;

bool
geonn_argument_has(const GeonnArgument *argument, GeonnFunction function)
{
	return (argument->functions & BIT(function)) != 0;
}

int
geonn_argument_questions(const GeonnArgument *argument)
{
	return argument->traits & GEONN_OF_QUESTIONS;
}

int
geonn_argument_asks(const GeonnArgument *argument)
{
	int			questions = geonn_argument_questions(argument);

	return (argument->traits & GEONN_ASKS) != 0 ? questions & -questions : 0;
}

/* The functions, with example observations for hints. */
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
	[GEONN_WITHIN_COUNT] = {"geonn_within_count", "'city'"},
	[GEONN_WITHIN_COUNT_SQL] = {"geonn_within_count_sql", NULL},
	[GEONN_WITHIN_COUNT_POINTS] = {"geonn_within_count_points", "'{52.52}', '{13.405}'"},
	[GEONN_CLUSTER] = {"geonn_cluster", NULL},
	[GEONN_CLUSTER_SQL] = {"geonn_cluster_sql", NULL},
	[GEONN_THIN] = {"geonn_thin", NULL},
	[GEONN_THIN_SQL] = {"geonn_thin_sql", NULL},
	[GEONN_ASSIGN] = {"geonn_assign", "'city'"},
	[GEONN_ASSIGN_SQL] = {"geonn_assign_sql", NULL},
	[GEONN_CACHE_CREATE] = {"geonn_cache_create", "'near', 'city'"},
	[GEONN_CACHE] = {"geonn_refresh", NULL},
	[GEONN_SHARD_DDL] = {"geonn_shard_ddl", "'{shard1, shard2}', 'city'"}
};

/* ---- where they are ---- */

/* The positions of the function asked for last: the planner asks many times for one function. */
static struct
{
	Oid			function;		/* InvalidOid: none */
	int			positions[ARGUMENTS];
}			last;

/*
 * Set last.positions to each argument's position in the function; -1: the function has no argument of this name and type.
 */
static void
find_positions(Oid function)
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
		last.positions[i] = -1;
		for (int position = 0; position < Min(count, types->dim1); position++)
		{
			if (names[position] != NULL && strcmp(names[position], geonn_arguments[i].name) == 0 &&
				types->values[position] == geonn_arguments[i].type)
				last.positions[i] = position;
		}
	}
	ReleaseSysCache(row);
}

static void
forget_last(Datum argument pg_attribute_unused(), int cache pg_attribute_unused(),
			uint32 hash pg_attribute_unused())
{
	last.function = InvalidOid;
}

/* Return the arguments' positions in a function, [ARGUMENTS]; they are valid until the next call for another function. */
static const int *
positions_in(Oid function)
{
	static bool told = false;

	if (function == last.function)
		return last.positions;
	if (!told)
		CacheRegisterSyscacheCallback(PROCOID, forget_last, (Datum) 0);
	told = true;
	last.function = InvalidOid;
	find_positions(function);
	last.function = function;
	return last.positions;
}

Node *
geonn_expression_argument(const FuncExpr *expression, const char *name)
{
	const int  *positions = positions_in(expression->funcid);

	for (int i = 0; i < ARGUMENTS; i++)
	{
		if (strcmp(geonn_arguments[i].name, name) == 0 && positions[i] >= 0 &&
			positions[i] < list_length(expression->args))
			return list_nth(expression->args, positions[i]);
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
	static const char *const names[] = {"ref", "ref_sql", "points", "points_sql"};
	Node	   *references = NULL;

	for (int i = 0; i < (int) lengthof(names) && references == NULL; i++)
		references = geonn_expression_argument(expression, names[i]);
	return references;
}

bool
geonn_expression_has_one_side(const FuncExpr *expression)
{
	return geonn_expression_argument(expression, "min_points") != NULL || geonn_expression_argument(expression, "spacing") != NULL;
}

bool
geonn_expression_assigns(const FuncExpr *expression)
{
	return geonn_expression_argument(expression, "capacity") != NULL;
}

/* ---- their values ---- */

__attribute__((noreturn))
static void
raise_null(GeonnFunction function, const GeonnArgument *argument)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("argument \"%s\" of %s is NULL", argument->name, functions[function].name),
			 argument->hint == word_hint ? errhint("%s", list_words(argument)) :
			 argument->hint == relation_hint && (BIT(function) & ONE_SIDE) != 0 ?
			 errhint("%s, as in %s('stop', 100).", relation_hint, functions[function].name) :
			 argument->hint == relation_hint ?
			 errhint("%s, as in %s(%s, 'airport').", relation_hint, functions[function].name,
					 functions[function].observations) :
			 errhint("%s", argument->hint)));
}

/*
 * Return whether a NULL is allowed in place of an argument that has no default.  radius may be NULL: then a join has radius
 * columns, and shards have k.  A cache being made has the arguments of one question.
 */
static bool
may_be_missing(GeonnFunction function, const GeonnArgument *argument)
{
	int			questions = geonn_argument_questions(argument);

	return questions == GEONN_OF_RADIUS || (function == GEONN_CACHE_CREATE && questions != 0 && argument->standard == NULL);
}

/* Raise an error about an argument of the cache's question that is missing. */
static void
check_question_complete(const NullableDatum *values)
{
	const char *name;
	int			asked = geonn_arguments_question(values, &name);

	for (int i = 0; i < ARGUMENTS; i++)
	{
		const GeonnArgument *argument = &geonn_arguments[i];

		if (values[i].isnull && geonn_argument_has(argument, GEONN_CACHE_CREATE) && argument->hint != NULL &&
			(geonn_argument_questions(argument) & asked) != 0)
			raise_null(GEONN_CACHE_CREATE, argument);
	}
}

NullableDatum *
geonn_arguments_called(FunctionCallInfo fcinfo, GeonnFunction function)
{
	const int  *positions = positions_in(fcinfo->flinfo->fn_oid);
	NullableDatum *values = palloc0(sizeof(NullableDatum[ARGUMENTS]));

	for (int i = 0; i < ARGUMENTS; i++)
	{
		const GeonnArgument *argument = &geonn_arguments[i];

		values[i].isnull = true;
		if (!geonn_argument_has(argument, function))
			continue;
		if (positions[i] >= 0 && positions[i] < fcinfo->nargs)
			values[i] = fcinfo->args[positions[i]];
		else if (argument->hint != NULL && argument->standard == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("function %s has no argument \"%s\"", functions[function].name, argument->name),
					 errdetail("The function in this database is of another version than geonn's module."),
					 errhint("Run ALTER EXTENSION geonn UPDATE.")));
		else
			continue;
		if (values[i].isnull && argument->hint != NULL && !may_be_missing(function, argument))
			raise_null(function, argument);
	}
	if (function == GEONN_CACHE_CREATE)
		check_question_complete(values);
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

int
geonn_arguments_question(const NullableDatum *values, const char **name)
{
	int			question = GEONN_OF_K;

	*name = "k";
	for (int i = 0; i < ARGUMENTS; i++)
	{
		int			asked = geonn_argument_asks(&geonn_arguments[i]);

		/* of several arguments that ask, the one with the greatest bit counts */
		if (values[i].isnull || asked < question)
			continue;
		*name = geonn_arguments[i].name;
		question = asked;
	}
	return question;
}

const GeonnArgument *
geonn_arguments_of_one_question(NullableDatum *values, const char **question)
{
	const GeonnArgument *excluded = NULL;
	int			asked = geonn_arguments_question(values, question);

	for (int i = 0; i < ARGUMENTS; i++)
	{
		int			questions = geonn_argument_questions(&geonn_arguments[i]);

		if (questions == 0 || (questions & asked) != 0)
			continue;
		if (excluded == NULL && !geonn_argument_is_default(&geonn_arguments[i], values[i]))
			excluded = &geonn_arguments[i];
		values[i].isnull = true;
	}
	return excluded;
}

/* Handle a missing radius: geonn_within then needs one of the options obs_radius and ref_radius. */
static void
read_no_radius(GeonnFunction function, const GeonnArgument *argument, GeonnArguments *arguments)
{
	if (arguments->options.observation.names[COLUMN_RADIUS] == NULL &&
		arguments->options.reference.names[COLUMN_RADIUS] == NULL)
		raise_null(function, argument);
	arguments->join->question.max_distance = get_float8_infinity();
	arguments->join->question.k = 0;
}

GeonnArguments *
geonn_arguments_read(GeonnFunction function, const NullableDatum *values)
{
	ReadArguments *read = palloc0(sizeof(ReadArguments));
	GeonnArguments *arguments = &read->arguments;
	const GeonnArgument *missing_radius = NULL;
	StringInfoData text;

	arguments->function = function;
	arguments->function_name = functions[function].name;
	arguments->join = &read->join;
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
		if (value.isnull && (BIT(function) & WITHIN) != 0 && geonn_argument_questions(argument) == GEONN_OF_RADIUS)
			missing_radius = argument;
		if (value.isnull)
			continue;
		if (argument->read != NULL)
			argument->read(argument, value.value, arguments);
		else
			keep_value(argument, value.value, arguments);
		if (!argument->is_shown || values[i].isnull)
			continue;
		output = output_of(argument, value.value);
		if (!is_standard(argument, output))
			appendStringInfo(&text, "%s%s => %s", text.len > 0 ? ", " : "", argument->name,
							 describe_value(argument, output));
	}
	if (missing_radius != NULL)
		read_no_radius(function, missing_radius, arguments);
	arguments->text = text.data;
	return arguments;
}
