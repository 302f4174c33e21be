/*
 * engine_life.h
 *		The engine's life: started, sent its settings, pinged, ended, started again.
 */
#ifndef GEONN_ENGINE_LIFE_H
#define GEONN_ENGINE_LIFE_H

#include "common/given_time.h"
#include "supervisor/engine_process.h"
#include "supervisor/state.h"

typedef enum EnginePhase
{
	PHASE_ABSENT,
	PHASE_STARTING,
	PHASE_RUNNING,
	PHASE_ENDING
} EnginePhase;

/* messages to the engine, in the order in which they are sent */
typedef enum EngineMessage
{
	MESSAGE_SETTINGS,
	MESSAGE_STATUS,				/* asks for the devices, which backends read while no engine runs */
	MESSAGE_PING
} EngineMessage;

#define ENGINE_MESSAGES 3

typedef struct EngineLife
{
	EnginePhase phase;
	EngineProcess engine;
	EngineReport report;		/* the report that was last written to the state file */
	bool		preloaded;		/* the module was loaded at the server's start */
	bool		enabled;		/* geonn.enabled when the configuration was read last */

	/* times are monotonic milliseconds */
	int64		started_at;		/* when the present process was started */
	bool		was_ready;		/* the present process has answered */
	bool		was_silent;		/* the process was killed because it did not answer */
	bool		was_foreign;	/* the process was killed because it is of another version */
	bool		was_ended;		/* the process was ended because geonn.enabled was switched off */
	int64		retry_at;		/* while ABSENT: when the engine is started again; NOT_BEFORE_ASKED: no time */
	int64		kill_at;		/* while ENDING: when the process is killed; 0 once that is done */
	int			failures;		/* how many processes in a row ended after a short life */

	/* one ping at a time: the next is sent after the last is answered */
	uint64		ping;			/* the number of the last ping */
	int64		next_ping_at;
	bool		ping_unanswered;
	struct geonn_given_time silence;	/* the time that the engine was given since that ping */

	/* messages that are still to be sent, since the channel had no room for them */
	bool		unsent[ENGINE_MESSAGES];

	/* the descriptors to the engine have changed since the supervisor last waited for them */
	bool		descriptors_changed;
} EngineLife;

/*
 * Set the fields to those of a supervisor that has not started an engine yet; preloaded: the module was loaded at the
 * server's start; asked: a backend has launched the supervisor, and waits for an engine.
 */
extern void engine_life_init(EngineLife *life, bool preloaded, bool asked);

/* Have an absent engine started without a further pause.  A signal handler may call it. */
extern void engine_life_request_retry(void);

/* Read the engine's log lines and messages, and notice its end.  Does not wait. */
extern void engine_life_hear(EngineLife *life);

/* Start the engine, send it a ping, or kill it, if that is due.  Does not wait. */
extern void engine_life_advance(EngineLife *life);

/* Milliseconds until something is due without an event, or -1. */
extern long engine_life_time_to_wait(const EngineLife *life);

/* The configuration was read again: start or end the engine, if it says so, or send it the settings of this process. */
extern void engine_life_configure(EngineLife *life);

/*
 * End the engine, in order if possible, by SIGKILL otherwise, and remove its files.  Waits for
 * the end, but for a few seconds at most.
 */
extern void engine_life_shut_down(EngineLife *life);

#endif							/* GEONN_ENGINE_LIFE_H */
