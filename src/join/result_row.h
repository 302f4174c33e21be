/*
 * result_row.h
 *		What the rows of a result are: pairs, as the row type has them.
 */
#ifndef GEONN_SINK_H
#define GEONN_SINK_H

#include "access/tupdesc.h"

#include "client/client.h"
#include "join/references.h"
#include "points/columns.h"

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
	TupleDesc	descriptor;		/* of the rows */
	int			metric;			/* enum geonn_metric, of bearings */
	Oid			id_type[2];		/* by SinkColumn */
	Oid			id_result[2];
	bool		widens[2];		/* integers become wider ones */
	SinkColumn *columns;		/* [descriptor->natts] */
	bool		has[SINK_COLUMNS];	/* is it in the rows? */
} GeonnSink;

/*
 * Rows are of this type, or raise an error where it is NULL (not composite), or
 * where its columns, which are matched by name, do not suit the ids.  ordinal
 * is the name that the observations' id has there, obs_id or ord.
 */
extern void geonn_sink_begin(GeonnSink *sink, TupleDesc descriptor, const char *ordinal,
							 const PointColumn *observation_id,
							 const PointColumn *reference_id, int metric);

/*
 * Rows have only these attributes of the row type, [descriptor->natts] of them,
 * numbered from 1 on.
 */
extern void geonn_sink_project(GeonnSink *sink, TupleDesc descriptor,
							   const AttrNumber *attributes);

/* Are the references' coordinates needed, or their ids, or the observations'? */
extern bool geonn_sink_needs_coordinates(const GeonnSink *sink);
extern bool geonn_sink_needs_reference_id(const GeonnSink *sink);
extern bool geonn_sink_needs_observation_id(const GeonnSink *sink);

/* The row of a pair; what its values point to lives until the next pair is taken. */
extern void geonn_sink_pair(const GeonnSink *sink, const GeonnPair *pair,
							const GeonnReferences *references, Datum *values, bool *nulls);

/* The row of a run's next pair, likewise. */
extern void geonn_sink_run(const GeonnSink *sink, GeonnRun *run,
						   const GeonnReferences *references, Datum *values, bool *nulls);

/* That of an observation that was not searched for; NULL where there is no coordinate. */
extern void geonn_sink_unmatched(const GeonnSink *sink, Datum id, bool id_is_null,
								 const double *latitude, const double *longitude,
								 Datum *values, bool *nulls);

#endif							/* GEONN_SINK_H */
