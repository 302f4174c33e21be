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
	int			file;			/* the descriptor that came with the last message, closed before the next message is
								 * received; -1: none */
	bool		given_away;		/* the socket has been given away, and the connection does not close it */
	MemoryContextCallback release;
} GeonnConnection;

/* Start the engine if none runs, connect to it and exchange versions. */
extern GeonnConnection *geonn_connection_open(void);

/* Connect to a running engine and exchange versions.  Returns NULL if no engine runs; starts none. */
extern GeonnConnection *geonn_connection_open_running(void);

/* Connect to a running engine, without exchanging versions.  Returns NULL if no engine listens. */
extern GeonnConnection *geonn_connection_try(void);

/*
 * geonn_connection_give_away returns the socket, which outlives the connection and stays acquired
 * (AcquireExternalFD).  geonn_connection_adopt makes a connection of such a socket again.
 */
extern int	geonn_connection_give_away(GeonnConnection *connection);
extern GeonnConnection *geonn_connection_adopt(int socket, pid_t engine_pid);

/* Close the connection before its memory context ends; the caller must not use it afterwards. */
extern void geonn_connection_close(GeonnConnection *connection);

extern void geonn_connection_send(GeonnConnection *connection, int type,
								  void *message);

/* Send a message if the socket has room for it now.  Returns whether the message was sent. */
extern bool geonn_connection_try_send(GeonnConnection *connection, int type,
									  void *message);

/* Send a message with a copy of this descriptor. */
extern void geonn_connection_send_file(GeonnConnection *connection, int type,
									   void *message, int descriptor);

/*
 * Receive one message; with GEONN_NO_WAIT, returns false if none has come.  If the
 * engine sends an error, raises it.
 */
extern bool geonn_connection_receive(GeonnConnection *connection, GeonnWait wait,
									 union geonn_message *message);

/* Take over the descriptor that came with the last message.  Returns -1 if none came. */
extern int	geonn_connection_take_file(GeonnConnection *connection);

/* Wait until a message has come or the connection has ended.  Returns false if the deadline (0: none) passes first. */
extern bool geonn_connection_wait(GeonnConnection *connection, GeonnWait wait,
								  TimestampTz deadline);

/* Wait until a message has come, and leave it unread.  Returns false if the connection has ended. */
extern bool geonn_connection_is_answered(GeonnConnection *connection, GeonnWait wait);

/*
 * Receive one message before the deadline (0: none); raises no error but a cancellation.  Returns
 * GEONN_CHANNEL_AGAIN if the deadline passes first or, with GEONN_NO_WAIT, if no message has come.
 */
extern enum geonn_channel_status geonn_connection_await(GeonnConnection *connection,
														GeonnWait wait,
														TimestampTz deadline,
														union geonn_message *message);

/* Raise the error that the engine has sent something that the protocol forbids. */
extern void geonn_connection_violation(const char *what) __attribute__((noreturn));

#endif							/* GEONN_CONNECTION_H */
