/*
 * idle_session.c
 *		The session that this process keeps for its next call.
 *
 * To connect to the engine and map a batch takes longer than a small search.  So a client that
 * ends as it should leaves its connection, and one small batch, to the next client of this
 * process; the engine knows the session as idle meanwhile (engine/server/session_idle.c).  At
 * most one session is kept: of two joins of a statement, the first that ends leaves its own.
 *
 * A client is at the end of its rows before it ends, and a cursor may stay so for hours.  So
 * one client of the process at most holds a batch back then, the last one that came to its
 * end; of all others the engine has the batches.
 *
 * What could be in doubt is not kept: a session whose search goes on, as where a cursor is
 * closed early or a LIMIT is reached, and any that ends with an error or a cancellation, since
 * then no client ends as it should.  A parallel worker keeps none, as it has no next call.
 *
 * The next client says to the engine all that a first one says: for which role it works and what
 * it asks.  So the current role may be another one than before.  But the engine divides memory
 * and sessions among the roles that have logged in, and keeps a session for one of these.
 *
 * The engine ends idle sessions when their time is over, and when it needs what they have; or
 * it has ended itself.  Nothing tells this process until it asks again.  So a client that goes
 * on with a kept session touches the batch only after the engine has answered, and, if the
 * connection is found closed instead, connects as if none had been kept (client.c).
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "access/parallel.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"

#include "client/idle_session.h"
#include "base/settings.h"

/* A batch with more bytes is given back at the end of the call: beside a large search, asking for a batch takes no time. */
#define BATCH_BYTES_MOST	(1024 * 1024)

static struct
{
	int			socket;			/* -1: no session is kept */
	pid_t		engine_pid;
	Oid			role;			/* the session_user at that time */

	/* the batch; NULL: none */
	void	   *start;
	size_t		bytes;
	uint32		slot;
	uint32		rows;
	uint32		room;
}			kept = {
	.socket = -1
};

/* The client that holds back the batch of this slot for the session that it will leave; NULL: none. */
static struct
{
	GeonnClient *client;
	int			slot;
}			held;

static void
discard(void)
{
	if (kept.socket < 0)
		return;
	if (kept.start != NULL)
		munmap(kept.start, kept.bytes);
	close(kept.socket);
	kept.start = NULL;
	kept.socket = -1;
	ReleaseExternalFD();
}

static bool
may_keep(void)
{
	return geonn_idle_session_timeout > 0 && !IsParallelWorker() && kept.socket < 0;
}

static bool
is_small(const Slot *slot)
{
	return slot->start != NULL && slot->bytes <= BATCH_BYTES_MOST;
}

static void
hold_for(GeonnClient *client, int number)
{
	if (held.client != NULL && held.client != client)
		geonn_client_return_batch(held.client, held.slot);
	held.client = client;
	held.slot = number;
}

bool
geonn_idle_session_hold(GeonnClient *client, int number)
{
	Slot	   *slot = &client->slots[number];

	if (held.client == client)
		return held.slot == number;
	if (slot->state != SLOT_IDLE || !may_keep() || !is_small(slot))
		return false;
	hold_for(client, number);
	if (slot->ids != NULL)
		MemoryContextReset(slot->ids);
	return true;
}

void
geonn_idle_session_let_go(const GeonnClient *client)
{
	if (held.client == client)
		held.client = NULL;
}

/* Return whether the session is in a state in which it can take another question. */
static bool
is_done(const GeonnClient *client)
{
	return client->sealed && client->searching == 0 && client->awaited == 0 &&
		client->files_awaited == 0;
}

static void
keep_batch(GeonnClient *client, uint32 number)
{
	Slot	   *slot = &client->slots[number];

	Assert(kept.socket >= 0 && kept.start == NULL);
	Assert(is_small(slot));
	kept.start = slot->start;
	kept.bytes = slot->bytes;
	kept.slot = number;
	kept.rows = slot->columns.rows;
	kept.room = slot->columns.room;
	slot->start = NULL;
	held.client = NULL;
}

void
geonn_idle_session_keep(GeonnClient *client, struct geonn_finished *finished)
{
	GeonnConnection *connection = client->connection;
	bool		keeps = may_keep() && is_done(client);

	finished->stays = keeps ? 1 : 0;
	finished->slot = GEONN_RING_SLOTS;
	for (int i = 0; keeps && i < GEONN_RING_SLOTS; i++)
	{
		if (finished->slot == GEONN_RING_SLOTS && is_small(&client->slots[i]))
			finished->slot = i;
		else
			geonn_client_unmap_batch(client, i);
	}
	if (!geonn_connection_try_send(connection, GEONN_FINISHED, finished) || !keeps)
		return;
	kept.socket = geonn_connection_give_away(connection);
	kept.engine_pid = connection->engine_pid;
	kept.role = GetSessionUserId();
	if (finished->slot == GEONN_RING_SLOTS)
		return;
	hold_for(client, finished->slot);
	keep_batch(client, finished->slot);
}

bool
geonn_idle_session_take(GeonnClient *client)
{
	struct geonn_return message = {.slot = kept.slot};
	void	   *start = kept.start;

	if (kept.socket >= 0 && kept.role != GetSessionUserId())
		discard();
	if (kept.socket < 0)
		return false;
	Assert(!IsParallelWorker());
	client->connection = geonn_connection_adopt(kept.socket, kept.engine_pid);
	kept.socket = -1;
	kept.start = NULL;
	if (start != NULL &&
		!geonn_client_use_batch(client, kept.slot, start, kept.bytes, kept.rows, kept.room))
	{
		munmap(start, kept.bytes);
		/* If the message does not reach the engine, the engine has ended the session. */
		(void) geonn_connection_try_send(client->connection, GEONN_RETURN, &message);
	}
	return true;
}
