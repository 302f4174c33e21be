/*
 * extension.c
 *		Which extension an object belongs to, and whether geonn may search here for the current role.
 *
 * geonn searches, asks the engine, and offers plan nodes where three things hold: geonn.enabled is on, the extension is
 * in the database, and the current role has EXECUTE on its function geonn_engine_start().  The setting is an
 * administrator's switch for a server, a database or a role; the privilege is the one that all ways to a search have in
 * common, also PostGIS's statements, which call no function of the extension.
 *
 * Functions that search raise an error where one of the three fails.  The planner makes plans without nodes.
 * A plan with a node is kept no longer than they hold: PostgreSQL plans anew when the setting changes (settings.c), for
 * another role, and when the function's row in pg_proc changes (plan/scan.c).  A node checks once more when it begins, and
 * the setting is also checked before each session with the engine.
 *
 * The function is looked for once in a process, and again after any function was changed: then it may have been made,
 * moved to another schema, or dropped.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "base/extension.h"
#include "base/settings.h"

static uint64 changes = 1;		/* how often a function may have changed */
static Oid	privilege_function;
static uint64 known_since;		/* the number of changes when this process last looked for privilege_function */

const char *
geonn_extension_of(Oid catalog, Oid object)
{
	Oid			extension = getExtensionOfObject(catalog, object);
	const char *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;

	/* Another session may have dropped the extension since the first lookup. */
	return name == NULL ? "" : name;
}

static void
forget_function(Datum argument pg_attribute_unused(), int cache pg_attribute_unused(),
				uint32 hash pg_attribute_unused())
{
	changes++;
}

static Oid
find_function(void)
{
	CatCList   *functions = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum("geonn_engine_start"));
	Oid			found = InvalidOid;

	for (int i = 0; i < functions->n_members; i++)
	{
		const FormData_pg_proc *function = (Form_pg_proc) GETSTRUCT(&functions->members[i]->tuple);

		if (function->pronargs == 0 && strcmp(geonn_extension_of(ProcedureRelationId, function->oid), "geonn") == 0)
			found = function->oid;
	}
	ReleaseSysCacheList(functions);
	return found;
}

Oid
geonn_search_privilege(void)
{
	static bool is_registered = false;
	uint64		before = changes;

	if (known_since == before)
		return privilege_function;
	if (!is_registered)
		CacheRegisterSyscacheCallback(PROCOID, forget_function, (Datum) 0);
	is_registered = true;
	privilege_function = find_function();
	known_since = before;
	return privilege_function;
}

static bool
has_privilege(Oid function)
{
	return object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
}

bool
geonn_may_search(void)
{
	return geonn_enabled && geonn_refused_setting == NULL && OidIsValid(geonn_search_privilege()) &&
		has_privilege(geonn_search_privilege());
}

void
geonn_check_enabled(void)
{
	if (!geonn_enabled)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("geonn is switched off"),
				 errdetail("The setting geonn.enabled is off for this session."),
				 errhint("A superuser switches it on where SELECT source FROM pg_settings WHERE name = 'geonn.enabled' says: for a configuration file by ALTER SYSTEM RESET geonn.enabled; SELECT pg_reload_conf();")));
}

void
geonn_check_may_search(void)
{
	Oid			function = geonn_search_privilege();
	const char *role;

	geonn_check_enabled();
	if (geonn_invalid_value != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for parameter \"%s\": \"%s\"", geonn_refused_setting, geonn_invalid_value),
				 errdetail("The server's configuration or an option of this connection has it, and geonn does not search without a valid one."),
				 errhint("Correct it there, as by ALTER SYSTEM RESET %s; SELECT pg_reload_conf(); and connect again.",
						 geonn_refused_setting)));
	if (geonn_refused_setting != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set parameter \"%s\"", geonn_refused_setting),
				 errdetail("The options of this connection set it, in place of the server's configuration."),
				 errhint("Connect without that option.")));
	if (!OidIsValid(function))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("extension geonn is not in this database"),
				 errdetail("There is no function geonn_engine_start() of that extension, on which a role needs EXECUTE."),
				 errhint("Run, as a superuser: CREATE EXTENSION geonn;")));
	if (has_privilege(function))
		return;
	role = GetUserNameFromId(GetUserId(), false);
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to search with geonn"),
			 errdetail("Role \"%s\" needs EXECUTE on geonn_engine_start().", role),
			 errhint("Run, as a superuser: GRANT EXECUTE ON FUNCTION %s() TO %s;",
					 quote_qualified_identifier(get_namespace_name(get_func_namespace(function)), get_func_name(function)),
					 quote_identifier(role))));
}
