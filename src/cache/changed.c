/*
 * changed.c
 *		Changes of a cache's table by anything but its refresh.
 *
 * A refresh may trust the row of geonn_cache_last_run only if every other change of the table
 * deletes that row.  Two triggers do so, both ENABLE ALWAYS: one AFTER INSERT, UPDATE or DELETE for
 * each row, one AFTER TRUNCATE.  Row triggers fire on the table that has the row, so they notice
 * statements that name a parent or a partitioned table, rows that move between partitions, MERGE,
 * COPY, rules, foreign keys, sessions with session_replication_role = replica and the rows that
 * logical replication applies, which fires no triggers of statements.
 *
 * The refresh's own statements start without these triggers (cache/sql.c).  So its changes cost no time
 * and no events in the queue.  What triggers, rules or functions write meanwhile fires the triggers, and
 * is noticed.
 *
 * The owner can disable, replace or drop the triggers.  The signature of the last run
 * (cache/last_run.c) therefore identifies both, by the OID and the version of their row of pg_trigger.
 * The run's snapshot reads them: a trigger that was disabled and is enabled again has another
 * version for the first run that sees what was written meanwhile.  While one of them is missing,
 * each run is a full one.  The signature also has the user's own triggers BEFORE INSERT or UPDATE
 * of a row: after one of them was altered or dropped, all rows must be compared with the search
 * again.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "cache/changed.h"

PG_FUNCTION_INFO_V1(geonn_cache_changed);

/* ---- the triggers ---- */

char *
geonn_changes_triggers(const GeonnCache *cache)
{
	const char *table = geonn_cache_target_name(cache);
	const char *schema = quote_identifier(get_namespace_name(cache->schema));

	return psprintf("CREATE TRIGGER geonn_cache_changed AFTER INSERT OR UPDATE OR DELETE ON %s"
					" FOR EACH ROW EXECUTE FUNCTION %s.geonn_cache_changed();"
					" CREATE TRIGGER geonn_cache_truncated AFTER TRUNCATE ON %s"
					" FOR EACH STATEMENT EXECUTE FUNCTION %s.geonn_cache_changed();"
					" ALTER TABLE %s ENABLE ALWAYS TRIGGER geonn_cache_changed;"
					" ALTER TABLE %s ENABLE ALWAYS TRIGGER geonn_cache_truncated",
					table, schema, table, schema, table, table);
}

Oid
geonn_changes_function(Oid schema)
{
	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
						   CStringGetDatum("geonn_cache_changed"),
						   PointerGetDatum(buildoidvector(NULL, 0)),
						   ObjectIdGetDatum(schema));
}

/*
 * The events that the trigger reports in any session and for any row.
 */
static int16
events_noticed(HeapTuple row, TupleDesc type)
{
	Form_pg_trigger trigger = (Form_pg_trigger) GETSTRUCT(row);
	int16		events = trigger->tgtype & TRIGGER_TYPE_EVENT_MASK;

	if (trigger->tgenabled != TRIGGER_FIRES_ALWAYS || trigger->tgdeferrable ||
		trigger->tgattr.dim1 > 0 || !heap_attisnull(row, Anum_pg_trigger_tgqual, type))
		return 0;
	return TRIGGER_FOR_ROW(trigger->tgtype) ? events : events & TRIGGER_TYPE_TRUNCATE;
}

bool
geonn_changes_sign(StringInfo text, const GeonnCache *cache)
{
	Oid			function = geonn_changes_function(cache->schema);
	Relation	triggers = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	row;
	int16		missing = TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE |
		TRIGGER_TYPE_TRUNCATE;

	/* the snapshot must include what this command has done */
	PushCopiedSnapshot(GetActiveSnapshot());
	UpdateActiveSnapshotCommandId();
	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(cache->target));
	scan = systable_beginscan(triggers, TriggerRelidNameIndexId, true, GetActiveSnapshot(), 1, &key);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_trigger trigger = (Form_pg_trigger) GETSTRUCT(row);

		/* any other trigger counts if it can change the rows that the refresh writes */
		if (trigger->tgfoid != function &&
			!(TRIGGER_FOR_ROW(trigger->tgtype) && TRIGGER_FOR_BEFORE(trigger->tgtype)))
			continue;
		/* a transaction that changes the row a second time leaves the same xmin, but another TID */
		appendStringInfo(text, " %u %u %u/%u", trigger->oid,
						 HeapTupleHeaderGetRawXmin(row->t_data),
						 ItemPointerGetBlockNumber(&row->t_self),
						 ItemPointerGetOffsetNumber(&row->t_self));
		if (trigger->tgfoid == function)
			missing &= ~events_noticed(row, RelationGetDescr(triggers));
	}
	systable_endscan(scan);
	PopActiveSnapshot();
	table_close(triggers, AccessShareLock);
	return missing == 0;
}

/* ---- changes by others ---- */

/* the table whose row of geonn_cache_last_run this subtransaction has deleted */
static struct
{
	Oid			target;
	FullTransactionId transaction;
}			noticed;

void
geonn_changes_forget(void)
{
	noticed.target = InvalidOid;
}

/*
 * Delete the row of geonn_cache_last_run, for the first row that a subtransaction changes.  No
 * other session makes that row meanwhile: it would wait for this one, which has the table locked.
 * The snapshot is the latest in any isolation level, as the row may be newer than the
 * transaction's.
 */
Datum
geonn_cache_changed(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	FullTransactionId transaction;
	Oid			target;
	Snapshot	snapshot;

	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "geonn_cache_changed was not called as a trigger");
	target = RelationGetRelid(trigger->tg_relation);
	transaction = GetCurrentFullTransactionId();
	if (target == noticed.target && FullTransactionIdEquals(transaction, noticed.transaction))
		return PointerGetDatum(NULL);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	(void) geonn_catalog_run(geonn_cache_schema(fcinfo),
							 "DELETE FROM $S.geonn_cache_last_run s USING $S.geonn_cache c"
							 " WHERE s.cache OPERATOR(pg_catalog.=) c.id"
							 " AND c.target::pg_catalog.oid OPERATOR(pg_catalog.=) $1",
							 snapshot, GEONN_VALUES(GEONN_OID(target)));
	UnregisterSnapshot(snapshot);
	noticed.target = target;
	noticed.transaction = transaction;
	return PointerGetDatum(NULL);
}
