/*
 * sql_zone_scan.h
 *		The polygons of a plane that have the point of an outer query's row inside, one point after the other.
 */
#ifndef GEONN_SQL_ZONE_SCAN_H
#define GEONN_SQL_ZONE_SCAN_H

#include "nodes/pathnodes.h"

/* what the plans of a statement have of the node */
typedef struct ZoneScans
{
	uint64		nodes;			/* how many */
	Cost		zones;			/* of reading and indexing their polygons, which the costs of these plans lack */
} ZoneScans;

/* Does a subquery of the query ask for polygons by a point of an outer query's row? */
extern bool geonn_asks_for_zones_of_rows(Query *query);

/*
 * Have the planner consider the node from here on, and count what it plans; NULL: not.  Returns what was so before.
 */
extern ZoneScans *geonn_offer_zone_scans(ZoneScans *scans);

/* Called when the module is loaded. */
extern void geonn_plan_zone_scans(void);

#endif							/* GEONN_SQL_ZONE_SCAN_H */
