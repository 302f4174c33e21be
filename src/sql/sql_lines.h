/*
 * sql_lines.h
 *		Lines as the references of PostGIS's operator <->.
 */
#ifndef GEONN_SQL_LINES_H
#define GEONN_SQL_LINES_H

#include "points/point_row.h"

/*
 * Read lines of this kind, not compressed.  Returns POINT_NULL also for empty ones.  With POINT_VALID, sets latitude and
 * longitude, in degrees, to those of a vertex, and whether these are measured lines (sql_lines.c).
 */
extern PointStatus geonn_read_lines(GeonnPointKind kind, const NullableDatum *value, double *latitude,
									double *longitude, bool *is_measured);

/*
 * The greatest distance, by geonn, of lines that <-> may put before measured lines at this distance; infinity where no
 * limit is known.  are_measured: all of the lines are.
 */
extern double geonn_lines_in_doubt(double distance, bool are_measured);

#endif							/* GEONN_SQL_LINES_H */
