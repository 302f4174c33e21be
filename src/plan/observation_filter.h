/*
 * observation_filter.h
 *		Conditions of a query on a join's rows that are conditions on observations.
 */
#ifndef GEONN_OBSERVATION_FILTER_H
#define GEONN_OBSERVATION_FILTER_H

#include "nodes/pathnodes.h"

#include "points/columns.h"

/*
 * Choose from these clauses (RestrictInfo) of the relation, which is a join in FROM, those that are true of
 * all rows of an observation or of none.
 */
extern List *geonn_observation_clauses(RelOptInfo *rel, const RangeTblFunction *call,
									   List *clauses);

/* Join clauses (RestrictInfo) by which other relations' rows limit the observations. */
extern List *geonn_observation_join_clauses(PlannerInfo *root, RelOptInfo *rel,
											const RangeTblFunction *call);

/*
 * Clauses on the relation's obs_id that follow from the clauses of relations joined to it by obs_id; the
 * relation has no RestrictInfo of them.
 */
extern List *geonn_implied_observation_clauses(PlannerInfo *root, RelOptInfo *rel,
											   const RangeTblFunction *call);

/* gives the expression that replaces a parameter */
typedef Node *(*ParameterValue) (void *state, Node *parameter);

/*
 * Rewrite such clauses as conditions on the source's rows (PointSource.conditions), and leave out those for
 * which that is impossible.  Vars with this varno are the join's: varattno is the number in the row type, or,
 * if attributes is not NULL, the position (from 1) in this array of such numbers.  Params and all other Vars
 * are parameters.
 */
extern List *geonn_observation_conditions(List *clauses, const PointSource *source,
										  TupleDesc row_type, int varno, const AttrNumber *attributes,
										  ParameterValue value, void *state);
#endif							/* GEONN_OBSERVATION_FILTER_H */
