/*
 * backends.h
 *		The kinds of devices that the engine knows, and which of them a session
 *		may use.
 */
#ifndef GEONN_BACKENDS_H
#define GEONN_BACKENDS_H

#include "engine/search/device.h"

/*
 * Describe every device of this host in room[GEONN_DEVICES_MAX], kind after
 * kind.  If none is a GPU, no_gpu says why; otherwise no_gpu is empty.  Returns
 * the number of devices.  The caller must keep the array.
 */
extern int	backends_find(struct device *room, struct failure *no_gpu);

/*
 * Whether some device can serve this choice; if not, the failure says why.
 */
extern bool backends_can_serve(enum geonn_device_choice choice, struct failure *failure);

/* Whether searches of this choice may go to this device, if it can be used. */
extern bool backends_serves(const struct device *device, enum geonn_device_choice choice);

/* Whether choice auto uses this device. */
extern bool backends_auto_uses(const struct device *device);

/*
 * Whether a search of choice auto was answered by a device of a lower rank, as
 * one of a higher rank cannot be used.
 */
extern bool backends_fell_back(const struct search *search);

/* Whether this choice allows GPUs alone. */
extern bool backends_means_gpus(enum geonn_device_choice choice);

#endif							/* GEONN_BACKENDS_H */
