/*
 * index_conditions.cu
 *		The radiuses and windows of an index on a GPU.
 *
 * Once positions are known and in order, a warp makes a leaf: it gathers what
 * its positions have, and finds what they are all within.  Then a warp makes each
 * node of the levels above.
 */
#include "cuda/base/columns.cuh"
#include "cuda/index/index_walk.cuh"

#define BLOCK_THREADS 256
#define BLOCK_WARPS (BLOCK_THREADS / INDEX_WIDTH)

void
index_place_conditions(void *memory, size_t *offset, uint32_t rows, uint32_t columns,
					struct index_conditions *conditions)
{
	*conditions = {};
	if (columns & GEONN_COLUMN_RADIUS)
		place_columns(memory, offset, rows, &conditions->radius);
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (columns & GEONN_COLUMN_WINDOW << i)
			place_columns(memory, offset, rows, &conditions->low[i], &conditions->high[i]);
	if (columns & GEONN_COLUMNS_WINDOWS)
		place_columns(memory, offset, rows, &conditions->edges);
}

/* the least of the lanes' values, in every lane */
static __device__ __forceinline__ int64_t
warp_least(int64_t value)
{
	for (int lanes = INDEX_WIDTH / 2; lanes > 0; lanes /= 2)
		value = min(value, __shfl_xor_sync(INDEX_ALL_LANES, value, lanes));
	return value;
}

static __device__ __forceinline__ int64_t
warp_greatest(int64_t value)
{
	for (int lanes = INDEX_WIDTH / 2; lanes > 0; lanes /= 2)
		value = max(value, __shfl_xor_sync(INDEX_ALL_LANES, value, lanes));
	return value;
}

static __device__ __forceinline__ float
warp_greatest(float value)
{
	for (int lanes = INDEX_WIDTH / 2; lanes > 0; lanes /= 2)
		value = fmaxf(value, __shfl_xor_sync(INDEX_ALL_LANES, value, lanes));
	return value;
}

/*
 * The conditions of a leaf's positions, which are known, and of the leaf.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
fill_kernel(const __grid_constant__ struct index index,
			const __grid_constant__ struct index_conditions source, const uint32_t *places)
{
	uint32_t	leaf = blockIdx.x * BLOCK_WARPS + threadIdx.x / INDEX_WIDTH;
	uint32_t	position = leaf * INDEX_WIDTH + index_lane();
	uint32_t	place;

	if (leaf >= index.shape.nodes[0])
		return;
	place = places[index.start[min(position, index.shape.positions - 1)]];
	if (index.conditions.radius != NULL)
	{
		double		radius = source.radius[place];
		float		limit = __double2float_ru(geonn_metric_radius_limit(index.metric, radius));

		index.conditions.radius[position] = radius;
		limit = warp_greatest(limit);
		if (index_lane() == 0)
			index.node_limit[leaf] = limit;
	}
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
	{
		int64_t		low;
		int64_t		high;
		uint16_t	edges;

		if (index.conditions.low[i] == NULL)
			continue;
		low = source.low[i][place];
		high = source.high[i][place];
		edges = source.edges[place];
		index.conditions.low[i][position] = low;
		index.conditions.high[i][position] = high;
		if (geonn_low_edge(edges, i) == GEONN_EDGE_EXCLUSIVE ||
			geonn_high_edge(edges, i) == GEONN_EDGE_EXCLUSIVE)
			atomicOr(index.exclusive, 1u << i);
		low += index_is_inside(low, geonn_low_edge(edges, i), INT64_MAX);
		high -= index_is_inside(high, geonn_high_edge(edges, i), INT64_MIN);
		low = warp_least(low);
		high = warp_greatest(high);
		if (index_lane() == 0)
		{
			index.node_low[i][leaf] = low;
			index.node_high[i][leaf] = high;
		}
	}
	if (index.conditions.edges != NULL)
		index.conditions.edges[position] = source.edges[place];
}

/* The same for the nodes of a level above the leaves. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
level_kernel(const __grid_constant__ struct index index, int level)
{
	uint32_t	node = blockIdx.x * BLOCK_WARPS + threadIdx.x / INDEX_WIDTH;
	uint32_t	child = min(node * INDEX_WIDTH + index_lane(), index.shape.nodes[level - 1] - 1);
	size_t		from = (size_t) index.shape.first[level - 1] + child;
	size_t		to = (size_t) index.shape.first[level] + node;

	if (node >= index.shape.nodes[level])
		return;
	if (index.node_limit != NULL)
	{
		float		limit = warp_greatest(index.node_limit[from]);

		if (index_lane() == 0)
			index.node_limit[to] = limit;
	}
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
	{
		int64_t		low;
		int64_t		high;

		if (index.node_low[i] == NULL)
			continue;
		low = warp_least(index.node_low[i][from]);
		high = warp_greatest(index.node_high[i][from]);
		if (index_lane() == 0)
		{
			index.node_low[i][to] = low;
			index.node_high[i][to] = high;
		}
	}
}

/* blocks with a warp for each node of a level */
static uint32_t
blocks_of(const struct index *index, int level)
{
	return (index->shape.nodes[level] + BLOCK_WARPS - 1) / BLOCK_WARPS;
}

cudaError_t
index_fill_conditions(const struct index *index, const struct index_conditions *source,
					  const uint32_t *places, cudaStream_t stream)
{
	cudaError_t error;

	if (index->exclusive != NULL &&
		(error = cudaMemsetAsync(index->exclusive, 0, sizeof(uint32_t), stream)) != cudaSuccess)
		return error;
	fill_kernel<<<blocks_of(index, 0), BLOCK_THREADS, 0, stream>>> (*index, *source, places);
	for (int level = 1; level < index->shape.levels; level++)
		level_kernel<<<blocks_of(index, level), BLOCK_THREADS, 0, stream>>> (*index, level);
	return cudaGetLastError();
}
