/*
 * baseline_update.c
 *		The baselines are brought up to date with what has changed.
 *
 * The blocks in which something has changed are read, rebuilt and written: without the points that
 * were removed, with those that were added, and with new reaches.  If few references have moved,
 * most of these blocks have new reaches alone.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "cache/affected.h"

/* a point of a block that is rebuilt */
typedef struct BlockRow
{
	Fingerprint fingerprint;
	float		reach;
	const char *bytes;
	uint32		length;
} BlockRow;

typedef struct BaselineUpdate
{
	GeonnBaseline *baseline;
	BaselineWriter *writer;
	const BaselineChanges *changes;
	const Affected *reaches;	/* new reaches of rows that stay, by block and row */
	uint64		reach_count;
	const Affected *added_reaches;	/* reaches of added rows, by block and key; NULL: they have none */

	/* the next of each list */
	uint64		next_removed;
	uint64		next_reach;
	uint64		next_added;

	BaselineRow row;
	MemoryContext block_context;
	BlockRow   *rows;			/* of the present block */
	uint64		count;
	uint64		room;
} BaselineUpdate;

static int
by_key(const void *first, const void *second)
{
	const BlockRow *a = first;
	const BlockRow *b = second;

	return a->fingerprint.key < b->fingerprint.key ? -1 : a->fingerprint.key > b->fingerprint.key;
}

static void
add_row(BaselineUpdate *update, const Fingerprint *fingerprint, float reach, const char *bytes,
		Size length)
{
	if (update->count == update->room)
	{
		update->room *= 2;
		update->rows = repalloc_huge(update->rows, update->room * sizeof(BlockRow));
	}
	update->rows[update->count++] = (BlockRow)
	{
		*fingerprint, reach, bytes, (uint32) length
	};
}

/*
 * The present reach of a row of the block, whose former reach is given.
 */
static float
reach_now(BaselineUpdate *update, uint32 block, uint32 number, float reach)
{
	if (update->next_reach < update->reach_count &&
		update->reaches[update->next_reach].block == block &&
		update->reaches[update->next_reach].row == (int32) number)
		return update->reaches[update->next_reach++].reach;
	return reach;
}

/*
 * Keep a row of the block, unless it was removed.
 */
static void
take_row(BaselineUpdate *update, uint32 block, uint32 number, float reach, const char *bytes,
		 Size length)
{
	const BaselineChanges *changes = update->changes;
	Fingerprint fingerprint;

	if (update->next_removed < changes->removed_count &&
		changes->removed[update->next_removed].block == block &&
		changes->removed[update->next_removed].row == number)
	{
		update->next_removed++;
		return;
	}
	fingerprint = geonn_baseline_fingerprint(update->baseline, bytes, length);
	add_row(update, &fingerprint, reach_now(update, block, number, reach), bytes, length);
}

/*
 * Does the block keep all of its rows, and get no others?
 */
static bool
has_same_rows(const BaselineUpdate *update, uint32 block)
{
	const BaselineChanges *changes = update->changes;

	return (update->next_removed == changes->removed_count ||
			changes->removed[update->next_removed].block != block) &&
		(update->next_added == changes->added_count ||
		 changes->added[update->next_added].block != block);
}

static void
update_reaches(BaselineUpdate *update, uint32 block, const char *contents, Size length)
{
	char	   *updated = palloc(length);
	const char *next = contents;
	const char *bytes;
	Size		row_length;
	float		reach;
	float		greatest = -1;

	memcpy(updated, contents, length);
	for (uint32 number = 0; geonn_baseline_next(&update->baseline->schema, &next, contents + length,
												&update->row, &reach, &bytes, &row_length); number++)
	{
		reach = reach_now(update, block, number, reach);
		memcpy(updated + (bytes - contents) - sizeof(reach), &reach, sizeof(reach));
		greatest = Max(greatest, reach);
	}
	geonn_baseline_set_reaches(update->writer, block, updated, length, greatest);
}

/*
 * Rebuild the block from its rows that stay and those that were added.
 */
static void
rebuild_block(BaselineUpdate *update, uint32 block, const char *contents, Size length)
{
	const BaselineChanges *changes = update->changes;
	const char *end = contents + length;
	const char *bytes;
	Size		row_length;
	float		reach;

	update->count = 0;
	for (uint32 number = 0; geonn_baseline_next(&update->baseline->schema, &contents, end, &update->row,
												&reach, &bytes, &row_length); number++)
		take_row(update, block, number, reach, bytes, row_length);
	for (; update->next_added < changes->added_count &&
		 changes->added[update->next_added].block == block; update->next_added++)
	{
		const BaselineChange *added = &changes->added[update->next_added];

		add_row(update, &added->fingerprint,
				update->added_reaches == NULL ? -1 : update->added_reaches[update->next_added].reach,
				added->bytes, added->length);
	}
	qsort(update->rows, update->count, sizeof(BlockRow), by_key);
	geonn_baseline_replace(update->writer, block);
	for (uint64 i = 0; i < update->count; i++)
		geonn_baseline_add(update->writer, &update->rows[i].fingerprint, update->rows[i].reach,
						   update->rows[i].bytes, update->rows[i].length);
}

static void
update_block(void *state, uint32 block, const char *contents, Size length)
{
	BaselineUpdate *update = state;
	MemoryContext former = MemoryContextSwitchTo(update->block_context);

	if (has_same_rows(update, block))
		update_reaches(update, block, contents, length);
	else
		rebuild_block(update, block, contents, length);
	MemoryContextSwitchTo(former);
	MemoryContextReset(update->block_context);
}

/*
 * Find the blocks in which something has changed, in their order.  Returns how many.
 */
static uint32
touched_blocks(const BaselineUpdate *update, uint32 *blocks)
{
	const BaselineChanges *changes = update->changes;
	bool	   *touched = MemoryContextAllocExtended(CurrentMemoryContext,
													 update->baseline->count * sizeof(bool),
													 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	uint32		count = 0;

	for (uint64 i = 0; i < changes->added_count; i++)
		touched[changes->added[i].block] = true;
	for (uint64 i = 0; i < changes->removed_count; i++)
		touched[changes->removed[i].block] = true;
	for (uint64 i = 0; i < update->reach_count; i++)
		touched[update->reaches[i].block] = true;
	for (uint32 i = 0; i < update->baseline->count; i++)
	{
		if (touched[i])
			blocks[count++] = i;
	}
	pfree(touched);
	return count;
}

static void
update_baseline(GeonnBaseline *baseline, const BaselineChanges *changes,
				const Affected *reaches, uint64 reach_count, const Affected *added_reaches)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn update",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	BaselineUpdate update = {
		.baseline = baseline,
		.changes = changes,
		.reaches = reaches,
		.reach_count = reach_count,
		.added_reaches = added_reaches,
		.room = 256
	};
	uint32	   *blocks = MemoryContextAllocHuge(context, baseline->count * sizeof(uint32));
	uint32		count = touched_blocks(&update, blocks);

	if (count > 0)
	{
		update.rows = palloc(update.room * sizeof(BlockRow));
		update.row = geonn_baseline_row(&baseline->schema);
		update.writer = geonn_baseline_writer_begin(baseline, false);
		update.block_context = AllocSetContextCreate(context, "geonn block", ALLOCSET_DEFAULT_SIZES);
		geonn_baseline_read_blocks(baseline, blocks, count, GetActiveSnapshot(), update_block, &update);
		geonn_baseline_writer_end(update.writer);
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}

void
geonn_increment_baselines(const GeonnIncrement *increment, const Affected *affected, uint64 count)
{
	const BaselineChanges *observations = &increment->observation_changes;
	uint64		reaches = count - observations->added_count;

	update_baseline(increment->observations, observations, affected, reaches, affected + reaches);
	update_baseline(increment->references, &increment->reference_changes, NULL, 0, NULL);
}
