/*
 * channel.h
 *		Sends and receives protocol.h's messages over a Unix socket, for module
 *		and engine.
 *
 * These functions never wait: if a socket is not ready, they return
 * GEONN_CHANNEL_AGAIN, and the caller waits in its own way (the module for a
 * latch, the engine with epoll).
 */
#ifndef GEONN_CHANNEL_H
#define GEONN_CHANNEL_H

#include <sys/types.h>

#include "common/protocol.h"

enum geonn_channel_status
{
	GEONN_CHANNEL_OK,
	GEONN_CHANNEL_AGAIN,		/* the caller has to wait */
	GEONN_CHANNEL_CLOSED,		/* the other side has closed the connection */
	GEONN_CHANNEL_MALFORMED,	/* not a message of this protocol */
	GEONN_CHANNEL_OTHER_VERSION,	/* a sound header of another protocol version; only header, hello and error can be
									 * read */
	GEONN_CHANNEL_FAILED		/* errno says why */
};

/*
 * The kernel counts, for each user, the descriptors that any process has sent and no process has
 * received.  If the count exceeds the sender's limit on open files, sending one more fails with
 * ETOOMANYREFS.  Other processes may receive theirs soon.  So the sender tries again, up to
 * GEONN_CROWDED_TRIES times with a pause before each, and then raises an error with the hint.
 */
#define GEONN_CROWDED_TRIES 500
#define GEONN_CROWDED_PAUSE_MS 20
#define GEONN_CROWDED_HINT \
	"Descriptors on their way count for all processes of the server's user together: raise their limit on open files (LimitNOFILE of the systemd unit, or \"ulimit -n\" before the server starts), or run other servers as other users."

/*
 * Connect to the engine's socket at path.  Returns a non-blocking descriptor that exec closes, or
 * -1 with errno; EACCES if the process at the other end runs as another user.  *peer becomes that
 * process's id.
 */
extern int	geonn_channel_connect(const char *path, pid_t *peer);

/*
 * Return whether the process at the other end runs as this process's user; if not, errno says why.
 * *peer becomes the other process's id.
 */
extern bool geonn_channel_peer_is_own_user(int socket, pid_t *peer);

/* Fill in the header of a message of this type, and send the message, with a copy of the descriptor unless that is -1. */
extern enum geonn_channel_status geonn_channel_send(int socket, int type,
													void *message,
													int descriptor);

/*
 * Receive one message.  *descriptor becomes the descriptor that came with the message, or -1; the caller closes it.  With
 * NULL as descriptor, the function closes a descriptor that comes.  Every string in the message ends with a zero byte.
 */
extern enum geonn_channel_status geonn_channel_receive(int socket,
													   union geonn_message *message,
													   int *descriptor);

/*
 * Look for a message of this type among those that the other side sent before it closed the connection.  If the other side
 * left messages unread, the kernel first reports one error, and then hands out the messages.
 */
extern bool geonn_channel_find_last(int socket, int type, union geonn_message *message);

/*
 * Map a batch's memfd, after checking that it holds at least these bytes and
 * is sealed against shrinking, so that no access can raise SIGBUS.  Returns
 * NULL with errno; EPERM if size or seals are wrong.
 */
extern void *geonn_batch_map(int descriptor, size_t bytes);

/*
 * Return whether the file is a memfd that is sealed, so that no process can change or shrink it.  *bytes becomes its size.
 */
extern bool geonn_file_is_sealed(int descriptor, uint64_t *bytes);

#endif							/* GEONN_CHANNEL_H */
