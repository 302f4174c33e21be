/*
 * wait_event.h
 *		Wait events: what pg_stat_activity shows while a process waits.
 */
#ifndef GEONN_WAIT_EVENT_H
#define GEONN_WAIT_EVENT_H

/* what a process waits for */
typedef enum GeonnWait
{
	GEONN_NO_WAIT,				/* it does not */
	GEONN_WAIT_START,			/* an engine that is ready */
	GEONN_WAIT_ADMISSION,		/* others that have sessions end */
	GEONN_WAIT_ENGINE,			/* an answer that takes the engine no time */
	GEONN_WAIT_BATCH,			/* memory for a batch */
	GEONN_WAIT_REFERENCES,		/* the engine has taken references */
	GEONN_WAIT_SEAL,			/* it has put them in order */
	GEONN_WAIT_SEARCH,			/* pairs */
	GEONN_WAIT_SUPERVISOR		/* the supervisor's: something to do */
} GeonnWait;

/* the wait event that pg_stat_activity shows meanwhile */
extern uint32 geonn_wait_event(GeonnWait wait);

#endif							/* GEONN_WAIT_EVENT_H */
