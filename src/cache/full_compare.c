/*
 * full_compare.c
 *		All rows of a cache's table are compared with those that it should have.
 *
 * A full refresh mostly finds few differences or none, so it does not sort all rows to find them.
 * Rows are divided into partitions by a hash of their ids.  Each partition has a sum of 128 bits: the
 * hash of each row that the search returns is added, and the hash of each row of the table is
 * subtracted.  Only partitions whose sum is not zero then matter.  Their observations are searched for
 * again, these rows and those of the table are sorted by the primary key, (obs_id, rank), and merged:
 * a row that only the search has is inserted, a row that only the table has is deleted, and one that
 * both have, with other values, is updated.
 *
 * Nothing is missed, for these reasons:
 *
 *	 - Rows with equal keys are in the same partition: equal ids have equal hashes (cache/sorted_rows.h).
 *	   So merging some partitions finds the differences that merging all rows would find in them.
 *	 - The hash of a row is of the bytes of all its values.  Values that are equal and have other
 *	   bytes, as with citext, differ, as they do in is_same_row of cache/sorted_rows.c.
 *	 - If the sum of a partition is zero, the search and the table have the same rows there, each as
 *	   often as the other, but for an accident that is as unlikely as with those of a
 *	   baseline (cache/baseline.h).  The hashes have a random key, so that such an accident cannot be
 *	   arranged.  Sums of values would not do, as two observations may have exchanged their rows; a
 *	   keyed hash of the whole row has no such law.
 *	 - The table has a key only once.  If the search returns it twice, for a duplicate id, the rows are
 *	   not the same, the sum is not zero, and the merge finds the duplicate.
 *
 * The second search has the same snapshot, and so the same rows, unless a view or query depends on
 * anything else, such as the time of day: the table then has rows of either search.  To keep the rows
 * of the first one would take longer than the comparison itself, each time, for the sake of those that
 * differ.  Where most rows are expected to differ, all rows of one search are sorted at once.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "cache/full_compare.h"
#include "cache/full_search.h"
#include "cache/siphash.h"
#include "cache/sorted_rows.h"

#define PARTITIONS		65536

/* how many rows pass between two resets of the memory that hashing and comparing values use */
#define ROWS_A_RESET	256

typedef struct FullCompare
{
	const GeonnCache *cache;
	TupleDesc	row_type;
	GeonnDifference *difference;
	IdHash		id_hash;
	BaselineType types[TARGET_COLUMNS];
	uint64		key[2];			/* the secret key of the rows' hashes */
	Bag		   *bags;			/* [PARTITIONS]: the rows of the search, less those of the table */
	bool	   *differs;		/* [PARTITIONS]: its rows differ; NULL: those of all may */
	MemoryContext row_context;
	StringInfoData bytes;
	uint64		rows;			/* how many rows were hashed or compared since the last reset */
	RowMerge	merge;
} FullCompare;

/*
 * Begin a row, in memory that is emptied once in a while.  Returns the former memory context.
 */
static MemoryContext
enter_row(FullCompare *comparison)
{
	if (++comparison->rows % ROWS_A_RESET == 0)
		MemoryContextReset(comparison->row_context);
	return MemoryContextSwitchTo(comparison->row_context);
}

static uint32
partition_of(const FullCompare *comparison, Datum id)
{
	return (uint32) (geonn_id_hash(&comparison->id_hash, id) % PARTITIONS);
}

/* ---- bags ---- */

static void
hash_row(FullCompare *comparison, const Datum *values, const bool *nulls, uint64 *hash)
{
	StringInfo	bytes = &comparison->bytes;

	resetStringInfo(bytes);
	appendBinaryStringInfo(bytes, (const char *) nulls, TARGET_COLUMNS * sizeof(bool));
	for (int i = 0; i < TARGET_COLUMNS; i++)
	{
		if (!nulls[i])
			geonn_baseline_write_value(bytes, comparison->types[i], values[i]);
	}
	geonn_siphash(comparison->key, bytes->data, bytes->len, hash);
}

static void
add_found(void *state, const Datum *values, const bool *nulls)
{
	FullCompare *comparison = state;
	MemoryContext former = enter_row(comparison);
	uint64		hash[2];

	hash_row(comparison, values, nulls, hash);
	geonn_bag_add(&comparison->bags[partition_of(comparison, values[TARGET_OBSERVATION_ID])], hash);
	MemoryContextSwitchTo(former);
}

static void
remove_row(void *state, const Datum *values, const bool *nulls, TableReader *reader pg_attribute_unused(),
		   int row pg_attribute_unused())
{
	FullCompare *comparison = state;
	uint64		hash[2];

	hash_row(comparison, values, nulls, hash);
	geonn_bag_remove(&comparison->bags[partition_of(comparison, values[TARGET_OBSERVATION_ID])], hash);
}

/*
 * Learn in which partitions rows differ.  Returns whether any do.
 */
static bool
find_different(FullCompare *comparison)
{
	static const Bag empty;
	bool		any = false;

	comparison->differs = palloc(PARTITIONS * sizeof(bool));
	for (int i = 0; i < PARTITIONS; i++)
	{
		comparison->differs[i] = !geonn_bag_is(&comparison->bags[i], &empty);
		any |= comparison->differs[i];
	}
	return any;
}

/* ---- rows that are sorted ---- */

static bool
may_differ(void *state, Datum id)
{
	FullCompare *comparison = state;
	MemoryContext former = enter_row(comparison);
	bool		differs = comparison->differs[partition_of(comparison, id)];

	MemoryContextSwitchTo(former);
	return differs;
}

static void
sort_found(void *state, const Datum *values, const bool *nulls)
{
	FullCompare *comparison = state;

	geonn_sorted_rows_add(comparison->merge.found, NULL, values, nulls);
}

static void
sort_row(void *state, const Datum *values, const bool *nulls, TableReader *reader, int row)
{
	FullCompare *comparison = state;
	ItemPointerData tid;

	if (comparison->differs != NULL && !may_differ(comparison, values[TARGET_OBSERVATION_ID]))
		return;
	tid = geonn_table_reader_tid(reader, row);
	geonn_sorted_rows_add(comparison->merge.in_table, &tid, values, nulls);
}

/*
 * Add the differences of the rows that are to be sorted, and those of the table that go with them.
 * Returns how many rows the search returned.
 */
static uint64
sort_and_merge(FullCompare *comparison, FullSearch *search)
{
	uint64		rows;

	comparison->merge = geonn_merge_begin(comparison->cache, comparison->row_type);
	search->consume = sort_found;
	rows = geonn_full_search(search);
	geonn_target_read(comparison->cache->target, TARGET_COLUMNS, sort_row, comparison);
	geonn_merge_end(&comparison->merge, comparison->difference);
	return rows;
}

/* ---- both ---- */

/*
 * Compare bags first.
 */
static uint64
compare_bags(FullCompare *comparison, FullSearch *search)
{
	uint64		rows;

	if (!pg_strong_random(comparison->key, sizeof(comparison->key)))
		elog(ERROR, "could not get random bytes");
	comparison->bags = palloc0(PARTITIONS * sizeof(Bag));
	search->consume = add_found;
	rows = geonn_full_search(search);
	geonn_target_read(comparison->cache->target, TARGET_COLUMNS, remove_row, comparison);
	if (find_different(comparison))
	{
		search->build = NULL;
		search->wants = may_differ;
		(void) sort_and_merge(comparison, search);
	}
	return rows;
}

int64
geonn_full_compare(const GeonnCache *cache, const GeonnJoin *join, TupleDesc row_type,
				   BaselineBuild *build, bool expects_many, GeonnDifference *difference)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn comparison",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	FullCompare comparison = {
		.cache = cache,
		.row_type = row_type,
		.difference = difference,
		.id_hash = geonn_id_hash_of(TupleDescAttr(row_type, TARGET_OBSERVATION_ID))
	};
	FullSearch	search = {
		.cache = cache,
		.join = join,
		.row_type = row_type,
		.build = build,
		.state = &comparison
	};
	uint64		rows;

	for (int i = 0; i < TARGET_COLUMNS; i++)
	{
		Form_pg_attribute column = TupleDescAttr(row_type, i);

		comparison.types[i] = (BaselineType) {column->attbyval, column->attlen};
	}
	comparison.row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_DEFAULT_SIZES);
	initStringInfo(&comparison.bytes);
	rows = expects_many ? sort_and_merge(&comparison, &search) : compare_bags(&comparison, &search);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return (int64) rows;
}
