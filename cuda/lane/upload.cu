/*
 * upload.cu
 *		Copies a dataset's columns to a GPU.
 *
 * From ordinary memory, the driver copies with one thread, at some 10 GB/s,
 * through pinned memory of its own, while a GPU takes 50 GB/s.  So a large
 * upload does the same with several threads: each takes the next chunk, copies
 * it into one of its two pinned buffers and enqueues the copy to the GPU,
 * while its other buffer is on the way.  (To pin the columns themselves would
 * take longer.)  The threads last as long as the upload.
 */
#include <pthread.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "cuda/base/phase.cuh"
#include "cuda/base/try.cuh"
#include "cuda/lane/gpu.cuh"
#include "cuda/lane/upload.cuh"

/* from this many bytes on, an upload is worth starting threads for */
#define LARGE_UPLOAD ((size_t) 8 << 20)

#define UPLOAD_THREADS 4
#define CHUNK_BYTES ((size_t) 4 << 20)
#define STAGING_BYTES (UPLOAD_THREADS * 2 * CHUNK_BYTES)

/* what the threads of one upload share */
struct job
{
	struct device *device;
	const struct upload *upload;

	pthread_mutex_t lock;

	/* guarded by lock: the next chunk begins here */
	int			column;
	size_t		offset;
};

struct worker
{
	struct job *job;
	pthread_t	thread;
	char	   *buffers[2];		/* two buffers of CHUNK_BYTES each, pinned */
	cudaError_t error;
};

void
upload_add(struct upload *upload, void *target, const void *source, size_t bytes)
{
	struct upload_column *column = &upload->columns[upload->count++];

	column->target = target;
	column->source = source;
	column->bytes = bytes;
}

/*
 * Take the next chunk.  Returns whether one was left.
 */
static bool
take_chunk(struct job *job, struct upload_column *chunk)
{
	bool		taken = false;

	pthread_mutex_lock(&job->lock);
	while (!taken && job->column < job->upload->count)
	{
		const struct upload_column *column = &job->upload->columns[job->column];
		size_t		left = column->bytes - job->offset;

		if (left == 0)
		{
			job->column++;
			job->offset = 0;
			continue;
		}
		chunk->target = (char *) column->target + job->offset;
		chunk->source = (const char *) column->source + job->offset;
		chunk->bytes = left < CHUNK_BYTES ? left : CHUNK_BYTES;
		job->offset += chunk->bytes;
		taken = true;
	}
	pthread_mutex_unlock(&job->lock);
	return taken;
}

/*
 * Copy chunks until none is left, and wait for the last.
 */
static cudaError_t
copy_chunks(struct worker *worker, cudaStream_t stream, cudaEvent_t *sent)
{
	struct upload_column chunk;
	cudaError_t error = cudaSuccess;
	cudaError_t last_error;

	for (int turn = 0; error == cudaSuccess && take_chunk(worker->job, &chunk); turn ^= 1)
	{
		/* an event that was never recorded counts as reached */
		if ((error = cudaEventSynchronize(sent[turn])) != cudaSuccess)
			break;
		memcpy(worker->buffers[turn], chunk.source, chunk.bytes);
		if ((error = cudaMemcpyAsync(chunk.target, worker->buffers[turn], chunk.bytes,
									 cudaMemcpyHostToDevice, stream)) == cudaSuccess)
			error = cudaEventRecord(sent[turn], stream);
	}
	/* wait, so that no copy is on its way to memory that may be released */
	last_error = cudaStreamSynchronize(stream);
	return error != cudaSuccess ? error : last_error;
}

static void *
work(void *argument)
{
	struct worker *worker = (struct worker *) argument;
	cudaStream_t stream = NULL;
	cudaEvent_t sent[2] = {NULL, NULL};
	unsigned	flags = cudaEventDisableTiming | cudaEventBlockingSync;

	if ((worker->error = cudaSetDevice(worker->job->device->ordinal)) == cudaSuccess &&
		(worker->error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) == cudaSuccess &&
		(worker->error = cudaEventCreateWithFlags(&sent[0], flags)) == cudaSuccess &&
		(worker->error = cudaEventCreateWithFlags(&sent[1], flags)) == cudaSuccess)
		worker->error = copy_chunks(worker, stream, sent);
	for (int i = 0; i < 2; i++)
		if (sent[i] != NULL)
			cudaEventDestroy(sent[i]);
	if (stream != NULL)
		cudaStreamDestroy(stream);
	return NULL;
}

/*
 * Upload with several threads.  The calling thread is one of the workers, so
 * at least one works.
 */
static cudaError_t
upload_with_threads(struct device *device, const struct upload *upload, char *staging)
{
	struct worker workers[UPLOAD_THREADS];
	struct job	job = {device, upload, PTHREAD_MUTEX_INITIALIZER, 0, 0};
	int			wanted = get_nprocs() < UPLOAD_THREADS ? get_nprocs() : UPLOAD_THREADS;
	int			started = 1;
	cudaError_t error;

	memset(workers, 0, sizeof(workers));
	for (int i = 0; i < UPLOAD_THREADS; i++)
	{
		workers[i].job = &job;
		workers[i].buffers[0] = staging + 2 * i * CHUNK_BYTES;
		workers[i].buffers[1] = workers[i].buffers[0] + CHUNK_BYTES;
	}
	while (started < wanted &&
		   pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0)
		started++;
	work(&workers[0]);
	error = workers[0].error;
	for (int i = 1; i < started; i++)
	{
		pthread_join(workers[i].thread, NULL);
		if (error == cudaSuccess)
			error = workers[i].error;
	}
	return error;
}

cudaError_t
upload_run(struct device *device, const struct upload *upload)
{
	struct cuda_device *cuda = cuda_device_of(device);
	size_t		bytes = 0;
	struct phase phase("upload references");

	for (int i = 0; i < upload->count; i++)
		bytes += upload->columns[i].bytes;
	if (bytes >= LARGE_UPLOAD && cuda->staging == NULL &&
		cudaMallocHost(&cuda->staging, STAGING_BYTES) != cudaSuccess)
	{
		cudaGetLastError();
		cuda->staging = NULL;
	}
	if (bytes >= LARGE_UPLOAD && cuda->staging != NULL)
		return upload_with_threads(device, upload, (char *) cuda->staging);
	for (int i = 0; i < upload->count; i++)
		CUDA_TRY(cudaMemcpyAsync(upload->columns[i].target, upload->columns[i].source,
								 upload->columns[i].bytes, cudaMemcpyHostToDevice,
								 cuda->building));
	return cudaSuccess;
}
