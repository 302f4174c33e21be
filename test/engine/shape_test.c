/*
 * shape_test.c
 *		Measures src/common/arc.c and ring.c against an oracle in __float128.
 *
 * Usage: shape_test [seed [sets]], where sets is the number of random shapes, each
 * with 40 points.
 *
 * rooms: common
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
#include "../lib/random_shapes.h"
#include "../lib/shape_oracle.h"
#include "../lib/verdict.h"

#define LIMIT_NANOMETRES 10.0
#define POINTS_OF_A_SET 40

/* ---- properties ---- */

static void
test_random_shapes(long sets)
{
	static const char *const names[] = {"lines", "arcs near a half circle", "polygons of millimetres to metres",
		"polygons up to 85 degrees", "polygons with holes", "rings that cross themselves", "slivers",
	"boxes of whole degrees", "lines between hostile places", "rings larger than a hemisphere"};
	double		worst[SHAPE_KINDS] = {0.0};
	long		inside = 0;
	long		undecided = 0;
	char		title[100];

	for (long set = 0; set < sets; set++)
	{
		struct shape shape;

		make_shape(&shape, (int) (set % SHAPE_KINDS));
		for (int i = 0; i < POINTS_OF_A_SET; i++)
		{
			struct point point = make_point(&shape);
			double		distance = distance_to(&shape, point, &undecided);
			double		error = (double) fabsq(distance - oracle_shape_distance(&shape, point)) * 1e9;

			inside += shape.is_polygon && distance == 0.0;
			if (!(error <= worst[set % SHAPE_KINDS]))
				worst[set % SHAPE_KINDS] = error;
			if (!(error <= LIMIT_NANOMETRES))
				printf("# set %ld: %.17g %.17g is %.9f m away, off by %g nm\n", set, point.latitude,
					   point.longitude, distance, error);
		}
	}
	for (int i = 0; i < SHAPE_KINDS; i++)
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

/* Rings that lie in no hemisphere, and of which no smaller side can be told: around great circles, once and more often */
static void
test_sides_alike(long rounds)
{
	long		failures = 0;

	for (long round = 0; round < rounds; round++)
	{
		struct point pole = random_place();
		int			turns = 1 + random_below(3);
		int			corners = 3 + random_below(6);
		struct chain chain = {.count = 0};
		struct geonn_vector vectors[2 * MOST_VERTICES];
		bool		pole_is_inside;

		for (int i = 0; i < turns * corners; i++)
			add_vertex(&chain, place_from(pole, M_PI / 2, 2.0 * M_PI * i / corners));
		add_vertex(&chain, chain.vertices[0]);
		failures += geonn_ring_holds_pole(vectors, vectors_of(&chain, vectors), NULL, &pole_is_inside);
	}
	report_failures("a ring along a great circle has no smaller side, however often", failures);
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
	test_sides_alike(sets);
	test_middle(10 * sets);
	test_partition(sets);
	test_random_shapes(sets);
	return summed_up();
}
