/*
 * admission.h
 *		A session's wait for admission, while geonn.max_sessions is reached.
 */
#ifndef GEONN_ADMISSION_H
#define GEONN_ADMISSION_H

#include "client/connection.h"
#include "common/protocol.h"

/*
 * Wait until the engine admits this session, after it has answered that the session is
 * queued.  Raises an error after geonn.admission_timeout.
 */
extern void geonn_await_admission(GeonnConnection *connection,
								  const struct geonn_queued *queued);

#endif							/* GEONN_ADMISSION_H */
