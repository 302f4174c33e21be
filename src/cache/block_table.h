/*
 * block_table.h
 *		The rows of geonn_cache_block, geonn_cache_directory and geonn_cache_page.
 */
#ifndef GEONN_CACHE_BLOCK_TABLE_H
#define GEONN_CACHE_BLOCK_TABLE_H

#include "postgres.h"

#include "cache/definition.h"

/* A BlockTable is one of the three tables, open for the rows of one side of a cache. */
typedef struct BlockTable BlockTable;

/*
 * Open the table of this name, in the current memory context, to read and write it.  The table stays locked until the
 * transaction ends.  Reads see what the active snapshot sees, and what the transaction has changed before this call.
 */
extern BlockTable *geonn_block_table_open(const GeonnCache *cache, int16 side, const char *name);

/* Return the contents of the row with this number, or NULL; valid until the next call. */
extern const bytea *geonn_block_table_find(BlockTable *table, int64 number);

/*
 * geonn_block_table_rewind() moves before the side's first row.  geonn_block_table_next() returns the
 * contents of the next row, in the order of numbers, valid until the next call; NULL after the last row.
 */
extern void geonn_block_table_rewind(BlockTable *table);
extern const bytea *geonn_block_table_next(BlockTable *table);

/*
 * Insert the row with this number; with is_there, replace its contents instead, once.  Raises an error if
 * that row is missing, or was changed by a transaction that the snapshot does not see.
 */
extern void geonn_block_table_write(BlockTable *table, bool is_there, int64 number, const char *contents,
									Size length);

/*
 * Delete the rows from number first to number last; or all rows of the side, including those written since
 * the table was opened.  Raises the errors of geonn_block_table_write().
 */
extern void geonn_block_table_delete(BlockTable *table, int64 first, int64 last);
extern void geonn_block_table_delete_all(BlockTable *table);

/* Close the table.  The transaction's next command sees what was written. */
extern void geonn_block_table_close(BlockTable *table);

#endif							/* GEONN_CACHE_BLOCK_TABLE_H */
