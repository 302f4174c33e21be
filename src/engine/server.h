/*
 * server.h
 *		The engine's event loop.
 */
#ifndef GEONN_SERVER_H
#define GEONN_SERVER_H

#include "device.h"

struct server_options
{
	const char *socket_path;
	struct device *devices;
	int			device_count;
	struct failure no_gpu;		/* why there is no GPU, where there is none */
	bool		supervised;		/* GEONN_SUPERVISOR_DESCRIPTOR is open */
};

/*
 * Listen, open the scheduler, serve clients until the supervisor or a signal
 * says to stop, and close everything.  Returns the exit status of the engine.
 */
extern int	server_run(const struct server_options *options);

/* Let the event loop look at scheduler and sealing threads; any thread. */
extern void server_wake(void);

/*
 * A session is about to close its socket.  Closing alone would not end the events:
 * somebody who looks at this process's descriptors at that moment keeps it open for
 * another one, and the session may be freed before.
 */
extern void server_unwatch(int socket);

/*
 * Begin to read GPUs' gauges for sessions that wait for them; session_measured is called
 * for each, soon.  False: they cannot be read.
 */
extern bool server_measure(void);

/* Send the engine's status and one message for each device, with their last gauges. */
extern bool server_send_status(int socket);

/*
 * Whether some device can serve this choice, else why not, with the reason
 * why there is no GPU.
 */
extern bool server_can_serve(enum geonn_device_choice choice,
							 struct failure *failure);

#endif							/* GEONN_SERVER_H */
