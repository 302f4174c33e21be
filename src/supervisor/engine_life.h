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

/* Messages to the engine, in the order in which the supervisor sends them. */
typedef enum EngineMessage
{
	MESSAGE_SETTINGS,
	MESSAGE_STATUS,				/* asks for the devices, which backends can read even while no engine runs */
	MESSAGE_PING
} EngineMessage;

#define ENGINE_MESSAGES 3

typedef struct EngineLife
{
	EnginePhase phase;
	EngineProcess engine;
	EngineReport report;		/* the report that the supervisor last wrote to the state file */
	bool		preloaded;		/* the module was loaded at the server's start */
	bool		enabled;		/* geonn.enabled, as of the last reading of the configuration */

	/* times are monotonic milliseconds */
	int64		started_at;		/* when the present process was started */
	bool		was_ready;		/* the present process has answered */
	bool		was_silent;		/* the supervisor killed the process because it did not answer */
	bool		was_foreign;	/* the supervisor killed the process because it was of another version */
	bool		was_ended;		/* the supervisor ended the process because geonn.enabled was switched off */
	int64		retry_at;		/* in ABSENT: when to start the engine again; or NOT_BEFORE_ASKED */
	int64		kill_at;		/* in ENDING: when to kill the process; 0: it has been killed */
	int			failures;		/* how many processes in a row have ended after a short life */

	/* The supervisor sends one ping at a time: the next after the answer to the last. */
	uint64		ping;			/* the number of the last ping */
	int64		next_ping_at;
	bool		ping_unanswered;
	struct geonn_given_time silence;	/* the time that the engine was given since the last ping */

	/* messages that the supervisor has still to send, because the channel had no room for them */
	bool		unsent[ENGINE_MESSAGES];

	/* the descriptors of log and channel have changed since the supervisor last waited for them */
	bool		descriptors_changed;
} EngineLife;

/*
 * Set the fields of a supervisor that has not started an engine yet.  preloaded: the module was loaded at the server's
 * start.  asked: a backend has launched the supervisor, and waits for an engine.
 */
extern void engine_life_init(EngineLife *life, bool preloaded, bool asked);

/* Have an absent engine started without a further pause.  Safe in a signal handler. */
extern void engine_life_request_retry(void);

/* Read the engine's log lines and messages, and notice its end.  Does not wait. */
extern void engine_life_hear(EngineLife *life);

/* Start the engine, send it a ping, or kill it, whichever is due.  Does not wait. */
extern void engine_life_advance(EngineLife *life);

/* Return the milliseconds until something is due without an event, or -1. */
extern long engine_life_time_to_wait(const EngineLife *life);

/*
 * Act on the configuration that was just read again: start or end the engine if it says so, or send the engine the
 * settings of this process.
 */
extern void engine_life_configure(EngineLife *life);

/*
 * End the engine, in order if possible and otherwise by SIGKILL, and remove its files.  Waits for
 * the end, but a few seconds at most.
 */
extern void engine_life_shut_down(EngineLife *life);

#endif							/* GEONN_ENGINE_LIFE_H */
