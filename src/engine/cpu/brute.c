/*
 * brute.c
 *		Brute force on the CPU: looks at every pair of observation and
 *		reference.
 *
 * References are searched tile by tile, each tile for all observations of the
 * call while it lies in the first-level cache.
 *
 * The loop over pairs computes only the squared chord s, as a plain sum of
 * squares that any vector unit can do, and its minimum over a group of
 * references.  That sum may differ from geodesy.h's in the last places, and so
 * may the order of s from the order of distances; geonn_chord_limit() bounds
 * both (its proof stands there).  So a group whose minimum is above the limit
 * of the smallest s seen so far holds no nearest reference.  Any other group
 * is gone through again, with geodesy.h's own s; where that is within the
 * limit, the distance is computed and decides.  With references in random
 * order that happens about ln(groups) times an observation.
 *
 * The loop meets references in the order of their places, so among equal
 * distances the first one met stays.
 *
 * A question that asks for more than the nearest reference uses a collector,
 * which takes the references within its limit, again group by group.
 */
#include "engine/cpu/brute.h"

#include "common/metric.h"
#include "engine/cpu/collector.h"

/* references of a group; a tile is a whole number of them */
#define GROUP 64

/* independent minima, enough to keep vector units busy */
#define LANES 16

/* the best reference so far for one observation */
struct best
{
	struct geonn_vector from;	/* the observation */
	double		smallest;		/* smallest squared chord of all references so far */
	double		limit;			/* geonn_chord_limit(smallest) */
	double		chord;			/* squared chord of the best */
	double		distance;
	uint32_t	place;
};

static inline __attribute__((always_inline)) double
group_minimum(const struct cpu_references *references, size_t start,
			  struct geonn_vector from)
{
	const double *x = references->x + start;
	const double *y = references->y + start;
	const double *z = references->z + start;
	double		smallest[LANES];
	double		minimum;

	for (int lane = 0; lane < LANES; lane++)
		smallest[lane] = INFINITY;
	for (size_t i = 0; i < GROUP; i += LANES)
		for (int lane = 0; lane < LANES; lane++)
		{
			double		dx = x[i + lane] - from.x;
			double		dy = y[i + lane] - from.y;
			double		dz = z[i + lane] - from.z;
			double		chord = cpu_filter_chord(dx, dy, dz);

			smallest[lane] = chord < smallest[lane] ? chord : smallest[lane];
		}

	minimum = smallest[0];
	for (int lane = 1; lane < LANES; lane++)
		minimum = smallest[lane] < minimum ? smallest[lane] : minimum;
	return minimum;
}

static inline __attribute__((always_inline)) void
decide_group(const struct cpu_references *references, size_t start,
			 struct best *best)
{
	size_t		end = start + GROUP;

	if (end > references->count)
		end = references->count;
	for (size_t i = start; i < end; i++)
	{
		struct geonn_vector reference = {
			references->x[i], references->y[i], references->z[i]
		};
		double		chord = geonn_chord_squared(best->from, reference);
		double		distance;

		if (chord > best->limit)
			continue;
		if (chord < best->smallest)
		{
			best->smallest = chord;
			best->limit = geonn_chord_limit(chord);
		}
		/* up to a quarter turn the distance depends on the chord alone */
		if (chord == best->chord && chord <= 2.0)
			continue;
		distance = geonn_metric_distance_of(references->metric, best->from, reference);
		if (distance < best->distance)
		{
			best->distance = distance;
			best->chord = chord;
			best->place = (uint32_t) i;
		}
	}
}

void
CPU_PATH_NAME(cpu_brute_nearest) (const struct cpu_references *references,
								  const struct geonn_vector *from, size_t observations,
								  uint32_t *place, double *distance,
								  const atomic_bool *cancelled)
{
	struct best bests[CPU_BRUTE_OBSERVATIONS];

	for (size_t i = 0; i < observations; i++)
		bests[i] = (struct best) {
			.from = from[i],
			.smallest = INFINITY,
			.limit = INFINITY,
			.chord = INFINITY,
			.distance = INFINITY
		};

	for (size_t start = 0; start < references->padded; start += CPU_BRUTE_TILE)
	{
		if (atomic_load_explicit(cancelled, memory_order_relaxed))
			return;
		for (size_t i = 0; i < observations; i++)
			for (size_t group = start; group < start + CPU_BRUTE_TILE; group += GROUP)
				if (group_minimum(references, group, bests[i].from) <= bests[i].limit)
					decide_group(references, group, &bests[i]);
	}

	for (size_t i = 0; i < observations; i++)
	{
		place[i] = bests[i].place;
		distance[i] = bests[i].distance;
	}
}

void
CPU_PATH_NAME(cpu_brute_collect) (const struct cpu_references *references,
								  struct cpu_collector *collector)
{
	const struct dataset *dataset = collector->dataset;
	struct geonn_vector from = collector->from;

	for (size_t start = 0; start < references->padded; start += GROUP)
	{
		size_t		end = start + GROUP < references->count ? start + GROUP : references->count;

		if (start % CPU_BRUTE_TILE == 0 && cpu_collector_stopped(collector))
			return;
		if (group_minimum(references, start, from) > collector->limit)
			continue;
		for (size_t i = start; i < end; i++)
		{
			double		chord = cpu_filter_chord(references->x[i] - from.x,
												 references->y[i] - from.y,
												 references->z[i] - from.z);
			uint32_t	place = (uint32_t) i;

			if (chord > collector->limit || chord < collector->floor)
				continue;
			if ((dataset->group == NULL || dataset->group[i] == collector->group) &&
				(dataset->radius == NULL ||
				 chord <= geonn_metric_wide_limit(dataset->metric, dataset->radius[i])) &&
				point_windows_overlap(&collector->windows, dataset, i))
				cpu_collector_add(collector, chord, place, &place, 1);
		}
	}
}
