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
 * Here that is checked while the commands are written, and on a shard by the command of prepare.c.  Both
 * use the same query.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "shard/trust.h"

const char geonn_trust_detail[] =
	"Commands that name them run with more privileges than these roles have, and could run code of theirs.";
const char geonn_trust_hint[] =
	"Give these objects to a superuser, or to the role that runs the commands, and revoke CREATE on the schemas from others, or use other schemas.";

/* for printf: a query of objects, and an array of schemas */
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

bool
geonn_shard_trusts(Oid role)
{
	return has_privs_of_role(role, GetUserId());
}

void
geonn_shard_check_owner(const char *what, Oid owner)
{
	if (!geonn_shard_trusts(owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("role %s owns %s", quote_identifier(GetUserNameFromId(owner, false)), what),
				 errdetail("%s", geonn_trust_detail),
				 errhint("%s", geonn_trust_hint)));
}

Oid
geonn_shard_owner(Oid relation)
{
	HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for relation %u", relation);
	owner = ((Form_pg_class) GETSTRUCT(row))->relowner;
	ReleaseSysCache(row);
	return owner;
}

bool
geonn_shard_ask(const char *query, int parameters, const Oid *types, const Datum *values,
				int columns, char **answer)
{
	MemoryContext context = CurrentMemoryContext;
	bool		found;
	int			result;

	SPI_connect();
	result = SPI_execute_with_args(query, parameters, unconstify(Oid *, types),
								   unconstify(Datum *, values), NULL, true, 1);
	if (result != SPI_OK_SELECT)
		elog(ERROR, "could not run \"%s\": %s", query, SPI_result_code_string(result));
	found = SPI_processed > 0;
	for (int i = 0; i < columns && found; i++)
	{
		char	   *value = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, i + 1);

		answer[i] = value == NULL ? NULL : MemoryContextStrdup(context, value);
	}
	SPI_finish();
	return found;
}

char *
geonn_names_array(List *names)
{
	Datum	   *values = palloc(sizeof(Datum) * Max(list_length(names), 1));
	ArrayType  *array;
	Oid			output;
	bool		varies;
	ListCell   *cell;

	foreach(cell, names)
		values[foreach_current_index(cell)] = CStringGetTextDatum(lfirst(cell));
	array = construct_array(values, list_length(names), TEXTOID, -1, false, TYPALIGN_INT);
	getTypeOutputInfo(TEXTARRAYOID, &output, &varies);
	return quote_literal_cstr(OidOutputFunctionCall(output, PointerGetDatum(array)));
}

char *
geonn_trust_query(const char *objects, List *schemas)
{
	return psprintf(PROBLEM, objects, geonn_names_array(schemas));
}

void
geonn_shard_check_here(List *tables, List *schemas)
{
	StringInfoData objects;
	ListCell   *cell;
	char	   *problem;

	initStringInfo(&objects);
	appendStringInfoString(&objects, "SELECT NULL::oid, NULL::oid WHERE false");
	foreach(cell, tables)
		appendStringInfo(&objects, " UNION ALL SELECT 'pg_class'::regclass::oid, %u::oid",
						 ((ShardTable *) lfirst(cell))->oid);
	if (geonn_shard_ask(geonn_trust_query(objects.data, schemas), 0, NULL, NULL, 1, &problem) && problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("%s", problem),
				 errdetail("%s", geonn_trust_detail),
				 errhint("%s", geonn_trust_hint)));
}
