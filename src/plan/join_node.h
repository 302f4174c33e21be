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

/* what differs between the nodes */
typedef struct JoinNodeMethods
{
	CustomScanMethods scan;		/* first: the node's name in EXPLAIN, and geonn_node_create */
	const char *filter_label;	/* the label of the node's filter in EXPLAIN */
	Size		size;			/* bytes of the node's state, which is or begins with a JoinNode */

	/* Begin with the plan; the node has the call already. */
	void		(*begin) (JoinNode *node, EState *estate, int flags);

	/* The next row, in the scan's slot; an empty slot after the last. */
	TupleTableSlot *(*next_row) (JoinNode *node);

	/* Create a search whose references all processes share, in the current memory context. */
	GeonnSearch *(*prepare) (JoinNode *node);

	/* Let go of what the present execution has taken and searched for, but for its first search; may be NULL. */
	void		(*end_execution) (JoinNode *node);
} JoinNodeMethods;

struct JoinNode
{
	CustomScanState custom;		/* first */
	CustomExecMethods execution;
	const JoinNodeMethods *methods;
	RangeTblFunction *call;
	FuncExpr   *expression;		/* the call's expression */
	FmgrInfo	function;		/* the function that it calls */
	List	   *arguments;		/* ExprStates of its arguments */
	AttrNumber *attributes;		/* the row type's attributes that searches return; begin sets them */

	/* what EXPLAIN shows; begin sets these, too */
	const char *join_type;		/* NULL: the node is no join with outer rows */
	List	   *point;			/* expressions of an outer row's latitude, longitude, window */
	bool		keeps_order;	/* the rows come in the order of the outer rows */
	List	   *filter;			/* the clauses that the node tests itself */
	bool		shows_observations; /* EXPLAIN ANALYZE says how many observations were read */

	SubTransactionId begun_in;	/* the subtransaction in which the node began */

	/* one execution */
	MemoryContext context;		/* has all of the execution; NULL: it has not begun */
	GeonnSearch *first;			/* the first search, which stays until the end; NULL: none does */
	GeonnSearch *search;		/* the search whose rows are taken; NULL: none */

	GeonnReport sum;			/* what all searches that have ended did */
	GeonnReport present;		/* what the present call's searches that have ended did */

	/* below a Gather */
	SharedSearch *shared;		/* NULL: this process searches alone */
	MemoryContext preparation;	/* has the leader's prepared search */
	GeonnSearch *prepared;
	ProcessReports processes;	/* what each process did, for EXPLAIN ANALYZE */
};

/* Create the state of a node, whose methods are a JoinNodeMethods. */
extern Node *geonn_node_create(CustomScan *scan);

/*
 * The attribute numbers of the Vars in a target list, from this entry on (counted from 0).  The array lives
 * in the current memory context, and has room for one more.
 */
extern AttrNumber *geonn_attributes(const List *targets, int first);

/*
 * The join that the call now asks for, in the current memory context, and the type of its rows.  In a parallel
 * plan it is of the relations that the leader has found.
 */
extern GeonnJoin *geonn_node_join(JoinNode *node, TupleDesc *row_type);

/*
 * Check that the node's attributes of the row type still have the types that they had when the
 * statement was planned.
 */
extern void geonn_check_row_type(const JoinNode *node, TupleDesc row_type, TupleDesc planned);

/* End a search.  is_last: it is the call's last one, and the one that began the call, which is then logged. */
extern void geonn_node_end_search(JoinNode *node, GeonnSearch *search, bool is_last);

#endif							/* GEONN_JOIN_NODE_H */
