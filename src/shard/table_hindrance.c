/*
 * table_hindrance.c
 *		What a table has that shards cannot have, so that it is not divided or replicated.
 *
 * Rows of the table that is divided are written to the coordinator's table with the ending _sharded, and
 * lie on shards.  So whatever PostgreSQL does for each row of the given table, or by looking at all of
 * its rows, would be lost: triggers, rules, keys.  Roles read the rows of both tables from the shards.
 * So what limits the rows or columns that a role sees would be lost, too.
 *
 * Defaults and checks are carried to the table with the ending _sharded, checks to the shards as well.
 * Harmless are statistics, storage, ownership, comments, and foreign keys of other tables to this one; of the
 * table that is replicated also triggers, rules and keys, since rows are written to it as before.
 */
#include "postgres.h"

#include "shard/commands.h"
#include "shard/table.h"

/*
 * Queries for the hindrances of a table.  Each row has the hindrance's number, what the table has, and a hint.
 * t is the table; divided says whether it is the table to be divided, or else the one that all shards copy.
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
