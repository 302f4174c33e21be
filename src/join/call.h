/*
 * call.h
 *		A call of a join, as views and the log show it.
 */
#ifndef GEONN_CALL_H
#define GEONN_CALL_H

#include "lib/stringinfo.h"
#include "portability/instr_time.h"

#include "common/protocol.h"
#include "join/report.h"
#include "points/columns.h"

/* one call; processes that search together have the same */
typedef struct GeonnCall
{
	int32		pid;			/* of the process that is called; 0: it has not begun */
	uint64		number;			/* among that process's calls */
	instr_time	begun;
} GeonnCall;

/* A call of this process begins. */
extern void geonn_call_begin(GeonnCall *call);

/*
 * What the label says of it: relations (InvalidOid: not one), the function's name and its
 * arguments, of which a long text is cut.
 */
extern void geonn_call_describe(struct geonn_call_label *label, Oid observations,
								Oid references, const char *function,
								const char *arguments);

/* What the engine is told of it; expected is the number of observations, 0: unknown. */
extern struct geonn_call geonn_call_message(const GeonnCall *call,
											const struct geonn_call_label *label,
											uint64 expected);

/*
 * How many rows the source has, as the planner would estimate it for a table; 0 where it
 * is anything else.
 */
extern uint64 geonn_call_expected(const PointSource *source);

/*
 * Log the call with what all its processes have done, if calls of its duration are to be
 * logged.  observations may be NULL: arrays.
 */
extern void geonn_call_log(const GeonnCall *call, const struct geonn_call_label *label,
						   const PointSource *observations, const PointSource *references,
						   const GeonnReport *report);

#endif							/* GEONN_CALL_H */
