/*
 * gauges.h
 *		What GPUs say of themselves: utilisation, temperature, power.
 */
#ifndef GEONN_GAUGES_H
#define GEONN_GAUGES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/search/device.h"

/* each GEONN_UNKNOWN where the GPU or its driver does not say */
struct gauges
{
	int32_t		utilization;	/* percent of the time in which something ran on it */
	int32_t		temperature;	/* degrees Celsius */
	int32_t		power;			/* milliwatts that it draws */
};

/*
 * Begin to read those of all GPUs that are usable, on a thread of its own, unless such a
 * reading is under way.  changed() is called from that thread when it is over.  False
 * where there is no thread to be had.  The server's thread alone.
 */
extern bool gauges_begin_reading(const struct device *devices, int device_count,
								 void (*changed) (void));

/* Whether no reading is under way; any thread. */
extern bool gauges_are_read(void);

/* What the last reading has found of this device; all unknown while one is under way. */
extern struct gauges gauges_of(int device_number);

#endif							/* GEONN_GAUGES_H */
