/*
 * connection.h
 *		A backend's connection to the engine: messages, waits, and the errors
 *		that they end in.
 *
 * A connection lives as long as the memory context that was current when it
 * was made: success, error and cancellation all close it.
 */
#ifndef GEONN_CONNECTION_H
#define GEONN_CONNECTION_H

#include <sys/types.h>

#include "datatype/timestamp.h"
#include "utils/palloc.h"

#include "common/channel.h"
#include "wait_event.h"

typedef struct GeonnConnection
{
	int			socket;			/* -1: none */
	pid_t		engine_pid;
	MemoryContextCallback release;
} GeonnConnection;

/* Connect to the engine, which is started if need be, and greet it. */
extern GeonnConnection *geonn_connection_open(void);

/* The same, but NULL where no engine runs: none is started. */
extern GeonnConnection *geonn_connection_open_running(void);

/*
 * Connect to an engine that runs, without a greeting.  Returns NULL, with
 * errno, where none listens.
 */
extern GeonnConnection *geonn_connection_try(void);

extern void geonn_connection_send(GeonnConnection *connection, int type,
								  void *message);

/* The same if it can be done at once; what comes of it is not told. */
extern void geonn_connection_try_send(GeonnConnection *connection, int type,
									  void *message);

/* The same as the first with a copy of this descriptor. */
extern void geonn_connection_send_file(GeonnConnection *connection, int type,
									   void *message, int descriptor);

/*
 * Receive one message; without waiting, return false where none is there.  An
 * error that the engine sends is raised.  *descriptor is the caller's to
 * close, or -1.
 */
extern bool geonn_connection_receive(GeonnConnection *connection, GeonnWait wait,
									 union geonn_message *message,
									 int *descriptor);

/*
 * Wait until there is a message, or the connection has ended; false: the deadline (0:
 * none) came first.
 */
extern bool geonn_connection_wait(GeonnConnection *connection, GeonnWait wait,
								  TimestampTz deadline);

/*
 * Receive one message before the deadline (0: whenever it comes); raises
 * nothing but a cancellation.  GEONN_CHANNEL_AGAIN: the deadline came first.
 */
extern enum geonn_channel_status geonn_connection_await(GeonnConnection *connection,
														GeonnWait wait,
														TimestampTz deadline,
														union geonn_message *message,
														int *descriptor);

/* The engine sent what it must not. */
extern void geonn_connection_violation(const char *what) __attribute__((noreturn));

#endif							/* GEONN_CONNECTION_H */
