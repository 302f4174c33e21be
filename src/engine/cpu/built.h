/*
 * built.h
 *		What the CPU has built of a dataset.
 */
#ifndef GEONN_CPU_BUILT_H
#define GEONN_CPU_BUILT_H

#include "engine/cpu/cells.h"
#include "engine/cpu/collector.h"
#include "engine/cpu/index.h"
#include "engine/search/device.h"

/* what the CPU has built of a dataset; each part is built when a search first needs it */
struct cpu_built
{
	struct cpu_index *index;
	struct cpu_references references;	/* x is NULL: not built */
	size_t		references_bytes;

	/* observations that cpu_turn_pairs() answered in its last turn, and that
	 * cpu_turn_nearest() should take in its next one; 0: not known.  Turns side by
	 * side change them. */
	atomic_uint paired;
	atomic_uint pace;

	/* a table of squares beside the index, or NULL, and while it is being made what there is of it */
	struct cpu_cells *_Atomic cells;
	struct cpu_cells_building *cells_building;

	/* how long turns by the index have taken that could have gone by a table, and how long they must
	 * have taken before the next bit of it is made: as long as all bits before */
	atomic_uint_fast64_t without_cells_us;
	atomic_uint_fast64_t cells_from_us;

	/* observations that turns took by the table, and how many of these it left to the index */
	atomic_uint_fast64_t cells_rows;
	atomic_uint_fast64_t cells_left;

	/* more indexes, for windows of other lengths (built.c): each has an index alone */
	struct cpu_built *_Atomic next;

	/* of the first one: how long an index takes to build, and how long turns have taken so far whose
	 * windows no index is for */
	atomic_uint_fast64_t build_us;
	atomic_uint_fast64_t misfit_us;
};

/*
 * What answers a search by index best, of what was built of its dataset.  fits: whether that is for windows
 * like the search's.
 */
extern struct cpu_built *cpu_built_for(struct cpu_built *built, const struct search *search, bool *fits);

/* Whether one more index should be built, for windows like the search's, before its next turn. */
extern bool cpu_built_wants_index(struct cpu_built *built, const struct search *search);

/*
 * Build an index for a search: the first one, or one that it wants.  Where memory is short for one that it
 * wants, none is built.  False with the failure otherwise.
 */
extern bool cpu_built_add_index(struct cpu_built *built, const struct search *search,
								struct failure *failure);

/*
 * The table of squares that answers a search's next turn, or NULL: the dataset has none, the search is not
 * for it or goes on with what it left to the index, or it leaves most observations to the index.
 */
extern const struct cpu_cells *cpu_built_cells(const struct cpu_built *built, const struct search *search);

/* Whether some more of a table of squares should be made before the search's next turn. */
extern bool cpu_built_wants_cells(struct cpu_built *built, const struct search *search);

/* Make some more of it. */
extern void cpu_built_add_cells(struct cpu_built *built, const struct search *search);

/* Note how long a search's turn has taken that had no table, or has gone on where it had left off. */
extern void cpu_built_note_turn(struct cpu_built *built, const struct search *search, int64_t took_us);

/* Free all that was built. */
extern void cpu_built_free(struct cpu_built *built);

#endif							/* GEONN_CPU_BUILT_H */
