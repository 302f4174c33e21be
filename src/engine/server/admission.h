/*
 * admission.h
 *		Decides which sessions may work while a limit is set, and keeps the
 *		queue of sessions that wait.
 */
#ifndef GEONN_ADMISSION_H
#define GEONN_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

struct session;

/* A session's entry among the queued or admitted ones.  The session zeroes it before first use. */
struct admission
{
	struct session *session;
	int32_t		leader;			/* process id of the calling backend, or of its leader if it is a parallel worker */
	bool		counts;			/* the session counts as its process; of sessions with the same leader, one does */
	struct admission *next;		/* the next in the queue, or among the admitted sessions */
};

/* Set and get how many processes may have sessions at a time, up to INT32_MAX; 0: any number. */
extern void admission_set_limit(uint64_t limit);
extern uint32_t admission_limit(void);

/*
 * Admit a session that works for the process with this id, or for a parallel worker of it; or queue the session.
 * Returns whether the session may begin; if not, it stays queued until admission_next() returns it, or it leaves.
 */
extern bool admission_enter(struct admission *admission, struct session *session, int32_t leader);

/* Take out a session that has ended, whether it was queued or admitted, or never entered. */
extern void admission_leave(struct admission *admission);

/* Admit the first session of the queue that may begin now, and return it; NULL: none may. */
extern struct session *admission_next(void);

/* Return how many sessions are queued before this one; with NULL, how many are queued in all. */
extern uint32_t admission_queued(const struct admission *end);

#endif							/* GEONN_ADMISSION_H */
