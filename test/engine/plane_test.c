/*
 * plane_test.c
 *		What an edge adds to a winding number, src/common/plane_side.h, against an oracle in integers.
 *
 * Coordinates are integers of up to 60 bits, rounded to float64, times a power of two, so that __int128 has the side of a point
 * exactly, and float64 has not even the differences.  Points lie anywhere, at the heights of the ends, on the edge, and
 * next to it.  What is sure must be exact, and the same by the
 * sums that a compiler may make of PostGIS's by fusing a product and a difference; a point on an edge must be in doubt.
 *
 * Usage: plane_test [seed [edges]], where edges is the number of random edges.
 *
 * rooms: common zones
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/plane_side.h"
#include "../lib/random.h"
#include "../lib/verdict.h"

struct integers
{
	int64_t		x;
	int64_t		y;
};

/* what the oracle says of an edge */
struct truth
{
	enum geonn_plane_turn turn; /* in doubt: the point is on the edge */
	int			side;			/* the sign */
};

static long wrong;
static long unseen;				/* points on an edge that were not in doubt */
static long fused;				/* sure where a fused sum says something else */
static long doubtful;			/* in doubt without need */
static long sure;

static int
sign_of(double number)
{
	return (number > 0) - (number < 0);
}

static struct truth
truth_of(struct integers a, struct integers b, struct integers p)
{
	__int128	side = (__int128) (b.x - a.x) * (p.y - a.y) - (__int128) (p.x - a.x) * (b.y - a.y);
	bool		is_in_box = (p.x >= a.x || p.x >= b.x) && (p.x <= a.x || p.x <= b.x) &&
		(p.y >= a.y || p.y >= b.y) && (p.y <= a.y || p.y <= b.y);
	struct truth truth = {.side = (side > 0) - (side < 0)};

	if (side == 0 && is_in_box)
		truth.turn = GEONN_TURN_IN_DOUBT;
	else if (a.y <= p.y && p.y < b.y && side > 0)
		truth.turn = GEONN_TURN_UP;
	else if (b.y <= p.y && p.y < a.y && side < 0)
		truth.turn = GEONN_TURN_DOWN;
	return truth;
}

static struct geonn_plane_point
scaled(struct integers point, int exponent)
{
	return (struct geonn_plane_point) {ldexp((double) point.x, exponent), ldexp((double) point.y, exponent)};
}

static void
check(struct integers a, struct integers b, struct integers p, int exponent, bool is_small)
{
	struct geonn_plane_point from = scaled(a, exponent);
	struct geonn_plane_point to = scaled(b, exponent);
	struct geonn_plane_point point = scaled(p, exponent);
	struct truth truth = truth_of(a, b, p);
	enum geonn_plane_turn turn = geonn_plane_turn(from, to, point);
	double		left = (to.x - from.x) * (point.y - from.y);
	double		right = (point.x - from.x) * (to.y - from.y);

	if (turn == GEONN_TURN_IN_DOUBT)
	{
		doubtful += is_small && truth.side != 0;
		return;
	}
	sure++;
	wrong += turn != truth.turn;
	unseen += truth.turn == GEONN_TURN_IN_DOUBT;
	if (turn != GEONN_TURN_NONE)
		fused += sign_of(fma(to.x - from.x, point.y - from.y, -right)) != truth.side ||
			sign_of(fma(-(point.x - from.x), to.y - from.y, left)) != truth.side;
}

static int64_t
random_integer(int bits)
{
	return (int64_t) (random_bits() >> (64 - bits)) - ((int64_t) 1 << (bits - 1));
}

/* as float64 has it */
static struct integers
rounded(int64_t x, int64_t y)
{
	return (struct integers) {(int64_t) (double) x, (int64_t) (double) y};
}

static struct integers
random_integers(int bits, struct integers origin)
{
	return rounded(origin.x + random_integer(bits), origin.y + random_integer(bits));
}

static void
check_edge(void)
{
	int			bits = random_below(2) ? 59 : 2 + random_below(57);
	struct integers origin = {random_integer(bits), random_integer(bits)};
	int			extent = random_below(2) ? bits : 2 + random_below(bits - 1);
	struct integers a = random_integers(extent, origin);
	struct integers b = random_below(8) ? random_integers(extent, origin) : a;
	bool		is_usual = random_below(4) != 0;
	int			exponent = is_usual ? random_below(100) - 30 : random_below(1900) - 1050;
	/* the products have less than 2^47 units, so that a side of one unit is beyond the bound */
	bool		is_small = is_usual && extent <= 22;

	if (random_below(8) == 0)
		b.y = a.y;
	if (random_below(8) == 0)
		b.x = a.x;
	for (int i = 0; i < 16; i++)
	{
		struct integers p = random_integers(extent, origin);
		double		t = random_between(0, 1);

		check(a, b, p, exponent, is_small);
		p.y = random_below(2) ? a.y : b.y;
		check(a, b, p, exponent, is_small);
		/* on the edge, as far as integers go, or beside it */
		p = rounded(a.x + (int64_t) (t * (double) (b.x - a.x)) + random_below(5) - 2,
					a.y + (int64_t) (t * (double) (b.y - a.y)) + random_below(5) - 2);
		check(a, b, p, exponent, is_small);
		check(a, b, a, exponent, is_small);
	}
}

int
main(int argc, char **argv)
{
	long		edges = argc > 2 ? atol(argv[2]) : 200000;

	if (argc > 1)
		random_state = strtoull(argv[1], NULL, 10);
	printf("# seed %llu, %ld edges\n", (unsigned long long) random_state, edges);
	for (long i = 0; i < edges; i++)
		check_edge();
	printf("# %ld sure\n", sure);
	report_failures("what is sure of an edge is exact", wrong);
	report_failures("a point on an edge is in doubt", unseen);
	report_failures("what is sure is so by fused sums, too", fused);
	report_failures("a point that the bound tells from an edge leaves no doubt", doubtful);
	report("most are sure", sure > 16 * edges);
	return summed_up();
}
