/*
 * page_compare.c
 *		What has changed of tables since their baseline was made, if only few pages may have changed.
 *
 * Only the rows of these pages are read (cache/changed_pages.c), and the lists of the points that the
 * last run found there are put into the hash table.  A point counts as the one of a list if it has the
 * same key and half of the same hash: at the same coordinates these are 80 bits of the hash (key_of in
 * cache/baseline.c).  The points that are left in the table were removed: their bytes are in the blocks
 * to which their keys belong.  Points without coordinates have one key, and 64 bits of the hash decide.
 *
 * If points of the lists are not in the baseline, one of both is damaged, and the tables are read whole.
 */
#include "postgres.h"

#include "utils/snapmgr.h"

#include "cache/changed_pages.h"
#include "cache/comparison.h"

/*
 * What is known of a point that is on the list of its page.  The table takes the bits of the first
 * half, and points at the same coordinates have similar keys.
 */
static RowHash
hash_on_list(uint64 key, uint64 hash)
{
	return (RowHash)
	{
		{
			hash, key
		}
	};
}

static void
learn_entry(void *state, const PageEntry *entry)
{
	geonn_comparison_learn(state, hash_on_list(entry->key, entry->hash));
}

static void
look_for_entry(void *state, const PointRow *row)
{
	BaselineComparison *comparison = state;
	const GeonnBaseline *baseline = comparison->baseline;
	Fingerprint fingerprint;

	if (!geonn_baseline_has(&baseline->schema, row))
		return;
	geonn_comparison_begin_row(comparison, row, &fingerprint);
	geonn_pages_add(baseline->pages, row, &fingerprint);
	if (!geonn_comparison_take_off(comparison, hash_on_list(fingerprint.key, fingerprint.hash[1])))
		geonn_comparison_add(comparison, geonn_baseline_find_block(baseline, fingerprint.key),
							 &fingerprint, comparison->bytes.data, comparison->bytes.len);
	geonn_comparison_end_row(comparison);
}

static void
check_entry(BaselineComparison *comparison, const BaselineChange *row)
{
	if (geonn_comparison_take_off(comparison,
								  hash_on_list(row->fingerprint.key, row->fingerprint.hash[1])))
		geonn_comparison_remove(comparison, row);
}

static void
find_entries(void *state, uint32 block, const char *contents, Size length)
{
	geonn_comparison_visit(state, block, contents, length, check_entry);
}

/*
 * Find the blocks of the points that are left in the table.  Returns how many; *points is the number
 * of these points.
 */
static uint32
find_blocks_left(BaselineComparison *comparison, uint32 *blocks, uint64 *points)
{
	const GeonnBaseline *baseline = comparison->baseline;
	known_iterator iterator;
	KnownRow   *known;
	uint32		count = 0;

	*points = 0;
	known_start_iterate(comparison->known, &iterator);
	while ((known = known_iterate(comparison->known, &iterator)) != NULL)
	{
		if (known->count > 0)
			comparison->changed[geonn_baseline_find_block(baseline, known->hash.hash[1])] = true;
		*points += known->count;
	}
	for (uint32 i = 0; i < baseline->count; i++)
	{
		if (comparison->changed[i])
			blocks[count++] = i;
	}
	return count;
}

/*
 * Are pages of any of the tables to be read?
 */
static bool
has_pages(const TablePages *tables, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (tables[i].count > 0)
			return true;
	}
	return false;
}

bool
geonn_compare_pages(BaselineComparison *comparison, const PointSource *source, InvalidPolicy invalid,
					uint32 *blocks)
{
	GeonnBaseline *baseline = comparison->baseline;
	int			table_count;
	const TablePages *tables = geonn_pages_to_read(baseline->pages, &table_count);
	uint32		count;
	uint64		points;

	comparison->known = known_create(CurrentMemoryContext, 1024, NULL);
	geonn_pages_former(baseline->pages, learn_entry, comparison);
	if (has_pages(tables, table_count) &&
		!geonn_read_pages(source, invalid, tables, table_count, look_for_entry, comparison))
	{
		geonn_pages_give_up(baseline->pages);
		return false;
	}
	count = find_blocks_left(comparison, blocks, &points);
	if (count > 0)
		geonn_baseline_read_blocks(baseline, blocks, count, GetActiveSnapshot(), find_entries, comparison);
	if (!comparison->too_many && comparison->changes->removed_count != points)
	{
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the lists of pages of cache \"%s\" are not right, and are made anew",
						baseline->cache->name)));
		comparison->changes->added_count = comparison->changes->removed_count = 0;
		memset(comparison->changed, 0, baseline->count * sizeof(bool));
		geonn_pages_give_up(baseline->pages);
		return false;
	}
	geonn_comparison_sort(comparison);
	return true;
}
