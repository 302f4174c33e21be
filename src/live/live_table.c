/*
 * live_table.c
 *		A table's references as a snapshot sees them: a base, and what differs from it.
 *
 * The base (live_base.c) has the rows that an earlier snapshot saw on each page, and the LSN that the page had.  This
 * process keeps beside it what it has found different since: rows of the base that are masked, and rows that
 * were added, page by page; the LSN that each page had when its rows were read, and what made it unsettled; and
 * the position, which is the end of the WAL as it was before the last look.  In the beginning these are the
 * base's.  A look brings them up to date with the snapshot of the present statement: it reads the pages that may
 * have changed, with this snapshot, and compares their rows with those that the base has for the page.  It reads
 *
 *	 - the pages whose LSN is another than when they were read, and those without an LSN, as new ones;
 *	 - those that were unsettled, unless by one transaction alone, which is still in progress for the snapshot;
 *	 - those past the end that the table had.
 *
 * Of the pages that the table no longer has, all rows are masked.
 *
 * Why the rows of all other pages are those that were read:
 *
 * (1) The snapshot sees no change of such a page that was made after the page was read.  All insertions, updates,
 *	   deletions and pruning are recorded in the WAL.  Each sets the page's LSN to the end of its record, under the
 *	   exclusive lock under which it changes the page, and before its transaction can end.  So a change that
 *	   the snapshot sees has set the LSN before the snapshot was taken, or in an earlier command of this
 *	   process.  From then on the LSN is greater than the one with which the page was read.  (Hint bits may
 *	   set it again, up or down, to the LSNs of records that came after the change.)
 *
 *	   So the LSN can be read without the page's lock.  A writer may have inserted its record and not have set the
 *	   LSN, for however long.  Then its transaction is in progress, and the snapshot does not see the change; or
 *	   the writer prunes or freezes, which leaves the rows as they are.  The page is not noted to be unchanged up
 *	   to some position of the WAL, so a later look, whose snapshot sees the change, finds that the LSN is another.
 *
 *	   A writer stores the two halves of an LSN one after the other.  Between these, a reader sees a mixture of the
 *	   former LSN and the new one.  Suppose that both are greater than the LSN with which the page was read, and that
 *	   the mixture equals this.  Then its half above is the former LSN's, the half below that of the new one,
 *	   and the new one is greater than the page's by a multiple of 2^32.  So the LSN is read without the lock
 *	   only where the page's is less than 2^32 behind the end of the WAL as it is after the look.
 *
 *	   While the LSN is read, the header of the buffer is locked, so that the page stays there.
 *
 *	   The visibility map saves the reading of most LSNs.  Suppose that a page's bit is set, that the LSN of the bit's
 *	   page of the map, which is read together with it, is not past the position, and that the snapshot sees
 *	   a change that was made after the page was read.  The change cleared the bit before its transaction could end
 *	   (kept_dataset.c, (1)).  So the bit was set again after the change, under the lock of the page, by a
 *	   record that was there when the last look began.  So that look would have found the LSN of the change, unless
 *	   it trusted the bit.  Then the same holds for the look before, and so on.  But the base has read each page
 *	   after its position was taken.
 *
 * (2) The tuples that a snapshot sees on a page depend on its bytes and on which transactions have ended and
 *	   how.  A page is settled if it was all-visible when it was read, or if all transactions that have
 *	   inserted its tuples or deleted them had ended for the snapshot that read it: by a look, they were not in
 *	   progress for that snapshot, and not the own one; by the base, they were older than its xmin, the
 *	   horizon.  What has ended for one snapshot has ended, in the same way, for another that follows it: one
 *	   whose xmax is not less, and for which no transaction below the first one's xmax is in progress that was
 *	   not in progress for that.  A subtransaction that was rolled back is invisible before and after its transaction ends.
 *	   A look is used by snapshots that follow its own; others begin with the base again, if their xmin is
 *	   not less than the horizon, and else they cannot be answered.  On a page that was all-visible, all tuples are
 *	   visible to all snapshots that were in use when the bit was set, and to later ones.
 *
 *	   What a transaction of another process has done is invisible as long as it is in progress.  So if one such
 *	   transaction alone makes a page unsettled, its rows are the same until that one has ended.  Each look
 *	   reads pages anew that have changes of the own transaction, also after a rollback to a savepoint, or of
 *	   several in progress.  A prepared transaction of this process is in progress for the next snapshot, and
 *	   was not for the last one, its own: so the next look begins with the base.
 *
 * (3) What kept_dataset.c says in (3) and (4) of files that a transaction has made, of system catalogs, and of the
 *	   meaning of a tuple, holds here, too: the same subject is asked for, of the same kinds of tables.  It has the
 *	   table's file.
 *
 * A look ends at once if the snapshot sees the same transactions as the last look's, and
 *
 *	 - the end of the WAL is still at the position, and the snapshot sees the same commands of the own transaction: so
 *	   both see the same changes; or
 *	 - the own transaction has no number, at this look or at the last one, so neither snapshot sees changes of its own.
 *	   The other transactions have each ended for both snapshots, and in the same way, or for neither.  What a
 *	   transaction has done that has ended for the last look's snapshot was on the pages when that look read them; it
 *	   is undone by none.  What another has done, before the last look or since, is invisible to both.  So each
 *	   snapshot sees the same rows, however much was written to pages.  While a statement updates a whole table, calls of
 *	   other sessions are answered like this, as long as no other transaction with a number begins or ends.
 *
 *	   Pruning and freezing leave the rows as they are, since the last look's snapshot sees what the present one
 *	   does.  pg_surgery alone changes rows without a transaction: what it has done is found once the next one
 *	   that has a number has ended.
 *
 * Numbers of transactions are compared as 32 bits, which tells the order of those that are less than 2^31 apart.  All
 * that have begun since the base was made are that near to the horizon, since an older base is of no use.
 *
 * Of a page that is read, most rows need not be compared.  A tuple that was inserted by a transaction before the
 * horizon, and whose line pointer has a row in the base, is this row: it was there when the base was made, since
 * which neither have its columns changed nor has its line pointer come to another tuple.
 *
 * Pages are read under the locks that any scan takes, so what a look has found is right even if it ends with an
 * error: a page that was being compared is unsettled, new pages belong to the table before one is read, and the
 * position stays.
 *
 * Rows of one page are matched by their line pointers.  If a line pointer has come to another row with the same id,
 * coordinates and group, the two are one reference to all who ask.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "live/live_table.h"
#include "pages/kept_dataset.h"
#include "pages/snapshot_order.h"

#define NONE	PG_UINT32_MAX

/* The head of a page is fetched into the processor's cache this many pages ahead. */
#define PAGES_AHEAD	12

/* An LSN that is read without the page's lock may be mistaken for another one at twice this distance. */
#define LSN_RANGE	(UINT64CONST(1) << 31)

/* a row that was added */
typedef struct AddedRow
{
	uint32		next;			/* the next row of the page, or the next free place; NONE: there is none */
	OffsetNumber offset;		/* the offset of the row's line pointer */
	uint8		status;			/* PointStatus */
} AddedRow;

/* a page of the table */
typedef struct TablePage
{
	XLogRecPtr	lsn;			/* the LSN that the page had when its rows were read */
	TransactionId unsettled_by; /* what made the page unsettled then: geonn_page_unsettled_by */
	uint32		first_added;	/* the number of the page's first added row, or NONE */
	Buffer		buffer;			/* the buffer in which the page was found last */
} TablePage;

struct LiveTable
{
	LiveBase   *base;
	MemoryContext context;

	XLogRecPtr	begun;			/* the end of the WAL at the beginning of the look under way */

	/* the last look */
	XLogRecPtr	position;
	BlockNumber blocks;			/* how many pages the table had */
	Snapshot	snapshot;		/* a copy of the last look's snapshot; NULL: no look yet since the table was as in the
								 * base */
	bool		has_number;		/* the transaction of the last look's snapshot had a number */
	bool		complete;		/* the look went through all pages */
	uint64		pages_read;

	TablePage  *pages;			/* [blocks_room] */
	BlockNumber blocks_room;

	/* rows */
	uint64		counts[POINT_STATUSES];
	uint64	   *masked;			/* a bit for each row of the base that is no longer in the table */
	uint64		masked_count;

	/* Rows that were added, and free places between them. */
	AddedRow   *added;			/* [room] */
	LivePoint  *points;			/* [room] */
	LiveLeaf   *leaves;			/* [room / LIVE_NODE] */
	int32	   *group;			/* [room] groups of added rows; NULL: there are no groups, or no row was added */
	uint32		room;
	uint32		used;			/* how many places, in use or free, come before the unused rest */
	uint32		first_free;		/* a free place, or NONE */
	uint64		added_count;
	uint64		added_now;		/* how many rows the last look has added */
	LiveIds		ids;			/* ids of added rows have the numbers of their rows */
	const GeonnGroups *groups;	/* the groups of all rows; NULL: there are none */
};

/* ---- rows that were added ---- */

static void *
enlarge(const LiveTable *table, void *array, Size bytes)
{
	return array == NULL ? MemoryContextAllocHuge(table->context, bytes) : repalloc_huge(array, bytes);
}

static uint32
free_place(LiveTable *table)
{
	uint32		number = table->first_free;

	if (number != NONE)
	{
		table->first_free = table->added[number].next;
		return number;
	}
	if (table->used == table->room)
	{
		uint32		room = table->room + table->room / 2 / LIVE_NODE * LIVE_NODE + 64 * LIVE_NODE;

		table->added = enlarge(table, table->added, room * sizeof(AddedRow));
		table->points = enlarge(table, table->points, room * sizeof(LivePoint));
		table->leaves = enlarge(table, table->leaves, room / LIVE_NODE * sizeof(LiveLeaf));
		if (table->base->head->starts > 0)
			table->group = enlarge(table, table->group, room * sizeof(int32));
		for (uint32 i = table->room; i < room; i++)
			geonn_live_no_point(table->leaves, i);
		table->room = room;
	}
	return table->used++;
}

/*
 * Return the address at which a page has the number of the row that follows row `former`.  If former is NONE, that of the page's
 * first row.
 */
static inline uint32 *
row_after(LiveTable *table, BlockNumber block, uint32 former)
{
	return former == NONE ? &table->pages[block].first_added : &table->added[former].next;
}

/* Add a row to a page, behind row `former`.  Returns its number. */
static uint32
add_row(LiveTable *table, BlockNumber block, uint32 former, const PageRow *row)
{
	uint32		number = free_place(table);
	uint32	   *link = row_after(table, block, former);
	LiveVector	vector;

	table->added[number] = (AddedRow) {*link, row->offset, row->status};
	table->points[number] = geonn_live_point(row);
	if (row->status == POINT_VALID)
	{
		table->points[number].id = geonn_live_id_add(&table->ids, number, row->id);
		geonn_live_vectors(&table->points[number], 1, &vector);
		geonn_live_put_vector(table->leaves, number, &vector);
		if (table->group != NULL)
			table->group[number] = row->group;
	}
	*link = number;
	table->added_count++;
	table->added_now++;
	table->counts[row->status]++;
	return number;
}

/* Remove the row of a page that comes behind row `former`. */
static void
remove_row(LiveTable *table, BlockNumber block, uint32 former)
{
	uint32	   *link = row_after(table, block, former);
	uint32		number = *link;

	*link = table->added[number].next;
	table->counts[table->added[number].status]--;
	table->added_count--;
	geonn_live_no_point(table->leaves, number);
	geonn_live_id_remove(&table->ids, number);
	table->added[number].next = table->first_free;
	table->first_free = number;
}

/*
 * Return whether a point, number `number` among points and their groups, is the same, bit by bit, as the point of a
 * row that was read.
 */
static inline bool
is_same_point(const LiveTable *table, const LivePoint *points, const int32 *groups, uint32 number, const PageRow *row)
{
	const LivePoint *point = &points[number];
	LivePoint	other = geonn_live_point(row);

	if (groups != NULL && row->status == POINT_VALID && groups[number] != row->group)
		return false;
	/* an id that was read is no number */
	if (!isnan(point->latitude) && !isnan(other.latitude))
		other.id = geonn_live_id_is_same(&table->ids, point->id, row->id) ? point->id : ~point->id;
	return memcmp(point, &other, sizeof(other)) == 0;
}

/* Make `row` the added row of the page that comes behind row `former`.  Returns its number. */
static uint32
put_row(LiveTable *table, BlockNumber block, uint32 former, const PageRow *row)
{
	uint32		number;

	while ((number = *row_after(table, block, former)) != NONE && table->added[number].offset <= row->offset)
	{
		if (table->added[number].offset == row->offset &&
			is_same_point(table, table->points, table->group, number, row))
			return number;
		remove_row(table, block, former);
	}
	return add_row(table, block, former, row);
}

/* ---- rows of the base ---- */

/* Note whether the table still has a row of the base. */
static void
set_masked(LiveTable *table, uint32 row, bool masked)
{
	uint64		bit = UINT64CONST(1) << row % 64;

	if (((table->masked[row / 64] & bit) != 0) == masked)
		return;
	table->masked[row / 64] ^= bit;
	table->masked_count += masked ? 1 : -1;
	table->counts[geonn_live_status(&table->base->points[row])] += masked ? -1 : 1;
}

/* Compare the rows of a page, in the order of their line pointers, with the rows that the base has of the page. */
static void
compare_page(LiveTable *table, BlockNumber block, const PageRow *rows, int count, uint32 number, uint32 end)
{
	const LiveBase *base = table->base;
	uint32		former = NONE;
	int			next = 0;

	for (; number < end; number++)
	{
		bool		same;

		for (; next < count && rows[next].offset < base->offset[number]; next++)
			former = put_row(table, block, former, &rows[next]);
		same = next < count && rows[next].offset == base->offset[number] &&
			(rows[next].known || is_same_point(table, base->points, base->group, number, &rows[next]));
		set_masked(table, number, !same);
		next += same;
	}
	for (; next < count; next++)
		former = put_row(table, block, former, &rows[next]);
	while (*row_after(table, block, former) != NONE)
		remove_row(table, block, former);
}

/* ---- the look ---- */

static void
make_room_for_blocks(LiveTable *table, BlockNumber blocks)
{
	BlockNumber room = blocks + blocks / 8 + 64;

	if (blocks <= table->blocks_room)
		return;
	table->pages = enlarge(table, table->pages, room * sizeof(TablePage));
	for (BlockNumber block = table->blocks_room; block < room; block++)
		table->pages[block] = (TablePage) {.first_added = NONE,.buffer = InvalidBuffer};
	table->blocks_room = room;
}

static Size
masked_bytes(const LiveTable *table)
{
	return (table->base->head->rows / 64 + 1) * sizeof(uint64);
}

/*
 * Set all to what the base says.
 */
static void
begin_with_base(LiveTable *table)
{
	const LiveBaseHead *head = table->base->head;

	table->position = head->position;
	table->blocks = head->blocks;
	table->complete = false;
	memcpy(table->counts, head->counts, sizeof(table->counts));
	memset(table->masked, 0, masked_bytes(table));
	table->masked_count = 0;
	for (uint32 i = 0; i < table->used; i++)
	{
		geonn_live_no_point(table->leaves, i);
		geonn_live_id_remove(&table->ids, i);
	}
	table->used = 0;
	table->first_free = NONE;
	table->added_count = 0;
	make_room_for_blocks(table, head->blocks);
	for (BlockNumber block = 0; block < table->blocks_room; block++)
		table->pages[block].first_added = NONE;
	for (BlockNumber block = 0; block < head->blocks; block++)
	{
		table->pages[block].lsn = table->base->lsn[block];
		table->pages[block].unsettled_by = table->base->settled[block] ? InvalidTransactionId : UNSETTLED_BY_MORE;
	}
}

LiveTable *
geonn_live_table_begin(LiveBase *base, const PageIdType *id_type, const GeonnGroups *groups)
{
	LiveTable  *table = palloc0(sizeof(LiveTable));

	table->base = base;
	table->context = CurrentMemoryContext;
	table->ids = geonn_live_ids_begin(id_type, base->values);
	table->groups = groups;
	table->masked = palloc_extended(masked_bytes(table), MCXT_ALLOC_HUGE);
	begin_with_base(table);
	return table;
}

/*
 * Return whether this session's transaction has a number; without one, neither the transaction nor a
 * subtransaction of it has changed a row.
 */
static inline bool
own_has_number(void)
{
	return TransactionIdIsValid(GetTopTransactionIdIfAny());
}

/* Keep the snapshot, and whether it may see changes of its own transaction. */
static void
remember_snapshot(LiveTable *table, Snapshot snapshot)
{
	if (table->snapshot != NULL)
		pfree(table->snapshot);
	table->snapshot = geonn_snapshot_copy(snapshot, table->context);
	table->has_number = own_has_number();
}

/* Have the processor fetch the buffer in which a page was found last: the page's head, if it is still there. */
static inline void
fetch_ahead(const LiveTable *table, BlockNumber block)
{
	Buffer		buffer = block < table->blocks_room ? table->pages[block].buffer : InvalidBuffer;

	if (buffer == InvalidBuffer)
		return;
	__builtin_prefetch(GetBufferDescriptor(buffer - 1), 1);
	__builtin_prefetch(BufferGetBlock(buffer));
}

/* Read a page's LSN without its lock.  Returns InvalidXLogRecPtr if the page is no longer in its former buffer. */
static XLogRecPtr
peek_at_lsn(const TablePage *page, Relation relation, BlockNumber block)
{
	BufferDesc *descriptor;
	XLogRecPtr	lsn = InvalidXLogRecPtr;
	uint64		state;

	if (page->buffer == InvalidBuffer)
		return lsn;
	descriptor = GetBufferDescriptor(page->buffer - 1);
	state = LockBufHdr(descriptor);
	if ((state & BM_VALID) && geonn_buffer_has(descriptor, relation, block))
		lsn = PageGetLSN((Page) BufferGetBlock(page->buffer));
	geonn_unlock_buffer(descriptor, state);
	return lsn;
}

static XLogRecPtr
read_lsn(TablePage *page, Relation relation, BlockNumber block)
{
	XLogRecPtr	lsn;

	if (page->buffer == InvalidBuffer ||
		!ReadRecentBuffer(relation->rd_locator, MAIN_FORKNUM, block, page->buffer))
		page->buffer = ReadBuffer(relation, block);
	LockBuffer(page->buffer, BUFFER_LOCK_SHARE);
	lsn = BufferGetLSNAtomic(page->buffer);
	UnlockReleaseBuffer(page->buffer);
	return lsn;
}

/* Return whether a page may have changed since it was read; the visibility map does not tell enough of it. */
static bool
has_changed(LiveTable *table, Relation relation, BlockNumber block)
{
	TablePage  *page = &table->pages[block];
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	fetch_ahead(table, block + PAGES_AHEAD);
	if (page->lsn + LSN_RANGE > table->begun)
		lsn = peek_at_lsn(page, relation, block);
	if (XLogRecPtrIsInvalid(lsn))
		lsn = read_lsn(page, relation, block);
	return XLogRecPtrIsInvalid(lsn) || lsn != page->lsn;
}

/* Return whether a page must be read.  marked: the visibility map tells that the page has not changed. */
static bool
must_be_read(LiveTable *table, const PageReader *reader, BlockNumber block, bool marked)
{
	TransactionId unsettled_by = table->pages[block].unsettled_by;

	if (unsettled_by == InvalidTransactionId)
		return !marked && has_changed(table, reader->relation, block);
	return unsettled_by == UNSETTLED_BY_MORE || !XidInMVCCSnapshot(unsettled_by, reader->snapshot) ||
		has_changed(table, reader->relation, block);
}

static void
read_page(LiveTable *table, PageReader *reader, BlockNumber block)
{
	TablePage  *page = &table->pages[block];
	const LiveBase *base = table->base;
	KnownRows	known = {.horizon = (TransactionId) base->head->horizon};
	uint32		first;
	uint32		end;

	geonn_live_base_rows(base, block, &first, &end);
	known.offset = base->offset + first;
	known.count = end - first;
	geonn_page_read(reader, block, &known);
	if (reader->met_shape)
		return;
	page->unsettled_by = UNSETTLED_BY_MORE;
	compare_page(table, block, reader->rows, reader->count, first, end);
	page->lsn = reader->lsn;
	page->unsettled_by = reader->unsettled_by;
	table->pages_read++;
}

/*
 * Look at the pages that one page of the visibility map describes.  Returns false if a limit was exceeded
 * (geonn_live_table_look).
 */
static bool
look_at_pages(LiveTable *table, PageReader *reader, BlockNumber first, BlockNumber count, uint64 most_bytes,
			  uint64 most_masked)
{
	MapPage		map;

	geonn_read_map(reader->relation, first, &map);

	/* Bits that may have been set since the position tell nothing: ignore them. */
	if (XLogRecPtrIsInvalid(map.lsn) || map.lsn > table->position)
		memset(map.bits, 0, sizeof(map.bits));
	for (BlockNumber i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!must_be_read(table, reader, first + i, geonn_map_is_visible(&map, i)))
			continue;
		read_page(table, reader, first + i);
		if (reader->met_shape || geonn_live_table_bytes(table) > most_bytes || table->masked_count > most_masked)
			return false;
	}
	return true;
}

static bool
look_at_table(LiveTable *table, PageReader *reader, uint64 most_bytes, uint64 most_masked)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(reader->relation);

	make_room_for_blocks(table, blocks);

	/* Count the table's new pages before the first is read: an error would end the look, and leave rows of some of them. */
	for (; table->blocks < blocks; table->blocks++)
		table->pages[table->blocks].unsettled_by = UNSETTLED_BY_MORE;
	for (BlockNumber first = 0; first < blocks; first += Min(BLOCKS_A_MAP, blocks - first))
	{
		if (!look_at_pages(table, reader, first, Min(BLOCKS_A_MAP, blocks - first), most_bytes, most_masked))
			return false;
	}
	for (BlockNumber block = blocks; block < table->blocks; block++)
	{
		uint32		first;
		uint32		end;

		geonn_live_base_rows(table->base, block, &first, &end);
		compare_page(table, block, NULL, 0, first, end);
		table->pages[block].unsettled_by = InvalidTransactionId;
	}
	table->blocks = blocks;
	return true;
}

uint64
geonn_live_table_bytes(const LiveTable *table)
{
	return table->room * (sizeof(AddedRow) + sizeof(LivePoint) + sizeof(LiveLeaf) / LIVE_NODE +
						  (table->group != NULL ? sizeof(int32) : 0)) +
		table->blocks_room * sizeof(TablePage) + masked_bytes(table) + table->ids.bytes +
		(table->groups != NULL ? geonn_groups_bytes(table->groups) : 0);
}

uint64
geonn_live_table_all_bytes(const LiveTable *table)
{
	/* the array's room doubles */
	return 2 * table->counts[POINT_VALID] * sizeof(LiveNeighbour);
}

bool
geonn_live_table_is_current(LiveTable *table, Snapshot snapshot)
{
	if (!table->complete || !geonn_snapshot_is_same(table->snapshot, snapshot))
		return false;
	if ((table->has_number || own_has_number()) &&
		(table->snapshot->curcid != snapshot->curcid || GetXLogInsertRecPtr() != table->position))
		return false;
	table->pages_read = table->added_now = 0;
	return true;
}

LiveLook
geonn_live_table_look(LiveTable *table, PageReader *reader, uint64 most_bytes, uint64 most_masked)
{
	Snapshot	snapshot = reader->snapshot;

	if (geonn_live_table_is_current(table, snapshot))
		return LIVE_LOOK_COMPLETE;
	table->pages_read = table->added_now = 0;
	if (TransactionIdPrecedes(snapshot->xmin, (TransactionId) table->base->head->horizon))
		return LIVE_LOOK_TELLS_NOTHING;
	if (table->snapshot != NULL && !geonn_snapshot_follows(snapshot, table->snapshot))
		begin_with_base(table);
	table->complete = false;
	remember_snapshot(table, snapshot);
	do
	{
		table->begun = GetXLogInsertRecPtr();
		if (!look_at_table(table, reader, most_bytes, most_masked))
			return table->masked_count > most_masked ? LIVE_LOOK_LACKS_MOST : LIVE_LOOK_TELLS_NOTHING;
	} while (GetXLogInsertRecPtr() - table->begun >= LSN_RANGE);
	table->position = table->begun;
	table->complete = true;
	return LIVE_LOOK_COMPLETE;
}

/* ---- what was found ---- */

const uint64 *
geonn_live_table_counts(const LiveTable *table)
{
	return table->counts;
}

TableDifference
geonn_live_table_difference(const LiveTable *table)
{
	return (TableDifference)
	{
		.pages_read = table->pages_read,
		.masked = table->masked_count,
		.added = table->added_count,
		.added_now = table->added_now,
		.compared = Max(table->used, table->masked_count)
	};
}

const LiveIds *
geonn_live_table_ids(const LiveTable *table)
{
	return &table->ids;
}

static void
search_added(const LiveTable *table, LiveSearch *search)
{
	geonn_live_search_leaves(search, table->leaves, table->points, table->group, (table->used + LIVE_NODE - 1) / LIVE_NODE);
}

void
geonn_live_table_search(const LiveTable *table, LiveSearch *search)
{
	/* If most of the base is masked, search the added rows first: their distances bound the walk through the base. */
	bool		added_first = table->masked_count > table->base->head->rows / 2;

	if (added_first)
		search_added(table, search);
	geonn_live_search_base(search, table->base, table->masked_count > 0 ? table->masked : NULL);
	if (!added_first)
		search_added(table, search);
}
