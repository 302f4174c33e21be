/*
 * algorithm.h
 *		Which algorithm answers a search.
 */
#ifndef GEONN_ALGORITHM_H
#define GEONN_ALGORITHM_H

#include "engine/search/device.h"

/*
 * Set the algorithm of a search that this device is about to take, unless it is
 * set: to the one that the question names, or for auto to the one that costs
 * less.  Called under the scheduler's lock.
 */
extern void algorithm_choose(const struct device *device, struct search *search);

#endif							/* GEONN_ALGORITHM_H */
