/*
 * sql_candidates.h
 *		The references that may be among a subquery's rows for an outer row, in the order of its keys.
 */
#ifndef GEONN_SQL_CANDIDATES_H
#define GEONN_SQL_CANDIDATES_H

#include "utils/sortsupport.h"
#include "utils/tuplesort.h"

#include "sql/sql_plan.h"
#include "sql/sql_references.h"

typedef struct Candidate
{
	uint64		reference;		/* its index among the references that are kept */
	double		distance;		/* as the search has it; NaN: the search does not have it */
	uint64		group;			/* comes before all of a greater one, whatever the keys say */
	Datum	   *keys;			/* [SqlCandidates.keys]; NULL: not evaluated */
	bool	   *nulls;
} Candidate;

typedef struct SqlCandidates
{
	const SqlReferences *references;
	int			keys;
	ExprState **key;			/* [keys] */
	bool		later_are_of_references;	/* the keys after the first are columns of the references */
	ExprState  *conditions;		/* that a candidate must meet; NULL: none */
	Oid		   *operators;		/* [keys] the operators that order them */
	SortSupport order;			/* [keys] */
	TupleTableSlot *pair;		/* like the scan's slot: an outer row and a reference, without outputs; and the distance */
	int			first;			/* the indexes in pair of the references' columns and of the distance */
	int			distance;
	ExprContext *expressions;	/* its tuple is pair; its memory has the keys of an outer row's candidates */

	/* one execution */
	uint64		skipped;		/* OFFSET */
	uint64		wanted;			/* LIMIT; the greatest number: none */
	uint64		rechecked;		/* how many candidates had their keys evaluated */

	/* an outer row */
	Candidate  *candidates;		/* [room] */
	uint64		room;
	uint64		count;
	uint64		group;			/* of the next one that is added */
	uint64		next;			/* the index of the next one that is returned */
	uint64		end;			/* the index after the last one that is returned */

	/* where the references are read again for each outer row: their keys and columns, sorted */
	TupleTableSlot *unsorted_slot;
	TupleTableSlot *sorted_slot;
	Tuplesortstate *sorted;		/* NULL: the outer row has candidates instead */
	Candidate	present;		/* the one returned last */
} SqlCandidates;

/*
 * Begin with the keys and conditions of a plan, whose scan tuple is like `scan`; the outer columns are its
 * first ones, and the references' columns its last ones.
 */
extern void geonn_candidates_begin(SqlCandidates *candidates, const SqlReferences *references, PlanState *plan,
								   const SqlExpressions *expressions, const SqlPrivate *planned, TupleDesc scan,
								   int outer_columns);

/*
 * Make the reference a candidate of the present outer row, whose columns pair has if conditions are set; false: it does
 * not meet them.  distance is as in Candidate.
 */
extern bool geonn_candidates_add(SqlCandidates *candidates, uint64 reference, double distance);

/*
 * Have the candidates within OFFSET and LIMIT returned, in the order in which they are; or, where pair has the outer
 * row's columns, in that of the keys.
 */
extern void geonn_candidates_choose(SqlCandidates *candidates);
extern void geonn_candidates_sort(SqlCandidates *candidates);

/*
 * Bring the references into the order of the keys after the first one, which are their columns.  A search returns
 * references at one distance in their order.
 */
extern void geonn_candidates_order_references(SqlCandidates *candidates, SqlReferences *references);

/* Read the references again, and have those within OFFSET and LIMIT returned.  Returns how many were read. */
extern uint64 geonn_candidates_reread(SqlCandidates *candidates, SqlReferences *references);

/* Forget the candidates of the present outer row. */
extern void geonn_candidates_reset(SqlCandidates *candidates);

/* The next candidate, whose columns pair then has; NULL: none is left. */
extern const Candidate *geonn_candidates_next(SqlCandidates *candidates);

#endif							/* GEONN_SQL_CANDIDATES_H */
