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
 * have the same bytes as their radius, windows and parties.
 */
#include "engine/cpu/index/curve_cells.h"

#include <string.h>

#include "common/metric.h"
#include "engine/base/thread_pool.h"
#include "engine/base/memory_columns.h"
#include "engine/cpu/base/curve.h"

/* Two references of one cell differ by less than this in x, y and z: a cell is 2^-27 wide, seen from the origin. */
#define CELL_WIDTH 0x1p-25

/* Cells with fewer references are not sorted: for two references either order will do. */
#define CELL_MIN 3

/* After sorting this many references, look whether the search has been cancelled. */
#define MANY 4096

struct cells
{
	const struct dataset *dataset;
	struct cpu_index *index;
	const atomic_bool *cancelled;
};

/* A reference, with the values by which a cell is sorted. */
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

/* the columns in which references of one position have the same bytes */
#define CONDITIONS (GEONN_COLUMN_RADIUS | GEONN_COLUMNS_WINDOWS | GEONN_COLUMNS_PARTIES)

/* Compare radiuses, windows and parties of two references, in a fixed but arbitrary order. */
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
 * Compare the positions of two references: return a number below 0, 0, or above 0 if the first
 * reference's position comes before the other's, is the same, or comes after.
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

/* Return whether reference i is in the cell and group of reference i - 1. */
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

static bool
is_cancelled(const struct cells *cells)
{
	return atomic_load_explicit(cells->cancelled, memory_order_relaxed);
}

static void
mark_piece(void *context, size_t number)
{
	struct cells *cells = context;
	size_t		end = piece_end(number, cells->index->references);

	if (is_cancelled(cells))
		return;
	for (size_t i = number * PIECE_ROWS; i < end; i++)
		cells->index->start[i] = i > 0 && is_in_cell(cells, i);
}

/*
 * Let each part begin a cell.
 */
static void
separate_parts(void *context, size_t number)
{
	const struct cells *cells = context;
	const struct cpu_slabs *slabs = cells->index->slabs;
	size_t		end = piece_end(number, slabs->parts);

	for (size_t part = number * PIECE_ROWS; part < end; part++)
		cells->index->start[slabs->first[part]] = 0;
}

/*
 * Put `sinking` at index `at` into the heap of a cell's first `count` references, and move it below
 * all references that come after it in order.
 */
static void
sink(const struct cells *cells, size_t begin, size_t count, size_t at, struct item sinking)
{
	struct cpu_index *index = cells->index;

	for (size_t child = 2 * at + 1; child < count; at = child, child = 2 * at + 1)
	{
		struct item later = load(index, begin + child);

		if (child + 1 < count)
		{
			struct item other = load(index, begin + child + 1);

			if (before(cells->dataset, &later, &other))
			{
				later = other;
				child++;
			}
		}
		if (!before(cells->dataset, &sinking, &later))
			break;
		store(index, begin + at, &later);
	}
	store(index, begin + at, &sinking);
}

/*
 * Sort a cell by heapsort, which needs no memory and is slow on no input.
 */
static void
sort_cell(const struct cells *cells, size_t begin, size_t end)
{
	struct cpu_index *index = cells->index;
	size_t		count = end - begin;

	for (size_t i = count / 2; i-- > 0;)
		sink(cells, begin, count, i, load(index, begin + i));
	for (size_t left = count; left-- > 1;)
	{
		struct item last = load(index, begin + left);
		struct item first = load(index, begin);

		if (left % MANY == 0 && is_cancelled(cells))
			return;
		store(index, begin + left, &first);
		sink(cells, begin, left, 0, last);
	}
}

/*
 * Sort the cells that begin in a piece.
 */
static void
order_piece(void *context, size_t number)
{
	struct cells *cells = context;
	const struct cpu_index *index = cells->index;
	size_t		end = piece_end(number, cells->index->references);
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
	size_t		pieces = pieces_of(index->references);

	thread_pool_run(mark_piece, &cells, pieces);
	if (index->slabs != NULL)
		thread_pool_run(separate_parts, &cells, pieces_of(index->slabs->parts));
	if (!is_cancelled(&cells))
		thread_pool_run(order_piece, &cells, pieces);
}
