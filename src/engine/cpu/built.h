/*
 * built.h
 *		What the CPU has built of a dataset.
 */
#ifndef GEONN_CPU_BUILT_H
#define GEONN_CPU_BUILT_H

#include "engine/cpu/squares/cells.h"
#include "engine/cpu/walk/collector.h"
#include "engine/cpu/index/extremes.h"
#include "engine/cpu/index/index.h"
#include "engine/cpu/index/sums.h"
#include "engine/search/device.h"

struct cpu_arcs;
struct cpu_assign;
struct cpu_clusters;
struct cpu_probes;

/* the CPU's number among devices (device.h) */
#define CPU_NUMBER 0

/* What the CPU has built of a dataset.  The CPU builds each part when a search first needs it. */
struct cpu_built
{
	struct cpu_index *index;
	struct cpu_arcs *arcs;		/* the index of a dataset of arcs, which has no other part */
	struct cpu_probes *probes;	/* of arcs that are observations, which have no other part */
	struct cpu_clusters *clusters;	/* of references that are observations, which have no other part */
	struct cpu_assign *assign;	/* of observations that are assigned, which have no other part */
	struct cpu_references references;	/* the references for brute force; not built while x is NULL */
	size_t		references_bytes;
	struct cpu_sums sums[GEONN_WEIGHTS_MAX];	/* sums of each of the dataset's weights; all 0: not built */
	struct cpu_extremes extremes[GEONN_WEIGHTS_MAX];	/* extremes of each weight; all 0: not built */

	atomic_uint_fast64_t brute_us;	/* how long turns by brute force took */

	/*
	 * how many observations the next turn should take: of nearest.c, of other pairs, and of counts; 0: not
	 * known.  Several turns may change these at the same time.
	 */
	atomic_uint nearest_rows;
	atomic_uint paired_rows;
	atomic_uint counted;

	/* the table of squares beside the index, or NULL; and the incomplete table while the CPU makes it */
	struct cpu_cells *_Atomic cells;
	struct cpu_cells_building *cells_building;

	/*
	 * how long turns by the index took where a table could have answered; and from which time on
	 * the CPU makes a next part of that table: the time that its earlier parts took
	 */
	atomic_uint_fast64_t without_cells_us;
	atomic_uint_fast64_t cells_from_us;

	/* how many observations turns have looked up in the table; and how many of these the table left to the index */
	atomic_uint_fast64_t cells_rows;
	atomic_uint_fast64_t cells_left;

	/*
	 * the next index, for windows of another length (built.c); `references` and tables are in the
	 * list's first struct alone
	 */
	struct cpu_built *_Atomic next;

	/*
	 * in the list's first struct alone: whether all indexes have their sums, and their extremes; how long the last build
	 * of an index took; and how long turns took since then whose windows suit no index
	 */
	atomic_bool has_sums;
	atomic_bool has_extremes;
	atomic_uint_fast64_t build_us;
	atomic_uint_fast64_t misfit_us;
};

/*
 * Return the index of a dataset that suits a search's windows best.  *fits: whether the index was
 * cut for windows about as long as the search's.
 */
extern struct cpu_built *cpu_built_for(struct cpu_built *built, const struct search *search, bool *fits);

/* Return whether to build one more index before the search's next turn, for windows about as long as the search's. */
extern bool cpu_built_wants_index(struct cpu_built *built, const struct search *search);

/*
 * Build an index for a search.  Returns false with the failure if the dataset's first index cannot
 * be built; a further one is left out if memory is short.
 */
extern bool cpu_built_add_index(struct cpu_built *built, const struct search *search,
								struct failure *failure);

/* Return whether to build sums or extremes of the dataset's weights before the search's next turn. */
extern bool cpu_built_wants_weights(const struct cpu_built *built, const struct search *search);

/*
 * Build what a search reads of the dataset's weights, for all indexes: sums, and extremes if the question asks for them.
 * Returns false with the failure if memory is short, or if the search is cancelled; what is complete by then stays.
 */
extern bool cpu_built_add_weights(struct cpu_built *built, const struct search *search, struct failure *failure);

/*
 * Return the table of squares that answers a search's next turn.  NULL: the dataset has no table,
 * the search asks another question, the index still has to answer observations that the table left,
 * or the table leaves most observations to the index.
 */
extern const struct cpu_cells *cpu_built_cells(const struct cpu_built *built, const struct search *search);

/* Return whether to make some more of a table of squares before the search's next turn. */
extern bool cpu_built_wants_cells(struct cpu_built *built, const struct search *search);

/* Make some more of the table of squares. */
extern void cpu_built_add_cells(struct cpu_built *built, const struct search *search);

/* Note how long a search's turn by the index has taken that a table could have answered. */
extern void cpu_built_note_turn(struct cpu_built *built, const struct search *search, int64_t took_us);

/* Free all that was built. */
extern void cpu_built_free(struct cpu_built *built);

#endif							/* GEONN_CPU_BUILT_H */
