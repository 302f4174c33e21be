/*
 * commands.c
 *		The commands that the functions of this room return, and what the coordinator has already.
 *
 * The room writes commands and runs none.  What the coordinator has already, its catalogs say: the
 * foreign partitions of its tables, and their servers.  So a call that is repeated with one more
 * server returns the commands for that one.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "base/result.h"
#include "shard/array_argument.h"
#include "shard/commands.h"
#include "shard/trust.h"

/* columns of the result */
enum
{
	COLUMN_SERVER,
	COLUMN_COMMAND,
	COLUMNS
};

const char *const geonn_overviews[] = {"geonn_cache_log", "geonn_devices", "geonn_stat",
	"geonn_stat_progress", NULL
};

ReturnSetInfo *
geonn_commands_begin(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *commands = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	geonn_require_columns(commands->setDesc, COLUMNS);
	return commands;
}

void
geonn_command(ReturnSetInfo *commands, const char *server, const char *format,...)
{
	Datum		values[COLUMNS];
	bool		nulls[COLUMNS] = {[COLUMN_SERVER] = server == NULL};
	NameData	name = {{0}};
	StringInfoData text;

	CHECK_FOR_INTERRUPTS();
	initStringInfo(&text);
	for (;;)
	{
		va_list		arguments;
		int			needed;

		va_start(arguments, format);
		needed = appendStringInfoVA(&text, format, arguments);
		va_end(arguments);
		if (needed == 0)
			break;
		enlargeStringInfo(&text, needed);
	}
	if (server != NULL)
		namestrcpy(&name, server);
	values[COLUMN_SERVER] = NameGetDatum(&name);
	values[COLUMN_COMMAND] = CStringGetTextDatum(text.data);
	tuplestore_putvalues(commands->setResult, commands->setDesc, values, nulls);
	pfree(text.data);
}

/* ---- what the coordinator has ---- */

/*
 * The value of an option of a foreign table, or NULL.
 */
static char *
option(List *options, const char *name)
{
	ListCell   *cell;

	foreach(cell, options)
	{
		DefElem    *element = lfirst(cell);

		if (strcmp(element->defname, name) == 0)
			return defGetString(element);
	}
	return NULL;
}

/*
 * FOR VALUES of a partition; NULL: the relation is none.
 */
static char *
bound_of(Oid relation)
{
	HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Datum		bound;
	bool		is_null;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for relation %u", relation);
	bound = SysCacheGetAttr(RELOID, row, Anum_pg_class_relpartbound, &is_null);
	if (!is_null)
		bound = DirectFunctionCall2(pg_get_expr, bound, ObjectIdGetDatum(relation));
	ReleaseSysCache(row);
	return is_null ? NULL : TextDatumGetCString(bound);
}

static ShardPartition *
describe_partition(Oid relation)
{
	ShardPartition *partition = palloc0(sizeof(ShardPartition));
	ForeignTable *table = GetForeignTable(relation);

	partition->oid = relation;
	partition->name = get_rel_name(relation);
	partition->schema = get_namespace_name(get_rel_namespace(relation));
	partition->quoted = quote_qualified_identifier(partition->schema, partition->name);
	partition->server = GetForeignServer(table->serverid)->servername;
	partition->remote = option(table->options, "table_name");
	if (partition->remote == NULL)
		partition->remote = partition->name;
	partition->bound = bound_of(relation);
	return partition;
}

List *
geonn_shard_partitions(Oid table)
{
	List	   *partitions = NIL;
	ListCell   *cell;

	if (!OidIsValid(table))
		return NIL;
	foreach(cell, find_inheritance_children(table, AccessShareLock))
	{
		if (get_rel_relkind(lfirst_oid(cell)) == RELKIND_FOREIGN_TABLE)
			partitions = lappend(partitions, describe_partition(lfirst_oid(cell)));
	}
	return partitions;
}

bool
geonn_on_server(List *partitions, const char *server)
{
	ListCell   *cell;

	foreach(cell, partitions)
	{
		if (strcmp(((ShardPartition *) lfirst(cell))->server, server) == 0)
			return true;
	}
	return false;
}

bool
geonn_is_named(List *names, const char *name)
{
	ListCell   *cell;

	foreach(cell, names)
	{
		if (strcmp(lfirst(cell), name) == 0)
			return true;
	}
	return false;
}

static int
by_relation(const ListCell *a, const ListCell *b)
{
	Oid			left = ((const ShardPartition *) lfirst(a))->oid;
	Oid			right = ((const ShardPartition *) lfirst(b))->oid;

	return left < right ? -1 : left > right;
}

/*
 * Do roles that the commands may trust own a foreign table, and the table of which it is a partition?
 */
static bool
is_trusted(Oid table)
{
	return geonn_shard_trusts(geonn_shard_owner(table)) &&
		(!get_rel_relispartition(table) ||
		 geonn_shard_trusts(geonn_shard_owner(get_partition_parent(table, false))));
}

List *
geonn_foreign_tables(const char *server)
{
	List	   *tables = NIL;
	Oid			oid = get_foreign_server_oid(server, false);
	Relation	catalog = table_open(ForeignTableRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	row;

	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		const FormData_pg_foreign_table *form = (const FormData_pg_foreign_table *) GETSTRUCT(row);

		CHECK_FOR_INTERRUPTS();
		if (form->ftserver == oid && is_trusted(form->ftrelid))
			tables = lappend(tables, describe_partition(form->ftrelid));
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	list_sort(tables, by_relation);
	return tables;
}

/* ---- servers ---- */

static void
check_server(const char *name)
{
	Oid			oid = get_foreign_server_oid(name, true);

	if (!OidIsValid(oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("server \"%s\" does not exist", name),
				 errhint("Run CREATE SERVER %s FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '…', dbname '…'), and CREATE USER MAPPING for it.",
						 quote_identifier(name))));
	if (strcmp(GetForeignDataWrapper(GetForeignServer(oid)->fdwid)->fdwname, "postgres_fdw") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("server \"%s\" is not one of postgres_fdw", name),
				 errhint("Name servers that CREATE SERVER ... FOREIGN DATA WRAPPER postgres_fdw has made.")));
	geonn_shard_check_owner(psprintf("server %s", quote_identifier(name)),
							GetForeignServer(oid)->owner);
}

/*
 * Make a name of what names of replication slots may have: lower-case letters, digits and _.
 */
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

/*
 * Raise an error if two servers are one, or their subscriptions would have one name.
 */
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
geonn_shard_servers(Datum servers)
{
	static const char hint[] = "Name the foreign servers of the shards, as in '{shard1, shard2}'.";
	const ShardArray *given = geonn_shard_array(servers, "servers", hint);
	List	   *names = NIL;

	geonn_check_no_nulls(given);
	for (int i = 0; i < given->count; i++)
	{
		char	   *name = given->elements[i];
		ListCell   *cell;

		foreach(cell, names)
			check_different(name, lfirst(cell));
		check_server(name);
		names = lappend(names, name);
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
	char	   *name = psprintf("geonn_%s", server);

	if (strlen(name) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("\"%s\" is too long for the name of a schema", name),
				 errhint("Give the server a shorter name.")));
	return name;
}

char *
geonn_subscription(const ShardTable *replicated, const char *server)
{
	return slot_name(geonn_shard_name(replicated, psprintf("_%s", server)));
}

char *
geonn_slot(const ShardTable *replicated, const char *server)
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
		StringInfoData query;

		(void) geonn_shard_find(table, name);
		initStringInfo(&query);
		foreach(cell, servers)
			appendStringInfo(&query, "%sSELECT %s::pg_catalog.text AS shard, s.* FROM %s.%s s",
							 query.len > 0 ? " UNION ALL " : "", quote_literal_cstr(lfirst(cell)),
							 quote_identifier(geonn_statistics_schema(lfirst(cell))), *view);
		geonn_command(commands, NULL, "CREATE OR REPLACE VIEW %s AS %s",
					  quote_qualified_identifier(table->schema, name), query.data);
	}
}
