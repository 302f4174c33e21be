/*
 * gpu_index.cu
 *		The nearest reference by the index, on data that is on the GPU.
 *
 * By the index alone, the answers come in the order of the search, with the numbers of their
 * observations.  Where the engine would build a table beside the index, so does this, and the
 * answers are at their observations' rows.  All observations are searched at once, unless the
 * room that this takes is not free: then in as few batches as possible.
 */
#include "gpu_share.cuh"

#include <stdio.h>
#include <stdlib.h>

#include "cuda/cells/cells.cuh"

struct index_state
{
	struct gpu_built_index built;
	struct index_status *status;
	void	   *room;			/* for searching */

	/* with a table */
	void	   *table;
	void	   *table_room;		/* for building */
	struct cells cells;
	struct cells_status *cells_status;
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

/* bytes of room for searching a batch */
static size_t
search_room(const struct gpu_share *share)
{
	return share->tables ? cells_search_room((uint32_t) share->batch_rows, true) :
		index_nearest_room((uint32_t) share->batch_rows);
}

/*
 * Room for a table of as many positions as there are references.
 */
static bool
prepare_table(struct gpu_share *share, struct index_state *state)
{
	uint32_t	count = share->problem->references;
	size_t		bytes;

	share->tables = cells_possible(count) && cells_pay(count, (double) share->rows);
	if (!share->tables)
		return true;
	bytes = cells_place(NULL, count, &state->cells);
	state->table = gpu_allocate(share, bytes, "the table");
	state->table_room = gpu_allocate(share, cells_build_room(&state->cells), "building the table");
	state->cells_status = (struct cells_status *)
		gpu_allocate(share, sizeof(struct cells_status), "status");
	return share->failure[0] == '\0';
}

static bool
prepare(struct gpu_share *share)
{
	struct index_state *state = (struct index_state *) gpu_state(share, sizeof(*state));
	size_t		available = 0;
	size_t		total = 0;

	if (state == NULL || !gpu_index_prepare(share, &state->built) || !prepare_table(share, state))
		return false;
	state->status = (struct index_status *) gpu_allocate(share, sizeof(struct index_status), "status");
	if (!gpu_fine(share, cudaMemGetInfo(&available, &total), "memory"))
		return false;
	share->batch_rows = share->rows;
	if (share->problem->batch_rows > 0 && share->problem->batch_rows < share->rows)
		share->batch_rows = share->problem->batch_rows;
	while (share->batch_rows >= (uint64_t) 1 << 31 ||
		   (share->batch_rows > 1 && search_room(share) > available / 10 * 9))
		share->batch_rows = (share->batch_rows + 1) / 2;
	share->sorts = !share->tables && share->batch_rows == share->rows;
	state->room = gpu_allocate(share, search_room(share), "searching");
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

/*
 * Build the table, and search all observations by it.
 */
static bool
repeat_by_table(struct gpu_share *share, struct index_state *state)
{
	struct cells_search search = {};
	struct cells_status status;

	share->listed = 0;
	cells_place(state->table, state->built.index.shape.positions, &state->cells);
	if (!gpu_fine(share, cells_build(&state->cells, &state->built.index, state->table_room, 0),
				  "building the table") ||
		!gpu_fine(share, cudaEventRecord(share->tabled, 0), "event"))
		return false;
	search.cells = &state->cells;
	search.index = &state->built.index;
	search.max_distance = INFINITY;
	search.status = state->cells_status;
	search.room = state->room;
	for (uint64_t first = 0; first < share->rows; first += share->batch_rows)
	{
		uint64_t	left = share->rows - first;

		search.rows = (uint32_t) (left < share->batch_rows ? left : share->batch_rows);
		search.latitude = share->latitude + first;
		search.longitude = share->longitude + first;
		search.tag = share->tag + first;
		search.distance = share->distance + first;
		if (!gpu_fine(share, cells_search_enqueue(&search), "search") ||
			!gpu_fine(share, cudaEventRecord(share->searched, 0), "event"))
			return false;
		for (;;)
		{
			if (!gpu_fine(share, cudaMemcpy(&status, search.status, sizeof(status),
											cudaMemcpyDeviceToHost), "search"))
				return false;
			if (cells_search_done(&search, &status))
				break;
			if (!gpu_fine(share, cells_search_go_on(&search, &status), "search"))
				return false;
		}
		if (status.out_of_range != 0)
		{
			snprintf(share->failure, sizeof(share->failure), "GPU %d: coordinates out of range",
					 share->gpu);
			return false;
		}
		share->listed += status.listed;
	}
	return gpu_fine(share, cudaEventRecord(share->ended, 0), "event");
}

static bool
repeat(struct gpu_share *share)
{
	struct index_state *state = (struct index_state *) share->state;
	struct index_nearest search;

	if (!gpu_index_build(share, &state->built))
		return false;
	if (share->tables)
		return repeat_by_table(share, state);
	for (uint64_t first = 0; first < share->rows; first += share->batch_rows)
	{
		uint64_t	left = share->rows - first;

		search.index = &state->built.index;
		search.rows = (uint32_t) (left < share->batch_rows ? left : share->batch_rows);
		search.latitude = share->latitude + first;
		search.longitude = share->longitude + first;
		search.max_distance = INFINITY;
		search.list = NULL;
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

static bool
collect(struct gpu_share *share)
{
	return !share->tables || gpu_number_rows(share);
}

const struct gpu_method gpu_index = {prepare, NULL, repeat, collect, NULL};
