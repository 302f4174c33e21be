/*
 * replace.c
 *		A new table's files take the place of those of a cache's table.
 *
 * Where most rows differ, updating them costs several times as much as writing all of them anew:
 * each update leaves a dead row and a new entry in each index.  So such a refresh makes a new table
 * beside the cache's, as REFRESH MATERIALIZED VIEW does, fills it, builds its indexes, and swaps
 * the files of both in the end: of the heaps and their indexes, and the TOAST tables.  The cache's
 * table keeps its OID, and with it all that belongs to it or depends on it.  The transaction drops
 * the new table, which then has the former files; if it aborts, the new files go.
 *
 * Readers go on until the swap, which has an exclusive lock.  A process that waits for that lock in
 * the queue makes all later readers wait behind it.  So the refresh does not wait: it asks for all
 * locks at once, again and again, for a tenth of a second.  Then it gives up, and updates rows.
 * After it has the locks, only rows of catalogs and of the extension's tables are written until the
 * commit; what the WAL has of the new files is flushed before.  (With wal_level = minimal the
 * commit writes the files themselves.)
 *
 * A refresh does not look before it fills the new table whether it could have the locks now.  If it
 * cannot have them in the end, the new table was in vain; but that is about a fifth of what the update
 * costs that follows.  (500,000 rows, two indexes: replaced in 1.9 s, updated in 8.7 s, one after the
 * other in 9.7 s.)  To update rows because of a reader that would have gone in the meantime costs four
 * times as much as the new table.
 *
 * Rows are written frozen, as REFRESH MATERIALIZED VIEW writes them: an older snapshot that has not
 * read the table before sees the new rows, not none.
 *
 * Code of the owner runs between the first and the last step: of views, and of expressions in
 * indexes.  Both tables stay open meanwhile, so that PostgreSQL refuses any command of that code
 * that alters or drops one of them.  Of other sessions, those that alter columns wait for the lock
 * of this one, and the others are noticed: the refresh compares the table and its indexes with what
 * they were, and looks for hindrances (cache/target.c) again, after it has locked all.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/toast_internals.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "cache/replace.h"
#include "cache/full_search.h"
#include "base/attempt.h"
#include "base/compat.h"
#include "base/wait_event.h"

/* A refresh tries for at most this long to get the locks, and waits this long between two attempts; milliseconds. */
#define PATIENCE	100
#define PAUSE		1

/* Add to the run's reason what was done to the table (`done`), and why (`cause`; NULL: say no more). */
static void
add_reason(GeonnRunResult *result, const char *done, const char *cause)
{
	/* The log reads the reason after the refresh's memory has been freed. */
	MemoryContext former = MemoryContextSwitchTo(CurTransactionContext);

	result->reason = psprintf("%s; the table was %s%s%s", result->reason, done,
							  cause != NULL ? ", as " : "", cause != NULL ? cause : "");
	MemoryContextSwitchTo(former);
}

/* ---- building ---- */

static Oid
file_of(Oid relation)
{
	return GetSysCacheOid1(RELOID, Anum_pg_class_relfilenode, ObjectIdGetDatum(relation));
}

/* Build an index like each of the target's indexes. */
static void
build_indexes(void *state)
{
	GeonnReplacement *replacement = state;
	Relation	heap = replacement->heap;
	List	   *list;
	ListCell   *cell;

	/* Let the list include indexes that were made during the search. */
	AcceptInvalidationMessages();
	list = RelationGetIndexList(replacement->target);
	replacement->indexes = palloc(list_length(list) * sizeof(IndexPair));
	foreach(cell, list)
	{
		IndexPair  *pair = &replacement->indexes[replacement->count++];
		Oid			space = get_rel_tablespace(lfirst_oid(cell));
		char	   *name = ChooseRelationName(psprintf("pg_temp_%u", lfirst_oid(cell)), NULL, "index",
											  RelationGetNamespace(heap), false);
		Relation	index;

		CHECK_FOR_INTERRUPTS();
		pair->former = lfirst_oid(cell);
		pair->file = file_of(pair->former);
		pair->made = geonn_index_create_copy(heap, pair->former, space, name);
		index = index_open(pair->made, AccessExclusiveLock);
		geonn_index_build(heap, index);
		index_close(index, NoLock);
	}
	CommandCounterIncrement();
}

/* Close both tables, and drop the new table. */
static void
drop_heap(GeonnReplacement *replacement)
{
	ObjectAddress address;

	ObjectAddressSet(address, RelationRelationId, RelationGetRelid(replacement->heap));
	table_close(replacement->heap, NoLock);
	table_close(replacement->target, NoLock);
	replacement->heap = NULL;
	CommandCounterIncrement();
	performDeletion(&address, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
}

/*
 * Build the new table.  Returns false if a unique index fails: an update of the rows then raises the error
 * that names the ids or the constraint.
 */
static bool
build(GeonnReplacement *replacement)
{
	Relation	target = replacement->target;
	Oid			heap = make_new_heap(RelationGetRelid(target), target->rd_rel->reltablespace,
									 target->rd_rel->relam, target->rd_rel->relpersistence,
									 AccessShareLock);
	ErrorData  *error;

	Assert(replacement->heap == NULL && heap != RelationGetRelid(target));
	replacement->file = file_of(RelationGetRelid(target));
	replacement->heap = table_open(heap, AccessExclusiveLock);
	replacement->rows = (int64) geonn_full_fill(replacement->cache, replacement->join,
												  replacement->baselines, replacement->heap,
												  TABLE_INSERT_FROZEN);
	CommandCounterIncrement();
	error = geonn_attempt(build_indexes, replacement);
	if (error == NULL)
		return true;
	if (error->sqlerrcode != ERRCODE_UNIQUE_VIOLATION)
		ReThrowError(error);
	return false;
}

GeonnReplacement *
geonn_replacement_build(const GeonnCache *cache, const GeonnJoin *join, BaselineBuild *baselines,
						bool most_differ, bool alone, GeonnRunResult *result)
{
	GeonnReplacement *replacement = palloc0(sizeof(GeonnReplacement));
	const char *remedy;
	const char *cause;

	replacement->cache = cache;
	replacement->join = join;
	replacement->baselines = baselines;
	replacement->policy = geonn_kept_arguments(cache)->replace;
	replacement->alone = alone;
	if (replacement->policy == GEONN_REPLACE_NEVER ||
		(replacement->policy == GEONN_REPLACE_AUTO && !most_differ))
		return NULL;
	replacement->target = table_open(cache->target, AccessShareLock);
	cause = geonn_find_hindrance(replacement, &remedy);
	if (cause != NULL && replacement->policy == GEONN_REPLACE_ALWAYS)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the table of cache \"%s\" cannot be replaced: %s", cache->name, cause),
				 errdetail("The cache has replace => 'always'."),
				 errhint("%s, or change the cache by geonn_cache_alter to '{\"replace\": \"auto\"}'.",
						 remedy)));
	if (cause != NULL)
	{
		table_close(replacement->target, NoLock);
		add_reason(result, "updated", cause);
		return NULL;
	}
	if (!build(replacement))
	{
		drop_heap(replacement);
		add_reason(result, "updated", "its new rows were not unique");
	}
	return replacement;
}

/* ---- locking ---- */

/*
 * Return the relations whose files are swapped or dropped with those of the target: its indexes,
 * and its TOAST table with the index of that.
 */
static List *
companions(const GeonnReplacement *replacement)
{
	Oid			toast = replacement->target->rd_rel->reltoastrelid;
	List	   *relations = NIL;

	for (int i = 0; i < replacement->count; i++)
		relations = lappend_oid(relations, replacement->indexes[i].former);
	if (OidIsValid(toast))
	{
		relations = lappend_oid(relations, toast);
		relations = lappend_oid(relations, toast_get_valid_index(toast, AccessShareLock));
	}
	return relations;
}

static bool
lock_at_once(List *relations, LOCKMODE mode)
{
	ListCell   *cell;

	foreach(cell, relations)
	{
		if (!ConditionalLockRelationOid(lfirst_oid(cell), mode))
			return false;
	}
	return true;
}

/* Find a change since the new table was made that forbids the swap.  Returns NULL if there was none. */
static const char *
change_since(const GeonnReplacement *replacement)
{
	Relation	target = replacement->target;
	List	   *list = RelationGetIndexList(target);
	const char *remedy;
	bool		same = file_of(RelationGetRelid(target)) == replacement->file &&
		list_length(list) == replacement->count;

	for (int i = 0; i < replacement->count && same; i++)
	{
		const IndexPair *pair = &replacement->indexes[i];

		same = list_member_oid(list, pair->former) && file_of(pair->former) == pair->file;
	}
	return same ? geonn_find_hindrance(replacement, &remedy) :
		"another session altered it or its indexes";
}

/*
 * Lock all relations of the swap, if no other session holds a lock on any.  Returns the reason why the table is not
 * replaced, or NULL.
 *
 * A standby replays ACCESS EXCLUSIVE locks until the (sub)transaction ends.  So a subtransaction asks for the locks, and
 * is rolled back unless it gets all.  It first locks `relations` in a weaker mode, which a standby does not replay.
 */
static const char *
lock_all(const GeonnReplacement *replacement, List *relations, bool *held)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	const char *change = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	*held = !lock_at_once(relations, ExclusiveLock) ||
		!ConditionalLockRelationOid(RelationGetRelid(replacement->target), AccessExclusiveLock) ||
		!lock_at_once(relations, AccessExclusiveLock);
	if (!*held)
		change = change_since(replacement);
	if (*held || change != NULL)
		RollbackAndReleaseCurrentSubTransaction();
	else
		ReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return *held ? "other sessions held it" : change;
}

/* Try lock_all() again and again until PATIENCE ends.  Returns its last result. */
static const char *
lock_patiently(const GeonnReplacement *replacement)
{
	List	   *relations = companions(replacement);
	instr_time	start;
	instr_time	now;

	INSTR_TIME_SET_CURRENT(start);
	for (;;)
	{
		bool		held;
		const char *cause;

		CHECK_FOR_INTERRUPTS();
		cause = lock_all(replacement, relations, &held);
		if (!held)
			return cause;
		INSTR_TIME_SET_CURRENT(now);
		INSTR_TIME_SUBTRACT(now, start);
		if (INSTR_TIME_GET_MILLISEC(now) >= PATIENCE)
			return cause;
		geonn_pause(GEONN_WAIT_SWAP, PAUSE);
	}
}

/* ---- swapping ---- */

static Form_pg_class
class_of(HeapTuple row)
{
	return (Form_pg_class) GETSTRUCT(row);
}

static HeapTuple
copy_class(Oid relation)
{
	HeapTuple	row = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(relation));

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for relation %u", relation);
	return row;
}

/* Give a relation the files of another relation, with their statistics. */
static void
take_files(Form_pg_class class, const FormData_pg_class *from)
{
	class->relfilenode = from->relfilenode;
	class->reltablespace = from->reltablespace;
	class->reltoastrelid = from->reltoastrelid;
	class->relpages = from->relpages;
	class->reltuples = from->reltuples;
	class->relallvisible = from->relallvisible;
	geonn_set_all_frozen(class, geonn_all_frozen(from));
	class->relfrozenxid = from->relfrozenxid;
	class->relminmxid = from->relminmxid;
}

/*
 * Tell the relation cache in which subtransaction each relation got its files: `kept` in this one; `other`
 * takes over the entry of `kept`.
 */
static void
note_files(Oid kept, Oid other)
{
	Relation	kept_relation = relation_open(kept, NoLock);
	Relation	other_relation = relation_open(other, NoLock);

	other_relation->rd_createSubid = kept_relation->rd_createSubid;
	other_relation->rd_newRelfilelocatorSubid = kept_relation->rd_newRelfilelocatorSubid;
	other_relation->rd_firstRelfilelocatorSubid = kept_relation->rd_firstRelfilelocatorSubid;
	RelationAssumeNewRelfilelocator(kept_relation);
	relation_close(kept_relation, NoLock);
	relation_close(other_relation, NoLock);
}

static void
swap_files(Relation classes, Oid kept, Oid other)
{
	HeapTuple	kept_row = copy_class(kept);
	HeapTuple	other_row = copy_class(other);
	FormData_pg_class former = {0};

	memcpy(&former, class_of(kept_row), CLASS_TUPLE_SIZE);
	take_files(class_of(kept_row), class_of(other_row));
	take_files(class_of(other_row), &former);
	CatalogTupleUpdate(classes, &kept_row->t_self, kept_row);
	CatalogTupleUpdate(classes, &other_row->t_self, other_row);
	/* Tell other extensions of the change, as CLUSTER does. */
	InvokeObjectPostAlterHookArg(RelationRelationId, kept, 0, InvalidOid, true);
	InvokeObjectPostAlterHookArg(RelationRelationId, other, 0, InvalidOid, true);
	note_files(kept, other);
	heap_freetuple(kept_row);
	heap_freetuple(other_row);
	geonn_close_files(kept);
	geonn_close_files(other);
}

/* Make a TOAST table depend on the table that has it now. */
static void
give_toast(Oid toast, Oid table)
{
	ObjectAddress dependent;
	ObjectAddress owner;

	if (!OidIsValid(toast))
		return;
	ObjectAddressSet(dependent, RelationRelationId, toast);
	ObjectAddressSet(owner, RelationRelationId, table);
	(void) deleteDependencyRecordsFor(RelationRelationId, toast, false);
	recordDependencyOn(&dependent, &owner, DEPENDENCY_INTERNAL);
}

/* Rename a TOAST table: its name has the OID of its table. */
static void
rename_toast(Oid toast, Oid table)
{
	if (!OidIsValid(toast))
		return;
	RenameRelationInternal(toast, psprintf("pg_toast_%u", table), true, false);
	RenameRelationInternal(toast_get_valid_index(toast, AccessExclusiveLock),
						   psprintf("pg_toast_%u_index", table), true, true);
	CommandCounterIncrement();
	ResetRelRewrite(toast);
}

/* Tell the planner how large the new heap is, as CLUSTER does; an index build may leave that to autovacuum. */
static void
note_size(Relation classes, const GeonnReplacement *replacement)
{
	HeapTuple	row = copy_class(RelationGetRelid(replacement->heap));
	BlockNumber all_visible;
	BlockNumber all_frozen;

	visibilitymap_count(replacement->heap, &all_visible, &all_frozen);
	class_of(row)->relpages = (int32) RelationGetNumberOfBlocks(replacement->heap);
	class_of(row)->reltuples = (float4) replacement->rows;
	class_of(row)->relallvisible = (int32) all_visible;
	geonn_set_all_frozen(class_of(row), all_frozen);
	CatalogTupleUpdate(classes, &row->t_self, row);
	heap_freetuple(row);
	CommandCounterIncrement();
}

static void
swap(GeonnReplacement *replacement)
{
	Oid			kept = RelationGetRelid(replacement->target);
	Oid			other = RelationGetRelid(replacement->heap);
	Oid			former_toast = replacement->target->rd_rel->reltoastrelid;
	Oid			toast = replacement->heap->rd_rel->reltoastrelid;
	Relation	classes = table_open(RelationRelationId, RowExclusiveLock);
	Relation	target;

	Assert(CheckRelationLockedByMe(replacement->target, AccessExclusiveLock, false));
	Assert(CheckRelationLockedByMe(replacement->heap, AccessExclusiveLock, false));
	TransferPredicateLocksToHeapRelation(replacement->target);
	note_size(classes, replacement);
	swap_files(classes, kept, other);
	for (int i = 0; i < replacement->count; i++)
	{
		Relation	index = index_open(replacement->indexes[i].former, NoLock);

		TransferPredicateLocksToHeapRelation(index);
		index_close(index, NoLock);
		swap_files(classes, replacement->indexes[i].former, replacement->indexes[i].made);
	}
	table_close(classes, RowExclusiveLock);
	give_toast(toast, kept);
	give_toast(former_toast, other);
	drop_heap(replacement);
	CommandCounterIncrement();
	rename_toast(toast, kept);

	/* Count for autovacuum as REFRESH MATERIALIZED VIEW does. */
	target = table_open(kept, NoLock);
	pgstat_count_truncate(target);
	pgstat_count_heap_insert(target, replacement->rows);
	table_close(target, NoLock);
}

bool
geonn_replacement_swap(GeonnReplacement *replacement, GeonnRunResult *result)
{
	const char *cause;

	if (replacement->heap == NULL)
		return false;
	XLogFlush(XactLastRecEnd);
	cause = lock_patiently(replacement);
	if (cause != NULL)
	{
		drop_heap(replacement);
		add_reason(result, "updated", cause);
		return false;
	}
	swap(replacement);
	result->rows = result->inserted = replacement->rows;
	add_reason(result, "replaced", NULL);
	return true;
}
