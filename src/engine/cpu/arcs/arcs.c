/*
 * arcs.c
 *		Builds the index of references that are arcs of shapes: lines, polygons and points.
 *
 * The index has two parts.  One finds the arcs near an observation, the other the
 * polygons around it (shapes/polygons.c); cpu/arcs/arcs_search.c asks both.
 *
 * Arcs are sorted along the curve of the index of points by their middles, and eight that follow each other are a leaf: for
 * each the vertex where it begins, and its number in the dataset.  The vertices are apart (shapes/vertices.c): each is the end
 * of one arc, the begin of another, and one of the polygons' too.  A tree of boxes is above the leaves (shapes/boxes.c).
 *
 * An arc of more than 250 km is cut into pieces of the same length (geonn_arc_pieces()), each in the leaf where the piece's
 * own middle is: the box of a whole arc would hold a large part of the earth.  A search that finds a piece measures the whole
 * arc, or the half of an arc that has a middle.  Pieces go from one vertex to the next, as arcs do.  The vertex between two
 * pieces is the normalized sum of both ends of the arc, each times the sine of the angle between the vertex and the other end.
 * With e = 2^-53 the roundings of the sines move the vertex along the arc.  The sum is at least cos(45 degrees) times as long as
 * its two terms together, so the roundings of products and sums move it off the arc by 2 sqrt(2) e, and those of the
 * quotients by 2 e: together by less than 5 e.
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
#include "common/assertion.h"
#include "engine/base/memory_block.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"
#include "engine/base/memory_columns.h"
#include "engine/cpu/arcs/arcs_cut.h"
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

	struct cut *cut;			/* [cuts] the arcs that the index cuts, in the order of the dataset */
	size_t		cut_bytes;
	size_t		cuts;
	uint64_t	cut_vertices;	/* how many vertices the pieces of all these arcs have */

	/*
	 * sorts pieces of arcs; a value below the number of the dataset's arcs stands for an arc, or for its first piece if
	 * the arc is cut; greater values stand for further pieces
	 */
	struct radix_sort sort;
};

/* an arc that is cut */
struct cut
{
	uint32_t	arc;
	uint32_t	pieces;
	uint32_t	further;		/* the value of its second piece */
	uint32_t	vertex;			/* where its first piece begins */
};

static bool
is_cancelled(const struct building *building)
{
	return atomic_load_explicit(building->cancelled, memory_order_relaxed);
}

/* Count the shapes, and note the first arcs of the first ones. */
static void
list_shapes(struct cpu_arcs *arcs, const struct dataset *dataset)
{
	for (uint32_t i = 0; i < dataset->count; i++)
	{
		if (i > 0 && dataset->shape[i] == dataset->shape[i - 1])
			continue;
		if (arcs->shapes < GEONN_K_MAX)
			arcs->shape_arc[arcs->shapes] = i;
		arcs->shapes++;
	}
}

/* ---- pieces ---- */

/* List the arcs that are cut; only count them as long as the list has no memory. */
static void
find_cuts(struct building *building)
{
	uint32_t	further = (uint32_t) building->dataset->count;

	building->cuts = building->cut_vertices = 0;
	for (size_t i = 0; i < building->dataset->count; i++)
	{
		uint32_t	pieces;

		if (i % PIECE_ROWS == 0 && is_cancelled(building))
			return;
		pieces = dataset_arc_pieces(building->dataset, i);
		if (pieces == 1)
			continue;
		if (building->cut != NULL)
			building->cut[building->cuts] = (struct cut) {(uint32_t) i, pieces, further,
				building->arcs->vertices.count + (uint32_t) building->cut_vertices};
		building->cuts++;
		building->cut_vertices += pieces + 1;
		further += pieces - 1;
	}
}

/*
 * Return the last arc that is cut whose number is not above a value; if the value is that of a further piece, the last one
 * whose second piece's value is not above it.
 */
static const struct cut *
last_cut(const struct building *building, uint32_t value)
{
	bool		is_further = value >= building->dataset->count;
	size_t		first = 0;

	for (size_t end = building->cuts; end - first > 1;)
	{
		size_t		middle = first + (end - first) / 2;
		const struct cut *cut = &building->cut[middle];

		if ((is_further ? cut->further : cut->arc) <= value)
			first = middle;
		else
			end = middle;
	}
	return &building->cut[first];
}

/* Return the arc of a value; *vertex becomes the vertex where the value's piece of the arc begins. */
static uint32_t
arc_of(const struct building *building, uint32_t value, uint32_t *vertex)
{
	const struct cut *cut = building->cuts > 0 ? last_cut(building, value) : NULL;

	if (value >= building->dataset->count)
	{
		geonn_assert(value - cut->further < cut->pieces - 1);
		*vertex = cut->vertex + 1 + (value - cut->further);
		return cut->arc;
	}
	*vertex = cut != NULL && cut->arc == value ? cut->vertex : building->arcs->vertices.first[value];
	return value;
}

/* Make the vertices of arcs that are cut. */
static void
make_cuts(void *context, size_t piece)
{
	const struct building *building = context;
	const struct cpu_arcs *arcs = building->arcs;
	struct geonn_vector *vertex = arcs->vertices.vertex;

	for (size_t i = piece * PIECE_ROWS; i < piece_end(piece, building->cuts) && !is_cancelled(building); i++)
	{
		const struct cut *cut = &building->cut[i];
		uint32_t	halves = 1 + dataset_arc_is_long(building->dataset, cut->arc);
		uint32_t	pieces = cut->pieces / halves;

		for (uint32_t at = 0; at <= cut->pieces; at++)
		{
			uint32_t	half = at == cut->pieces ? halves - 1 : at / pieces;
			uint32_t	measured = arcs->vertices.first[cut->arc] + half;
			struct geonn_vector a = vertex[measured];
			struct geonn_vector b = vertex[measured + 1];

			vertex[cut->vertex + at] = cpu_arcs_cut(a, b, pieces, at - half * pieces);
			arcs->measured[cut->vertex + at - arcs->vertices.count] = measured;
		}
	}
}

/* ---- leaves ---- */

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
			uint32_t	vertex;

			value[i] = (uint32_t) (first + i);
			arc_of(building, value[i], &vertex);
			ends = &building->arcs->vertices.vertex[vertex];

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

			leaf->arc[i] = arc_of(building, value, &leaf->vertex[i]);
			leaf->shape[i] = (uint32_t) building->dataset->shape[leaf->arc[i]];
		}
		make_leaf(arcs, (uint32_t) (first / CPU_ARCS_LEAF));
	}
}

/* ---- the build ---- */

static size_t
place_columns(const struct building *building, void *memory)
{
	struct cpu_arcs *arcs = building->arcs;
	struct column_block block = {memory, 0};
	size_t		leaves = (arcs->count + CPU_ARCS_LEAF - 1) / CPU_ARCS_LEAF;

	COLUMN_PLACE(&block, arcs->leaf, leaves);
	COLUMN_PLACE(&block, arcs->measured, building->cut_vertices);
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

	arcs->bytes = place_columns(building, NULL);
	arcs->memory = memory_block_allocate(arcs->bytes, failure, "the index of %zu arcs", arcs->count);
	if (arcs->memory == NULL)
		return false;
	place_columns(building, arcs->memory);
	thread_pool_run(make_cuts, building, pieces_of(building->cuts));
	block.memory = memory_block_allocate(bytes + 4 * 64, failure, "sorting %zu arcs", arcs->count);
	if (block.memory == NULL)
		return false;
	*sort = (struct radix_sort) {.count = arcs->count,.cancelled = building->cancelled};
	radix_sort_place(sort, &block, sort->count);
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

/* Find the arcs that are cut, and make the vertices.  Returns false if memory is short. */
static bool
make_vertices(struct building *building, struct failure *failure)
{
	struct cpu_arcs *arcs = building->arcs;

	find_cuts(building);
	if (!shape_vertices_build(&arcs->vertices, building->dataset, false, building->cut_vertices, building->cancelled, failure))
		return false;
	arcs->count = building->dataset->count + building->cut_vertices - 2 * building->cuts;
	if (building->cuts == 0 || is_cancelled(building))
		return true;
	building->cut_bytes = building->cuts * sizeof(struct cut);
	building->cut = memory_block_allocate(building->cut_bytes, failure, "%zu long arcs", building->cuts);
	if (building->cut == NULL)
		return false;
	find_cuts(building);
	return true;
}

static bool
build(struct building *building, struct failure *failure)
{
	const struct dataset *dataset = building->dataset;
	struct cpu_arcs *arcs = building->arcs;
	bool		done = make_vertices(building, failure);

	list_shapes(arcs, dataset);
	if (done && !is_cancelled(building))
		done = make_index(building, failure);
	if (done && !is_cancelled(building))
		done = shape_polygons_build(&arcs->polygons, dataset, &arcs->vertices, building->cancelled, failure);
	if (done && is_cancelled(building))
		done = fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
	shape_vertices_end_build(&arcs->vertices);
	memory_block_release(building->cut, building->cut_bytes);
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
	memory_block_release(arcs->parts_built.memory, arcs->parts_built.bytes);
	memory_block_release(arcs->memory, arcs->bytes);
	free(arcs);
}
