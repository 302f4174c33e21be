/*-------------------------------------------------------------------------
 *
 * spheroid_test.c
 *	  Measures src/common/spheroid.h and PROJ's geodesics against an oracle in
 *	  __float128
 *
 * The oracle shares no code with PROJ, and no series.  It solves Bessel's
 * equations by quadrature: on the auxiliary sphere of reduced latitudes B a
 * geodesic is a great circle, and with A its azimuth at the equator, e' the
 * second eccentricity and k = e' cos A,
 *
 *		s = b * integral of sqrt(1 + k^2 sin^2 x)
 *		longitude = angle there - f sin A * integral of
 *					(2 - f) / (1 + (1 - f) sqrt(1 + k^2 sin^2 x))
 *
 * over the arc, by 20 Gauss-Legendre nodes, where the error falls below
 * 10^-24.  The direction is found by bracketing: with the point farther from the
 * equator first and in the south, the longitude that an azimuth from 0 to 180
 * degrees leads to is below the wanted one on one side of the shortest path's
 * azimuth, and above it on the other.  That these are geodesics at all is
 * seen by shooting: a path integrated in space, whose acceleration is normal
 * to the surface, has to arrive.
 *
 * Usage: spheroid_test [seed [pairs]], where pairs is the number of random
 * pairs of points for each kind of geodesic.
 *
 *-------------------------------------------------------------------------
 */
#include <float.h>
#include <geodesic.h>
#include <math.h>
#include <quadmath.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spheroid.h"
#include "spheroid_distance.h"
#include "../client/random.h"

#define GEODESIC_LIMIT_NANOMETRES 20.0

/* what spheroid.h's margin allows PROJ */
#define PROJ_ERROR_METRES 100e-9

/* 2^-53, the unit of the error bounds in spheroid.h's essay */
#define ROUNDING_UNIT 0x1p-53

#define NODES 20

struct point
{
	double		latitude;
	double		longitude;
};

struct pair
{
	struct point first;
	struct point second;
};

typedef struct pair (*pair_maker) (void);

static int	passed_count;
static int	failed_count;

/* PROJ's, to place points at a distance and a bearing */
static struct geod_geodesic wgs84;

/* of WGS84: flattening, semi-minor axis in metres, e'^2 */
static __float128 flattening;
static __float128 minor_axis;
static __float128 second_eccentricity_squared;

/* of Gauss and Legendre, on [-1, 1] */
static __float128 nodes[NODES];
static __float128 weights[NODES];

/*
 * Results
 */

static void
report(const char *name, int passed, const char *measure, double worst,
	   const char *unit)
{
	if (passed)
		passed_count++;
	else
		failed_count++;
	printf("%s - %s (%s %.4g%s%s)\n", passed ? "ok" : "not ok", name,
		   measure, worst, *unit ? " " : "", unit);
	fflush(stdout);
}

static void
report_failures(const char *name, long failures)
{
	report(name, failures == 0, "failures", (double) failures, "");
}

static double
clamped(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

static int
same_bits(double a, double b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

/*
 * Makers of points and pairs
 */

static struct point
uniform_point(void)
{
	struct point point;

	point.latitude = asin(random_between(-1.0, 1.0)) * (180.0 / M_PI);
	point.longitude = random_between(-180.0, 360.0);
	return point;
}

static struct point
antipode(struct point point)
{
	point.latitude = -point.latitude;
	point.longitude += point.longitude > 0.0 ? -180.0 : 180.0;
	return point;
}

/* A point about so many metres away; the bearing is random, often a cardinal one */
static struct point
neighbour(struct point from, double metres)
{
	double		bearing = random_below(3) ? random_between(0.0, 360.0) :
		90.0 * random_below(4);
	struct point to;

	geod_direct(&wgs84, from.latitude, from.longitude, bearing, metres,
				&to.latitude, &to.longitude, NULL);
	to.latitude = clamped(to.latitude, -90.0, 90.0);
	return to;
}

static struct pair
uniform_pair(void)
{
	struct pair pair = {uniform_point(), uniform_point()};

	return pair;
}

static struct pair
polar_pair(void)
{
	struct pair pair = uniform_pair();
	double		pole = random_below(2) ? 90.0 : -90.0;
	double		off = fabs(random_magnitude(1e-15, 1.0));

	pair.first.latitude = random_below(4) ? copysign(90.0 - off, pole) : pole;
	if (random_below(2))
		pair.second.latitude = random_below(2) ? pole : -pole;
	else if (random_below(2))
		pair.second.latitude = copysign(90.0 - off * random_between(0.0, 2.0),
										random_below(2) ? pole : -pole);
	return pair;
}

/* Both at or near the equator: along it, and off it where that is shorter */
static struct pair
equatorial_pair(void)
{
	struct pair pair = uniform_pair();

	pair.first.latitude = random_below(2) ? 0.0 : random_magnitude(1e-20, 1.0);
	pair.second.latitude = random_below(2) ? 0.0 : random_magnitude(1e-20, 1.0);
	if (random_below(2))
		pair.second.longitude = clamped(pair.first.longitude +
										(pair.first.longitude > 90.0 ? -179.4 : 179.4) +
										random_magnitude(1e-9, 0.6), -180.0, 360.0);
	return pair;
}

/* On one meridian, or opposite ones, or nearly */
static struct pair
meridional_pair(void)
{
	struct pair pair = uniform_pair();

	pair.second.longitude = pair.first.longitude;
	if (random_below(2))
		pair.second.longitude += pair.first.longitude > 90.0 ? -180.0 : 180.0;
	if (random_below(2))
		pair.second.longitude = clamped(pair.second.longitude + random_magnitude(1e-16, 1e-3),
										-180.0, 360.0);
	return pair;
}

/* As far from the equator as one another */
static struct pair
parallel_pair(void)
{
	struct pair pair = uniform_pair();

	pair.second.latitude = random_below(2) ? pair.first.latitude : -pair.first.latitude;
	if (random_below(2))
		pair.second.latitude = clamped(pair.second.latitude + random_magnitude(1e-15, 1e-3),
									   -90.0, 90.0);
	return pair;
}

static struct pair
near_pair(void)
{
	struct pair pair;

	pair.first = random_below(4) ? uniform_point() : polar_pair().first;
	pair.second = neighbour(pair.first, fabs(random_magnitude(1e-9, 1.0)));
	return pair;
}

static struct pair
local_pair(void)
{
	struct pair pair;

	pair.first = uniform_point();
	pair.second = neighbour(pair.first, fabs(random_magnitude(1.0, 1e6)));
	return pair;
}

/* The antipode, and up to 200 km off it, where the shortest paths change sides */
static struct pair
antipodal_pair(void)
{
	struct pair pair;

	pair.first = random_below(4) ? uniform_point() : equatorial_pair().first;
	pair.second = antipode(pair.first);
	if (random_below(8))
		pair.second = neighbour(pair.second, fabs(random_magnitude(1e-6, 2e5)));
	return pair;
}

static struct pair
coincident_pair(void)
{
	struct pair pair;

	pair.first = random_below(4) ? uniform_point() : polar_pair().first;
	pair.second = pair.first;
	return pair;
}

static const pair_maker makers[] = {uniform_pair, polar_pair, equatorial_pair,
meridional_pair, parallel_pair, near_pair, local_pair, antipodal_pair, coincident_pair};

#define MAKERS ((int) (sizeof(makers) / sizeof(makers[0])))

/*
 * The oracle
 */

static void
oracle_sincosd(__float128 degrees, __float128 *sine, __float128 *cosine)
{
	__float128	turned = remainderq(degrees, 360);	/* exact, in [-180, 180] */
	__float128	size = fabsq(turned);
	__float128	folded = size > 90 ? 180 - size : size;
	__float128	small = folded > 45 ? 90 - folded : folded;
	__float128	small_sine;
	__float128	small_cosine;

	sincosq(small * M_PIq / 180, &small_sine, &small_cosine);
	*sine = copysignq(folded > 45 ? small_cosine : small_sine, turned);
	*cosine = folded > 45 ? small_sine : small_cosine;
	if (size > 90)
		*cosine = -*cosine;
}

/* Legendre's polynomial of degree NODES, and its derivative */
static __float128
legendre(__float128 x, __float128 *derivative)
{
	__float128	previous = 1;
	__float128	value = x;

	for (int degree = 2; degree <= NODES; degree++)
	{
		__float128	next = ((2 * degree - 1) * x * value - (degree - 1) * previous) / degree;

		previous = value;
		value = next;
	}
	*derivative = NODES * (x * value - previous) / (x * x - 1);
	return value;
}

static void
initialize_oracle(void)
{
	flattening = 1000000000 / (__float128) INT64_C(298257223563);
	minor_axis = 6378137 * (1 - flattening);
	second_eccentricity_squared = 1 / ((1 - flattening) * (1 - flattening)) - 1;

	for (int i = 0; i < NODES; i++)
	{
		__float128	derivative;

		nodes[i] = cos(M_PI * (i + 0.75) / (NODES + 0.5));
		for (int step = 0; step < 6; step++)
			nodes[i] -= legendre(nodes[i], &derivative) / derivative;
		legendre(nodes[i], &derivative);
		weights[i] = 2 / ((1 - nodes[i] * nodes[i]) * derivative * derivative);
	}
}

/* The integrals of the head of this file, of the length or of the longitude */
static __float128
integral(__float128 k_squared, __float128 from, __float128 to, int of_length)
{
	__float128	middle = (from + to) / 2;
	__float128	half = (to - from) / 2;
	__float128	sum = 0;

	for (int i = 0; i < NODES; i++)
	{
		__float128	sine = sinq(middle + half * nodes[i]);
		__float128	root = sqrtq(1 + k_squared * sine * sine);

		sum += weights[i] * (of_length ? root :
							 (2 - flattening) / (1 + (1 - flattening) * root));
	}
	return sum * half;
}

/* Two points, the first in the south and no nearer to the equator */
struct arc
{
	__float128	sine1;			/* of the reduced latitudes */
	__float128	cosine1;
	__float128	sine2;
	__float128	cosine2;
	__float128	east;			/* radians from one to the other, in [0, pi] */
};

/* Where a geodesic with some direction at the first point goes */
struct trace
{
	__float128	equator_sine;	/* sin A */
	__float128	k_squared;
	__float128	from;			/* arc lengths from the equator */
	__float128	to;
	__float128	east;			/* radians when it reaches the second's latitude */
};

/*
 * The direction is in radians south of east: next to the equator it is so
 * small that an azimuth would not have its digits.
 */
static struct trace
trace_geodesic(const struct arc *arc, __float128 south)
{
	struct trace trace;
	__float128	sine;
	__float128	cosine;
	__float128	along1;			/* to the north, times the reduced latitude's cosine */
	__float128	along2;
	__float128	excess;			/* difference of the squared cosines, without cancelling */
	__float128	equator_cosine_squared;

	sincosq(south, &sine, &cosine);
	excess = arc->cosine1 < -arc->sine1 ?
		(arc->cosine2 - arc->cosine1) * (arc->cosine2 + arc->cosine1) :
		(arc->sine1 - arc->sine2) * (arc->sine1 + arc->sine2);
	along1 = -sine * arc->cosine1;
	along2 = sqrtq(along1 * along1 + excess);

	trace.equator_sine = cosine * arc->cosine1;
	equator_cosine_squared = along1 * along1 + arc->sine1 * arc->sine1;
	trace.k_squared = second_eccentricity_squared * equator_cosine_squared;
	trace.from = atan2q(arc->sine1, along1);
	trace.to = atan2q(arc->sine2, along2);
	trace.east = atan2q(trace.equator_sine * arc->sine2, along2) -
		atan2q(trace.equator_sine * arc->sine1, along1) -
		flattening * trace.equator_sine *
		integral(trace.k_squared, trace.from, trace.to, 0);
	return trace;
}

/* By inverse quadratic interpolation where it helps, else by halving (Chandrupatla) */
static struct trace
find_geodesic(const struct arc *arc, __float128 *south)
{
	__float128	low = -M_PIq / 2;
	__float128	low_value = -arc->east;	/* a meridian: no longitude */
	__float128	high = M_PIq / 2;
	__float128	high_value = M_PIq - arc->east;	/* by the pole: half a turn */
	__float128	part = 0.5;
	struct trace trace;

	for (int step = 0;; step++)
	{
		__float128	value;
		__float128	last;
		__float128	last_value;
		__float128	x;
		__float128	y;

		*south = low + part * (high - low);
		trace = trace_geodesic(arc, *south);
		value = trace.east - arc->east;
		if (fabsq(value) < 1e-26 || step == 400)
			return trace;

		/* low becomes the newest, high the other side, last what is dropped */
		if ((value > 0) == (low_value > 0))
		{
			last = low;
			last_value = low_value;
		}
		else
		{
			last = high;
			last_value = high_value;
			high = low;
			high_value = low_value;
		}
		low = *south;
		low_value = value;

		x = (low - high) / (last - high);
		y = (low_value - high_value) / (last_value - high_value);
		part = 0.5;
		if (y * y < x && (1 - y) * (1 - y) < 1 - x)
			part = low_value / (high_value - low_value) * last_value / (high_value - last_value) +
				(last - low) / (high - low) * low_value / (last_value - low_value) *
				high_value / (last_value - high_value);
		if (!(part > 1e-6 && part < 1 - 1e-6))
			part = step % 3 ? (part > 0.5 ? 1 - 1e-6 : 1e-6) : 0.5;
	}
}

static struct arc
make_arc(struct pair pair)
{
	struct arc	arc;
	__float128	degrees = remainderq((__float128) pair.second.longitude -
									 (__float128) pair.first.longitude, 360);
	int			swap = fabs(pair.second.latitude) > fabs(pair.first.latitude);
	double		latitude1 = swap ? pair.second.latitude : pair.first.latitude;
	double		latitude2 = swap ? pair.first.latitude : pair.second.latitude;
	__float128	norm;

	if (latitude1 > 0.0)
	{
		latitude1 = -latitude1;
		latitude2 = -latitude2;
	}
	arc.east = fabsq(degrees) * M_PIq / 180;
	oracle_sincosd(latitude1, &arc.sine1, &arc.cosine1);
	arc.sine1 *= 1 - flattening;
	norm = sqrtq(arc.sine1 * arc.sine1 + arc.cosine1 * arc.cosine1);
	arc.sine1 = -fabsq(arc.sine1 / norm);
	arc.cosine1 /= norm;
	oracle_sincosd(latitude2, &arc.sine2, &arc.cosine2);
	arc.sine2 *= 1 - flattening;
	norm = sqrtq(arc.sine2 * arc.sine2 + arc.cosine2 * arc.cosine2);
	arc.sine2 = arc.sine2 / norm + 0;
	arc.cosine2 /= norm;
	return arc;
}

/* Metres; the direction is that at arc's first point, in radians south of east */
static __float128
oracle_geodesic(struct arc arc, __float128 *south)
{
	struct trace trace;
	__float128	latitude1 = atan2q(arc.sine1, arc.cosine1);

	if (arc.east == 0 || arc.cosine1 == 0)
	{
		*south = -M_PIq / 2;
		return minor_axis * integral(second_eccentricity_squared, latitude1,
									 atan2q(arc.sine2, arc.cosine2), 1);
	}
	if (arc.east == 180 * M_PIq / 180)
	{
		*south = M_PIq / 2;		/* by the pole */
		return minor_axis * integral(second_eccentricity_squared, -M_PIq - latitude1,
									 atan2q(arc.sine2, arc.cosine2), 1);
	}
	if (arc.sine1 == 0 && arc.east <= (1 - flattening) * M_PIq)
	{
		*south = 0;				/* along the equator */
		return 6378137 * arc.east;
	}
	trace = find_geodesic(&arc, south);
	return minor_axis * integral(trace.k_squared, trace.from, trace.to, 1);
}

static __float128
oracle_distance(struct pair pair)
{
	__float128	south;

	return oracle_geodesic(make_arc(pair), &south);
}

static double
distance_of_pair(struct pair pair)
{
	return geonn_spheroid_distance(pair.first.latitude, pair.first.longitude,
								   pair.second.latitude, pair.second.longitude);
}

/* Earth-centred coordinates in units of the semi-major axis */
static void
oracle_vector(struct point point, __float128 *vector)
{
	__float128	e2 = flattening * (2 - flattening);
	__float128	latitude_sine;
	__float128	latitude_cosine;
	__float128	longitude_sine;
	__float128	longitude_cosine;
	__float128	radius;

	oracle_sincosd(point.latitude, &latitude_sine, &latitude_cosine);
	oracle_sincosd(point.longitude, &longitude_sine, &longitude_cosine);
	radius = 1 / sqrtq(1 - e2 * latitude_sine * latitude_sine);
	vector[0] = radius * latitude_cosine * longitude_cosine;
	vector[1] = radius * latitude_cosine * longitude_sine;
	vector[2] = radius * (1 - e2) * latitude_sine;
}

static __float128
oracle_chord(struct pair pair)
{
	__float128	u[3];
	__float128	v[3];

	oracle_vector(pair.first, u);
	oracle_vector(pair.second, v);
	return hypotq(u[0] - v[0], hypotq(u[1] - v[1], u[2] - v[2]));
}

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
	report("the oracle knows what is known", worst <= 0.6e-6, "worst error", worst * 1e6, "um");
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
	report("the oracle's geodesics arrive when shot", worst < 1.0, "worst miss", worst, "nm");
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
		report(title, worst <= GEODESIC_LIMIT_NANOMETRES, "worst error", worst, "nm");
}

/*
 * Which points are one
 */

static struct geonn_vector
vector_of(struct point point)
{
	return geonn_spheroid_vector(point.latitude, point.longitude);
}

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
	report("points with one vector have more than one geodesic",
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
	report("vectors are within 5 of 2^-53", worst <= 5.0, "worst error", worst, "of 2^-53");
}

/*
 * The candidate margin
 */

/* s in all the ways that a filter may compute it */
#define CHORD_VARIANTS 5

static void
chord_variants(struct point first, struct point second, double *variants)
{
	struct geonn_vector u = vector_of(first);
	struct geonn_vector v = vector_of(second);
	double		dx = u.x - v.x;
	double		dy = u.y - v.y;
	double		dz = u.z - v.z;

	variants[0] = geonn_chord_squared(u, v);
	variants[1] = dx * dx + dy * dy + dz * dz;
	variants[2] = dx * dx + (dy * dy + dz * dz);
	variants[3] = (dx * dx + dz * dz) + dy * dy;
	variants[4] = fma(dx, dx, dy * dy + dz * dz);
}

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
			chord_variants(from, to[side], s[side]);
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
	report(title, failures == 0, "most of the margin used", 100.0 * worst, "%");
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

		chord_variants(pair.first, pair.second, s);
		for (int a = 0; a < CHORD_VARIANTS; a++)
			failures += !(s[a] <= limit);
	}
	failures += !isinf(geonn_spheroid_radius_limit(20003932.0));
	failures += !isinf(geonn_spheroid_radius_limit(INFINITY));
	failures += !isfinite(geonn_spheroid_radius_limit(19.9e6));
	report_failures("within a radius implies inside its limit", failures);
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
	report("the k nearest and their ties are inside the limit", failures == 0,
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
	report("where the metrics disagree, the spheroid's nearest truly is",
		   failures == 0 && found > 0, "random cases", (double) found, "");
}

int
main(int argc, char **argv)
{
	uint64_t	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240229;
	long		count = argc > 2 ? strtol(argv[2], NULL, 0) : 300;

	random_state = seed;
	printf("seed %llu, %ld pairs for each kind of geodesic\n",
		   (unsigned long long) seed, count);
	geod_init(&wgs84, GEONN_SPHEROID_AXIS, GEONN_SPHEROID_FLATTENING);
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

	test_margin("any distance", any_scale, 100 * count);
	test_margin("1 m to 1,000 km", city_scale, 100 * count);
	test_margin("1 nm to 1 mm", tiny_scale, 100 * count);
	test_margin("where one bound takes over from another", seam_scale, 100 * count);
	test_radius(400 * count);
	test_sets(4 * count);
	test_limit_shape(400 * count);

	test_flips(20 * count);

	printf("%d passed, %d failed\n", passed_count, failed_count);
	return failed_count == 0 ? 0 : 1;
}
