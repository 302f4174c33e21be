/*
 * kept_dataset.h
 *		Which kept dataset has a table's references as they are now.
 */
#ifndef GEONN_KEPT_DATASET_H
#define GEONN_KEPT_DATASET_H

#include "join/references.h"
#include "points/columns.h"

/*
 * Write labels of the datasets that contain these references for this question, as the
 * active snapshot sees them; the first label is of a dataset with exactly this detail.  The
 * references are the rows of this table, which is locked.  Returns the number of labels, at most
 * GEONN_LABELS_MAX for REFERENCE_DISTANCE and one otherwise.  0: it cannot be told whether
 * the table has changed; then no dataset must be found by its table.
 */
extern int	geonn_label_dataset(const PointSource *source, const SourceTable *table,
								const GeonnQuestion *question, ReferenceDetail detail,
								struct geonn_label *labels);

/*
 * Write what the meaning of the table's pages depends on, as in a label: GEONN_SUBJECT_BYTES, to be
 * compared.  Returns false if pages do not show all changes of the table to the active snapshot.
 */
extern bool geonn_describe_pages(const PointSource *source, Relation table,
								 const AttrNumber *attributes, const GeonnQuestion *question,
								 uint8 *subject);

#endif							/* GEONN_KEPT_DATASET_H */
