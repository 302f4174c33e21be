/*
 * admission.c
 *		Decides which sessions may work while a limit is set, and keeps the
 *		queue of sessions that wait.
 *
 * A hundred statements at a time take a hundred rings of batches and as many
 * sets of references, and each of them ends late.  With geonn.max_sessions
 * only so many work, and the others are queued, in the order in which they
 * came, before they have sent anything.  The queue is kept in the engine, and
 * not in PostgreSQL's shared memory, for the reasons that calls.c gives: when
 * a connection ends, however its process ended, the engine gives its place to
 * the first in the queue, or takes it out of the queue.
 *
 * A process must not wait for a place that becomes free only after that
 * process has gone on:
 *
 *	- Processes are counted, not sessions.  A backend that has a session gets
 *	  any number of others at once: for two joins of one statement, for a
 *	  function that a view calls, for a second cursor.  So a queued process has
 *	  no place.
 *	- Parallel workers attach to a dataset of their leader's, which has a place
 *	  and waits for them.  A session that attaches is always admitted.
 *	- A queued process may hold PostgreSQL's locks, for which processes with
 *	  places wait, directly or through others.  Only PostgreSQL knows of its
 *	  locks, so the module looks for such waits (its admission.c).  If one
 *	  process with a place waits so, that gives no place to the process that it
 *	  waits for, since any role can have one session wait for another.  But if
 *	  all processes with places wait for queued processes, no place becomes
 *	  free: then the process that they wait for says that it is urgent.
 *
 * The engine lets an urgent session in beyond the limit, and lends it a place:
 * the processes with places do no work, and the session's statement should not
 * fail for a wait that it did not cause.  One place is lent at a time.  If the
 * process that has it waits for a queued process again, another session
 * becomes urgent and is refused; if it says so a second time, and no session
 * was admitted or has ended meanwhile, the engine ends it as a deadlock.  So
 * the limit is exceeded by one process at most, and no cycle lasts.
 *
 * The engine cannot know of waits outside the server: a function that asks
 * over another connection, or an application that reads one cursor while it
 * waits for another.  Therefore geonn.admission_timeout can limit the wait.
 *
 * Only the server's thread uses these functions.
 */
#include "engine/server/admission.h"

#include <stddef.h>

static struct
{
	uint32_t	limit;			/* 0: no limit */
	uint32_t	taken;			/* places that are taken: admitted sessions that count */
	uint32_t	queued;
	uint64_t	changes;		/* admissions, and ends of admitted or urgent sessions */
	struct admission *admitted; /* admitted sessions, in no order */
	struct admission *first;	/* queued */
	struct admission *last;
}			state = {
	.changes = 1
};

void
admission_set_limit(uint64_t limit)
{
	state.limit = (uint32_t) limit;
}

uint32_t
admission_limit(void)
{
	return state.limit;
}

static bool
has_room(void)
{
	return state.limit == 0 || state.taken < state.limit;
}

/* An admitted session that works for the process, or NULL. */
static struct admission *
admitted_of(int32_t pid)
{
	struct admission *admission = state.admitted;

	while (admission != NULL && admission->pid != pid)
		admission = admission->next;
	return admission;
}

static void
give(struct admission *admission)
{
	admission->counts = admitted_of(admission->pid) == NULL;
	state.taken += admission->counts;
	admission->state = ADMISSION_GIVEN;
	admission->next = state.admitted;
	state.admitted = admission;
	state.changes++;
}

static void
remove_from_queue(struct admission *admission)
{
	struct admission *before = NULL;

	for (struct admission *at = state.first; at != admission; at = at->next)
		before = at;
	if (before != NULL)
		before->next = admission->next;
	else
		state.first = admission->next;
	if (state.last == admission)
		state.last = before;
	state.queued--;
}

bool
admission_enter(struct admission *admission, struct session *session, int32_t pid)
{
	admission->session = session;
	admission->pid = pid;
	admission->refused_at = 0;

	/* a place that has just become free is for queued sessions */
	if ((state.first == NULL && has_room()) || admitted_of(pid) != NULL)
	{
		give(admission);
		return true;
	}
	admission->state = ADMISSION_QUEUED;
	admission->next = NULL;
	if (state.last != NULL)
		state.last->next = admission;
	else
		state.first = admission;
	state.last = admission;
	state.queued++;
	return false;
}

enum admission_urgency
admission_urge(struct admission *admission)
{
	/* one place may be lent, beyond the limit */
	if (has_room() || state.taken == state.limit)
	{
		remove_from_queue(admission);
		give(admission);
		return ADMISSION_LET_IN;
	}
	if (admission->refused_at == state.changes)
		return ADMISSION_DEADLOCK;
	admission->refused_at = state.changes;
	return ADMISSION_REFUSED;
}

void
admission_leave(struct admission *admission)
{
	struct admission **link = &state.admitted;

	/*
	 * sessions that were only queued, and left, break no cycle, so they do not
	 * count as changes
	 */
	if (admission->state == ADMISSION_GIVEN || admission->refused_at != 0)
		state.changes++;
	if (admission->state == ADMISSION_QUEUED)
		remove_from_queue(admission);
	if (admission->state == ADMISSION_GIVEN)
	{
		while (*link != admission)
			link = &(*link)->next;
		*link = admission->next;
		if (admission->counts)
		{
			struct admission *other = admitted_of(admission->pid);

			if (other != NULL)
				other->counts = true;
			else
				state.taken--;
		}
	}
	admission->state = ADMISSION_NONE;
	admission->refused_at = 0;
}

struct session *
admission_next(void)
{
	struct admission *admission = state.first;

	if (admission == NULL || !has_room())
		return NULL;
	remove_from_queue(admission);
	give(admission);
	return admission->session;
}

uint32_t
admission_ahead(const struct admission *admission)
{
	uint32_t	ahead = 0;

	for (const struct admission *at = state.first; at != admission; at = at->next)
		ahead++;
	return ahead;
}

uint32_t
admission_queued(void)
{
	return state.queued;
}
