/*
 * nearest.h
 *		geonn_nearest() and its siblings: arguments in, a join out.
 */
#ifndef GEONN_NEAREST_H
#define GEONN_NEAREST_H

#include "fmgr.h"

#include "join/join.h"

extern PGDLLEXPORT Datum geonn_nearest(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum geonn_within(PG_FUNCTION_ARGS);

/* Is it one of them? */
extern bool geonn_is_join(PGFunction function);

/* The join that such a call asks for, in the current memory context. */
extern GeonnJoin *geonn_read_join(FunctionCallInfo fcinfo);

#endif							/* GEONN_NEAREST_H */
