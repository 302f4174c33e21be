/*
 * arcs_count.c
 *		Counts the shapes of many observations within radii, adds up their weights, and finds the least and the greatest
 *		of them.
 *
 * The search for all shapes within the largest radius (cpu/arcs/arcs_search.c) finds each shape once, with its distance, which
 * says within which radii the shape is.  These pairs are kept for so many observations as have about PAIRS_KEPT of them;
 * then they are counted, and the search goes on.  A pair is added for the least radius that holds it, and a radius has in
 * the end what the next smaller one has, too.
 */
#include "engine/cpu/arcs/arcs.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/cpu/counts/counted.h"

#define PAIRS_KEPT 65536

/* After this many pairs of an observation, which may have millions, look at `cancelled`. */
#define PAIRS_UNTIL_LOOK 4096

struct counting
{
	const struct cpu_count_piece *piece;
	uint64_t	pairs;			/* how many pairs are kept */
};

static bool
is_over(void *context, uint64_t pairs)
{
	struct counting *counting = context;

	counting->pairs += pairs;
	return counting->pairs >= PAIRS_KEPT || now_ms() >= counting->piece->end_ms;
}

static bool
is_cancelled(const struct cpu_count_piece *piece)
{
	return atomic_load_explicit(piece->search->cancelled, memory_order_relaxed);
}

/* Add a shape, by the place of one of its arcs, to the counts of a radius. */
static void
add(const struct cpu_count_piece *piece, struct cpu_counted *counted, uint32_t place)
{
	counted->references++;
	for (uint32_t i = 0; i < piece->weights; i++)
	{
		double		weight = piece->search->dataset->weight[i][place];

		/* fmin() and fmax() pass over NAN */
		exact_sum_add(piece->sums[i].form, counted->sum[i].word, weight, false);
		counted->range[i].least = fmin(counted->range[i].least, weight);
		counted->range[i].greatest = fmax(counted->range[i].greatest, weight);
	}
}

/* Add the counts of a smaller radius to the counts of the shapes between it and the next radius. */
static void
add_smaller(const struct cpu_count_piece *piece, struct cpu_counted *counted, const struct cpu_counted *smaller)
{
	counted->references += smaller->references;
	for (uint32_t i = 0; i < piece->weights; i++)
	{
		exact_sum_plus(piece->sums[i].form, counted->sum[i].word, smaller->sum[i].word);
		counted->range[i].least = fmin(counted->range[i].least, smaller->range[i].least);
		counted->range[i].greatest = fmax(counted->range[i].greatest, smaller->range[i].greatest);
	}
}

/*
 * Count the pairs of the observations that are answered, unless the search is cancelled.  The pairs of an
 * observation come with rising distances.
 */
static void
count_pairs(const struct cpu_count_piece *piece, const struct cpu_neighbours_piece *found)
{
	const struct search_radii *radii = piece->radii;
	const struct candidate *pair = found->pair;

	for (uint32_t i = 0; i < found->answered; i++)
	{
		uint32_t	row = found->row[i];
		struct cpu_counted counted[GEONN_RADII_MAX];

		cpu_counted_begin(piece, counted);
		for (uint32_t j = 0, radius = 0; j < piece->counts[row]; j++, pair++)
		{
			if (j % PAIRS_UNTIL_LOOK == 0 && is_cancelled(piece))
				return;
			while (radius < radii->count && pair->distance > radii->radius[radius])
				radius++;
			if (radius < radii->count)
				add(piece, &counted[radius], pair->place);
		}
		for (uint32_t radius = 1; radius < radii->count; radius++)
			add_smaller(piece, &counted[radius], &counted[radius - 1]);
		cpu_counted_end(piece, row, counted);
	}
}

void
cpu_arcs_count(struct cpu_count_piece *piece)
{
	struct counting counting = {piece, 0};
	struct cpu_neighbours_piece found = {
		.search = piece->search,
		.arcs = piece->arcs,
		.probes = piece->probes,
		.by_index = true,
		.observation = piece->observation,
		.first = piece->first,
		.pairs_max = UINT32_MAX,
		.is_over = is_over,
		.turn = &counting,
		.count = piece->count,
		.row = piece->row,
		.counts = piece->counts
	};

	do
	{
		cpu_path->arcs_search(&found);
		count_pairs(piece, &found);
		found.row += found.answered;
		found.count -= found.answered;
		found.answered = 0;
		found.pairs = 0;
		counting.pairs = 0;
	} while (found.count > 0 && !found.short_of_memory && now_ms() < piece->end_ms && !is_cancelled(piece));
	free(found.pair);
	piece->short_of_memory = found.short_of_memory;
}
