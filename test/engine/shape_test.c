/*
 * shape_test.c
 *		Measures src/common/arc.c and ring.c against an oracle in __float128.
 *
 * Usage: shape_test [seed [sets]], where sets is the number of random shapes, each
 * with 40 points.
 */
#include <math.h>
#include <quadmath.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/arc.h"
#include "common/ring.h"
#include "../lib/point.h"
#include "../lib/random.h"
#include "../lib/shape_oracle.h"
#include "../lib/verdict.h"

#define LIMIT_NANOMETRES 10.0
#define POINTS_OF_A_SET 40

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

static struct point
random_place(void)
{
	struct point place = {asin(random_between(-1.0, 1.0)) * (180.0 / M_PI), random_between(-180.0, 360.0)};

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

static void
make_shape(struct shape *shape, int number)
{
	shape->is_polygon = false;
	shape->count = 0;
	for (int i = 0; i < MOST_RINGS; i++)
		shape->chains[i].count = 0;
	switch (number % 9)
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
		default:
			make_large_ring(shape);
			break;
	}
}

/* a point that may be anywhere, at a vertex, on an arc or near it, or opposite to one of these */
static struct point
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
			return (struct point) {random_below(2) ? 90.0 : -90.0, 0.0};
		case 4:
			point = place_from(a, M_PI, 0.0);
			break;
		case 5:
			return (struct point) {rint(a.latitude), rint(b.longitude)};
		default:
			{
				/* along the chord, which is near the arc */
				struct geonn_vector u = geonn_unit_vector(a.latitude, a.longitude);
				struct geonn_vector v = geonn_unit_vector(b.latitude, b.longitude);
				double		t = random_between(0.0, 1.0);
				double		x = u.x + t * (v.x - u.x);
				double		y = u.y + t * (v.y - u.y);
				double		z = u.z + t * (v.z - u.z);

				point = (struct point) {atan2(z, hypot(x, y)) * (180.0 / M_PI), atan2(y, x) * (180.0 / M_PI)};
			}
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

static double
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

/* ---- properties ---- */

static void
test_random_shapes(long sets)
{
	static const char *const names[] = {"lines", "arcs near a half circle", "polygons of millimetres to metres",
		"polygons up to 85 degrees", "polygons with holes", "rings that cross themselves", "slivers",
	"boxes of whole degrees", "rings larger than a hemisphere"};
	double		worst[9] = {0.0};
	long		inside = 0;
	long		undecided = 0;
	char		title[100];

	for (long set = 0; set < sets; set++)
	{
		struct shape shape;

		make_shape(&shape, (int) (set % 9));
		for (int i = 0; i < POINTS_OF_A_SET; i++)
		{
			struct point point = make_point(&shape);
			double		distance = distance_to(&shape, point, &undecided);
			double		error = (double) fabsq(distance - oracle_shape_distance(&shape, point)) * 1e9;

			inside += shape.is_polygon && distance == 0.0;
			if (!(error <= worst[set % 9]))
				worst[set % 9] = error;
			if (!(error <= LIMIT_NANOMETRES))
				printf("# set %ld: %.17g %.17g is %.9f m away, off by %g nm\n", set, point.latitude,
					   point.longitude, distance, error);
		}
	}
	for (int i = 0; i < 9; i++)
	{
		snprintf(title, sizeof(title), "distances are within %g nm: %s", LIMIT_NANOMETRES, names[i]);
		report_measure(title, worst[i] <= LIMIT_NANOMETRES, "worst error", worst[i], "nm");
	}
	report_failures("each ring within a hemisphere has a smaller side", undecided);
	report("many points are inside", inside > sets);
}

/* Triangles around a point: each other point is inside of one of them, or on the border of at least one */
static void
test_partition(long rounds)
{
	long		failures = 0;

	for (long round = 0; round < rounds; round++)
	{
		struct point centre = random_place();
		double		radius = random_radius(1e-12, 1.0);
		int			spokes = 4 + random_below(8);
		struct geonn_vector corners[12];
		struct geonn_vector middle = geonn_unit_vector(centre.latitude, centre.longitude);

		for (int i = 0; i < spokes; i++)
		{
			struct point corner = place_from(centre, radius, 2.0 * M_PI * i / spokes);

			corners[i] = geonn_unit_vector(corner.latitude, corner.longitude);
		}
		for (int i = 0; i < 20; i++)
		{
			/* on a spoke, but for rounding */
			struct geonn_vector corner = corners[random_below(spokes)];
			double		t = random_between(0.0, 0.5);
			struct geonn_vector point = {middle.x + t * (corner.x - middle.x), middle.y + t * (corner.y - middle.y),
				middle.z + t * (corner.z - middle.z)};
			int			insides = 0;
			int			borders = 0;

			for (int j = 0; j < spokes; j++)
			{
				struct geonn_vector ring[4] = {middle, corners[j], corners[(j + 1) % spokes], middle};
				bool		pole_is_inside;
				enum geonn_side side;

				failures += !geonn_ring_holds_pole(ring, 4, NULL, &pole_is_inside);
				side = geonn_ring_side(ring, 4, pole_is_inside, point);
				insides += side == GEONN_INSIDE;
				borders += side == GEONN_ON_BORDER;
			}
			failures += borders == 0 ? insides != 1 : insides != 0 || borders < 2;
		}
	}
	report_failures("triangles that share sides have each point once", failures);
}

struct question
{
	struct point point;
	enum geonn_side side;
};

static void
ask(const char *name, const struct point *vertices, int count, const struct question *questions, int asked)
{
	struct chain chain = {.count = 0};
	struct geonn_vector vectors[2 * MOST_VERTICES];
	bool		pole_is_inside;
	size_t		length;
	long		failures = 0;

	for (int i = 0; i < count; i++)
		add_vertex(&chain, vertices[i]);
	length = vectors_of(&chain, vectors);
	failures += !geonn_ring_holds_pole(vectors, length, NULL, &pole_is_inside);
	for (int i = 0; i < asked; i++)
		failures += geonn_ring_side(vectors, length, pole_is_inside,
									geonn_unit_vector(questions[i].point.latitude, questions[i].point.longitude)) !=
			questions[i].side;
	report_failures(name, failures);
}

#define ASK(name, vertices, questions) \
	ask(name, vertices, (int) (sizeof(vertices) / sizeof((vertices)[0])), \
		questions, (int) (sizeof(questions) / sizeof((questions)[0])))

static void
test_borders(void)
{
	static const struct point octant[] = {{0, 0}, {0, 90}, {90, 0}, {0, 0}};
	static const struct question of_octant[] = {
		{{45, 45}, GEONN_INSIDE}, {{0, 45}, GEONN_ON_BORDER}, {{45, 0}, GEONN_ON_BORDER}, {{45, 90}, GEONN_ON_BORDER},
		{{90, 17}, GEONN_ON_BORDER}, {{0, 90}, GEONN_ON_BORDER}, {{45, -1e-12}, GEONN_OUTSIDE},
		{{45, 1e-12}, GEONN_INSIDE}, {{1e-30, 45}, GEONN_INSIDE}, {{-1e-30, 45}, GEONN_OUTSIDE},
		{{45, 1e-30}, GEONN_INSIDE}, {{45, -1e-30}, GEONN_OUTSIDE},
		{{-90, 0}, GEONN_OUTSIDE}, {{-45, -135}, GEONN_OUTSIDE}, {{0, 180}, GEONN_OUTSIDE}
	};
	static const struct point around_pole[] = {{80, 0}, {80, 90}, {80, 180}, {80, -90}, {80, 0}};
	static const struct question of_pole[] = {
		{{90, 0}, GEONN_INSIDE}, {{85, 0}, GEONN_INSIDE}, {{81, 180}, GEONN_INSIDE}, {{80, 360}, GEONN_ON_BORDER},
		{{79, 0}, GEONN_OUTSIDE}, {{-90, 0}, GEONN_OUTSIDE}, {{0, 0}, GEONN_OUTSIDE}, {{-85, 90}, GEONN_OUTSIDE}
	};
	/* as maps of the whole world have Antarctica: along the meridian of 180 degrees to the pole and back */
	static const struct point antarctica[] = {{-90, -180}, {-70, -180}, {-70, -90}, {-70, 0}, {-70, 90}, {-70, 180},
	{-90, 180}, {-90, 90}, {-90, -180}};
	static const struct question of_antarctica[] = {
		{{-90, 0}, GEONN_ON_BORDER}, {{-80, 0}, GEONN_INSIDE}, {{-80, 180}, GEONN_ON_BORDER}, {{-80, 179}, GEONN_INSIDE},
		{{-80, -179}, GEONN_INSIDE}, {{-70, 90}, GEONN_ON_BORDER}, {{-60, 0}, GEONN_OUTSIDE}, {{90, 0}, GEONN_OUTSIDE}
	};
	static const struct point through_pole[] = {{60, 0}, {60, 180}, {50, 90}, {60, 0}};
	static const struct question of_through_pole[] = {
		{{90, 0}, GEONN_ON_BORDER}, {{80, 0}, GEONN_ON_BORDER}, {{80, 90}, GEONN_INSIDE}, {{80, -90}, GEONN_OUTSIDE},
		{{-90, 0}, GEONN_OUTSIDE}
	};
	static const struct point across[] = {{-1, 179}, {1, 179}, {1, -179}, {-1, -179}, {-1, 179}};
	static const struct question of_across[] = {
		{{0, 180}, GEONN_INSIDE}, {{0, -180}, GEONN_INSIDE}, {{0, 179.001}, GEONN_INSIDE}, {{0, 180.999}, GEONN_INSIDE},
		{{0, 0}, GEONN_OUTSIDE}, {{0, 178}, GEONN_OUTSIDE}
	};
	static const struct point spike[] = {{0, 0}, {0, 10}, {0, 0}};
	static const struct question of_spike[] = {
		{{0, 5}, GEONN_ON_BORDER}, {{1e-9, 5}, GEONN_OUTSIDE}, {{0, 11}, GEONN_OUTSIDE}
	};

	ASK("an octant", octant, of_octant);
	ASK("a ring around a pole", around_pole, of_pole);
	ASK("a ring with a pole as a vertex, and a meridian twice", antarctica, of_antarctica);
	ASK("a ring with an arc through a pole", through_pole, of_through_pole);
	ASK("a ring across the meridian of 180 degrees", across, of_across);
	ASK("a ring without area", spike, of_spike);
}

/* Rings that lie in no hemisphere: latitude + 40 degrees * sin(2 longitude) */
static void
test_areas(void)
{
	static const double latitudes[] = {-20.0, -1.0, 1.0, 20.0};
	struct chain chain;
	struct geonn_vector vectors[2 * MOST_VERTICES];
	size_t		count;
	bool		pole_is_inside;
	long		failures = 0;

	for (int i = 0; i <= 4; i++)
	{
		chain.count = 0;
		for (int j = 0; j <= 72; j++)
		{
			double		middle = i < 4 ? latitudes[i] : 0.0;

			add_vertex(&chain, (struct point) {middle + 40.0 * sin(j % 72 * (M_PI / 18.0)), 5.0 * j - 180.0});
		}
		count = vectors_of(&chain, vectors);
		if (i == 4)
		{
			report("a ring of two equal sides has no smaller one", !geonn_ring_holds_pole(vectors, count, NULL, &pole_is_inside));
			break;
		}
		failures += !geonn_ring_holds_pole(vectors, count, NULL, &pole_is_inside);
		for (int j = 0; j < 1000; j++)
		{
			struct point point = random_place();
			double		border = latitudes[i] + 40.0 * sin(point.longitude * (M_PI / 90.0));
			bool		is_north = point.latitude > border;

			/* arcs of 5 degrees leave the curve by less */
			if (fabs(point.latitude - border) > 1.0)
				failures += geonn_ring_side(vectors, count, pole_is_inside, geonn_unit_vector(point.latitude, point.longitude)) !=
					(is_north == (latitudes[i] > 0.0) ? GEONN_INSIDE : GEONN_OUTSIDE);
		}
	}
	report_failures("of a ring that lies in no hemisphere the smaller side is inside", failures);
}

static void
test_middle(long count)
{
	double		worst = 0.0;

	for (long i = 0; i < count; i++)
	{
		struct point a = random_place();
		struct point b = place_from(a, M_PI - random_radius(2e-12, 1.5), random_between(0.0, 6.3));
		struct geonn_vector middle;

		if (geonn_arc_is_antipodal(geonn_unit_vector(a.latitude, a.longitude), geonn_unit_vector(b.latitude, b.longitude)))
			continue;
		middle = geonn_arc_middle(a.latitude, a.longitude, b.latitude, b.longitude);
		worst = fmax(worst, oracle_middle_error(a, b, middle) * 0x1p+53);
	}
	report_measure("middles of long arcs are within 2.25 of 2^-53", worst <= 2.25, "worst error", worst, "of 2^-53");
}

int
main(int argc, char **argv)
{
	uint64_t	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240229;
	long		sets = argc > 2 ? strtol(argv[2], NULL, 0) : 3000;

	random_state = seed;
	printf("seed %llu, %ld sets\n", (unsigned long long) seed, sets);

	test_borders();
	test_areas();
	test_middle(10 * sets);
	test_partition(sets);
	test_random_shapes(sets);
	return summed_up();
}
