/*
 * sql_zones.h
 *		Joins of points with the polygons of a plane that have them inside, in PostGIS's words.
 */
#ifndef GEONN_SQL_ZONES_H
#define GEONN_SQL_ZONES_H

#include "nodes/pathnodes.h"

#include "join/reference_memory.h"
#include "plan/lateral.h"
#include "zones/plane.h"

/* the polygons of the references, and those that were found for an outer row */
typedef struct Zones
{
	/* one execution */
	GeonnPlane *plane;			/* has the values of references, which outlive it */
	bool		has_srid;		/* a polygon was read */
	int32		srid;			/* of the first polygon; others are asked of PostGIS */
	Size		counted;		/* bytes of the plane that the memory of references has */

	/* a round */
	uint64		next_row;		/* the next outer row whose point is looked up */
	const PlaneFound *found;	/* the polygons of the row before that */
	uint32		left;			/* how many of these were not taken */
} Zones;

/* ---- the planner ---- */

/*
 * Return what keeps PostGIS's predicates of these values from being answered here, as far as their types and statistics tell;
 * NULL: nothing does.  The point may be a column of geometry whose values are short, and the zone one whose values are long:
 * points, and a polygon or several.  Columns are those of this range table.
 */
extern const char *geonn_zones_problem(const List *range_table, Node *point, Node *zone);

/* Does the clause ask whether the boxes of both values overlap, as they do for all pairs that are found without PostGIS? */
extern bool geonn_zones_imply(const Node *clause, const Node *point, const Node *zone);

/* a call of PostGIS's function, in the units of lateral_path.h */
#define COST_OF_CALL 1

/*
 * The cost of reading polygons by this path, and indexing them; and of so many points, which have so many pairs.  Both are to be
 * compared with those of PostgreSQL's own ways, where a call of PostGIS's function costs so much.
 */
extern Cost geonn_zones_cost(Cost call, const Path *zones);
extern Cost geonn_zones_cost_of_points(Cost call, double points, double pairs);

/* ---- the node ---- */

/* Begin to read polygons, in the current memory context. */
extern void geonn_zones_begin(Zones *zones);

/*
 * Read the reference of this number, whose value is plain, and outlives the polygons.  Returns POINT_VALID: its polygon was
 * added; POINT_NULL: it has none; POINT_NOT_FINITE: PostGIS has to be asked about it for each point.
 */
extern PointStatus geonn_zones_add(Zones *zones, uint64 number, const NullableDatum *value);

/* Count the bytes of what was added; false: geonn.session_memory_limit has no room for them. */
extern bool geonn_zones_count(Zones *zones, ReferenceMemory *memory);

/* Prepare what was added for searches.  Honours a cancellation. */
extern void geonn_zones_end(Zones *zones);

/*
 * Read the point of an outer row.  Returns POINT_VALID; POINT_NULL: it is in no polygon; POINT_NOT_FINITE: PostGIS has to be
 * asked about it for each polygon.
 */
extern PointStatus geonn_zones_read_point(const Zones *zones, const NullableDatum *value, double *x, double *y);

/* Begin with the first row of a round. */
extern void geonn_zones_begin_round(Zones *zones);

/*
 * Find the polygons that may have a point: zones->left of them, in the order in which they were added, from zones->found on.
 */
extern void geonn_zones_find(Zones *zones, double x, double y);

/*
 * Find the next polygon that may have the point of a row of the round, whose x are the longitudes, and whose y are the
 * latitudes; a row without point has NaN.  Sets the row's number.  asks_whether: pass over rows that are matched;
 * one_will_do: one polygon that is sure is enough for a row.  Returns NULL if none is left.
 */
extern const PlaneFound *geonn_zones_next(Zones *zones, const Round *round, bool asks_whether, bool one_will_do,
										  uint64 *number);

#endif							/* GEONN_SQL_ZONES_H */
