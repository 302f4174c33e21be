/*
 * session_open.c
 *		Gives a session its dataset: in its turn, it opens a new one or finds a
 *		kept one; or it attaches to another session's.
 */
#include "engine/server/session.h"

#include <string.h>

#include "common/metric.h"
#include "engine/search/backends.h"
#include "engine/server/datasets.h"

/*
 * Set the choice of devices, if some device can serve it; otherwise end the
 * session.  Returns whether one can.
 */
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
 * Lay out the batch that a session kept while it was idle for its new dataset, as the
 * client does.  If the batch is too small, which the client should have found, end the
 * session.  Returns whether it goes on.
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

/*
 * Tell the client which dataset it has, and hand out its files.
 */
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
 * Go on with a dataset that has its references.
 */
static void
begin_searching(struct session *session, bool kept)
{
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

	for (uint32_t i = 0; i < open->labels && session->dataset == NULL; i++)
		session->dataset = datasets_find(metric, open->columns, &open->label[i]);
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

	if (geonn_metric_name((enum geonn_metric) open->metric) == NULL || open->columns & ~GEONN_COLUMNS_ALL ||
		open->labels > GEONN_LABELS_MAX)
	{
		session_fail_protocol(session, "unknown metric or columns, or too many labels");
		return;
	}
	if (!choose_device(session, open->device))
		return;
	session->open = *open;

	/* a session without a call belongs to no statement, but to a test or a benchmark */
	if (session->call == NULL ||
		admission_enter(&session->admission, session, session->pid))
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

	if (!choose_device(session, attach->device))
		return;
	session->dataset = datasets_attach(attach->dataset);
	if (session->dataset == NULL)
	{
		session_fail_protocol(session, "attach to an unknown dataset");
		return;
	}
	begin_searching(session, false);
}
