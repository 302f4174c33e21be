/*
 * cells_points.cuh
 *		References and observations of cells_test's properties.
 */
#ifndef GEONN_TEST_CELLS_POINTS_CUH
#define GEONN_TEST_CELLS_POINTS_CUH

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "cuda/cells/cells.cuh"
#include "engine/search/cells_square.h"
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

/* ---- points ---- */

static struct places
room_for(uint32_t count)
{
	struct places places = {0, (double *) malloc(count * sizeof(double)),
		(double *) malloc(count * sizeof(double))};

	return places;
}

/* add a place that may be beyond a pole or the antimeridian */
static void
add(struct places *places, double latitude, double longitude)
{
	if (latitude > 90.0)
		latitude = 180.0 - latitude;
	if (latitude < -90.0)
		latitude = -180.0 - latitude;
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

	for (double latitude : latitudes)
		for (double longitude : longitudes)
		{
			places->latitude[places->count] = latitude;
			places->longitude[places->count++] = longitude;
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

	for (struct place &city : cities)
		city = temperate();
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

	for (struct place &centre : centres)
		centre = temperate();
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

/* a ring: from the middle all of it is as far */
static void
make_ring(struct sets *sets)
{
	for (uint32_t i = 0; i < many_references; i++)
		add(&sets->references, 0, 360.0 * i / many_references - 180);
	add_anywhere(&sets->observations, many_observations);
}

/* at the borders of squares of any size, or as near as degrees come */
static void
make_borders(struct sets *sets)
{
	struct cells cells;

	add_anywhere(&sets->references, many_references / 2);
	add_box(&sets->references, temperate(), 10, many_references / 2);
	cells_place(NULL, sets->references.count, &cells);
	for (uint32_t i = 0; i < many_observations; i++)
	{
		uint32_t	near = (uint32_t) random_below((int) sets->references.count);
		struct cells_spot spot =
			cells_spot_of(geonn_unit_vector(sets->references.latitude[near],
											sets->references.longitude[near]), cells.scale,
						  cells_side_units(cells.side));
		int			shift = random_below(CELLS_FIRST_SHIFT + 1) / CELLS_SIDE_BITS * CELLS_SIDE_BITS;
		double		u = (double) (spot.u >> shift << shift) / cells.scale - 1.0;
		double		v = (double) (random_below(2) ? spot.v : spot.v >> shift << shift) / cells.scale - 1.0;
		struct geonn_vector vector = cells_turned_back(spot.face, {1.0, u, v});

		add_vector(&sets->observations, vector.x, vector.y, vector.z);
	}
}

#endif							/* GEONN_TEST_CELLS_POINTS_CUH */
