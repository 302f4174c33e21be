/*
 * kept_dataset.h
 *		Which kept dataset has a table's references as they are now.
 */
#ifndef GEONN_KEPT_DATASET_H
#define GEONN_KEPT_DATASET_H

#include "join/references.h"
#include "points/columns.h"

/*
 * Labels of the datasets that have these references, for this question, as the active
 * snapshot sees them: first of one with just this detail.  They are the rows of this
 * table, which is locked, with these of its columns [source->query_columns], as they are.
 * Returns how many labels there are, at most GEONN_LABELS_MAX for REFERENCE_DISTANCE and one
 * else: 0 where nothing tells whether the table has changed; then no dataset may be found
 * by it.
 */
extern int	geonn_label_dataset(const PointSource *source, Oid table,
								const AttrNumber *attributes, const GeonnQuestion *question,
								ReferenceDetail detail, struct geonn_label *labels);

#endif							/* GEONN_KEPT_DATASET_H */
