/*
 * sql_rounds.h
 *		The rounds of the plan node of nearest-neighbour subqueries: what becomes of each outer row.
 */
#ifndef GEONN_SQL_ROUNDS_H
#define GEONN_SQL_ROUNDS_H

#include "plan/lateral.h"
#include "sql/sql_fallback.h"
#include "sql/sql_outputs.h"
#include "sql/sql_plan.h"
#include "sql/sql_table.h"

/* as LateralSource.rank_bits */
#define RANK_BITS 20

/* what decides for the outer rows that are left in a round */
typedef enum Stage
{
	STAGE_SEARCH,				/* the round's search */
	STAGE_SECOND_SEARCH,		/* a second search, for the rows that the first left undecided */
	STAGE_ALL,					/* all references, for the rows without a search and those still undecided */
	STAGE_END
} Stage;

/* what every outer row asks for (sql_join.c) */
typedef struct SqlQuestion
{
	ExprState  *observation[2]; /* the observation's point; [references.points] */
	int			observation_column; /* its column in the scan's slot; -1: it is an expression */
	int			point_column[2];	/* of its latitude and longitude; -1: expressions, or the point is one value */
	int			metric;
	const char *function;
	ExprState  *limit;
	ExprState  *offset;
	ExprState  *reach;			/* NULL: none says how far the references may be */
	int			excluded;		/* as in SqlPrivate */
	bool		is_exact;		/* the distance is geonn's own, so that searches have it */

	/* one execution */
	uint32		k;				/* how many references a search returns; 0: nothing is searched for */
	GivenPoints given;			/* the references for the engine */
} SqlQuestion;

/* how far a round is (sql_rounds.c) */
typedef struct SqlProgress
{
	Stage		stage;
	bool		is_searched;	/* the round has a search */
	Answers		answers;		/* of its present search */
	uint64		points;			/* how many points the round's search has */
	uint64		points_left;	/* how many points of the present search have answers that were not taken */
	Numbers		undecided;		/* the outer rows that the present search leaves undecided */
	Numbers		asked;			/* those that the second search is for */
	uint64		next_row;		/* STAGE_ALL: the next outer row, and the next of undecided; those before were answered */
	uint64		next_undecided;
	uint64		present;		/* the present outer row's number in the round */
	bool		is_shown;		/* the pair has its columns */
	uint64		own_rank;		/* how many of its rows PostgreSQL's own plan has returned; 0: it does not answer */
	uint64		widened;		/* of the execution: how many outer rows the second searches were for */
} SqlProgress;

/* where the references are all rows of a table, which the engine may keep (sql_join.c) */
typedef struct SqlInTable
{
	const SqlTable *table;		/* NULL: none */
	bool		fits_table;		/* of the execution: the engine takes all of the table's rows, as far as is known */
	uint64		answers_left;	/* how many answers a round's search still has, at most */
	uint64		number;			/* of the point that it has returned a row for, and how many rows */
	uint64		rank;
} SqlInTable;

typedef struct SqlJoin
{
	LateralNode lateral;		/* first field */
	SqlExpressions planned;
	SqlReferences references;
	bool		has_read;		/* this execution has read the references */
	SqlCandidates candidates;	/* of the present outer row */
	SqlOutputs	outputs;		/* [lateral.columns - 1] of them */
	Fallback	fallback;
	SqlQuestion question;
	SqlProgress progress;
	SqlInTable	in_table;
} SqlJoin;

/* Read a point of the outer row that the context has. */
extern PointStatus geonn_sql_read_observation(const SqlJoin *join, ExprContext *expressions, double *latitude,
											  double *longitude);

/*
 * Are the first references of a search the rows, in their order?  Where conditions exclude some, PostgreSQL does not
 * evaluate the keys of these, which can fail.
 */
extern bool geonn_sql_takes_first(const SqlJoin *join);

/* Have all references read, by the node's own plan, if this execution has not; the state is the join. */
extern void geonn_sql_read_references(void *state);

/* Begin a round, and its search; false: it needs none, or the engine cannot be had. */
extern bool geonn_sql_try_round(SqlJoin *join);

/* Implement LateralSource.begin_round and next: the outputs of the next pair, and the number of its outer row. */
extern void geonn_sql_begin_round(LateralNode *lateral);
extern bool geonn_sql_next_pair(LateralNode *lateral, Datum *values, bool *nulls);

#endif							/* GEONN_SQL_ROUNDS_H */
