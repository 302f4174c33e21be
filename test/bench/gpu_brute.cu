/*
 * gpu_brute.cu
 *		The nearest reference by brute force, on data that is on the GPU.
 *
 * The observations are cut into batches, all of which are under way at the
 * same time.  The search puts answers in the place of the degrees, so these are
 * made anew before each repetition.
 */
#include "gpu_share.cuh"

#include <stdio.h>
#include <stdlib.h>

#include "cuda/brute/brute.cuh"

#define BATCH_ROWS ((uint64_t) 1 << 22)

struct brute_batch
{
	uint64_t	first;			/* of the share's observations */
	struct brute_room room;
	struct brute_search search;
};

struct brute_state
{
	struct brute_machine machine;
	struct brute_references references;
	uint32_t	batches;
	struct brute_batch batch[];
};

static bool
prepare_batch(struct gpu_share *share, struct brute_state *state, uint32_t number)
{
	struct brute_batch *batch = &state->batch[number];
	uint64_t	left;
	void	   *memory;

	batch->first = number * share->batch_rows;
	left = share->rows - batch->first;
	batch->search.rows = (uint32_t) (left < share->batch_rows ? left : share->batch_rows);
	batch->search.machine = &state->machine;
	batch->search.references = &state->references;
	batch->search.room = &batch->room;
	memory = gpu_allocate(share, brute_place_room(NULL, batch->search.rows, &state->machine,
												  &batch->room), "a batch");
	if (memory == NULL)
		return false;
	brute_place_room(memory, batch->search.rows, &state->machine, &batch->room);
	return gpu_fine(share, cudaMallocHost((void **) &batch->search.status,
										  sizeof(struct brute_status)), "status") &&
		gpu_fine(share, cudaStreamCreate(&batch->search.stream), "stream");
}

static bool
prepare(struct gpu_share *share)
{
	struct brute_state *state;
	uint32_t	batches;
	void	   *memory;

	if (share->k > 1)
	{
		snprintf(share->failure, sizeof(share->failure),
				 "brute force finds one neighbour here; --data host finds more");
		return false;
	}
	share->batch_rows = share->problem->batch_rows > 0 ? share->problem->batch_rows : BATCH_ROWS;
	batches = (uint32_t) ((share->rows + share->batch_rows - 1) / share->batch_rows);
	state = (struct brute_state *) gpu_state(share, sizeof(struct brute_state) +
											 batches * sizeof(struct brute_batch));
	if (state == NULL || !gpu_fine(share, brute_measure(&state->machine), "brute force"))
		return false;
	memory = gpu_allocate(share, brute_place_references(NULL, share->problem->references,
														GEONN_METRIC_SPHERE, &state->references),
						  "references");
	if (memory == NULL)
		return false;
	brute_place_references(memory, share->problem->references, GEONN_METRIC_SPHERE,
						   &state->references);
	for (; state->batches < batches; state->batches++)
		if (!prepare_batch(share, state, state->batches))
			return false;
	return true;
}

static bool
refresh(struct gpu_share *share)
{
	struct brute_state *state = (struct brute_state *) share->state;

	for (uint32_t i = 0; i < state->batches; i++)
	{
		struct brute_batch *batch = &state->batch[i];

		batch->search.phase = BRUTE_SCAN;
		batch->search.next_tile = 0;
		batch->search.segments = 0;
		if (!gpu_fill(share, POINTS_OBSERVATIONS, share->first + batch->first, batch->search.rows,
					  batch->room.latitude, batch->room.longitude))
			return false;
	}
	return true;
}

static bool
prepare_references(struct gpu_share *share, const struct brute_references *references)
{
	size_t		column = share->problem->references * sizeof(double);

	return gpu_fine(share, cudaMemcpyAsync(references->x, share->reference_latitude, column,
										   cudaMemcpyDeviceToDevice, 0), "references") &&
		gpu_fine(share, cudaMemcpyAsync(references->y, share->reference_longitude, column,
										cudaMemcpyDeviceToDevice, 0), "references") &&
		gpu_fine(share, cudaMemcpyAsync(references->tag, share->reference_tag, column,
										cudaMemcpyDeviceToDevice, 0), "references") &&
		gpu_fine(share, brute_prepare_references(references, 0), "references");
}

static bool
repeat(struct gpu_share *share)
{
	struct brute_state *state = (struct brute_state *) share->state;

	/* the batches' streams wait for the default stream, and it for them */
	if (!gpu_fine(share, cudaEventRecord(share->started, 0), "event") ||
		!prepare_references(share, &state->references) ||
		!gpu_fine(share, cudaEventRecord(share->built, 0), "event"))
		return false;
	for (uint32_t i = 0; i < state->batches; i++)
	{
		struct brute_search *search = &state->batch[i].search;

		if (!gpu_fine(share, brute_prepare_observations(search), "observations"))
			return false;
		while (search->phase != BRUTE_WAIT)
			if (!gpu_fine(share, brute_enqueue(search), "scan"))
				return false;
	}
	for (uint32_t i = 0; i < state->batches; i++)
	{
		struct brute_search *search = &state->batch[i].search;

		if (!gpu_fine(share, cudaStreamSynchronize(search->stream), "scan"))
			return false;
		while (search->phase != BRUTE_DONE)
			if (!gpu_fine(share, brute_enqueue(search), "redo"))
				return false;
	}
	return gpu_fine(share, cudaEventRecord(share->ended, 0), "event");
}

static bool
collect(struct gpu_share *share)
{
	const struct brute_state *state = (const struct brute_state *) share->state;

	for (uint32_t i = 0; i < state->batches; i++)
	{
		const struct brute_batch *batch = &state->batch[i];
		uint32_t	rows = batch->search.rows;

		if (!gpu_fine(share, cudaMemcpy(share->distance + batch->first, batch->room.latitude,
										rows * sizeof(double), cudaMemcpyDeviceToDevice), "answers") ||
			!gpu_fine(share, cudaMemcpy(share->tag + batch->first, batch->room.longitude,
										rows * sizeof(int64_t), cudaMemcpyDeviceToDevice), "answers"))
			return false;
	}
	return gpu_number_rows(share);
}

static void
release(struct gpu_share *share)
{
	struct brute_state *state = (struct brute_state *) share->state;

	/* the batch that could not be prepared included */
	for (uint32_t i = 0; state != NULL && i < state->batches; i++)
	{
		if (state->batch[i].search.stream != NULL)
			cudaStreamDestroy(state->batch[i].search.stream);
		cudaFreeHost(state->batch[i].search.status);
	}
}

const struct gpu_method gpu_brute = {prepare, refresh, repeat, collect, release};
