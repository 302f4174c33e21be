/*
 * calls.h
 *		The calls that sessions work for, what each call is doing, and statistics
 *		of the calls that have ended.
 *
 * Only the server's thread uses these functions, unless a comment says "any
 * thread".  A call that is an argument may be NULL, for a session that works
 * for no call: then the function does nothing.
 */
#ifndef GEONN_CALLS_H
#define GEONN_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/protocol.h"

struct call;

/*
 * Find the call that the message names, or begin it.  The caller is one of the call's sessions and
 * holds the call from then on.  Returns NULL if memory is short.
 */
extern struct call *calls_join(const struct geonn_call *message);

/*
 * End a session's part in the call; `finished` is the message that the session sent at its end, or NULL.  When the last
 * session has left, the call ends, and its figures go to the statistics.  The caller still holds the call.
 */
extern void call_leave(struct call *call, const struct geonn_finished *finished);

/* Give up the caller's hold of the call. */
extern void call_release(struct call *call);

/*
 * Move a part of a call, a session or a batch, from its phase *part to the next one.  A part with
 * nothing to do is in GEONN_PHASE_OBSERVATIONS.  Any thread may call this.
 */
extern void call_move(struct call *call, enum geonn_phase *part, enum geonn_phase next);

/* Note that the device with this number works for the call.  Any thread may call this. */
extern void call_use_device(struct call *call, int device);

/*
 * Add to the call's figures.  references: how many arrived; bytes: those of batches that arrived and of pairs that were
 * answered; fallbacks: how often the engine took a slower way for want of a device or of memory.
 */
extern void call_add(struct call *call, const struct geonn_statistics *more);

/* Note how many references the dataset of the call has, and whether the engine had kept the dataset. */
extern void call_found_references(struct call *call, uint64_t rows, bool kept);

/* Note the message of the error with which the engine ends a session of the call. */
extern void call_fail(struct call *call, const char *message);

/*
 * Write a struct geonn_call_status for each call under way to a file, and count the calls in
 * *entries.  Returns false with errno if writing fails.
 */
extern bool calls_write(int file, uint64_t *entries);

/*
 * Write the statistics to a file, a struct geonn_statistics for each label, the label of the last
 * call first, and count the labels in *entries.  Returns false with errno if writing fails.
 */
extern bool calls_write_statistics(int file, uint64_t *entries);

/* Return when the statistics began: microseconds since 1970. */
extern int64_t calls_statistics_since(void);

/* Forget the statistics, and begin anew. */
extern void calls_reset_statistics(void);

#endif							/* GEONN_CALLS_H */
