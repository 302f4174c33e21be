/*
 * neighbours_part.cu
 *		A piece of one observation, which has more pairs than the batch has
 *		room for.
 *
 * Such an observation is answered in parts of as many pairs as the batch
 * holds: each part has the pairs that follow the end of the part before, the
 * cutoff, in the order (distance, place).  neighbours_alone.cu finds where the
 * part ends.
 *
 * Where the chord does not decide, the GPU only knows which references may be
 * among the pairs.  The host goes through these in chunks, and keeps the first
 * so far; neighbours_merge.cu does that.
 *
 * The observation's pairs may fit into the room after all, if the host decides
 * or if memory was short.  Then the search goes on with the next observation.
 */
#include <math.h>

#include "common/metric.h"
#include "cuda/base/columns.cuh"
#include "cuda/base/phase.cuh"
#include "cuda/lane/dataset.cuh"
#include "cuda/lane/lane.cuh"
#include "cuda/neighbours/neighbours.cuh"

/* what kernels report to the host, in pinned memory */
struct part_status
{
	struct neighbours_status neighbours;
	struct neighbours_entry last;	/* the last pair of a part */
};

static_assert(LANE_HOLDS(struct neighbours_part, struct part_status),
			  "a lane has no room for this piece's state");

static struct neighbours_part *
part_of(const struct lane *lane)
{
	return (struct neighbours_part *) lane_state(lane);
}

static struct part_status *
status_of(const struct lane *lane)
{
	return (struct part_status *) lane_status(lane);
}

static uint32_t
part_rows(const struct lane *lane)
{
	(void) lane;
	return 1;
}

static size_t
part_place(struct lane *lane, uint32_t rows, void *memory)
{
	const struct search *search = lane_search(lane);
	const struct question *question = &search->question;
	const struct dataset *dataset = search->dataset;
	struct neighbours_part *part = part_of(lane);
	struct neighbours *work = &part->work;
	bool		decides = geonn_metric_chord_decides(dataset->metric);
	uint32_t	room = decides ? room_left(search) : NEIGHBOURS_CHUNK;
	size_t		offset = 0;

	*part = {};
	part->radius = INFINITY;
	work->index = ((struct cuda_built *) dataset->built[lane_device(lane)->number])->index;
	work->rows = rows;
	work->k = question->k;
	work->ties = question->ties;
	work->max_distance = question->max_distance;
	work->stream = lane_stream(lane);

	work->latitude = (double *) next_column(memory, &offset, sizeof(double));
	work->longitude = (double *) next_column(memory, &offset, sizeof(double));
	if (dataset->columns & GEONN_COLUMN_GROUP)
		work->group = (int32_t *) next_column(memory, &offset, sizeof(int32_t));
	if (dataset->columns & GEONN_COLUMN_IDENTITY)
		work->identity = (int32_t *) next_column(memory, &offset, sizeof(int32_t));
	index_place_conditions(memory, &offset, 1, dataset->columns, &work->conditions);
	work->record = (struct index_record *)
		next_column(memory, &offset, sizeof(struct index_record));
	work->order = (uint32_t *) next_column(memory, &offset, sizeof(uint32_t));
	work->code = next_column(memory, &offset, neighbours_code_bytes(1, dataset->columns));
	work->row = (uint32_t *) next_column(memory, &offset, sizeof(uint32_t));
	work->sort_bytes = neighbours_sort_bytes(1, dataset->columns);
	work->sort_room = next_column(memory, &offset, work->sort_bytes);
	work->status = (struct neighbours_status *) next_column(memory, &offset,
															sizeof(struct neighbours_status));
	work->alone = (struct neighbours_alone *) next_column(memory, &offset,
														  sizeof(struct neighbours_alone));
	offset += results_place((char *) memory + offset, 1, &work->results);

	work->entry_room = room;
	work->entry_reference = (uint32_t *) next_column(memory, &offset, room * sizeof(uint32_t));
	if (!decides)
		return offset;
	work->entry = (struct neighbours_entry *)
		next_column(memory, &offset, room * sizeof(struct neighbours_entry));
	work->entry_sort_room = next_column(memory, &offset,
										neighbours_entry_sort_bytes(room));
	work->results.rows = 1;
	work->results.room = room;
	work->results.stride = 0;
	work->results.distance = (const double *) work->entry;
	work->results.distance_step = sizeof(struct neighbours_entry) / sizeof(double);
	work->results.reference = work->entry_reference;
	work->results.tag = work->index.tag;
	work->results.packed_tag = (int64_t *) next_column(memory, &offset, room * sizeof(int64_t));
	work->results.packed_distance = (double *) next_column(memory, &offset,
														   room * sizeof(double));
	return offset;
}

static cudaError_t
ask(struct lane *lane, enum piece_progress *progress)
{
	*progress = PIECE_WAIT;
	return cudaMemcpyAsync(&status_of(lane)->neighbours, part_of(lane)->work.status,
						   sizeof(struct neighbours_status), cudaMemcpyDeviceToHost,
						   lane_stream(lane));
}

/*
 * Copy the observation's degrees and radius from the GPU to the host.  This
 * comes first, since the host waits for it.
 */
static cudaError_t
copy_degrees(struct lane *lane)
{
	struct neighbours_part *part = part_of(lane);
	const struct neighbours *work = &part->work;
	cudaError_t error;

	if ((error = cudaMemcpyAsync(&part->degrees[0], work->latitude, sizeof(double),
								 cudaMemcpyDeviceToHost, lane_stream(lane))) != cudaSuccess ||
		(error = cudaMemcpyAsync(&part->degrees[1], work->longitude, sizeof(double),
								 cudaMemcpyDeviceToHost, lane_stream(lane))) != cudaSuccess ||
		work->conditions.radius == NULL)
		return error;
	return cudaMemcpyAsync(&part->radius, work->conditions.radius, sizeof(double),
						   cudaMemcpyDeviceToHost, lane_stream(lane));
}

static cudaError_t
enqueue_copy_in(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_part *part = part_of(lane);
	const struct neighbours *work = &part->work;
	struct neighbours_range range = {};
	cudaError_t error;

	*progress = PIECE_AHEAD;
	part->phase = PART_RANGE;
	range.last.value = geonn_metric_chord_decides(work->index.metric) ? work->max_distance :
		geonn_metric_radius_limit(work->index.metric, work->max_distance);
	range.last.place = UINT32_MAX;
	if ((error = copy_observations(lane, 1, work->latitude, work->longitude, work->group,
								   work->identity)) != cudaSuccess ||
		(error = copy_conditions(lane, 1, &work->conditions)) != cudaSuccess ||
		(error = copy_degrees(lane)) != cudaSuccess ||
		(error = neighbours_sort(work)) != cudaSuccess)
		return error;
	return neighbours_alone_begin(work, &range);
}

/*
 * Let the range of all candidates that may be a pair end with the k-th.
 */
static cudaError_t
enqueue_range(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_part *part = part_of(lane);
	const struct neighbours *work = &part->work;
	bool		decides = geonn_metric_chord_decides(work->index.metric);

	*progress = PIECE_AHEAD;
	if (work->k > 0 && part->digit < NEIGHBOURS_KEY_DIGITS)
		return neighbours_alone_choose(work, part->digit++, work->k, work->ties, !decides);

	part->digit = 0;
	part->phase = PART_FIND;
	if (decides)
		return cudaSuccess;
	if (!neighbours_merge_begin(part, lane_search(lane)))
		return fail_piece(lane, GEONN_ERROR_MEMORY,
						  "not enough memory to decide among candidates on the host", progress);
	part->phase = PART_COPY_CHUNK;
	return ask(lane, progress);
}

/*
 * Find the end of the pairs after the cutoff that the room holds, and write
 * these pairs.
 */
static cudaError_t
enqueue_find(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_part *part = part_of(lane);
	const struct neighbours *work = &part->work;
	const struct cutoff *cutoff = &lane_search(lane)->cutoff;
	struct neighbours_key after = {cutoff->distance, cutoff->place};
	cudaError_t error = cudaSuccess;

	*progress = PIECE_AHEAD;
	if (part->digit == 0 && cutoff->present)
		error = neighbours_alone_after(work, after);
	if (error != cudaSuccess)
		return error;
	if (part->digit < NEIGHBOURS_KEY_DIGITS)
		return neighbours_alone_choose(work, part->digit++, work->entry_room, false, false);
	part->phase = PART_PACK;
	error = neighbours_alone_write(work, 0, work->index.references);
	return error == cudaSuccess ? ask(lane, progress) : error;
}

static cudaError_t
enqueue_pack(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_part *part = part_of(lane);
	struct neighbours *work = &part->work;
	uint32_t	entries = status_of(lane)->neighbours.entries;
	cudaError_t error;

	part->phase = PART_COPY_OUT;
	part->written.pairs = entries;
	part->more = status_of(lane)->neighbours.in_range > entries;
	*progress = PIECE_WAIT;
	if ((error = neighbours_sort_entries(work, entries)) != cudaSuccess ||
		(error = cudaMemcpyAsync(work->results.count, &work->status->entries, sizeof(uint32_t),
								 cudaMemcpyDeviceToDevice, lane_stream(lane))) != cudaSuccess ||
		(error = results_scan(&work->results, lane_stream(lane))) != cudaSuccess ||
		(error = results_pack(&work->results, lane_stream(lane))) != cudaSuccess || entries == 0)
		return error;
	return cudaMemcpyAsync(&status_of(lane)->last, work->entry + entries - 1,
						   sizeof(struct neighbours_entry), cudaMemcpyDeviceToHost, lane_stream(lane));
}

static cudaError_t
enqueue_copy_out(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_part *part = part_of(lane);
	const struct results *results = &part->work.results;

	*progress = PIECE_LAST;
	part->last.value = status_of(lane)->last.value;
	part->last.place = status_of(lane)->last.place;
	/*
	 * behind other observations' pairs the room is smaller; the next request
	 * brings this one's pairs
	 */
	if (part->more && lane_search(lane)->answered > 0)
		return cudaSuccess;
	return copy_results(lane, 1, part->written.pairs, results->count, results->packed_tag,
						results->packed_distance);
}

static cudaError_t
enqueue_chunk(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_part *part = part_of(lane);
	const struct neighbours_part_chunks *chunks = &part->chunks;
	cudaError_t error;

	part->phase = PART_MERGE_CHUNK;
	if ((error = neighbours_alone_write(&part->work, chunks->first,
										chunks->end)) != cudaSuccess ||
		(error = cudaMemcpyAsync(chunks->place, part->work.entry_reference,
								 (chunks->end - chunks->first) * sizeof(uint32_t),
								 cudaMemcpyDeviceToHost, lane_stream(lane))) != cudaSuccess)
		return error;
	return ask(lane, progress);
}

static cudaError_t
part_enqueue(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_part *part = part_of(lane);

	if (part->phase > PART_FIND && status_of(lane)->neighbours.out_of_range != 0)
		return fail_piece(lane, GEONN_ERROR_PROTOCOL, "observation coordinates are out of range",
						  progress);
	switch (part->phase)
	{
		case PART_COPY_IN:
			return enqueue_copy_in(lane, progress);
		case PART_RANGE:
			return enqueue_range(lane, progress);
		case PART_FIND:
			return enqueue_find(lane, progress);
		case PART_PACK:
			return enqueue_pack(lane, progress);
		case PART_COPY_OUT:
			return enqueue_copy_out(lane, progress);
		case PART_COPY_CHUNK:
			return enqueue_chunk(lane, progress);
		case PART_MERGE_CHUNK:
			phase_begin("decide");
			neighbours_merge(part, lane_search(lane), status_of(lane)->neighbours.entries);
			phase_end();
			part->phase = PART_COPY_CHUNK;
			*progress = PIECE_AHEAD;
			if (!neighbours_merge_done(part, lane_search(lane)))
				return cudaSuccess;
			neighbours_merge_write(part, lane_search(lane));
			*progress = PIECE_LAST;
			return cudaSuccess;
	}
	return cudaErrorUnknown;
}

static enum piece_outcome
part_finish(struct lane *lane)
{
	const struct neighbours_part *part = part_of(lane);
	struct search *search = lane_search(lane);

	if (part->more && search->answered > 0)
		return PIECE_FULL;
	if (part->more)
	{
		search->pairs = part->written.pairs;
		search->cutoff.present = true;
		search->cutoff.distance = part->last.value;
		search->cutoff.place = part->last.place;
		return PIECE_FULL;
	}
	search->cutoff.present = false;
	search_account(search, 1, part->written.pairs, false);
	return PIECE_ANSWERED;
}

static void
part_close(struct lane *lane)
{
	neighbours_merge_end(part_of(lane));
}

const struct piece_operations neighbours_part_operations = {
	.rows = part_rows,
	.place = part_place,
	.enqueue = part_enqueue,
	.finish = part_finish,
	.close = part_close,
	.alone = NULL
};
