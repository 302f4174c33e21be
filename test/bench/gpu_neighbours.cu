/*
 * gpu_neighbours.cu
 *		k neighbours by the index, on data that is on the GPU.
 *
 * What cuda/neighbours/neighbours.cu does with a batch on its way through a GPU, without
 * the copies: vectors and order of search, launches that select until all
 * observations have been taken, and, unless the pairs are in their places by
 * then, the packing of pairs with their tags.  As in the engine, while one batch is searched
 * for, the next one may be sorted.
 */
#include "gpu_share.cuh"

#include <stdio.h>
#include <stdlib.h>

#include "cuda/neighbours/neighbours.cuh"

/* slots for selected neighbours of a batch, at most */
#define BATCH_SLOTS ((uint64_t) 1 << 28)

/* batches under way at the same time */
#define BATCHES 3

/* a batch, with memory of its own */
struct batch
{
	struct neighbours search;
	struct neighbours_status *status;	/* pinned; of the last launch */
	bool		under_way;
};

struct neighbours_state
{
	struct gpu_built_index built;
	bool		fills;			/* a batch's slots are the answers */
	struct batch batch[BATCHES];
};

static bool
place_batch(struct gpu_share *share, const struct neighbours_state *state, struct batch *batch)
{
	struct neighbours *search = &batch->search;
	uint32_t	rows = (uint32_t) share->batch_rows;
	size_t		slots = (size_t) rows * share->k;
	size_t		bytes = results_place(NULL, rows, &search->results);
	void	   *room = gpu_allocate(share, neighbours_place_order(NULL, rows, 0, search), "sorting");

	neighbours_place_order(room, rows, 0, search);
	if (!state->fills)
	{
		search->value = (double *) gpu_allocate(share, slots * sizeof(double), "neighbours");
		search->reference = (uint32_t *) gpu_allocate(share, slots * sizeof(uint32_t), "neighbours");
	}
	search->status = (struct neighbours_status *)
		gpu_allocate(share, sizeof(struct neighbours_status), "status");
	results_place(gpu_allocate(share, bytes, "counts"), rows, &search->results);
	search->selected = search->results.count;
	return share->failure[0] == '\0' &&
		gpu_fine(share, cudaMallocHost((void **) &batch->status, sizeof(struct neighbours_status)),
				 "status") &&
		gpu_fine(share, cudaStreamCreate(&search->stream), "stream");
}

static bool
prepare(struct gpu_share *share)
{
	struct neighbours_state *state = (struct neighbours_state *) gpu_state(share, sizeof(*state));
	uint64_t	rows = BATCH_SLOTS / share->k;

	if (state == NULL || !gpu_index_prepare(share, &state->built))
		return false;
	if (share->problem->batch_rows > 0)
		rows = share->problem->batch_rows;
	share->batch_rows = rows < share->rows ? rows : share->rows;
	for (int i = 0; i < BATCHES; i++)
	{
		struct neighbours *search = &state->batch[i].search;

		search->k = share->k;
		search->max_distance = INFINITY;
		search->results.stride = share->k;
		search->results.distance_step = 1;
		search->index = state->built.index;
		state->fills = bundles_fill(search);
		if (!place_batch(share, state, &state->batch[i]))
			return false;
	}
	return true;
}

/* enqueue a launch that selects, and the copy of its status */
static bool
enqueue_select(struct gpu_share *share, struct batch *batch)
{
	struct neighbours *search = &batch->search;

	return gpu_fine(share, neighbours_select(search), "search") &&
		gpu_fine(share, cudaMemcpyAsync(batch->status, search->status,
										sizeof(struct neighbours_status),
										cudaMemcpyDeviceToHost, search->stream), "search");
}

static bool
begin_batch(struct gpu_share *share, struct batch *batch, uint64_t first)
{
	const struct neighbours_state *state = (struct neighbours_state *) share->state;
	struct neighbours *search = &batch->search;
	uint64_t	left = share->rows - first;

	search->rows = (uint32_t) (left < share->batch_rows ? left : share->batch_rows);
	search->latitude = share->latitude + first;
	search->longitude = share->longitude + first;
	search->index = state->built.index;
	search->results.rows = search->rows;
	search->results.room = search->rows * share->k;
	search->results.distance = search->value;
	search->results.reference = search->reference;
	search->results.tag = search->index.tag;
	search->results.packed_tag = share->tag + first * share->k;
	search->results.packed_distance = share->distance + first * share->k;
	if (state->fills)
	{
		search->tag = search->results.packed_tag;
		search->value = search->results.packed_distance;
	}
	batch->under_way = true;
	return gpu_fine(share, neighbours_sort(search), "sorting") &&
		gpu_fine(share, bundles_enqueue(search), "search") && enqueue_select(share, batch);
}

/* wait until all observations of a batch that was begun are answered */
static bool
end_batch(struct gpu_share *share, struct batch *batch)
{
	const struct neighbours_state *state = (struct neighbours_state *) share->state;
	struct neighbours *search = &batch->search;

	if (!batch->under_way)
		return true;
	batch->under_way = false;
	if (!gpu_fine(share, cudaStreamSynchronize(search->stream), "search"))
		return false;
	while (batch->status->next < search->rows)
		if (!enqueue_select(share, batch) ||
			!gpu_fine(share, cudaStreamSynchronize(search->stream), "search"))
			return false;
	if (batch->status->out_of_range != 0)
	{
		snprintf(share->failure, sizeof(share->failure), "GPU %d: coordinates out of range",
				 share->gpu);
		return false;
	}
	return state->fills ||
		(gpu_fine(share, results_scan(&search->results, search->stream), "packing") &&
		 gpu_fine(share, results_pack(&search->results, search->stream), "packing"));
}

static bool
repeat(struct gpu_share *share)
{
	struct neighbours_state *state = (struct neighbours_state *) share->state;
	uint32_t	next = 0;

	if (!gpu_index_build(share, &state->built))
		return false;
	for (uint64_t first = 0; first < share->rows; first += share->batch_rows)
	{
		struct batch *batch = &state->batch[next++ % BATCHES];

		if (!end_batch(share, batch) || !begin_batch(share, batch, first))
			return false;
	}
	for (uint32_t i = 0; i < BATCHES; i++)
		if (!end_batch(share, &state->batch[next++ % BATCHES]))
			return false;
	return gpu_fine(share, cudaEventRecord(share->ended, 0), "event");
}

static void
release(struct gpu_share *share)
{
	struct neighbours_state *state = (struct neighbours_state *) share->state;

	for (int i = 0; state != NULL && i < BATCHES; i++)
	{
		cudaFreeHost(state->batch[i].status);
		if (state->batch[i].search.stream != NULL)
			cudaStreamDestroy(state->batch[i].search.stream);
	}
}

const struct gpu_method gpu_neighbours = {prepare, NULL, repeat, gpu_number_rows, release};
