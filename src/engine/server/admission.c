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
 *	- A parallel worker may begin a search of its own: for a function that it calls, or a subquery.
 *	  It has its leader's place, as the leader waits for it.  Once one of them gets a place, those that
 *	  are queued behind have it, too: the leader may wait for any.
 *
 * The engine cannot know of other waits: for locks of PostgreSQL that a queued
 * process holds, for a function that asks over another connection, or in an
 * application that reads one cursor while it waits for another.  Therefore
 * geonn.admission_timeout can limit the wait.
 *
 * Only the server's thread uses these functions.
 */
#include "engine/server/admission.h"

#include <stddef.h>

#include "common/assertion.h"

static struct
{
	uint32_t	limit;			/* how many processes may have sessions; 0: no limit */
	uint32_t	taken;			/* how many processes have admitted sessions; of each process, one session has `counts`
								 * set */
	struct admission *admitted; /* admitted sessions, in no order */
	struct admission *queue;	/* queued sessions, the first one first */
}			state;

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

/* Return an admitted session with this leader, or NULL. */
static struct admission *
admitted_of(int32_t leader)
{
	struct admission *admission = state.admitted;

	while (admission != NULL && admission->leader != leader)
		admission = admission->next;
	return admission;
}

#ifdef USE_ASSERT_CHECKING
/* Return how many admitted sessions with this leader count as its process. */
static int
counting(int32_t leader)
{
	int			count = 0;

	for (const struct admission *admission = state.admitted; admission != NULL; admission = admission->next)
		count += admission->leader == leader && admission->counts;
	return count;
}
#endif

static void
give(struct admission *admission)
{
	admission->counts = admitted_of(admission->leader) == NULL;
	state.taken += admission->counts;
	admission->next = state.admitted;
	state.admitted = admission;
	geonn_assert(counting(admission->leader) == 1);
}

/* Take a session out of a list.  Returns false if the session is not in the list. */
static bool
take_out(struct admission **list, const struct admission *admission)
{
	while (*list != NULL && *list != admission)
		list = &(*list)->next;
	if (*list == NULL)
		return false;
	*list = admission->next;
	return true;
}

bool
admission_enter(struct admission *admission, struct session *session, int32_t leader)
{
	struct admission **last = &state.queue;

	admission->session = session;
	admission->leader = leader;

	/* Sessions in the queue come before this one; but a leader with an admitted session gets further ones at once. */
	if ((state.queue == NULL && has_room()) || admitted_of(leader) != NULL)
	{
		give(admission);
		return true;
	}
	geonn_assert(admitted_of(leader) == NULL);
	while (*last != NULL)
		last = &(*last)->next;
	*last = admission;
	admission->next = NULL;
	return false;
}

void
admission_leave(struct admission *admission)
{
	struct admission *other;

	if (take_out(&state.queue, admission) || !take_out(&state.admitted, admission) ||
		!admission->counts)
		return;
	other = admitted_of(admission->leader);
	geonn_assert(state.taken > 0 && counting(admission->leader) == 0);
	if (other != NULL)
		other->counts = true;
	else
		state.taken--;
}

struct session *
admission_next(void)
{
	struct admission *admission = state.queue;

	while (admission != NULL && admitted_of(admission->leader) == NULL)
		admission = admission->next;
	if (admission == NULL && has_room())
		admission = state.queue;
	if (admission == NULL)
		return NULL;
	take_out(&state.queue, admission);
	give(admission);
	return admission->session;
}

uint32_t
admission_queued(const struct admission *end)
{
	uint32_t	queued = 0;

	for (const struct admission *at = state.queue; at != end; at = at->next)
		queued++;
	return queued;
}
