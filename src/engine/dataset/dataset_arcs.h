/*
 * dataset_arcs.h
 *		Checks references that are arcs of shapes, and tells which are long.
 */
#ifndef GEONN_DATASET_ARCS_H
#define GEONN_DATASET_ARCS_H

#include "common/assertion.h"
#include "common/geodesy.h"
#include "engine/dataset/dataset.h"

/*
 * Check the new arcs of a dataset, dataset->count ... count - 1, by the rules of protocol_dataset.h, and note the last
 * polygon and its ring.  The caller has checked the coordinates at which the arcs begin.  After a failure the dataset
 * can only be freed.
 */
extern bool dataset_check_arcs(struct dataset *dataset, size_t count, struct failure *failure);

/* Check that the ring of arc end - 1 is closed; an arc of a line passes. */
extern bool dataset_check_last_ring(const struct dataset *dataset, size_t end, struct failure *failure);

/*
 * Return whether an arc, which is not the first, begins where the arc before it ends, in the same part of the same shape.
 */
static inline bool
dataset_arc_goes_on(const struct dataset *dataset, size_t arc)
{
	geonn_assert(arc > 0);
	return dataset->shape[arc] == dataset->shape[arc - 1] && dataset->polygon[arc] == dataset->polygon[arc - 1] &&
		dataset->latitude[arc] == dataset->end_latitude[arc - 1] &&
		dataset->longitude[arc] == dataset->end_longitude[arc - 1];
}

/*
 * Return whether an arc, which is not the first, must follow the arc before it in the same line or ring.  The dataset has
 * GEONN_COLUMN_SEGMENT.
 */
static inline bool
dataset_part_goes_on(const struct dataset *dataset, size_t arc)
{
	geonn_assert(arc > 0);
	return dataset->segment[arc - 1] < dataset->part_end[arc - 1];
}

/* Return into how many pieces an index cuts an arc of a dataset. */
extern uint32_t dataset_arc_pieces(const struct dataset *dataset, size_t arc);

/* Return whether an arc of a dataset is longer than a quarter circle; a search then measures each half by itself. */
extern bool dataset_arc_is_long(const struct dataset *dataset, size_t arc);

/* Return the middle of a long arc of a dataset, for devices that do not have geonn_arc_middle(). */
extern struct geonn_vector dataset_arc_middle(const struct dataset *dataset, size_t arc);

#endif							/* GEONN_DATASET_ARCS_H */
