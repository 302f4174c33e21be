/*
 * session_receive.c
 *		Receives clients' messages and passes each to the function that handles
 *		it.
 *
 * The table below says which messages a session takes in which of its states.
 * The handlers here are those for greetings, the status and batches;
 * references are copied from their batch at once.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/server/session.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "engine/server/datasets.h"
#include "engine/server/engine_status.h"

#define MESSAGES_AT_A_TIME 64

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
	struct geonn_welcome welcome = {.release = GEONN_VERSION};

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
 * Handle the call that a session works for: its first one, or the next one of an idle
 * session.
 */
static void
handle_call(struct session *session, const union geonn_message *message)
{
	if (session->state == SESSION_IDLE)
		session_resume(session, message);
	if (session->state == SESSION_WELCOME)
		session_call(session, message);
}

/*
 * Handle the end of the client's part of its call.
 */
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
 * Let the session join its process's share, unless it holds the share already.
 * If it cannot, end the session.  Returns whether it holds the share.
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
		/* the session can work with the batches that it has */
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
	if (batch.rows < allocate->rows || batch.room < allocate->room)
		call_add(session->call, &(struct geonn_statistics) {.fallbacks = 1});
	datasets_note_descriptor(slot->memory->descriptor);
	geonn_batch_layout(slot->memory->start, batch.rows, batch.room,
					   session->dataset->columns, &slot->columns);
	session_send(session, GEONN_BATCH, &batch, slot->memory->descriptor);
}

/*
 * Handle the return of a batch that the client has unmapped and will not use
 * again.
 */
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
	batch_memory_release(slot->memory);
	slot->memory = NULL;
}

static void
handle_references(struct session *session, const union geonn_message *message)
{
	const struct geonn_references *references = &message->references;
	struct geonn_released released = {.slot = references->slot};
	struct slot *slot = session_filled_slot(session, references->slot, references->rows);
	struct failure failure;
	bool		appended;

	if (slot == NULL)
		return;
	do
		appended = dataset_append(session->dataset, &slot->columns, references->rows, &failure);
	while (!appended && failure.code == GEONN_ERROR_MEMORY && datasets_make_room(&failure));
	if (!appended)
	{
		session_fail(session, &failure);
		return;
	}
	call_add(session->call, &(struct geonn_statistics) {
		.references = references->rows,
		.bytes = references->rows * dataset_row_bytes(session->dataset)
	});
	session_send(session, GEONN_RELEASED, &released, -1);
}

/*
 * Handle a file that stays with the dataset.
 */
static void
handle_leave(struct session *session, const union geonn_message *message)
{
	uint32_t	kind = message->leave.kind;
	uint64_t	bytes;

	if (kind >= GEONN_FILE_KINDS || session->dataset->files[kind] >= 0)
		session_fail_protocol(session, "a file of an unknown kind, or a second one of its kind");
	else if (session->received < 0 || !geonn_file_is_sealed(session->received, &bytes))
		session_fail_protocol(session, "a file that is not sealed");
	else if (bytes > GEONN_FILE_BYTES_MAX)
		session_fail_protocol(session, "a file with too many bytes");
	else
	{
		datasets_note_descriptor(session->received);
		session->dataset->files[kind] = session->received;
		session->dataset->file_bytes[kind] = bytes;
		session->received = -1;
	}
}

/*
 * The messages that a session takes, and in which states it takes them.
 */
static const struct
{
	int			type;			/* enum geonn_message_type */
	unsigned	states;			/* a bit, 1 << enum session_state, for each of the states */
	void		(*handle) (struct session *session, const union geonn_message *message);
}			message_handlers[] = {
	{GEONN_HELLO, 1 << SESSION_CONNECTED, handle_hello},
	{GEONN_STATUS, 1 << SESSION_WELCOME, handle_status},
	{GEONN_LIST, 1 << SESSION_WELCOME, session_list},
	{GEONN_CALL, 1 << SESSION_WELCOME | 1 << SESSION_IDLE, handle_call},
	{GEONN_OPEN, 1 << SESSION_WELCOME, session_open},
	{GEONN_ATTACH, 1 << SESSION_WELCOME, session_attach},
	{GEONN_ALLOCATE, 1 << SESSION_COLLECTING | 1 << SESSION_SEARCHING, handle_allocate},
	{GEONN_RETURN, 1 << SESSION_COLLECTING | 1 << SESSION_SEARCHING | 1 << SESSION_IDLE, handle_return},
	{GEONN_REFERENCES, 1 << SESSION_COLLECTING, handle_references},
	{GEONN_LEAVE, 1 << SESSION_COLLECTING, handle_leave},
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

/*
 * End a session whose message could not be received, as memory or descriptors
 * are short.
 */
static void
fail_receiving(struct session *session)
{
	int			reason = errno;
	struct failure failure;

	fail(&failure, GEONN_ERROR_MEMORY, "the engine could not receive from its client");
	fail_reason(&failure, reason);
	/* this descriptor is lost; free one for the next message */
	if (!session_give_up_idle())
		(void) datasets_make_room(&failure);
	session_fail(session, &failure);
}

/*
 * Close a descriptor that came with a message, if no handler took it.
 */
static void
close_received(struct session *session)
{
	if (session->received >= 0)
		close(session->received);
	session->received = -1;
}

void
session_receive(struct session *session)
{
	/* a bounded number of messages at a time: other clients wait, too */
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
		close_received(session);
	}
}
