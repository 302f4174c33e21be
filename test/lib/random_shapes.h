/*
 * random_shapes.h
 *		Random shapes, points near them, and their distances as the module computes them.
 */
#ifndef GEONN_TEST_RANDOM_SHAPES_H
#define GEONN_TEST_RANDOM_SHAPES_H

#include <math.h>

#include "common/arc.h"
#include "common/ring.h"
#include "hostile.h"
#include "random.h"
#include "shape_oracle.h"

/* ---- random shapes ---- */

static void
add_vertex(struct chain *chain, struct point vertex)
{
	chain->vertices[chain->count++] = vertex;
}

/* the point at this distance, in radians, from another one, clockwise from north by a bearing */
static struct point
place_from(struct point from, double distance, double bearing)
{
	double		latitude = from.latitude * (M_PI / 180.0);
	double		longitude = from.longitude * (M_PI / 180.0);
	double		out = cos(latitude) * cos(distance) - sin(latitude) * sin(distance) * cos(bearing);
	double		east = sin(distance) * sin(bearing);
	double		up = sin(latitude) * cos(distance) + cos(latitude) * sin(distance) * cos(bearing);

	return (struct point) {
		atan2(up, hypot(out, east)) * (180.0 / M_PI),
			atan2(out * sin(longitude) + east * cos(longitude),
				  out * cos(longitude) - east * sin(longitude)) * (180.0 / M_PI)
	};
}

/* where random_place() is, unless NULL */
static const struct point *place_to_be;

static struct point
random_place(void)
{
	struct point place = {asin(random_between(-1.0, 1.0)) * (180.0 / M_PI), random_between(-180.0, 360.0)};

	if (place_to_be != NULL)
		return *place_to_be;
	switch (random_below(6))
	{
		case 0:
			place.latitude = random_below(2) ? 90.0 : -90.0;
			break;
		case 1:
			place.longitude = 180.0;
			break;
		case 2:
			place.latitude = random_below(181) - 90;
			place.longitude = random_below(541) - 180;
			break;
	}
	return place;
}

static double
random_radius(double low, double high)
{
	return fabs(random_magnitude(low, high));
}

/* a ring around a centre, whose vertices are between radius / 3 and radius from it */
static void
make_star(struct chain *chain, struct point centre, double radius)
{
	int			corners = 3 + random_below(40);
	double		first = random_between(0.0, 2.0 * M_PI);

	for (int i = 0; i < corners; i++)
		add_vertex(chain, place_from(centre, radius * random_between(0.34, 1.0),
									 first + 2.0 * M_PI * i / corners));
	add_vertex(chain, chain->vertices[0]);
}

static void
make_polygon(struct shape *shape, double low, double high)
{
	double		radius = random_radius(low, high);
	int			holes = random_below(4) ? 0 : random_below(MOST_RINGS);

	shape->is_polygon = true;
	shape->centre = random_place();
	make_star(&shape->chains[shape->count++], shape->centre, radius);
	/* one within the other, or beside each other, touching and crossing */
	for (int i = 1; i <= holes; i++)
	{
		struct point centre = random_below(2) ? shape->centre :
			place_from(shape->centre, radius * 0.2, random_between(0.0, 6.3));

		make_star(&shape->chains[shape->count++], centre, radius * pow(0.4, i));
	}
}

static void
make_crossing_ring(struct shape *shape)
{
	struct chain *chain = &shape->chains[shape->count++];
	double		radius = random_radius(1e-9, 1.4);
	int			corners = 3 + random_below(12);

	shape->is_polygon = true;
	shape->centre = random_place();
	for (int i = 0; i < corners; i++)
		add_vertex(chain, place_from(shape->centre, radius * random_between(0.0, 1.0), random_between(0.0, 6.3)));
	add_vertex(chain, chain->vertices[0]);
}

/* a triangle that is a millimetre wide */
static void
make_sliver(struct shape *shape)
{
	struct chain *chain = &shape->chains[shape->count++];
	double		bearing = random_between(0.0, 6.3);

	shape->is_polygon = true;
	shape->centre = random_place();
	add_vertex(chain, shape->centre);
	add_vertex(chain, place_from(shape->centre, random_radius(1e-6, 1.2), bearing));
	add_vertex(chain, place_from(chain->vertices[1], 1e-3 / GEONN_SPHERE_RADIUS, bearing + M_PI / 2));
	add_vertex(chain, chain->vertices[0]);
}

/* between meridians and parallels of whole degrees, where points lie on borders */
static void
make_box(struct shape *shape)
{
	struct chain *chain = &shape->chains[shape->count++];
	int			south = random_below(150) - 90;
	int			north = south + 1 + random_below(90 - south < 30 ? 90 - south : 30);
	int			west = random_below(361) - 180;
	int			east = west + 1 + random_below(30);

	shape->is_polygon = true;
	shape->centre = (struct point) {(south + north) / 2.0, (west + east) / 2.0};
	for (int i = 0; i < 5; i++)
		add_vertex(chain, (struct point) {i == 1 || i == 2 ? north : south, i == 2 || i == 3 ? east : west});
}

/* around a cap that is larger than a hemisphere: inside is what is left */
static void
make_large_ring(struct shape *shape)
{
	struct chain *chain = &shape->chains[shape->count++];
	struct point around = random_place();
	double		radius = random_between(1.7, 3.0);
	int			corners = 12 + random_below(40);

	shape->is_polygon = true;
	shape->centre = place_from(around, M_PI, 0.0);
	for (int i = 0; i < corners; i++)
		add_vertex(chain, place_from(around, radius, 2.0 * M_PI * i / corners));
	add_vertex(chain, chain->vertices[0]);
}

static void
make_line(struct shape *shape)
{
	struct chain *chain = &shape->chains[shape->count++];
	double		step = random_radius(1e-10, 3.0);
	int			vertices = 2 + random_below(30);

	add_vertex(chain, random_place());
	for (int i = 1; i < vertices; i++)
	{
		struct point last = chain->vertices[i - 1];

		add_vertex(chain, random_below(10) ? place_from(last, step * random_between(0.0, 1.0), random_between(0.0, 6.3)) : last);
	}
}

/* arcs that are up to a tenth of a degree, or a millimetre, shorter than a half circle */
static void
make_long_arcs(struct shape *shape)
{
	struct chain *chain = &shape->chains[shape->count++];

	add_vertex(chain, random_place());
	for (int i = 1; i < 5; i++)
		add_vertex(chain, place_from(chain->vertices[i - 1],
									 M_PI - (random_below(2) ? M_PI / 1800.0 : random_radius(2e-10, 1e-2)),
									 random_between(0.0, 6.3)));
}

/* between hostile places, often through poles */
static void
make_hostile_line(struct shape *shape)
{
	struct chain *chain = &shape->chains[shape->count++];
	int			vertices = 2 + random_below(3);

	add_vertex(chain, hostile_point());
	if (random_below(2))
		chain->vertices[0].longitude = 180.0;
	while (chain->count < vertices)
	{
		struct point from = chain->vertices[chain->count - 1];
		struct point to = hostile_point();

		if (!geonn_arc_is_antipodal(geonn_unit_vector(from.latitude, from.longitude),
									geonn_unit_vector(to.latitude, to.longitude)))
			add_vertex(chain, to);
	}
}

#define SHAPE_KINDS 10

static inline void
make_shape(struct shape *shape, int number)
{
	shape->is_polygon = false;
	shape->count = 0;
	for (int i = 0; i < MOST_RINGS; i++)
		shape->chains[i].count = 0;
	switch (number % SHAPE_KINDS)
	{
		case 0:
			make_line(shape);
			break;
		case 1:
			make_long_arcs(shape);
			break;
		case 2:
			make_polygon(shape, 1e-10, 1e-6);
			break;
		case 3:
		case 4:
			make_polygon(shape, 1e-6, 1.5);
			break;
		case 5:
			make_crossing_ring(shape);
			break;
		case 6:
			make_sliver(shape);
			break;
		case 7:
			make_box(shape);
			break;
		case 8:
			make_hostile_line(shape);
			break;
		default:
			make_large_ring(shape);
			break;
	}
}

/* a place along the chord of two points, which is near their arc */
static inline struct point
random_place_between(struct point a, struct point b)
{
	struct geonn_vector u = geonn_unit_vector(a.latitude, a.longitude);
	struct geonn_vector v = geonn_unit_vector(b.latitude, b.longitude);
	double		t = random_between(0.0, 1.0);
	double		x = u.x + t * (v.x - u.x);
	double		y = u.y + t * (v.y - u.y);
	double		z = u.z + t * (v.z - u.z);

	return (struct point) {atan2(z, hypot(x, y)) * (180.0 / M_PI), atan2(y, x) * (180.0 / M_PI)};
}

/* a point that may be anywhere, at a vertex, on an arc or near it, or opposite to one of these */
static inline struct point
make_point(const struct shape *shape)
{
	const struct chain *chain = &shape->chains[random_below(shape->count)];
	int			i = random_below(chain->count - 1);
	struct point a = chain->vertices[i];
	struct point b = chain->vertices[i + 1];
	struct point point = a;

	switch (random_below(10))
	{
		case 0:
			return random_place();
		case 1:
			return a;
		case 2:
			return shape->is_polygon ? shape->centre : b;
		case 3:
			return random_below(2) ? hostile_point() : (struct point) {random_below(2) ? 90.0 : -90.0, 0.0};
		case 4:
			point = place_from(a, M_PI, 0.0);
			break;
		case 5:
			return (struct point) {rint(a.latitude), rint(b.longitude)};
		default:
			point = random_place_between(a, b);
			break;
	}
	return random_below(4) ? place_from(point, random_radius(1e-17, 1.0), random_between(0.0, 6.3)) : point;
}

/* ---- what is tested, put together as the module does it ---- */

static size_t
vectors_of(const struct chain *chain, struct geonn_vector *vectors)
{
	size_t		count = 0;

	for (int i = 0; i < chain->count; i++)
	{
		struct point to = chain->vertices[i];
		struct geonn_vector vector = geonn_unit_vector(to.latitude, to.longitude);

		if (i > 0 && geonn_arc_is_long(vectors[count - 1], vector))
		{
			struct point from = chain->vertices[i - 1];

			vectors[count++] = geonn_arc_middle(from.latitude, from.longitude, to.latitude, to.longitude);
		}
		vectors[count++] = vector;
	}
	return count;
}

static inline double
distance_to(const struct shape *shape, struct point point, long *undecided)
{
	struct geonn_vector p = geonn_unit_vector(point.latitude, point.longitude);
	struct geonn_vector vectors[2 * MOST_VERTICES];
	double		distance = INFINITY;
	bool		is_inside = false;

	for (int i = 0; i < shape->count; i++)
	{
		size_t		count = vectors_of(&shape->chains[i], vectors);
		bool		pole_is_inside = false;
		enum geonn_side side;

		distance = fmin(distance, geonn_chain_distance(p, vectors, count));
		if (!shape->is_polygon)
			continue;
		*undecided += !geonn_ring_holds_pole(vectors, count, NULL, &pole_is_inside);
		side = geonn_ring_side(vectors, count, pole_is_inside, p);
		if (side == GEONN_ON_BORDER)
			distance = 0.0;
		is_inside ^= side == GEONN_INSIDE;
	}
	return is_inside ? 0.0 : distance;
}

#endif							/* GEONN_TEST_RANDOM_SHAPES_H */
