/*
 * known_devices.h
 *		The devices of the engine that answered last, also after its end.
 */
#ifndef GEONN_KNOWN_DEVICES_H
#define GEONN_KNOWN_DEVICES_H

#include "common/protocol.h"

/* For the supervisor: an engine is started, from which no message has come. */
extern void known_devices_begin(void);

/*
 * For the supervisor: take a message of the engine's status.  With the last one of a status
 * all its devices become known, in place of the former ones.  Returns false if this is no
 * message that may come now.
 */
extern bool known_devices_receive(const union geonn_message *message);

/*
 * For backends: how many devices are known, 0 if none.  Writes them to devices, which has
 * room for GEONN_DEVICES_MAX.  What changes from moment to moment is as it was when the
 * engine told it.
 */
extern int	known_devices_read(struct geonn_device_status *devices);

#endif							/* GEONN_KNOWN_DEVICES_H */
