/*
 * server.h
 *		The server's thread: lets clients in and handles events.
 */
#ifndef GEONN_SERVER_H
#define GEONN_SERVER_H

#include "engine/search/device.h"

struct server_options
{
	const char *socket_path;
	struct device *devices;
	int			device_count;
	struct failure no_gpu;		/* why no device is a GPU, if none is */
	bool		supervised;		/* GEONN_SUPERVISOR_DESCRIPTOR is open */
};

/*
 * Listen, open the scheduler, serve clients until the supervisor, a signal or
 * a lost device ends the engine, and close everything.  Returns the exit
 * status of the engine.
 */
extern int	server_run(const struct server_options *options);

#endif							/* GEONN_SERVER_H */
