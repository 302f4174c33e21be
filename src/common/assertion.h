/*
 * assertion.h
 *		What the engine, and what module and engine share, check of themselves.
 *
 * A build with ASSERTIONS=1, as the tests have it, defines USE_ASSERT_CHECKING: geonn_assert then ends
 * the process where its condition does not hold, and names it on standard error, from where it gets into
 * the engine's log.  Any other build leaves the condition out, which must have no effects.  The
 * module's own files use PostgreSQL's Assert, for which the same build switches it on.
 */
#ifndef GEONN_ASSERTION_H
#define GEONN_ASSERTION_H

#ifdef USE_ASSERT_CHECKING

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define geonn_assert(condition) \
	((condition) ? (void) 0 : geonn_assertion_failed(#condition, __FILE__, __LINE__))

/* Write which condition does not hold, on a line of its own, and end this process. */
__attribute__((noreturn, cold)) static inline void
geonn_assertion_failed(const char *condition, const char *file, int line)
{
	dprintf(STDERR_FILENO, "ERROR: assertion failed: %s, in %s:%d\n", condition, file, line);
	abort();
}

#else
#define geonn_assert(condition) ((void) 0)
#endif

/* Check that some thread holds a mutex; POSIX does not say whether it is the calling one. */
#define geonn_assert_locked(mutex) geonn_assert(pthread_mutex_trylock(mutex) != 0)

#endif							/* GEONN_ASSERTION_H */
