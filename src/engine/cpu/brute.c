/*
 * brute.c
 *		Brute force on the CPU: looks at every pair of observation and
 *		reference.
 *
 * The loop over pairs computes only the squared chord, as a plain sum of squares
 * that any vector unit can do, and its minimum over a group of references.  A
 * group whose minimum is above the collector's limit has no candidate.  Any other
 * group is gone through again, one reference after the other.
 */
#include "engine/cpu/collector.h"

#include "common/metric.h"

/* how many minima group_minimum() computes side by side, to keep vector units busy */
#define LANES 16

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
	for (size_t i = 0; i < CPU_BRUTE_GROUP; i += LANES)
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

void
CPU_PATH_NAME(cpu_brute_collect) (const struct cpu_references *references,
								  struct cpu_collector *collector)
{
	const struct dataset *dataset = collector->dataset;
	struct geonn_vector from = collector->from;

	for (size_t start = 0; start < references->padded; start += CPU_BRUTE_GROUP)
	{
		size_t		end = start + CPU_BRUTE_GROUP < references->count ? start + CPU_BRUTE_GROUP : references->count;

		if (start % (8 * CPU_BRUTE_GROUP) == 0 && cpu_collector_stopped(collector))
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
				point_windows_overlap(&collector->windows, dataset, i) &&
				point_parties_differ(&collector->parties, dataset, i))
				CPU_PATH_NAME(cpu_collector_add) (collector, chord, place);
		}
	}
}
