/*
 * engine_status.h
 *		Reports the status of the engine and of its devices.
 *
 * Only the server's thread uses these functions.
 */
#ifndef GEONN_ENGINE_STATUS_H
#define GEONN_ENGINE_STATUS_H

#include "engine/search/device.h"

/*
 * Note that the engine starts now, with these devices; if none is a GPU,
 * no_gpu says why.  The caller keeps both alive.
 */
extern void engine_status_open(struct device *devices, int device_count,
							   const struct failure *no_gpu);

/* Note the memory of the process before the first client: that is the engine's own. */
extern void engine_status_note_memory(void);

/* Send the engine's status and one message for each device, with their last gauges. */
extern bool engine_status_send(int socket);

/*
 * Begin to read GPUs' gauges for a session that waits for them.  False if they
 * cannot be read.
 */
extern bool engine_status_measure(void);

/*
 * Whether a reading has ended, or its time has run out, since the last call.
 */
extern bool engine_status_is_measured(void);

/* Milliseconds until the reading's time runs out; -1 if no session waits for one. */
extern int	engine_status_measured_within_ms(void);

/*
 * Whether some device can serve this choice; if not, the failure says why,
 * with the reason why no GPU is in use.
 */
extern bool engine_status_can_serve(enum geonn_device_choice choice,
									struct failure *failure);

#endif							/* GEONN_ENGINE_STATUS_H */
