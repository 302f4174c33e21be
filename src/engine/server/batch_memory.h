/*
 * batch_memory.h
 *		The memory of batches: sealed memfds, shared with devices, pooled.
 */
#ifndef GEONN_BATCH_MEMORY_H
#define GEONN_BATCH_MEMORY_H

#include "engine/search/device.h"
#include "engine/server/batch_shares.h"

struct batch_memory
{
	int			descriptor;		/* the memfd, which clients get a copy of */
	void	   *start;
	size_t		bytes;
	struct batch_share *share;	/* that it is part of; NULL: it is in the pool */
	enum batch_kind kind;
	struct batch_memory *next;	/* in the pool */
};

/* Devices that batches are shared with; all memory goes through them. */
extern void batch_memory_open(struct device *devices, int device_count);

/* Bytes that all batches together may take; the pool shrinks to it at once. */
extern void batch_memory_set_limit(uint64_t bytes);
extern uint64_t batch_memory_limit(void);

/* Bytes taken, the pool included. */
extern uint64_t batch_memory_in_use(void);

/*
 * Get memory for a batch of *rows and *room.  Where the process's share does not
 * allow that, both are halved until it does, down to the smallest batch worth
 * having, which the first of a session may have from the reserve.  NULL where there is
 * none; failure says why if it would be the session's first.  The memory is mapped here,
 * preallocated and sealed.
 */
extern struct batch_memory *batch_memory_acquire(uint32_t *rows, uint32_t *room,
												 uint32_t present,
												 struct batch_share *share,
												 bool first_of_session,
												 struct failure *failure);

/*
 * Back to the pool, for the next batch of that size.  No client may have it
 * mapped any more.
 */
extern void batch_memory_release(struct batch_memory *memory);

/* Give up memory that a client may still have mapped. */
extern void batch_memory_destroy(struct batch_memory *memory);

/* Free the pool. */
extern void batch_memory_close(void);

#endif							/* GEONN_BATCH_MEMORY_H */
