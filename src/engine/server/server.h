/*
 * server.h
 *		What the engine's thread does: it lets clients in and handles events.
 */
#ifndef GEONN_SERVER_H
#define GEONN_SERVER_H

#include "engine/search/device.h"

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

#endif							/* GEONN_SERVER_H */
