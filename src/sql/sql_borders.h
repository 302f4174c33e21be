/*
 * sql_borders.h
 *		Whether a point is at a vertex of a polygon among the references, or on a side along its meridian.
 */
#ifndef GEONN_SQL_BORDERS_H
#define GEONN_SQL_BORDERS_H

#include "sql/sql_references.h"

/* what an execution knows of the longitudes of vertices */
typedef struct Borders
{
	const SqlReferences *references;
	MemoryContext context;		/* lives as long as the references */
	uint64		arcs;			/* how many the references have */
	uint64		compared;		/* how many were compared with points */
	bool		has_tried;		/* to note longitudes, for which there may be no room */
	uint64	   *longitudes;		/* a bit is set for each longitude of a vertex; NULL: none are noted */
	int			shift;			/* makes the number of a bit of a hash */
} Borders;

/* Begin with references that were read, in the current memory context, which lives as long as they do. */
extern void geonn_borders_begin(Borders *borders, const SqlReferences *references);

/* Is the point, in degrees, at a vertex of this reference's shape, or on a side along its meridian? */
extern bool geonn_borders_have(Borders *borders, const Reference *reference, double latitude, double longitude);

#endif							/* GEONN_SQL_BORDERS_H */
