/*
 * session.c
 *		One client's connection: its dataset and its ring of batches.
 *
 * A session is a state machine driven by protocol.h's messages.  Each wrong
 * message (one that does not fit the state, names a slot that is busy or out
 * of range, or has more rows than its batch) ends the session with an error,
 * and affects no other session.
 *
 * All code of sessions runs on the server's thread and never waits:
 *
 *	session.c			what a session is, and how it ends
 *	session_dataset.c	how it comes to its dataset
 *	session_search.c	its searches, which go to the scheduler
 *	session_idle.c		how it stays for its client's next call
 *	session_receive.c	its messages, each to what handles it
 *
 * A message with a descriptor can be refused for a reason for which neither
 * side is to blame: too many descriptors are on their way between processes of
 * the user.  Then the message waits, with all that follow it, until the kernel
 * takes it, the client leaves, or that was tried for long enough.
 * Meanwhile the session takes no message from its client, which has not got what
 * it asked for, and must not give it back.
 *
 * When the client closes its end of the socket, since it is done, its
 * statement was cancelled or its process died, the session ends.  It drops the
 * searches that wait, and sets cancelled for the searches that devices are
 * working on and for the sort of its dataset.  When the last of these has come
 * back, the session gives back its batches and its dataset.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/server/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/assertion.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/server/datasets.h"
#include "engine/server/event_loop.h"

/* A message that waits until the kernel accepts its descriptor. */
struct unsent
{
	struct unsent *next;
	int			type;
	int			descriptor;		/* a copy of the descriptor to send, or -1 */
	int			tries;
	union geonn_message message;
};

static struct session *sessions;	/* all sessions, linked by next */

/* idle sessions, in the order in which they became idle */
static struct
{
	struct session *newest;
	struct session *oldest;
	uint32_t	count;
}			idle;

static int	unsent_count;		/* how many messages of all sessions wait to be sent */
static int64_t try_at_ms;		/* when to try again, while some wait */

struct session *
session_first(void)
{
	return sessions;
}

struct session *
session_create(int socket)
{
	struct session *session = calloc(1, sizeof(*session));
	int			reason;

	if (session == NULL)
		return NULL;
	session->socket = socket;
	session->state = SESSION_CONNECTED;
	session->received = -1;
	atomic_init(&session->cancelled, false);
	if (!event_loop_watch(socket, session))
	{
		reason = errno;
		free(session);
		errno = reason;
		return NULL;
	}
	session->next = sessions;
	sessions = session;
	return session;
}

/* End a session because a message could not be sent: the server does not wait for a client that does not read. */
static void
end_unable_to_send(struct session *session, enum geonn_channel_status status)
{
	if (status == GEONN_CHANNEL_CLOSED)
		session_take_last_words(session);
	else
		log_line(LOG_WARNING, "could not send to a client, its session ends: %s",
				 status == GEONN_CHANNEL_AGAIN ? "it does not read its messages" : strerror(errno));
	session_end(session);
}

/*
 * Return whether a message was not sent because too many descriptors are on their way between
 * processes (common/channel.h).  errno must still be that of geonn_channel_send().
 */
static bool
is_crowded(enum geonn_channel_status status)
{
	return status == GEONN_CHANNEL_FAILED && errno == ETOOMANYREFS;
}

/*
 * Append a message to the session's unsent ones, with a copy of the descriptor unless that is -1.
 * Returns false with errno on failure.
 */
static bool
add_unsent(struct session *session, int type, const void *message, int descriptor)
{
	struct unsent **link = &session->unsent;
	struct unsent *unsent = calloc(1, sizeof(*unsent));

	if (unsent == NULL)
		return false;
	unsent->type = type;
	memcpy(&unsent->message, message, geonn_message_size(type));
	unsent->descriptor = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : -1;
	if (descriptor >= 0 && unsent->descriptor < 0)
	{
		free(unsent);
		return false;
	}
	if (unsent_count++ == 0)
		try_at_ms = now_ms() + GEONN_CROWDED_PAUSE_MS;
	while (*link != NULL)
		link = &(*link)->next;
	*link = unsent;
	return true;
}

static void
free_first_unsent(struct session *session)
{
	struct unsent *unsent = session->unsent;

	geonn_assert(unsent_count > 0);
	session->unsent = unsent->next;
	if (unsent->descriptor >= 0)
		close(unsent->descriptor);
	free(unsent);
	unsent_count--;
}

static void
drop_unsent(struct session *session)
{
	while (session->unsent != NULL)
		free_first_unsent(session);
}

void
session_send(struct session *session, int type, void *message, int descriptor)
{
	if (session->state == SESSION_ENDED)
		return;
	if (session->unsent == NULL)
	{
		enum geonn_channel_status status = geonn_channel_send(session->socket, type, message,
															  descriptor);

		if (status == GEONN_CHANNEL_OK)
			return;
		if (!is_crowded(status))
		{
			end_unable_to_send(session, status);
			return;
		}
		event_loop_unwatch(session->socket);
	}
	if (!add_unsent(session, type, message, descriptor))
		end_unable_to_send(session, GEONN_CHANNEL_FAILED);
}

/* Try again to send the messages that wait; once all are sent, go on with the client's messages. */
static void
try_unsent(struct session *session)
{
	struct failure failure;

	while (session->unsent != NULL)
	{
		struct unsent *unsent = session->unsent;
		enum geonn_channel_status status = geonn_channel_send(session->socket, unsent->type,
															  &unsent->message, unsent->descriptor);

		if (is_crowded(status))
		{
			if (++unsent->tries < GEONN_CROWDED_TRIES)
				return;
			fail(&failure, GEONN_ERROR_LIMIT, "the engine could not send to its client");
			fail_reason(&failure, ETOOMANYREFS);
			session_fail(session, &failure);
			return;
		}
		if (status != GEONN_CHANNEL_OK)
		{
			end_unable_to_send(session, status);
			return;
		}
		free_first_unsent(session);
	}
	if (!event_loop_watch(session->socket, session))
		end_unable_to_send(session, GEONN_CHANNEL_FAILED);
}

int
session_unsent_within_ms(void)
{
	int64_t		left = try_at_ms - now_ms();

	if (unsent_count == 0)
		return -1;
	return left > 0 ? (int) left : 0;
}

void
session_send_unsent(void)
{
	if (session_unsent_within_ms() != 0)
		return;
	for (struct session *session = sessions; session != NULL; session = session->next)
		if (session->unsent != NULL)
			try_unsent(session);
	try_at_ms = now_ms() + GEONN_CROWDED_PAUSE_MS;
}

void
session_fail(struct session *session, const struct failure *failure)
{
	struct geonn_error error = {.code = failure->code};

	memcpy(error.message, failure->message, sizeof(error.message));
	memcpy(error.detail, failure->detail, sizeof(error.detail));
	memcpy(error.hint, failure->hint, sizeof(error.hint));
	if (failure->code == GEONN_ERROR_MEMORY && failure->hint[0] == '\0')
		snprintf(error.hint, sizeof(error.hint), "Run fewer searches at a time, or give the engine more memory: it takes what the host and the limits on the server's processes leave it.");
	call_fail(session->call, failure->message);
	drop_unsent(session);
	session_send(session, GEONN_ERROR, &error, -1);
	session_end(session);
}

void
session_fail_protocol(struct session *session, const char *what)
{
	struct failure failure;

	fail(&failure, GEONN_ERROR_PROTOCOL, "the engine received an invalid message: %s", what);
	session_fail(session, &failure);
}

/* Note in the session's call that the session has ended, and take the session out of the admitted ones. */
static void
end_part(struct session *session)
{
	call_move(session->call, &session->phase, GEONN_PHASE_OBSERVATIONS);
	call_leave(session->call, session->has_finished ? &session->finished : NULL);
	admission_leave(&session->admission);
}

void
session_leave_call(struct session *session)
{
	end_part(session);
	call_release(session->call);
	session->call = NULL;
	session->has_finished = false;
}

void
session_set_idle(struct session *session, bool is_idle)
{
	geonn_assert(is_idle == (session->state != SESSION_IDLE));
	geonn_assert(session->call == NULL && session->dataset == NULL && session->under_way == 0);
	if (is_idle)
	{
		session->idle_since_ms = now_ms();
		geonn_assert(idle.newest == NULL || idle.newest->idle_since_ms <= session->idle_since_ms);
		session->newer = NULL;
		session->older = idle.newest;
		*(idle.newest != NULL ? &idle.newest->newer : &idle.oldest) = session;
		idle.newest = session;
		idle.count++;
	}
	else
	{
		*(session->newer != NULL ? &session->newer->older : &idle.newest) = session->older;
		*(session->older != NULL ? &session->older->newer : &idle.oldest) = session->newer;
		geonn_assert(idle.count > 0);
		idle.count--;
	}
	batch_share_set_idle(session->share, is_idle);
	session->state = is_idle ? SESSION_IDLE : SESSION_WELCOME;
}

struct session *
session_oldest_idle(void)
{
	return idle.oldest;
}

uint32_t
session_count_idle(void)
{
	return idle.count;
}

void
session_end(struct session *session)
{
	if (session->state == SESSION_ENDED)
		return;
	if (session->state == SESSION_IDLE)
		session_set_idle(session, false);
	session->state = SESSION_ENDED;
	drop_unsent(session);
	event_loop_unwatch(session->socket);
	close(session->socket);
	session->socket = -1;
	atomic_store(&session->cancelled, true);
	end_part(session);
	scheduler_drop(&session->queue);
	event_loop_wake();
}

/* Free an ended session, unless a device or a thread still works for it.  Returns whether it is free. */
static bool
free_if_idle(struct session *session)
{
	if (session->state != SESSION_ENDED || session->under_way > 0)
		return false;
	geonn_assert(session->socket < 0 && session->unsent == NULL && atomic_load(&session->cancelled));
	geonn_assert(session->queue.first == NULL && session->queue.taken == 0);
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
		slot_forget_shapes(&session->slots[i]);
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
		if (session->slots[i].memory != NULL)
		{
			/* After an error the client may still write to the memory that it maps: do not give that to the pool. */
			if (session->client_left)
				batch_memory_release(session->slots[i].memory);
			else
				batch_memory_destroy(session->slots[i].memory);
		}
	batch_share_leave(session->share);
	if (session->dataset != NULL)
		datasets_release(session->dataset);
	if (session->asking != NULL)
		datasets_release(session->asking);
	call_release(session->call);
	free(session);
	return true;
}

void
session_free_ended(void)
{
	struct session **link = &sessions;

	while (*link != NULL)
	{
		struct session *session = *link;
		struct session *next = session->next;

		if (free_if_idle(session))
			*link = next;
		else
			link = &session->next;
	}
}

struct slot *
session_idle_slot(struct session *session, uint32_t number)
{
	if (number >= GEONN_RING_SLOTS)
	{
		session_fail_protocol(session, "slot out of range");
		return NULL;
	}
	if (session->slots[number].busy)
	{
		session_fail_protocol(session, "slot is busy");
		return NULL;
	}
	return &session->slots[number];
}

struct slot *
session_filled_slot(struct session *session, uint32_t number, uint32_t rows)
{
	struct slot *slot = session_idle_slot(session, number);

	if (slot == NULL)
		return NULL;
	if (slot->memory == NULL || rows < 1 || rows > slot->columns.rows)
	{
		session_fail_protocol(session, "more rows than the batch has");
		return NULL;
	}
	return slot;
}

void
session_finished(struct session *session, const union geonn_message *message)
{
	const struct geonn_finished *finished = &message->finished;

	if (session->call == NULL || session->has_finished)
		session_fail_protocol(session, "finished without a call, or a second time");
	else if (finished->rows > INT64_MAX || finished->observations_skipped > INT64_MAX ||
			 finished->references_skipped > INT64_MAX || finished->unmatched > INT64_MAX ||
			 finished->calls > INT64_MAX || finished->observations > INT64_MAX ||
			 finished->microseconds > INT64_MAX || finished->alone > 1)
		session_fail_protocol(session, "finished with too many rows, calls or microseconds");
	else
	{
		session->finished = *finished;
		session->has_finished = true;
	}
}

void
session_take_last_words(struct session *session)
{
	union geonn_message message;

	if (session->call != NULL && !session->has_finished &&
		geonn_channel_find_last(session->socket, GEONN_FINISHED, &message))
		session_finished(session, &message);
}
