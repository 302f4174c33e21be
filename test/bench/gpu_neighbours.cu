/*
 * gpu_neighbours.cu
 *		k neighbours by the index, on data that is on the GPU.
 *
 * What cuda/neighbours/neighbours.cu does with a batch on its way through a GPU, without
 * the copies: vectors and order of search, launches that select until all
 * observations have been taken, and, unless the pairs are in their places by
 * then, the packing of pairs with their tags.  Batches follow each other.
 */
#include "gpu_share.cuh"

#include <stdio.h>
#include <stdlib.h>

#include "cuda/neighbours/neighbours.cuh"

/* slots for selected neighbours of a batch, at most */
#define BATCH_SLOTS ((uint64_t) 1 << 26)

struct neighbours_state
{
	struct gpu_built_index built;
	struct neighbours search;	/* of a batch */
	bool		fills;			/* its slots are the answers */
	struct neighbours_status *status;	/* pinned */
};

static bool
place_search(struct gpu_share *share, struct neighbours_state *state, uint32_t rows)
{
	struct neighbours *search = &state->search;
	size_t		slots = (size_t) rows * share->k;
	size_t		bytes = results_place(NULL, rows, &search->results);

	search->record = (struct index_record *)
		gpu_allocate(share, rows * sizeof(struct index_record), "vectors");
	search->order = (uint32_t *) gpu_allocate(share, rows * sizeof(uint32_t), "sorting");
	search->code = gpu_allocate(share, neighbours_code_bytes(rows, 0), "sorting");
	search->row = (uint32_t *) gpu_allocate(share, rows * sizeof(uint32_t), "sorting");
	search->sort_bytes = neighbours_sort_bytes(rows, 0);
	search->sort_room = gpu_allocate(share, search->sort_bytes, "sorting");
	if (!state->fills)
	{
		search->value = (double *) gpu_allocate(share, slots * sizeof(double), "neighbours");
		search->reference = (uint32_t *) gpu_allocate(share, slots * sizeof(uint32_t), "neighbours");
	}
	search->status = (struct neighbours_status *)
		gpu_allocate(share, sizeof(struct neighbours_status), "status");
	results_place(gpu_allocate(share, bytes, "counts"), rows, &search->results);
	search->selected = search->results.count;
	return share->failure[0] == '\0';
}

static bool
prepare(struct gpu_share *share)
{
	struct neighbours_state *state = (struct neighbours_state *) gpu_state(share, sizeof(*state));
	struct neighbours *search;
	uint64_t	rows = BATCH_SLOTS / share->k;

	if (state == NULL || !gpu_index_prepare(share, &state->built))
		return false;
	if (share->problem->batch_rows > 0)
		rows = share->problem->batch_rows;
	share->batch_rows = rows < share->rows ? rows : share->rows;
	search = &state->search;
	search->k = share->k;
	search->max_distance = INFINITY;
	search->results.stride = share->k;
	search->results.distance_step = 1;
	search->index = state->built.index;
	state->fills = bundles_fill(search);
	return place_search(share, state, (uint32_t) share->batch_rows) &&
		gpu_fine(share, cudaMallocHost((void **) &state->status, sizeof(struct neighbours_status)),
				 "status");
}

static bool
search_batch(struct gpu_share *share, uint64_t first)
{
	struct neighbours_state *state = (struct neighbours_state *) share->state;
	struct neighbours *search = &state->search;
	uint64_t	left = share->rows - first;

	search->rows = (uint32_t) (left < share->batch_rows ? left : share->batch_rows);
	search->latitude = share->latitude + first;
	search->longitude = share->longitude + first;
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

	if (!gpu_fine(share, cudaMemsetAsync(search->status, 0, sizeof(struct neighbours_status), 0),
				  "status") ||
		!gpu_fine(share, neighbours_sort(search), "sorting") ||
		!gpu_fine(share, bundles_enqueue(search), "search"))
		return false;
	do
	{
		if (!gpu_fine(share, neighbours_select(search), "search") ||
			!gpu_fine(share, cudaMemcpyAsync(state->status, search->status,
											 sizeof(struct neighbours_status),
											 cudaMemcpyDeviceToHost, 0), "search") ||
			!gpu_fine(share, cudaStreamSynchronize(0), "search"))
			return false;
	} while (state->status->next < search->rows);
	if (state->status->out_of_range != 0)
	{
		snprintf(share->failure, sizeof(share->failure), "GPU %d: coordinates out of range",
				 share->gpu);
		return false;
	}
	return state->fills || (gpu_fine(share, results_scan(&search->results, 0), "packing") &&
							gpu_fine(share, results_pack(&search->results, 0), "packing"));
}

static bool
repeat(struct gpu_share *share)
{
	struct neighbours_state *state = (struct neighbours_state *) share->state;

	if (!gpu_index_build(share, &state->built))
		return false;
	state->search.index = state->built.index;
	for (uint64_t first = 0; first < share->rows; first += share->batch_rows)
		if (!search_batch(share, first))
			return false;
	return gpu_fine(share, cudaEventRecord(share->ended, 0), "event");
}

static void
release(struct gpu_share *share)
{
	struct neighbours_state *state = (struct neighbours_state *) share->state;

	if (state != NULL)
		cudaFreeHost(state->status);
}

const struct gpu_method gpu_neighbours = {prepare, NULL, repeat, gpu_number_rows, release};
