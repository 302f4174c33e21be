/*
 * index_conditions.cuh
 *		The radiuses and windows of an index on a GPU, for index_build.cu.
 *
 * Once positions are known and in order, a warp makes a leaf: it gathers the
 * radiuses and windows of its positions, and finds bounds that hold for all of
 * them.  Then a warp makes each node of the levels above.
 */
#ifndef GEONN_INDEX_CONDITIONS_CUH
#define GEONN_INDEX_CONDITIONS_CUH

#include "cuda/index/index_walk.cuh"

/* Return the least of the lanes' values, in every lane. */
static __device__ __forceinline__ int64_t
warp_least(int64_t value)
{
	return warp_fold(value, [](int64_t a, int64_t b) { return min(a, b); });
}

/* Set the conditions of this lane's position from the reference with this index in the dataset,
 * and the leaf's bounds. */
static __device__ __forceinline__ void
conditions_of_leaf(const struct index *index, const struct index_conditions *source,
				   uint32_t leaf, uint32_t position, uint32_t place)
{
	if (index->conditions.radius != NULL)
	{
		double		radius = source->radius[place];
		float		limit = __double2float_ru(geonn_metric_radius_limit(index->metric, radius));

		index->conditions.radius[position] = radius;
		limit = warp_largest(limit);
		if (warp_lane() == 0)
			index->node_limit[leaf] = limit;
	}
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
	{
		int64_t		low;
		int64_t		high;
		uint16_t	edges;

		if (index->conditions.low[i] == NULL)
			continue;
		low = source->low[i][place];
		high = source->high[i][place];
		edges = source->edges[place];
		index->conditions.low[i][position] = low;
		index->conditions.high[i][position] = high;
		if (geonn_low_edge(edges, i) == GEONN_EDGE_EXCLUSIVE ||
			geonn_high_edge(edges, i) == GEONN_EDGE_EXCLUSIVE)
			atomicOr(index->exclusive, 1u << i);
		low += index_is_inside(low, geonn_low_edge(edges, i), INT64_MAX);
		high -= index_is_inside(high, geonn_high_edge(edges, i), INT64_MIN);
		low = warp_least(low);
		high = warp_largest(high);
		if (warp_lane() == 0)
		{
			index->node_low[i][leaf] = low;
			index->node_high[i][leaf] = high;
		}
	}
	if (index->conditions.edges != NULL)
		index->conditions.edges[position] = source->edges[place];
}

/* Set the bounds of a node above the leaves from those of its children, one for each lane. */
static __device__ __forceinline__ void
conditions_of_node(const struct index *index, size_t child, size_t node)
{
	if (index->node_limit != NULL)
	{
		float		limit = warp_largest(index->node_limit[child]);

		if (warp_lane() == 0)
			index->node_limit[node] = limit;
	}
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
	{
		int64_t		low;
		int64_t		high;

		if (index->node_low[i] == NULL)
			continue;
		low = warp_least(index->node_low[i][child]);
		high = warp_largest(index->node_high[i][child]);
		if (warp_lane() == 0)
		{
			index->node_low[i][node] = low;
			index->node_high[i][node] = high;
		}
	}
}

#endif							/* GEONN_INDEX_CONDITIONS_CUH */
