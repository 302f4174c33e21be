/*
 * session_dataset.c
 *		Gives a session its dataset: in its turn, it finds a kept one, or opens a
 *		new one, which it fills and seals; or it attaches to another session's.
 *
 * A thread of its own sorts the references of a dataset, if the session asked
 * for that, and hands the work to the thread pool turn by turn.  If memory is
 * short for the sort, and a kept dataset can make room, the sort begins again.
 */
#include "engine/server/session.h"

#include <pthread.h>
#include <string.h>

#include "common/assertion.h"
#include "common/metric.h"
#include "engine/base/thread_pool.h"
#include "engine/search/backends.h"
#include "engine/server/datasets.h"
#include "engine/server/event_loop.h"

static atomic_int ended_sorts;	/* how many sorts have ended and have not been collected */

/* Set the session's choice of devices.  If no device can serve it, end the session and return false. */
static bool
choose_device(struct session *session, uint32_t choice)
{
	struct failure failure;

	if (choice >= GEONN_DEVICE_CHOICE_COUNT)
	{
		session_fail_protocol(session, "unknown choice of devices");
		return false;
	}
	session->choice = (enum geonn_device_choice) choice;
	if (backends_can_serve(session->choice, &failure))
		return true;
	session_fail(session, &failure);
	return false;
}

/*
 * Lay out the batch that a session kept while it was idle, for the new dataset; the client does the same.  If the batch is
 * too small, which the client should have found, end the session.  Returns whether the session goes on.
 */
static bool
lay_out_batches(struct session *session)
{
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
	{
		struct slot *slot = &session->slots[i];

		if (slot->memory != NULL &&
			geonn_batch_layout(slot->memory->start, slot->columns.rows, slot->columns.room,
							   session->dataset->columns, &slot->columns) > slot->memory->bytes)
		{
			session_fail_protocol(session, "a batch that does not suit its dataset");
			return false;
		}
	}
	return true;
}

static void
send_opened(struct session *session)
{
	const struct dataset *dataset = session->dataset;
	struct geonn_opened opened = {
		.dataset = dataset->id,
		.references = dataset->count,
		.metric = dataset->metric,
		.columns = dataset->columns,
		.sealed = dataset->sealed
	};

	if (!lay_out_batches(session))
		return;
	memcpy(opened.note, dataset->note, sizeof(opened.note));
	for (int kind = 0; kind < GEONN_FILE_KINDS; kind++)
		if (dataset->files[kind] >= 0)
			opened.files |= 1u << kind;
	session_send(session, GEONN_OPENED, &opened, -1);
	for (int kind = 0; kind < GEONN_FILE_KINDS; kind++)
	{
		struct geonn_file file = {.kind = (uint32_t) kind};

		if (dataset->files[kind] >= 0)
			session_send(session, GEONN_FILE, &file, dataset->files[kind]);
	}
}

/*
 * Begin to search a dataset that was sealed before.
 */
static void
begin_searching(struct session *session, bool kept)
{
	geonn_assert(session->dataset->sealed && session->dataset->users > 0);
	session->state = SESSION_SEARCHING;
	call_found_references(session->call, session->dataset->count, kept);
	call_move(session->call, &session->phase, GEONN_PHASE_OBSERVATIONS);
	send_opened(session);
}

/*
 * Open the dataset that an admitted session asked for.
 */
static void
open_dataset(struct session *session)
{
	const struct geonn_open *open = &session->open;
	enum geonn_metric metric = (enum geonn_metric) open->metric;
	struct failure failure;

	geonn_assert(session->dataset == NULL);
	for (uint32_t i = 0; i < open->labels && session->dataset == NULL; i++)
		session->dataset = datasets_find(metric, open->columns, &open->label[i], open->any_version);
	if (session->dataset != NULL)
	{
		begin_searching(session, true);
		return;
	}
	session->dataset = datasets_open(open);
	if (session->dataset == NULL)
	{
		fail(&failure, GEONN_ERROR_MEMORY, "not enough memory for a dataset");
		session_fail(session, &failure);
		return;
	}
	session->state = SESSION_COLLECTING;
	send_opened(session);
}

void
session_open(struct session *session, const union geonn_message *message)
{
	const struct geonn_open *open = &message->open;
	struct geonn_queued queued = {.limit = admission_limit()};
	uint32_t	weights = open->columns & GEONN_COLUMNS_WEIGHTS;
	uint32_t	parties = open->columns & GEONN_COLUMNS_PARTIES;

	if (geonn_metric_name((enum geonn_metric) open->metric) == NULL || open->columns & ~GEONN_COLUMNS_ALL ||
		(weights & (weights + GEONN_COLUMN_WEIGHT)) != 0 || /* a number is left out */
		(parties & (parties + GEONN_COLUMN_PARTY)) != 0 ||
		open->labels > GEONN_LABELS_MAX || open->any_version > 1)
	{
		session_fail_protocol(session, "unknown metric, columns or version, or too many labels");
		return;
	}
	if (open->columns & GEONN_COLUMNS_OF_ARCS && !(open->columns & GEONN_COLUMN_ARC))
	{
		session_fail_protocol(session, "numbers or measures of arcs without arcs");
		return;
	}
	if (open->columns & GEONN_COLUMN_ARC && open->metric != GEONN_METRIC_SPHERE)
	{
		session_fail_protocol(session, "lines and polygons have the metric sphere alone");
		return;
	}
	if (!choose_device(session, open->device))
		return;
	session->open = *open;

	/* A session without a call works for a test or a benchmark, not for a statement: admit it at once. */
	if (session->call == NULL ||
		admission_enter(&session->admission, session, session->leader))
	{
		open_dataset(session);
		return;
	}
	session->state = SESSION_QUEUED;
	call_move(session->call, &session->phase, GEONN_PHASE_QUEUED);
	queued.ahead = admission_queued(&session->admission);
	session_send(session, GEONN_QUEUED, &queued, -1);
}

void
session_admitted(struct session *session)
{
	call_move(session->call, &session->phase, GEONN_PHASE_REFERENCES);
	open_dataset(session);
}

void
session_attach(struct session *session, const union geonn_message *message)
{
	const struct geonn_attach *attach = &message->attach;
	struct failure failure;

	if (!choose_device(session, attach->device))
		return;
	session->dataset = datasets_attach(attach->dataset);
	if (session->dataset == NULL)
	{
		fail(&failure, GEONN_ERROR_NO_DATASET, "the geonn engine that had this statement's references has ended");
		fail_hint(&failure, "The server log says why. The next statement has another engine.");
		session_fail(session, &failure);
		return;
	}
	begin_searching(session, false);
}

void
session_references(struct session *session, const union geonn_message *message)
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

void
session_leave(struct session *session, const union geonn_message *message)
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

static void
finish_seal(struct session *session)
{
	struct dataset *dataset = session->dataset;
	struct geonn_sealed message = {.references = dataset->count};

	geonn_assert(!dataset->sealed && dataset->users == 1);
	geonn_assert(session->state == SESSION_COLLECTING || session->state == SESSION_SEALING);
	dataset->sealed = true;
	if (dataset->labelled)
		datasets_keep(dataset, &message);
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
	geonn_assert(session->under_way == 0);
	session->state = SESSION_SEALING;
	session->under_way++;
	call_move(session->call, &session->phase, GEONN_PHASE_SORTING);
}

void
session_seal(struct session *session, const union geonn_message *message)
{
	const struct geonn_seal *seal = &message->seal;
	struct dataset *dataset = session->dataset;
	struct failure failure;

	if (seal->keep && !dataset->labelled)
	{
		session_fail_protocol(session, "a dataset to keep that has no label");
		return;
	}
	if (!dataset_check_end(dataset, &failure))
	{
		session_fail(session, &failure);
		return;
	}
	dataset->labelled = seal->keep;
	memcpy(dataset->label.version, seal->version, sizeof(dataset->label.version));
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
	geonn_assert(session->under_way == 1);
	session->under_way--;
	if (session->state != SESSION_SEALING)
		return;					/* the session's client has left */
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
