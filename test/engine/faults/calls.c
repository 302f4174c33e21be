/*
 * calls.c
 *		Calls of the engine that faults go through: into the system, which can
 *		fail, and its own that tell where it has got to.
 *
 * The linker has every call of `name` in the engine's object files come to
 * __wrap_name, for each one that is defined here; __real_name is what was called.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "common/given_time.h"
#include "engine/calls/calls.h"
#include "engine/dataset/dataset.h"
#include "engine/search/scheduler.h"
#include "engine/server/session.h"
#include "plan.h"

/* ---- into the system ---- */

/*
 * Define what is called instead of a function: it fails with this value and
 * errno, or does what was asked for.  Parameters and arguments are in parentheses.
 */
#define WRAP(type, name, parameters, arguments, takes_memory, failed, reason) \
	extern type __real_##name parameters; \
	extern type __wrap_##name parameters; \
	type \
	__wrap_##name parameters \
	{ \
		if (!fault_fails(FAULT_CALL, #name, takes_memory)) \
			return __real_##name arguments; \
		errno = reason; \
		return failed; \
	}

WRAP(void *, malloc, (size_t size), (size), true, NULL, ENOMEM)
WRAP(void *, calloc, (size_t count, size_t size), (count, size), true, NULL, ENOMEM)
WRAP(void *, realloc, (void *old, size_t size), (old, size), true, NULL, ENOMEM)
WRAP(void *, mmap, (void *place, size_t size, int access, int flags, int file, off_t offset),
	 (place, size, access, flags, file, offset), true, MAP_FAILED, ENOMEM)
WRAP(int, fallocate, (int file, int mode, off_t offset, off_t length),
	 (file, mode, offset, length), true, -1, ENOSPC)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), true, -1, ENOMEM)
WRAP(int, pthread_create,
	 (pthread_t *thread, const pthread_attr_t *attributes, void *(*start) (void *), void *argument),
	 (thread, attributes, start, argument), true, EAGAIN, EAGAIN)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), false, -1, EMFILE)
WRAP(int, listen, (int socket, int backlog), (socket, backlog), false, -1, ENOMEM)
WRAP(int, accept4, (int socket, struct sockaddr *address, socklen_t *length, int flags),
	 (socket, address, length, flags), false, -1, EMFILE)
WRAP(int, epoll_create1, (int flags), (flags), false, -1, EMFILE)
WRAP(int, epoll_ctl, (int epoll, int operation, int file, struct epoll_event *event),
	 (epoll, operation, file, event), false, -1, ENOMEM)
WRAP(int, eventfd, (unsigned count, int flags), (count, flags), false, -1, EMFILE)
WRAP(int, signalfd, (int file, const sigset_t *signals, int flags), (file, signals, flags), false, -1, EMFILE)
WRAP(ssize_t, recvmsg, (int socket, struct msghdr *message, int flags),
	 (socket, message, flags), false, -1, ENOMEM)
WRAP(ssize_t, pread, (int file, void *bytes, size_t count, off_t offset),
	 (file, bytes, count, offset), false, -1, EIO)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), false, NULL, EMFILE)

extern ssize_t __real_sendmsg(int socket, const struct msghdr *message, int flags);
extern ssize_t __wrap_sendmsg(int socket, const struct msghdr *message, int flags);

ssize_t
__wrap_sendmsg(int socket, const struct msghdr *message, int flags)
{
	bool		fails = fault_fails(FAULT_CALL, "sendmsg", false);

	if (!fails && !(message->msg_controllen > 0 && fault_crowds()))
		return __real_sendmsg(socket, message, flags);
	errno = fails ? ENOBUFS : ETOOMANYREFS;
	return -1;
}

extern int	__real_fcntl(int file, int command, ...);
extern int	__wrap_fcntl(int file, int command, ...);

int
__wrap_fcntl(int file, int command, ...)
{
	va_list		arguments;
	long		argument;

	va_start(arguments, command);
	argument = va_arg(arguments, long);
	va_end(arguments);
	if (!fault_fails(FAULT_CALL, "fcntl", false))
		return __real_fcntl(file, command, argument);
	errno = EPERM;
	return -1;
}

/* ---- its own ---- */

extern bool __real_scheduler_open(void (*changed) (void), struct failure *failure);
extern bool __wrap_scheduler_open(void (*changed) (void), struct failure *failure);
extern struct session *__real_session_create(int socket);
extern struct session *__wrap_session_create(int socket);
extern bool __real_dataset_append(struct dataset *dataset, const struct geonn_batch_columns *batch,
								  uint32_t rows, struct failure *failure);
extern bool __wrap_dataset_append(struct dataset *dataset, const struct geonn_batch_columns *batch,
								  uint32_t rows, struct failure *failure);
extern bool __real_dataset_sort(struct dataset *dataset, const atomic_bool *cancelled,
								struct failure *failure);
extern bool __wrap_dataset_sort(struct dataset *dataset, const atomic_bool *cancelled,
								struct failure *failure);
extern void __real_call_move(struct call *call, enum geonn_phase *part, enum geonn_phase next);
extern void __wrap_call_move(struct call *call, enum geonn_phase *part, enum geonn_phase next);
extern void __real_call_add(struct call *call, const struct geonn_statistics *more);
extern void __wrap_call_add(struct call *call, const struct geonn_statistics *more);

extern void __real_geonn_given_time_look(struct geonn_given_time *given, pid_t process, int64_t most);
extern void __wrap_geonn_given_time_look(struct geonn_given_time *given, pid_t process, int64_t most);

/* before main, so that nothing of the start is missed */
__attribute__((constructor))
static void
begin(void)
{
	fault_read_plan("start");
}

bool
__wrap_scheduler_open(void (*changed) (void), struct failure *failure)
{
	fault_reach(FAULT_START);
	return __real_scheduler_open(changed, failure);
}

struct session *
__wrap_session_create(int socket)
{
	fault_read_plan("session");
	return __real_session_create(socket);
}

bool
__wrap_dataset_append(struct dataset *dataset, const struct geonn_batch_columns *batch,
					  uint32_t rows, struct failure *failure)
{
	fault_reach(FAULT_REFERENCES);
	return __real_dataset_append(dataset, batch, rows, failure);
}

bool
__wrap_dataset_sort(struct dataset *dataset, const atomic_bool *cancelled, struct failure *failure)
{
	fault_reach(FAULT_SORT);
	return __real_dataset_sort(dataset, cancelled, failure);
}

/* devices say by this what they do next */
void
__wrap_call_move(struct call *call, enum geonn_phase *part, enum geonn_phase next)
{
	if (next == GEONN_PHASE_BUILDING)
		fault_reach(FAULT_BUILD);
	else if (next == GEONN_PHASE_SEARCHING)
		fault_reach(FAULT_SEARCH);
	__real_call_move(call, part, next);
}

void
__wrap_call_add(struct call *call, const struct geonn_statistics *more)
{
	if (more->observations > 0)
		fault_reach(FAULT_DRAIN);
	__real_call_add(call, more);
}

void
__wrap_geonn_given_time_look(struct geonn_given_time *given, pid_t process, int64_t most)
{
	__real_geonn_given_time_look(given, process, most);
	if (fault_hangs())
		given->ms += 3600 * 1000;
}
