/*
 * page_lists.c
 *		The rows of geonn_cache_page: which points each page of a side's leaves had in the last run.
 *
 * A row has the lists of some pages of a leaf that follow each other: their lengths, and then the
 * entries of all of them.  Pages with few points share a row, so that the lists of wide rows' pages do
 * not take a row each.  A row that is missing has empty lists.  Rows have the leaf's OID in the first
 * half of their numbers.  The last number with that OID has the leaf's state, and the last one without
 * an OID that of the side.
 *
 * A scan that joins another one begins in the middle of a table (synchronize_seqscans): the row with
 * which it begins may be its last one as well, and is written at the end.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/snapmgr.h"

#include "cache/block_table.h"
#include "cache/page_lists.h"

/* bytes of a row, about: a page of geonn_cache_page has three of them */
#define BYTES_A_ROW		2600
#define PAGES_A_ROW		64		/* at most */

/* the row of the state */
#define STATE_NUMBER	PG_UINT32_MAX

/* no row */
#define NO_ROW			PG_UINT32_MAX

/* the lists of a row */
typedef struct ListRow
{
	uint32		number;			/* the row's number, or NO_ROW */
	StringInfoData *lists;		/* [PAGES_A_ROW], of which pages_a_row are used */
} ListRow;

struct PageLists
{
	MemoryContext context;
	BlockTable *table;
	Oid			leaf;			/* the leaf that was chosen */
	uint32		pages_a_row;
	ListRow		row;			/* the row that is read or written */
	ListRow		first;			/* the row with which a scan began */
	bool		is_there;		/* the row that was read is in the table */
	StringInfoData former;		/* its contents as they were read; empty if it is not */
	StringInfoData bytes;		/* contents to write */
};

uint32
geonn_page_lists_width(uint32 rows_a_page)
{
	uint32		width = BYTES_A_ROW / (Max(rows_a_page, 1) * (uint32) sizeof(PageEntry));

	return Min(Max(width, 1), PAGES_A_ROW);
}

/*
 * The number of the leaf's row in the table.
 */
static int64
row_number(const PageLists *lists, uint32 number)
{
	return (int64) ((uint64) lists->leaf << 32 | number);
}

static void
raise_damaged(const PageLists *lists, uint32 number)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("row " INT64_FORMAT " of table geonn_cache_page is damaged", row_number(lists, number)),
			 errhint("A superuser can run TRUNCATE geonn_cache_page: the next refreshes fill it again.")));
}

static void
init_row(ListRow *row)
{
	row->number = NO_ROW;
	row->lists = palloc(PAGES_A_ROW * sizeof(StringInfoData));
	for (uint32 i = 0; i < PAGES_A_ROW; i++)
		initStringInfo(&row->lists[i]);
}

static void
empty_row(PageLists *lists, ListRow *row, uint32 number)
{
	row->number = number;
	for (uint32 i = 0; i < lists->pages_a_row; i++)
		resetStringInfo(&row->lists[i]);
}

PageLists *
geonn_page_lists_open(const GeonnCache *cache, CacheSide side, LOCKMODE lock, Snapshot snapshot)
{
	PageLists  *lists = palloc0(sizeof(PageLists));

	lists->context = CurrentMemoryContext;
	lists->table = geonn_block_table_open(cache, (int16) side, "geonn_cache_page", lock, snapshot);
	init_row(&lists->row);
	init_row(&lists->first);
	initStringInfo(&lists->former);
	initStringInfo(&lists->bytes);
	return lists;
}

void
geonn_page_lists_close(PageLists *lists)
{
	geonn_block_table_close(lists->table);
}

void
geonn_page_lists_choose(PageLists *lists, Oid table, uint32 pages_a_row)
{
	if (pages_a_row < 1 || pages_a_row > PAGES_A_ROW)
		raise_damaged(lists, STATE_NUMBER);
	lists->leaf = table;
	lists->pages_a_row = pages_a_row;
	lists->row.number = lists->first.number = NO_ROW;
}

/* ---- a row ---- */

/*
 * Read the lists of the row from its contents.
 */
static void
decode(PageLists *lists, uint32 number)
{
	const char *next = lists->former.data;
	Size		left = lists->former.len;
	const char *lengths = next;

	if (left < lists->pages_a_row * sizeof(uint16))
		raise_damaged(lists, number);
	next += lists->pages_a_row * sizeof(uint16);
	left -= lists->pages_a_row * sizeof(uint16);
	for (uint32 i = 0; i < lists->pages_a_row; i++)
	{
		uint16		count;

		memcpy(&count, lengths + i * sizeof(count), sizeof(count));
		if (left < count * sizeof(PageEntry))
			raise_damaged(lists, number);
		appendBinaryStringInfo(&lists->row.lists[i], next, (int) (count * sizeof(PageEntry)));
		next += count * sizeof(PageEntry);
		left -= count * sizeof(PageEntry);
	}
	if (left > 0)
		raise_damaged(lists, number);
}

static void
encode(PageLists *lists, const ListRow *row)
{
	StringInfo	bytes = &lists->bytes;

	resetStringInfo(bytes);
	for (uint32 i = 0; i < lists->pages_a_row; i++)
	{
		uint16		count = (uint16) ((Size) row->lists[i].len / sizeof(PageEntry));

		appendBinaryStringInfo(bytes, (char *) &count, sizeof(count));
	}
	for (uint32 i = 0; i < lists->pages_a_row; i++)
		appendBinaryStringInfo(bytes, row->lists[i].data, row->lists[i].len);
}

static void
read_row(PageLists *lists, uint32 number)
{
	const bytea *contents;

	if (lists->row.number == number)
		return;
	empty_row(lists, &lists->row, number);
	resetStringInfo(&lists->former);
	contents = geonn_block_table_find(lists->table, row_number(lists, number));
	lists->is_there = contents != NULL;
	if (contents == NULL)
		return;
	appendBinaryStringInfo(&lists->former, VARDATA_ANY(contents), (int) VARSIZE_ANY_EXHDR(contents));
	decode(lists, number);
}

static StringInfo
list_of(PageLists *lists, ListRow *row, BlockNumber page)
{
	return &row->lists[page % lists->pages_a_row];
}

const PageEntry *
geonn_page_lists_find(PageLists *lists, BlockNumber page, uint32 *count)
{
	StringInfo	list;

	read_row(lists, page / lists->pages_a_row);
	list = list_of(lists, &lists->row, page);
	*count = (uint32) ((Size) list->len / sizeof(PageEntry));
	return (const PageEntry *) list->data;
}

/* ---- all lists ---- */

static void
insert_row(PageLists *lists, const ListRow *row)
{
	if (row->number == NO_ROW)
		return;
	encode(lists, row);
	geonn_block_table_insert(lists->table, row_number(lists, row->number), lists->bytes.data,
							 lists->bytes.len);
}

void
geonn_page_lists_add(PageLists *lists, const PagePoint *point)
{
	uint32		number = point->page.number / lists->pages_a_row;
	ListRow    *row = &lists->row;

	if (lists->first.number == NO_ROW)
		empty_row(lists, &lists->first, number);
	if (lists->first.number == number)
		row = &lists->first;
	else if (row->number != number)
	{
		insert_row(lists, row);
		empty_row(lists, row, number);
	}
	appendBinaryStringInfo(list_of(lists, row, point->page.number), (const char *) &point->entry,
						   sizeof(PageEntry));
}

void
geonn_page_lists_end(PageLists *lists)
{
	insert_row(lists, &lists->row);
	insert_row(lists, &lists->first);
	lists->row.number = lists->first.number = NO_ROW;
}

/* ---- some lists ---- */

/*
 * Write the row that was read, if its lists have changed.
 */
static void
write_row(PageLists *lists)
{
	int64		number = row_number(lists, lists->row.number);

	encode(lists, &lists->row);
	if (lists->bytes.len == lists->former.len &&
		memcmp(lists->bytes.data, lists->former.data, lists->former.len) == 0)
		return;
	if (lists->is_there)
		geonn_block_table_update(lists->table, number, lists->bytes.data, lists->bytes.len);
	else
		geonn_block_table_insert(lists->table, number, lists->bytes.data, lists->bytes.len);
}

void
geonn_page_lists_replace(PageLists *lists, const BlockNumber *pages, uint32 page_count,
						 const PagePoint *points, uint64 point_count)
{
	for (uint32 i = 0; i < page_count; i++)
	{
		uint32		number = pages[i] / lists->pages_a_row;
		StringInfo	list;

		CHECK_FOR_INTERRUPTS();
		read_row(lists, number);
		list = list_of(lists, &lists->row, pages[i]);
		resetStringInfo(list);
		for (; point_count > 0 && points->page.number == pages[i]; points++, point_count--)
			appendBinaryStringInfo(list, (const char *) &points->entry, sizeof(PageEntry));
		if (i + 1 == page_count || pages[i + 1] / lists->pages_a_row != number)
			write_row(lists);
	}
	if (point_count > 0)
		elog(ERROR, "a point is on page %u of table %u, which was not to be read", points->page.number,
			 points->page.table);
}

/* ---- the state ---- */

const bytea *
geonn_page_lists_state(PageLists *lists)
{
	return geonn_block_table_find(lists->table, row_number(lists, STATE_NUMBER));
}

void
geonn_page_lists_set_state(PageLists *lists, const void *state, Size length, bool replaces)
{
	if (replaces)
		geonn_block_table_update(lists->table, row_number(lists, STATE_NUMBER), state, length);
	else
		geonn_block_table_insert(lists->table, row_number(lists, STATE_NUMBER), state, length);
}

void
geonn_page_lists_remove(PageLists *lists)
{
	geonn_block_table_delete(lists->table, row_number(lists, 0), row_number(lists, STATE_NUMBER));
}

void
geonn_page_lists_delete(const GeonnCache *cache, CacheSide side)
{
	BlockTable *table = geonn_block_table_open(cache, (int16) side, "geonn_cache_page",
											   RowExclusiveLock, GetTransactionSnapshot());

	geonn_block_table_delete_all(table);
	geonn_block_table_close(table);
}
