/*
 * window_lengths.h
 *		What samples of observations and references tell of their windows.
 */
#ifndef GEONN_CPU_WINDOW_LENGTHS_H
#define GEONN_CPU_WINDOW_LENGTHS_H

#include "engine/search/device.h"

/* The length of a window.  A low above its high, which only a faulty client sends, is very long. */
static inline uint64_t
window_length(int64_t low, int64_t high)
{
	return (uint64_t) high - (uint64_t) low;
}

/* The number of the window that the fewest pairs of a search's points have in common. */
extern int	window_lengths_choose(const struct search *search);

/* The median length of a window of the search's observations. */
extern uint64_t window_lengths_observed(const struct search *search, int window);

/* The length of the range in which three quarters of all references' windows begin, the middle ones. */
extern uint64_t window_lengths_span(const struct dataset *dataset, int window);

#endif							/* GEONN_CPU_WINDOW_LENGTHS_H */
