/*
 * spheroid_oracle.c
 *		Geodesics and chords of WGS84 in __float128.
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
 * azimuth, and above it on the other.  That these are geodesics at all
 * spheroid_test sees by shooting: a path integrated in space, whose acceleration
 * is normal to the surface, has to arrive.
 */
#include "spheroid_oracle.h"

#include <math.h>

#include "degrees.h"

#define NODES 20

/* of WGS84: semi-minor axis in metres, e'^2 */
static __float128 minor_axis;
static __float128 second_eccentricity_squared;

/* of Gauss and Legendre, on [-1, 1] */
static __float128 nodes[NODES];
static __float128 weights[NODES];

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

void
initialize_oracle(void)
{
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

struct arc
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

__float128
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

__float128
oracle_distance(struct pair pair)
{
	__float128	south;

	return oracle_geodesic(make_arc(pair), &south);
}

void
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

__float128
oracle_chord(struct pair pair)
{
	__float128	u[3];
	__float128	v[3];

	oracle_vector(pair.first, u);
	oracle_vector(pair.second, v);
	return hypotq(u[0] - v[0], hypotq(u[1] - v[1], u[2] - v[2]));
}
