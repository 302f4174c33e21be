/*
 * window_order.cuh
 *		The order in time of the positions of an index: classes and slabs.
 *
 * An index of references with windows is sorted by (group, slab, place on the
 * curve), where a slab is a stretch of time, or of whatever else the windows are
 * ranges of.  So the references of a few leaves are close in space and in time,
 * and a search for a moment does not visit the leaves of all other moments.
 *
 * A long window makes the box of its leaf long, and those of all nodes above.
 * So references are first divided into classes by the length of their windows,
 * each at most twice as long as the others of its class, and each class has
 * slabs of its own.  A search visits all classes; classes of few references are
 * joined with the next longer one.  The class of the longest comes first: most
 * references that overlap a given moment have long windows, so a search soon
 * finds a near one, and passes over most of the other classes.
 *
 *
 * How many slabs
 *
 * Let an index have L leaves of 32 references, of which S slabs have L/S each,
 * and let a fraction f of the references overlap an observation in time.  A
 * search visits about 1 + fS slabs, and in each of them as many leaves as hold
 * the nearest that overlaps: 1 + 1 / 32fS, if fS is below 1.  The product is
 * least near fS = 1/6, and within a factor of two of that from 1/32 to 1; S is
 * chosen for fS = 1/3.  A search of more than one neighbour wants no more
 * slabs.
 *
 * f is the length of both windows together as a part of all time.  The length of
 * the observations' windows is the median of a sample of the search for which the
 * index is built.  Later searches with longer windows find the same answers in
 * more time.
 *
 * If references have few different windows, as the steps of a simulation or of a
 * clock, and observations ask for one step, each step becomes a slab.
 *
 * All of it is estimated from samples.  Only speed depends on it: the index is
 * exact for any order of its positions.
 */
#ifndef GEONN_WINDOW_ORDER_CUH
#define GEONN_WINDOW_ORDER_CUH

#include <stdint.h>

extern "C"
{
#include "engine/search/window_lengths.h"
}

struct search;

/* the greatest number of slabs of all classes together */
#define WINDOW_SLAB_BITS 12
#define WINDOW_SLABS_MAX (1 << WINDOW_SLAB_BITS)

/* the number of classes before small ones are merged */
#define WINDOW_CLASSES WINDOW_LENGTHS

struct window_order
{
	uint32_t	window;			/* the number of the window by which references are ordered
								 * (window_lengths.h) */
	uint32_t	main_class;		/* the class that most references are in */
	uint8_t		class_of[WINDOW_CLASSES];	/* the class of windows, by the number of bits of their
											 * length */
	uint32_t	first[WINDOW_CLASSES];	/* the first slab of each class */
	uint32_t	slabs[WINDOW_CLASSES];	/* how many slabs a class has; 0: the class is empty */
	int64_t		begin[WINDOW_SLABS_MAX];	/* where each slab begins, rising within a class; a
											 * class's first slab also has all lows before its
											 * begin */
};

/* Choose the order for the dataset of a search; the dataset has windows and at least one reference. */
extern void window_order_choose(const struct search *search, struct window_order *order);

/* Return the slab of a class that contains a value. */
static __host__ __device__ __forceinline__ uint32_t
window_slab_at(const struct window_order *order, uint32_t class_number, int64_t value)
{
	uint32_t	first = order->first[class_number];
	uint32_t	count = order->slabs[class_number];

	while (count > 1)
	{
		uint32_t	half = count / 2;

		if (order->begin[first + half] <= value)
		{
			first += half;
			count -= half;
		}
		else
			count = half;
	}
	return first;
}

/* Return the slab of a reference; low and high are its window number order->window. */
static __host__ __device__ __forceinline__ uint32_t
window_slab_of(const struct window_order *order, int64_t low, int64_t high)
{
	return window_slab_at(order, order->class_of[window_length_bits(low, high)], low);
}

/* Return the slab of the main class in which an observation's window begins; observations are
 * sorted by it. */
static __host__ __device__ __forceinline__ uint32_t
window_slab_from(const struct window_order *order, int64_t low)
{
	return window_slab_at(order, order->main_class, low);
}

#endif							/* GEONN_WINDOW_ORDER_CUH */
