/*
 * page_points.c
 *		The points on one page of a plain table, as a snapshot sees them.
 *
 * The lock of the page is held while its tuples' visibility is decided.  Their columns are read
 * afterwards, with the page pinned: nothing removes a tuple from a pinned page.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "base/value.h"
#include "pages/page_points.h"
#include "points/reader.h"

/* Reading a table larger than this share of shared buffers reuses few buffers (as in heapam.c). */
#define BUFFERS_SHARE	4

BufferAccessStrategy
geonn_page_strategy(BlockNumber blocks)
{
	return blocks > (BlockNumber) (NBuffers / BUFFERS_SHARE) ? GetAccessStrategy(BAS_BULKREAD) : NULL;
}

/* ---- ids ---- */

bool
geonn_page_id_type(const PointSource *source, PageIdType *type)
{
	const PointColumn *id = &source->columns[COLUMN_ID];

	*type = (PageIdType)
	{
		.type = id->base_type,
		.collation = id->collation,
		.is_integer = geonn_integer_width(id->base_type) > 0,
		.by_value = true,
		.length = sizeof(int64)
	};
	if (type->is_integer)
		return true;
	if (!geonn_equal_is_same(id->base_type, id->collation))
		return false;
	get_typlenbyval(id->base_type, &type->length, &type->by_value);
	type->compare = &lookup_type_cache(id->base_type, TYPECACHE_CMP_PROC_FINFO)->cmp_proc_finfo;
	return OidIsValid(type->compare->fn_oid) && type->length >= -1;
}

int64
geonn_page_id_read(const PageIdType *type, Datum id)
{
	return type->is_integer ? geonn_integer(type->type, id) :
		DatumGetInt64(geonn_copy_value(id, type->by_value, type->length));
}

/* ---- settled pages ---- */

/* Return the transaction if it had not ended when the snapshot was taken; otherwise InvalidTransactionId. */
static TransactionId
unsettled(TransactionId transaction, Snapshot snapshot, bool by_xmin)
{
	if (!TransactionIdIsNormal(transaction) || TransactionIdPrecedes(transaction, snapshot->xmin))
		return InvalidTransactionId;
	if (by_xmin || TransactionIdIsCurrentTransactionId(transaction))
		return UNSETTLED_BY_MORE;
	return XidInMVCCSnapshot(transaction, snapshot) ? transaction : InvalidTransactionId;
}

static TransactionId
unsettled_by_both(TransactionId one, TransactionId other)
{
	if (one == InvalidTransactionId || one == other)
		return other;
	return other == InvalidTransactionId ? one : UNSETTLED_BY_MORE;
}

static TransactionId
tuple_unsettled_by(HeapTupleHeader tuple, Snapshot snapshot, bool by_xmin)
{
	uint16		mask = tuple->t_infomask;
	TransactionId result = InvalidTransactionId;

	if (mask & HEAP_MOVED)
		return UNSETTLED_BY_MORE;
	if (!HeapTupleHeaderXminFrozen(tuple))
		result = unsettled(HeapTupleHeaderGetRawXmin(tuple), snapshot, by_xmin);
	if ((mask & HEAP_XMAX_INVALID) == 0 && !HEAP_XMAX_IS_LOCKED_ONLY(mask))
		result = unsettled_by_both(result, unsettled(HeapTupleHeaderGetUpdateXid(tuple), snapshot, by_xmin));
	return result;
}

TransactionId
geonn_page_unsettled_by(Page page, Snapshot snapshot, bool by_xmin)
{
	TransactionId result = InvalidTransactionId;
	OffsetNumber last;

	if (PageIsNew(page) || PageIsAllVisible(page))
		return result;
	last = PageGetMaxOffsetNumber(page);
	for (OffsetNumber number = FirstOffsetNumber; number <= last && result != UNSETTLED_BY_MORE;
		 number = OffsetNumberNext(number))
	{
		ItemId		item = PageGetItemId(page, number);

		if (ItemIdIsNormal(item))
			result = unsettled_by_both(result, tuple_unsettled_by((HeapTupleHeader) PageGetItem(page, item),
																  snapshot, by_xmin));
	}
	return result;
}

/* ---- rows ---- */

PageReader *
geonn_page_reader(const PointSource *source, const AttrNumber *attributes, Relation relation, Snapshot snapshot)
{
	PageReader *reader = palloc(sizeof(PageReader));

	reader->relation = relation;
	reader->snapshot = snapshot;
	reader->source = source;
	reader->attributes = attributes;
	if (!geonn_page_id_type(source, &reader->id_type))
		elog(ERROR, "no base can have the ids of %s", source->title);
	reader->groups = NULL;
	reader->met_shape = false;
	reader->by_xmin = false;
	reader->srid = 0;
	reader->strategy = NULL;
	reader->context = AllocSetContextCreate(CurrentMemoryContext, "geonn live page",
											ALLOCSET_SMALL_SIZES);
	reader->values = palloc(source->query_columns * sizeof(Datum));
	reader->nulls = palloc(source->query_columns * sizeof(bool));
	reader->by = palloc(source->by_count * sizeof(Datum));
	reader->by_is_null = palloc(source->by_count * sizeof(bool));
	return reader;
}

static HeapTupleData
tuple_at(const PageReader *reader, Page page, BlockNumber block, OffsetNumber number)
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

/* Return whether the tuple with this header is the known row at its line pointer. */
static inline bool
is_known(HeapTupleHeader header, const KnownRows *known)
{
	TransactionId inserted_by = HeapTupleHeaderGetRawXmin(header);

	/* pg_surgery puts FrozenTransactionId into tuples, however new they are: such a tuple is not known. */
	return (header->t_infomask & HEAP_MOVED) == 0 && TransactionIdIsNormal(inserted_by) &&
		TransactionIdPrecedes(inserted_by, known->horizon);
}

/*
 * Find the line pointers of the tuples that the snapshot sees, and what makes the page unsettled.
 */
static void
find_visible(PageReader *reader, Buffer buffer, BlockNumber block, const KnownRows *known)
{
	Page		page = BufferGetPage(buffer);
	bool		all_visible;
	OffsetNumber last;
	int			next = 0;

	reader->unsettled_by = InvalidTransactionId;
	reader->count = 0;
	if (PageIsNew(page))
		return;
	all_visible = PageIsAllVisible(page);
	last = PageGetMaxOffsetNumber(page);
	for (OffsetNumber number = FirstOffsetNumber; number <= last; number = OffsetNumberNext(number))
	{
		PageRow    *row = &reader->rows[reader->count];
		HeapTupleData tuple;

		if (!ItemIdIsNormal(PageGetItemId(page, number)))
			continue;
		tuple = tuple_at(reader, page, block, number);
		while (next < known->count && known->offset[next] < number)
			next++;
		row->offset = number;
		row->known = next < known->count && known->offset[next] == number && is_known(tuple.t_data, known);
		if (all_visible || (row->known && (tuple.t_data->t_infomask & HEAP_XMAX_INVALID)))
		{
			reader->count++;
			continue;
		}
		reader->unsettled_by = unsettled_by_both(reader->unsettled_by,
												 tuple_unsettled_by(tuple.t_data, reader->snapshot, reader->by_xmin));
		reader->count += HeapTupleSatisfiesVisibility(&tuple, reader->snapshot, buffer);
	}
}

/*
 * Find the group of a tuple, by its columns to join by.
 */
static int32
read_group(PageReader *reader, HeapTuple tuple)
{
	const PointSource *source = reader->source;

	for (int i = 0; i < source->by_count; i++)
		reader->by[i] = heap_getattr(tuple, reader->attributes[source->by[i].attribute - 1],
									 RelationGetDescr(reader->relation), &reader->by_is_null[i]);
	return geonn_groups_add(reader->groups, reader->by, reader->by_is_null);
}

/*
 * Read the columns of a tuple.
 */
static void
read_tuple(PageReader *reader, HeapTuple tuple, PageRow *row)
{
	const PointSource *source = reader->source;
	int			id = source->columns[COLUMN_ID].attribute - 1;
	PointRow	point = {.values = reader->values,.nulls = reader->nulls};
	GeonnPointState state;
	int32		detail = 0;

	for (int role = COLUMN_ID; role <= COLUMN_POINT; role++)
	{
		int			column = source->columns[role].attribute - 1;

		/* A source has either a latitude and a longitude, or a point: skip a column that it does not have. */
		if (column >= 0)
			reader->values[column] = heap_getattr(tuple, reader->attributes[column],
												  RelationGetDescr(reader->relation), &reader->nulls[column]);
	}
	point.id = reader->values[id];
	point.id_is_null = reader->nulls[id];
	row->status = POINT_NULL;
	state = geonn_read_place(source, reader->values, reader->nulls, &point, &detail);
	if (unlikely(state == GEONN_POINT_NOT_A_POINT && source->may_have_shapes))
		reader->met_shape = true;
	else if (unlikely(state != GEONN_POINT_OK && state != GEONN_POINT_EMPTY))
		geonn_raise_wrong_point(source, state, detail, &point);
	if (point.id_is_null || point.latitude_is_null || point.longitude_is_null)
		return;
	row->status = geonn_point_status(point.latitude, point.longitude);
	row->id = geonn_page_id_read(&reader->id_type, point.id);
	row->latitude = point.latitude;
	row->longitude = point.longitude;
	if (reader->groups != NULL && row->status == POINT_VALID)
		row->group = read_group(reader, tuple);
}

void
geonn_page_read(PageReader *reader, BlockNumber block, const KnownRows *known)
{
	MemoryContext former;
	Buffer		buffer = ReadBufferExtended(reader->relation, MAIN_FORKNUM, block, RBM_NORMAL,
											reader->strategy);
	Page		page = BufferGetPage(buffer);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	find_visible(reader, buffer, block, known);
	reader->lsn = BufferGetLSNAtomic(buffer);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

	MemoryContextReset(reader->context);
	former = MemoryContextSwitchTo(reader->context);
	for (int i = 0; i < reader->count; i++)
	{
		HeapTupleData tuple;

		if (reader->rows[i].known)
			continue;
		tuple = tuple_at(reader, page, block, reader->rows[i].offset);
		read_tuple(reader, &tuple, &reader->rows[i]);
	}
	if (reader->source->transform != NULL)
		reader->srid = geonn_transform_srid(reader->source->transform);
	MemoryContextSwitchTo(former);
	ReleaseBuffer(buffer);
}
