/*
 * session_seal.c
 *		Seals a session's dataset, and sorts its references before.
 *
 * A sealing thread sorts the dataset, if the session asked for that, and hands
 * the work to the thread pool turn by turn.  If memory is short for the sort,
 * and a kept dataset can make room, the sort begins again.
 */
#include "engine/server/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/thread_pool.h"
#include "engine/server/datasets.h"
#include "engine/server/event_loop.h"

/* a session's dataset while it is sorted */
struct sealing
{
	struct session *session;
	bool		sorted;
	struct failure failure;		/* why the dataset could not be sorted */
	struct sealing *next;
};

static pthread_mutex_t sealed_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sealing *sealed;	/* guarded by sealed_lock */

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
sealing_main(void *argument)
{
	struct sealing *sealing = argument;
	struct session *session = sealing->session;

	thread_pool_lower_priority();
	sealing->sorted = dataset_sort(session->dataset, &session->cancelled, &sealing->failure);
	pthread_mutex_lock(&sealed_lock);
	sealing->next = sealed;
	sealed = sealing;
	pthread_mutex_unlock(&sealed_lock);
	event_loop_wake();
	return NULL;
}

/*
 * Begin to sort the session's references, on a thread of their own.
 */
static void
begin_sort(struct session *session)
{
	struct sealing *sealing = calloc(1, sizeof(*sealing));
	struct failure failure;
	pthread_t	thread;
	int			reason = ENOMEM;

	if (sealing != NULL)
	{
		sealing->session = session;
		reason = pthread_create(&thread, NULL, sealing_main, sealing);
	}
	if (reason != 0)
	{
		free(sealing);
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
end_sort(struct session *session, const struct sealing *sealing)
{
	session->under_way--;
	if (session->state != SESSION_SEALING)
		return;					/* its client has left */
	if (sealing->sorted)
		finish_seal(session);
	else if (sealing->failure.code == GEONN_ERROR_MEMORY &&
			 datasets_make_room(&sealing->failure))
		begin_sort(session);
	else
		session_fail(session, &sealing->failure);
}

void
session_collect_sealed(void)
{
	struct sealing *list;

	pthread_mutex_lock(&sealed_lock);
	list = sealed;
	sealed = NULL;
	pthread_mutex_unlock(&sealed_lock);

	while (list != NULL)
	{
		struct sealing *sealing = list;

		list = sealing->next;
		end_sort(sealing->session, sealing);
		free(sealing);
	}
}
