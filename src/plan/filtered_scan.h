/*
 * filtered_scan.h
 *		Where the planner takes a plan node that reads a part of the observations.
 */
#ifndef GEONN_FILTERED_SCAN_H
#define GEONN_FILTERED_SCAN_H

#include "nodes/pathnodes.h"

/*
 * Offer to read only the observations that the query's clauses on them leave.  whole is the path of
 * the same node for all of them, with its cost.  Sets the relation's rows where it knows better.
 */
extern void geonn_offer_filtered_scans(PlannerInfo *root, RelOptInfo *rel, RangeTblFunction *call,
									   const CustomPath *whole);

#endif							/* GEONN_FILTERED_SCAN_H */
