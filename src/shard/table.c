/*
 * table.c
 *		A table of the coordinator, as commands for other servers have to write it.
 *
 * A shard has the columns, the primary key and the indexes of the coordinator's table, and of the one that
 * is divided the checks.  Privileges and statistics stay with the coordinator's; table_hindrance.c says
 * what else a table may have.
 *
 * Expressions are written with names of pg_catalog bare, so commands that have one begin with
 * GEONN_CATALOG_PATH.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "base/value.h"
#include "shard/commands.h"
#include "shard/table.h"
#include "shard/trust.h"

static void
describe_columns(ShardTable *table, Relation relation)
{
	TupleDesc	descriptor = RelationGetDescr(relation);
	StringInfoData definitions;
	StringInfoData columns;
	StringInfoData stored;
	StringInfoData typed;

	initStringInfo(&definitions);
	initStringInfo(&columns);
	initStringInfo(&stored);
	initStringInfo(&typed);
	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(descriptor, i);
		const char *name = quote_identifier(NameStr(column->attname));
		char	   *with_type;
		char	   *expression;

		if (column->attisdropped)
			continue;
		with_type = psprintf("%s %s", name, geonn_type_sql(column->atttypid, column->atttypmod,
														   column->attcollation));
		expression = column->attgenerated == '\0' ? NULL :
			geonn_shard_value(geonn_shard_sql("SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = %u AND adnum = %d",
											  table->oid, column->attnum));
		if (column->attgenerated != '\0' && expression == NULL)
			elog(ERROR, "column %s of relation %u has no expression", name, table->oid);
		geonn_shard_add(&columns, "%s", name);
		geonn_shard_add(&typed, "%s", with_type);
		geonn_shard_add(&definitions, "%s", with_type);
		if (expression != NULL)
			appendStringInfo(&definitions, " GENERATED ALWAYS AS (%s) %s", expression,
							 column->attgenerated == ATTRIBUTE_GENERATED_STORED ? "STORED" :
							 "VIRTUAL");
		else
			geonn_shard_add(&stored, "%s", name);
		if (column->attnotnull)
			appendStringInfoString(&definitions, " NOT NULL");
	}
	table->foreign_definitions = definitions.data;
	table->columns = columns.data;
	table->stored_columns = stored.data;
	table->typed_columns = typed.data;
}

/* the columns of the primary key */
static const char key_query[] =
	"SELECT attname FROM pg_index, unnest(indkey) WITH ORDINALITY k (number, place), pg_attribute"
	" WHERE indrelid = %u AND indisprimary AND indimmediate AND NOT indisexclusion AND indislive"
	" AND place <= indnkeyatts AND attrelid = indrelid AND attnum = number ORDER BY place";

/* all checks, each after a comma */
static const char checks_query[] =
	"SELECT COALESCE(string_agg(format(', CONSTRAINT %%I %%s', conname, pg_get_constraintdef(oid)), ''"
	" ORDER BY conname), '') FROM pg_constraint WHERE conrelid = %u AND contype = 'c'";

/*
 * The commands for the table's unique indexes but the primary key's, or for all that are not unique.
 */
static List *
indexes_of(const ShardTable *table, bool are_unique)
{
	static const char query[] =
		"SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = %u"
		" AND NOT indisprimary AND indislive AND indisvalid AND indisunique = %s ORDER BY indexrelid";

	return geonn_shard_column(geonn_shard_sql(query, table->oid, are_unique ? "true" : "false"));
}

ShardTable *
geonn_shard_table(Oid relation, const char *argument)
{
	ShardTable *table = palloc0(sizeof(ShardTable));
	Relation	opened = table_open(relation, AccessShareLock);
	StringInfoData key;
	ListCell   *cell;

	initStringInfo(&key);
	if (pg_class_aclcheck(relation, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, RelationGetRelationName(opened));
	if (opened->rd_rel->relkind != RELKIND_RELATION || opened->rd_rel->relispartition)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s \"%s\" is not a table, or is a partition", argument,
						RelationGetRelationName(opened)),
				 errhint("Create a table with the columns and the primary key that the shards are to have; its rows can move to them later.")));
	table->oid = relation;
	table->schema = get_namespace_name(RelationGetNamespace(opened));
	table->name = pstrdup(RelationGetRelationName(opened));
	table->quoted = quote_qualified_identifier(table->schema, table->name);
	describe_columns(table, opened);
	table->indexes = indexes_of(table, false);
	table->unique_indexes = indexes_of(table, true);
	table->key = geonn_shard_column(geonn_shard_sql(key_query, relation));
	if (table->key == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has no primary key", table->name),
				 errdetail("Replication finds rows by it, and shards keep it: one that is neither deferrable nor WITHOUT OVERLAPS."),
				 errhint("Run ALTER TABLE %s ADD PRIMARY KEY (…).", table->quoted)));
	foreach(cell, table->key)
		geonn_shard_add(&key, "%I", lfirst(cell));
	table->definitions = psprintf("%s, PRIMARY KEY (%s)", table->foreign_definitions, key.data);
	table->checks = geonn_shard_value(geonn_shard_sql(checks_query, relation));
	table_close(opened, NoLock);
	return table;
}

char *
geonn_shard_name(const char *name, const char *rest)
{
	char	   *whole = psprintf("%s%s", name, rest);

	if (strlen(whole) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("\"%s\" is too long for a name", whole),
				 errdetail("It has %zu bytes, and a name has at most %d.", strlen(whole),
						   NAMEDATALEN - 1),
				 errhint("Give the table or the server a shorter name.")));
	return whole;
}

char *
geonn_shard_relation(const ShardTable *table, const char *rest)
{
	return quote_qualified_identifier(table->schema, geonn_shard_name(table->name, rest));
}

Oid
geonn_shard_find(const ShardTable *table, const char *name)
{
	Oid			found = get_relname_relid(name, get_namespace_oid(table->schema, false));

	if (OidIsValid(found))
		geonn_shard_check_owner(geonn_shard_sql("relation %I.%I", table->schema, name),
								geonn_shard_sql("SELECT relowner FROM pg_class WHERE oid = %u", found));
	return found;
}
