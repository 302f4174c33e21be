/*
 * comparison.h
 *		What all ways to compare a baseline with its source have in common.
 *
 * For cache/baseline_compare.c and cache/page_compare.c.
 */
#ifndef GEONN_CACHE_COMPARISON_H
#define GEONN_CACHE_COMPARISON_H

#include "postgres.h"

#include "cache/baseline.h"

typedef struct RowHash
{
	uint64		hash[2];
} RowHash;

typedef struct KnownRow
{
	RowHash		hash;
	uint32		count;			/* rows not found again so far */
	char		status;
} KnownRow;

#define SH_PREFIX known
#define SH_ELEMENT_TYPE KnownRow
#define SH_KEY_TYPE RowHash
#define SH_KEY hash
#define SH_HASH_KEY(table, key) ((uint32) (key).hash[0])
#define SH_EQUAL(table, a, b) ((a).hash[0] == (b).hash[0] && (a).hash[1] == (b).hash[1])
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* a comparison under way */
typedef struct BaselineComparison
{
	GeonnBaseline *baseline;
	MemoryContext context;		/* of the changes that are found */
	MemoryContext row_context;
	StringInfoData bytes;		/* of the row just written */
	bool	   *changed;		/* [baseline->count]: blocks in which rows have changed */
	known_hash *known;			/* rows that may have been removed */
	BaselineRow row;			/* for values that are not used */
	BaselineChanges *changes;
	uint64		added_room;
	uint64		removed_room;
	Size		memory;			/* bytes left for changes */
	bool		too_many;
} BaselineComparison;

/* Write a row's bytes, in memory that lives until geonn_comparison_end_row. */
extern void geonn_comparison_begin_row(BaselineComparison *comparison, const PointRow *row,
									   Fingerprint *fingerprint);
extern void geonn_comparison_end_row(BaselineComparison *comparison);

/* Visit the rows in a block's contents. */
typedef void (*BaselineVisitor) (BaselineComparison *comparison, const BaselineChange *row);
extern void geonn_comparison_visit(BaselineComparison *comparison, uint32 block, const char *contents,
								   Size length, BaselineVisitor visit);

/* Put a row into the hash table, once more if it is there. */
extern void geonn_comparison_learn(BaselineComparison *comparison, RowHash hash);

/* Take a row off the hash table.  Returns false if it is not there. */
extern bool geonn_comparison_take_off(BaselineComparison *comparison, RowHash hash);

/* Add a row that the source has to the added rows, with a copy of its bytes. */
extern void geonn_comparison_add(BaselineComparison *comparison, uint32 block,
								 const Fingerprint *fingerprint, const char *bytes, Size length);

/* Add a row of the baseline to the removed rows, with a copy of its bytes. */
extern void geonn_comparison_remove(BaselineComparison *comparison, const BaselineChange *row);

/* After the last added row: put them into the order of BaselineChanges. */
extern void geonn_comparison_sort(BaselineComparison *comparison);

/* ---- cache/page_compare.c ---- */

/*
 * Find the changes by reading only the pages that may have changed, which are few
 * (geonn_pages_are_few); blocks has room for the numbers of all.  Returns false, and has done nothing,
 * if the source is no longer planned as the same plain tables.
 */
extern bool geonn_compare_pages(BaselineComparison *comparison, const PointSource *source,
								InvalidPolicy invalid, uint32 *blocks);

#endif							/* GEONN_CACHE_COMPARISON_H */
