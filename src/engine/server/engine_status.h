/*
 * engine_status.h
 *		Reports the status of the engine and of its devices.
 *
 * Only the server's thread uses these functions.
 */
#ifndef GEONN_ENGINE_STATUS_H
#define GEONN_ENGINE_STATUS_H

#include <stdbool.h>

/* Note that the engine starts now. */
extern void engine_status_open(void);

/* Note the memory of the process before the first client, as the engine's own. */
extern void engine_status_note_memory(void);

/* Send the engine's status, and one message for each device with its last gauges. */
extern bool engine_status_send(int socket);

/* Begin to read GPUs' gauges for a session that waits for them.  Returns false if they cannot be read. */
extern bool engine_status_measure(void);

/* Return whether, since the last call, a reading of gauges has ended or its time has run out. */
extern bool engine_status_is_measured(void);

/* Return the milliseconds until the reading's time runs out; -1 if no session waits for one. */
extern int	engine_status_measured_within_ms(void);

#endif							/* GEONN_ENGINE_STATUS_H */
