/*
 * nearest.h
 *		geonn_nearest() and its siblings: arguments in, a join out.
 */
#ifndef GEONN_NEAREST_H
#define GEONN_NEAREST_H

#include "fmgr.h"

#include "join/arguments.h"

/* Return whether this is the C function of geonn_nearest() or of one of its siblings. */
extern bool geonn_is_join(PGFunction function);

/* Return the join that a call of geonn_nearest() or a sibling asks for, in the current memory context. */
extern GeonnJoin *geonn_read_join(FunctionCallInfo fcinfo);

/* Make the join of the arguments: look up the sources, and lock them as a SELECT does. */
extern GeonnJoin *geonn_make_join(const GeonnArguments *arguments);

#endif							/* GEONN_NEAREST_H */
