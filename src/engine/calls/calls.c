/*
 * calls.c
 *		The calls that sessions work for, what each call is doing, and statistics
 *		of the calls that have ended.
 *
 * A call is one call of a function in SQL, or one execution of its plan node.
 * Several sessions may belong to a call: one or more of the calling backend,
 * and those of its parallel workers.  The first session begins the call, and
 * the call ends with its last session.  The engine keeps the figures of calls,
 * rather than PostgreSQL's shared memory, for three reasons.  First, geonn
 * need not be preloaded, and an extension that is not preloaded has no shared
 * memory of its own before PostgreSQL 17.  Second, all processes of a call
 * talk to the engine anyway, batch by batch, so counting costs each of them
 * only one message at the beginning and one at the end.  Third, the kernel
 * reports the end of a connection however its process ended, and no other
 * cleaning is needed.  The price is that the figures are lost when the engine
 * stops.
 *
 * At any moment a call is in one phase, so the times of its phases add up to
 * its own time.  Each part of a call (a session that sends or sorts
 * references, a batch) is in a phase, and the call is in the latest of its
 * parts' phases: while one batch is searched and another one waits, the call
 * searches.  Device threads move batches to other phases, too, a few times for
 * each batch; so a call has a lock for its phases, which is held no longer
 * than it takes to read the clock.
 *
 * The figures of the calls that have ended are summed up by their labels, in a
 * list, the label of the last call first.  Labels come from users' statements,
 * so the list has a limit: when it is full, the label that was called least
 * recently leaves it.  If memory is short for a new label, its call is not
 * counted.
 */
#include "engine/calls/calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/assertion.h"
#include "engine/base/clock.h"

/* statistics have at most this many labels, of about 700 bytes each */
#define LABELS_MAX 1000

struct call
{
	struct call *next;			/* the next in the list of calls under way */
	struct geonn_call_status status;	/* the call's status; phase, devices and observations are filled in when a
										 * client asks for the status */
	struct geonn_statistics sum;	/* the call's figures; the times are filled in at the call's end */
	bool		alone;			/* the client has answered its calls itself; the figures, times included, are the
								 * client's */
	uint64_t	number;
	int			holders;

	pthread_mutex_t lock;

	/* guarded by lock */
	uint64_t	devices;		/* one bit for each device that worked for the call */
	uint32_t	parts[GEONN_PHASES];	/* how many sessions and batches are in each phase, except the first phase */
	int64_t		since_us;		/* when the present phase began */
	uint64_t	microseconds[GEONN_PHASES]; /* how long each phase has taken, up to since_us */
};

static struct call *under_way;

struct entry
{
	struct geonn_statistics sum;
	struct entry *next;
};

static struct
{
	struct entry *first;
	uint32_t	count;
	int64_t		since;			/* microseconds since 1970 */
}			statistics;

static struct call *
call_create(const struct geonn_call *message)
{
	struct call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	call->status.label = message->label;
	call->status.pid = message->pid;
	call->status.expected = message->expected;
	call->status.started_at = unix_us() - (int64_t) message->microseconds;
	call->sum.label = message->label;
	call->sum.calls = 1;
	call->number = message->number;
	call->microseconds[GEONN_PHASE_REFERENCES] = message->microseconds;
	call->since_us = now_us();
	pthread_mutex_init(&call->lock, NULL);
	call->next = under_way;
	under_way = call;
	return call;
}

struct call *
calls_join(const struct geonn_call *message)
{
	struct call *call = under_way;

	while (call != NULL &&
		   !(call->status.pid == message->pid && call->number == message->number))
		call = call->next;
	if (call == NULL)
		call = call_create(message);
	if (call == NULL)
		return NULL;
	call->status.sessions++;
	call->holders++;
	return call;
}

/* Return the latest phase that any session or batch of the call is in.  The caller holds the lock. */
static enum geonn_phase
present_phase(const struct call *call)
{
	int			phase = GEONN_PHASES - 1;

	while (phase > 0 && call->parts[phase] == 0)
		phase--;
	return (enum geonn_phase) phase;
}

/* Add the time since the last change to the present phase.  The caller holds the lock. */
static void
take_time(struct call *call)
{
	int64_t		now = now_us();

	geonn_assert_locked(&call->lock);
	geonn_assert(now >= call->since_us);
	call->microseconds[present_phase(call)] += (uint64_t) (now - call->since_us);
	call->since_us = now;
}

void
call_move(struct call *call, enum geonn_phase *part, enum geonn_phase next)
{
	if (call == NULL || *part == next)
		return;
	pthread_mutex_lock(&call->lock);
	take_time(call);
	geonn_assert(*part == GEONN_PHASE_OBSERVATIONS || call->parts[*part] > 0);
	if (*part != GEONN_PHASE_OBSERVATIONS)
		call->parts[*part]--;
	if (next != GEONN_PHASE_OBSERVATIONS)
		call->parts[next]++;
	*part = next;
	pthread_mutex_unlock(&call->lock);
}

void
call_use_device(struct call *call, int device)
{
	if (call == NULL)
		return;
	pthread_mutex_lock(&call->lock);
	call->devices |= UINT64_C(1) << (device < 63 ? device : 63);
	pthread_mutex_unlock(&call->lock);
}

/* Add figures to their sums. */
static void
add_figures(struct geonn_statistics *sum, const struct geonn_statistics *more)
{
	sum->calls += more->calls;
	sum->failed += more->failed;
	sum->rows += more->rows;
	sum->observations += more->observations;
	sum->observations_skipped += more->observations_skipped;
	sum->unmatched += more->unmatched;
	sum->references += more->references;
	sum->references_skipped += more->references_skipped;
	sum->kept += more->kept;
	sum->batches += more->batches;
	sum->bytes += more->bytes;
	sum->fallbacks += more->fallbacks;
	for (int phase = 0; phase < GEONN_PHASES; phase++)
		sum->microseconds[phase] += more->microseconds[phase];
	if (more->last_error_at != 0)
	{
		sum->last_error_at = more->last_error_at;
		memcpy(sum->last_error, more->last_error, sizeof(sum->last_error));
	}
}

/*
 * Take this label's entry out of the list.  If the label has none, make an empty entry; if the list
 * is full, out of its last entry.  Returns NULL if memory is short.
 */
static struct entry *
take_entry(const struct geonn_call_label *label)
{
	struct entry **link = &statistics.first;
	struct entry *entry;

	while (*link != NULL && memcmp(&(*link)->sum.label, label, sizeof(*label)) != 0 &&
		   !((*link)->next == NULL && statistics.count == LABELS_MAX))
		link = &(*link)->next;
	entry = *link;
	if (entry == NULL)
	{
		entry = calloc(1, sizeof(*entry));
		statistics.count += entry != NULL;
	}
	else
	{
		*link = entry->next;
		if (memcmp(&entry->sum.label, label, sizeof(*label)) != 0)
			memset(entry, 0, sizeof(*entry));
	}
	return entry;
}

/* Add the figures of a call that ended to those of its label. */
static void
statistics_add(const struct geonn_statistics *sum)
{
	struct entry *entry = take_entry(&sum->label);

	if (entry == NULL)
		return;
	entry->next = statistics.first;
	statistics.first = entry;
	entry->sum.label = sum->label;
	add_figures(&entry->sum, sum);
}

/* Replace the call's figures by those that the client sent for calls that it has answered itself. */
static void
take_figures_of_alone(struct call *call, const struct geonn_finished *finished)
{
	call->alone = true;
	call->sum.calls = finished->calls;
	call->sum.kept = finished->calls;
	call->sum.observations = finished->observations;
	call->sum.microseconds[GEONN_PHASE_SEARCHING] = finished->microseconds;
}

void
call_leave(struct call *call, const struct geonn_finished *finished)
{
	struct call **link = &under_way;

	if (call == NULL)
		return;
	if (finished == NULL)
		call->sum.failed = 1;
	else
	{
		call->sum.rows += finished->rows;
		call->sum.observations_skipped += finished->observations_skipped;
		call->sum.references_skipped += finished->references_skipped;
		call->sum.unmatched += finished->unmatched;
	}
	if (finished != NULL && finished->alone)
		take_figures_of_alone(call, finished);
	geonn_assert(call->status.sessions > 0);
	if (--call->status.sessions > 0)
		return;
	while (*link != call)
		link = &(*link)->next;
	*link = call->next;
	pthread_mutex_lock(&call->lock);
	take_time(call);
	if (!call->alone)
		memcpy(call->sum.microseconds, call->microseconds, sizeof(call->sum.microseconds));
	pthread_mutex_unlock(&call->lock);
	if (call->sum.calls > 0)
		statistics_add(&call->sum);
}

void
call_release(struct call *call)
{
	if (call == NULL || --call->holders > 0)
		return;
	pthread_mutex_destroy(&call->lock);
	free(call);
}

void
call_add(struct call *call, const struct geonn_statistics *more)
{
	if (call == NULL)
		return;
	call->status.references += more->references;
	add_figures(&call->sum, more);
}

void
call_found_references(struct call *call, uint64_t rows, bool kept)
{
	if (call == NULL)
		return;
	call->status.references = rows;
	if (kept)
		call->sum.kept = 1;
}

void
call_fail(struct call *call, const char *message)
{
	if (call == NULL)
		return;
	call->sum.last_error_at = unix_us();
	strncpy(call->sum.last_error, message, sizeof(call->sum.last_error) - 1);
}

bool
calls_write(int file, uint64_t *entries)
{
	for (struct call *call = under_way; call != NULL; call = call->next)
	{
		struct geonn_call_status status = call->status;

		status.observations = call->sum.observations;
		pthread_mutex_lock(&call->lock);
		status.phase = present_phase(call);
		status.devices = call->devices;
		pthread_mutex_unlock(&call->lock);
		if (write(file, &status, sizeof(status)) != sizeof(status))
			return false;
		(*entries)++;
	}
	return true;
}

bool
calls_write_statistics(int file, uint64_t *entries)
{
	for (struct entry *entry = statistics.first; entry != NULL; entry = entry->next)
	{
		if (write(file, &entry->sum, sizeof(entry->sum)) != sizeof(entry->sum))
			return false;
		(*entries)++;
	}
	return true;
}

void
calls_reset_statistics(void)
{
	while (statistics.first != NULL)
	{
		struct entry *entry = statistics.first;

		statistics.first = entry->next;
		free(entry);
	}
	statistics.count = 0;
	statistics.since = unix_us();
}

int64_t
calls_statistics_since(void)
{
	return statistics.since;
}
