/*
 * batch_shares.c
 *		Decides how much memory for batches, and how many sessions, a process
 *		and a role may have.
 *
 * A client maps its batches, and reads answers in them at any time: an open
 * cursor keeps its batches for hours.  The engine cannot take batches back, so
 * whatever it gives must leave enough for others:
 *
 *	- A process may have half of the memory that other processes leave, however
 *	  many sessions and parallel workers it has.  So some memory is left at any
 *	  time, and a process that comes later may have half of that.
 *	- A role may have three quarters of the memory that other roles leave,
 *	  however many processes it has.
 *	- The rest is a reserve: a quarter of the limit, but at most 64 MB.  When the
 *	  shares have no room, a session without a batch gets a batch of the smallest
 *	  size out of the reserve.  A process without a batch may use all of the
 *	  reserve.  Further sessions of processes that have a batch may use half of
 *	  it, and those of one process or of one role a part of that half, so that a
 *	  statement with several joins goes on.
 *
 * The limit can be lowered below what sessions hold.  Then shares have no room
 * until enough batches have come back, but the reserve is there all the same:
 * all batches take that much more than what is held, at most.
 *
 * If a batch does not fit, batch_memory.c makes it smaller, so sessions become
 * slower before one fails.  A session counts for the backend of its call,
 * which includes the backend's parallel workers, and for the role that the
 * backend has logged in as; the current role would not do, as SET ROLE changes
 * it for free.
 *
 * A session also takes descriptors as long as it lasts, and it cannot do with
 * fewer.  Once three quarters of all descriptors are in use, further sessions
 * of a process are limited in the same way: the process may have half of the
 * descriptors that other processes leave, and its role three quarters of those
 * that other roles leave.  The first session of a process is not limited.
 *
 * Idle sessions and their batches count like all others.  Where they are in the way of a
 * session at work, some of them end (session_idle.c).  Counted without them (with_idle is
 * false), a process may have what it could have if all of them ended.
 *
 * Only the server's thread uses these functions.
 */
#include "engine/server/batch_shares.h"

#include <errno.h>
#include <stdlib.h>

#include "common/assertion.h"

#define RESERVE_MOST	((uint64_t) 64 << 20)

/* A session takes at most this many descriptors: its socket, its batches and the files of its dataset. */
#define SESSION_DESCRIPTORS (1 + GEONN_RING_SLOTS + GEONN_FILE_KINDS)

static struct
{
	uint64_t	limit;
	uint64_t	bytes[BATCH_KINDS]; /* sums over all shares */
	uint64_t	sessions;
	uint64_t	idle_sessions;
	uint64_t	sessions_most;	/* how many sessions the descriptors suffice for, if each takes all descriptors that it
								 * may */
	bool		short_of_descriptors;
	struct batch_share *first;
}			state = {
	.limit = UINT64_MAX,
	.sessions_most = UINT64_MAX
};

void
batch_shares_set_limit(uint64_t bytes)
{
	state.limit = bytes;
}

void
batch_shares_set_descriptors(uint64_t descriptors)
{
	state.sessions_most = descriptors / SESSION_DESCRIPTORS;
}

void
batch_shares_note_descriptor(int descriptor)
{
	/* The kernel gives out the lowest free number, so all lower numbers are in use. */
	state.short_of_descriptors = (uint64_t) descriptor / SESSION_DESCRIPTORS >=
		state.sessions_most / 4 * 3;
}

struct batch_share *
batch_share_join(int32_t pid, uint32_t role)
{
	struct batch_share *share = state.first;

	while (share != NULL && (pid == 0 || share->pid != pid))
		share = share->next;
	if (share == NULL)
	{
		share = calloc(1, sizeof(*share));
		if (share == NULL)
			return NULL;
		share->pid = pid;
		share->role = role;
		share->next = state.first;
		state.first = share;
	}
	share->sessions++;
	state.sessions++;
	return share;
}

void
batch_share_leave(struct batch_share *share)
{
	struct batch_share **link = &state.first;

	if (share == NULL)
		return;
	geonn_assert(share->sessions > 0 && share->sessions <= state.sessions);
	geonn_assert(share->idle_sessions < share->sessions);
	state.sessions--;
	if (--share->sessions > 0)
		return;
	geonn_assert(share->bytes[BATCH_SHARED] == 0 && share->bytes[BATCH_IDLE] == 0);
	geonn_assert(share->bytes[BATCH_RESERVED] == 0 && share->bytes[BATCH_FURTHER] == 0);
	while (*link != share)
		link = &(*link)->next;
	*link = share->next;
	free(share);
}

void
batch_share_set_idle(struct batch_share *share, bool is_idle)
{
	if (share == NULL)
		return;
	share->idle_sessions += is_idle ? 1 : -1;
	state.idle_sessions += is_idle ? 1 : -1;
	geonn_assert(share->idle_sessions <= share->sessions && state.idle_sessions <= state.sessions);
}

static uint64_t
reserve(void)
{
	return state.limit / 4 < RESERVE_MOST ? state.limit / 4 : RESERVE_MOST;
}

/* Return how much of `bytes` is left if `used` are in use; 0 if more are in use. */
static uint64_t
left_of(uint64_t bytes, uint64_t used)
{
	return bytes > used ? bytes - used : 0;
}

/*
 * Return how many sessions the descriptors are enough for, if `present` sessions exist.  When three quarters of the
 * descriptors are in use, compute it from the present sessions, because most of them take fewer descriptors than they may.
 */
static uint64_t
sessions_in_all(uint64_t present)
{
	uint64_t	as_these = present / 3 * 4;

	return as_these > state.sessions_most ? as_these : state.sessions_most;
}

/* Fail if `sessions` is more than `part`, the share of all sessions that a process or a role (of_what) may have. */
static bool
check_sessions(uint64_t sessions, uint64_t all, uint64_t part, const char *of_what,
			   struct failure *failure)
{
	if (sessions <= part)
		return true;
	fail(failure, GEONN_ERROR_LIMIT,
		 "too many sessions with the engine: it has descriptors for %llu, of which %s may have %llu, and this would be number %llu",
		 (unsigned long long) all, of_what, (unsigned long long) part,
		 (unsigned long long) sessions);
	fail_reason(failure, EMFILE);
	return false;
}

bool
batch_share_admits(const struct batch_share *share, bool with_idle, struct failure *failure)
{
	uint64_t	present = state.sessions - (with_idle ? 0 : state.idle_sessions);
	uint64_t	own = share->sessions - (with_idle ? 0 : share->idle_sessions);
	uint64_t	all = sessions_in_all(present);
	uint64_t	role = 0;

	geonn_assert(own >= 1 && own <= present);
	if (own == 1 || !state.short_of_descriptors)
		return true;
	for (const struct batch_share *other = state.first; other != NULL; other = other->next)
		if (other->role == share->role)
			role += other->sessions - (with_idle ? 0 : other->idle_sessions);
	return check_sessions(own, all, left_of(all, present - own) / 2, "a process", failure) &&
		check_sessions(role, all, left_of(all, present - role) / 4 * 3, "a role's processes", failure);
}

/* Return how many of these bytes do not come from the reserve.  with_idle: those of idle sessions included. */
static uint64_t
shared_bytes(const uint64_t bytes[BATCH_KINDS], bool with_idle)
{
	return bytes[BATCH_SHARED] + (with_idle ? bytes[BATCH_IDLE] : 0);
}

bool
batch_share_allows(const struct batch_share *share, uint64_t bytes, bool with_idle)
{
	uint64_t	divided = state.limit - reserve();
	uint64_t	used = shared_bytes(state.bytes, with_idle);
	uint64_t	own = shared_bytes(share->bytes, with_idle);
	uint64_t	role = 0;
	uint64_t	for_process;
	uint64_t	for_role;

	geonn_assert(own <= used);
	for (const struct batch_share *other = state.first; other != NULL; other = other->next)
		if (other->role == share->role)
			role += shared_bytes(other->bytes, with_idle);
	for_process = left_of(divided, used - own) / 2;
	for_role = left_of(divided, used - role) / 4 * 3;
	return bytes <= left_of(divided, used) && bytes <= left_of(for_process, own) &&
		bytes <= left_of(for_role, role);
}

/*
 * Fail if this part of the reserve, of which `used` bytes are in use, has fewer than `bytes` free.
 */
static bool
check_reserve(uint64_t bytes, uint64_t used, uint64_t part, const char *of_what,
			  struct failure *failure)
{
	if (bytes <= left_of(part, used))
		return true;
	fail(failure, GEONN_ERROR_LIMIT,
		 "not enough transfer memory: a batch needs %llu kB, and of the %llu kB reserved for %s %llu kB are in use",
		 (unsigned long long) bytes / 1024, (unsigned long long) part / 1024, of_what,
		 (unsigned long long) used / 1024);
	fail_hint(failure, "Run fewer searches at a time, close cursors that are not read, or raise geonn.transfer_memory_limit, which is %llu kB.",
			  (unsigned long long) state.limit / 1024);
	return false;
}

/*
 * Return how many bytes of the reserve may be in use: all, or fewer if batches of idle sessions
 * reach into it.  Batches at work that exceed a lowered limit take nothing from the reserve.
 */
static uint64_t
reserve_left(void)
{
	uint64_t	left = left_of(state.limit, shared_bytes(state.bytes, true));

	return left < reserve() && state.bytes[BATCH_SHARED] <= state.limit - reserve() ? left : reserve();
}

bool
batch_share_reserves(const struct batch_share *share, uint64_t bytes, enum batch_kind *kind,
					 struct failure *failure)
{
	uint64_t	further = 0;
	uint64_t	present = 0;

	for (int i = 0; i < BATCH_KINDS; i++)
		present += share->bytes[i];
	*kind = present == 0 ? BATCH_RESERVED : BATCH_FURTHER;
	if (*kind == BATCH_FURTHER)
	{
		for (const struct batch_share *other = state.first; other != NULL; other = other->next)
			if (other->role == share->role)
				further += other->bytes[BATCH_FURTHER];
		if (!check_reserve(bytes, share->bytes[BATCH_FURTHER], reserve() / 16,
						   "further sessions of a process", failure) ||
			!check_reserve(bytes, further, reserve() / 4,
						   "further sessions of a role's processes", failure) ||
			!check_reserve(bytes, state.bytes[BATCH_FURTHER], reserve() / 2,
						   "further sessions of processes", failure))
			return false;
	}
	return check_reserve(bytes, state.bytes[BATCH_RESERVED] + state.bytes[BATCH_FURTHER],
						 reserve_left(), "first batches", failure);
}

void
batch_share_add(struct batch_share *share, int64_t bytes, enum batch_kind kind)
{
	geonn_assert(bytes >= 0 || share->bytes[kind] >= (uint64_t) -bytes);
	share->bytes[kind] += (uint64_t) bytes;
	state.bytes[kind] += (uint64_t) bytes;
	geonn_assert(share->bytes[kind] <= state.bytes[kind]);
}
