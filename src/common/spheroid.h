/*
 * spheroid.h
 *		Points and chords of the WGS84 spheroid, and what they say of geodesics
 *
 * With the metric spheroid the nearest reference is the first in the order
 * (geodesic, id), where geodesic is the float64 value that PROJ's geod_inverse
 * returns (spheroid_distance.h).  That costs about a microsecond, on the host
 * alone.  So the search works on straight lines through the Earth, the chords
 * between earth-centred coordinates, and this header tells which references
 * can be among the k first.  They alone get a geodesic.
 *
 * Lengths are in units of the semi-major axis a, 6,378,137 m, unless they are
 * said to be in metres.  b is the semi-minor axis, 1 - f.  All that geodesy.h
 * says of bits holds here: the same ones from every compiler and device.  e
 * stands for 2^-53, which is 0.71 nm.
 *
 *
 * Which points are one
 *
 * A point has more than one pair of coordinates: a pole has any longitude, a
 * meridian east of 180 is also one west of 0, -180 is 180, -0 is 0.
 * geonn_spheroid_canonical() names each by one pair, exactly, and both the
 * vector and the geodesic are functions of these canonical pairs.  Therefore
 * equal canonical coordinates (==, or the same bits) imply equal vectors and
 * equal geodesics, bit for bit, from and to any other point.  The converse
 * does not hold: around 45 degrees, two latitudes that are adjacent float64
 * are closer than the vector's coordinates can tell, and can have the same
 * vector, while their geodesics differ in the last bits.  So code that treats
 * coincident references as one must compare canonical coordinates, never
 * vectors.  Points with equal vectors are within 10 e of each other (Vector,
 * below), hence within 8 nm.
 *
 *
 * Bounds
 *
 * Let P and Q be points of the spheroid, c = |P - Q| and s the length of the
 * shortest path between them on it, the geodesic.
 *
 *	1.	c <= s.
 *
 *	2.	c <= 2 sin(s / 2b) while s <= pi b.  Stretching the axis by 1/b makes
 *		the spheroid the unit sphere.  Lengths grow by at most 1/b, so the
 *		images of P and Q have an angle of at most s/b between them, and a
 *		chord of at most 2 sin(s / 2b).  No length shrinks, so c is no longer.
 *		This is the better one of the two beyond s = 0.2836, 1,809 km.
 *
 *	3.	s <= 2 rho asin(c / 2 rho) while c <= 2 rho (1 - 2^-11), where
 *		rho = b^2 is the least radius of curvature, that of a meridian where
 *		it crosses the equator: 6,335,439 m.  A geodesic bends with the
 *		surface only, so its curvature is at most 1/rho, and at a distance of
 *		u along it from its midpoint its direction has turned by at most
 *		u/rho.  Projected on the direction at the midpoint, its two halves are
 *		together at least the integral of cos(u/rho) from -s/2 to s/2,
 *		provided that s <= 2 pi rho.  So c >= 2 rho sin(s / 2 rho).  No two
 *		points are farther apart than the poles, 20,003,932 m (go by the
 *		nearer pole: the ways by one and by the other make two meridians), so
 *		s / 2 rho < 1.5788.  From pi/2 to there the sine is above 0.99996,
 *		more than c / 2 rho is by assumption.  So s / 2 rho < pi/2, and arc
 *		sine inverts the sine.
 *
 * Nearer the antipode 3. is silent, and every reference gets a geodesic.
 *
 *
 * Error budget
 *
 * Vector.  w^2 = 1 - e2 sin^2, in [0.9933, 1], is off by 0.02 e from its
 * argument and e/2 from its rounding; w by 0.77 e, relatively 0.78 e.
 * Horizontally, cos / w is off by 0.73 e * 1.004, 0.78 e and e/2; times (cos,
 * sin)(longitude) by 0.93 e more, and 0.71 e from the two products' rounding:
 * 3.66 e.  The vertical (1 - e2) sin / w is off by 0.73 e, 0.78 e, and e/2
 * each for the constant, product and quotient: 3.01 e.  Together 4.74 e.  So a
 * vector is within 5 e, 3.6 nm, of the true one.
 *
 * Chord.  The vectors account for 10 e.  s = |u - v|^2 as summed by
 * geonn_chord_squared(), or with the same three differences in any other
 * association, any of its products fused or none, has a relative error of 2 e
 * from differences and 3 e from sums; the root of a sum that is at most 4 is
 * thus off by 5 e.  So sqrt(s), with s as computed, is within 15 e of c.
 * Squares that underflow change the root by less than 2^-500.
 *
 * Geodesic.  geod_inverse is taken to be within 100 nm of the truth, 142 e.
 * Its author states 15 nm; test/engine/spheroid_test.c has found 8 nm at most.
 *
 * What GEONN_SPHEROID_MARGIN, 2^-42 = 2048 e = 1.45 um, has to cover is added
 * up where it is used.
 */
#ifndef GEONN_SPHEROID_H
#define GEONN_SPHEROID_H

#include "common/geodesy.h"

/* WGS84: the semi-major axis a in metres; the flattening f = (a - b) / a */
#define GEONN_SPHEROID_AXIS 6378137.0
#define GEONN_SPHEROID_FLATTENING (1.0 / 298.257223563)

#define GEONN_SPHEROID_MARGIN 0x1p-42

/*
 * Replace the coordinates of a valid point by its canonical ones (essay): latitude
 * in [-90, 90], longitude in (-180, 180], 0 at the poles, no -0.
 *
 * longitude - 360 is exact: from 180 to 360 both are multiples of 2^-45, and
 * so is the difference, of at most 180 < 2^8 = 2^53 * 2^-45.
 */
GEONN_GEODESY_FUNCTION void
geonn_spheroid_canonical(double *latitude, double *longitude)
{
	if (fabs(*latitude) == 90.0)
		*longitude = 0.0;
	else if (*longitude > 180.0)
		*longitude -= 360.0;
	else if (*longitude == -180.0)
		*longitude = 180.0;
	*latitude += 0.0;
	*longitude += 0.0;
}

/*
 * Earth-centred coordinates of a valid point in degrees, in units of a: x to
 * (0, 0), y to (0, 90 E), z to the north pole.  Within 5 e (essay, Vector).
 * Squared chords between them are geonn_chord_squared()'s, in [0, 4].
 */
GEONN_GEODESY_FUNCTION struct geonn_vector
geonn_spheroid_vector(double latitude, double longitude)
{
	const double eccentricity_squared = 0x1.b6b90f1fe94f1p-8;	/* e2 = f (2 - f) */
	const double axis_ratio_squared = 0x1.fc928de1c02d6p-1; /* b^2 = 1 - e2 */
	struct geonn_vector vector;
	double		latitude_sine;
	double		latitude_cosine;
	double		longitude_sine;
	double		longitude_cosine;
	double		w;
	double		horizontal;

	geonn_spheroid_canonical(&latitude, &longitude);
	geonn_sincosd(latitude, &latitude_sine, &latitude_cosine);
	geonn_sincosd(longitude, &longitude_sine, &longitude_cosine);

	w = sqrt(fma(-eccentricity_squared * latitude_sine, latitude_sine, 1.0));
	horizontal = latitude_cosine / w;

	vector.x = horizontal * longitude_cosine + 0.0;
	vector.y = horizontal * longitude_sine + 0.0;
	vector.z = axis_ratio_squared * latitude_sine / w + 0.0;
	return vector;
}

/*
 * The limit L such that points with a geodesic of at most `reach`, in units of a,
 * have a computed squared chord of at most L.  reach includes GEONN_SPHEROID_MARGIN.
 *
 * Up to 0.28, bounds 1. and 2. of the essay are all but equal, and L follows from 1., which costs nothing;
 * beyond, from 2., which ends at pi b = 3.131.  From 3.125 on L is INFINITY.
 *
 * After bound 2. the margin has to cover these.  The angle is at most 90 degrees:
 * three operations and the constant round it by 4 e * 1.57.  The sine adds 0.73 e;
 * both count twice: 14.1 e.  Then come the chord's 15 e, and 3 e for the sum, the
 * square and terms that are left out: 32.1 e of 2048 e.
 */
GEONN_GEODESY_FUNCTION double
geonn_spheroid_reach(double reach)
{
	const double degrees_of_half = 0x1.cbe88130d27a2p+4;	/* 90 / (pi b) */
	double		chord = reach;

	if (!(reach < 3.125))
		return INFINITY;
	if (reach > 0.28)
	{
		double		sine;
		double		cosine;

		geonn_sincosd(degrees_of_half * reach, &sine, &cosine);
		chord = 2.0 * sine + GEONN_SPHEROID_MARGIN;
	}
	return chord * chord;
}

/*
 * The candidate margin.  Let k references have a squared chord of at most
 * kth_chord_squared from an observation.  Then its k first references in the
 * order (geodesic, id), and all that tie with the k-th geodesic, have squared
 * chords of at most the limit that is returned.  Geodesics are as
 * geonn_spheroid_distance() returns them, squared chords as computed in any of
 * the ways of the essay.  INFINITY from a chord of 12,658 km on, where no bound holds.
 *
 * With S the limit of bound 3. for the k-th chord: k true geodesics are at most
 * S, so k computed ones, and the k-th of all, are at most S + 100 nm.  A computed
 * geodesic that is not longer is in truth at most S + 200 nm.
 *
 * Any k references will do, so the limit of the k nearest found so far holds during a search.  It shrinks
 * with the chord but for its own rounding, which the margin covers: L(x) is at least B(x), B a monotone
 * function that is all that the proof needs.
 *
 * The margin, at the worst place, the end: the computed root is 15 e from c
 * and rounded, 17 e, relative to 2 rho 9 e, with the quotient's rounding and
 * the constant's 11 e.  Arc sine's slope is up to 22.7 there: 250 e.
 * Its own rounding, with the half angle's root, doubling and difference, adds
 * at most 4 e: times 2 rho 505 e.  Roundings of 2 rho, product and sum: 9 e.  200 nm
 * are 283 e.  Altogether 797 e of 2048 e.
 */
GEONN_GEODESY_FUNCTION double
geonn_spheroid_limit(double kth_chord_squared)
{
	const double diameter = 0x1.fc928de1c02d6p+0;	/* 2 rho */
	const double half_pi = 0x1.921fb54442d18p+0;
	double		ratio = sqrt(kth_chord_squared) / diameter;
	double		angle;

	if (!(ratio < 1.0 - 0x1p-10))
		return INFINITY;
	if (ratio <= 0.7071)
		angle = geonn_asin(ratio);
	else
		angle = half_pi - 2.0 * geonn_asin(sqrt(0.5 * (1.0 - ratio)));
	return geonn_spheroid_reach(diameter * angle + GEONN_SPHEROID_MARGIN);
}

/*
 * The limit on the squared chords of all references with a geodesic of at most max_distance metres.  INFINITY
 * from 19,932 km on.
 *
 * The margin covers 100 nm, 142 e, and two roundings of at most 3.2 e.
 */
GEONN_GEODESY_FUNCTION double
geonn_spheroid_radius_limit(double max_distance)
{
	return geonn_spheroid_reach(max_distance / GEONN_SPHEROID_AXIS + GEONN_SPHEROID_MARGIN);
}

/*
 * The limit within which a squared chord implies a geodesic of at most `distance` metres.  Negative if no
 * chord shows that, INFINITY if no two points are farther apart.
 *
 * By bound 3. s is at most r if c is at most 2 rho sin(r / 2 rho), and sin x is
 * at least x - x^3 / 6.  x ends at 1, where c / 2 rho is 5 / 6.
 *
 * The margin: arc sine's slope is at most 1.81, which makes 27 e of the chord's
 * 15 e, and 15 e of four roundings of a number below 2; the geodesic's 100 nm
 * are 142 e, the roundings of x 8 e.  Altogether 192 e of 2048 e.
 */
GEONN_GEODESY_FUNCTION double
geonn_spheroid_certain_limit(double distance)
{
	const double diameter = 0x1.fc928de1c02d6p+0;	/* 2 rho */
	double		x = (distance / GEONN_SPHEROID_AXIS - GEONN_SPHEROID_MARGIN) / diameter;
	double		chord;

	if (distance > 20004000.0)
		return INFINITY;
	if (!(x > 0.0))
		return -1.0;
	if (x > 1.0)
		x = 1.0;
	chord = diameter * (x - x * x * x / 6.0);
	return chord * chord;
}

#endif							/* GEONN_SPHEROID_H */
