/*
 * compat.h
 *		What differs between PostgreSQL 15, 16, 17 and 18, and nowhere else.
 *
 * The sources are written for the newest release.  Where an older one lacks what
 * they call, it is defined here from what was there instead; and where a call has
 * other arguments, it has a name of this project's.  All are macros, so that a
 * file needs no other headers than those of what it calls.
 *
 * Include it after PostgreSQL's headers.
 */
#ifndef GEONN_COMPAT_H
#define GEONN_COMPAT_H

#if PG_VERSION_NUM < 150000
#error "geonn needs PostgreSQL 15 or newer"
#endif

/* ---- headers: those that others included before, and those that are used below ---- */

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#else
#include "catalog/pg_namespace_d.h"
#include "catalog/pg_proc_d.h"
#endif
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/* ---- PostgreSQL 16 ---- */

#if PG_VERSION_NUM < 160000

/* privileges: a function for each kind of object; those that are asked for here */
#define object_aclcheck(catalog, object, role, mode) \
	((catalog) == NamespaceRelationId ? pg_namespace_aclcheck(object, role, mode) : \
	 pg_proc_aclcheck(object, role, mode))
#define object_ownercheck(catalog, relation, role) pg_class_ownercheck(relation, role)
#define geonn_may_read_tables(plan) ExecCheckRTPerms((plan)->rtable, false)

/* a Datum that is the caller's own copy */
#define geonn_tuplesort_getdatum(sort, value, is_null) \
	tuplesort_getdatum(sort, true, value, is_null, NULL)

/* where a relation's file is: three OIDs */
#define rd_locator rd_node

/* statistics of a relation: rows that a scan has read */
#define geonn_rows_read(relation) ((relation)->pgstat_info->t_counts.t_tuples_returned)

/* what a session reports of itself */
#define pgstat_get_local_beentry_by_index(index) pgstat_fetch_stat_local_beentry(index)

/* a Var did not say which outer joins may make it NULL */
#define geonn_forget_outer_joins(column) ((void) (column))

#else

#define geonn_may_read_tables(plan) \
	ExecCheckPermissions((plan)->rtable, (plan)->permInfos, false)
#define geonn_tuplesort_getdatum(sort, value, is_null) \
	tuplesort_getdatum(sort, true, true, value, is_null, NULL)
#define geonn_rows_read(relation) ((relation)->pgstat_info->counts.tuples_returned)
#define geonn_forget_outer_joins(column) ((column)->varnullingrels = NULL)

#endif

/* ---- PostgreSQL 17 ---- */

#if PG_VERSION_NUM < 170000

/* extensions' waits had no names */
#define WaitEventExtensionNew(name) ((void) (name), PG_WAIT_EXTENSION)

/* a set of events that lives as long as the process */
#define geonn_create_wait_event_set(events) CreateWaitEventSet(TopMemoryContext, events)

/* the local id of a process's transaction */
#define geonn_local_transaction(process) ((process)->lxid)

#else

#define geonn_create_wait_event_set(events) CreateWaitEventSet(NULL, events)
#define geonn_local_transaction(process) ((process)->vxid.lxid)

/* the setting old_snapshot_threshold is no more */
#define OldSnapshotThresholdActive() false

#endif

/* ---- PostgreSQL 18 ---- */

#if PG_VERSION_NUM < 180000

/* a module said nothing of itself */
#define PG_MODULE_MAGIC_EXT(...) PG_MODULE_MAGIC

/* run a query on, forwards, for so many rows; all of them: 0 */
#define geonn_executor_run(query, rows) \
	ExecutorRun(query, ForwardScanDirection, rows, (rows) == 0)

/* look rows of a table up in an index, by so many keys */
#define geonn_index_beginscan(table, index, snapshot, keys) \
	index_beginscan(table, index, snapshot, keys, 0)

#else

#define geonn_index_beginscan(table, index, snapshot, keys) \
	index_beginscan(table, index, snapshot, NULL, keys, 0)

#define geonn_executor_run(query, rows) ExecutorRun(query, ForwardScanDirection, rows)

#endif

#endif							/* GEONN_COMPAT_H */
