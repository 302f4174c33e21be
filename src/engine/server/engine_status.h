/*
 * engine_status.h
 *		What the engine says of itself and of its devices.
 *
 * All of this is the server thread's alone.
 */
#ifndef GEONN_ENGINE_STATUS_H
#define GEONN_ENGINE_STATUS_H

#include "engine/search/device.h"

/*
 * The engine starts now, with these devices; where none is a GPU, no_gpu says why.  Both
 * stay the caller's.
 */
extern void engine_status_open(struct device *devices, int device_count,
							   const struct failure *no_gpu);

/* Clients are let in from now on: what the process has taken so far is the engine's own. */
extern void engine_status_note_memory(void);

/* Send the engine's status and one message for each device, with their last gauges. */
extern bool engine_status_send(int socket);

/*
 * Begin to read GPUs' gauges for a session that waits for them.  False: they cannot be
 * read.
 */
extern bool engine_status_measure(void);

/*
 * Whether a reading that began has come to its end, or has had its time, since this was
 * asked last.
 */
extern bool engine_status_is_measured(void);

/* Milliseconds until it has had its time; -1 where none is awaited. */
extern int	engine_status_measured_within_ms(void);

/*
 * Whether some device can serve this choice, else why not, with the reason
 * why there is no GPU.
 */
extern bool engine_status_can_serve(enum geonn_device_choice choice,
									struct failure *failure);

#endif							/* GEONN_ENGINE_STATUS_H */
