/*
 * event_loop.c
 *		Lets the server's thread wait for descriptors, and for a wake from
 *		other threads.
 */
#include "engine/server/event_loop.h"

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The loop handles at most this many events before the server looks for other work. */
#define EVENTS_AT_A_TIME 32

static int	epoll = -1;
static int	wake_event = -1;	/* an eventfd; -1 until it is open */

bool
event_loop_open(void *wake)
{
	epoll = epoll_create1(EPOLL_CLOEXEC);
	wake_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return epoll >= 0 && wake_event >= 0 && event_loop_watch(wake_event, wake);
}

bool
event_loop_watch(int descriptor, void *mark)
{
	struct epoll_event event = {.events = EPOLLIN,.data.ptr = mark};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void
event_loop_unwatch(int descriptor)
{
	epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, NULL);
}

void
event_loop_run(int timeout_ms, void (*handle) (void *mark))
{
	struct epoll_event events[EVENTS_AT_A_TIME];
	int			count = epoll_wait(epoll, events, EVENTS_AT_A_TIME, timeout_ms);

	for (int i = 0; i < count; i++)
		handle(events[i].data.ptr);
}

void
event_loop_wake(void)
{
	uint64_t	one = 1;
	ssize_t		written = write(wake_event, &one, sizeof(one));

	(void) written;				/* a failed write means that the eventfd's counter is full, which wakes the server as
								 * well */
}

void
event_loop_clear_wake(void)
{
	uint64_t	count;
	ssize_t		got = read(wake_event, &count, sizeof(count));

	(void) got;
}
