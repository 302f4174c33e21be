/*
 * connection.h
 *		A backend's connection to the engine: messages, waits, and how they
 *		fail.
 *
 * A connection lives as long as the memory context that was current when it
 * was opened: success, error and cancellation all close it.
 */
#ifndef GEONN_CONNECTION_H
#define GEONN_CONNECTION_H

#include <sys/types.h>

#include "datatype/timestamp.h"
#include "utils/palloc.h"

#include "common/channel.h"
#include "base/wait_event.h"

typedef struct GeonnConnection
{
	int			socket;			/* -1: none */
	pid_t		engine_pid;
	int			file;			/* the file that came with the last message, closed before the next one; -1: none */
	bool		given_away;		/* the socket was given away, and is not to be closed here */
	MemoryContextCallback release;
} GeonnConnection;

/* Start the engine if none runs, connect to it and exchange versions. */
extern GeonnConnection *geonn_connection_open(void);

/* Connect to a running engine and exchange versions.  Returns NULL where none runs, and starts none. */
extern GeonnConnection *geonn_connection_open_running(void);

/* Connect to a running engine, without exchanging versions.  Returns NULL where none listens. */
extern GeonnConnection *geonn_connection_try(void);

/*
 * geonn_connection_give_away returns the socket, which outlives the connection, and goes on to count among
 * the descriptors that PostgreSQL knows of; geonn_connection_adopt makes a connection of such a socket again.
 */
extern int	geonn_connection_give_away(GeonnConnection *connection);
extern GeonnConnection *geonn_connection_adopt(int socket, pid_t engine_pid);

/* Close the connection ahead of its memory context; nothing more is done with it. */
extern void geonn_connection_close(GeonnConnection *connection);

extern void geonn_connection_send(GeonnConnection *connection, int type,
								  void *message);

/* Send a message if that can be done at once, and return whether it was. */
extern bool geonn_connection_try_send(GeonnConnection *connection, int type,
									  void *message);

/* Send a message with a copy of this descriptor. */
extern void geonn_connection_send_file(GeonnConnection *connection, int type,
									   void *message, int descriptor);

/*
 * Receive one message; without waiting, return false if none has come.  If the
 * engine sends an error, raises it.
 */
extern bool geonn_connection_receive(GeonnConnection *connection, GeonnWait wait,
									 union geonn_message *message);

/* Take over the file that came with the message that was received last; -1: none came. */
extern int	geonn_connection_take_file(GeonnConnection *connection);

/*
 * Wait until a message has come or the connection has ended.  Returns false if the
 * deadline (0: none) came first.
 */
extern bool geonn_connection_wait(GeonnConnection *connection, GeonnWait wait,
								  TimestampTz deadline);

/*
 * Wait until a message has come, and leave it there; false: the connection has ended.
 */
extern bool geonn_connection_is_answered(GeonnConnection *connection, GeonnWait wait);

/*
 * Receive one message before the deadline (0: none); raises no error but a
 * cancellation.  GEONN_CHANNEL_AGAIN: the deadline came first, or without waiting, none has come.
 */
extern enum geonn_channel_status geonn_connection_await(GeonnConnection *connection,
														GeonnWait wait,
														TimestampTz deadline,
														union geonn_message *message);

/* Raise the error that the engine sent something which the protocol forbids. */
extern void geonn_connection_violation(const char *what) __attribute__((noreturn));

#endif							/* GEONN_CONNECTION_H */
