/*
 * live_base.c
 *		The base of a table's references: a memory file with its points in the order of an index, and with
 *		each one's page.
 *
 * One process reads the table, makes the file and leaves it with a dataset of the engine, which keeps it for others.
 * The file has a head, and behind it the columns of LiveBase, in the order in which lay_out() has them; their
 * lengths follow from three numbers of the head.  The tree has no pointers: the children of node n are
 * the nodes 16 n to 16 n + 15 of the level below.  So a reader that has compared the file's length with
 * these numbers can walk the tree without reading outside of it, whatever the file says.
 */
#include "postgres.h"

#include <math.h>

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "join/live_base.h"

#define FORMAT	UINT64CONST(0x3365736162766c67)	/* "glvbase3" */

/* as geonn_memory_file_append aligns */
#define ALIGNMENT	8

/* a key has this many bits of each component of a unit vector, and is sorted by digits of so many */
#define KEY_BITS	21
#define DIGIT_BITS	9
#define DIGITS		(1 << DIGIT_BITS)

/* ---- the layout ---- */

/*
 * Set the columns of a base in the file of a base with this head, or, where bytes is NULL, none of them; returns the
 * file's length.
 */
static uint64
lay_out(LiveBase *base, const LiveBaseHead *head, const char *bytes)
{
	uint64		length = 0;
	uint32		nodes = head->points / LIVE_NODE + (head->points % LIVE_NODE != 0);

#define PLACE(column, count) \
	do { \
		if (bytes != NULL) \
			(column) = (const void *) (bytes + length); \
		length += TYPEALIGN64(ALIGNMENT, (uint64) (count) * sizeof(*(column))); \
	} while (0)

	PLACE(base->head, 1);
	PLACE(base->points, head->rows);
	PLACE(base->offset, head->rows);
	PLACE(base->leaves, nodes);
	PLACE(base->row, head->points);
	base->nodes[0] = nodes;
	for (base->levels = 0; nodes > 1;)
	{
		nodes = nodes / LIVE_NODE + (nodes % LIVE_NODE != 0);
		base->nodes[++base->levels] = nodes;
		PLACE(base->boxes[base->levels], nodes);
	}
	PLACE(base->first_row, (uint64) head->blocks + 1);
	PLACE(base->lsn, head->blocks);
	PLACE(base->settled, head->blocks);
#undef PLACE
	return length;
}

LiveBase *
geonn_live_base_open(MemoryFile *file)
{
	LiveBase   *base = palloc0(sizeof(LiveBase));
	const LiveBaseHead *head = geonn_memory_file_bytes(file, 0, sizeof(LiveBaseHead));

	base->file = file;
	if (head == NULL || head->format != FORMAT || head->points > head->rows ||
		lay_out(base, head, (const char *) head) != geonn_memory_file_length(file))
		return NULL;
	return base;
}

/* ---- reading the table ---- */

typedef struct Maker
{
	LiveBaseHead head;
	uint64		most_bytes;

	/* as in LiveBase */
	LivePoint  *points;
	OffsetNumber *offset;
	uint32	   *first_row;		/* [head.blocks + 1] */
	XLogRecPtr *lsn;			/* [head.blocks] */
	uint8	   *settled;		/* [head.blocks] */
	uint32		room;			/* how many rows fit into the arrays */
} Maker;

static void *
allocate(uint64 count, Size size)
{
	return palloc_extended(Max(count, 1) * size, MCXT_ALLOC_HUGE);
}

/*
 * Make room for one more page.  Returns false if the base becomes too large.
 */
static bool
make_room(Maker *maker)
{
	LiveBase	unplaced = {0};

	if (maker->room - maker->head.rows >= MaxHeapTuplesPerPage)
		return true;
	if (lay_out(&unplaced, &maker->head, NULL) > maker->most_bytes ||
		maker->room > PG_UINT32_MAX / 2)
		return false;
	maker->room += maker->room / 2 + MaxHeapTuplesPerPage;
	maker->points = repalloc_huge(maker->points, maker->room * sizeof(LivePoint));
	maker->offset = repalloc_huge(maker->offset, maker->room * sizeof(OffsetNumber));
	return true;
}

static void
add_row(Maker *maker, const LiveRow *row)
{
	maker->offset[maker->head.rows] = row->offset;
	maker->points[maker->head.rows++] = geonn_live_point(row);
	maker->head.counts[row->status]++;
	maker->head.points += row->status == POINT_VALID;
}

/*
 * Read all pages; false if the base becomes too large.
 */
static bool
read_pages(Maker *maker, LivePageReader *reader)
{
	const KnownRows none = {0};

	for (BlockNumber block = 0; block < maker->head.blocks; block++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!make_room(maker))
			return false;
		geonn_live_page_read(reader, block, &none);
		maker->first_row[block] = maker->head.rows;
		maker->lsn[block] = reader->lsn;
		maker->settled[block] = reader->unsettled_by == InvalidTransactionId;
		for (int i = 0; i < reader->count; i++)
			add_row(maker, &reader->rows[i]);
	}
	maker->first_row[maker->head.blocks] = maker->head.rows;
	return true;
}

/* ---- the order of points ---- */

static inline void
compute_vectors(const LivePoint *points, uint32 count, LiveLeaf *leaves, uint32 first)
{
	for (uint32 i = 0; i < count; i++)
	{
		struct geonn_vector vector = geonn_unit_vector(points[i].latitude, points[i].longitude);
		LiveLeaf   *leaf = &leaves[(first + i) / LIVE_NODE];
		uint32		place = (first + i) % LIVE_NODE;

		leaf->x[place] = (float) vector.x;
		leaf->y[place] = (float) vector.y;
		leaf->z[place] = (float) vector.z;
	}
}

/*
 * The same, to the bit, by the processor's instruction for fma: without it each fma is a call of the C library.
 */
#ifdef __x86_64__
__attribute__((target("fma"), flatten))
static void
compute_vectors_with_fma(const LivePoint *points, uint32 count, LiveLeaf *leaves, uint32 first)
{
	compute_vectors(points, count, leaves, first);
}
#endif

void
geonn_live_vectors(const LivePoint *points, uint32 count, LiveLeaf *leaves, uint32 first)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("fma"))
	{
		compute_vectors_with_fma(points, count, leaves, first);
		return;
	}
#endif
	compute_vectors(points, count, leaves, first);
}

/* a point's place on the curve, and the number of its row */
typedef struct Key
{
	uint64		key;
	uint32		row;
} Key;

/*
 * Sort keys by their places: once for each digit, the last digit first, and each time without changing the order of
 * equal ones.  Returns that one of the two arrays that has them then.
 */
static Key *
sort_keys(Key *keys, Key *spare, uint32 count)
{
	for (int shift = 0; shift < 3 * KEY_BITS; shift += DIGIT_BITS)
	{
		uint32		next[DIGITS] = {0};
		uint32		sum = 0;
		Key		   *sorted = spare;

		CHECK_FOR_INTERRUPTS();
		for (uint32 i = 0; i < count; i++)
			next[keys[i].key >> shift & (DIGITS - 1)]++;
		for (int digit = 0; digit < DIGITS; digit++)
		{
			sum += next[digit];
			next[digit] = sum - next[digit];
		}
		for (uint32 i = 0; i < count; i++)
			sorted[next[keys[i].key >> shift & (DIGITS - 1)]++] = keys[i];
		spare = keys;
		keys = sorted;
	}
	return keys;
}

/*
 * Put two zero bits between all bits of a number.
 */
static inline uint64
spread(uint64 bits)
{
	bits = (bits | bits << 32) & UINT64CONST(0x1F00000000FFFF);
	bits = (bits | bits << 16) & UINT64CONST(0x1F0000FF0000FF);
	bits = (bits | bits << 8) & UINT64CONST(0x100F00F00F00F00F);
	bits = (bits | bits << 4) & UINT64CONST(0x10C30C30C30C30C3);
	return (bits | bits << 2) & UINT64CONST(0x1249249249249249);
}

static inline uint64
cell_of(float component)
{
	return spread((uint64) ((component + 1.0f) * 0.4999999f * (1 << KEY_BITS)));
}

/*
 * The vectors of all rows, in the order of rows.
 */
static LiveLeaf *
make_vectors(const Maker *maker)
{
	LiveLeaf   *vectors = allocate(maker->head.rows / LIVE_NODE + 1, sizeof(LiveLeaf));

	for (uint32 row = 0; row < maker->head.rows; row += Min(LIVE_NODE, maker->head.rows - row))
	{
		CHECK_FOR_INTERRUPTS();
		geonn_live_vectors(maker->points + row, Min(LIVE_NODE, maker->head.rows - row), vectors, row);
	}
	return vectors;
}

/*
 * The rows of the points, in the order of the curve through all cells of a cube.
 */
static uint32 *
order_points(const Maker *maker, const LiveLeaf *vectors)
{
	uint32		count = 0;
	Key		   *keys = allocate(maker->head.points, sizeof(Key));
	Key		   *spare = allocate(maker->head.points, sizeof(Key));
	Key		   *sorted;
	uint32	   *rows = allocate(maker->head.points, sizeof(uint32));

	for (uint32 row = 0; row < maker->head.rows; row++)
	{
		const LiveLeaf *leaf = &vectors[row / LIVE_NODE];
		int			i = row % LIVE_NODE;

		if (isnan(maker->points[row].latitude))
			continue;
		keys[count].key = cell_of(leaf->x[i]) << 2 | cell_of(leaf->y[i]) << 1 | cell_of(leaf->z[i]);
		keys[count++].row = row;
	}
	sorted = sort_keys(keys, spare, count);
	for (uint32 i = 0; i < count; i++)
		rows[i] = sorted[i].row;
	pfree(keys);
	pfree(spare);
	return rows;
}

/*
 * The leaves of the points in this order.
 */
static LiveLeaf *
make_leaves(const Maker *maker, const LiveLeaf *vectors, const uint32 *rows, uint32 nodes)
{
	LiveLeaf   *leaves = allocate(nodes, sizeof(LiveLeaf));

	for (uint32 place = 0; place < nodes * LIVE_NODE; place++)
	{
		LiveLeaf   *leaf = &leaves[place / LIVE_NODE];
		uint32		i = place % LIVE_NODE;
		uint32		row;

		if (place >= maker->head.points)
		{
			geonn_live_no_point(leaf, i);
			continue;
		}
		row = rows[place];
		leaf->x[i] = vectors[row / LIVE_NODE].x[row % LIVE_NODE];
		leaf->y[i] = vectors[row / LIVE_NODE].y[row % LIVE_NODE];
		leaf->z[i] = vectors[row / LIVE_NODE].z[row % LIVE_NODE];
	}
	return leaves;
}

/* ---- boxes ---- */

static void
add_box(LiveBoxes *boxes, uint32 child, const LiveLeaf *low, const LiveLeaf *high)
{
	LiveBoxes  *parent = &boxes[child / LIVE_NODE];
	uint32		place = child % LIVE_NODE;

#define EXTEND(component) \
	do { \
		float		least = low->component[0]; \
		float		most = high->component[0]; \
\
		for (int i = 1; i < LIVE_NODE; i++) \
		{ \
			least = Min(least, low->component[i]); \
			most = high->component[i] <= 2.0f ? Max(most, high->component[i]) : most; \
		} \
		parent->low.component[place] = least; \
		parent->high.component[place] = most; \
	} while (0)

	EXTEND(x);
	EXTEND(y);
	EXTEND(z);
#undef EXTEND
}

/*
 * Make the boxes of each level; padding comes after all others, so the first element of a node is none.
 */
static LiveBoxes *
make_boxes(const LiveBase *base, const LiveLeaf *leaves, const LiveBoxes *below, int level)
{
	LiveBoxes  *boxes = allocate(base->nodes[level], sizeof(LiveBoxes));
	uint32		last = base->nodes[level] * LIVE_NODE;

	for (uint32 child = 0; child < base->nodes[level - 1]; child++)
	{
		if (level == 1)
			add_box(boxes, child, &leaves[child], &leaves[child]);
		else
			add_box(boxes, child, &below[child].low, &below[child].high);
	}
	for (uint32 child = base->nodes[level - 1]; child < last; child++)
	{
		geonn_live_no_point(&boxes[child / LIVE_NODE].low, child % LIVE_NODE);
		geonn_live_no_point(&boxes[child / LIVE_NODE].high, child % LIVE_NODE);
	}
	return boxes;
}

/* ---- the file ---- */

static void
append(MemoryFile *file, const void *column, uint64 count, Size size)
{
	(void) geonn_memory_file_append(file, column, count * size);
}

static void
write_file(const Maker *maker, MemoryFile *file)
{
	LiveBase	base = {0};
	LiveLeaf   *vectors = make_vectors(maker);
	uint32	   *rows = order_points(maker, vectors);
	LiveLeaf   *leaves;
	LiveBoxes  *boxes = NULL;

	(void) lay_out(&base, &maker->head, NULL);
	leaves = make_leaves(maker, vectors, rows, base.nodes[0]);
	append(file, &maker->head, 1, sizeof(LiveBaseHead));
	append(file, maker->points, maker->head.rows, sizeof(LivePoint));
	append(file, maker->offset, maker->head.rows, sizeof(OffsetNumber));
	append(file, leaves, base.nodes[0], sizeof(LiveLeaf));
	append(file, rows, maker->head.points, sizeof(uint32));
	for (int level = 1; level <= base.levels; level++)
	{
		CHECK_FOR_INTERRUPTS();
		boxes = make_boxes(&base, leaves, boxes, level);
		append(file, boxes, base.nodes[level], sizeof(LiveBoxes));
	}
	append(file, maker->first_row, (uint64) maker->head.blocks + 1, sizeof(uint32));
	append(file, maker->lsn, maker->head.blocks, sizeof(XLogRecPtr));
	append(file, maker->settled, maker->head.blocks, sizeof(uint8));
	geonn_memory_file_seal(file);
}

/*
 * The number of the snapshot's xmin, with its epoch.
 */
static uint64
full_horizon(Snapshot snapshot)
{
	FullTransactionId next = ReadNextFullTransactionId();

	return U64FromFullTransactionId(next) -
		(uint32) (XidFromFullTransactionId(next) - snapshot->xmin);
}

LiveBase *
geonn_live_base_make(LivePageReader *reader, uint64 most_bytes)
{
	MemoryContext former = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn live base",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryFile *file = geonn_memory_file_create("a base of references");
	Maker		maker = {
		.head = {.format = FORMAT,.position = GetXLogInsertRecPtr(),.horizon = full_horizon(reader->snapshot)},
		.most_bytes = most_bytes,
		.room = MaxHeapTuplesPerPage
	};
	bool		fits;

	MemoryContextSwitchTo(context);
	maker.head.blocks = RelationGetNumberOfBlocks(reader->relation);
	maker.points = allocate(maker.room, sizeof(LivePoint));
	maker.offset = allocate(maker.room, sizeof(OffsetNumber));
	maker.first_row = allocate((uint64) maker.head.blocks + 1, sizeof(uint32));
	maker.lsn = allocate(maker.head.blocks, sizeof(XLogRecPtr));
	maker.settled = allocate(maker.head.blocks, sizeof(uint8));
	reader->strategy = geonn_page_strategy(maker.head.blocks);
	reader->by_xmin = true;
	fits = read_pages(&maker, reader);
	reader->by_xmin = false;
	reader->strategy = NULL;
	if (fits)
		write_file(&maker, file);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return fits ? geonn_live_base_open(file) : NULL;
}
