/*
 * arcs_build.cu
 *		Builds the index of arcs on a GPU.
 *
 * prepare	makes the code of the place of each arc's middle on the curve.
 * sort		brings (code, number) into order.  Numbers up to the dataset's count are its arcs, of long ones
 *			the first halves; the others are the second halves.
 * leaves	computes the ends of arcs in that order.  Eight threads make a leaf, and its box.
 * join		makes a level of boxes from the one below.
 *
 * The host finds the long arcs and their middles, which are few: their degrees show all but a few.
 *
 * An index takes some 77 bytes an arc; while it is built, 56 more, and what the sort needs.
 */
#include <cub/device/device_radix_sort.cuh>

#include "cuda/arcs/arcs.cuh"
#include "cuda/base/blocks.cuh"
#include "cuda/base/columns.cuh"
#include "cuda/base/try.cuh"
#include "cuda/index/index_walk.cuh"

extern "C"
{
#include "engine/base/memory_block.h"
#include "engine/dataset/dataset_arcs.h"
}

#define BLOCK_THREADS 256
#define CODE_BITS (3 + 2 * INDEX_CODE_LEVELS)

/* The host looks after this many arcs whether the search has been cancelled. */
#define LOOK_ARCS 4096

struct build_room
{
	uint64_t   *key;			/* [arcs of the index] */
	uint64_t   *sorted_key;
	uint32_t   *number;
	uint32_t   *sorted_number;
	void	   *scratch;
	size_t		scratch_bytes;
};

static uint32_t
arcs_of_index(const struct arcs_shape *shape)
{
	return shape->arcs + shape->long_arcs;
}

/*
 * Go through the arcs of a dataset, count the long ones, and write them into the list if the list has memory.  Returns
 * false with the failure soon after the search is cancelled.
 */
static bool
find_long(const struct dataset *dataset, const atomic_bool *cancelled, struct arcs_long *listed, struct failure *failure)
{
	listed->count = 0;
	for (uint32_t i = 0; i < dataset->count; i++)
	{
		if (i % LOOK_ARCS == 0 && atomic_load(cancelled))
			return fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
		if (!dataset_arc_is_long(dataset, i))
			continue;
		if (listed->memory != NULL)
		{
			listed->arc[listed->count] = i;
			listed->middle[listed->count] = dataset_arc_middle(dataset, i);
		}
		listed->count++;
	}
	return true;
}

bool
arcs_list_long(const struct dataset *dataset, const atomic_bool *cancelled, struct arcs_long *listed,
			   struct failure *failure)
{
	size_t		bytes = 0;

	*listed = {};
	if (!find_long(dataset, cancelled, listed, failure))
		return false;
	if (listed->count == 0)
		return true;
	place_columns(NULL, &bytes, listed->count, &listed->arc, &listed->middle);
	listed->memory = memory_block_allocate(bytes, failure, "the long ones of %zu arcs", dataset->count);
	if (listed->memory == NULL)
		return false;
	listed->bytes = bytes;
	bytes = 0;
	place_columns(listed->memory, &bytes, listed->count, &listed->arc, &listed->middle);
	return find_long(dataset, cancelled, listed, failure);
}

void
arcs_free_long(struct arcs_long *listed)
{
	memory_block_release(listed->memory, listed->bytes);
	*listed = {};
}

struct arcs_shape
arcs_shape_of(uint32_t arcs, uint32_t long_arcs)
{
	struct arcs_shape shape = {};
	uint32_t	below;

	shape.arcs = arcs;
	shape.long_arcs = long_arcs;
	shape.leaves = blocks_for(arcs_of_index(&shape), ARCS_WIDTH);
	below = shape.leaves;
	do
	{
		below = blocks_for(below, ARCS_WIDTH);
		shape.nodes[shape.levels] = below;
		shape.first[shape.levels] = shape.all_nodes;
		shape.all_nodes += below;
		shape.levels++;
	} while (below > 1);
	return shape;
}

size_t
arcs_place(void *memory, const struct arcs_shape *shape, struct arcs *arcs)
{
	size_t		bytes = 0;

	*arcs = {};
	arcs->shape = *shape;
	arcs->curve.shape.nodes[0] = shape->leaves;
	place_columns(memory, &bytes, shape->leaves, &arcs->leaf, &arcs->curve.leaf_code);
	place_columns(memory, &bytes, shape->all_nodes, &arcs->node);
	place_columns(memory, &bytes, shape->arcs, &arcs->tag, &arcs->shape_of);
	return bytes;
}

static cudaError_t
place_room(void *memory, const struct arcs_shape *shape, struct build_room *room, size_t *bytes)
{
	size_t		count = arcs_of_index(shape);

	room->scratch_bytes = 0;
	CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, room->scratch_bytes, (uint64_t *) NULL, (uint64_t *) NULL,
											 (uint32_t *) NULL, (uint32_t *) NULL, (uint32_t) count));
	*bytes = 0;
	place_columns(memory, bytes, count, &room->key, &room->sorted_key, &room->number, &room->sorted_number);
	room->scratch = next_column(memory, bytes, room->scratch_bytes);
	return cudaSuccess;
}

size_t
arcs_build_room(const struct arcs_shape *shape)
{
	struct build_room room;
	size_t		bytes;

	return place_room(NULL, shape, &room, &bytes) == cudaSuccess ? bytes : INDEX_NO_ROOM;
}

/* an arc of the index */
struct ends
{
	struct geonn_vector a;
	struct geonn_vector b;
	uint32_t	arc;			/* index of the arc in the dataset */
};

/* Return the ends of the index's arc number `number`: a whole arc, or half of a long one. */
static __device__ __forceinline__ struct ends
ends_of(const struct arcs_shape *shape, const struct arcs_source *source, uint32_t number)
{
	bool		is_second = number >= shape->arcs;
	struct ends ends;
	uint32_t	first = 0;

	ends.arc = is_second ? source->long_arc[number - shape->arcs] : number;
	ends.a = geonn_unit_vector(source->latitude[ends.arc], source->longitude[ends.arc]);
	ends.b = geonn_unit_vector(source->end_latitude[ends.arc], source->end_longitude[ends.arc]);
	if (shape->long_arcs == 0)
		return ends;
	if (is_second)
	{
		ends.a = source->middle[number - shape->arcs];
		return ends;
	}
	for (uint32_t end = shape->long_arcs; end - first > 1;)
	{
		uint32_t	middle = first + (end - first) / 2;

		if (source->long_arc[middle] <= number)
			first = middle;
		else
			end = middle;
	}
	if (source->long_arc[first] == number)
		ends.b = source->middle[first];
	return ends;
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
prepare_kernel(const __grid_constant__ struct arcs_shape shape, const __grid_constant__ struct arcs_source source,
			   struct build_room room)
{
	uint32_t	number = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	struct ends ends;
	struct geonn_vector middle;

	if (number >= shape.arcs + shape.long_arcs)
		return;
	ends = ends_of(&shape, &source, number);
	middle.x = ends.a.x + ends.b.x;
	middle.y = ends.a.y + ends.b.y;
	middle.z = ends.a.z + ends.b.z;
	room.key[number] = index_code(middle);
	room.number[number] = number;
}

/* Set the boxes of nodes farther from all vectors than any chord, so that a walk never enters a box that stays empty. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
close_kernel(struct shape_boxes_node *node, uint32_t nodes)
{
	uint32_t	box = blockIdx.x * BLOCK_THREADS + threadIdx.x;

	for (int axis = 0; axis < 3 && box / ARCS_WIDTH < nodes; axis++)
	{
		node[box / ARCS_WIDTH].low[axis][box % ARCS_WIDTH] = 4.0f;
		node[box / ARCS_WIDTH].high[axis][box % ARCS_WIDTH] = -4.0f;
	}
}

/* Return the least of the values of the eight threads of a leaf. */
static __device__ __forceinline__ double
leaf_least(double value)
{
	for (int lanes = ARCS_WIDTH / 2; lanes > 0; lanes /= 2)
		value = fmin(value, __shfl_xor_sync(ALL_LANES, value, lanes));
	return value;
}

/*
 * Each thread makes one arc of a leaf; copies of the last arc fill up the last leaf.  Threads behind the last leaf compute
 * the last arc again and write nothing.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
leaf_kernel(const __grid_constant__ struct arcs arcs, const __grid_constant__ struct arcs_source source,
			struct build_room room)
{
	uint32_t	slot = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	uint32_t	last = arcs.shape.arcs + arcs.shape.long_arcs - 1;
	uint32_t	number = slot / ARCS_WIDTH;
	uint32_t	i = slot % ARCS_WIDTH;
	bool		is_present = number < arcs.shape.leaves;
	struct ends ends = ends_of(&arcs.shape, &source, room.sorted_number[min(slot, last)]);
	const double a[3] = {ends.a.x, ends.a.y, ends.a.z};
	const double b[3] = {ends.b.x, ends.b.y, ends.b.z};
	double		chord = geonn_chord_squared(ends.a, ends.b);

	for (int axis = 0; axis < 3; axis++)
	{
		double		low = leaf_least(fmin(a[axis], b[axis]) - SHAPE_ARCS_SAGITTA * chord);
		double		high = -leaf_least(-fmax(a[axis], b[axis]) - SHAPE_ARCS_SAGITTA * chord);

		if (!is_present)
			continue;
		arcs.leaf[number].a[axis][i] = a[axis];
		arcs.leaf[number].b[axis][i] = b[axis];
		if (i == 0)
		{
			struct shape_boxes_node *node = &arcs.node[number / ARCS_WIDTH];

			node->low[axis][number % ARCS_WIDTH] = (float) (low - SHAPE_BOXES_WIDER);
			node->high[axis][number % ARCS_WIDTH] = (float) (high + SHAPE_BOXES_WIDER);
		}
	}
	if (!is_present)
		return;
	arcs.leaf[number].inverse[i] = 1.0 / (chord + 0x1p-200);
	arcs.leaf[number].arc[i] = ends.arc;
	if (i == 0)
		arcs.curve.leaf_code[number] = room.sorted_key[slot];
}

/* Make the boxes of the nodes of a level, in the level above. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
join_kernel(const struct shape_boxes_node *below, uint32_t nodes, struct shape_boxes_node *above)
{
	uint32_t	number = blockIdx.x * BLOCK_THREADS + threadIdx.x;

	for (int axis = 0; axis < 3 && number < nodes; axis++)
	{
		float		low = below[number].low[axis][0];
		float		high = below[number].high[axis][0];

		for (int i = 1; i < ARCS_WIDTH; i++)
		{
			low = fminf(low, below[number].low[axis][i]);
			high = fmaxf(high, below[number].high[axis][i]);
		}
		above[number / ARCS_WIDTH].low[axis][number % ARCS_WIDTH] = low;
		above[number / ARCS_WIDTH].high[axis][number % ARCS_WIDTH] = high;
	}
}

cudaError_t
arcs_build(const struct arcs *arcs, const struct arcs_source *source, void *memory, cudaStream_t stream)
{
	const struct arcs_shape *shape = &arcs->shape;
	uint32_t	count = arcs_of_index(shape);
	struct build_room room;
	size_t		bytes;

	CUDA_TRY(place_room(memory, shape, &room, &bytes));
	prepare_kernel<<<blocks_for(count, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>> (*shape, *source, room);
	CUDA_TRY(cudaGetLastError());
	CUDA_TRY(cub::DeviceRadixSort::SortPairs(room.scratch, room.scratch_bytes, room.key, room.sorted_key, room.number,
											 room.sorted_number, count, 0, CODE_BITS, stream));
	close_kernel<<<blocks_for((uint64_t) shape->all_nodes * ARCS_WIDTH, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>>
		(arcs->node, shape->all_nodes);
	leaf_kernel<<<blocks_for((uint64_t) shape->leaves * ARCS_WIDTH, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>>
		(*arcs, *source, room);
	for (int level = 0; level + 1 < shape->levels; level++)
		join_kernel<<<blocks_for(shape->nodes[level], BLOCK_THREADS), BLOCK_THREADS, 0, stream>>>
			(arcs->node + shape->first[level], shape->nodes[level], arcs->node + shape->first[level + 1]);
	return cudaGetLastError();
}
