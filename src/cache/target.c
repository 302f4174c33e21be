/*
 * target.c
 *		The table of a cache: what it must have for a refresh, what keeps a refresh from replacing it, and
 *		the differences that are written to its rows.
 *
 * Refreshes write only the rows that differ, by ordinary statements: so readers see the
 * former rows until the end, triggers, publications and foreign keys work as usual, and the WAL has
 * the differences alone.  Where most rows differ, a new table is filled instead (cache/replace.c).
 *
 * Differences are collected first and written last.  They wait in a tuplestore, which spills to
 * disk, and one statement for each kind reads them from there as from a table.  The statements
 * leave out tables that inherit from this one: those are not the refresh's, and their rows may have
 * the same TIDs.
 *
 * A replaced table has no history: no statement has changed its rows.  So where something depends
 * on such statements, a refresh with 'auto' updates rows instead.  For some of it, a replaced table
 * would be wrong: a constraint would be unchecked, or a column of the user's would be lost.  There
 * 'always' is an error.  In other cases something only fails to hear of the new rows: a trigger, a
 * rule, a subscriber.  There 'always' replaces, as its user has asked for.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/queryenvironment.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "cache/replace.h"
#include "cache/target.h"
#include "base/compat.h"
#include "points/query.h"

/* ---- what a refresh needs ---- */

/*
 * Raise an error unless the cache's table is a plain table without children.  A row that is inserted into a table with
 * children may go to one of them, as in a hypertable; a refresh reads and writes one table.
 */
static void
check_plain(const GeonnCache *cache)
{
	char	   *name = geonn_cache_target_name(cache);
	List	   *children = has_subclass(cache->target) ?
		find_inheritance_children(cache->target, NoLock) : NIL;

	if (get_rel_relkind(cache->target) == RELKIND_RELATION && children == NIL)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("%s, the table of cache \"%s\", is no longer a plain table", name, cache->name),
			 children == NIL ? 0 :
			 errdetail("Table %s inherits from it, as the chunks of a hypertable do.",
					   geonn_relation_name(linitial_oid(children))),
			 errhint("Let the cache have a plain table: run SELECT geonn_cache_drop(%s, keep_table => true), which leaves all rows where they are, and create the cache again with another target.",
					 quote_literal_cstr(cache->name))));
}

void
geonn_target_check(const GeonnCache *cache, TupleDesc row_type)
{
	Bitmapset  *key = NULL;
	Oid			constraint;

	check_plain(cache);
	for (int i = 0; i < row_type->natts; i++)
	{
		Form_pg_attribute expected = TupleDescAttr(row_type, i);
		AttrNumber	number = get_attnum(cache->target, NameStr(expected->attname));
		Oid			type = number == InvalidAttrNumber ? InvalidOid :
			get_atttype(cache->target, number);

		if (type != expected->atttypid)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("the table of cache \"%s\" has no column %s of type %s", cache->name,
							NameStr(expected->attname), format_type_be(expected->atttypid)),
					 errdetail("After the cache was made, the table was altered, or ids got another type."),
					 errhint("Drop the cache with geonn_cache_drop, and create it again.")));
		if (geonn_target_is_key(row_type, i))
			key = bms_add_member(key, number - FirstLowInvalidHeapAttributeNumber);
	}
	if (!bms_equal(get_primary_key_attnos(cache->target, false, &constraint), key))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the table of cache \"%s\" has no primary key %s", cache->name, geonn_target_key(row_type)),
				 errhint("Run ALTER TABLE %s ADD PRIMARY KEY %s.",
						 geonn_cache_target_name(cache), geonn_target_key(row_type))));
}

/* ---- what would make a replaced table wrong ---- */

/*
 * A hindrance: a snapshot that was taken before the cache was locked may give older rows than another
 * refresh has written since.
 */
static const char *
old_snapshot(const GeonnReplacement *replacement pg_attribute_unused())
{
	return IsolationUsesXactSnapshot() ? "the transaction is REPEATABLE READ or SERIALIZABLE" : NULL;
}

static const char *
own_use(const GeonnReplacement *replacement)
{
	if (replacement->target->rd_refcnt > 1)
		return "this session is reading it, as by a cursor";
	if (AfterTriggerPendingOnRel(RelationGetRelid(replacement->target)))
		return "this transaction has triggers of it to fire";
	return NULL;
}

static const char *
kind_of_table(const GeonnReplacement *replacement)
{
	Form_pg_class class = replacement->target->rd_rel;

	if (class->relkind != RELKIND_RELATION || class->relam != HEAP_TABLE_AM_OID)
		return "its access method is not heap";
	if (class->relispartition || has_superclass(RelationGetRelid(replacement->target)) ||
		find_inheritance_children(RelationGetRelid(replacement->target), NoLock) != NIL)
		return "it is part of an inheritance tree";
	if (class->relrowsecurity && class->relforcerowsecurity)
		return "row-level security is forced on it";
	return NULL;
}

/* Return whether a search may find NULLs for a column of the target: of what is unmatched, or noise. */
static bool
may_be_null(const GeonnJoin *join, int column)
{
	if (join->question.min_points > 0)
		return column == TARGET_CLUSTER;
	return join->keep_unmatched && (column == TARGET_REFERENCE_ID || column == TARGET_DISTANCE);
}

static const char *
columns(const GeonnReplacement *replacement)
{
	TupleDesc	expected = geonn_cache_row_type(replacement->join);
	TupleDesc	table = RelationGetDescr(replacement->target);
	AttrNumber	attributes[TARGET_COLUMNS_MAX];
	int			known = 0;

	geonn_target_attributes(replacement->cache->target, expected, attributes);
	for (int i = 0; i < table->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(table, i);

		for (int j = 0; j < expected->natts && !column->attisdropped; j++)
		{
			Form_pg_attribute wanted = TupleDescAttr(expected, j);

			if (attributes[j] != column->attnum)
				continue;
			known++;
			if (column->atttypid != wanted->atttypid || column->atttypmod != wanted->atttypmod ||
				column->attcollation != wanted->attcollation || column->attgenerated != '\0')
				return psprintf("its column %s was altered", quote_identifier(NameStr(column->attname)));
			if (column->attnotnull && may_be_null(replacement->join, j))
				return psprintf("its column %s is NOT NULL", quote_identifier(NameStr(column->attname)));
		}
		known += column->attisdropped;
		if (known <= i)
			return psprintf("it has another column, %s", quote_identifier(NameStr(column->attname)));
	}
	return NULL;
}

/*
 * Return the table's first unfinished index, or else the index of its first exclusion constraint;
 * InvalidOid: neither exists.
 */
static Oid
find_index(Relation table, bool unfinished)
{
	List	   *list = RelationGetIndexList(table);
	ListCell   *cell;
	Oid			found = InvalidOid;

	foreach(cell, list)
	{
		HeapTuple	row = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));
		Form_pg_index index;

		if (!HeapTupleIsValid(row))
			elog(ERROR, "cache lookup failed for index %u", lfirst_oid(cell));
		index = (Form_pg_index) GETSTRUCT(row);
		if (!OidIsValid(found) &&
			(unfinished ? !index->indisvalid || !index->indisready || !index->indislive :
			 index->indisexclusion))
			found = lfirst_oid(cell);
		ReleaseSysCache(row);
	}
	list_free(list);
	return found;
}

static const char *
constraints(const GeonnReplacement *replacement)
{
	Relation	target = replacement->target;
	TriggerDesc *triggers = target->trigdesc;

	if (RelationGetDescr(target)->constr != NULL && RelationGetDescr(target)->constr->num_check > 0)
		return "it has a CHECK constraint";
	if (OidIsValid(find_index(target, false)))
		return "it has an exclusion constraint";
	if (RelationGetFKeyList(target) != NIL)
		return "it has a foreign key";
	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		if (RI_FKey_trigger_type(triggers->triggers[i].tgfoid) != RI_TRIGGER_NONE)
			return "a foreign key refers to it";
	}
	return NULL;
}

/* A hindrance: an index that is being built CONCURRENTLY may take long, and the refresh cannot wait for it. */
static const char *
unfinished_indexes(const GeonnReplacement *replacement)
{
	Oid			index = find_index(replacement->target, true);

	return OidIsValid(index) ?
		psprintf("its index %s is not valid, or is being built", quote_identifier(get_rel_name(index))) : NULL;
}

/* A hindrance: make_new_heap() names the new table after the OID of the old one, and that name may be taken. */
static const char *
name_taken(const GeonnReplacement *replacement)
{
	char	   *name = psprintf("pg_temp_%u", RelationGetRelid(replacement->target));
	Oid			schema = RelationGetNamespace(replacement->target);

	if (replacement->heap != NULL ||
		(!OidIsValid(get_relname_relid(name, schema)) &&
		 !SearchSysCacheExists2(TYPENAMENSP, CStringGetDatum(name), ObjectIdGetDatum(schema))))
		return NULL;
	return psprintf("another object has the name %s", name);
}

/* ---- what new files of the table would bypass, or keep waiting (readers) ---- */

/* A hindrance: triggers.  Those for TRUNCATE are none, because updates of the rows would not fire them. */
static const char *
triggers(const GeonnReplacement *replacement)
{
	TriggerDesc *triggers = replacement->target->trigdesc;
	Oid			own = geonn_changes_function(replacement->cache->schema);

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		Trigger    *trigger = &triggers->triggers[i];

		if (trigger->tgfoid != own && !trigger->tgisinternal &&
			trigger->tgenabled != TRIGGER_DISABLED &&
			(trigger->tgtype & (TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE)) != 0)
			return psprintf("its trigger %s would not fire", quote_identifier(trigger->tgname));
	}
	return replacement->target->rd_rules != NULL ? "its rules would not apply" : NULL;
}

static const char *
publications(const GeonnReplacement *replacement)
{
	List	   *list;

	if (!is_publishable_relation(replacement->target))
		return NULL;
	list = list_concat(geonn_publications_of(RelationGetRelid(replacement->target)),
					   GetSchemaPublications(RelationGetNamespace(replacement->target)));
	return list == NIL ? NULL :
		psprintf("publication %s would not send its rows",
				 quote_identifier(get_publication_name(linitial_oid(list), false)));
}

/* A hindrance: logical slots with a plugin other than pgoutput, which may send any table's changes. */
static const char *
slots(const GeonnReplacement *replacement pg_attribute_unused())
{
	NameData	name = {0};

	if (!XLogLogicalInfoActive())
		return NULL;
	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];

		if (slot->in_use && slot->data.database == MyDatabaseId &&
			strcmp(NameStr(slot->data.plugin), "pgoutput") != 0)
			name = slot->data.name;
	}
	LWLockRelease(ReplicationSlotControlLock);
	return NameStr(name)[0] == '\0' ? NULL :
		psprintf("replication slot %s would not send its rows", quote_identifier(NameStr(name)));
}

static const char *
other_readers(const GeonnReplacement *replacement)
{
	return replacement->alone ? NULL : "readers would wait for the transaction of which the refresh is a part";
}

/* ---- all hindrances ---- */

/* A test for one hindrance: a reason why a refresh does not replace the table. */
typedef struct Hindrance
{
	const char *(*find) (const GeonnReplacement *replacement);	/* a clause like "it has a foreign key" */
	bool		wrong;			/* a replaced table would be wrong: the hindrance holds even for 'always' */
	const char *remedy;			/* the beginning of the hint: what the user can do */
} Hindrance;

static const char remove_it[] = "Remove what hinders it";
static const Hindrance hindrances[] = {
	{old_snapshot, true, "Call geonn_refresh in a transaction that is READ COMMITTED"},
	{own_use, true, "Call geonn_refresh while the session does nothing else with the table"},
	{kind_of_table, true, remove_it},
	{columns, true, remove_it},
	{constraints, true, remove_it},
	{unfinished_indexes, true, "Wait until the index is built, drop it if that has failed"},
	{triggers, false, remove_it},
	{publications, false, remove_it},
	{slots, false, remove_it},
	{name_taken, true, "Rename that object"},
	{other_readers, false, remove_it}
};

const char *
geonn_find_hindrance(const GeonnReplacement *replacement, const char **remedy)
{
	for (int i = 0; i < (int) lengthof(hindrances); i++)
	{
		const Hindrance *hindrance = &hindrances[i];
		const char *cause = NULL;

		if (hindrance->wrong || replacement->policy != GEONN_REPLACE_ALWAYS)
			cause = hindrance->find(replacement);
		*remedy = hindrance->remedy;
		if (cause != NULL)
			return cause;
	}
	return NULL;
}

/* ---- differences ---- */

struct GeonnDifference
{
	const GeonnCache *cache;
	TupleDesc	type;			/* geonn_target_type's */
	Tuplestorestate *stores[ROW_CHANGES];
	int64		counts[ROW_CHANGES];
	MemoryContext context;
};

TupleDesc
geonn_target_type(TupleDesc row_type)
{
	TupleDesc	type = CreateTemplateTupleDesc(row_type->natts + 1);

	for (int i = 0; i < row_type->natts; i++)
		TupleDescCopyEntry(type, (AttrNumber) (i + 1), row_type, (AttrNumber) (i + 1));
	TupleDescInitEntry(type, (AttrNumber) (row_type->natts + 1), "tid", TIDOID, -1, 0);
	TupleDescFinalize(type);
	return type;
}

GeonnDifference *
geonn_difference_create(const GeonnCache *cache, TupleDesc row_type)
{
	GeonnDifference *difference = palloc0(sizeof(GeonnDifference));

	difference->cache = cache;
	difference->type = geonn_target_type(row_type);
	for (int i = 0; i < ROW_CHANGES; i++)
		difference->stores[i] = tuplestore_begin_heap(false, false,
													  maintenance_work_mem / DIFFERENCE_SHARES);
	difference->context = CurrentMemoryContext;
	return difference;
}

void
geonn_difference_add(GeonnDifference *difference, RowChange change, ItemPointer tid,
					 const Datum *values, const bool *nulls)
{
	MemoryContext former = MemoryContextSwitchTo(difference->context);
	int			columns = difference->type->natts - 1;
	Datum		row[TARGET_COLUMNS_MAX + 1] = {0};
	bool		row_nulls[TARGET_COLUMNS_MAX + 1];

	Assert((tid == NULL) == (change == ROW_INSERTED) && columns <= TARGET_COLUMNS_MAX);
	row[columns] = PointerGetDatum(tid);
	memset(row_nulls, true, sizeof(row_nulls));
	row_nulls[columns] = tid == NULL;
	if (change != ROW_DELETED)
	{
		memcpy(row, values, columns * sizeof(Datum));
		memcpy(row_nulls, nulls, columns * sizeof(bool));
	}
	tuplestore_putvalues(difference->stores[change], difference->type, row, row_nulls);
	difference->counts[change]++;
	MemoryContextSwitchTo(former);
}

/* ---- writing ---- */

/* List the difference's columns except tid, each as its name, or (sets) as "name = n.name". */
static char *
list_columns(const GeonnDifference *difference, const char *prefix, bool sets)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < difference->type->natts - 1; i++)
	{
		const char *name = NameStr(TupleDescAttr(difference->type, i)->attname);

		appendStringInfoString(&text, i > 0 ? ", " : "");
		if (sets)
			appendStringInfo(&text, "%s = ", name);
		appendStringInfo(&text, "%s%s", prefix, name);
	}
	return text.data;
}

/*
 * Return the statement that writes one kind of difference.  A TID scan that has waited for a transaction that changed the
 * row does not check the TID again: the second condition does, and skips the row.
 */
static char *
statement_of(const GeonnDifference *difference, RowChange change)
{
	static const char by_tid[] = "WHERE t.ctid OPERATOR(pg_catalog.=) n.tid"
		" AND (t.ctid OPERATOR(pg_catalog.=) n.tid) IS TRUE";
	const char *table = geonn_cache_target_name(difference->cache);

	switch (change)
	{
		case ROW_DELETED:
			return psprintf("DELETE FROM ONLY %s AS t USING difference AS n %s", table, by_tid);
		case ROW_UPDATED:
			return psprintf("UPDATE ONLY %s AS t SET %s FROM difference AS n %s", table,
							list_columns(difference, "n.", true), by_tid);
		case ROW_INSERTED:
			return psprintf("INSERT INTO %s (%s) SELECT %s FROM difference AS n", table,
							list_columns(difference, "", false), list_columns(difference, "n.", false));
	}
	pg_unreachable();
}

/*
 * Plan the statement so that it fetches the table's rows by TID, and execute it: with the planner's costs,
 * made for disks, it would read the whole table.  Statements of the table's triggers are planned as usual.
 */
static void
execute_by_tid(GeonnOwnStatement *own)
{
	SPIPlanPtr	prepared = SPI_prepare(own->statement, 0, NULL);
	int			level = NewGUCNestLevel();
	int			result;

	if (prepared == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", own->statement, SPI_result_code_string(SPI_result));
	geonn_plan_by_index();
	own->plan = SPI_plan_get_cached_plan(prepared);
	AtEOXact_GUC(true, level);
	result = SPI_execute_plan(prepared, NULL, NULL, false, 0);
	if (result < 0)
		elog(ERROR, "could not write: %s", SPI_result_code_string(result));
	ReleaseCachedPlan(own->plan, NULL);
}

__attribute__((noreturn))
static void
raise_changed_meanwhile(const GeonnCache *cache)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("another session changed the table of cache \"%s\" during the refresh",
					cache->name),
			 errhint("The next refresh compares all of its rows.")));
}

/* Return whether triggers or rules can change which rows are written. */
static bool
is_rewritten(const GeonnCache *cache)
{
	Relation	table = table_open(cache->target, AccessShareLock);
	const TriggerDesc *triggers = table->trigdesc;
	bool		rewritten = table->rd_rules != NULL ||
		(triggers != NULL && (triggers->trig_insert_before_row ||
							  triggers->trig_update_before_row ||
							  triggers->trig_delete_before_row));

	table_close(table, NoLock);
	return rewritten;
}

/*
 * Raise the error of a statement that did not write each of its rows.  Policies have hidden no rows from the refresh,
 * which has read all of them as the owner.
 */
static void
raise_unwritten(const GeonnDifference *difference, RowChange change, int64 changed)
{
	const GeonnCache *cache = difference->cache;
	bool		has_policies = check_enable_rls(cache->target, InvalidOid, true) == RLS_ENABLED;

	if (!has_policies && !is_rewritten(cache))
		raise_changed_meanwhile(cache);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the table of cache \"%s\" did not take all rows of the refresh", cache->name),
			 has_policies ?
			 errdetail("Of %lld rows, the row-level security that is forced on the table let %lld be written.",
					   (long long) difference->counts[change], (long long) changed) :
			 errdetail("Of %lld rows, a trigger or rule of the table let %lld be written.",
					   (long long) difference->counts[change], (long long) changed),
			 has_policies ?
			 errhint("Run ALTER TABLE %s NO FORCE ROW LEVEL SECURITY.", geonn_cache_target_name(cache)) :
			 errhint("Drop that trigger or rule, or let it pass on each row.")));
}

/*
 * Return the name of the table's primary key; NULL if a trigger or rule may cause a violation of the key.  The refresh
 * writes each key once, so any other violation means that another session has inserted rows since the snapshot.
 */
static char *
key_of_refresh(const GeonnCache *cache)
{
	Relation	table = table_open(cache->target, AccessShareLock);
	char	   *name;

	list_free(RelationGetIndexList(table));
	name = get_rel_name(table->rd_pkindex);
	table_close(table, NoLock);
	return is_rewritten(cache) ? NULL : name;
}

static bool
is_violation_of(const char *key)
{
	MemoryContext former = MemoryContextSwitchTo(TopTransactionContext);
	ErrorData  *error = CopyErrorData();

	MemoryContextSwitchTo(former);
	return key != NULL && error->sqlerrcode == ERRCODE_UNIQUE_VIOLATION &&
		error->constraint_name != NULL && strcmp(error->constraint_name, key) == 0;
}

/* Execute a statement that writes the cache's table.  key is the result of key_of_refresh(). */
static void
execute_on_target(const GeonnCache *cache, const char *statement, const char *key)
{
	GeonnOwnStatement own = {
		.statement = statement,
		.target = cache->target,
		.triggers = geonn_changes_function(cache->schema)
	};
	const GeonnOwnStatement *former = geonn_set_own_statement(&own);

	PG_TRY();
	{
		execute_by_tid(&own);
	}
	PG_CATCH();
	{
		(void) geonn_set_own_statement(former);
		if (!is_violation_of(key))
			PG_RE_THROW();
		FlushErrorState();
		raise_changed_meanwhile(cache);
	}
	PG_END_TRY();
	(void) geonn_set_own_statement(former);
}

/*
 * Write the differences of one kind; the statement reads them as a relation.  The statement skips rows
 * that have changed since they were read.
 */
static void
write_rows(const GeonnDifference *difference, RowChange change, int64 *changed)
{
	EphemeralNamedRelationData relation = {
		.md = {
			.name = "difference",
			.tupdesc = difference->type,
			.enrtype = ENR_NAMED_TUPLESTORE,
			.enrtuples = (double) difference->counts[change]
		},
		.reldata = difference->stores[change]
	};

	*changed = 0;
	if (difference->counts[change] == 0)
		return;
	SPI_register_relation(&relation);
	execute_on_target(difference->cache,
					  statement_of(difference, change),
					  key_of_refresh(difference->cache));
	SPI_unregister_relation(relation.md.name);
	*changed = (int64) SPI_processed;
	if (*changed != difference->counts[change])
		raise_unwritten(difference, change, *changed);
}

void
geonn_difference_write(GeonnDifference *difference, GeonnRunResult *result)
{
	SPI_connect();
	write_rows(difference, ROW_DELETED, &result->deleted);
	write_rows(difference, ROW_UPDATED, &result->updated);
	write_rows(difference, ROW_INSERTED, &result->inserted);
	SPI_finish();
	for (int i = 0; i < ROW_CHANGES; i++)
		tuplestore_end(difference->stores[i]);
}
