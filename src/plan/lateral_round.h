/*
 * lateral_round.h
 *		Outer rows of a lateral join, whose neighbours are searched for at once.
 */
#ifndef GEONN_LATERAL_ROUND_H
#define GEONN_LATERAL_ROUND_H

#include "plan/lateral.h"

/* Make the two rounds of an execution, in the node's context. */
extern void geonn_rounds_begin(LateralNode *state);

/*
 * Read outer rows into a round, at most half of work_mem: two rounds hold rows at a time.  Before the first
 * row, make the join.
 */
extern void geonn_round_take(LateralNode *state, Round *round);

/* Make the execution's join, which no outer row has done yet. */
extern void geonn_round_make_join(LateralNode *state);

/* Set the columns of neighbours of the scan's slot to NULL. */
extern void geonn_set_no_neighbour(LateralNode *state);

#endif							/* GEONN_LATERAL_ROUND_H */
