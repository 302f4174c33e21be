/*
 * changed_pages.c
 *		Which pages of a side's tables may have changed since its baseline was made or brought up to
 *		date.
 *
 * A side of a cache is often a large table of which few pages change between two refreshes.  Its rows
 * are those of one or more leaves: the table itself, or its partitions, those of partitions, or
 * its children and its own rows; or the tables of a view with UNION ALL.  For each page of a leaf the
 * last run keeps a list of the points that it had there (cache/page_lists.c), and for each leaf a
 * state, by which the next one finds the pages that may have changed (cache/leaf.c).
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

/* the state of a side, as stored: the baseline's seed, and the OIDs of its leaves, in ascending order */
#define SEED_BYTES	sizeof(((GeonnBaseline *) NULL)->seed)

struct ChangedPages
{
	const GeonnBaseline *baseline;
	MemoryContext context;
	Snapshot	snapshot;
	Leaf	   *leaves;			/* ordered by OID: the leaves of now and of the last run */
	int			count;
	bool		known;			/* the last run has stored lists */
	bool		few;			/* only the pages that may have changed are read */

	/* the new lists */
	bool		updates;		/* only pages that may have changed get new lists; else all get them */
	bool		given_up;
	PageLists  *lists;			/* NULL: not open yet */
	Leaf	   *leaf;			/* the leaf of the last row; NULL: no row has come */
	BlockNumber page;			/* the page of the last row */
	bool		is_changed;		/* that page may have changed */
	PagePoint  *points;			/* points of pages that may have changed */
	uint64		point_count;
	uint64		point_room;
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
 * Add those of the last run's leaves that the source does not have any more.
 */
static void
add_former_leaves(ChangedPages *pages, const Oid *tables, int count)
{
	int			present = pages->count;

	pages->leaves = repalloc_huge(pages->leaves, (present + count) * sizeof(Leaf));
	for (int i = 0; i < count; i++)
	{
		Leaf		key = {.table = tables[i]};

		if (bsearch(&key, pages->leaves, present, sizeof(Leaf), by_table) == NULL)
			pages->leaves[pages->count++] = key;
	}
	qsort(pages->leaves, pages->count, sizeof(Leaf), by_table);
}

/*
 * Read the states of the last run's leaves.
 */
static void
load_states(ChangedPages *pages, PageLists *lists, const Oid *tables, int count)
{
	for (int i = 0; i < count; i++)
	{
		const bytea *stored;

		geonn_page_lists_choose(lists, tables[i], 1);
		stored = geonn_page_lists_state(lists);
		if (stored == NULL || !geonn_leaf_set_former(find_leaf(pages, tables[i]), VARDATA_ANY(stored),
													 VARSIZE_ANY_EXHDR(stored)))
			pages->known = false;
	}
}

/*
 * Read what the last run has stored, if it is of this baseline.
 */
static void
load_former(ChangedPages *pages)
{
	const GeonnBaseline *baseline = pages->baseline;
	PageLists  *lists = geonn_page_lists_open(baseline->cache, baseline->side, AccessShareLock,
											  pages->snapshot);
	const bytea *stored;
	Size		length;

	geonn_page_lists_choose(lists, InvalidOid, 1);
	stored = geonn_page_lists_state(lists);
	length = stored == NULL ? 0 : VARSIZE_ANY_EXHDR(stored);
	if (length >= SEED_BYTES && memcmp(VARDATA_ANY(stored), baseline->seed, SEED_BYTES) == 0)
	{
		int			count = (int) ((length - SEED_BYTES) / sizeof(Oid));
		Oid		   *tables = palloc(Max(count, 1) * sizeof(Oid));

		memcpy(tables, VARDATA_ANY(stored) + SEED_BYTES, count * sizeof(Oid));
		pages->known = true;
		add_former_leaves(pages, tables, count);
		load_states(pages, lists, tables, count);
	}
	geonn_page_lists_close(lists);
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
	double		memory = maintenance_work_mem * 1024.0;

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
	pages->few = pages->known && !reads_all && is_few(changed, all) && points * BYTES_A_POINT <= memory;
	pages->updates = pages->few ||
		(pages->known && changed <= UPDATED_SHARE * all && points * sizeof(PagePoint) <= memory);
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

		if (leaf->attributes != NULL && !geonn_leaf_look(leaf, source, question, position))
			return false;
	}
	return decide(pages, source, reads_all);
}

ChangedPages *
geonn_pages_look(const GeonnBaseline *baseline, const PointSource *source,
				 const GeonnQuestion *question, bool reads_all)
{
	ChangedPages *pages = palloc0(sizeof(ChangedPages));
	bool		writes = false;

	pages->baseline = baseline;
	pages->context = CurrentMemoryContext;
	pages->snapshot = GetActiveSnapshot();
	if (take_tables(pages, geonn_check_tables(source)))
	{
		load_former(pages);
		writes = look_at_leaves(pages, source, question, reads_all);
	}
	if (!pages->updates)
		geonn_page_lists_delete(baseline->cache, baseline->side);
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

	*count = 0;
	for (int i = 0; i < pages->count; i++)
	{
		if (pages->leaves[i].attributes != NULL)
			tables[(*count)++] = pages_of_leaf(&pages->leaves[i]);
	}
	return tables;
}

void
geonn_pages_former(ChangedPages *pages, PageEntryConsumer consume, void *state)
{
	PageLists  *lists = geonn_page_lists_open(pages->baseline->cache, pages->baseline->side,
											  AccessShareLock, pages->snapshot);

	for (int i = 0; i < pages->count; i++)
	{
		const Leaf *leaf = &pages->leaves[i];
		uint32		changed = leaf->was_leaf ? geonn_leaf_changed_count(leaf) : 0;

		if (changed > 0)
			geonn_page_lists_choose(lists, leaf->table, leaf->former.pages_a_row);
		for (uint32 number = 0; number < changed; number++)
		{
			uint32		count;
			const PageEntry *list = geonn_page_lists_find(lists, geonn_leaf_changed_page(leaf, number),
														  &count);

			for (uint32 entry = 0; entry < count; entry++)
				consume(state, &list[entry]);
		}
	}
	geonn_page_lists_close(lists);
}

/* ---- the rows that are read ---- */

void
geonn_pages_give_up(ChangedPages *pages)
{
	if (pages != NULL)
		pages->given_up = true;
}

static void
open_to_write(ChangedPages *pages)
{
	if (pages->lists == NULL)
		pages->lists = geonn_page_lists_open(pages->baseline->cache, pages->baseline->side,
											 RowExclusiveLock, GetTransactionSnapshot());
}

/*
 * Go on to another leaf.  Where all lists are made anew, its lists follow those of the last one.
 */
static void
begin_leaf(ChangedPages *pages, Leaf *leaf)
{
	pages->leaf = leaf;
	pages->page = InvalidBlockNumber;
	if (pages->updates)
		return;
	open_to_write(pages);
	geonn_page_lists_end(pages->lists);
	geonn_page_lists_choose(pages->lists, leaf->table, leaf->now.pages_a_row);
}

/*
 * Keep a point for the new list of its page, if that may have changed.
 */
static void
keep_point(ChangedPages *pages, const PagePoint *point)
{
	if (point->page.number != pages->page)
	{
		pages->page = point->page.number;
		pages->is_changed = geonn_leaf_has_changed(pages->leaf, pages->page);
	}
	if (!pages->is_changed)
		return;
	if (pages->point_count == pages->point_room)
	{
		pages->point_room = Max(pages->point_room * 2, 1024);
		pages->points = pages->points == NULL ? palloc(pages->point_room * sizeof(PagePoint)) :
			repalloc_huge(pages->points, pages->point_room * sizeof(PagePoint));
	}
	pages->points[pages->point_count++] = *point;
}

void
geonn_pages_add(ChangedPages *pages, const PointRow *row, const Fingerprint *fingerprint)
{
	PagePoint	point = {row->page, {fingerprint->key, fingerprint->hash[1]}};
	Leaf	   *leaf;
	MemoryContext former;

	if (pages == NULL || pages->given_up)
		return;
	leaf = pages->leaf != NULL && pages->leaf->table == row->page.table ? pages->leaf :
		find_leaf(pages, row->page.table);
	if (leaf == NULL || leaf->attributes == NULL)
	{
		pages->given_up = true;
		return;
	}
	former = MemoryContextSwitchTo(pages->context);
	if (leaf != pages->leaf)
		begin_leaf(pages, leaf);
	if (pages->updates)
		keep_point(pages, &point);
	else
		geonn_page_lists_add(pages->lists, &point);
	MemoryContextSwitchTo(former);
}

/* ---- the new lists ---- */

static int
by_page(const void *first, const void *second)
{
	const PointPage *a = &((const PagePoint *) first)->page;
	const PointPage *b = &((const PagePoint *) second)->page;

	if (a->table != b->table)
		return a->table < b->table ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/*
 * Put the points into the order of their pages.  They are in it already, unless a scan began in the
 * middle of a table, or leaves were read in another order than that of their OIDs.
 */
static void
sort_points(ChangedPages *pages)
{
	for (uint64 i = 1; i < pages->point_count; i++)
	{
		if (by_page(&pages->points[i], &pages->points[i - 1]) < 0)
		{
			qsort(pages->points, pages->point_count, sizeof(PagePoint), by_page);
			return;
		}
	}
}

/*
 * Store the state of a leaf; or delete the lists and state of a table that is no leaf any more.
 */
static void
store_state(ChangedPages *pages, Leaf *leaf, bool replaces)
{
	StringInfoData state;

	initStringInfo(&state);
	geonn_leaf_state(leaf, &state);
	geonn_page_lists_set_state(pages->lists, state.data, state.len, replaces);
	pfree(state.data);
}

/*
 * Bring a leaf's lists up to date with these points, all of its pages that may have changed.
 */
static void
update_leaf(ChangedPages *pages, Leaf *leaf, const PagePoint *points, uint64 count)
{
	geonn_page_lists_choose(pages->lists, leaf->table, Max(leaf->now.pages_a_row, 1));
	if (leaf->is_same)
	{
		geonn_page_lists_replace(pages->lists, leaf->changed.pages, leaf->changed.count, points, count);
		if (leaf->looked)
			store_state(pages, leaf, true);
		return;
	}
	if (leaf->was_leaf)
		geonn_page_lists_remove(pages->lists);
	if (leaf->attributes == NULL)
		return;
	for (uint64 i = 0; i < count; i++)
		geonn_page_lists_add(pages->lists, &points[i]);
	geonn_page_lists_end(pages->lists);
	store_state(pages, leaf, false);
}

static void
update_leaves(ChangedPages *pages)
{
	uint64		next = 0;

	sort_points(pages);
	for (int i = 0; i < pages->count; i++)
	{
		uint64		first = next;

		CHECK_FOR_INTERRUPTS();
		while (next < pages->point_count && pages->points[next].page.table == pages->leaves[i].table)
			next++;
		update_leaf(pages, &pages->leaves[i], pages->points + first, next - first);
	}
}

/*
 * End the lists that were made anew, and store the states of all leaves.
 */
static void
end_leaves(ChangedPages *pages)
{
	geonn_page_lists_end(pages->lists);
	for (int i = 0; i < pages->count; i++)
	{
		if (pages->leaves[i].attributes == NULL)
			continue;
		geonn_page_lists_choose(pages->lists, pages->leaves[i].table, pages->leaves[i].now.pages_a_row);
		store_state(pages, &pages->leaves[i], false);
	}
}

/*
 * Store the state of the side, if it has other leaves than before.
 */
static void
store_side(ChangedPages *pages)
{
	StringInfoData state;
	bool		is_other = !pages->updates;

	initStringInfo(&state);
	appendBinaryStringInfo(&state, (const char *) pages->baseline->seed, SEED_BYTES);
	for (int i = 0; i < pages->count; i++)
	{
		const Leaf *leaf = &pages->leaves[i];

		is_other |= (leaf->attributes != NULL) != leaf->was_leaf;
		if (leaf->attributes != NULL)
			appendBinaryStringInfo(&state, (char *) &leaf->table, sizeof(Oid));
	}
	if (!is_other)
		return;
	geonn_page_lists_choose(pages->lists, InvalidOid, 1);
	geonn_page_lists_set_state(pages->lists, state.data, state.len, pages->updates);
}

void
geonn_pages_store(ChangedPages *pages)
{
	if (pages == NULL)
		return;
	if (!pages->given_up)
	{
		open_to_write(pages);
		if (pages->updates)
			update_leaves(pages);
		else
			end_leaves(pages);
		store_side(pages);
	}
	if (pages->lists != NULL)
		geonn_page_lists_close(pages->lists);
	pages->lists = NULL;
	if (pages->given_up)
		geonn_page_lists_delete(pages->baseline->cache, pages->baseline->side);
}
