/*
 * parallel_reader.h
 *		Tables that parallel workers read for one process.
 */
#ifndef GEONN_PARALLEL_READER_H
#define GEONN_PARALLEL_READER_H

#include "points/reader.h"

struct ParallelContext;

/*
 * Return how many workers to use for all of these tables (PlainTable), by the planner's rules; 0: no worker
 * is useful, or none can read the tables.  pages_as_one pages count as one page.
 */
extern int	geonn_count_readers(List *tables, int pages_as_one);

/*
 * Read all rows of a source with the active snapshot, from these tables (PlainTable).  This process does a share of the
 * reading, and gives the valid rows to the consumer, as blocks if consume_block is not NULL: in the order of pages, unless
 * the reading begins in the middle of a table.  counts, by PointStatus, covers all rows.  Raises an error about wrong values
 * of a point column, but neither error nor warning about invalid coordinates.
 *
 * Returns the number of workers that took part.  0: nothing was read, because the tables are too small, because the types
 * of ids or of columns to join by are not passed by value or have a parallel unsafe comparison or hash function, or
 * because no worker is available.  Otherwise this process is in parallel mode, in which it must change no data, until it
 * gives *readers to geonn_end_readers().  Until then the workers may occupy slots that other processes want.
 */
extern int	geonn_read_in_parallel(const PointSource *source, List *tables,
								   PointConsumer consume, PointBlockConsumer consume_block,
								   void *state, uint64 *counts, struct ParallelContext **readers);

/* Wait until the processes of the workers, which have read everything, have ended; and leave parallel mode. */
extern void geonn_end_readers(struct ParallelContext *readers);

#endif							/* GEONN_PARALLEL_READER_H */
