/*
 * unsent.h
 *		Messages of a session that wait until the kernel takes their descriptors
 *		along.
 *
 * Only the server's thread uses these functions.
 */
#ifndef GEONN_UNSENT_H
#define GEONN_UNSENT_H

#include "common/channel.h"

struct unsent;

/*
 * Whether a message was not sent since too many descriptors are on their way between processes
 * (common/channel.h); errno must still be that of geonn_channel_send.
 */
extern bool unsent_is_crowded(enum geonn_channel_status status);

/* Let a message, with a copy of the descriptor or -1, wait behind those that wait already.  False
 * with errno. */
extern bool unsent_add(struct unsent **first, int type, const void *message, int descriptor);

/*
 * Send the messages that wait, until the kernel refuses one.  If it refuses one for its
 * descriptor, the result is GEONN_CHANNEL_FAILED with errno ETOOMANYREFS; *give_up: the message
 * has been tried for long enough.
 */
extern enum geonn_channel_status unsent_send(struct unsent **first, int socket, bool *give_up);

/* Drop the messages that wait. */
extern void unsent_drop(struct unsent **first);

/* Milliseconds until messages that wait are to be tried again, or -1: none waits. */
extern int	unsent_within_ms(void);

/* Note that the messages that wait have just been tried. */
extern void unsent_note_tried(void);

#endif							/* GEONN_UNSENT_H */
