/*
 * state.h
 *		What the supervisor tells every backend: that it lives, and how its
 *		engine is.
 */
#ifndef GEONN_STATE_H
#define GEONN_STATE_H

#include <sys/types.h>

typedef enum EngineState
{
	ENGINE_STATE_STARTING,		/* started, not yet ready to talk */
	ENGINE_STATE_RUNNING,
	ENGINE_STATE_FAILED			/* ended or never started; tried again later */
} EngineState;

typedef struct EngineReport
{
	EngineState state;
	pid_t		supervisor_pid;
	pid_t		engine_pid;		/* 0 where there is none */
	uint64		attempt;		/* this supervisor's starts of the engine */

	/* why, where the state is failed; detail and hint may be empty */
	char		message[512];
	char		detail[512];
	char		hint[512];
} EngineReport;

/* Make the folder of these files, where something removed it. */
extern void geonn_state_make_directory(void);

/*
 * The supervisor's.  geonn_state_lock makes this process the one supervisor
 * until it ends, or returns false where another process is.
 */
extern bool geonn_state_lock(void);
extern void geonn_state_write(const EngineReport *report);
extern void geonn_state_remove(void);

/* The backends': the supervisor's process id, or 0 where none runs. */
extern pid_t geonn_state_supervisor(void);

/* The report of this supervisor, false where it has not written one yet. */
extern bool geonn_state_read(pid_t supervisor_pid, EngineReport *report);

#endif							/* GEONN_STATE_H */
