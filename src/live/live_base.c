/*
 * live_base.c
 *		The base of a table's references: a memory file with its points in the order of an index, and with
 *		each one's page.
 *
 * One process reads the table, makes the file and leaves it with a dataset of the engine, which keeps it for others.
 * Ids that are not passed by value are in a second file (live_id.c), and the keys of groups in a third (groups.c).
 * The file has the columns of LiveBase, in the order in which lay_out() has them, and at its end a head;
 * the columns' lengths follow from four numbers of the head.  The tree has no pointers: the children of node n are
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

#include "live/live_base.h"

#define FORMAT	UINT64CONST(0x3665736162766c67)	/* "glvbase6" */

/* as geonn_memory_file_append aligns */
#define ALIGNMENT	8

/* a place on the curve has this many bits of each component of a unit vector */
#define COMPONENT_BITS	21

/* a base is of use until this many transactions have begun since it was made */
#define TRANSACTIONS_MOST	(UINT64CONST(1) << 30)

/* how many points ahead a vector is fetched into the processor's cache */
#define POINTS_AHEAD	16

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

	PLACE(base->points, head->rows);
	PLACE(base->offset, head->rows);
	PLACE(base->leaves, nodes);
	PLACE(base->row, head->points);
	if (head->starts > 0)
	{
		PLACE(base->start, head->starts);
		PLACE(base->group, head->rows);
	}
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
	PLACE(base->head, 1);
#undef PLACE
	return length;
}

LiveBase *
geonn_live_base_open(MemoryFile *file, MemoryFile *values)
{
	LiveBase   *base = palloc0(sizeof(LiveBase));
	uint64		length = geonn_memory_file_length(file);
	const LiveBaseHead *head = length < sizeof(LiveBaseHead) ? NULL :
		geonn_memory_file_bytes(file, length - sizeof(LiveBaseHead), sizeof(LiveBaseHead));

	base->file = file;
	base->values = values;
	if (head == NULL || head->format != FORMAT || head->points > head->rows ||
		lay_out(base, head, geonn_memory_file_bytes(file, 0, length)) != length)
		return NULL;
	return base;
}

bool
geonn_live_base_is_old(const LiveBase *base)
{
	return U64FromFullTransactionId(ReadNextFullTransactionId()) - base->head->horizon >= TRANSACTIONS_MOST;
}

/* ---- vectors ---- */

static inline void
compute_vectors(const LivePoint *points, uint32 count, LiveVector *vectors)
{
	double		latitude[LIVE_NODE];
	double		longitude[LIVE_NODE];
	LiveLeaf	some_vectors;

	for (uint32 first = 0; first < count; first += LIVE_NODE)
	{
		uint32		some = Min(LIVE_NODE, count - first);

		for (uint32 i = 0; i < some; i++)
		{
			latitude[i] = points[first + i].latitude;
			longitude[i] = points[first + i].longitude;
		}
		for (uint32 i = 0; i < some; i++)
		{
			struct geonn_vector vector = geonn_unit_vector(latitude[i], longitude[i]);

			some_vectors.x[i] = (float) vector.x;
			some_vectors.y[i] = (float) vector.y;
			some_vectors.z[i] = (float) vector.z;
		}
		for (uint32 i = 0; i < some; i++)
			vectors[first + i] = (LiveVector) {some_vectors.x[i], some_vectors.y[i], some_vectors.z[i]};
	}
}

/*
 * Make the same vectors, to the bit, for several points at once, by the processor's instruction fma.  Without it, each fma is
 * a call of the C library.
 */
#ifdef __x86_64__
__attribute__((target("avx2,fma"), flatten))
static void
compute_vectors_with_fma(const LivePoint *points, uint32 count, LiveVector *vectors)
{
	compute_vectors(points, count, vectors);
}
#endif

void
geonn_live_vectors(const LivePoint *points, uint32 count, LiveVector *vectors)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
	{
		compute_vectors_with_fma(points, count, vectors);
		return;
	}
#endif
	compute_vectors(points, count, vectors);
}

/* ---- reading the table ---- */

typedef struct Maker
{
	LiveBaseHead head;
	uint64		most_bytes;
	MemoryFile *file;			/* begins with the points of all rows that were read */
	MemoryFile *values;			/* as in LiveBase */
	LiveVector *vectors;		/* [room] of each row */
	OffsetNumber *offset;		/* [room] as in LiveBase */
	int32	   *group;			/* likewise; NULL: there are no groups */
	const GeonnGroups *groups;	/* those of the reader */
	uint32		room;
	uint32	   *first_row;		/* these, too: [head.blocks + 1] */
	XLogRecPtr *lsn;			/* [head.blocks] */
	uint8	   *settled;		/* [head.blocks] */
} Maker;

static void *
allocate(uint64 count, Size size)
{
	return palloc_extended(Max(count, 1) * size, MCXT_ALLOC_HUGE);
}

/*
 * How many bytes a base has that ends here.
 */
static uint64
bytes_of(const Maker *maker)
{
	return lay_out(&(LiveBase) {0}, &maker->head, NULL) +
		(maker->groups != NULL ? geonn_groups_bytes(maker->groups) : 0) +
		(maker->values != NULL ? geonn_memory_file_length(maker->values) : 0);
}

/*
 * Make room for one more page.  Returns false if the base becomes too large.
 */
static bool
make_room(Maker *maker)
{
	bool		is_full = maker->room - maker->head.rows < MaxHeapTuplesPerPage;

	/* each page can have had ids and keys of any length */
	if ((is_full || maker->values != NULL || maker->groups != NULL) && bytes_of(maker) > maker->most_bytes)
		return false;
	if (!is_full)
		return true;
	if (maker->room > PG_UINT32_MAX / 2)
		return false;
	maker->room += maker->room / 2 + MaxHeapTuplesPerPage;
	maker->vectors = repalloc_huge(maker->vectors, maker->room * sizeof(LiveVector));
	maker->offset = repalloc_huge(maker->offset, maker->room * sizeof(OffsetNumber));
	if (maker->group != NULL)
		maker->group = repalloc_huge(maker->group, maker->room * sizeof(int32));
	return true;
}

/*
 * Add the page that was read last.
 */
static void
add_page(Maker *maker, BlockNumber block, const PageReader *reader)
{
	LivePoint	points[MaxHeapTuplesPerPage];
	uint32		first = maker->head.rows;

	for (int i = 0; i < reader->count; i++)
	{
		const PageRow *row = &reader->rows[i];

		points[i] = geonn_live_point(row);
		if (row->status == POINT_VALID)
			points[i].id = geonn_live_id_append(&reader->id_type, maker->values, row->id);
		maker->offset[first + i] = row->offset;
		if (maker->group != NULL)
			maker->group[first + i] = row->status == POINT_VALID ? row->group : GEONN_NO_GROUP;
		maker->head.counts[row->status]++;
		maker->head.points += row->status == POINT_VALID;
	}
	geonn_live_vectors(points, reader->count, maker->vectors + first);
	(void) geonn_memory_file_append(maker->file, points, reader->count * sizeof(LivePoint));
	maker->first_row[block] = first;
	maker->lsn[block] = reader->lsn;
	maker->settled[block] = reader->unsettled_by == InvalidTransactionId;
	maker->head.rows += reader->count;
}

/*
 * Read all pages; false if the base becomes too large, or the reader meets a shape.
 */
static bool
read_pages(Maker *maker, PageReader *reader)
{
	const KnownRows none = {0};

	for (BlockNumber block = 0; block < maker->head.blocks; block++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!make_room(maker))
			return false;
		geonn_page_read(reader, block, &none);
		if (reader->met_shape)
			return false;
		add_page(maker, block, reader);
	}
	maker->first_row[maker->head.blocks] = maker->head.rows;
	maker->head.srid = reader->srid;
	if (maker->groups != NULL)
		maker->head.starts = geonn_groups_count(maker->groups) + 1;
	return (maker->values == NULL && maker->groups == NULL) || bytes_of(maker) <= maker->most_bytes;
}

/* ---- the order of points ---- */

typedef struct PlacedRow
{
	uint64		place;			/* on the curve */
	uint32		row;
} PlacedRow;

#define ST_SORT sort_by_place
#define ST_ELEMENT_TYPE PlacedRow
#define ST_COMPARE(a, b) ((a)->place < (b)->place ? -1 : (a)->place > (b)->place)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

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
	return spread((uint64) ((component + 1.0f) * 0.4999999f * (1 << COMPONENT_BITS)));
}

/*
 * A point's place on the curve through all cells of a cube: a number of 63 bits.
 */
static inline uint64
place_of(const LiveVector *vector)
{
	return cell_of(vector->x) << 2 | cell_of(vector->y) << 1 | cell_of(vector->z);
}

/*
 * The rows of the points, in the order of the curve.
 */
static uint32 *
order_points(const Maker *maker)
{
	const LiveVector *vectors = maker->vectors;
	PlacedRow  *placed = allocate(maker->head.points, sizeof(PlacedRow));
	uint32	   *rows = allocate(maker->head.points, sizeof(uint32));
	uint32		count = 0;

	for (uint32 row = 0; row < maker->head.rows; row++)
	{
		if (!isnan(vectors[row].x))
			placed[count++] = (PlacedRow) {.place = place_of(&vectors[row]),.row = row};
	}
	Assert(count == maker->head.points);
	sort_by_place(placed, count);
	for (uint32 i = 0; i < count; i++)
		rows[i] = placed[i].row;
	pfree(placed);
	return rows;
}

/*
 * Bring rows into the order of their groups, those of none last, without changing that of one group's; returns where
 * each group begins.
 */
static uint32 *
order_by_group(const Maker *maker, uint32 *rows)
{
	uint32		groups = maker->head.starts - 1;
	uint32	   *start = allocate((uint64) groups + 1, sizeof(uint32));
	uint32	   *next = allocate((uint64) groups + 1, sizeof(uint32));
	uint32	   *former = allocate(maker->head.points, sizeof(uint32));
	uint32		sum = 0;

	memset(next, 0, ((Size) groups + 1) * sizeof(uint32));
	CHECK_FOR_INTERRUPTS();
	for (uint32 i = 0; i < maker->head.points; i++)
		next[Min((uint32) maker->group[rows[i]], groups)]++;
	for (uint32 group = 0; group <= groups; group++)
	{
		start[group] = sum;
		sum += next[group];
		next[group] = start[group];
	}
	memcpy(former, rows, maker->head.points * sizeof(uint32));
	CHECK_FOR_INTERRUPTS();
	for (uint32 i = 0; i < maker->head.points; i++)
		rows[next[Min((uint32) maker->group[former[i]], groups)]++] = former[i];
	pfree(former);
	pfree(next);
	return start;
}

/* ---- nodes ---- */

/*
 * The least, or the greatest, of all numbers but padding.
 */
static inline float
least_of(const float *numbers)
{
	float		least[LIVE_NODE];

	memcpy(least, numbers, sizeof(least));
	for (int half = LIVE_NODE / 2; half > 0; half /= 2)
	{
		for (int i = 0; i < half; i++)
			least[i] = Min(least[i], least[i + half]);
	}
	return least[0];
}

static inline float
greatest_of(const float *numbers)
{
	float		greatest[LIVE_NODE];

	for (int i = 0; i < LIVE_NODE; i++)
		greatest[i] = numbers[i] <= 2.0f ? numbers[i] : -2.0f;
	for (int half = LIVE_NODE / 2; half > 0; half /= 2)
	{
		for (int i = 0; i < half; i++)
			greatest[i] = Max(greatest[i], greatest[i + half]);
	}
	return greatest[0];
}

static void
add_box(LiveBoxes *boxes, uint32 child, const LiveLeaf *low, const LiveLeaf *high)
{
	LiveBoxes  *parent = &boxes[child / LIVE_NODE];
	uint32		place = child % LIVE_NODE;

	parent->low.x[place] = least_of(low->x);
	parent->low.y[place] = least_of(low->y);
	parent->low.z[place] = least_of(low->z);
	parent->high.x[place] = greatest_of(high->x);
	parent->high.y[place] = greatest_of(high->y);
	parent->high.z[place] = greatest_of(high->z);
}

/*
 * Make room for the boxes of a level; padding comes after all others, so the first element of a node is none.
 */
static LiveBoxes *
allocate_boxes(const LiveBase *base, int level)
{
	LiveBoxes  *boxes = allocate(base->nodes[level], sizeof(LiveBoxes));

	for (uint32 child = base->nodes[level - 1]; child < base->nodes[level] * LIVE_NODE; child++)
	{
		geonn_live_no_point(&boxes[child / LIVE_NODE].low, child % LIVE_NODE);
		geonn_live_no_point(&boxes[child / LIVE_NODE].high, child % LIVE_NODE);
	}
	return boxes;
}

/*
 * Write the leaves of the points in this order; returns the boxes of the first level.
 */
static LiveBoxes *
write_leaves(const Maker *maker, const LiveBase *base, const uint32 *rows)
{
	LiveBoxes  *boxes = base->levels > 0 ? allocate_boxes(base, 1) : NULL;
	uint32		points = maker->head.points;

	for (uint32 place = 0; place < points; place += LIVE_NODE)
	{
		LiveLeaf	leaf;

		CHECK_FOR_INTERRUPTS();
		for (uint32 i = 0; i < LIVE_NODE; i++)
		{
			if (place + i + POINTS_AHEAD < points)
				__builtin_prefetch(&maker->vectors[rows[place + i + POINTS_AHEAD]]);
			if (place + i < points)
				geonn_live_put_vector(&leaf, i, &maker->vectors[rows[place + i]]);
			else
				geonn_live_no_point(&leaf, i);
		}
		(void) geonn_memory_file_append(maker->file, &leaf, sizeof(leaf));
		if (boxes != NULL)
			add_box(boxes, place / LIVE_NODE, &leaf, &leaf);
	}
	return boxes;
}

/* ---- the file ---- */

static void
append(const Maker *maker, const void *column, uint64 count, Size size)
{
	(void) geonn_memory_file_append(maker->file, column, count * size);
}

/*
 * Write what follows the points of all rows.
 */
static void
write_columns(const Maker *maker)
{
	LiveBase	base = {0};
	uint32	   *rows = order_points(maker);
	uint32	   *start = maker->groups != NULL ? order_by_group(maker, rows) : NULL;
	LiveBoxes  *boxes;

	(void) lay_out(&base, &maker->head, NULL);
	append(maker, maker->offset, maker->head.rows, sizeof(OffsetNumber));
	boxes = write_leaves(maker, &base, rows);
	append(maker, rows, maker->head.points, sizeof(uint32));
	if (start != NULL)
	{
		append(maker, start, maker->head.starts, sizeof(uint32));
		append(maker, maker->group, maker->head.rows, sizeof(int32));
	}
	for (int level = 1; level <= base.levels; level++)
	{
		const LiveBoxes *below = boxes;

		append(maker, below, base.nodes[level], sizeof(LiveBoxes));
		if (level == base.levels)
			break;
		boxes = allocate_boxes(&base, level + 1);
		for (uint32 child = 0; child < base.nodes[level]; child++)
			add_box(boxes, child, &below[child].low, &below[child].high);
	}
	append(maker, maker->first_row, (uint64) maker->head.blocks + 1, sizeof(uint32));
	append(maker, maker->lsn, maker->head.blocks, sizeof(XLogRecPtr));
	append(maker, maker->settled, maker->head.blocks, sizeof(uint8));
	append(maker, &maker->head, 1, sizeof(LiveBaseHead));
	geonn_memory_file_seal(maker->file);
	if (maker->values != NULL)
		geonn_memory_file_seal(maker->values);
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
geonn_live_base_make(PageReader *reader, uint64 most_bytes, uint64 *bytes)
{
	MemoryContext former = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn live base",
												  ALLOCSET_DEFAULT_SIZES);
	Maker		maker = {
		.head = {.format = FORMAT,.position = GetXLogInsertRecPtr(),.horizon = full_horizon(reader->snapshot)},
		.most_bytes = most_bytes,
		.file = geonn_memory_file_create("a base of references"),
		.values = reader->id_type.by_value ? NULL : geonn_memory_file_create("ids of a base of references"),
		.groups = reader->groups,
		.room = MaxHeapTuplesPerPage
	};
	bool		fits;

	MemoryContextSwitchTo(context);
	maker.head.blocks = RelationGetNumberOfBlocks(reader->relation);
	maker.vectors = allocate(maker.room, sizeof(LiveVector));
	maker.offset = allocate(maker.room, sizeof(OffsetNumber));
	if (maker.groups != NULL)
	{
		maker.group = allocate(maker.room, sizeof(int32));
		maker.head.starts = 1;	/* until all groups are known: rows have their groups */
	}
	maker.first_row = allocate((uint64) maker.head.blocks + 1, sizeof(uint32));
	maker.lsn = allocate(maker.head.blocks, sizeof(XLogRecPtr));
	maker.settled = allocate(maker.head.blocks, sizeof(uint8));
	reader->strategy = geonn_page_strategy(maker.head.blocks);
	reader->by_xmin = true;
	fits = read_pages(&maker, reader);
	reader->by_xmin = false;
	reader->strategy = NULL;
	if (fits)
		write_columns(&maker);
	*bytes = bytes_of(&maker);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return fits ? geonn_live_base_open(maker.file, maker.values) : NULL;
}
