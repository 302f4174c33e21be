/*
 * baseline_compare.c
 *		What has changed of a source since its baseline was made.
 *
 * Points that the baseline has are put into a hash table.  A point of the source is taken off the table
 * if it is there; otherwise it was added.  Points that are left in the table at the end were removed:
 * their bytes are in the blocks to which their keys belong.  Two points count as the same one if they
 * have the same key and half of the same hash: at the same coordinates these are 80 bits of the hash
 * (key_of in cache/baseline.c).  Points without coordinates have one key, and 64 bits of the hash decide.
 *
 * Which points are looked at is found in one of two ways:
 *
 *	 - If only few pages of the source's tables may have changed (cache/changed_pages.c), their rows are
 *	   read, and the lists of the points that the last run found there are put into the table.  If
 *	   points of the lists are not in the baseline, one of both is damaged, and the source is read whole.  So it is
 *	   if these rows have another SRID than the last run found: only that tells whether all rows have it.
 *	 - Otherwise the source is read once, for the bags of all blocks.  If some bags are not what they
 *	   were, the points of these blocks are put into the table, and the source is read again.
 *
 * Changes are copied as long as memory is left for them; after that the comparison goes on, and says that
 * they are too many.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "cache/changed_pages.h"
#include "join/join_prepare.h"

/* points that add_waiting adds at a time */
#define POINTS_AT_ONCE	64

/* an entry of the hash table: a point of the baseline */
typedef struct KnownPoint
{
	PageEntry	entry;
	uint32		count;			/* how many of these were not found in the source */
	char		status;
} KnownPoint;

/* the table hashes by the hash alone: different points at the same coordinates have similar keys */
#define SH_PREFIX known
#define SH_ELEMENT_TYPE KnownPoint
#define SH_KEY_TYPE PageEntry
#define SH_KEY entry
#define SH_HASH_KEY(table, entry) ((uint32) (entry).hash)
#define SH_EQUAL(table, a, b) ((a).hash == (b).hash && (a).key == (b).key)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* a comparison under way */
typedef struct BaselineComparison
{
	GeonnBaseline *baseline;
	const PointSource *source;
	BaselineChanges *changes;
	bool		by_pages;		/* the points of some pages are compared; else those of changed blocks */
	bool	   *changed;		/* [baseline->count]: the block has or had a point to compare */
	uint32	   *blocks;			/* [baseline->count]: the indexes of the changed blocks */
	Bag		   *bags;			/* [baseline->count]: each block's bag of the rows that the source has now */
	Fingerprint waiting[POINTS_AT_ONCE];	/* the fingerprints of points that wait to be added to bags */
	int			waiting_count;
	known_hash *known;
	Size		memory;			/* bytes left for changes */
	bool		too_many;
	bool		met_shape;
	MemoryContext row_context;
	StringInfoData bytes;		/* the bytes of the row that was written last */
} BaselineComparison;

/* ---- the hash table ---- */

static void
learn(void *state, const PageEntry *entry)
{
	BaselineComparison *comparison = state;
	bool		found;
	KnownPoint *known = known_insert(comparison->known, *entry, &found);

	if (!found)
		known->count = 0;
	known->count++;
}

/*
 * Take a point off the hash table.  Returns false if it is not there.
 */
static bool
take_off(BaselineComparison *comparison, const Fingerprint *fingerprint)
{
	PageEntry	entry = {fingerprint->key, fingerprint->hash[1]};
	KnownPoint *known = known_lookup(comparison->known, entry);

	if (known == NULL || known->count == 0)
		return false;
	known->count--;
	return true;
}

static void
learn_block(void *state, uint32 block, const char *contents, Size length)
{
	BaselineComparison *comparison = state;
	const char *end = contents + length;
	BaselinePoint point = geonn_baseline_first(block);

	while (geonn_baseline_next(&contents, end, &point))
	{
		geonn_baseline_fingerprint(comparison->baseline, &point);
		learn(comparison, &(PageEntry) {point.fingerprint.key, point.fingerprint.hash[1]});
	}
}

/* ---- changes ---- */

static void
add_change(BaselineComparison *comparison, PointList *list, const BaselinePoint *point)
{
	Size		needed = sizeof(BaselinePoint) + point->length;

	comparison->too_many |= needed > comparison->memory;
	if (comparison->too_many)
		return;
	comparison->memory -= needed;
	geonn_point_list_add(list, point);
}

/*
 * Write a row's bytes, in memory that lives until end_row.  Returns false if the baseline skips such rows.
 */
static bool
begin_row(BaselineComparison *comparison, const PointRow *row, BaselinePoint *point)
{
	MemoryContext former;

	if (!geonn_baseline_has(&comparison->baseline->schema, row))
		return false;
	former = MemoryContextSwitchTo(comparison->row_context);
	resetStringInfo(&comparison->bytes);
	geonn_baseline_write(comparison->baseline, row, &comparison->bytes, point);
	MemoryContextSwitchTo(former);
	return true;
}

/* most rows need no reset */
static void
end_row(BaselineComparison *comparison)
{
	if (comparison->row_context->mem_allocated > ALLOCSET_DEFAULT_INITSIZE)
		MemoryContextReset(comparison->row_context);
}

static void
look_for_row(void *state, const PointRow *row)
{
	BaselineComparison *comparison = state;
	GeonnBaseline *baseline = comparison->baseline;
	BaselinePoint point;

	if (!begin_row(comparison, row, &point))
		return;
	if (comparison->by_pages)
		geonn_pages_add(baseline->pages, row, &point.fingerprint);
	point.block = geonn_baseline_find_block(baseline, point.fingerprint.key);
	if ((comparison->by_pages || comparison->changed[point.block]) &&
		!take_off(comparison, &point.fingerprint))
		add_change(comparison, &comparison->changes->added, &point);
	end_row(comparison);
}

static void
find_removed(void *state, uint32 block, const char *contents, Size length)
{
	BaselineComparison *comparison = state;
	const char *end = contents + length;
	BaselinePoint point = geonn_baseline_first(block);

	while (geonn_baseline_next(&contents, end, &point))
	{
		geonn_baseline_fingerprint(comparison->baseline, &point);
		if (take_off(comparison, &point.fingerprint))
			add_change(comparison, &comparison->changes->removed, &point);
	}
}

/*
 * List the changed blocks.  Returns how many.
 */
static uint32
list_changed(BaselineComparison *comparison)
{
	uint32		count = 0;

	for (uint32 i = 0; i < comparison->baseline->count; i++)
	{
		if (comparison->changed[i])
			comparison->blocks[count++] = i;
	}
	return count;
}

/* ---- by pages ---- */

/*
 * Mark the blocks of the points left in the hash table.  Returns how many points are left.
 */
static uint64
mark_left(BaselineComparison *comparison)
{
	known_iterator iterator;
	KnownPoint *known;
	uint64		points = 0;

	known_start_iterate(comparison->known, &iterator);
	while ((known = known_iterate(comparison->known, &iterator)) != NULL)
	{
		if (known->count > 0)
			comparison->changed[geonn_baseline_find_block(comparison->baseline, known->entry.key)] = true;
		points += known->count;
	}
	return points;
}

/*
 * Find the changes on the pages that may have changed.  Returns false, without a result, if the source is no
 * longer planned as the same plain tables, if geometries have another SRID than this one, or if the lists are damaged.
 */
static bool
find_by_pages(BaselineComparison *comparison, InvalidPolicy invalid, int32 srid)
{
	GeonnTransform *transform = comparison->source->transform;
	GeonnBaseline *baseline = comparison->baseline;
	int			table_count;
	const TablePages *tables = geonn_pages_to_read(baseline->pages, &table_count);
	uint64		points;

	Assert(geonn_pages_are_few(baseline->pages));
	comparison->by_pages = true;
	comparison->known = known_create(CurrentMemoryContext, 1024, NULL);
	geonn_pages_former(baseline->pages, learn, comparison);
	geonn_transform_restart(transform, srid, true);
	if (tables != NULL &&
		!geonn_read_pages(comparison->source, invalid, tables, table_count, look_for_row, comparison))
		return false;
	if (transform != NULL && (geonn_transform_is_mixed(transform) || geonn_transform_srid(transform) != srid))
		return false;
	geonn_transform_restart(transform, srid, false);
	points = mark_left(comparison);
	geonn_baseline_read_blocks(baseline, comparison->blocks, list_changed(comparison), find_removed,
							   comparison);
	if (comparison->too_many || comparison->changes->removed.count == points)
		return true;
	ereport(WARNING,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("the lists of pages of cache \"%s\" are not right, and are made anew",
					baseline->cache->name)));
	return false;
}

/* ---- by bags ---- */

/*
 * Add the waiting points to the bags of their blocks.  Prefetching pays: these arrays are hardly ever in the
 * processor's cache.
 */
static void
add_waiting(BaselineComparison *comparison)
{
	const GeonnBaseline *baseline = comparison->baseline;
	uint32		block[POINTS_AT_ONCE];

	for (int i = 0; i < comparison->waiting_count; i++)
		geonn_baseline_prefetch(baseline, comparison->waiting[i].key);
	for (int i = 0; i < comparison->waiting_count; i++)
	{
		block[i] = geonn_baseline_find_block(baseline, comparison->waiting[i].key);
		__builtin_prefetch(&comparison->bags[block[i]], 1);
	}
	for (int i = 0; i < comparison->waiting_count; i++)
		geonn_bag_add(&comparison->bags[block[i]], comparison->waiting[i].hash);
	comparison->waiting_count = 0;
}

static void
add_to_bag(void *state, const PointRow *row)
{
	BaselineComparison *comparison = state;
	BaselinePoint point;

	if (!begin_row(comparison, row, &point))
		return;
	geonn_pages_add(comparison->baseline->pages, row, &point.fingerprint);
	Assert(comparison->waiting_count < POINTS_AT_ONCE);
	comparison->waiting[comparison->waiting_count++] = point.fingerprint;
	if (comparison->waiting_count == POINTS_AT_ONCE)
		add_waiting(comparison);
	end_row(comparison);
}

/*
 * Mark the blocks whose bags have changed.  Returns how many points they had.
 */
static uint64
mark_changed(BaselineComparison *comparison)
{
	const GeonnBaseline *baseline = comparison->baseline;
	uint64		rows = 0;

	for (uint32 i = 0; i < baseline->count; i++)
	{
		comparison->changed[i] = !geonn_bag_is(&comparison->bags[i], &baseline->blocks[i].bag);
		if (comparison->changed[i])
			rows += baseline->blocks[i].rows;
	}
	return rows;
}

/*
 * Find the changes of the blocks whose bags have changed, unless they are too many, or a row is a shape, which no baseline
 * can store.
 */
static void
find_by_bags(BaselineComparison *comparison, InvalidPolicy invalid)
{
	GeonnBaseline *baseline = comparison->baseline;
	Size		needed;
	uint32		count;

	comparison->by_pages = false;
	comparison->bags = MemoryContextAllocExtended(CurrentMemoryContext, baseline->count * sizeof(Bag),
												  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	comparison->met_shape = !geonn_read_points(comparison->source, invalid, add_to_bag, comparison);
	comparison->too_many = comparison->met_shape;
	if (comparison->too_many)
		return;
	add_waiting(comparison);
	needed = mark_changed(comparison) * 2 * sizeof(KnownPoint);
	count = list_changed(comparison);
	comparison->too_many = needed > comparison->memory;
	if (count == 0 || comparison->too_many)
		return;
	comparison->memory -= needed;
	comparison->known = known_create(CurrentMemoryContext,
									 (uint32) (needed / (2 * sizeof(KnownPoint))), NULL);
	geonn_baseline_read_blocks(baseline, comparison->blocks, count, learn_block, comparison);
	(void) geonn_read_points(comparison->source, GEONN_INVALID_COUNTED, look_for_row, comparison);
	geonn_baseline_read_blocks(baseline, comparison->blocks, count, find_removed, comparison);
	Assert(mark_left(comparison) == 0);
}

/* ---- either way ---- */

static int
by_block_and_key(const void *first, const void *second)
{
	const BaselinePoint *a = first;
	const BaselinePoint *b = second;

	if (a->block != b->block)
		return a->block < b->block ? -1 : 1;
	return a->fingerprint.key < b->fingerprint.key ? -1 : a->fingerprint.key > b->fingerprint.key;
}

bool
geonn_baseline_compare(GeonnBaseline *baseline, const GeonnJoin *join, int32 srid, Size memory,
					   BaselineChanges *changes)
{
	const PointSource *source = geonn_side_source(join, baseline->side);
	InvalidPolicy invalid = baseline->side == SIDE_OBSERVATIONS ? geonn_observations_policy(join) : join->invalid;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn comparison",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	BaselineComparison comparison = {
		.baseline = baseline,
		.source = source,
		.changes = changes,
		.memory = memory
	};

	*changes = (BaselineChanges) {{.context = former}, {.context = former}};
	comparison.row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_DEFAULT_SIZES);
	initStringInfo(&comparison.bytes);
	comparison.blocks = MemoryContextAllocHuge(context, baseline->count * sizeof(uint32));
	comparison.changed = MemoryContextAllocExtended(context, baseline->count * sizeof(bool),
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	baseline->pages = geonn_pages_look(baseline, source, &join->question, false);
	if (!geonn_pages_are_few(baseline->pages) || !find_by_pages(&comparison, invalid, srid))
	{
		if (comparison.by_pages)
			geonn_pages_give_up(baseline->pages);
		changes->added.count = changes->removed.count = 0;
		geonn_transform_restart(source->transform, 0, false);
		find_by_bags(&comparison, invalid);
	}
	Assert(changes->removed.count <= baseline->rows);
	if (changes->added.count > 0)
		qsort(changes->added.points, changes->added.count, sizeof(BaselinePoint), by_block_and_key);
	if (comparison.met_shape)
	{
		geonn_read_as_shapes(baseline->side == SIDE_OBSERVATIONS ? join->observations : join->references);
		geonn_check_question_of_shapes(join);
	}
	if (comparison.too_many)
		geonn_pages_give_up(baseline->pages);
	geonn_pages_store(baseline->pages);
	baseline->pages = NULL;
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return !comparison.too_many;
}
