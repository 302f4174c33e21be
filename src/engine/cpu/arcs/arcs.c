/*
 * arcs.c
 *		Builds the index of references that are arcs of shapes: lines, polygons and points.
 *
 * The index has two parts.  One finds the arcs near an observation, the other the
 * polygons around it (shapes/polygons.c); cpu/arcs_search.c asks both.
 *
 * Arcs are sorted along the curve of the index of points by their middles, and eight that follow each
 * other are a leaf: for each the vertex where it begins, and its number in the dataset.  The vertices are apart (shapes/vertices.c):
 * each is the end of one arc, the begin of another, and one of the polygons' too.  A tree of boxes is above the leaves (shapes/boxes.c).
 * An arc longer than a quarter circle becomes two, by its middle, in different leaves.
 *
 *
 * Boxes
 *
 * Let d be the chord of an arc of at most a quarter circle.  Each place of the arc is the
 * nearest of the chord's points, moved outward, at right angles to the chord, by at most
 * the sagitta g = 1 - sqrt(1 - d^2 / 4).  g / d^2 grows with d and is 0.14645 at a quarter circle,
 * where d^2 = 2; SHAPE_ARCS_SAGITTA times d^2 exceeds g by 0.4 percent, more than all
 * rounding.  So the box of both ends, widened by that, holds the arc, and the distances of a point to the arc and to the
 * chord differ by that at most: the search computes the latter in float64, and decides by both bounds.
 *
 *
 * The build
 *
 *	1.	The vertices, with a number for each arc that says where it begins.
 *	2.	Codes of the middles, which are sorted; all phases run in pieces on the thread pool.
 *	3.	Leaves and their boxes, and on one thread the boxes above, an eighth as many.
 *	4.	The polygons.
 *
 * The sort takes 24 bytes for each arc beside the index, the numbers of 1. take 4.
 *
 *
 * Memory
 *
 * An arc takes 12 bytes of its leaf, 3.4 of boxes, and 24 are its first vertex; a part has one vertex more.  An arc of a polygon
 * takes 4.6 of stretches, each ring up to 32 more, as its last stretch is short; the polygon takes 20, and 27 of boxes.
 * protocol_dataset.h has the sums.
 */
#include "engine/cpu/arcs/arcs.h"

#include <math.h>
#include <stdlib.h>

#include "common/arc.h"
#include "engine/base/memory_block.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"
#include "engine/base/memory_columns.h"
#include "engine/cpu/base/curve.h"
#include "engine/cpu/base/vectors.h"
#include "engine/dataset/dataset_arcs.h"

/* A piece of phase 3 has whole leaves, and whole nodes above the leaves. */
_Static_assert(PIECE_ROWS % (CPU_ARCS_LEAF * SHAPE_BOXES_WIDTH) == 0, "no two pieces share a node");
_Static_assert(CPU_VECTORS_BLOCK % CPU_ARCS_LEAF == 0, "a block has whole leaves");

struct building
{
	const struct dataset *dataset;
	const atomic_bool *cancelled;
	struct cpu_arcs *arcs;

	/*
	 * sorts arcs of the index; the value is 2 * the number of the dataset's arc, and 1 more for the second half
	 * of a long arc
	 */
	struct radix_sort sort;
};

static bool
is_cancelled(const struct building *building)
{
	return atomic_load_explicit(building->cancelled, memory_order_relaxed);
}

/* Return the vertex where an arc of the index begins, by the arc's value. */
static uint32_t
vertex_of(const struct building *building, uint32_t value)
{
	return building->arcs->vertices.first[value / 2] + value % 2;
}

/*
 * Set the values of the second halves of long arcs, behind the values of all arcs of the dataset, which make_keys() sets.
 */
static void
set_second_halves(const struct building *building)
{
	const struct dataset *dataset = building->dataset;
	uint32_t   *value = building->sort.value + dataset->count;

	for (size_t i = 0; value < building->sort.value + building->sort.count; i++)
		if (dataset_arc_is_long(dataset, i))
			*value++ = 2 * (uint32_t) i + 1;
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
		uint32_t   *value = building->sort.value + first;
		double		middle[3][CPU_VECTORS_BLOCK];

		for (uint32_t i = 0; i < rows; i++)
		{
			const struct geonn_vector *ends;

			if (first + i < building->dataset->count)
				value[i] = 2 * (uint32_t) (first + i);
			ends = &building->arcs->vertices.vertex[vertex_of(building, value[i])];

			/* the sum of an arc's two ends points to its middle */
			middle[0][i] = ends[0].x + ends[1].x;
			middle[1][i] = ends[0].y + ends[1].y;
			middle[2][i] = ends[0].z + ends[1].z;
		}
		cpu_path->curve_codes(middle[0], middle[1], middle[2], rows, CPU_CURVE_LEVELS, building->sort.key + first);
	}
}

static double
lesser(double a, double b)
{
	return a < b ? a : b;
}

static void
make_leaf(struct cpu_arcs *arcs, uint32_t number)
{
	const struct cpu_arcs_leaf *leaf = &arcs->leaf[number];
	double		low[3] = {INFINITY, INFINITY, INFINITY};
	double		high[3] = {-INFINITY, -INFINITY, -INFINITY};

	for (int i = 0; i < CPU_ARCS_LEAF; i++)
	{
		const struct geonn_vector *ends = &arcs->vertices.vertex[leaf->vertex[i]];
		const double a[3] = {ends[0].x, ends[0].y, ends[0].z};
		const double b[3] = {ends[1].x, ends[1].y, ends[1].z};
		double		sagitta = SHAPE_ARCS_SAGITTA * geonn_chord_squared(ends[0], ends[1]);

		for (int axis = 0; axis < 3; axis++)
		{
			low[axis] = lesser(low[axis], lesser(a[axis], b[axis]) - sagitta);
			high[axis] = -lesser(-high[axis], lesser(-a[axis], -b[axis]) - sagitta);
		}
	}
	shape_boxes_set(&arcs->boxes, number, low, high);
}

static void
make_leaves(void *context, size_t piece)
{
	struct building *building = context;
	struct cpu_arcs *arcs = building->arcs;
	size_t		last = arcs->count - 1;

	if (is_cancelled(building))
		return;
	for (size_t first = piece * PIECE_ROWS; first < piece_end(piece, arcs->count); first += CPU_ARCS_LEAF)
	{
		struct cpu_arcs_leaf *leaf = &arcs->leaf[first / CPU_ARCS_LEAF];

		for (size_t i = 0; i < CPU_ARCS_LEAF; i++)
		{
			uint32_t	value = building->sort.value[first + i < last ? first + i : last];

			leaf->vertex[i] = vertex_of(building, value);
			leaf->arc[i] = value / 2;
			leaf->shape[i] = (uint32_t) building->dataset->shape[value / 2];
		}
		make_leaf(arcs, (uint32_t) (first / CPU_ARCS_LEAF));
	}
}

/* ---- the build ---- */

static size_t
place_columns(struct cpu_arcs *arcs, void *memory)
{
	struct column_block block = {memory, 0};
	size_t		leaves = (arcs->count + CPU_ARCS_LEAF - 1) / CPU_ARCS_LEAF;

	COLUMN_PLACE(&block, arcs->leaf, leaves);
	shape_boxes_place(&arcs->boxes, &block, (uint32_t) leaves);
	return block.bytes;
}

/* Sort the arcs, and make the leaves.  Returns false if memory is short. */
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
	set_second_halves(building);
	thread_pool_run(make_keys, building, pieces_of(arcs->count));
	done = radix_sort(sort);
	if (done)
	{
		thread_pool_run(make_leaves, building, pieces_of(arcs->count));
		shape_boxes_finish(&arcs->boxes);
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
	struct cpu_arcs *arcs = building->arcs;
	bool		done = shape_vertices_build(&arcs->vertices, dataset, false, building->cancelled, failure);

	if (done && !is_cancelled(building))
	{
		arcs->count = dataset->count + arcs->vertices.long_arcs;
		done = make_index(building, failure);
	}
	if (done && !is_cancelled(building))
		done = shape_polygons_build(&arcs->polygons, dataset, &arcs->vertices, building->cancelled, failure);
	if (done && is_cancelled(building))
		done = fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
	shape_vertices_end_build(&arcs->vertices);
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
	return arcs->vertices.bytes + arcs->bytes + arcs->polygons.bytes;
}

void
cpu_arcs_free(struct cpu_arcs *arcs)
{
	if (arcs == NULL)
		return;
	shape_vertices_free(&arcs->vertices);
	shape_polygons_free(&arcs->polygons);
	memory_block_release(atomic_load(&arcs->fraction), arcs->fraction_bytes);
	memory_block_release(arcs->memory, arcs->bytes);
	free(arcs);
}
