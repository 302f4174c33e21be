/*
 * server.h
 *		The server's thread: lets clients in and handles events.
 */
#ifndef GEONN_SERVER_H
#define GEONN_SERVER_H

#include <stdbool.h>

/*
 * Listen at this path, open the scheduler, serve clients until the supervisor, a signal or a lost device ends the engine,
 * and close everything.  Returns the exit status of the engine.
 *
 * supervised: GEONN_SUPERVISOR_DESCRIPTOR leads to the supervisor, whose first message has the settings.  An engine that
 * is started by hand has 1 GB for batches and a thread for each core, keeps no dataset, and has no other limit.
 */
extern int	server_run(const char *socket_path, bool supervised);

#endif							/* GEONN_SERVER_H */
