/*
 * calls.h
 *		The calls that sessions work for, and what they are doing.
 *
 * All of this is the server thread's alone, where nothing else is said.  Where a call
 * is an argument it may be NULL, for a session that works for none: nothing is done
 * then.
 */
#ifndef GEONN_CALLS_H
#define GEONN_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/protocol.h"

struct call;

/*
 * The call that the message tells of, under way already or new; its caller is one of
 * its sessions and holds it.  NULL where memory is short.
 */
extern struct call *calls_join(const struct geonn_call *message);

/*
 * One of its sessions has ended; finished is what it said at its end, or NULL.  With the
 * last one the call has ended, and its figures go to the statistics.  It is still held.
 */
extern void call_leave(struct call *call, const struct geonn_finished *finished);

/* Its caller holds it no more. */
extern void call_release(struct call *call);

/*
 * Part of a call, a session or a batch, goes from a phase to the next one; any thread.
 * GEONN_PHASE_OBSERVATIONS is that of a part that has nothing to do.
 */
extern void call_move(struct call *call, enum geonn_phase *part, enum geonn_phase next);

/* The process that is called; not of NULL. */
extern int32_t call_pid(const struct call *call);

/* The role that it has logged in as, likewise. */
extern uint32_t call_role(const struct call *call);

/* The device of this number works for it; any thread. */
extern void call_use_device(struct call *call, int device);

/* So many references arrived, as bytes; or that many were there already. */
extern void call_add_references(struct call *call, uint64_t rows, uint64_t bytes);
extern void call_found_references(struct call *call, uint64_t rows, bool kept);

/* A batch of observations arrived, and such pairs were found for some of them. */
extern void call_add_batch(struct call *call, uint64_t bytes);
extern void call_add_answers(struct call *call, uint64_t observations, uint64_t bytes);

/* Something is done the slower way, for want of a device or memory. */
extern void call_fall_back(struct call *call);

/* The engine ends one of its sessions with this error. */
extern void call_fail(struct call *call, const char *message);

/*
 * Write a struct geonn_call_status for each call under way to a file, and count them.
 * False where that fails, with errno.
 */
extern bool calls_write(int file, uint64_t *entries);

#endif							/* GEONN_CALLS_H */
