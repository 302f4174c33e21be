/*
 * thin.c
 *		Thinning of the references of a dataset on the CPU: in which order, and lot by lot.
 *
 * A reference is kept unless a kept one before it, by rank, is within the radius.  Only the first reference of a position can be
 * kept, so positions are decided, in the order of their first references (RANKS).  One thread could decide one after the other
 * by a walk for a kept position.  For several threads to work, CLUSTERS_LOT positions are decided together:
 *
 * DROP, on all threads, drops those that have a kept position within the radius.  In crowds few are left.
 * The others are added to the core positions.
 * KEEP, on all threads, keeps those that have no position of the lot before them within the radius.  Few are left,
 * unless the order follows places, so that a lot's positions are near each other.
 * The rest is removed from the core positions, which now are kept.
 * SETTLE, on one thread, decides the rest in their order, and adds what is kept.
 *
 * A position so takes three walks at most, and a fourth to find its keeper (BORDER).  The first kept position that a walk finds
 * ends it, so crowds are linear.  Which threads do what does not show in the answer.
 */
#include "engine/cpu/clusters/clusters_state.h"

#include <math.h>
#include <string.h>

#include "engine/base/memory_columns.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"

/* the ranking of a thinning, and its dataset's weights */
struct ranking
{
	struct radix_sort sort;
	const double *weight;
};

/* Fill a piece of the keys: the greatest weight first, NAN last. */
static void
make_keys(void *context, size_t number)
{
	struct ranking *ranking = context;
	size_t		end = piece_end(number, ranking->sort.count);

	for (size_t place = number * PIECE_ROWS; place < end; place++)
	{
		ranking->sort.key[place] = isnan(ranking->weight[place]) ? UINT64_MAX : ~radix_sort_key(ranking->weight[place]);
		ranking->sort.value[place] = (uint32_t) place;
	}
}

size_t
clusters_sort_bytes(const struct cpu_clusters *clusters)
{
	struct column_block block = {NULL, 0};
	struct radix_sort sort;

	if (clusters->dataset->weight[0] != NULL)
		radix_sort_place(&sort, &block, clusters->index->references);
	return block.bytes;
}

bool
clusters_sort(struct cpu_clusters *clusters, const struct search *search, struct failure *failure)
{
	struct column_block block = {clusters->memory, 0};
	struct ranking ranking = {{.count = clusters->index->references,.cancelled = search->cancelled}, search->dataset->weight[0]};
	size_t		order_bytes = ranking.sort.count * sizeof(*clusters->order);

	if (ranking.weight == NULL)
		return true;
	radix_sort_place(&ranking.sort, &block, ranking.sort.count);
	thread_pool_run(make_keys, &ranking, pieces_of(ranking.sort.count));
	if (!radix_sort(&ranking.sort))
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory to sort %zu references", ranking.sort.count);
	memmove(clusters->order, ranking.sort.value, order_bytes);
	memset((char *) clusters->order + order_bytes, 0, clusters->bytes - order_bytes);
	return true;
}

void
clusters_rank_places(struct cpu_clusters *clusters, size_t first, size_t count)
{
	for (size_t i = first; i < first + count && i < clusters->index->references; i++)
	{
		uint32_t	place = clusters->dataset->weight[0] == NULL ? (uint32_t) i : clusters->order[i];
		uint32_t   *number = &clusters->number[clusters->position[place]];

		if (*number != 0)
			continue;
		clusters->order[clusters->numbers] = place;
		*number = ++clusters->numbers;
	}
}

/* Begin with the next lot; return its first phase, or the one that follows all lots. */
static enum clusters_phase
begin_lot(struct cpu_clusters *clusters)
{
	uint32_t	left = clusters->numbers - clusters->lot_first - clusters->lot_count;

	clusters->lot_first += clusters->lot_count;
	clusters->lot_count = left < CLUSTERS_LOT ? left : CLUSTERS_LOT;
	memset(clusters->fate, FATE_OPEN, clusters->lot_count);
	return left > 0 ? CLUSTERS_DROP : CLUSTERS_BORDER;
}

/* Add the open positions of the lot to the core ones, or remove them. */
static void
set_open_core(struct cpu_clusters *clusters, bool are_core)
{
	for (uint32_t member = 0; member < clusters->lot_count; member++)
		if (clusters->fate[member] == FATE_OPEN)
			clusters_set_core(clusters, clusters_member(clusters, member), are_core);
}

enum clusters_phase
clusters_next_of_thinning(struct cpu_clusters *clusters)
{
	switch (clusters->phase)
	{
		case CLUSTERS_PLACES:
			return CLUSTERS_RANKS;
		case CLUSTERS_DROP:
			set_open_core(clusters, true);
			return CLUSTERS_KEEP;
		case CLUSTERS_KEEP:
			set_open_core(clusters, false);
			return CLUSTERS_SETTLE;
		case CLUSTERS_BORDER:
			return CLUSTERS_COMPLETE;
		default:
			return begin_lot(clusters);
	}
}
