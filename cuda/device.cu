/*
 * device.cu
 *		A GPU as a device: copies, launches and who waits for whom.
 *
 * A search runs in a lane, which has a stream and memory of its own.  A lane
 * answers a piece of it at a time, the next observations, as many as memory
 * allows; then the search goes back to its session's queue, if it is not done.
 * What a piece does is up to its operations: nearest.cu's for the question that
 * most searches ask, neighbours.cu's for any other.  All of them have the
 * observations copied in, launch kernels, and have the results copied out, in
 * the order of the stream; with several lanes busy, one's copies overlap
 * another's kernels, and kernels of different lanes fill the GPU together where
 * one would leave it partly idle.
 *
 * Nothing but a build waits for the GPU.  The host thread keeps
 * LAUNCHES_AHEAD launches of every lane enqueued, or just one where what follows
 * depends on its result, and asks by events which have ended, sleeping a little
 * where none has.  That bounds what a cancelled search still costs: it ends
 * when these launches have.
 *
 * GPU memory: a lane's is one allocation, which grows to the largest piece
 * seen.  Where it can't, pieces are halved until they fit.  Datasets are
 * dataset.cu's.
 *
 * Host memory of batches is registered by share, so that the copies run at
 * full speed and by themselves.  Registered or not, they give the same.
 *
 * Errors: a failed allocation fails that search.  Any other failed call does
 * too, and after it the device is asked whether it still works; most faults of
 * a GPU are final for the process, and then the device is lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dataset.cuh"
#include "device.cuh"
#include "memory.cuh"
#include "phase.cuh"

/* nap of the host thread while all launches are under way */
#define NAP_NANOSECONDS 20000

bool
cuda_fail(struct device *device, struct failure *failure, cudaError_t error)
{
	/* takes the error off this thread, if it can be taken */
	cudaGetLastError();

	if (error == cudaErrorMemoryAllocation)
	{
		fail(failure, GEONN_ERROR_MEMORY, "not enough memory on device %d, %s",
			 device->number, device->name);
		fail_detail(failure, "%s", cudaGetErrorString(error));
		return false;
	}

	fail(failure, GEONN_ERROR_DEVICE, "device %d, %s, failed", device->number, device->name);
	fail_detail(failure, "%s (%s)", cudaGetErrorString(error), cudaGetErrorName(error));
	if (cudaDeviceSynchronize() != cudaSuccess)
	{
		fail_hint(failure, "Lines with \"NVRM: Xid\" in the system's log may name the cause.");
		device->lost = *failure;
		atomic_store(&device->usable, false);
	}
	return false;
}

/* ---- what pieces have in common ---- */

uint32_t
rows_left(const struct search *search)
{
	return search->rows - search->first - search->answered;
}

uint32_t
room_left(const struct search *search)
{
	return search->columns.room - search->pairs;
}

cudaError_t
fail_piece(struct lane *lane, enum geonn_error_code code, const char *message,
		   enum piece_progress *progress)
{
	lane->search->failed = true;
	fail(&lane->search->failure, code, "%s", message);
	*progress = PIECE_LAST;
	return cudaSuccess;
}

cudaError_t
copy_observations(const struct lane *lane, uint32_t rows, double *latitude, double *longitude,
				  int32_t *group, int32_t *identity)
{
	const struct search *search = lane->search;
	const struct geonn_batch_columns *columns = &search->columns;
	uint32_t	first = search->first + search->answered;
	cudaError_t error;

	phase_begin("copy in");
	if ((error = cudaMemcpyAsync(latitude, columns->latitude + first, rows * sizeof(double),
								 cudaMemcpyHostToDevice, lane->stream)) == cudaSuccess &&
		(error = cudaMemcpyAsync(longitude, columns->longitude + first, rows * sizeof(double),
								 cudaMemcpyHostToDevice, lane->stream)) == cudaSuccess &&
		group != NULL)
		error = cudaMemcpyAsync(group, columns->group + first, rows * sizeof(int32_t),
								cudaMemcpyHostToDevice, lane->stream);
	if (error == cudaSuccess && identity != NULL)
		error = cudaMemcpyAsync(identity, columns->identity + first, rows * sizeof(int32_t),
								cudaMemcpyHostToDevice, lane->stream);
	phase_end();
	return error;
}

cudaError_t
copy_results(const struct lane *lane, uint32_t observations, uint32_t pairs,
			 const uint32_t *count, const int64_t *tag, const double *distance)
{
	const struct search *search = lane->search;
	const struct geonn_batch_columns *columns = &search->columns;
	cudaError_t error = cudaSuccess;

	phase_begin("copy out");
	if (count != NULL)
		error = cudaMemcpyAsync(columns->count + search->first + search->answered, count,
								observations * sizeof(uint32_t), cudaMemcpyDeviceToHost,
								lane->stream);
	if (error == cudaSuccess && pairs > 0 &&
		(error = cudaMemcpyAsync(columns->tag + search->pairs, tag, pairs * sizeof(int64_t),
								 cudaMemcpyDeviceToHost, lane->stream)) == cudaSuccess)
		error = cudaMemcpyAsync(columns->distance + search->pairs, distance,
								pairs * sizeof(double), cudaMemcpyDeviceToHost, lane->stream);
	phase_end();
	return error;
}

/* ---- searches ---- */

static void
fail_search(struct device *device, struct lane *lane, cudaError_t error)
{
	lane->search->failed = true;
	cuda_fail(device, &lane->search->failure, error);
	lane->state = LANE_ENDING;
}

/*
 * Lay the next piece out in the lane's memory, which grows where it must: for
 * as many rows as are wanted, or as there is memory for.
 */
static void
begin_piece(struct device *device, struct lane *lane, const struct piece_operations *piece)
{
	uint32_t	rows;
	char		purpose[64];

	lane->piece = piece;
	lane->progress = PIECE_AHEAD;
	lane->launches = 0;
	lane->launches_ended = 0;
	lane->state = LANE_SEARCHING;
	for (rows = piece->rows(lane);; rows /= 2)
	{
		size_t		bytes = piece->place(device, lane, rows, NULL);

		if (bytes > lane->bytes)
		{
			cuda_release(device, lane->memory, lane->bytes);
			lane->bytes = 0;
			snprintf(purpose, sizeof(purpose), "searching for %u observations", rows);
			lane->memory = cuda_allocate(device, bytes, purpose, &lane->search->failure);
			if (lane->memory != NULL)
				lane->bytes = bytes;
		}
		if (lane->memory != NULL)
			break;
		if (rows == 1 || !atomic_load(&device->usable))
		{
			lane->search->failed = true;
			lane->state = LANE_ENDING;
			return;
		}
	}
	if (piece->place(device, lane, rows, lane->memory) <= lane->bytes)
		return;
	/* it could not find out what it needs, then or now */
	lane->search->failed = true;
	cuda_fail(device, &lane->search->failure, cudaErrorUnknown);
	lane->state = LANE_ENDING;
}

static const struct piece_operations *
choose_piece(const struct search *search)
{
	const struct question *question = &search->question;

	if (search->cutoff.present)
		return &neighbours_part_operations;
	if (search->dataset->metric != GEONN_METRIC_SPHERE || search->dataset->columns != 0 ||
		question->neighbours != 1 || question->ties)
		return &neighbours_operations;
	return cuda_part_of(search) == CUDA_BRUTE ? &nearest_brute_operations :
		&nearest_index_operations;
}

static void
cuda_start(struct device *device, struct search *search)
{
	struct cuda_device *cuda = (struct cuda_device *) device->private_data;
	struct lane *lane = cuda->lanes;

	while (lane->state != LANE_IDLE)
		lane++;
	lane->search = search;
	begin_piece(device, lane, choose_piece(search));
}

/*
 * Count the launches that have ended.
 */
static cudaError_t
poll_launches(struct lane *lane)
{
	while (lane->launches_ended < lane->launches)
	{
		cudaError_t error = cudaEventQuery(lane->ends[lane->launches_ended % LAUNCHES_AHEAD]);

		if (error == cudaErrorNotReady)
			return cudaSuccess;
		if (error != cudaSuccess)
			return error;
		lane->launches_ended++;
	}
	return cudaSuccess;
}

/*
 * Keep a lane's next launches enqueued.
 */
static cudaError_t
enqueue_launches(struct lane *lane)
{
	cudaError_t error;

	while (lane->progress != PIECE_LAST &&
		   lane->launches - lane->launches_ended < LAUNCHES_AHEAD)
	{
		if (lane->progress == PIECE_WAIT && lane->launches_ended < lane->launches)
			return cudaSuccess;
		if ((error = lane->piece->enqueue(lane, &lane->progress)) != cudaSuccess ||
			(error = cudaEventRecord(lane->ends[lane->launches % LAUNCHES_AHEAD],
									 lane->stream)) != cudaSuccess)
			return error;
		lane->launches++;
	}
	if (lane->progress == PIECE_LAST)
		lane->state = LANE_ENDING;
	return cudaSuccess;
}

/*
 * Everything of this lane has been executed: write down what it answered.
 * Returns whether the search is to be handed back.
 */
static bool
end_piece(struct device *device, struct lane *lane, enum device_progress *progress)
{
	struct search *search = lane->search;
	enum piece_outcome outcome = PIECE_FULL;

	if (!search->failed && lane->progress == PIECE_LAST)
		outcome = lane->piece->finish(lane);
	if (outcome == PIECE_MORE)
	{
		lane->state = LANE_SEARCHING;
		lane->progress = PIECE_AHEAD;
		return false;
	}
	if (lane->piece->close != NULL)
		lane->piece->close(lane);

	if (outcome == PIECE_ALONE)
	{
		begin_piece(device, lane, &neighbours_part_operations);
		return false;
	}
	lane->state = LANE_IDLE;
	lane->search = NULL;
	*progress = outcome == PIECE_ANSWERED && rows_left(search) > 0 && room_left(search) > 0 ?
		DEVICE_YIELDED : DEVICE_FINISHED;
	return true;
}

static enum device_progress
advance_lane(struct device *device, struct lane *lane, struct search **ended)
{
	struct search *search = lane->search;
	enum device_progress progress = DEVICE_IDLE;
	cudaError_t error;

	if (lane->state == LANE_SEARCHING)
	{
		error = poll_launches(lane);
		if (error == cudaSuccess && atomic_load(search->cancelled))
			lane->state = LANE_ENDING;
		else if (error == cudaSuccess)
			error = enqueue_launches(lane);
		if (error != cudaSuccess)
			fail_search(device, lane, error);
	}
	if (lane->state == LANE_ENDING)
	{
		error = cudaStreamQuery(lane->stream);
		if (error == cudaErrorNotReady)
			return DEVICE_IDLE;
		if (error != cudaSuccess && !search->failed)
			fail_search(device, lane, error);
		if (end_piece(device, lane, &progress))
			*ended = search;
	}
	return progress;
}

static enum device_progress
cuda_advance(struct device *device, struct search **ended)
{
	struct cuda_device *cuda = (struct cuda_device *) device->private_data;
	struct timespec nap = {0, NAP_NANOSECONDS};

	for (int i = 0; i < CUDA_LANES; i++)
	{
		struct lane *lane = &cuda->lanes[(cuda->next_lane + i) % CUDA_LANES];
		enum device_progress progress = advance_lane(device, lane, ended);

		if (progress != DEVICE_IDLE)
		{
			cuda->next_lane = (cuda->next_lane + i + 1) % CUDA_LANES;
			return progress;
		}
	}
	nanosleep(&nap, NULL);
	return DEVICE_IDLE;
}

/* ---- memory of batches, the end ---- */

/* portable memory is registered for all GPUs at once */
static void
cuda_share(struct device *device, void *start, size_t bytes)
{
	if (cudaSetDevice(device->ordinal) != cudaSuccess ||
		cudaHostRegister(start, bytes, cudaHostRegisterPortable) != cudaSuccess)
		cudaGetLastError();
}

static void
cuda_unshare(struct device *device, void *start)
{
	if (cudaSetDevice(device->ordinal) != cudaSuccess ||
		cudaHostUnregister(start) != cudaSuccess)
		cudaGetLastError();
}

static void
cuda_close(struct device *device)
{
	struct cuda_device *cuda = (struct cuda_device *) device->private_data;

	if (cuda == NULL)
		return;
	cuda_leave(device);
	/* on a lost device none of these succeeds, and none has to */
	for (int i = 0; i < CUDA_LANES; i++)
	{
		struct lane *lane = &cuda->lanes[i];

		cuda_release(device, lane->memory, lane->bytes);
		cudaFreeHost(lane->status);
		for (int j = 0; j < LAUNCHES_AHEAD; j++)
			if (lane->ends[j] != NULL)
				cudaEventDestroy(lane->ends[j]);
		if (lane->stream != NULL)
			cudaStreamDestroy(lane->stream);
	}
	cudaFreeHost(cuda->staging);
	if (cuda->building != NULL)
		cudaStreamDestroy(cuda->building);
	cudaGetLastError();
}

extern "C" const struct device_operations cuda_device_operations = {
	.kind = GEONN_KIND_CUDA,
	.is_gpu = true,
	.auto_rank = 1,				/* beside one the CPU would finish its batch long after all others */
	.count = cuda_device_count,
	.threads = NULL,
	.probe = cuda_device_probe,
	.memory_free = cuda_memory_free,
	.build = cuda_build,
	.discard = cuda_discard,
	.start = cuda_start,
	.advance = cuda_advance,
	.share = cuda_share,
	.unshare = cuda_unshare,
	.close = cuda_close
};
