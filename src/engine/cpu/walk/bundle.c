/*
 * bundle.c
 *		Lists the positions around a bundle of observations, as float32, and finds the nearest of
 *		them.
 *
 *
 * What float32 may decide
 *
 * Let R be the radius, r the chord from the bundle's centre to its farthest
 * observation, and e = 2^-24.  A listed position is at most R + r from the
 * centre.  Its offset and the observation's are off by e relatively, and so is
 * their difference.  So on each axis the difference is off by 2 e u at most, where
 * u is the sum of the two offsets' sizes, and its square by 4 e u^2 (1 + e).  The
 * sum of u^2 over the axes is at most (R + 2 r)^2; the rounding of the squares
 * and of their sum adds 3 e.  So a squared chord is off by at most E = 8 e (R + 2
 * r)^2, where 16 e are taken.  Radiuses are at least 2^-30, so that nothing
 * underflows.
 *
 * Keys are whole numbers of a unit, with the number in the list below: rounding
 * loses less than two units.  So if the k-th key's chord is s, all of the first k are
 * within L(s + 2 units + E) + E, where L is geonn_metric_chord_limit().  All
 * candidates within that, and no others, get distances.
 *
 * The keys of few positions keep a chord's upper bits, and s + 2 units is the largest
 * chord with the k-th key.  Where the key after it may be within the limit, too, the
 * other keys decide.
 */
#include "engine/cpu/walk/bundle.h"

/*
 * List the positions of a leaf that are within the limit.
 */
static void
list_leaf(struct cpu_bundle *bundle, uint32_t leaf)
{
	const struct cpu_index *index = bundle->index;
	uint32_t	first = leaf * INDEX_WIDTH;
	uint32_t	bits = cpu_part_bits(bundle->part, leaf);
	uint32_t	listed = bundle->listed;
	wide		limit = wide_all(bundle->limit);

#pragma GCC unroll 4
	for (uint32_t i = 0; i < INDEX_WIDTH; i += WIDE)
	{
		wide		x = wide_difference(index->x + first + i, bundle->centre[0]);
		wide		y = wide_difference(index->y + first + i, bundle->centre[1]);
		wide		z = wide_difference(index->z + first + i, bundle->centre[2]);
		uint32_t	within = wide_within(wide_chord(x, y, z), limit) & bits >> i;

		wide_pack(bundle->x + listed, x, within);
		wide_pack(bundle->y + listed, y, within);
		wide_pack(bundle->z + listed, z, within);
		wide_keys_pack(bundle->position + listed, wide_keys_all((int32_t) (first + i)) + wide_keys_numbers(), within);
		listed += (uint32_t) __builtin_popcount(within);
	}
	bundle->listed = listed;
}

/*
 * List positions below some nodes of a level that are within the reach.  False if the list is full.
 */
static bool
list_nodes(struct cpu_bundle *bundle, int level, struct cpu_nodes nodes)
{
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(bundle->index, bundle->index->shape.first[level] + nodes.first, &bundle->box, bounds);
	left = cpu_within(bounds, bundle->reach) & cpu_first_bits(nodes.count);
	if (level == 0)
		for (uint32_t bits = left; bits != 0; bits &= bits - 1)
			cpu_prefetch_leaf(bundle->index, nodes.first + (uint32_t) __builtin_ctz(bits));
	for (; left != 0; left &= left - 1)
	{
		uint32_t	child = nodes.first + (uint32_t) __builtin_ctz(left);

		if (level == 0)
			list_leaf(bundle, child);
		else if (!list_nodes(bundle, level - 1, cpu_part_children(bundle->part, level, child)))
			return false;
		if (bundle->listed > CPU_LISTED_MAX)
			return false;
	}
	return true;
}

bool
CPU_PATH_NAME(cpu_bundle_list) (struct cpu_bundle *bundle, double radius)
{
	int			level;
	struct cpu_nodes top = cpu_part_top(bundle->part, &level);
	double		within;

	for (int axis = 0; axis < 3; axis++)
		bundle->centre[axis] = 0.5 * (bundle->box.low[axis] + bundle->box.high[axis]);

	/* half the diagonal is at least r (essay) */
	within = radius + 0.50001 * cpu_box_extent(&bundle->box);
	bundle->reach = radius < CPU_RADIUS_MAX ? radius * radius : INFINITY;
	bundle->limit = (float) (within * within * 1.00001);
	within += 0.50001 * cpu_box_extent(&bundle->box);
	bundle->farthest = (float) (within * within * 1.0001);
	bundle->error = (float) (within * within * 0x1p-20);
	bundle->listed = 0;
	if (!list_nodes(bundle, level, top))
		return false;

	/* reads beyond the list find infinity, within no threshold */
	for (uint32_t i = bundle->listed; i < bundle->listed + WIDE; i++)
		bundle->x[i] = INFINITY;
	return true;
}

/*
 * Find the `wanted` + 1 smallest keys in each lane; `wanted` is a constant.
 */
FLOATS_INLINE void
find_few(struct cpu_bundle *bundle, float (*offset)[FLOATS], const int wanted)
{
	floats		x = floats_load(offset[0]);
	floats		y = floats_load(offset[1]);
	floats		z = floats_load(offset[2]);
	float_keys	few[CPU_FEW_MAX + 1];

	for (int rank = 0; rank <= wanted; rank++)
		few[rank] = float_keys_all(CPU_FEW_NONE);
	for (uint32_t i = 0; i < bundle->listed; i++)
	{
		floats		chord = floats_chord(floats_all(bundle->x[i]) - x, floats_all(bundle->y[i]) - y,
										 floats_all(bundle->z[i]) - z);
		float_keys	key = ((float_keys) chord & float_keys_all(~(CPU_LISTED_MAX - 1))) | float_keys_all((int32_t) i);

#pragma GCC unroll 4
		for (int rank = 0; rank <= wanted; rank++)
		{
			float_keys	larger = float_keys_larger(few[rank], key);

			few[rank] = float_keys_smaller(few[rank], key);
			key = larger;
		}
	}
	for (int rank = 0; rank <= wanted; rank++)
		float_keys_store(bundle->few[rank], few[rank]);
}

void
CPU_PATH_NAME(cpu_bundle_few) (struct cpu_bundle *bundle, float (*offset)[FLOATS])
{
	switch (bundle->wanted)
	{
		case 1:
			find_few(bundle, offset, 1);
			break;
		case 2:
			find_few(bundle, offset, 2);
			break;
		default:
			find_few(bundle, offset, CPU_FEW_MAX);
	}
}

/*
 * Make keys of the chords from an observation in the box, up to a threshold, which is CPU_KEY_UNITS units.  Returns
 * how many.
 */
static uint32_t
make_keys(struct cpu_bundle *bundle, const struct geonn_vector *from, float threshold)
{
	wide		within = wide_all(threshold);
	wide		units = wide_all(CPU_KEY_UNITS / threshold);
	wide_keys	number = wide_keys_numbers();
	wide		x = wide_all((float) (from->x - bundle->centre[0]));
	wide		y = wide_all((float) (from->y - bundle->centre[1]));
	wide		z = wide_all((float) (from->z - bundle->centre[2]));
	uint32_t	count = 0;

	for (uint32_t i = 0; i < bundle->listed; i += WIDE, number += WIDE)
	{
		wide		chord = wide_chord(wide_load(bundle->x + i) - x, wide_load(bundle->y + i) - y,
									   wide_load(bundle->z + i) - z);
		uint32_t	bits = wide_within(chord, within);
		wide_keys	key = __builtin_convertvector(chord * units, wide_keys) << CPU_LISTED_BITS | number;

		wide_keys_pack(bundle->key + count, key, bits);
		count += (uint32_t) __builtin_popcount(bits);
	}
	return count;
}

/*
 * Make keys of the candidates of the observation with which the collector has begun, up to a threshold.
 */
static uint32_t
make_candidates_keys(struct cpu_bundle *bundle, const struct cpu_collector *collector, float threshold)
{
	uint32_t	count = make_keys(bundle, &collector->from, threshold);
	uint32_t	taken = 0;

	if (!bundle->compares)
		return count;
	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	position = (uint32_t) bundle->position[bundle->key[i] & (CPU_LISTED_MAX - 1)];

		bundle->key[taken] = bundle->key[i];
		taken += cpu_position_overlaps(bundle->index, position, &collector->conditions.windows);
	}
	return taken;
}

/*
 * Make sorted keys of the nearest positions: at least as many as are wanted, or all within `farthest`.  The
 * threshold is a guess, and becomes the one that was used.  Returns how many keys, or UINT32_MAX if too many are
 * about equally near.
 */
static uint32_t
select_keys(struct cpu_bundle *bundle, const struct cpu_collector *collector, float farthest, float *threshold)
{
	float		low = 0.0f;
	float		high = farthest;
	uint32_t	below = 0;
	uint32_t	count;

	if (bundle->wanted == 0 || bundle->wanted >= bundle->listed || !(*threshold < farthest))
		*threshold = farthest;
	for (int tries = 0;; tries++)
	{
		float		share;

		count = make_candidates_keys(bundle, collector, *threshold);
		if (bundle->wanted == 0)
			return count;
		if (count <= bundle->most && (count >= bundle->wanted || *threshold >= farthest))
			break;
		if (tries == CPU_TRIES_MAX)
			return UINT32_MAX;
		if (count < bundle->wanted)
		{
			low = *threshold;
			below = count;
			share = count == 0 ? 4.0f : (float) bundle->goal / (float) count;
			*threshold *= share < 4.0f ? share : 4.0f;
		}
		else
		{
			high = *threshold;
			share = (float) (bundle->goal - below) / (float) (count - below);
			*threshold = low + (high - low) * share;
		}
		if (!(*threshold > low && *threshold < high))
			*threshold = tries < 4 && high == farthest ? farthest : 0.5f * (low + high);
	}
	sort_keys(bundle->key, count);
	return count;
}

/*
 * Give the collector the positions of those of the sorted keys that are within the limit.
 */
static void
collect_keys(const struct cpu_bundle *bundle, struct cpu_collector *collector, uint32_t count, float threshold,
			 double limit)
{
	int32_t		last = INT32_MAX;

	/* keys are rounded: take those up to 2 units beyond the limit */
	if (limit + bundle->error < threshold)
		last = (int32_t) ((limit + bundle->error) / threshold * CPU_KEY_UNITS + 2.0);
	if (!CPU_PATH_NAME(cpu_collector_reserve) (collector, count))
		count = 0;
	collector->count = 0;
	for (uint32_t i = 0; i < count && bundle->key[i] >> CPU_LISTED_BITS <= last; i++)
	{
		uint32_t	position = (uint32_t) bundle->position[bundle->key[i] & (CPU_LISTED_MAX - 1)];

		__builtin_prefetch(&bundle->index->start[position]);
		__builtin_prefetch(&bundle->index->tag[position]);
		collector->points[collector->count++].place = position;
	}
}

/* The least chord with the key of a nearest position; with `rounding` CPU_LISTED_MAX - 1, the largest. */
static inline float
few_chord(int32_t key, int32_t rounding)
{
	float		chord;

	key = (key & ~(CPU_LISTED_MAX - 1)) + rounding;
	memcpy(&chord, &key, sizeof(chord));
	return chord;
}

/*
 * Lower the limit of an observation, and give the collector the positions within it, by the keys that the bundle has for
 * the observation's nearest positions.  Returns how many of these keys there are, or UINT32_MAX if more positions may be
 * within the limit.
 */
static uint32_t
collect_few(const struct cpu_bundle *bundle, uint32_t lane, struct cpu_collector *collector, double *limit)
{
	uint32_t	wanted = bundle->wanted;
	uint32_t	count = bundle->listed < wanted ? bundle->listed : wanted;
	int32_t		after = bundle->few[wanted][lane];
	double		most;

	if (count == wanted)
	{
		double		kth = geonn_metric_chord_limit(collector->dataset->metric,
												   (double) few_chord(bundle->few[wanted - 1][lane], CPU_LISTED_MAX - 1) +
												   bundle->error);

		*limit = kth < *limit ? kth : *limit;
	}
	if (*limit > bundle->reach)
		return count;
	most = *limit + bundle->error;
	if (after != CPU_FEW_NONE && few_chord(after, 0) <= most)
		return UINT32_MAX;
	if (!CPU_PATH_NAME(cpu_collector_reserve) (collector, count))
		count = 0;
	collector->count = 0;
	for (uint32_t i = 0; i < count && few_chord(bundle->few[i][lane], 0) <= most; i++)
		collector->points[collector->count++].place =
			(uint32_t) bundle->position[bundle->few[i][lane] & (CPU_LISTED_MAX - 1)];
	return count;
}

/*
 * Lower the limit of an observation, and give the collector the positions within it, by all chords.  Returns how
 * many keys it has, or UINT32_MAX if too many positions are about equally near.
 */
static uint32_t
collect_many(struct cpu_bundle *bundle, struct cpu_collector *collector, double *limit)
{
	float		most = bundle->farthest;
	float		threshold = bundle->threshold;
	uint32_t	count;

	if (*limit + bundle->error < most)
		most = (float) (*limit + bundle->error) * 1.000001f;
	for (;;)
	{
		float		unit;

		count = select_keys(bundle, collector, most, &threshold);
		if (count == UINT32_MAX)
			return count;
		unit = threshold / CPU_KEY_UNITS;
		if (bundle->wanted > 0 && count >= bundle->wanted)
		{
			double		kth = (double) ((bundle->key[bundle->wanted - 1] >> CPU_LISTED_BITS) + 2) * unit + bundle->error;

			bundle->threshold = (float) kth * (float) bundle->goal / (float) bundle->wanted;
			kth = geonn_metric_chord_limit(collector->dataset->metric, kth);
			*limit = kth < *limit ? kth : *limit;
		}
		if (*limit > bundle->reach)
			return count;
		if (*limit + bundle->error <= threshold || threshold >= most)
			break;
		threshold = (float) (*limit + bundle->error) * 1.00001f;
		if (make_candidates_keys(bundle, collector, threshold) > bundle->most)
			return UINT32_MAX;
	}
	collect_keys(bundle, collector, count, threshold, *limit);
	return count;
}

uint32_t
CPU_PATH_NAME(cpu_bundle_collect) (struct cpu_bundle *bundle, uint32_t lane, struct cpu_collector *collector,
								   double *limit)
{
	uint32_t	count = UINT32_MAX;

	if (cpu_bundle_few_wanted(bundle))
		count = collect_few(bundle, lane, collector, limit);
	return count == UINT32_MAX ? collect_many(bundle, collector, limit) : count;
}
