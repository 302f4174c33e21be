/*
 * batch_memory.h
 *		Gives batches their memory: sealed memfds, shared with devices, pooled.
 */
#ifndef GEONN_BATCH_MEMORY_H
#define GEONN_BATCH_MEMORY_H

#include "common/batch_layout.h"
#include "engine/server/batch_shares.h"

struct batch_memory
{
	int			descriptor;		/* the memfd, of which the client gets a copy */
	void	   *start;
	size_t		bytes;
	struct batch_share *share;	/* the share that counts the memory; NULL: the memory is in the pool */
	enum batch_kind kind;
	struct batch_memory *next;	/* the next in the pool */
};

/* Set how many bytes all batches together may take.  If they take more now, the pool shrinks at once. */
extern void batch_memory_set_limit(uint64_t bytes);

/* Fill in how many bytes batches take, the pool included, and may take. */
extern void batch_memory_report(struct geonn_engine_status *status);

/*
 * Get memory for a batch of *rows rows and *room pairs.  If the process's share does not allow that, halve both until it
 * does, down to the smallest batch worth having.  If idle sessions hold the needed memory, give_up_idle() ends them one by
 * one (false: none is left); for a halved batch only if the batch is the session's first.  A session's first batch of the
 * smallest size may come from the reserve.  Returns NULL if no memory is left; for a session's first batch the failure
 * then says why.  The memory is mapped in the engine, allocated and sealed.
 */
extern struct batch_memory *batch_memory_acquire(uint32_t *rows, uint32_t *room,
												 uint32_t present,
												 struct batch_share *share,
												 bool first_of_session,
												 bool (*give_up_idle) (void),
												 struct failure *failure);

/*
 * Give memory back to the pool, for the next batch of that size.  The caller must know that no
 * client has it mapped any more.
 */
extern void batch_memory_release(struct batch_memory *memory);

/*
 * Count memory as that of an idle session, or again as that of a session at work.  The memory must
 * not come from the reserve.
 */
extern void batch_memory_set_idle(struct batch_memory *memory, bool idle);

/* Free memory that a client may still have mapped, instead of giving it to the pool. */
extern void batch_memory_destroy(struct batch_memory *memory);

/*
 * Free memory that its client still maps but will not use.  Its pages become free at once; the
 * memory does not go to the pool.
 */
extern void batch_memory_reclaim(struct batch_memory *memory);

/* Free the pool. */
extern void batch_memory_close(void);

#endif							/* GEONN_BATCH_MEMORY_H */
