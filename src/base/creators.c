/*
 * creators.c
 *		Which other roles may create functions where a call of geonn by name looks for one.
 *
 * A call by name runs the function whose arguments match best, in whichever schema of the search_path it
 * is: with literals for the names of tables, geonn_nearest(text, text) of another schema matches better
 * than geonn's own.  So a role that can create functions in one of these schemas can have its own code
 * called in place of the extension's, with the privileges of the calling role.  The extension's own SQL is
 * written such that this cannot happen, but statements of users and jobs of pg_cron are not.  Superusers,
 * and the current role, are not reported: they can do as much in other ways.
 *
 * CREATE EXTENSION warns of the extension's schema, and of those in which new sessions of the current role
 * look; geonn_describe warns of those in which this session looks.  The order of a search_path is no
 * protection, unless the arguments are of equal types.
 *
 * The owner of a schema is always reported: an owner that has revoked its CREATE privilege can grant it
 * to itself again.  The owner of the database, which owns the schema public, can also set the search_path
 * of every session in it.  A superuser learns of it; geonn_describe tells no other role.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_namespace.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "base/creators.h"
#include "base/words.h"

PG_FUNCTION_INFO_V1(geonn_warn_of_creators);

static Oid
database_owner(void)
{
	return GetSysCacheOid1(DATABASEOID, Anum_pg_database_datdba, ObjectIdGetDatum(MyDatabaseId));
}

/*
 * Add a role that may create objects to the list for the warning, unless the role is trusted: the
 * current role or a superuser.
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

/* Return the roles that may create objects in a schema, without superusers and the current role. */
static List *
creators_in(Oid schema)
{
	HeapTuple	row = SearchSysCache1(NAMESPACEOID, ObjectIdGetDatum(schema));
	List	   *roles;
	Datum		value;
	bool		is_null;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for schema %u", schema);
	roles = add_role(NIL, ((Form_pg_namespace) GETSTRUCT(row))->nspowner);
	value = SysCacheGetAttr(NAMESPACEOID, row, Anum_pg_namespace_nspacl, &is_null);
	if (!is_null)
	{
		Acl		   *privileges = DatumGetAclP(value);
		const AclItem *items = ACL_DAT(privileges);

		for (int i = 0; i < ACL_NUM(privileges); i++)
		{
			if (ACLITEM_GET_PRIVS(items[i]) & ACL_CREATE)
				roles = add_role(roles, items[i].ai_grantee);
		}
	}
	ReleaseSysCache(row);
	return roles;
}

static char *
list_roles(const List *roles)
{
	List	   *names = NIL;
	const ListCell *cell;

	foreach(cell, roles)
		names = lappend(names, lfirst_oid(cell) == ACL_ID_PUBLIC ? pstrdup("all roles (PUBLIC)") :
						psprintf("role \"%s\"", GetUserNameFromId(lfirst_oid(cell), false)));
	return geonn_list_names(names, "", NULL);
}

/* ---- the search_path ---- */

/* If untrusted roles may create functions in the schema, add the schema to `schemas` and these roles to `roles`. */
static void
add_schema(Oid schema, List **schemas, List **roles)
{
	List	   *creators = creators_in(schema);

	if (!superuser())
		creators = list_delete_oid(creators, database_owner());
	if (creators == NIL || isAnyTempNamespace(schema))
		return;
	*schemas = lappend(*schemas, get_namespace_name(schema));
	*roles = list_concat_unique_oid(*roles, creators);
}

/*
 * Warn if other roles may create functions in schemas of this search_path.  extension: geonn's schema.
 */
static void
warn_of_path(const List *path, Oid extension)
{
	char	   *own = get_namespace_name(extension);
	List	   *schemas = NIL;
	List	   *roles = NIL;
	const ListCell *cell;

	foreach(cell, path)
		add_schema(lfirst_oid(cell), &schemas, &roles);
	if (roles != NIL)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("other roles may create functions in a schema of the search_path: %s",
						geonn_list_names(schemas, "\"", NULL)),
				 errdetail("The roles are: %s.", list_roles(roles)),
				 errhint("A call of geonn by name may find a function of theirs, whatever the order. Revoke CREATE on that schema, or take it off the search_path%s.",
						 list_member_oid(path, extension) && creators_in(extension) != NIL ?
						 "; and give geonn a schema of its own" :
						 psprintf(", or write the schema before each call, as in %s.geonn_nearest(...)",
								  quote_identifier(own)))));
}

/* Return the schemas of the search_path that new sessions of the current role have. */
static List *
path_of_new_sessions(void)
{
	char	   *setting = pstrdup(GetConfigOptionResetString("search_path"));
	List	   *names;
	ListCell   *cell;
	List	   *path = NIL;

	if (!SplitIdentifierString(setting, ',', &names))
		return NIL;
	foreach(cell, names)
	{
		const char *name = lfirst(cell);
		Oid			schema = get_namespace_oid(strcmp(name, "$user") == 0 ?
											   GetUserNameFromId(GetUserId(), false) : name, true);

		if (OidIsValid(schema))
			path = list_append_unique_oid(path, schema);
	}
	return path;
}

void
geonn_warn_of_search_path(Oid extension)
{
	warn_of_path(list_append_unique_oid(fetch_search_path(false), extension), extension);
}

/* The install script calls this function.  The extension's schema is the schema of the function. */
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
	warn_of_path(list_delete_oid(path_of_new_sessions(), schema), schema);
	PG_RETURN_VOID();
}
