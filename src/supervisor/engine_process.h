/*
 * engine_process.h
 *		The engine as the supervisor's child: start it, forward its log lines,
 *		and report how it ended.
 */
#ifndef GEONN_ENGINE_PROCESS_H
#define GEONN_ENGINE_PROCESS_H

#include <sys/types.h>

typedef struct EngineProcess
{
	pid_t		pid;			/* 0: none runs */
	int			channel;		/* the socket to the engine; -1: closed */
	int			log;			/* the engine's standard output and error; -1: closed */

	/* the log line that is being received */
	char		line[1024];
	int			line_length;
} EngineProcess;

/*
 * Start the program.  Returns false with errno on failure: *failed_step is the step that failed, or
 * NULL if the program could not be executed.
 */
extern bool engine_process_start(EngineProcess *process, const char *program,
								 const char **failed_step);

/*
 * Forward the engine's log lines to PostgreSQL's log, without waiting.  Closes
 * the pipe at its end.
 */
extern void engine_process_forward_log(EngineProcess *process);

/* Close the socket to the engine, if it is open. */
extern void engine_process_close_channel(EngineProcess *process);

/*
 * Return whether the process has ended.  If so, forward the rest of its log, close its channel and
 * log, and write to `how`, as text, how it ended.  Does not wait.
 */
extern bool engine_process_reap(EngineProcess *process, char *how, size_t room);

#endif							/* GEONN_ENGINE_PROCESS_H */
