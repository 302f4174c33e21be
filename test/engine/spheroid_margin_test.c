/*
 * spheroid_margin_test.c
 *		What a filter by the chord relies on with the spheroid: spheroid.h's
 *		limits, from the k-th smallest chord and from a distance, leave out
 *		nothing that is an answer.
 *
 * Usage: spheroid_margin_test [seed [pairs]], where pairs is the number of
 * random pairs of points for each scale of distances.
 *
 * rooms: common
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chords.h"
#include "spheroid_pairs.h"
#include "../lib/verdict.h"

/* what spheroid.h's margin allows PROJ */
#define PROJ_ERROR_METRES 100e-9

static double
any_scale(void)
{
	return random_between(0.0, 20.1e6);
}

static double
city_scale(void)
{
	return fabs(random_magnitude(1.0, 1e6));
}

static double
tiny_scale(void)
{
	return fabs(random_magnitude(1e-9, 1e-3));
}

/* Where the nearer bound takes over, the last is given up, and all is in reach */
static double
seam_scale(void)
{
	static const double seams[] = {0.28 * 6378137.0, 1809e3, 18.28e6, 19.24e6, 19.32e6,
	19.36e6, 19.45e6, 19.76e6, 19.93e6, 20.0e6};

	return seams[random_below(10)] + random_magnitude(1e-9, 1e5);
}

/* Two references at all but the same distance of an observation */
static void
test_margin(const char *name, double (*scale) (void), long count)
{
	double		worst = 0.0;
	long		failures = 0;
	char		title[160];

	for (long i = 0; i < count; i++)
	{
		struct point from = makers[i % MAKERS] ().first;
		double		metres = scale();
		struct point to[2];
		double		distances[2];
		double		s[2][CHORD_VARIANTS];

		for (int side = 0; side < 2; side++)
		{
			struct pair pair;

			to[side] = neighbour(from, metres + 1e-9 * random_below(3));
			pair.first = from;
			pair.second = to[side];
			distances[side] = distance_of_pair(pair);
			chord_variants(vector_of(from), vector_of(to[side]), s[side]);
		}
		for (int side = 0; side < 2; side++)
		{
			if (!(distances[side] <= distances[1 - side]))
				continue;
			for (int a = 0; a < CHORD_VARIANTS; a++)
			{
				for (int b = 0; b < CHORD_VARIANTS; b++)
				{
					double		kth = s[1 - side][b];
					double		limit = geonn_spheroid_limit(kth);

					failures += !(s[side][a] <= limit);
					if (isfinite(limit))
						worst = fmax(worst, (sqrt(s[side][a]) - sqrt(kth)) /
									 (sqrt(limit) - sqrt(kth)));
				}
				failures += !(s[side][a] <= geonn_spheroid_radius_limit(distances[side]));
			}
		}
	}
	snprintf(title, sizeof(title), "as near implies inside the limit: %s", name);
	report_measure(title, failures == 0, "most of the margin used", 100.0 * worst, "%");
}

static void
test_radius(long count)
{
	long		failures = 0;

	for (long i = 0; i < count; i++)
	{
		struct pair pair = makers[i % MAKERS] ();
		double		limit = geonn_spheroid_radius_limit(distance_of_pair(pair));
		double		s[CHORD_VARIANTS];

		chord_variants(vector_of(pair.first), vector_of(pair.second), s);
		for (int a = 0; a < CHORD_VARIANTS; a++)
			failures += !(s[a] <= limit);
	}
	failures += !isinf(geonn_spheroid_radius_limit(20003932.0));
	failures += !isinf(geonn_spheroid_radius_limit(INFINITY));
	failures += !isfinite(geonn_spheroid_radius_limit(19.9e6));
	report_failures("within a radius implies inside its limit", failures);
}

static void
test_certain(long count)
{
	long		failures = 0;

	for (long i = 0; i < count; i++)
	{
		struct pair pair = makers[i % MAKERS] ();
		double		distance = distance_of_pair(pair);
		double		shorter = geonn_spheroid_certain_limit(nextafter(distance, 0.0));
		double		longer = geonn_spheroid_certain_limit(1.01 * distance + 1e-5);
		double		s[CHORD_VARIANTS];

		chord_variants(vector_of(pair.first), vector_of(pair.second), s);
		for (int a = 0; a < CHORD_VARIANTS; a++)
		{
			failures += distance > 0.0 && s[a] <= shorter;
			failures += distance < 1e6 && !(s[a] <= longer);
		}
	}
	failures += !(geonn_spheroid_certain_limit(0.0) < 0.0);
	failures += !(geonn_spheroid_certain_limit(-1.0) < 0.0);
	failures += !isfinite(geonn_spheroid_certain_limit(20003931.0));
	failures += !isinf(geonn_spheroid_certain_limit(INFINITY));
	report_failures("inside a radius' certain limit implies within the radius", failures);
}

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

/* The definition: the k nearest by geodesic, ties included, among some references */
static void
test_sets(long rounds)
{
	enum
	{
		COUNT = 100
	};
	long		failures = 0;
	long		inside = 0;
	long		wanted = 0;

	for (long round = 0; round < rounds; round++)
	{
		struct pair pair = makers[round % MAKERS] ();
		double		spread = fabs(random_magnitude(1e-8, 2e7));
		int			k = 1 + random_below(10);
		double		s[COUNT];
		double		s_sorted[COUNT];
		double		distances[COUNT];
		double		distances_sorted[COUNT];
		double		limit;

		for (int i = 0; i < COUNT; i++)
		{
			struct pair candidate = {pair.first, pair.second};

			/* round the partner, round the observation, coincident */
			if (i % 10 != 0)
				candidate.second = neighbour(round % 2 ? pair.first : pair.second,
											 spread * (round % 3 ? 1.0 : random_between(0.0, 1.0)));
			s[i] = geonn_chord_squared(vector_of(candidate.first), vector_of(candidate.second));
			distances[i] = distance_of_pair(candidate);
		}
		memcpy(s_sorted, s, sizeof(s));
		memcpy(distances_sorted, distances, sizeof(distances));
		qsort(s_sorted, COUNT, sizeof(double), compare_doubles);
		qsort(distances_sorted, COUNT, sizeof(double), compare_doubles);
		limit = geonn_spheroid_limit(s_sorted[k - 1]);
		for (int i = 0; i < COUNT; i++)
		{
			if (distances[i] <= distances_sorted[k - 1])
			{
				failures += !(s[i] <= limit);
				wanted++;
			}
			inside += s[i] <= limit;
		}
	}
	report_measure("the k nearest and their ties are inside the limit", failures == 0,
				   "for each, candidates", (double) inside / (double) wanted, "");
}

/* A larger chord excludes no more; and where the limit ends */
static void
test_limit_shape(long count)
{
	long		failures = 0;

	for (long i = 0; i < count; i++)
	{
		double		s = i % 2 ? random_between(0.0, 4.0) : fabs(random_magnitude(1e-40, 4.0));
		double		above = s * (1.0 + fabs(random_magnitude(0x1p-48, 1.0)));
		double		limit = geonn_spheroid_limit(s);

		failures += !(limit <= geonn_spheroid_limit(above));
		failures += !(limit > s);
	}
	failures += !(geonn_spheroid_limit(0.0) >= 4.0 * PROJ_ERROR_METRES * PROJ_ERROR_METRES /
				  (6378137.0 * 6378137.0));
	failures += !(geonn_spheroid_limit(0.0) < 1e-24);
	failures += !isinf(geonn_spheroid_limit(4.0));
	failures += !isfinite(geonn_spheroid_limit(3.93));
	failures += !isinf(geonn_spheroid_limit(3.95));
	report_failures("the limit grows with the chord", failures);
}

int
main(int argc, char **argv)
{
	uint64_t	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240229;
	long		count = argc > 2 ? strtol(argv[2], NULL, 0) : 30000;

	begin_pairs(seed);
	printf("seed %llu, %ld pairs for each scale of distances\n",
		   (unsigned long long) seed, count);

	test_margin("any distance", any_scale, count);
	test_margin("1 m to 1,000 km", city_scale, count);
	test_margin("1 nm to 1 mm", tiny_scale, count);
	test_margin("where one bound takes over from another", seam_scale, count);
	test_radius(4 * count);
	test_certain(4 * count);
	test_sets(count / 25);
	test_limit_shape(4 * count);

	return summed_up();
}
