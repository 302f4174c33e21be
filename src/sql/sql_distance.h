/*
 * sql_distance.h
 *		Distances in expressions of SQL: which functions and operators measure as geonn does, between which values.
 */
#ifndef GEONN_SQL_DISTANCE_H
#define GEONN_SQL_DISTANCE_H

#include "nodes/primnodes.h"

#include "points/geometry.h"

/* bytes of the longest point, with Z, M and a box, as a cast from geography leaves one: most lines and polygons are longer */
#define POINT_BYTES 80

/* a function that computes a distance, called with so many arguments */
typedef struct DistanceFunction
{
	const char *name;
	const char *extension;
	int			arguments;
	const char *last;			/* the last argument, a constant that says how to measure; NULL: none does */
	int			metric;
	GeonnPointKind kind;		/* of its points; GEONN_POINT_NONE: latitude and longitude are two arguments */
	bool		takes_shapes;	/* the reference may be lines or polygons */
} DistanceFunction;

/* Is the function of this extension? */
extern bool geonn_is_of_extension(Oid function, const char *extension);

/*
 * Split a distance into the arguments of both points, in either order.  NULL: the expression is none that geonn measures.
 */
extern const DistanceFunction *geonn_read_distance(Node *expression, List **one, List **other);

/* Is the expression such a distance? */
extern bool geonn_sql_is_distance(Node *expression);

/*
 * Set both points of such a distance between geographies, and its metric, enum geonn_metric.  Returns the name of the
 * function that computes it; NULL: the expression is none.
 */
extern const char *geonn_sql_distance_of_geographies(Node *expression, Node **one, Node **other, int *metric);

/*
 * Is the expression PostGIS's distance of two geometries whose types say what they are, in WGS84?  It is in
 * degrees of the plane.
 */
extern bool geonn_is_distance_in_degrees(Node *expression);

/*
 * Return how long a column's values are on average, as the statistics of its table say, through subqueries and views of this
 * range table; 0: unknown.
 */
extern int32 geonn_average_bytes(const List *range_table, const Var *column);

/*
 * Return what keeps values from being taken as points of WGS84, as far as their type and statistics tell; NULL: nothing, but
 * some may be no points.  A cast of a geometry to geography keeps what the geometry's type says.  The value is a column, or
 * a cast of one, of this range table; where it is of an outer row, of the outer query's.
 */
extern const char *geonn_problem_of_points(const List *range_table, Node *value);

/*
 * Return what the node reads in place of such a value.  PostGIS's cast to geography fails for some geometries, so the node
 * reads a geometry whose type leaves open what it is, and casts only where PostgreSQL does.  Of a column of a domain, it reads
 * the column.
 */
extern Node *geonn_value_of_point(Node *value);

/*
 * Does the type say that the values are lines, polygons or several points of WGS84 (sql_shapes.c), and does
 * geonn.enable_sql_joins allow polygons?  Does it say that, or leave
 * open what a column's values are?
 */
extern bool geonn_is_of_shapes(Node *value);
extern bool geonn_may_be_shapes(Node *value);

#endif							/* GEONN_SQL_DISTANCE_H */
