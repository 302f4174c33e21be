/*
 * shape_arcs.h
 *		Shapes on their way into a dataset, as arcs.
 */
#ifndef GEONN_SHAPE_ARCS_H
#define GEONN_SHAPE_ARCS_H

#include "client/client.h"
#include "join/reference_memory.h"
#include "points/shape.h"

typedef struct GeonnArcs GeonnArcs;

/*
 * Begin to send the shapes of one dataset; title names their source.  The result lives as long as the current memory
 * context.
 */
extern GeonnArcs *geonn_arcs_create(const char *title);

/*
 * Send the arcs of a shape, whose reader is at its first part, and count them in memory.  All arcs get this tag and
 * these columns.
 */
extern void geonn_arcs_send(GeonnArcs *arcs, GeonnClient *client, ReferenceMemory *memory, GeonnShapeReader *shape,
							int64 tag, const GeonnPointColumns *columns);

#endif							/* GEONN_SHAPE_ARCS_H */
