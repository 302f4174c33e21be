/*
 * failure.h
 *		The reason why an operation of the engine failed.
 *
 * A function that can fail returns a bool and fills in a struct failure; the
 * engine sends that to the client as its error message.
 */
#ifndef GEONN_FAILURE_H
#define GEONN_FAILURE_H

#include <stdbool.h>

#include "common/protocol.h"

struct failure
{
	enum geonn_error_code code;
	int			reason;			/* errno of the system call that failed, or 0 */
	char		message[256];
	char		detail[256];	/* the driver's or the system's own words */
	char		hint[256];
};

/*
 * Set code and message (a printf format); detail and hint become empty.
 * Returns false, so that a caller can fail in one statement.
 */
extern bool fail(struct failure *failure, enum geonn_error_code code,
				 const char *format,...)
			__attribute__((format(printf, 3, 4)));

/* Set the detail, or the hint; code and message stay. */
extern void fail_detail(struct failure *failure, const char *format,...)
			__attribute__((format(printf, 2, 3)));
extern void fail_hint(struct failure *failure, const char *format,...)
			__attribute__((format(printf, 2, 3)));

/* Set the reason, a value of errno, and a detail that explains it; for some reasons also a hint. */
extern void fail_reason(struct failure *failure, int reason);

#endif							/* GEONN_FAILURE_H */
