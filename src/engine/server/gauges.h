/*
 * gauges.h
 *		Reads GPUs' gauges: utilisation, temperature, power.
 */
#ifndef GEONN_GAUGES_H
#define GEONN_GAUGES_H

#include <stdbool.h>
#include <stdint.h>

/* a field is GEONN_UNKNOWN if the GPU or its driver does not report the gauge */
struct gauges
{
	int32_t		utilization;	/* percent of the time in which a kernel ran */
	int32_t		temperature;	/* degrees Celsius */
	int32_t		power;			/* milliwatts */
};

/*
 * Begin to read the gauges of all usable GPUs, on a thread of its own, unless a reading is under way.  That thread wakes
 * the server's thread when the reading is over.  Returns false if no thread can be created.  Only for the server's thread.
 */
extern bool gauges_begin_reading(void);

/* Return whether no reading is under way.  Any thread may call this. */
extern bool gauges_are_read(void);

/* Return the gauges of this device in the last reading; all unknown while a reading is under way. */
extern struct gauges gauges_of(int device_number);

#endif							/* GEONN_GAUGES_H */
