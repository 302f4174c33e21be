/*
 * arcs_parts.c
 *		The places where the parts of references begin, for observations that are polygons.
 *
 * A part that has no place in common with the rings of a polygon lies inside or outside with all of its places: so one of
 * them tells.  A tree of boxes finds those near the polygon.  Few searches ask for them, so the first one has them made.
 */
#include "engine/cpu/arcs/arcs.h"

#include "engine/base/memory_block.h"
#include "engine/base/memory_columns.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/base/curve.h"
#include "engine/cpu/base/vectors.h"
#include "engine/dataset/dataset_arcs.h"

/* After this many arcs, a build looks at `cancelled`. */
#define LOOK_ARCS 65536

struct building
{
	struct dataset *dataset;
	const atomic_bool *cancelled;
	struct cpu_arcs_parts *parts;
	uint32_t   *arc;			/* [count] the first arc of each part, as sent */
	struct radix_sort sort;		/* of indexes in `arc`, along the curve */
};

static bool
is_cancelled(const struct building *building)
{
	return atomic_load_explicit(building->cancelled, memory_order_relaxed);
}

/* Count the parts; list them if the list has memory. */
static void
find_parts(struct building *building)
{
	struct cpu_arcs_parts *parts = building->parts;

	parts->count = 0;
	for (size_t i = 0; i < building->dataset->count; i++)
	{
		if (i % LOOK_ARCS == 0 && is_cancelled(building))
			return;
		if (i > 0 && dataset_arc_goes_on(building->dataset, i))
			continue;
		if (building->arc != NULL)
			building->arc[parts->count] = (uint32_t) i;
		parts->count++;
	}
}

static void
make_keys(void *context, size_t piece)
{
	struct building *building = context;
	const struct dataset *dataset = building->dataset;

	for (size_t first = piece * PIECE_ROWS; first < piece_end(piece, building->parts->count) && !is_cancelled(building);
		 first += CPU_VECTORS_BLOCK)
	{
		size_t		left = piece_end(piece, building->parts->count) - first;
		uint32_t	rows = (uint32_t) (left < CPU_VECTORS_BLOCK ? left : CPU_VECTORS_BLOCK);
		double		vector[3][CPU_VECTORS_BLOCK];

		for (uint32_t i = 0; i < rows; i++)
		{
			uint32_t	arc = building->arc[first + i];
			struct geonn_vector place = geonn_unit_vector(dataset->latitude[arc], dataset->longitude[arc]);

			building->sort.value[first + i] = (uint32_t) (first + i);
			vector[0][i] = place.x;
			vector[1][i] = place.y;
			vector[2][i] = place.z;
		}
		cpu_path->curve_codes(vector[0], vector[1], vector[2], rows, CPU_CURVE_LEVELS, building->sort.key + first);
	}
}

/* Put the parts in order, and set their boxes; no two pieces share a node. */
static void
order_parts(void *context, size_t piece)
{
	struct building *building = context;
	const struct dataset *dataset = building->dataset;
	struct cpu_arcs_parts *parts = building->parts;

	for (size_t i = piece * PIECE_ROWS; i < piece_end(piece, parts->count); i++)
	{
		uint32_t	arc = building->arc[building->sort.value[i]];
		struct geonn_vector place = geonn_unit_vector(dataset->latitude[arc], dataset->longitude[arc]);
		const double vector[3] = {place.x, place.y, place.z};

		parts->arc[i] = arc;
		parts->vector[i] = place;
		shape_boxes_set(&parts->boxes, (uint32_t) i, vector, vector);
	}
}

static size_t
place_columns(struct cpu_arcs_parts *parts, void *memory)
{
	struct column_block block = {memory, 0};

	COLUMN_PLACE(&block, parts->arc, parts->count);
	COLUMN_PLACE(&block, parts->vector, parts->count);
	shape_boxes_place(&parts->boxes, &block, parts->count);
	return block.bytes;
}

/* Place what the build alone needs. */
static size_t
place_room(struct building *building, void *memory)
{
	struct column_block block = {memory, 0};
	uint32_t	count = building->parts->count;

	COLUMN_PLACE(&block, building->arc, count);
	radix_sort_place(&building->sort, &block, count);
	building->sort.count = count;
	building->sort.cancelled = building->cancelled;
	return block.bytes;
}

static bool
fill(struct building *building, struct failure *failure)
{
	uint32_t	count = building->parts->count;

	find_parts(building);
	if (is_cancelled(building))
		return true;
	thread_pool_run(make_keys, building, pieces_of(count));
	if (!is_cancelled(building) && !radix_sort(&building->sort))
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory to sort %u lines and rings", count);
	if (is_cancelled(building))
		return true;
	thread_pool_run(order_parts, building, pieces_of(count));
	shape_boxes_finish(&building->parts->boxes);
	return true;
}

bool
cpu_arcs_wants_parts(const struct cpu_arcs *arcs, const struct search *search)
{
	return search->shapes != NULL && search->shapes->last_polygon != 0 && atomic_load(&arcs->parts) == NULL;
}

bool
cpu_arcs_add_parts(struct cpu_arcs *arcs, const struct search *search, struct failure *failure)
{
	struct cpu_arcs_parts *parts = &arcs->parts_built;
	struct building building = {search->dataset, search->cancelled, parts, NULL, {0}};
	size_t		room_bytes;
	void	   *room;
	bool		done;

	find_parts(&building);
	parts->bytes = place_columns(parts, NULL);
	room_bytes = place_room(&building, NULL);
	parts->memory = memory_block_allocate(parts->bytes, failure, "the places of %u lines and rings", parts->count);
	room = parts->memory == NULL ? NULL :
		memory_block_allocate(room_bytes, failure, "sorting %u lines and rings", parts->count);
	done = room != NULL;
	if (done)
	{
		place_columns(parts, parts->memory);
		place_room(&building, room);
		done = fill(&building, failure);
	}
	if (done && is_cancelled(&building))
		done = fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
	memory_block_release(room, room_bytes);
	if (!done)
	{
		memory_block_release(parts->memory, parts->bytes);
		*parts = (struct cpu_arcs_parts) {0};
		return false;
	}
	atomic_store(&arcs->parts, parts);
	atomic_fetch_add(&search->dataset->built_bytes, parts->bytes);
	return true;
}
