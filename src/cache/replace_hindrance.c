/*
 * replace_hindrance.c
 *		Why a refresh does not replace a cache's table.
 *
 * A replaced table has no history: no statement has changed its rows.  So where something depends
 * on such statements, a refresh with 'auto' updates rows instead.  For some of it, a replaced table
 * would be wrong: a constraint would be unchecked, or a column of the user's would be lost.  There
 * 'always' is an error.  In other cases something only fails to hear of the new rows: a trigger, a
 * rule, a subscriber.  There 'always' replaces, as its user has asked for.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "cache/changed.h"
#include "cache/replace.h"
#include "base/compat.h"

/* the table that a refresh may replace */
typedef struct ReplacedTable
{
	const GeonnCache *cache;
	const GeonnJoin *join;
	Relation	target;
} ReplacedTable;

/* ---- what would make a replaced table wrong ---- */

/*
 * With a snapshot older than the lock of the cache, rows may be older than those that another
 * refresh has written meanwhile.
 */
static const char *
old_snapshot(const ReplacedTable *replaced pg_attribute_unused())
{
	return IsolationUsesXactSnapshot() ? "the transaction is REPEATABLE READ or SERIALIZABLE" : NULL;
}

static const char *
own_use(const ReplacedTable *replaced)
{
	if (replaced->target->rd_refcnt > 1)
		return "this session is reading it, as by a cursor";
	if (AfterTriggerPendingOnRel(RelationGetRelid(replaced->target)))
		return "this transaction has triggers of it to fire";
	return NULL;
}

static const char *
kind_of_table(const ReplacedTable *replaced)
{
	Form_pg_class class = replaced->target->rd_rel;

	if (class->relkind != RELKIND_RELATION || class->relam != HEAP_TABLE_AM_OID)
		return "its access method is not heap";
	if (class->relispartition || has_superclass(RelationGetRelid(replaced->target)) ||
		find_inheritance_children(RelationGetRelid(replaced->target), NoLock) != NIL)
		return "it is part of an inheritance tree";
	if (class->relrowsecurity && class->relforcerowsecurity)
		return "row-level security is forced on it";
	return NULL;
}

static const char *
columns(const ReplacedTable *replaced)
{
	TupleDesc	expected = geonn_cache_row_type(replaced->join);
	TupleDesc	table = RelationGetDescr(replaced->target);
	AttrNumber	attributes[TARGET_COLUMNS];
	int			known = 0;

	geonn_target_attributes(replaced->cache->target, attributes);
	for (int i = 0; i < table->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(table, i);

		for (int j = 0; j < TARGET_COLUMNS && !column->attisdropped; j++)
		{
			Form_pg_attribute wanted = TupleDescAttr(expected, j);

			if (attributes[j] != column->attnum)
				continue;
			known++;
			if (column->atttypid != wanted->atttypid || column->atttypmod != wanted->atttypmod ||
				column->attcollation != wanted->attcollation || column->attgenerated != '\0')
				return psprintf("its column %s was altered", quote_identifier(NameStr(column->attname)));
			if (column->attnotnull && replaced->join->keep_unmatched &&
				(j == TARGET_REFERENCE_ID || j == TARGET_DISTANCE))
				return psprintf("its column %s is NOT NULL", quote_identifier(NameStr(column->attname)));
		}
		known += column->attisdropped;
		if (known <= i)
			return psprintf("it has another column, %s", quote_identifier(NameStr(column->attname)));
	}
	return NULL;
}

static bool
is_exclusion(Form_pg_index index)
{
	return index->indisexclusion;
}

static bool
is_unfinished(Form_pg_index index)
{
	return !index->indisvalid || !index->indisready || !index->indislive;
}

/*
 * The first index of a table that is so, or InvalidOid.
 */
static Oid
find_index(Relation table, bool (*is_so) (Form_pg_index index))
{
	List	   *list = RelationGetIndexList(table);
	ListCell   *cell;
	Oid			found = InvalidOid;

	foreach(cell, list)
	{
		HeapTuple	row = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));

		if (!HeapTupleIsValid(row))
			elog(ERROR, "cache lookup failed for index %u", lfirst_oid(cell));
		if (!OidIsValid(found) && is_so((Form_pg_index) GETSTRUCT(row)))
			found = lfirst_oid(cell);
		ReleaseSysCache(row);
	}
	list_free(list);
	return found;
}

static const char *
constraints(const ReplacedTable *replaced)
{
	Relation	target = replaced->target;
	TriggerDesc *triggers = target->trigdesc;

	if (RelationGetDescr(target)->constr != NULL && RelationGetDescr(target)->constr->num_check > 0)
		return "it has a CHECK constraint";
	if (OidIsValid(find_index(target, is_exclusion)))
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

/*
 * A command that builds an index CONCURRENTLY has locked the table less than its readers have, and may last:
 * the refresh cannot wait for it.
 */
static const char *
unfinished_indexes(const ReplacedTable *replaced)
{
	Oid			index = find_index(replaced->target, is_unfinished);

	return OidIsValid(index) ?
		psprintf("its index %s is not valid, or is being built", quote_identifier(get_rel_name(index))) : NULL;
}

/* ---- what would not hear of the new rows ---- */

/*
 * Triggers AFTER TRUNCATE do not fire for updates, either.
 */
static const char *
triggers(const ReplacedTable *replaced)
{
	TriggerDesc *triggers = replaced->target->trigdesc;
	Oid			own = geonn_changes_function(replaced->cache->schema);

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		Trigger    *trigger = &triggers->triggers[i];

		if (trigger->tgfoid != own && !trigger->tgisinternal &&
			trigger->tgenabled != TRIGGER_DISABLED &&
			(trigger->tgtype & (TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE)) != 0)
			return psprintf("its trigger %s would not fire", quote_identifier(trigger->tgname));
	}
	return replaced->target->rd_rules != NULL ? "its rules would not apply" : NULL;
}

static const char *
publications(const ReplacedTable *replaced)
{
	List	   *list;

	if (!is_publishable_relation(replaced->target))
		return NULL;
	list = list_concat(geonn_publications_of(RelationGetRelid(replaced->target)),
					   GetSchemaPublications(RelationGetNamespace(replaced->target)));
	return list == NIL ? NULL :
		psprintf("publication %s would not send its rows",
				 quote_identifier(get_publication_name(linitial_oid(list), false)));
}

/*
 * What plugins other than PostgreSQL's own send is not known here: they may send all tables.
 */
static const char *
slots(const ReplacedTable *replaced pg_attribute_unused())
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

/* ---- all of it ---- */

GeonnHindrance
geonn_replace_hindrance(const GeonnCache *cache, const GeonnJoin *join, Relation target, bool always)
{
	static const char remove[] = "Remove what hinders it";
	static const struct
	{
		const char *(*find) (const ReplacedTable *replaced);
		bool		wrong;		/* a replaced table would be wrong */
		const char *remedy;
	}			hindrances[] = {
		{old_snapshot, true, "Call geonn_refresh in a transaction that is READ COMMITTED"},
		{own_use, true, "Call geonn_refresh while the session does nothing else with the table"},
		{kind_of_table, true, remove},
		{columns, true, remove},
		{constraints, true, remove},
		{unfinished_indexes, true, "Wait until the index is built, drop it if that has failed"},
		{triggers, false, remove},
		{publications, false, remove},
		{slots, false, remove}
	};
	ReplacedTable replaced = {.cache = cache,.join = join,.target = target};

	for (int i = 0; i < (int) lengthof(hindrances); i++)
	{
		const char *cause = always && !hindrances[i].wrong ? NULL : hindrances[i].find(&replaced);

		if (cause != NULL)
			return (GeonnHindrance) {cause, hindrances[i].remedy};
	}
	return (GeonnHindrance) {0};
}
