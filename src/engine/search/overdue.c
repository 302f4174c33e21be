/*
 * overdue.c
 *		Whether the operations of devices' threads end in time.
 *
 * A driver that hangs takes its device's thread with it.  So every operation
 * of a thread has a time by which it should be over.  While one is overdue, the
 * server does not answer the supervisor's ping, and after geonn.engine_timeout
 * the supervisor starts another engine.  An operation that ends after all has
 * the ping answered, and costs no session anything.
 *
 * Operations are judged by the time that the engine is given
 * (common/given_time.h), not by the clock: beside busy backends, or on a host
 * that pauses, an operation may take any time and is not stuck.  The server's
 * thread reads that time at each ping.  No other clock of the engine ends
 * anything that works: turns and the line measure the clock to share devices,
 * builds to tell what pays, the end of a probe's time lets clients in without
 * that device, and geonn.idle_session_timeout ends sessions without a call.
 */
#include "engine/search/overdue.h"

#include <unistd.h>

#include "common/assertion.h"
#include "common/given_time.h"

/* A longer time between two pings counts as this many ms; the supervisor sends a ping at least every 5 s. */
#define LOOK_MOST_MS 10000

static struct geonn_given_time given;	/* used by the server's thread alone */
static atomic_llong given_ms;	/* given.ms, as it was read last */

void
overdue_open(void)
{
	geonn_given_time_begin(&given, getpid());
}

void
operation_begin(struct operation *operation, int64_t patience_ms)
{
	geonn_assert(patience_ms > 0 && atomic_load(&operation->due_ms) == 0);
	atomic_store(&operation->due_ms, atomic_load(&given_ms) + patience_ms);
}

void
operation_end(struct operation *operation)
{
	atomic_store(&operation->due_ms, 0);
}

void
overdue_look(void)
{
	geonn_given_time_look(&given, getpid(), LOOK_MOST_MS);
	geonn_assert(given.ms >= atomic_load(&given_ms));
	atomic_store(&given_ms, given.ms);
}

bool
operation_is_overdue(const struct operation *operation)
{
	int64_t		due_ms = atomic_load(&operation->due_ms);

	return due_ms != 0 && given.ms > due_ms;
}
