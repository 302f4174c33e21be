/*
 * move.c
 *		geonn_shard_move_ddl(): the commands that move partitions from server to server.
 *
 * Each query by way of the coordinator sees each row once, also while a partition moves, since
 * two transactions of the coordinator change what its queries see, each at once:
 *
 *	 1. Writers wait while the rows are copied to the new server, and the partition of ping_sharded
 *		becomes the one there.  From then on rows are written and looked up there.  The copy is not
 *		part of the new server's ping yet, so the views of both shards answer as before.
 *	 2. Readers of the views wait while the old server detaches its partition, and the new server
 *		attaches the copy.  These two commit by themselves; if the second fails, the views lack the
 *		partition until the remaining commands have run.
 *
 * Before all that, the new server must have copied the other table.  Last, the old table is dropped.  A
 * copy that was interrupted starts again with an empty table.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "base/extension.h"
#include "base/result.h"
#include "shard/commands.h"
#include "shard/coordinator.h"
#include "shard/trust.h"

PG_FUNCTION_INFO_V1(geonn_shard_move_ddl);

typedef struct Move
{
	ReturnSetInfo *commands;
	ShardTable *table;
	char	   *sharded;		/* the coordinator's table of all rows, quoted */
	char	   *extension;		/* the schema of geonn, bare */
	char	   *dblink;			/* the schema of the extension dblink, bare */
	List	   *checked;		/* of char *: the servers for which the commands have been prepared */
} Move;

/* ---- which server gets which partition ---- */

/* Return the first of the servers with the greatest number of partitions (most), or with the smallest. */
static char *
extreme(List *servers, List *partitions, bool most)
{
	char	   *found = linitial(servers);
	ListCell   *cell;

	foreach(cell, servers)
	{
		int			difference = geonn_partitions_on(partitions, lfirst(cell)) - geonn_partitions_on(partitions, found);

		if (most ? difference > 0 : difference < 0)
			found = lfirst(cell);
	}
	return found;
}

/*
 * Return the next partition to move: one on a server that is not among `servers`; if there is none, the last one on the
 * fullest server, if that has at least two more than the emptiest.  NULL: none has to move.
 */
static ShardPartition *
next_to_move(List *servers, List *partitions)
{
	char	   *fullest = extreme(servers, partitions, true);
	char	   *emptiest = extreme(servers, partitions, false);
	ShardPartition *last = NULL;
	ListCell   *cell;

	foreach(cell, partitions)
	{
		ShardPartition *partition = lfirst(cell);

		if (!geonn_is_named(servers, partition->server))
			return partition;
		if (strcmp(partition->server, fullest) == 0)
			last = partition;
	}
	return geonn_partitions_on(partitions, fullest) - geonn_partitions_on(partitions, emptiest) > 1 ? last : NULL;
}

/* ---- one partition ---- */

static void
check_once(Move *move, char *server)
{
	if (geonn_is_named(move->checked, server))
		return;
	geonn_shard_prepare(move->commands, server, list_make1(move->table), move->extension);
	move->checked = lappend(move->checked, server);
}

/*
 * Return the coordinator's tables that show the views of either server, as a list for LOCK TABLE: all partitioned tables
 * with a partition on one of the two, except the table whose partition moves.
 */
static char *
tables_of_views(const Move *move, const char *from, const char *to)
{
	List	   *tables = list_concat(geonn_foreign_tables(from), geonn_foreign_tables(to));
	List	   *seen = list_make1(move->sharded);
	StringInfoData list;
	ListCell   *cell;

	initStringInfo(&list);
	foreach(cell, tables)
	{
		char	   *parent = ((ShardPartition *) lfirst(cell))->parent;

		if (parent == NULL || geonn_is_named(seen, parent))
			continue;
		seen = lappend(seen, parent);
		geonn_shard_add(&list, "ONLY %s", parent);
	}
	return list.data;
}

static void
copy_rows(const Move *move, const ShardPartition *partition, const char *to, const char *remote)
{
	ReturnSetInfo *commands = move->commands;
	const ShardTable *table = move->table;
	char	   *moving = quote_qualified_identifier(partition->schema,
													geonn_shard_name(partition->name, "_moving"));

	geonn_command(commands, to, "SET client_min_messages = warning; DROP TABLE IF EXISTS %s", remote);
	geonn_command(commands, to, GEONN_CATALOG_PATH "CREATE TABLE %s (%s%s)", remote,
				  table->definitions, table->checks);
	geonn_command(commands, NULL, "BEGIN");
	geonn_command(commands, NULL, "SET LOCAL search_path = pg_catalog, pg_temp");
	geonn_command(commands, NULL,
				  "CREATE FOREIGN TABLE %s (%s%s) SERVER %I OPTIONS (schema_name %L, table_name %L)",
				  moving, table->foreign_definitions.data, table->checks, to, table->schema, partition->remote);
	geonn_command(commands, NULL, "LOCK TABLE ONLY %s IN SHARE ROW EXCLUSIVE MODE", move->sharded);
	geonn_command(commands, NULL, "INSERT INTO %s (%s) SELECT %s FROM %s", moving,
				  table->stored_columns.data, table->stored_columns.data, partition->quoted);
	geonn_command(commands, NULL, "ALTER TABLE %s DETACH PARTITION %s", move->sharded, partition->quoted);
	geonn_command(commands, NULL, "DROP FOREIGN TABLE %s", partition->quoted);
	geonn_command(commands, NULL, "ALTER FOREIGN TABLE %s RENAME TO %I", moving, partition->name);
	geonn_command(commands, NULL, "ALTER TABLE %s ATTACH PARTITION %s %s", move->sharded,
				  partition->quoted, partition->bound);
	geonn_command(commands, NULL, "COMMIT");
}

static void
run_on(const Move *move, const char *server, const char *command)
{
	geonn_command(move->commands, NULL, "SELECT %I.dblink_exec(%L, %L)", move->dblink, server, command);
}

static void
move_partition(const Move *move, const ShardPartition *partition, const char *to)
{
	char	   *remote = quote_qualified_identifier(move->table->schema, partition->remote);

	copy_rows(move, partition, to, remote);
	geonn_command(move->commands, NULL, "BEGIN");
	geonn_command(move->commands, NULL, "LOCK TABLE %s IN ACCESS EXCLUSIVE MODE",
				  tables_of_views(move, partition->server, to));
	run_on(move, partition->server, psprintf("ALTER TABLE %s DETACH PARTITION %s",
											 move->table->quoted, remote));
	run_on(move, to, psprintf("ALTER TABLE %s ATTACH PARTITION %s %s", move->table->quoted, remote,
							  partition->bound));
	geonn_command(move->commands, NULL, "COMMIT");
	geonn_command(move->commands, partition->server, "DROP TABLE %s", remote);
}

/* ---- a server and its copies of replicated tables ---- */

/* Return the name of the replicated table whose version this foreign table shows; NULL: it shows no version. */
static char *
replicated_of(const ShardPartition *partition)
{
	static const char ending[] = "_version_by_shard";
	size_t		length = strlen(partition->remote);

	if (partition->parent == NULL || length <= strlen(ending) ||
		strcmp(partition->remote + length - strlen(ending), ending) != 0)
		return NULL;
	return pnstrdup(partition->remote, length - strlen(ending));
}

/*
 * Add the commands that wait until a server has copied the replicated tables.  Before that it must not get
 * rows: its answers for these rows would lack what is not copied yet.
 */
static void
wait_for_copies(const Move *move, const char *server)
{
	ListCell   *cell;

	foreach(cell, geonn_foreign_tables(server))
	{
		const ShardPartition *partition = lfirst(cell);

		if (replicated_of(partition) != NULL)
			geonn_command(move->commands, NULL, "DO %L",
						  psprintf("BEGIN"
								   " WHILE (SELECT version OPERATOR(pg_catalog.=) 0 FROM %s) LOOP"
								   " COMMIT; PERFORM pg_catalog.pg_sleep(0.1);"
								   " END LOOP; END",
								   partition->quoted));
	}
}

static bool
is_of_sharded(const Move *move, const ShardPartition *partition)
{
	return partition->parent != NULL && strcmp(partition->parent, move->sharded) == 0;
}

/*
 * Add the commands that drop the coordinator's objects of a server, unless the server still has rows of another divided
 * table.  Tables with the key LIST (shard) do not count, because they only show views of the shards.
 */
static void
forget_server(const Move *move, List *servers, const char *server)
{
	List	   *tables = geonn_foreign_tables(server);
	ListCell   *cell;

	foreach(cell, tables)
	{
		const ShardPartition *partition = lfirst(cell);

		if (partition->parent != NULL && !is_of_sharded(move, partition) &&
			strcmp(partition->parent_key, "LIST (shard)") != 0)
			return;
	}
	geonn_command_overviews(move->commands, move->table, servers);
	foreach(cell, tables)
	{
		char	   *replicated = replicated_of(lfirst(cell));

		if (replicated != NULL)
			geonn_command(move->commands, server, "DROP SUBSCRIPTION %I", geonn_subscription(replicated, server));
	}
	foreach(cell, tables)
	{
		if (!is_of_sharded(move, lfirst(cell)))
			geonn_command(move->commands, NULL, "DROP FOREIGN TABLE %s", ((ShardPartition *) lfirst(cell))->quoted);
	}
	geonn_command(move->commands, NULL, "DROP SCHEMA %I", geonn_statistics_schema(server));
}

/* ---- the function ---- */

static char *
schema_of_dblink(void)
{
	char	   *schema = geonn_shard_value("SELECT nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace"
										   " WHERE extname = 'dblink'");

	if (schema == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("extension \"dblink\" is not installed in this database"),
				 errdetail("Two servers change together while a transaction of this one keeps readers waiting."),
				 errhint("Run CREATE EXTENSION dblink.")));
	return schema;
}

/*
 * Raise an error unless each server that is to have rows has been set up.
 */
static void
check_set_up(const Move *move, List *servers)
{
	List	   *views = geonn_shard_partitions(geonn_shard_find(move->table,
																geonn_shard_name(move->table->name, "_by_shard")));
	ListCell   *cell;

	foreach(cell, servers)
	{
		if (geonn_partitions_on(views, lfirst(cell)) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("server \"%s\" has no views of \"%s\"", (char *) lfirst(cell),
							move->table->name),
					 errhint("Run the commands that geonn_shard_ddl returns for all servers, with this one.")));
	}
}

Datum
geonn_shard_move_ddl(PG_FUNCTION_ARGS)
{
	Move		move = {0};
	List	   *servers;
	List	   *partitions;
	List	   *former = NIL;
	List	   *filled = NIL;
	Oid			sharded;
	ShardPartition *partition;
	ListCell   *cell;

	geonn_check_may_search();
	servers = geonn_shard_servers(PG_GETARG_ARRAYTYPE_P(0));
	move.table = geonn_shard_table(PG_GETARG_OID(1), "table");
	move.sharded = geonn_shard_relation(move.table, "_sharded");
	sharded = geonn_shard_find(move.table, geonn_shard_name(move.table->name, "_sharded"));
	if (!OidIsValid(sharded))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"%s\" is not divided among servers", move.table->name),
				 errhint("Run the commands that geonn_shard_ddl returns.")));
	move.extension = get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid));
	move.dblink = schema_of_dblink();
	geonn_shard_check_here(list_make1(move.table), list_make2(move.extension, move.dblink));
	check_set_up(&move, servers);
	partitions = geonn_shard_partitions(sharded);
	move.commands = geonn_rows_begin(fcinfo, COMMAND_COLUMNS);
	while ((partition = next_to_move(servers, partitions)) != NULL)
	{
		char	   *to = extreme(servers, partitions, false);

		check_once(&move, partition->server);
		check_once(&move, to);
		if (!geonn_is_named(filled, to))
			wait_for_copies(&move, to);
		filled = geonn_add_name(filled, to);
		move_partition(&move, partition, to);
		if (!geonn_is_named(servers, partition->server))
			former = geonn_add_name(former, partition->server);
		partition->server = to;
	}
	foreach(cell, former)
		forget_server(&move, servers, lfirst(cell));
	return (Datum) 0;
}
