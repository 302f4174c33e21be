/*
 * baseline_compare.c
 *		What has changed of a source since its baseline was made.
 *
 * The source is read once, for the sums of all blocks.  If some sums are not what they were, the
 * hashes of these blocks' rows are put into a hash table, and the source's rows are looked at again:
 * in memory, if they are few enough to be stored there meanwhile, else by another reading.  A row of
 * such a block is taken off the table if it is there; if it is not, it was added.  What is left in
 * the table at the end was removed.
 *
 * If only few pages of a table may have changed, only their rows are read (cache/page_compare.c).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "cache/block_sums.h"
#include "cache/changed_pages.h"
#include "cache/comparison.h"

/* points that are added to sums together */
#define FINGERPRINTS_AT_ONCE	64

/* the share of maintenance_work_mem for rows that are stored, and the bytes of one row, about */
#define SHARE_STORED			8
#define BYTES_A_STORED_ROW		(sizeof(StoredRow) + 48)

/* a row that was read, followed by its bytes */
typedef struct StoredRow
{
	Fingerprint fingerprint;
	uint32		length;
} StoredRow;

/* all rows that were read; bytes is NULL if they are too many */
typedef struct StoredRows
{
	char	   *bytes;
	Size		length;
	Size		room;
} StoredRows;

/* a comparison by sums */
typedef struct SumComparison
{
	BaselineComparison *comparison;
	BlockSum   *sums;			/* [baseline->count] */
	Fingerprint waiting[FINGERPRINTS_AT_ONCE];	/* waiting to be added to sums */
	int			waiting_count;
	StoredRows	stored;
} SumComparison;

/* ---- sums ---- */

/*
 * Add the waiting points to the sums of their blocks.  Where each of the three arrays is read next
 * is known beforehand, and none of them is likely to be in a cache.
 */
static void
add_waiting(SumComparison *by_sums)
{
	const GeonnBaseline *baseline = by_sums->comparison->baseline;
	uint32		block[FINGERPRINTS_AT_ONCE];

	for (int i = 0; i < by_sums->waiting_count; i++)
		geonn_baseline_prefetch(baseline, by_sums->waiting[i].key);
	for (int i = 0; i < by_sums->waiting_count; i++)
	{
		block[i] = geonn_baseline_find_block(baseline, by_sums->waiting[i].key);
		__builtin_prefetch(&by_sums->sums[block[i]], 1);
	}
	for (int i = 0; i < by_sums->waiting_count; i++)
		geonn_block_sum_add(&by_sums->sums[block[i]], &by_sums->waiting[i]);
	by_sums->waiting_count = 0;
}

/*
 * Store the source's rows if they seem to be few enough.
 */
static void
begin_storing(SumComparison *by_sums)
{
	const GeonnBaseline *baseline = by_sums->comparison->baseline;

	if (baseline->rows * BYTES_A_STORED_ROW > (Size) maintenance_work_mem * 1024 / SHARE_STORED)
		return;
	by_sums->stored.room = BLCKSZ;
	by_sums->stored.bytes = palloc(by_sums->stored.room);
}

/*
 * Store the row just written.
 */
static void
store_row(SumComparison *by_sums, const Fingerprint *fingerprint)
{
	StoredRows *stored = &by_sums->stored;
	StoredRow	row = {.fingerprint = *fingerprint,.length = (uint32) by_sums->comparison->bytes.len};
	Size		length = stored->length + sizeof(row) + row.length;

	if (length > (Size) maintenance_work_mem * 1024 / SHARE_STORED)
	{
		pfree(stored->bytes);
		stored->bytes = NULL;
		return;
	}
	if (length > stored->room)
	{
		stored->room = Max(stored->room * 2, length);
		stored->bytes = repalloc_huge(stored->bytes, stored->room);
	}
	memcpy(stored->bytes + stored->length, &row, sizeof(row));
	memcpy(stored->bytes + stored->length + sizeof(row), by_sums->comparison->bytes.data, row.length);
	stored->length = length;
}

static void
add_to_sum(void *state, const PointRow *row)
{
	SumComparison *by_sums = state;
	Fingerprint *fingerprint = &by_sums->waiting[by_sums->waiting_count];

	if (!geonn_baseline_has(&by_sums->comparison->baseline->schema, row))
		return;
	geonn_comparison_begin_row(by_sums->comparison, row, fingerprint);
	geonn_pages_add(by_sums->comparison->baseline->pages, row, fingerprint);
	if (by_sums->stored.bytes != NULL)
		store_row(by_sums, fingerprint);
	by_sums->waiting_count++;
	if (by_sums->waiting_count == FINGERPRINTS_AT_ONCE)
		add_waiting(by_sums);
	geonn_comparison_end_row(by_sums->comparison);
}

/*
 * Find the blocks whose sums have changed.  Returns how many.
 */
static uint32
find_changed(SumComparison *by_sums, uint32 *blocks)
{
	const GeonnBaseline *baseline = by_sums->comparison->baseline;
	uint32		count = 0;

	for (uint32 i = 0; i < baseline->count; i++)
	{
		if (geonn_block_sum_is(&by_sums->sums[i], &baseline->blocks[i]))
			continue;
		by_sums->comparison->changed[i] = true;
		blocks[count++] = i;
	}
	return count;
}

/* ---- rows ---- */

static RowHash
hash_of(const Fingerprint *fingerprint)
{
	return (RowHash)
	{
		{
			fingerprint->hash[0], fingerprint->hash[1]
		}
	};
}

static void
learn_row(BaselineComparison *comparison, const BaselineChange *row)
{
	geonn_comparison_learn(comparison, hash_of(&row->fingerprint));
}

static void
learn_block(void *state, uint32 block, const char *contents, Size length)
{
	geonn_comparison_visit(state, block, contents, length, learn_row);
}

static void
look_for(BaselineComparison *comparison, const Fingerprint *fingerprint, const char *bytes, Size length)
{
	uint32		block = geonn_baseline_find_block(comparison->baseline, fingerprint->key);

	if (comparison->changed[block] && !geonn_comparison_take_off(comparison, hash_of(fingerprint)))
		geonn_comparison_add(comparison, block, fingerprint, bytes, length);
}

static void
look_for_row(void *state, const PointRow *row)
{
	BaselineComparison *comparison = state;
	Fingerprint fingerprint;

	if (!geonn_baseline_has(&comparison->baseline->schema, row))
		return;
	geonn_comparison_begin_row(comparison, row, &fingerprint);
	look_for(comparison, &fingerprint, comparison->bytes.data, comparison->bytes.len);
	geonn_comparison_end_row(comparison);
}

static void
look_for_stored_rows(BaselineComparison *comparison, const StoredRows *stored)
{
	StoredRow	row;

	for (const char *next = stored->bytes; next < stored->bytes + stored->length; next += row.length)
	{
		CHECK_FOR_INTERRUPTS();
		memcpy(&row, next, sizeof(row));
		next += sizeof(row);
		look_for(comparison, &row.fingerprint, next, row.length);
	}
}

static void
check_removed(BaselineComparison *comparison, const BaselineChange *row)
{
	if (geonn_comparison_take_off(comparison, hash_of(&row->fingerprint)))
		geonn_comparison_remove(comparison, row);
}

static void
find_removed(void *state, uint32 block, const char *contents, Size length)
{
	geonn_comparison_visit(state, block, contents, length, check_removed);
}

/* ---- the comparison ---- */

/*
 * Find the changes of these blocks.  Returns false if they are too many.
 */
static bool
find_changes(SumComparison *by_sums, const PointSource *source, const uint32 *blocks, uint32 count)
{
	BaselineComparison *comparison = by_sums->comparison;
	GeonnBaseline *baseline = comparison->baseline;
	uint64		rows = 0;

	for (uint32 i = 0; i < count; i++)
		rows += baseline->blocks[blocks[i]].rows;
	if (rows * 2 * sizeof(KnownRow) > comparison->memory)
		return false;
	comparison->memory -= rows * 2 * sizeof(KnownRow);
	comparison->known = known_create(CurrentMemoryContext, (uint32) rows, NULL);
	geonn_baseline_read_blocks(baseline, blocks, count, GetActiveSnapshot(), learn_block, comparison);
	if (by_sums->stored.bytes != NULL)
		look_for_stored_rows(comparison, &by_sums->stored);
	else
		geonn_read_points(source, GEONN_INVALID_COUNTED, look_for_row, comparison);
	geonn_baseline_read_blocks(baseline, blocks, count, GetActiveSnapshot(), find_removed, comparison);
	if (comparison->too_many)
		return false;
	geonn_comparison_sort(comparison);
	return true;
}

static bool
find_by_sums(BaselineComparison *comparison, const PointSource *source, InvalidPolicy invalid,
			 uint32 *blocks)
{
	SumComparison by_sums = {
		.comparison = comparison,
		.sums = geonn_block_sums_create(comparison->baseline)
	};
	uint32		count;

	begin_storing(&by_sums);
	geonn_read_points(source, invalid, add_to_sum, &by_sums);
	add_waiting(&by_sums);
	count = find_changed(&by_sums, blocks);
	return count == 0 || find_changes(&by_sums, source, blocks, count);
}

/* ---- either way ---- */

bool
geonn_baseline_compare(GeonnBaseline *baseline, const PointSource *source, InvalidPolicy invalid,
					   Size memory, BaselineChanges *changes)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn comparison",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	BaselineComparison comparison = {
		.baseline = baseline,
		.context = former,
		.changes = changes,
		.memory = memory
	};
	uint32	   *blocks = MemoryContextAllocHuge(context, baseline->count * sizeof(uint32));
	bool		found;

	*changes = (BaselineChanges) {0};
	comparison.row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_DEFAULT_SIZES);
	initStringInfo(&comparison.bytes);
	comparison.row = geonn_baseline_row(&baseline->schema);
	comparison.changed = MemoryContextAllocExtended(context, baseline->count * sizeof(bool),
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	if (geonn_pages_are_few(baseline->pages) &&
		geonn_compare_pages(&comparison, source, invalid, blocks))
		found = !comparison.too_many;
	else
		found = find_by_sums(&comparison, source, invalid, blocks);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return found;
}
