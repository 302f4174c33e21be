/*
 * parallel_reader.h
 *		Tables that parallel workers read for one process.
 */
#ifndef GEONN_PARALLEL_READER_H
#define GEONN_PARALLEL_READER_H

#include "points/reader.h"

/*
 * Read all rows of a source with the active snapshot: those of these tables (PlainTable),
 * which are open.  This process is given the valid ones, as blocks where consume_block is
 * not NULL, in the tables' order, and does a share of the reading.  counts, by PointStatus,
 * are of all rows; nothing is told of those that are no points, also where that is to be
 * an error, but wrong values of a point column are an error.
 *
 * Returns how many workers took part; 0: nothing has been read, since the tables are too
 * small for that, or have ids or columns to join by that are not passed by value, or
 * no workers can be had.
 */
extern int	geonn_read_in_parallel(const PointSource *source, List *tables,
								   PointConsumer consume, PointBlockConsumer consume_block,
								   void *state, uint64 *counts);

#endif							/* GEONN_PARALLEL_READER_H */
