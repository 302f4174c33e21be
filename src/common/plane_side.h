/*
 * plane_side.h
 *		On which side of an edge of a plane a point lies, as PostGIS computes it.
 *
 * Whether a polygon contains a point, PostGIS tells by the winding number of each ring about the point: the edges that
 * go up past the point's height on its right, less those that go down there.  On which side an edge from a to b has the
 * point p, the sign of (b.x - a.x) * (p.y - a.y) - (p.x - a.x) * (b.y - a.y) tells, in float64.  Where that number is 0
 * and p is in the edge's box, p is on the border.  All of PostGIS 3.3 to 3.6 do so; they differ in the edges that
 * they leave out: 3.3 and 3.4 those shorter than 1e-12 in a polygon that they meet for the second time, and those of two equal
 * vertices in any other; 3.5 and 3.6 those of two equal vertices.  An edge that is left out and is not horizontal
 * changes the winding number about all points on its left.
 *
 *
 * Rounding
 *
 * Write u = 2^-53, and L and R for the absolute values of the two products.  Each difference is within u of its size, so each
 * product within 3.1 u, and the number within 4.1 u (L + R), but for what an underflow of the products takes,
 * less than 2^-1070.  A compiler that fuses a product and the difference, as gcc does on arm64, computes another number within
 * the same bound.  Any two such numbers differ by 8.2 u (L + R) at most.  So where the number exceeds
 * 16 u (L + R) + 2^-1022, its sign is that of the exact one, and that of the number that PostGIS has.  An overflow fails
 * this comparison, too.
 */
#ifndef GEONN_PLANE_SIDE_H
#define GEONN_PLANE_SIDE_H

#include <float.h>
#include <math.h>
#include <stdbool.h>

struct geonn_plane_point
{
	double		x;
	double		y;
};

/* What an edge adds to the winding number about a point.  In doubt: PostGIS may add another number, or see the border. */
enum geonn_plane_turn
{
	GEONN_TURN_DOWN = -1,
	GEONN_TURN_NONE = 0,
	GEONN_TURN_UP = 1,
	GEONN_TURN_IN_DOUBT
};

/* Return whether some release of PostGIS leaves out an edge that goes up or down: it is no longer than 1e-12, and some more. */
static inline bool
geonn_plane_edge_is_tiny(struct geonn_plane_point a, struct geonn_plane_point b)
{
	double		dx = b.x - a.x;
	double		dy = b.y - a.y;

	return dx * dx + dy * dy < 0x1p-79;
}

/* Return what the edge from a to b adds to the winding number about p.  All coordinates are finite. */
static inline enum geonn_plane_turn
geonn_plane_turn(struct geonn_plane_point a, struct geonn_plane_point b, struct geonn_plane_point p)
{
	bool		is_up = a.y <= p.y && p.y < b.y;
	bool		is_down = b.y <= p.y && p.y < a.y;
	double		left;
	double		right;
	double		side;

	/* p is neither between the ends' heights nor as high as one of them */
	if (!is_up && !is_down && p.y != a.y && p.y != b.y)
		return GEONN_TURN_NONE;
	left = (b.x - a.x) * (p.y - a.y);
	right = (p.x - a.x) * (b.y - a.y);
	side = left - right;
	if (!(fabs(side) > 0x1p-49 * (fabs(left) + fabs(right)) + DBL_MIN))
	{
		bool		is_in_box = (p.x >= a.x || p.x >= b.x) && (p.x <= a.x || p.x <= b.x);

		return is_up || is_down || is_in_box ? GEONN_TURN_IN_DOUBT : GEONN_TURN_NONE;
	}
	if (!(is_up ? side > 0 : is_down && side < 0))
		return GEONN_TURN_NONE;
	if (geonn_plane_edge_is_tiny(a, b))
		return GEONN_TURN_IN_DOUBT;
	return is_up ? GEONN_TURN_UP : GEONN_TURN_DOWN;
}

#endif							/* GEONN_PLANE_SIDE_H */
