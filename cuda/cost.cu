/*
 * cost.cu
 *		Which algorithm costs less on a GPU.
 *
 * The engine sees one batch at a time, and does not know how many will follow.
 * So building counts only for a dataset's first search, and not at all if the
 * dataset is kept for later calls.
 *
 * Copies of observations and results are left out: they take as long either
 * way.
 *
 * A table (cells.cuh) is left out, too: it makes the index cheaper still, and comes
 * only where brute force is dearer in any case.
 *
 * The constants are from runs of geonn-bench on one NVIDIA H200, with data on
 * the GPU, on 21, 24 and 25 November 2026 (doc/benchmarks.md), in milliseconds:
 *
 *		2^16 × 2^10		brute force 0.09, index 0.14, its building included
 *		2^16 × 2^12		0.10, 0.23
 *		2^16 × 2^14		0.15, 0.24
 *		2^16 × 2^15		0.22, 0.25
 *		2^16 × 2^16		0.36, 0.29
 *		2^24 × 2^14		18.6, 1.45
 *		2^27 × 2^16		542, 9.14
 *		building the index of 2^10, 2^16, 2^24 references: 0.04, 0.11, 2.16
 *		copies from the host's memory: 50 GB/s
 *
 * The formulas below give 0.09 and 0.17, 0.10 and 0.23, 0.16 and 0.24, 0.23 and 0.25,
 * 0.38 and 0.27, 18.5 and 1.34, 550 and 9.12.  A slower card has other constants, but much
 * the same ratios.
 */
#include "cuda/cost.cuh"

#include <math.h>

/* ns that a build takes: for its launches, of which a small index needs fewer, and for each
 * reference, which is copied and sorted */
#define INDEX_BUILD 100000.0
#define INDEX_BUILD_SMALL 40000.0
#define INDEX_SMALL 2048.0
#define INDEX_BUILD_REFERENCE 0.62
#define BRUTE_BUILD 10000.0
#define BRUTE_BUILD_REFERENCE 0.5

/* ns that a search by the index takes: for its launches, and for each observation */
#define INDEX_SEARCH 120000.0
#define INDEX_OBSERVATION 0.066

/* 16.4 · 10^12 pairs a second */
#define BRUTE_SEARCH 65000.0
#define BRUTE_OBSERVATION 0.1
#define BRUTE_PAIR 6.1e-5

/* cuda_choose() takes brute force if its estimated time, times this, is at most the index's */
#define CLEARLY 1.25

enum geonn_algorithm
cuda_choose(const struct search *search, bool is_first)
{
	double		references = (double) search->dataset->count;
	uint32_t	rows = search->rows - search->first;
	double		observations = rows < search->columns.room ? rows : search->columns.room;
	double		index = INDEX_SEARCH + INDEX_OBSERVATION * observations;
	double		brute = BRUTE_SEARCH + observations * (BRUTE_OBSERVATION + BRUTE_PAIR * references);

	/* brute force answers no other question */
	if (!search_is_plain_nearest(search))
		return GEONN_ALGORITHM_INDEX;
	if (is_first)
	{
		index += (references > INDEX_SMALL ? INDEX_BUILD : INDEX_BUILD_SMALL) +
			INDEX_BUILD_REFERENCE * references;
		brute += BRUTE_BUILD + BRUTE_BUILD_REFERENCE * references;
	}
	return brute * CLEARLY <= index ? GEONN_ALGORITHM_BRUTE : GEONN_ALGORITHM_INDEX;
}
