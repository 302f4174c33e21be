/*
 * vertices.c
 *		Makes the vertices of a dataset of arcs, each once.
 *
 * An arc begins where the one before it in its part ends: the two have that vertex in common.  So a part of n arcs has
 * n + 1 vertices that follow each other, and each long arc its middle between its ends: arcs of an index go from one vertex
 * to the next.
 *
 * A search that finds one arc near an observation reads others near it.  So shapes follow each other along the curve of the
 * index of points, by the places where they begin.  In the order of a dataset of short lines, the vertices of a leaf would be
 * far apart in memory, and searches took an eighth longer.
 *
 * First one thread numbers the vertices in the order of the dataset, then shapes are sorted, and get other numbers; pieces of the
 * dataset compute the vertices on the thread pool.  The sort takes 32 bytes for each shape.
 */
#include "engine/shapes/vertices.h"

#include "common/arc.h"
#include "engine/base/memory_block.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"
#include "engine/base/memory_columns.h"
#include "engine/cpu/base/curve.h"
#include "engine/cpu/base/vectors.h"
#include "engine/dataset/dataset_arcs.h"

/* After this many arcs, the first phase looks at `cancelled`. */
#define LOOK_ARCS 65536

struct building
{
	struct shape_vertices *vertices;
	const struct dataset *dataset;
	bool		of_polygons;
	uint64_t	spare;
	const atomic_bool *cancelled;

	/* columns by the number of a shape; numbers are below `shapes`, and come in any order in the dataset */
	uint32_t	shapes;
	uint32_t   *begin;			/* each shape's first vertex, in the order of the dataset */
	uint32_t   *end;			/* the vertex behind the shape's last one */
	uint32_t   *moved;			/* how far the shape's vertices move from `begin`, modulo 2^32 */
	struct radix_sort sort;		/* along the curve */
};

static bool
is_cancelled(const struct building *building)
{
	return atomic_load_explicit(building->cancelled, memory_order_relaxed);
}

static bool
begins_shape(const struct dataset *dataset, size_t arc)
{
	return arc == 0 || dataset->shape[arc] != dataset->shape[arc - 1];
}

static uint32_t
count_shapes(const struct dataset *dataset)
{
	uint32_t	count = 0;

	for (size_t i = 0; i < dataset->count; i++)
		count += begins_shape(dataset, i);
	return count;
}

static bool
ends_part(const struct dataset *dataset, size_t arc)
{
	return arc + 1 == dataset->count || !dataset_arc_goes_on(dataset, arc + 1);
}

/*
 * Return how many vertices an arc brings: its first; its middle, if the arc is long; and its end, if the arc is the last of
 * a part.
 */
static uint32_t
vertices_of(const struct building *building, size_t arc, bool is_long)
{
	return building->of_polygons && building->dataset->polygon[arc] == 0 ? 0 :
		(uint32_t) 1 + is_long + ends_part(building->dataset, arc);
}

/* Number the vertices in the order of the dataset.  Returns how many they are. */
static uint64_t
number_vertices(const struct building *building)
{
	const struct dataset *dataset = building->dataset;
	struct shape_vertices *vertices = building->vertices;
	uint64_t	count = 0;

	for (size_t i = 0; i < dataset->count; i++)
	{
		bool		is_long = dataset_arc_is_long(dataset, i);

		if (i % LOOK_ARCS == 0 && is_cancelled(building))
			return 0;
		if (begins_shape(dataset, i))
			building->begin[dataset->shape[i]] = (uint32_t) count;
		vertices->first[i] = (uint32_t) count;
		vertices->has_lines = vertices->has_lines || dataset->polygon[i] == 0;
		count += vertices_of(building, i, is_long);
		building->end[dataset->shape[i]] = (uint32_t) count;
	}
	return count;
}

struct vectors
{
	double		x[CPU_VECTORS_BLOCK];
	double		y[CPU_VECTORS_BLOCK];
	double		z[CPU_VECTORS_BLOCK];
};

/*
 * Places of up to CPU_VECTORS_BLOCK vertices, with the vertices' numbers, or with the numbers of the shapes
 * that begin there.
 */
struct block
{
	double		latitude[CPU_VECTORS_BLOCK];
	double		longitude[CPU_VECTORS_BLOCK];
	uint32_t	number[CPU_VECTORS_BLOCK];
	uint32_t	count;
};

static void
add(struct block *block, double latitude, double longitude, uint32_t number)
{
	block->latitude[block->count] = latitude;
	block->longitude[block->count] = longitude;
	block->number[block->count++] = number;
}

static void
compute(struct block *block, struct geonn_vector *vertex)
{
	struct vectors vectors;

	cpu_path->vectors(GEONN_METRIC_SPHERE, block->latitude, block->longitude, block->count, vectors.x, vectors.y, vectors.z);
	for (uint32_t i = 0; i < block->count; i++)
		vertex[block->number[i]] = (struct geonn_vector) {vectors.x[i], vectors.y[i], vectors.z[i]};
	block->count = 0;
}

/* Compute the keys of the shapes that begin in a piece of the dataset. */
static void
make_keys(void *context, size_t piece)
{
	struct building *building = context;
	const struct dataset *dataset = building->dataset;
	size_t		end = piece_end(piece, dataset->count);
	struct block block = {.count = 0};

	if (is_cancelled(building))
		return;
	for (size_t i = piece * PIECE_ROWS; i < end; i++)
	{
		if (begins_shape(dataset, i))
			add(&block, dataset->latitude[i], dataset->longitude[i], (uint32_t) dataset->shape[i]);
		if (block.count == CPU_VECTORS_BLOCK || (i + 1 == end && block.count > 0))
		{
			struct vectors vectors;
			uint64_t	key[CPU_VECTORS_BLOCK];

			cpu_path->vectors(GEONN_METRIC_SPHERE, block.latitude, block.longitude, block.count, vectors.x, vectors.y, vectors.z);
			cpu_path->curve_codes(vectors.x, vectors.y, vectors.z, block.count, CPU_CURVE_LEVELS, key);
			for (uint32_t k = 0; k < block.count; k++)
			{
				building->sort.key[block.number[k]] = key[k];
				building->sort.value[block.number[k]] = block.number[k];
			}
			block.count = 0;
		}
	}
}

/* Sort the shapes, and find how far the vertices of each move.  Returns false if memory is short. */
static bool
move_shapes(struct building *building)
{
	uint32_t	next = 0;

	thread_pool_run(make_keys, building, pieces_of(building->dataset->count));
	if (is_cancelled(building))
		return true;
	if (!radix_sort(&building->sort))
		return false;
	building->moved = building->sort.room_value;
	for (uint32_t i = 0; i < building->shapes; i++)
	{
		uint32_t	shape = building->sort.value[i];

		building->moved[shape] = next - building->begin[shape];
		next += building->end[shape] - building->begin[shape];
	}
	return true;
}

static void
make_vertices(void *context, size_t piece)
{
	const struct building *building = context;
	const struct dataset *dataset = building->dataset;
	uint32_t   *first = building->vertices->first;
	struct geonn_vector *vertex = building->vertices->vertex;
	size_t		end = piece_end(piece, dataset->count);
	struct block block = {.count = 0};

	if (is_cancelled(building))
		return;
	for (size_t i = piece * PIECE_ROWS; i < end; i++)
	{
		bool		is_long = dataset_arc_is_long(dataset, i);
		uint32_t	count = vertices_of(building, i, is_long);

		first[i] += building->moved[dataset->shape[i]];
		if (count > 0)
			add(&block, dataset->latitude[i], dataset->longitude[i], first[i]);
		if (count > (uint32_t) 1 + is_long)
			add(&block, dataset->end_latitude[i], dataset->end_longitude[i], first[i] + count - 1);
		if (count > 0 && is_long)
			vertex[first[i] + 1] = geonn_arc_middle(dataset->latitude[i], dataset->longitude[i],
													dataset->end_latitude[i], dataset->end_longitude[i]);
		if (block.count > CPU_VECTORS_BLOCK - 2 || i + 1 == end)
			compute(&block, vertex);
	}
}

/* Number the vertices, and compute them. */
static bool
build(struct building *building, struct failure *failure)
{
	struct shape_vertices *vertices = building->vertices;
	uint64_t	count = number_vertices(building);

	if (count == 0)
		return true;
	vertices->count = (uint32_t) count;
	count += building->spare;
	if (count > UINT32_MAX)
		return fail(failure, GEONN_ERROR_LIMIT, "too many vertices of lines and polygons: %llu", (unsigned long long) count);
	vertices->bytes = count * sizeof(struct geonn_vector);
	vertices->vertex = memory_block_allocate(vertices->bytes, failure, "%llu vertices", (unsigned long long) count);
	if (vertices->vertex == NULL)
		return false;
	if (!move_shapes(building))
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory to sort %u shapes", building->shapes);
	if (!is_cancelled(building))
		thread_pool_run(make_vertices, building, pieces_of(building->dataset->count));
	return true;
}

/* Lay out the memory for each shape that the build needs and frees at its end. */
static size_t
place_room(struct building *building, void *memory)
{
	struct column_block block = {memory, 0};
	size_t		count = building->shapes;

	COLUMN_PLACE(&block, building->begin, count);
	COLUMN_PLACE(&block, building->end, count);
	radix_sort_place(&building->sort, &block, count);
	building->sort.count = count;
	building->sort.cancelled = building->cancelled;
	return block.bytes;
}

bool
shape_vertices_build(struct shape_vertices *vertices, const struct dataset *dataset, bool of_polygons,
					 uint64_t spare, const atomic_bool *cancelled, struct failure *failure)
{
	struct building building = {
		.vertices = vertices,
		.dataset = dataset,
		.of_polygons = of_polygons,
		.spare = spare,
		.cancelled = cancelled,
		.shapes = count_shapes(dataset)
	};
	size_t		room_bytes = place_room(&building, NULL);
	void	   *room;
	bool		done;

	*vertices = (struct shape_vertices) {.first_bytes = dataset->count * sizeof(uint32_t)};
	vertices->first = memory_block_allocate(vertices->first_bytes, failure, "the vertices of %zu arcs", dataset->count);
	if (vertices->first == NULL)
		return false;
	room = memory_block_allocate(room_bytes, failure, "sorting %u shapes", building.shapes);
	if (room == NULL)
		return false;
	place_room(&building, room);
	done = build(&building, failure);
	memory_block_release(room, room_bytes);
	return done;
}

void
shape_vertices_end_build(struct shape_vertices *vertices)
{
	memory_block_release(vertices->first, vertices->first_bytes);
	vertices->first = NULL;
}

void
shape_vertices_free(struct shape_vertices *vertices)
{
	shape_vertices_end_build(vertices);
	memory_block_release(vertices->vertex, vertices->bytes);
	vertices->vertex = NULL;
}
