/*
 * given_time.h
 *		How much time a process was given to work, which tells whether it hangs.
 *
 * The clock does not tell that.  On a crowded host a process that is well waits
 * for a CPU, for minutes if it has a low priority; and a paused container or
 * virtual machine stands still while the clock goes on.  So a process is given
 *
 *	- no more than the observer can see: what passes between two looks counts as
 *	  a limited time, since an observer that looks that late was not given any
 *	  time either;
 *	- where a thread of the process is ready to run, the CPU time that the process
 *	  had, if that is less than the time that passed;
 *	- else the time that passed: the process waits for something other than a
 *	  CPU, or is stopped.
 */
#ifndef GEONN_GIVEN_TIME_H
#define GEONN_GIVEN_TIME_H

#include <stdint.h>
#include <sys/types.h>

struct geonn_given_time
{
	int64_t		ms;				/* milliseconds given from the beginning to the last look */
	int64_t		looked_ms;		/* when the last look was, by the monotonic clock */
	int64_t		cpu_ms;			/* CPU time of the process up to the last look, in milliseconds */
};

/* Begin to measure, with 0 milliseconds given so far. */
extern void geonn_given_time_begin(struct geonn_given_time *given, pid_t process);

/*
 * Add the time that the process was given since the last look, at most `most` milliseconds.  The calling
 * thread does not count as ready to run.  A look within 100 ms of the last one does nothing.  If the
 * process is not found in /proc, the clock alone decides.
 */
extern void geonn_given_time_look(struct geonn_given_time *given, pid_t process, int64_t most);

#endif							/* GEONN_GIVEN_TIME_H */
