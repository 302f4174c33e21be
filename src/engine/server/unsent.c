/*
 * unsent.c
 *		Messages of a session that wait until the kernel takes their descriptors
 *		along.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/server/unsent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"

struct unsent
{
	struct unsent *next;
	int			type;
	int			descriptor;		/* a copy of the descriptor to send, or -1 */
	int			tries;
	union geonn_message message;
};

static int	waiting;			/* how many messages of all sessions wait */
static int64_t try_at_ms;		/* when to try again, while some wait */

bool
unsent_is_crowded(enum geonn_channel_status status)
{
	return status == GEONN_CHANNEL_FAILED && errno == ETOOMANYREFS;
}

bool
unsent_add(struct unsent **first, int type, const void *message, int descriptor)
{
	struct unsent **link = first;
	struct unsent *unsent = calloc(1, sizeof(*unsent));

	if (unsent == NULL)
		return false;
	unsent->type = type;
	memcpy(&unsent->message, message, geonn_message_size(type));
	unsent->descriptor = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : -1;
	if (descriptor >= 0 && unsent->descriptor < 0)
	{
		free(unsent);
		return false;
	}
	if (waiting == 0)
		unsent_note_tried();
	waiting++;
	while (*link != NULL)
		link = &(*link)->next;
	*link = unsent;
	return true;
}

static void
free_first(struct unsent **first)
{
	struct unsent *unsent = *first;

	*first = unsent->next;
	if (unsent->descriptor >= 0)
		close(unsent->descriptor);
	free(unsent);
	waiting--;
}

enum geonn_channel_status
unsent_send(struct unsent **first, int socket, bool *give_up)
{
	*give_up = false;
	while (*first != NULL)
	{
		struct unsent *unsent = *first;
		enum geonn_channel_status status = geonn_channel_send(socket, unsent->type,
															  &unsent->message, unsent->descriptor);

		*give_up = unsent_is_crowded(status) && ++unsent->tries >= GEONN_CROWDED_TRIES;
		if (status != GEONN_CHANNEL_OK)
			return status;
		free_first(first);
	}
	return GEONN_CHANNEL_OK;
}

void
unsent_drop(struct unsent **first)
{
	while (*first != NULL)
		free_first(first);
}

int
unsent_within_ms(void)
{
	int64_t		left = try_at_ms - now_ms();

	if (waiting == 0)
		return -1;
	return left > 0 ? (int) left : 0;
}

void
unsent_note_tried(void)
{
	try_at_ms = now_ms() + GEONN_CROWDED_PAUSE_MS;
}
