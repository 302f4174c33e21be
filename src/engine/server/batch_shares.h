/*
 * batch_shares.h
 *		How much of the memory of batches a process may have, and a role, and how many sessions.
 */
#ifndef GEONN_BATCH_SHARES_H
#define GEONN_BATCH_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/failure.h"

/* what the batches of a process's sessions take */
struct batch_share
{
	int32_t		pid;			/* 0: of a session that works for no process */
	uint32_t	role;
	uint64_t	sessions;		/* that hold it */
	uint64_t	bytes;			/* of all its batches */
	uint64_t	reserved;		/* of these, out of the reserve: its first batch */
	uint64_t	further;		/* and those of its further sessions */
	struct batch_share *next;
};

/* what a batch counts as */
enum batch_kind
{
	BATCH_SHARED,				/* within its process's and role's shares */
	BATCH_RESERVED,				/* the first of a process, out of the reserve */
	BATCH_FURTHER				/* the first of another of its sessions, out of it, too */
};

/* The memory that is to be divided, and the descriptors that the engine may open. */
extern void batch_shares_set_limit(uint64_t bytes);
extern void batch_shares_set_descriptors(uint64_t descriptors);

/* The engine has just been given this one. */
extern void batch_shares_note_descriptor(int descriptor);

/*
 * The share of this process, which the caller, one of its sessions, holds from then on; pid
 * 0: one of its own.  NULL where memory is short.
 */
extern struct batch_share *batch_share_join(int32_t pid, uint32_t role);
extern void batch_share_leave(struct batch_share *share);

/*
 * May the process have as many sessions as hold the share?  Fails with the numbers where it may
 * not.
 */
extern bool batch_share_admits(const struct batch_share *share, struct failure *failure);

/* May the process have so many bytes more? */
extern bool batch_share_allows(const struct batch_share *share, uint64_t bytes);

/*
 * May a session of the process that has no batch have its first one out of the reserve?  Sets
 * what that counts as.  Fails with the numbers where it may not.
 */
extern bool batch_share_reserves(const struct batch_share *share, uint64_t bytes,
								 enum batch_kind *kind, struct failure *failure);

/* A batch of the process is there, or no more. */
extern void batch_share_add(struct batch_share *share, uint64_t bytes, enum batch_kind kind);
extern void batch_share_subtract(struct batch_share *share, uint64_t bytes, enum batch_kind kind);

#endif							/* GEONN_BATCH_SHARES_H */
