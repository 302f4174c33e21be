/*
 * call.h
 *		A call of a join, as the views and the log show it.
 */
#ifndef GEONN_CALL_H
#define GEONN_CALL_H

#include "lib/stringinfo.h"
#include "portability/instr_time.h"

#include "common/protocol.h"
#include "join/report.h"
#include "points/columns.h"

/* one call; processes that search together share it */
typedef struct GeonnCall
{
	int32		pid;			/* the id of the process that began the call; 0: it has not begun */
	uint64		number;			/* the call's number among that process's calls */
	instr_time	begun;
} GeonnCall;

/* How many milliseconds have passed since this time. */
extern double geonn_milliseconds_since(instr_time begun);

/* Begin a call of this process. */
extern void geonn_call_begin(GeonnCall *call);

/*
 * Fill in the label of a call: the relations (InvalidOid: not one), the function's name
 * and its arguments; a long text is cut.
 */
extern void geonn_call_describe(struct geonn_call_label *label, Oid observations,
								Oid references, const char *function,
								const char *arguments);

/* The message that tells the engine of the call; expected: the number of observations, or 0: not known. */
extern struct geonn_call geonn_call_message(const GeonnCall *call,
											const struct geonn_call_label *label,
											uint64 expected);

/*
 * The number of rows in the source, as the planner would estimate it for a table; 0 if
 * the source is anything else.
 */
extern uint64 geonn_call_expected(const PointSource *source);

/*
 * Log the call with the figures of all its processes, if it has lasted for at least
 * geonn.log_min_duration.  observations is NULL if points are given in arrays.
 */
extern void geonn_call_log(const GeonnCall *call, const struct geonn_call_label *label,
						   const PointSource *observations, const PointSource *references,
						   const GeonnReport *report);

#endif							/* GEONN_CALL_H */
