/*
 * algorithm.c
 *		Chooses how a search is answered, by what that would cost.
 *
 * Both algorithms give the same bytes, so a wrong choice costs time and nothing
 * else.  Each device says what a search by either would cost (cpu/cost.c,
 * cuda/cost.cu).  These costs are estimates, so brute force is chosen where it
 * is clearly cheaper alone; the index never takes much longer than expected,
 * whatever the references are like.
 *
 * The engine does not know how many observations a session will send: a search
 * is one batch of them.  Therefore
 *
 *	- a dataset with a label stays for later calls, which find it by its table.
 *	  What is built for it now serves them all, and does not count;
 *	- for any other dataset it counts.  A few observations by many references
 *	  are answered by brute force; but what that takes beyond a search by index
 *	  is added up, and counts as well.  Once the sum comes close to what the
 *	  index would have cost to build, the index is built.  So in the worst case
 *	  brute force wastes as much again, however many observations follow.
 *
 * The first device that takes a search chooses, as it knows what it has built.
 * So batches of one call may go different ways, and the devices of one engine
 * may choose differently.
 */
#include "engine/search/algorithm.h"

/* brute force must be so many times as fast as the index */
#define CLEARLY 1.25

/*
 * Observations that a search answers before its batch's room is full.
 */
static double
observations_of(const struct search *search)
{
	uint32_t	rows = search->rows - search->first - search->answered;
	uint32_t	room = search->columns.room / (search->question.k > 0 ? search->question.k : 1);

	return rows < room ? rows : room > 0 ? room : 1;
}

static enum geonn_algorithm
cheaper(const struct device *device, const struct search *search)
{
	const struct device_operations *operations = device->operations;
	double	   *overspent = &search->dataset->overspent[device->number];
	double		observations = observations_of(search);
	struct cost index = operations->cost(search, GEONN_ALGORITHM_INDEX, observations);
	struct cost brute = operations->cost(search, GEONN_ALGORITHM_BRUTE, observations);
	double		index_ns = index.search;
	double		brute_ns = brute.search;

	if (!search->stays && !operations->is_built(device, search, GEONN_ALGORITHM_INDEX))
	{
		index_ns += index.build;
		brute_ns += *overspent;
	}
	if (!search->stays && !operations->is_built(device, search, GEONN_ALGORITHM_BRUTE))
		brute_ns += brute.build;
	if (brute_ns * CLEARLY > index_ns)
		return GEONN_ALGORITHM_INDEX;
	if (brute.search > index.search)
		*overspent += brute.search - index.search;
	return GEONN_ALGORITHM_BRUTE;
}

void
algorithm_choose(const struct device *device, struct search *search)
{
	if (search->algorithm == GEONN_ALGORITHM_AUTO)
		search->algorithm = cheaper(device, search);
}
