/*
 * gpu_scenes.cuh
 *		Scenes of shapes, and observations of them, for tests of arcs on a GPU.
 *
 * Lines of all lengths, points, many at one place, and polygons, small and large, beside each other and in each other.
 */
#ifndef GEONN_GPU_SCENES_CUH
#define GEONN_GPU_SCENES_CUH

#include <math.h>
#include <stdlib.h>

#include "common/geodesy.h"
#include "../lib/random.h"

extern "C"
{
#include "common/ring.h"
#include "engine/dataset/dataset.h"
}

#define ROWS_MAX 1100000

/* observations */
static uint32_t rows;
static double observed_latitude[ROWS_MAX];
static double observed_longitude[ROWS_MAX];

enum scene
{
	SCENE_GLOBE,				/* lines of some 300 km a step, anywhere */
	SCENE_CITY,					/* lines of 100 m a step, within 20 km */
	SCENE_POINTS,				/* points, many at one place */
	SCENE_LONG,					/* lines that go half around the globe */
	SCENE_POLE,					/* lines of 10 km a step around a pole */
	SCENE_CIRCLE,				/* a circle, as far from its centre everywhere, as degrees can say */
	SCENE_STAR,					/* lines from one place to many */
	SCENE_POLYGONS,				/* polygons with holes and parts, many in each other, and lines */
	SCENE_GRID,					/* squares of degrees that have their sides in common */
	SCENE_COAST,				/* one polygon, or two, of all arcs, around a pole or not */
	SCENES
};

struct place
{
	double		latitude;
	double		longitude;
};

static struct place
place_at(double latitude, double longitude)
{
	struct place place = {latitude, longitude};

	if (place.latitude > 90.0)
		place = {180.0 - place.latitude, place.longitude + 180.0};
	if (place.latitude < -90.0)
		place = {-180.0 - place.latitude, place.longitude + 180.0};
	place.longitude = remainder(place.longitude, 360.0);
	return place;
}

/* up to so many degrees of latitude away, and as many metres of longitude if it is not a pole */
static struct place
place_near(struct place place, double degrees)
{
	double		wider = 1.0 / fmax(cos(place.latitude * M_PI / 180.0), 0.01);

	return place_at(place.latitude + random_between(-degrees, degrees),
					place.longitude + wider * random_between(-degrees, degrees));
}

static struct place
anywhere(void)
{
	return place_at(90.0 - acos(random_between(-1, 1)) * 180.0 / M_PI, random_between(-180, 180));
}

static const struct place centre = {48.2, 16.4};

static void
add_arc(struct dataset *dataset, struct place from, struct place to, int32_t shape)
{
	size_t		i = dataset->count++;

	dataset->latitude[i] = from.latitude;
	dataset->longitude[i] = from.longitude;
	dataset->end_latitude[i] = to.latitude;
	dataset->end_longitude[i] = to.longitude;
	dataset->shape[i] = shape;
	dataset->tag[i] = 1000000000000 + shape / 2;
	dataset->polygon[i] = 0;
}

/* Where a line of a scene begins. */
static struct place
beginning(enum scene scene)
{
	switch (scene)
	{
		case SCENE_CITY:
			return place_near(centre, 0.2);
		case SCENE_POINTS:
			return random_below(3) ? place_near(centre, 0.01) : place_at(48.2 + 0.01 * random_below(5), 16.4);
		case SCENE_POLE:
			return place_at(random_between(87, 90), random_between(-180, 180));
		case SCENE_STAR:
			return centre;
		default:
			return anywhere();
	}
}

static struct place
step(enum scene scene, struct place from, uint32_t number, uint32_t count)
{
	switch (scene)
	{
		case SCENE_GLOBE:
			return place_near(from, 3.0);
		case SCENE_CITY:
			return place_near(from, 0.001);
		case SCENE_POINTS:
			return from;
		case SCENE_LONG:
			return random_below(2) ? anywhere() : place_near(from, 60.0);
		case SCENE_POLE:
			return place_near(from, 0.1);
		case SCENE_STAR:
			return place_near(from, 0.1);
		default:
			return place_at(90.0 - 1.0, 360.0 * number / count);
	}
}

/* ---- polygons ---- */

#define CORNERS_MAX 300000

static struct place corner[CORNERS_MAX + 1];

/* Whether the ring of corners has the north pole inside. */
static bool
holds_pole(uint32_t corners)
{
	static struct geonn_vector ring[CORNERS_MAX + 1];
	bool		holds = false;

	for (uint32_t i = 0; i < corners; i++)
		ring[i] = geonn_unit_vector(corner[i].latitude, corner[i].longitude);
	ring[corners] = ring[0];
	if (!geonn_ring_holds_pole(ring, corners + 1, NULL, &holds))
		return false;
	return holds;
}

/* Put corners around a place, so many degrees away, more or less. */
static void
draw_ring(struct place middle, uint32_t corners, double radius, double even)
{
	double		wider = 1.0 / fmax(cos(middle.latitude * M_PI / 180.0), 0.01);
	double		begin = random_between(0, 2.0 * M_PI);

	for (uint32_t i = 0; i < corners; i++)
	{
		double		turn = begin + 2.0 * M_PI * i / corners;
		double		away = radius * random_between(even, 1.0);

		if (fabs(middle.latitude) > 85.0)
			corner[i] = place_at(middle.latitude > 0 ? 90.0 - away : away - 90.0, turn * 180.0 / M_PI);
		else
			corner[i] = place_at(middle.latitude + away * cos(turn), middle.longitude + wider * away * sin(turn));
	}
}

static void
add_ring(struct dataset *dataset, uint32_t corners, int32_t shape, int32_t polygon)
{
	for (uint32_t i = 0; i < corners; i++)
	{
		add_arc(dataset, corner[i], corner[(i + 1) % corners], shape);
		dataset->polygon[dataset->count - 1] = polygon;
	}
}

/* Add a polygon, with holes or without, as a shape of its own or another part of the last one. */
static void
add_polygon(struct dataset *dataset, struct place middle, uint32_t corners, double radius)
{
	int32_t		shape = dataset->count == 0 ? 0 : dataset->shape[dataset->count - 1] + (random_below(4) > 0);
	int32_t		polygon = ++dataset->last_polygon;
	size_t		first = dataset->count;
	bool		pole_is_inside;

	draw_ring(middle, corners, radius, corners > 1000 ? 0.9999 : 0.7);
	pole_is_inside = holds_pole(corners);
	add_ring(dataset, corners, shape, polygon);
	/* so many that stretches have several rings */
	for (int holes = random_below(2) ? 0 : random_below(20); holes > 0; holes--)
	{
		draw_ring(fabs(middle.latitude) > 85.0 ? middle : place_near(middle, 0.5 * radius), 5, 0.2 * radius, 0.7);
		pole_is_inside ^= holds_pole(5);
		add_ring(dataset, 5, shape, polygon);
	}
	for (size_t i = first; pole_is_inside && i < dataset->count; i++)
		dataset->polygon[i] = -polygon;
}

static void
add_square(struct dataset *dataset, uint32_t count)
{
	/* about one square in each place */
	int			span = 2 + (int) fmin(sqrt(count / 4.0), 170.0);
	double		latitude = random_below(span) - span / 2;
	double		longitude = random_below(span) - span / 2;
	int32_t		shape = dataset->count == 0 ? 0 : dataset->shape[dataset->count - 1] + 1;

	corner[0] = place_at(latitude, longitude);
	corner[1] = place_at(latitude, longitude + 1);
	corner[2] = place_at(latitude + 1, longitude + 1);
	corner[3] = place_at(latitude + 1, longitude);
	add_ring(dataset, 4, shape, ++dataset->last_polygon);
}

/* Add districts of 0.1 degrees, 4 × 3, which have the vertices of their borders in common, so many on a side. */
static void
add_districts(struct dataset *dataset, uint32_t side)
{
	for (int32_t number = 0; number < 12; number++)
	{
		double		latitude = centre.latitude + 0.1 * (number / 4);
		double		longitude = centre.longitude + 0.1 * (number % 4);

		for (uint32_t i = 0; i < side; i++)
		{
			double		along = 0.1 * i / side;

			corner[i] = place_at(latitude, longitude + along);
			corner[side + i] = place_at(latitude + along, longitude + 0.1);
			corner[2 * side + i] = place_at(latitude + 0.1, longitude + 0.1 * (side - i) / side);
			corner[3 * side + i] = place_at(latitude + 0.1 * (side - i) / side, longitude);
		}
		add_ring(dataset, 4 * side, number, ++dataset->last_polygon);
	}
}

static void
add_polygons(struct dataset *dataset, enum scene scene, uint32_t count)
{
	while (dataset->count < count)
		if (scene == SCENE_GRID)
			add_square(dataset, count);
		else if (scene == SCENE_COAST)
		{
			uint32_t	corners = random_below(2) ? count : count / 2;

			add_polygon(dataset, random_below(2) ? centre : place_at(random_below(2) ? 90 : -90, 0), corners < 3 ? 3 : corners,
						30.0);
		}
		else if (random_below(4) == 0)
		{
			struct place from = place_near(centre, 10.0);

			add_arc(dataset, from, place_near(from, 0.5), dataset->count == 0 ? 0 : dataset->shape[dataset->count - 1] + 1);
		}
		else
			add_polygon(dataset, random_below(8) ? place_near(centre, 10.0) : anywhere(), 3 + (uint32_t) random_below(60),
						fabs(random_magnitude(1e-3, random_below(8) ? 0.3 : 10.0)));
}

/* Make a dataset of some so many arcs. */
static struct dataset *
make_dataset(enum scene scene, uint32_t count)
{
	static uint64_t id;
	struct dataset *dataset = dataset_create(++id, GEONN_METRIC_SPHERE, GEONN_COLUMN_ARC);
	size_t		room = 2 * (size_t) count + 256;
	struct place from = {};
	int32_t		shape = -1;

	dataset->latitude = (double *) malloc(room * sizeof(double));
	dataset->longitude = (double *) malloc(room * sizeof(double));
	dataset->end_latitude = (double *) malloc(room * sizeof(double));
	dataset->end_longitude = (double *) malloc(room * sizeof(double));
	dataset->tag = (int64_t *) malloc(room * sizeof(int64_t));
	dataset->shape = (int32_t *) malloc(room * sizeof(int32_t));
	dataset->polygon = (int32_t *) malloc(room * sizeof(int32_t));
	if (scene >= SCENE_POLYGONS)
	{
		add_polygons(dataset, scene, count);
		return dataset;
	}
	for (uint32_t i = 0; i < count; i++)
	{
		struct place to;
		bool		begins = i == 0 || (scene != SCENE_CIRCLE && (scene == SCENE_STAR || random_below(10) == 0));

		shape += begins;
		if (begins)
			from = scene == SCENE_CIRCLE ? step(scene, from, 0, count) : beginning(scene);
		to = step(scene, from, i + 1, count);
		/* nearly antipodal ends are no arc */
		if (geonn_distance_degrees(from.latitude, from.longitude, to.latitude, to.longitude) > 20000000.0)
			to = from;
		add_arc(dataset, from, to, shape);
		if (scene != SCENE_POINTS)
			from = to;
		else if (random_below(3) == 0)
			from = beginning(scene);
	}
	return dataset;
}

static void
make_observations(enum scene scene, const struct dataset *dataset)
{
	for (uint32_t i = 0; i < rows; i++)
	{
		size_t		arc = (size_t) random_bits() % dataset->count;
		struct place end = {dataset->latitude[arc], dataset->longitude[arc]};
		int			kind = random_below(12);
		struct place place = kind == 0 ? anywhere() : kind == 1 ? end : kind < 4 ? beginning(scene) :
			place_near(end, fabs(random_magnitude(1e-9, 10.0)));

		/* on the meridian or the parallel of a vertex; a pole */
		if (kind == 10)
			place = random_below(2) ? place_at(end.latitude + random_between(-2, 2), end.longitude) :
				place_at(end.latitude, end.longitude + random_between(-2, 2));
		if (kind == 9 && random_below(20) == 0)
			place = place_at(random_below(2) ? 90 : -90, random_below(360));
		/* on the arc, but for rounding */
		if (kind == 11)
			place = place_at((end.latitude + dataset->end_latitude[arc]) / 2, (end.longitude + dataset->end_longitude[arc]) / 2);
		observed_latitude[i] = place.latitude;
		observed_longitude[i] = place.longitude;
	}
	/* the centre of the circle */
	if (scene == SCENE_CIRCLE)
		observed_latitude[rows / 2] = 90.0;
}

#endif							/* GEONN_GPU_SCENES_CUH */
