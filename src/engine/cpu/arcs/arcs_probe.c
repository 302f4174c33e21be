/*
 * arcs_probe.c
 *		Copies observations that are shapes, and makes probes of them.
 *
 * The engine copies a search's arcs, so that its client can change nothing any more.  An observation's arcs follow each other
 * as they were sent, in pieces of at most 250 km, as arcs.c cuts those of references: arcs_probe_search.c has how they are used.
 *
 * A batch may have millions of arcs.  As the build of an index, the copy and the build go on beside the turns of other
 * searches (scheduler.c): between their jobs, and between pieces of these, other threads have the seat (thread_pool.c).
 */
#include "engine/cpu/arcs/arcs_probe.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/host.h"
#include "engine/base/memory_block.h"
#include "engine/base/memory_columns.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/arcs/arcs_cut.h"

/* After this many arcs, the build looks at `cancelled`. */
#define LOOK_ARCS 65536

/* a job of the copy has so many arcs: some tenths of a millisecond */
#define COPIED_ARCS 16384

_Static_assert(sizeof(struct cpu_probe_side) == GEONN_OBSERVED_PIECE_BYTES, "clients count a piece's bytes");

static size_t
place_columns(struct cpu_probes *probes, size_t sides, void *memory)
{
	struct column_block block = {memory, 0};

	COLUMN_PLACE(&block, probes->arc, probes->count + (size_t) 1);
	COLUMN_PLACE(&block, probes->first_side, probes->count + (size_t) 1);
	COLUMN_PLACE(&block, probes->side, sides);
	COLUMN_PLACE(&block, probes->first_polygon, probes->count + (size_t) 1);
	COLUMN_PLACE(&block, probes->polygon, probes->polygons.count);
	return block.bytes;
}

/* Make the pieces of an arc, or of a half of one, that begins at a vertex.  Returns how many they are. */
static uint32_t
make_pieces(const struct cpu_probes *probes, struct cpu_probe_side *side, uint32_t vertex, uint32_t pieces)
{
	struct geonn_vector a = probes->vertices.vertex[vertex];
	struct geonn_vector b = probes->vertices.vertex[vertex + 1];

	for (uint32_t i = 0; i < pieces; i++)
	{
		side[i].a = i == 0 ? a : side[i - 1].b;
		side[i].b = i + 1 == pieces ? b : cpu_arcs_cut(a, b, pieces, i + 1);
		side[i].vertex = vertex;
	}
	return pieces;
}

static void
make_sides(const struct cpu_probes *probes, const atomic_bool *cancelled)
{
	const struct dataset *dataset = probes->dataset;
	uint32_t	sides = 0;

	for (uint32_t i = 0; i < dataset->count; i++)
	{
		uint32_t	pieces = dataset_arc_pieces(dataset, i);
		uint32_t	vertex = probes->vertices.first[i];

		if (i % LOOK_ARCS == 0 && atomic_load(cancelled))
			return;
		if (i == 0 || dataset->shape[i] != dataset->shape[i - 1])
		{
			probes->arc[dataset->shape[i]] = i;
			probes->first_side[dataset->shape[i]] = sides;
		}
		if (dataset_arc_is_long(dataset, i))
		{
			pieces /= 2;
			sides += make_pieces(probes, probes->side + sides, vertex++, pieces);
		}
		sides += make_pieces(probes, probes->side + sides, vertex, pieces);
	}
	probes->arc[probes->count] = (uint32_t) dataset->count;
	probes->first_side[probes->count] = sides;
}

/* List the polygons of each shape. */
static void
list_polygons(const struct cpu_probes *probes)
{
	const struct shape_polygons *polygons = &probes->polygons;
	const int32_t *shape = probes->dataset->shape;
	uint32_t   *first = probes->first_polygon;

	for (uint32_t i = 0; i <= probes->count; i++)
		first[i] = 0;
	for (uint32_t i = 0; i < polygons->count; i++)
		first[shape[polygons->polygon[i].arc]]++;

	/* Let each shape's entry be where its polygons end, and move to where they begin as they are listed. */
	for (uint32_t i = 0, sum = 0; i <= probes->count; i++)
		first[i] = sum += first[i];
	for (uint32_t i = polygons->count; i-- > 0;)
		probes->polygon[--first[shape[polygons->polygon[i].arc]]] = i;
}

struct copying
{
	const struct search *search;
	struct failure *failure;
	bool		failed;
};

/* Copy the next arcs of the batch, and check the copy. */
static void
copy_next(void *context, size_t number)
{
	struct copying *copying = context;
	struct dataset *shapes = copying->search->shapes;
	struct geonn_batch_columns rest = copying->search->columns;
	size_t		left = copying->search->arcs - shapes->count;

	(void) number;
	rest.tag = NULL;			/* answers are there */
	rest.latitude += shapes->count;
	rest.longitude += shapes->count;
	rest.end_latitude += shapes->count;
	rest.end_longitude += shapes->count;
	rest.shape += shapes->count;
	rest.polygon += shapes->count;
	copying->failed = !dataset_append(shapes, &rest, (uint32_t) (left < COPIED_ARCS ? left : COPIED_ARCS), copying->failure);
}

/* Copy the arcs of a search, from the first that has not been copied. */
static bool
copy_shapes(const struct search *search, struct failure *failure)
{
	struct copying copying = {search, failure, false};
	struct dataset *shapes = search->shapes;
	uint64_t	bytes = (uint64_t) (search->arcs - shapes->count) * GEONN_OBSERVED_ARC_BYTES;
	uint64_t	available = host_memory_free();

	if (shapes->sealed)
		return true;
	if (bytes > available)
		return fail(failure, GEONN_ERROR_MEMORY,
					"not enough memory on the host for %u arcs of observations: %llu bytes needed, %llu bytes free", search->arcs,
					(unsigned long long) bytes, (unsigned long long) available);
	while (!copying.failed && shapes->count < search->arcs)
	{
		if (!thread_pool_run_turns(copy_next, &copying, 1, 1, search->cancelled))
			return fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
	}
	if (copying.failed || !dataset_check_end(shapes, failure))
		return false;
	if ((uint32_t) shapes->shape[search->arcs - 1] + 1 != search->rows)
		return fail(failure, GEONN_ERROR_PROTOCOL, "the shapes of a search have changed");
	dataset_fit(shapes);
	shapes->sealed = true;
	return true;
}

static bool
build(struct cpu_probes *probes, const atomic_bool *cancelled, struct failure *failure)
{
	const struct dataset *dataset = probes->dataset;
	size_t		sides = 0;

	if (!shape_vertices_build(&probes->vertices, dataset, false, 0, cancelled, failure))
		return false;
	if (!atomic_load(cancelled) &&
		!shape_polygons_build(&probes->polygons, dataset, &probes->vertices, cancelled, failure))
		return false;
	for (size_t i = 0; i < dataset->count && !atomic_load_explicit(cancelled, memory_order_relaxed); i++)
		sides += dataset_arc_pieces(dataset, i);
	geonn_assert(probes->vertices.count < OWN_POLYGON);
	probes->count = (uint32_t) dataset->shape[dataset->count - 1] + 1;
	if (sides > UINT32_MAX)
		return fail(failure, GEONN_ERROR_LIMIT, "too many pieces of long lines and polygons: %zu", sides);
	if (!atomic_load(cancelled))
	{
		probes->bytes = place_columns(probes, sides, NULL);
		probes->memory = memory_block_allocate(probes->bytes, failure, "%zu arcs of observations", dataset->count);
		if (probes->memory == NULL)
			return false;
		place_columns(probes, sides, probes->memory);
		make_sides(probes, cancelled);
		list_polygons(probes);
	}
	return !atomic_load(cancelled) || fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
}

struct cpu_probes *
cpu_probes_build(const struct search *search, struct failure *failure)
{
	struct cpu_probes *probes;

	if (!copy_shapes(search, failure))
		return NULL;
	probes = calloc(1, sizeof(*probes));
	if (probes == NULL)
	{
		fail(failure, GEONN_ERROR_MEMORY, "not enough memory for lines and polygons");
		return NULL;
	}
	probes->dataset = search->shapes;
	if (build(probes, search->cancelled, failure))
		return probes;
	cpu_probes_free(probes);
	return NULL;
}

size_t
cpu_probes_bytes(const struct cpu_probes *probes)
{
	return probes->vertices.bytes + probes->vertices.first_bytes + probes->polygons.bytes + probes->bytes;
}

void
cpu_probes_forget_left(struct cpu_probes *probes)
{
	if (probes->left.work != NULL)
		probes->left.forget(probes->left.work);
	free(probes->left.pair);
	memset(&probes->left, 0, sizeof(probes->left));
}

void
cpu_probes_free(struct cpu_probes *probes)
{
	if (probes == NULL)
		return;
	cpu_probes_forget_left(probes);
	shape_vertices_free(&probes->vertices);
	shape_polygons_free(&probes->polygons);
	memory_block_release(probes->memory, probes->bytes);
	free(probes);
}
