/*
 * schedule.c
 *		Refreshes on a schedule, by pg_cron.
 *
 * A scheduled cache has a job of pg_cron that calls geonn_refresh.  The cache's owner owns the job:
 * it is made with the owner's privileges, so that pg_cron decides by its own rules which roles may
 * have jobs, and it runs as the owner.  Only its name marks it as a job of a cache, so that it is
 * found again after a restore, in another database, and when its owner, schedule or id were changed
 * by hand.
 *
 * pg_cron keeps the jobs of all databases in one of them.  In that database these functions make
 * and remove the job; for a cache in another database a superuser makes it, and the error's hint
 * shows the call.
 *
 * A job names the schema in which it finds the procedure.  When the extension leaves that schema, another
 * role may come to own what has the name then, and would run as the owner of each job.  So an event
 * trigger changes or removes the jobs in the transaction of the command that moves, renames or drops the
 * schema or the extension.
 *
 * geonn_cache.schedule is the schedule that was asked for, and pg_dump dumps it.  pg_cron goes by
 * its own table alone: it reads the schedule there, and refuses one that it cannot read.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "commands/dbcommands.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "cache/schedule.h"
#include "base/compat.h"

PG_FUNCTION_INFO_V1(geonn_schedule);
PG_FUNCTION_INFO_V1(geonn_unschedule);
PG_FUNCTION_INFO_V1(geonn_jobs_follow);

/* ---- pg_cron ---- */

/* Return a setting that pg_cron has defined, or NULL.  A placeholder does not count, because any session may set one. */
static const char *
cron_setting(const char *name)
{
	if (GetConfigOptionFlags(name, true) & GUC_CUSTOM_PLACEHOLDER)
		return NULL;
	return GetConfigOption(name, true, false);
}

/* Return whether the server has preloaded pg_cron: only then it defines its settings. */
static bool
is_loaded(void)
{
	return cron_setting("cron.database_name") != NULL;
}

static bool
is_database_of_cron(void)
{
	return is_loaded() &&
		strcmp(cron_setting("cron.database_name"), get_database_name(MyDatabaseId)) == 0;
}

/*
 * Return the owner of pg_cron's table of jobs in this database, or InvalidOid.  A table of that name does
 * not count if another role made it.
 */
static Oid
cron_owner(void)
{
	Oid			schema = get_namespace_oid("cron", true);
	Oid			extension = get_extension_oid("pg_cron", true);
	Oid			jobs = OidIsValid(schema) ? get_relname_relid("job", schema) : InvalidOid;

	if (!OidIsValid(extension) || !OidIsValid(jobs) ||
		getExtensionOfObject(RelationRelationId, jobs) != extension)
		return InvalidOid;
	return geonn_relation_owner(jobs);
}

static bool
is_installed(void)
{
	return geonn_run_as(GetUserId(), "SELECT FROM pg_catalog.pg_available_extensions"
						" WHERE name OPERATOR(pg_catalog.=) 'pg_cron'::pg_catalog.name",
						NULL, GEONN_NO_VALUES)->count > 0;
}

/* ---- jobs ---- */

/*
 * Return the name of a cache's job, which includes the cache's database if pg_cron is in another one.  pg_cron cuts off
 * names that are too long for it; such a name ends with the cache's number instead.
 */
static char *
job_name(const GeonnCache *cache, const char *database)
{
	char	   *name = database == NULL ? psprintf("geonn: %s", cache->name) :
		psprintf("geonn in %s: %s", database, cache->name);

	if (strlen(name) >= NAMEDATALEN)
	{
		char	   *number = psprintf("~%d", cache->id);
		int			length = pg_mbcliplen(name, (int) strlen(name),
										  NAMEDATALEN - 1 - (int) strlen(number));

		name = psprintf("%.*s%s", length, name, number);
	}
	return name;
}

/*
 * Return the job's command.  It calls the procedure with arguments of exactly its types, so that no
 * other procedure is a better match.
 */
static char *
job_command(const GeonnCache *cache)
{
	return psprintf("CALL %s.geonn_refresh(%s::pg_catalog.text, 'auto'::pg_catalog.text)",
					quote_identifier(get_namespace_name(cache->schema)),
					quote_literal_cstr(cache->name));
}

static int64
id_of(const GeonnRows *jobs, uint64 number)
{
	return DatumGetInt64(geonn_row_value(jobs, number, 1));
}

/*
 * Find the ids and commands of jobs with this cache's job name: jobs of its owner, and jobs with its
 * command, which a former owner has left.
 */
static GeonnRows *
find_jobs(const GeonnCache *cache)
{
	char	   *owner = OidIsValid(cache->owner) ? GetUserNameFromId(cache->owner, true) : NULL;

	if (!OidIsValid(cron_owner()))
		return palloc0(sizeof(GeonnRows));
	return geonn_run_as(cron_owner(),
						"SELECT jobid, command FROM cron.job WHERE jobname::pg_catalog.text OPERATOR(pg_catalog.=) $1"
						" AND (username OPERATOR(pg_catalog.=) $2 OR command OPERATOR(pg_catalog.=) $3)"
						" ORDER BY jobid",
						NULL, GEONN_VALUES(GEONN_TEXT(job_name(cache, NULL)), GEONN_TEXT_OR_NULL(owner),
										   GEONN_TEXT(job_command(cache))));
}

/* Return whether the jobs may be changed: pg_cron must be loaded for that.  While it is not, it starts no jobs. */
static bool
may_change(const GeonnRows *jobs)
{
	if (is_loaded())
		return true;
	for (uint64 i = 0; i < jobs->count; i++)
		ereport(WARNING,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("job %lld of pg_cron stays as it is: pg_cron is not loaded",
						(long long) id_of(jobs, i)),
				 errhint("When pg_cron is loaded, run SELECT cron.unschedule(%lld).",
						 (long long) id_of(jobs, i))));
	return false;
}

static void
remove_jobs(const GeonnRows *jobs)
{
	for (uint64 i = 0; i < jobs->count; i++)
		(void) geonn_run_as(cron_owner(), "SELECT cron.unschedule($1)", NULL,
							GEONN_VALUES(GEONN_INT8(id_of(jobs, i))));
}

/*
 * Give a job this command, and this name unless it is NULL.
 */
static void
change_job(int64 id, const char *name, const char *command)
{
	(void) geonn_run_as(cron_owner(),
						"UPDATE cron.job SET jobname = COALESCE($2, jobname), command = $3"
						" WHERE jobid OPERATOR(pg_catalog.=) $1",
						NULL, GEONN_VALUES(GEONN_INT8(id), GEONN_TEXT_OR_NULL(name), GEONN_TEXT(command)));
}

bool
geonn_cache_unschedule(const GeonnCache *cache)
{
	GeonnRows  *jobs = find_jobs(cache);

	if (!may_change(jobs))
		return false;
	remove_jobs(jobs);
	return jobs->count > 0;
}

void
geonn_cache_rename_jobs(const GeonnCache *cache, const char *name)
{
	GeonnRows  *jobs = find_jobs(cache);
	GeonnCache	renamed = *cache;

	if (jobs->count == 0 || !may_change(jobs))
		return;
	renamed.name = pstrdup(name);
	(void) geonn_cache_unschedule(&renamed);
	for (uint64 i = 0; i < jobs->count; i++)
		change_job(id_of(jobs, i), job_name(&renamed, NULL), job_command(&renamed));
}

/* ---- scheduling ---- */

/* Raise an error unless pg_cron is loaded and installed, with its jobs in this database. */
static void
require_cron(const GeonnCache *cache, const char *schedule)
{
	char	   *here = get_database_name(MyDatabaseId);

	if (!is_loaded())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_cron, by which caches are scheduled, is not %s",
						is_installed() ? "loaded" : "installed"),
				 errhint("%sdd pg_cron to shared_preload_libraries, set cron.database_name = %s, restart the server and run CREATE EXTENSION pg_cron.",
						 is_installed() ? "A" :
						 "Install it (on Debian the package postgresql-" PG_MAJORVERSION "-cron), a",
						 quote_literal_cstr(here))));
	if (!is_database_of_cron())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the jobs of pg_cron are in database \"%s\", and the cache in \"%s\"",
						cron_setting("cron.database_name"), here),
				 errhint("In database \"%s\" run, as a superuser: SELECT cron.schedule_in_database(%s, %s, %s, %s, %s);",
						 cron_setting("cron.database_name"),
						 quote_literal_cstr(job_name(cache, here)), quote_literal_cstr(schedule),
						 quote_literal_cstr(job_command(cache)), quote_literal_cstr(here),
						 quote_literal_cstr(GetUserNameFromId(cache->owner, false)))));
	if (!OidIsValid(cron_owner()))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_cron, by which caches are scheduled, is not an extension of this database"),
				 errhint("Run CREATE EXTENSION pg_cron.")));
}

static bool
may_login(Oid role)
{
	HeapTuple	row = SearchSysCache1(AUTHOID, ObjectIdGetDatum(role));
	bool		may = false;

	if (HeapTupleIsValid(row))
	{
		may = ((Form_pg_authid) GETSTRUCT(row))->rolcanlogin;
		ReleaseSysCache(row);
	}
	return may;
}

/* Raise an error unless the owner has the privilege to make a job, and can log in, so that the job can run. */
static void
require_owner(const GeonnCache *cache)
{
	char	   *owner = GetUserNameFromId(cache->owner, false);

	if (object_aclcheck(NamespaceRelationId, get_namespace_oid("cron", false), cache->owner,
						ACL_USAGE) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("role \"%s\", which owns cache \"%s\", may not use pg_cron", owner, cache->name),
				 errhint("Run, as a superuser: GRANT USAGE ON SCHEMA cron TO %s;",
						 quote_identifier(owner))));
	if (!may_login(cache->owner))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("role \"%s\", which owns cache \"%s\", may not log in", owner, cache->name),
				 errdetail("A job of pg_cron logs in as the cache's owner."),
				 errhint("Give the cache's table to a role that may, or run ALTER ROLE %s LOGIN.",
						 quote_identifier(owner))));
}

/*
 * Store the schedule; NULL: the cache has none.  The row stays locked, so that one session at a
 * time changes the jobs.  Returns whether the cache had a schedule.
 */
static bool
store_schedule(const GeonnCache *cache, const char *schedule)
{
	GeonnRows  *rows = geonn_catalog_run(cache->schema,
										 "UPDATE $S.geonn_cache c SET schedule = $3 FROM"
										 " (SELECT id, schedule FROM $S.geonn_cache"
										 " WHERE id OPERATOR(pg_catalog.=) $1 FOR UPDATE) f"
										 " WHERE c.id OPERATOR(pg_catalog.=) f.id"
										 " AND c.name OPERATOR(pg_catalog.=) $2 RETURNING f.schedule",
										 NULL, GEONN_VALUES(GEONN_INT4(cache->id),
															GEONN_TEXT(cache->name),
															GEONN_TEXT_OR_NULL(schedule)));

	if (rows->count == 0)
		geonn_cache_raise_missing(cache);
	return geonn_row_text(rows, 0, 1) != NULL;
}

static void
hint_at_fields(void *argument pg_attribute_unused())
{
	if (geterrcode() == ERRCODE_INVALID_PARAMETER_VALUE)
		errhint("A schedule has five fields: minute, hour, day, month and weekday, each a number, a list, a range or *, as in '*/5 * * * *' for every five minutes; pg_cron 1.5 and newer also take '30 seconds'.");
}

/*
 * Have pg_cron make the job, as the cache's owner.  Returns its id.
 */
static int64
make_job(const GeonnCache *cache, const char *schedule)
{
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = hint_at_fields
	};
	GeonnRows  *rows;

	error_context_stack = &context;
	rows = geonn_run_as(cache->owner, "SELECT cron.schedule($1, $2, $3)", NULL,
						GEONN_VALUES(GEONN_TEXT(job_name(cache, NULL)), GEONN_TEXT(schedule),
									 GEONN_TEXT(job_command(cache))));
	error_context_stack = context.previous;
	return id_of(rows, 0);
}

Datum
geonn_schedule(PG_FUNCTION_ARGS)
{
	GeonnCache *cache = geonn_cache_find(geonn_cache_schema(fcinfo),
										 text_to_cstring(PG_GETARG_TEXT_PP(0)));
	char	   *words = text_to_cstring(PG_GETARG_TEXT_PP(1));

	geonn_cache_hold(cache, AccessShareLock);
	(void) geonn_cache_target_name(cache);
	require_cron(cache, words);
	require_owner(cache);
	(void) store_schedule(cache, words);
	(void) geonn_cache_unschedule(cache);
	PG_RETURN_INT64(make_job(cache, words));
}

Datum
geonn_unschedule(PG_FUNCTION_ARGS)
{
	GeonnCache *cache = geonn_cache_find(geonn_cache_schema(fcinfo),
										 text_to_cstring(PG_GETARG_TEXT_PP(0)));
	bool		had_schedule;

	geonn_cache_hold(cache, AccessShareLock);
	had_schedule = store_schedule(cache, NULL);
	had_schedule |= geonn_cache_unschedule(cache);
	PG_RETURN_BOOL(had_schedule);
}

/* ---- when the extension goes elsewhere ---- */

/* A command that is about to change the schema in which jobs find geonn_refresh. */
typedef struct Fate
{
	Oid			schema;
	char	   *now;			/* the schema's name */
	const char *next;			/* the schema's name after the command; NULL: the command drops the extension */
} Fate;

/* Return whether DROP OWNED, if it succeeds, drops the extension. */
static bool
drops_owned(const DropOwnedStmt *command, Oid schema)
{
	Oid			schema_owner = GetSysCacheOid1(NAMESPACEOID, Anum_pg_namespace_nspowner,
											   ObjectIdGetDatum(schema));
	const ListCell *cell;

	foreach(cell, command->roles)
	{
		Oid			role = get_rolespec_oid(lfirst(cell), true);

		if (role == schema_owner || role == geonn_relation_owner(geonn_cache_table(schema)))
			return true;
	}
	return false;
}

/* Look at a command before it runs.  Returns false if the command leaves the extension where it is. */
static bool
decides(const Node *command, Fate *fate)
{
	if (IsA(command, DropStmt))
	{
		const DropStmt *drop = (const DropStmt *) command;

		return drop->removeType == OBJECT_EXTENSION ? list_member(drop->objects, makeString(pstrdup("geonn"))) :
			drop->removeType == OBJECT_SCHEMA && list_member(drop->objects, makeString(fate->now));
	}
	if (IsA(command, DropOwnedStmt))
		return drops_owned((const DropOwnedStmt *) command, fate->schema);
	if (IsA(command, AlterObjectSchemaStmt))
	{
		const AlterObjectSchemaStmt *move = (const AlterObjectSchemaStmt *) command;

		fate->next = move->newschema;
		return move->objectType == OBJECT_EXTENSION && strcmp(strVal(move->object), "geonn") == 0;
	}
	if (IsA(command, RenameStmt))
	{
		const RenameStmt *rename = (const RenameStmt *) command;

		fate->next = rename->newname;
		return rename->renameType == OBJECT_SCHEMA && strcmp(rename->subname, fate->now) == 0;
	}
	return false;
}

/* Return the first words of job commands that call geonn in this schema. */
static char *
call_in(const char *schema)
{
	return psprintf("CALL %s.geonn_", quote_identifier(schema));
}

/* Warn that this database's caches have jobs in another database, where this command cannot change them. */
static void
warn_of_jobs_elsewhere(const Fate *fate)
{
	char	   *here = quote_literal_cstr(get_database_name(MyDatabaseId));
	char	   *call = quote_literal_cstr(call_in(fate->now));

	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("jobs of pg_cron in database \"%s\" may still call geonn_refresh in schema \"%s\" of this database",
					cron_setting("cron.database_name"), fate->now),
			 errdetail("A role that can create that schema or procedure would run its code as the owner of each such job."),
			 fate->next == NULL ?
			 errhint("In database \"%s\" run, as a superuser: SELECT cron.unschedule(jobid) FROM cron.job WHERE database = %s AND starts_with(command, %s);",
					 cron_setting("cron.database_name"), here, call) :
			 errhint("In database \"%s\" run, as a superuser: UPDATE cron.job SET command = replace(command, %s, %s) WHERE database = %s;",
					 cron_setting("cron.database_name"), call,
					 quote_literal_cstr(call_in(fate->next)), here)));
}

/* Change or remove all jobs in this database that call a procedure of geonn, whichever role owns them. */
static void
follow(const Fate *fate)
{
	GeonnRows  *jobs;

	if (is_loaded() && !is_database_of_cron())
	{
		if (geonn_catalog_run(fate->schema, "SELECT FROM $S.geonn_cache LIMIT 1", NULL,
							  GEONN_NO_VALUES)->count > 0)
			warn_of_jobs_elsewhere(fate);
		return;
	}
	if (!OidIsValid(cron_owner()))
		return;
	/* Wait for sessions that have made jobs and not committed yet; sessions that come later wait for this one. */
	LockRelationOid(geonn_cache_table(fate->schema), ShareLock);
	jobs = geonn_run_as(cron_owner(),
						"SELECT jobid, command FROM cron.job"
						" WHERE database OPERATOR(pg_catalog.=) pg_catalog.current_database()::pg_catalog.text"
						" AND pg_catalog.starts_with(command, $1) ORDER BY jobid",
						NULL, GEONN_VALUES(GEONN_TEXT(call_in(fate->now))));
	if (jobs->count == 0 || !may_change(jobs))
		return;
	if (fate->next == NULL)
		remove_jobs(jobs);
	for (uint64 i = 0; i < jobs->count && fate->next != NULL; i++)
		change_job(id_of(jobs, i), NULL,
				   psprintf("%s%s", call_in(fate->next),
							geonn_row_text(jobs, i, 2) + strlen(call_in(fate->now))));
}

/*
 * An event trigger, called before each command that may move, rename or drop the extension or its
 * schema.  If the command fails, the jobs are as before.
 */
Datum
geonn_jobs_follow(PG_FUNCTION_ARGS)
{
	Fate		fate = {.schema = geonn_cache_schema(fcinfo)};

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		elog(ERROR, "geonn_jobs_follow was not called as an event trigger");
	fate.now = get_namespace_name(fate.schema);
	if (decides(((EventTriggerData *) fcinfo->context)->parsetree, &fate))
		follow(&fate);
	PG_RETURN_NULL();
}
