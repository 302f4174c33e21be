/*
 * gpu_index.cu
 *		The nearest reference by the index, on data that is on the GPU.
 *
 * The answers come in the order of the search, with the numbers of their
 * observations.  All observations are searched at once, unless the
 * room that this takes is not free: then in as few batches as possible.
 */
#include "gpu_share.cuh"

#include <stdio.h>
#include <stdlib.h>

struct index_state
{
	struct gpu_built_index built;
	struct index_status *status;
	void	   *room;			/* for searching */
};

bool
gpu_index_prepare(struct gpu_share *share, struct gpu_built_index *built)
{
	uint32_t	count = share->problem->references;
	size_t		bytes = index_place(NULL, count, GEONN_METRIC_SPHERE, 0, &built->index);
	void	   *memory = gpu_allocate(share, bytes, "the index");

	built->room = gpu_allocate(share, index_build_room(count), "building the index");
	if (share->failure[0] != '\0')
		return false;
	index_place(memory, count, GEONN_METRIC_SPHERE, 0, &built->index);
	built->source.latitude = share->reference_latitude;
	built->source.longitude = share->reference_longitude;
	built->source.tag = share->reference_tag;
	return true;
}

bool
gpu_index_build(struct gpu_share *share, struct gpu_built_index *built)
{
	return gpu_fine(share, cudaEventRecord(share->started, 0), "event") &&
		gpu_fine(share, index_build(&built->index, &built->source, built->room, 0),
				 "building the index") &&
		gpu_fine(share, cudaEventRecord(share->built, 0), "event");
}

static bool
prepare(struct gpu_share *share)
{
	struct index_state *state = (struct index_state *) gpu_state(share, sizeof(*state));
	size_t		available = 0;
	size_t		total = 0;

	if (state == NULL || !gpu_index_prepare(share, &state->built))
		return false;
	state->status = (struct index_status *) gpu_allocate(share, sizeof(struct index_status), "status");
	if (!gpu_fine(share, cudaMemGetInfo(&available, &total), "memory"))
		return false;
	share->batch_rows = share->rows;
	if (share->problem->batch_rows > 0 && share->problem->batch_rows < share->rows)
		share->batch_rows = share->problem->batch_rows;
	while (share->batch_rows >= (uint64_t) 1 << 31 ||
		   (share->batch_rows > 1 && index_nearest_room((uint32_t) share->batch_rows) > available / 10 * 9))
		share->batch_rows = (share->batch_rows + 1) / 2;
	share->sorts = share->batch_rows == share->rows;
	state->room = gpu_allocate(share, index_nearest_room((uint32_t) share->batch_rows), "searching");
	return share->failure[0] == '\0';
}

/*
 * Let a search go on until all of its observations have been decided.
 */
static bool
finish_search(struct gpu_share *share, const struct index_nearest *search)
{
	struct index_status status;

	while (gpu_fine(share, cudaMemcpy(&status, search->status, sizeof(status),
									  cudaMemcpyDeviceToHost), "search"))
	{
		if (status.out_of_range != 0)
		{
			snprintf(share->failure, sizeof(share->failure), "GPU %d: coordinates out of range",
					 share->gpu);
			return false;
		}
		if (status.decided >= status.ambiguous)
			return true;
		if (!gpu_fine(share, index_nearest_decide(search), "search"))
			return false;
	}
	return false;
}

static bool
repeat(struct gpu_share *share)
{
	struct index_state *state = (struct index_state *) share->state;
	struct index_nearest search;

	if (!gpu_index_build(share, &state->built))
		return false;
	for (uint64_t first = 0; first < share->rows; first += share->batch_rows)
	{
		uint64_t	left = share->rows - first;

		search.index = &state->built.index;
		search.rows = (uint32_t) (left < share->batch_rows ? left : share->batch_rows);
		search.latitude = share->latitude + first;
		search.longitude = share->longitude + first;
		search.max_distance = INFINITY;
		search.tag = share->tag + first;
		search.distance = share->distance + first;
		search.row = share->row + first;
		search.status = state->status;
		search.room = state->room;
		search.stream = 0;
		search.sorted = share->sorts ? share->sorted : NULL;
		if (!gpu_fine(share, index_nearest_enqueue(&search), "search") ||
			!finish_search(share, &search))
			return false;
	}
	return gpu_fine(share, cudaEventRecord(share->ended, 0), "event");
}

const struct gpu_method gpu_index = {prepare, NULL, repeat, NULL, NULL};
