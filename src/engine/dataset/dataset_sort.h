/*
 * dataset_sort.h
 *		What sorts a dataset's references: for dataset_sort.c, and dataset_put_back.c.
 */
#ifndef GEONN_DATASET_SORT_H
#define GEONN_DATASET_SORT_H

#include "engine/dataset/dataset.h"

/*
 * Put the references in the order of their tags if few are out of place, and no tag occurs twice.  Returns false, with the
 * dataset as it was, if that is not so, or if memory is short.  Returns false also soon after *cancelled is set: then the
 * dataset can only be freed.
 */
extern bool dataset_put_back(struct dataset *dataset, const atomic_bool *cancelled);

#endif							/* GEONN_DATASET_SORT_H */
