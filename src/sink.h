/*
 * sink.h
 *		Where the pairs go: the result of a set-returning function.
 */
#ifndef GEONN_SINK_H
#define GEONN_SINK_H

#include "fmgr.h"
#include "nodes/execnodes.h"

#include "client.h"

typedef struct GeonnSink
{
	ReturnSetInfo *result;
} GeonnSink;

/* The calling function's result becomes a tuplestore of geonn_pair. */
extern void geonn_sink_begin(GeonnSink *sink, FunctionCallInfo fcinfo);

extern void geonn_sink_put(GeonnSink *sink, const GeonnPair *pair);

#endif							/* GEONN_SINK_H */
