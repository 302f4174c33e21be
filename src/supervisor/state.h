/*
 * state.h
 *		What the supervisor tells every backend: that it runs, and its engine's
 *		state.
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
	pid_t		engine_pid;		/* 0: none runs */
	uint64		attempt;		/* how often this supervisor has started the engine */

	/* the error, if the state is failed; detail and hint may be empty */
	char		message[512];
	char		detail[512];
	char		hint[512];
} EngineReport;

/* For ereport: the hint of an error with one of these files, or with the engine's socket beside them. */
extern int	geonn_state_hint(void);

/* Create the folder of these files again if it was removed. */
extern void geonn_state_make_directory(void);

/*
 * For the supervisor.  geonn_state_lock makes this process the supervisor
 * until it ends, or returns false if another process is.
 */
extern bool geonn_state_lock(void);
extern void geonn_state_write(const EngineReport *report);
extern void geonn_state_remove(void);

/*
 * For the supervisor: put this content in place of a file's, by a rename.  A failure leaves
 * the former file, and is logged.
 */
extern void geonn_state_replace_file(const char *name, const void *content, size_t length);

/* For backends: the supervisor's process id, or 0 if none runs. */
extern pid_t geonn_state_supervisor(void);

/* Read this supervisor's report; false if it has not written one yet. */
extern bool geonn_state_read(pid_t supervisor_pid, EngineReport *report);

#endif							/* GEONN_STATE_H */
