/*
 * kept_dataset.h
 *		Which kept dataset has a table's references as they are now.
 */
#ifndef GEONN_KEPT_DATASET_H
#define GEONN_KEPT_DATASET_H

#include "client.h"
#include "columns.h"

/*
 * The label of the dataset that has these references, for this question, as the active
 * snapshot sees them.  They are the rows of this table, which is locked, with these of
 * its columns [source->query_columns], as they are.  Returns false where nothing tells
 * whether the table has changed; then no dataset of it may be kept or taken.
 */
extern bool geonn_label_dataset(const PointSource *source, Oid table,
								const AttrNumber *attributes, const GeonnQuestion *question,
								bool keeps_coordinates, struct geonn_label *label);

#endif							/* GEONN_KEPT_DATASET_H */
