/*
 * batch_shares.h
 *		Decides how much memory for batches, and how many sessions, a process
 *		and a role may have.
 */
#ifndef GEONN_BATCH_SHARES_H
#define GEONN_BATCH_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/failure.h"

/* how a batch's bytes are counted */
enum batch_kind
{
	BATCH_SHARED,				/* a batch within the shares of its process and role */
	BATCH_RESERVED,				/* the first batch of a process, taken from the reserve */
	BATCH_FURTHER,				/* the first batch of a process's further session, taken from the reserve */
	BATCH_IDLE,					/* an idle session's batch: within the shares, but given up if others need the memory */
	BATCH_KINDS
};

/* the memory of the batches of one process's sessions */
struct batch_share
{
	int32_t		pid;			/* the process; 0: the share belongs to a session that works for no process */
	uint32_t	role;
	uint64_t	sessions;		/* how many sessions hold the share */
	uint64_t	idle_sessions;	/* how many sessions that hold the share are idle */
	uint64_t	bytes[BATCH_KINDS]; /* bytes of the process's batches, by enum batch_kind */
	struct batch_share *next;
};

/* Set how many bytes of memory are divided; and how many descriptors the engine may open. */
extern void batch_shares_set_limit(uint64_t bytes);
extern void batch_shares_set_descriptors(uint64_t descriptors);

/* Note the number of a descriptor that the engine has just opened, to learn how many are in use. */
extern void batch_shares_note_descriptor(int descriptor);

/*
 * Find or create the share of this process; with pid 0, create one for the session alone.  The caller is a session of the
 * process, and holds the share from then on.  Returns NULL if memory is short.
 */
extern struct batch_share *batch_share_join(int32_t pid, uint32_t role);
extern void batch_share_leave(struct batch_share *share);

/* Note that a session that holds the share becomes idle, or works again.  The share may be NULL. */
extern void batch_share_set_idle(struct batch_share *share, bool is_idle);

/*
 * Return whether the process may have as many sessions as hold the share.  with_idle: idle sessions
 * of all processes count as well.  If not, the failure gives the numbers.
 */
extern bool batch_share_admits(const struct batch_share *share, bool with_idle,
							   struct failure *failure);

/* Return whether the process may have this many bytes more.  with_idle: bytes of idle sessions count as used. */
extern bool batch_share_allows(const struct batch_share *share, uint64_t bytes, bool with_idle);

/*
 * Return whether a session without a batch may have its first one from the reserve; *kind becomes
 * the kind of that batch.  If not, the failure gives the numbers.
 */
extern bool batch_share_reserves(const struct batch_share *share, uint64_t bytes,
								 enum batch_kind *kind, struct failure *failure);

/* Add the bytes of a batch to the process's bytes of this kind; a negative number subtracts them. */
extern void batch_share_add(struct batch_share *share, int64_t bytes, enum batch_kind kind);

#endif							/* GEONN_BATCH_SHARES_H */
