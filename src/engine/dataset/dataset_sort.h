/*
 * dataset_sort.h
 *		What sorts a dataset's references: for dataset_sort.c, and dataset_put_back.c.
 */
#ifndef GEONN_DATASET_SORT_H
#define GEONN_DATASET_SORT_H

#include "engine/dataset/dataset.h"

/* how many references one piece of the work has */
#define SORT_PIECE_ROWS ((size_t) 1 << 15)

/*
 * Put the references in the order of their tags if few are out of place.  False if they are not few, or if a tag
 * occurs twice, or memory is short: then the dataset is as it was; or once the sort is cancelled.
 */
extern bool dataset_put_back(struct dataset *dataset, const atomic_bool *cancelled);

#endif							/* GEONN_DATASET_SORT_H */
