/*
 * row_conditions.h
 *		Conditions on the columns of a join's rows, and how many rows they leave.
 */
#ifndef GEONN_ROW_CONDITIONS_H
#define GEONN_ROW_CONDITIONS_H

#include "nodes/pathnodes.h"

/*
 * Set the number of rows of the relation, which is this join in FROM, and of its paths, by the
 * conditions on obs_id, ref_id, distance and rank.
 */
extern void geonn_estimate_row_conditions(PlannerInfo *root, RelOptInfo *rel,
										  const RangeTblFunction *call);

#endif							/* GEONN_ROW_CONDITIONS_H */
