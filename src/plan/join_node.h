/*
 * join_node.h
 *		What the plan nodes of joins have in common.
 */
#ifndef GEONN_JOIN_NODE_H
#define GEONN_JOIN_NODE_H

#include "commands/explain.h"
#include "executor/executor.h"
#include "nodes/extensible.h"

#include "join/join.h"

typedef struct JoinNode JoinNode;

/* what scan.c, lateral.c, sql_join.c, sql_within.c and sql_zone_scan.c set */
typedef struct JoinNodeMethods
{
	CustomScanMethods scan;		/* first: the node's name in EXPLAIN, and geonn_node_create */
	const char *filter_label;	/* the label of the node's filter in EXPLAIN */
	Size		size;			/* bytes of the node's state, which is or begins with a JoinNode */

	/* Read the plan. */
	void		(*begin) (JoinNode *node, EState *estate, int flags);

	/* Return the scan's slot with the next row, or empty at the end. */
	TupleTableSlot *(*next_row) (JoinNode *node);

	/*
	 * Called for a rescan if only parameters have changed that the child plans do not use: keep what was read, and answer
	 * for the new values.  False, or NULL: begin another execution.
	 */
	bool		(*go_on) (JoinNode *node);

	/* Create a search whose references all processes share, in the current memory context. */
	GeonnSearch *(*prepare) (JoinNode *node);

	/* Release what the present execution holds, except its first search; may be NULL. */
	void		(*end_execution) (JoinNode *node);

	/* Have EXPLAIN show what the node asks for; NULL: it makes a call. */
	void		(*explain) (const JoinNode *node, List *ancestors, ExplainState *explain);
} JoinNodeMethods;

struct JoinNode
{
	CustomScanState custom;		/* first */
	CustomExecMethods execution;
	const JoinNodeMethods *methods;
	RangeTblFunction *call;		/* NULL: the node makes no call */
	FuncExpr   *expression;		/* the call's expression */
	FmgrInfo	function;		/* the function that it calls */
	List	   *arguments;		/* ExprStates of its arguments */
	AttrNumber *attributes;		/* the row type's attributes that searches return; begin sets them */

	/* what EXPLAIN shows; begin sets these, too */
	const char *join_type;		/* NULL: scan.c's node, without outer rows */
	List	   *point;			/* expressions of an outer row's latitude, longitude, window */
	bool		keeps_order;	/* the rows come in the order of the outer rows */
	List	   *filter;			/* the clauses that the node tests itself */
	bool		has_no_search;	/* the node answers by itself: EXPLAIN ANALYZE shows nothing of searches */
	bool		shows_observations; /* EXPLAIN ANALYZE says how many observations were read */

	SubTransactionId begun_in;	/* the subtransaction in which the node began */

	/* one execution */
	MemoryContext context;		/* memory of the execution; NULL: not begun */
	GeonnSearch *first;			/* the first search, kept until the end; NULL: none is */
	GeonnSearch *search;		/* the search whose rows are read; NULL: none */
	GeonnSearch *following;		/* the search of later rounds (lateral_search.c), which may be that one; NULL: none */

	GeonnReport sum;			/* the reports of all ended searches */
	GeonnReport present;		/* those of the present call's ended searches */

	/* below a Gather */
	SharedSearch *shared;		/* NULL: this process searches alone */
	MemoryContext preparation;	/* memory of the prepared search */
	GeonnSearch *prepared;
	ProcessReports processes;	/* each process's report, for EXPLAIN ANALYZE */
};

/* Create a node's state; scan->methods is a JoinNodeMethods. */
extern Node *geonn_node_create(CustomScan *scan);

/* Set the call, which is among the plan's custom expressions, and check that the user may execute its function. */
extern void geonn_node_begin_call(JoinNode *node, RangeTblFunction *call);

/* Have EXPLAIN show this expression of the plan. */
extern void geonn_node_explain_expression(const JoinNode *node, List *ancestors, ExplainState *explain,
										  const char *label, Node *expression);

/* Have EXPLAIN show the name of this relation. */
extern void geonn_node_explain_relation(ExplainState *explain, const char *label, Oid relation);

/*
 * The attribute numbers of the Vars in a target list, beginning with entry first (from 0).  The array, in the
 * current memory context, has room for one more.
 */
extern AttrNumber *geonn_attributes(const List *targets, int first);

/*
 * Make a join of the call's arguments, in the current memory context, and set its row type.  In a parallel
 * plan it is of the relations that the leader looked up.
 */
extern GeonnJoin *geonn_node_join(JoinNode *node, TupleDesc *row_type);

/*
 * Check that the node's attributes of the row type still have the types that they had when the
 * statement was planned.
 */
extern void geonn_check_row_type(const JoinNode *node, TupleDesc row_type, TupleDesc planned);

/* End the execution's first search, which has the references, if there is one. */
extern void geonn_node_end_first(JoinNode *node);

/* End a search.  is_last: it began the call and ends last, so the call is logged. */
extern void geonn_node_end_search(JoinNode *node, GeonnSearch *search, bool is_last);

#endif							/* GEONN_JOIN_NODE_H */
