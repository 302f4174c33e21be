/*
 * built.c
 *		What the CPU has built of a dataset: the references for brute force,
 *		indexes with sums and extremes of weights, and a table of squares.
 *
 * A dataset of arcs has one index of them (arcs/arcs.c), which brute force uses, too.  Observations that are shapes are
 * a dataset as well, and have probes (arcs/arcs_probe.c).  All that follows is of points.
 *
 * A dataset has one index, unless its references have windows.  Then an index
 * is cut into slabs for windows of some length (index/slabs.c), that of the search
 * for which it is built.  But a dataset may stay for years, and other searches
 * ask for a moment or for a month.  With slabs a thousand times as long
 * as its windows a search goes through all that was ever near an observation,
 * and with slabs as much too short it walks through thousands of them: tens of
 * times slower either way.
 *
 * So a dataset may have INDEXES_MAX of them, for windows of different lengths.
 * A search that no index is for goes by the one that is for the next length;
 * the time that such turns take is added up.  Once that is MISFIT_BUILDS times as long
 * as a build, the search that comes next has an index built for its windows.
 * So the few observations of a rare question build nothing, and the worst that can be
 * wasted is a few times what is built.
 *
 * A table of squares (squares/cells.h) answers searches of one nearest reference two to
 * four times as fast, but takes as long to make as twenty indexes, and some hundred
 * where references form lines.  Most references change before that pays.  So it comes
 * beside the index, bit by bit.  Each bit takes some milliseconds of a search that
 * finds work for many more.  All bits together never take more time than turns by the
 * index have taken before.  So what is wasted, at worst, is as much as was
 * spent without it, and searches that are cancelled lose nothing of it.  Where
 * references have a form in which it leaves most observations to the index, it is no
 * longer used.
 *
 * Counts read sums of weights, thinnings do not, and few counts ask for the extremes of weights.  So sums and extremes come
 * beside the indexes when a search first asks for them; an index that is built later has them from the start.
 *
 * An index and a table do not change, and live as long as the dataset: a search may go on
 * by another one at each turn, but a search for clusters, or one that assigns, stays with its first index.  Builds of one
 * dataset exclude each other (scheduler.c); turns under way go on meanwhile, the next ones wait.
 */
#include "engine/cpu/built.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/base/memory_block.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/arcs/arcs.h"
#include "engine/cpu/arcs/arcs_probe.h"
#include "engine/cpu/assign/assign.h"
#include "engine/cpu/clusters/clusters.h"
#include "engine/search/ways.h"

/* a dataset has at most this many indexes */
#define INDEXES_MAX 3

/* an index suits windows that are at most this many times longer, or shorter, than those for which it was cut */
#define FIT 16

#define MISFIT_BUILDS 2

/* a dataset with more positions gets no table of squares */
#define CELLS_POSITIONS_MAX 1048576

/*
 * cpu_built_wants_cells() wants a table once turns without a table have taken this many microseconds, plus one for each
 * position: about as long as a table of evenly spread positions takes to make.
 */
#define CELLS_FROM_US 20000

/*
 * A search makes a part of the table, in CELLS_BIT_US microseconds, only if it has at least
 * CELLS_ROWS_MIN observations left.
 */
#define CELLS_ROWS_MIN 4096
#define CELLS_BIT_US 5000

/* A table goes out of use once it has left more observations to the index than it has answered, plus this many. */
#define CELLS_LEFT_MAX 65536

/* Return the longer of two lengths, divided by the shorter. */
static double
ratio(uint64_t a, uint64_t b)
{
	double		longer = (double) (a > b ? a : b);
	double		shorter = (double) (a > b ? b : a);

	return (longer + 1) / (shorter + 1);
}

struct cpu_built *
cpu_built_for(struct cpu_built *built, const struct search *search, bool *fits)
{
	struct cpu_built *best = built;
	double		least = INFINITY;

	*fits = true;
	if (search->algorithm != GEONN_ALGORITHM_INDEX || built->index == NULL || built->index->slabs == NULL)
		return built;
	for (struct cpu_built *other = built; other != NULL; other = atomic_load(&other->next))
	{
		const struct cpu_slabs *slabs = other->index->slabs;
		double		times = ratio(slabs->length, cpu_slabs_length(slabs, search));

		if (times < least)
		{
			best = other;
			least = times;
		}
	}
	*fits = least <= FIT;
	return best;
}

bool
cpu_built_wants_index(struct cpu_built *built, const struct search *search)
{
	uint64_t	build_us = atomic_load(&built->build_us);
	int			indexes = 0;
	bool		fits;

	if (build_us == 0 || atomic_load(&built->misfit_us) < MISFIT_BUILDS * build_us)
		return false;
	for (struct cpu_built *other = built; other != NULL; other = atomic_load(&other->next))
		indexes++;
	if (indexes == INDEXES_MAX)
		return false;
	(void) cpu_built_for(built, search, &fits);
	return !fits;
}

static void
free_index(struct cpu_built *built)
{
	cpu_index_free(built->index);
	built->index = NULL;
	for (int i = 0; i < GEONN_WEIGHTS_MAX; i++)
	{
		cpu_sums_free(&built->sums[i]);
		cpu_extremes_free(&built->extremes[i]);
	}
}

/*
 * Build the sums or the extremes of the dataset's weights for the index of `built`, unless it has them: those of all
 * weights, or of none if memory is short.  *bytes grows by the memory that they take.
 */
static bool
build_weights(struct cpu_built *built, const struct search *search, bool extremes, size_t *bytes, struct failure *failure)
{
	size_t		added = 0;

	if (extremes ? built->extremes[0].node != NULL : built->sums[0].before != NULL)
		return true;
	for (int i = 0; i < GEONN_WEIGHTS_MAX && search->dataset->weight[i] != NULL; i++)
	{
		if (extremes ? !cpu_extremes_build(&built->extremes[i], search, built->index, i, failure) :
			!cpu_sums_build(&built->sums[i], search, built->index, i, failure))
		{
			while (i-- > 0)
			{
				if (extremes)
					cpu_extremes_free(&built->extremes[i]);
				else
					cpu_sums_free(&built->sums[i]);
			}
			return false;
		}
		added += extremes ? built->extremes[i].bytes : built->sums[i].bytes;
	}
	*bytes += added;
	return true;
}

/*
 * Build the index of `built`, and for it the sums and the extremes of the dataset's weights if the indexes of `first` have
 * them.  Note in `first` how long that took.
 */
static bool
build_index(struct cpu_built *built, struct cpu_built *first, const struct search *search, struct failure *failure)
{
	int64_t		began_us = now_us();
	size_t		bytes;

	built->index = cpu_index_build(search, failure);
	if (built->index == NULL)
		return false;
	bytes = cpu_index_bytes(built->index);
	if ((atomic_load(&first->has_sums) && !build_weights(built, search, false, &bytes, failure)) ||
		(atomic_load(&first->has_extremes) && !build_weights(built, search, true, &bytes, failure)))
	{
		free_index(built);
		return false;
	}
	atomic_store(&first->build_us, (uint64_t) (now_us() - began_us) + 1);
	atomic_fetch_add(&search->dataset->built_bytes, bytes);
	return true;
}

bool
cpu_built_add_index(struct cpu_built *built, const struct search *search, struct failure *failure)
{
	struct failure ignored = {0};
	struct cpu_built *last = built;
	struct cpu_built *more;

	if (built->index == NULL)
		return build_index(built, built, search, failure);
	atomic_store(&built->misfit_us, 0);
	more = calloc(1, sizeof(*more));
	if (more == NULL)
		return true;
	if (!build_index(more, built, search, &ignored))
	{
		free(more);
		return true;
	}
	while (atomic_load(&last->next) != NULL)
		last = atomic_load(&last->next);
	atomic_store(&last->next, more);
	return true;
}

bool
cpu_built_wants_weights(const struct cpu_built *built, const struct search *search)
{
	return search->question.radii > 0 && search->dataset->weight[0] != NULL &&
		(!atomic_load(&built->has_sums) || (search->question.extremes && !atomic_load(&built->has_extremes)));
}

bool
cpu_built_add_weights(struct cpu_built *built, const struct search *search, struct failure *failure)
{
	bool		extremes = search->question.extremes;
	size_t		bytes = 0;
	bool		all = true;

	for (struct cpu_built *other = built; other != NULL && all; other = atomic_load(&other->next))
		all = build_weights(other, search, false, &bytes, failure) &&
			(!extremes || build_weights(other, search, true, &bytes, failure));
	atomic_fetch_add(&search->dataset->built_bytes, bytes);
	if (all)
		atomic_store(&built->has_sums, true);
	if (all && extremes)
		atomic_store(&built->has_extremes, true);
	return all;
}

/* Return whether a table of squares could answer a search. */
static bool
is_for_cells(const struct search *search)
{
	return search->algorithm == GEONN_ALGORITHM_INDEX && way_of(search, GEONN_KIND_CPU) == WAY_CPU_SQUARES;
}

const struct cpu_cells *
cpu_built_cells(const struct cpu_built *built, const struct search *search)
{
	if (!is_for_cells(search) || search->device_state != 0 ||
		2 * atomic_load(&built->cells_left) > CELLS_LEFT_MAX + atomic_load(&built->cells_rows))
		return NULL;
	return atomic_load(&built->cells);
}

void
cpu_built_note_turn(struct cpu_built *built, const struct search *search, int64_t took_us)
{
	if (is_for_cells(search) && took_us > 0)
		atomic_fetch_add(&built->without_cells_us, (uint64_t) took_us);
}

bool
cpu_built_wants_cells(struct cpu_built *built, const struct search *search)
{
	uint64_t	without_us = atomic_load(&built->without_cells_us);

	if (!is_for_cells(search) || built->index == NULL || atomic_load(&built->cells) != NULL ||
		built->index->shape.positions > CELLS_POSITIONS_MAX ||
		search->rows - search->first - search->answered < CELLS_ROWS_MIN)
		return false;
	return without_us >= CELLS_FROM_US + built->index->shape.positions &&
		without_us >= atomic_load(&built->cells_from_us);
}

/*
 * Begin a table of squares, if the memory for tables suffices.  Until it is complete, the table counts with the greatest
 * size that it may have.  Tables count as memory of kept datasets, even if their dataset is not kept.
 */
static void
begin_cells(struct cpu_built *built, struct dataset *dataset)
{
	size_t		bytes = cpu_cells_bytes(built->index->shape.positions);

	if (!dataset_take_squares(dataset, bytes))
		return;
	built->cells_building = cpu_cells_begin(dataset, built->index);
	if (built->cells_building == NULL)
		dataset_give_squares(dataset, bytes);
}

/* Put a complete table to use, or free it if it would not help. */
static void
finish_cells(struct cpu_built *built, struct dataset *dataset)
{
	struct cpu_cells *cells = cpu_cells_finish(built->cells_building);
	bool		helps = cpu_cells_help(cells);

	built->cells_building = NULL;
	dataset_give_squares(dataset, cells->bytes - (helps ? cells->used : 0));
	if (helps)
		atomic_store(&built->cells, cells);
	else
		cpu_cells_free(cells);
}

void
cpu_built_add_cells(struct cpu_built *built, const struct search *search)
{
	int64_t		began_us = now_us();
	uint64_t	from_us = UINT64_MAX;	/* once a table is complete, no further one is made, even if it does not help */

	if (built->cells_building == NULL)
		begin_cells(built, search->dataset);
	if (built->cells_building == NULL)
		from_us = 2 * atomic_load(&built->without_cells_us);
	else if (cpu_cells_go_on(built->cells_building, began_us + CELLS_BIT_US))
		finish_cells(built, search->dataset);
	else
		from_us = atomic_load(&built->cells_from_us) +
			(uint64_t) (now_us() - began_us) * thread_pool_threads();
	atomic_store(&built->cells_from_us, from_us);
}

void
cpu_built_free(struct cpu_built *built)
{
	while (built != NULL)
	{
		struct cpu_built *next = atomic_load(&built->next);

		cpu_cells_abandon(built->cells_building);
		cpu_cells_free(atomic_load(&built->cells));
		free_index(built);
		cpu_arcs_free(built->arcs);
		cpu_probes_free(built->probes);
		cpu_clusters_free(built->clusters);
		cpu_assign_free(built->assign);
		memory_block_release(built->references.x, built->references_bytes);
		free(built);
		built = next;
	}
}
