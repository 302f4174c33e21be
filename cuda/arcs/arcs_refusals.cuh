/*
 * arcs_refusals.cuh
 *		Which pieces of searches by arcs a GPU does not try.
 *
 * A piece is refused where the GPU answers no more than its first half.  After REFUSALS_MAX refusals in a row the next
 * UNTRIED_AFTER_REFUSALS pieces of the dataset that ask the same kind of question go to the CPU untried, and so do as many
 * after each further refusal, until more of a piece is answered.
 */
#ifndef GEONN_ARCS_REFUSALS_CUH
#define GEONN_ARCS_REFUSALS_CUH

#include <stdbool.h>
#include <stdint.h>

#define REFUSALS_MAX 4
#define UNTRIED_AFTER_REFUSALS 64

struct arcs_refusals
{
	uint32_t	refused;		/* how many pieces in a row the GPU has refused */
	uint32_t	left_untried;	/* how many more pieces go to the CPU before the GPU tries again */
};

/* Return whether the next piece goes to the CPU without a try on the GPU. */
static inline bool
arcs_leaves_untried(const struct arcs_refusals *refusals)
{
	return refusals->left_untried > 0;
}

/* Count down: one piece has gone to the CPU without a try. */
static inline void
arcs_note_untried(struct arcs_refusals *refusals)
{
	refusals->left_untried--;
}

/* Note whether a piece has been refused. */
static inline void
arcs_note_refusal(struct arcs_refusals *refusals, bool refused)
{
	refusals->refused = refused ? refusals->refused + 1 : 0;
	if (refusals->refused >= REFUSALS_MAX)
		refusals->left_untried = UNTRIED_AFTER_REFUSALS;
}

#endif							/* GEONN_ARCS_REFUSALS_CUH */
