/*
 * polygons.cu
 *		Copies a dataset's polygons to a GPU, and finds the first that observations lie in.
 */
#include "cuda/arcs/polygons_take.cuh"
#include "cuda/base/blocks.cuh"

#define BLOCK_THREADS 128

static __global__ void __launch_bounds__(BLOCK_THREADS)
first_kernel(const __grid_constant__ struct polygons polygons, const __grid_constant__ struct index_order order,
			 uint32_t begin, uint32_t end, uint32_t *arc, uint32_t *refused)
{
	uint32_t	slot = begin + blockIdx.x * BLOCK_THREADS + threadIdx.x;
	uint32_t	first = POLYGONS_NONE;
	struct polygons_asking asking;
	uint32_t	row;

	if (slot >= end)
		return;
	row = order.sorted_row[slot];
	if (*(volatile const uint32_t *) refused < row)
	{
		arc[slot] = POLYGONS_NONE;
		return;
	}
	asking = polygons_ask(&order, row);
	if (!polygons_take(&polygons, &asking, [&](uint32_t its) { return its < first; }, [&](uint32_t its) { first = its; }))
		atomicMin(refused, row);
	arc[slot] = first;
}

/* ---- for the host ---- */

bool
polygons_build(const struct dataset *dataset, const atomic_bool *cancelled, struct polygons_of_host *built,
			   struct failure *failure)
{
	bool		done;

	*built = {};
	done = shape_vertices_build(&built->vertices, dataset, true, 0, cancelled, failure) &&
		(atomic_load(cancelled) ||
		 shape_polygons_build(&built->polygons, dataset, &built->vertices, cancelled, failure));
	shape_vertices_end_build(&built->vertices);
	if (done && atomic_load(cancelled))
		return fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
	return done;
}

void
polygons_free(struct polygons_of_host *built)
{
	shape_polygons_free(&built->polygons);
	shape_vertices_free(&built->vertices);
	*built = {};
}

static size_t
offset_in(const struct shape_polygons *built, const void *address)
{
	return (size_t) ((const char *) address - (const char *) built->memory);
}

struct polygons_shape
polygons_shape_of(const struct polygons_of_host *built)
{
	const struct shape_polygons *polygons = &built->polygons;
	struct polygons_shape shape = {};

	shape.bytes = polygons->bytes + built->vertices.bytes;
	shape.polygon = offset_in(polygons, polygons->polygon);
	shape.vertex = polygons->bytes;
	shape.stretch = offset_in(polygons, polygons->stretch);
	shape.levels = polygons->boxes.levels;
	for (int level = 0; level < shape.levels; level++)
		shape.node[level] = offset_in(polygons, polygons->boxes.node[level]);
	return shape;
}

size_t
polygons_place(void *memory, const struct polygons_shape *shape, struct polygons *polygons)
{
	uintptr_t	base = (uintptr_t) memory;

	*polygons = {};
	polygons->polygon = (const struct shape_polygon *) (base + shape->polygon);
	polygons->vertex = (const struct geonn_vector *) (base + shape->vertex);
	polygons->stretch = (const struct shape_polygons_stretch *) (base + shape->stretch);
	polygons->levels = shape->levels;
	for (int level = 0; level < shape->levels; level++)
		polygons->node[level] = (const struct shape_boxes_node *) (base + shape->node[level]);
	return shape->bytes;
}

cudaError_t
polygons_find(const struct polygons *polygons, const struct index_order *order, uint32_t begin, uint32_t end, uint32_t *arc,
			  uint32_t *refused, cudaStream_t stream)
{
	first_kernel<<<blocks_for(end - begin, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>>
		(*polygons, *order, begin, end, arc, refused);
	return cudaGetLastError();
}
