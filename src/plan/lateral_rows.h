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
	MemoryContext memory;		/* of its rows and its search; NULL: nothing has begun */
	OuterRow   *rows;			/* [given.count] */
	GeonnLimits *limits;		/* [given.count]; NULL: points have no windows */
	GivenPoints given;			/* their points */
	GeonnJoin	join;			/* with these points */
	GeonnSearch *search;		/* NULL: it has not begun, or all of its rows were taken */
} Round;

typedef struct LateralNode
{
	JoinNode	node;			/* first; its attributes have ord behind those that are returned */
	TupleTableSlot *slot;		/* the scan's */
	ExprContext *expressions;	/* likewise */
	TupleTableSlot *outer_slot; /* of a kept row */
	TupleTableSlot *found_slot; /* of a row of the search, and of one that was sorted */
	TupleTableSlot *sorted_slot;
	ExprState  *latitude;
	ExprState  *longitude;
	ExprState  *window;
	ExprState  *number;			/* a row's value of the column ord, or obs_id */
	ExprState  *filter;			/* which pairs are neighbours; NULL: all */
	JoinType	type;
	Oid			table;			/* of the outer rows, which the call would read; InvalidOid: none */
	int			outer_columns;	/* of the scan's row; those of the function are behind them */
	AttrNumber *numbers;		/* [outer_columns] columns of the child */
	int			columns;		/* of the function, with ord behind those that are returned */
	TupleDesc	descriptor;		/* of the searches' rows: [columns] */
	Datum	   *values;			/* [columns] of the neighbour that was taken, in its slot */
	bool	   *nulls;

	/* of one execution; NULL: nothing has begun */
	MemoryContext context;
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
} LateralNode;

/* The call's join, in the current memory context, and the type of its rows; NULL: not composite. */
extern GeonnJoin *geonn_lateral_join(LateralNode *state, TupleDesc *row_type);

/* A point of the round's (Round), by its number: of its GivenPoints. */
extern void geonn_lateral_point(void *round, uint64 number, PointRow *row);

/* Take the rows of a round, as many as half of work_mem takes: two rounds have rows at a time. */
extern void geonn_lateral_take_rows(LateralNode *state, Round *round);

/* Have the scan's slot begin with the columns of this outer row, or end with NULLs. */
extern void geonn_lateral_set_outer_columns(LateralNode *state, TupleTableSlot *outer);
extern void geonn_lateral_set_no_neighbour(LateralNode *state);

#endif							/* GEONN_LATERAL_ROWS_H */
