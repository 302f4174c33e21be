/*
 * creators.c
 *		CREATE EXTENSION warns when other roles may create objects in its schema.
 *
 * A call by name runs the function whose arguments match best.  So a role that can create another
 * function beside the extension's can have its own code called in its place, with the privileges of
 * the calling role.  The extension's own SQL is written such that this cannot happen, but
 * statements of users and jobs of pg_cron are not.  Superusers, and the role that creates the
 * extension, are not reported: they can do as much in other ways.
 *
 * The owner of a schema is always reported: an owner that has revoked its
 * CREATE privilege can grant it to itself again.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_namespace.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(geonn_warn_of_creators);

static Oid
database_owner(void)
{
	HeapTuple	row = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
	Oid			owner;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	owner = ((Form_pg_database) GETSTRUCT(row))->datdba;
	ReleaseSysCache(row);
	return owner;
}

/*
 * Add a role that may create objects to the list for the warning, unless it is
 * trusted.
 */
static List *
add_role(List *roles, Oid role)
{
	if (role == ROLE_PG_DATABASE_OWNER)
		role = database_owner();
	if (role != ACL_ID_PUBLIC && (role == GetUserId() || superuser_arg(role)))
		return roles;
	return list_append_unique_oid(roles, role);
}

static List *
add_grantees(List *roles, Acl *privileges)
{
	const AclItem *items = ACL_DAT(privileges);

	for (int i = 0; i < ACL_NUM(privileges); i++)
	{
		if (ACLITEM_GET_PRIVS(items[i]) & ACL_CREATE)
			roles = add_role(roles, items[i].ai_grantee);
	}
	return roles;
}

/*
 * The roles besides superusers and the current one that may create objects in a schema.
 */
static List *
creators_in(Oid schema)
{
	HeapTuple	row = SearchSysCache1(NAMESPACEOID, ObjectIdGetDatum(schema));
	List	   *roles;
	Datum		privileges;
	bool		is_null;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for schema %u", schema);
	roles = add_role(NIL, ((Form_pg_namespace) GETSTRUCT(row))->nspowner);
	privileges = SysCacheGetAttr(NAMESPACEOID, row, Anum_pg_namespace_nspacl, &is_null);
	if (!is_null)
		roles = add_grantees(roles, DatumGetAclP(privileges));
	ReleaseSysCache(row);
	return roles;
}

static char *
list_roles(const List *roles)
{
	StringInfoData text;
	const ListCell *cell;

	initStringInfo(&text);
	foreach(cell, roles)
	{
		Oid			role = lfirst_oid(cell);

		appendStringInfoString(&text, text.len > 0 ? ", " : "");
		if (role == ACL_ID_PUBLIC)
			appendStringInfoString(&text, "all roles (PUBLIC)");
		else
			appendStringInfo(&text, "role \"%s\"", GetUserNameFromId(role, false));
	}
	return text.data;
}

/*
 * Called by the install script.  The schema that it checks is the one this
 * function is in.
 */
Datum
geonn_warn_of_creators(PG_FUNCTION_ARGS)
{
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	char	   *name = get_namespace_name(schema);
	List	   *roles = creators_in(schema);

	if (roles != NIL)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("roles that are not superusers may create objects in schema \"%s\", beside those of geonn",
						name),
				 errdetail("The roles are: %s.", list_roles(roles)),
				 strcmp(name, "geonn") == 0 ?
				 errhint("A call of geonn by name may find a function of theirs. Give the schema to a superuser, and revoke CREATE on it from others.") :
				 errhint("A call of geonn by name may find a function of theirs. Run CREATE SCHEMA geonn; ALTER EXTENSION geonn SET SCHEMA geonn;")));
	PG_RETURN_VOID();
}
