/*
 * statistics.h
 *		What calls have done that ended, by their labels.
 *
 * All of this is the server thread's alone.
 */
#ifndef GEONN_STATISTICS_H
#define GEONN_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/protocol.h"

/* Forget all, and begin anew. */
extern void statistics_reset(void);

/* When they began: microseconds since 1970. */
extern int64_t statistics_since(void);

/* Add those of a call that ended to those of its label. */
extern void statistics_add(const struct geonn_statistics *sum);

/*
 * Write the entries to a file, the one last added to first, and count them.  False where
 * that fails, with errno.
 */
extern bool statistics_write(int file, uint64_t *entries);

#endif							/* GEONN_STATISTICS_H */
