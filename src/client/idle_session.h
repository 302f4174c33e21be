/*
 * idle_session.h
 *		The session that this process keeps for its next call.
 */
#ifndef GEONN_IDLE_SESSION_H
#define GEONN_IDLE_SESSION_H

#include "client/client_slots.h"

/*
 * Hold back the idle batch of this slot, to keep it with the session when the client ends.  If another client of this
 * process holds one back, that client gives its own back.  Returns false if the caller must give this batch back instead.
 */
extern bool geonn_idle_session_hold(GeonnClient *client, int number);

/* Note that the client has been released, and holds no batch any more. */
extern void geonn_idle_session_let_go(const GeonnClient *client);

/*
 * End the session of a client that is done, or keep it for the next call.  `finished` is the message that tells the engine
 * which.  Raises no error; afterwards the client can only be released.
 */
extern void geonn_idle_session_keep(GeonnClient *client, struct geonn_finished *finished);

/*
 * Give the kept session to a new client, which has a question and no connection, with the session's
 * batch if that is large enough.  Returns false if no session of the present session_user was kept.
 */
extern bool geonn_idle_session_take(GeonnClient *client);

#endif							/* GEONN_IDLE_SESSION_H */
