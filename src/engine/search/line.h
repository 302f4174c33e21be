/*
 * line.h
 *		The line of sessions whose searches wait for a device.
 */
#ifndef GEONN_LINE_H
#define GEONN_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/search/device.h"

/* A session's searches that wait for a device.  The session zeroes it before first use. */
struct search_queue
{
	struct search *first;
	struct search *last;
	struct search_queue *next;	/* the next in the line of all queues that are not empty */
	unsigned	taken;			/* how many of the queue's searches have a turn under way */
	int64_t		served_us;		/* device time that the queue has been charged, on the line's clock, in microseconds */
	int64_t		last_us;		/* how long the queue's last turn took, in microseconds */
};

/* The caller holds the scheduler's lock in all functions. */

/* Return the first queue of the line, whose `next` is the second; NULL: no search waits. */
extern struct search_queue *line_first(void);

/* Append a search to its session's queue. */
extern void line_append(struct search_queue *queue, struct search *search);

/* Take the first search out of a queue of the line, and begin its turn. */
extern struct search *line_take(struct search_queue *queue);

/*
 * End a search's turn.  put_back: put the search at the head of its own queue,
 * and the queue into the line.
 */
extern void line_end_turn(struct search *search, bool put_back);

/* Take all searches out of a queue; returns the first of them. */
extern struct search *line_drop(struct search_queue *queue);

#endif							/* GEONN_LINE_H */
