/*
 * sql_outputs.h
 *		What a nearest-neighbour subquery returns of each of its rows: its outputs, among them the distance.
 */
#ifndef GEONN_SQL_OUTPUTS_H
#define GEONN_SQL_OUTPUTS_H

#include "plan/lateral.h"
#include "sql/sql_candidates.h"

/* how a column of the subquery gets its value */
typedef struct Output
{
	ExprState  *expression;
	int			key;			/* the index of an equal key; -1: none */
	int			column;			/* of pair, from 0 on, which is the expression; -1: it is another one */
} Output;

/* a point, as the formula for the distance takes it */
typedef struct FormulaPoint
{
	double		longitude;		/* radians */
	double		sine;			/* of the latitude */
	double		cosine;
} FormulaPoint;

typedef struct SqlOutputs
{
	SqlCandidates *candidates;
	int			count;
	Output	   *output;			/* [count] */
	bool		shows_outer;	/* an output is an expression that needs columns of the outer row */
	bool		shows_distance; /* an output has the first key in it */
	bool		is_exact;		/* the first key is the search's distance */
	bool		takes_formula;	/* its value may come from the formula */
	bool		is_left;		/* the observation is the left argument of its operator */

	/* an outer row */
	bool		is_in_formula;	/* formula has its point */
	FormulaPoint formula;
} SqlOutputs;

/*
 * Begin with the outputs of a plan, whose first columns are those of outer rows.
 */
extern void geonn_sql_outputs_begin(SqlOutputs *outputs, SqlCandidates *candidates, PlanState *plan,
									const SqlExpressions *expressions, const SqlPrivate *planned, int outer_columns);

/* Forget the present outer row. */
extern void geonn_sql_outputs_reset(SqlOutputs *outputs);

/*
 * Set the pair's distance to the first key's value, for the candidate that the pair shows, and this outer
 * row of the round.  False: it has to be evaluated (geonn_sql_evaluate_distance), for which pair must have the outer row's
 * columns.
 */
extern bool geonn_sql_show_distance(SqlOutputs *outputs, const Candidate *candidate, const Round *round, uint64 number);
extern void geonn_sql_evaluate_distance(SqlOutputs *outputs, const Candidate *candidate, const Round *round,
										uint64 number);

/* The value of an output, for the candidate that the pair shows. */
extern Datum geonn_sql_output(const SqlOutputs *outputs, int number, const Candidate *candidate, bool *is_null);

#endif							/* GEONN_SQL_OUTPUTS_H */
