/*
 * leaf.c
 *		Which pages of one table may have changed since the lists of its pages were made.
 *
 * A leaf is a plain table all of whose rows are rows of a cache's side: the side's table itself, or
 * one of its partitions or children.  For each page the last run keeps a list of the points that it
 * had there (cache/changed_pages.c), and for the leaf
 *
 *	 - the position, which is the end of the WAL as it was before that run looked at any page;
 *	 - how many pages the leaf had then;
 *	 - which of them were unsettled.  On a settled page, each transaction that has inserted a tuple or
 *	   deleted one had ended before the run took its snapshot, or the page was all-visible.
 *
 * The pages that may have changed since are
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
 * (3) The same file, columns and row of pg_class: as with labels.  A hash of their subject is kept and
 *	   compared (geonn_describe_pages); TRUNCATE, VACUUM FULL and ALTER TABLE make another.  All pages of a leaf
 *	   with another subject may have changed, those that it has and those that it had.
 *
 * Pages need not be looked at one by one where the visibility map tells the same.  If a page's bit is
 * set there now, and the LSN of the bit's page of the map is not past the position, the page has not
 * changed: whatever sets a bit sets that LSN, so this one was set before the position was taken, and
 * never since; whatever changes a page clears its bit first, before its transaction can commit.
 * Bits and LSN are read together, or a bit that was set between would be taken for an older one
 * (join/kept_dataset.c).  And a page whose bit is set is settled: a change under way is recorded past
 * the new position, which was taken before the bits were read.
 *
 * If no page of any leaf had to be looked at, nothing is stored: the states go on to be those of the run
 * which stored them, and what is said above of the last run holds for that one.  For all runs since have
 * found none of the leaves' pages changed, and have left the points on their lists in the baseline.
 *
 * When a refresh reads a page, it may also prune it, as any reader may.  The next refresh then reads
 * this page again.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "cache/leaf.h"
#include "cache/siphash.h"
#include "base/compat.h"
#include "join/kept_dataset.h"
#include "join/live_page.h"

/* reading a table larger than this share of shared buffers reuses few of them (as heapam.c) */
#define BUFFERS_SHARE	4

/* a leaf that is being looked at */
typedef struct Look
{
	Leaf	   *leaf;
	Relation	relation;
	Snapshot	snapshot;
	BufferAccessStrategy strategy;
	Buffer		last;			/* the buffer of the page before */
	MapPage		map;			/* the visibility map's page that describes the present pages */
	uint32		next_unsettled; /* the index, in former_unsettled, of the next page */
} Look;

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

/* ---- pages ---- */

/*
 * Was this page unsettled in the last run?  Callers ask for pages in their order.
 */
static bool
was_unsettled(Look *look, BlockNumber page)
{
	const Leaf *leaf = look->leaf;

	while (look->next_unsettled < leaf->former.unsettled &&
		   leaf->former_unsettled[look->next_unsettled] < page)
		look->next_unsettled++;
	return look->next_unsettled < leaf->former.unsettled &&
		leaf->former_unsettled[look->next_unsettled] == page;
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
	Leaf	   *leaf = look->leaf;
	Buffer		buffer = read_page(look, page);
	XLogRecPtr	lsn = BufferGetLSNAtomic(buffer);
	bool		changed = !leaf->is_same || XLogRecPtrIsInvalid(lsn) ||
		lsn > leaf->former.position || page >= leaf->former.pages || was_unsettled(look, page);

	leaf->looked = true;
	if (changed && leaf->is_same)
		add_page(&leaf->changed, page);
	if (changed && !marked && !geonn_page_is_settled(BufferGetPage(buffer), look->snapshot, true))
		add_page(&leaf->unsettled, page);
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
		bool		trusted;		/* bits that are set there were set before the last run */

		CHECK_FOR_INTERRUPTS();
		geonn_read_map(look->relation, first, &look->map);
		trusted = leaf->is_same && !XLogRecPtrIsInvalid(look->map.lsn) &&
			look->map.lsn <= leaf->former.position;
		for (BlockNumber i = 0; i < described; i++)
		{
			bool		marked = geonn_map_is_visible(&look->map, i);

			if (!marked || (leaf->is_same && !trusted))
				look_at_page(look, first + i, marked);
		}
	}
	for (BlockNumber page = count; leaf->is_same && page < leaf->former.pages; page++)
		add_page(&leaf->changed, page);
}

/*
 * Look at the relation, which is described as now.subject says.
 */
static void
look_at_relation(Leaf *leaf, Relation relation)
{
	Look		look = {.leaf = leaf,.relation = relation,.snapshot = GetActiveSnapshot()};

	leaf->is_same = leaf->was_leaf &&
		memcmp(leaf->former.subject, leaf->now.subject, sizeof(leaf->now.subject)) == 0;
	leaf->now.pages = RelationGetNumberOfBlocks(relation);
	leaf->looked = !leaf->is_same || leaf->now.pages != leaf->former.pages;
	if (leaf->now.pages > (BlockNumber) (NBuffers / BUFFERS_SHARE))
		look.strategy = GetAccessStrategy(BAS_BULKREAD);
	look_at_pages(&look);
	if (look.strategy != NULL)
		FreeAccessStrategy(look.strategy);
}

bool
geonn_leaf_look(Leaf *leaf, const PointSource *source, const GeonnQuestion *question, const uint64 *seed,
				uint64 position)
{
	Relation	relation = table_open(leaf->table, NoLock);
	uint8		subject[GEONN_SUBJECT_BYTES];
	bool		shows_changes = geonn_describe_pages(source, relation, leaf->attributes, question, subject);

	leaf->now.table = leaf->table;
	leaf->now.position = position;
	if (shows_changes)
	{
		geonn_siphash(seed, (const char *) subject, sizeof(subject), leaf->now.subject);
		PredicateLockRelation(relation, GetActiveSnapshot());
		look_at_relation(leaf, relation);
	}
	table_close(relation, NoLock);
	return shows_changes;
}

/* ---- pages that may have changed ---- */

uint32
geonn_leaf_changed_count(const Leaf *leaf)
{
	return leaf->is_same ? leaf->changed.count : Max(leaf->now.pages, leaf->former.pages);
}

BlockNumber
geonn_leaf_changed_page(const Leaf *leaf, uint32 number)
{
	return leaf->is_same ? leaf->changed.pages[number] : number;
}
