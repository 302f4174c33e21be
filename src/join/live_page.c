/*
 * live_page.c
 *		The points on one page of a plain table, as a snapshot sees them.
 *
 * The lock of the page is held while its tuples' visibility is decided.  Their columns are read
 * afterwards, with the page pinned: nothing removes a tuple from a pinned page.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "base/value.h"
#include "join/live_page.h"
#include "points/reader.h"

/* ---- settled pages ---- */

/*
 * Has the transaction, if any, ended before the snapshot was taken?
 */
static bool
has_ended(TransactionId transaction, Snapshot snapshot, bool by_xmin)
{
	if (!TransactionIdIsNormal(transaction) || TransactionIdPrecedes(transaction, snapshot->xmin))
		return true;
	return !by_xmin && !TransactionIdIsCurrentTransactionId(transaction) &&
		!XidInMVCCSnapshot(transaction, snapshot);
}

static bool
is_settled_tuple(HeapTupleHeader tuple, Snapshot snapshot, bool by_xmin)
{
	uint16		mask = tuple->t_infomask;

	if (mask & HEAP_MOVED)
		return false;
	if (!HeapTupleHeaderXminFrozen(tuple) && !has_ended(HeapTupleHeaderGetRawXmin(tuple), snapshot, by_xmin))
		return false;
	return (mask & HEAP_XMAX_INVALID) || HEAP_XMAX_IS_LOCKED_ONLY(mask) ||
		has_ended(HeapTupleHeaderGetUpdateXid(tuple), snapshot, by_xmin);
}

bool
geonn_page_is_settled(Page page, Snapshot snapshot, bool by_xmin)
{
	OffsetNumber last;

	if (PageIsNew(page) || PageIsAllVisible(page))
		return true;
	last = PageGetMaxOffsetNumber(page);
	for (OffsetNumber number = FirstOffsetNumber; number <= last; number = OffsetNumberNext(number))
	{
		ItemId		item = PageGetItemId(page, number);

		if (ItemIdIsNormal(item) &&
			!is_settled_tuple((HeapTupleHeader) PageGetItem(page, item), snapshot, by_xmin))
			return false;
	}
	return true;
}

/* ---- rows ---- */

LivePageReader *
geonn_live_page_reader(const PointSource *source, const AttrNumber *attributes, Relation relation,
					   Snapshot snapshot)
{
	LivePageReader *reader = palloc(sizeof(LivePageReader));

	reader->relation = relation;
	reader->snapshot = snapshot;
	reader->source = source;
	reader->attributes = attributes;
	reader->by_xmin = false;
	reader->strategy = NULL;
	reader->context = AllocSetContextCreate(CurrentMemoryContext, "geonn live page",
											ALLOCSET_SMALL_SIZES);
	reader->values = palloc(source->query_columns * sizeof(Datum));
	reader->nulls = palloc(source->query_columns * sizeof(bool));
	return reader;
}

static HeapTupleData
tuple_at(const LivePageReader *reader, Page page, BlockNumber block, OffsetNumber number)
{
	ItemId		item = PageGetItemId(page, number);
	HeapTupleData tuple = {
		.t_len = ItemIdGetLength(item),
		.t_tableOid = RelationGetRelid(reader->relation),
		.t_data = (HeapTupleHeader) PageGetItem(page, item)
	};

	ItemPointerSet(&tuple.t_self, block, number);
	return tuple;
}

/*
 * Find the line pointers of the tuples that the snapshot sees; returns how many they are.
 */
static int
find_visible(LivePageReader *reader, Buffer buffer, BlockNumber block, OffsetNumber *visible)
{
	Page		page = BufferGetPage(buffer);
	bool		all_visible;
	OffsetNumber last;
	int			count = 0;

	reader->settled = geonn_page_is_settled(page, reader->snapshot, reader->by_xmin);
	if (PageIsNew(page))
		return 0;
	all_visible = PageIsAllVisible(page);
	last = PageGetMaxOffsetNumber(page);
	for (OffsetNumber number = FirstOffsetNumber; number <= last; number = OffsetNumberNext(number))
	{
		HeapTupleData tuple;

		if (!ItemIdIsNormal(PageGetItemId(page, number)))
			continue;
		tuple = tuple_at(reader, page, block, number);
		if (all_visible || HeapTupleSatisfiesVisibility(&tuple, reader->snapshot, buffer))
			visible[count++] = number;
	}
	return count;
}

/*
 * Read the columns of a tuple.
 */
static void
read_tuple(LivePageReader *reader, HeapTuple tuple, LiveRow *row)
{
	const PointSource *source = reader->source;
	const PointColumn *id = &source->columns[COLUMN_ID];
	TupleDesc	descriptor = RelationGetDescr(reader->relation);
	PointRow	point;
	int32		detail;

	for (int role = COLUMN_ID; role <= COLUMN_LONGITUDE; role++)
	{
		int			column = source->columns[role].attribute - 1;

		reader->values[column] = heap_getattr(tuple, reader->attributes[column], descriptor,
											  &reader->nulls[column]);
	}
	row->status = POINT_NULL;
	(void) geonn_read_coordinates(source, reader->values, reader->nulls, &point, &detail);
	if (reader->nulls[id->attribute - 1] || point.latitude_is_null || point.longitude_is_null)
		return;
	row->status = geonn_point_status(point.latitude, point.longitude);
	row->id = geonn_integer(id->base_type, reader->values[id->attribute - 1]);
	row->latitude = point.latitude;
	row->longitude = point.longitude;
}

void
geonn_live_page_read(LivePageReader *reader, BlockNumber block)
{
	OffsetNumber visible[MaxHeapTuplesPerPage];
	MemoryContext former;
	Buffer		buffer = ReadBufferExtended(reader->relation, MAIN_FORKNUM, block, RBM_NORMAL,
											reader->strategy);
	Page		page = BufferGetPage(buffer);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	reader->count = find_visible(reader, buffer, block, visible);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

	former = MemoryContextSwitchTo(reader->context);
	for (int i = 0; i < reader->count; i++)
	{
		HeapTupleData tuple = tuple_at(reader, page, block, visible[i]);

		reader->rows[i].offset = visible[i];
		read_tuple(reader, &tuple, &reader->rows[i]);
	}
	MemoryContextSwitchTo(former);
	MemoryContextReset(reader->context);
	ReleaseBuffer(buffer);
}
