/*
 * collector.h
 *		Collects the candidates of one observation during a search on the CPU.
 *
 * A search, by index or by brute force, looks at points and adds each whose
 * squared chord is within the collector's limit and not below its floor.  The
 * limit shrinks as better candidates come.  Or it finds the points by other means,
 * and puts them there itself.  In the end the collector has the observation's pairs.
 */
#ifndef GEONN_CPU_COLLECTOR_H
#define GEONN_CPU_COLLECTOR_H

#include "common/geodesy.h"
#include "engine/cpu/base/path.h"
#include "engine/cpu/base/conditions.h"
#include "engine/search/candidates.h"
#include "engine/search/device.h"

struct cpu_index;
struct cpu_part;

struct cpu_collector
{
	/* fields that stay the same for all observations of a turn */
	const struct dataset *dataset;
	const struct question *question;
	const atomic_bool *cancelled;
	const double *x;			/* vectors of points; NULL: they are those of the dataset's columns */
	const double *y;
	const double *z;
	const uint32_t *start;		/* point i has the references place[start[i]] ... place[start[i + 1] - 1]; */
	const uint32_t *place;		/* or start is NULL, and point i is reference i */
	const int64_t *tag;			/* tags of references, in the order of `place` */
	bool		limited;		/* references may have radiuses */
	double		widest;			/* the limit that the question's max_distance gives */
	size_t		room;			/* the greatest number of pairs that the caller can use; at least 1 */

	/* the observation that is being answered */
	double		latitude;
	double		longitude;
	struct geonn_vector from;
	struct cpu_conditions conditions;
	double		max_distance;	/* metres: the question's, or the observation's radius if that is
								 * smaller */
	struct cutoff cutoff;		/* if present, the pairs up to it are left out */

	/*
	 * Points with a squared chord above the limit or below the floor hold no
	 * pair.
	 */
	double		limit;
	double		floor;
	size_t		k;				/* how many candidates to keep: the question's k, or room + 1 if
								 * it asks for all within a radius */
	bool		plain;			/* every point that is offered has a candidate */
	size_t		next_trim;		/* the number of points at which the limit shrinks next */

	size_t		count;
	size_t		capacity;
	struct candidate *points;	/* the `distance` of each is its squared chord, as a filter computed
								 * it; the `place`, its number */
	double	   *distance;		/* their distances, where they have been measured */
	size_t		chosen_capacity;
	struct candidate *chosen;
	uint64_t	measured;		/* how many points' distances were computed; the caller resets it */
	bool		short_of_memory;
};

/*
 * Begin an observation, for which the caller has set the fields above `limit`.
 */
extern void CPU_PATH_NAME(cpu_collector_begin) (struct cpu_collector *collector);

/*
 * Add a point whose windows overlap the observation's, and whose parties differ from its.  The squared chord comes
 * from cpu_filter_chord() or geonn_chord_squared(), and is within the limit.
 */
extern void CPU_PATH_NAME(cpu_collector_add) (struct cpu_collector *collector, double chord,
											  uint32_t point);

/* If the points have k candidates, lower the limit, and drop the points above it. */
extern void CPU_PATH_NAME(cpu_collector_trim) (struct cpu_collector *collector);

/* Make room for this many points.  False if memory is short. */
extern bool CPU_PATH_NAME(cpu_collector_reserve) (struct cpu_collector *collector, size_t count);

/*
 * Drop the points, positions of an index, that hold no candidate, because of party, tags or cutoff.  No
 * reference has a radius or windows.
 */
extern void CPU_PATH_NAME(cpu_collector_drop) (struct cpu_collector *collector, const struct cpu_index *index);

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
 * End the observation: collector->chosen has its pairs, in order.  Returns
 * their number; if that is more than the room, chosen has the first of them.
 */
extern size_t CPU_PATH_NAME(cpu_collector_end) (struct cpu_collector *collector);

extern void CPU_PATH_NAME(cpu_collector_free) (struct cpu_collector *collector);

/* Offer the references of an index to a collector, which has begun. */
extern void CPU_PATH_NAME(cpu_index_collect) (const struct cpu_index *index,
											  struct cpu_collector *collector);

/* The same, for the references of a part. */
extern void CPU_PATH_NAME(cpu_index_collect_part) (const struct cpu_index *index, struct cpu_part part,
												   struct cpu_collector *collector);

/* how many references brute force looks at together */
#define CPU_BRUTE_GROUP 64

/*
 * Vectors of references for brute force, as columns.  Copies of the last reference
 * fill the last group.
 */
struct cpu_references
{
	size_t		count;
	size_t		padded;			/* count, rounded up to whole groups */
	double	   *x;
	double	   *y;
	double	   *z;
};

/* Offer all references to a collector, which has begun. */
extern void CPU_PATH_NAME(cpu_brute_collect) (const struct cpu_references *references,
											  struct cpu_collector *collector);

/* The same, without vectors of references: for few observations. */
extern void CPU_PATH_NAME(cpu_brute_collect_columns) (struct cpu_collector *collector);

#endif							/* GEONN_CPU_COLLECTOR_H */
