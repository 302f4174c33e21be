/*
 * spheroid_test.c
 *		Measures src/common/spheroid.h and PROJ's geodesics against the oracle
 *		in __float128.
 *
 * Usage: spheroid_test [seed [pairs]], where pairs is the number of random
 * pairs of points for each kind of geodesic.
 *
 * spheroid_margin_test has what filters by the chord rely on.
 *
 * rooms: common spheroid
 */
#include <math.h>
#include <quadmath.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spheroid_pairs.h"
#include "../lib/spheroid_oracle.h"
#include "../lib/verdict.h"

#define GEODESIC_LIMIT_NANOMETRES 20.0

/* 2^-53, the unit of the error bounds in spheroid.h's essay */
#define ROUNDING_UNIT 0x1p-53

/*
 * The oracle itself
 */

/* Lengths that the literature on near antipodes gives, and a meridian's half */
static void
test_oracle_known(void)
{
	static const struct
	{
		struct pair pair;
		double		metres;		/* to the micrometre */
	}			cases[] =
	{
		{{{0, 0}, {0.5, 179.5}}, 19936288.578965},
		{{{0, 0}, {0.5, 179.7}}, 19944127.420751},
		{{{90, 0}, {-90, 0}}, 20003931.458625},
	};
	double		worst = 0.0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		worst = fmax(worst, fabs((double) (oracle_distance(cases[i].pair) - cases[i].metres)));
	report_measure("the oracle knows what is known", worst <= 0.6e-6, "worst error", worst * 1e6, "um");
}

/* The acceleration of a path that bends with the surface alone, per unit of a */
static void
acceleration(const __float128 *position, const __float128 *velocity, __float128 *result)
{
	__float128	axis = (1 - flattening) * (1 - flattening);
	__float128	normal[3] = {position[0], position[1], position[2] / axis};
	__float128	bend = velocity[0] * velocity[0] + velocity[1] * velocity[1] +
		velocity[2] * velocity[2] / axis;
	__float128	size = normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2];

	for (int i = 0; i < 3; i++)
		result[i] = -bend / size * normal[i];
}

/* Runge and Kutta's classical steps; position and velocity after length */
static void
shoot(__float128 *position, __float128 *velocity, __float128 length, int steps)
{
	static const double fractions[4] = {0.0, 0.5, 0.5, 1.0};
	static const int counts[4] = {1, 2, 2, 1};
	__float128	h = length / steps;

	for (int step = 0; step < steps; step++)
	{
		__float128	p[3] = {0, 0, 0};
		__float128	v[3] = {0, 0, 0};
		__float128	p_slope[3] = {0, 0, 0};
		__float128	v_slope[3] = {0, 0, 0};

		for (int stage = 0; stage < 4; stage++)
		{
			__float128	at[3];
			__float128	moving[3];

			for (int i = 0; i < 3; i++)
			{
				at[i] = position[i] + fractions[stage] * h * p_slope[i];
				moving[i] = velocity[i] + fractions[stage] * h * v_slope[i];
			}
			acceleration(at, moving, v_slope);
			for (int i = 0; i < 3; i++)
			{
				p_slope[i] = moving[i];
				p[i] += counts[stage] * p_slope[i];
				v[i] += counts[stage] * v_slope[i];
			}
		}
		for (int i = 0; i < 3; i++)
		{
			position[i] += h / 6 * p[i];
			velocity[i] += h / 6 * v[i];
		}
	}
}

/* Where the oracle's direction and length lead, against where they should */
static void
test_oracle_shooting(int count)
{
	double		worst = 0.0;

	for (int i = 0; i < count; i++)
	{
		struct pair pair = i % 2 ? uniform_pair() : antipodal_pair();
		struct arc	arc = make_arc(pair);
		__float128	south;
		__float128	length = oracle_geodesic(arc, &south) / 6378137;
		__float128	east_sine;
		__float128	east_cosine;
		__float128	sine;
		__float128	cosine;
		__float128	ends[2][3];
		__float128	end[3];

		/* reduced latitudes make points of the spheroid at once */
		__float128	start[3] = {arc.cosine1, 0, (1 - flattening) * arc.sine1};
		__float128	north[3] = {-arc.sine1, 0, (1 - flattening) * arc.cosine1};
		__float128	norm = sqrtq(north[0] * north[0] + north[2] * north[2]);

		sincosq(arc.east, &east_sine, &east_cosine);
		sincosq(south, &sine, &cosine);
		end[0] = arc.cosine2 * east_cosine;
		end[1] = arc.cosine2 * east_sine;
		end[2] = (1 - flattening) * arc.sine2;
		for (int fine = 0; fine < 2; fine++)
		{
			__float128	velocity[3] = {-sine * north[0] / norm, cosine, -sine * north[2] / norm};

			memcpy(ends[fine], start, sizeof(start));
			shoot(ends[fine], velocity, length, fine ? 3000 : 1500);
		}
		for (int axis = 0; axis < 3; axis++)
		{
			/* the error of fourth order is a sixteenth with half the step */
			__float128	landed = ends[1][axis] + (ends[1][axis] - ends[0][axis]) / 15;

			worst = fmax(worst, (double) fabsq(landed - end[axis]) * 6378137e9);
		}
	}
	report_measure("the oracle's geodesics arrive when shot", worst < 1.0, "worst miss", worst, "nm");
}

/*
 * Geodesics, and the bounds by the chord
 */

static void
test_geodesic(const char *name, pair_maker make_pair, long count)
{
	const __float128 rho = (1 - flattening) * (1 - flattening);
	const double cutoff = 2 * (double) rho * (1.0 - 0x1p-11);
	double		worst = 0.0;
	long		failures = 0;
	char		title[160];

	for (long i = 0; i < count; i++)
	{
		struct pair pair = make_pair();
		double		distance = distance_of_pair(pair);
		__float128	truth = oracle_distance(pair);
		__float128	s = truth / 6378137;
		__float128	chord = oracle_chord(pair);
		__float128	rounding = 1e-24;

		worst = fmax(worst, (double) fabsq(distance - truth) * 1e9);
		failures += !(distance >= 0.0);
		failures += !(chord <= s + rounding);
		if (s <= M_PIq * (1 - flattening))
			failures += !(chord <= 2 * sinq(s / (2 * (1 - flattening))) + rounding);
		if (chord <= cutoff)
			failures += !(s <= 2 * rho * asinq(chord / (2 * rho)) + rounding);
	}
	snprintf(title, sizeof(title), "geodesic within %g nm and the chord's bounds: %s",
			 GEODESIC_LIMIT_NANOMETRES, name);
	if (failures > 0)
		report_failures(title, failures);
	else
		report_measure(title, worst <= GEODESIC_LIMIT_NANOMETRES, "worst error", worst, "nm");
}

/*
 * Which points are one
 */

static int
same_vector(struct point a, struct point b)
{
	struct geonn_vector u = vector_of(a);
	struct geonn_vector v = vector_of(b);

	return memcmp(&u, &v, sizeof(u)) == 0;
}

static struct point
canonical(struct point point)
{
	geonn_spheroid_canonical(&point.latitude, &point.longitude);
	return point;
}

static int
same_point(struct point a, struct point b)
{
	return same_bits(a.latitude, b.latitude) && same_bits(a.longitude, b.longitude);
}

/* Another name of the same point; the coordinates must allow a full turn */
static struct point
renamed(struct point point)
{
	if (fabs(point.latitude) == 90.0)
		point.longitude = random_between(-180.0, 360.0);
	else if (point.longitude <= 0.0)
		point.longitude = (point.longitude + 360.0) - 360.0 == point.longitude ?
			point.longitude + 360.0 : point.longitude;
	else if (point.longitude >= 180.0)
		point.longitude -= 360.0;
	if (point.latitude == 0.0)
		point.latitude = -point.latitude;
	if (point.longitude == 0.0)
		point.longitude = -point.longitude;
	return point;
}

static struct point
alias_point(void)
{
	struct point point = polar_pair().first;

	switch (random_below(5))
	{
		case 0:
			break;
		case 1:
			point.latitude = 0.0;
			point.longitude = 45.0 * (random_below(13) - 4);
			break;
		case 2:
			point.latitude = random_between(-90.0, 90.0);
			point.longitude = 180.0 * (random_below(4) - 1);
			break;
		case 3:
			point.latitude = random_between(-90.0, 90.0);
			point.longitude = clamped(45.0 * (random_below(13) - 4) +
									  0x1p-44 * (random_below(33) - 16), -180.0, 360.0);
			break;
		default:
			point = uniform_point();
	}
	return point;
}

static void
test_names(long count)
{
	long		canonical_failures = 0;
	long		vector_failures = 0;
	long		geodesic_failures = 0;
	long		zero_failures = 0;

	for (long i = 0; i < count; i++)
	{
		struct point point = alias_point();
		struct point other = renamed(point);
		struct point named = canonical(point);
		struct pair pair = {point, other};
		struct pair there = {uniform_point(), point};
		struct pair there_too = {there.first, other};

		canonical_failures += !same_point(named, canonical(other)) ||
			!same_point(named, canonical(named)) ||
			!(named.longitude > -180.0 && named.longitude <= 180.0);
		vector_failures += !same_vector(point, other) || !same_vector(point, named);
		geodesic_failures += !same_bits(distance_of_pair(there), distance_of_pair(there_too));
		zero_failures += !same_bits(distance_of_pair(pair), 0.0);
	}
	report_failures("all names of a point have one canonical name", canonical_failures);
	report_failures("all names of a point have one vector", vector_failures);
	report_failures("all names of a point have the same geodesics", geodesic_failures);
	report_failures("the geodesic of a point to itself is 0", zero_failures);
}

static void
test_symmetry(long count)
{
	long		failures = 0;

	for (long i = 0; i < count; i++)
	{
		struct pair pair = makers[i % MAKERS] ();
		struct pair swapped = {pair.second, pair.first};

		failures += !same_bits(distance_of_pair(pair), distance_of_pair(swapped));
	}
	report_failures("the geodesic has the same bits in both directions", failures);
}

/*
 * Different points can have one vector, and different geodesics: the reason
 * why coincident references are told by canonical coordinates.
 */
static void
test_equal_vectors(long count)
{
	long		equal = 0;
	long		differing = 0;
	double		widest = 0.0;

	for (long i = 0; i < count; i++)
	{
		struct pair pair;
		struct pair there;
		struct pair there_too;
		double		difference;

		pair.first = uniform_point();
		pair.first.latitude = random_between(30.0, 64.0);
		pair.second = pair.first;
		pair.second.latitude = nextafter(pair.first.latitude, 90.0);
		if (!same_vector(pair.first, pair.second))
			continue;
		there.first = there_too.first = uniform_point();
		there.second = pair.first;
		there_too.second = pair.second;
		difference = fabs(distance_of_pair(there) - distance_of_pair(there_too));
		equal++;
		differing += difference > 0.0;
		widest = fmax(widest, (double) oracle_chord(pair) * 6378137e9);
	}
	report_measure("points with one vector have more than one geodesic",
				   differing > 0 && widest <= 8.0, "of these",
				   100.0 * (double) differing / (double) equal, "%");
}

static void
test_vector(long count)
{
	double		worst = 0.0;

	for (long i = 0; i < count; i++)
	{
		struct point point = makers[i % MAKERS] ().second;
		struct geonn_vector vector = vector_of(point);
		__float128	truth[3];

		oracle_vector(point, truth);
		worst = fmax(worst, (double) hypotq(vector.x - truth[0],
											hypotq(vector.y - truth[1], vector.z - truth[2])));
	}
	worst /= ROUNDING_UNIT;
	report_measure("vectors are within 5 of 2^-53", worst <= 5.0, "worst error", worst, "of 2^-53");
}

/*
 * Where the metrics disagree
 */

/* places, the airport that is nearest on the sphere, the one that truly is */
static const struct
{
	struct point place;
	struct point sphere;
	struct point spheroid;
}			flips[] =
{
	/* Arivechi: Hermosillo, Ciudad Obregon */
	{{28.92765, -109.18681}, {29.0958995819, -111.047996521}, {27.3925991058, -109.833000183}},
	/* Nyazura: Chimoio, Mutoko */
	{{-18.70587, 32.16796}, {-19.1513004303, 33.4290008545}, {-17.4319000244, 32.1845016479}},
	/* Trinidad: Alamosa, Pueblo */
	{{37.16946, -104.50054}, {37.434898, -105.866997}, {38.289101, -104.497002}},
	/* Bateau Bay: Richmond, Sydney */
	{{-33.38334, 151.46671}, {-33.604652, 150.783051}, {-33.9460983276, 151.177001953}},
	/* Redland: Tipton, Washington National */
	{{39.14539, -77.14415}, {39.0853996277, -76.7593994141}, {38.8521, -77.037697}},
	/* Pasaband: Herat, Maymana */
	{{33.68956, 64.8531}, {34.209999, 62.228298}, {35.930801, 64.760902}},
};

static double
sphere_distance(struct point a, struct point b)
{
	return geonn_distance_degrees(a.latitude, a.longitude, b.latitude, b.longitude);
}

/* does the oracle say, too, that b is nearer to the place than a? */
static int
truly_nearer(struct point place, struct point a, struct point b)
{
	struct pair to_a = {place, a};
	struct pair to_b = {place, b};

	return oracle_distance(to_b) < oracle_distance(to_a) &&
		distance_of_pair(to_b) < distance_of_pair(to_a);
}

static void
test_flips(long observations)
{
	enum
	{
		REFERENCES = 500
	};
	struct point references[REFERENCES];
	long		failures = 0;
	long		found = 0;

	for (size_t i = 0; i < sizeof(flips) / sizeof(flips[0]); i++)
		failures += !(sphere_distance(flips[i].place, flips[i].sphere) <
					  sphere_distance(flips[i].place, flips[i].spheroid)) ||
			!truly_nearer(flips[i].place, flips[i].sphere, flips[i].spheroid);

	for (int i = 0; i < REFERENCES; i++)
		references[i] = uniform_point();
	for (long i = 0; i < observations; i++)
	{
		struct point place = uniform_point();
		int			by_sphere = 0;
		int			by_spheroid = 0;
		double		sphere = INFINITY;
		double		spheroid = INFINITY;

		for (int j = 0; j < REFERENCES; j++)
		{
			double		distance = sphere_distance(place, references[j]);

			if (distance < sphere)
			{
				sphere = distance;
				by_sphere = j;
			}
		}
		for (int j = 0; j < REFERENCES; j++)
		{
			struct pair pair = {place, references[j]};
			double		distance;

			/* the metrics differ by less than 1 % */
			if (sphere_distance(place, references[j]) > 1.02 * sphere)
				continue;
			distance = distance_of_pair(pair);
			if (distance < spheroid)
			{
				spheroid = distance;
				by_spheroid = j;
			}
		}
		if (by_sphere == by_spheroid)
			continue;
		found++;
		failures += !truly_nearer(place, references[by_sphere], references[by_spheroid]);
	}
	report_measure("where the metrics disagree, the spheroid's nearest truly is",
				   failures == 0 && found > 0, "random cases", (double) found, "");
}

int
main(int argc, char **argv)
{
	uint64_t	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240229;
	long		count = argc > 2 ? strtol(argv[2], NULL, 0) : 300;

	begin_pairs(seed);
	printf("seed %llu, %ld pairs for each kind of geodesic\n",
		   (unsigned long long) seed, count);
	initialize_oracle();

	test_oracle_known();
	test_oracle_shooting(20);

	test_geodesic("uniform points", uniform_pair, 2 * count);
	test_geodesic("at and near the poles", polar_pair, count);
	test_geodesic("at and near the equator", equatorial_pair, count);
	test_geodesic("on one meridian and on opposite ones", meridional_pair, count);
	test_geodesic("on one parallel and on opposite ones", parallel_pair, count);
	test_geodesic("1 nm to 1 m apart", near_pair, count);
	test_geodesic("1 m to 1,000 km apart", local_pair, count);
	test_geodesic("antipodal, and 1 um to 200 km off it", antipodal_pair, 2 * count);

	test_vector(20 * count);
	test_names(200 * count);
	test_symmetry(400 * count);
	test_equal_vectors(200 * count);

	test_flips(20 * count);

	return summed_up();
}
