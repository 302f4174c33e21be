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
 * moved to another schema, or dropped.  Which extension a function or type belongs to is remembered as long, because a lookup
 * takes longer than all else that the planner asks of them.  A base type goes with its functions.  ALTER EXTENSION ...
 * DROP FUNCTION does not change the function: it counts as the extension's until any function is changed, and is the same
 * function meanwhile.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
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

/* of so many objects the extension is remembered */
#define MEMBERS 64

/* a function or type, and the extension to which it belongs */
typedef struct Member
{
	Oid			catalog;
	Oid			object;
	uint64		known_since;	/* the number of changes when its extension was looked up */
	NameData	extension;
} Member;

static uint64 changes = 1;		/* how often a function may have changed */
static Oid	privilege_function;
static uint64 known_since;		/* the number of changes when this process last looked for privilege_function */

static void
forget(Datum argument pg_attribute_unused(), int cache pg_attribute_unused(), uint32 hash pg_attribute_unused())
{
	changes++;
}

/*
 * Return the number of changes so far, which is noticed from now on.
 */
static uint64
count_changes(void)
{
	static bool is_registered = false;

	if (!is_registered)
		CacheRegisterSyscacheCallback(PROCOID, forget, (Datum) 0);
	is_registered = true;
	return changes;
}

const char *
geonn_extension_of(Oid catalog, Oid object)
{
	static Member members[MEMBERS];
	Member	   *member = &members[object % MEMBERS];
	uint64		before = count_changes();
	Oid			extension;
	const char *name;

	if (member->catalog == catalog && member->object == object && member->known_since == before)
		return NameStr(member->extension);
	extension = getExtensionOfObject(catalog, object);
	name = OidIsValid(extension) ? get_extension_name(extension) : NULL;

	/* Another session may have dropped the extension since the first lookup. */
	if (name == NULL)
		return "";
	/* a transaction that has changed something may have given the extension an object, and roll that back */
	if ((catalog == ProcedureRelationId || catalog == TypeRelationId) && !TransactionIdIsValid(GetTopTransactionIdIfAny()))
	{
		*member = (Member) {.catalog = catalog, .object = object, .known_since = before};
		namestrcpy(&member->extension, name);
	}
	return name;
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
	uint64		before = count_changes();

	if (known_since == before)
		return privilege_function;
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
