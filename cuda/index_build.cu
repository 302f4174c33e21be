/*
 * index_build.cu
 *		Building the index of a dataset on a GPU.
 */
#include "index.cuh"

/* columns begin at multiples of this many bytes */
#define ALIGNMENT 256

/* take this many bytes from address memory, or from nothing */
static void *
take(void *memory, size_t *offset, size_t bytes)
{
	size_t		at = *offset;

	*offset += geonn_align(bytes, ALIGNMENT);
	return memory != NULL ? (char *) memory + at : NULL;
}

size_t
index_place(void *memory, uint32_t references, enum geonn_metric metric, uint32_t columns,
			struct index *index)
{
	struct index_shape shape = index_shape_of(references);
	size_t		positions = (size_t) shape.nodes[0] * INDEX_WIDTH;
	size_t		nodes = shape.all_nodes;
	size_t		bytes = 0;

	*index = {};
	index->references = references;
	index->metric = metric;
	index->columns = columns;
	index->shape = shape;
	index->x = (double *) take(memory, &bytes, positions * sizeof(double));
	index->y = (double *) take(memory, &bytes, positions * sizeof(double));
	index->z = (double *) take(memory, &bytes, positions * sizeof(double));
	index->start = (uint32_t *) take(memory, &bytes, (positions + 1) * sizeof(uint32_t));
	index->place = (uint32_t *) take(memory, &bytes, references * sizeof(uint32_t));
	index->tag = (int64_t *) take(memory, &bytes, references * sizeof(int64_t));
	index->low_x = (double *) take(memory, &bytes, nodes * sizeof(double));
	index->low_y = (double *) take(memory, &bytes, nodes * sizeof(double));
	index->low_z = (double *) take(memory, &bytes, nodes * sizeof(double));
	index->high_x = (double *) take(memory, &bytes, nodes * sizeof(double));
	index->high_y = (double *) take(memory, &bytes, nodes * sizeof(double));
	index->high_z = (double *) take(memory, &bytes, nodes * sizeof(double));
	if (columns & GEONN_COLUMN_GROUP)
	{
		index->group = (int32_t *) take(memory, &bytes, positions * sizeof(int32_t));
		index->low_group = (int32_t *) take(memory, &bytes, nodes * sizeof(int32_t));
		index->high_group = (int32_t *) take(memory, &bytes, nodes * sizeof(int32_t));
	}
	else
		index->leaf_code = (uint64_t *) take(memory, &bytes,
											 shape.nodes[0] * sizeof(uint64_t));
	if (columns & GEONN_COLUMN_IDENTITY)
		index->identity = (int32_t *) take(memory, &bytes, references * sizeof(int32_t));
	return bytes;
}
