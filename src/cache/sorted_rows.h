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
 * How to hash ids, so that equal ones have equal hashes.  Ids are equal by the btree operator class of their
 * type and the column's collation.  PostgreSQL's type cache gives a hash function only if it goes with that
 * equality.
 */
typedef struct IdHash
{
	Form_pg_attribute id;
	TypeCacheEntry *type;		/* its eq_opr_finfo says whether ids are equal */
	int			bits;			/* how many bits an integer id has; 0: ids are not integers */
	bool		same_bytes;		/* equal ids always have the same bytes */
} IdHash;

/* How to hash ids of this column.  The result lives as long as the column's descriptor. */
extern IdHash geonn_id_hash_of(Form_pg_attribute id);

/*
 * The hash of an id.  All ids of a type without a hash function have the same hash, unless equal ids always
 * have the same bytes.
 */
extern uint64 geonn_id_hash(const IdHash *hash, Datum id);

typedef struct SortedRows SortedRows;

/*
 * Visit all rows of a cache's table that the active snapshot sees.  A visit gets the row's first `columns`
 * values (TargetColumn), and its index among the rows that the reader read last.  What it allocates in the
 * current memory context is freed soon after the visit.
 */
typedef void (*TargetVisitor) (void *state, const Datum *values, const bool *nulls, TableReader *reader,
							   int row);
extern void geonn_target_read(Oid target, TupleDesc row_type, int columns, TargetVisitor visit, void *state);

/* Add a row, whose id is not NULL. tid is NULL if the row is not from the table. */
extern void geonn_sorted_rows_add(SortedRows *rows, ItemPointer tid, const Datum *values,
								  const bool *nulls);

/* Raise an error if, in the active snapshot, two observations in the cache's table have the same id. */
extern void geonn_target_check_unique(const GeonnCache *cache, TupleDesc row_type);

/* rows that a search has found, and those that the table has of the same observations */
typedef struct RowMerge
{
	const GeonnCache *cache;
	SortedRows *found;
	SortedRows *in_table;
} RowMerge;

/* Begin a merge without rows, in the current memory context. */
extern RowMerge geonn_merge_begin(const GeonnCache *cache, TupleDesc row_type);

/*
 * Write the differences, and count them into the result: a row that only the search has is inserted, one that
 * only the table has is deleted, and one that both have, with other values, is updated.  Raises an error
 * about a duplicate id if the search has found a key twice.  Ends both sorts.
 */
extern void geonn_merge_end(RowMerge *merge, GeonnRunResult *result);

/* ---- the table's rows of some observations ---- */

/* ids of observations */
typedef struct TargetRows TargetRows;

/* Create a set without ids, in the current memory context; about `expected` ids follow. */
extern TargetRows *geonn_target_rows_create(const GeonnCache *cache, TupleDesc row_type, uint64 expected);

/*
 * Add an id, which must live as long as the set.  is_searched: an observation that is searched for has this
 * id now.  may_be_there: an observation had the id in the last run, so the table may have rows of it.
 */
extern void geonn_target_rows_expect(TargetRows *rows, Datum id, bool is_searched, bool may_be_there);

/*
 * Add to in_table all rows with these ids that the active snapshot sees.  Raises an error about a duplicate
 * id if one of these rows has an id that two observations have now, or that none had in the last run.
 */
extern void geonn_target_rows_read(TargetRows *rows, SortedRows *in_table);

#endif							/* GEONN_CACHE_SORTED_ROWS_H */
