/*
 * mistake.h
 *		Which mistake explains coordinates that are out of range.
 */
#ifndef GEONN_MISTAKE_H
#define GEONN_MISTAKE_H

#include "points/point_row.h"

/*
 * What may be wrong with points of these counts, by PointStatus, and how to mend it: sentences
 * for a HINT.  NULL: no mistake explains all of those that are out of range.  source is NULL for
 * points of arrays.
 */
extern char *geonn_mistake_hint(const PointSource *source, const uint64 *counts);

/*
 * Raise geonn_check's warning about the same.  fits_swapped: the valid points, too, would be
 * valid with latitude and longitude swapped.
 */
extern void geonn_warn_of_mistake(const PointSource *source, const uint64 *counts,
								  bool fits_swapped);

#endif							/* GEONN_MISTAKE_H */
