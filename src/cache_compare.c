/*
 * cache_compare.c
 *		What has changed of a source since its copy was made.
 *
 * The source is read once, for the sums of all parts.  If some came out otherwise, the
 * hashes of these parts' rows are put into a table, and the source is read again: a row
 * of such a part that is in the table is taken off it, and one that is not has come.  What is
 * left in the table in the end has gone.
 *
 * Where the source is only those rows that may have changed, they are kept, by their ids, and
 * the whole copy is read instead.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "cache_copy.h"
#include "common/siphash.h"

typedef struct RowHash
{
	uint64		hash[2];
} RowHash;

typedef struct KnownRow
{
	RowHash		hash;
	uint32		count;			/* rows that have not been found again */
	uint64		added;			/* of an id: which of the added ones */
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

/* points that are added to sums at a time */
#define PLACES_AT_ONCE	64

typedef struct Sum
{
	uint64		hash[2];
	uint64		rows;
} Sum;

typedef struct Comparison
{
	GeonnCopy  *copy;
	MemoryContext context;		/* of what is found */
	MemoryContext row_context;
	StringInfoData bytes;
	Sum		   *sums;			/* [copy->count] */
	CopyPlace	waiting[PLACES_AT_ONCE];	/* that are to be added to them */
	int			waiting_count;
	bool	   *changed;		/* [copy->count] */
	known_hash *known;			/* rows of changed parts; or ids of rows that were read */
	CopyRow		row;			/* for what is not looked at */
	CopyChanges *changes;
	uint64		added_room;
	uint64		gone_room;
	Size		memory;			/* that is left */
	bool		too_many;
} Comparison;

/* ---- rows that are read ---- */

/*
 * Write a row's bytes, with memory that lives until end_row.
 */
static void
begin_row(Comparison *comparison, const PointRow *row, CopyPlace *place)
{
	MemoryContext former = MemoryContextSwitchTo(comparison->row_context);

	resetStringInfo(&comparison->bytes);
	geonn_copy_write(comparison->copy, row, &comparison->bytes, place);
	MemoryContextSwitchTo(former);
}

/* few rows have used any */
static void
end_row(Comparison *comparison)
{
	if (comparison->row_context->mem_allocated > ALLOCSET_DEFAULT_INITSIZE)
		MemoryContextReset(comparison->row_context);
}

/* ---- sums ---- */

/*
 * Add the points that wait to the sums of their parts.  Where each of the three arrays
 * is looked at next is known beforehand, and none of them is likely to be in a cache.
 */
static void
add_waiting(Comparison *comparison)
{
	const GeonnCopy *copy = comparison->copy;
	uint32		part[PLACES_AT_ONCE];

	for (int i = 0; i < comparison->waiting_count; i++)
		geonn_copy_prefetch(copy, comparison->waiting[i].key);
	for (int i = 0; i < comparison->waiting_count; i++)
	{
		part[i] = geonn_copy_find(copy, comparison->waiting[i].key);
		__builtin_prefetch(&comparison->sums[part[i]], 1);
	}
	for (int i = 0; i < comparison->waiting_count; i++)
	{
		Sum		   *sum = &comparison->sums[part[i]];

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

	if (!geonn_copy_has(&comparison->copy->shape, row))
		return;
	begin_row(comparison, row, &comparison->waiting[comparison->waiting_count++]);
	if (comparison->waiting_count == PLACES_AT_ONCE)
		add_waiting(comparison);
	end_row(comparison);
}

/*
 * The parts whose sums are not what they were; returns how many.
 */
static uint32
find_changed(Comparison *comparison, uint32 *parts)
{
	const GeonnCopy *copy = comparison->copy;
	uint32		count = 0;

	for (uint32 i = 0; i < copy->count; i++)
	{
		const Sum  *sum = &comparison->sums[i];

		if (sum->rows == copy->parts[i].rows && sum->hash[0] == copy->parts[i].hash[0] &&
			sum->hash[1] == copy->parts[i].hash[1])
			continue;
		comparison->changed[i] = true;
		parts[count++] = i;
	}
	return count;
}

/* ---- rows ---- */

/*
 * Go through a part's rows.
 */
static void
for_each_row(Comparison *comparison, uint32 part, const char *contents, Size length,
			 void (*visit) (Comparison *comparison, const CopyChange *row))
{
	const GeonnCopy *copy = comparison->copy;
	const char *end = contents + length;
	MemoryContext former = MemoryContextSwitchTo(comparison->row_context);
	CopyChange	row = {.part = part};
	float		bound;

	for (; geonn_copy_next(&copy->shape, &contents, end, &comparison->row, &bound, &row.bytes,
						   &row.length); row.row++)
	{
		row.place = geonn_copy_place(copy, row.bytes, row.length);
		visit(comparison, &row);
		MemoryContextReset(comparison->row_context);
	}
	MemoryContextSwitchTo(former);
}

static void
learn_row(Comparison *comparison, const CopyChange *row)
{
	RowHash		hash = {{row->place.hash[0], row->place.hash[1]}};
	bool		found;
	KnownRow   *known = known_insert(comparison->known, hash, &found);

	if (!found)
		known->count = 0;
	known->count++;
}

static void
learn_part(void *state, uint32 part, const char *contents, Size length)
{
	for_each_row(state, part, contents, length, learn_row);
}

/*
 * Take a row off the table; false where it is not there.
 */
static bool
take_off(Comparison *comparison, const CopyPlace *place)
{
	RowHash		hash = {{place->hash[0], place->hash[1]}};
	KnownRow   *known = known_lookup(comparison->known, hash);

	if (known == NULL || known->count == 0)
		return false;
	known->count--;
	return true;
}

/*
 * Add to the changes, with a copy of its bytes.
 */
static void
add_change(Comparison *comparison, CopyChange **changes, uint64 *count, uint64 *room,
		   const CopyChange *change)
{
	Size		needed = sizeof(CopyChange) + change->length;
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
			MemoryContextAllocHuge(comparison->context, *room * sizeof(CopyChange)) :
			repalloc_huge(*changes, *room * sizeof(CopyChange));
	}
	bytes = MemoryContextAlloc(comparison->context, change->length);
	memcpy(bytes, change->bytes, change->length);
	(*changes)[*count] = *change;
	(*changes)[(*count)++].bytes = bytes;
}

/*
 * Add the row at hand, whose part change has, to those that have come.
 */
static void
add_row(Comparison *comparison, CopyChange *change)
{
	CopyChanges *changes = comparison->changes;

	change->bytes = comparison->bytes.data;
	change->length = comparison->bytes.len;
	add_change(comparison, &changes->added, &changes->added_count, &comparison->added_room, change);
}

static void
look_for_row(void *state, const PointRow *row)
{
	Comparison *comparison = state;
	CopyChange	change = {0};

	if (!geonn_copy_has(&comparison->copy->shape, row))
		return;
	begin_row(comparison, row, &change.place);
	change.part = geonn_copy_find(comparison->copy, change.place.key);
	if (comparison->changed[change.part] && !take_off(comparison, &change.place))
		add_row(comparison, &change);
	end_row(comparison);
}

static void
see_whether_gone(Comparison *comparison, const CopyChange *row)
{
	if (take_off(comparison, &row->place))
		add_change(comparison, &comparison->changes->gone, &comparison->changes->gone_count,
				   &comparison->gone_room, row);
}

static void
find_gone(void *state, uint32 part, const char *contents, Size length)
{
	for_each_row(state, part, contents, length, see_whether_gone);
}

static int
by_place(const void *first, const void *second)
{
	const CopyChange *a = first;
	const CopyChange *b = second;

	if (a->part != b->part)
		return a->part < b->part ? -1 : 1;
	return a->place.key < b->place.key ? -1 : a->place.key > b->place.key;
}

/* ---- the comparison ---- */

/*
 * Find the changes of these parts; false where there are too many.
 */
static bool
find_changes(Comparison *comparison, const PointSource *source, const uint32 *parts, uint32 count)
{
	GeonnCopy  *copy = comparison->copy;
	CopyChanges *changes = comparison->changes;
	uint64		rows = 0;

	for (uint32 i = 0; i < count; i++)
		rows += copy->parts[parts[i]].rows;
	if (rows * 2 * sizeof(KnownRow) > comparison->memory)
		return false;
	comparison->memory -= rows * 2 * sizeof(KnownRow);
	comparison->known = known_create(CurrentMemoryContext, (uint32) rows, NULL);
	geonn_copy_read_parts(copy, parts, count, GetActiveSnapshot(), learn_part, comparison);
	geonn_read_points(source, GEONN_INVALID_COUNTED, look_for_row, comparison);
	geonn_copy_read_parts(copy, parts, count, GetActiveSnapshot(), find_gone, comparison);
	if (comparison->too_many)
		return false;
	if (changes->added_count > 0)
		qsort(changes->added, changes->added_count, sizeof(CopyChange), by_place);
	return true;
}

/* ---- some rows ---- */

static RowHash
hash_of_id(const Comparison *comparison, const char *bytes)
{
	const GeonnCopy *copy = comparison->copy;
	Size		length;
	const char *id = geonn_copy_id(&copy->shape, bytes, &length);
	RowHash		hash;

	geonn_siphash(copy->seed, id, length, hash.hash);
	return hash;
}

/* no row was added for an id */
#define NOT_ADDED PG_UINT64_MAX

/*
 * A row that may have changed: take it for one that did, until the copy shows that it did
 * not.
 */
static void
take_some(void *state, const PointRow *row)
{
	Comparison *comparison = state;
	const GeonnCopy *copy = comparison->copy;
	bool		has = geonn_copy_has(&copy->shape, row);
	PointRow	written = *row;
	CopyChange	change = {0};
	KnownRow   *known;
	bool		found;

	if (row->id_is_null && !has)
		return;
	if (!has)
		written.status = POINT_VALID;	/* its id is all that counts */
	begin_row(comparison, &written, &change.place);
	known = known_insert(comparison->known, hash_of_id(comparison, comparison->bytes.data), &found);
	known->count = 1;
	known->added = NOT_ADDED;
	if (has)
	{
		known->added = comparison->changes->added_count;
		change.part = geonn_copy_find(copy, change.place.key);
		add_row(comparison, &change);
	}
	end_row(comparison);
}

/*
 * A row of the copy: it has gone if its id was read, and is not as it was.
 */
static void
look_for_id(Comparison *comparison, const CopyChange *row)
{
	CopyChanges *changes = comparison->changes;
	KnownRow   *known = known_lookup(comparison->known, hash_of_id(comparison, row->bytes));
	CopyChange *added;

	if (known == NULL)
		return;
	added = known->added == NOT_ADDED ? NULL : &changes->added[known->added];
	if (added != NULL && added->place.hash[0] == row->place.hash[0] &&
		added->place.hash[1] == row->place.hash[1])
		added->bytes = NULL;
	else
		add_change(comparison, &changes->gone, &changes->gone_count, &comparison->gone_room, row);
}

static void
find_ids(void *state, uint32 part, const char *contents, Size length)
{
	for_each_row(state, part, contents, length, look_for_id);
}

static bool
find_some(Comparison *comparison, const PointSource *source, InvalidPolicy invalid, uint32 *parts)
{
	CopyChanges *changes = comparison->changes;
	uint64		count = 0;

	comparison->known = known_create(CurrentMemoryContext, 1024, NULL);
	geonn_read_points(source, invalid, take_some, comparison);
	if (comparison->too_many)
		return false;
	for (uint32 i = 0; i < comparison->copy->count; i++)
		parts[i] = i;
	if (comparison->known->members > 0)
		geonn_copy_read_parts(comparison->copy, parts, comparison->copy->count,
							  GetActiveSnapshot(), find_ids, comparison);
	for (uint64 i = 0; i < changes->added_count; i++)
	{
		if (changes->added[i].bytes != NULL)
			changes->added[count++] = changes->added[i];
	}
	changes->added_count = count;
	if (count > 0)
		qsort(changes->added, count, sizeof(CopyChange), by_place);
	return !comparison->too_many;
}

/* ---- both ---- */

static bool
find(GeonnCopy *copy, const PointSource *source, InvalidPolicy invalid, bool some,
	 Size memory, CopyChanges *changes)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn comparison",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	Comparison	comparison = {
		.copy = copy,
		.context = former,
		.changes = changes,
		.memory = memory
	};
	uint32	   *parts = MemoryContextAllocHuge(context, copy->count * sizeof(uint32));
	uint32		count;
	bool		found;

	*changes = (CopyChanges) {0};
	comparison.row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_DEFAULT_SIZES);
	initStringInfo(&comparison.bytes);
	comparison.row = geonn_copy_row(&copy->shape);
	comparison.sums = MemoryContextAllocExtended(context, copy->count * sizeof(Sum),
												 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	comparison.changed = MemoryContextAllocExtended(context, copy->count * sizeof(bool),
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	if (some)
		found = find_some(&comparison, source, invalid, parts);
	else
	{
		geonn_read_points(source, invalid, add_to_sum, &comparison);
		add_waiting(&comparison);
		count = find_changed(&comparison, parts);
		found = count == 0 || find_changes(&comparison, source, parts, count);
	}
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return found;
}

bool
geonn_copy_compare(GeonnCopy *copy, const PointSource *source, InvalidPolicy invalid,
				   Size memory, CopyChanges *changes)
{
	return find(copy, source, invalid, false, memory, changes);
}

bool
geonn_copy_compare_some(GeonnCopy *copy, const PointSource *source, InvalidPolicy invalid,
						Size memory, CopyChanges *changes)
{
	return find(copy, source, invalid, true, memory, changes);
}
