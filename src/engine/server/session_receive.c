/*
 * session_receive.c
 *		Receives clients' messages and passes each to the function that handles
 *		it.
 *
 * The table below says which messages a session takes in which of its states.
 * The handlers here are those for greetings, what views ask, calls and batches.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/server/session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/assertion.h"
#include "engine/server/datasets.h"
#include "engine/server/engine_status.h"

#define MESSAGES_AT_A_TIME 64

/* A client can have worked at most this many microseconds before it sends call: a year. */
#define BEGUN_MICROSECONDS_MAX (INT64_C(366) * 86400 * 1000000)

static void
handle_hello(struct session *session, const union geonn_message *message)
{
	const struct geonn_hello *hello = &message->hello;
	struct failure failure;

	if (hello->header.version == GEONN_PROTOCOL_VERSION &&
		strcmp(hello->release, GEONN_VERSION) == 0)
	{
		session->state = SESSION_GREETED;
		if (scheduler_ready())
			session_welcome(session);
		return;
	}
	fail(&failure, GEONN_ERROR_VERSION,
		 "the engine is version %s, the client is version %s",
		 GEONN_VERSION, hello->release);
	fail_detail(&failure, "%s", GEONN_VERSION);
	session_fail(session, &failure);
}

void
session_welcome(struct session *session)
{
	struct geonn_hello welcome = {.release = GEONN_VERSION};

	if (session->state != SESSION_GREETED)
		return;
	session->state = SESSION_WELCOME;
	session_send(session, GEONN_WELCOME, &welcome, -1);
}

static void
handle_status(struct session *session, const union geonn_message *message)
{
	if (message->status.gauges > 1)
	{
		session_fail_protocol(session, "an unknown kind of status");
		return;
	}
	session->state = SESSION_MEASURING;
	if (!message->status.gauges || !engine_status_measure())
		session_measured(session);
}

void
session_measured(struct session *session)
{
	if (session->state != SESSION_MEASURING)
		return;
	session->state = SESSION_WELCOME;
	if (!engine_status_send(session->socket))
		session_end(session);
}

/*
 * Write the list to a sealed memfd: a list of any length is then of one moment, and goes out in one
 * message, without waiting for its reader.  Returns -1 with errno on failure.
 */
static int
write_list(enum geonn_listing listing, uint64_t *entries)
{
	int			file = memfd_create("geonn list", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	bool		written;
	int			reason;

	if (file < 0)
		return -1;
	*entries = 0;
	errno = ENOSPC;				/* for a short write, which sets no errno */
	written = listing == GEONN_LIST_CALLS ? calls_write(file, entries) :
		calls_write_statistics(file, entries);
	if (written &&
		fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
		return file;
	reason = errno;
	close(file);
	errno = reason;
	return -1;
}

static void
handle_list(struct session *session, const union geonn_message *message)
{
	enum geonn_listing listing = (enum geonn_listing) message->list.listing;
	struct geonn_listed listed = {.since = calls_statistics_since()};
	struct failure failure;
	int			file;

	if (message->list.listing > GEONN_LIST_RESET)
	{
		session_fail_protocol(session, "an unknown list");
		return;
	}
	while ((file = write_list(listing, &listed.entries)) < 0)
	{
		fail(&failure, GEONN_ERROR_MEMORY, "not enough memory for a list");
		fail_reason(&failure, errno);
		if (session_give_up_idle() || datasets_make_room(&failure))
			continue;
		session_fail(session, &failure);
		return;
	}
	datasets_note_descriptor(file);
	if (listing == GEONN_LIST_RESET)
		calls_reset_statistics();
	session_send(session, GEONN_LISTED, &listed, file);
	close(file);
}

/* Handle the message call: the session's first call, or the next one of an idle session. */
static void
handle_call(struct session *session, const union geonn_message *message)
{
	const struct geonn_call *call = &message->call;
	struct failure failure;

	if (session->state == SESSION_IDLE)
		session_resume(session, message);
	if (session->state == SESSION_ENDED)
		return;
	if (session->call != NULL)
	{
		session_fail_protocol(session, "a second call");
		return;
	}
	if (call->pid <= 0 || call->leader < 0 || call->microseconds > BEGUN_MICROSECONDS_MAX ||
		call->expected > INT64_MAX)
	{
		session_fail_protocol(session, "a call without a process, or with values out of range");
		return;
	}
	session->call = calls_join(call);
	if (session->call == NULL)
	{
		fail(&failure, GEONN_ERROR_MEMORY, "not enough memory for a call");
		session_fail(session, &failure);
		return;
	}
	session->pid = call->pid;
	session->leader = call->leader > 0 ? call->leader : call->pid;
	session->role = call->role;
	call_move(session->call, &session->phase, GEONN_PHASE_REFERENCES);
}

static void
handle_finished(struct session *session, const union geonn_message *message)
{
	session_finished(session, message);
	if (message->finished.stays && session->state != SESSION_ENDED)
		session_stay(session, message->finished.slot);
}

static bool
has_batch(const struct session *session)
{
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
		if (session->slots[i].memory != NULL)
			return true;
	return false;
}

/*
 * Let the session join its process's share, unless it already holds the share.  If that fails, end
 * the session.  Returns whether the session holds the share.
 */
static bool
has_share(struct session *session)
{
	struct failure failure;
	struct failure ignored;

	if (session->share != NULL)
		return true;
	session->share = batch_share_join(session->pid, session->role);
	if (session->share == NULL)
	{
		fail(&failure, GEONN_ERROR_MEMORY, "not enough memory for a session");
		session_fail(session, &failure);
		return false;
	}
	while (!batch_share_admits(session->share, true, &failure))
		if (!batch_share_admits(session->share, false, &ignored) || !session_give_up_idle())
		{
			session_fail(session, &failure);
			return false;
		}
	return true;
}

static void
handle_allocate(struct session *session, const union geonn_message *message)
{
	const struct geonn_allocate *allocate = &message->allocate;
	struct geonn_batch batch = {
		.slot = allocate->slot,
		.rows = allocate->rows,
		.room = allocate->room
	};
	struct slot *slot = session_idle_slot(session, allocate->slot);
	struct geonn_batch_columns columns;
	struct failure failure = {0};
	size_t		bytes = geonn_batch_layout(NULL, allocate->rows, allocate->room,
										   session->dataset->columns, &columns);
	bool		others;			/* the session has other batches */

	if (slot == NULL)
		return;
	if (bytes == 0)
	{
		session_fail_protocol(session, "rows or room of a batch out of range");
		return;
	}
	if (!has_share(session))
		return;
	slot_forget_shapes(slot);
	if (slot->memory != NULL)
		batch_memory_release(slot->memory);
	slot->memory = NULL;
	others = has_batch(session);
	while (!others || batch_share_admits(session->share, true, &failure))
	{
		batch.rows = allocate->rows;
		batch.room = allocate->room;
		slot->memory = batch_memory_acquire(&batch.rows, &batch.room, session->dataset->columns,
											session->share, !others, session_give_up_idle,
											&failure);
		if (slot->memory != NULL || failure.code != GEONN_ERROR_MEMORY ||
			(others && failure.reason != EMFILE) ||
			!(session_give_up_idle() || datasets_make_room(&failure)))
			break;
	}
	if (slot->memory == NULL && others)
	{
		/* No memory for another batch: the session works with the batches that it has. */
		batch.rows = 0;
		batch.room = 0;
		call_add(session->call, &(struct geonn_statistics) {.fallbacks = 1});
		session_send(session, GEONN_BATCH, &batch, -1);
		return;
	}
	if (slot->memory == NULL)
	{
		session_fail(session, &failure);
		return;
	}
	geonn_assert(batch.rows <= allocate->rows && batch.room <= allocate->room);
	if (batch.rows < allocate->rows || batch.room < allocate->room)
		call_add(session->call, &(struct geonn_statistics) {.fallbacks = 1});
	datasets_note_descriptor(slot->memory->descriptor);
	geonn_batch_layout(slot->memory->start, batch.rows, batch.room,
					   session->dataset->columns, &slot->columns);
	session_send(session, GEONN_BATCH, &batch, slot->memory->descriptor);
}

static void
handle_return(struct session *session, const union geonn_message *message)
{
	struct slot *slot = session_idle_slot(session, message->give_back.slot);

	if (slot == NULL)
		return;
	if (slot->memory == NULL)
	{
		session_fail_protocol(session, "return of a slot without a batch");
		return;
	}
	slot_forget_shapes(slot);
	batch_memory_release(slot->memory);
	slot->memory = NULL;
}

/* The messages that a session takes, and the states in which it takes them. */
static const struct
{
	int			type;			/* enum geonn_message_type */
	unsigned	states;			/* the states that take the message, one bit, 1 << enum session_state, for each */
	void		(*handle) (struct session *session, const union geonn_message *message);
}			message_handlers[] = {
	{GEONN_HELLO, 1 << SESSION_CONNECTED, handle_hello},
	{GEONN_STATUS, 1 << SESSION_WELCOME, handle_status},
	{GEONN_LIST, 1 << SESSION_WELCOME, handle_list},
	{GEONN_CALL, 1 << SESSION_WELCOME | 1 << SESSION_IDLE, handle_call},
	{GEONN_OPEN, 1 << SESSION_WELCOME, session_open},
	{GEONN_ATTACH, 1 << SESSION_WELCOME, session_attach},
	{GEONN_ALLOCATE, 1 << SESSION_COLLECTING | 1 << SESSION_SEARCHING, handle_allocate},
	{GEONN_RETURN, 1 << SESSION_COLLECTING | 1 << SESSION_SEARCHING | 1 << SESSION_IDLE, handle_return},
	{GEONN_REFERENCES, 1 << SESSION_COLLECTING, session_references},
	{GEONN_LEAVE, 1 << SESSION_COLLECTING, session_leave},
	{GEONN_SEAL, 1 << SESSION_COLLECTING, session_seal},
	{GEONN_SEARCH, 1 << SESSION_SEARCHING, session_search},
	{GEONN_FINISHED, 1 << SESSION_COLLECTING | 1 << SESSION_SEARCHING, handle_finished}
};

static void
handle_message(struct session *session, const union geonn_message *message)
{
	for (size_t i = 0; i < sizeof(message_handlers) / sizeof(message_handlers[0]); i++)
		if (message_handlers[i].type == message->header.type &&
			(message_handlers[i].states & 1u << session->state))
		{
			message_handlers[i].handle(session, message);
			return;
		}
	session_fail_protocol(session, "message out of turn");
}

/* End a session whose message could not be received because memory or descriptors are short. */
static void
fail_receiving(struct session *session)
{
	int			reason = errno;
	struct failure failure;

	fail(&failure, GEONN_ERROR_MEMORY, "the engine could not receive from its client");
	fail_reason(&failure, reason);
	/* The descriptor of this message is lost; free one for the next message. */
	if (!session_give_up_idle())
		(void) datasets_make_room(&failure);
	session_fail(session, &failure);
}

void
session_receive(struct session *session)
{
	/* Receive a bounded number of messages at a time, because other clients wait. */
	for (int i = 0; i < MESSAGES_AT_A_TIME && session->state != SESSION_ENDED &&
		 session->unsent == NULL; i++)
	{
		union geonn_message message;
		enum geonn_channel_status status = geonn_channel_receive(session->socket, &message,
																 &session->received);

		switch (status)
		{
			case GEONN_CHANNEL_OK:
				handle_message(session, &message);
				break;
			case GEONN_CHANNEL_AGAIN:
				return;
			case GEONN_CHANNEL_OTHER_VERSION:
				if (message.header.type == GEONN_HELLO &&
					session->state == SESSION_CONNECTED)
				{
					handle_hello(session, &message);
					break;
				}
				/* fall through */
			case GEONN_CHANNEL_MALFORMED:
				session_fail_protocol(session, "malformed message");
				break;
			case GEONN_CHANNEL_CLOSED:
				session->client_left = true;
				session_take_last_words(session);
				session_end(session);
				break;
			case GEONN_CHANNEL_FAILED:
				fail_receiving(session);
				break;
		}
		if (session->received >= 0)
			close(session->received);	/* no handler has taken the descriptor */
		session->received = -1;
	}
}
