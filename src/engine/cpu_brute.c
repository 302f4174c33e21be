/*
 * cpu_brute.c
 *		Every pair on the CPU: the exact nearest reference by brute force.
 *
 * References are searched tile by tile, each tile for all observations of the
 * call while it lies in the first-level cache.
 *
 * The loop over pairs computes no more than the squared chord s, as a plain sum
 * of squares that any vector unit can do, and its minimum over a group of
 * references.  That sum may differ from geodesy.h's in the last places, and so
 * may the order of s from the order of distances; geonn_chord_limit() bounds
 * both (its proof stands there).  So a group whose minimum is above the limit
 * of the smallest s seen so far holds no nearest reference; any other group is
 * gone through again, with geodesy.h's own s and, where that is within the
 * limit, the distance, which decides.  With references in random order that
 * happens about ln(groups) times an observation.
 *
 * References are met in the order of their indexes, so among equal distances
 * the first one met stays.
 */
#include "cpu_brute.h"

#include <math.h>

#include "../common/geodesy.h"

/*
 * On x86-64 the compiler makes several versions of a function, and the loader
 * takes the best one for the processor.  The bytes that they compute are the
 * same: contraction is off and fma is exact in all of them.  (gcc 11 doesn't
 * know these levels, clang 14 can't link a function cloned in another file,
 * and sanitizers run before the loader has chosen.)
 */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && \
	__GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VECTOR_VERSIONS \
	__attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define VECTOR_VERSIONS
#endif

/* a function called by one of several versions must become part of each */
#define VECTOR_INLINE __attribute__((always_inline))

/* references of a group; a tile is a whole number of them */
#define GROUP 64

/* independent minima, enough to keep vector units busy */
#define LANES 16

/* the best reference so far for one observation */
struct best
{
	struct geonn_vector place;	/* the observation */
	double		smallest;		/* squared chord, of all those gone through */
	double		limit;			/* geonn_chord_limit(smallest) */
	double		chord;			/* squared chord of the best */
	double		distance;
	uint32_t	index;
};

static inline VECTOR_INLINE double
group_minimum(const struct cpu_references *references, size_t start,
			  struct geonn_vector place)
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
			double		dx = x[i + lane] - place.x;
			double		dy = y[i + lane] - place.y;
			double		dz = z[i + lane] - place.z;
			double		chord = dx * dx + dy * dy + dz * dz;

			smallest[lane] = chord < smallest[lane] ? chord : smallest[lane];
		}

	minimum = smallest[0];
	for (int lane = 1; lane < LANES; lane++)
		minimum = smallest[lane] < minimum ? smallest[lane] : minimum;
	return minimum;
}

static inline VECTOR_INLINE void
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
		double		chord = geonn_chord_squared(best->place, reference);
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
		distance = geonn_distance_of(best->place, reference);
		if (distance < best->distance)
		{
			best->distance = distance;
			best->chord = chord;
			best->index = (uint32_t) i;
		}
	}
}

VECTOR_VERSIONS
bool
cpu_brute_nearest(const struct cpu_references *references, const double *latitude,
				  const double *longitude, size_t observations, uint32_t *index,
				  double *distance, const atomic_bool *cancelled)
{
	struct best bests[CPU_BRUTE_OBSERVATIONS];

	for (size_t i = 0; i < observations; i++)
	{
		/* one read each: the batch is shared with another process */
		double		degrees[2] = {
			((const volatile double *) latitude)[i],
			((const volatile double *) longitude)[i]
		};

		if (!geonn_coordinates_valid(degrees[0], degrees[1]))
			return false;
		bests[i] = (struct best) {
			.place = geonn_unit_vector(degrees[0], degrees[1]),
			.smallest = INFINITY,
			.limit = INFINITY,
			.chord = INFINITY,
			.distance = INFINITY
		};
	}

	for (size_t start = 0; start < references->padded; start += CPU_BRUTE_TILE)
	{
		if (atomic_load_explicit(cancelled, memory_order_relaxed))
			return true;
		for (size_t i = 0; i < observations; i++)
			for (size_t group = start; group < start + CPU_BRUTE_TILE; group += GROUP)
				if (group_minimum(references, group, bests[i].place) <= bests[i].limit)
					decide_group(references, group, &bests[i]);
	}

	for (size_t i = 0; i < observations; i++)
	{
		index[i] = bests[i].index;
		distance[i] = bests[i].distance;
	}
	return true;
}

VECTOR_VERSIONS
void
cpu_brute_prepare(const struct cpu_references *references, const double *latitude,
				  const double *longitude, size_t first, size_t rows)
{
	for (size_t i = first; i < first + rows; i++)
	{
		size_t		source = i < references->count ? i : references->count - 1;
		struct geonn_vector place = geonn_unit_vector(latitude[source],
													  longitude[source]);

		references->x[i] = place.x;
		references->y[i] = place.y;
		references->z[i] = place.z;
	}
}
