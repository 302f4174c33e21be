/*
 * guard.c
 *		Only the extension's own functions write the table of caches.
 *
 * A row of geonn_cache says what a refresh reads and which table it writes, as the owner of that
 * table.  So a role that could write such rows would have the privileges of any role that has a
 * cache.  No role is granted that; but members of pg_write_all_data write all tables without a
 * grant.  Triggers of the table therefore refuse roles without the privileges of its owner.
 * geonn_catalog_run runs as that owner, and a superuser's pg_restore has its privileges.  One of
 * the triggers is for rows: a worker of logical replication, which writes with the privileges of a
 * subscription's owner, fires no triggers of statements.
 *
 * Row-level security, which the other tables have, would keep members of pg_read_all_data from
 * dumping the database.
 */
#include "postgres.h"

#include "commands/trigger.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(geonn_cache_guard);

Datum
geonn_cache_guard(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "geonn_cache_guard was not called as a trigger");
	if (!has_privs_of_role(GetUserId(), trigger->tg_relation->rd_rel->relowner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for table %s",
						RelationGetRelationName(trigger->tg_relation)),
				 errdetail("Only geonn's own functions write it, and members of the role that owns it."),
				 errhint("Call geonn_cache_create, geonn_cache_alter or geonn_cache_drop.")));
	/* for a row: let the statement write it */
	if (TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple :
							   trigger->tg_trigtuple);
	return PointerGetDatum(NULL);
}
