/*
 * lateral.h
 *		The plan node of a join whose rows each ask for the neighbours of their own point.
 */
#ifndef GEONN_LATERAL_H
#define GEONN_LATERAL_H

#include "utils/tuplesort.h"

#include "plan/join_node.h"
#include "plan/plan_fields.h"
#include "points/table_reader.h"

/* the indexes of the plan's children */
typedef enum LateralChild
{
	LATERAL_OUTER,				/* returns the outer rows */
	LATERAL_REFERENCES,			/* the references; the node of a call lacks this one, and the next */
	LATERAL_OWN					/* PostgreSQL's own plan for an outer row (sql_own_plan.h), if it has an index for it */
} LateralChild;

/*
 * What custom_private of the plan has (plan_fields.h).  The first is never NULL: other extensions test it
 * to see whether a plan is theirs.  The node of scan.h has no such list.
 */
typedef struct LateralPrivate
{
	Integer    *type;			/* a JoinType, inner, left, right, semi or anti */
	Boolean    *keeps_order;	/* the rows come in the order of the outer ones */
	List	   *outer_columns;	/* IntList: the numbers of the child's columns, in the order of its target list */
	List	   *question;		/* what the form needs besides: CallPrivate, or as another room has it */
} LateralPrivate;

/* the question of a call */
typedef struct CallPrivate
{
	Integer    *number;			/* the attribute number of the column ord or obs_id */
	List	   *table;			/* OidList of one: the table of the outer rows, which the call would read as
								 * its observations; InvalidOid: the call has arrays of points */
} CallPrivate;

/* the custom_exprs of a call's plan (plan_fields.h) */
typedef struct CallExpressions
{
	RangeTblFunction *call;		/* with empty arrays in place of any points */
	List	   *point;			/* [POINT_EXPRESSIONS] */
	List	   *clauses;		/* by which a pair of rows matches */
} CallExpressions;

/* the indexes of a point's expressions */
enum
{
	POINT_LATITUDE,				/* its latitude and longitude, as double precision */
	POINT_LONGITUDE,
	POINT_WINDOW,				/* its window; a Const that is NULL where points have none */
	POINT_VALUE,				/* the value of ord or obs_id for all neighbours of a row */
	POINT_EXPRESSIONS
};

/* what a round has of an outer row beside its coordinates and its columns */
typedef struct OuterRow
{
	bool		latitude_is_null;
	bool		longitude_is_null;
	bool		is_matched;		/* not set by an inner join */
	const GeonnLimits *limits;	/* NULL: points have no windows */
	const struct varlena *shape;	/* a geography, whose first vertex the coordinates are; NULL: they are a point */
} OuterRow;

/* outer rows whose neighbours are searched for at once */
typedef struct Round
{
	MemoryContext memory;		/* has its search, unless that goes on from round to round, and what its rows point to */
	int			room;			/* for so many rows, which is kept for later rounds */
	double	   *latitudes;		/* of the rows: [given.count] */
	double	   *longitudes;
	OuterRow   *rows;
	uint64		points;			/* how many of these have a valid point, and no limits */
	Datum	   *values;			/* the rows' columns: [given.count] times [outer_columns] */
	bool	   *nulls;
	GivenPoints given;			/* the rows' points */
	GeonnJoin	join;			/* the node's join, with these points */
	GeonnShapeReader *reader;	/* of the last shape that the search has read; NULL: none */
} Round;

/* outer rows that were read together */
typedef struct OuterBlock
{
	int			rows;
	const Datum *values;		/* [rows] times [outer_columns] */
	const bool *nulls;
} OuterBlock;

typedef struct LateralNode LateralNode;

/* what outer rows ask for: the rows of a call (lateral.c), of a subquery (sql_join.c), or within a
 * distance (sql_within.c) */
typedef struct LateralSource
{
	/* Make the join of an execution, in the current memory context, and the row type of its searches. */
	GeonnJoin  *(*make_join) (LateralNode *state, TupleDesc *row_type);

	/* Set the point of the round's outer row of this number, whose columns are in the scan's slot. */
	void		(*read_point) (LateralNode *state, Round *round, uint64 number);

	/* Begin a round, and its search (geonn_lateral_begin_search) if it needs one. */
	void		(*begin_round) (LateralNode *state);
	bool		searches_again; /* a round can have a second search (geonn_lateral_begin_second_search) */

	/*
	 * Get the next neighbour of the present round's rows, [state->columns] values; false: none is left.  The last
	 * value is the number of the row, from 1 on, with the neighbour's rank in its lowest rank_bits.
	 */
	bool		(*next) (LateralNode *state, Datum *values, bool *nulls);
	int			rank_bits;

	/*
	 * Go on to the next block of the search's pairs, whose first one is present.  NULL: `next` has to be called.
	 * Rows are made of them as geonn_lateral_begin_blocks was told.  May be NULL.
	 */
	GeonnBlock *(*next_block) (LateralNode *state);

	/*
	 * Of a right join: note that the neighbour that `next` has returned last matches its row; and get the next neighbour
	 * that matches no row of the execution, as `next` does, without the last value.  NULL: no right join is planned.
	 */
	void		(*note_match) (LateralNode *state);
	bool		(*next_alone) (LateralNode *state, Datum *values, bool *nulls);
} LateralSource;

/* of the node of a call: what its rows ask for (lateral.c) */
typedef struct LateralCall
{
	ExprState  *point[POINT_EXPRESSIONS];
	Oid			table;			/* as in CallPrivate */
	bool		takes_blocks;	/* the present round's: its neighbours' columns lie in blocks of pairs */
} LateralCall;

/* where outer rows come from, and the rounds that take them (lateral_round.c) */
typedef struct LateralOuter
{
	AttrNumber *numbers;		/* [outer_columns] their numbers in the child's rows */
	AttrNumber	greatest_number;	/* the greatest of these */
	bool		keeps_words;	/* all of these are passed by value */

	/* of an execution: the outer columns, from 0 on, that are the points' latitude and longitude, as float8; a row where they
	 * are not valid has no point.  The first is -1: read_point says what a point is */
	int			point_column[2];
	TableReader *reader;		/* of the outer rows; NULL: the executor runs the child */
	OuterBlock	block;			/* the reader's rows that are still to be taken */
	bool		has_ended;		/* the child has no more outer rows */
	TupleTableSlot *held;		/* an outer row of the executor's that begins the next round; NULL: none */
	uint64		counts[POINT_STATUSES]; /* how many points have each status */

	Round		rounds[2];		/* the present one, and the next */
	Round	   *next;			/* takes rows while the engine searches */
	int			wanted;			/* how many outer rows the next round takes, if they fit */
} LateralOuter;

/* the searches of an execution beside those of the JoinNode (lateral_search.c) */
typedef struct LateralSearches
{
	bool		has_references;
	SharedReferences references;	/* for all searches but the first, which has them, unless processes share them */
	GeonnJoin	following_join; /* of the search that goes on from round to round (node.following) */

	/* the present round's */
	GeonnSearch *second;		/* the second search; NULL: none */
	GeonnJoin	second_join;
	GivenPoints second_given;
} LateralSearches;

/* the present round's neighbours, one after the other (lateral.c) */
typedef struct LateralNeighbours
{
	TupleTableSlot *found_slot; /* for a neighbour */
	TupleTableSlot *latest;		/* the latest neighbour: found_slot, or a slot for sorted rows */
	bool		is_asking;		/* the round may have neighbours that were not returned */
	Tuplesortstate *sorted;		/* neighbours in the outer rows' order; NULL: unsorted */
	bool		is_held;		/* the latest has not been returned yet */
	uint64		unmatched;		/* the number of the next row that may lack a neighbour */
	bool		has_ended;		/* all rows of the execution were returned */
} LateralNeighbours;

/* a column of a row that is made of a pair */
typedef struct MadeColumn
{
	int			number;			/* the index of the column in the row */
	int			outer;			/* the index of the outer row's column that it is; -1: it is the neighbour's */
	BlockColumn in_block;		/* the neighbour's values */
} MadeColumn;

/* rows that are made of pairs (lateral_block.c) */
typedef struct MadeRows
{
	int			columns;		/* how many columns they have */
	MadeColumn *column;			/* [columns]; NULL: none are made */
	TupleTableSlot *slot;		/* their slot: that of the plan's rows, or the scan's */
	ProjectionInfo *projection; /* set: slot is that of the plan's rows, which this makes of the scan's slot */
	GeonnBlock *pairs;			/* those that rows are being made of; NULL: none */
} MadeRows;

/* A source's own state follows the node's.  What one file keeps is in its member; the others have what all of them use. */
struct LateralNode
{
	JoinNode	node;			/* first field; its attributes end with that of ord or obs_id */
	const LateralSource *source;
	TupleTableSlot *slot;		/* the scan's slot */
	ExprContext *expressions;	/* the scan's context for expressions */
	ExprState  *filter;			/* tests pairs of rows; NULL: all of them match */
	JoinType	type;
	int			outer_columns;	/* the number of outer columns; the neighbours' follow them */
	int			shown_columns;	/* how many of these the node's rows have; others are for the question alone */
	int			columns;		/* the number of columns of neighbours: the scan's, and then ord */
	TupleDesc	descriptor;		/* the neighbours: [columns] */
	int			ord;			/* the index of ord or obs_id among those (from 0); -1: the scan lacks it */

	/* one execution */
	GeonnJoin  *join;			/* NULL: no outer row has come */
	TupleDesc	row_type;
	Round	   *round;			/* the present round */

	LateralCall call;
	LateralOuter outer;
	LateralSearches searches;
	LateralNeighbours neighbours;
	MadeRows	made;
};

/* Copy columns: they are few, so that calls of memcpy would take longer. */
static inline void
geonn_copy_columns(Datum *values, bool *nulls, const Datum *from, const bool *from_nulls, int columns)
{
	for (int i = 0; i < columns; i++)
	{
		values[i] = from[i];
		nulls[i] = from_nulls[i];
	}
}

/*
 * Begin the node: read the plan's private list, and begin the outer plan.  Returns the list of the question.  The caller
 * then sets source, columns, ord, and the filter, and goes on with geonn_lateral_begin_rows.
 */
extern const List *geonn_lateral_begin_plan(LateralNode *state, EState *estate, int flags);

/* Begin a child of the plan; the outer plan is the first. */
extern PlanState *geonn_lateral_begin_child(LateralNode *state, LateralChild child, EState *estate, int flags);
extern void geonn_lateral_begin_rows(LateralNode *state, EState *estate);

/*
 * Of `count` columns of the scan, from `first` on (0: the first of all): how many of the leading ones have all that the plan's
 * rows and conditions, and the node's filter, use.
 */
extern int	geonn_lateral_count_shown(const LateralNode *state, int first, int count);

/*
 * Have rows be made of the pairs of source->next_block, where all pairs are rows; in_block: the values of the neighbours'
 * columns, [columns - 1].  Called after geonn_lateral_begin_rows, in the memory context of the node.
 */
extern void geonn_lateral_begin_blocks(LateralNode *state, const BlockColumn *in_block);

/* Return the next row that is made of a pair; NULL: none is at hand. */
extern TupleTableSlot *geonn_lateral_next_of_block(LateralNode *state);

/* Set the first outer columns of this slot, which is like the scan's, to those of a row of the present round. */
extern void geonn_lateral_set_outer(const LateralNode *state, uint64 number, TupleTableSlot *slot, int count);

/* Set the point or shape of a row of this number, for GivenPoints.point; the reader of the row before is closed. */
extern void geonn_round_point(Round *round, uint64 number, PointRow *row);

/* Create a search whose rows are those of the node's neighbours, in the current memory context. */
extern GeonnSearch *geonn_lateral_create_search(const LateralNode *state, const GeonnJoin *join, TupleDesc row_type);

/*
 * Begin the present round's search; the first one sends the references, which the later ones use.  finds_all: find
 * all rows now.
 */
extern void geonn_lateral_begin_search(LateralNode *state, bool finds_all);

/*
 * Begin a second search of the present round, for these points, with the references of the first and k neighbours of
 * each point (0: all of them).  finds_all: as above.  It ends with the round, or by the next function.
 */
extern void geonn_lateral_begin_second_search(LateralNode *state, const GivenPoints *given, uint32 k, bool finds_all);
extern void geonn_lateral_end_second_search(LateralNode *state);

/* End the search that goes on from round to round, if one has begun. */
extern void geonn_lateral_end_following_search(JoinNode *node);

/*
 * End all searches, after an error that has interrupted one of them, or before a row of the round's is taken.  The next
 * search sends the references again.
 */
extern void geonn_lateral_abandon_searches(LateralNode *state);

/* Implement JoinNodeMethods. */
extern TupleTableSlot *geonn_lateral_next_row(JoinNode *node);
extern void geonn_lateral_end_execution(JoinNode *node);

/*
 * The node's methods, for the planner.  The plan's only child returns the outer rows.  The scan target list
 * has Vars of the child's columns, then of the function's row type.  The private list is LateralPrivate.
 */
extern const JoinNodeMethods geonn_lateral_methods;

/* Have the planner consider this node for joins. */
extern void geonn_plan_lateral_joins(void);

#endif							/* GEONN_LATERAL_H */
