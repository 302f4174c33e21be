/*
 * upload.cu
 *		Copies a dataset's columns to a GPU.
 *
 * From ordinary memory, the driver copies with one thread, at some 10 GB/s,
 * through pinned memory of its own, while a GPU takes 50 GB/s.  So a large
 * upload does the same with the thread pool: its threads fill one half of a
 * pinned buffer with chunks of the columns, while those in the other half are
 * on the way.  (To pin the columns themselves would take longer.)
 */
#include <string.h>

#include "cuda/base/phase.cuh"
#include "cuda/base/try.cuh"
#include "cuda/lane/gpu.cuh"
#include "cuda/lane/upload.cuh"

extern "C"
{
#include "engine/base/thread_pool.h"
}

/* an upload of this many bytes or more uses the thread pool */
#define LARGE_UPLOAD ((size_t) 8 << 20)

#define CHUNK_BYTES ((size_t) 1 << 20)
#define HALF_CHUNKS 16
#define STAGING_BYTES (2 * HALF_CHUNKS * CHUNK_BYTES)

/* the chunks of one half of the buffer */
struct half
{
	char	   *buffer;
	size_t		count;
	struct upload_column chunks[HALF_CHUNKS];
};

/*
 * Take the next chunks of the remaining columns.
 */
static void
take_chunks(struct upload *left, struct half *half)
{
	half->count = 0;
	while (half->count < HALF_CHUNKS && left->count > 0)
	{
		struct upload_column *column = &left->columns[left->count - 1];
		struct upload_column *chunk = &half->chunks[half->count];

		if (column->bytes == 0)
		{
			left->count--;
			continue;
		}
		*chunk = *column;
		if (chunk->bytes > CHUNK_BYTES)
			chunk->bytes = CHUNK_BYTES;
		column->target = (char *) column->target + chunk->bytes;
		column->source = (const char *) column->source + chunk->bytes;
		column->bytes -= chunk->bytes;
		half->count++;
	}
}

static void
fill_chunk(void *context, size_t number)
{
	struct half *half = (struct half *) context;

	memcpy(half->buffer + number * CHUNK_BYTES, half->chunks[number].source,
		   half->chunks[number].bytes);
}

/* Copy all chunks, through the two halves of the buffer in turn; event sent[i] marks the end of the copies from half i. */
static cudaError_t
copy_halves(const struct upload *upload, char *staging, const cudaEvent_t *sent,
			cudaStream_t stream)
{
	struct upload left = *upload;
	struct half half;

	for (int turn = 0; take_chunks(&left, &half), half.count > 0; turn ^= 1)
	{
		half.buffer = staging + turn * HALF_CHUNKS * CHUNK_BYTES;
		/* An event that was never recorded counts as reached, so the first use of a half does not wait. */
		CUDA_TRY(cudaEventSynchronize(sent[turn]));
		thread_pool_run(fill_chunk, &half, half.count);
		for (size_t i = 0; i < half.count; i++)
			CUDA_TRY(cudaMemcpyAsync(half.chunks[i].target, half.buffer + i * CHUNK_BYTES,
									 half.chunks[i].bytes, cudaMemcpyHostToDevice, stream));
		CUDA_TRY(cudaEventRecord(sent[turn], stream));
	}
	return cudaSuccess;
}

static cudaError_t
upload_by_staging(const struct upload *upload, char *staging, cudaStream_t stream)
{
	unsigned	flags = cudaEventDisableTiming | cudaEventBlockingSync;
	cudaEvent_t sent[2] = {NULL, NULL};
	cudaError_t error;
	cudaError_t last_error;

	if ((error = cudaEventCreateWithFlags(&sent[0], flags)) == cudaSuccess &&
		(error = cudaEventCreateWithFlags(&sent[1], flags)) == cudaSuccess)
		error = copy_halves(upload, staging, sent, stream);
	/* The next upload may use the buffer only when all copies from it have ended. */
	last_error = cudaStreamSynchronize(stream);
	for (int i = 0; i < 2; i++)
		if (sent[i] != NULL)
			cudaEventDestroy(sent[i]);
	return error != cudaSuccess ? error : last_error;
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
		return upload_by_staging(upload, (char *) cuda->staging, cuda->building);
	for (int i = 0; i < upload->count; i++)
		CUDA_TRY(cudaMemcpyAsync(upload->columns[i].target, upload->columns[i].source,
								 upload->columns[i].bytes, cudaMemcpyHostToDevice,
								 cuda->building));
	return cudaSuccess;
}
