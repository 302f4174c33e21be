/*
 * baseline_compare.c
 *		What has changed of a source since its baseline was made.
 *
 * The source is read once, for the sums of all blocks.  If some sums are not what they were, the
 * hashes of these blocks' rows are put into a hash table, and the source is read again.  A row of
 * such a block is taken off the table if it is there; if it is not, it was added.  What is left in
 * the table at the end was removed.
 *
 * If the source has only the rows that may have changed, these rows are kept by their ids, and the
 * whole baseline is read and compared with them.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "cache/baseline.h"
#include "cache/siphash.h"

typedef struct RowHash
{
	uint64		hash[2];
} RowHash;

typedef struct KnownRow
{
	RowHash		hash;
	uint32		count;			/* rows not found again so far */
	uint64		added;			/* of an id: index among the added rows */
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

/* points that are added to sums together */
#define FINGERPRINTS_AT_ONCE	64

typedef struct Sum
{
	uint64		hash[2];
	uint64		rows;
} Sum;

typedef struct Comparison
{
	GeonnBaseline *baseline;
	MemoryContext context;		/* of the changes that are found */
	MemoryContext row_context;
	StringInfoData bytes;
	Sum		   *sums;			/* [baseline->count] */
	Fingerprint waiting[FINGERPRINTS_AT_ONCE];	/* waiting to be added to sums */
	int			waiting_count;
	bool	   *changed;		/* [baseline->count] */
	known_hash *known;			/* rows of changed blocks; or ids of rows that were read */
	BaselineRow row;			/* for values that are not used */
	BaselineChanges *changes;
	uint64		added_room;
	uint64		removed_room;
	Size		memory;			/* bytes left for changes */
	bool		too_many;
} Comparison;

/* ---- rows that are read ---- */

/*
 * Write a row's bytes, in memory that lives until end_row.
 */
static void
begin_row(Comparison *comparison, const PointRow *row, Fingerprint *fingerprint)
{
	MemoryContext former = MemoryContextSwitchTo(comparison->row_context);

	resetStringInfo(&comparison->bytes);
	geonn_baseline_write(comparison->baseline, row, &comparison->bytes, fingerprint);
	MemoryContextSwitchTo(former);
}

/* few rows need memory of their own */
static void
end_row(Comparison *comparison)
{
	if (comparison->row_context->mem_allocated > ALLOCSET_DEFAULT_INITSIZE)
		MemoryContextReset(comparison->row_context);
}

/* ---- sums ---- */

/*
 * Add the waiting points to the sums of their blocks.  Where each of the three arrays is read next
 * is known beforehand, and none of them is likely to be in a cache.
 */
static void
add_waiting(Comparison *comparison)
{
	const GeonnBaseline *baseline = comparison->baseline;
	uint32		block[FINGERPRINTS_AT_ONCE];

	for (int i = 0; i < comparison->waiting_count; i++)
		geonn_baseline_prefetch(baseline, comparison->waiting[i].key);
	for (int i = 0; i < comparison->waiting_count; i++)
	{
		block[i] = geonn_baseline_find_block(baseline, comparison->waiting[i].key);
		__builtin_prefetch(&comparison->sums[block[i]], 1);
	}
	for (int i = 0; i < comparison->waiting_count; i++)
	{
		Sum		   *sum = &comparison->sums[block[i]];

		sum->hash[0] += comparison->waiting[i].hash[0];
		sum->hash[1] += comparison->waiting[i].hash[1];
		sum->rows++;
	}
	comparison->waiting_count = 0;
}

static void
add_to_sum(void *state, const PointRow *row)
{
	Comparison *comparison = state;

	if (!geonn_baseline_has(&comparison->baseline->schema, row))
		return;
	begin_row(comparison, row, &comparison->waiting[comparison->waiting_count++]);
	if (comparison->waiting_count == FINGERPRINTS_AT_ONCE)
		add_waiting(comparison);
	end_row(comparison);
}

/*
 * Find the blocks whose sums have changed.  Returns how many.
 */
static uint32
find_changed(Comparison *comparison, uint32 *blocks)
{
	const GeonnBaseline *baseline = comparison->baseline;
	uint32		count = 0;

	for (uint32 i = 0; i < baseline->count; i++)
	{
		const Sum  *sum = &comparison->sums[i];

		if (sum->rows == baseline->blocks[i].rows && sum->hash[0] == baseline->blocks[i].hash[0] &&
			sum->hash[1] == baseline->blocks[i].hash[1])
			continue;
		comparison->changed[i] = true;
		blocks[count++] = i;
	}
	return count;
}

/* ---- rows ---- */

/*
 * Visit a block's rows.
 */
static void
for_each_row(Comparison *comparison, uint32 block, const char *contents, Size length,
			 void (*visit) (Comparison *comparison, const BaselineChange *row))
{
	const GeonnBaseline *baseline = comparison->baseline;
	const char *end = contents + length;
	MemoryContext former = MemoryContextSwitchTo(comparison->row_context);
	BaselineChange row = {.block = block};
	float		reach;

	for (; geonn_baseline_next(&baseline->schema, &contents, end, &comparison->row, &reach, &row.bytes,
							   &row.length); row.row++)
	{
		row.fingerprint = geonn_baseline_fingerprint(baseline, row.bytes, row.length);
		visit(comparison, &row);
		MemoryContextReset(comparison->row_context);
	}
	MemoryContextSwitchTo(former);
}

static void
learn_row(Comparison *comparison, const BaselineChange *row)
{
	RowHash		hash = {{row->fingerprint.hash[0], row->fingerprint.hash[1]}};
	bool		found;
	KnownRow   *known = known_insert(comparison->known, hash, &found);

	if (!found)
		known->count = 0;
	known->count++;
}

static void
learn_block(void *state, uint32 block, const char *contents, Size length)
{
	for_each_row(state, block, contents, length, learn_row);
}

/*
 * Take a row off the table.  Returns false if it is not there.
 */
static bool
take_off(Comparison *comparison, const Fingerprint *fingerprint)
{
	RowHash		hash = {{fingerprint->hash[0], fingerprint->hash[1]}};
	KnownRow   *known = known_lookup(comparison->known, hash);

	if (known == NULL || known->count == 0)
		return false;
	known->count--;
	return true;
}

/*
 * Add a change, with a copy of its bytes.
 */
static void
add_change(Comparison *comparison, BaselineChange **changes, uint64 *count, uint64 *room,
		   const BaselineChange *change)
{
	Size		needed = sizeof(BaselineChange) + change->length;
	char	   *bytes;

	if (comparison->too_many || needed > comparison->memory)
	{
		comparison->too_many = true;
		return;
	}
	comparison->memory -= needed;
	if (*count == *room)
	{
		*room = Max(*room * 2, 64);
		*changes = *count == 0 ?
			MemoryContextAllocHuge(comparison->context, *room * sizeof(BaselineChange)) :
			repalloc_huge(*changes, *room * sizeof(BaselineChange));
	}
	bytes = MemoryContextAlloc(comparison->context, change->length);
	memcpy(bytes, change->bytes, change->length);
	(*changes)[*count] = *change;
	(*changes)[(*count)++].bytes = bytes;
}

/*
 * Add the row just written to the added rows; change has its block.
 */
static void
add_row(Comparison *comparison, BaselineChange *change)
{
	BaselineChanges *changes = comparison->changes;

	change->bytes = comparison->bytes.data;
	change->length = comparison->bytes.len;
	add_change(comparison, &changes->added, &changes->added_count, &comparison->added_room, change);
}

static void
look_for_row(void *state, const PointRow *row)
{
	Comparison *comparison = state;
	BaselineChange change = {0};

	if (!geonn_baseline_has(&comparison->baseline->schema, row))
		return;
	begin_row(comparison, row, &change.fingerprint);
	change.block = geonn_baseline_find_block(comparison->baseline, change.fingerprint.key);
	if (comparison->changed[change.block] && !take_off(comparison, &change.fingerprint))
		add_row(comparison, &change);
	end_row(comparison);
}

static void
check_removed(Comparison *comparison, const BaselineChange *row)
{
	if (take_off(comparison, &row->fingerprint))
		add_change(comparison, &comparison->changes->removed, &comparison->changes->removed_count,
				   &comparison->removed_room, row);
}

static void
find_removed(void *state, uint32 block, const char *contents, Size length)
{
	for_each_row(state, block, contents, length, check_removed);
}

static int
by_key_of_block(const void *first, const void *second)
{
	const BaselineChange *a = first;
	const BaselineChange *b = second;

	if (a->block != b->block)
		return a->block < b->block ? -1 : 1;
	return a->fingerprint.key < b->fingerprint.key ? -1 : a->fingerprint.key > b->fingerprint.key;
}

/* ---- the comparison ---- */

/*
 * Find the changes of these blocks.  Returns false if they are too many.
 */
static bool
find_changes(Comparison *comparison, const PointSource *source, const uint32 *blocks, uint32 count)
{
	GeonnBaseline *baseline = comparison->baseline;
	BaselineChanges *changes = comparison->changes;
	uint64		rows = 0;

	for (uint32 i = 0; i < count; i++)
		rows += baseline->blocks[blocks[i]].rows;
	if (rows * 2 * sizeof(KnownRow) > comparison->memory)
		return false;
	comparison->memory -= rows * 2 * sizeof(KnownRow);
	comparison->known = known_create(CurrentMemoryContext, (uint32) rows, NULL);
	geonn_baseline_read_blocks(baseline, blocks, count, GetActiveSnapshot(), learn_block, comparison);
	geonn_read_points(source, GEONN_INVALID_COUNTED, look_for_row, comparison);
	geonn_baseline_read_blocks(baseline, blocks, count, GetActiveSnapshot(), find_removed, comparison);
	if (comparison->too_many)
		return false;
	if (changes->added_count > 0)
		qsort(changes->added, changes->added_count, sizeof(BaselineChange), by_key_of_block);
	return true;
}

/* ---- some rows ---- */

static RowHash
hash_of_id(const Comparison *comparison, const char *bytes)
{
	const GeonnBaseline *baseline = comparison->baseline;
	Size		length;
	const char *id = geonn_baseline_id(&baseline->schema, bytes, &length);
	RowHash		hash;

	geonn_siphash(baseline->seed, id, length, hash.hash);
	return hash;
}

/* no row was added for an id */
#define NOT_ADDED PG_UINT64_MAX

/*
 * Take a row that may have changed for an added one, until the baseline shows that it is the same.
 */
static void
take_some(void *state, const PointRow *row)
{
	Comparison *comparison = state;
	const GeonnBaseline *baseline = comparison->baseline;
	bool		has = geonn_baseline_has(&baseline->schema, row);
	PointRow	written = *row;
	BaselineChange change = {0};
	KnownRow   *known;
	bool		found;

	if (row->id_is_null && !has)
		return;
	if (!has)
		written.status = POINT_VALID;	/* only its id is used */
	begin_row(comparison, &written, &change.fingerprint);
	known = known_insert(comparison->known, hash_of_id(comparison, comparison->bytes.data), &found);
	known->count = 1;
	known->added = NOT_ADDED;
	if (has)
	{
		known->added = comparison->changes->added_count;
		change.block = geonn_baseline_find_block(baseline, change.fingerprint.key);
		add_row(comparison, &change);
	}
	end_row(comparison);
}

/*
 * A row of the baseline was removed if the source has its id and other values.
 */
static void
look_for_id(Comparison *comparison, const BaselineChange *row)
{
	BaselineChanges *changes = comparison->changes;
	KnownRow   *known = known_lookup(comparison->known, hash_of_id(comparison, row->bytes));
	BaselineChange *added;

	if (known == NULL)
		return;
	added = known->added == NOT_ADDED ? NULL : &changes->added[known->added];
	if (added != NULL && added->fingerprint.hash[0] == row->fingerprint.hash[0] &&
		added->fingerprint.hash[1] == row->fingerprint.hash[1])
		added->bytes = NULL;
	else
		add_change(comparison, &changes->removed, &changes->removed_count, &comparison->removed_room, row);
}

static void
find_ids(void *state, uint32 block, const char *contents, Size length)
{
	for_each_row(state, block, contents, length, look_for_id);
}

static bool
find_some(Comparison *comparison, const PointSource *source, InvalidPolicy invalid, uint32 *blocks)
{
	BaselineChanges *changes = comparison->changes;
	uint64		count = 0;

	comparison->known = known_create(CurrentMemoryContext, 1024, NULL);
	geonn_read_points(source, invalid, take_some, comparison);
	if (comparison->too_many)
		return false;
	for (uint32 i = 0; i < comparison->baseline->count; i++)
		blocks[i] = i;
	if (comparison->known->members > 0)
		geonn_baseline_read_blocks(comparison->baseline, blocks, comparison->baseline->count,
								   GetActiveSnapshot(), find_ids, comparison);
	for (uint64 i = 0; i < changes->added_count; i++)
	{
		if (changes->added[i].bytes != NULL)
			changes->added[count++] = changes->added[i];
	}
	changes->added_count = count;
	if (count > 0)
		qsort(changes->added, count, sizeof(BaselineChange), by_key_of_block);
	return !comparison->too_many;
}

/* ---- both ---- */

static bool
find(GeonnBaseline *baseline, const PointSource *source, InvalidPolicy invalid, bool some,
	 Size memory, BaselineChanges *changes)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn comparison",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	Comparison	comparison = {
		.baseline = baseline,
		.context = former,
		.changes = changes,
		.memory = memory
	};
	uint32	   *blocks = MemoryContextAllocHuge(context, baseline->count * sizeof(uint32));
	uint32		count;
	bool		found;

	*changes = (BaselineChanges) {0};
	comparison.row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_DEFAULT_SIZES);
	initStringInfo(&comparison.bytes);
	comparison.row = geonn_baseline_row(&baseline->schema);
	comparison.sums = MemoryContextAllocExtended(context, baseline->count * sizeof(Sum),
												 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	comparison.changed = MemoryContextAllocExtended(context, baseline->count * sizeof(bool),
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	if (some)
		found = find_some(&comparison, source, invalid, blocks);
	else
	{
		geonn_read_points(source, invalid, add_to_sum, &comparison);
		add_waiting(&comparison);
		count = find_changed(&comparison, blocks);
		found = count == 0 || find_changes(&comparison, source, blocks, count);
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return found;
}

bool
geonn_baseline_compare(GeonnBaseline *baseline, const PointSource *source, InvalidPolicy invalid,
					   Size memory, BaselineChanges *changes)
{
	return find(baseline, source, invalid, false, memory, changes);
}

bool
geonn_baseline_compare_some(GeonnBaseline *baseline, const PointSource *source, InvalidPolicy invalid,
							Size memory, BaselineChanges *changes)
{
	return find(baseline, source, invalid, true, memory, changes);
}
