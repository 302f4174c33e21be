/*
 * compat.h
 *		How PostgreSQL 15 to 19 differ: all of it is in this file.
 *
 * The sources are written for the newest release.  This file defines what an
 * older one lacks, by means of what that release has instead.  A function
 * whose arguments differ between releases gets a name of this project's.  All are
 * macros, so that a file needs only the headers of what it calls.
 *
 * Include it after PostgreSQL's headers.
 */
#ifndef GEONN_COMPAT_H
#define GEONN_COMPAT_H

#if PG_VERSION_NUM < 150000
#error "geonn needs PostgreSQL 15 or newer"
#endif

/* ---- headers that others include only in some releases, and those that the macros below need ---- */

#include "utils/guc_tables.h"
#if PG_VERSION_NUM >= 160000
#include "parser/parse_relation.h"
#include "varatt.h"
#else
#include "catalog/pg_namespace_d.h"
#include "catalog/pg_proc_d.h"
#endif
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#if PG_VERSION_NUM >= 190000
#include "commands/repack.h"
#else
#include "commands/cluster.h"
#endif

/* ---- PostgreSQL 16 ---- */

#if PG_VERSION_NUM < 160000

/* before 16, modules had no function that finds a setting; returns NULL if no setting has the name */
static inline struct config_generic *
geonn_find_setting(const char *name)
{
	for (int i = 0; i < GetNumConfigOptions(); i++)
	{
		struct config_generic *setting = get_guc_variables()[i];

		if (strcmp(setting->name, name) == 0)
			return setting;
	}
	return NULL;
}

/* before 16, each kind of object had functions of its own that check privileges */
#define object_aclcheck(catalog, object, role, mode) \
	((catalog) == NamespaceRelationId ? pg_namespace_aclcheck(object, role, mode) : \
	 pg_proc_aclcheck(object, role, mode))
#define object_ownercheck(catalog, relation, role) pg_class_ownercheck(relation, role)

/* before 16, the permissions that a plan needs were in the entries of its range table */
#define geonn_permissions_of(plan, other) ((plan)->rtable = (other)->rtable)
#define geonn_check_permissions(plan, raise) ExecCheckRTPerms((plan)->rtable, raise)

/* before 16, the locator of a relation's file, and the subtransactions that set it, had other names */
#define rd_locator rd_node
#define rd_newRelfilelocatorSubid rd_newRelfilenodeSubid
#define rd_firstRelfilelocatorSubid rd_firstRelfilenodeSubid
#define RelationAssumeNewRelfilelocator(relation) RelationAssumeNewRelfilenode(relation)

/* the number of rows that scans of a relation have read, as pgstat counts them */
#define geonn_rows_read(relation) ((relation)->pgstat_info->t_counts.t_tuples_returned)

/* whether a buffer, by its descriptor, has this page of a relation's main fork */
#define geonn_buffer_has(descriptor, relation, block) \
	(RelFileNodeEquals((descriptor)->tag.rnode, (relation)->rd_node) && \
	 (descriptor)->tag.forkNum == MAIN_FORKNUM && (descriptor)->tag.blockNum == (block))

/* before 16, a Var did not list the outer joins that may make it NULL */
#define geonn_forget_outer_joins(column) ((void) (column))
#define geonn_note_outer_join(column, join) ((void) (column), (void) (join))

/* before 16, a relation that moves from one query to another carried its permissions in its entry of the range table */
#define geonn_move_permissions(from, to, entry) ((void) (from), (void) (to), (void) (entry))

/* have rows carry these columns from the scans up to the join of these relations */
#define geonn_add_columns(root, columns, relations) \
	add_vars_to_targetlist(root, columns, relations, false)

/* before 16, some equivalences held only below an outer join */
#define geonn_below_outer_join(class) ((class)->ec_below_outer_join)

#else

#define geonn_find_setting(name) find_option(name, false, true, 0)
#define geonn_permissions_of(plan, other) \
	((plan)->rtable = (other)->rtable, (plan)->permInfos = (other)->permInfos)
#define geonn_check_permissions(plan, raise) \
	ExecCheckPermissions((plan)->rtable, (plan)->permInfos, raise)
#define geonn_rows_read(relation) ((relation)->pgstat_info->counts.tuples_returned)
#define geonn_buffer_has(descriptor, relation, block) \
	(BufTagMatchesRelFileLocator(&(descriptor)->tag, &(relation)->rd_locator) && \
	 (descriptor)->tag.forkNum == MAIN_FORKNUM && (descriptor)->tag.blockNum == (block))
#define geonn_forget_outer_joins(column) ((column)->varnullingrels = NULL)
#define geonn_note_outer_join(column, join) ((column)->varnullingrels = bms_make_singleton(join))
#define geonn_move_permissions(from, to, entry) \
	((to)->rteperminfos = list_make1(copyObject(getRTEPermissionInfo((from)->rteperminfos, entry))), \
	 (entry)->perminfoindex = 1)
#define geonn_below_outer_join(class) ((void) (class), false)
#define geonn_add_columns(root, columns, relations) \
	add_vars_to_targetlist(root, columns, relations)

#endif

/* ---- PostgreSQL 17 ---- */

#if PG_VERSION_NUM < 170000

/* before 17, what EXPLAIN does without a hook was not a function of its own */
#define standard_ExplainOneQuery(query, options, into, state, text, parameters, environment) \
	do { \
		BufferUsage buffers_before = pgBufferUsage; \
		BufferUsage buffers = {0}; \
		instr_time	before; \
		instr_time	taken; \
		PlannedStmt *plan; \
		INSTR_TIME_SET_CURRENT(before); \
		plan = pg_plan_query(query, text, options, parameters); \
		INSTR_TIME_SET_CURRENT(taken); \
		INSTR_TIME_SUBTRACT(taken, before); \
		BufferUsageAccumDiff(&buffers, &pgBufferUsage, &buffers_before); \
		ExplainOnePlan(plan, into, state, text, parameters, environment, &taken, \
					   (state)->buffers ? &buffers : NULL); \
	} while (0)

/* before 17, waits of extensions had no names */
#define WaitEventExtensionNew(name) ((void) (name), PG_WAIT_EXTENSION)

/* before 17, no timeout ended transactions but that of the statement */
#define TRANSACTION_TIMEOUT STATEMENT_TIMEOUT

/* create a set of wait events that lives as long as the process */
#define geonn_create_wait_event_set(events) CreateWaitEventSet(TopMemoryContext, events)

/* close a relation's files, to which the relation cache may still refer */
#define geonn_close_files(relation) RelationCloseSmgrByOid(relation)

/* plan a query as a subquery of the one being planned, for all of its rows */
#define geonn_subquery_planner(root, query) subquery_planner((root)->glob, query, root, false, 0)

#else

#define geonn_create_wait_event_set(events) CreateWaitEventSet(NULL, events)
#define geonn_close_files(relation) ((void) (relation))
/* 17 removed the setting old_snapshot_threshold */
#define OldSnapshotThresholdActive() false

#endif

/* ---- PostgreSQL 18 ---- */

#if PG_VERSION_NUM < 180000

/* before 18, a module could not tell its name and version */
#define PG_MODULE_MAGIC_EXT(...) PG_MODULE_MAGIC

/* go on with a query, forwards, until it has returned this many more rows (0: all) */
#define geonn_executor_run(query, rows) \
	ExecutorRun(query, ForwardScanDirection, rows, (rows) == 0)

/* before 18, pg_class lacked the number of frozen pages */
#define geonn_all_frozen(class) 0
#define geonn_set_all_frozen(class, pages) ((void) (pages))

/* begin to look up rows of a table in an index, by this many keys */
#define geonn_index_beginscan(table, index, snapshot, keys) \
	index_beginscan(table, index, snapshot, keys, 0)

#else

#define geonn_all_frozen(class) ((class)->relallfrozen)
#define geonn_set_all_frozen(class, pages) ((class)->relallfrozen = (int32) (pages))

#define geonn_executor_run(query, rows) ExecutorRun(query, ForwardScanDirection, rows)

#endif

/* ---- PostgreSQL 19 ---- */

#if PG_VERSION_NUM < 190000

/* before 19, a descriptor needed no further step once all of its columns were set */
#define TupleDescFinalize(descriptor) ((void) (descriptor))

/* plan a query as a subquery of the one being planned, for all of its rows */
#if PG_VERSION_NUM >= 170000
#define geonn_subquery_planner(root, query) \
	subquery_planner((root)->glob, query, root, false, 0, NULL)
#endif

/*
 * begin a scan of a table: of all its rows; in place of a node of a plan; of a range of its tids; of rows that processes
 * share
 */
#define geonn_table_beginscan(relation, snapshot) table_beginscan(relation, snapshot, 0, NULL)
#define geonn_table_beginscan_of_plan(scan) \
	table_beginscan((scan)->ss_currentRelation, (scan)->ps.state->es_snapshot, 0, NULL)
#define geonn_table_beginscan_tidrange(relation, snapshot, first, last) \
	table_beginscan_tidrange(relation, snapshot, first, last)
#define geonn_table_beginscan_parallel(relation, shared) table_beginscan_parallel(relation, shared)

/* create an empty index like this one on another table; then fill it */
#define geonn_index_create_copy(table, index, space, name) \
	index_concurrently_create_copy(table, index, space, name)
#define geonn_index_build(table, index) \
	index_build(table, index, BuildIndexInfo(index), false, true)

/* begin to look up rows of a table in an index */
#if PG_VERSION_NUM >= 180000
#define geonn_index_beginscan(table, index, snapshot, keys) \
	index_beginscan(table, index, snapshot, NULL, keys, 0)
#endif

/* the publications that send a table's changes, except those of its whole schema */
#define geonn_publications_of(table) \
	list_concat(GetRelationPublications(table), GetAllTablesPublications())

/* unlock the header of a buffer, which had this state when LockBufHdr locked it */
#define geonn_unlock_buffer(descriptor, state) UnlockBufHdr(descriptor, state)

#define geonn_pg_plan_query(query, string, options) pg_plan_query(query, string, options, NULL)
#define geonn_jumble_state JumbleState

/* the executor's measurements of a whole query */
#define geonn_query_measurements(query) ((query)->totaltime)

/* from 19 on, planner() has another argument, EXPLAIN's state */
#define GEONN_EXPLAIN_PARAMETER
#define GEONN_EXPLAIN_ARGUMENT

#else

#define GEONN_EXPLAIN_PARAMETER , struct ExplainState *explain
#define GEONN_EXPLAIN_ARGUMENT , explain
#define geonn_subquery_planner(root, query) \
	subquery_planner((root)->glob, query, choose_plan_name((root)->glob, "geonn references", true), \
					 root, NULL, false, 0, NULL)
#define geonn_table_beginscan(relation, snapshot) \
	table_beginscan(relation, snapshot, 0, NULL, SO_NONE)
#define geonn_table_beginscan_of_plan(scan) \
	table_beginscan((scan)->ss_currentRelation, (scan)->ps.state->es_snapshot, 0, NULL, \
					(ScanRelIsReadOnly(scan) ? SO_HINT_REL_READ_ONLY : SO_NONE) | \
					(((scan)->ps.state->es_instrument & INSTRUMENT_IO) ? SO_SCAN_INSTRUMENT : SO_NONE))
#define geonn_table_beginscan_tidrange(relation, snapshot, first, last) \
	table_beginscan_tidrange(relation, snapshot, first, last, SO_NONE)
#define geonn_table_beginscan_parallel(relation, shared) \
	table_beginscan_parallel(relation, shared, SO_NONE)
#define geonn_index_create_copy(table, index, space, name) \
	index_create_copy(table, INDEX_CREATE_SKIP_BUILD | INDEX_CREATE_CONCURRENT, index, space, name)
#define geonn_index_build(table, index) \
	index_build(table, index, BuildIndexInfo(index), false, true, true)
#define geonn_index_beginscan(table, index, snapshot, keys) \
	index_beginscan(table, index, snapshot, NULL, keys, 0, SO_NONE)
/* in 19 a publication of all tables can exclude some */
#define geonn_publications_of(table) \
	list_concat(GetRelationIncludedPublications(table), \
				list_difference_oid(GetAllTablesPublications(), \
									GetRelationExcludedPublications(table)))
#define geonn_pg_plan_query(query, string, options) \
	pg_plan_query(query, string, options, NULL, NULL)
#define geonn_unlock_buffer(descriptor, state) ((void) (state), UnlockBufHdr(descriptor))
#define geonn_jumble_state const JumbleState
#define geonn_query_measurements(query) ((query)->query_instr)

#endif

#endif							/* GEONN_COMPAT_H */
