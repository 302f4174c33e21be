/*
 * setup_views.c
 *		The views of each shard, with a column shard, and the coordinator's tables of all of them: the
 *		rows of both tables, the join, and its cache.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "shard/commands.h"
#include "shard/setup.h"

#define ROW_COLUMNS "obs_id, rank, ref_id, distance"

/* ---- tables that are divided by shard ---- */

char *
geonn_setup_relation(const ShardSetup *setup, const char *name, const char *rest)
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
divide_by_shard(const ShardSetup *setup, const char *name, const char *columns, const char *query)
{
	Oid			table = geonn_shard_find(setup->sharded, name);
	List	   *partitions = geonn_shard_partitions(table);
	ListCell   *cell;

	if (!OidIsValid(table))
		geonn_command(setup->commands, NULL,
					  "CREATE TABLE %s (shard pg_catalog.text NOT NULL, %s) PARTITION BY LIST (shard)",
					  geonn_setup_relation(setup, name, ""), columns);
	foreach(cell, setup->servers)
	{
		const char *server = lfirst(cell);

		if (geonn_on_server(partitions, server))
			continue;
		geonn_command(setup->commands, server,
					  "CREATE VIEW %s AS SELECT %s::pg_catalog.text AS shard, %s",
					  geonn_setup_relation(setup, name, ""), quote_literal_cstr(server), query);
		geonn_command(setup->commands, NULL,
					  "CREATE FOREIGN TABLE %s PARTITION OF %s FOR VALUES IN (%s) SERVER %s OPTIONS (schema_name %s, table_name %s)",
					  geonn_setup_relation(setup, name, psprintf("_%s", server)),
					  geonn_setup_relation(setup, name, ""),
					  quote_literal_cstr(server), quote_identifier(server),
					  quote_literal_cstr(setup->sharded->schema), quote_literal_cstr(name));
	}
}

List *
geonn_setup_servers_without(const ShardSetup *setup, const char *table)
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

/* ---- views ---- */

/*
 * A shard's version of the table that is replicated, as SQL: 0 until table and version have been copied,
 * each by a process of its own, and replication applies changes to them together.
 */
static char *
version_of_shard(const ShardSetup *setup)
{
	char	   *version = geonn_shard_relation(setup->replicated, "_version");

	return psprintf("CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_subscription_rel"
					" WHERE srrelid OPERATOR(pg_catalog.=) ANY (ARRAY[%s::pg_catalog.regclass, %s::pg_catalog.regclass]::pg_catalog.oid[])"
					" AND srsubstate OPERATOR(pg_catalog.<>) 'r') THEN 0 ELSE COALESCE((SELECT version FROM %s), 0) END",
					quote_literal_cstr(setup->replicated->quoted), quote_literal_cstr(version),
					version);
}

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

void
geonn_setup_table_views(const ShardSetup *setup)
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
					psprintf("%s AS version, pg_catalog.clock_timestamp() AS seen",
							 version_of_shard(setup)));
}

/* "obs_version" or "ref_version": of the side that is replicated */
static const char *
version_column(const ShardSetup *setup)
{
	return setup->replicated == setup->ref ? "ref_version" : "obs_version";
}

static const char *
further_arguments(const ShardSetup *setup)
{
	return setup->arguments->text[0] == '\0' ? "" : psprintf(", %s", setup->arguments->text);
}

static char *
tables_of_join(const ShardSetup *setup)
{
	return psprintf("%s::pg_catalog.regclass, %s::pg_catalog.regclass",
					quote_literal_cstr(setup->obs->quoted), quote_literal_cstr(setup->ref->quoted));
}

/*
 * The rows have a type of their own, which the view's name begins.  Conditions on the view reach the
 * reading of the observations: so it has no volatile function, as the view of versions has.
 */
void
geonn_setup_question(const ShardSetup *setup)
{
	char	   *type = geonn_setup_relation(setup, setup->view, "_row");
	ListCell   *cell;

	foreach(cell, geonn_setup_servers_without(setup, setup->view))
		geonn_command(setup->commands, lfirst(cell), "CREATE TYPE %s AS (%s)", type, setup->row);
	divide_by_shard(setup, setup->view,
					psprintf("%s, %s bigint", setup->row, version_column(setup)),
					psprintf(ROW_COLUMNS ", (SELECT %s) AS %s FROM %s.%s(%s%s, row_type => NULL::%s)",
							 version_of_shard(setup), version_column(setup), setup->geonn,
							 setup->arguments->join->question.k == 0 ? "geonn_within" : "geonn_nearest",
							 tables_of_join(setup), further_arguments(setup), type));
}

/*
 * With references on several servers, an observation's neighbours are the first of what all of
 * them answer: the order (distance, id) is total.  NULLs of keep_unmatched come last.
 */
void
geonn_setup_merge(const ShardSetup *setup)
{
	const GeonnQuestion *question = &setup->arguments->join->question;
	const char *limit = "";
	char	   *merged = geonn_setup_relation(setup, setup->view, "_merged");

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
				  merged, geonn_setup_relation(setup, setup->view, ""), limit);
}

/*
 * Call a function for what it does: dblink_exec takes no statement that returns rows.
 */
static void
perform(const ShardSetup *setup, const char *server, const char *call)
{
	geonn_command(setup->commands, server, "DO %s",
				  quote_literal_cstr(psprintf("BEGIN PERFORM %s.%s; END", setup->geonn, call)));
}

void
geonn_setup_caches(const ShardSetup *setup)
{
	char	   *name = psprintf("%s_cache", setup->view);
	char	   *kept = psprintf("%s_kept", setup->view);
	ListCell   *cell;

	if (!setup->cache)
		return;
	foreach(cell, geonn_setup_servers_without(setup, kept))
	{
		perform(setup, lfirst(cell),
				psprintf("geonn_cache_create(%s, %s%s, target => %s)", quote_literal_cstr(name),
						 tables_of_join(setup), further_arguments(setup),
						 quote_literal_cstr(geonn_setup_relation(setup, name, ""))));
		if (setup->schedule != NULL)
			perform(setup, lfirst(cell),
					psprintf("geonn_schedule(%s, %s)", quote_literal_cstr(name),
							 quote_literal_cstr(setup->schedule)));
	}
	divide_by_shard(setup, kept, setup->row,
					psprintf(ROW_COLUMNS " FROM %s", geonn_setup_relation(setup, name, "")));
}
