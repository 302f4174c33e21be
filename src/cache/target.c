/*
 * target.c
 *		The differences between the rows of a cache's table and those that it should have.
 *
 * Refreshes write only the rows that differ, by ordinary statements: so readers see the
 * former rows until the end, triggers, publications and foreign keys work as usual, and the WAL has
 * the differences alone.  Where most rows differ, a new table is filled instead (cache/replace.c).
 *
 * Differences are collected first and written last.  They wait in a tuplestore, which spills to
 * disk, and one statement for each kind reads them from there as from a table.  The statements
 * leave out tables that inherit from this one: those are not the refresh's, and their rows may have
 * the same TIDs.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/queryenvironment.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"

#include "cache/sql.h"
#include "cache/target.h"
#include "base/compat.h"
#include "points/query.h"

/* ---- the table ---- */

/*
 * A refresh reads and writes one table.  A row that is inserted into a table with children may go to one
 * of them, as those of a hypertable do.
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
	for (int i = 0; i < TARGET_COLUMNS; i++)
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
		if (i == TARGET_OBSERVATION_ID || i == TARGET_RANK)
			key = bms_add_member(key, number - FirstLowInvalidHeapAttributeNumber);
	}
	if (!bms_equal(get_primary_key_attnos(cache->target, false, &constraint), key))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the table of cache \"%s\" has no primary key (obs_id, rank)", cache->name),
				 errhint("Run ALTER TABLE %s ADD PRIMARY KEY (obs_id, rank).",
						 geonn_cache_target_name(cache))));
}

/* ---- differences ---- */

/* a difference: the TID of the row, and its values */
#define DIFFERENCE_COLUMNS (TARGET_COLUMNS + 1)

/*
 * The columns that are kept of a difference, and the statement that writes all differences of a
 * kind.  When a scan by TID has waited for another transaction that changed the row, it does not
 * check the TID again after that one has committed: the second condition does, and passes such a
 * row over.
 */
static const struct
{
	int			first;			/* the first of a difference's columns that is kept, */
	int			count;			/* and how many are kept */
	const char *statement;		/* has %s in place of the table's name */
}			kinds[ROW_CHANGES] = {
	[ROW_DELETED] = {0, 1, "DELETE FROM ONLY %s AS t USING difference AS n"
	" WHERE t.ctid OPERATOR(pg_catalog.=) n.tid"
	" AND (t.ctid OPERATOR(pg_catalog.=) n.tid) IS TRUE"},
	[ROW_UPDATED] = {0, 5, "UPDATE ONLY %s AS t SET obs_id = n.obs_id, rank = n.rank, ref_id = n.ref_id,"
		" distance = n.distance FROM difference AS n"
	" WHERE t.ctid OPERATOR(pg_catalog.=) n.tid"
	" AND (t.ctid OPERATOR(pg_catalog.=) n.tid) IS TRUE"},
	[ROW_INSERTED] = {1, 4, "INSERT INTO %s (obs_id, rank, ref_id, distance)"
	" SELECT n.obs_id, n.rank, n.ref_id, n.distance FROM difference AS n"}
};

struct GeonnDifference
{
	const GeonnCache *cache;
	TupleDesc	row_type;
	TupleDesc	types[ROW_CHANGES];
	Tuplestorestate *stores[ROW_CHANGES];
	int64		counts[ROW_CHANGES];
	MemoryContext context;
};

static TupleDesc
type_of_kind(TupleDesc row_type, RowChange change)
{
	TupleDesc	type = CreateTemplateTupleDesc(kinds[change].count);

	for (int i = 0; i < kinds[change].count; i++)
	{
		int			column = kinds[change].first + i;

		if (column == 0)
			TupleDescInitEntry(type, 1, "tid", TIDOID, -1, 0);
		else
			TupleDescCopyEntry(type, (AttrNumber) (i + 1), row_type, (AttrNumber) column);
	}
	TupleDescFinalize(type);
	return type;
}

GeonnDifference *
geonn_difference_create(const GeonnCache *cache, TupleDesc row_type)
{
	GeonnDifference *difference = palloc0(sizeof(GeonnDifference));

	difference->cache = cache;
	difference->row_type = row_type;
	for (int i = 0; i < ROW_CHANGES; i++)
	{
		difference->types[i] = type_of_kind(row_type, i);
		difference->stores[i] = tuplestore_begin_heap(false, false,
													  maintenance_work_mem / DIFFERENCE_SHARES);
	}
	difference->context = CurrentMemoryContext;
	return difference;
}

void
geonn_difference_add(GeonnDifference *difference, RowChange change, ItemPointer tid,
					 const Datum *values, const bool *nulls)
{
	MemoryContext former = MemoryContextSwitchTo(difference->context);
	Datum		row[DIFFERENCE_COLUMNS] = {PointerGetDatum(tid)};
	bool		row_nulls[DIFFERENCE_COLUMNS] = {false};
	int			first = kinds[change].first;

	if (change != ROW_DELETED)
	{
		memcpy(row + 1, values, TARGET_COLUMNS * sizeof(Datum));
		memcpy(row_nulls + 1, nulls, TARGET_COLUMNS * sizeof(bool));
	}
	tuplestore_putvalues(difference->stores[change], difference->types[change],
						 row + first, row_nulls + first);
	difference->counts[change]++;
	MemoryContextSwitchTo(former);
}

/* ---- writing ---- */

/*
 * Plan and execute a statement such that it fetches the table's rows by their TIDs: the planner would rather
 * read the whole table, as it expects a disk.  The triggers that the statement fires are planned as usual.
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

/*
 * Does code of the table's user decide which rows are written?
 */
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
 * Raise the error of a statement that did not write each of its rows.
 */
static void
raise_unwritten(const GeonnDifference *difference, RowChange change, int64 changed)
{
	const GeonnCache *cache = difference->cache;

	if (!is_rewritten(cache))
		raise_changed_meanwhile(cache);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the table of cache \"%s\" did not take all rows of the refresh", cache->name),
			 errdetail("Of %lld rows, a trigger or rule of the table let %lld be written.",
					   (long long) difference->counts[change], (long long) changed),
			 errhint("Drop that trigger or rule, or let it pass on each row.")));
}

/*
 * The name of the table's primary key, of which a violation means that another session has inserted
 * rows since the refresh took its snapshot: the refresh itself has each key once.  NULL: it may mean
 * something else.
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

/*
 * Execute a statement that writes the cache's table.  key: what key_of_refresh returned.
 */
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
 * Write the differences of one kind, which the statement reads as a relation.  It passes over a row
 * that has changed since it was read.
 */
static void
write_rows(const GeonnDifference *difference, RowChange change, int64 *changed)
{
	EphemeralNamedRelationData relation = {
		.md = {
			.name = "difference",
			.tupdesc = difference->types[change],
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
					  psprintf(kinds[change].statement, geonn_cache_target_name(difference->cache)),
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
