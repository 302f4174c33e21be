/*
 * arcs_found.h
 *		What a search by arcs has found for an observation: shapes, with the bounds of their chords.
 *
 * For arcs_search.c, whose essay has the margin, and for arcs_probe_search.c.
 */
#ifndef GEONN_CPU_ARCS_FOUND_H
#define GEONN_CPU_ARCS_FOUND_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cpu/arcs/arcs.h"
#include "engine/cpu/arcs/arcs_conditions.h"
#include "engine/cpu/arcs/boxes_list.h"
#include "engine/cpu/walk/neighbours.h"
#include "engine/cpu/walk/walk.h"

/* The vertex of an entry that stands for the inside of a polygon, or for a part inside of the observation, instead of an arc. */
#define NO_VERTEX UINT32_MAX

/* The vertex of an entry that stands for a shape whose distance is known already. */
#define MEASURED_VERTEX (UINT32_MAX - 1)

#define TABLE_MIN 64

/* a shape that has been found */
struct found
{
	double		upper;			/* upper bound of the shape's chord, in radii */
	double		distance;		/* metres, the least distance that was measured; -1: the shape has been chosen */
	uint32_t	arc;			/* the first arc in the dataset that has this distance */
	uint32_t	own;			/* where on the observation it has that first */
	uint32_t	shape;			/* the shape's number */
	uint32_t	stamp;			/* the number of the observation that uses the entry; for all others the entry is free */
	size_t		noted;			/* where the last arc of the shape that was noted is in `maybe` */
};

/* an arc that may be the nearest one of its shape, with a lower bound of its chord */
struct maybe
{
	double		lower;
	uint32_t	shape;
	uint32_t	arc;			/* index in the dataset; for a polygon that holds the observation, or for a part, its first
								 * arc */
	uint32_t	vertex;			/* the vertex where the arc begins; or NO_VERTEX, or MEASURED_VERTEX */
	uint32_t	own;			/* where on an observation that is a shape (arcs_probe.h); else 0 */
};

/* A bundle: observations that follow each other, and what the index has near them. */
struct bundle
{
	uint32_t	end;			/* the bundle has the piece's rows before this one */
	struct cpu_box box;			/* the box around the bundle's observations */
	bool		has_leaves;		/* `leaves` lists all leaves in the bundle's region, which is wider than the box */
	bool		has_polygons;	/* `polygons` has all that overlap the box */
	struct cpu_boxes_list leaves;
	struct cpu_boxes_list polygons;
};

/* what a walk has still to visit */
struct visit
{
	float		gap;			/* the square of the gap to the box, a little less for rounding */
	int32_t		level;			/* level of the node; -1: the visit is to a leaf */
	uint32_t	number;
};

/* what is done for an observation that is a shape, one after the other */
enum stage
{
	STAGE_AROUND,				/* the polygons around its parts */
	STAGE_INSIDE,				/* the parts inside its polygons */
	STAGE_ARCS,					/* its arcs, or all arcs by brute force */
	STAGE_END					/* the answer */
};

/* How far a search has come with an observation that is a shape: a turn may end anywhere in between. */
struct progress
{
	enum stage	stage;
	uint64_t	next;			/* of the stage, the part's arc, the polygon, the side, or by brute force the reference's arc */
	uint64_t	step;			/* how far apart bundles are now (arcs_probe_search.c); 0: none has begun */
	bool		walks;			/* a walk is under way */
	uint32_t	visits;			/* of that walk */
	struct visit visit[SHAPE_BOXES_VISITS];
	uint32_t	inner;			/* by brute force, the next part, or the next side */
	double		distance;		/* the least one of sides before */
	uint32_t	nearest;		/* the vertex where that side begins */
};

struct work
{
	struct cpu_neighbours_piece *piece;
	const struct cpu_arcs *arcs;
	const struct question *question;
	double		widest;			/* the limit that max_distance gives */

	/* the observation */
	struct geonn_vector from;	/* its place; of a shape of one bundle, the bundle's centre */
	double		from_radius;	/* no place of such a shape is farther from there; INFINITY: the shape has more bundles */
	struct arcs_conditions conditions;
	double		limit;			/* chord; what is farther does not matter */
	float		limit_squared;	/* a little more */

	/* The k shapes with the least upper bounds so far, in the order of these bounds. */
	uint32_t	k;				/* the question's, or fewer if fewer shapes are candidates; 0: all that are within the limit */
	uint32_t	best_count;
	double	   *best;
	uint32_t   *best_shape;

	struct bundle bundle;

	struct found *table;		/* open addressing */
	uint32_t	table_size;		/* a power of two */
	uint32_t	found;			/* how many shapes it has */
	uint32_t	stamp;

	struct progress progress;

	struct maybe *maybe;
	size_t		maybe_seen;		/* how many have been looked at for the answer */
	size_t		maybe_left;		/* how many of these were kept, as the first ones */
	size_t		maybe_count;
	size_t		maybe_capacity;
	struct candidate *chosen;
	size_t		chosen_capacity;
	size_t		chosen_seen;	/* how many of maybe[0 ... maybe_left - 1] have been looked at for chosen */
	size_t		chosen_count;
	struct candidates_merging merging;

	uint64_t	pairs;			/* pairs since the search last asked its caller whether to stop */
	uint64_t	measured;
	uint32_t	leaves;
	uint32_t	steps;			/* after some of them a shape's search asks is_over() */
	bool		short_of_memory;
	bool		over;
};

/* ---- what has been found ---- */

static void
set_limit(struct work *work, double limit)
{
	work->limit = limit;
	work->limit_squared = (float) (limit * limit * (1.0 + 0x1p-18));
}

/* Return the entry of a shape, or the free entry that the shape would take. */
static struct found *
find(const struct work *work, uint32_t shape)
{
	uint32_t	at = shape * UINT32_C(2654435761) >> 7;

	for (;; at++)
	{
		struct found *found = &work->table[at & (work->table_size - 1)];

		if (found->stamp != work->stamp || found->shape == shape)
			return found;
	}
}

/* Return how far, as a chord, an arc of a shape may be: within the limit, and no farther than what was found of the shape. */
static inline double
shape_limit(const struct work *work, uint32_t shape)
{
	const struct found *found = find(work, shape);

	return found->stamp == work->stamp ? fmin(work->limit, found->upper + SHAPE_ARCS_MARGIN) : work->limit;
}

/* Make the table twice as large. */
static bool
grow_table(struct work *work)
{
	struct found *former = work->table;
	uint32_t	former_size = work->table_size;

	work->table_size = former_size > 0 ? 2 * former_size : TABLE_MIN;
	work->table = calloc(work->table_size, sizeof(*work->table));
	if (work->table == NULL)
	{
		work->table = former;
		work->table_size = former_size;
		work->short_of_memory = true;
		return false;
	}
	for (uint32_t i = 0; i < former_size; i++)
		if (former[i].stamp == work->stamp)
			*find(work, former[i].shape) = former[i];
	free(former);
	return true;
}

/* Put a shape among the best k, by its new upper bound. */
static void
rank(struct work *work, uint32_t shape, double former, double upper)
{
	uint32_t	k = work->k;
	uint32_t	at;

	/* Take the shape out of its former place among the best, if it has one. */
	for (at = work->best_count; at > 0 && work->best[at - 1] >= former; at--)
		if (work->best_shape[at - 1] == shape)
		{
			work->best_count--;
			memmove(&work->best[at - 1], &work->best[at], (work->best_count - (at - 1)) * sizeof(*work->best));
			memmove(&work->best_shape[at - 1], &work->best_shape[at],
					(work->best_count - (at - 1)) * sizeof(*work->best_shape));
			break;
		}
	if (work->best_count == k && upper >= work->best[k - 1])
		return;
	if (work->best_count < k)
		work->best_count++;
	for (at = work->best_count - 1; at > 0 && work->best[at - 1] > upper; at--)
	{
		work->best[at] = work->best[at - 1];
		work->best_shape[at] = work->best_shape[at - 1];
	}
	work->best[at] = upper;
	work->best_shape[at] = shape;
	if (work->best_count == k && work->best[k - 1] + SHAPE_ARCS_MARGIN < work->limit)
		set_limit(work, work->best[k - 1] + SHAPE_ARCS_MARGIN);
}

/* Make room for one more entry in `maybe`: drop those that the limits have left behind, or enlarge the room. */
static inline bool
reserve_maybe(struct work *work)
{
	size_t		capacity = work->maybe_capacity > 0 ? 2 * work->maybe_capacity : TABLE_MIN;
	size_t		left = 0;
	struct maybe *larger;

	if (work->maybe_count < work->maybe_capacity)
		return true;
	for (size_t i = 0; i < work->maybe_count; i++)
		if (work->maybe[i].lower <= work->limit &&
			work->maybe[i].lower <= find(work, work->maybe[i].shape)->upper + SHAPE_ARCS_MARGIN)
			work->maybe[left++] = work->maybe[i];
	work->maybe_count = left;
	if (left < work->maybe_capacity / 2)
		return true;
	larger = realloc(work->maybe, capacity * sizeof(*larger));
	work->short_of_memory = work->short_of_memory || larger == NULL;
	if (larger == NULL)
		return false;
	work->maybe = larger;
	work->maybe_capacity = capacity;
	return true;
}

/* Note an arc, or a polygon that holds the observation, with bounds of its chord. */
static inline void
offer(struct work *work, struct maybe maybe, double upper)
{
	struct found *found;

	if (!arcs_is_candidate(&work->conditions, maybe.arc) ||
		arcs_is_beyond_radius(&work->conditions, maybe.arc, maybe.lower - SHAPE_ARCS_MARGIN) ||
		(2 * work->found >= work->table_size && !grow_table(work)))
		return;
	found = find(work, maybe.shape);
	if (found->stamp != work->stamp)
	{
		*found = (struct found) {INFINITY, INFINITY, UINT32_MAX, UINT32_MAX, maybe.shape, work->stamp, SIZE_MAX};
		work->found++;
	}
	else if (maybe.lower > found->upper + SHAPE_ARCS_MARGIN)
		return;
	if (upper < found->upper)
	{
		if (work->k > 0 && arcs_is_within_radius(&work->conditions, maybe.arc, upper + SHAPE_ARCS_MARGIN))
			rank(work, maybe.shape, found->upper, upper);
		found->upper = upper;
	}
	if (found->noted < work->maybe_count && maybe.vertex != NO_VERTEX && work->maybe[found->noted].vertex == maybe.vertex &&
		work->maybe[found->noted].own == maybe.own)
	{
		/* another piece of an arc that is measured once */
		work->maybe[found->noted].lower = fmin(work->maybe[found->noted].lower, maybe.lower);
		return;
	}
	if (!reserve_maybe(work))
		return;
	found->noted = work->maybe_count;
	work->maybe[work->maybe_count++] = maybe;
}

#endif							/* GEONN_CPU_ARCS_FOUND_H */
