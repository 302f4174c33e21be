/*
 * sink.h
 *		Where the pairs go: the result of a set-returning function.
 */
#ifndef GEONN_SINK_H
#define GEONN_SINK_H

#include "fmgr.h"
#include "nodes/execnodes.h"

#include "client.h"
#include "columns.h"
#include "references.h"

typedef enum SinkColumn
{
	SINK_OBSERVATION_ID,
	SINK_REFERENCE_ID,
	SINK_DISTANCE,
	SINK_RANK,
	SINK_OBSERVATION_LATITUDE,
	SINK_OBSERVATION_LONGITUDE,
	SINK_REFERENCE_LATITUDE,
	SINK_REFERENCE_LONGITUDE,
	SINK_BEARING,
	SINK_NOTHING				/* a dropped column of the type */
} SinkColumn;

#define SINK_COLUMNS SINK_NOTHING

typedef struct GeonnSink
{
	ReturnSetInfo *result;
	int			metric;			/* enum geonn_metric, of bearings */
	Oid			id_type[2];		/* integers that become wider, by SinkColumn */
	Oid			id_result[2];
	SinkColumn *columns;		/* [of the result's type] */
	bool		has[SINK_COLUMNS];	/* is it in the result? */
} GeonnSink;

/*
 * The calling function's result becomes a tuplestore of its row type, whose
 * columns are matched by name and checked against those of the ids.
 * ordinal is the name that the observations' id has there, obs_id or ord.
 */
extern void geonn_sink_begin(GeonnSink *sink, FunctionCallInfo fcinfo, const char *ordinal,
							 const PointColumn *observation_id,
							 const PointColumn *reference_id, int metric);

/* Are the references' coordinates needed? */
extern bool geonn_sink_needs_coordinates(const GeonnSink *sink);

extern void geonn_sink_put(GeonnSink *sink, const GeonnPair *pair,
						   const GeonnReferences *references);

/* An observation that has none; of its coordinates, NULL stands for NULL. */
extern void geonn_sink_put_unmatched(GeonnSink *sink, Datum id, bool id_is_null,
									 const double *latitude, const double *longitude);

#endif							/* GEONN_SINK_H */
