/*
 * setup.c
 *		geonn_shard_ddl(): the commands that divide one side of a join among servers.
 *
 * One table, mostly the observations, is divided among shards; each shard has all rows of the other,
 * by logical replication from the coordinator.  Each shard joins its rows, and the coordinator
 * collects the answers of all.  PostgreSQL does all of it.  Of a table ping that is divided, and
 * station that is replicated, shards and coordinator have these:
 *
 *	 a shard	ping, partitioned, with the partitions ping_0 … that it holds; station; station_version,
 *				one row that is replicated with station; views ping_by_shard, station_by_shard,
 *				station_version_by_shard and ping_nearest, each with a constant column shard
 *	 coordinator	ping_sharded, with a foreign partition for each ping_0 …: rows are written and
 *				looked up by it; and for each of the views a table of that name, PARTITION BY LIST
 *				(shard), with a foreign partition for each shard
 *
 * The constant column is the key: where a query groups or joins by it, each group lies on one server,
 * and PostgreSQL sends that server the whole question.
 *
 * What exists already gets no command, so the same call with another server returns the commands
 * for that server, and with another view those for the view.  move.c moves partitions.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "join/arguments.h"
#include "points/columns.h"
#include "shard/commands.h"
#include "shard/placement.h"

PG_FUNCTION_INFO_V1(geonn_shard_ddl);

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

typedef struct Setup
{
	ReturnSetInfo *commands;
	List	   *servers;		/* of char * */
	const char *geonn;			/* schema of the extension, quoted */
	ShardTable *obs;
	ShardTable *ref;
	ShardTable *sharded;		/* one of these */
	ShardTable *replicated;		/* the other */
	char	   *coordinator;	/* connection string for shards */
	ShardPlacement *placement;
	char	   *view;			/* name of the question's, bare, in the schema of sharded */
	bool		cache;
	char	   *schedule;		/* of the cache, or NULL */
	List	   *readers;		/* of char *: roles, quoted */
	GeonnArguments *arguments;
	char	   *row;			/* columns of the answer, with types */
} Setup;

#define ROW_COLUMNS "obs_id, rank, ref_id, distance"

/* ---- arguments ---- */

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

static List *
read_readers(Datum readers)
{
	List	   *roles = NIL;
	Datum	   *values;
	bool	   *nulls;
	int			count;

	deconstruct_array(DatumGetArrayTypeP(readers), NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR,
					  &values, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("the argument readers has a NULL in it"),
					 errhint("Name roles, as in '{analyst}'.")));
		roles = lappend(roles, pstrdup(quote_identifier(NameStr(*DatumGetName(values[i])))));
	}
	return roles;
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
 * The join's own arguments.  With a radius those of k have their defaults.
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
												   arguments->by, arguments->overlaps);
	const PointSource *ref = geonn_relation_source(arguments->ref, &arguments->options.reference,
												   arguments->by, arguments->overlaps);
	const PointColumn *obs_id = &obs->columns[COLUMN_ID];
	const PointColumn *ref_id = &ref->columns[COLUMN_ID];

	return psprintf("obs_id %s, rank integer, ref_id %s, distance double precision",
					geonn_shard_type(obs_id->type, geonn_declared_typmod(obs_id), obs_id->collation),
					geonn_shard_type(ref_id->type, geonn_declared_typmod(ref_id), ref_id->collation));
}

static void
read_tables(Setup *setup, bool references)
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

static void
check_wal_level(void)
{
	if (wal_level < WAL_LEVEL_LOGICAL)
		ereport(WARNING,
				(errmsg("this server's wal_level is lower than logical"),
				 errdetail("Publications need it."),
				 errhint("Run ALTER SYSTEM SET wal_level = logical, and restart this server.")));
}

static Setup *
read_setup(FunctionCallInfo fcinfo)
{
	Setup	   *setup = palloc0(sizeof(Setup));
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
	setup->geonn = quote_identifier(get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid)));
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
	setup->view = PG_ARGISNULL(ARGUMENT_VIEW) ? geonn_shard_name(setup->obs, "_nearest") :
		pstrdup(NameStr(*PG_GETARG_NAME(ARGUMENT_VIEW)));
	setup->schedule = text_argument(fcinfo, ARGUMENT_SCHEDULE, "schedule", NULL);
	setup->cache = setup->schedule != NULL ||
		(!PG_ARGISNULL(ARGUMENT_CACHE) && PG_GETARG_BOOL(ARGUMENT_CACHE));
	if (!PG_ARGISNULL(ARGUMENT_READERS))
		setup->readers = read_readers(PG_GETARG_DATUM(ARGUMENT_READERS));
	return setup;
}

/* ---- tables that are divided by shard ---- */

/* Names with this ending, in the schema of the table that is divided. */
static char *
named(const Setup *setup, const char *name, const char *rest)
{
	ShardTable	table = *setup->sharded;

	table.name = pstrdup(name);
	return geonn_shard_relation(&table, rest);
}

/*
 * A view of each shard, of a query that begins after its column shard, and the coordinator's table
 * of all.
 */
static void
divide_by_shard(const Setup *setup, const char *name, const char *columns, const char *query)
{
	Oid			table = geonn_shard_find(setup->sharded, name);
	List	   *partitions = geonn_shard_partitions(table);
	ListCell   *cell;

	if (!OidIsValid(table))
		geonn_command(setup->commands, NULL,
					  "CREATE TABLE %s (shard text NOT NULL, %s) PARTITION BY LIST (shard)",
					  named(setup, name, ""), columns);
	foreach(cell, setup->servers)
	{
		const char *server = lfirst(cell);

		if (geonn_on_server(partitions, server))
			continue;
		geonn_command(setup->commands, server,
					  "CREATE VIEW %s AS SELECT %s::pg_catalog.text AS shard, %s",
					  named(setup, name, ""), quote_literal_cstr(server), query);
		geonn_command(setup->commands, NULL,
					  "CREATE FOREIGN TABLE %s PARTITION OF %s FOR VALUES IN (%s) SERVER %s OPTIONS (schema_name %s, table_name %s)",
					  named(setup, name, psprintf("_%s", server)), named(setup, name, ""),
					  quote_literal_cstr(server), quote_identifier(server),
					  quote_literal_cstr(setup->sharded->schema), quote_literal_cstr(name));
	}
}

/*
 * The servers that have no partition of this table.
 */
static List *
servers_without(const Setup *setup, const char *table)
{
	List	   *partitions = geonn_shard_partitions(geonn_shard_find(setup->sharded, table));
	List	   *servers = NIL;
	ListCell   *cell;

	foreach(cell, setup->servers)
	{
		if (!geonn_on_server(partitions, lfirst(cell)))
			servers = lappend(servers, lfirst(cell));
	}
	return servers;
}

/* ---- servers ---- */

static bool
has_option(List *options, const char *name)
{
	ListCell   *cell;

	foreach(cell, options)
	{
		if (strcmp(((DefElem *) lfirst(cell))->defname, name) == 0)
			return true;
	}
	return false;
}

/*
 * What postgres_fdw needs to ask all servers at once, and to send them geonn_distance.
 */
static void
prepare_server(const Setup *setup, const char *server)
{
	static const char *const wanted[][2] = {
		{"async_capable", "true"}, {"batch_size", "1000"}, {"extensions", "geonn"},
		{"fetch_size", "10000"}, {"use_remote_estimate", "true"}
	};
	List	   *options = GetForeignServerByName(server, false)->options;
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < (int) lengthof(wanted); i++)
	{
		if (!has_option(options, wanted[i][0]))
			appendStringInfo(&list, "%sADD %s '%s'", list.len > 0 ? ", " : "", wanted[i][0],
							 wanted[i][1]);
	}
	if (list.len > 0)
		geonn_command(setup->commands, NULL, "ALTER SERVER %s OPTIONS (%s)",
					  quote_identifier(server), list.data);
	geonn_command(setup->commands, server, "CREATE SCHEMA IF NOT EXISTS %s", setup->geonn);
	geonn_command(setup->commands, server, "CREATE EXTENSION IF NOT EXISTS geonn SCHEMA %s",
				  setup->geonn);
}

static void
create_schema(const Setup *setup, const char *server, const ShardTable *table)
{
	if (strcmp(table->schema, "public") != 0)
		geonn_command(setup->commands, server, "CREATE SCHEMA IF NOT EXISTS %s",
					  quote_identifier(table->schema));
}

static void
create_indexes(const Setup *setup, const char *server, List *indexes)
{
	ListCell   *cell;

	foreach(cell, indexes)
		geonn_command(setup->commands, server, "%s", (char *) lfirst(cell));
}

/* ---- the table that is divided ---- */

/*
 * The table ping of a shard, without partitions.
 */
static void
create_part(const Setup *setup, const char *server)
{
	const ShardTable *table = setup->sharded;

	create_schema(setup, server, table);
	geonn_command(setup->commands, server, "CREATE TABLE %s (%s) PARTITION BY %s", table->quoted,
				  table->definitions, setup->placement->key);
	create_indexes(setup, server, table->indexes);
}

/*
 * The coordinator's ping_sharded and its partitions on the shards, and what its planner needs for
 * whole questions to the shards.
 */
static void
create_sharded(const Setup *setup)
{
	static const char *const planner_settings[] = {
		"enable_partitionwise_aggregate", "enable_partitionwise_join"
	};
	const ShardTable *table = setup->sharded;
	char	   *name = geonn_shard_relation(table, "_sharded");
	Oid			sharded = geonn_shard_find(table, geonn_shard_name(table, "_sharded"));
	int			count = list_length(setup->placement->bounds);
	ListCell   *cell;

	if (OidIsValid(sharded))
		return;
	for (int i = 0; i < (int) lengthof(planner_settings); i++)
		geonn_command(setup->commands, NULL, "ALTER DATABASE %s SET %s = on",
					  quote_identifier(get_database_name(MyDatabaseId)), planner_settings[i]);
	geonn_command(setup->commands, NULL,
				  "CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING GENERATED) PARTITION BY %s",
				  name, table->quoted, setup->placement->key);
	foreach(cell, setup->placement->bounds)
	{
		const char *bound = lfirst(cell);
		int			number = foreach_current_index(cell);
		const char *server = list_nth(setup->servers,
									  geonn_first_server(number, count,
														 list_length(setup->servers)));
		char	   *rest = psprintf("_%d", number);

		geonn_command(setup->commands, server, "CREATE TABLE %s PARTITION OF %s %s",
					  geonn_shard_relation(table, rest), table->quoted, bound);
		geonn_command(setup->commands, NULL,
					  "CREATE FOREIGN TABLE %s PARTITION OF %s %s SERVER %s OPTIONS (schema_name %s, table_name %s)",
					  geonn_shard_relation(table, psprintf("_sharded%s", rest)), name, bound,
					  quote_identifier(server), quote_literal_cstr(table->schema),
					  quote_literal_cstr(geonn_shard_name(table, rest)));
	}
}

/*
 * Every server that has rows must be named: a question that leaves one out would miss its rows.
 */
static void
check_sharded(const Setup *setup)
{
	const ShardTable *table = setup->sharded;
	Oid			sharded = geonn_shard_find(table, geonn_shard_name(table, "_sharded"));
	ListCell   *cell;

	if (!OidIsValid(sharded))
		return;
	geonn_check_placement(sharded, setup->placement);
	foreach(cell, geonn_shard_partitions(sharded))
	{
		const char *server = ((ShardPartition *) lfirst(cell))->server;
		ListCell   *named_server;
		bool		found = false;

		foreach(named_server, setup->servers)
			found |= strcmp(lfirst(named_server), server) == 0;
		if (!found)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("server \"%s\" has rows of \"%s\", and is not in servers", server,
							table->name),
					 errhint("Name all servers; geonn_shard_move_ddl moves rows away from one.")));
	}
}

/* ---- the table that is replicated ---- */

static const char *
version_definition(void)
{
	return "one boolean PRIMARY KEY DEFAULT true CHECK (one), version bigint NOT NULL";
}

static void
publish(const Setup *setup)
{
	const ShardTable *table = setup->replicated;
	char	   *version = geonn_shard_relation(table, "_version");

	if (OidIsValid(geonn_shard_find(table, geonn_shard_name(table, "_version"))))
		return;
	geonn_command(setup->commands, NULL, "CREATE TABLE %s (%s)", version, version_definition());
	geonn_command(setup->commands, NULL, "INSERT INTO %s (version) VALUES (1)", version);
	geonn_command(setup->commands, NULL, "CREATE PUBLICATION %s FOR TABLE %s, %s",
				  quote_identifier(geonn_shard_name(table, "_shards")), table->quoted, version);
}

static void
subscribe(const Setup *setup, const char *server)
{
	const ShardTable *table = setup->replicated;

	create_schema(setup, server, table);
	geonn_command(setup->commands, server, "CREATE TABLE %s (%s)", table->quoted,
				  table->definitions);
	create_indexes(setup, server, table->unique_indexes);
	create_indexes(setup, server, table->indexes);
	geonn_command(setup->commands, server, "CREATE TABLE %s (%s)",
				  geonn_shard_relation(table, "_version"), version_definition());
	geonn_command(setup->commands, server, "CREATE SUBSCRIPTION %s CONNECTION %s PUBLICATION %s",
				  quote_identifier(geonn_subscription(table, server)),
				  quote_literal_cstr(setup->coordinator),
				  quote_identifier(geonn_shard_name(table, "_shards")));
}

/* ---- views ---- */

static void
check_column(const ShardTable *table)
{
	if (get_attnum(table->oid, "shard") != InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_COLUMN),
				 errmsg("table \"%s\" has a column shard", table->name),
				 errdetail("The views of all shards have a column of that name before those of the table."),
				 errhint("Rename the column.")));
}

static void
create_table_views(const Setup *setup)
{
	const ShardTable *tables[] = {setup->sharded, setup->replicated};

	for (int i = 0; i < (int) lengthof(tables); i++)
	{
		check_column(tables[i]);
		divide_by_shard(setup, geonn_shard_name(tables[i], "_by_shard"), tables[i]->typed_columns,
						psprintf("%s FROM %s", tables[i]->columns, tables[i]->quoted));
	}
	divide_by_shard(setup, geonn_shard_name(setup->replicated, "_version_by_shard"),
					"version bigint, seen timestamp with time zone",
					psprintf("version, pg_catalog.clock_timestamp() AS seen FROM %s",
							 geonn_shard_relation(setup->replicated, "_version")));
}

/* "obs_version" or "ref_version": of the side that is replicated */
static const char *
version_column(const Setup *setup)
{
	return setup->replicated == setup->ref ? "ref_version" : "obs_version";
}

static const char *
further_arguments(const Setup *setup)
{
	return setup->arguments->text[0] == '\0' ? "" : psprintf(", %s", setup->arguments->text);
}

static char *
tables_of_join(const Setup *setup)
{
	return psprintf("%s::pg_catalog.regclass, %s::pg_catalog.regclass",
					quote_literal_cstr(setup->obs->quoted), quote_literal_cstr(setup->ref->quoted));
}

/*
 * The row type has a name, since the planner does more for the join than with NULL::record: no row is
 * stored, and conditions reach the reading of the observations.
 */
static void
create_question(const Setup *setup)
{
	char	   *type = named(setup, setup->view, "_row");
	ListCell   *cell;

	foreach(cell, servers_without(setup, setup->view))
		geonn_command(setup->commands, lfirst(cell), "CREATE TYPE %s AS (%s)", type, setup->row);
	divide_by_shard(setup, setup->view,
					psprintf("%s, %s bigint", setup->row, version_column(setup)),
					psprintf(ROW_COLUMNS ", (SELECT version FROM %s) AS %s FROM %s.%s(%s%s, row_type => NULL::%s)",
							 geonn_shard_relation(setup->replicated, "_version"),
							 version_column(setup), setup->geonn,
							 setup->arguments->join->question.k == 0 ? "geonn_within" : "geonn_nearest",
							 tables_of_join(setup), further_arguments(setup), type));
}

/*
 * With references on several servers, an observation's neighbours are the first of what all of
 * them answer: the order (distance, id) is total.  NULLs of keep_unmatched come last.
 */
static void
create_merge(const Setup *setup)
{
	const GeonnQuestion *question = &setup->arguments->join->question;
	const char *limit = "";
	char	   *merged = named(setup, setup->view, "_merged");

	if (setup->sharded != setup->ref ||
		OidIsValid(geonn_shard_find(setup->sharded, psprintf("%s_merged", setup->view))))
		return;
	if (question->k > 0)
		limit = psprintf("%s OPERATOR(pg_catalog.<=) %u AND ", question->ties ? "place" : "rank",
						 question->k);
	geonn_command(setup->commands, NULL,
				  "CREATE VIEW %s AS SELECT obs_id, rank, ref_id, distance FROM ("
				  "SELECT obs_id, ref_id, distance,"
				  " pg_catalog.row_number() OVER (PARTITION BY obs_id ORDER BY distance, ref_id) AS rank,"
				  " pg_catalog.rank() OVER (PARTITION BY obs_id ORDER BY distance) AS place"
				  " FROM %s) a WHERE %s(ref_id IS NOT NULL OR rank OPERATOR(pg_catalog.=) 1)",
				  merged, named(setup, setup->view, ""), limit);
}

/*
 * Call a function for what it does: dblink_exec takes no statement that returns rows.
 */
static void
perform(const Setup *setup, const char *server, const char *call)
{
	geonn_command(setup->commands, server, "DO %s",
				  quote_literal_cstr(psprintf("BEGIN PERFORM %s.%s; END", setup->geonn, call)));
}

static void
create_caches(const Setup *setup)
{
	char	   *name = psprintf("%s_cache", setup->view);
	char	   *kept = psprintf("%s_kept", setup->view);
	ListCell   *cell;

	if (!setup->cache)
		return;
	foreach(cell, servers_without(setup, kept))
	{
		perform(setup, lfirst(cell),
				psprintf("geonn_cache_create(%s, %s%s, target => %s)", quote_literal_cstr(name),
						 tables_of_join(setup), further_arguments(setup),
						 quote_literal_cstr(named(setup, name, ""))));
		if (setup->schedule != NULL)
			perform(setup, lfirst(cell),
					psprintf("geonn_schedule(%s, %s)", quote_literal_cstr(name),
							 quote_literal_cstr(setup->schedule)));
	}
	divide_by_shard(setup, kept, setup->row,
					psprintf(ROW_COLUMNS " FROM %s", named(setup, name, "")));
}

/* ---- watching and privileges ---- */

static void
import_statistics(const Setup *setup, List *servers)
{
	ListCell   *cell;
	StringInfoData views;

	if (servers == NIL)
		return;
	initStringInfo(&views);
	for (const char *const *view = geonn_overviews; *view != NULL; view++)
		appendStringInfo(&views, "%s%s", views.len > 0 ? ", " : "", *view);
	foreach(cell, servers)
	{
		const char *schema = geonn_statistics_schema(lfirst(cell));

		if (OidIsValid(get_namespace_oid(psprintf("geonn_%s", (char *) lfirst(cell)), true)))
			continue;
		geonn_command(setup->commands, NULL, "CREATE SCHEMA %s", schema);
		geonn_command(setup->commands, NULL,
					  "IMPORT FOREIGN SCHEMA %s LIMIT TO (%s) FROM SERVER %s INTO %s", setup->geonn,
					  views.data, quote_identifier(lfirst(cell)), schema);
	}
	geonn_command_overviews(setup->commands, setup->sharded->schema, setup->servers);
}

/*
 * A view calls geonn as the role that reads it, so a reader of a shard needs both tables.
 */
static void
grant(const Setup *setup, List *servers)
{
	char	   *schema = pstrdup(quote_identifier(setup->sharded->schema));
	char	   *schemas = schema;
	char	   *views = psprintf("%s, %s, %s, %s%s%s",
								 named(setup, setup->sharded->name, "_by_shard"),
								 named(setup, setup->replicated->name, "_by_shard"),
								 named(setup, setup->replicated->name, "_version_by_shard"),
								 named(setup, setup->view, ""), setup->cache ? ", " : "",
								 setup->cache ? named(setup, setup->view, "_kept") : "");
	ListCell   *reader;
	ListCell   *cell;

	if (strcmp(setup->replicated->schema, setup->sharded->schema) != 0)
		schemas = psprintf("%s, %s", schemas, quote_identifier(setup->replicated->schema));
	if (strcmp(setup->geonn, schema) != 0 &&
		strcmp(setup->geonn, quote_identifier(setup->replicated->schema)) != 0)
		schemas = psprintf("%s, %s", schemas, setup->geonn);
	foreach(reader, setup->readers)
	{
		foreach(cell, servers)
		{
			geonn_command(setup->commands, lfirst(cell), "GRANT USAGE ON SCHEMA %s TO %s",
						  schemas, (char *) lfirst(reader));
			geonn_command(setup->commands, lfirst(cell), "GRANT SELECT ON %s, %s, %s TO %s",
						  setup->obs->quoted, setup->ref->quoted, views, (char *) lfirst(reader));
		}
		if (servers == NIL)
			continue;
		geonn_command(setup->commands, NULL, "GRANT USAGE ON SCHEMA %s TO %s", schema,
					  (char *) lfirst(reader));
		geonn_command(setup->commands, NULL, "GRANT SELECT ON %s, %s%s%s TO %s",
					  geonn_shard_relation(setup->sharded, "_sharded"), views,
					  setup->sharded == setup->ref ? ", " : "",
					  setup->sharded == setup->ref ? named(setup, setup->view, "_merged") : "",
					  (char *) lfirst(reader));
	}
}

/* ---- the whole ---- */

Datum
geonn_shard_ddl(PG_FUNCTION_ARGS)
{
	Setup	   *setup = read_setup(fcinfo);
	List	   *new_to_rows = servers_without(setup, geonn_shard_name(setup->sharded, "_by_shard"));
	List	   *new_to_copies = servers_without(setup, geonn_shard_name(setup->replicated, "_by_shard"));
	List	   *new_to_view = servers_without(setup, setup->view);
	ListCell   *cell;

	check_sharded(setup);
	check_wal_level();
	setup->commands = geonn_commands_begin(fcinfo);
	publish(setup);
	foreach(cell, setup->servers)
	{
		bool		rows = list_member_ptr(new_to_rows, lfirst(cell));
		bool		copies = list_member_ptr(new_to_copies, lfirst(cell));

		if (rows || copies)
			prepare_server(setup, lfirst(cell));
		if (rows)
			create_part(setup, lfirst(cell));
		if (copies)
			subscribe(setup, lfirst(cell));
	}
	create_sharded(setup);
	create_table_views(setup);
	create_question(setup);
	create_merge(setup);
	create_caches(setup);
	import_statistics(setup, new_to_rows);
	grant(setup, new_to_view);
	return (Datum) 0;
}
