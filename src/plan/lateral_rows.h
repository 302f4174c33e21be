/*
 * lateral_rows.h
 *		The state of a lateral join's node, its call, and its outer rows, which are kept in rounds.
 */
#ifndef GEONN_LATERAL_ROWS_H
#define GEONN_LATERAL_ROWS_H

#include "utils/tuplesort.h"
#include "utils/typcache.h"

#include "plan/join_node.h"

/* the rows of the first round */
#define GEONN_ROWS_FIRST 64

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
	MemoryContext memory;		/* has its rows and its search; NULL: the round has not begun */
	OuterRow   *rows;			/* [given.count] */
	GeonnLimits *limits;		/* [given.count]; NULL: points have no windows */
	GivenPoints given;			/* the rows' points */
	GeonnJoin	join;			/* the node's join, with these points */
	GeonnSearch *search;		/* NULL: it has not begun, or all of its rows were taken */
} Round;

typedef struct LateralNode
{
	JoinNode	node;			/* first; its attributes have ord behind those that are returned */
	TupleTableSlot *slot;		/* the scan's slot */
	ExprContext *expressions;	/* the scan's context for expressions */
	TupleTableSlot *outer_slot; /* for an outer row of a round */
	TupleTableSlot *found_slot; /* for a row that the search returned */
	TupleTableSlot *sorted_slot;	/* for a row that the sort returned */
	ExprState  *latitude;
	ExprState  *longitude;
	ExprState  *window;
	ExprState  *number;			/* the value that the column ord or obs_id has in an outer row's neighbours */
	ExprState  *filter;			/* is true for a pair of rows that are neighbours; NULL: all pairs are */
	JoinType	type;
	Oid			table;			/* as LATERAL_TABLE (lateral.h) */
	int			outer_columns;	/* how many of the scan row's columns are outer; the function's follow */
	AttrNumber *numbers;		/* [outer_columns] their numbers in the child's rows */
	int			columns;		/* how many the searches return: ord is behind those that the scan returns */
	TupleDesc	descriptor;		/* the searches' rows: [columns] */
	Datum	   *values;			/* [columns] of the neighbour that was taken, in its slot */
	bool	   *nulls;

	/* one execution; the context is NULL until it begins */
	MemoryContext context;
	GeonnJoin  *join;			/* NULL: no outer row has come */
	TypeCacheEntry *range;		/* the range type of the points' windows; NULL: they are no ranges */
	TupleDesc	row_type;
	GeonnSearch *first;			/* the search that has the references; NULL: this execution has none */
	bool		has_references;
	SharedReferences references;	/* all searches but the first have these */
	bool		outer_ended;	/* the child has no more outer rows */
	bool		has_ended;		/* all rows were returned */
	TupleTableSlot *held;		/* an outer row that begins the next round; NULL: none */
	uint64		counts[POINT_STATUSES]; /* how many points have each status */

	/* rounds: the present one, and the one whose rows are taken while the engine searches */
	Round		rounds[2];
	Round	   *round;
	Round	   *next;
	int			wanted;			/* how many outer rows the next round takes, if they fit */

	/* the present round */
	Tuplesortstate *sorted;		/* its rows in the order of the outer rows; NULL: as found */
	bool		holds_neighbour;	/* the values are of a row that has not been returned */
	uint64		current;		/* the number of the round's row that outer_slot has */
	uint64		unmatched;		/* the number of the next row that may lack a neighbour */
} LateralNode;

/* The call's join, in the current memory context, and the type of its rows; NULL: not composite. */
extern GeonnJoin *geonn_lateral_join(LateralNode *state, TupleDesc *row_type);

/* GivenPoints.point of a round (Round): get the point of its row of this number. */
extern void geonn_lateral_point(void *round, uint64 number, PointRow *row);

/* Take outer rows into a round, no more than fit into half of work_mem: two rounds have rows at a time. */
extern void geonn_lateral_take_rows(LateralNode *state, Round *round);

/* Set the first columns of the scan's slot to those of this outer row; or the function's columns to NULL. */
extern void geonn_lateral_set_outer_columns(LateralNode *state, TupleTableSlot *outer);
extern void geonn_lateral_set_no_neighbour(LateralNode *state);

#endif							/* GEONN_LATERAL_ROWS_H */
