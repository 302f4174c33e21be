/*
 * changed_pages.c
 *		Which pages of a side's tables may have changed since its baseline was made or brought up to
 *		date.
 *
 * A side of a cache is often a large table of which few pages change between two refreshes.  Its rows
 * are those of one or more leaves: the table itself, or its partitions, those of partitions, or
 * its children and its own rows; or the tables of a view with UNION ALL.  For each page of a leaf the
 * last run keeps a list of the points that it had there, and for each leaf a state, by which the next one
 * finds the pages that may have changed (cache/leaf.c).  A list is a row of geonn_cache_page, with the
 * leaf's OID in the first half of its number and the page in the second; an empty list may have no row.
 * Another row has the states of all leaves.
 *
 * A refresh reads only these pages, and compares their points with those on their lists: a point that
 * is only on a list was removed, one that is on none was added, and a row that an UPDATE has put on
 * another page with the same bytes is neither, also if that page is another leaf's.
 *
 * The lists are of the leaves that the last run found.  Of a leaf that has come since (CREATE TABLE,
 * ATTACH PARTITION, INHERIT) all pages may have changed, and it has no lists.  Of one that is none any
 * more (DROP TABLE, DETACH PARTITION, NO INHERIT) all pages that it had may have changed, and it has no
 * pages.  A leaf with another file (TRUNCATE, VACUUM FULL, CLUSTER) is both.  Leaves are known by
 * their OIDs; that an OID is of another table now shows in its state's subject.
 *
 * All of this holds for the baseline with the same seed: new baselines have new lists.  And while a
 * refresh works, the source has the same leaves (cache/refresh.c).
 *
 * Lists pay where few pages change.  If more have, the tables are read whole, and only the lists of
 * these pages are written.  If most pages of the same files have, all lists are deleted, and made anew
 * by the next run that reads the tables whole.
 *
 * A source that has other rows than those of plain tables has no lists: one with a foreign table among its
 * partitions, with a policy, or with a condition in a view.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"

#include "cache/changed_pages.h"
#include "cache/leaf.h"
#include "points/reader.h"

/* pages are few if they are at most this share of all pages, or at most this number */
#define FEW_SHARE		0.125
#define FEW_ALWAYS		8

/* the greatest number of bytes that comparing a point of few pages takes; all fit into maintenance_work_mem */
#define BYTES_A_POINT	128

/* if a greater share of the pages may have changed, all lists are made anew instead of replacing some */
#define UPDATED_SHARE	0.5

/* the row of a side's state: the baseline's seed, and the states of the leaves */
#define STATE_NUMBER	0
#define SEED_BYTES	sizeof(((GeonnBaseline *) NULL)->seed)

struct ChangedPages
{
	const GeonnBaseline *baseline;
	MemoryContext context;
	Leaf	   *leaves;			/* ordered by OID: the leaves of now and of the last run */
	int			count;
	bool		known;			/* the last run has stored lists */
	bool		few;			/* only the pages that may have changed are read */

	/* the new lists */
	bool		updates;		/* only pages that may have changed get new lists; else all get them */
	bool		given_up;
	Leaf	   *leaf;			/* the leaf of the last row; NULL: no row has come */
	BlockNumber page;			/* the page of the last row */
	bool		gets_list;		/* that page gets a new list */
	StringInfoData list;		/* the entries of the list, so far */
};

static bool
is_few(uint64 count, uint64 pages)
{
	return count <= FEW_ALWAYS || count <= FEW_SHARE * pages;
}

/* ---- leaves ---- */

static int
by_table(const void *first, const void *second)
{
	Oid			a = ((const Leaf *) first)->table;
	Oid			b = ((const Leaf *) second)->table;

	return a < b ? -1 : a > b;
}

static Leaf *
find_leaf(const ChangedPages *pages, Oid table)
{
	Leaf		key = {.table = table};

	return bsearch(&key, pages->leaves, pages->count, sizeof(Leaf), by_table);
}

/*
 * Make leaves of the source's tables.  Returns false if the source has other rows than tables', or reads one of
 * them twice.
 */
static bool
take_tables(ChangedPages *pages, const List *tables)
{
	ListCell   *cell;

	pages->leaves = MemoryContextAllocExtended(CurrentMemoryContext,
											   Max(list_length(tables), 1) * sizeof(Leaf),
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	foreach(cell, tables)
	{
		const PlainTable *table = lfirst(cell);
		Leaf	   *leaf = &pages->leaves[pages->count++];

		leaf->table = table->table;
		leaf->attributes = table->attributes;
	}
	qsort(pages->leaves, pages->count, sizeof(Leaf), by_table);
	for (int i = 1; i < pages->count; i++)
	{
		if (pages->leaves[i].table == pages->leaves[i - 1].table)
			return false;
	}
	return pages->count > 0;
}

/*
 * Read the next one of the stored states.  Returns false where they are damaged.
 */
static bool
read_state(Leaf *leaf, const char **next, const char *end)
{
	Size		left = end - *next;
	Size		bytes;

	if (left < sizeof(LeafState))
		return false;
	memcpy(&leaf->former, *next, sizeof(LeafState));
	bytes = leaf->former.unsettled * sizeof(BlockNumber);
	if (left - sizeof(LeafState) < bytes)
		return false;
	leaf->table = leaf->former.table;
	leaf->former_unsettled = memcpy(palloc(Max(bytes, 1)), *next + sizeof(LeafState), bytes);
	leaf->was_leaf = true;
	*next += sizeof(LeafState) + bytes;
	return true;
}

/*
 * Add a leaf of the last run to the first ones, those that the source has now.
 */
static void
add_former(ChangedPages *pages, int present, const Leaf *former)
{
	Leaf	   *leaf = bsearch(former, pages->leaves, present, sizeof(Leaf), by_table);
	const AttrNumber *attributes = leaf == NULL ? NULL : leaf->attributes;

	if (leaf == NULL)
		leaf = &pages->leaves[pages->count++];
	*leaf = *former;
	leaf->attributes = attributes;
}

/*
 * Read what the last run has stored, if it is of this baseline.
 */
static void
load_former(ChangedPages *pages)
{
	const bytea *stored = geonn_block_table_find(pages->baseline->lists, STATE_NUMBER);
	const char *next;
	const char *end;
	int			present = pages->count;

	if (stored == NULL || VARSIZE_ANY_EXHDR(stored) < SEED_BYTES ||
		memcmp(VARDATA_ANY(stored), pages->baseline->seed, SEED_BYTES) != 0)
		return;
	next = VARDATA_ANY(stored) + SEED_BYTES;
	end = VARDATA_ANY(stored) + VARSIZE_ANY_EXHDR(stored);
	pages->leaves = repalloc_huge(pages->leaves,
								  (present + (end - next) / sizeof(LeafState) + 1) * sizeof(Leaf));
	pages->known = true;
	while (pages->known && next < end)
	{
		Leaf		former = {0};

		pages->known = read_state(&former, &next, end);
		if (pages->known)
			add_former(pages, present, &former);
	}
	qsort(pages->leaves, pages->count, sizeof(Leaf), by_table);
}

/* ---- the look ---- */

/*
 * Decide what is read, and which lists are written.  Returns false if none would pay.
 */
static bool
decide(ChangedPages *pages, const PointSource *source, bool reads_all)
{
	uint64		now = 0;
	uint64		all = 0;
	uint64		unsettled = 0;
	uint64		changed = 0;
	uint64		changed_same = 0;	/* how many pages may have changed in leaves that are the same */
	double		points;

	for (int i = 0; i < pages->count; i++)
	{
		const Leaf *leaf = &pages->leaves[i];
		uint32		count = geonn_leaf_changed_count(leaf);

		now += leaf->now.pages;
		all += Max(leaf->now.pages, leaf->former.pages);
		unsettled += leaf->unsettled.count;
		changed += count;
		changed_same += leaf->is_same ? count : 0;
	}
	if (!is_few(unsettled, now))
		return false;
	points = (double) changed / Max(all, 1) * (double) pages->baseline->rows;
	pages->few = pages->known && !reads_all && is_few(changed, all) &&
		points * BYTES_A_POINT <= maintenance_work_mem * 1024.0;
	pages->updates = pages->few || (pages->known && changed <= UPDATED_SHARE * all);
	if (pages->few)
		ereport(DEBUG1,
				(errmsg_internal("%s is read where it may have changed: on " UINT64_FORMAT " of "
								 UINT64_FORMAT " pages", source->title, changed, now)));
	return pages->updates || is_few(changed_same, all);
}

/*
 * Look at all leaves.  Returns whether lists are to be written.
 */
static bool
look_at_leaves(ChangedPages *pages, const PointSource *source, const GeonnQuestion *question,
			   bool reads_all)
{
	uint64		position = GetXLogInsertRecPtr();

	for (int i = 0; i < pages->count; i++)
	{
		Leaf	   *leaf = &pages->leaves[i];

		if (leaf->attributes != NULL &&
			!geonn_leaf_look(leaf, source, question, pages->baseline->seed, position))
			return false;
	}
	return decide(pages, source, reads_all);
}

ChangedPages *
geonn_pages_look(GeonnBaseline *baseline, const PointSource *source, const GeonnQuestion *question,
				 bool reads_all)
{
	ChangedPages *pages = palloc0(sizeof(ChangedPages));
	bool		writes = false;

	pages->baseline = baseline;
	pages->context = CurrentMemoryContext;
	initStringInfo(&pages->list);
	geonn_baseline_open(baseline);
	if (take_tables(pages, geonn_check_tables(source)))
	{
		load_former(pages);
		writes = look_at_leaves(pages, source, question, reads_all);
	}
	if (!pages->updates)
		geonn_block_table_delete_all(baseline->lists);
	for (int i = 0; i < pages->count && pages->updates; i++)
	{
		Leaf	   *leaf = &pages->leaves[i];

		leaf->is_listed = palloc_extended(Max(geonn_leaf_changed_count(leaf), 1) * sizeof(bool),
										  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	}
	return writes ? pages : NULL;
}

/* ---- few pages ---- */

bool
geonn_pages_are_few(const ChangedPages *pages)
{
	return pages != NULL && pages->few;
}

/*
 * The ranges of those pages of a leaf that may have changed and that it has.
 */
static TablePages
pages_of_leaf(const Leaf *leaf)
{
	uint32		changed = geonn_leaf_changed_count(leaf);
	PageRange  *ranges = palloc_extended(Max(leaf->is_same ? changed : 1, 1) * sizeof(PageRange),
										 MCXT_ALLOC_HUGE);
	int			count = 0;

	for (uint32 i = 0; i < changed; i++)
	{
		BlockNumber page = geonn_leaf_changed_page(leaf, i);

		if (page >= leaf->now.pages)
			break;
		if (count > 0 && ranges[count - 1].last + 1 == page)
			ranges[count - 1].last = page;
		else
			ranges[count++] = (PageRange) {page, page};
	}
	return (TablePages) {leaf->table, ranges, count};
}

const TablePages *
geonn_pages_to_read(const ChangedPages *pages, int *count)
{
	TablePages *tables = palloc(pages->count * sizeof(TablePages));
	bool		any = false;

	*count = 0;
	for (int i = 0; i < pages->count; i++)
	{
		if (pages->leaves[i].attributes == NULL)
			continue;
		tables[*count] = pages_of_leaf(&pages->leaves[i]);
		any |= tables[(*count)++].count > 0;
	}
	return any ? tables : NULL;
}

/*
 * The number of the row that has the list of this page.
 */
static int64
number_of(const Leaf *leaf, BlockNumber page)
{
	return (int64) ((uint64) leaf->table << 32 | page);
}

static void
give_list(const ChangedPages *pages, int64 number, PageEntryConsumer consume, void *state)
{
	const bytea *list = geonn_block_table_find(pages->baseline->lists, number);
	Size		length = list == NULL ? 0 : VARSIZE_ANY_EXHDR(list);

	if (length % sizeof(PageEntry) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("row " INT64_FORMAT " of table geonn_cache_page is damaged", number),
				 errhint("A superuser can run TRUNCATE geonn_cache_page: the next refreshes fill it again.")));
	for (Size offset = 0; offset < length; offset += sizeof(PageEntry))
	{
		PageEntry	entry;

		memcpy(&entry, VARDATA_ANY(list) + offset, sizeof(entry));
		consume(state, &entry);
	}
}

void
geonn_pages_former(ChangedPages *pages, PageEntryConsumer consume, void *state)
{
	for (int i = 0; i < pages->count; i++)
	{
		const Leaf *leaf = &pages->leaves[i];
		uint32		changed = leaf->was_leaf ? geonn_leaf_changed_count(leaf) : 0;

		for (uint32 number = 0; number < changed; number++)
			give_list(pages, number_of(leaf, geonn_leaf_changed_page(leaf, number)), consume, state);
	}
}

/* ---- the rows that are read ---- */

void
geonn_pages_give_up(ChangedPages *pages)
{
	if (pages != NULL)
		pages->given_up = true;
}

static int
by_number(const void *first, const void *second)
{
	BlockNumber a = *(const BlockNumber *) first;
	BlockNumber b = *(const BlockNumber *) second;

	return a < b ? -1 : a > b;
}

/*
 * Store the list of the last row's page, which has all of its rows by now.
 */
static void
end_page(ChangedPages *pages)
{
	BlockTable *table = pages->baseline->lists;
	const StringInfo list = &pages->list;
	const bytea *former = NULL;
	int64		number;

	if (!pages->gets_list)
		return;
	number = number_of(pages->leaf, pages->page);
	if (pages->updates)
		former = geonn_block_table_find(table, number);
	if (former == NULL)
		geonn_block_table_insert(table, number, list->data, list->len);
	else if ((int) VARSIZE_ANY_EXHDR(former) != list->len ||
			 memcmp(VARDATA_ANY(former), list->data, list->len) != 0)
		geonn_block_table_update(table, number, list->data, list->len);
	resetStringInfo(list);
	pages->gets_list = false;
}

/*
 * The index of a page among those of the leaf that may have changed; their count: it is none of them.
 */
static uint32
find_changed(const Leaf *leaf, BlockNumber page)
{
	uint32		count = geonn_leaf_changed_count(leaf);
	const BlockNumber *found;

	if (!leaf->is_same)
		return Min(page, count);
	found = bsearch(&page, leaf->changed.pages, count, sizeof(BlockNumber), by_number);
	return found == NULL ? count : (uint32) (found - leaf->changed.pages);
}

/*
 * Go on to another page.
 */
static void
begin_page(ChangedPages *pages, PointPage page)
{
	Leaf	   *leaf = find_leaf(pages, page.table);
	uint32		number;

	if (leaf == NULL || leaf->attributes == NULL)
	{
		pages->given_up = true;
		return;
	}
	pages->leaf = leaf;
	pages->page = page.number;
	pages->gets_list = true;
	if (!pages->updates)
		return;
	number = find_changed(leaf, page.number);
	pages->gets_list = number < geonn_leaf_changed_count(leaf);
	if (pages->gets_list)
		leaf->is_listed[number] = true;
}

void
geonn_pages_add(ChangedPages *pages, const PointRow *row, const Fingerprint *fingerprint)
{
	PageEntry	entry = {fingerprint->key, fingerprint->hash[1]};

	if (pages == NULL || pages->given_up)
		return;
	if (pages->leaf == NULL || row->page.table != pages->leaf->table || row->page.number != pages->page)
	{
		MemoryContext former = MemoryContextSwitchTo(pages->context);

		end_page(pages);
		begin_page(pages, row->page);
		MemoryContextSwitchTo(former);
	}
	if (pages->gets_list)
		appendBinaryStringInfo(&pages->list, (const char *) &entry, sizeof(entry));
}

/* ---- after the rows ---- */

/*
 * Delete the lists of pages that have no rows any more.
 */
static void
delete_empty(ChangedPages *pages)
{
	for (int i = 0; i < pages->count; i++)
	{
		const Leaf *leaf = &pages->leaves[i];
		uint32		changed = geonn_leaf_changed_count(leaf);

		for (uint32 number = 0; number < changed; number++)
		{
			int64		row = number_of(leaf, geonn_leaf_changed_page(leaf, number));

			if (!leaf->is_listed[number])
				geonn_block_table_delete(pages->baseline->lists, row, row);
		}
	}
}

/*
 * Store the states of the leaves, if one of them is not what it was.
 */
static void
store_states(ChangedPages *pages)
{
	StringInfoData states;
	bool		is_other = !pages->updates;

	initStringInfo(&states);
	appendBinaryStringInfo(&states, (const char *) pages->baseline->seed, SEED_BYTES);
	for (int i = 0; i < pages->count; i++)
	{
		Leaf	   *leaf = &pages->leaves[i];

		is_other |= leaf->attributes == NULL || leaf->looked;
		if (leaf->attributes == NULL)
			continue;
		leaf->now.unsettled = leaf->unsettled.count;
		appendBinaryStringInfo(&states, (const char *) &leaf->now, sizeof(LeafState));
		if (leaf->unsettled.count > 0)
			appendBinaryStringInfo(&states, (const char *) leaf->unsettled.pages,
								   (int) (leaf->unsettled.count * sizeof(BlockNumber)));
	}
	if (is_other && pages->updates)
		geonn_block_table_update(pages->baseline->lists, STATE_NUMBER, states.data, states.len);
	else if (is_other)
		geonn_block_table_insert(pages->baseline->lists, STATE_NUMBER, states.data, states.len);
	pfree(states.data);
}

void
geonn_pages_store(ChangedPages *pages)
{
	if (pages == NULL)
		return;
	if (pages->given_up)
	{
		geonn_block_table_delete_all(pages->baseline->lists);
		return;
	}
	end_page(pages);
	if (pages->updates)
		delete_empty(pages);
	store_states(pages);
}
