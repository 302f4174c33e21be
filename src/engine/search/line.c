/*
 * line.c
 *		The line of sessions whose searches wait for a device.
 *
 * Every session has a queue of searches; the queues that are not empty stand
 * in line.  A device that is free takes the first search of the first queue
 * that it may serve.  So sessions get their turns batch by batch, and each
 * batch goes to a device that is free.
 *
 * Turns differ in length: ten observations take microseconds, a large batch
 * some 50 ms.  A small search should not wait until each large one has had a
 * turn.  So each session is charged the device time that it uses, and the line
 * is in the order of the charge after the session's next turn, if that takes
 * as long as its last one did.  The line's clock is the charge of a session
 * that always had an even share: each turn advances the clock by the turn's
 * time divided by the number of sessions that share the devices.  Those are the
 * sessions in line and those with a search that a device has taken: many turns
 * may be under way at a time.  A session that joins the line, for
 * the first time or again, is charged at least as much as the clock shows, so
 * no session can save time up.  No session waits for ever either, however many
 * come after it: once the clock has reached its place in the line, later ones
 * are behind it, and that takes no longer than if each of the others had two
 * turns as long as its own.  A long turn counts as TURN_MOST_US at most, so a
 * session never waits for more than two turns of each other session, or twice
 * that time.  Others may have had many turns meanwhile, as beside a build, but
 * its session has saved no time up: the charge is raised to the clock.
 */
#include "engine/search/line.h"

#include <stddef.h>

#include "common/assertion.h"
#include "engine/base/clock.h"

/*
 * A turn is charged at most this many microseconds.  A turn takes longer when an index has to be built
 * or the host is busy; its session should not wait until all others have had as much.
 */
#define TURN_MOST_US 25000

static struct
{
	struct search_queue *first; /* the line, in the order of served_us + last_us of the queues */
	int			sharing;		/* how many queues have searches that wait, or a turn under way */
	int64_t		clock_us;
}			line;

#ifdef USE_ASSERT_CHECKING
/* Return whether the line is sorted, and none of its queues is empty. */
static bool
is_in_order(void)
{
	for (const struct search_queue *queue = line.first; queue != NULL; queue = queue->next)
		if (queue->first == NULL ||
			(queue->next != NULL && queue->served_us + queue->last_us > queue->next->served_us + queue->next->last_us))
			return false;
	return true;
}
#endif

/* Insert a queue into the line, by its charge after its next turn: behind all queues whose charge is the same or less. */
static void
insert_queue(struct search_queue *queue)
{
	struct search_queue **link = &line.first;

	geonn_assert(queue->first != NULL);
	while (*link != NULL &&
		   (*link)->served_us + (*link)->last_us <= queue->served_us + queue->last_us)
		link = &(*link)->next;
	queue->next = *link;
	*link = queue;
	geonn_assert(is_in_order());
}

static void
remove_queue(struct search_queue *queue)
{
	struct search_queue **link = &line.first;

	while (*link != queue)
		link = &(*link)->next;
	*link = queue->next;
}

/* Return whether a queue shares the devices now: a search of it waits, or has a turn. */
static bool
is_sharing(const struct search_queue *queue)
{
	return queue->first != NULL || queue->taken > 0;
}

struct search_queue *
line_first(void)
{
	return line.first;
}

void
line_append(struct search_queue *queue, struct search *search)
{
	search->queue = queue;
	search->next = NULL;
	if (queue->first != NULL)
		queue->last->next = search;
	else
	{
		if (queue->served_us < line.clock_us)
			queue->served_us = line.clock_us;
		if (!is_sharing(queue))
			line.sharing++;
		queue->first = search;
		insert_queue(queue);
	}
	queue->last = search;
	geonn_assert(line.sharing > 0);
}

/*
 * Charge the queue at once the time that the turn is expected to take, so that the queue's next search
 * already has its due place in the line.
 */
struct search *
line_take(struct search_queue *queue)
{
	struct search *search = queue->first;

	geonn_assert(search != NULL && line.sharing > 0);
	remove_queue(queue);
	if (line.clock_us < queue->served_us)
		line.clock_us = queue->served_us;
	search->taken_us = now_us();
	search->expected_us = queue->last_us;
	queue->served_us += queue->last_us;
	queue->taken++;
	queue->first = search->next;
	if (queue->first != NULL)
		insert_queue(queue);
	return search;
}

/* Charge the queue the time that the turn took, in place of the expected time. */
void
line_end_turn(struct search *search, bool put_back)
{
	struct search_queue *queue = search->queue;
	int64_t		took_us = now_us() - search->taken_us;
	bool		is_long = took_us > TURN_MOST_US;

	geonn_assert(took_us >= 0 && queue->taken > 0 && line.sharing > 0);
	if (is_long)
		took_us = TURN_MOST_US;
	if (queue->first != NULL)
		remove_queue(queue);
	line.clock_us += took_us / line.sharing;
	queue->taken--;
	queue->served_us += took_us - search->expected_us;
	queue->last_us = took_us;
	if (is_long && queue->served_us < line.clock_us)
		queue->served_us = line.clock_us;
	if (put_back)
	{
		search->next = queue->first;
		if (queue->first == NULL)
			queue->last = search;
		queue->first = search;
	}
	if (queue->first != NULL)
		insert_queue(queue);
	if (!is_sharing(queue))
		line.sharing--;
}

struct search *
line_drop(struct search_queue *queue)
{
	struct search *first = queue->first;

	if (first == NULL)
		return NULL;
	remove_queue(queue);
	queue->first = NULL;
	if (!is_sharing(queue))
		line.sharing--;
	return first;
}
