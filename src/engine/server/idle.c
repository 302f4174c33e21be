/*
 * idle.c
 *		The order of idle sessions, and how long a session may be idle.
 *
 * Sessions become idle one after the other and have the same time, so the one that has been
 * idle for longest is the first whose time is over.  session_idle.c says what an idle
 * session is.
 *
 * Only the server's thread uses these functions.
 */
#include "engine/server/idle.h"

#include <limits.h>
#include <stddef.h>

#include "engine/base/clock.h"

static struct
{
	int64_t		timeout_ms;
	struct idle *newest;
	struct idle *oldest;
	uint32_t	count;
}			state;

void
idle_set_timeout(uint64_t milliseconds)
{
	state.timeout_ms = (int64_t) milliseconds;
}

void
idle_begin(struct idle *idle, struct session *session)
{
	idle->session = session;
	idle->since_ms = now_ms();
	idle->newer = NULL;
	idle->older = state.newest;
	*(state.newest != NULL ? &state.newest->newer : &state.oldest) = idle;
	state.newest = idle;
	state.count++;
}

void
idle_end(struct idle *idle)
{
	*(idle->newer != NULL ? &idle->newer->older : &state.newest) = idle->older;
	*(idle->older != NULL ? &idle->older->newer : &state.oldest) = idle->newer;
	state.count--;
}

struct session *
idle_oldest(void)
{
	return state.oldest != NULL ? state.oldest->session : NULL;
}

int
idle_overdue_within_ms(void)
{
	int64_t		left;

	if (state.oldest == NULL)
		return -1;
	left = state.oldest->since_ms + state.timeout_ms - now_ms();
	return left <= 0 ? 0 : left < INT_MAX ? (int) left : INT_MAX;
}

uint32_t
idle_count(void)
{
	return state.count;
}
