/*
 * turn.h
 *		A turn of a search on the CPU: some 50 ms of all threads' work.
 */
#ifndef GEONN_CPU_TURN_H
#define GEONN_CPU_TURN_H

#include "engine/cpu/brute.h"
#include "engine/cpu/index.h"
#include "engine/search/device.h"

/* what a turn should take; and when it begins no observation any more, after
 * what it needed to begin */
#define CPU_TURN_MS 50
#define CPU_TURN_LIMIT_MS 200

/* what the CPU made of a dataset; each part when a search first needs it */
struct cpu_built
{
	struct cpu_index *index;
	struct cpu_references references;	/* x is NULL: not there */
	size_t		references_bytes;

	/* observations that cpu_turn_pairs() answered last time, and that
	 * cpu_turn_nearest() should take by index and by brute force; 0: not known */
	uint32_t	paired;
	uint32_t	index_pace;
	uint32_t	brute_pace;
};

/* room for the turns of nearest references, kept from one to the next */
struct cpu_turn_room
{
	void	   *memory;
	size_t		bytes;
	uint32_t	rows;			/* observations that it is for */
};

/*
 * Whether a search is cpu_turn_nearest's: one nearest reference by the metric
 * sphere, and every reference is a candidate.  All others are cpu_turn_pairs',
 * and so is what begins with a cutoff, which cpu_turn_nearest() doesn't know.
 */
extern bool cpu_turn_is_nearest(const struct search *search);

/*
 * Go on with a search: answer some of its observations.  Returns whether there may
 * be another turn; where there is none, the search has ended, or failed, or is
 * found cancelled.
 */
extern bool cpu_turn_nearest(struct search *search, struct cpu_built *built,
							 struct cpu_turn_room *room);
extern bool cpu_turn_pairs(struct search *search, struct cpu_built *built);

/*
 * The next observations of a search have been answered.  Their counts are
 * written unless each, and each before them, has one pair (counts NULL).
 */
extern void cpu_turn_account(struct search *search, uint32_t rows, const uint32_t *counts,
							 uint32_t pairs);

/* The search fails: some coordinates are no point. */
extern void cpu_turn_out_of_range(struct search *search);

#endif							/* GEONN_CPU_TURN_H */
