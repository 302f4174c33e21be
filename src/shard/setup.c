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
#include "foreign/foreign.h"
#include "replication/slot.h"
#include "replication/walsender.h"
#include "utils/builtins.h"

#include "shard/commands.h"
#include "shard/prepare.h"
#include "shard/setup.h"

PG_FUNCTION_INFO_V1(geonn_shard_ddl);

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
prepare_server(const ShardSetup *setup, const char *server)
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
		appendStringInfo(&views, "%s%s", views.len > 0 ? ", " : "", *view);
	foreach(cell, servers)
	{
		char	   *name = geonn_statistics_schema(lfirst(cell));
		const char *schema = quote_identifier(name);

		if (OidIsValid(get_namespace_oid(name, true)))
			continue;
		geonn_command(setup->commands, NULL, "CREATE SCHEMA %s", schema);
		geonn_command(setup->commands, NULL,
					  "IMPORT FOREIGN SCHEMA %s LIMIT TO (%s) FROM SERVER %s INTO %s", setup->geonn,
					  views.data, quote_identifier(lfirst(cell)), schema);
	}
	geonn_command_overviews(setup->commands, setup->sharded, setup->servers);
}

/*
 * A view calls geonn as the role that reads it, so a reader of a shard needs both tables.
 */
static void
grant(const ShardSetup *setup, List *servers)
{
	char	   *schema = pstrdup(quote_identifier(setup->sharded->schema));
	char	   *schemas = schema;
	char	   *views = psprintf("%s, %s, %s, %s%s%s",
								 geonn_setup_relation(setup, setup->sharded->name, "_by_shard"),
								 geonn_setup_relation(setup, setup->replicated->name, "_by_shard"),
								 geonn_setup_relation(setup, setup->replicated->name, "_version_by_shard"),
								 geonn_setup_relation(setup, setup->view, ""),
								 setup->cache ? ", " : "",
								 setup->cache ? geonn_setup_relation(setup, setup->view, "_kept") : "");
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
					  setup->sharded == setup->ref ?
					  geonn_setup_relation(setup, setup->view, "_merged") : "",
					  (char *) lfirst(reader));
	}
}

/* ---- the whole ---- */

static void
check_wal_level(void)
{
	if (wal_level < WAL_LEVEL_LOGICAL)
		ereport(WARNING,
				(errmsg("this server's wal_level is lower than logical"),
				 errdetail("Publications need it."),
				 errhint("Run ALTER SYSTEM SET wal_level = logical, and restart this server.")));
}

/*
 * A shard that subscribes copies two tables at a time, by max_sync_workers_per_subscription's default.
 * The commands run one after the other, so all new shards may be copying.
 */
static void
check_slots(const ShardSetup *setup, List *new_to_copies)
{
	int			needed = list_length(setup->servers) + 2 * list_length(new_to_copies);
	int			present = Min(max_replication_slots, max_wal_senders);

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
	ShardSetup *setup = geonn_setup_read(fcinfo);
	char	   *rows_by_shard = geonn_shard_name(setup->sharded, "_by_shard");
	char	   *copies_by_shard = geonn_shard_name(setup->replicated, "_by_shard");
	List	   *new_to_rows = geonn_setup_servers_without(setup, rows_by_shard);
	List	   *new_to_copies = geonn_setup_servers_without(setup, copies_by_shard);
	List	   *new_to_view = geonn_setup_servers_without(setup, setup->view);
	List	   *new_to_cache = setup->cache ?
		geonn_setup_servers_without(setup, psprintf("%s_kept", setup->view)) : NIL;
	List	   *tables = list_make2(setup->sharded, setup->replicated);
	ListCell   *cell;

	geonn_setup_check_sharded(setup);
	check_wal_level();
	check_slots(setup, new_to_copies);
	setup->commands = geonn_commands_begin(fcinfo);
	geonn_setup_publish(setup);
	foreach(cell, setup->servers)
	{
		bool		rows = list_member_ptr(new_to_rows, lfirst(cell));
		bool		copies = list_member_ptr(new_to_copies, lfirst(cell));

		if (rows || copies)
			prepare_server(setup, lfirst(cell));
		if (rows || copies || list_member_ptr(new_to_view, lfirst(cell)) ||
			list_member_ptr(new_to_cache, lfirst(cell)))
			geonn_shard_prepare(setup->commands, lfirst(cell), tables, setup->extension);
		if (rows)
			geonn_setup_part(setup, lfirst(cell));
		if (copies)
			geonn_setup_subscribe(setup, lfirst(cell));
	}
	geonn_setup_sharded(setup);
	geonn_setup_table_views(setup);
	geonn_setup_question(setup);
	geonn_setup_merge(setup);
	geonn_setup_caches(setup);
	import_statistics(setup, new_to_rows);
	grant(setup, new_to_view);
	return (Datum) 0;
}
