/*
 * lateral_state.h
 *		The executor's state of a lateral join.
 */
#ifndef GEONN_LATERAL_STATE_H
#define GEONN_LATERAL_STATE_H

#include "access/parallel.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "port/atomics.h"
#include "utils/tuplesort.h"

#include "join/join.h"

typedef struct OuterRow
{
	MinimalTuple tuple;
	double		latitude;
	double		longitude;
	bool		latitude_is_null;
	bool		longitude_is_null;
	bool		is_matched;
} OuterRow;

/* outer rows whose neighbours are searched for at once */
typedef struct Round
{
	MemoryContext memory;		/* of its rows and its search; NULL: nothing has begun */
	OuterRow   *rows;			/* [given.count] */
	GeonnLimits *limits;		/* [given.count]; NULL: points have no windows */
	GivenPoints given;			/* their points */
	GeonnJoin	join;			/* with these points */
	GeonnSearch *search;		/* NULL: it has not begun, or all of its rows were taken */
} Round;

/* what the processes of a parallel plan share */
typedef struct SharedLateral
{
	SharedReferences references;
	Oid			observation_table;	/* relations of the leader's join, InvalidOid: not one; a name in */
	Oid			reference_table;	/* an argument can come to mean another one */
	pg_atomic_uint32 begun;		/* processes that have begun to take outer rows */
	pg_atomic_uint32 ended;		/* processes that have taken their last one */
	pg_atomic_uint64 counts[POINT_STATUSES];	/* of their points */
	int			processes;		/* at most */
	GeonnReport reports[FLEXIBLE_ARRAY_MEMBER]; /* the leader's, then the workers' */
} SharedLateral;

typedef struct LateralState
{
	CustomScanState custom;		/* first */
	PlanState  *outer;
	TupleTableSlot *outer_slot; /* of a kept row */
	TupleTableSlot *put_slot;	/* of rows to be sorted, and of sorted ones */
	TupleTableSlot *sorted_slot;
	RangeTblFunction *call;
	FuncExpr   *expression;		/* the call's */
	FmgrInfo	function;
	List	   *arguments;		/* of ExprState */
	ExprState  *latitude;
	ExprState  *longitude;
	ExprState  *window;
	ExprState  *number;			/* a row's value of the column ord, or obs_id */
	ExprState  *filter;			/* which pairs are neighbours; NULL: all */
	JoinType	type;
	Oid			table;			/* of the outer rows, which the call would read; InvalidOid: none */
	bool		keeps_order;	/* of the outer rows */
	int			outer_columns;	/* of the scan's row; those of the function are behind them */
	AttrNumber *numbers;		/* [outer_columns] columns of the child */
	int			columns;		/* of the function, with ord behind those that are returned */
	AttrNumber *attributes;		/* [columns] of the row type */
	bool	   *are_ord;		/* [columns] */
	TupleDesc	descriptor;		/* of the searches' rows: [columns] */
	Datum	   *values;			/* [columns] */
	bool	   *nulls;

	/* of one execution; NULL: nothing has begun */
	MemoryContext context;
	SubTransactionId begun_in;
	GeonnJoin  *join;			/* NULL: no outer row has come */
	TypeCacheEntry *range;		/* of the points' windows, if they are ranges */
	TupleDesc	row_type;
	GeonnSearch *first;			/* has the references; NULL: not this execution's */
	bool		has_references;
	SharedReferences references;	/* of all searches, but for the first */
	bool		outer_ended;
	bool		has_ended;		/* all rows were returned */
	TupleTableSlot *held;		/* an outer row that begins the next round; NULL: none */
	uint64		counts[POINT_STATUSES]; /* of the points */
	GeonnReport present;		/* of searches that have ended, but for the first */

	/* rounds: the present one, and the one whose rows are taken while the engine searches */
	Round		rounds[2];
	Round	   *round;
	Round	   *next;
	int			wanted;			/* rows of the next round */

	/* the present round */
	Tuplesortstate *sorted;		/* its rows in the order of the outer rows; NULL: as found */
	bool		holds_neighbour;	/* the values are of a row that has not been returned */
	uint64		current;		/* the row that outer_slot has */
	uint64		unmatched;		/* the next row that may have no neighbour */

	GeonnReport sum;			/* of all executions that have ended */

	/* below a Gather */
	SharedLateral *shared;		/* NULL: this process searches alone */
	MemoryContext preparation;	/* of the leader's prepared search */
	GeonnSearch *prepared;		/* has the references of all processes */
	GeonnReport together;		/* what the processes have done with them */
	ProcessReports processes;
} LateralState;

/* ---- executions (lateral_execution.c) ---- */

/* The call's join, in the current memory context, and the type of its rows; NULL: not composite. */
extern GeonnJoin *geonn_lateral_join(LateralState *state, TupleDesc *row_type);

/* End the round's search; but the first one, which has the references, stays. */
extern void geonn_lateral_end_search(LateralState *state);

/* End the present execution: what was taken and searched for is let go. */
extern void geonn_lateral_end_execution(LateralState *state);

/* The clauses that make a pair of rows neighbours. */
extern List *geonn_lateral_filter(const LateralState *state);

/* Tell of points (counts) that are none, all of which were taken. */
extern void geonn_lateral_tell(const GeonnJoin *join, const uint64 *counts);

/* Add what the search has done; NULL: none. */
extern void geonn_lateral_add_search(GeonnReport *sum, const GeonnSearch *search);

/* ---- several processes (lateral_parallel.c) ---- */

extern Size geonn_lateral_estimate_shared(CustomScanState *node, ParallelContext *parallel);
extern void geonn_lateral_initialize_shared(CustomScanState *node, ParallelContext *parallel,
											void *memory);
extern void geonn_lateral_reinitialize_shared(CustomScanState *node, ParallelContext *parallel,
											  void *memory);
extern void geonn_lateral_initialize_worker(CustomScanState *node, shm_toc *toc, void *memory);
extern void geonn_lateral_shut_down(CustomScanState *node);

/* Let go of what the leader has prepared, after all executions. */
extern void geonn_lateral_end_preparation(LateralState *state);

/* ---- EXPLAIN (lateral_explain.c) ---- */

extern void geonn_lateral_explain(CustomScanState *node, List *ancestors, ExplainState *explain);

#endif							/* GEONN_LATERAL_STATE_H */
