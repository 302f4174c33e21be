/*
 * failure.h
 *		Why something in the engine did not work.
 *
 * Functions that can fail return a bool and fill in one of these; it becomes
 * the error message that the client gets.
 */
#ifndef GEONN_FAILURE_H
#define GEONN_FAILURE_H

#include <stdbool.h>

#include "common/protocol.h"

struct failure
{
	enum geonn_error_code code;
	int			reason;			/* errno of what the system refused, or 0 */
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

/* the same for the two other texts, where there is one to give */
extern void fail_detail(struct failure *failure, const char *format,...)
			__attribute__((format(printf, 2, 3)));
extern void fail_hint(struct failure *failure, const char *format,...)
			__attribute__((format(printf, 2, 3)));

/* the detail, and the hint if one is known, of what the system refused: errno's value */
extern void fail_reason(struct failure *failure, int reason);

#endif							/* GEONN_FAILURE_H */
