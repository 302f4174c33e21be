/*
 * table.c
 *		A table of the coordinator, as commands for other servers have to write it.
 *
 * A shard has the columns, the primary key and the indexes of the coordinator's table, and of the one that
 * is divided the checks.  Privileges and statistics stay with the coordinator's.
 *
 * Rows of the table that is divided are written to the coordinator's table with the ending _sharded, and
 * lie on shards.  So whatever PostgreSQL does for each row of the given table, or by looking at all of
 * its rows, would be lost: triggers, rules, keys.  Roles read the rows of both tables from the shards.
 * So what limits the rows or columns that a role sees would be lost, too.
 *
 * Defaults and checks are carried to the table with the ending _sharded, checks to the shards as well.
 * Harmless are statistics, storage, ownership, comments, and foreign keys of other tables to this one; of the
 * table that is replicated also triggers, rules and keys, since rows are written to it as before.
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
#include "utils/syscache.h"

#include "base/value.h"
#include "shard/commands.h"
#include "shard/table.h"
#include "shard/trust.h"

static void
describe_columns(ShardTable *table, Relation relation)
{
	TupleDesc	descriptor = RelationGetDescr(relation);

	initStringInfo(&table->foreign_definitions);
	initStringInfo(&table->columns);
	initStringInfo(&table->stored_columns);
	initStringInfo(&table->typed_columns);
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
			geonn_shard_value(geonn_shard_sql("SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = %u AND adnum = %u",
											  table->oid, column->attnum));
		if (column->attgenerated != '\0' && expression == NULL)
			elog(ERROR, "column %s of relation %u has no expression", name, table->oid);
		geonn_shard_add(&table->columns, "%s", name);
		geonn_shard_add(&table->typed_columns, "%s", with_type);
		geonn_shard_add(&table->foreign_definitions, "%s", with_type);
		if (expression != NULL)
			appendStringInfo(&table->foreign_definitions, " GENERATED ALWAYS AS (%s) %s", expression,
							 column->attgenerated == ATTRIBUTE_GENERATED_STORED ? "STORED" :
							 "VIRTUAL");
		else
			geonn_shard_add(&table->stored_columns, "%s", name);
		if (column->attnotnull)
			appendStringInfoString(&table->foreign_definitions, " NOT NULL");
	}
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

/* A query for the commands that create all indexes, except the primary key's. */
static const char indexes_query[] =
	"SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = %u"
	" AND NOT indisprimary AND indislive AND indisvalid ORDER BY indisunique DESC, indexrelid";

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
	table->indexes = geonn_shard_column(geonn_shard_sql(indexes_query, relation));
	table->key = geonn_shard_column(geonn_shard_sql(key_query, relation));
	if (table->key == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has no primary key", table->name),
				 errdetail("Replication finds rows by it, and shards keep it: one that is neither deferrable nor WITHOUT OVERLAPS."),
				 errhint("Run ALTER TABLE %s ADD PRIMARY KEY (…).", table->quoted)));
	foreach(cell, table->key)
		geonn_shard_add(&key, "%I", lfirst(cell));
	table->definitions = psprintf("%s, PRIMARY KEY (%s)", table->foreign_definitions.data, key.data);
	table->checks = geonn_shard_value(geonn_shard_sql(checks_query, relation));
	table_close(opened, NoLock);
	return table;
}

/* ---- what shards cannot have ---- */

/*
 * Queries for the hindrances of a table.  Each row has the hindrance's number, what the table has, and a hint.
 * t is the table; divided: t is the table to be divided; otherwise all shards copy t.
 */
static const char hindrances[] =
	"SELECT 1, 'row-level security', 'Divide tables whose rows all readers may see: for example, one table for each policy.'"
	" FROM pg_class WHERE oid = t AND relrowsecurity"
	" UNION ALL SELECT 2, format('policy %I', polname), format('Run DROP POLICY %I ON %s.', polname, t)"
	" FROM pg_policy WHERE polrelid = t"
	" UNION ALL SELECT 3, format('privileges of its column %I', attname), format('Run REVOKE ALL (%I) ON %s FROM these roles, and give them a view of the columns.', attname, t)"
	" FROM pg_attribute WHERE attrelid = t AND NOT attisdropped AND EXISTS (SELECT FROM aclexplode(attacl))"
	" UNION ALL SELECT 4, format('a security label of provider %s', provider), 'Run SECURITY LABEL … IS NULL, if all readers may see the rows as they are.'"
	" FROM pg_seclabel WHERE classoid = 'pg_class'::regclass AND objoid = t"
	" UNION ALL SELECT 5, format('a child table, %s', inhrelid::regclass), 'Put its rows into one table.'"
	" FROM pg_inherits WHERE inhparent = t"
	" UNION ALL SELECT 6, CASE relpersistence WHEN 'u' THEN 'no write-ahead log' ELSE 'rows of one session alone' END,"
		" CASE relpersistence WHEN 'u' THEN format('Run ALTER TABLE %s SET LOGGED.', t) ELSE 'Create a table that is not temporary.' END"
	" FROM pg_class WHERE oid = t AND (relpersistence = 't' OR relpersistence = 'u' AND NOT divided)"
	" UNION ALL SELECT 7, 'a replica identity other than its primary key', format('Run ALTER TABLE %s REPLICA IDENTITY DEFAULT.', t)"
	" FROM pg_class WHERE oid = t AND NOT divided AND relreplident NOT IN ('d', 'f')"
	" UNION ALL SELECT 8, format('trigger %I', tgname), format('Run DROP TRIGGER %I ON %s.', tgname, t)"
	" FROM pg_trigger WHERE tgrelid = t AND divided AND NOT tgisinternal"
	" UNION ALL SELECT 9, format('rule %I', rulename), format('Run DROP RULE %I ON %s.', rulename, t)"
	" FROM pg_rewrite WHERE ev_class = t AND divided"
	" UNION ALL SELECT 10, format(CASE contype WHEN 'f' THEN 'foreign key %I' WHEN 'u' THEN 'unique key %I' ELSE 'exclusion constraint %I' END, conname),"
		" format('Run ALTER TABLE %s DROP CONSTRAINT %I.', t, conname)"
	" FROM pg_constraint WHERE conrelid = t AND divided AND contype IN ('f', 'u', 'x')"
	" UNION ALL SELECT 11, format('check %I that is NO INHERIT, NOT VALID or NOT ENFORCED', conname),"
		" format('Drop %I, and add it to %s as an ordinary check.', conname, t)"
	" FROM pg_constraint WHERE conrelid = t AND divided AND contype = 'c' AND (connoinherit OR NOT convalidated)"
	" UNION ALL SELECT 12, format('unique index %s', indexrelid::regclass), format('Run DROP INDEX %s.', indexrelid::regclass)"
	" FROM pg_index WHERE indrelid = t AND divided AND indisunique AND NOT indisprimary"
	" UNION ALL SELECT 13, format('identity column %I', attname), format('Run ALTER TABLE %s ALTER %I DROP IDENTITY, and give the column a default of a sequence.', t, attname)"
	" FROM pg_attribute WHERE attrelid = t AND divided AND attidentity <> ''"
	" UNION ALL SELECT 14, format('a parent table, %s', inhparent::regclass), format('Run ALTER TABLE %s NO INHERIT %s.', t, inhparent::regclass)"
	" FROM pg_inherits WHERE inhrelid = t AND divided"
	" UNION ALL SELECT 15, format('a place in publication %I', pubname), format('Run ALTER PUBLICATION %I DROP TABLE %s.', pubname, t)"
	" FROM pg_publication_rel JOIN pg_publication p ON p.oid = prpubid WHERE prrelid = t AND divided";

void
geonn_shard_check_table(const ShardTable *table, bool is_divided)
{
	List	   *found = geonn_shard_rows(2, psprintf("SELECT what, hint FROM (VALUES (%u::oid::regclass, %s)) given (t, divided),"
													 " LATERAL (%s) h (number, what, hint) ORDER BY number, what LIMIT 1",
													 table->oid, is_divided ? "true" : "false", hindrances));

	if (found != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has %s", table->name, ((char **) linitial(found))[0]),
				 errdetail("Tables on shards, and those by which the coordinator shows their rows, cannot be like that."),
				 errhint("%s", ((char **) linitial(found))[1])));
}

/* ---- names ---- */

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
								GetSysCacheOid1(RELOID, Anum_pg_class_relowner, ObjectIdGetDatum(found)));
	return found;
}
