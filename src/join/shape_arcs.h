/*
 * shape_arcs.h
 *		Shapes on their way to the engine, as arcs: into a dataset, or into batches of observations.
 */
#ifndef GEONN_SHAPE_ARCS_H
#define GEONN_SHAPE_ARCS_H

#include "client/client.h"
#include "join/reference_memory.h"
#include "points/point_row.h"

typedef struct GeonnArcs GeonnArcs;

/*
 * Begin to send the shapes of one dataset, or of one client's observations; title names their source.  memory counts the
 * arcs of references; NULL: the shapes are observations.  The result lives as long as the current memory context.
 */
extern GeonnArcs *geonn_arcs_create(const char *title, GeonnClient *client, ReferenceMemory *memory);

/*
 * Send the arcs of a row: a shape, whose reader is at its first part, or without a shape the point, as an arc of no length.
 * All arcs get this tag and these columns.
 */
extern void geonn_arcs_send(GeonnArcs *arcs, const PointRow *row, int64 tag, const GeonnPointColumns *columns);

/*
 * Write the arcs of an observation, a row as above, into the batch that the client fills, where the client has found room for
 * geonn_row_arcs() of them.  bytes: geonn_arcs_observed_bytes().
 */
extern void geonn_arcs_observe(GeonnArcs *arcs, const PointRow *row, Datum id, const GeonnPointColumns *columns, uint64 bytes);

/* Return how many bytes the engine takes beside the batch for a row of an observation, until it is answered. */
extern uint64 geonn_arcs_observed_bytes(const PointRow *row);

/* Return how many arcs a row of an observation has. */
static inline uint64
geonn_row_arcs(const PointRow *row)
{
	return row->shape == NULL ? 1 : geonn_shape_arcs(row->shape);
}

#endif							/* GEONN_SHAPE_ARCS_H */
