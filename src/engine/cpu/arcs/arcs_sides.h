/*
 * arcs_sides.h
 *		Tells on which side of a line or ring an observation lies, seen along it.
 */
#ifndef GEONN_CPU_ARCS_SIDES_H
#define GEONN_CPU_ARCS_SIDES_H

#include "common/geodesy.h"
#include "engine/dataset/dataset.h"

/* Return the side of an arc on which a point lies whose nearest place is between the arc's ends. */
extern enum geonn_line_side cpu_arcs_side(const struct dataset *dataset, size_t arc, struct geonn_vector point);

/*
 * Return the side of a line or ring on which a point lies whose nearest place is the begin or the end of an arc of it.
 * The dataset has GEONN_COLUMN_SEGMENT.  GEONN_LINE_NO_SIDE: the line or ring has no length.
 */
extern enum geonn_line_side cpu_arcs_side_at_vertex(const struct dataset *dataset, size_t arc, bool at_end,
													struct geonn_vector point);

#endif							/* GEONN_CPU_ARCS_SIDES_H */
