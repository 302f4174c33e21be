/*
 * admission.h
 *		Waiting for others to end, where there is a limit of sessions with the engine.
 */
#ifndef GEONN_ADMISSION_H
#define GEONN_ADMISSION_H

#include "client/connection.h"
#include "common/protocol.h"

/*
 * The engine has said that this session is queued: wait until it says more.  Raises an
 * error where that takes longer than geonn.admission_timeout.
 */
extern void geonn_await_admission(GeonnConnection *connection,
								  const struct geonn_queued *queued);

#endif							/* GEONN_ADMISSION_H */
