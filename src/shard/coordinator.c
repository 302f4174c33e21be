/*
 * coordinator.c
 *		The servers of the shards, and what the coordinator has of them already.
 *
 * Its catalogs say it: the foreign partitions of its tables, and their servers.  So a call that is repeated
 * with one more server returns the commands for that one.
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "shard/commands.h"
#include "shard/coordinator.h"
#include "shard/trust.h"

const char *const geonn_overviews[] = {"geonn_cache_log", "geonn_devices", "geonn_stat",
	"geonn_stat_progress", NULL
};

/* ---- what the coordinator has ---- */

/*
 * Return the foreign tables for which the condition holds, in the order of their creation.  In the
 * condition, c is the table's row of pg_class, and p the row of its parent, if the table is a partition.
 */
static List *
foreign_tables_where(const char *condition)
{
	static const char query[] =
		"SELECT n.nspname, c.relname, format('%%I.%%I', n.nspname, c.relname), srvname,"
		" COALESCE((SELECT option_value FROM pg_options_to_table(ftoptions) WHERE option_name = 'table_name'), c.relname),"
		" CASE WHEN p.oid IS NOT NULL THEN pg_get_expr(c.relpartbound, c.oid) END, p.oid::regclass, pg_get_partkeydef(p.oid)"
		" FROM pg_foreign_table JOIN pg_foreign_server s ON s.oid = ftserver JOIN pg_class c ON c.oid = ftrelid"
		" JOIN pg_namespace n ON n.oid = c.relnamespace"
		" LEFT JOIN (pg_inherits JOIN pg_class p ON p.oid = inhparent)"
		" ON inhrelid = c.oid AND c.relispartition AND NOT inhdetachpending"
		" WHERE %s ORDER BY c.oid";
	List	   *rows = geonn_shard_rows(8, geonn_shard_sql(query, condition));
	ListCell   *cell;

	foreach(cell, rows)
	{
		char	  **row = lfirst(cell);
		ShardPartition *partition = palloc(sizeof(ShardPartition));

		*partition = (ShardPartition)
		{
			row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
		};
		lfirst(cell) = partition;
	}
	return rows;
}

List *
geonn_shard_partitions(Oid table)
{
	return OidIsValid(table) ? foreign_tables_where(psprintf("p.oid = %u", table)) : NIL;
}

List *
geonn_foreign_tables(const char *server)
{
	return foreign_tables_where(geonn_shard_sql("srvname = %L AND pg_has_role(c.relowner, current_user, 'USAGE')"
												" AND (p.oid IS NULL OR pg_has_role(p.relowner, current_user, 'USAGE'))",
												server));
}

int
geonn_partitions_on(List *partitions, const char *server)
{
	int			count = 0;
	ListCell   *cell;

	foreach(cell, partitions)
		count += strcmp(((ShardPartition *) lfirst(cell))->server, server) == 0;
	return count;
}

/* ---- servers ---- */

static void
check_server(const char *name)
{
	ForeignServer *server = GetForeignServerByName(name, true);

	if (server == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("server \"%s\" does not exist", name),
				 errhint("Run CREATE SERVER %s FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '…', dbname '…'), and CREATE USER MAPPING for it.",
						 quote_identifier(name))));
	if (strcmp(GetForeignDataWrapper(server->fdwid)->fdwname, "postgres_fdw") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("server \"%s\" is not one of postgres_fdw", name),
				 errhint("Name servers that CREATE SERVER ... FOREIGN DATA WRAPPER postgres_fdw has made.")));
	geonn_shard_check_owner(geonn_shard_sql("server %I", name), server->owner);
}

/* Change a name into one that a replication slot may have: lower-case letters, digits and _. */
static char *
slot_name(char *name)
{
	for (char *p = name; *p != '\0'; p++)
	{
		if (*p >= 'A' && *p <= 'Z')
			*p += 'a' - 'A';
		else if (!((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9')))
			*p = '_';
	}
	return name;
}

/* Raise an error if both names are of one server, or if the replication slots of both would have the same name. */
static void
check_different(const char *name, const char *other)
{
	if (strcmp(name, other) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("the argument servers names server \"%s\" twice", name),
				 errhint("Name each server once.")));
	if (strcmp(slot_name(pstrdup(name)), slot_name(pstrdup(other))) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("servers \"%s\" and \"%s\" would have replication slots of one name", other, name),
				 errdetail("Names of slots have lower-case letters, digits and _ alone."),
				 errhint("Give one of the servers another name, by ALTER SERVER ... RENAME TO ...")));
}

List *
geonn_shard_servers(ArrayType *servers)
{
	static const char hint[] = "Name the foreign servers of the shards, as in '{shard1, shard2}'.";
	List	   *names = geonn_shard_names(servers, "servers", hint);

	for (int i = 0; i < list_length(names); i++)
	{
		for (int other = 0; other < i; other++)
			check_different(list_nth(names, i), list_nth(names, other));
		check_server(list_nth(names, i));
	}
	if (names == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the argument servers is empty"),
				 errhint("%s", hint)));
	return names;
}

/* ---- names ---- */

char *
geonn_statistics_schema(const char *server)
{
	return geonn_shard_name("geonn_", server);
}

char *
geonn_subscription(const char *replicated, const char *server)
{
	return slot_name(geonn_shard_name(replicated, psprintf("_%s", server)));
}

char *
geonn_slot(const char *replicated, const char *server)
{
	return slot_name(geonn_shard_name(replicated, psprintf("_%s_%s", server,
														   get_database_name(MyDatabaseId))));
}

void
geonn_command_overviews(ReturnSetInfo *commands, const ShardTable *table, List *servers)
{
	List	   *schemas = NIL;
	ListCell   *cell;

	foreach(cell, servers)
		schemas = lappend(schemas, geonn_statistics_schema(lfirst(cell)));
	geonn_shard_check_here(NIL, schemas);
	for (const char *const *view = geonn_overviews; *view != NULL; view++)
	{
		char	   *name = psprintf("%s_by_shard", *view);
		char	   *query = NULL;

		(void) geonn_shard_find(table, name);
		foreach(cell, servers)
			query = geonn_shard_sql("%s%sSELECT %L::pg_catalog.text AS shard, s.* FROM %I.%s s",
									query == NULL ? "" : query, query == NULL ? "" : " UNION ALL ", lfirst(cell),
									geonn_statistics_schema(lfirst(cell)), *view);
		geonn_command(commands, NULL, "CREATE OR REPLACE VIEW %I.%I AS %s", table->schema, name, query);
	}
}
