/*
 * points.c
 *		Points for tests of the search.
 */
#include "points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/window.h"
#include "random.h"

/* metres of a degree of latitude, nearly */
#define METRES_OF_DEGREE 111195.0

const char *const places_names[PLACES_KINDS] = {
	"uniform", "cities", "one city", "a city and a hermit", "coincident", "heaps",
	"polar", "antimeridian", "one cell", "adjacent float64", "equator", "meridian",
	"a track", "a grid", "a few places within a cell"
};

const char *const spans_names[SPANS_KINDS] = {
	"steps", "narrow", "wide", "mixed", "small", "unbounded", "instants"
};

void
points_seed(uint64_t seed)
{
	random_state = seed;
}

static void *
allocate(size_t count, size_t size)
{
	/* at least something, so that NULL means one thing */
	void	   *memory = calloc(count + 1, size);

	if (memory == NULL)
	{
		fprintf(stderr, "not enough memory for %zu points\n", count);
		exit(EXIT_FAILURE);
	}
	return memory;
}

static struct points
empty_points(size_t count)
{
	struct points points = {
		.count = count,
		.latitude = allocate(count, sizeof(double)),
		.longitude = allocate(count, sizeof(double)),
		.tag = allocate(count, sizeof(int64_t))
	};

	/* an odd factor: no tag occurs twice */
	for (size_t i = 0; i < count; i++)
		points.tag[i] = (int64_t) (i * UINT64_C(0x9e3779b97f4a7c15));
	return points;
}

void
points_free(struct points *points)
{
	free(points->latitude);
	free(points->longitude);
	free(points->tag);
	free(points->group);
	free(points->excluded_first);
	free(points->excluded_last);
	free(points->radius);
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
	{
		free(points->low[i]);
		free(points->high[i]);
	}
	free(points->edges);
	for (int i = 0; i < GEONN_WEIGHTS_MAX; i++)
		free(points->weight[i]);
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		free(points->party[i]);
	*points = (struct points) {0};
}

/*
 * Set a place from any two numbers: reflected at the poles, longitude into
 * [-180, 180].
 */
static void
set_place(struct points *points, size_t i, double latitude, double longitude)
{
	if (latitude > 90)
		latitude = 180 - latitude;
	if (latitude < -90)
		latitude = -180 - latitude;
	longitude = remainder(longitude, 360);
	points->latitude[i] = fmax(-90, fmin(90, latitude));
	points->longitude[i] = longitude;
}

static double
uniform_latitude(void)
{
	return asin(random_between(-1, 1)) * (180 / M_PI);
}

static void
make_uniform(struct points *points)
{
	for (size_t i = 0; i < points->count; i++)
		set_place(points, i, uniform_latitude(), random_between(-180, 180));
}

/*
 * Cities of up to 30 km, a few of which have most points, and the middles
 * most of these.
 */
static void
make_cities(struct points *points, size_t cities)
{
	double	   *latitude = allocate(cities, sizeof(double));
	double	   *longitude = allocate(cities, sizeof(double));

	for (size_t i = 0; i < cities; i++)
	{
		latitude[i] = random_between(-60, 75);
		longitude[i] = random_between(-180, 180);
	}
	for (size_t i = 0; i < points->count; i++)
	{
		size_t		city = (size_t) (pow(random_between(0, 1), 3) * (double) cities);
		double		radius = 30000 / METRES_OF_DEGREE * pow(random_between(0, 1), 4);
		double		direction = random_between(0, 2 * M_PI);

		set_place(points, i, latitude[city] + radius * sin(direction),
				  longitude[city] + radius * cos(direction) / cos(latitude[city] * (M_PI / 180)));
	}
	free(latitude);
	free(longitude);
}

/* at so many different points */
static void
make_heaps(struct points *points, size_t heaps)
{
	struct points some = points_create(heaps, PLACES_UNIFORM);

	for (size_t i = 0; i < points->count; i++)
	{
		size_t		heap = (size_t) (pow(random_between(0, 1), 2) * (double) heaps);

		points->latitude[i] = some.latitude[heap];
		points->longitude[i] = some.longitude[heap];
	}
	points_free(&some);
}

static void
make_polar(struct points *points)
{
	for (size_t i = 0; i < points->count; i++)
	{
		double		away = random_below(4) == 0 ? 0 : fabs(random_magnitude(1e-12, 2));

		set_place(points, i, random_below(2) ? 90 - away : away - 90, random_between(-180, 180));
	}
}

static void
make_antimeridian(struct points *points)
{
	for (size_t i = 0; i < points->count; i++)
	{
		double		away = random_below(4) == 0 ? 0 : random_magnitude(1e-12, 1);

		set_place(points, i, random_between(-1, 1), 0);
		/* -180 ... -179, and 179 ... 181, which is the same again */
		points->longitude[i] = random_below(2) ? 180 + away : fabs(away) - 180;
	}
}

/* a square of this many degrees */
static void
make_one_cell(struct points *points, double degrees)
{
	double		latitude = random_between(-80, 80);
	double		longitude = random_between(-180, 180);

	for (size_t i = 0; i < points->count; i++)
		set_place(points, i, latitude + random_between(0, degrees),
				  longitude + random_between(0, degrees));
}

/*
 * Around 45 degrees, where latitudes are closer to each other than the unit
 * vectors made of them can tell.
 */
static void
make_adjacent(struct points *points)
{
	for (size_t i = 0; i < points->count; i++)
	{
		points->latitude[i] = 45 + (random_below(64) - 32) * 0x1p-48;
		points->longitude[i] = 45 + random_below(16) * 0x1p-47;
	}
}

static void
make_track(struct points *points)
{
	double		latitude = random_between(-50, 50);
	double		longitude = random_between(-180, 180);
	double		direction = 0;

	for (size_t i = 0; i < points->count; i++)
	{
		if (random_below(10) != 0)
		{
			direction += random_between(-0.3, 0.3);
			latitude += 20 / METRES_OF_DEGREE * sin(direction);
			longitude += 20 / METRES_OF_DEGREE * cos(direction);
		}
		set_place(points, i, latitude, longitude);
	}
}

/* poles and both ends of the longitudes included */
static void
make_grid(struct points *points)
{
	for (size_t i = 0; i < points->count; i++)
	{
		points->latitude[i] = 7.5 * (double) (random_below(25) - 12);
		points->longitude[i] = 15 * (double) (random_below(37) - 12);
	}
}

/*
 * Nine places, centimetres from each other, in no order: too close for the
 * index's curve to tell apart.
 */
static void
make_few_in_cell(struct points *points)
{
	double		latitude = random_between(-80, 80);
	double		longitude = random_between(-180, 180);

	for (size_t i = 0; i < points->count; i++)
		set_place(points, i, latitude + 1e-7 * random_below(3), longitude + 1e-7 * random_below(3));
}

struct points
points_create(size_t count, enum places places)
{
	struct points points = empty_points(count);

	switch (places)
	{
		case PLACES_UNIFORM:
			make_uniform(&points);
			break;
		case PLACES_CITIES:
			make_cities(&points, 30);
			break;
		case PLACES_ONE_CITY:
			make_cities(&points, 1);
			break;
		case PLACES_CITY_AND_HERMIT:
			make_cities(&points, 1);
			if (count > 0)
				set_place(&points, (size_t) random_below((int) count),
						  uniform_latitude(), random_between(-180, 180));
			break;
		case PLACES_COINCIDENT:
			make_heaps(&points, 1);
			break;
		case PLACES_HEAPS:
			make_heaps(&points, 30);
			break;
		case PLACES_POLAR:
			make_polar(&points);
			break;
		case PLACES_ANTIMERIDIAN:
			make_antimeridian(&points);
			break;
		case PLACES_ONE_CELL:
			make_one_cell(&points, 2 / METRES_OF_DEGREE);
			break;
		case PLACES_ADJACENT:
			make_adjacent(&points);
			break;
		case PLACES_EQUATOR:
			for (size_t i = 0; i < count; i++)
				set_place(&points, i, 0, 360 * (double) i / (double) count);
			break;
		case PLACES_MERIDIAN:
			for (size_t i = 0; i < count; i++)
				set_place(&points, i, random_between(-90, 90), random_below(2) ? 10 : -170);
			break;
		case PLACES_TRACK:
			make_track(&points);
			break;
		case PLACES_GRID:
			make_grid(&points);
			break;
		case PLACES_FEW_IN_CELL:
			make_few_in_cell(&points);
			break;
		case PLACES_KINDS:
			break;
	}
	return points;
}

struct points
points_about(const struct points *references, size_t count, bool far)
{
	struct points points = empty_points(count);

	for (size_t i = 0; i < count; i++)
	{
		int			kind = far ? 3 : random_below(4);
		size_t		from = 0;

		if (references->count == 0)
			kind = 2;
		else
			from = (size_t) random_below((int) references->count);
		switch (kind)
		{
			case 0:
				points.latitude[i] = references->latitude[from];
				points.longitude[i] = references->longitude[from];
				break;
			case 1:
				set_place(&points, i,
						  references->latitude[from] + random_magnitude(1e-13, 10),
						  references->longitude[from] + random_magnitude(1e-13, 10));
				break;
			case 2:
				set_place(&points, i, uniform_latitude(), random_between(-180, 180));
				break;
			default:
				set_place(&points, i,
						  -references->latitude[from] + random_magnitude(1e-13, 1),
						  references->longitude[from] + 180 + random_magnitude(1e-13, 1));
				break;
		}
	}
	return points;
}

/*
 * A column, or NULL, in the order of these places.
 */
static void *
in_order(const void *column, size_t width, const size_t *place, size_t count)
{
	char	   *ordered = column != NULL ? allocate(count, width) : NULL;

	for (size_t i = 0; column != NULL && i < count; i++)
		memcpy(ordered + i * width, (const char *) column + place[i] * width, width);
	return ordered;
}

/*
 * Give points the further columns of others, from these places.
 */
static void
copy_columns(struct points *points, const struct points *from, const size_t *place)
{
	points->group = in_order(from->group, sizeof(int32_t), place, points->count);
	points->excluded_first = in_order(from->excluded_first, sizeof(int64_t), place, points->count);
	points->excluded_last = in_order(from->excluded_last, sizeof(int64_t), place, points->count);
	points->radius = in_order(from->radius, sizeof(double), place, points->count);
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
	{
		points->low[i] = in_order(from->low[i], sizeof(int64_t), place, points->count);
		points->high[i] = in_order(from->high[i], sizeof(int64_t), place, points->count);
	}
	points->edges = in_order(from->edges, sizeof(uint16_t), place, points->count);
	for (int i = 0; i < GEONN_WEIGHTS_MAX; i++)
		points->weight[i] = in_order(from->weight[i], sizeof(double), place, points->count);
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		points->party[i] = in_order(from->party[i], sizeof(int32_t), place, points->count);
}

struct points
points_repeated(const struct points *points, size_t times)
{
	struct points repeated = empty_points(points->count * times);
	size_t	   *place = allocate(repeated.count, sizeof(size_t));

	for (size_t i = 0; i < repeated.count; i++)
	{
		place[i] = i % points->count;
		repeated.latitude[i] = points->latitude[place[i]];
		repeated.longitude[i] = points->longitude[place[i]];
	}
	copy_columns(&repeated, points, place);
	free(place);
	return repeated;
}

static int32_t *
draw_kinds(size_t count, uint32_t kinds)
{
	int32_t    *values = allocate(count, sizeof(int32_t));

	for (size_t i = 0; i < count; i++)
	{
		uint32_t	kind = (uint32_t) (pow(random_between(0, 1), 2) * kinds);

		/* kinds spread over all of int32, both ends among them */
		values[i] = kind == 0 ? INT32_MIN : kind == 1 ? INT32_MAX :
			(int32_t) (kind * 2654435761u);
	}
	return values;
}

void
points_draw_groups(struct points *points, uint32_t kinds)
{
	free(points->group);
	points->group = draw_kinds(points->count, kinds);
}

void
points_draw_parties(struct points *points, int number, uint32_t kinds, bool areas)
{
	free(points->party[number]);
	points->party[number] = draw_kinds(points->count, kinds);
	for (size_t i = 0; areas && i < points->count; i++)
		points->party[number][i] = points->party[number][i / 100 * 100];
}

void
points_draw_radiuses(struct points *points, double typical)
{
	free(points->radius);
	points->radius = allocate(points->count, sizeof(double));
	for (size_t i = 0; i < points->count; i++)
		switch (random_below(10))
		{
			case 0:
				points->radius[i] = 0;
				break;
			case 1:
				points->radius[i] = fabs(random_magnitude(1e-9, 3e7));
				break;
			case 2:
			case 3:
			case 4:
				points->radius[i] = typical * random_between(0, 2);
				break;
			default:
				points->radius[i] = INFINITY;
		}
}

/*
 * Draw the bounds of one window, the low first.
 */
static void
draw_bounds(enum spans spans, int64_t *low, int64_t *high)
{
	*low = random_below(1000000);
	switch (spans)
	{
		case SPANS_STEPS:
			*low = 60 * random_below(20);
			*high = *low + 60 * random_below(2);
			break;
		case SPANS_NARROW:
			*high = *low + random_below(1000);
			break;
		case SPANS_WIDE:
			*high = *low + random_below(500000);
			break;
		case SPANS_MIXED:
			*high = *low + (int64_t) fabs(random_magnitude(1, 1e6));
			break;
		case SPANS_SMALL:
			*low = random_below(7) - 3;
			*high = *low + random_below(3);
			break;
		case SPANS_UNBOUNDED:
			*high = random_below(3) ? *low + random_below(100000) : INT64_MAX - random_below(3);
			*low = random_below(3) ? *low : INT64_MIN + random_below(3);
			break;
		case SPANS_INSTANTS:
			*low = *high = random_below(1000);
			break;
		case SPANS_KINDS:
			break;
	}
}

/*
 * The edges of a bound, and what an unbounded one has as its value.
 */
static enum geonn_edge
draw_edge(enum spans spans, bool all_edges, int64_t *value, int64_t outermost)
{
	if (!all_edges)
		return GEONN_EDGE_INCLUSIVE;
	if (random_below(spans == SPANS_UNBOUNDED ? 3 : 50) == 0)
	{
		*value = outermost;
		return GEONN_EDGE_UNBOUNDED;
	}
	return random_below(2) ? GEONN_EDGE_INCLUSIVE : GEONN_EDGE_EXCLUSIVE;
}

void
points_draw_windows(struct points *points, int number, enum spans spans, bool all_edges)
{
	free(points->low[number]);
	free(points->high[number]);
	points->low[number] = allocate(points->count, sizeof(int64_t));
	points->high[number] = allocate(points->count, sizeof(int64_t));
	if (points->edges == NULL)
		points->edges = allocate(points->count, sizeof(uint16_t));
	for (size_t i = 0; i < points->count; i++)
	{
		int64_t    *low = &points->low[number][i];
		int64_t    *high = &points->high[number][i];
		enum geonn_edge low_edge;
		enum geonn_edge high_edge;

		draw_bounds(spans, low, high);
		low_edge = draw_edge(spans, all_edges, low, INT64_MIN);
		high_edge = draw_edge(spans, all_edges, high, INT64_MAX);

		/* one value without it would be an empty range, which is not sent */
		if (*low == *high)
			low_edge = high_edge = GEONN_EDGE_INCLUSIVE;
		points->edges[i] |= geonn_edges_of(number, low_edge, high_edge);
	}
}

/* what compare_by_tag() compares */
static const struct points *sorted_points;

static int
compare_by_tag(const void *left, const void *right)
{
	size_t		a = *(const size_t *) left;
	size_t		b = *(const size_t *) right;
	const struct points *points = sorted_points;

	if (points->tag[a] != points->tag[b])
		return points->tag[a] < points->tag[b] ? -1 : 1;
	if (points->latitude[a] != points->latitude[b])
		return points->latitude[a] < points->latitude[b] ? -1 : 1;
	if (points->longitude[a] != points->longitude[b])
		return points->longitude[a] < points->longitude[b] ? -1 : 1;
	return 0;
}

static double
draw_weight(enum weights weights)
{
	switch (weights)
	{
		case WEIGHTS_WHOLE:
			return random_below(2000001) - 1000000;
		case WEIGHTS_MONEY:
			return random_below(10) == 0 ? (random_below(2) ? -0.0 : NAN) : random_below(2000000) / 100.0;
		case WEIGHTS_COMMON:
			return random_magnitude(1e-6, 1e9);
		case WEIGHTS_EXTREME:
			return random_magnitude(1e-300, 1e300);
		case WEIGHTS_ZERO:
		case WEIGHTS_KINDS:
			break;
	}
	return 0.0;
}

void
points_draw_weights(struct points *points, int number, enum weights weights)
{
	double	   *weight = allocate(points->count, sizeof(double));

	for (size_t i = 0; i < points->count; i++)
		weight[i] = weights == WEIGHTS_EXTREME && i > 0 && random_below(2) ? -weight[random_below((int) i)] :
			draw_weight(weights);
	points->weight[number] = weight;
}

struct points
points_sorted_by_tag(const struct points *points)
{
	struct points sorted = empty_points(points->count);
	size_t	   *place = allocate(points->count, sizeof(size_t));

	for (size_t i = 0; i < points->count; i++)
		place[i] = i;
	sorted_points = points;
	qsort(place, points->count, sizeof(size_t), compare_by_tag);
	for (size_t i = 0; i < points->count; i++)
	{
		sorted.latitude[i] = points->latitude[place[i]];
		sorted.longitude[i] = points->longitude[place[i]];
		sorted.tag[i] = points->tag[place[i]];
	}
	copy_columns(&sorted, points, place);
	free(place);
	return sorted;
}

void
points_draw_excluded(struct points *observations, const struct points *references, uint32_t ranges)
{
	struct points sorted = points_sorted_by_tag(references);

	free(observations->excluded_first);
	free(observations->excluded_last);
	observations->excluded_first = allocate(observations->count, sizeof(int64_t));
	observations->excluded_last = allocate(observations->count, sizeof(int64_t));
	for (size_t i = 0; i < observations->count; i++)
	{
		uint32_t	range = (uint32_t) (pow(random_between(0, 1), 2) * ranges);
		size_t		first = range * sorted.count / ranges;
		size_t		next = (range + 1) * sorted.count / ranges;
		bool		none = ranges > 1 && (first == next || random_below(8) == 0);

		observations->excluded_first[i] = none ? 1 : range == 0 ? INT64_MIN : sorted.tag[first];
		observations->excluded_last[i] = none ? 0 : range == ranges - 1 ? INT64_MAX :
			sorted.tag[next - 1];
	}
	points_free(&sorted);
}

void
points_exclude_own_tags(struct points *observations)
{
	observations->excluded_first = allocate(observations->count, sizeof(int64_t));
	observations->excluded_last = allocate(observations->count, sizeof(int64_t));
	for (size_t i = 0; i < observations->count; i++)
		observations->excluded_first[i] = observations->excluded_last[i] = observations->tag[i];
}
