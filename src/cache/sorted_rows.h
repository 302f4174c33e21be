/*
 * sorted_rows.h
 *		Rows of a cache's table in the order of its primary key.
 */
#ifndef GEONN_CACHE_SORTED_ROWS_H
#define GEONN_CACHE_SORTED_ROWS_H

#include "utils/typcache.h"

#include "cache/target.h"
#include "points/table_reader.h"

/*
 * How to hash ids, so that equal ids have equal hashes.  Ids are equal by the btree operator class of their type and the
 * column's collation.  PostgreSQL's type cache gives a hash function only if it goes with that equality.
 */
typedef struct IdHash
{
	Form_pg_attribute id;
	TypeCacheEntry *type;		/* the type; eq_opr_finfo decides whether ids are equal */
	int			bits;			/* how many bits an integer id has; 0: ids are no integers */
	bool		same_bytes;		/* equal ids always have the same bytes */
} IdHash;

/* Return how to hash ids of this column.  The result lives as long as the column's descriptor. */
extern IdHash geonn_id_hash_of(Form_pg_attribute id);

/*
 * Return the hash of an id.  If the type has no hash function, all ids have the same hash, unless equal ids
 * always have the same bytes.
 */
extern uint64 geonn_id_hash(const IdHash *hash, Datum id);

typedef struct SortedRows SortedRows;

/*
 * Visit all rows of a cache's table that the active snapshot sees.  A visit gets the row's first `columns`
 * values (TargetColumn), and its index among the rows that the reader read last.  Memory that a visit
 * allocates in the current memory context is freed soon after it.
 */
typedef void (*TargetVisitor) (void *state, const Datum *values, const bool *nulls, TableReader *reader,
							   int row);
extern void geonn_target_read(Oid target, TupleDesc row_type, int columns, TargetVisitor visit, void *state);

/* Add a row; its id is not NULL.  tid is NULL if the row is not from the table. */
extern void geonn_sorted_rows_add(SortedRows *rows, ItemPointer tid, const Datum *values,
								  const bool *nulls);

/* Raise an error if two observations in the cache's table, as the active snapshot sees it, have the same id. */
extern void geonn_target_check_unique(const GeonnCache *cache, TupleDesc row_type);

/* The rows that a search has found, and the rows that the table has of the same observations. */
typedef struct RowMerge
{
	const GeonnCache *cache;
	SortedRows *found;
	SortedRows *in_table;
} RowMerge;

/* Begin a merge without rows, in the current memory context. */
extern RowMerge geonn_merge_begin(const GeonnCache *cache, TupleDesc row_type);

/*
 * Write the differences, and count them into the result.  A row that only the search has is inserted; a row
 * that only the table has is deleted; a row that both have, with other values, is updated.  Raises an error
 * about a duplicate id if the search has found a key twice.  Ends both sorts.
 */
extern void geonn_merge_end(RowMerge *merge, GeonnRunResult *result);

/* ---- the table's rows of some observations ---- */

/* ids of observations */
typedef struct TargetRows TargetRows;

/* Create a set of ids, empty, in the current memory context; about `expected` ids are going to be added. */
extern TargetRows *geonn_target_rows_create(const GeonnCache *cache, TupleDesc row_type, uint64 expected);

/*
 * Add an id; the caller keeps it as long as the set.  is_searched: an observation that is searched for has
 * this id now.  may_be_there: an observation had the id in the last run, so the table may have rows of it.
 */
extern void geonn_target_rows_expect(TargetRows *rows, Datum id, bool is_searched, bool may_be_there);

/*
 * Add all rows with these ids that the active snapshot sees to in_table.  Raises an error about a duplicate
 * id if a row has an id that two observations have now, or that no observation had in the last run.
 */
extern void geonn_target_rows_read(TargetRows *rows, SortedRows *in_table);

#endif							/* GEONN_CACHE_SORTED_ROWS_H */
