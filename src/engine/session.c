/*
 * session.c
 *		One client's connection: its dataset and its ring of batches.
 *
 * A session is a state machine driven by protocol.h's messages.  A message
 * that does not fit the state, a slot out of range or busy, more rows than its
 * batch has: each ends the session with an error, and costs nobody else
 * anything.
 *
 * Everything here runs on the server's thread and never waits.  References are
 * copied from their batch at once; session_open.c has the dataset opened, and
 * session_seal.c sealed.  Searches go to the scheduler.
 *
 * When the client's end of the socket closes, because it is done or because
 * its statement was cancelled or its process died, the session ends: it drops
 * its waiting searches and sets cancelled for those that devices are at work
 * on and for the sort of its dataset.  Its batches and its dataset are given back
 * when the last of these has come back.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "datasets.h"
#include "log.h"
#include "server.h"

#define MESSAGES_AT_A_TIME 64

/* up to so many references, brute force is what auto means: an index of them
 * would not save more than it costs */
#define BRUTE_REFERENCES 64

struct session *
session_create(int socket)
{
	struct session *session = calloc(1, sizeof(*session));

	if (session == NULL)
		return NULL;
	session->socket = socket;
	session->state = SESSION_CONNECTED;
	session->received = -1;
	atomic_init(&session->cancelled, false);
	return session;
}

bool
session_is_open(const struct session *session)
{
	return session->state != SESSION_ENDED && session->dataset != NULL;
}

/*
 * A client that does not read what it asked for is not worth waiting for.
 */
void
session_send(struct session *session, int type, void *message, int descriptor)
{
	enum geonn_channel_status status;

	if (session->state == SESSION_ENDED)
		return;
	status = geonn_channel_send(session->socket, type, message, descriptor);
	if (status == GEONN_CHANNEL_CLOSED)
		session_take_last_words(session);
	else if (status != GEONN_CHANNEL_OK)
		log_line(LOG_WARNING, "could not send to a client, its session ends: %s",
				 status == GEONN_CHANNEL_AGAIN ? "it does not read" : strerror(errno));
	if (status != GEONN_CHANNEL_OK)
		session_end(session);
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
	session_send(session, GEONN_ERROR, &error, -1);
	session_end(session);
}

void
session_fail_protocol(struct session *session, const char *what)
{
	struct failure failure;

	fail(&failure, GEONN_ERROR_PROTOCOL, "the engine did not expect this: %s", what);
	session_fail(session, &failure);
}

void
session_end(struct session *session)
{
	if (session->state == SESSION_ENDED)
		return;
	session->state = SESSION_ENDED;
	server_unwatch(session->socket);
	close(session->socket);
	session->socket = -1;
	atomic_store(&session->cancelled, true);
	call_move(session->call, &session->phase, GEONN_PHASE_OBSERVATIONS);
	call_leave(session->call, session->has_finished ? &session->finished : NULL);
	admission_leave(&session->admission);
	scheduler_drop(&session->queue);
	server_wake();
}

bool
session_free_if_idle(struct session *session)
{
	if (session->state != SESSION_ENDED || session->under_way > 0)
		return false;
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
		if (session->slots[i].memory != NULL)
		{
			/* a client that was sent away may still write to what it maps */
			if (session->client_left)
				batch_memory_release(session->slots[i].memory);
			else
				batch_memory_destroy(session->slots[i].memory);
		}
	batch_share_leave(session->share);
	if (session->dataset != NULL)
		datasets_release(session->dataset);
	call_release(session->call);
	free(session);
	return true;
}

/*
 * The slot of this number if it exists and is idle, else NULL and the session
 * has ended.
 */
static struct slot *
idle_slot(struct session *session, uint32_t number)
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

/* the same for a slot that has a batch with at least these rows */
static struct slot *
filled_slot(struct session *session, uint32_t number, uint32_t rows)
{
	struct slot *slot = idle_slot(session, number);

	if (slot == NULL)
		return NULL;
	if (slot->memory == NULL || rows < 1 || rows > slot->columns.rows)
	{
		session_fail_protocol(session, "more rows than the batch has");
		return NULL;
	}
	return slot;
}

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
		session_fail_protocol(session, "a status of nothing known");
		return;
	}
	session->state = SESSION_MEASURING;
	if (!message->status.gauges || !server_measure())
		session_measured(session);
}

void
session_measured(struct session *session)
{
	if (session->state != SESSION_MEASURING)
		return;
	session->state = SESSION_WELCOME;
	if (!server_send_status(session->socket))
		session_end(session);
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
 * Have the session take part in its process's share; else it has ended.
 */
static bool
has_share(struct session *session)
{
	struct failure failure;

	if (session->share != NULL)
		return true;
	session->share = session->call != NULL ?
		batch_share_join(call_pid(session->call), call_role(session->call)) :
		batch_share_join(0, 0);
	if (session->share == NULL)
		fail(&failure, GEONN_ERROR_MEMORY, "not enough memory for a session");
	else if (batch_share_admits(session->share, &failure))
		return true;
	session_fail(session, &failure);
	return false;
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
	struct slot *slot = idle_slot(session, allocate->slot);
	struct geonn_batch_columns columns;
	struct failure failure = {0};
	bool		others;			/* the session has other batches */

	if (slot == NULL)
		return;
	if (geonn_batch_layout(NULL, allocate->rows, allocate->room,
						   session->dataset->columns, &columns) == 0)
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
	while (!others || batch_share_admits(session->share, &failure))
	{
		batch.rows = allocate->rows;
		batch.room = allocate->room;
		slot->memory = batch_memory_acquire(&batch.rows, &batch.room, session->dataset->columns,
											session->share, !others, &failure);
		if (slot->memory != NULL || failure.code != GEONN_ERROR_MEMORY ||
			(others && failure.reason != EMFILE) || !datasets_make_room(&failure))
			break;
	}
	if (slot->memory == NULL && others)
	{
		/* it can do its work with those that it has */
		batch.rows = 0;
		batch.room = 0;
		call_fall_back(session->call);
		session_send(session, GEONN_BATCH, &batch, -1);
		return;
	}
	if (slot->memory == NULL)
	{
		session_fail(session, &failure);
		return;
	}
	if (batch.rows < allocate->rows || batch.room < allocate->room)
		call_fall_back(session->call);
	datasets_note_descriptor(slot->memory->descriptor);
	geonn_batch_layout(slot->memory->start, batch.rows, batch.room,
					   session->dataset->columns, &slot->columns);
	session_send(session, GEONN_BATCH, &batch, slot->memory->descriptor);
}

/*
 * The client has unmapped a batch that it will not use again.
 */
static void
handle_return(struct session *session, const union geonn_message *message)
{
	struct slot *slot = idle_slot(session, message->give_back.slot);

	if (slot == NULL)
		return;
	if (slot->memory == NULL)
	{
		session_fail_protocol(session, "a slot that has no batch to return");
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
	struct slot *slot = filled_slot(session, references->slot, references->rows);
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
	call_add_references(session->call, references->rows,
						references->rows * dataset_row_bytes(session->dataset));
	session_send(session, GEONN_RELEASED, &released, -1);
}

/*
 * A file that stays with the dataset.
 */
static void
handle_leave(struct session *session, const union geonn_message *message)
{
	uint32_t	kind = message->leave.kind;
	uint64_t	bytes;

	if (kind >= GEONN_FILE_KINDS || session->dataset->files[kind] >= 0)
		session_fail_protocol(session, "a file of no kind, or one too many");
	else if (session->received < 0 || !geonn_file_is_sealed(session->received, &bytes))
		session_fail_protocol(session, "a file that is not sealed");
	else if (bytes > GEONN_FILE_BYTES_MAX)
		session_fail_protocol(session, "a file with more bytes than there can be");
	else
	{
		datasets_note_descriptor(session->received);
		session->dataset->files[kind] = session->received;
		session->dataset->file_bytes[kind] = bytes;
		session->received = -1;
	}
}

static void
send_results(struct session *session, const struct search *search)
{
	struct geonn_results results = {
		.slot = search->slot,
		.first = search->first,
		.observations = search->answered,
		.pairs = search->pairs,
		.flags = (search->one_each ? GEONN_RESULTS_ONE_EACH : 0) |
		(search->cutoff.present ? GEONN_RESULTS_PARTIAL : 0),
		.device = search->device,
		.algorithm = search->question.algorithm,
		.build_microseconds = search->build_microseconds
	};
	uint64_t	counts = search->one_each ? 0 : search->answered + search->cutoff.present;

	call_add_answers(session->call, search->answered,
					 search->pairs * (sizeof(int64_t) + sizeof(double)) +
					 counts * sizeof(uint32_t));
	session_send(session, GEONN_RESULTS, &results, -1);
}

static struct question
question_of(const struct session *session, const struct geonn_search *request)
{
	struct question question = {
		.neighbours = request->neighbours,
		.ties = (request->flags & GEONN_SEARCH_TIES) != 0,
		.algorithm = (enum geonn_algorithm) request->algorithm,
		.max_distance = request->max_distance
	};

	if (question.algorithm == GEONN_ALGORITHM_AUTO)
		question.algorithm = session->dataset->count <= BRUTE_REFERENCES ?
			GEONN_ALGORITHM_BRUTE : GEONN_ALGORITHM_INDEX;
	return question;
}

/* of an observation in a batch */
static uint64_t
observation_bytes(const struct dataset *dataset)
{
	return dataset_row_bytes(dataset) - sizeof(int64_t);	/* a reference has a tag */
}

static bool
is_same_question(const struct question *a, const struct question *b)
{
	return a->neighbours == b->neighbours && a->ties == b->ties &&
		a->algorithm == b->algorithm && a->max_distance == b->max_distance;
}

/*
 * Is this something that can be asked?  Else the session has ended.
 */
static bool
check_question(struct session *session, const struct geonn_search *request,
			   const struct question *question)
{
	const struct search *last = &session->slots[request->slot].search;

	if (request->first >= request->rows)
		session_fail_protocol(session, "search begins past its rows");
	else if (request->neighbours > GEONN_NEIGHBOURS_MAX)
		session_fail_protocol(session, "more neighbours than there may be");
	else if (!(request->max_distance >= 0))
		session_fail_protocol(session, "a negative distance, or none");
	else if (request->algorithm > GEONN_ALGORITHM_BRUTE ||
			 request->flags & ~(GEONN_SEARCH_TIES | GEONN_SEARCH_RESUME))
		session_fail_protocol(session, "unknown algorithm or flags");
	else if (request->flags & GEONN_SEARCH_RESUME &&
			 !(last->cutoff.present && last->first == request->first &&
			   is_same_question(question, &last->question)))
		session_fail_protocol(session, "nothing to resume");
	else
		return true;
	return false;
}

static void
handle_search(struct session *session, const union geonn_message *message)
{
	const struct geonn_search *request = &message->search;
	struct slot *slot = filled_slot(session, request->slot, request->rows);
	struct search *search;
	struct cutoff cutoff = {0};
	double		pairs_each = 0.0;
	struct question question = question_of(session, request);

	if (slot == NULL || !check_question(session, request, &question))
		return;
	search = &slot->search;
	if (request->flags & GEONN_SEARCH_RESUME)
		cutoff = search->cutoff;
	if (is_same_question(&question, &search->question))
		pairs_each = search->answered > 0 ? (double) search->pairs / search->answered :
			search->pairs_each;
	memset(search, 0, sizeof(*search));
	search->session = session;
	search->slot = request->slot;
	search->dataset = session->dataset;
	search->choice = session->choice;
	search->question = question;
	search->columns = slot->columns;
	search->first = request->first;
	search->rows = request->rows;
	search->cutoff = slot->cutoff = cutoff;
	search->pairs_each = pairs_each;
	search->cancelled = &session->cancelled;
	search->call = session->call;
	if (request->first == 0 && !(request->flags & GEONN_SEARCH_RESUME))
		call_add_batch(session->call, search->rows * observation_bytes(session->dataset));

	if (session->dataset->count == 0)
	{
		/* nobody has a neighbour, and devices know no empty datasets */
		search->answered = search->rows - search->first;
		memset(slot->columns.count + search->first, 0,
			   search->answered * sizeof(*slot->columns.count));
		send_results(session, search);
		return;
	}
	slot->busy = true;
	session->under_way++;
	scheduler_submit(&session->queue, search);
}

/*
 * A search for which memory was short, on the host or on a GPU: try again, if
 * there is a kept dataset that can make room for it.  A device lets go of that
 * before it takes the search.
 */
static bool
search_again(struct session *session, struct search *search)
{
	if ((search->failure.code != GEONN_ERROR_MEMORY &&
		 search->failure.code != GEONN_ERROR_LIMIT) ||
		!(datasets_make_room(&search->failure) ||
		  (!search->wants_memory && scheduler_is_discarding())))
		return false;
	search->wants_memory = true;
	search->answered = 0;
	search->pairs = 0;
	search->one_each = false;
	search->begun = 0;
	search->cutoff = session->slots[search->slot].cutoff;
	search->failed = false;
	call_fall_back(session->call);
	scheduler_submit(&session->queue, search);
	return true;
}

void
session_search_finished(struct search *search)
{
	struct session *session = search->session;

	if (search->failed && session->state != SESSION_ENDED && search_again(session, search))
		return;
	session->slots[search->slot].busy = false;
	session->under_way--;
	datasets_account(search->dataset);
	call_move(session->call, &search->phase, GEONN_PHASE_OBSERVATIONS);
	if (session->state == SESSION_ENDED)
		return;
	if (search->failed)
	{
		session_fail(session, &search->failure);
		return;
	}
	if (scheduler_fell_back(search))
		call_fall_back(session->call);
	send_results(session, search);
}

/*
 * Which messages a session takes in which states.
 */
static const struct
{
	int			type;			/* enum geonn_message_type */
	unsigned	states;			/* bits 1 << enum session_state */
	void		(*handle) (struct session *session, const union geonn_message *message);
}			message_handlers[] = {
	{GEONN_HELLO, 1 << SESSION_CONNECTED, handle_hello},
	{GEONN_STATUS, 1 << SESSION_WELCOME, handle_status},
	{GEONN_LIST, 1 << SESSION_WELCOME, session_list},
	{GEONN_CALL, 1 << SESSION_WELCOME, session_call},
	{GEONN_OPEN, 1 << SESSION_WELCOME, session_open},
	{GEONN_URGE, 1 << SESSION_QUEUED | 1 << SESSION_COLLECTING | 1 << SESSION_SEARCHING, session_urge},
	{GEONN_ATTACH, 1 << SESSION_WELCOME, session_attach},
	{GEONN_ALLOCATE, 1 << SESSION_COLLECTING | 1 << SESSION_SEARCHING, handle_allocate},
	{GEONN_RETURN, 1 << SESSION_COLLECTING | 1 << SESSION_SEARCHING, handle_return},
	{GEONN_REFERENCES, 1 << SESSION_COLLECTING, handle_references},
	{GEONN_LEAVE, 1 << SESSION_COLLECTING, handle_leave},
	{GEONN_SEAL, 1 << SESSION_COLLECTING, session_seal},
	{GEONN_SEARCH, 1 << SESSION_SEARCHING, handle_search},
	{GEONN_FINISHED, 1 << SESSION_COLLECTING | 1 << SESSION_SEARCHING, session_finished}
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
 * What the client sent could not be taken, for want of memory or descriptors.
 */
static void
fail_receiving(struct session *session)
{
	int			reason = errno;
	struct failure failure;

	fail(&failure, GEONN_ERROR_MEMORY, "the engine could not receive from its client");
	fail_reason(&failure, reason);
	(void) datasets_make_room(&failure);	/* for the next one: this descriptor is lost */
	session_fail(session, &failure);
}

/*
 * A descriptor that nobody has taken is nobody's.
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
	/* a bounded number at a time: other clients wait, too */
	for (int i = 0; i < MESSAGES_AT_A_TIME && session->state != SESSION_ENDED; i++)
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
