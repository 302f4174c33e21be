/*
 * statistics.h
 *		Statistics of the calls that have ended, by their labels.
 *
 * Only the server's thread uses these functions.
 */
#ifndef GEONN_STATISTICS_H
#define GEONN_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/protocol.h"

/* Forget all statistics, and begin anew. */
extern void statistics_reset(void);

/* When the statistics began: microseconds since 1970. */
extern int64_t statistics_since(void);

/* Add the figures of a call that ended to those of its label. */
extern void statistics_add(const struct geonn_statistics *sum);

/*
 * Write the entries to a file, the one last added to first, and count them in
 * *entries.  False with errno if writing fails.
 */
extern bool statistics_write(int file, uint64_t *entries);

#endif							/* GEONN_STATISTICS_H */
