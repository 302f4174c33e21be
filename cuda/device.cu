/*
 * device.cu
 *		A GPU as a device: copies, launches and who waits for whom.
 *
 * A search runs in a lane, which has a stream and memory of its own.  Its
 * observations are copied in, brute.cu's launches answer them, the results are
 * copied out, all in the order of the stream; with several lanes busy, one's
 * copies overlap another's kernels, and kernels of different lanes fill the
 * GPU together where one would leave it partly idle.
 *
 * Nothing but a build waits for the GPU.  The host thread keeps
 * LAUNCHES_AHEAD launches of every lane enqueued and asks by events which have
 * ended, sleeping a little where none has.  That bounds what a cancelled
 * search still costs: it ends when these launches have.
 *
 * GPU memory: a lane's room is one allocation, which grows to the largest batch
 * seen.  Where it can't, the lane searches the batch piece by piece, and hands
 * the search back after each piece.  Datasets are dataset.cu's.
 *
 * Host memory of batches is registered by share, so that the copies run at
 * full speed and by themselves.  Registered or not, they give the same.
 *
 * Errors: a failed allocation fails that search.  Any other failed call does
 * too, and after it the device is asked whether it still works; most faults of
 * a GPU are final for the process, and then the device is lost.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dataset.cuh"
#include "device.cuh"
#include "memory.cuh"

/* rows of a lane's room: at least, and at least where memory is short */
#define ROOM_ROWS_MIN ((uint32_t) 1 << 16)
#define ROOM_ROWS_SHORT ((uint32_t) 1 << 12)

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

/* ---- searches ---- */

/*
 * Give a lane room for a piece of up to `rows` observations: what it has, or
 * as much as can be had.
 */
static cudaError_t
grow_room(struct cuda_device *cuda, struct lane *lane, uint32_t rows)
{
	uint32_t	capacity = ROOM_ROWS_MIN;
	cudaError_t error;

	if (lane->room.capacity >= rows)
		return cudaSuccess;
	while (capacity < rows)
		capacity *= 2;

	error = cudaFree(lane->memory);
	lane->memory = NULL;
	lane->room.capacity = 0;
	if (error != cudaSuccess)
		return error;
	for (; capacity >= ROOM_ROWS_SHORT; capacity /= 2)
	{
		size_t		bytes = brute_place_room(NULL, capacity, &cuda->machine, &lane->room);

		error = cudaMalloc(&lane->memory, bytes);
		if (error == cudaSuccess)
		{
			brute_place_room(lane->memory, capacity, &cuda->machine, &lane->room);
			return cudaSuccess;
		}
		lane->memory = NULL;
		lane->room.capacity = 0;
		if (error != cudaErrorMemoryAllocation)
			return error;
		cudaGetLastError();
	}
	return error;
}

/*
 * Copy a piece's observations in and make their unit vectors.
 */
static cudaError_t
enqueue_input(struct lane *lane)
{
	const struct search *search = lane->search;
	uint32_t	first = search->first + search->answered;
	size_t		bytes = lane->work.rows * sizeof(double);
	cudaError_t error;

	if ((error = cudaMemcpyAsync(lane->room.latitude, search->columns.latitude + first, bytes,
								 cudaMemcpyHostToDevice, lane->stream)) != cudaSuccess ||
		(error = cudaMemcpyAsync(lane->room.longitude, search->columns.longitude + first, bytes,
								 cudaMemcpyHostToDevice, lane->stream)) != cudaSuccess)
		return error;
	return brute_prepare_observations(&lane->work);
}

/*
 * Copy a piece's results out: they stand where its degrees were.
 */
static cudaError_t
enqueue_output(struct lane *lane)
{
	const struct search *search = lane->search;
	uint32_t	first = search->first + search->answered;
	uint32_t	rows = lane->work.rows;
	cudaError_t error;

	if ((error = cudaMemcpyAsync(search->columns.distance + search->pairs, lane->room.latitude,
								 rows * sizeof(double), cudaMemcpyDeviceToHost,
								 lane->stream)) != cudaSuccess ||
		(error = cudaMemcpyAsync(search->columns.tag + search->pairs, lane->room.longitude,
								 rows * sizeof(int64_t), cudaMemcpyDeviceToHost,
								 lane->stream)) != cudaSuccess)
		return error;
	return cudaMemcpyAsync(search->columns.count + first, lane->room.count,
						   rows * sizeof(uint32_t), cudaMemcpyDeviceToHost, lane->stream);
}

static void
fail_search(struct device *device, struct lane *lane, cudaError_t error)
{
	lane->search->failed = true;
	cuda_fail(device, &lane->search->failure, error);
	lane->state = LANE_ENDING;
}

/* observations of a search that are not answered yet; one pair each */
static uint32_t
rows_left(const struct search *search)
{
	uint32_t	rows = search->rows - search->first;

	if (rows > search->columns.room)
		rows = search->columns.room;
	return rows - search->answered;
}

static void
cuda_start(struct device *device, struct search *search)
{
	struct cuda_device *cuda = (struct cuda_device *) device->private_data;
	struct cuda_built *built = (struct cuda_built *) search->dataset->built[device->number];
	struct lane *lane = cuda->lanes;
	uint32_t	rows = rows_left(search);
	cudaError_t error;

	while (lane->state != LANE_IDLE)
		lane++;
	lane->state = LANE_SEARCHING;
	lane->search = search;
	lane->launches = 0;
	lane->launches_ended = 0;
	memset(&lane->work, 0, sizeof(lane->work));

	error = grow_room(cuda, lane, rows);
	if (error == cudaSuccess)
	{
		lane->work.machine = &cuda->machine;
		lane->work.references = &built->references;
		lane->work.room = &lane->room;
		lane->work.status = lane->status;
		lane->work.rows = rows < lane->room.capacity ? rows : lane->room.capacity;
		lane->work.stream = lane->stream;
		error = enqueue_input(lane);
	}
	if (error != cudaSuccess)
		fail_search(device, lane, error);
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
 * Keep a lane's next launches enqueued, and its output after the last.
 */
static cudaError_t
enqueue_launches(struct lane *lane)
{
	cudaError_t error;

	while (lane->launches - lane->launches_ended < LAUNCHES_AHEAD &&
		   lane->work.phase != BRUTE_DONE)
	{
		if (lane->work.phase == BRUTE_WAIT && lane->launches_ended < lane->launches)
			return cudaSuccess;
		if ((error = brute_enqueue(&lane->work)) != cudaSuccess ||
			(error = cudaEventRecord(lane->ends[lane->launches % LAUNCHES_AHEAD],
									 lane->stream)) != cudaSuccess)
			return error;
		lane->launches++;
	}
	if (lane->work.phase != BRUTE_DONE)
		return cudaSuccess;

	lane->state = LANE_ENDING;
	if (lane->status->out_of_range == 0)
		return enqueue_output(lane);
	lane->search->failed = true;
	fail(&lane->search->failure, GEONN_ERROR_PROTOCOL, "observation coordinates are out of range");
	return cudaSuccess;
}

/*
 * Everything of this lane has been executed: hand its search back.
 */
static enum device_progress
end_piece(struct lane *lane, struct search **ended)
{
	struct search *search = lane->search;
	bool		answered = !search->failed && lane->work.phase == BRUTE_DONE;

	*ended = search;
	lane->state = LANE_IDLE;
	lane->search = NULL;
	if (!answered)
		return DEVICE_FINISHED;
	search->answered += lane->work.rows;
	search->pairs += lane->work.rows;
	return rows_left(search) > 0 ? DEVICE_YIELDED : DEVICE_FINISHED;
}

static enum device_progress
advance_lane(struct device *device, struct lane *lane, struct search **ended)
{
	cudaError_t error;

	if (lane->state == LANE_SEARCHING)
	{
		error = poll_launches(lane);
		if (error == cudaSuccess && atomic_load(lane->search->cancelled))
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
		if (error != cudaSuccess && !lane->search->failed)
			fail_search(device, lane, error);
		return end_piece(lane, ended);
	}
	return DEVICE_IDLE;
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
	/* on a lost device none of these succeeds, and none has to */
	for (int i = 0; i < CUDA_LANES; i++)
	{
		struct lane *lane = &cuda->lanes[i];

		cudaFree(lane->memory);
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
	free(cuda);
	device->private_data = NULL;
}

extern "C" const struct device_operations cuda_device_operations = {
	.kind = GEONN_KIND_CUDA,
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
