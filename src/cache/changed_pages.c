/*
 * changed_pages.c
 *		Which pages of a side's tables may have changed since its baseline was made or brought up to
 *		date.
 *
 * A side of a cache is often a large table of which few pages change between two refreshes.  Its rows
 * are those of one or more leaves: the table itself, or its partitions, those of partitions, or
 * its children and its own rows; or the tables of a view with UNION ALL.  For each page of a leaf the
 * last run keeps a list of the points that it had there.  A list is a row of geonn_cache_page, with the
 * leaf's OID in the first half of its number and the page in the second; an empty list may have no row.
 * Another row has the states of all leaves.  The state of a leaf is
 *
 *	 - how many pages the leaf had then;
 *	 - the position, which is the end of the WAL as it was before that run looked at any page, or
 *	   before the first unsettled page was changed.  On a settled page, each transaction that has inserted
 *	   a tuple or deleted one had ended before the run took its snapshot, or the page was all-visible.
 *
 * A refresh reads only the pages that may have changed, and compares their points with those on their
 * lists.  A point that is only on a list was removed, and one that is on none was added.  A row that an
 * UPDATE has put on another page with the same bytes is neither, also if that page is another leaf's.
 *
 * The lists are of the leaves that the last run found.  Of a leaf that has come since (CREATE TABLE,
 * ATTACH PARTITION, INHERIT) all pages may have changed, and it has no lists.  Of one that is none any
 * more (DROP TABLE, DETACH PARTITION, NO INHERIT) all pages that it had may have changed, and it has no
 * pages.  A leaf with another file (TRUNCATE, VACUUM FULL, CLUSTER) is both.  Leaves are known by
 * their OIDs; that an OID is of another table now shows in its state's subject.
 *
 * Of a leaf that is the same, the pages that may have changed since are
 *
 *	 - those with an LSN past the position;
 *	 - those past the former end of the table, and those without an LSN, as new ones: a page that
 *	   VACUUM cut off may have come back;
 *	 - those that the table no longer has: their points were removed.
 *
 * Why all others have the same rows for the present snapshot as they had for the last run:
 *
 * (1) Nothing was inserted there, updated, deleted or pruned since the position was taken.  All of
 *	   these are recorded in the WAL, and set the page's LSN to the record's end, under the same
 *	   exclusive lock of the page.  A page is looked at under its lock: a change that had begun before
 *	   is complete, and one that begins after has a record past the position that this refresh stores.
 *	   For the next one, it does not matter whether the change came before or after the refresh read
 *	   the rows.
 *
 *	   As for labels (pages/kept_dataset.c), this needs a permanent table of the heap, no standby and no
 *	   old_snapshot_threshold.  A transaction that fills a file that it has made, when wal_level is
 *	   minimal, leaves pages without an LSN, which are taken for changed.  Hint bits and the marks of
 *	   all-visible pages change no rows.
 *
 * (2) The tuples that a snapshot sees on a page depend on its bytes and on which transactions have
 *	   ended and how.  A page that was unsettled has an LSN past the position.  On a settled page, none
 *	   that matters was still to end when the last run took its snapshot: its number is less than that
 *	   snapshot's xmin.  The present snapshot sees the last run's own row as committed, or belongs to the
 *	   same transaction, so it is not older, and all that had ended for the last run has ended for it, in
 *	   the same way.  The own transaction's number is never less than its snapshot's xmin.  On a page that
 *	   was all-visible, both see all tuples.
 *
 * (3) The same file, columns and row of pg_class: as with labels.  A hash of their subject is kept and
 *	   compared (geonn_describe_pages); TRUNCATE, VACUUM FULL and ALTER TABLE make another.  All pages of a leaf
 *	   with another subject may have changed, those that it has and those that it had.
 *
 * Pages need not be looked at one by one where the visibility map tells the same.  If a page's bit is
 * set there now, and the LSN of the bit's page of the map is not past the position, the page has not
 * changed: whatever sets a bit sets that LSN, so this one was set before the position was taken, and
 * never since; whatever changes a page clears its bit first, before its transaction can commit.
 * Bits and LSN are read together, or a bit that was set between would be taken for an older one
 * (pages/kept_dataset.c).  And a page whose bit is set is settled: a change under way is recorded past
 * the new position, which was taken before the bits were read.  Under SERIALIZABLE bits tell nothing while another
 * transaction may be writing to the leaf (geonn_lock_for_map).
 *
 * When a refresh reads a page, it may also prune it, as any reader may.  The next refresh then reads
 * this page again.
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

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "cache/changed_pages.h"
#include "cache/siphash.h"
#include "common/protocol.h"
#include "pages/kept_dataset.h"
#include "pages/page_points.h"
#include "points/reader.h"

/* The pages that may have changed are few if they are at most this share of all pages, or at most this number. */
#define FEW_SHARE		0.125
#define FEW_ALWAYS		8

/* Comparing a point takes at most this many bytes; the points of few pages must fit into maintenance_work_mem. */
#define BYTES_A_POINT	128

/* If more than this share of the pages may have changed, all lists are made anew, instead of some being replaced. */
#define UPDATED_SHARE	0.5

/* number of the row that has the baseline's seed and the states of the leaves */
#define STATE_NUMBER	0
#define SEED_BYTES	sizeof(((GeonnBaseline *) NULL)->seed)

/* a page that may have changed since the last run */
typedef struct ChangedPage
{
	BlockNumber number;
	bool		is_listed;		/* this run has stored a new list of the page */
} ChangedPage;

/* The stored state of a table, from when its lists were made. */
typedef struct LeafState
{
	uint64		subject[2];		/* a hash of the subject that geonn_describe_pages() writes */
	uint64		position;		/* XLogRecPtr: a page with this LSN or an earlier one has not changed since */
	Oid			table;
	uint32		pages;			/* how many the table had */
} LeafState;

typedef struct Leaf
{
	Oid			table;
	const AttrNumber *attributes;	/* the columns as in PlainTable; NULL: the source no longer reads the table */
	LeafState	now;			/* the state that this run stores */
	LeafState	former;			/* the state that the last run stored; zeros: it did not read the table */
	bool		is_same;		/* all pages that are not in `changed` are as in the last run */
	ChangedPage *changed;		/* [count], ascending: pages that the table has, or had, and that may have changed */
	uint32		count;
	uint32		room;
} Leaf;

struct ChangedPages
{
	const GeonnBaseline *baseline;
	Leaf	   *leaves;			/* the tables read now, or in the last run, by OID */
	int			count;
	bool		known;			/* the last run has stored lists */
	bool		few;			/* the run reads only the pages that may have changed */

	/* the new lists */
	bool		updates;		/* only pages that may have changed get new lists; otherwise all pages do */
	bool		given_up;
	Leaf	   *leaf;			/* the leaf of the last row; NULL: no row has come yet */
	BlockNumber page;			/* the page of the last row */
	bool		gets_list;		/* the page of the last row gets a new list */
	StringInfoData list;		/* the entries of the list, so far */
};

/* ---- leaves ---- */

static int
by_table(const void *first, const void *second)
{
	Oid			a = ((const Leaf *) first)->table;
	Oid			b = ((const Leaf *) second)->table;

	return a < b ? -1 : a > b;
}

/* Find a table among the first `count` leaves, which are in order.  Returns NULL if it is not there. */
static Leaf *
find_leaf(const ChangedPages *pages, int count, Oid table)
{
	Leaf		key = {.table = table};

	return bsearch(&key, pages->leaves, count, sizeof(Leaf), by_table);
}

/* Make leaves from the states that the last run stored for this baseline, with room for `more` leaves. */
static void
load_former(ChangedPages *pages, int more)
{
	const bytea *stored = geonn_block_table_find(pages->baseline->lists, STATE_NUMBER);
	Size		length = stored == NULL ? 0 : VARSIZE_ANY_EXHDR(stored);

	pages->leaves = MemoryContextAllocExtended(CurrentMemoryContext,
											   (length / sizeof(LeafState) + more) * sizeof(Leaf),
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	pages->known = length >= SEED_BYTES && (length - SEED_BYTES) % sizeof(LeafState) == 0 &&
		memcmp(VARDATA_ANY(stored), pages->baseline->seed, SEED_BYTES) == 0;
	for (Size next = SEED_BYTES; pages->known && next < length; next += sizeof(LeafState))
	{
		Leaf	   *leaf = &pages->leaves[pages->count++];

		memcpy(&leaf->former, VARDATA_ANY(stored) + next, sizeof(LeafState));
		leaf->table = leaf->former.table;
	}
}

/*
 * Add the source's tables to the last run's leaves.  Returns false if the source's rows do not all come
 * from plain tables, or if it reads a table twice.
 */
static bool
take_tables(ChangedPages *pages, const List *tables)
{
	int			former = pages->count;
	ListCell   *cell;

	foreach(cell, tables)
	{
		const PlainTable *table = lfirst(cell);
		Leaf	   *leaf = find_leaf(pages, former, table->table);

		if (leaf == NULL || leaf->attributes != NULL)
			leaf = &pages->leaves[pages->count++];
		leaf->table = table->table;
		leaf->attributes = table->attributes;
	}
	qsort(pages->leaves, pages->count, sizeof(Leaf), by_table);
	for (int i = 1; i < pages->count; i++)
	{
		if (pages->leaves[i].table == pages->leaves[i - 1].table)
			return false;
	}
	return tables != NIL;
}

/* ---- the look at a page ---- */

/* a leaf that is being looked at */
typedef struct Look
{
	Leaf	   *leaf;
	Relation	relation;
	BufferAccessStrategy strategy;
	Buffer		last;			/* the buffer of the page before */
	bool		by_map;			/* bits of the visibility map may stand for pages (geonn_lock_for_map) */
	MapPage		map;			/* the page of the visibility map that describes the present pages */
} Look;

/* ---- the look at a leaf ---- */

/*
 * Read a page and lock it.  First try the buffer after that of the last page, because most pages are
 * there, and a lookup takes longer.
 */
static Buffer
read_page(Look *look, BlockNumber page)
{
	CHECK_FOR_INTERRUPTS();
	if (look->last == NBuffers ||
		!ReadRecentBuffer(look->relation->rd_locator, MAIN_FORKNUM, page, ++look->last))
		look->last = ReadBufferExtended(look->relation, MAIN_FORKNUM, page, RBM_NORMAL, look->strategy);
	LockBuffer(look->last, BUFFER_LOCK_SHARE);
	return look->last;
}

static void
add_page(Leaf *leaf, BlockNumber page)
{
	Assert(leaf->count == 0 || leaf->changed[leaf->count - 1].number < page);
	if (leaf->count == leaf->room)
	{
		leaf->room = Max(leaf->room * 2, 64);
		leaf->changed = leaf->changed == NULL ? palloc(leaf->room * sizeof(ChangedPage)) :
			repalloc_huge(leaf->changed, leaf->room * sizeof(ChangedPage));
	}
	leaf->changed[leaf->count++] = (ChangedPage) {page, false};
}

/* Look at a page itself, because the visibility map does not tell enough. */
static void
look_at_page(Look *look, BlockNumber page, bool marked)
{
	Leaf	   *leaf = look->leaf;
	Buffer		buffer = read_page(look, page);
	XLogRecPtr	lsn = BufferGetLSNAtomic(buffer);
	bool		changed = !leaf->is_same || XLogRecPtrIsInvalid(lsn) ||
		lsn > leaf->former.position || page >= leaf->former.pages;

	if (changed)
		add_page(leaf, page);
	if (changed && !marked && !XLogRecPtrIsInvalid(lsn) &&
		geonn_page_unsettled_by(BufferGetPage(buffer), GetActiveSnapshot(), true) != InvalidTransactionId)
		leaf->now.position = Min(leaf->now.position, lsn - 1);
	UnlockReleaseBuffer(buffer);
}

static void
look_at_pages(Look *look)
{
	Leaf	   *leaf = look->leaf;
	BlockNumber count = leaf->now.pages;

	for (BlockNumber first = 0; first < count; first += Min(BLOCKS_A_MAP, count - first))
	{
		BlockNumber described = Min(BLOCKS_A_MAP, count - first);
		bool		trusted;		/* bits that are set now were set before the last run, and stand for pages */

		CHECK_FOR_INTERRUPTS();
		geonn_read_map(look->relation, first, &look->map);
		trusted = leaf->is_same && look->by_map && !XLogRecPtrIsInvalid(look->map.lsn) &&
			look->map.lsn <= leaf->former.position;
		for (BlockNumber i = 0; i < described; i++)
		{
			bool		marked = geonn_map_is_visible(&look->map, i);

			if (!marked || (leaf->is_same && !trusted))
				look_at_page(look, first + i, marked);
			else if (!leaf->is_same)
				add_page(leaf, first + i);
		}
	}
	for (BlockNumber page = count; page < leaf->former.pages; page++)
		add_page(leaf, page);
}

/* Look at the pages of a leaf; the caller has set now.position.  Returns false if pages do not show the table's changes. */
static bool
look_at_leaf(Leaf *leaf, const PointSource *source, const GeonnQuestion *question, const uint64 *seed)
{
	Relation	relation = table_open(leaf->table, NoLock);
	Look		look = {.leaf = leaf,.relation = relation};
	uint8		subject[GEONN_SUBJECT_BYTES];
	bool		shows_changes = geonn_describe_pages(source, relation, leaf->attributes, question, subject);

	if (shows_changes)
	{
		geonn_siphash(seed, subject, sizeof(subject), leaf->now.subject);
		look.by_map = geonn_lock_for_map(relation, GetActiveSnapshot());
		leaf->now.pages = RelationGetNumberOfBlocks(relation);
		leaf->is_same = OidIsValid(leaf->former.table) &&
			memcmp(leaf->former.subject, leaf->now.subject, sizeof(leaf->now.subject)) == 0;
		look.strategy = geonn_page_strategy(leaf->now.pages);
		look_at_pages(&look);
		if (look.strategy != NULL)
			FreeAccessStrategy(look.strategy);
	}
	table_close(relation, NoLock);
	return shows_changes;
}

/* ---- the look at all leaves ---- */

static bool
is_few(uint64 count, uint64 pages)
{
	return count <= FEW_ALWAYS || count <= FEW_SHARE * pages;
}

/* Decide which pages to read, and which lists to write.  Returns false if no list pays. */
static bool
decide(ChangedPages *pages, const PointSource *source, bool reads_all)
{
	uint64		now = 0;
	uint64		all = 0;
	uint64		changed = 0;
	uint64		changed_same = 0;	/* how many of `changed` are in leaves with is_same */
	double		points;

	for (int i = 0; i < pages->count; i++)
	{
		const Leaf *leaf = &pages->leaves[i];

		now += leaf->now.pages;
		all += Max(leaf->now.pages, leaf->former.pages);
		changed += leaf->count;
		changed_same += leaf->is_same ? leaf->count : 0;
	}
	points = (double) changed / Max(all, 1) * (double) pages->baseline->rows;
	pages->few = pages->known && !reads_all && is_few(changed, all) &&
		points * BYTES_A_POINT <= maintenance_work_mem * 1024.0;
	pages->updates = pages->few || (pages->known && changed <= UPDATED_SHARE * all);
	Assert(!pages->few || pages->updates);
	Assert(!pages->updates || pages->known);
	if (pages->few)
		ereport(DEBUG1,
				(errmsg_internal("%s is read where it may have changed: on " UINT64_FORMAT " of "
								 UINT64_FORMAT " pages", source->title, changed, now)));
	return pages->updates || is_few(changed_same, all);
}

/* Look at all leaves.  Returns whether to write lists. */
static bool
look_at_leaves(ChangedPages *pages, const PointSource *source, const GeonnQuestion *question,
			   bool reads_all)
{
	uint64		position = GetXLogInsertRecPtr();

	for (int i = 0; i < pages->count; i++)
	{
		Leaf	   *leaf = &pages->leaves[i];

		for (BlockNumber page = 0; leaf->attributes == NULL && page < leaf->former.pages; page++)
			add_page(leaf, page);
		leaf->now.table = leaf->table;
		leaf->now.position = position;
		if (leaf->attributes != NULL && !look_at_leaf(leaf, source, question, pages->baseline->seed))
			return false;
	}
	return decide(pages, source, reads_all);
}

ChangedPages *
geonn_pages_look(GeonnBaseline *baseline, const PointSource *source, const GeonnQuestion *question,
				 bool reads_all)
{
	ChangedPages *pages = palloc0(sizeof(ChangedPages));
	const List *tables = geonn_check_tables(source);
	bool		writes;

	pages->baseline = baseline;
	initStringInfo(&pages->list);
	load_former(pages, list_length(tables));
	writes = take_tables(pages, tables) && look_at_leaves(pages, source, question, reads_all);
	if (!pages->updates)
		geonn_block_table_delete_all(baseline->lists);
	return writes ? pages : NULL;
}

/* ---- few pages ---- */

bool
geonn_pages_are_few(const ChangedPages *pages)
{
	return pages != NULL && pages->few;
}

/* Return the ranges of a leaf's existing pages that may have changed. */
static TablePages
pages_of_leaf(const Leaf *leaf)
{
	PageRange  *ranges = palloc_extended(Max(leaf->count, 1) * sizeof(PageRange), MCXT_ALLOC_HUGE);
	int			count = 0;

	for (uint32 i = 0; i < leaf->count && leaf->changed[i].number < leaf->now.pages; i++)
	{
		BlockNumber page = leaf->changed[i].number;

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

/* Return the number of the row that has the list of this page. */
static int64
number_of(const Leaf *leaf, BlockNumber page)
{
	Assert(OidIsValid(leaf->table));
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

		for (uint32 number = 0; OidIsValid(leaf->former.table) && number < leaf->count; number++)
			give_list(pages, number_of(leaf, leaf->changed[number].number), consume, state);
	}
}

/* ---- the rows that are read ---- */

void
geonn_pages_give_up(ChangedPages *pages)
{
	if (pages != NULL)
		pages->given_up = true;
}

/* Insert the row; if it is there with other contents, update it. */
static void
write_row(const ChangedPages *pages, int64 number, const StringInfoData *contents)
{
	BlockTable *table = pages->baseline->lists;
	const bytea *former = pages->updates ? geonn_block_table_find(table, number) : NULL;

	if (former == NULL || (int) VARSIZE_ANY_EXHDR(former) != contents->len ||
		memcmp(VARDATA_ANY(former), contents->data, contents->len) != 0)
		geonn_block_table_write(table, former != NULL, number, contents->data, contents->len);
}

/* Store the list of the last row's page, which is complete now. */
static void
end_page(ChangedPages *pages)
{
	if (pages->gets_list)
		write_row(pages, number_of(pages->leaf, pages->page), &pages->list);
	resetStringInfo(&pages->list);
	pages->gets_list = false;
}

static int
by_number(const void *first, const void *second)
{
	BlockNumber a = ((const ChangedPage *) first)->number;
	BlockNumber b = ((const ChangedPage *) second)->number;

	return a < b ? -1 : a > b;
}

/*
 * Go on to another page.
 */
static void
begin_page(ChangedPages *pages, PointPage page)
{
	Leaf	   *leaf = find_leaf(pages, pages->count, page.table);
	ChangedPage key = {.number = page.number};
	ChangedPage *changed;

	if (leaf == NULL || leaf->attributes == NULL)
	{
		pages->given_up = true;
		return;
	}
	pages->leaf = leaf;
	pages->page = page.number;
	changed = leaf->count == 0 ? NULL : bsearch(&key, leaf->changed, leaf->count, sizeof(ChangedPage), by_number);
	Assert(!pages->few || changed != NULL);
	pages->gets_list = changed != NULL || !pages->updates;
	if (changed != NULL)
		changed->is_listed = true;
}

void
geonn_pages_add(ChangedPages *pages, const PointRow *row, const Fingerprint *fingerprint)
{
	PageEntry	entry = {fingerprint->key, fingerprint->hash[1]};

	if (pages == NULL || pages->given_up)
		return;
	if (pages->leaf == NULL || row->page.table != pages->leaf->table || row->page.number != pages->page)
	{
		end_page(pages);
		begin_page(pages, row->page);
	}
	if (pages->gets_list)
		appendBinaryStringInfo(&pages->list, (const char *) &entry, sizeof(entry));
}

/* ---- after the rows ---- */

/* Delete the lists of pages that no longer have rows. */
static void
delete_empty(ChangedPages *pages)
{
	for (int i = 0; i < pages->count; i++)
	{
		const Leaf *leaf = &pages->leaves[i];

		for (uint32 number = 0; number < leaf->count; number++)
		{
			int64		row = number_of(leaf, leaf->changed[number].number);

			if (!leaf->changed[number].is_listed)
				geonn_block_table_delete(pages->baseline->lists, row, row);
		}
	}
}

/*
 * Store the states of the leaves.
 */
static void
store_states(ChangedPages *pages)
{
	StringInfoData states;

	initStringInfo(&states);
	appendBinaryStringInfo(&states, (const char *) pages->baseline->seed, SEED_BYTES);
	for (int i = 0; i < pages->count; i++)
	{
		const Leaf *leaf = &pages->leaves[i];

		Assert(leaf->attributes == NULL || !XLogRecPtrIsInvalid(leaf->now.position));
		if (leaf->attributes != NULL)
			appendBinaryStringInfo(&states, (const char *) &leaf->now, sizeof(LeafState));
	}
	write_row(pages, STATE_NUMBER, &states);
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
