/*
 * comparison.c
 *		What all ways to compare a baseline with its source have in common.
 *
 * Rows that the baseline has, or had on some pages, are put into a hash table.  A row of the source is
 * taken off the table if it is there; otherwise it was added.  Changes are copied as long as memory
 * is left for them; after that the comparison goes on, and says that they are too many.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "cache/comparison.h"

/* ---- rows ---- */

void
geonn_comparison_begin_row(BaselineComparison *comparison, const PointRow *row, Fingerprint *fingerprint)
{
	MemoryContext former = MemoryContextSwitchTo(comparison->row_context);

	resetStringInfo(&comparison->bytes);
	geonn_baseline_write(comparison->baseline, row, &comparison->bytes, fingerprint);
	MemoryContextSwitchTo(former);
}

/* few rows need memory of their own */
void
geonn_comparison_end_row(BaselineComparison *comparison)
{
	if (comparison->row_context->mem_allocated > ALLOCSET_DEFAULT_INITSIZE)
		MemoryContextReset(comparison->row_context);
}

void
geonn_comparison_visit(BaselineComparison *comparison, uint32 block, const char *contents, Size length,
					   BaselineVisitor visit)
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

/* ---- the hash table ---- */

void
geonn_comparison_learn(BaselineComparison *comparison, RowHash hash)
{
	bool		found;
	KnownRow   *known = known_insert(comparison->known, hash, &found);

	if (!found)
		known->count = 0;
	known->count++;
}

bool
geonn_comparison_take_off(BaselineComparison *comparison, RowHash hash)
{
	KnownRow   *known = known_lookup(comparison->known, hash);

	if (known == NULL || known->count == 0)
		return false;
	known->count--;
	return true;
}

/* ---- changes ---- */

/*
 * Add a change, with a copy of its bytes.
 */
static void
add_change(BaselineComparison *comparison, BaselineChange **changes, uint64 *count, uint64 *room,
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

void
geonn_comparison_add(BaselineComparison *comparison, uint32 block, const Fingerprint *fingerprint,
					 const char *bytes, Size length)
{
	BaselineChanges *changes = comparison->changes;
	BaselineChange change = {.block = block,.fingerprint = *fingerprint,.bytes = bytes,.length = length};

	add_change(comparison, &changes->added, &changes->added_count, &comparison->added_room, &change);
}

void
geonn_comparison_remove(BaselineComparison *comparison, const BaselineChange *row)
{
	BaselineChanges *changes = comparison->changes;

	add_change(comparison, &changes->removed, &changes->removed_count, &comparison->removed_room, row);
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

void
geonn_comparison_sort(BaselineComparison *comparison)
{
	BaselineChanges *changes = comparison->changes;

	if (changes->added_count > 0)
		qsort(changes->added, changes->added_count, sizeof(BaselineChange), by_key_of_block);
}
