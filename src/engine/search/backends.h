/*
 * backends.h
 *		The kinds of devices that the engine knows.
 */
#ifndef GEONN_BACKENDS_H
#define GEONN_BACKENDS_H

#include "engine/search/device.h"

/*
 * Describe every device of this host in devices[GEONN_DEVICES_MAX], kind after
 * kind.  If none is a GPU, no_gpu says why; otherwise no_gpu is empty.
 * Returns the number of devices.
 */
extern int	backends_find(struct device *devices, struct failure *no_gpu);

/* Whether this choice allows GPUs alone. */
extern bool backends_means_gpus(enum geonn_device_choice choice);

#endif							/* GEONN_BACKENDS_H */
