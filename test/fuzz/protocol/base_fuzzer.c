/*
 * base_fuzzer.c
 *		Bases of a table with damaged bytes, under libFuzzer.
 *
 * A backend searches a base that another process has made (live/live_base.c, live_search.c), and compares the table's
 * pages with it (live_table.c).  These run outside of PostgreSQL, on backend_shim.c, with a table of this file's own.
 *
 * A script says of which type the ids are, what rows the table has, how they change, and which bytes of the base and of its
 * ids are damaged, or that none are.  First a base is made as a backend makes it; its bytes, damaged or not, are what a
 * second backend attaches to, which looks at the table and searches it.  Whatever the bytes are, this comes to its end or
 * to an error.  If none is damaged, each search finds the rows that comparing all of them finds.
 *
 * rooms: live pages
 */
#include "postgres.h"

#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "access/heapam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "backend_shim.h"
#include "base/compat.h"
#include "pages/kept_dataset.h"
#include "live/live_table.h"
#include "steps.h"

#if PG_VERSION_NUM < 160000
#define RelFileLocator RelFileNode
#endif

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PAGES_MOST		12
#define ROWS_A_PAGE		40
#define ROWS_MOST		(PAGES_MOST * ROWS_A_PAGE)
#define NEIGHBOURS_MOST	5
#define SEARCHES		3
#define GROUPS			3

/* ---- the script: numbers, and zeros after its end ---- */

static struct
{
	const uint8 *data;
	size_t		size;
}			script;

static uint32
take(int bytes)
{
	uint32		number = 0;

	for (; bytes > 0 && script.size > 0; bytes--, script.size--)
		number = number << 8 | *script.data++;
	return number;
}

/* ---- the table ---- */

typedef struct HeapPage
{
	XLogRecPtr	lsn;			/* 0: the page is new */
	bool		settled;
	int			count;
	PageRow		rows[ROWS_A_PAGE];
} HeapPage;

static struct
{
	XLogRecPtr	end;			/* of the WAL */
	BlockNumber blocks;
	HeapPage	pages[PAGES_MOST];
}			heap;

static const PageIdType integers = {.type = INT8OID,.is_integer = true,.by_value = true,.length = sizeof(int64)};
static PageIdType id_type;
static GeonnGroups *groups;		/* not NULL: rows are in some of GROUPS, or in none */
static SnapshotData snapshot;
static RelationData relation;
static BufferDescPadded descriptors[PAGES_MOST];
static char blocks_of_buffers[PAGES_MOST * BLCKSZ];

/*
 * An id as a reader of pages has it: an integer, or a text whose first byte is the number, of another length each.
 */
static int64
read_id(uint32 number)
{
	static struct
	{
		int32		length;
		uint8		bytes[12];
	}			texts[256];

	if (id_type.is_integer)
		return number;
	SET_VARSIZE(&texts[number], VARHDRSZ + 1 + number % 12);
	texts[number].bytes[0] = (uint8) number;
	return (int64) (intptr_t) &texts[number];
}

static int32
make_group(void)
{
	return groups != NULL ? (int32) (take(1) % (GROUPS + 1)) - 1 : 0;
}

static PageRow
make_row(OffsetNumber offset)
{
	static const double degrees[] = {0, 1e-9, 45, 60, 89.9999999, 90, -90, 12.5};
	uint32		kind = take(1);
	PageRow		row = {
		.offset = offset,
		.status = kind % 16 == 15 ? POINT_NULL : POINT_VALID,
		.id = read_id(take(1)),
		.latitude = kind & 16 ? degrees[take(1) % lengthof(degrees)] : (int16) take(2) / 32768.0 * 90,
		.longitude = kind & 32 ? 2 * degrees[take(1) % lengthof(degrees)] : (int16) take(2) / 32768.0 * 180
	};

	row.group = make_group();
	return row;
}

/*
 * Fill a page anew, as transactions do that are still in progress, or have ended.  Where the page is unsettled, its
 * rows may be others because a transaction has ended, which changes no LSN.
 */
static void
change_page(BlockNumber block)
{
	HeapPage   *page = &heap.pages[block];
	uint32		kind = take(1);

	if (page->lsn == InvalidXLogRecPtr || page->settled || take(1) % 2 == 1)
		page->lsn = heap.end += 8;
	PageSetLSN((Page) (blocks_of_buffers + block * BLCKSZ), page->lsn);
	page->settled = kind % 4 != 0;
	/* the same rows may come to other groups */
	for (int i = 0; groups != NULL && kind / 4 % 4 == 3 && i < page->count; i++)
		page->rows[i].group = make_group();
	if (groups != NULL && kind / 4 % 4 == 3)
		return;
	page->count = 0;
	for (int i = 0; i < (int) (kind / 4 % ROWS_A_PAGE); i++)
		page->rows[page->count++] = make_row(1 + 2 * i + kind % 3);
}

static void
change_table(void)
{
	BlockNumber blocks = take(1) % (PAGES_MOST + 1);

	for (BlockNumber block = blocks; block < heap.blocks; block++)
		heap.pages[block] = (HeapPage) {.settled = true};
	heap.blocks = blocks;
	for (uint32 changes = take(1) % 16; changes > 0 && blocks > 0; changes--)
		change_page(take(1) % blocks);
}

/* ---- what PostgreSQL, and the reader of pages, would say of it ---- */

BufferDescPadded *BufferDescriptors = descriptors;
char	   *BufferBlocks = blocks_of_buffers;
Block	   *LocalBufferBlockPointers;

/* what assertions ask of a buffer's number */
int			NBuffers = lengthof(descriptors);
int			NLocBuffer = 0;

/* the own transaction has a number: whether a look sees the same as the last one, the end of the WAL decides */
TransactionId
GetTopTransactionIdIfAny(void)
{
	return FirstNormalTransactionId;
}

XLogRecPtr
GetXLogInsertRecPtr(void)
{
	return heap.end;
}

FullTransactionId
ReadNextFullTransactionId(void)
{
	return FullTransactionIdFromEpochAndXid(0, snapshot.xmax);
}

bool
TransactionIdPrecedes(TransactionId a, TransactionId b)
{
	return (int32) (a - b) < 0;
}

BlockNumber
RelationGetNumberOfBlocksInFork(Relation table, ForkNumber fork)
{
	(void) table;
	(void) fork;
	return heap.blocks;
}

Buffer
ReadBuffer(Relation table, BlockNumber block)
{
	(void) table;
	return (Buffer) block + 1;
}

bool
ReadRecentBuffer(RelFileLocator locator, ForkNumber fork, BlockNumber block, Buffer recent)
{
	(void) locator;
	(void) fork;
	return recent == (Buffer) block + 1;
}

void
LockBuffer(Buffer buffer, int mode)
{
	(void) buffer;
	(void) mode;
}

uint32
LockBufHdr(BufferDesc *descriptor)
{
	descriptor->tag.blockNum = (BlockNumber) ((BufferDescPadded *) descriptor - descriptors);
	return BM_VALID;
}

XLogRecPtr
BufferGetLSNAtomic(Buffer buffer)
{
	return heap.pages[buffer - 1].lsn;
}

void
UnlockReleaseBuffer(Buffer buffer)
{
	(void) buffer;
}

/* values are texts */
Size
datumGetSize(Datum value, bool by_value, int length)
{
	(void) by_value;
	(void) length;
	return VARSIZE_ANY(DatumGetPointer(value));
}

Datum
datumCopy(Datum value, bool by_value, int length)
{
	Size		size = datumGetSize(value, by_value, length);

	return PointerGetDatum(memcpy(palloc(size), DatumGetPointer(value), size));
}

bool
datumIsEqual(Datum a, Datum b, bool by_value, int length)
{
	Size		size = datumGetSize(a, by_value, length);

	return size == datumGetSize(b, by_value, length) && memcmp(DatumGetPointer(a), DatumGetPointer(b), size) == 0;
}

Size
GetMemoryChunkSpace(void *pointer)
{
	return datumGetSize(PointerGetDatum(pointer), false, -1);
}

BufferAccessStrategy
geonn_page_strategy(BlockNumber blocks)
{
	(void) blocks;
	return NULL;
}

/* no bit is set, so that each page's LSN is asked for */
void
geonn_read_map(Relation table, BlockNumber first, MapPage *copy)
{
	(void) table;
	(void) first;
	memset(copy, 0, sizeof(*copy));
}

uint32
geonn_groups_count(const GeonnGroups *of_rows)
{
	(void) of_rows;
	return GROUPS;
}

uint64
geonn_groups_bytes(const GeonnGroups *of_rows)
{
	(void) of_rows;
	return 0;
}

/* the horizon is never reached, so that no row is known */
void
geonn_page_read(PageReader *reader, BlockNumber block, const KnownRows *known)
{
	const HeapPage *page = &heap.pages[block];

	(void) known;
	reader->lsn = page->lsn;
	reader->unsettled_by = page->settled ? InvalidTransactionId : UNSETTLED_BY_MORE;
	reader->count = page->count;
	memcpy(reader->rows, page->rows, page->count * sizeof(PageRow));
}

/* ---- what has to hold ---- */

static bool
is_found_before(const LiveNeighbour *a, const LiveNeighbour *b)
{
	return a->distance < b->distance || (a->distance == b->distance && a->id < b->id);
}

/*
 * The number of which an id was made.
 */
static int64
number_of(Datum id)
{
	if (id_type.is_integer)
		return DatumGetInt64(id);
	return VARSIZE_ANY_EXHDR(DatumGetPointer(id)) == 0 ? 0 : *(uint8 *) VARDATA_ANY(DatumGetPointer(id));
}

/*
 * The nearest points of a group among all rows of the table, by comparing each of them.
 */
static uint32
compare_all(double latitude, double longitude, int32 group, uint32 k, double max_distance, LiveNeighbour *found)
{
	uint32		count = 0;

	for (BlockNumber block = 0; block < heap.blocks; block++)
	{
		for (int i = 0; i < heap.pages[block].count; i++)
		{
			const PageRow *row = &heap.pages[block].rows[i];
			LiveNeighbour added = {.id = number_of(Int64GetDatum(row->id))};
			uint32		place;

			if (row->status != POINT_VALID || (group != LIVE_ALL_GROUPS && row->group != group))
				continue;
			added.distance = geonn_distance_degrees(latitude, longitude, row->latitude, row->longitude);
			if (added.distance > max_distance)
				continue;
			for (place = count; place > 0 && is_found_before(&added, &found[place - 1]); place--)
			{
				if (place < k)
					found[place] = found[place - 1];
			}
			if (place < k)
				found[place] = added;
			count = Min(count + 1, k);
		}
	}
	return count;
}

static void
search_table(const LiveTable *table, bool is_sound)
{
	PageRow		from = make_row(1);
	uint32		kind = take(1);
	int32		group = groups != NULL ? (int32) (take(1) % (GROUPS + 1)) : LIVE_ALL_GROUPS;
	const GeonnQuestion question = {
		.k = kind % (NEIGHBOURS_MOST + 1),	/* 0: all within the distance */
		.ties = (kind & 64) != 0,
		.max_distance = kind & 128 ? take(2) * 400.0 : INFINITY
	};
	LiveNeighbour found[NEIGHBOURS_MOST];
	static LiveNeighbour expected[ROWS_MOST];
	const LiveIds *ids = geonn_live_table_ids(table);
	LiveSearch	search;
	LiveNeighbour former;
	uint32		count;
	uint32		nearest;

	geonn_live_search_begin(&search, &question, from.latitude, from.longitude, group,
							id_type.is_integer ? NULL : ids, found);
	geonn_live_table_search(table, &search);
	count = geonn_live_search_end(&search);
	if (search.count > question.k || (question.k > 0 && !question.ties && count > question.k))
		steps_broken("no more neighbours are found than were asked for");
	nearest = is_sound ? compare_all(from.latitude, from.longitude, group,
									 question.ties || question.k == 0 ? ROWS_MOST : question.k,
									 question.max_distance, expected) : 0;
	while (question.k > 0 && question.ties && nearest > question.k &&
		   expected[nearest - 1].distance > expected[question.k - 1].distance)
		nearest--;
	if (is_sound && count != nearest)
		steps_broken("as many neighbours are found as there are");
	for (uint32 i = 0; i < count; i++)
	{
		LiveNeighbour one = *geonn_live_search_neighbour(&search, i);

		one.id = number_of(geonn_live_id_value(ids, one.id));
		if (!(one.distance >= 0 && one.distance <= question.max_distance))
			steps_broken("neighbours are within the distance that was asked for");
		if (i > 0 && is_found_before(&one, &former))
			steps_broken("neighbours are in order");
		if (is_sound && (one.distance != expected[i].distance || one.id != expected[i].id))
			steps_broken("the neighbours are the nearest rows");
		former = one;
	}
}

/*
 * A descriptor of a sealed file with these bytes, some of which the script damages; then it sets *damaged.  The last
 * ones, a head of this length, have a share of their own, since they say where all else is.
 */
static int
damaged_file(const MemoryFile *file, Size head, bool *damaged)
{
	Size		length = geonn_memory_file_length(file);
	uint8	   *bytes = palloc(length + 64);
	int			descriptor = memfd_create("damaged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (length > 0)
		memcpy(bytes, geonn_memory_file_bytes(file, 0, length), length);
	memset(bytes + length, 0, 64);
	for (uint32 changes = take(1) % 16; changes > 0 && length > 0; changes--)
	{
		uint32		kind = take(1);
		Size		place = kind & 1 && head > 0 ? length - head + take(1) % head : take(3) % length;
		uint32		number = take(4);

		memcpy(bytes + place, &number, Min(1 + kind / 2 % 4, length - place));
		*damaged = true;
	}
	if (take(1) % 64 == 63)
	{
		length = take(1) % 2 == 1 ? length + take(1) % 64 : take(3) % Max(length, 1);
		*damaged = true;
	}
	if (write(descriptor, bytes, length) != (ssize_t) length ||
		fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		abort();
	return descriptor;
}

static PageReader *
make_reader(void)
{
	PageReader *reader = palloc0(sizeof(PageReader));

	reader->relation = &relation;
	reader->snapshot = &snapshot;
	reader->id_type = id_type;
	reader->groups = groups;
	return reader;
}

static void
run_script(void *argument)
{
	PageReader *reader;
	MemoryFile *values = NULL;
	bool		damaged = false;
	uint64		bytes;
	LiveBase   *base;
	LiveTable  *table;

	(void) argument;
	groups = take(1) % 2 == 1 ? (GeonnGroups *) &id_type : NULL;
	id_type = integers;
	if (take(1) % 2 == 1)
		id_type = (PageIdType)
		{
			.type = TEXTOID,
			.length = -1,
			.compare = &lookup_type_cache(TEXTOID, TYPECACHE_CMP_PROC_FINFO)->cmp_proc_finfo
		};
	reader = make_reader();
	change_table();
	heap.end += 8;
	base = geonn_live_base_make(reader, PG_UINT64_MAX, &bytes);
	if (bytes != geonn_memory_file_length(base->file) + (base->values != NULL ? geonn_memory_file_length(base->values) : 0))
		steps_broken("a base has as many bytes as it is said to have");
	if (base->values != NULL)
		values = geonn_memory_file_attach("ids", damaged_file(base->values, 0, &damaged));
	base = geonn_live_base_open(geonn_memory_file_attach("a base", damaged_file(base->file, sizeof(LiveBaseHead), &damaged)),
								values);
	if (base == NULL)
	{
		if (!damaged)
			steps_broken("a base that was made can be opened");
		return;
	}
	if ((base->head->starts > 0) != (groups != NULL))
	{
		if (!damaged)
			steps_broken("a base has groups if the rows have");
		return;
	}
	table = geonn_live_table_begin(base, &id_type, groups);
	for (int looks = 1 + take(1) % 3; looks > 0; looks--)
	{
		bool		sound = geonn_live_table_look(table, reader, PG_UINT64_MAX, PG_UINT64_MAX) == LIVE_LOOK_COMPLETE && !damaged;

		for (int i = 0; i < SEARCHES; i++)
			search_table(table, sound);
		change_table();
		snapshot.curcid++;
		heap.end += 8;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	script.data = data;
	script.size = size;
	memset(&heap, 0, sizeof(heap));
	heap.end = 1000;
	snapshot = (SnapshotData) {.snapshot_type = SNAPSHOT_MVCC,.xmin = 100,.xmax = 100};
	if (!backend_run(run_script, NULL) && backend_error()[0] == '\0')
		steps_broken("an error says what it is");
	return 0;
}
