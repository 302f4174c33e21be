/*
 * backends.h
 *		The kinds of devices that the engine knows, and which of them a session
 *		may use.
 */
#ifndef GEONN_BACKENDS_H
#define GEONN_BACKENDS_H

#include "engine/search/device.h"

/* the devices of this host, kind after kind; and the reason why no GPU is among them, empty if one is */
extern struct device engine_devices[GEONN_DEVICES_MAX];
extern int	engine_device_count;
extern struct failure engine_no_gpu;

/* Find the devices of this host.  server_run() calls this before any other thread starts. */
extern void backends_find(void);

/* Return whether some device can serve this choice; if not, the failure says why, with the reason why no GPU is in use. */
extern bool backends_can_serve(enum geonn_device_choice choice, struct failure *failure);

/* Return whether searches of this choice may go to this device, if the device is usable. */
extern bool backends_serves(const struct device *device, enum geonn_device_choice choice);

/* Return whether choice auto uses this device. */
extern bool backends_auto_uses(const struct device *device);

/* Return whether the CPU answered a search of choice auto although the host has GPUs. */
extern bool backends_fell_back(const struct search *search);

#endif							/* GEONN_BACKENDS_H */
