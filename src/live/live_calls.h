/*
 * live_calls.h
 *		Calls that this process has answered alone, until the engine has counted them.
 */
#ifndef GEONN_LIVE_CALLS_H
#define GEONN_LIVE_CALLS_H

#include "client/client.h"
#include "live/live.h"

/* The question of a client that is opened only for a base, or to count calls. */
extern const GeonnQuestion geonn_live_no_question;

/* End a client that was opened with this message, and have the engine count the calls of the message's label. */
extern void geonn_live_end_client(GeonnClient *client, const struct geonn_call *message);

/* Add a call to the uncounted ones; `message` is the call's own. */
extern void geonn_live_add_call(const struct geonn_call *message, const struct geonn_finished *work);

/*
 * geonn_live_count_calls() has the engine count all calls; geonn_live_report() does the same, but
 * only if the engine is running.
 */
extern void geonn_live_count_calls(void);
extern void geonn_live_report(void);

#endif							/* GEONN_LIVE_CALLS_H */
