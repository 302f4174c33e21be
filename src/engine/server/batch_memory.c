/*
 * batch_memory.c
 *		Gives batches their memory: sealed memfds, shared with devices, pooled.
 *
 * The engine gives a memfd to its client, which maps it.  If a page of it did
 * not exist, SIGBUS would kill the client; for a PostgreSQL backend that would
 * mean a restart of the whole cluster.  So the engine allocates every page
 * before the memfd leaves it, and seals the memfd, so that no process can
 * change its size.
 *
 * To allocate, clear and register memory with CUDA takes longer than to fill
 * it.  So memory goes to a pool when a session ends, and the next batch of the
 * same size takes it from there.  Sizes are few: clients ask for powers of
 * two.  batch_shares.c decides how much a session may have, so that others
 * find some.
 *
 * Only the server's thread uses these functions.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/server/batch_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/assertion.h"
#include "engine/base/log.h"
#include "engine/search/backends.h"

/* A batch with fewer rows than this is not worth a round trip. */
#define SMALLEST_ROWS 256

/* The pool keeps at most this many bytes of memory that no session uses. */
#define POOL_KEEPS ((uint64_t) 128 << 20)

static struct
{
	uint64_t	limit;
	uint64_t	in_use;			/* how many bytes all batches take, the pool included */
	uint64_t	pooled;
	struct batch_memory *pool;	/* memory that no session uses, the most recently used first */
	bool		shortage_logged;
}			state = {
	.limit = UINT64_MAX
};

void
batch_memory_report(struct geonn_engine_status *status)
{
	status->transfer_memory = state.in_use;
	status->transfer_memory_limit = state.limit;
}

/*
 * Return the first GPU that works; memory shared with it is shared with all GPUs.  NULL: no GPU works, or none works yet.
 */
static struct device *
sharing_device(void)
{
	for (int i = 0; i < engine_device_count; i++)
		if (engine_devices[i].operations->share != NULL && atomic_load(&engine_devices[i].usable))
			return &engine_devices[i];
	return NULL;
}

static void
take_from_share(struct batch_memory *memory)
{
	if (memory->share != NULL)
		batch_share_add(memory->share, -(int64_t) memory->bytes, memory->kind);
	memory->share = NULL;
}

void
batch_memory_destroy(struct batch_memory *memory)
{
	struct device *device = sharing_device();

	if (device != NULL)
		device->operations->unshare(device, memory->start);
	munmap(memory->start, memory->bytes);
	if (memory->descriptor >= 0)
		close(memory->descriptor);
	geonn_assert(memory->bytes <= state.in_use);
	state.in_use -= memory->bytes;
	take_from_share(memory);
	free(memory);
}

void
batch_memory_reclaim(struct batch_memory *memory)
{
	int			descriptor = memory->descriptor;
	off_t		bytes = (off_t) memory->bytes;

	memory->descriptor = -1;
	batch_memory_destroy(memory);
	(void) fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, bytes);
	close(descriptor);
}

/*
 * Free memory of the pool, the least recently used first, until all batches together take at most
 * `total` bytes, or the pool is empty.
 */
static void
shrink_pool(uint64_t total)
{
	while (state.in_use > total && state.pool != NULL)
	{
		struct batch_memory **link = &state.pool;
		struct batch_memory *oldest;

		while ((*link)->next != NULL)
			link = &(*link)->next;
		oldest = *link;
		*link = NULL;
		geonn_assert(oldest->bytes <= state.pooled && oldest->share == NULL);
		state.pooled -= oldest->bytes;
		batch_memory_destroy(oldest);
	}
}

void
batch_memory_set_limit(uint64_t bytes)
{
	state.limit = bytes;
	batch_shares_set_limit(bytes);
	state.shortage_logged = false;
	shrink_pool(bytes);
}

/* Create a memfd of this size, mapped, allocated and sealed.  Returns NULL with errno on failure. */
static struct batch_memory *
create(size_t bytes)
{
	struct batch_memory *memory = calloc(1, sizeof(*memory));
	struct device *device = sharing_device();
	int			reason;

	if (memory == NULL)
		return NULL;
	geonn_assert(bytes > 0 && bytes % 4096 == 0);
	memory->bytes = bytes;
	memory->start = MAP_FAILED;
	memory->descriptor = memfd_create("geonn batch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory->descriptor < 0)
	{
		free(memory);
		return NULL;
	}

	/* fallocate extends the file and allocates every page, so that none can be missing later */
	if (fallocate(memory->descriptor, 0, 0, (off_t) bytes) == 0 &&
		fcntl(memory->descriptor, F_ADD_SEALS,
			  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		memory->start = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
							 MAP_SHARED | MAP_POPULATE, memory->descriptor, 0);
	if (memory->start == MAP_FAILED)
	{
		reason = errno;
		close(memory->descriptor);
		free(memory);
		errno = reason;
		return NULL;
	}

	state.in_use += bytes;
	if (device != NULL)
		device->operations->share(device, memory->start, bytes);
	return memory;
}

static struct batch_memory *
take_from_pool(size_t bytes)
{
	for (struct batch_memory **link = &state.pool; *link != NULL; link = &(*link)->next)
		if ((*link)->bytes == bytes)
		{
			struct batch_memory *memory = *link;

			geonn_assert(bytes <= state.pooled && memory->share == NULL);
			*link = memory->next;
			memory->next = NULL;
			state.pooled -= bytes;
			return memory;
		}
	return NULL;
}

/* Log that batches are smaller than sessions asked for; once, until the limit changes. */
static void
log_shortage(size_t wanted)
{
	if (state.shortage_logged)
		return;
	state.shortage_logged = true;
	log_line(LOG_WARNING, "batches are smaller than they could be: %llu kB of transfer memory "
			 "are in use, another batch of a process would take %zu kB, and geonn.transfer_memory_limit is %llu kB",
			 (unsigned long long) (state.in_use - state.pooled) / 1024, wanted / 1024,
			 (unsigned long long) state.limit / 1024);
}

/* Take memory of this many bytes from the pool, or create it.  Returns NULL with the failure if neither is possible. */
static struct batch_memory *
find_memory(size_t bytes, struct failure *failure)
{
	struct batch_memory *memory = take_from_pool(bytes);

	if (memory != NULL)
		return memory;
	geonn_assert(bytes <= state.limit);
	shrink_pool(state.limit - bytes);
	memory = create(bytes);
	if (memory != NULL)
		return memory;
	fail(failure, GEONN_ERROR_MEMORY,
		 "not enough memory for a batch: %zu bytes needed", bytes);
	fail_reason(failure, errno);
	return NULL;
}

/*
 * Halve the rows and the pairs of a batch, each unless it would fall below SMALLEST_ROWS.  Returns
 * false if neither can be halved.
 */
static bool
make_smaller(uint32_t *rows, uint32_t *room)
{
	bool		fewer_rows = *rows / 2 >= SMALLEST_ROWS;
	bool		less_room = *room / 2 >= SMALLEST_ROWS;

	if (fewer_rows)
		*rows /= 2;
	if (less_room)
		*room /= 2;
	return fewer_rows || less_room;
}

/*
 * Return whether the share allows a batch of this many bytes; end idle sessions as long as their memory is in the way.  If
 * the share would not allow the batch even without idle sessions, end none.
 */
static bool
make_allowed(const struct batch_share *share, size_t bytes, bool (*give_up_idle) (void))
{
	if (!batch_share_allows(share, bytes, false))
		return false;
	while (!batch_share_allows(share, bytes, true))
		if (!give_up_idle())
			return false;
	return true;
}

struct batch_memory *
batch_memory_acquire(uint32_t *rows, uint32_t *room, uint32_t present,
					 struct batch_share *share, bool first_of_session,
					 bool (*give_up_idle) (void), struct failure *failure)
{
	bool		makes_room = true;

	for (;;)
	{
		struct geonn_batch_columns columns;
		size_t		bytes = geonn_batch_layout(NULL, *rows, *room, present, &columns);
		struct batch_memory *memory = NULL;
		enum batch_kind kind = BATCH_SHARED;
		uint32_t	next_rows = *rows;
		uint32_t	next_room = *room;
		bool		is_smallest = !make_smaller(&next_rows, &next_room);
		bool		allowed = makes_room ? make_allowed(share, bytes, give_up_idle) :
			batch_share_allows(share, bytes, true);

		if (!allowed)
			log_shortage(bytes);
		if (allowed || (is_smallest && first_of_session &&
						batch_share_reserves(share, bytes, &kind, failure)))
			memory = find_memory(bytes, failure);
		if (memory != NULL)
		{
			memory->share = share;
			memory->kind = kind;
			batch_share_add(share, (int64_t) bytes, kind);
		}
		if (memory != NULL || is_smallest)
			return memory;
		*rows = next_rows;
		*room = next_room;
		makes_room = first_of_session;
	}
}

void
batch_memory_set_idle(struct batch_memory *memory, bool idle)
{
	geonn_assert(memory->kind == (idle ? BATCH_SHARED : BATCH_IDLE));
	batch_share_add(memory->share, -(int64_t) memory->bytes, memory->kind);
	memory->kind = idle ? BATCH_IDLE : BATCH_SHARED;
	batch_share_add(memory->share, (int64_t) memory->bytes, memory->kind);
}

void
batch_memory_release(struct batch_memory *memory)
{
	take_from_share(memory);
	memory->next = state.pool;
	state.pool = memory;
	state.pooled += memory->bytes;
	geonn_assert(state.pooled <= state.in_use);
	if (state.in_use > state.limit)
		shrink_pool(state.limit);
	if (state.pooled > POOL_KEEPS)
		shrink_pool(state.in_use - (state.pooled - POOL_KEEPS));
}

void
batch_memory_close(void)
{
	shrink_pool(0);
}
