/*
 * assign_walk.c
 *		Finds the first reference that has room for an observation.
 *
 * The walk goes from the topmost level of the index down, in each node to its nearest child first.  It leaves out nodes that are
 * nearer than the reference for which the observation has waited, or farther than the first taker so far, and nodes below which
 * no taker has room for it: those beyond their reach (assign_state.h).  So crowds of references that are full cost little.
 */
#include "engine/cpu/assign/assign_state.h"

#include "engine/base/clock.h"
#include "engine/cpu/walk/walk.h"

struct walk
{
	const struct cpu_assign *assign;
	const struct cpu_index *index;
	double		latitude;
	double		longitude;
	struct geonn_vector from;
	struct cpu_box box;			/* a box around the observation alone */
	struct cpu_conditions conditions;
	struct cpu_part part;		/* the positions of its group */
	double		max_distance;	/* metres; the question's, or the observation's radius if that is smaller */
	double		floor;			/* no squared chord up to it does; negative: none is known */
	double		limit;			/* no squared chord above it matters */
	struct candidate first;		/* the first taker so far, by (distance, place) */
	uint32_t	taker;			/* its number; ASSIGN_NONE: none so far */
};

static double
distance_of(const struct walk *walk, uint32_t position)
{
	const struct dataset *dataset = walk->assign->dataset;
	const struct cpu_index *index = walk->index;
	uint32_t	place = index->place[index->start[position]];

	if (geonn_metric_chord_decides(dataset->metric))
		return geonn_metric_distance_of(dataset->metric, walk->from,
										(struct geonn_vector) {index->x[position], index->y[position], index->z[position]});
	return geonn_metric_distance(dataset->metric, walk->latitude, walk->longitude, dataset->latitude[place],
								 dataset->longitude[place]);
}

static void
look_at_position(struct walk *walk, uint32_t position, double chord)
{
	const struct cpu_assign *assign = walk->assign;
	const struct dataset *dataset = assign->dataset;
	double		distance = distance_of(walk, position);
	uint32_t	taker = assign->open[position];
	struct candidate found = {distance, 0, 0};
	double		limit;

	if (!(distance <= walk->max_distance) || taker == assign->first_taker[position + 1])
		return;
	found.place = assign->place[taker];
	if (dataset->radius != NULL && !(distance <= dataset->radius[found.place]))
		return;
	if (candidate_before(found, walk->first))
	{
		walk->first = found;
		walk->taker = taker;
	}
	limit = geonn_metric_chord_limit(dataset->metric, chord);
	if (limit < walk->limit)
		walk->limit = limit;
}

static void
look_at_leaf(struct walk *walk, uint32_t leaf)
{
	const struct cpu_index *index = walk->index;
	uint32_t	first = leaf * INDEX_WIDTH;
	double		chords[INDEX_WIDTH];
	uint32_t	left = cpu_part_bits(walk->part, leaf);

	if (cpu_leaf_chords(index, leaf, walk->from, chords) > walk->limit)
		return;
	left &= cpu_within(chords, walk->limit) & ~cpu_within(chords, walk->floor) &
		cpu_within_each(chords, walk->assign->reach + first);
	left = cpu_leaf_candidates(index, leaf, &walk->conditions, left);
	while (left != 0)
	{
		uint32_t	nearest = cpu_nearest_of(chords, left);

		look_at_position(walk, first + nearest, chords[nearest]);
		left &= ~(UINT32_C(1) << nearest) & cpu_within(chords, walk->limit);
	}
}

/* Return bits of INDEX_WIDTH nodes from `node` on that are wholly below the floor. */
static uint32_t
too_near(const struct walk *walk, uint32_t node)
{
	double		farthest[INDEX_WIDTH];

	cpu_node_corners(walk->index, node, &walk->box, farthest);
	return cpu_within(farthest, walk->floor);
}

/* Walk through some nodes of a level. */
static void
walk_nodes(struct walk *walk, int level, struct cpu_nodes nodes)
{
	const struct cpu_index *index = walk->index;
	uint32_t	first = index->shape.first[level] + nodes.first;
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, first, &walk->box, bounds);
	left = cpu_within(bounds, walk->limit) & cpu_within_each(bounds, walk->assign->node_reach + first) &
		cpu_first_bits(nodes.count);
	left = cpu_nodes_candidates(index, first, &walk->conditions, left);
	if (left != 0 && walk->floor > 0.0)
		left &= ~too_near(walk, first);
	while (left != 0)
	{
		uint32_t	nearest = cpu_nearest_of(bounds, left);

		if (level == 0)
			look_at_leaf(walk, nodes.first + nearest);
		else
			walk_nodes(walk, level - 1, cpu_part_children(walk->part, level, nodes.first + nearest));
		left &= ~(UINT32_C(1) << nearest) & cpu_within(bounds, walk->limit);
	}
}

/* Set the positions of the references in the observation's group.  Returns false if there are none. */
static bool
find_group(struct walk *walk)
{
	const struct cpu_index *index = walk->index;
	uint32_t	part = index->slabs != NULL ? cpu_slabs_group(index->slabs, walk->conditions.group) :
		cpu_index_part_of(index, walk->conditions.group);

	if (part == (index->slabs != NULL ? index->slabs->groups : index->parts))
		return false;
	walk->part = index->slabs != NULL ? cpu_index_group_part(index, part) : cpu_index_part(index, part);
	return true;
}

static void
find(struct cpu_assign *assign, uint32_t observation)
{
	enum geonn_metric metric = assign->dataset->metric;
	struct walk walk = {
		.assign = assign,
		.index = assign->index,
		.latitude = assign->columns.latitude[observation],
		.longitude = assign->columns.longitude[observation],
		.first = {INFINITY, UINT32_MAX, 0},
		.taker = ASSIGN_NONE
	};

	walk.from = geonn_metric_vector(metric, walk.latitude, walk.longitude);
	walk.box = (struct cpu_box) {{walk.from.x, walk.from.y, walk.from.z}, {walk.from.x, walk.from.y, walk.from.z}};
	cpu_conditions_read(&walk.conditions, &assign->columns, observation);
	walk.max_distance = geonn_metric_reach(assign->max_distance, walk.conditions.radius);
	walk.limit = geonn_metric_radius_limit(metric, walk.max_distance);
	/* a little below the distance, by more than rounding: references just there may have room */
	walk.floor = assign->distance[observation] > 0.0 ?
		geonn_metric_certain_limit(metric, assign->distance[observation] * (1 - 1e-12)) : -1.0;
	if (walk.max_distance >= 0.0 && find_group(&walk))
	{
		int			level;
		struct cpu_nodes top = cpu_part_top(walk.part, &level);

		walk_nodes(&walk, level, top);
	}
	assign->taker[observation] = walk.taker;
	assign->distance[observation] = walk.first.distance;
}

void
CPU_PATH_NAME(cpu_assign_find) (struct cpu_assign *assign, const uint32_t *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		/* the first one of all looks in any case */
		if (list + i != assign->looking && (atomic_load_explicit(assign->cancelled, memory_order_relaxed) ||
											now_ms() >= assign->end_ms))
			return;
		find(assign, list[i]);
	}
}
