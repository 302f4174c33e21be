/*
 * window.h
 *		Windows of points: ranges of a value, such as the time at which a point is there.
 *
 * A window is a range of an ordered type: what PostgreSQL's range types hold, or one value v,
 * which stands for [v,v].  Each bound has a value, an int64 that has the order of the type's
 * values, and an edge: whether the bound itself belongs to the range, or whether the range has no
 * bound on this side.  An unbounded low has the least int64 as its value, an unbounded high the
 * greatest.  A range that is empty, or NULL, has no such form: it overlaps no other, so clients
 * send no point that has one.
 *
 * Two ranges overlap if neither begins after the other ends, as range_overlaps() of PostgreSQL
 * has it.  A range begins after another one ends if the value of its low is greater than the value
 * of the other's high, or if the values are equal and one of the two bounds is exclusive, unless
 * one of the two sides is unbounded.  Values between two bounds do not matter: (1,2) and (1,2)
 * overlap, even if the type has no value between 1 and 2, as they do in PostgreSQL, which takes
 * the bounds of discrete types to a form in which that does not occur.
 *
 * If low values are greater than a high value, the windows do not overlap, whatever the edges say.
 * So an index may keep the smallest low and the greatest high of many windows, without edges: a
 * window that overlaps one of them passes that test.
 *
 * Module, engine, kernels and tests include this header.
 */
#ifndef GEONN_WINDOW_H
#define GEONN_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define GEONN_WINDOW_FUNCTION static inline __host__ __device__
#else
#define GEONN_WINDOW_FUNCTION static inline
#endif

/* the edge of one bound */
enum geonn_edge
{
	GEONN_EDGE_INCLUSIVE,
	GEONN_EDGE_EXCLUSIVE,
	GEONN_EDGE_UNBOUNDED
};

/* a point's edges have for each window two bits for its low bound, and then two for its high bound */
#define GEONN_EDGE_BITS		2
#define GEONN_EDGE_MASK		3u

GEONN_WINDOW_FUNCTION uint16_t
geonn_edges_of(int window, enum geonn_edge low, enum geonn_edge high)
{
	return (uint16_t) ((low | high << GEONN_EDGE_BITS) << 2 * GEONN_EDGE_BITS * window);
}

GEONN_WINDOW_FUNCTION unsigned
geonn_low_edge(uint16_t edges, int window)
{
	return edges >> 2 * GEONN_EDGE_BITS * window & GEONN_EDGE_MASK;
}

GEONN_WINDOW_FUNCTION unsigned
geonn_high_edge(uint16_t edges, int window)
{
	return edges >> (2 * window + 1) * GEONN_EDGE_BITS & GEONN_EDGE_MASK;
}

/*
 * Return whether a range with this low bound begins before a range with this high bound ends, or just where it ends.  Where it
 * begins just there, both bounds must be inclusive, or one of them unbounded.
 */
GEONN_WINDOW_FUNCTION bool
geonn_low_reaches(int64_t low, unsigned low_edge, int64_t high, unsigned high_edge)
{
	if (low != high)
		return low < high;
	return (low_edge == GEONN_EDGE_INCLUSIVE && high_edge == GEONN_EDGE_INCLUSIVE) ||
		low_edge == GEONN_EDGE_UNBOUNDED || high_edge == GEONN_EDGE_UNBOUNDED;
}

/* Return whether the windows of this number, of the points a and b, overlap. */
GEONN_WINDOW_FUNCTION bool
geonn_windows_overlap(int window, int64_t a_low, int64_t a_high, uint16_t a_edges,
					  int64_t b_low, int64_t b_high, uint16_t b_edges)
{
	return geonn_low_reaches(a_low, geonn_low_edge(a_edges, window),
							 b_high, geonn_high_edge(b_edges, window)) &&
		geonn_low_reaches(b_low, geonn_low_edge(b_edges, window),
						  a_high, geonn_high_edge(a_edges, window));
}

#endif							/* GEONN_WINDOW_H */
