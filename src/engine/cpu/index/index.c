/*
 * index.c
 *		Builds the index of a dataset on the CPU.
 *
 * The build has five phases, most of them cut into pieces for the thread pool:
 *
 *	1.	Compute the place of each reference on the curve, and sort by it; with
 *		groups, sort once more by group, or with windows by part (cpu/index/slabs.c,
 *		which has cut the references into parts before).  All sorts are stable,
 *		so equal references stay in the order of the dataset.
 *	2.	Compute the vectors, in the sorted order, and sort within each cell of
 *		the curve, so that references that are one point become neighbours
 *		(cpu/index/curve_cells.c).
 *	3.	Merge references that are one point into one position.  Most datasets
 *		have no such references; then each reference is a position.
 *	4.	Find the positions of the parts, if the dataset has groups or windows.
 *	5.	Copy the references' tags into the sorted order, and collect the
 *		positions' radiuses, windows and parties, if the dataset has them.
 *	6.	Make the boxes, leaves first, then level by level.
 *
 * When the search is cancelled, the present phase ends early; a sort ends
 * after its present digit.
 *
 * The keys of the sort lie where the vectors will be, so the build takes no
 * memory beside the index.  The index has two blocks of memory.  One has
 * positions and references, and is allocated before the number of positions is
 * known; pages of it that are never touched cost nothing.  The other has the
 * boxes and the list of groups.
 *
 * A leaf may have the last positions of one part and the first of the next;
 * its box has both.  A search in a part goes through the nodes that its
 * positions lie under, and through its own positions in the first and the last
 * leaf (cpu/walk/walk.h).  So a group of a thousand references costs a search as
 * little as a dataset of a thousand, however many groups there are, and a group
 * of one reference takes no leaf of its own.
 */
#include "engine/cpu/index/index.h"

#include <stdlib.h>
#include <string.h>

#include "common/metric.h"
#include "common/window.h"
#include "engine/base/memory_block.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"
#include "engine/base/memory_columns.h"
#include "engine/cpu/index/curve_cells.h"
#include "engine/cpu/base/curve.h"
#include "engine/cpu/base/vectors.h"

/* Look at this many positions to find how often neighbours have a party in common. */
#define PARTY_SAMPLE 4096

struct building
{
	const struct dataset *dataset;
	const atomic_bool *cancelled;
	struct cpu_index *index;
	struct radix_sort sort;
	atomic_size_t merged;		/* how many references share their position with the reference before them */
	const uint32_t *first;		/* [parts] the first reference of each part, in the order of the index; NULL: all
								 * references are one part */
	uint32_t   *group_first;	/* the first reference of each group, if parts are groups; otherwise NULL */
	atomic_uint exclusive;		/* bits of the windows for which some reference has an exclusive edge */
	atomic_bool limited;		/* some radius is not infinite */
	int			level;			/* the level whose boxes are being made */
};

static bool
is_cancelled(const struct building *building)
{
	return atomic_load_explicit(building->cancelled, memory_order_relaxed);
}

static void
make_keys(void *context, size_t number)
{
	struct building *building = context;
	const struct dataset *dataset = building->dataset;
	size_t		end = piece_end(number, dataset->count);
	double		x[CPU_VECTORS_BLOCK];
	double		y[CPU_VECTORS_BLOCK];
	double		z[CPU_VECTORS_BLOCK];

	if (is_cancelled(building))
		return;
	for (size_t first = number * PIECE_ROWS; first < end; first += CPU_VECTORS_BLOCK)
	{
		size_t		rows = end - first < CPU_VECTORS_BLOCK ? end - first : CPU_VECTORS_BLOCK;

		cpu_path->vectors(dataset->metric, dataset->latitude + first,
						  dataset->longitude + first, rows, x, y, z);
		cpu_path->curve_codes(x, y, z, rows, CPU_CURVE_LEVELS, building->sort.key + first);
		for (size_t i = first; i < first + rows; i++)
			building->sort.value[i] = (uint32_t) i;
	}
}

static void
make_group_keys(void *context, size_t number)
{
	struct building *building = context;
	const struct radix_sort *sort = &building->sort;
	size_t		end = piece_end(number, sort->count);

	for (size_t i = number * PIECE_ROWS; i < end; i++)
		sort->key[i] = (uint32_t) building->dataset->group[sort->value[i]] ^ UINT32_C(0x80000000);
}

/* Make the reference's part its key of the sort: `start` has the parts, by the reference's index in the dataset. */
static void
make_part_keys(void *context, size_t number)
{
	struct building *building = context;
	const struct radix_sort *sort = &building->sort;
	size_t		end = piece_end(number, sort->count);

	for (size_t i = number * PIECE_ROWS; i < end; i++)
		sort->key[i] = building->index->start[sort->value[i]];
}

static void
copy_places(void *context, size_t number)
{
	struct building *building = context;
	size_t		first = number * PIECE_ROWS;
	size_t		end = piece_end(number, building->sort.count);

	memcpy(building->index->place + first, building->sort.value + first,
		   (end - first) * sizeof(uint32_t));
}

/* References with equal keys of the sort are a group: list the place at which each group begins. */
static bool
list_groups(struct building *building)
{
	const uint64_t *key = building->sort.key;
	size_t		count = building->sort.count;
	uint32_t	groups = 1;

	for (size_t i = 1; i < count; i++)
		groups += key[i] != key[i - 1];
	building->group_first = malloc(groups * sizeof(uint32_t));
	if (building->group_first == NULL)
		return false;
	building->index->parts = 0;
	for (size_t i = 0; i < count; i++)
		if (i == 0 || key[i] != key[i - 1])
			building->group_first[building->index->parts++] = (uint32_t) i;
	building->first = building->group_first;
	return true;
}

/* Phase 1: sort the references.  Keys and values lie in the columns of vectors.  Returns false if memory is short. */
static bool
sort_references(struct building *building, const struct search *search, struct failure *failure)
{
	struct cpu_index *index = building->index;
	size_t		count = building->dataset->count;

	building->sort = (struct radix_sort) {
		.count = count,
		.cancelled = building->cancelled,
		.key = (uint64_t *) index->x,
		.room_key = (uint64_t *) index->y,
		.value = index->place,
		.room_value = (uint32_t *) index->z
	};
	if (index->edges != NULL)
	{
		index->slabs = cpu_slabs_create(search, &building->sort, index->start, failure);
		if (index->slabs == NULL)
			return false;
		index->parts = index->slabs->parts;
		building->first = index->slabs->first;
	}
	thread_pool_run(make_keys, building, pieces_of(count));
	if (!radix_sort(&building->sort))
		return false;
	if ((building->dataset->group != NULL || index->slabs != NULL) && !is_cancelled(building))
	{
		thread_pool_run(index->slabs != NULL ? make_part_keys : make_group_keys, building,
						pieces_of(count));
		if (!radix_sort(&building->sort) || (index->slabs == NULL && !list_groups(building)))
			return false;
	}
	if (building->sort.value != index->place)
		thread_pool_run(copy_places, building, pieces_of(count));
	return true;
}

static void
make_vectors(void *context, size_t number)
{
	struct building *building = context;
	const struct dataset *dataset = building->dataset;
	struct cpu_index *index = building->index;
	size_t		end = piece_end(number, dataset->count);
	double		latitude[CPU_VECTORS_BLOCK];
	double		longitude[CPU_VECTORS_BLOCK];

	if (is_cancelled(building))
		return;
	for (size_t first = number * PIECE_ROWS; first < end; first += CPU_VECTORS_BLOCK)
	{
		size_t		rows = end - first < CPU_VECTORS_BLOCK ? end - first : CPU_VECTORS_BLOCK;

		for (size_t i = 0; i < rows; i++)
		{
			latitude[i] = dataset->latitude[index->place[first + i]];
			longitude[i] = dataset->longitude[index->place[first + i]];
		}
		cpu_path->vectors(dataset->metric, latitude, longitude, rows, index->x + first,
						  index->y + first, index->z + first);
	}
}

static void
count_merged(void *context, size_t number)
{
	struct building *building = context;
	size_t		end = piece_end(number, building->dataset->count);
	size_t		merged = 0;

	for (size_t i = number * PIECE_ROWS; i < end; i++)
	{
		building->index->start[i] = (uint32_t) i;
		merged += cpu_curve_cells_is_one(building->dataset, building->index, i);
	}
	atomic_fetch_add(&building->merged, merged);
}

static void
copy_tags(void *context, size_t number)
{
	struct building *building = context;
	struct cpu_index *index = building->index;
	size_t		end = piece_end(number, index->references);

	for (size_t i = number * PIECE_ROWS; i < end; i++)
		index->tag[i] = building->dataset->tag[index->place[i]];
}

/*
 * Phase 3: merge references into positions, and return the number of positions.  A single thread
 * does this, because the vectors move towards the front, over vectors that are no longer needed.
 */
static uint32_t
merge_references(struct building *building)
{
	struct cpu_index *index = building->index;
	size_t		count = building->dataset->count;
	uint32_t	positions = 0;

	thread_pool_run(count_merged, building, pieces_of(count));
	if (atomic_load(&building->merged) == 0)
		positions = (uint32_t) count;
	else
	{
		bool		next_merged = false;

		for (size_t i = 0; i < count; i++)
		{
			double		vector[3] = {index->x[i], index->y[i], index->z[i]};
			bool		is_one = next_merged;

			/* compare i + 1 with i now, before the vector of i may be overwritten */
			next_merged = i + 1 < count && cpu_curve_cells_is_one(building->dataset, index, i + 1);
			if (is_one)
				continue;
			index->x[positions] = vector[0];
			index->y[positions] = vector[1];
			index->z[positions] = vector[2];
			index->start[positions] = (uint32_t) i;
			positions++;
		}
	}
	index->start[positions] = (uint32_t) count;
	for (size_t i = positions; i % INDEX_WIDTH != 0; i++)
	{
		index->x[i] = index->x[positions - 1];
		index->y[i] = index->y[positions - 1];
		index->z[i] = index->z[positions - 1];
	}
	return positions;
}

/*
 * Phase 5: collect the radiuses, windows and parties of the positions of a piece.
 */
static void
collect_conditions(void *context, size_t number)
{
	struct building *building = context;
	const struct dataset *dataset = building->dataset;
	struct cpu_index *index = building->index;
	uint32_t	positions = index->shape.positions;
	size_t		end = piece_end(number, geonn_align(positions, INDEX_WIDTH));
	uint32_t	exclusive = 0;
	bool		limited = false;

	for (size_t i = number * PIECE_ROWS; i < end; i++)
	{
		uint32_t	place = index->place[index->start[i < positions ? i : positions - 1]];

		if (index->wide != NULL)
		{
			index->wide[i] = geonn_metric_wide_limit(dataset->metric, dataset->radius[place]);
			limited = limited || dataset->radius[place] != INFINITY;
		}
		for (int party = 0; party < GEONN_PARTIES_MAX; party++)
			if (index->party[party] != NULL)
				index->party[party][i] = dataset->party[party][place];
		if (index->edges != NULL)
			index->edges[i] = dataset->edges[place];
		for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
			if (index->window_low[window] != NULL)
			{
				index->window_low[window][i] = dataset->low[window][place];
				index->window_high[window][i] = dataset->high[window][place];
				if (geonn_low_edge(dataset->edges[place], window) == GEONN_EDGE_EXCLUSIVE ||
					geonn_high_edge(dataset->edges[place], window) == GEONN_EDGE_EXCLUSIVE)
					exclusive |= UINT32_C(1) << window;
			}
	}
	atomic_fetch_or(&building->exclusive, exclusive);
	if (limited)
		atomic_store(&building->limited, true);
}

/* Return the share of some sampled positions that have a party in common with the position behind them. */
static double
share_same_party(const struct cpu_index *index)
{
	uint32_t	pairs = index->shape.positions - 1;
	uint32_t	sample = pairs < PARTY_SAMPLE ? pairs : PARTY_SAMPLE;
	uint32_t	same = 0;

	for (uint32_t i = 0; i < sample; i++)
	{
		size_t		position = (size_t) i * pairs / sample;
		bool		is_same = false;

		for (int party = 0; party < GEONN_PARTIES_MAX && index->party[party] != NULL; party++)
			is_same = is_same || index->party[party][position] == index->party[party][position + 1];
		same += is_same;
	}
	return sample > 0 ? (double) same / sample : 0.0;
}

/*
 * Return the party that all values first ... end - 1 of a column, of positions or of nodes, have;
 * CPU_SEVERAL_PARTIES if they differ.
 */
static int64_t
only_party(const int64_t *party, size_t first, size_t end)
{
	for (size_t i = first + 1; i < end; i++)
		if (party[i] != party[first])
			return CPU_SEVERAL_PARTIES;
	return party[first];
}

/*
 * Set the bounds of a node's radiuses, windows and parties from the values first ... end - 1 of
 * these columns, which are columns of positions or of nodes.
 */
static void
bound_conditions(const struct cpu_index *index, uint32_t node, size_t first, size_t end, const double *wide,
				 int64_t *const *window_low, int64_t *const *window_high, int64_t *const *party)
{
	for (int i = 0; i < GEONN_PARTIES_MAX && party[i] != NULL; i++)
		index->only_party[i][node] = only_party(party[i], first, end);
	if (wide != NULL)
	{
		double		widest = 0.0;

		for (size_t i = first; i < end; i++)
			widest = wide[i] > widest ? wide[i] : widest;
		index->widest[node] = widest;
	}
	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
	{
		int64_t		low = INT64_MAX;
		int64_t		high = INT64_MIN;

		if (window_low[window] == NULL)
			continue;
		for (size_t i = first; i < end; i++)
		{
			low = window_low[window][i] < low ? window_low[window][i] : low;
			high = window_high[window][i] > high ? window_high[window][i] : high;
		}
		index->smallest_low[window][node] = low;
		index->largest_high[window][node] = high;
	}
}

/*
 * Find the first position of each part, and if parts are groups, the group of each.  A part's first
 * reference is never merged with a reference of another part.
 */
static void
place_parts(void *context, size_t number)
{
	struct building *building = context;
	struct cpu_index *index = building->index;
	size_t		end = piece_end(number, index->parts);

	for (size_t part = number * PIECE_ROWS; part < end; part++)
	{
		uint32_t	first = building->first[part];

		index->part_start[part] = last_up_to(index->start, index->shape.positions, first);
		if (index->part_group != NULL)
			index->part_group[part] = building->dataset->group[index->place[first]];
	}
}

/*
 * Make one leaf.
 */
static void
make_leaf(const struct building *building, uint32_t node)
{
	const struct cpu_index *index = building->index;
	const double *columns[3] = {index->x, index->y, index->z};
	size_t		first = (size_t) node * INDEX_WIDTH;
	struct geonn_vector begin = {index->x[first], index->y[first], index->z[first]};

	for (int axis = 0; axis < 3; axis++)
	{
		const double *column = columns[axis] + first;
		double		low = column[0];
		double		high = column[0];

		for (int i = 1; i < INDEX_WIDTH; i++)
		{
			low = column[i] < low ? column[i] : low;
			high = column[i] > high ? column[i] : high;
		}
		index->low[axis][node] = low;
		index->high[axis][node] = high;
	}
	bound_conditions(index, node, first, first + INDEX_WIDTH, index->wide, index->window_low,
					 index->window_high, index->party);
	cpu_path->curve_codes(&begin.x, &begin.y, &begin.z, 1, CPU_CURVE_LEVELS,
						  &index->leaf_code[node]);
}

/*
 * Make one node of a level above the leaves; its children are a range of the
 * level below.
 */
static void
make_node(const struct building *building, uint32_t number)
{
	const struct cpu_index *index = building->index;
	const struct index_shape *shape = &index->shape;
	int			level = building->level;
	uint32_t	node = shape->first[level] + number;
	uint32_t	child = shape->first[level - 1] + number * INDEX_WIDTH;
	uint32_t	end = shape->first[level - 1] + shape->nodes[level - 1];

	if (end - child > INDEX_WIDTH)
		end = child + INDEX_WIDTH;
	for (int axis = 0; axis < 3; axis++)
	{
		double		low = INFINITY;
		double		high = -INFINITY;

		for (uint32_t i = child; i < end; i++)
		{
			low = index->low[axis][i] < low ? index->low[axis][i] : low;
			high = index->high[axis][i] > high ? index->high[axis][i] : high;
		}
		index->low[axis][node] = low;
		index->high[axis][node] = high;
	}
	bound_conditions(index, node, child, end, index->widest, index->smallest_low,
					 index->largest_high, index->only_party);
}

static void
make_boxes(void *context, size_t number)
{
	struct building *building = context;
	size_t		end = piece_end(number, building->index->shape.nodes[building->level]);

	for (size_t i = number * PIECE_ROWS; i < end; i++)
		if (building->level == 0)
			make_leaf(building, (uint32_t) i);
		else
			make_node(building, (uint32_t) i);
}

/* Lay out the columns of positions and references; `columns` says which columns the dataset has. */
static size_t
place_positions(struct cpu_index *index, uint32_t columns, void *memory)
{
	struct column_block block = {memory, 0};
	size_t		padded = geonn_align(index->references, INDEX_WIDTH);

	COLUMN_PLACE(&block, index->x, padded);
	COLUMN_PLACE(&block, index->y, padded);
	COLUMN_PLACE(&block, index->z, padded);
	COLUMN_PLACE(&block, index->start, padded + 1);
	COLUMN_PLACE(&block, index->place, padded);
	COLUMN_PLACE(&block, index->tag, padded);
	if (columns & GEONN_COLUMN_RADIUS)
		COLUMN_PLACE(&block, index->wide, padded);
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (columns & GEONN_COLUMN_WINDOW << i)
		{
			COLUMN_PLACE(&block, index->window_low[i], padded);
			COLUMN_PLACE(&block, index->window_high[i], padded);
		}
	if (columns & GEONN_COLUMNS_WINDOWS)
		COLUMN_PLACE(&block, index->edges, padded);
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		if (columns & GEONN_COLUMN_PARTY << i)
			COLUMN_PLACE(&block, index->party[i], padded);
	return block.bytes;
}

/*
 * Lay out the columns of nodes and parts.
 */
static size_t
place_boxes(struct cpu_index *index, bool groups, void *memory)
{
	struct column_block block = {memory, 0};

	/* a search reads INDEX_WIDTH nodes at a time, and may begin at any node */
	size_t		padded = (size_t) index->shape.all_nodes + INDEX_WIDTH;

	for (int axis = 0; axis < 3; axis++)
	{
		COLUMN_PLACE(&block, index->low[axis], padded);
		COLUMN_PLACE(&block, index->high[axis], padded);
	}
	if (index->wide != NULL)
		COLUMN_PLACE(&block, index->widest, padded);
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (index->window_low[i] != NULL)
		{
			COLUMN_PLACE(&block, index->smallest_low[i], padded);
			COLUMN_PLACE(&block, index->largest_high[i], padded);
		}
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		if (index->party[i] != NULL)
			COLUMN_PLACE(&block, index->only_party[i], padded);
	if (groups)
		COLUMN_PLACE(&block, index->part_group, index->parts);
	COLUMN_PLACE(&block, index->part_start, (size_t) index->parts + 1);
	COLUMN_PLACE(&block, index->leaf_code, index->shape.nodes[0]);
	return block.bytes;
}

/* Allocate one of the index's two blocks of columns. */
static void *
allocate_block(const struct cpu_index *index, size_t bytes, struct failure *failure)
{
	return memory_block_allocate(bytes, failure, "the index of %zu references", index->references);
}

static bool
fail_memory(const struct dataset *dataset, struct failure *failure)
{
	return fail(failure, GEONN_ERROR_MEMORY, "not enough memory to index %zu references",
				dataset->count);
}

/* Do phases 1 to 3.  Returns the number of positions, or 0 if memory is short or the search was cancelled. */
static uint32_t
make_positions(struct building *building, const struct search *search, struct failure *failure)
{
	if (!sort_references(building, search, failure) || is_cancelled(building))
		return 0;
	thread_pool_run(make_vectors, building, pieces_of(building->dataset->count));
	if (!is_cancelled(building))
		cpu_curve_cells_order(building->dataset, building->index, building->cancelled);
	return is_cancelled(building) ? 0 : merge_references(building);
}

/* Do phase 4, and allocate the memory for phase 6. */
static bool
make_parts(struct building *building, struct failure *failure)
{
	struct cpu_index *index = building->index;
	bool		are_groups = building->group_first != NULL;

	index->box_bytes = place_boxes(index, are_groups, NULL);
	index->box_memory = allocate_block(index, index->box_bytes, failure);
	if (index->box_memory == NULL)
		return false;
	place_boxes(index, are_groups, index->box_memory);
	index->part_start[0] = 0;
	index->part_start[index->parts] = index->shape.positions;
	if (building->first != NULL)
		thread_pool_run(place_parts, building, pieces_of(index->parts));
	return true;
}

static bool
build(struct building *building, const struct search *search, struct failure *failure)
{
	const struct dataset *dataset = building->dataset;
	struct cpu_index *index = building->index;
	uint32_t	positions;

	index->references = dataset->count;
	index->parts = 1;
	index->bytes = place_positions(index, dataset->columns, NULL);
	index->memory = allocate_block(index, index->bytes, failure);
	if (index->memory == NULL)
		return false;
	place_positions(index, dataset->columns, index->memory);
	positions = make_positions(building, search, failure);
	if (is_cancelled(building))
		return fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
	if (positions == 0)
		return fail_memory(dataset, failure);
	index->shape = index_shape_of(positions);
	if (!make_parts(building, failure))
		return false;
	thread_pool_run(copy_tags, building, pieces_of(dataset->count));
	if (index->wide != NULL || index->edges != NULL || index->party[0] != NULL)
		thread_pool_run(collect_conditions, building, pieces_of(geonn_align(positions, INDEX_WIDTH)));
	index->same_party = share_same_party(index);
	index->exclusive = atomic_load(&building->exclusive);
	index->limited = atomic_load(&building->limited);
	for (; building->level < index->shape.levels; building->level++)
		thread_pool_run(make_boxes, building, pieces_of(index->shape.nodes[building->level]));
	return true;
}

struct cpu_index *
cpu_index_build(const struct search *search, struct failure *failure)
{
	struct cpu_index *index = calloc(1, sizeof(*index));
	struct building building = {
		.dataset = search->dataset,.cancelled = search->cancelled,.index = index
	};
	bool		built = index != NULL ? build(&building, search, failure) :
		fail_memory(search->dataset, failure);

	free(building.group_first);
	if (built)
		return index;
	cpu_index_free(index);
	return NULL;
}

void
cpu_index_free(struct cpu_index *index)
{
	if (index == NULL)
		return;
	memory_block_release(index->memory, index->bytes);
	memory_block_release(index->box_memory, index->box_bytes);
	cpu_slabs_free(index->slabs);
	free(index);
}

size_t
cpu_index_bytes(const struct cpu_index *index)
{
	return index->bytes + index->box_bytes + (index->slabs != NULL ? index->slabs->bytes : 0);
}
