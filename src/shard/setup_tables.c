/*
 * setup_tables.c
 *		The tables of a join on shards and coordinator: the one that is divided, and the one that all
 *		shards have.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_publication.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "shard/commands.h"
#include "shard/setup.h"
#include "shard/trust.h"

static void
create_indexes(const ShardSetup *setup, const char *server, List *indexes)
{
	ListCell   *cell;

	foreach(cell, indexes)
		geonn_command(setup->commands, server, GEONN_CATALOG_PATH "%s", (char *) lfirst(cell));
}

/* ---- the table that is divided ---- */

void
geonn_setup_part(const ShardSetup *setup, const char *server)
{
	const ShardTable *table = setup->sharded;

	geonn_command(setup->commands, server, GEONN_CATALOG_PATH "CREATE TABLE %s (%s%s) PARTITION BY %s",
				  table->quoted, table->definitions, table->checks, setup->placement->key);
	create_indexes(setup, server, table->indexes);
}

void
geonn_setup_sharded(const ShardSetup *setup)
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
				  "CREATE TABLE %s (LIKE %s INCLUDING CONSTRAINTS INCLUDING DEFAULTS INCLUDING GENERATED) PARTITION BY %s",
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

void
geonn_setup_check_sharded(const ShardSetup *setup)
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

		if (!geonn_is_named(setup->servers, server))
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

void
geonn_setup_publish(const ShardSetup *setup)
{
	const ShardTable *table = setup->replicated;
	char	   *version = geonn_shard_relation(table, "_version");
	char	   *publication = geonn_shard_name(table, "_shards");

	HeapTuple	present = SearchSysCache1(PUBLICATIONNAME, CStringGetDatum(publication));

	if (HeapTupleIsValid(present))
	{
		geonn_shard_check_owner(psprintf("publication %s", quote_identifier(publication)),
								((Form_pg_publication) GETSTRUCT(present))->pubowner);
		ReleaseSysCache(present);
	}
	if (OidIsValid(geonn_shard_find(table, geonn_shard_name(table, "_version"))))
		return;
	if (HeapTupleIsValid(present))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("publication \"%s\" exists, and table %s does not", publication, version),
				 errdetail("Publications are named after tables, without their schemas."),
				 errhint("Drop the publication if it is one of shards that are gone; otherwise rename table %s.",
						 table->quoted)));
	geonn_command(setup->commands, NULL, "CREATE TABLE %s (%s)", version, version_definition());
	geonn_command(setup->commands, NULL, "INSERT INTO %s (version) VALUES (1)", version);
	geonn_command(setup->commands, NULL, "CREATE PUBLICATION %s FOR TABLE %s, %s",
				  quote_identifier(publication), table->quoted, version);
}

void
geonn_setup_subscribe(const ShardSetup *setup, const char *server)
{
	const ShardTable *table = setup->replicated;

	geonn_command(setup->commands, server, GEONN_CATALOG_PATH "CREATE TABLE %s (%s)",
				  table->quoted, table->definitions);
	create_indexes(setup, server, table->unique_indexes);
	create_indexes(setup, server, table->indexes);
	geonn_command(setup->commands, server, "CREATE TABLE %s (%s)",
				  geonn_shard_relation(table, "_version"), version_definition());
	geonn_command(setup->commands, server,
				  "CREATE SUBSCRIPTION %s CONNECTION %s PUBLICATION %s WITH (slot_name = %s)",
				  quote_identifier(geonn_subscription(table, server)),
				  quote_literal_cstr(setup->coordinator),
				  quote_identifier(geonn_shard_name(table, "_shards")),
				  quote_literal_cstr(geonn_slot(table, server)));
}
