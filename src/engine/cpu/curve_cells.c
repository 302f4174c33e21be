/*
 * curve_cells.c
 *		Orders the references of the CPU's index that share a cell of the
 *		curve.
 *
 * The curve tells points apart that are some 4 cm from each other.  The sort
 * by the curve leaves the references of one cell in the order of the dataset.
 * If a million references alternate between two places of a cell, no two
 * neighbours in that order are one point.  So the references of one cell are
 * sorted once more, by vector and then by place in the dataset.
 *
 * Most cells have one reference, or references that all coincide, and need no
 * sort.  A first pass marks each reference that is in the same cell as the one
 * before; it computes codes only for neighbours that are as close as a cell is
 * wide.  A second pass goes from cell to cell and sorts each in place.  One
 * thread sorts a whole cell, however large it is.
 *
 * By a metric whose chord decides, references with equal vectors are one
 * point, since distances are functions of vectors.  By any other metric,
 * references with equal canonical coordinates are one point (spheroid.h says
 * why).  References at one point are one position of the index only if they
 * have the same bytes as their radius and windows.
 */
#include "engine/cpu/curve_cells.h"

#include <string.h>

#include "common/metric.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/curve.h"

/* references of one piece of the work */
#define PIECE_ROWS ((size_t) 1 << 14)

/* two references of one cell never differ by so much in x, y or z: a cell is
 * 2^-27 wide, seen from the origin */
#define CELL_WIDTH 0x1p-25

/* fewest references of a cell that is sorted: of two, either order will do */
#define CELL_MIN 3

/* insertion sorts so few references */
#define FEW 12

/* references to partition between two checks for cancellation */
#define MANY 4096

struct cells
{
	const struct dataset *dataset;
	struct cpu_index *index;
	const atomic_bool *cancelled;
};

/* one reference, with the values that it is sorted by */
struct item
{
	double		x;
	double		y;
	double		z;
	uint32_t	place;
};

static struct item
load(const struct cpu_index *index, size_t i)
{
	return (struct item) {index->x[i], index->y[i], index->z[i], index->place[i]};
}

static void
store(struct cpu_index *index, size_t i, const struct item *item)
{
	index->x[i] = item->x;
	index->y[i] = item->y;
	index->z[i] = item->z;
	index->place[i] = item->place;
}

/* the columns that references of one position have the same bytes in */
#define CONDITIONS (GEONN_COLUMN_RADIUS | GEONN_COLUMNS_WINDOWS)

/*
 * Compare radiuses and windows of two references, in some order.
 */
static int
compare_conditions(const struct dataset *dataset, uint32_t a, uint32_t b)
{
	int			order = 0;

	if ((dataset->columns & CONDITIONS) == 0)
		return 0;
	for (int i = 0; i < DATASET_COLUMNS && order == 0; i++)
	{
		const char *column = dataset_column_of(dataset, i);
		size_t		width = dataset_columns[i].width;

		if (column != NULL && dataset_columns[i].present & CONDITIONS)
			order = memcmp(column + a * width, column + b * width, width);
	}
	return order;
}

/*
 * Compare two references: below 0, 0 or above 0 if the first one's position
 * comes before the other's, is the same, or comes after.
 */
static int
compare_positions(const struct dataset *dataset, const struct item *a, const struct item *b)
{
	double		latitude[2];
	double		longitude[2];

	if (a->x != b->x)
		return a->x < b->x ? -1 : 1;
	if (a->y != b->y)
		return a->y < b->y ? -1 : 1;
	if (a->z != b->z)
		return a->z < b->z ? -1 : 1;
	if (geonn_metric_chord_decides(dataset->metric))
		return compare_conditions(dataset, a->place, b->place);
	latitude[0] = dataset->latitude[a->place];
	longitude[0] = dataset->longitude[a->place];
	latitude[1] = dataset->latitude[b->place];
	longitude[1] = dataset->longitude[b->place];
	geonn_spheroid_canonical(&latitude[0], &longitude[0]);
	geonn_spheroid_canonical(&latitude[1], &longitude[1]);
	if (latitude[0] != latitude[1])
		return latitude[0] < latitude[1] ? -1 : 1;
	if (longitude[0] != longitude[1])
		return longitude[0] < longitude[1] ? -1 : 1;
	return compare_conditions(dataset, a->place, b->place);
}

static bool
before(const struct dataset *dataset, const struct item *a, const struct item *b)
{
	int			order = compare_positions(dataset, a, b);

	return order < 0 || (order == 0 && a->place < b->place);
}

static bool
is_same_group(const struct dataset *dataset, const struct cpu_index *index, size_t i)
{
	return dataset->group == NULL ||
		dataset->group[index->place[i]] == dataset->group[index->place[i - 1]];
}

bool
cpu_curve_cells_is_one(const struct dataset *dataset, const struct cpu_index *index, size_t i)
{
	struct item here;
	struct item there;

	if (i == 0 || index->x[i] != index->x[i - 1] || index->y[i] != index->y[i - 1] ||
		index->z[i] != index->z[i - 1] || !is_same_group(dataset, index, i))
		return false;
	here = load(index, i);
	there = load(index, i - 1);
	return compare_positions(dataset, &here, &there) == 0;
}

/*
 * Whether reference i has the cell and the group of the reference before.
 */
static bool
is_in_cell(const struct cells *cells, size_t i)
{
	const struct cpu_index *index = cells->index;
	double		dx = fabs(index->x[i] - index->x[i - 1]);
	double		dy = fabs(index->y[i] - index->y[i - 1]);
	double		dz = fabs(index->z[i] - index->z[i - 1]);
	uint64_t	codes[2];

	if (dx > CELL_WIDTH || dy > CELL_WIDTH || dz > CELL_WIDTH ||
		!is_same_group(cells->dataset, index, i))
		return false;
	if (dx == 0.0 && dy == 0.0 && dz == 0.0)
		return true;
	cpu_path->curve_codes(index->x + i - 1, index->y + i - 1, index->z + i - 1, 2,
						  CPU_CURVE_LEVELS, codes);
	return codes[0] == codes[1];
}

static size_t
piece_end(const struct cells *cells, size_t number)
{
	size_t		end = (number + 1) * PIECE_ROWS;

	return end < cells->index->references ? end : cells->index->references;
}

static bool
is_cancelled(const struct cells *cells)
{
	return atomic_load_explicit(cells->cancelled, memory_order_relaxed);
}

static void
mark_piece(void *context, size_t number)
{
	struct cells *cells = context;
	size_t		end = piece_end(cells, number);

	if (is_cancelled(cells))
		return;
	for (size_t i = number * PIECE_ROWS; i < end; i++)
		cells->index->start[i] = i > 0 && is_in_cell(cells, i);
}

/*
 * References of different parts share no cell.
 */
static void
separate_parts(void *context, size_t number)
{
	const struct cells *cells = context;
	const struct cpu_slabs *slabs = cells->index->slabs;
	size_t		end = (number + 1) * PIECE_ROWS < slabs->parts ? (number + 1) * PIECE_ROWS : slabs->parts;

	for (size_t part = number * PIECE_ROWS; part < end; part++)
		cells->index->start[slabs->first[part]] = 0;
}

static void
insertion_sort(const struct cells *cells, size_t begin, size_t end)
{
	struct cpu_index *index = cells->index;

	for (size_t i = begin + 1; i < end; i++)
	{
		struct item item = load(index, i);
		size_t		at = i;

		for (; at > begin; at--)
		{
			struct item other = load(index, at - 1);

			if (!before(cells->dataset, &item, &other))
				break;
			store(index, at, &other);
		}
		store(index, at, &item);
	}
}

/*
 * Choose the median of three references of a range.  Their places look random,
 * so that no order of the references makes the sort slow.
 */
static struct item
choose_pivot(const struct cells *cells, size_t begin, size_t end)
{
	const struct dataset *dataset = cells->dataset;
	uint64_t	random = begin + (uint64_t) end * UINT64_C(0x9e3779b97f4a7c15);
	struct item items[3];
	int			median;

	for (int i = 0; i < 3; i++)
	{
		random = (random ^ random >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + 1;
		items[i] = load(cells->index, begin + (size_t) ((random >> 32) % (end - begin)));
	}
	if (before(dataset, &items[0], &items[1]))
		median = before(dataset, &items[1], &items[2]) ? 1 : before(dataset, &items[0], &items[2]) ? 2 : 0;
	else
		median = before(dataset, &items[0], &items[2]) ? 0 : before(dataset, &items[1], &items[2]) ? 2 : 1;
	return items[median];
}

/*
 * Sort a cell by quicksort; the smaller part first, so that the stack stays
 * small.
 */
static void
sort_cell(const struct cells *cells, size_t begin, size_t end)
{
	struct cpu_index *index = cells->index;

	while (end - begin > FEW)
	{
		struct item pivot = choose_pivot(cells, begin, end);
		size_t		left = begin;
		size_t		right = end - 1;

		if (end - begin > MANY && is_cancelled(cells))
			return;
		for (;;)
		{
			struct item low = load(index, left);
			struct item high;

			while (before(cells->dataset, &low, &pivot))
				low = load(index, ++left);
			high = load(index, right);
			while (before(cells->dataset, &pivot, &high))
				high = load(index, --right);
			if (left >= right)
				break;
			store(index, left++, &high);
			store(index, right--, &low);
		}

		/* if left and right meet, they meet at the pivot; otherwise they have passed each other */
		if (left < right + 1)
			left++;
		else
			right++;
		if (right - begin < end - left)
		{
			sort_cell(cells, begin, right);
			begin = left;
		}
		else
		{
			sort_cell(cells, left, end);
			end = right;
		}
	}
	insertion_sort(cells, begin, end);
}

/*
 * Sort the cells that begin in a piece.
 */
static void
order_piece(void *context, size_t number)
{
	struct cells *cells = context;
	const struct cpu_index *index = cells->index;
	size_t		end = piece_end(cells, number);
	size_t		next;

	for (size_t begin = number * PIECE_ROWS; begin < end; begin = next)
	{
		bool		is_one = true;

		next = begin + 1;
		if (index->start[begin] != 0)
			continue;			/* the cell belongs to the piece before */
		for (; next < index->references && index->start[next] != 0; next++)
			is_one = is_one && cpu_curve_cells_is_one(cells->dataset, index, next);
		if (is_cancelled(cells))
			return;
		if (!is_one && next - begin >= CELL_MIN)
			sort_cell(cells, begin, next);
	}
}

void
cpu_curve_cells_order(const struct dataset *dataset, struct cpu_index *index,
				const atomic_bool *cancelled)
{
	struct cells cells = {dataset, index, cancelled};
	size_t		pieces = (index->references + PIECE_ROWS - 1) / PIECE_ROWS;

	thread_pool_run(mark_piece, &cells, pieces);
	if (index->slabs != NULL)
		thread_pool_run(separate_parts, &cells, (index->slabs->parts + PIECE_ROWS - 1) / PIECE_ROWS);
	if (!is_cancelled(&cells))
		thread_pool_run(order_piece, &cells, pieces);
}
