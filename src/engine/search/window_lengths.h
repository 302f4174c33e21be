/*
 * window_lengths.h
 *		What samples of observations and references tell of their windows: which
 *		window an index goes by, and into which classes of length it divides them.
 */
#ifndef GEONN_WINDOW_LENGTHS_H
#define GEONN_WINDOW_LENGTHS_H

#include <stdint.h>

#include "common/window.h"

struct search;
struct dataset;

/* lengths are classified by their number of bits: 0 ... 64 */
#define WINDOW_LENGTHS 65

/* Return the length of a window.  A low above its high, which only a faulty client sends, gives a very long window. */
GEONN_WINDOW_FUNCTION uint64_t
window_length(int64_t low, int64_t high)
{
	return (uint64_t) high - (uint64_t) low;
}

/* Return how many bits the length of a window has. */
GEONN_WINDOW_FUNCTION int
window_length_bits(int64_t low, int64_t high)
{
	uint64_t	length = window_length(low, high);
	int			bits = 0;

	for (int step = 32; step > 0; step /= 2)
		if (length >> step != 0)
		{
			length >>= step;
			bits += step;
		}
	return bits + (length != 0);
}

/*
 * Return the number of the window that leaves the fewest candidates: in the samples, the fewest
 * pairs of an observation and a reference overlap in it.
 */
extern int	window_lengths_choose(const struct search *search);

/* Return the median length of this window in the sample of the search's observations. */
extern uint64_t window_lengths_observed(const struct search *search, int window);

/* Return the length of the range in which the middle three quarters of the sampled references' windows begin. */
extern uint64_t window_lengths_span(const struct dataset *dataset, int window);

/*
 * Divide windows into classes by the number of bits of their length.  count[n] windows of a sample have lengths of n bits;
 * class_of[n] becomes their class, whose number is the bits of its longest windows.  A class covers bits_each numbers of
 * bits, or more if these hold fewer than `least` windows.  The last class also takes all windows longer than the sample's.
 */
extern void window_lengths_divide(const uint32_t *count, uint32_t least, int bits_each,
								  uint8_t *class_of);

#endif							/* GEONN_WINDOW_LENGTHS_H */
