/*
 * shapes.c
 *		Lines and polygons of the benchmark, in place of points.
 */
#include "shapes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "common/arc.h"
#include "common/ring.h"

#define DEGREES (180.0 / 3.14159265358979323846)

/* the place so many degrees from another one, by a bearing in radians; near enough */
static struct point
place_from(struct point from, double degrees, double bearing)
{
	struct point place = {from.latitude + degrees * cos(bearing), from.longitude};
	double		across = degrees * sin(bearing) / fmax(cos(place.latitude / DEGREES), 0.01);

	place.latitude = fmax(-90.0, fmin(90.0, place.latitude));
	place.longitude += across;
	if (place.longitude < -180.0)
		place.longitude += 360.0;
	if (place.longitude > 360.0)
		place.longitude -= 360.0;
	return place;
}

/* Vertex number i of a shape, after `last`. */
static struct point
next_vertex(const struct shapes *shapes, uint64_t key, size_t arc, size_t i, struct point centre, struct point last)
{
	double		random = points_random(key, 2 * arc);
	double		turn = points_random(key, 2 * (arc - i) + 1);
	double		radius = 2.0 * sqrt(0.4 / ((double) (shapes->count / shapes->each) + 1.0)) * DEGREES;

	if (shapes->are_polygons)
		return place_from(centre, fmin(radius * (0.7 + 0.6 * random), 60.0),
						  6.283185307 * ((double) i / shapes->each + turn));
	return i == 0 ? centre : place_from(last, (0.2 + 0.6 * random) * 360.0 / 40030.0, 6.283185307 * turn + random - 0.5);
}

/* Make a shape of arcs first ... end - 1. */
static void
make_shape(struct shapes *shapes, uint64_t key, const struct points *points, size_t first, size_t end)
{
	struct point centre = points_get(points, first);
	struct point vertex = centre;
	bool		pole = false;
	int32_t		number = (int32_t) (first / shapes->each);

	for (size_t i = first; i <= end; i++)
	{
		bool		closes = shapes->are_polygons && i == end;

		vertex = closes ? (struct point) {shapes->latitude[first], shapes->longitude[first]} :
			next_vertex(shapes, key, i, i - first, centre, vertex);
		if (i > first)
		{
			shapes->end_latitude[i - 1] = vertex.latitude;
			shapes->end_longitude[i - 1] = vertex.longitude;
		}
		if (i == end)
			break;
		shapes->latitude[i] = vertex.latitude;
		shapes->longitude[i] = vertex.longitude;
		shapes->tag[i] = bench_tag((uint64_t) number);
		shapes->shape[i] = number;
	}
	if (shapes->are_polygons)
	{
		struct geonn_vector *ring = bench_allocate(end - first + 1, sizeof(*ring));

		for (size_t i = first; i < end; i++)
			ring[i - first] = geonn_unit_vector(shapes->latitude[i], shapes->longitude[i]);
		ring[end - first] = ring[0];
		geonn_ring_holds_pole(ring, end - first + 1, NULL, &pole);
		for (size_t i = first; i < end; i++)
			shapes->polygon[i] = pole ? -(number + 1) : number + 1;
		free(ring);
	}
}

void
shapes_make(struct shapes *shapes, const struct conditions *conditions, uint64_t seed, const struct points *points,
			size_t count)
{
	uint64_t	key = points_mix(seed ^ UINT64_C(0x736861706573));

	*shapes = (struct shapes) {
		.each = conditions->lines > 0 ? conditions->lines : conditions->polygons,
		.are_polygons = conditions->lines == 0,
		.count = count,
		.latitude = bench_allocate(count, sizeof(double)),
		.longitude = bench_allocate(count, sizeof(double)),
		.end_latitude = bench_allocate(count, sizeof(double)),
		.end_longitude = bench_allocate(count, sizeof(double)),
		.tag = bench_allocate(count, sizeof(int64_t)),
		.shape = bench_allocate(count, sizeof(int32_t)),
		.polygon = bench_allocate(count, sizeof(int32_t))
	};
	for (size_t first = 0; first < count; first += shapes->each)
		make_shape(shapes, key, points, first, count - first < shapes->each ? count : first + shapes->each);
}

void
shapes_free(struct shapes *shapes)
{
	free(shapes->latitude);
	free(shapes->longitude);
	free(shapes->end_latitude);
	free(shapes->end_longitude);
	free(shapes->tag);
	free(shapes->shape);
	free(shapes->polygon);
}

/* The distance of a point to a shape of arcs first ... end - 1. */
static double
distance_to(const struct shapes *shapes, struct geonn_vector from, size_t first, size_t end, struct geonn_vector *chain)
{
	size_t		count = end - first + 1;

	for (size_t i = first; i < end; i++)
		chain[i - first] = geonn_unit_vector(shapes->latitude[i], shapes->longitude[i]);
	chain[count - 1] = geonn_unit_vector(shapes->end_latitude[end - 1], shapes->end_longitude[end - 1]);
	if (shapes->are_polygons && geonn_ring_side(chain, count, shapes->polygon[first] < 0, from) != GEONN_OUTSIDE)
		return 0.0;
	return geonn_chain_distance(from, chain, count);
}

/* Check one sample: its shapes have these distances, and those left out are no nearer than the last. */
static void
check_sample(const struct shapes *shapes, uint32_t k, const struct sample *sample, struct geonn_vector *chain,
			 struct verdict *verdict)
{
	struct geonn_vector from = geonn_unit_vector(sample->latitude, sample->longitude);
	size_t		all = (shapes->count + shapes->each - 1) / shapes->each;
	double		last = sample->count > 0 ? sample->distance[sample->count - 1] : -1.0;
	uint32_t	nearer = 0;
	uint32_t	found = 0;

	for (size_t shape = 0; shape < all; shape++)
	{
		size_t		first = shape * shapes->each;
		size_t		end = shapes->count - first < shapes->each ? shapes->count : first + shapes->each;
		double		distance = distance_to(shapes, from, first, end, chain);

		nearer += distance < last;
		for (uint32_t j = 0; j < sample->count; j++)
			found += sample->reference[j] == (int64_t) shape && sample->distance[j] == distance;
	}
	verdict->checked++;
	if (sample->count == (k < all ? k : all) && found == sample->count && nearer < sample->count)
		return;
	verdict->right = false;
	snprintf(verdict->wrong, sizeof(verdict->wrong),
			 "observation %llu has %u shapes, %u of them with their distances, and %u are nearer than the last",
			 (unsigned long long) sample->observation, sample->count, found, nearer);
}

struct verdict
shapes_check(const struct shapes *shapes, uint32_t k, const struct sample *samples, uint32_t count)
{
	struct verdict verdict = {.right = true};
	struct geonn_vector *chain = bench_allocate(shapes->each + (size_t) 1, sizeof(*chain));

	for (uint32_t i = 0; i < count && verdict.right; i++)
		check_sample(shapes, k, &samples[i], chain, &verdict);
	free(chain);
	return verdict;
}
