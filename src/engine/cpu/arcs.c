/*
 * arcs.c
 *		Builds the index of references that are arcs of shapes: lines, polygons and points.
 *
 * The index has two parts.  One finds the arcs near an observation, the other the
 * polygons around it (polygons.c); cpu/arcs_search.c asks both.
 *
 * Arcs are sorted along the curve of the index of points by their middles, and eight that follow each
 * other are a leaf: the vectors of their ends, and for each its number in the dataset and the first arc of its shape,
 * which stands for the shape in the search.  A tree of boxes is above the leaves (boxes.c).  An arc longer than a quarter circle
 * becomes two, by its middle, in different leaves.  The index does not know which
 * arcs are neighbours in a line: a vertex is in the index as the end of each of its arcs.
 *
 *
 * Boxes
 *
 * Let d be the chord of an arc of at most a quarter circle.  Each place of the arc is the
 * nearest of the chord's points, moved outward, at right angles to the chord, by at most
 * the sagitta g = 1 - sqrt(1 - d^2 / 4).  g / d^2 grows with d and is 0.14645 at a quarter circle,
 * where d^2 = 2; CPU_ARCS_SAGITTA times d^2 exceeds g by 0.4 percent, more than all
 * rounding.  So the box of both ends, widened by that, holds the arc, and the distances of a point to the arc and to the
 * chord differ by that at most: the search computes the latter in float64, and decides by both bounds.
 *
 *
 * The build
 *
 *	1.	One thread goes through the arcs in order: it notes the first arc of each arc's shape, and
 *		the long arcs, which degrees show but for a few.
 *	2.	Codes of the middles, which are sorted; these and all further phases run in pieces on the thread
 *		pool.
 *	3.	Leaves and their boxes, and on one thread the boxes above, an eighth as many.
 *	4.	The polygons.
 *
 * The sort takes 24 bytes for each arc beside the index, 1. takes 4.
 */
#include "engine/cpu/arcs.h"

#include <math.h>
#include <stdlib.h>

#include "common/arc.h"
#include "engine/base/memory_block.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/columns.h"
#include "engine/cpu/curve.h"
#include "engine/cpu/vectors.h"
#include "engine/dataset/dataset_arcs.h"

/* how many arcs the first phase goes through between two looks at `cancelled` */
#define LOOK_ARCS 65536

/* a piece of phase 3 has whole leaves, and whole nodes above them */
_Static_assert(PIECE_ROWS % (CPU_ARCS_LEAF * CPU_BOXES_WIDTH) == 0, "no two pieces share a node");
_Static_assert(CPU_VECTORS_BLOCK % CPU_ARCS_LEAF == 0, "a block has whole leaves");

struct building
{
	const struct dataset *dataset;
	const atomic_bool *cancelled;
	struct cpu_arcs *arcs;
	uint32_t   *place;			/* [dataset->count] the first arc of each arc's shape */
	uint32_t   *long_arc;		/* the long arcs */
	size_t		long_count;
	size_t		long_capacity;

	/* number i is arc i of the dataset, of a long one the first half; dataset->count + i the second half of
	 * long_arc[i] */
	struct radix_sort sort;
};

static bool
is_cancelled(const struct building *building)
{
	return atomic_load_explicit(building->cancelled, memory_order_relaxed);
}

/* ---- phase 1 ---- */

static bool
note_long_arc(struct building *building, size_t arc)
{
	if (building->long_count == building->long_capacity)
	{
		size_t		capacity = building->long_capacity > 0 ? 2 * building->long_capacity : 256;
		uint32_t   *larger = realloc(building->long_arc, capacity * sizeof(*larger));

		if (larger == NULL)
			return false;
		building->long_arc = larger;
		building->long_capacity = capacity;
	}
	building->long_arc[building->long_count++] = (uint32_t) arc;
	return true;
}

static bool
go_through_arcs(struct building *building)
{
	const struct dataset *dataset = building->dataset;

	for (size_t i = 0; i < dataset->count; i++)
	{
		bool		same = i > 0 && dataset->shape[i] == dataset->shape[i - 1];

		if (i % LOOK_ARCS == 0 && is_cancelled(building))
			return false;
		building->place[i] = same ? building->place[i - 1] : (uint32_t) i;
		building->arcs->has_lines = building->arcs->has_lines || dataset->polygon[i] == 0;
		if (dataset_arc_is_long(dataset, i) && !note_long_arc(building, i))
			return false;
	}
	return true;
}

/* ---- phases 2 and 3 ---- */

/* vectors of both ends of arcs, by axis */
struct ends
{
	double		a[3][CPU_VECTORS_BLOCK];
	double		b[3][CPU_VECTORS_BLOCK];
};

static void
set_vector(double (*column)[CPU_VECTORS_BLOCK], uint32_t at, struct geonn_vector vector)
{
	column[0][at] = vector.x;
	column[1][at] = vector.y;
	column[2][at] = vector.z;
}

/*
 * Compute the ends of up to CPU_VECTORS_BLOCK arcs, by their numbers.
 */
static void
find_ends(const struct building *building, const uint32_t *number, uint32_t count, struct ends *ends)
{
	const struct dataset *dataset = building->dataset;
	double		degrees[4][CPU_VECTORS_BLOCK] = {{0}};
	uint32_t	arc[CPU_VECTORS_BLOCK];

	for (uint32_t i = 0; i < count; i++)
	{
		arc[i] = number[i] < dataset->count ? number[i] : building->long_arc[number[i] - dataset->count];
		degrees[0][i] = dataset->latitude[arc[i]];
		degrees[1][i] = dataset->longitude[arc[i]];
		degrees[2][i] = dataset->end_latitude[arc[i]];
		degrees[3][i] = dataset->end_longitude[arc[i]];
	}
	cpu_path->vectors(GEONN_METRIC_SPHERE, degrees[0], degrees[1], count, ends->a[0], ends->a[1], ends->a[2]);
	cpu_path->vectors(GEONN_METRIC_SPHERE, degrees[2], degrees[3], count, ends->b[0], ends->b[1], ends->b[2]);
	for (uint32_t i = 0; building->long_count > 0 && i < count; i++)
		if (number[i] >= dataset->count || dataset_arc_is_long(dataset, arc[i]))
			set_vector(number[i] < dataset->count ? ends->b : ends->a, i,
					   geonn_arc_middle(degrees[0][i], degrees[1][i], degrees[2][i], degrees[3][i]));
}

static void
make_keys(void *context, size_t piece)
{
	struct building *building = context;
	size_t		end = piece_end(piece, building->arcs->count);

	if (is_cancelled(building))
		return;
	for (size_t first = piece * PIECE_ROWS; first < end; first += CPU_VECTORS_BLOCK)
	{
		uint32_t	rows = (uint32_t) (end - first < CPU_VECTORS_BLOCK ? end - first : CPU_VECTORS_BLOCK);
		uint32_t   *number = building->sort.value + first;
		struct ends ends;

		for (uint32_t i = 0; i < rows; i++)
			number[i] = (uint32_t) (first + i);
		find_ends(building, number, rows, &ends);

		/* the sums of the ends point to the middles */
		for (int axis = 0; axis < 3; axis++)
			for (uint32_t i = 0; i < rows; i++)
				ends.a[axis][i] += ends.b[axis][i];
		cpu_path->curve_codes(ends.a[0], ends.a[1], ends.a[2], rows, CPU_CURVE_LEVELS, building->sort.key + first);
	}
}

static void
make_leaf(struct building *building, uint32_t number, const struct ends *ends, uint32_t from)
{
	struct cpu_arcs_leaf *leaf = &building->arcs->leaf[number];
	double		low[3] = {INFINITY, INFINITY, INFINITY};
	double		high[3] = {-INFINITY, -INFINITY, -INFINITY};
	double		sagitta[CPU_ARCS_LEAF] = {0};

	for (int axis = 0; axis < 3; axis++)
		for (int i = 0; i < CPU_ARCS_LEAF; i++)
		{
			double		a = leaf->a[axis][i] = ends->a[axis][from + i];
			double		b = leaf->b[axis][i] = ends->b[axis][from + i];

			sagitta[i] += CPU_ARCS_SAGITTA * (b - a) * (b - a);
		}
	for (int axis = 0; axis < 3; axis++)
		for (int i = 0; i < CPU_ARCS_LEAF; i++)
		{
			low[axis] = fmin(low[axis], fmin(leaf->a[axis][i], leaf->b[axis][i]) - sagitta[i]);
			high[axis] = fmax(high[axis], fmax(leaf->a[axis][i], leaf->b[axis][i]) + sagitta[i]);
		}
	cpu_boxes_set(&building->arcs->boxes, number, low, high);
}

static void
make_leaves(void *context, size_t piece)
{
	struct building *building = context;
	const struct cpu_arcs *arcs = building->arcs;
	size_t		end = piece_end(piece, arcs->count);

	if (is_cancelled(building))
		return;
	for (size_t first = piece * PIECE_ROWS; first < end; first += CPU_VECTORS_BLOCK)
	{
		uint32_t	rows = (uint32_t) (end - first < CPU_VECTORS_BLOCK ? end - first : CPU_VECTORS_BLOCK);
		uint32_t	number[CPU_VECTORS_BLOCK];
		struct ends ends;

		for (uint32_t i = 0; i < rows; i++)
			number[i] = building->sort.value[first + i];
		for (; rows % CPU_ARCS_LEAF != 0; rows++)
			number[rows] = number[rows - 1];
		find_ends(building, number, rows, &ends);
		for (uint32_t i = 0; i < rows; i++)
		{
			uint32_t	arc = number[i] < building->dataset->count ? number[i] :
				building->long_arc[number[i] - building->dataset->count];

			arcs->place[first + i] = building->place[arc];
			arcs->arc[first + i] = arc;
		}
		for (uint32_t i = 0; i < rows; i += CPU_ARCS_LEAF)
			make_leaf(building, (uint32_t) ((first + i) / CPU_ARCS_LEAF), &ends, i);
	}
}

/* ---- the build ---- */

static size_t
place_columns(struct cpu_arcs *arcs, void *memory)
{
	struct column_block block = {memory, 0};
	size_t		leaves = (arcs->count + CPU_ARCS_LEAF - 1) / CPU_ARCS_LEAF;

	COLUMN_PLACE(&block, arcs->leaf, leaves);
	COLUMN_PLACE(&block, arcs->place, leaves * CPU_ARCS_LEAF);
	COLUMN_PLACE(&block, arcs->arc, leaves * CPU_ARCS_LEAF);
	cpu_boxes_place(&arcs->boxes, &block, (uint32_t) leaves);
	return block.bytes;
}

/* Sort the arcs, and make the leaves.  False if memory is short. */
static bool
make_index(struct building *building, struct failure *failure)
{
	struct cpu_arcs *arcs = building->arcs;
	struct column_block block = {NULL, 0};
	struct radix_sort *sort = &building->sort;
	size_t		bytes = arcs->count * 2 * (sizeof(uint64_t) + sizeof(uint32_t));
	bool		done;

	arcs->bytes = place_columns(arcs, NULL);
	arcs->memory = memory_block_allocate(arcs->bytes, failure, "the index of %zu arcs", arcs->count);
	if (arcs->memory == NULL)
		return false;
	place_columns(arcs, arcs->memory);
	block.memory = memory_block_allocate(bytes + 4 * 64, failure, "sorting %zu arcs", arcs->count);
	if (block.memory == NULL)
		return false;
	*sort = (struct radix_sort) {.count = arcs->count,.cancelled = building->cancelled};
	COLUMN_PLACE(&block, sort->key, sort->count);
	COLUMN_PLACE(&block, sort->room_key, sort->count);
	COLUMN_PLACE(&block, sort->value, sort->count);
	COLUMN_PLACE(&block, sort->room_value, sort->count);
	thread_pool_run(make_keys, building, pieces_of(arcs->count));
	done = radix_sort(sort);
	if (done)
	{
		thread_pool_run(make_leaves, building, pieces_of(arcs->count));
		cpu_boxes_finish(&arcs->boxes);
	}
	else
		fail(failure, GEONN_ERROR_MEMORY, "not enough memory to sort %zu arcs", arcs->count);
	memory_block_release(block.memory, bytes + 4 * 64);
	return done;
}

static bool
build(struct building *building, struct failure *failure)
{
	const struct dataset *dataset = building->dataset;
	size_t		place_bytes = dataset->count * sizeof(uint32_t);
	bool		done = true;

	building->place = memory_block_allocate(place_bytes, failure, "the shapes of %zu arcs", dataset->count);
	if (building->place == NULL)
		return false;
	if (!go_through_arcs(building) && !is_cancelled(building))
		done = fail(failure, GEONN_ERROR_MEMORY, "not enough memory for the long ones of %zu arcs", dataset->count);
	if (done && !is_cancelled(building))
	{
		building->arcs->count = dataset->count + building->long_count;
		done = make_index(building, failure);
	}
	if (done && !is_cancelled(building))
		done = cpu_polygons_build(&building->arcs->polygons, dataset, building->place, building->cancelled, failure);
	if (done && is_cancelled(building))
		done = fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
	memory_block_release(building->place, place_bytes);
	free(building->long_arc);
	return done;
}

struct cpu_arcs *
cpu_arcs_build(const struct dataset *dataset, const atomic_bool *cancelled, struct failure *failure)
{
	struct building building = {
		.dataset = dataset,
		.cancelled = cancelled,
		.arcs = calloc(1, sizeof(struct cpu_arcs))
	};

	if (building.arcs == NULL)
	{
		fail(failure, GEONN_ERROR_MEMORY, "not enough memory for an index");
		return NULL;
	}
	if (build(&building, failure))
		return building.arcs;
	cpu_arcs_free(building.arcs);
	return NULL;
}

size_t
cpu_arcs_bytes(const struct cpu_arcs *arcs)
{
	return arcs->bytes + arcs->polygons.bytes;
}

void
cpu_arcs_free(struct cpu_arcs *arcs)
{
	if (arcs == NULL)
		return;
	cpu_polygons_free(&arcs->polygons);
	memory_block_release(atomic_load(&arcs->fraction), arcs->fraction_bytes);
	memory_block_release(arcs->memory, arcs->bytes);
	free(arcs);
}
