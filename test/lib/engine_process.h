/*
 * engine_process.h
 *		The engine as a process: its start and end, its time, its descriptors.
 *
 * What can't happen in a sound test (no memory, no process) ends the program
 * with a message.
 */
#ifndef ENGINE_PROCESS_H
#define ENGINE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/protocol.h"

/* an engine that this program started, as its supervisor */
struct engine
{
	pid_t		pid;
	int			supervisor;		/* our end of its supervisor's channel */
	char		socket_path[100];
};

/*
 * Start a program as the engine, with these settings; NULL: all are 0.  Of batches' memory
 * 0 stands for 1 GB.
 */
extern void engine_start(struct engine *engine, const char *program,
						 const struct geonn_configure *settings);

/* The same with vector instructions that the CPU device uses (cpu/base/path.h); NULL: the best. */
extern void engine_start_on(struct engine *engine, const char *program, const char *cpu_path,
							const struct geonn_configure *settings);

/*
 * The same, and whether it started; if not, it has ended or is about to, and
 * engine_stop has its exit status all the same.
 */
extern bool engine_try_start(struct engine *engine, const char *program, const char *cpu_path,
							 const struct geonn_configure *settings);

/* How many ms a search's turn on the CPU should take in the engines that are started from now on. */
extern const char *engine_turn_ms;

/* Start the program and tell it nothing: it waits for its first message. */
extern void engine_launch(struct engine *engine, const char *program, const char *cpu_path);

/* Wait for a message to the supervisor and return its type; 0 where none comes. */
extern int	engine_answer(struct engine *engine, union geonn_message *message);

/* Close the supervisor's channel and wait for the engine's exit status. */
extern int	engine_stop(struct engine *engine);

/* Descriptors of a process whose files have this in their names, or have it not. */
extern int	descriptors_of(pid_t process, const char *name, bool named);

/* Only what hangs takes so long, however busy the host is: the engine is nicer than what else runs there. */
#define PATIENCE_MS 600000

/* milliseconds on a clock that only goes forward */
extern double now_ms(void);

/* milliseconds of CPU time that a process has had, with all of its threads */
extern double cpu_ms_of(pid_t process);

/*
 * Wait some time more for what comes soon, after waiting since this moment of now_ms.  False once that
 * took PATIENCE_MS.
 */
extern bool wait_more(double since);

/* Whether a process has ended; its parent need not have collected it. */
extern bool has_ended(pid_t process);

/* End the program with a message about this and errno. */
extern void give_up(const char *what);

#endif							/* ENGINE_PROCESS_H */
