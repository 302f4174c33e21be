/*
 * ring.c
 *		On which side of a ring of arcs a point lies.
 *
 * A ring divides the sphere into two sides: two points lie on the same side if
 * a path between them crosses the ring an even number of times.  The path from a
 * point p is the arc of its meridian to the north pole N, so that all depends on
 * the crossings of the ring's arcs with that meridian, and on one bit of
 * the ring: whether N is inside.  ring_side.h tells which arcs cross it.
 *
 *
 * The smaller side
 *
 * A ring whose vertices lie in an open hemisphere has the opposite hemisphere
 * outside: no arc reaches it, so that its side has more than half of the
 * sphere's area, also where the ring crosses itself.  PostGIS takes as outside a
 * point that is outside the ring's box in x, y and z, which it has widened to the
 * axes that the ring is around; the smaller side lies within that box, so that both
 * agree.  The centre of such a hemisphere is looked for as a perceptron learns:
 * vertices that are not in front of it are added to it.
 *
 * Of other rings the area tells: the sum of the signed areas of the triangles
 * between the antipode of a point q and the arcs is the area of the side
 * without q, as no triangle reaches q.  Here a ring that crosses itself has its
 * parts counted as often as it winds about them.  q is one of some points to
 * which no arc comes near, since there triangles change their sign.  Each
 * triangle's area is within 2^-36: its volume and its sum are within
 * 20 * 2^-53, and not both below 2^-10; the volume is not where the sum is negative, as its sign
 * decides then.  An area that differs from half of the sphere's by less than 2^-36 times the number
 * of arcs is not decided.
 *
 * Of a ring that winds about places more than once, each side may have an area of more than half.  So an area that
 * says that q is on the smaller side counts only if that of a place on the other side says that this one is larger,
 * or arcs come near all such places.  If none of the places is on the other side, the ring goes
 * around what it holds an even number of times, and has no smaller side.
 */
#include "common/ring.h"

#include <math.h>

#include "common/arc.h"
#include "common/assertion.h"
#include "common/ring_side.h"

/* how many places are tried */
#define PLACES	64

/* ---- crossings ---- */

static void
pause_at(size_t i, geonn_ring_pause pause)
{
	if (i % GEONN_RING_PIECE == GEONN_RING_PIECE - 1 && pause != NULL)
		pause();
}

/* Count the arcs that cross the meridian between a point and the north pole; return GEONN_INSIDE if their number is odd. */
static enum geonn_side
side_from_pole(const struct geonn_vector *ring, size_t count, geonn_ring_pause pause, struct geonn_vector point)
{
	struct geonn_vector p = geonn_flattened(point);
	struct geonn_vector a = {0.0, 0.0, 0.0};
	int			from = 0;
	unsigned	crossings = 0;

	for (size_t i = 0; i < count; i++)
	{
		struct geonn_vector b = geonn_flattened(ring[i]);
		int			to = geonn_north(p, b);

		pause_at(i, pause);
		if (to == 0 && geonn_dot(p, b) > 0.0)
			return GEONN_ON_BORDER;
		if (i > 0)
		{
			enum geonn_side side = geonn_arc_crossing(p, a, from, b, to);

			if (side == GEONN_ON_BORDER)
				return side;
			crossings += side == GEONN_INSIDE;
		}
		a = b;
		from = to;
	}
	return crossings % 2 ? GEONN_INSIDE : GEONN_OUTSIDE;
}

enum geonn_side
geonn_ring_side(const struct geonn_vector *ring, size_t count, bool pole_is_inside,
				struct geonn_vector point)
{
	return geonn_long_ring_side(ring, count, pole_is_inside, NULL, point);
}

enum geonn_side
geonn_long_ring_side(const struct geonn_vector *ring, size_t count, bool pole_is_inside, geonn_ring_pause pause,
					 struct geonn_vector point)
{
	enum geonn_side side = side_from_pole(ring, count, pause, point);

	if (side == GEONN_ON_BORDER || !pole_is_inside)
		return side;
	return side == GEONN_INSIDE ? GEONN_OUTSIDE : GEONN_INSIDE;
}

/* ---- the smaller side ---- */

static struct geonn_vector
scaled(double factor, struct geonn_vector v)
{
	struct geonn_vector product = {factor * v.x, factor * v.y, factor * v.z};

	return product;
}

/*
 * Look for the centre of a hemisphere that contains all vertices of a ring, none within 2^-40 of
 * its edge.  Returns false if some rounds have not found a centre.
 */
static bool
find_hemisphere(const struct geonn_vector *ring, size_t count, geonn_ring_pause pause, struct geonn_vector *centre)
{
	const double margin = 0x1p-40;
	const int	rounds = 32;
	struct geonn_vector sum = ring[0];
	double		length = sqrt(geonn_dot(sum, sum));

	geonn_assert(count > 0);
	for (int round = 0; round < rounds; round++)
	{
		bool		found = true;

		for (size_t i = 0; i < count; i++)
		{
			pause_at(i, pause);
			if (geonn_dot(sum, ring[i]) > margin * length)
				continue;
			found = false;
			sum.x += ring[i].x;
			sum.y += ring[i].y;
			sum.z += ring[i].z;
			/* antipodes leave nothing to go on from */
			if (geonn_dot(sum, sum) < 0x1p-40)
				sum = ring[(i + 1) % count];
			length = sqrt(geonn_dot(sum, sum));
		}
		if (found)
		{
			*centre = scaled(1.0 / length, sum);
			return true;
		}
	}
	return false;
}

/*
 * Compute the area of the ring's side without q, on a unit sphere; negative if the ring winds about that
 * side clockwise.  Returns false if an arc comes near q.
 */
static bool
area_without(const struct geonn_vector *ring, size_t count, geonn_ring_pause pause, struct geonn_vector q,
			 double *area)
{
	geonn_assert(fabs(geonn_dot(q, q) - 1.0) < 0x1p-48);
	*area = 0.0;
	for (size_t i = 1; i < count; i++)
	{
		struct geonn_vector a = ring[i - 1];
		struct geonn_vector b = ring[i];
		double		volume = q.x * (a.z * b.y - a.y * b.z) + q.y * (a.x * b.z - a.z * b.x) +
			q.z * (a.y * b.x - a.x * b.y);
		double		sum = 1.0 - geonn_dot(q, a) + geonn_dot(a, b) - geonn_dot(b, q);

		pause_at(i, pause);
		if (fabs(volume) < 0x1p-9 && sum < 0x1p-9)
			return false;
		*area += 2.0 * atan2(volume, sum);
	}
	return true;
}

/* Return one of some places, which are spread over the sphere by the golden angle; neighbours have numbers that are far apart. */
static struct geonn_vector
place_to_try(int number)
{
	int			i = 37 * number % PLACES;
	double		z = (2.0 * i - (PLACES - 1)) / PLACES;
	double		turn = 2.399963229728653 * i;
	struct geonn_vector place = {sqrt(1.0 - z * z) * cos(turn), sqrt(1.0 - z * z) * sin(turn), z};

	geonn_assert(number >= 0 && number < PLACES);
	return place;
}

bool
geonn_ring_holds_pole(const struct geonn_vector *ring, size_t count, geonn_ring_pause pause,
					  bool *pole_is_inside)
{
	const double half_sphere = 2.0 * 3.14159265358979323846;
	struct geonn_vector centre;
	enum geonn_side smaller = GEONN_ON_BORDER;	/* that of a place on the smaller side; on the border: none was found */
	bool		has_other = false;	/* a place is on the other side */

	*pole_is_inside = false;
	if (count == 0)
		return true;
	if (find_hemisphere(ring, count, pause, &centre))
	{
		*pole_is_inside = side_from_pole(ring, count, pause, scaled(-1.0, centre)) == GEONN_INSIDE;
		return true;
	}

	for (int i = 0; i < PLACES; i++)
	{
		struct geonn_vector q = place_to_try(i);
		enum geonn_side side = side_from_pole(ring, count, pause, q);
		double		area;

		if (side == GEONN_ON_BORDER || side == smaller)
			continue;
		has_other |= smaller != GEONN_ON_BORDER;
		if (!area_without(ring, count, pause, q, &area))
			continue;
		if (fabs(fabs(area) - half_sphere) <= 0x1p-36 * (double) count)
			return false;
		/* q is outside: the pole is inside if the path between them crosses the ring an odd number of times */
		if (fabs(area) < half_sphere)
		{
			*pole_is_inside = side == GEONN_INSIDE;
			return true;
		}
		/* the smaller side is q's: not if it was the other one */
		if (smaller != GEONN_ON_BORDER)
			return false;
		smaller = side;
	}
	*pole_is_inside = smaller == GEONN_OUTSIDE;
	return has_other;
}
