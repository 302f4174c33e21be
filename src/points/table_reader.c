/*
 * table_reader.c
 *		Plain tables, read page by page.
 *
 * When the executor runs a query that selects columns of a table, it spends most
 * of its time in handing over rows one at a time.  So it only begins the query: it
 * checks privileges, takes locks and adds the quals of row-level security.  If the
 * plan is then a sequential scan without a qual, or an Append of such scans for
 * partitions, its tables are read here.  The executor runs any other plan,
 * whatever the reason is: a view, a policy, a foreign table, an index, another
 * extension.  The node of lateral.c has the scan of its outer rows read here likewise, as the executor would.
 *
 * The pages still come from the table's access method, by way of
 * table_scan_getnextslot(): it decides which tuples the snapshot sees, takes the
 * locks of SERIALIZABLE, divides blocks between processes and reads ahead.  A
 * heap's scan has found all visible tuples of a page when it returns the
 * first; the others are taken from its list, and its place in that list moves
 * on.  Columns before which all others have a fixed length are read where they
 * begin; where a NULL moves them, or the tuple is older than a column, the
 * slot deforms the tuple as far as needed.  Columns after the last one that is
 * wanted are never looked at, and no value is detoasted.
 *
 * A table of another access method, or under a snapshot other than MVCC, is read
 * row by row.  An access method counts as the heap if its routines are the heap's
 * own, whatever its name: only these make the scans that this file looks into.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/tupmacs.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "optimizer/cost.h"
#include "optimizer/paths.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "points/table_reader.h"

/* the reader prefetches the tuple that is this many rows ahead */
#define ROWS_AHEAD 16

typedef struct FixedColumn
{
	int			offset;			/* from the beginning of a tuple's data; of a varlena, where a short one begins */
	int			aligned;		/* of a varlena, where a long one begins */
	int16		length;
	bool		by_value;
} FixedColumn;

/* a table that several processes read */
typedef struct SharedTable
{
	Oid			relation;
	Size		scan;			/* offset of the table's ParallelTableScanDesc in SharedTables */
	Size		attributes;		/* offset of the table's attributes in SharedTables */
} SharedTable;

struct SharedTables
{
	int			columns;
	int			count;
	SharedTable tables[FLEXIBLE_ARRAY_MEMBER];
};

struct TableReader
{
	int			columns;		/* how many columns a row has */

	/* The tables to read; or shared tables, whose reading several processes divide */
	List	   *tables;			/* of PlainTable */
	Snapshot	snapshot;
	SharedTables *shared;
	int			number;			/* the number of the next table */
	const TablePages *pages;	/* [of each table] the pages to read; NULL: all pages of all tables */
	int			next_range;		/* index of the next range of the present table's pages */

	ScanState  *plan;			/* a plan's scan, with its relation and slot; NULL: the reader has its own */

	/* the present table; scan is NULL: none */
	TableScanDesc scan;
	const AttrNumber *attributes;
	TupleTableSlot *slot;
	int			last_attribute; /* the last attribute that a row needs */
	FixedColumn *fixed;			/* [columns], or NULL: offsets differ */
	bool		all_words;		/* all fixed columns are passed by value, eight bytes each */
	bool		by_page;
	HeapTupleData tuple;		/* the tuple that the slot deforms */

	int			first;			/* index of the first row among the page's visible tuples */
	Datum	   *values;			/* [MaxHeapTuplesPerPage][columns] */
	bool	   *nulls;			/* [MaxHeapTuplesPerPage][columns]; reading at fixed offsets leaves them false */
	bool		some_null;		/* some of nulls may be true */
};

/* ---- which queries are plain ---- */

static PlainTable *
plain_table(PlanState *state)
{
	ScanState  *scan = (ScanState *) state;
	PlainTable *table;
	ListCell   *cell;
	int			count = 0;

	if (!IsA(state, SeqScanState) || state->qual != NULL || scan->ss_currentRelation == NULL)
		return NULL;
	table = palloc(sizeof(PlainTable));
	table->table = RelationGetRelid(scan->ss_currentRelation);
	table->attributes = palloc(list_length(state->plan->targetlist) * sizeof(AttrNumber));
	foreach(cell, state->plan->targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);
		Var		   *column = (Var *) entry->expr;

		if (entry->resjunk || !IsA(column, Var) || column->varattno <= 0 ||
			column->varno != (int) ((Scan *) state->plan)->scanrelid)
			return NULL;
		table->attributes[count++] = column->varattno;
	}
	return table;
}

/* Return whether the node passes on its children's rows as they are. */
static bool
passes_rows_on(Plan *plan)
{
	ListCell   *cell;
	int			number = 0;

	foreach(cell, plan->targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);
		Var		   *column = (Var *) entry->expr;

		if (entry->resjunk || !IsA(column, Var) || column->varno != OUTER_VAR ||
			column->varattno != ++number)
			return false;
	}
	return true;
}

List *
geonn_plain_tables(const QueryDesc *description)
{
	PlanState  *state = description->planstate;
	AppendState *append = (AppendState *) state;
	PlainTable *table;
	List	   *tables = NIL;

	if (!IsA(state, AppendState))
	{
		table = plain_table(state);
		return table != NULL ? list_make1(table) : NIL;
	}
	if (!passes_rows_on(state->plan) || append->as_prune_state != NULL)
		return NIL;
	for (int i = 0; i < append->as_nplans; i++)
	{
		table = plain_table(append->appendplans[i]);
		if (table == NULL)
			return NIL;
		tables = lappend(tables, table);
	}
	return tables;
}

/* ---- a table ---- */

/*
 * Find the columns' offsets in tuples that have no NULLs before these columns, if the offsets are
 * the same in all such tuples.
 */
static void
find_offsets(TableReader *reader, TupleDesc descriptor)
{
	FixedColumn *fixed = palloc(reader->columns * sizeof(FixedColumn));
	int			offset = 0;
	int			found = 0;

	for (int number = 1; number <= reader->last_attribute; number++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, number - 1);
		int			aligned = att_align_nominal(offset, attribute->attalign);

		/* a short varlena is not aligned */
		if (attribute->attlen != -1)
			offset = aligned;
		for (int i = 0; i < reader->columns; i++)
		{
			if (reader->attributes[i] != number)
				continue;
			fixed[i].offset = offset;
			fixed[i].aligned = aligned;
			fixed[i].length = attribute->attlen;
			fixed[i].by_value = attribute->attbyval;
			found++;
		}
		if (attribute->attlen < 0)
			break;
		offset += attribute->attlen;
	}
	if (found < reader->columns)
		return;
	reader->fixed = fixed;
	reader->all_words = true;
	for (int i = 0; i < reader->columns; i++)
		reader->all_words &= fixed[i].by_value && fixed[i].length == sizeof(Datum);
}

static void
begin_table(TableReader *reader, const AttrNumber *attributes, TableScanDesc scan)
{
	Relation	relation = scan->rs_rd;

	Assert(reader->scan == NULL);
	reader->scan = scan;
	reader->attributes = attributes;
	reader->slot = reader->plan != NULL ? reader->plan->ss_ScanTupleSlot : table_slot_create(relation, NULL);
	reader->last_attribute = 0;
	for (int i = 0; i < reader->columns; i++)
	{
		Assert(attributes[i] > 0);
		reader->last_attribute = Max(reader->last_attribute, attributes[i]);
	}
	reader->fixed = NULL;
	find_offsets(reader, RelationGetDescr(relation));
	reader->by_page = relation->rd_tableam == GetHeapamTableAmRoutine() &&
		(scan->rs_flags & SO_ALLOW_PAGEMODE) != 0 && IsMVCCSnapshot(scan->rs_snapshot);
}

void
geonn_table_reader_end(TableReader *reader)
{
	Relation	relation;

	if (reader->scan == NULL)
		return;
	if (reader->plan != NULL)
	{
		ExecClearTuple(reader->slot);
		reader->scan = NULL;
		return;
	}
	relation = reader->scan->rs_rd;
	ExecDropSingleTupleTableSlot(reader->slot);
	table_endscan(reader->scan);
	reader->scan = NULL;
	table_close(relation, NoLock);
}

static void
set_range(const PageRange *range, ItemPointer first, ItemPointer last)
{
	Assert(range->first <= range->last);
	ItemPointerSet(first, range->first, FirstOffsetNumber);
	ItemPointerSet(last, range->last, MaxOffsetNumber);
}

/* Return the pages to read of the present table; NULL: all pages. */
static const TablePages *
present_pages(const TableReader *reader)
{
	return reader->pages == NULL ? NULL : &reader->pages[reader->number - 1];
}

/* Begin to scan a table; if only some pages are to be read, the first range of them. */
static TableScanDesc
begin_scan(TableReader *reader, Relation relation)
{
	const TablePages *pages = present_pages(reader);
	ItemPointerData first;
	ItemPointerData last;

	if (pages == NULL)
		return geonn_table_beginscan(relation, reader->snapshot);
	Assert(pages->count > 0);
	set_range(&pages->ranges[0], &first, &last);
	reader->next_range = 1;
	return geonn_table_beginscan_tidrange(relation, reader->snapshot, &first, &last);
}

/* Read the next row of the table, or of its ranges.  Returns false if none is left. */
static bool
next_slot(TableReader *reader)
{
	const TablePages *pages = present_pages(reader);
	ItemPointerData first;
	ItemPointerData last;

	if (pages == NULL)
		return table_scan_getnextslot(reader->scan, ForwardScanDirection, reader->slot);
	while (!table_scan_getnextslot_tidrange(reader->scan, ForwardScanDirection, reader->slot))
	{
		CHECK_FOR_INTERRUPTS();
		Assert(reader->next_range <= pages->count);
		if (reader->next_range == pages->count)
			return false;
		set_range(&pages->ranges[reader->next_range++], &first, &last);
		table_rescan_tidrange(reader->scan, &first, &last);
	}
	return true;
}

/* Return the number of the next table with pages to read. */
static int
next_number(TableReader *reader)
{
	int			number = reader->number++;

	while (reader->pages != NULL && number < list_length(reader->tables) &&
		   reader->pages[number].count == 0)
		number = reader->number++;
	return number;
}

/* Go on to the next table.  Returns false if none is left. */
static bool
next_table(TableReader *reader)
{
	int			number;

	geonn_table_reader_end(reader);
	number = next_number(reader);
	if (reader->shared != NULL && number < reader->shared->count)
	{
		const SharedTable *table = &reader->shared->tables[number];
		char	   *start = (char *) reader->shared;

		begin_table(reader, (AttrNumber *) (start + table->attributes),
					geonn_table_beginscan_parallel(table_open(table->relation, AccessShareLock),
												   (ParallelTableScanDesc) (start + table->scan)));
		return true;
	}
	if (reader->shared == NULL && number < list_length(reader->tables))
	{
		const PlainTable *table = list_nth(reader->tables, number);

		begin_table(reader, table->attributes,
					begin_scan(reader, table_open(table->table, NoLock)));
		return true;
	}
	return false;
}

/* ---- rows ---- */

/* Return whether this tuple has the columns at their fixed offsets. */
static inline bool
is_regular(const TableReader *reader, HeapTupleHeader tuple)
{
	int			last = reader->last_attribute;

	if (reader->fixed == NULL || HeapTupleHeaderGetNatts(tuple) < last)
		return false;
	if (!(tuple->t_infomask & HEAP_HASNULL))
		return true;
	for (int i = 0; i < last / 8; i++)
	{
		if (tuple->t_bits[i] != 0xFF)
			return false;
	}
	return (~tuple->t_bits[last / 8] & ((1 << last % 8) - 1)) == 0;
}

static void
take_slot(const TableReader *reader, Datum *values, bool *nulls)
{
	TupleTableSlot *slot = reader->slot;

	slot_getsomeattrs(slot, reader->last_attribute);
	for (int i = 0; i < reader->columns; i++)
	{
		values[i] = slot->tts_values[reader->attributes[i] - 1];
		nulls[i] = slot->tts_isnull[reader->attributes[i] - 1];
	}
}

static void
store_tuple(TableReader *reader, int index)
{
	HeapScanDesc scan = (HeapScanDesc) reader->scan;
	Page		page = BufferGetPage(scan->rs_cbuf);
	OffsetNumber number = scan->rs_vistuples[index];
	ItemId		item = PageGetItemId(page, number);

	Assert(index >= 0 && index < (int) scan->rs_ntuples && ItemIdIsNormal(item));
	reader->tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
	reader->tuple.t_len = ItemIdGetLength(item);
	reader->tuple.t_tableOid = RelationGetRelid(scan->rs_base.rs_rd);
	ItemPointerSet(&reader->tuple.t_self, BufferGetBlockNumber(scan->rs_cbuf), number);
	ExecStoreBufferHeapTuple(&reader->tuple, reader->slot, scan->rs_cbuf);
}

static inline void
take_regular(const TableReader *reader, HeapTupleHeader tuple, Datum *values)
{
	const char *data = (const char *) tuple + tuple->t_hoff;

	for (int i = 0; i < reader->columns; i++)
	{
		const FixedColumn *fixed = &reader->fixed[i];

		if (reader->all_words)
			values[i] = *(const Datum *) (data + fixed->offset);
		else if (fixed->length == -1)
			/* a byte of padding is 0, and the first one of a short varlena is not; without padding, both are one place */
			values[i] = PointerGetDatum(data + (VARATT_NOT_PAD_BYTE(data + fixed->offset) ? fixed->offset : fixed->aligned));
		else
			values[i] = fetch_att(data + fixed->offset, fixed->by_value, fixed->length);
	}
}

/* Prefetch a tuple: for an all-visible page, the scan has not yet touched the tuples themselves. */
static inline void
fetch_ahead(HeapScanDesc scan, Page page, int index)
{
	__builtin_prefetch(PageGetItem(page, PageGetItemId(page, scan->rs_vistuples[index])));
}

/*
 * Take the page's tuples, from the present one to the last.
 */
static int
take_page(TableReader *reader)
{
	HeapScanDesc scan = (HeapScanDesc) reader->scan;
	Page		page = BufferGetPage(scan->rs_cbuf);
	int			first = scan->rs_cindex;
	int			rows = (int) scan->rs_ntuples - first;

	Assert(rows > 0 && rows <= MaxHeapTuplesPerPage);
	for (int i = 0; i < Min(rows, ROWS_AHEAD); i++)
		fetch_ahead(scan, page, first + i);
	if (reader->some_null)
		memset(reader->nulls, false, MaxHeapTuplesPerPage * reader->columns * sizeof(bool));
	reader->some_null = false;
	for (int i = 0; i < rows; i++)
	{
		ItemId		item = PageGetItemId(page, scan->rs_vistuples[first + i]);
		HeapTupleHeader tuple = (HeapTupleHeader) PageGetItem(page, item);
		Datum	   *values = reader->values + i * reader->columns;

		if (i + ROWS_AHEAD < rows)
			fetch_ahead(scan, page, first + i + ROWS_AHEAD);
		if (likely(is_regular(reader, tuple)))
		{
			take_regular(reader, tuple, values);
			continue;
		}
		reader->some_null = true;
		store_tuple(reader, first + i);
		take_slot(reader, values, reader->nulls + i * reader->columns);
	}
	reader->first = first;
	scan->rs_cindex = scan->rs_ntuples - 1;
	/* Count all rows of the page in the statistics: the scan itself counts only one. */
	if (pgstat_should_count_relation(scan->rs_base.rs_rd))
		geonn_rows_read(scan->rs_base.rs_rd) += rows - 1;
	return rows;
}

static TableReader *
create_reader(int columns)
{
	TableReader *reader = palloc0(sizeof(TableReader));

	reader->columns = columns;
	reader->values = palloc(MaxHeapTuplesPerPage * columns * sizeof(Datum));
	reader->nulls = palloc0(MaxHeapTuplesPerPage * columns * sizeof(bool));
	return reader;
}

TableReader *
geonn_table_reader_begin(List *tables, int columns, Snapshot snapshot)
{
	TableReader *reader = create_reader(columns);

	reader->tables = tables;
	reader->snapshot = snapshot;
	return reader;
}

void
geonn_table_reader_limit(TableReader *reader, const TablePages *pages)
{
	Assert(reader->shared == NULL && reader->number == 0);
	reader->pages = pages;
}

TableReader *
geonn_table_reader_attach(SharedTables *shared)
{
	TableReader *reader = create_reader(shared->columns);

	reader->shared = shared;
	return reader;
}

/*
 * Takes over the plan's scan: below a Gather, it has begun from shared memory.  If the executor has put off a rescan
 * until the next row, do it here.
 */
TableReader *
geonn_table_reader_of_plan(PlanState *plan, const AttrNumber *numbers, int columns)
{
	const PlainTable *table = plan->state->es_epq_active != NULL ? NULL : plain_table(plan);
	ScanState  *scan = (ScanState *) plan;
	AttrNumber *attributes;
	TableReader *reader;
	MemoryContext former;

	if (table == NULL)
		return NULL;
	/* Both ExecReScan() and the begin of the scan may allocate memory that must live as long as the scan. */
	former = MemoryContextSwitchTo(plan->state->es_query_cxt);
	if (plan->chgParam != NULL)
		ExecReScan(plan);
	if (scan->ss_currentScanDesc == NULL)
		scan->ss_currentScanDesc = geonn_table_beginscan_of_plan(scan);
	MemoryContextSwitchTo(former);
	attributes = palloc(columns * sizeof(AttrNumber));
	for (int i = 0; i < columns; i++)
		attributes[i] = table->attributes[numbers[i] - 1];
	reader = create_reader(columns);
	reader->plan = scan;
	begin_table(reader, attributes, scan->ss_currentScanDesc);
	return reader;
}

int
geonn_table_reader_next(TableReader *reader, Datum **values, bool **nulls)
{
	*values = reader->values;
	*nulls = reader->nulls;
	while (reader->scan == NULL || !next_slot(reader))
	{
		if (!next_table(reader))
			return 0;
	}
	if (reader->by_page)
		return take_page(reader);
	reader->some_null = true;
	take_slot(reader, reader->values, reader->nulls);
	return 1;
}

Oid
geonn_table_reader_table(const TableReader *reader)
{
	return RelationGetRelid(reader->scan->rs_rd);
}

BlockNumber
geonn_table_reader_block(const TableReader *reader)
{
	Assert(reader->scan != NULL && reader->plan == NULL);
	return ItemPointerGetBlockNumberNoCheck(&reader->slot->tts_tid);
}

ItemPointerData
geonn_table_reader_tid(const TableReader *reader, int row)
{
	HeapScanDesc scan = (HeapScanDesc) reader->scan;
	ItemPointerData tid = reader->slot->tts_tid;

	Assert(reader->scan != NULL && (reader->by_page || row == 0));
	if (reader->by_page)
		ItemPointerSet(&tid, BufferGetBlockNumber(scan->rs_cbuf),
					   scan->rs_vistuples[reader->first + row]);
	return tid;
}

TupleTableSlot *
geonn_table_reader_slot(TableReader *reader, int row)
{
	Assert(reader->scan != NULL && (reader->by_page || row == 0));
	if (reader->by_page)
		store_tuple(reader, reader->first + row);
	return reader->slot;
}

/* ---- shared reading ---- */

int
geonn_table_workers(List *tables)
{
	RelOptInfo *all = makeNode(RelOptInfo);
	double		pages = 0;
	ListCell   *cell;

	if (tables == NIL || max_parallel_workers_per_gather == 0)
		return 0;
	all->reloptkind = RELOPT_BASEREL;
	all->rel_parallel_workers = -1;
	foreach(cell, tables)
	{
		Oid			oid = ((PlainTable *) lfirst(cell))->table;
		Relation	table;

		/* temporary tables are in this process's memory */
		if (get_rel_persistence(oid) == RELPERSISTENCE_TEMP)
			return 0;
		table = table_open(oid, NoLock);
		pages += RelationGetNumberOfBlocks(table);
		if (list_length(tables) == 1)
			all->rel_parallel_workers = RelationGetParallelWorkers(table, -1);
		table_close(table, NoLock);
	}
	return compute_parallel_worker(all, pages, -1, max_parallel_workers_per_gather);
}

Size
geonn_share_tables(SharedTables *shared, List *tables, int columns, Snapshot snapshot)
{
	Size		end = MAXALIGN(offsetof(SharedTables, tables) + list_length(tables) * sizeof(SharedTable));
	ListCell   *cell;

	if (shared != NULL)
	{
		shared->columns = columns;
		shared->count = list_length(tables);
	}
	foreach(cell, tables)
	{
		const PlainTable *plain = lfirst(cell);
		Relation	relation = table_open(plain->table, NoLock);
		SharedTable table = {
			.relation = plain->table,
			.attributes = end,
			.scan = end + MAXALIGN(columns * sizeof(AttrNumber))
		};

		end = add_size(table.scan, MAXALIGN(table_parallelscan_estimate(relation, snapshot)));
		if (shared != NULL)
		{
			shared->tables[foreach_current_index(cell)] = table;
			memcpy((char *) shared + table.attributes, plain->attributes, columns * sizeof(AttrNumber));
			table_parallelscan_initialize(relation, (ParallelTableScanDesc) ((char *) shared + table.scan),
										  snapshot);
		}
		table_close(relation, NoLock);
	}
	Assert(end == MAXALIGN(end));
	return end;
}
