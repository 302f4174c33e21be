/*
 * last_run.c
 *		The last run: what a refresh of a cache read, for the next one to begin with.
 *
 * A row of geonn_cache_last_run says that the cache's table has the rows that the search returned
 * when the relations had the contents that their labels (pages/kept_dataset.c) and baselines
 * (cache/baseline.c) describe.  A row that exists is true, for these reasons:
 *
 *	 - The table is unlogged, so it is empty after a crash, on a standby that was promoted and in
 *	   a restored database, where the cache's table may be older or newer.  So labels never
 *	   outlive a recovery.  (pg_resetwal after a crash passes over the recovery: after that, each
 *	   cache needs a refresh with mode 'full', as the database needs a dump.)
 *	 - Everything else that changes the cache's table deletes the row by triggers.  When the refresh
 *	   ends it updates the row, and never inserts it, so that a row that was deleted meanwhile stays
 *	   deleted.  A refresh that finds no row when it begins inserts one first, in a transaction of its
 *	   own, in which it also waits for the transactions that have changed the table and not committed:
 *	   their triggers did not see the row.  Within a transaction whose snapshot is older than that, it
 *	   inserts none.
 *	 - While a run reads the sides, more than once, nothing keeps other sessions from attaching a partition,
 *	   which has rows that the run's snapshot sees.  So a run fails if a side has other tables at its end
 *	   than at its beginning.  In between it cannot have had any others: a table that is read stays
 *	   locked, which keeps it from going, and one that DETACH PARTITION CONCURRENTLY has marked stays
 *	   for older snapshots.
 *	 - Its signature has the cache's question, the types and the functions that compare them,
 *	   what changes when the table is rewritten or gets other columns, which fires no triggers,
 *	   and the versions of its triggers.
 *
 * Two triggers delete the row, both ENABLE ALWAYS: one AFTER INSERT, UPDATE or DELETE for each row, one
 * AFTER TRUNCATE.  Row triggers fire on the table that has the row, so they notice
 * statements that name a parent or a partitioned table, rows that move between partitions, MERGE,
 * COPY, rules, foreign keys, sessions with session_replication_role = replica and the rows that
 * logical replication applies, which fires no triggers of statements.
 *
 * The refresh's own statements start without these triggers (cache/sql.c).  So its changes cost no time
 * and no events in the queue.  What triggers, rules or functions write meanwhile fires the triggers, and
 * is noticed.
 *
 * The owner can disable, replace or drop the triggers.  The signature therefore identifies both, by the
 * OID and the version of their row of pg_trigger.  The run's snapshot reads them: a trigger that was
 * disabled and is enabled again has another version for the first run that sees what was written
 * meanwhile.  While one of them is missing, each run is a full one.  The signature also has the user's own
 * triggers BEFORE INSERT or UPDATE of a row: after one of them was altered or dropped, all rows must be
 * compared with the search again.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "cache/last_run.h"
#include "common/protocol.h"
#include "pages/kept_dataset.h"

PG_FUNCTION_INFO_V1(geonn_cache_changed);

/* the version of the format in which baselines are stored */
#define BASELINE_FORMAT 7

/* columns of geonn_cache_last_run */
enum
{
	LAST_RUN_SIGNATURE = 1,
	LAST_RUN_ROWS,
	LAST_RUN_SIDES,
	LAST_RUN_BASELINES,
	LAST_RUN_WASTED,
	LAST_RUN_PAUSE
};

/* ---- labels ---- */

/*
 * Write a hash of the labels of all tables that the source reads, in the order of reading; all zeros if a
 * table has no label now.
 */
static void
write_label(const PointSource *source, const GeonnQuestion *question, uint8 *label)
{
	const List *tables = geonn_check_tables(source);
	StringInfoData bytes;		/* a bytea */
	ListCell   *cell;

	memset(label, 0, LABEL_BYTES);
	initStringInfo(&bytes);
	appendStringInfoSpaces(&bytes, VARHDRSZ);
	foreach(cell, tables)
	{
		struct geonn_label of_table;

		if (geonn_label_dataset(source, lfirst(cell), question, REFERENCE_COORDINATES, false, &of_table) == 0)
			return;
		appendBinaryStringInfo(&bytes, (const char *) &of_table, sizeof(of_table));
	}
	if (tables == NIL)
		return;
	SET_VARSIZE(bytes.data, bytes.len);
	memcpy(label, VARDATA_ANY(DatumGetByteaPP(DirectFunctionCall1(sha256_bytea, PointerGetDatum(bytes.data)))),
		   LABEL_BYTES);
}

GeonnLastRun *
geonn_last_run_none(const GeonnJoin *join)
{
	GeonnLastRun *last_run = palloc0(sizeof(GeonnLastRun));

	for (int side = 0; side < CACHE_SIDES; side++)
	{
		const PointSource *source = geonn_side_source(join, side);

		write_label(source, &join->question, last_run->label[side]);
		last_run->relations[side] = geonn_relations_read(source);
	}
	return last_run;
}

static void
check_relations(const GeonnCache *cache, const GeonnJoin *join, const GeonnLastRun *last_run)
{
	for (int side = 0; side < CACHE_SIDES; side++)
	{
		const PointSource *source = geonn_side_source(join, side);

		if (!equal(geonn_relations_read(source), last_run->relations[side]))
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("%s got or lost a table while cache \"%s\" was made from it",
							source->title, cache->name),
					 errdetail("A partition or child was created, attached or detached, or the view was replaced."),
					 errhint("Run the same command again.")));
	}
}

static bool
is_same(const uint8 *now, const uint8 *then)
{
	static const uint8 none[LABEL_BYTES];

	return memcmp(now, none, LABEL_BYTES) != 0 && memcmp(now, then, LABEL_BYTES) == 0;
}

/* ---- the signature ---- */

static void
sign_question(StringInfo text, const GeonnCache *cache)
{
	appendStringInfo(text, "%u %u %s", cache->obs, cache->ref,
					 JsonbToCString(NULL, &cache->arguments->root, VARSIZE(cache->arguments)));
}

static void
sign_column(StringInfo text, const PointColumn *column)
{
	TypeCacheEntry *type = lookup_type_cache(column->base_type,
											 TYPECACHE_CMP_PROC | TYPECACHE_EQ_OPR);

	appendStringInfo(text, " %s %u %u %u %u %u", quote_identifier(column->name), column->type,
					 column->base_type, column->collation, type->cmp_proc, type->eq_opr);
}

static void
sign_target(StringInfo text, Oid target, TupleDesc row_type)
{
	HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(target));

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for relation %u", target);
	appendStringInfo(text, " %u", ((Form_pg_class) GETSTRUCT(row))->relfilenode);
	ReleaseSysCache(row);
	for (int i = 0; i < row_type->natts; i++)
		appendStringInfo(text, " %d",
						 get_attnum(target, NameStr(TupleDescAttr(row_type, i)->attname)));
}

/* Return the events that the trigger reports in any session and for any row. */
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

/*
 * Add the versions of the triggers to the signature, as the active snapshot sees them.  Returns whether the
 * triggers notice every change.
 */
static bool
sign_triggers(StringInfo text, const GeonnCache *cache)
{
	Oid			function = geonn_changes_function(cache->schema);
	Relation	triggers = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	row;
	int16		missing = TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE |
		TRIGGER_TYPE_TRUNCATE;

	/* Let the snapshot see what this command has done. */
	PushCopiedSnapshot(GetActiveSnapshot());
	UpdateActiveSnapshotCommandId();
	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(cache->target));
	scan = systable_beginscan(triggers, TriggerRelidNameIndexId, true, GetActiveSnapshot(), 1, &key);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_trigger trigger = (Form_pg_trigger) GETSTRUCT(row);

		/* Other triggers count if they can change the rows that the refresh writes. */
		if (trigger->tgfoid != function &&
			!(TRIGGER_FOR_ROW(trigger->tgtype) && TRIGGER_FOR_BEFORE(trigger->tgtype)))
			continue;
		/*
		 * Include the TID: a transaction that changes the row of a trigger a second time leaves the
		 * same xmin, but another TID.
		 */
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

/*
 * Return the signature of the cache as it is now.  *noticed becomes whether the triggers notice every change of the table.
 */
static char *
signature_of(const GeonnCache *cache, const GeonnJoin *join, bool *noticed)
{
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfo(&text, "%d %s ", BASELINE_FORMAT, GEONN_VERSION);
	sign_question(&text, cache);
	for (int side = 0; side < CACHE_SIDES; side++)
	{
		const PointSource *source = geonn_side_source(join, side);

		sign_column(&text, &source->columns[COLUMN_ID]);
		if (source->transform != NULL)
			appendStringInfo(&text, " " UINT64_FORMAT, geonn_transform_meaning(source->transform));
		for (int i = 0; i < source->by_count; i++)
			sign_column(&text, &source->by[i]);
		if (geonn_has_radius(source))
			sign_column(&text, &source->columns[COLUMN_RADIUS]);
		for (int i = 0; i < source->window_count; i++)
			sign_column(&text, &source->windows[i]);
		for (int i = 0; i < source->weight_count; i++)
			sign_column(&text, &source->weights[i]);
	}
	sign_target(&text, cache->target, geonn_cache_row_type(join));
	*noticed = sign_triggers(&text, cache);
	return text.data;
}

/* ---- the triggers ---- */

/*
 * Creates the triggers, then checks them: if another session renamed a schema meanwhile, the names may
 * belong to other objects, and another role's function would run as each role that writes the table.
 */
void
geonn_last_run_make_triggers(const GeonnCache *cache)
{
	const char *table = geonn_cache_target_name(cache);
	const char *schema = quote_identifier(get_namespace_name(cache->schema));
	StringInfoData signature;

	geonn_run_command(psprintf("CREATE TRIGGER geonn_cache_changed AFTER INSERT OR UPDATE OR DELETE ON %s"
							   " FOR EACH ROW EXECUTE FUNCTION %s.geonn_cache_changed();"
							   " CREATE TRIGGER geonn_cache_truncated AFTER TRUNCATE ON %s"
							   " FOR EACH STATEMENT EXECUTE FUNCTION %s.geonn_cache_changed();"
							   " ALTER TABLE %s ENABLE ALWAYS TRIGGER geonn_cache_changed;"
							   " ALTER TABLE %s ENABLE ALWAYS TRIGGER geonn_cache_truncated",
							   table, schema, table, schema, table, table));
	initStringInfo(&signature);
	if (!sign_triggers(&signature, cache))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table %s did not get the triggers of a cache", table),
				 errhint("If a schema was renamed meanwhile, run the same command again.")));
}

/* The table whose row of geonn_cache_last_run this subtransaction has deleted. */
static struct
{
	Oid			target;
	FullTransactionId transaction;
}			noticed;

/*
 * Deletes the row of geonn_cache_last_run when a subtransaction changes its first row of the table.  No other
 * session can insert that row meanwhile, because it would wait for this session's lock of the table.  Uses
 * the latest snapshot in any isolation level, because the row may be newer than the transaction's snapshot.
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

/* ---- the row ---- */

GeonnLastRun *
geonn_last_run_load(const GeonnCache *cache, const GeonnJoin *join, Snapshot snapshot)
{
	GeonnLastRun *last_run = geonn_last_run_none(join);
	GeonnRows  *rows;
	const bytea *sides;
	bool		noticed;
	char	   *signature = signature_of(cache, join, &noticed);

	last_run->reason = noticed ? "what the table was made of is not known" :
		"triggers of the table are missing or not enabled ALWAYS";
	if (!noticed)
		return last_run;
	rows = geonn_catalog_run(cache->schema,
							 "SELECT signature, rows, sides, baselines, wasted, pause"
							 " FROM $S.geonn_cache_last_run WHERE cache OPERATOR(pg_catalog.=) $1"
							 " AND signature OPERATOR(pg_catalog.=) $2 AND valid",
							 snapshot, GEONN_VALUES(GEONN_INT4(cache->id), GEONN_TEXT(signature)));
	if (rows->count == 0)
		return last_run;
	sides = DatumGetByteaPP(geonn_row_value(rows, 0, LAST_RUN_SIDES));
	if (VARSIZE_ANY_EXHDR(sides) != sizeof(StoredSides))
		elog(ERROR, "geonn_cache_last_run is damaged");
	memcpy(&last_run->sides, VARDATA_ANY(sides), sizeof(StoredSides));
	last_run->exists = true;
	last_run->rows = DatumGetInt64(geonn_row_value(rows, 0, LAST_RUN_ROWS));
	for (int side = 0; side < CACHE_SIDES; side++)
		last_run->same[side] = is_same(last_run->label[side], last_run->sides.label[side]);
	last_run->has_baselines = DatumGetBool(geonn_row_value(rows, 0, LAST_RUN_BASELINES));
	last_run->wasted = DatumGetInt32(geonn_row_value(rows, 0, LAST_RUN_WASTED));
	last_run->pause = DatumGetInt32(geonn_row_value(rows, 0, LAST_RUN_PAUSE));
	return last_run;
}

/*
 * Run a statement whose parameter is the cache's id; snapshot is as in geonn_catalog_run().  Returns how
 * many rows the statement has found or written.
 */
static uint64
run_for_cache(const GeonnCache *cache, const char *statement, Snapshot snapshot)
{
	return geonn_catalog_run(cache->schema, statement, snapshot,
							 GEONN_VALUES(GEONN_INT4(cache->id)))->count;
}

void
geonn_last_run_create(const GeonnCache *cache)
{
	(void) run_for_cache(cache, "INSERT INTO $S.geonn_cache_last_run"
						 " VALUES ($1, false, ''::pg_catalog.text, 0, ''::pg_catalog.bytea, false, 0, 0)"
						 " ON CONFLICT (cache) DO NOTHING", NULL);
	noticed.target = InvalidOid;
}

/*
 * Delete a row of geonn_cache_last_run that is newer than the transaction's snapshot: it does not describe
 * the rows that this refresh is about to write.
 */
static void
delete_newer_row(const GeonnCache *cache)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());

	(void) run_for_cache(cache, "DELETE FROM $S.geonn_cache_last_run"
						 " WHERE cache OPERATOR(pg_catalog.=) $1", snapshot);
	UnregisterSnapshot(snapshot);
}

void
geonn_last_run_begin(const GeonnCache *cache)
{
	if (run_for_cache(cache, "SELECT FROM $S.geonn_cache_last_run"
					  " WHERE cache OPERATOR(pg_catalog.=) $1", NULL) > 0)
	{
		geonn_cache_announce_writer(cache);
		return;
	}
	if (IsolationUsesXactSnapshot())
	{
		delete_newer_row(cache);
		return;
	}
	geonn_cache_lock_table(cache, ShareLock);
	geonn_last_run_create(cache);
}

void
geonn_last_run_store(const GeonnCache *cache, const GeonnJoin *join, int64 rows, const GeonnLastRun *last_run)
{
	StoredSides sides = last_run->sides;
	bytea	   *stored = palloc(VARHDRSZ + sizeof(sides));
	bool		noticed;

	check_relations(cache, join, last_run);
	memcpy(sides.label, last_run->label, sizeof(sides.label));
	for (int side = 0; side < CACHE_SIDES; side++)
	{
		const GeonnTransform *transform = geonn_side_source(join, side)->transform;

		/* a side that was not read has the SRID of the last run */
		if (transform != NULL && geonn_transform_srid(transform) != 0)
			sides.srid[side] = geonn_transform_srid(transform);
	}
	memcpy(VARDATA(stored), &sides, sizeof(sides));
	SET_VARSIZE(stored, VARHDRSZ + sizeof(sides));
	(void) geonn_catalog_run(cache->schema,
							 "UPDATE $S.geonn_cache_last_run SET valid = true, signature = $2, rows = $3,"
							 " sides = $4, baselines = $5, wasted = $6, pause = $7"
							 " WHERE cache OPERATOR(pg_catalog.=) $1",
							 NULL, GEONN_VALUES(GEONN_INT4(cache->id),
												GEONN_TEXT(signature_of(cache, join, &noticed)),
												GEONN_INT8(rows),
												{BYTEAOID, false, PointerGetDatum(stored)},
												GEONN_BOOL(last_run->has_baselines),
												GEONN_INT4(last_run->wasted),
												GEONN_INT4(last_run->pause)));
}
