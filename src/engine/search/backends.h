/*
 * backends.h
 *		The kinds of devices that the engine knows.
 */
#ifndef GEONN_BACKENDS_H
#define GEONN_BACKENDS_H

#include "engine/search/device.h"

/*
 * Describe every device of this host in devices[GEONN_DEVICES_MAX], one after the other by
 * their kinds; where none is a GPU, no_gpu says why, and else it is empty.  Returns how many
 * they are.
 */
extern int	backends_find(struct device *devices, struct failure *no_gpu);

/* Whether this choice means GPUs and nothing else. */
extern bool backends_means_gpus(enum geonn_device_choice choice);

#endif							/* GEONN_BACKENDS_H */
