/*
 * sorted_rows.h
 *		Rows of a cache's table in the order of its primary key.
 */
#ifndef GEONN_CACHE_SORTED_ROWS_H
#define GEONN_CACHE_SORTED_ROWS_H

#include "catalog/pg_type.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "base/value.h"
#include "cache/target.h"
#include "points/table_reader.h"

/*
 * How to hash ids, so that equal ones have equal hashes.  Ids are equal if the btree operator class of their type
 * says so, with the column's collation.  PostgreSQL's type cache gives a hash function only if it goes with that
 * equality.
 */
typedef struct IdHash
{
	Form_pg_attribute id;
	TypeCacheEntry *type;		/* its eq_opr_finfo says whether ids are equal */
	int			bits;			/* how many bits an integer id has; 0: ids are not integers or OIDs */
	bool		same_bytes;		/* equal ids always have the same bytes */
} IdHash;

/* How to hash ids of this column.  The result lives as long as the column's descriptor. */
static inline IdHash
geonn_id_hash_of(Form_pg_attribute id)
{
	IdHash		hash = {
		.id = id,
		.type = lookup_type_cache(id->atttypid, TYPECACHE_EQ_OPR_FINFO |
								  TYPECACHE_HASH_EXTENDED_PROC_FINFO),
		.same_bytes = geonn_equal_is_same(getBaseType(id->atttypid), id->attcollation)
	};

	if (id->atttypid == INT2OID || id->atttypid == INT4OID || id->atttypid == INT8OID ||
		id->atttypid == OIDOID)
		hash.bits = id->attlen * BITS_PER_BYTE;
	return hash;
}

/*
 * The hash of an id.  Most ids are integers: to call their type's hash function for each of a table's rows
 * would take longer than to read the rows.  All ids of a type without a hash function have the same hash,
 * unless equal ids always have the same bytes.
 */
static inline uint64
geonn_id_hash(const IdHash *hash, Datum id)
{
	if (hash->bits > 0)
	{
		/*
		 * Fibonacci hashing (Knuth, The Art of Computer Programming 6.4), of the significant bits
		 */
		uint64		product = ((uint64) id << (64 - hash->bits)) * UINT64CONST(0x9E3779B97F4A7C15);

		return product ^ product >> 32;
	}
	if (OidIsValid(hash->type->hash_extended_proc))
		return DatumGetUInt64(FunctionCall2Coll(&hash->type->hash_extended_proc_finfo,
												hash->id->attcollation, id, Int64GetDatum(0)));
	return hash->same_bytes ? datum_image_hash(id, hash->id->attbyval, hash->id->attlen) : 0;
}

typedef struct SortedRows SortedRows;

/*
 * Visit all rows of a cache's table that the active snapshot sees.  A visit gets the first
 * `columns` columns of the target, and the number of the row among those that the reader read last.  What a
 * visit allocates in the current memory context is freed soon after the visit.
 */
typedef void (*TargetVisitor) (void *state, const Datum *values, const bool *nulls, TableReader *reader,
							   int row);
extern void geonn_target_read(Oid target, int columns, TargetVisitor visit, void *state);

/*
 * Create a sort without rows, in the current memory context.  Rows spill to disk when they take more than
 * this many kilobytes.
 */
extern SortedRows *geonn_sorted_rows_create(TupleDesc row_type, int memory);

/* Add a row, whose id is not NULL. tid is NULL if the row is not from the table. */
extern void geonn_sorted_rows_add(SortedRows *rows, ItemPointer tid, const Datum *values,
								  const bool *nulls);

/* Add all rows of the table that the active snapshot sees. */
extern void geonn_sorted_rows_add_table(SortedRows *rows, Oid target);

/* Called after the last row: raise an error if two observations have the same id. */
extern void geonn_sorted_rows_check(SortedRows *rows, const GeonnCache *cache);

extern void geonn_sorted_rows_end(SortedRows *rows);

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
 * Add the differences between both to *difference: a row that only the search has is inserted, a row that
 * only the table has is deleted, and a row that both have, with other values, is updated.  Raises an error
 * about a duplicate id if the search has found a key twice.  Ends both sorts.
 */
extern void geonn_merge_end(RowMerge *merge, GeonnDifference *difference);

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
