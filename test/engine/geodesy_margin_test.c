/*
 * geodesy_margin_test.c
 *		What a filter by the chord relies on with the sphere: a reference that
 *		is as near as another is inside the margin around the other's chord,
 *		which geodesy.h's geonn_chord_limit() gives; and one that is farther is
 *		beyond the chord that is certain to be as near, which geonn_certain_limit()
 *		gives.
 *
 * Usage: geodesy_margin_test [seed [pairs]], where pairs is the number of
 * random pairs of references for each scale of distances.
 *
 * rooms: common
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "chords.h"
#include "pairs.h"
#include "../lib/verdict.h"

static struct point
destination(struct point from, double distance)
{
	double		latitude = from.latitude * (M_PI / 180.0);
	double		bearing = random_between(0.0, 2.0 * M_PI);
	double		sine = sin(latitude) * cos(distance) +
		cos(latitude) * sin(distance) * cos(bearing);
	double		horizontal = hypot(sin(bearing) * sin(distance),
								   cos(latitude) * cos(distance) -
								   sin(latitude) * sin(distance) * cos(bearing));
	double		east = atan2(sin(bearing) * sin(distance),
							 cos(latitude) * cos(distance) -
							 sin(latitude) * sin(distance) * cos(bearing));
	struct point to;

	to.latitude = atan2(sine, horizontal) * (180.0 / M_PI);
	to.longitude = clamped(from.longitude + east * (180.0 / M_PI), -180.0, 360.0);
	return to;
}

static double
uniform_scale(void)
{
	return random_between(0.0, M_PI);
}

static double
quarter_scale(void)
{
	return M_PI / 2 + random_magnitude(1e-17, 1e-12);
}

static double
antipodal_scale(void)
{
	return M_PI - fabs(random_magnitude(1e-17, 1e-3));
}

static double
small_scale(void)
{
	return fabs(random_magnitude(1e-16, 1e-3));
}

static double
underflow_scale(void)
{
	return fabs(random_magnitude(1e-165, 1e-135));
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
		struct point from = {random_between(-90.0, 90.0), random_between(0.0, 180.0)};
		double		distance = scale();
		struct geonn_vector u;
		struct geonn_vector v[2];
		double		distances[2];
		double		s[2][CHORD_VARIANTS];

		if (distance < 1e-100)
			from.latitude = from.longitude = 0.0;
		u = geonn_unit_vector(from.latitude, from.longitude);
		for (int side = 0; side < 2; side++)
		{
			double		nudge = 1.0 + 0x1p-52 * (random_below(65) - 32);
			struct point to = destination(from, distance * nudge);

			v[side] = geonn_unit_vector(to.latitude, to.longitude);
			distances[side] = geonn_distance_of(u, v[side]);
			chord_variants(u, v[side], s[side]);
		}

		for (int side = 0; side < 2; side++)
		{
			double		certain = geonn_certain_limit(distances[1 - side]);

			/* not so careful that it is of no use */
			if (distances[1 - side] < 20000000.0 && s[1 - side][0] > 1e-280)
				failures += !(certain > s[1 - side][0] * (1.0 - 1e-12));
			if (!(distances[side] <= distances[1 - side]))
			{
				for (int a = 0; a < CHORD_VARIANTS; a++)
					failures += !(s[side][a] > certain);
				continue;
			}
			for (int a = 0; a < CHORD_VARIANTS; a++)
			{
				for (int b = 0; b < CHORD_VARIANTS; b++)
				{
					double		smaller = s[1 - side][b];

					failures += !(s[side][a] <= geonn_chord_limit(smaller));
					if (smaller > 1e-280)
						worst = fmax(worst, (s[side][a] - smaller) / smaller);
				}
			}
		}
	}
	snprintf(title, sizeof(title), "as near implies inside the margin, and farther beyond what is certain: %s", name);
	report_measure(title, failures == 0, "most of the margin used",
				   100.0 * worst / 0x1p-46, "%");
}

int
main(int argc, char **argv)
{
	uint64_t	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240229;
	long		count = argc > 2 ? strtol(argv[2], NULL, 0) : 400000;

	random_state = seed;
	printf("seed %llu, %ld pairs for each scale of distances\n",
		   (unsigned long long) seed, count);

	test_margin("uniform distances", uniform_scale, count);
	test_margin("a quarter of the circle", quarter_scale, count);
	test_margin("antipodal", antipodal_scale, count);
	test_margin("1 nm to 6 km", small_scale, count);
	test_margin("squares that underflow", underflow_scale, count / 2);

	return summed_up();
}
