/*
 * session_watch.c
 *		Handles what sessions report for the views of calls, and what these
 *		views ask.
 *
 * The engine writes a list to a memfd of its own and sends that: a consistent
 * state of one moment, however long, in one message that does not wait for its
 * reader.
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

#include "engine/server/datasets.h"

/* the longest time, in microseconds, that a client can have worked before it sends call: a year */
#define BEGUN_MICROSECONDS_MAX (INT64_C(366) * 86400 * 1000000)

void
session_call(struct session *session, const union geonn_message *message)
{
	const struct geonn_call *call = &message->call;
	struct failure failure;

	if (session->call != NULL)
	{
		session_fail_protocol(session, "a second call");
		return;
	}
	if (call->pid <= 0 || call->microseconds > BEGUN_MICROSECONDS_MAX ||
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
	session->role = call->role;
	call_move(session->call, &session->phase, GEONN_PHASE_REFERENCES);
}

/*
 * Write the list to a sealed file; -1 with errno if that fails.
 */
static int
write_list(enum geonn_listing listing, uint64_t *entries)
{
	int			file = memfd_create("geonn list", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	bool		written;
	int			reason;

	if (file < 0)
		return -1;
	errno = ENOSPC;				/* if write sets no errno */
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

void
session_list(struct session *session, const union geonn_message *message)
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
