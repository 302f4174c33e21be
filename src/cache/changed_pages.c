/*
 * changed_pages.c
 *		Which pages of a table may have changed since a baseline was made or brought up to date.
 *
 * A side of a cache is often a large table of which few pages change between two refreshes.  So for
 * each page the last run keeps a list of the points that it had there (cache/page_lists.c), and
 * for the table
 *
 *	 - the position, which is the end of the WAL as it was before the last run looked at any page;
 *	 - how many pages the table had then;
 *	 - which of them were unsettled.  On a settled page, each transaction that has inserted a tuple or
 *	   deleted one had ended before the last run took its snapshot, or the page was all-visible.
 *
 * A refresh reads only the pages that may have changed, and compares their points with those on their
 * lists: a point that is only on a list was removed, one that is on none was added, and a row that an
 * UPDATE has put on another page with the same bytes is neither.  The pages that may have changed are
 *
 *	 - those with an LSN past the position;
 *	 - those that were unsettled;
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
 *	   As for labels (join/kept_dataset.c), this needs a permanent table of the heap, no standby and no
 *	   old_snapshot_threshold.  A transaction that fills a file that it has made, when wal_level is
 *	   minimal, leaves pages without an LSN, which are taken for changed.  Hint bits and the marks of
 *	   all-visible pages change no rows.
 *
 * (2) The tuples that a snapshot sees on a page depend on its bytes and on which transactions have
 *	   ended and how.  On a settled page, none that matters was still to end when the last run took
 *	   its snapshot: its number is less than that snapshot's xmin.  The present snapshot sees the
 *	   last run's own row as committed, or belongs to the same transaction, so it is not older, and all
 *	   that had ended for the last run has ended for it, in the same way.  The own transaction's
 *	   number is never less than its snapshot's xmin.  On a page that was all-visible, both see all
 *	   tuples.
 *
 * (3) The same file, columns and row of pg_class: as with labels.  Their subject is kept and compared
 *	   (geonn_describe_pages); TRUNCATE, VACUUM FULL and ALTER TABLE make another.  So is the
 *	   baseline's seed: new baselines have new lists.
 *
 * Pages need not be looked at one by one where the visibility map tells the same.  If a page's bit is
 * set there now, and the LSN of the bit's page of the map is not past the position, the page has not
 * changed: whatever sets a bit sets that LSN, so this one was set before the position was taken, and
 * never since; whatever changes a page clears its bit first, before its transaction can commit.
 * Bits and LSN are read together, or a bit that was set between would be taken for an older one
 * (join/visibility.c).  And a page whose bit is set is settled: a change under way is recorded past
 * the new position, which was taken before the bits were read.
 *
 * When a refresh reads a page, it may also prune it, as any reader may.  The next refresh then reads
 * this page again.
 *
 * Lists pay where few pages change.  If more have, the table is read whole, and only the lists of
 * these pages are written.  If most have, all lists are deleted, and made anew by the next run that
 * reads the table whole.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "common/protocol.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "cache/changed_pages.h"
#include "compat.h"
#include "join/kept_dataset.h"
#include "join/visibility.h"
#include "points/reader.h"

/* pages are few if they are no more than this share of all, or so few in any case */
#define FEW_SHARE		0.125
#define FEW_ALWAYS		8

/* bytes that comparing a point of few pages takes, at most; all fit into maintenance_work_mem */
#define BYTES_A_POINT	128

/* lists are deleted if a larger share of the pages may have changed */
#define UPDATED_SHARE	0.5

/* pages of which the rows are counted, to see how many a page has */
#define PAGES_COUNTED	16

/* a table larger than this share of shared buffers does not fill them (as heapam.c) */
#define BUFFERS_SHARE	4

/* what goes for all lists, as stored; the unsettled pages follow */
typedef struct PagesState
{
	uint64		seed[2];		/* of the baseline */
	uint8		subject[GEONN_SUBJECT_BYTES];
	uint64		position;		/* XLogRecPtr */
	uint32		pages;
	uint32		pages_a_row;
	uint32		unsettled;
	uint32		unused;
} PagesState;

/* numbers of pages, ascending */
typedef struct PageSet
{
	BlockNumber *pages;
	uint32		count;
	uint32		room;
} PageSet;

struct ChangedPages
{
	const GeonnBaseline *baseline;
	MemoryContext context;
	Snapshot	snapshot;
	PagesState	now;
	PageSet		unsettled;

	bool		known;			/* what follows, of the last run */
	PagesState	former;
	BlockNumber *former_unsettled;	/* [former.unsettled] */
	PageSet		changed;		/* pages that may have changed since */
	bool		few;			/* and only they are read */

	/* the new lists */
	bool		updates;		/* of the pages that may have changed; else of all */
	bool		given_up;
	PageLists  *lists;			/* NULL: not open yet */
	bool		begun;			/* a row was read; the present page is of the last one */
	BlockNumber page;
	bool		is_changed;		/* it may have changed */
	PagePoint  *points;			/* of pages that may have changed */
	uint64		point_count;
	uint64		point_room;
};

static void
add_page(PageSet *set, BlockNumber page)
{
	if (set->count == set->room)
	{
		set->room = Max(set->room * 2, 64);
		set->pages = set->pages == NULL ? palloc(set->room * sizeof(BlockNumber)) :
			repalloc_huge(set->pages, set->room * sizeof(BlockNumber));
	}
	set->pages[set->count++] = page;
}

static bool
is_few(uint32 count, BlockNumber pages)
{
	return count <= FEW_ALWAYS || count <= FEW_SHARE * pages;
}

/* ---- the last run ---- */

/*
 * Read what the last run has stored, if it is of this baseline and of the table as it is described
 * now.
 */
static void
load_former(ChangedPages *pages)
{
	const GeonnBaseline *baseline = pages->baseline;
	PageLists  *lists = geonn_page_lists_open(baseline->cache, baseline->side, 1, AccessShareLock,
											  pages->snapshot);
	const bytea *stored = geonn_page_lists_state(lists);
	PagesState *former = &pages->former;
	Size		length = stored == NULL ? 0 : VARSIZE_ANY_EXHDR(stored);

	if (length >= sizeof(*former))
	{
		memcpy(former, VARDATA_ANY(stored), sizeof(*former));
		pages->known = memcmp(former->seed, pages->now.seed, sizeof(former->seed)) == 0 &&
			memcmp(former->subject, pages->now.subject, sizeof(former->subject)) == 0 &&
			length == sizeof(*former) + former->unsettled * sizeof(BlockNumber);
		pages->former_unsettled = palloc(length - sizeof(*former) + 1);
		memcpy(pages->former_unsettled, VARDATA_ANY(stored) + sizeof(*former), length - sizeof(*former));
	}
	geonn_page_lists_close(lists);
}

/* ---- a page ---- */

/*
 * Has the transaction, if any, ended before the snapshot was taken?
 */
static bool
has_ended(TransactionId transaction, Snapshot snapshot)
{
	return !TransactionIdIsNormal(transaction) || TransactionIdPrecedes(transaction, snapshot->xmin);
}

static bool
is_settled_tuple(HeapTupleHeader tuple, Snapshot snapshot)
{
	uint16		mask = tuple->t_infomask;

	if (mask & HEAP_MOVED)
		return false;
	if (!HeapTupleHeaderXminFrozen(tuple) && !has_ended(HeapTupleHeaderGetRawXmin(tuple), snapshot))
		return false;
	return (mask & HEAP_XMAX_INVALID) || HEAP_XMAX_IS_LOCKED_ONLY(mask) ||
		has_ended(HeapTupleHeaderGetUpdateXid(tuple), snapshot);
}

static bool
is_settled(Page page, Snapshot snapshot)
{
	OffsetNumber last;

	if (PageIsNew(page) || PageIsAllVisible(page))
		return true;
	last = PageGetMaxOffsetNumber(page);
	for (OffsetNumber number = FirstOffsetNumber; number <= last; number = OffsetNumberNext(number))
	{
		ItemId		item = PageGetItemId(page, number);

		if (ItemIdIsNormal(item) &&
			!is_settled_tuple((HeapTupleHeader) PageGetItem(page, item), snapshot))
			return false;
	}
	return true;
}

/* ---- all pages ---- */

typedef struct Look
{
	ChangedPages *pages;
	Relation	relation;
	BufferAccessStrategy strategy;
	Buffer		last;			/* of the page before */
	MapPage		map;			/* its page that describes the present pages */
	uint32		next_unsettled; /* in former_unsettled */
} Look;

/*
 * Was this page unsettled in the last run?  Callers ask for pages in their order.
 */
static bool
was_unsettled(Look *look, BlockNumber page)
{
	const ChangedPages *pages = look->pages;

	while (look->next_unsettled < pages->former.unsettled &&
		   pages->former_unsettled[look->next_unsettled] < page)
		look->next_unsettled++;
	return look->next_unsettled < pages->former.unsettled &&
		pages->former_unsettled[look->next_unsettled] == page;
}

/*
 * Read a page and lock it.  Most pages are in the buffer after the last page's, and a lookup takes
 * longer than to try it.
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

/*
 * Look at a page of which the visibility map does not tell enough.
 */
static void
look_at_page(Look *look, BlockNumber page, bool marked)
{
	ChangedPages *pages = look->pages;
	Buffer		buffer = read_page(look, page);
	XLogRecPtr	lsn = BufferGetLSNAtomic(buffer);
	bool		changed = !pages->known || XLogRecPtrIsInvalid(lsn) ||
		lsn > pages->former.position || page >= pages->former.pages || was_unsettled(look, page);

	if (changed && pages->known)
		add_page(&pages->changed, page);
	if (changed && !marked && !is_settled(BufferGetPage(buffer), pages->snapshot))
		add_page(&pages->unsettled, page);
	UnlockReleaseBuffer(buffer);
}

/*
 * Read the page of the map that describes the pages from this one on.  Returns whether bits that are
 * set there were set before the last run.
 */
static bool
read_map(Look *look, BlockNumber first)
{
	const ChangedPages *pages = look->pages;

	geonn_read_map(look->relation, first, &look->map);
	return pages->known && !XLogRecPtrIsInvalid(look->map.lsn) &&
		look->map.lsn <= pages->former.position;
}

static void
look_at_pages(Look *look)
{
	ChangedPages *pages = look->pages;
	BlockNumber count;
	bool		trusted;

	pages->now.position = GetXLogInsertRecPtr();
	count = pages->now.pages = RelationGetNumberOfBlocks(look->relation);
	if (count > (BlockNumber) (NBuffers / BUFFERS_SHARE))
		look->strategy = GetAccessStrategy(BAS_BULKREAD);
	for (BlockNumber first = 0; first < count; first += Min(BLOCKS_A_MAP, count - first))
	{
		BlockNumber described = Min(BLOCKS_A_MAP, count - first);

		CHECK_FOR_INTERRUPTS();
		trusted = read_map(look, first);
		for (BlockNumber i = 0; i < described; i++)
		{
			bool		marked = geonn_map_is_visible(&look->map, i);

			if (!marked || (pages->known && !trusted))
				look_at_page(look, first + i, marked);
		}
	}
	for (BlockNumber page = count; pages->known && page < pages->former.pages; page++)
		add_page(&pages->changed, page);
}

/*
 * How many rows has a page, on average?
 */
static uint32
rows_a_page(Look *look)
{
	BlockNumber pages = look->pages->now.pages;
	BlockNumber step = Max(pages / PAGES_COUNTED, 1);
	uint32		rows = 0;
	uint32		count = 0;

	for (uint64 page = 0; page < pages; page += step, count++)
	{
		Buffer		buffer = read_page(look, (BlockNumber) page);

		if (!PageIsNew(BufferGetPage(buffer)))
			rows += PageGetMaxOffsetNumber(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
	}
	return rows / Max(count, 1);
}

/*
 * Decide what is read, and which lists are written.  Returns false if none would pay.
 */
static bool
decide(Look *look, bool reads_all)
{
	ChangedPages *pages = look->pages;
	BlockNumber count = Max(pages->now.pages, pages->former.pages);
	double		share = (double) pages->changed.count / Max(count, 1);
	double		points = share * (double) pages->baseline->rows;
	double		memory = maintenance_work_mem * 1024.0;

	if (!is_few(pages->unsettled.count, pages->now.pages))
		return false;
	if (!pages->known)
	{
		pages->now.pages_a_row = geonn_page_lists_width(rows_a_page(look));
		return true;
	}
	pages->now.pages_a_row = pages->former.pages_a_row;
	pages->few = !reads_all && is_few(pages->changed.count, count) &&
		points * BYTES_A_POINT <= memory;
	pages->updates = pages->few || (share <= UPDATED_SHARE && points * sizeof(PagePoint) <= memory);
	return pages->updates;
}

/*
 * Look at all pages of the table.  Returns whether lists are to be written.
 */
static bool
look_at_table(ChangedPages *pages, Relation relation, bool reads_all)
{
	Look		look = {.pages = pages,.relation = relation};
	bool		writes;

	look_at_pages(&look);
	writes = decide(&look, reads_all);
	if (look.strategy != NULL)
		FreeAccessStrategy(look.strategy);
	return writes;
}

ChangedPages *
geonn_pages_look(const GeonnBaseline *baseline, const PointSource *source,
				 const GeonnQuestion *question, bool reads_all)
{
	ChangedPages *pages = palloc0(sizeof(ChangedPages));
	AttrNumber *attributes;
	Oid			table = geonn_check_table(source, &attributes);
	bool		writes = false;

	pages->baseline = baseline;
	pages->context = CurrentMemoryContext;
	pages->snapshot = GetActiveSnapshot();
	memcpy(pages->now.seed, baseline->seed, sizeof(pages->now.seed));
	if (OidIsValid(table))
	{
		Relation	relation = table_open(table, NoLock);

		if (geonn_describe_pages(source, relation, attributes, question, pages->now.subject))
		{
			load_former(pages);
			PredicateLockRelation(relation, pages->snapshot);
			writes = look_at_table(pages, relation, reads_all);
		}
		table_close(relation, NoLock);
	}
	if (pages->few)
		ereport(DEBUG1,
				(errmsg_internal("%s is read where it may have changed: on %u of %u pages",
								 source->title, pages->changed.count, pages->now.pages)));
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

const PageRange *
geonn_pages_to_read(const ChangedPages *pages, int *count)
{
	const PageSet *changed = &pages->changed;
	PageRange  *ranges = palloc(Max(changed->count, 1) * sizeof(PageRange));

	*count = 0;
	for (uint32 i = 0; i < changed->count && changed->pages[i] < pages->now.pages; i++)
	{
		if (*count > 0 && ranges[*count - 1].last + 1 == changed->pages[i])
			ranges[*count - 1].last++;
		else
			ranges[(*count)++] = (PageRange)
		{
			changed->pages[i], changed->pages[i]
		};
	}
	return ranges;
}

void
geonn_pages_former(ChangedPages *pages, PageEntryConsumer consume, void *state)
{
	const GeonnBaseline *baseline = pages->baseline;
	PageLists  *lists = geonn_page_lists_open(baseline->cache, baseline->side, pages->former.pages_a_row,
											  AccessShareLock, pages->snapshot);

	for (uint32 i = 0; i < pages->changed.count; i++)
	{
		uint32		count;
		const PageEntry *list = geonn_page_lists_find(lists, pages->changed.pages[i], &count);

		for (uint32 entry = 0; entry < count; entry++)
			consume(state, &list[entry]);
	}
	geonn_page_lists_close(lists);
}

/* ---- the new lists ---- */

void
geonn_pages_give_up(ChangedPages *pages)
{
	if (pages != NULL)
		pages->given_up = true;
}

static PageLists *
open_to_write(const ChangedPages *pages)
{
	return geonn_page_lists_open(pages->baseline->cache, pages->baseline->side, pages->now.pages_a_row,
								 RowExclusiveLock, GetTransactionSnapshot());
}

static int
by_number(const void *first, const void *second)
{
	BlockNumber a = *(const BlockNumber *) first;
	BlockNumber b = *(const BlockNumber *) second;

	return a < b ? -1 : a > b;
}

static int
by_page(const void *first, const void *second)
{
	return by_number(&((const PagePoint *) first)->page, &((const PagePoint *) second)->page);
}

/*
 * Keep a point for the new list of its page, if that may have changed.
 */
static void
keep_point(ChangedPages *pages, const PagePoint *point)
{
	if (!pages->begun || point->page != pages->page)
	{
		pages->begun = true;
		pages->page = point->page;
		pages->is_changed = bsearch(&point->page, pages->changed.pages, pages->changed.count,
									sizeof(BlockNumber), by_number) != NULL;
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
	MemoryContext former;

	if (pages == NULL || pages->given_up)
		return;
	if (!row->has_page)
	{
		pages->given_up = true;
		return;
	}
	former = MemoryContextSwitchTo(pages->context);
	if (pages->updates)
		keep_point(pages, &point);
	else
	{
		if (pages->lists == NULL)
			pages->lists = open_to_write(pages);
		geonn_page_lists_add(pages->lists, &point);
	}
	MemoryContextSwitchTo(former);
}

/*
 * Put the points into the order of their pages.  They are in it already, unless a scan began in the
 * middle of the table.
 */
static void
sort_points(ChangedPages *pages)
{
	for (uint64 i = 1; i < pages->point_count; i++)
	{
		if (pages->points[i].page < pages->points[i - 1].page)
		{
			qsort(pages->points, pages->point_count, sizeof(PagePoint), by_page);
			return;
		}
	}
}

static void
store_state(ChangedPages *pages)
{
	PagesState *now = &pages->now;
	StringInfoData state;

	now->unsettled = pages->unsettled.count;
	initStringInfo(&state);
	appendBinaryStringInfo(&state, (char *) now, sizeof(*now));
	appendBinaryStringInfo(&state, (char *) pages->unsettled.pages,
						   (int) (now->unsettled * sizeof(BlockNumber)));
	geonn_page_lists_set_state(pages->lists, state.data, state.len);
}

void
geonn_pages_store(ChangedPages *pages)
{
	if (pages == NULL)
		return;
	if (!pages->given_up)
	{
		if (pages->lists == NULL)
			pages->lists = open_to_write(pages);
		if (pages->updates)
		{
			sort_points(pages);
			geonn_page_lists_replace(pages->lists, pages->changed.pages, pages->changed.count,
									 pages->points, pages->point_count);
		}
		else
			geonn_page_lists_end(pages->lists);
		store_state(pages);
	}
	if (pages->lists != NULL)
		geonn_page_lists_close(pages->lists);
	pages->lists = NULL;
	if (pages->given_up)
		geonn_page_lists_delete(pages->baseline->cache, pages->baseline->side);
}
