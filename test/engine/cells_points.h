/*
 * cells_points.h
 *		References and observations for cpu_cells_test.c.
 */
#ifndef GEONN_TEST_CELLS_POINTS_H
#define GEONN_TEST_CELLS_POINTS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/random.h"

#define DEGREES 57.295779513082323
#define KM_OF_DEGREE 111.2

struct place
{
	double		latitude;		/* degrees */
	double		longitude;
};

struct places
{
	uint32_t	count;
	double	   *latitude;		/* [count] degrees */
	double	   *longitude;
};

/* how many points there are in a property's sets; less under a sanitizer */
static uint32_t many_references = 16384;
static uint32_t many_observations = 65536;

/* the program's: blocks along the side of a face in the table of some references, and the finest
 * squares along the side of a block */
static double blocks_along_face(const struct places *references);
static double squares_along_block(void);

/* ---- points ---- */

static struct places
room_for(uint32_t count)
{
	struct places places = {0, (double *) malloc(count * sizeof(double)),
		(double *) malloc(count * sizeof(double))};

	return places;
}

/* add a place that may be beyond poles or the antimeridian, several times */
static void
add(struct places *places, double latitude, double longitude)
{
	while (fabs(latitude) > 90.0)
		latitude = (latitude > 0 ? 180.0 : -180.0) - latitude;
	while (longitude > 180.0)
		longitude -= 360.0;
	while (longitude < -180.0)
		longitude += 360.0;
	places->latitude[places->count] = latitude;
	places->longitude[places->count++] = longitude;
}

static void
add_vector(struct places *places, double x, double y, double z)
{
	add(places, asin(z / sqrt(x * x + y * y + z * z)) * DEGREES, atan2(y, x) * DEGREES);
}

static struct place
anywhere(void)
{
	struct place place = {asin(random_between(-1, 1)) * DEGREES, random_between(-180, 180)};

	return place;
}

static struct place
temperate(void)
{
	struct place place = {random_between(-60, 60), random_between(-180, 180)};

	return place;
}

static void
add_anywhere(struct places *places, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		struct place place = anywhere();

		add(places, place.latitude, place.longitude);
	}
}

/* around a place, by a Gaussian of so many kilometres */
static void
add_around(struct places *places, struct place centre, double km)
{
	double		away = km / KM_OF_DEGREE * sqrt(-2.0 * log(random_between(1e-12, 1)));
	double		direction = random_between(0, 2 * M_PI);

	add(places, centre.latitude + away * sin(direction),
		centre.longitude + away * cos(direction) / fmax(0.02, cos(centre.latitude / DEGREES)));
}

static void
add_box(struct places *places, struct place centre, double km, uint32_t count)
{
	double		half = 0.5 * km / KM_OF_DEGREE;

	for (uint32_t i = 0; i < count; i++)
		add(places, centre.latitude + random_between(-half, half),
			centre.longitude + random_between(-half, half) / cos(centre.latitude / DEGREES));
}

/* cities by Zipf's law, and some elsewhere */
static void
add_cities(struct places *places, const struct place *cities, int city_count, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		int			city = (int) (exp(random_between(0, log(city_count)))) - 1;

		if (random_below(10) == 0)
			add_anywhere(places, 1);
		else
			add_around(places, cities[city], 2.0 + 18.0 / sqrt(city + 1.0));
	}
}

/* on edges, corners and lines of the cube's faces, as near as degrees can be */
static void
add_on_cube(struct places *places, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		double		across = random_below(2) ? 1 : -1;
		double		u = random_below(2) ? across : random_below(9) / 4.0 - 1.0;
		double		v = random_below(2) ? random_between(-1, 1) : random_below(9) / 4.0 - 1.0;

		switch (random_below(3))
		{
			case 0:
				add_vector(places, across, u, v);
				break;
			case 1:
				add_vector(places, v, across, u);
				break;
			default:
				add_vector(places, u, v, across);
		}
	}
}

/* poles, meridians and the like */
static void
add_special(struct places *places)
{
	static const double latitudes[] = {-90, -45, -35.264389682754654, 0, 35.264389682754654, 45, 90};
	static const double longitudes[] = {-180, -135, -90, -45, 0, 45, 90, 135, 180};

	for (size_t i = 0; i < sizeof(latitudes) / sizeof(latitudes[0]); i++)
		for (size_t j = 0; j < sizeof(longitudes) / sizeof(longitudes[0]); j++)
		{
			places->latitude[places->count] = latitudes[i];
			places->longitude[places->count++] = longitudes[j];
		}
}

/* ---- a property's points ---- */

struct sets
{
	struct places references;
	struct places observations;
};

typedef void (*make_sets) (struct sets *sets);

static void
make_uniform(struct sets *sets)
{
	add_anywhere(&sets->references, many_references);
	add_anywhere(&sets->observations, many_observations);
}

static void
make_cities(struct sets *sets)
{
	static struct place cities[1000];

	for (int i = 0; i < 1000; i++)
		cities[i] = temperate();
	add_cities(&sets->references, cities, 1000, many_references);
	add_cities(&sets->observations, cities, 1000, many_observations);
}

static void
make_one(struct sets *sets)
{
	add_anywhere(&sets->references, 1);
	add_anywhere(&sets->observations, many_observations);
	add_special(&sets->observations);
}

static void
make_two(struct sets *sets)
{
	add_anywhere(&sets->references, 2);
	add_anywhere(&sets->observations, many_observations);
}

static void
make_few(struct sets *sets)
{
	add_anywhere(&sets->references, 1 + random_below(100));
	add_anywhere(&sets->observations, many_observations);
	add_special(&sets->observations);
}

/* a third of the references stand where others do, in any order */
static void
make_coincident(struct sets *sets)
{
	struct places *references = &sets->references;

	add_anywhere(references, many_references / 8);
	while (references->count < many_references / 4)
	{
		uint32_t	like = (uint32_t) random_below((int) references->count);

		add(references, references->latitude[like], references->longitude[like]);
	}
	for (uint32_t i = 0; i < many_observations; i++)
		if (i % 4 == 0)
			add(&sets->observations, references->latitude[i % references->count],
				references->longitude[i % references->count]);
		else
			add_anywhere(&sets->observations, 1);
}

static void
make_special(struct sets *sets)
{
	add_special(&sets->references);
	for (uint32_t i = 0; i < many_references / 8; i++)
	{
		add(&sets->references, random_between(-90, 90), random_below(2) ? 180 : -180);
		add(&sets->references, 0, random_between(-180, 180));
		add(&sets->references, random_below(2) ? random_between(89.9, 90) : random_between(-90, -89.9),
			random_between(-180, 180));
	}
	add_on_cube(&sets->references, many_references / 8);
	add_special(&sets->observations);
	for (uint32_t i = 0; i < many_observations / 2; i++)
	{
		uint32_t	like = (uint32_t) random_below((int) sets->references.count);

		add(&sets->observations, sets->references.latitude[like], sets->references.longitude[like]);
	}
	add_on_cube(&sets->observations, many_observations / 4);
	add_anywhere(&sets->observations, many_observations / 4);
}

/* whole degrees: observations as far from two or four references */
static void
make_grid(struct sets *sets)
{
	for (int latitude = -89; latitude < 90; latitude += 2)
		for (int longitude = -179; longitude < 180; longitude += 4)
			add(&sets->references, latitude, longitude);
	for (uint32_t i = 0; i < many_observations; i++)
		add(&sets->observations, random_below(181) - 90, random_below(361) - 180);
}

static void
make_box(struct sets *sets, double km)
{
	struct place centre = temperate();

	add_box(&sets->references, centre, km, many_references);
	add_anywhere(&sets->observations, many_observations / 2);
	add_box(&sets->observations, centre, 1.2 * km, many_observations / 4);
	/* and on the other side of the Earth */
	centre.latitude = -centre.latitude;
	centre.longitude += 180;
	add_box(&sets->observations, centre, 2 * km, many_observations / 4);
}

static void
make_box_100(struct sets *sets)
{
	make_box(sets, 100);
}

static void
make_box_500(struct sets *sets)
{
	make_box(sets, 500);
}

static void
make_box_5000(struct sets *sets)
{
	make_box(sets, 5000);
}

static void
make_clusters(struct sets *sets)
{
	struct place centres[40];

	for (int i = 0; i < 40; i++)
		centres[i] = temperate();
	for (uint32_t i = 0; i < many_references; i++)
		add_around(&sets->references, centres[random_below(40)], 50);
	add_anywhere(&sets->observations, many_observations / 2);
	while (sets->observations.count < many_observations)
		add_around(&sets->observations, centres[random_below(40)], 60);
}

/* thousands within a metre, and observations from there to the whole world */
static void
make_crowd(struct sets *sets)
{
	struct place centre = temperate();

	for (uint32_t i = 0; i < many_references; i++)
		add_around(&sets->references, centre, 0.0003);
	add_anywhere(&sets->observations, many_observations / 2);
	for (uint32_t i = 0; i < many_observations / 2; i++)
		add_around(&sets->observations, centre, fabs(random_magnitude(0.01, 1000)));
}

/* observations in it, enough for the index to sort them */
static void
make_crowded(struct sets *sets)
{
	struct place centre = temperate();

	for (uint32_t i = 0; i < many_references / 4; i++)
		add_around(&sets->references, centre, 0.0003);
	for (uint32_t i = 0; i < 4 * many_observations; i++)
		add_around(&sets->observations, centre, 0.0003);
}

static void
add_ring(struct places *places, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		add(places, 0, 360.0 * i / count - 180);
}

/* a ring: from the middle all of it is as far */
static void
make_ring(struct sets *sets)
{
	add_ring(&sets->references, many_references);
	add_anywhere(&sets->observations, many_observations);
}

/* two on opposite sides of the Earth, and observations between them */
static void
make_antipodes(struct sets *sets)
{
	struct place one = anywhere();

	add(&sets->references, one.latitude, one.longitude);
	add(&sets->references, -one.latitude, one.longitude + 180);
	add_anywhere(&sets->observations, many_observations / 2);
	for (uint32_t i = 0; i < many_observations / 2; i++)
	{
		double		along = random_between(-M_PI, M_PI);
		double		latitude = one.latitude / DEGREES;
		double		longitude = one.longitude / DEGREES;

		/* on the great circle that is as far from both */
		add_vector(&sets->observations,
				   -cos(along) * sin(longitude) - sin(along) * sin(latitude) * cos(longitude),
				   cos(along) * cos(longitude) - sin(along) * sin(latitude) * sin(longitude),
				   sin(along) * cos(latitude));
	}
}

/* along the edges of the cube, and observations there and near */
static void
make_edges(struct sets *sets)
{
	add_on_cube(&sets->references, many_references / 2);
	add_special(&sets->references);
	add_on_cube(&sets->observations, many_observations / 2);
	for (uint32_t i = 0; i < many_observations / 2; i++)
	{
		uint32_t	like = (uint32_t) random_below((int) sets->references.count);
		struct place place;

		place.latitude = sets->references.latitude[like];
		place.longitude = sets->references.longitude[like];
		add_around(&sets->observations, place, fabs(random_magnitude(1e-9, 100)));
	}
}

/* each reference beside another one, some units in the last place away: most distances are equal, or nearly */
static void
make_twins(struct sets *sets)
{
	for (uint32_t i = 0; i < many_references / 4; i++)
	{
		struct place place = anywhere();
		double		step = ldexp(1.0, -random_below(24) - 30);

		add(&sets->references, place.latitude, place.longitude);
		add(&sets->references, place.latitude + random_below(2) * step,
			place.longitude + random_below(2) * step);
	}
	add_anywhere(&sets->observations, many_observations);
}

/* observations as far from one reference as from a neighbour, as near as degrees can be */
static void
make_bisectors(struct sets *sets)
{
	struct places *references = &sets->references;

	add_anywhere(references, many_references / 4);
	add_box(references, temperate(), 50, many_references / 4);
	while (sets->observations.count < many_observations)
	{
		int			one = random_below((int) references->count);
		double		ends[2][3];
		double		from[3];
		double		differences = 0;
		double		along = 0;
		double		least = INFINITY;
		int			other = one;

		/* not always the nearest one */
		for (int i = 0; i < 1000; i++)
		{
			int			try_one = random_below((int) references->count);
			double		away = fabs(references->latitude[try_one] - references->latitude[one]) +
				fabs(references->longitude[try_one] - references->longitude[one]);

			if (try_one != one && away < least)
			{
				least = away;
				other = try_one;
			}
		}
		for (int i = 0; i < 2; i++)
		{
			double		latitude = references->latitude[i ? other : one] / DEGREES;
			double		longitude = references->longitude[i ? other : one] / DEGREES;

			ends[i][0] = cos(latitude) * cos(longitude);
			ends[i][1] = cos(latitude) * sin(longitude);
			ends[i][2] = sin(latitude);
		}
		for (int axis = 0; axis < 3; axis++)
			differences += pow(ends[0][axis] - ends[1][axis], 2);
		for (int axis = 0; axis < 3; axis++)
		{
			from[axis] = 0.5 * (ends[0][axis] + ends[1][axis]) + random_between(-0.5, 0.5) * sqrt(differences);
			along += from[axis] * (ends[0][axis] - ends[1][axis]);
		}
		for (int axis = 0; axis < 3; axis++)
			from[axis] -= along / differences * (ends[0][axis] - ends[1][axis]);
		add_vector(&sets->observations, from[0], from[1], from[2]);
	}
}

/* a small ring, another one far away, and observations in their middles and opposite */
static void
make_rings(struct sets *sets)
{
	struct place centres[2];

	centres[0] = temperate();
	centres[1] = temperate();
	for (uint32_t i = 0; i < many_references / 8; i++)
	{
		struct place centre = centres[i % 2];
		double		angle = 2 * M_PI * i / (many_references / 8.0);

		add(&sets->references, centre.latitude + 3 * sin(angle),
			centre.longitude + 3 * cos(angle) / cos(centre.latitude / DEGREES));
	}
	add_anywhere(&sets->observations, many_observations / 2);
	while (sets->observations.count < many_observations)
	{
		struct place centre = centres[random_below(2)];

		if (random_below(2))
		{
			centre.latitude = -centre.latitude;
			centre.longitude += 180;
		}
		add_around(&sets->observations, centre, fabs(random_magnitude(0.001, 1000)));
	}
}

/* thousands within a metre and one far away, which most of the Earth sees past the crowd */
static void
make_far_crowd(struct sets *sets)
{
	struct place centre = temperate();

	for (uint32_t i = 0; i < many_references; i++)
		add_around(&sets->references, centre, 0.0001);
	add_anywhere(&sets->references, 1);
	add_anywhere(&sets->observations, many_observations / 2);
	centre.latitude = -centre.latitude;
	centre.longitude += 180;
	for (uint32_t i = 0; i < many_observations / 2; i++)
		add_around(&sets->observations, centre, fabs(random_magnitude(0.0001, 10000)));
}

/* at the borders of squares of any size, or as near as degrees come */
static void
make_borders(struct sets *sets)
{
	double		finest;

	add_anywhere(&sets->references, many_references / 2);
	add_box(&sets->references, temperate(), 10, many_references / 2);
	finest = 2.0 / (blocks_along_face(&sets->references) * squares_along_block());
	for (uint32_t i = 0; i < many_observations; i++)
	{
		uint32_t	near = (uint32_t) random_below((int) sets->references.count);
		double		latitude = sets->references.latitude[near] / DEGREES;
		double		longitude = sets->references.longitude[near] / DEGREES;
		double		vector[3];
		double		side = finest * exp2(3.0 * random_below(7));
		int			across = 0;
		double		largest;

		vector[0] = cos(latitude) * cos(longitude);
		vector[1] = cos(latitude) * sin(longitude);
		vector[2] = sin(latitude);
		for (int axis = 1; axis < 3; axis++)
			across = fabs(vector[axis]) > fabs(vector[across]) ? axis : across;
		largest = fabs(vector[across]);
		for (int axis = 0; axis < 3; axis++)
		{
			double		place = vector[axis] / largest;

			/* one coordinate or both */
			if (axis != across && (random_below(2) || axis == (across + 1) % 3))
				place = floor((place + 1.0) / side) * side - 1.0;
			vector[axis] = place;
		}
		add_vector(&sets->observations, vector[0], vector[1], vector[2]);
	}
}

/* pairs of references as far from a corner of squares as from each other's place: one of them comes first in a
 * square and its neighbours but for what is next to the corner, and there are the observations */
static void
make_corners(struct sets *sets)
{
	struct places *references = &sets->references;
	uint32_t	pairs = many_references / 4;
	double		half;

	/* the size of squares depends on the number of references */
	add_anywhere(references, 2 * pairs);
	half = 1.0 / (8.0 * blocks_along_face(references));
	references->count = 0;
	for (uint32_t i = 0; i < pairs; i++)
	{
		int			across = random_below(3);
		double		corner[3];
		double		one[3];
		double		plane[3];
		double		slope = random_between(-M_PI, M_PI);
		double		inside = 0;
		double		length = 0;

		corner[across] = random_below(2) ? 1 : -1;
		for (int next = 1; next < 3; next++)
			corner[(across + next) % 3] = random_below((int) (1.0 / half)) * 2.0 * half - 1.0;
		for (int axis = 0; axis < 3; axis++)
			one[axis] = corner[axis] + (axis == across ? 0 : random_between(-half, half));

		/* the other one is its image in a plane through the corner and the Earth's centre */
		plane[(across + 1) % 3] = cos(slope);
		plane[(across + 2) % 3] = sin(slope);
		plane[across] = -(plane[(across + 1) % 3] * corner[(across + 1) % 3] +
						  plane[(across + 2) % 3] * corner[(across + 2) % 3]) / corner[across];
		for (int axis = 0; axis < 3; axis++)
		{
			inside += one[axis] * plane[axis];
			length += plane[axis] * plane[axis];
		}
		add_vector(references, one[0], one[1], one[2]);
		for (int axis = 0; axis < 3; axis++)
			one[axis] -= 2.0 * inside / length * plane[axis];
		add_vector(references, one[0], one[1], one[2]);
		for (uint32_t j = 0; j < many_observations / pairs; j++)
		{
			double		away[3] = {0, 0, 0};

			for (int next = 1; next < 3; next++)
				away[(across + next) % 3] = random_below(4) ? random_magnitude(1e-15, 1e-3 * half) : 0;
			add_vector(&sets->observations, corner[0] + away[0], corner[1] + away[1], corner[2] + away[2]);
		}
	}
}

/* ---- properties ---- */

/* what came of searches by tables with some points */
struct outcome
{
	uint64_t	rows;
	uint64_t	left;			/* to the index */
	uint64_t	different;
	uint64_t	stray;			/* what else was written, or is wrong with those that are left */
};

/* the program's: search for all observations, compare with brute force, and add up; and a verdict */
static void try_sets(const struct sets *sets, double max_distance, struct outcome *outcome);
static void tell(const char *line, bool holds);

/* shares of the observations */
struct shares
{
	double		least;
	double		most;
};

static const struct property
{
	const char *name;
	make_sets	make;
	double		max_distance;	/* metres; 0: that of an observation, to the last bit */
	struct shares left;			/* that the table may leave to the index */
}			properties[] = {
	{"uniform", make_uniform, INFINITY, {0, 0}},
	{"uniform, within 100 km", make_uniform, 100000, {0, 0}},
	{"uniform, none within 1 m", make_uniform, 1, {0, 0}},
	{"uniform, max_distance to the last bit", make_uniform, 0, {0, 0}},
	{"cities", make_cities, INFINITY, {0, 0.001}},
	{"cities, within 5 km", make_cities, 5000, {0, 0.001}},
	{"one reference", make_one, INFINITY, {0, 0}},
	{"one reference, max_distance to the last bit", make_one, 0, {0, 0}},
	{"two references", make_two, INFINITY, {0, 0}},
	{"two references that are antipodes", make_antipodes, INFINITY, {0, 0}},
	{"few references", make_few, INFINITY, {0, 0}},
	{"few references, within 1,000 km", make_few, 1000000, {0, 0}},
	{"coincident references", make_coincident, INFINITY, {0, 0}},
	{"twins", make_twins, INFINITY, {0, 0.01}},
	{"as far from two neighbours", make_bisectors, INFINITY, {0, 0}},
	{"poles, meridians, edges and corners of the cube", make_special, INFINITY, {0, 0.2}},
	{"references along the cube's edges", make_edges, INFINITY, {0, 0.5}},
	{"as far from several references", make_grid, INFINITY, {0, 0.05}},
	{"borders of squares", make_borders, INFINITY, {0, 0}},
	{"corners of squares", make_corners, INFINITY, {0, 0}},
	{"box of 100 km", make_box_100, INFINITY, {0, 0}},
	{"box of 500 km", make_box_500, INFINITY, {0, 0}},
	{"box of 500 km, within 300 km", make_box_500, 300000, {0, 0}},
	{"box of 5,000 km", make_box_5000, INFINITY, {0, 0}},
	{"40 clusters", make_clusters, INFINITY, {0, 0}},
	{"thousands within a metre", make_crowd, INFINITY, {0, 0.01}},
	{"thousands within a metre, and one elsewhere", make_far_crowd, INFINITY, {0, 0.5}},
	{"observations in a crowd, which the index answers", make_crowded, INFINITY, {0.5, 1}},
	{"two small rings", make_rings, INFINITY, {0, 0.5}},
	{"a ring", make_ring, INFINITY, {0, 1}}
};

static struct sets
room_for_sets(void)
{
	struct sets sets = {
		room_for(2 * many_references + 20000), room_for(4 * many_observations + 1000)
	};

	return sets;
}

static void
forget_sets(struct sets *sets)
{
	free(sets->references.latitude);
	free(sets->references.longitude);
	free(sets->observations.latitude);
	free(sets->observations.longitude);
}

/*
 * Try each property with so many sets of points; all but the first have a part of the
 * references.
 */
static void
test_properties(int set_count, uint32_t part)
{
	uint32_t	references = many_references;

	for (size_t p = 0; p < sizeof(properties) / sizeof(properties[0]); p++)
	{
		const struct property *property = &properties[p];
		struct shares shares = property->left;
		struct outcome outcome = {0, 0, 0, 0};
		char		line[200];
		double		share;

		for (int i = 0; i < set_count; i++)
		{
			struct sets sets = room_for_sets();
			uint64_t	state = random_state;
			uint64_t	before = outcome.different;

			many_references = i == 0 ? references : references / part;
			property->make(&sets);
			try_sets(&sets, property->max_distance, &outcome);
			many_references = references;
			if (outcome.different > before)
				printf("# %s: %llu differences from state %llu on, set %d\n", property->name,
					   (unsigned long long) (outcome.different - before),
					   (unsigned long long) state, i);
			forget_sets(&sets);
		}
		share = (double) outcome.left / (double) outcome.rows;
		snprintf(line, sizeof(line), "%s (differences %llu of %llu, left to the index %.4f %%)",
				 property->name, (unsigned long long) outcome.different,
				 (unsigned long long) outcome.rows, 100.0 * share);
		tell(line, outcome.different == 0 && outcome.stray == 0 && share >= shares.least &&
			 share <= shares.most);
	}
}

#endif							/* GEONN_TEST_CELLS_POINTS_H */
