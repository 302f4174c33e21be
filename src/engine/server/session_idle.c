/*
 * session_idle.c
 *		Sessions that stay for their clients' next calls.
 *
 * To connect, exchange versions, and allocate and map a batch takes longer than a small
 * search.  So a client that is done with a call may say that it stays.  Then its session
 * gives up its call, its place (admission.c) and its dataset, and all batches but one, which
 * the client leaves mapped.  The client's next message names the next call, and from then on
 * the session is as one that has been welcomed: the client says again which role it works
 * for and what it asks.  Only a session of the same process and role goes on: those of its last
 * call, as a process's share keeps the role of its first one.
 *
 * An idle session is none of the sessions at work, and must not take from these.  It ends,
 * without an error, when its time is over, and before that, the oldest first, where
 * a batch, a session or a descriptor is refused to another one.  Its client finds the
 * connection closed when it next asks, and connects again.
 *
 * When an idle session ends so, its client still maps the batch, perhaps for hours, but does
 * not read or write it: it does that only after the engine has answered it.  So the memory is
 * given back to the kernel, and not to the pool.
 */
#include "engine/server/session.h"

#include <limits.h>
#include <string.h>

#include "common/assertion.h"
#include "engine/base/clock.h"
#include "engine/server/datasets.h"

static int64_t timeout_ms;		/* how long a session may be idle: all have the same time, so the oldest one's time is
								 * over first */

/*
 * Give back the batches of all slots except slot `kept`; the client has unmapped them.  Forget the searches of all slots.
 */
static void
empty_slots(struct session *session, uint32_t kept)
{
	for (uint32_t i = 0; i < GEONN_RING_SLOTS; i++)
	{
		struct slot *slot = &session->slots[i];

		if (i != kept && slot->memory != NULL)
		{
			batch_memory_release(slot->memory);
			slot->memory = NULL;
		}
		slot_forget_shapes(slot);
		memset(&slot->search, 0, sizeof(slot->search));
		memset(&slot->cutoff, 0, sizeof(slot->cutoff));
	}
}

/* End an idle session.  Its client still maps its batch, so the batch's memory does not go to the pool. */
static void
end_idle(struct session *session)
{
	geonn_assert(session->state == SESSION_IDLE);
	session_end(session);
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
	{
		if (session->slots[i].memory != NULL)
			batch_memory_reclaim(session->slots[i].memory);
		session->slots[i].memory = NULL;
	}
	batch_share_leave(session->share);
	session->share = NULL;
}

void
session_stay(struct session *session, uint32_t kept)
{
	if (session->state != SESSION_SEARCHING || session->under_way > 0)
	{
		session_fail_protocol(session, "a session that stays before it is done");
		return;
	}
	if (kept < GEONN_RING_SLOTS && session->slots[kept].memory == NULL)
	{
		session_fail_protocol(session, "a session that stays with a batch that it does not have");
		return;
	}
	empty_slots(session, kept);
	session_leave_call(session);
	datasets_release(session->dataset);
	session->dataset = NULL;
	if (session->asking != NULL)
		datasets_release(session->asking);
	session->asking = NULL;
	memset(&session->queue, 0, sizeof(session->queue));
	session_set_idle(session, true);
	if (kept >= GEONN_RING_SLOTS)
		return;

	/* the reserve is for sessions at work */
	if (session->slots[kept].memory->kind != BATCH_SHARED)
		end_idle(session);
	else
		batch_memory_set_idle(session->slots[kept].memory, true);
}

void
session_resume(struct session *session, const union geonn_message *message)
{
	const struct geonn_call *call = &message->call;

	if (session->pid != call->pid || session->role != call->role)
	{
		session_fail_protocol(session, "a session that goes on for another process or role");
		return;
	}
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
		if (session->slots[i].memory != NULL)
			batch_memory_set_idle(session->slots[i].memory, false);
	session_set_idle(session, false);
}

bool
session_give_up_idle(void)
{
	struct session *session = session_oldest_idle();

	if (session == NULL)
		return false;
	end_idle(session);
	return true;
}

void
session_set_idle_timeout(uint64_t milliseconds)
{
	timeout_ms = (int64_t) milliseconds;
}

int
session_overdue_within_ms(void)
{
	const struct session *session = session_oldest_idle();
	int64_t		left;

	if (session == NULL)
		return -1;
	left = session->idle_since_ms + timeout_ms - now_ms();
	return left <= 0 ? 0 : left < INT_MAX ? (int) left : INT_MAX;
}

void
session_end_overdue(void)
{
	if (session_overdue_within_ms() == 0)
		end_idle(session_oldest_idle());
}
