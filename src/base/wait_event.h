/*
 * wait_event.h
 *		Wait events: what pg_stat_activity shows while a process waits.
 */
#ifndef GEONN_WAIT_EVENT_H
#define GEONN_WAIT_EVENT_H

/* what a process waits for */
typedef enum GeonnWait
{
	GEONN_NO_WAIT,				/* nothing: it goes on at once */
	GEONN_WAIT_START,			/* an engine that is ready */
	GEONN_WAIT_ADMISSION,		/* a session to become free */
	GEONN_WAIT_ENGINE,			/* an answer that the engine gives at once */
	GEONN_WAIT_BATCH,			/* a batch from the engine */
	GEONN_WAIT_REFERENCES,		/* the engine to copy references */
	GEONN_WAIT_SEAL,			/* the engine to seal the dataset */
	GEONN_WAIT_SEARCH,			/* pairs */
	GEONN_WAIT_BASE,			/* another session to make a base of a table */
	GEONN_WAIT_SWAP,			/* other sessions to leave a cache's table */
	GEONN_WAIT_SUPERVISOR		/* something to do: for the supervisor alone */
} GeonnWait;

/* Return the wait event that pg_stat_activity shows during this wait. */
extern uint32 geonn_wait_event(GeonnWait wait);

/* Wait this many milliseconds, or until the latch is set.  If the statement is cancelled, raises the error. */
extern void geonn_pause(GeonnWait wait, long milliseconds);

#endif							/* GEONN_WAIT_EVENT_H */
