/*
 * target_rows.h
 *		The rows that a cache's table has for some observations.
 */
#ifndef GEONN_CACHE_TARGET_ROWS_H
#define GEONN_CACHE_TARGET_ROWS_H

#include "cache/definition.h"

typedef struct TargetRows TargetRows;

/* Prepare to read them.  Lives as long as the current memory context. */
extern TargetRows *geonn_target_rows_create(const GeonnCache *cache, TupleDesc row_type);

/*
 * Calls back for each row of these observations that the active snapshot sees, in any order: with
 * the number of its id among ids, from 0 on, and its columns, which live until the callback
 * returns.  A duplicate among ids gets its rows twice.
 */
typedef void (*TargetRowConsumer) (void *state, uint32 number, ItemPointer tid,
								   const Datum *values, const bool *nulls);
extern void geonn_target_rows_of(TargetRows *rows, const Datum *ids, uint32 count,
								 TargetRowConsumer consume, void *state);

#endif							/* GEONN_CACHE_TARGET_ROWS_H */
