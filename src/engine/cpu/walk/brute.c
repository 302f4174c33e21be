/*
 * brute.c
 *		Brute force on the CPU: looks at every pair of observation and
 *		reference.
 *
 * The loop over pairs computes only the squared chord, as a plain sum of squares
 * that any vector unit can do, and its minimum over a group of references.  A
 * group whose minimum is above the collector's limit has no candidate.  Any other
 * group is gone through again, one reference after the other.
 *
 * For few observations not even vectors are made first.  Points are at least as far
 * apart as their parallels are: as long as the limit leaves some latitudes out, most
 * references cost one comparison, and only those between two latitudes get vectors.
 */
#include "engine/cpu/walk/collector.h"

#include "common/metric.h"
#include "engine/cpu/base/vectors.h"

/* one in so many groups is in the sample that comes first, where references have no vectors */
#define SAMPLE_STEP 64

/* how many minima of a group are computed side by side, to keep vector units busy */
#define LANES 16

static inline __attribute__((always_inline)) double
least_of_lanes(const double *lanes)
{
	double		minimum = lanes[0];

	for (int lane = 1; lane < LANES; lane++)
		minimum = lanes[lane] < minimum ? lanes[lane] : minimum;
	return minimum;
}

static inline __attribute__((always_inline)) double
group_minimum(const struct cpu_references *references, size_t start,
			  struct geonn_vector from)
{
	const double *x = references->x + start;
	const double *y = references->y + start;
	const double *z = references->z + start;
	double		smallest[LANES];

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
	return least_of_lanes(smallest);
}

/*
 * Offer a reference of the observation's group whose chord is within the limit.
 */
static inline void
offer(struct cpu_collector *collector, double chord, uint32_t place)
{
	const struct dataset *dataset = collector->dataset;

	if ((dataset->radius == NULL || chord <= geonn_metric_wide_limit(dataset->metric, dataset->radius[place])) &&
		point_windows_overlap(&collector->conditions.windows, dataset, place) &&
		point_parties_differ(&collector->conditions.parties, dataset, place))
		CPU_PATH_NAME(cpu_collector_add) (collector, chord, place);
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
			if (dataset->group == NULL || dataset->group[i] == collector->conditions.group)
				offer(collector, chord, place);
		}
	}
}

/* latitudes in degrees, at most `reach` from the middle */
struct belt
{
	double		middle;
	double		reach;
};

/*
 * The latitudes that references within the collector's limit can have.
 *
 * Of two parallels, the points that are nearest to each other are of one meridian.  The path between them along it turns
 * from one latitude to the other, d, and has nowhere a radius of curvature below r.  So the part of it in the direction
 * that it has half-way is at least as long as that of an arc of a circle, 2 r sin(d / 2), and so is the chord.  r is 1 on the
 * sphere, and 1 - e^2 = 0.9933 on the spheroid, in units of its semi-major axis.  The margin is far more than the
 * errors of a computed chord, some 1e-15, and of the lines below, where the sine is not near 1.
 */
static struct belt
belt_within(const struct cpu_collector *collector)
{
	const double least_radius = 0.993;
	const double margin = 1e-9;
	double		sine = sqrt(collector->limit) / (2.0 * least_radius);

	return (struct belt) {
		collector->latitude,
		sine < 0.9 ? 2.0 * asin(sine) * (180.0 / M_PI) + margin : INFINITY
	};
}

/* whether any of a group's latitudes is in a belt */
static inline __attribute__((always_inline)) bool
is_any_in_belt(const double *latitude, struct belt belt)
{
	double		nearest[LANES];

	for (int lane = 0; lane < LANES; lane++)
		nearest[lane] = INFINITY;
	for (size_t i = 0; i < CPU_BRUTE_GROUP; i += LANES)
		for (int lane = 0; lane < LANES; lane++)
		{
			double		away = fabs(latitude[i + lane] - belt.middle);

			nearest[lane] = away < nearest[lane] ? away : nearest[lane];
		}
	return least_of_lanes(nearest) <= belt.reach;
}

/*
 * Offer the references first ... end - 1 that are in a belt, a group at most.
 */
static void
collect_belt(struct cpu_collector *collector, struct belt belt, size_t first, size_t end)
{
	const struct dataset *dataset = collector->dataset;
	double		latitude[CPU_BRUTE_GROUP] = {0.0};
	double		longitude[CPU_BRUTE_GROUP] = {0.0};
	double		x[CPU_BRUTE_GROUP];
	double		y[CPU_BRUTE_GROUP];
	double		z[CPU_BRUTE_GROUP];
	uint32_t	place[CPU_BRUTE_GROUP];
	uint32_t	count = 0;

	for (size_t i = first; i < end; i++)
	{
		latitude[count] = dataset->latitude[i];
		longitude[count] = dataset->longitude[i];
		place[count] = (uint32_t) i;
		count += fabs(dataset->latitude[i] - belt.middle) <= belt.reach &&
			(dataset->group == NULL || dataset->group[i] == collector->conditions.group);
	}
	CPU_PATH_NAME(cpu_vectors) (dataset->metric, latitude, longitude, count, x, y, z);
	for (uint32_t i = 0; i < count; i++)
	{
		double		chord = cpu_filter_chord(x[i] - collector->from.x, y[i] - collector->from.y, z[i] - collector->from.z);

		if (chord <= collector->limit && chord >= collector->floor)
			offer(collector, chord, place[i]);
	}
}

void
CPU_PATH_NAME(cpu_brute_collect_columns) (struct cpu_collector *collector)
{
	const struct dataset *dataset = collector->dataset;
	struct belt belt = belt_within(collector);
	double		limit = collector->limit;
	size_t		groups = (dataset->count + CPU_BRUTE_GROUP - 1) / CPU_BRUTE_GROUP;

	/* a sample gives a limit that is near the last one, whatever order the references have */
	for (int pass = 0; pass < 2; pass++)
		for (size_t group = 0; group < groups; group += pass == 0 ? SAMPLE_STEP : 1)
		{
			size_t		first = group * CPU_BRUTE_GROUP;
			bool		is_whole = dataset->count - first >= CPU_BRUTE_GROUP;

			if (pass == 1 && group % SAMPLE_STEP == 0)
				continue;
			if ((pass == 0 || group % 8 == 1) && cpu_collector_stopped(collector))
				return;
			if (is_whole && !is_any_in_belt(dataset->latitude + first, belt))
				continue;
			collect_belt(collector, belt, first, is_whole ? first + CPU_BRUTE_GROUP : dataset->count);
			if (collector->limit < limit)
			{
				limit = collector->limit;
				belt = belt_within(collector);
			}
		}
}
