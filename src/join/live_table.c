/*
 * live_table.c
 *		A table's references as a snapshot sees them: a base, and what differs from it.
 *
 * The base (live_base.c) has the rows that an earlier snapshot saw on each page.  This process keeps beside it what it
 * has found different since: rows of the base that are masked, and rows that were added, page by page; the
 * pages that are unsettled; and the position, which is the end of the WAL as it was before the last look.  In
 * the beginning these are the base's.  A look brings them up to date with the snapshot of the present
 * statement: it reads the pages that may have changed, with this snapshot, and compares their rows with those
 * that the base has for the page.  It reads
 *
 *	 - the pages that were unsettled;
 *	 - those with an LSN past the position, and those without an LSN, as new ones;
 *	 - those past the end that the table had.
 *
 * Of the pages that the table no longer has, all rows are masked.
 *
 * Why the rows of all other pages are those that the last look, or the base, has for them:
 *
 * (1) Such a page was not inserted into, updated, deleted from or pruned since the position was taken.  All of
 *	   these are recorded in the WAL, and set the page's LSN to the record's end, under the exclusive lock under
 *	   which they change the page.  The LSN is read under the page's lock: a change that had begun before is
 *	   complete, and one that begins after has a record past the position that this look stores.  That the
 *	   earlier look read the page after it took its position does no harm: a change between the two has an
 *	   LSN past the position, and the page is read again.
 *
 *	   The visibility map saves the reading of most LSNs.  If a page's bit is set, and the LSN of the bit's page of
 *	   the map is not past the position, the page has not changed since: whatever sets a bit sets that LSN, so
 *	   this one was set before the position was taken, and never since; whatever changes a page clears its
 *	   bit first, before its transaction can commit (kept_dataset.c, (1)).  Bits and LSN are read together.
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
 *	   Each look reads pages anew that have changes of the own transaction, also after a rollback to a savepoint, or
 *	   of one in progress, prepared ones among them.  A prepared transaction of this process is in progress for
 *	   the next snapshot, and was not for the last one, its own: so the next look begins with the base.
 *
 * (3) What kept_dataset.c says in (3) and (4) of files that a transaction has made, of system catalogs, and of the
 *	   meaning of a tuple, holds here, too: the same subject is asked for, of the same kinds of tables.  It has the
 *	   table's file.
 *
 * If the end of the WAL is still at the position, and the snapshot sees the same transactions as the last
 * look's and the same commands of the own one, the look ends at once.  For a change that this snapshot sees
 * and the last look did not was made by a transaction, or by a command, that both see as ended.  It had a record
 * before the last look took its position.  So its page had been changed when it was read, or its
 * LSN was looked at, after that.
 *
 * Pages are read under the locks that any scan takes, so what a look has found is right even if it ends with an
 * error: a page that was being compared is unsettled, new pages belong to the table before one is read, and the
 * position stays.
 *
 * Rows of one page are matched by their line pointers.  If a line pointer has come to another row with the same id and
 * coordinates, the two are one reference to all who ask.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "join/kept_dataset.h"
#include "join/live_table.h"

#define NONE	PG_UINT32_MAX

/* how many pages ahead the head of a page is fetched into the processor's cache */
#define PAGES_AHEAD	12

/* a row that was added */
typedef struct AddedRow
{
	uint32		next;			/* the next row of its page, or free place; NONE: there is none */
	PointStatus status;
} AddedRow;

struct LiveTable
{
	LiveBase   *base;
	MemoryContext context;

	/* the last look */
	XLogRecPtr	position;
	BlockNumber blocks;			/* how many pages the table had */
	Snapshot	snapshot;		/* a copy of its snapshot; NULL: there was no look since all was the base's */
	bool		complete;		/* it came to its end */
	uint64		pages_read;

	/* for each page, [blocks_room] */
	uint8	   *unsettled;
	uint32	   *first_added;	/* the number of its first row that was added, or NONE */
	Buffer	   *buffer;			/* where the page was found the last time */
	BlockNumber blocks_room;

	/* rows */
	uint64		counts[POINT_STATUSES];
	uint64	   *masked;			/* a bit for each row of the base that the table does not have any more */
	uint64		masked_count;

	/* rows that were added, and free places between them */
	AddedRow   *added;			/* [room] */
	LivePoint  *points;			/* [room] */
	LiveLeaf   *leaves;			/* [room / LIVE_NODE] */
	uint32		room;
	uint32		used;			/* how many places are behind the first, in use or free */
	uint32		first_free;		/* a free place, or NONE */
	uint64		added_count;
};

/* ---- rows that were added ---- */

static void
remove_added(LiveTable *table, BlockNumber block)
{
	uint32		number = table->first_added[block];

	table->first_added[block] = NONE;
	while (number != NONE)
	{
		uint32		next = table->added[number].next;

		table->counts[table->added[number].status]--;
		table->added_count--;
		geonn_live_no_point(table->leaves, number);
		table->added[number].next = table->first_free;
		table->first_free = number;
		number = next;
	}
}

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
		for (uint32 i = table->room; i < room; i++)
			geonn_live_no_point(table->leaves, i);
		table->room = room;
	}
	return table->used++;
}

static void
add_row(LiveTable *table, BlockNumber block, const LiveRow *row)
{
	uint32		number = free_place(table);

	table->added[number] = (AddedRow) {table->first_added[block], row->status};
	table->first_added[block] = number;
	table->added_count++;
	table->counts[row->status]++;
	if (row->status != POINT_VALID)
		return;
	table->points[number] = geonn_live_point(row);
	geonn_live_vectors(&table->points[number], 1, table->leaves, number);
}

/* ---- rows of the base ---- */

/*
 * Note whether the table has a row of the base.
 */
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

/*
 * Is a point of the base the same, to the bit, as that of a row that was read?
 */
static inline bool
is_same_point(const LivePoint *point, const LiveRow *row)
{
	LivePoint	other = geonn_live_point(row);

	return memcmp(point, &other, sizeof(other)) == 0;
}

/*
 * Compare the rows of a page, in the order of their line pointers, with those of the base.
 */
static void
compare_page(LiveTable *table, BlockNumber block, const LiveRow *rows, int count)
{
	const LiveBase *base = table->base;
	uint32		number;
	uint32		end;
	int			next = 0;

	geonn_live_base_rows(base, block, &number, &end);
	remove_added(table, block);
	for (; number < end; number++)
	{
		bool		same;

		while (next < count && rows[next].offset < base->offset[number])
			add_row(table, block, &rows[next++]);
		same = next < count && rows[next].offset == base->offset[number] &&
			is_same_point(&base->points[number], &rows[next]);
		set_masked(table, number, !same);
		next += same;
	}
	while (next < count)
		add_row(table, block, &rows[next++]);
}

/* ---- the look ---- */

static void
make_room_for_blocks(LiveTable *table, BlockNumber blocks)
{
	BlockNumber room = blocks + blocks / 8 + 64;

	if (blocks <= table->blocks_room)
		return;
	table->unsettled = enlarge(table, table->unsettled, room);
	table->first_added = enlarge(table, table->first_added, room * sizeof(uint32));
	table->buffer = enlarge(table, table->buffer, room * sizeof(Buffer));
	for (BlockNumber block = table->blocks_room; block < room; block++)
	{
		table->unsettled[block] = 0;
		table->first_added[block] = NONE;
		table->buffer[block] = InvalidBuffer;
	}
	table->blocks_room = room;
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
	memset(table->masked, 0, (head->rows / 64 + 1) * sizeof(uint64));
	table->masked_count = 0;
	for (uint32 i = 0; i < table->used; i++)
		geonn_live_no_point(table->leaves, i);
	table->used = 0;
	table->first_free = NONE;
	table->added_count = 0;
	make_room_for_blocks(table, head->blocks);
	for (BlockNumber block = 0; block < table->blocks_room; block++)
	{
		table->unsettled[block] = block < head->blocks && !table->base->settled[block];
		table->first_added[block] = NONE;
	}
}

LiveTable *
geonn_live_table_begin(LiveBase *base)
{
	LiveTable  *table = palloc0(sizeof(LiveTable));

	table->base = base;
	table->context = CurrentMemoryContext;
	table->masked = palloc_extended((base->head->rows / 64 + 1) * sizeof(uint64), MCXT_ALLOC_HUGE);
	begin_with_base(table);
	return table;
}

/*
 * The bytes of a snapshot's subtransactions.  Where they are too many for it, copies of it have none, whatever
 * subxcnt says (CopySnapshot).
 */
static Size
subtransaction_bytes(const SnapshotData *snapshot)
{
	return snapshot->suboverflowed ? 0 : snapshot->subxcnt * sizeof(TransactionId);
}

/*
 * Keep what decides which transactions and commands a snapshot sees.
 */
static void
remember_snapshot(LiveTable *table, Snapshot snapshot)
{
	Size		xids = snapshot->xcnt * sizeof(TransactionId);
	Size		subxids = subtransaction_bytes(snapshot);
	char	   *bytes = MemoryContextAlloc(table->context, sizeof(SnapshotData) + xids + subxids);

	if (table->snapshot != NULL)
		pfree(table->snapshot);
	table->snapshot = (Snapshot) bytes;
	*table->snapshot = *snapshot;
	table->snapshot->xip = (TransactionId *) (bytes + sizeof(SnapshotData));
	table->snapshot->subxip = (TransactionId *) (bytes + sizeof(SnapshotData) + xids);
	if (xids > 0)
		memcpy(table->snapshot->xip, snapshot->xip, xids);
	if (subxids > 0)
		memcpy(table->snapshot->subxip, snapshot->subxip, subxids);
}

static bool
is_among(TransactionId transaction, const TransactionId *transactions, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
	{
		if (transactions[i] == transaction)
			return true;
	}
	return false;
}

/*
 * Has all that had ended for the first snapshot ended for the next one?
 */
static bool
follows(const SnapshotData *next, const SnapshotData *first)
{
	if (TransactionIdPrecedes(next->xmax, first->xmax))
		return false;
	for (uint32 i = 0; i < next->xcnt; i++)
	{
		if (TransactionIdPrecedes(next->xip[i], first->xmax) &&
			!is_among(next->xip[i], first->xip, first->xcnt))
			return false;
	}
	return true;
}

static bool
sees_the_same(const SnapshotData *a, const SnapshotData *b)
{
	return a->xmin == b->xmin && a->xmax == b->xmax && a->xcnt == b->xcnt &&
		a->suboverflowed == b->suboverflowed && a->curcid == b->curcid &&
		subtransaction_bytes(a) == subtransaction_bytes(b) &&
		(a->xcnt == 0 || memcmp(a->xip, b->xip, a->xcnt * sizeof(TransactionId)) == 0) &&
		(subtransaction_bytes(a) == 0 || memcmp(a->subxip, b->subxip, subtransaction_bytes(a)) == 0);
}

/*
 * Have the processor fetch the head of a page, and what describes its buffer, if it is where it was.
 */
static inline void
fetch_ahead(const LiveTable *table, BlockNumber block)
{
	Buffer		buffer = block < table->blocks_room ? table->buffer[block] : InvalidBuffer;

	if (buffer == InvalidBuffer)
		return;
	__builtin_prefetch(GetBufferDescriptor(buffer - 1));
	__builtin_prefetch(BufferGetBlock(buffer));
}

/*
 * May a page, of which the visibility map does not tell enough, have changed since the position?
 */
static bool
has_changed(LiveTable *table, Relation relation, BlockNumber block)
{
	Buffer		buffer = table->buffer[block];
	XLogRecPtr	lsn;

	fetch_ahead(table, block + PAGES_AHEAD);
	if (buffer == InvalidBuffer ||
		!ReadRecentBuffer(relation->rd_locator, MAIN_FORKNUM, block, buffer))
		buffer = table->buffer[block] = ReadBuffer(relation, block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	lsn = BufferGetLSNAtomic(buffer);
	UnlockReleaseBuffer(buffer);
	return XLogRecPtrIsInvalid(lsn) || lsn > table->position;
}

static void
read_page(LiveTable *table, LivePageReader *reader, BlockNumber block)
{
	geonn_live_page_read(reader, block);
	table->unsettled[block] = 1;
	compare_page(table, block, reader->rows, reader->count);
	table->unsettled[block] = !reader->settled;
	table->pages_read++;
}

/*
 * Look at the pages that one page of the visibility map describes.  Returns false if rows that were added take more
 * than this many bytes.
 */
static bool
look_at_pages(LiveTable *table, LivePageReader *reader, BlockNumber first, BlockNumber count, uint64 most_bytes)
{
	MapPage		map;

	geonn_read_map(reader->relation, first, &map);

	/* bits that may have been set since the position tell nothing */
	if (XLogRecPtrIsInvalid(map.lsn) || map.lsn > table->position)
		memset(map.bits, 0, sizeof(map.bits));
	for (BlockNumber i = 0; i < count; i++)
	{
		BlockNumber block = first + i;

		if (!table->unsettled[block] && geonn_map_is_visible(&map, i))
			continue;
		CHECK_FOR_INTERRUPTS();
		if (table->unsettled[block] || has_changed(table, reader->relation, block))
			read_page(table, reader, block);
		if (geonn_live_table_bytes(table) > most_bytes)
			return false;
	}
	return true;
}

static bool
look_at_table(LiveTable *table, LivePageReader *reader, uint64 most_bytes)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(reader->relation);

	make_room_for_blocks(table, blocks);

	/* the table has new pages before one is read: a look that an error ends leaves rows of them */
	for (; table->blocks < blocks; table->blocks++)
		table->unsettled[table->blocks] = 1;
	for (BlockNumber first = 0; first < blocks; first += Min(BLOCKS_A_MAP, blocks - first))
	{
		if (!look_at_pages(table, reader, first, Min(BLOCKS_A_MAP, blocks - first), most_bytes))
			return false;
	}
	for (BlockNumber block = blocks; block < table->blocks; block++)
	{
		compare_page(table, block, NULL, 0);
		table->unsettled[block] = 0;
	}
	table->blocks = blocks;
	return true;
}

uint64
geonn_live_table_bytes(const LiveTable *table)
{
	return table->room * (sizeof(AddedRow) + sizeof(LivePoint) + sizeof(LiveLeaf) / LIVE_NODE);
}

bool
geonn_live_table_is_current(LiveTable *table, Snapshot snapshot)
{
	if (!table->complete || GetXLogInsertRecPtr() != table->position ||
		!sees_the_same(table->snapshot, snapshot))
		return false;
	table->pages_read = 0;
	return true;
}

bool
geonn_live_table_look(LiveTable *table, LivePageReader *reader, uint64 most_bytes)
{
	Snapshot	snapshot = reader->snapshot;
	XLogRecPtr	position = GetXLogInsertRecPtr();

	if (geonn_live_table_is_current(table, snapshot))
		return true;
	table->pages_read = 0;
	if (TransactionIdPrecedes(snapshot->xmin, (TransactionId) table->base->head->horizon))
		return false;
	if (table->snapshot != NULL && !follows(snapshot, table->snapshot))
		begin_with_base(table);
	table->complete = false;
	remember_snapshot(table, snapshot);
	if (!look_at_table(table, reader, most_bytes))
		return false;
	table->position = position;
	table->complete = true;
	return true;
}

/* ---- what was found ---- */

const uint64 *
geonn_live_table_counts(const LiveTable *table)
{
	return table->counts;
}

LiveDifference
geonn_live_table_difference(const LiveTable *table)
{
	return (LiveDifference)
	{
		.pages_read = table->pages_read,
		.masked = table->masked_count,
		.added = table->added_count,
		.compared = Max(table->used, table->masked_count)
	};
}

void
geonn_live_table_search(const LiveTable *table, LiveSearch *search)
{
	geonn_live_search_base(search, table->base, table->masked_count > 0 ? table->masked : NULL);
	geonn_live_search_leaves(search, table->leaves, table->points,
							 (table->used + LIVE_NODE - 1) / LIVE_NODE);
}
