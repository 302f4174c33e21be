/*
 * trust.c
 *		Whether other roles could have made what the commands name.
 *
 * Commands run as superusers, or as other roles with privileges to lose.  A table, type or function
 * that another role has put where a command expects its own would run code of that role with these
 * privileges.  So each schema that is named belongs to a role that has the privileges of the one that
 * runs the commands, and only such roles may create objects in it.  Likewise what exists before belongs
 * to such roles: tables that are divided, and the types and functions of their columns and indexes.
 *
 * Here that is checked while the commands are written, and on a shard by the command that comes before all
 * others.  Both use the same query.  That command also creates schemas and the extension.  A shard may have
 * the extension already, but in the schema in which the other commands call it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "shard/commands.h"
#include "shard/table.h"
#include "shard/trust.h"

static const char detail[] =
	"Commands that name them run with more privileges than these roles have, and could run code of theirs.";
static const char hint[] =
	"Give these objects to a superuser, or to the role that runs the commands, and revoke CREATE on the schemas from others, or use other schemas.";

/*
 * A query for roles that lack privileges of the current user, but own one of the objects, or may create
 * objects in one of the schemas.  It returns a single text about all of them, NULL for none.  Its %s are a
 * query for the objects' (classid, objid), and an array of the schemas.
 */
#define PROBLEM \
	"WITH object (classid, objid) AS (%s)," \
	" schema (quoted) AS (SELECT quote_ident(unnest(%s::text[]))" \
		" UNION SELECT i.schema FROM object, LATERAL pg_identify_object(classid, objid, 0) i)," \
	" deed (role, what) AS (" \
		"SELECT CASE WHEN role = 'pg_database_owner'::regrole" \
			" THEN (SELECT datdba FROM pg_database WHERE datname = current_database()) ELSE role END," \
			" format('may create objects in schema %%s', quoted)" \
		" FROM schema JOIN pg_namespace ON quote_ident(nspname) = quoted, LATERAL (SELECT nspowner" \
			" UNION SELECT grantee FROM aclexplode(nspacl) WHERE privilege_type = 'CREATE') r (role)" \
		" UNION ALL SELECT role, format('owns %%s', pg_describe_object(classid, objid, 0))" \
		" FROM object, LATERAL (SELECT relowner FROM pg_class WHERE oid = objid AND classid = 'pg_class'::regclass" \
			" UNION ALL SELECT proowner FROM pg_proc WHERE oid = objid AND classid = 'pg_proc'::regclass" \
			" UNION ALL SELECT typowner FROM pg_type WHERE oid = objid AND classid = 'pg_type'::regclass" \
			" UNION ALL SELECT oprowner FROM pg_operator WHERE oid = objid AND classid = 'pg_operator'::regclass" \
			" UNION ALL SELECT collowner FROM pg_collation WHERE oid = objid AND classid = 'pg_collation'::regclass" \
			" UNION ALL SELECT opcowner FROM pg_opclass WHERE oid = objid AND classid = 'pg_opclass'::regclass) r (role))" \
	" SELECT string_agg(CASE WHEN role = 0 THEN 'PUBLIC ' ELSE format('role %%s ', role::regrole) END || what, '; ' ORDER BY what)" \
	" FROM deed WHERE NOT pg_has_role(role, current_user, 'USAGE')"

/* ---- this server ---- */

void
geonn_shard_check_owner(const char *what, Oid owner)
{
	if (!has_privs_of_role(owner, GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("role %s owns %s", quote_identifier(GetUserNameFromId(owner, false)), what),
				 errdetail("%s", detail),
				 errhint("%s", hint)));
}

/* Return the SQL of an array of the tables' OIDs. */
static char *
oids_of(List *tables)
{
	StringInfoData oids;
	ListCell   *cell;

	initStringInfo(&oids);
	foreach(cell, tables)
		geonn_shard_add(&oids, "%u", ((ShardTable *) lfirst(cell))->oid);
	return psprintf("'{%s}'::oid[]", oids.data);
}

void
geonn_shard_check_here(List *tables, List *schemas)
{
	char	   *objects = psprintf("SELECT 'pg_class'::regclass::oid, unnest(%s)", oids_of(tables));
	char	   *problem = geonn_shard_value(geonn_shard_sql(PROBLEM, objects, geonn_names_array(schemas)));

	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("%s", problem),
				 errdetail("%s", detail),
				 errhint("%s", hint)));
}

/* ---- a shard ---- */

/*
 * Return the objects, other than PostgreSQL's own, that commands name to create these tables on a shard: the
 * SQL of rows (type, names, arguments), NULL for none.  Defaults, and checks of tables other than the first,
 * stay with the coordinator, so their objects do not count.
 */
static char *
objects_of(List *tables)
{
	static const char query[] =
		"SELECT string_agg(format('(%%L, %%L::text[], %%L::text[])', i.type, i.object_names, i.object_args), ', '"
		" ORDER BY i.type, i.object_names, i.object_args)"
		" FROM (VALUES (%s)) given (tables), LATERAL (SELECT DISTINCT refclassid, refobjid FROM pg_depend"
			" WHERE refclassid IN ('pg_type'::regclass, 'pg_proc'::regclass, 'pg_operator'::regclass,"
				" 'pg_collation'::regclass, 'pg_opclass'::regclass)"
			" AND (classid = 'pg_class'::regclass AND (objid = ANY (tables)"
				" OR objid IN (SELECT indexrelid FROM pg_index WHERE indrelid = ANY (tables)))"
			" OR classid = 'pg_attrdef'::regclass AND objid IN (SELECT d.oid FROM pg_attrdef d"
				" JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum"
				" WHERE adrelid = ANY (tables) AND attgenerated <> '')"
			" OR classid = 'pg_constraint'::regclass AND objid IN (SELECT oid FROM pg_constraint"
				" WHERE conrelid = tables[1] AND contype = 'c'))) o,"
			" LATERAL pg_identify_object_as_address(refclassid, refobjid, 0) i";

	return geonn_shard_value(geonn_shard_sql(query, oids_of(tables)));
}

/*
 * Also checks functions in the extension's schema that are named geonn_…: a call could find them in place of
 * the extension's own.
 */
void
geonn_shard_prepare(ReturnSetInfo *commands, const char *server, List *tables,
					const char *geonn)
{
	char	   *objects = objects_of(tables);
	List	   *schemas = list_make1(unconstify(char *, geonn));
	char	   *named = geonn_shard_sql("SELECT 'pg_proc'::regclass::oid, p.oid FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace"
										" WHERE nspname = %L AND starts_with(proname, 'geonn_')", geonn);
	char	   *body;
	ListCell   *cell;

	foreach(cell, tables)
		schemas = geonn_add_name(schemas, ((ShardTable *) lfirst(cell))->schema);
	if (objects != NULL)
		named = psprintf("%s UNION ALL SELECT a.classid, a.objid FROM (VALUES %s) o (type, names, arguments),"
						 " LATERAL pg_get_object_address(type, names, arguments) a", named, objects);
	body = geonn_shard_sql("DECLARE named text; problem text;"
						   " BEGIN"
						   " FOREACH named IN ARRAY %s::text[] LOOP"
						   " IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = named) THEN EXECUTE format('CREATE SCHEMA %%I', named); END IF;"
						   " END LOOP;"
						   " problem := (%s);"
						   " IF problem IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = problem, DETAIL = %L, HINT = %L; END IF;"
						   " IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'geonn') THEN CREATE EXTENSION geonn SCHEMA %I; END IF;"
						   " problem := (SELECT nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'geonn');"
						   " IF problem <> %L THEN RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = format('extension geonn is in schema %%I, and the coordinator has it in another one', problem), HINT = %L; END IF;"
						   " END",
						   geonn_names_array(schemas),
						   geonn_shard_sql(PROBLEM, named, geonn_names_array(schemas)), detail, hint, geonn, geonn,
						   geonn_shard_sql("Run ALTER EXTENSION geonn SET SCHEMA %I on this shard.", geonn));
	geonn_command(commands, server, GEONN_CATALOG_PATH "DO %L", body);
}
