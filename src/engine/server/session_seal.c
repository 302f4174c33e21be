/*
 * session_seal.c
 *		Seals a session's dataset: sorts its references, and looks for the same
 *		dataset among the kept ones.
 *
 * Sealing takes two steps, each on a sealing thread of its own, which hands
 * the work to the thread pool turn by turn; for few references the server's
 * thread does the work itself, faster than it could start a thread.  In the
 * first step the thread sorts the dataset, if the session asked for that, and
 * computes its hash, if the dataset could be kept.  If memory is short for the
 * sort, and a kept dataset can make room, the step begins again.  Then the
 * server's thread looks for a kept dataset that is alike.  In the second step
 * a thread compares the two.  If they are the same, the session uses the kept
 * one from then on, under the new one's label, if that has one, and the new
 * one is freed.
 *
 * The session holds the dataset that it compares with, so that this stays even
 * if it is not kept any more.  When several sessions send the same references
 * at the same time, each looks for a kept dataset once it has its own hash,
 * and finds the dataset of the session that was first.
 */
#include "engine/server/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/thread_pool.h"
#include "engine/server/datasets.h"
#include "engine/server/event_loop.h"

/* a session's dataset in one step of sealing */
struct sealing
{
	struct session *session;
	bool		sorts;
	bool		hashes;
	struct dataset *alike;		/* held; the dataset to compare with, or NULL in the first step */
	bool		done;			/* the step succeeded; in the second step, both are the same */
	struct failure failure;		/* if not done */
	struct sealing *next;
};

static pthread_mutex_t sealed_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sealing *sealed;	/* guarded by sealed_lock */

static void end_step(struct session *session, const struct sealing *sealing);

static void
finish_seal(struct session *session, bool recognised)
{
	struct geonn_sealed message = {
		.references = session->dataset->count,
		.dataset = session->dataset->id,
		.recognised = recognised
	};

	session->dataset->sealed = true;
	datasets_keep(session->dataset);
	session->state = SESSION_SEARCHING;
	call_move(session->call, &session->phase, GEONN_PHASE_OBSERVATIONS);
	session_send(session, GEONN_SEALED, &message, -1);
}

/*
 * Give the session the kept dataset that is the same, in place of its own.
 */
static void
replace_dataset(struct session *session, struct dataset *same)
{
	struct dataset *dataset = session->dataset;

	datasets_take_label(same, dataset);
	session->dataset = same;
	datasets_release(dataset);
}

static void
do_step(struct sealing *sealing)
{
	struct session *session = sealing->session;

	if (sealing->alike != NULL)
		sealing->done = dataset_is_same(session->dataset, sealing->alike, &session->cancelled);
	else
		sealing->done = !sealing->sorts ||
			dataset_sort(session->dataset, &session->cancelled, &sealing->failure);
	if (sealing->done && sealing->hashes)
		(void) dataset_hash(session->dataset, &session->cancelled);
}

static void *
sealing_main(void *argument)
{
	struct sealing *sealing = argument;

	thread_pool_lower_priority();
	do_step(sealing);
	pthread_mutex_lock(&sealed_lock);
	sealing->next = sealed;
	sealed = sealing;
	pthread_mutex_unlock(&sealed_lock);
	event_loop_wake();
	return NULL;
}

/*
 * Begin a step.  False with errno if no thread can be created.
 */
static bool
begin_step(struct session *session, const struct sealing *wanted)
{
	struct sealing step = *wanted;
	struct sealing *sealing;
	pthread_t	thread;
	int			reason;

	step.session = session;
	if (!step.sorts && dataset_bytes(session->dataset) <= DATASET_SMALL_BYTES)
	{
		do_step(&step);
		end_step(session, &step);
		return true;
	}
	sealing = malloc(sizeof(*sealing));
	if (sealing == NULL)
		return false;
	*sealing = step;
	reason = pthread_create(&thread, NULL, sealing_main, sealing);
	if (reason != 0)
	{
		free(sealing);
		errno = reason;
		return false;
	}
	pthread_detach(thread);
	session->state = SESSION_SEALING;
	session->under_way++;
	call_move(session->call, &session->phase, GEONN_PHASE_SORTING);
	return true;
}

/*
 * Begin the first step.  Without a thread the hash is left out, and only a
 * sort makes the session fail.
 */
static void
prepare_dataset(struct session *session, bool sorts)
{
	const struct sealing first = {
		.sorts = sorts,
		.hashes = datasets_can_keep(session->dataset) &&
		datasets_can_recognise(session->dataset)
	};
	struct failure failure;

	if ((first.sorts || first.hashes) && begin_step(session, &first))
		return;
	if (!first.sorts)
	{
		finish_seal(session, false);
		return;
	}
	fail(&failure, GEONN_ERROR_MEMORY, "could not create a thread to sort the references");
	fail_reason(&failure, errno);
	session_fail(session, &failure);
}

/*
 * Begin the second step, if a kept dataset is alike.
 */
static void
compare_dataset(struct session *session)
{
	const struct sealing second = {.alike = datasets_find_alike(session->dataset)};

	if (second.alike != NULL && begin_step(session, &second))
		return;
	if (second.alike != NULL)
		datasets_release(second.alike);
	finish_seal(session, false);
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
	prepare_dataset(session, seal->order_by_tag);
}

/*
 * Go on after a step has ended.
 */
static void
end_step(struct session *session, const struct sealing *sealing)
{
	if (sealing->alike == NULL)
	{
		if (sealing->done)
			compare_dataset(session);
		else if (sealing->failure.code == GEONN_ERROR_MEMORY &&
				 datasets_make_room(&sealing->failure))
			prepare_dataset(session, true);
		else
			session_fail(session, &sealing->failure);
		return;
	}
	if (sealing->done)
		replace_dataset(session, sealing->alike);
	else
		datasets_release(sealing->alike);
	finish_seal(session, sealing->done);
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
			end_step(session, sealing);
		else if (sealing->alike != NULL)
			datasets_release(sealing->alike);
		free(sealing);
	}
}
