/*
 * idle.h
 *		The order of idle sessions, and how long a session may be idle.
 */
#ifndef GEONN_IDLE_H
#define GEONN_IDLE_H

#include <stdint.h>

struct session;

/* a session's link in the list of idle sessions */
struct idle
{
	struct session *session;
	int64_t		since_ms;
	struct idle *newer;
	struct idle *older;
};

/* Set the milliseconds after which an idle session is to end; 0: at once. */
extern void idle_set_timeout(uint64_t milliseconds);

/* Add a session to the idle ones; or take it out. */
extern void idle_begin(struct idle *idle, struct session *session);
extern void idle_end(struct idle *idle);

/* The session that has been idle for longest, or NULL. */
extern struct session *idle_oldest(void);

/* Milliseconds until the oldest idle session's time is over, or -1 if none is idle. */
extern int	idle_overdue_within_ms(void);

/* The number of idle sessions. */
extern uint32_t idle_count(void);

#endif							/* GEONN_IDLE_H */
