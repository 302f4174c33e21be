/*
 * wait_event.c
 *		Wait events: what pg_stat_activity shows while a process waits.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/wait_event.h"

#include "base/compat.h"
#include "base/wait_event.h"

uint32
geonn_wait_event(GeonnWait wait)
{
	static const char *const names[] = {
		[GEONN_WAIT_START] = "GeonnEngineStart",
		[GEONN_WAIT_ADMISSION] = "GeonnAdmission",
		[GEONN_WAIT_ENGINE] = "GeonnEngine",
		[GEONN_WAIT_BATCH] = "GeonnBatch",
		[GEONN_WAIT_REFERENCES] = "GeonnReferences",
		[GEONN_WAIT_SEAL] = "GeonnSeal",
		[GEONN_WAIT_SEARCH] = "GeonnSearch",
		[GEONN_WAIT_BASE] = "GeonnBase",
		[GEONN_WAIT_SWAP] = "GeonnSwap",
		[GEONN_WAIT_SUPERVISOR] = "GeonnSupervisor"
	};
	static uint32 events[lengthof(names)];

	Assert(wait != GEONN_NO_WAIT);
	if (events[wait] == 0)
		events[wait] = WaitEventExtensionNew(names[wait]);
	return events[wait];
}

void
geonn_pause(GeonnWait wait, long milliseconds)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, milliseconds,
					 geonn_wait_event(wait));
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}
