/*
 * admission.h
 *		Which sessions may work, where there is a limit, and the line of those that wait.
 */
#ifndef GEONN_ADMISSION_H
#define GEONN_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

struct session;

enum admission_state
{
	ADMISSION_NONE,
	ADMISSION_WAITING,			/* in line */
	ADMISSION_GIVEN
};

/* a session's part in it; zero it before first use */
struct admission
{
	struct session *session;
	int32_t		pid;			/* of the process that is called */
	enum admission_state state;
	bool		counts;			/* of its process's sessions, the one with the place */
	uint64_t	refused_at;		/* state.changes when it was urgent in vain; 0: never */
	struct admission *next;		/* in line, or among those that are admitted */
};

/* How many processes may have sessions at a time, up to INT32_MAX; 0: any number. */
extern void admission_set_limit(uint64_t limit);
extern uint32_t admission_limit(void);

/*
 * A session comes that works for this process.  Returns whether it may begin; else it
 * stands in line until admission_next returns it, admission_urge lets it in, or it leaves.
 */
extern bool admission_enter(struct admission *admission, struct session *session, int32_t pid);

enum admission_urgency
{
	ADMISSION_LET_IN,			/* it may begin */
	ADMISSION_REFUSED,			/* it stands in line as before */
	ADMISSION_DEADLOCK			/* it was refused before, and nothing has changed: end it */
};

/* It stands in line, and all that have places wait for the line, one of them for it. */
extern enum admission_urgency admission_urge(struct admission *admission);

/* The session has ended, whether it waited, was admitted or never came. */
extern void admission_leave(struct admission *admission);

/* The next session in line for which there is a place now, and may begin; or NULL. */
extern struct session *admission_next(void);

/* How many wait before this one, which does, too; and how many in all. */
extern uint32_t admission_ahead(const struct admission *admission);
extern uint32_t admission_waiting(void);

#endif							/* GEONN_ADMISSION_H */
