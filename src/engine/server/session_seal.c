/*
 * session_seal.c
 *		Seals a session's dataset, and sorts its references before.
 *
 * A sealing thread sorts the dataset, if the session asked for that, and hands
 * the work to the thread pool turn by turn.  If memory is short for the sort,
 * and a kept dataset can make room, the sort begins again.
 */
#include "engine/server/session.h"

#include <pthread.h>
#include <string.h>

#include "engine/base/thread_pool.h"
#include "engine/server/datasets.h"
#include "engine/server/event_loop.h"

static atomic_int ended_sorts;	/* how many sorts have ended and are not collected */

static void
finish_seal(struct session *session)
{
	struct dataset *dataset = session->dataset;
	struct geonn_sealed message = {.references = dataset->count};

	dataset->sealed = true;
	if (dataset->labelled)
		datasets_keep(dataset);
	session->state = SESSION_SEARCHING;
	call_move(session->call, &session->phase, GEONN_PHASE_OBSERVATIONS);
	session_send(session, GEONN_SEALED, &message, -1);
}

static void *
sort_main(void *argument)
{
	struct session *session = argument;

	thread_pool_lower_priority();
	session->sorted = dataset_sort(session->dataset, &session->cancelled, &session->sort_failure);
	atomic_store(&session->sort_ended, true);
	atomic_fetch_add(&ended_sorts, 1);
	event_loop_wake();
	return NULL;
}

/*
 * Begin to sort the session's references, on a thread of their own.
 */
static void
begin_sort(struct session *session)
{
	struct failure failure;
	pthread_t	thread;
	int			reason = pthread_create(&thread, NULL, sort_main, session);

	if (reason != 0)
	{
		fail(&failure, GEONN_ERROR_MEMORY, "could not create a thread to sort the references");
		fail_reason(&failure, reason);
		session_fail(session, &failure);
		return;
	}
	pthread_detach(thread);
	session->state = SESSION_SEALING;
	session->under_way++;
	call_move(session->call, &session->phase, GEONN_PHASE_SORTING);
}

void
session_seal(struct session *session, const union geonn_message *message)
{
	const struct geonn_seal *seal = &message->seal;
	struct dataset *dataset = session->dataset;

	if (seal->keep && !dataset->labelled)
	{
		session_fail_protocol(session, "a dataset to keep that has no label");
		return;
	}
	dataset->labelled = seal->keep;
	memcpy(dataset->note, seal->note, sizeof(dataset->note));
	dataset_fit(dataset);
	if (seal->order_by_tag)
		begin_sort(session);
	else
		finish_seal(session);
}

static void
end_sort(struct session *session)
{
	session->under_way--;
	if (session->state != SESSION_SEALING)
		return;					/* its client has left */
	if (session->sorted)
		finish_seal(session);
	else if (session->sort_failure.code == GEONN_ERROR_MEMORY &&
			 datasets_make_room(&session->sort_failure))
		begin_sort(session);
	else
		session_fail(session, &session->sort_failure);
}

void
session_collect_sealed(void)
{
	if (atomic_exchange(&ended_sorts, 0) == 0)
		return;
	for (struct session *session = session_first(); session != NULL; session = session->next)
		if (atomic_exchange(&session->sort_ended, false))
			end_sort(session);
}
