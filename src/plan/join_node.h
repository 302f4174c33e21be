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

/* one of the nodes */
typedef struct JoinNodeMethods
{
	const char *name;			/* as EXPLAIN shows it */
	const char *filter_label;	/* likewise, of the node's filter */
	Size		size;			/* of the state, which begins with a JoinNode */

	/* Begin with the plan; the node has the call already. */
	void		(*begin) (JoinNode *node, EState *estate, int flags);

	/* The next row, in the scan's slot; an empty slot after the last. */
	TupleTableSlot *(*next_row) (JoinNode *node);

	/* Create a search whose references all processes share, in the current memory context. */
	GeonnSearch *(*prepare) (JoinNode *node);

	/* End the present execution: let go of what was taken and searched for. */
	void		(*end_execution) (JoinNode *node);

	/* Add what searches under way have done. */
	void		(*add_reports) (const JoinNode *node, GeonnReport *sum);
} JoinNodeMethods;

struct JoinNode
{
	CustomScanState custom;		/* first */
	CustomExecMethods execution;
	const JoinNodeMethods *methods;
	RangeTblFunction *call;
	FuncExpr   *expression;		/* the call's */
	FmgrInfo	function;
	List	   *arguments;		/* of ExprState */
	AttrNumber *attributes;		/* of the row type that the searches return; begin sets them */

	/* what EXPLAIN shows; likewise */
	const char *join_type;		/* NULL: the node is no join with outer rows */
	List	   *point;			/* expressions of an outer row's latitude, longitude, window */
	bool		keeps_order;	/* of the outer rows */
	List	   *filter;			/* the clauses that the node tests itself */
	bool		shows_observations; /* how many were read */

	SubTransactionId begun_in;	/* the subtransaction in which the node began */

	GeonnReport sum;			/* all searches that have ended */
	GeonnReport present;		/* the present call's searches that have ended */

	/* below a Gather */
	SharedSearch *shared;		/* NULL: this process searches alone */
	MemoryContext preparation;	/* of the leader's prepared search */
	GeonnSearch *prepared;
	ProcessReports processes;
};

/* Create the state of a node. */
extern Node *geonn_node_create(const JoinNodeMethods *methods);

/*
 * The attribute numbers of the Vars in a target list, from this place on (from 0), in memory of the caller's
 * with room for one more.
 */
extern AttrNumber *geonn_attributes(const List *targets, int first);

/*
 * The join that the call now asks for, in the current memory context, and the type of its rows; NULL: not
 * composite.  In a parallel plan it is of the relations that the leader has found.
 */
extern GeonnJoin *geonn_node_join(JoinNode *node, TupleDesc *row_type);

/*
 * Check that the node's attributes of the row type still have the types that they had when the
 * statement was planned.
 */
extern void geonn_check_row_type(const JoinNode *node, TupleDesc row_type, TupleDesc planned);

/* Add what the search has done; NULL: none. */
extern void geonn_add_search(GeonnReport *sum, const GeonnSearch *search);

/* End a search; the last one, which began the call, has the call logged. */
extern void geonn_node_end_search(JoinNode *node, GeonnSearch *search, bool is_last);

#endif							/* GEONN_JOIN_NODE_H */
