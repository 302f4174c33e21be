/*
 * cost.c
 *		What a search costs on the CPU.
 *
 * The costs are those of one thread.  More threads share all of this work
 * alike, unless it is so little that it does not matter.
 *
 * The constants were fitted to what "algorithm_test costs" prints on a shared
 * core of an AMD EPYC (AVX-512), uniform points, 25 November 2026: 1 to 32,768
 * observations, 1 to 1,048,576 references.  They are right within a factor of
 * two where the algorithms come close, and only their ratios matter.  Where
 * they are farther off, as for sparse observations by a large index, the other
 * algorithm takes ten times as long.
 *
 * What the figures show: with both built, brute force is the faster way for
 * fewer than some twenty observations by up to 2,000 references, and never by
 * much.  Otherwise it pays only where it saves the building of an index.
 */
#include "engine/cpu/cost.h"

/* to build: the index takes eight times as long, a reference */
#define INDEX_BUILD 60000.0
#define INDEX_BUILD_WINDOWS 30000.0
#define INDEX_BUILD_REFERENCE 60.0
#define BRUTE_BUILD 28000.0
#define BRUTE_BUILD_REFERENCE 8.0

/* turn_nearest.c by index: a few observations walk alone, others are sorted */
#define NEAREST_ALONE 450.0
#define NEAREST_SORTED 7000.0
#define NEAREST_TOGETHER 60.0

/* and by brute force */
#define NEAREST_BRUTE 120.0
#define NEAREST_BRUTE_PAIR 0.2

/* turn_pairs.c by brute force, beyond what it takes by index: an observation,
 * where turn_nearest.c is the way by index, */
#define PAIRS_OBSERVATION 200.0

/* and a reference that is not among the k best: more where groups and windows
 * are to be looked at, and for each of k, up to a limit, as the k best change
 * more often */
#define PAIRS_PAIR 0.4
#define PAIRS_GROUP 0.4
#define PAIRS_WINDOWS 2.0
#define PAIRS_K 0.05
#define PAIRS_K_MOST 100

/*
 * Whether cpu_turn_is_nearest() will say so, as far as that is known before
 * the index has been built.
 */
static bool
is_nearest(const struct search *search, enum geonn_algorithm algorithm)
{
	const struct dataset *dataset = search->dataset;

	return search_is_nearest(search) && !search->cutoff.present &&
		(dataset->columns == 0 ||
		 (algorithm == GEONN_ALGORITHM_INDEX && (dataset->columns & GEONN_COLUMN_IDENTITY) == 0));
}

/*
 * Of an observation by brute force, beyond what turn_pairs.c takes by index.
 */
static double
pairs_by_brute_force(const struct search *search)
{
	const struct dataset *dataset = search->dataset;
	double		references = (double) dataset->count;
	double		k = search->question.k > 0 ? search->question.k : 1;
	double		pair = PAIRS_PAIR +
		(dataset->columns & GEONN_COLUMN_GROUP ? PAIRS_GROUP : 0) +
		(dataset->columns & GEONN_COLUMNS_WINDOWS ? PAIRS_WINDOWS : 0);

	pair += PAIRS_K * (k < PAIRS_K_MOST ? k : PAIRS_K_MOST);
	return pair * (references > k ? references - k : 0);
}

static double
nearest_by_index(double observations)
{
	double		alone = NEAREST_ALONE * observations;
	double		together = NEAREST_SORTED + NEAREST_TOGETHER * observations;

	return alone < together ? alone : together;
}

struct cost
cpu_cost(const struct search *search, enum geonn_algorithm algorithm, double observations)
{
	double		references = (double) search->dataset->count;
	struct cost cost;

	if (algorithm == GEONN_ALGORITHM_INDEX)
		cost.build = INDEX_BUILD +
			(search->dataset->columns & GEONN_COLUMNS_WINDOWS ? INDEX_BUILD_WINDOWS : 0) +
			INDEX_BUILD_REFERENCE * references;
	else
		cost.build = BRUTE_BUILD + BRUTE_BUILD_REFERENCE * references;
	if (is_nearest(search, algorithm))
		cost.search = algorithm == GEONN_ALGORITHM_INDEX ? nearest_by_index(observations) :
			observations * (NEAREST_BRUTE + NEAREST_BRUTE_PAIR * references);
	else if (algorithm == GEONN_ALGORITHM_INDEX)
		cost.search = 0;
	else
		cost.search = observations *
			((is_nearest(search, GEONN_ALGORITHM_INDEX) ? PAIRS_OBSERVATION : 0) +
			 pairs_by_brute_force(search));
	return cost;
}
