/*
 * collector.h
 *		The candidates of one observation on the CPU, while they are searched.
 *
 * A search by whatever algorithm looks at points and puts in the references of
 * those that are within the collector's limit and not below its floor; the limit
 * shrinks as better ones come.  In the end the collector has the observation's
 * pairs.
 */
#ifndef GEONN_CPU_COLLECTOR_H
#define GEONN_CPU_COLLECTOR_H

#include "common/geodesy.h"
#include "engine/search/candidates.h"
#include "engine/search/device.h"

struct collected
{
	double		chord;			/* squared, as a filter computed it */
	double		distance;		/* metres, or negative: not known yet */
	uint32_t	place;			/* index in the dataset */
	uint32_t	point;			/* where its vector is */
};

struct cpu_collector
{
	/* the same for all observations of a turn */
	const struct dataset *dataset;
	const struct question *question;
	const atomic_bool *cancelled;
	const double *x;			/* vectors of points */
	const double *y;
	const double *z;
	double		widest;			/* limit from max_distance */
	size_t		room;			/* pairs that can be used; at least 1 */

	/* the observation */
	double		latitude;
	double		longitude;
	struct geonn_vector from;
	int32_t		group;			/* where the dataset has groups */
	int32_t		identity;		/* likewise */
	struct cutoff cutoff;		/* leave out the pairs up to there */

	/*
	 * No point with a squared chord above the limit holds a pair, nor one with
	 * a squared chord below the floor.
	 */
	double		limit;
	double		floor;
	size_t		wanted;			/* the first so many candidates are needed */
	size_t		next_trim;		/* when there are so many, the limit shrinks */

	size_t		count;
	size_t		capacity;
	struct collected *items;
	size_t		chosen_capacity;
	struct candidate *chosen;
	bool		short_of_memory;
};

/*
 * Set up for an observation, of which the fields above are given.
 */
extern void cpu_collector_begin(struct cpu_collector *collector);

/*
 * Put in the references of a point: `count` places.  The chord is as
 * cpu_filter_chord() or geonn_chord_squared() computes it, and within the limit.
 */
extern void cpu_collector_add(struct cpu_collector *collector, double chord,
							  uint32_t point, const uint32_t *places, size_t count);

/*
 * Whether the search may end early: it was cancelled, or memory is short.
 */
static inline bool
cpu_collector_stopped(const struct cpu_collector *collector)
{
	return collector->short_of_memory ||
		atomic_load_explicit(collector->cancelled, memory_order_relaxed);
}

/*
 * The pairs: collector->chosen, in order.  Returns how many; where that is more than
 * the room, the first ones of them.
 */
extern size_t cpu_collector_end(struct cpu_collector *collector);

extern void cpu_collector_free(struct cpu_collector *collector);

#endif							/* GEONN_CPU_COLLECTOR_H */
