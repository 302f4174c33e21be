/*
 * live_calls.c
 *		Calls that this process has answered alone, until the engine has counted them.
 *
 * The engine counts calls for geonn_stat when this process tells it of them: once a second, and as often as half of all
 * its calls are not counted.  Those that are not counted when the process ends are lost: at most half of them, and those
 * of a second.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "base/settings.h"
#include "client/connection.h"
#include "live/live_calls.h"

/* Calls of at most this many labels wait to be counted; for a further label, those that have waited longest are counted. */
#define LABELS_MOST	16

/* Calls of one label and role that the engine has not counted: their figures, and the message of the last call. */
typedef struct UncountedCalls
{
	struct geonn_finished work;
	struct geonn_call message;
} UncountedCalls;

static UncountedCalls uncounted[LABELS_MOST];
static int	next_uncounted;		/* the place of the label that is counted next to make room for another */
static uint64 calls_noted;		/* calls that this process has answered in all */
static uint64 calls_counted;	/* how many of the noted calls the engine has counted */

const GeonnQuestion geonn_live_no_question = {
	.device = GEONN_DEVICE_AUTO,
	.metric = GEONN_METRIC_SPHERE,
	.k = 1,
	.id_by_value = true,
	.id_length = sizeof(Datum)
};

static bool
have_one_label(const struct geonn_call *a, const struct geonn_call *b)
{
	return a->role == b->role && memcmp(&a->label, &b->label, sizeof(a->label)) == 0;
}

/* Return the calls of this label that the engine has not counted, or NULL. */
static UncountedCalls *
find_uncounted(const struct geonn_call *message)
{
	for (int i = 0; i < LABELS_MOST; i++)
	{
		if (uncounted[i].work.calls > 0 && have_one_label(&uncounted[i].message, message))
			return &uncounted[i];
	}
	return NULL;
}

void
geonn_live_end_client(GeonnClient *client, const struct geonn_call *message)
{
	UncountedCalls *calls = find_uncounted(message);
	struct geonn_finished work = calls != NULL ? calls->work : (struct geonn_finished) {0};

	work.alone = 1;
	/* The engine counts calls only for a session whose dataset is sealed. */
	if (!geonn_client_is_sealed(client))
		geonn_client_seal(client, true);
	geonn_client_end(client, &work);
	calls_counted += work.calls;
	if (calls != NULL)
		memset(&calls->work, 0, sizeof(calls->work));
}

/*
 * Have the engine count these calls, if there are any.
 */
static void
count_calls(const UncountedCalls *calls)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn calls", ALLOCSET_SMALL_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	GeonnClient *client;

	if (calls->work.calls > 0)
	{
		client = geonn_client_open(&geonn_live_no_question, NULL, 0, &calls->message);
		geonn_live_end_client(client, &calls->message);
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}

void
geonn_live_count_calls(void)
{
	for (int i = 0; i < LABELS_MOST; i++)
		count_calls(&uncounted[i]);
}

/* Return the place of this label's uncounted calls; make one if it has none. */
static UncountedCalls *
uncounted_calls(const struct geonn_call *message)
{
	UncountedCalls *calls = find_uncounted(message);

	if (calls != NULL)
		return calls;
	calls = &uncounted[next_uncounted];
	next_uncounted = (next_uncounted + 1) % LABELS_MOST;
	count_calls(calls);
	calls->message = *message;
	return calls;
}

void
geonn_live_add_call(const struct geonn_call *message, const struct geonn_finished *work)
{
	struct geonn_finished *sum = &uncounted_calls(message)->work;

	sum->calls++;
	sum->rows += work->rows;
	sum->observations += work->observations;
	sum->observations_skipped += work->observations_skipped;
	sum->references_skipped += work->references_skipped;
	sum->unmatched += work->unmatched;
	sum->microseconds += work->microseconds;
	if (++calls_noted >= 2 * calls_counted)
		geonn_live_count_calls();
}

static bool
engine_runs(void)
{
	GeonnConnection *connection = geonn_connection_open_running();

	if (connection == NULL)
		return false;
	geonn_connection_close(connection);
	return true;
}

void
geonn_live_report(void)
{
	/* Reading statistics must not start an engine, and must not ask one if geonn is switched off. */
	if (geonn_enabled && calls_noted > calls_counted && engine_runs())
		geonn_live_count_calls();
}
