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
#include "catalog/pg_publication.h"
#include "commands/dbcommands.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "replication/walsender.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "base/extension.h"
#include "base/result.h"
#include "base/value.h"
#include "join/nearest.h"
#include "shard/commands.h"
#include "shard/coordinator.h"
#include "shard/placement.h"
#include "shard/trust.h"

#define ROW_COLUMNS "obs_id, rank, ref_id, distance"
#define VERSION_COLUMNS "one boolean PRIMARY KEY DEFAULT true CHECK (one), version bigint NOT NULL"

PG_FUNCTION_INFO_V1(geonn_shard_ddl);

/* The arguments of geonn_shard_ddl(), and the objects that they name. */
typedef struct ShardSetup
{
	ReturnSetInfo *commands;
	List	   *servers;		/* of char *: the names of the shards' servers */
	char	   *geonn;			/* the extension's schema, bare */
	ShardTable *obs;
	ShardTable *ref;
	ShardTable *sharded;		/* obs or ref: the table that is divided */
	ShardTable *replicated;		/* the table, obs or ref, that is not divided: each shard has a copy */
	ShardPlacement *placement;
	char	   *view;			/* the name of the join's view, bare, in the schema of sharded */
	char	   *kept;			/* the name of the view of the shards' caches, bare; NULL: no caches */
	List	   *readers;		/* of char *: roles that may read the views */
	GeonnArguments *arguments;
	char	   *row;			/* the columns of the answer, with their types, as SQL */
} ShardSetup;

/* ---- the arguments ---- */

/* Read the arguments.  Raises an error if radius is given together with arguments for the k nearest. */
static GeonnArguments *
read_arguments(FunctionCallInfo fcinfo)
{
	NullableDatum *values = geonn_arguments_called(fcinfo, GEONN_SHARD_DDL);
	const char *question;
	const GeonnArgument *excluded;

	geonn_check_may_search();
	excluded = geonn_arguments_of_one_question(values, &question);
	if (excluded != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is given together with %s", question, excluded->name),
				 errdetail("A view has all references within radius, or the k nearest ones."),
				 errhint("For the k nearest ones up to a distance, give k and max_distance without radius.")));
	return geonn_arguments_read(GEONN_SHARD_DDL, values);
}

/* Return the columns of the join's answer, with their types, as SQL. */
static char *
answer_columns(const GeonnJoin *join)
{
	const PointColumn *obs_id = &join->observations->columns[COLUMN_ID];
	const PointColumn *ref_id = &join->references->columns[COLUMN_ID];

	return psprintf("obs_id %s, rank integer, ref_id %s, distance double precision",
					geonn_type_sql(obs_id->type, geonn_declared_typmod(obs_id), obs_id->collation),
					geonn_type_sql(ref_id->type, geonn_declared_typmod(ref_id), ref_id->collation));
}

static void
read_tables(ShardSetup *setup)
{
	if (setup->arguments->obs == setup->arguments->ref)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("obs and ref are the same table"),
				 errdetail("A shard has a part of the one, and all rows of the other."),
				 errhint("Copy one of them to a table of its own.")));
	setup->obs = geonn_shard_table(setup->arguments->obs, "obs");
	setup->ref = geonn_shard_table(setup->arguments->ref, "ref");
	setup->sharded = setup->arguments->sharded == 1 ? setup->ref : setup->obs;
	setup->replicated = setup->arguments->sharded == 1 ? setup->obs : setup->ref;
}

/*
 * Read the arguments, and look up the tables and servers that they name.  Raises an error about arguments
 * that do not fit together, and the errors that the join would raise.
 */
static ShardSetup *
read_setup(FunctionCallInfo fcinfo)
{
	ShardSetup *setup = palloc0(sizeof(ShardSetup));
	GeonnArguments *arguments = read_arguments(fcinfo);

	setup->arguments = arguments;
	setup->servers = geonn_shard_servers(arguments->servers);
	setup->row = answer_columns(geonn_make_join(arguments));
	read_tables(setup);
	setup->geonn = get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid));
	geonn_shard_check_here(list_make2(setup->sharded, setup->replicated), list_make1(setup->geonn));
	geonn_shard_check_table(setup->sharded, true);
	geonn_shard_check_table(setup->replicated, false);
	setup->placement = geonn_shard_placement(setup->sharded, arguments, list_length(setup->servers));
	setup->view = arguments->view != NULL ? arguments->view :
		geonn_shard_name(setup->obs->name, "_nearest");
	if (arguments->schedule != NULL || arguments->cache)
		setup->kept = psprintf("%s_kept", setup->view);
	if (arguments->readers != NULL)
		setup->readers = geonn_shard_names(arguments->readers, "readers",
										   "Name roles, as in '{dashboard}'.");
	return setup;
}

/* ---- names ---- */

/* Return `name` followed by `rest`, quoted, in the schema of the table that is divided. */
static char *
relation_of(const ShardSetup *setup, const char *name, const char *rest)
{
	return quote_qualified_identifier(setup->sharded->schema, geonn_shard_name(name, rest));
}

/* Return the named servers on which this table of the coordinator has no partition yet. */
static List *
servers_without(const ShardSetup *setup, const char *table)
{
	List	   *partitions = geonn_shard_partitions(geonn_shard_find(setup->sharded, table));
	List	   *servers = NIL;
	ListCell   *cell;

	foreach(cell, setup->servers)
	{
		if (geonn_partitions_on(partitions, lfirst(cell)) == 0)
			servers = lappend(servers, lfirst(cell));
	}
	return servers;
}

/* ---- servers ---- */

/*
 * Add the command that sets missing options of a server, so that postgres_fdw asks all servers at once, and
 * sends them calls of geonn_distance.
 */
static void
prepare_server(const ShardSetup *setup, const char *server)
{
	char	   *missing = geonn_shard_value(geonn_shard_sql("SELECT string_agg(format('ADD %%s %%L', name, value), ', ' ORDER BY name)"
															" FROM (VALUES ('async_capable', 'true'), ('batch_size', '1000'), ('extensions', 'geonn'),"
															" ('fetch_size', '10000'), ('use_remote_estimate', 'true')) wanted (name, value),"
															" pg_foreign_server WHERE srvname = %L AND name NOT IN"
															" (SELECT option_name FROM pg_options_to_table(srvoptions))", server));

	if (missing != NULL)
		geonn_command(setup->commands, NULL, "ALTER SERVER %I OPTIONS (%s)", server, missing);
}

/* ---- the table that is divided ---- */

static void
create_indexes(const ShardSetup *setup, const char *server, const ShardTable *table)
{
	ListCell   *cell;

	foreach(cell, table->indexes)
		geonn_command(setup->commands, server, GEONN_CATALOG_PATH "%s", lfirst(cell));
}

/* Add the commands that create a shard's table, without partitions at first. */
static void
create_part(const ShardSetup *setup, const char *server)
{
	const ShardTable *table = setup->sharded;

	geonn_command(setup->commands, server, GEONN_CATALOG_PATH "CREATE TABLE %s (%s%s) PARTITION BY %s",
				  table->quoted, table->definitions, table->checks, setup->placement->key);
	create_indexes(setup, server, table);
}

/*
 * Add the commands that create the coordinator's table of all rows, with its partitions on the shards, and
 * that let the coordinator's planner join and aggregate by partition.
 */
static void
create_sharded(const ShardSetup *setup)
{
	static const char *const planner_settings[] = {
		"enable_partitionwise_aggregate", "enable_partitionwise_join"
	};
	const ShardTable *table = setup->sharded;
	char	   *name = geonn_shard_relation(table, "_sharded");
	int			count = list_length(setup->placement->bounds);
	ListCell   *cell;

	if (OidIsValid(geonn_shard_find(table, geonn_shard_name(table->name, "_sharded"))))
		return;
	for (int i = 0; i < (int) lengthof(planner_settings); i++)
		geonn_command(setup->commands, NULL, "ALTER DATABASE %I SET %s = on",
					  get_database_name(MyDatabaseId), planner_settings[i]);
	geonn_command(setup->commands, NULL,
				  "CREATE TABLE %s (LIKE %s INCLUDING CONSTRAINTS INCLUDING DEFAULTS INCLUDING GENERATED) PARTITION BY %s",
				  name, table->quoted, setup->placement->key);
	foreach(cell, setup->placement->bounds)
	{
		int			number = foreach_current_index(cell);
		char	   *rest = psprintf("_%d", number);

		/* adjacent partitions go to one server */
		const char *server = list_nth(setup->servers,
									  (int) ((int64) number * list_length(setup->servers) / count));

		geonn_command(setup->commands, server, "CREATE TABLE %s PARTITION OF %s %s",
					  geonn_shard_relation(table, rest), table->quoted, lfirst(cell));
		geonn_command(setup->commands, NULL,
					  "CREATE FOREIGN TABLE %s PARTITION OF %s %s SERVER %I OPTIONS (schema_name %L, table_name %L)",
					  geonn_shard_relation(table, psprintf("_sharded%s", rest)), name, lfirst(cell),
					  server, table->schema, geonn_shard_name(table->name, rest));
	}
}

/*
 * Raise an error if a server has rows and is not named, because queries of the named ones would
 * miss its rows; or if the table is divided in another way.
 */
static void
check_sharded(const ShardSetup *setup)
{
	const ShardTable *table = setup->sharded;
	Oid			sharded = geonn_shard_find(table, geonn_shard_name(table->name, "_sharded"));
	ListCell   *cell;

	if (OidIsValid(sharded))
		geonn_check_placement(sharded, setup->placement);
	foreach(cell, geonn_shard_partitions(sharded))
	{
		const char *server = ((ShardPartition *) lfirst(cell))->server;

		if (!geonn_is_named(setup->servers, server))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("server \"%s\" has rows of \"%s\", and is not in servers", server,
							table->name),
					 errhint("Name all servers; geonn_shard_move_ddl moves rows away from one.")));
	}
}

/* ---- the table that is replicated ---- */

static void
publish(const ShardSetup *setup)
{
	const ShardTable *table = setup->replicated;
	char	   *version = geonn_shard_relation(table, "_version");
	char	   *publication = geonn_shard_name(table->name, "_shards");
	Oid			owner = GetSysCacheOid1(PUBLICATIONNAME, Anum_pg_publication_pubowner,
										CStringGetDatum(publication));

	if (OidIsValid(owner))
		geonn_shard_check_owner(geonn_shard_sql("publication %I", publication), owner);
	if (OidIsValid(geonn_shard_find(table, geonn_shard_name(table->name, "_version"))))
		return;
	if (OidIsValid(owner))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("publication \"%s\" exists, and table %s does not", publication, version),
				 errdetail("Publications are named after tables, without their schemas."),
				 errhint("Drop the publication if it is one of shards that are gone; otherwise rename table %s.",
						 table->quoted)));
	geonn_command(setup->commands, NULL, "CREATE TABLE %s (" VERSION_COLUMNS ")", version);
	geonn_command(setup->commands, NULL, "INSERT INTO %s (version) VALUES (1)", version);
	geonn_command(setup->commands, NULL, "CREATE PUBLICATION %I FOR TABLE %s, %s", publication,
				  table->quoted, version);
}

/* Add the commands that give a shard its copy of the replicated table. */
static void
subscribe(const ShardSetup *setup, const char *server)
{
	const ShardTable *table = setup->replicated;

	geonn_command(setup->commands, server, GEONN_CATALOG_PATH "CREATE TABLE %s (%s)",
				  table->quoted, table->definitions);
	create_indexes(setup, server, table);
	geonn_command(setup->commands, server, "CREATE TABLE %s (" VERSION_COLUMNS ")",
				  geonn_shard_relation(table, "_version"));
	geonn_command(setup->commands, server,
				  "CREATE SUBSCRIPTION %I CONNECTION %L PUBLICATION %I WITH (slot_name = %L)",
				  geonn_subscription(table->name, server), setup->arguments->coordinator,
				  geonn_shard_name(table->name, "_shards"), geonn_slot(table->name, server));
}

/* ---- views: tables that are divided by shard ---- */

/*
 * Add the commands that create a view on each shard, and a table of the coordinator that shows the views
 * of all shards.  query: the rest of the view's SELECT, after its first column, shard.
 */
static void
divide_by_shard(const ShardSetup *setup, const char *name, const char *columns, const char *query)
{
	char	   *view = relation_of(setup, name, "");
	ListCell   *cell;

	if (!OidIsValid(geonn_shard_find(setup->sharded, name)))
		geonn_command(setup->commands, NULL,
					  "CREATE TABLE %s (shard pg_catalog.text NOT NULL, %s) PARTITION BY LIST (shard)",
					  view, columns);
	foreach(cell, servers_without(setup, name))
	{
		const char *server = lfirst(cell);

		geonn_command(setup->commands, server, "CREATE VIEW %s AS SELECT %L::pg_catalog.text AS shard, %s",
					  view, server, query);
		geonn_command(setup->commands, NULL,
					  "CREATE FOREIGN TABLE %s PARTITION OF %s FOR VALUES IN (%L) SERVER %I OPTIONS (schema_name %L, table_name %L)",
					  relation_of(setup, name, psprintf("_%s", server)), view, server, server,
					  setup->sharded->schema, name);
	}
}

/*
 * Return a shard's version of the replicated table, as SQL.  Two processes copy the table and its version;
 * the version counts as 0 until both are done, and replication then applies changes to both together.
 */
static char *
version_of_shard(const ShardSetup *setup)
{
	char	   *version = geonn_shard_relation(setup->replicated, "_version");

	return geonn_shard_sql("CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_subscription_rel"
						   " WHERE srrelid OPERATOR(pg_catalog.=) ANY (ARRAY[%L::pg_catalog.regclass, %L::pg_catalog.regclass]::pg_catalog.oid[])"
						   " AND srsubstate OPERATOR(pg_catalog.<>) 'r') THEN 0 ELSE COALESCE((SELECT version FROM %s), 0) END",
						   setup->replicated->quoted, version, version);
}

static void
create_table_views(const ShardSetup *setup)
{
	const ShardTable *tables[] = {setup->sharded, setup->replicated};

	for (int i = 0; i < (int) lengthof(tables); i++)
	{
		if (get_attnum(tables[i]->oid, "shard") != InvalidAttrNumber)
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_COLUMN),
					 errmsg("table \"%s\" has a column shard", tables[i]->name),
					 errdetail("The views of all shards have a column of that name before those of the table."),
					 errhint("Rename the column.")));
		divide_by_shard(setup, geonn_shard_name(tables[i]->name, "_by_shard"), tables[i]->typed_columns.data,
						psprintf("%s FROM %s", tables[i]->columns.data, tables[i]->quoted));
	}
	divide_by_shard(setup, geonn_shard_name(setup->replicated->name, "_version_by_shard"),
					"version bigint, seen timestamp with time zone",
					psprintf("%s AS version, pg_catalog.clock_timestamp() AS seen", version_of_shard(setup)));
}

/* ---- the join ---- */

/* Return the arguments with which a shard calls the join, as SQL. */
static char *
arguments_of_join(const ShardSetup *setup)
{
	const char *further = setup->arguments->text;

	return geonn_shard_sql("%L::pg_catalog.regclass, %L::pg_catalog.regclass%s%s", setup->obs->quoted,
						   setup->ref->quoted, further[0] == '\0' ? "" : ", ", further);
}

/*
 * Add the commands that create the join's view on each shard, and the type of its rows.  The view calls no
 * volatile function, so PostgreSQL pushes conditions on the view down to the observations.
 */
static void
create_question(const ShardSetup *setup)
{
	const char *version = setup->replicated == setup->ref ? "ref_version" : "obs_version";
	char	   *type = relation_of(setup, setup->view, "_row");
	ListCell   *cell;

	foreach(cell, servers_without(setup, setup->view))
		geonn_command(setup->commands, lfirst(cell), "CREATE TYPE %s AS (%s)", type, setup->row);
	divide_by_shard(setup, setup->view, psprintf("%s, %s bigint", setup->row, version),
					geonn_shard_sql(ROW_COLUMNS ", (SELECT %s) AS %s FROM %I.%s(%s, row_type => NULL::%s)",
									version_of_shard(setup), version, setup->geonn,
									setup->arguments->join->question.k == 0 ? "geonn_within" : "geonn_nearest",
									arguments_of_join(setup), type));
}

/*
 * Add the commands that create the view of merged answers.  With references on several servers, an
 * observation's neighbours are the first, by (distance, id), of the neighbours that all servers return.
 * Rows without a neighbour (keep_unmatched) have NULLs, and come last.
 */
static void
create_merge(const ShardSetup *setup)
{
	const GeonnQuestion *question = &setup->arguments->join->question;
	const char *limit = "";
	char	   *merged = relation_of(setup, setup->view, "_merged");

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
				  merged, relation_of(setup, setup->view, ""), limit);
}

/*
 * Add the commands that create the shards' caches.  They call functions within DO, because
 * dblink_exec() takes no statement that returns rows.
 */
static void
create_caches(const ShardSetup *setup)
{
	char	   *name = psprintf("%s_cache", setup->view);
	ListCell   *cell;

	if (setup->kept == NULL)
		return;
	foreach(cell, servers_without(setup, setup->kept))
	{
		geonn_command(setup->commands, lfirst(cell), "DO %L",
					  geonn_shard_sql("BEGIN PERFORM %I.geonn_cache_create(%L, %s, target => %L); END", setup->geonn,
									  name, arguments_of_join(setup), relation_of(setup, name, "")));
		if (setup->arguments->schedule != NULL)
			geonn_command(setup->commands, lfirst(cell), "DO %L",
						  geonn_shard_sql("BEGIN PERFORM %I.geonn_schedule(%L, %L); END", setup->geonn, name,
										  setup->arguments->schedule));
	}
	divide_by_shard(setup, setup->kept, setup->row,
					psprintf(ROW_COLUMNS " FROM %s", relation_of(setup, name, "")));
}

/* ---- watching and privileges ---- */

static void
import_statistics(const ShardSetup *setup, List *servers)
{
	ListCell   *cell;
	StringInfoData views;

	if (servers == NIL)
		return;
	initStringInfo(&views);
	for (const char *const *view = geonn_overviews; *view != NULL; view++)
		geonn_shard_add(&views, "%s", *view);
	foreach(cell, servers)
	{
		char	   *schema = geonn_statistics_schema(lfirst(cell));

		if (OidIsValid(get_namespace_oid(schema, true)))
			continue;
		geonn_command(setup->commands, NULL, "CREATE SCHEMA %I", schema);
		geonn_command(setup->commands, NULL, "IMPORT FOREIGN SCHEMA %I LIMIT TO (%s) FROM SERVER %I INTO %I",
					  setup->geonn, views.data, lfirst(cell), schema);
	}
	geonn_command_overviews(setup->commands, setup->sharded, setup->servers);
}

/*
 * Add the commands that grant privileges to readers: a view calls geonn as the role that reads it,
 * so a reader of a shard needs both tables.
 */
static void
grant(const ShardSetup *setup, List *servers)
{
	List	   *names = geonn_add_name(list_make1(setup->sharded->schema), setup->replicated->schema);
	char	   *views = psprintf("%s, %s, %s, %s%s%s",
								 relation_of(setup, setup->sharded->name, "_by_shard"),
								 relation_of(setup, setup->replicated->name, "_by_shard"),
								 relation_of(setup, setup->replicated->name, "_version_by_shard"),
								 relation_of(setup, setup->view, ""),
								 setup->kept != NULL ? ", " : "",
								 setup->kept != NULL ? relation_of(setup, setup->kept, "") : "");
	bool		is_merged = setup->sharded == setup->ref;
	StringInfoData schemas;
	ListCell   *reader;
	ListCell   *cell;

	initStringInfo(&schemas);
	foreach(cell, geonn_add_name(names, setup->geonn))
		geonn_shard_add(&schemas, "%I", lfirst(cell));
	foreach(reader, servers == NIL ? NIL : setup->readers)
	{
		foreach(cell, servers)
		{
			geonn_command(setup->commands, lfirst(cell), "GRANT USAGE ON SCHEMA %s TO %I", schemas.data,
						  lfirst(reader));
			geonn_command(setup->commands, lfirst(cell), "GRANT SELECT ON %s, %s, %s TO %I",
						  setup->obs->quoted, setup->ref->quoted, views, lfirst(reader));
		}
		geonn_command(setup->commands, NULL, "GRANT USAGE ON SCHEMA %I TO %I", setup->sharded->schema,
					  lfirst(reader));
		geonn_command(setup->commands, NULL, "GRANT SELECT ON %s, %s%s%s TO %I",
					  geonn_shard_relation(setup->sharded, "_sharded"), views, is_merged ? ", " : "",
					  is_merged ? relation_of(setup, setup->view, "_merged") : "", lfirst(reader));
	}
}

/* ---- the function ---- */

/*
 * Warn of settings with which this server could not send rows to all shards.  A shard that subscribes
 * copies two tables at a time, by the default of max_sync_workers_per_subscription.  The commands run one
 * after the other, so all new shards may be copying at the same time.
 */
static void
check_settings(const ShardSetup *setup, List *new_to_copies)
{
	int			needed = list_length(setup->servers) + 2 * list_length(new_to_copies);
	int			present = Min(max_replication_slots, max_wal_senders);

	if (wal_level < WAL_LEVEL_LOGICAL)
		ereport(WARNING,
				(errmsg("this server's wal_level is lower than logical"),
				 errdetail("Publications need it."),
				 errhint("Run ALTER SYSTEM SET wal_level = logical, and restart this server.")));
	if (new_to_copies != NIL && present < needed)
		ereport(WARNING,
				(errmsg("this server has %d replication slots and senders, and the shards take up to %d",
						present, needed),
				 errdetail("Each shard takes one, and two more while it copies its tables."),
				 errhint("Set max_replication_slots and max_wal_senders to %d or more, and restart this server.",
						 needed)));
}

Datum
geonn_shard_ddl(PG_FUNCTION_ARGS)
{
	ShardSetup *setup = read_setup(fcinfo);
	List	   *new_to_rows = servers_without(setup, geonn_shard_name(setup->sharded->name, "_by_shard"));
	List	   *new_to_copies = servers_without(setup, geonn_shard_name(setup->replicated->name, "_by_shard"));
	List	   *new_to_view = servers_without(setup, setup->view);
	List	   *new_to_cache = setup->kept == NULL ? NIL : servers_without(setup, setup->kept);
	List	   *tables = list_make2(setup->sharded, setup->replicated);
	ListCell   *cell;

	check_sharded(setup);
	check_settings(setup, new_to_copies);
	setup->commands = geonn_rows_begin(fcinfo, COMMAND_COLUMNS);
	publish(setup);
	foreach(cell, setup->servers)
	{
		bool		rows = list_member_ptr(new_to_rows, lfirst(cell));
		bool		copies = list_member_ptr(new_to_copies, lfirst(cell));

		if (rows || copies)
			prepare_server(setup, lfirst(cell));
		if (rows || copies || list_member_ptr(new_to_view, lfirst(cell)) ||
			list_member_ptr(new_to_cache, lfirst(cell)))
			geonn_shard_prepare(setup->commands, lfirst(cell), tables, setup->geonn);
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
