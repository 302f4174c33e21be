/*
 * count.c
 *		Counts the candidates of many observations within radii on the CPU, adds up their weights, and finds the
 *		least and the greatest of them.
 *
 * Each observation walks through the index from the topmost level down, once for all radii.  On the way it has a
 * range of radii whose border may cross the present nodes.  It looks at each of these nodes: smaller radii do not
 * reach the node.  Larger ones contain it whole, and get all of its references without a look at them, by the
 * node's range of positions.  With those between, the walk goes into the node.  So it sees the leaves on
 * the borders alone.  There, squared chords decide about most positions, and distances about those so near to the border
 * that the margins of chords leave it open (geonn_metric_certain_limit()).
 *
 * The farthest corner of a node's box needs no margin, for the reason why its bound needs none (cpu/walk/walk.h):
 * rounding is monotone, so no position of the node has a greater squared chord.
 *
 * If references have windows or radiuses, no node is taken whole, since some of its references may be no candidates.
 * With parties, a node is taken whole if its references are all of one other party.
 * References that an observation excludes by their tags are found in the dataset, whose tags rise, and are taken
 * off at the end.  If they are more than those that were counted, a second walk to all that are within does so.  Nothing can
 * be taken off the extremes of weights, so these pass over such references (cpu/index/extremes.c).
 */
#include "engine/cpu/counts/count.h"

#include <string.h>

#include "common/metric.h"
#include "engine/base/clock.h"
#include "engine/cpu/counts/counted.h"
#include "engine/cpu/walk/walk.h"

/* an observation walks through at most this many parts one by one */
#define PARTS_MAX 16

/*
 * The work between two looks at whether to stop, as a number of leaves.  A measured distance, which may be
 * a geodesic, and an observation count as this many leaves.
 */
#define LEAVES_UNTIL_LOOK 8192
#define LEAVES_OF_DISTANCE 8
#define LEAVES_OF_OBSERVATION 256

/* Look at up to this many excluded references one by one, however few references were counted. */
#define PLACES_FEW 64

struct walk
{
	const struct cpu_count_piece *piece;
	const struct dataset *dataset;
	const struct cpu_index *index;
	bool		takes_nodes;	/* the walk may take whole nodes: all references of a node are candidates, if they have
								 * one party and it differs */
	bool		one_each;		/* each position has one reference */
	bool		is_first;		/* the observation is the piece's first one, which is answered even if the time is over */
	bool		stopped;		/* the walk was stopped: the present observation stays without an answer */
	bool		takes_off;		/* the walk subtracts references that the observation excludes, instead of adding
								 * references */
	uint32_t	work;			/* work since the last look at whether to stop, as a number of leaves */

	/* the observation */
	const struct cpu_observation *observation;
	const struct search_radii *radii;
	struct search_radii own;		/* the observation's own radii, if its radius cuts the question's radii off */
	struct cpu_conditions conditions;
	struct cpu_box box;			/* a box around the observation alone */
	struct cpu_part part;		/* the part of the index that the walk goes through */

	struct cpu_counted count[GEONN_RADII_MAX];
};

/* Note some work.  Stops the walk if the search is cancelled, or the piece's time is over. */
static inline void
note_work(struct walk *walk, uint32_t leaves)
{
	walk->work += leaves;
	if (walk->work < LEAVES_UNTIL_LOOK)
		return;
	walk->work = 0;
	walk->stopped = walk->stopped ||
		atomic_load_explicit(walk->piece->search->cancelled, memory_order_relaxed) ||
		(!walk->is_first && now_ms() >= walk->piece->end_ms);
}

/*
 * Add positions first ... end - 1 to the counts of radii from ... to - 1.
 */
static inline void
add_positions(struct walk *walk, uint32_t first, uint32_t end, uint32_t from, uint32_t to)
{
	uint64_t	references = walk->one_each ? end - first : walk->index->start[end] - walk->index->start[first];

	for (uint32_t radius = from; radius < to; radius++)
	{
		struct cpu_counted *count = &walk->count[radius];

		count->references += references;
		for (uint32_t i = 0; i < walk->piece->weights; i++)
			cpu_sums_add(&walk->piece->sums[i], &count->sum[i], first, end);
		for (uint32_t i = 0; i < walk->piece->weights && walk->piece->extremes != NULL; i++)
			note_work(walk, (uint32_t) (cpu_extremes_widen(&walk->piece->extremes[i], walk->index, first, end,
														   walk->conditions.excluded, &count->range[i]) / INDEX_WIDTH));
	}
}

/* Subtract a reference from the count of a radius. */
static void
take_off(struct walk *walk, uint32_t radius, size_t place)
{
	walk->count[radius].references--;
	for (uint32_t i = 0; i < walk->piece->weights; i++)
		cpu_sums_take_off(&walk->piece->sums[i], &walk->count[radius].sum[i], walk->dataset->weight[i][place]);
}

/* Subtract those references of a position that the observation excludes from the count of a radius. */
static void
take_position_off(struct walk *walk, uint32_t position, uint32_t radius)
{
	const struct cpu_index *index = walk->index;

	note_work(walk, (index->start[position + 1] - index->start[position]) / INDEX_WIDTH);
	for (uint32_t i = index->start[position]; i < index->start[position + 1]; i++)
	{
		if (cpu_tags_have(walk->conditions.excluded, index->tag[i]))
			take_off(walk, radius, index->place[i]);
	}
}

/* a run of set bits: from `first` to end - 1 */
struct run
{
	uint32_t	first;
	uint32_t	end;
};

/* Take the first run of set bits out of the bits, at least one of which must be set. */
static inline struct run
first_run(uint32_t *bits)
{
	uint32_t	first = (uint32_t) __builtin_ctz(*bits);
	uint32_t	gaps = ~*bits & UINT32_MAX << first;
	uint32_t	end = gaps != 0 ? (uint32_t) __builtin_ctz(gaps) : INDEX_WIDTH;

	*bits &= ~cpu_first_bits(end);
	return (struct run) {first, end};
}

/*
 * Add the positions from `first` on whose bit is set to the count of a radius; if the walk takes off, subtract the
 * excluded references of these positions.
 */
static inline void
add_bits(struct walk *walk, uint32_t first, uint32_t bits, uint32_t radius)
{
	for (; walk->takes_off && bits != 0; bits &= bits - 1)
		take_position_off(walk, first + (uint32_t) __builtin_ctz(bits), radius);
	if (walk->one_each && walk->piece->weights == 0)
	{
		walk->count[radius].references += (uint64_t) __builtin_popcount(bits);
		return;
	}
	while (bits != 0)
	{
		struct run	run = first_run(&bits);

		add_positions(walk, first + run.first, first + run.end, radius, radius + 1);
	}
}

static double
distance_to(const struct walk *walk, uint32_t position)
{
	const struct cpu_index *index = walk->index;
	uint32_t	place = index->place[index->start[position]];

	if (geonn_metric_chord_decides(walk->dataset->metric))
		return geonn_metric_distance_of(walk->dataset->metric, walk->observation->vector, (struct geonn_vector)
										{index->x[position], index->y[position], index->z[position]});
	return geonn_metric_distance(walk->dataset->metric, walk->observation->latitude, walk->observation->longitude,
								 walk->dataset->latitude[place], walk->dataset->longitude[place]);
}

/*
 * Return the bits of those positions of a leaf that have no radius of their own, or a radius that reaches the observation.
 */
static uint32_t
reaching(struct walk *walk, uint32_t first, const double *chords, uint32_t bits)
{
	const struct cpu_index *index = walk->index;

	bits &= cpu_within_each(chords, index->wide + first);
	for (uint32_t left = bits; left != 0; left &= left - 1)
	{
		uint32_t	position = first + (uint32_t) __builtin_ctz(left);
		double		radius = walk->dataset->radius[index->place[index->start[position]]];

		if (radius == INFINITY)
			continue;
		note_work(walk, LEAVES_OF_DISTANCE);
		if (!(distance_to(walk, position) <= radius))
			bits &= ~(left & -left);
	}
	return bits;
}

/*
 * Add a leaf's positions to the counts of the radii from ... to - 1.
 */
static void
count_leaf(struct walk *walk, uint32_t leaf, uint32_t from, uint32_t to)
{
	const struct cpu_index *index = walk->index;
	const struct search_radii *radii = walk->radii;
	uint32_t	first = leaf * INDEX_WIDTH;
	double		chords[INDEX_WIDTH];
	double		distance[INDEX_WIDTH];
	uint32_t	measured = 0;
	uint32_t	left;

	note_work(walk, 1);
	(void) cpu_leaf_chords(index, leaf, walk->observation->vector, chords);
	left = cpu_part_bits(walk->part, leaf) & cpu_within(chords, radii->within[to - 1]);
	left = cpu_leaf_candidates(index, leaf, &walk->conditions, left);
	if (left != 0 && index->limited)
		left = reaching(walk, first, chords, left);
	for (uint32_t radius = from; radius < to && left != 0; radius++)
	{
		uint32_t	within = radius == to - 1 ? left : left & cpu_within(chords, radii->within[radius]);
		uint32_t	open = within & ~cpu_within(chords, radii->certain[radius]);

		/* measure each position once, even if several radii leave it open */
		for (uint32_t more = open & ~measured; more != 0; more &= more - 1)
			distance[__builtin_ctz(more)] = distance_to(walk, first + (uint32_t) __builtin_ctz(more));
		note_work(walk, LEAVES_OF_DISTANCE * (uint32_t) __builtin_popcount(open & ~measured));
		measured |= open;
		for (; open != 0; open &= open - 1)
			if (!(distance[__builtin_ctz(open)] <= radii->radius[radius]))
				within &= ~(open & -open);
		add_bits(walk, first, within, radius);
	}
}

/*
 * Add those positions of the walk's part that lie under nodes first_node ... end_node - 1 of a level.
 */
static void
add_nodes(struct walk *walk, int level, uint32_t first_node, uint32_t end_node, uint32_t from, uint32_t to)
{
	struct cpu_part below = cpu_part_below(walk->part, level, first_node, end_node);

	add_positions(walk, below.first, below.end, from, to);
}

/* Return a bit for each of INDEX_WIDTH nodes from `node` on, set if the node's references are of several parties. */
CPU_WALK_INLINE uint32_t
several_parties(const struct cpu_index *index, uint32_t node)
{
	uint32_t	several = 0;

	for (int party = 0; party < GEONN_PARTIES_MAX && index->only_party[party] != NULL; party++)
#pragma GCC unroll 16
		for (int i = 0; i < INDEX_WIDTH; i += LANES)
			several |= lanes_equal(lanes_load_integers(index->only_party[party] + node + i),
								   lanes_all_integers(CPU_SEVERAL_PARTIES)) << i;
	return several;
}

/*
 * Walk through some nodes of a level, for the radii from ... to - 1.
 */
static void
count_nodes(struct walk *walk, int level, struct cpu_nodes nodes, uint32_t from, uint32_t to)
{
	const struct cpu_index *index = walk->index;
	const struct search_radii *radii = walk->radii;
	uint32_t	first = index->shape.first[level] + nodes.first;
	double		nearest[INDEX_WIDTH];
	double		farthest[INDEX_WIDTH];
	uint32_t	taken = 0;		/* bits of the nodes that may be taken whole: all of their references are candidates */
	uint32_t	left;

	cpu_node_bounds(index, first, &walk->box, nearest);
	left = cpu_within(nearest, radii->within[to - 1]) & cpu_first_bits(nodes.count);
	if (index->widest != NULL)
		left &= cpu_within_each(nearest, index->widest + first);
	left = cpu_nodes_candidates(index, first, &walk->conditions, left);
	if (walk->takes_nodes)
		taken = left & ~several_parties(index, first);
	if (taken != 0)
	{
		uint32_t	whole;

		/* a node within the smallest radius is within all radii */
		cpu_node_corners(index, first, &walk->box, farthest);
		whole = taken & cpu_within(farthest, radii->certain[from]);
		left &= ~whole;
		while (whole != 0)
		{
			struct run	run = first_run(&whole);

			add_nodes(walk, level, nodes.first + run.first, nodes.first + run.end, from, to);
		}
	}
	for (; left != 0 && !walk->stopped; left &= left - 1)
	{
		uint32_t	child = (uint32_t) __builtin_ctz(left);
		uint32_t	least = from;
		uint32_t	most = to;

		while (taken >> child & 1 && most > least && farthest[child] <= radii->certain[most - 1])
			most--;
		if (most < to)
			add_nodes(walk, level, nodes.first + child, nodes.first + child + 1, most, to);
		while (least < most && nearest[child] > radii->within[least])
			least++;
		if (least == most)
			continue;
		if (level == 0)
			count_leaf(walk, nodes.first + child, least, most);
		else
			count_nodes(walk, level - 1, cpu_part_children(walk->part, level, nodes.first + child), least, most);
	}
}

static void
count_part(struct walk *walk, struct cpu_part part)
{
	int			level;
	struct cpu_nodes top = cpu_part_top(part, &level);

	walk->part = part;
	count_nodes(walk, level, top, 0, walk->radii->count);
}

/* Walk through the parts that the observation's windows reach; if these are many, walk once through the whole group. */
static void
count_slabs(struct walk *walk)
{
	const struct cpu_index *index = walk->index;
	uint32_t	group = cpu_slabs_group(index->slabs, walk->conditions.group);
	uint32_t	parts[PARTS_MAX];
	uint32_t	count;

	if (group == index->slabs->groups)
		return;
	count = cpu_slabs_reached(index->slabs, group, &walk->conditions.windows, parts, PARTS_MAX);
	if (count > PARTS_MAX)
		count_part(walk, cpu_index_group_part(index, group));
	else
		for (uint32_t i = 0; i < count && !walk->stopped; i++)
			count_part(walk, cpu_index_part(index, parts[i]));
}

/* Return the place of the first reference with this tag or a greater one, in a dataset whose tags rise. */
static size_t
first_place(const struct dataset *dataset, int64_t tag)
{
	size_t		first = 0;
	size_t		end = dataset->count;

	while (first < end)
	{
		size_t		middle = first + (end - first) / 2;

		if (dataset->tag[middle] < tag)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* Subtract the references at places place ... end - 1 from all counts that include them. */
static void
take_places_off(struct walk *walk, size_t place, size_t end)
{
	const struct dataset *dataset = walk->dataset;

	for (; place < end && !walk->stopped; place++)
	{
		double		distance;

		note_work(walk, LEAVES_OF_DISTANCE);
		if ((dataset->group != NULL && dataset->group[place] != walk->conditions.group) ||
			(dataset->edges != NULL && !point_windows_overlap(&walk->conditions.windows, dataset, place)) ||
			!point_parties_differ(&walk->conditions.parties, dataset, place))
			continue;
		distance = geonn_metric_distance(dataset->metric, walk->observation->latitude, walk->observation->longitude,
										 dataset->latitude[place], dataset->longitude[place]);
		if (dataset->radius != NULL && !(distance <= dataset->radius[place]))
			continue;
		for (uint32_t radius = 0; radius < walk->radii->count; radius++)
		{
			if (distance <= walk->radii->radius[radius])
				take_off(walk, radius, place);
		}
	}
}

/*
 * Walk through all parts of the index that have candidates of the observation.
 */
static void
count_all(struct walk *walk)
{
	const struct cpu_index *index = walk->index;

	if (index->slabs != NULL)
		count_slabs(walk);
	else if (cpu_index_part_of(index, walk->conditions.group) < index->parts)
		count_part(walk, cpu_index_part(index, cpu_index_part_of(index, walk->conditions.group)));
}

/* Subtract the references that the observation excludes from all counts that include them. */
static void
take_excluded_off(struct walk *walk)
{
	const struct dataset *dataset = walk->dataset;
	bool		takes_nodes = walk->takes_nodes;
	size_t		first;
	size_t		end;

	if (walk->conditions.excluded.last < walk->conditions.excluded.first)
		return;
	first = first_place(dataset, walk->conditions.excluded.first);
	end = walk->conditions.excluded.last < INT64_MAX ? first_place(dataset, walk->conditions.excluded.last + 1) : dataset->count;
	if (end - first <= PLACES_FEW || end - first <= walk->count[walk->radii->count - 1].references)
	{
		take_places_off(walk, first, end);
		return;
	}
	walk->takes_nodes = false;
	walk->takes_off = true;
	count_all(walk);
	walk->takes_nodes = takes_nodes;
	walk->takes_off = false;
}

/* Begin with an observation: read its columns once, because the client can change the batch meanwhile. */
static void
begin(struct walk *walk, uint32_t row)
{
	const struct cpu_count_piece *piece = walk->piece;
	struct geonn_vector from = piece->observation[row].vector;

	walk->observation = &piece->observation[row];
	walk->box = (struct cpu_box) {{from.x, from.y, from.z}, {from.x, from.y, from.z}};
	cpu_conditions_read(&walk->conditions, &piece->search->columns, piece->first + row);
	if (walk->dataset->radius != NULL)
	{
		search_radii_set(&walk->own, walk->dataset->metric, piece->radii->radius, piece->radii->count,
						 walk->conditions.radius);
		walk->radii = &walk->own;
	}
	cpu_counted_begin(piece, walk->count);
}

void
CPU_PATH_NAME(cpu_count) (struct cpu_count_piece *piece)
{
	const struct cpu_index *index = piece->index;
	struct walk walk = {
		.piece = piece,
		.dataset = piece->search->dataset,
		.index = index,
		.takes_nodes = index->edges == NULL && !index->limited,
		.one_each = index->references == index->shape.positions,
		.radii = piece->radii
	};

	for (uint32_t i = 0; i < piece->count; i++)
	{
		uint32_t	row = piece->row[i];

		walk.is_first = i == 0;
		note_work(&walk, LEAVES_OF_OBSERVATION);
		if (walk.stopped)
			return;
		begin(&walk, row);
		count_all(&walk);
		if (piece->search->columns.excluded_first != NULL)
			take_excluded_off(&walk);
		if (walk.stopped)
			return;
		cpu_counted_end(piece, row, walk.count);
	}
}
