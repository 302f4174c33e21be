/*
 * engine_process.h
 *		The engine as the supervisor's child: start it, carry its log lines,
 *		learn how it ended.
 */
#ifndef GEONN_ENGINE_PROCESS_H
#define GEONN_ENGINE_PROCESS_H

#include <sys/types.h>

typedef struct EngineProcess
{
	pid_t		pid;			/* 0: there is none */
	int			channel;		/* socket to it; -1 once closed */
	int			log;			/* its standard output and error; -1 once
								 * closed */

	/* the log line that is being received */
	char		line[1024];
	int			line_length;
} EngineProcess;

/* What is set where no engine process is. */
extern void engine_process_init(EngineProcess *process);

/*
 * Start the program.  Returns false, with errno, where it does not come to
 * run; *failed_step is what could not be done on the way, or NULL where it was
 * to execute the program.
 */
extern bool engine_process_start(EngineProcess *process, const char *program,
								 const char **failed_step);

/*
 * Pass what the engine has written to PostgreSQL's log, without waiting.
 * Closes the log at its end.
 */
extern void engine_process_forward_log(EngineProcess *process);

extern void engine_process_close_channel(EngineProcess *process);

/*
 * Has the process ended?  Then its log is passed on and everything closed,
 * and the text says how it ended.  Does not wait.
 */
extern bool engine_process_reap(EngineProcess *process, char *how, size_t room);

#endif							/* GEONN_ENGINE_PROCESS_H */
