/*
 * settled.h
 *		Observations whose k references are known, though not yet their order.
 *
 * Their distances are computed together: those of one observation would leave vector lanes empty.
 * Searches by radius, and observations with more candidates than pairs, go through the collector.
 */
#ifndef GEONN_CPU_SETTLED_H
#define GEONN_CPU_SETTLED_H

#include "engine/cpu/walk/neighbours.h"

/* a search whose observations go together asks for fewer pairs of one observation */
#define CPU_SETTLED_PAIRS 1024

struct cpu_settled
{
	uint32_t	count;			/* how many observations are settled; each has k pairs below */
	uint32_t	row[CPU_SETTLED_PAIRS];	/* or task */
	uint32_t	reference[CPU_SETTLED_PAIRS];	/* the references, by their numbers in the index's order */
	double		chord[CPU_SETTLED_PAIRS];	/* squared; cpu_settled_end() turns them into distances */
};

/*
 * Settle an observation, if the collector's points are k and have one reference each.  The caller knows that no
 * other reference is as near, and that all squared chords are below GEONN_NEAR_CHORD.  False: the collector
 * has to answer.
 */
extern bool CPU_PATH_NAME(cpu_settled_keep) (struct cpu_settled *settled, struct cpu_neighbours_piece *piece,
											 const struct cpu_collector *collector, uint32_t row);

/* Keep the pairs of the settled observations in the piece, which says if memory is short. */
extern void CPU_PATH_NAME(cpu_settled_end) (struct cpu_settled *settled, struct cpu_neighbours_piece *piece);

/*
 * Keep the pairs of the row or task that is answered next, and their number, in the piece.  False if memory is short, which
 * the piece then says.
 */
extern bool CPU_PATH_NAME(cpu_settled_pairs) (struct cpu_neighbours_piece *piece, uint32_t row,
											  const struct candidate *pairs, uint32_t count);

#endif							/* GEONN_CPU_SETTLED_H */
