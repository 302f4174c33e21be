/*
 * session_seal.c
 *		The end of a session's references: their order, and whether they are kept.
 *
 * Sorting a dataset, the one long step that is no device's work, has a thread of
 * its own, which hands the work to the thread pool turn by turn.  Where memory is
 * short for it and a kept dataset can make room, it begins again.
 */
#include "session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "datasets.h"
#include "server.h"
#include "thread_pool.h"

/* a dataset on its way through a sealing thread */
struct sealing
{
	struct session *session;
	bool		done;
	struct failure failure;		/* where not done */
	struct sealing *next;
};

static pthread_mutex_t sealed_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sealing *sealed;	/* guarded by sealed_lock */

static void
finish_seal(struct session *session)
{
	struct geonn_sealed message = {.references = session->dataset->count};

	session->dataset->sealed = true;
	if (session->keep)
		datasets_keep(session->dataset, session->note);
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
	sealing->done = dataset_sort(session->dataset, &session->cancelled, &sealing->failure);

	pthread_mutex_lock(&sealed_lock);
	sealing->next = sealed;
	sealed = sealing;
	pthread_mutex_unlock(&sealed_lock);
	server_wake();
	return NULL;
}

static void
sort_dataset(struct session *session)
{
	struct sealing *sealing = calloc(1, sizeof(*sealing));
	struct failure failure;
	pthread_t	thread;

	if (sealing != NULL)
	{
		sealing->session = session;
		if (pthread_create(&thread, NULL, sealing_main, sealing) == 0)
		{
			pthread_detach(thread);
			session->state = SESSION_SEALING;
			session->under_way++;
			call_move(session->call, &session->phase, GEONN_PHASE_SORTING);
			return;
		}
		free(sealing);
	}
	fail(&failure, GEONN_ERROR_MEMORY, "not enough memory to sort the references");
	session_fail(session, &failure);
}

void
session_seal(struct session *session, const union geonn_message *message)
{
	const struct geonn_seal *seal = &message->seal;

	if (seal->keep && !session->dataset->labelled)
	{
		session_fail_protocol(session, "nothing to keep a dataset by");
		return;
	}
	session->keep = seal->keep;
	memcpy(session->note, seal->note, sizeof(session->note));
	if (seal->order_by_tag)
		sort_dataset(session);
	else
		finish_seal(session);
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
		struct session *session = sealing->session;

		list = sealing->next;
		session->under_way--;
		if (session->state == SESSION_SEALING)
		{
			if (sealing->done)
				finish_seal(session);
			else if (sealing->failure.code == GEONN_ERROR_MEMORY && datasets_make_room())
				sort_dataset(session);
			else
				session_fail(session, &sealing->failure);
		}
		free(sealing);
	}
}
