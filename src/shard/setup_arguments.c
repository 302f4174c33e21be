/*
 * setup_arguments.c
 *		The arguments of geonn_shard_ddl().
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "base/value.h"
#include "points/column_pairs.h"
#include "points/columns.h"
#include "shard/commands.h"
#include "shard/coordinator.h"
#include "shard/setup.h"
#include "shard/trust.h"

/* where the arguments stand that are not the join's */
enum
{
	ARGUMENT_SERVERS = 0,
	ARGUMENT_COORDINATOR = 3,
	ARGUMENT_SHARDED,
	ARGUMENT_PARTITION_BY,
	ARGUMENT_KEY,
	ARGUMENT_PARTITIONS,
	ARGUMENT_BOUNDS,
	ARGUMENT_VIEW,
	ARGUMENT_CACHE,
	ARGUMENT_SCHEDULE,
	ARGUMENT_READERS
};

__attribute__((noreturn))
static void
raise_null(const char *argument, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("argument \"%s\" of geonn_shard_ddl is NULL", argument),
			 errhint("%s", hint)));
}

/*
 * A text or name; NULL is an error where a hint says what to give.
 */
static char *
text_argument(FunctionCallInfo fcinfo, int number, const char *name, const char *hint)
{
	if (PG_ARGISNULL(number))
	{
		if (hint != NULL)
			raise_null(name, hint);
		return NULL;
	}
	return text_to_cstring(PG_GETARG_TEXT_PP(number));
}

static bool
shards_references(const char *sharded)
{
	if (strcmp(sharded, "obs") == 0 || strcmp(sharded, "ref") == 0)
		return strcmp(sharded, "ref") == 0;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown sharded: \"%s\"", sharded),
			 errhint("Give 'obs' or 'ref'.")));
}

/*
 * The join's own arguments.  If a radius is given, arguments that only joins with k have get their defaults.
 */
static GeonnArguments *
read_question(FunctionCallInfo fcinfo)
{
	NullableDatum *values = geonn_arguments_called(fcinfo, GEONN_SHARD_DDL);
	bool		has_radius = false;

	for (int i = 0; i < geonn_argument_count; i++)
		has_radius |= geonn_argument_of_radius(&geonn_arguments[i]) && !values[i].isnull;
	for (int i = 0; has_radius && i < geonn_argument_count; i++)
	{
		if (!geonn_argument_of_k(&geonn_arguments[i]))
			continue;
		if (!geonn_argument_is_default(&geonn_arguments[i], values[i]))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("radius is given together with %s", geonn_arguments[i].name),
					 errdetail("A view has all references within radius, or the k nearest ones."),
					 errhint("For the k nearest ones up to a distance, give k and max_distance without radius.")));
		values[i].isnull = true;
	}
	return geonn_arguments_read(GEONN_SHARD_DDL, values);
}

/*
 * The columns of an answer, with their types.  Raises the errors that the join would raise.
 */
static char *
answer_columns(const GeonnArguments *arguments)
{
	const PointSource *obs = geonn_relation_source(arguments->obs, &arguments->options.observation,
												   geonn_names_of_side(arguments->by, false),
												   geonn_names_of_side(arguments->overlaps, false));
	const PointSource *ref = geonn_relation_source(arguments->ref, &arguments->options.reference,
												   geonn_names_of_side(arguments->by, true),
												   geonn_names_of_side(arguments->overlaps, true));
	const PointColumn *obs_id = &obs->columns[COLUMN_ID];
	const PointColumn *ref_id = &ref->columns[COLUMN_ID];

	return psprintf("obs_id %s, rank integer, ref_id %s, distance double precision",
					geonn_type_sql(obs_id->type, geonn_declared_typmod(obs_id), obs_id->collation),
					geonn_type_sql(ref_id->type, geonn_declared_typmod(ref_id), ref_id->collation));
}

static void
read_tables(ShardSetup *setup, bool references)
{
	if (setup->arguments->obs == setup->arguments->ref)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("obs and ref are the same table"),
				 errdetail("A shard has a part of the one, and all rows of the other."),
				 errhint("Copy one of them to a table of its own.")));
	setup->obs = geonn_shard_table(setup->arguments->obs, "obs");
	setup->ref = geonn_shard_table(setup->arguments->ref, "ref");
	setup->sharded = references ? setup->ref : setup->obs;
	setup->replicated = references ? setup->obs : setup->ref;
}

ShardSetup *
geonn_setup_read(FunctionCallInfo fcinfo)
{
	ShardSetup *setup = palloc0(sizeof(ShardSetup));
	char	   *method = text_argument(fcinfo, ARGUMENT_PARTITION_BY, "partition_by",
									   "Give 'hash', 'list' or 'range'.");
	char	   *sharded = text_argument(fcinfo, ARGUMENT_SHARDED, "sharded", "Give 'obs' or 'ref'.");

	if (PG_ARGISNULL(ARGUMENT_SERVERS))
		raise_null("servers", "Name the foreign servers of the shards, as in '{shard1, shard2}'.");
	setup->servers = geonn_shard_servers(PG_GETARG_DATUM(ARGUMENT_SERVERS));
	setup->coordinator = text_argument(fcinfo, ARGUMENT_COORDINATOR, "coordinator",
									   "Give the connection string by which shards reach this database, as in 'host=coordinator dbname=geo user=shards'.");
	setup->arguments = read_question(fcinfo);
	setup->row = answer_columns(setup->arguments);
	read_tables(setup, shards_references(sharded));
	setup->geonn = get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid));
	geonn_shard_check_here(list_make2(setup->sharded, setup->replicated), list_make1(setup->geonn));
	geonn_shard_check_table(setup->sharded, true);
	geonn_shard_check_table(setup->replicated, false);
	if (!PG_ARGISNULL(ARGUMENT_PARTITIONS) && PG_GETARG_INT32(ARGUMENT_PARTITIONS) < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partitions is out of range: %d", PG_GETARG_INT32(ARGUMENT_PARTITIONS)),
				 errdetail("A table has one partition for each server, or more."),
				 errhint("Leave partitions out for the default number.")));
	setup->placement = geonn_shard_placement(setup->sharded, method,
											 PG_ARGISNULL(ARGUMENT_KEY) ? NULL :
											 NameStr(*PG_GETARG_NAME(ARGUMENT_KEY)),
											 PG_ARGISNULL(ARGUMENT_PARTITIONS) ? 0 :
											 PG_GETARG_INT32(ARGUMENT_PARTITIONS),
											 PG_ARGISNULL(ARGUMENT_BOUNDS) ? (Datum) 0 :
											 PG_GETARG_DATUM(ARGUMENT_BOUNDS),
											 list_length(setup->servers));
	setup->view = PG_ARGISNULL(ARGUMENT_VIEW) ? geonn_shard_name(setup->obs->name, "_nearest") :
		pstrdup(NameStr(*PG_GETARG_NAME(ARGUMENT_VIEW)));
	setup->schedule = text_argument(fcinfo, ARGUMENT_SCHEDULE, "schedule", NULL);
	if (setup->schedule != NULL || (!PG_ARGISNULL(ARGUMENT_CACHE) && PG_GETARG_BOOL(ARGUMENT_CACHE)))
		setup->kept = psprintf("%s_kept", setup->view);
	if (!PG_ARGISNULL(ARGUMENT_READERS))
		setup->readers = geonn_shard_names(PG_GETARG_DATUM(ARGUMENT_READERS), "readers",
										   "Name roles, as in '{dashboard}'.");
	return setup;
}
