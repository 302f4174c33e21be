/*
 * settled.c
 *		Makes pairs of observations whose k references are known.
 *
 * Their float32 chords have put the references nearly into order, so that few rows need the sort.  Where chords do
 * not give distances, the references' degrees come into the cache while geodesics of others are computed.
 */
#include "engine/cpu/walk/settled.h"

#include <stdlib.h>
#include <string.h>

#include "common/metric.h"
#include "engine/cpu/base/lanes.h"

/* how many values of a column a line of the cache has */
#define LINE_VALUES 8

/*
 * Make room for so many more pairs of the piece.  False if memory is short.
 */
static bool
reserve(struct cpu_neighbours_piece *piece, size_t count)
{
	size_t		capacity = 2 * (piece->pairs + count);
	struct candidate *larger;

	if (piece->pairs + count <= piece->capacity)
		return true;
	larger = realloc(piece->pair, capacity * sizeof(*larger));
	if (larger == NULL)
	{
		piece->short_of_memory = true;
		return false;
	}
	piece->pair = larger;
	piece->capacity = capacity;
	return true;
}

bool
CPU_PATH_NAME(cpu_settled_pairs) (struct cpu_neighbours_piece *piece, uint32_t row, const struct candidate *pairs,
								  uint32_t count)
{
	size_t		first = (size_t) row * piece->search->question.k;

	if (piece->best != NULL)
	{
		if (count > 0)
			memcpy(piece->best + first, pairs, count * sizeof(*pairs));
		if (count < piece->search->question.k)
			piece->best[first + count].distance = INFINITY;
		return true;
	}
	if (piece->tag != NULL)
	{
		const int64_t *tag = piece->search->dataset->tag;

		for (uint32_t i = 0; i < count; i++)
		{
			piece->tag[first + i] = tag[pairs[i].place];
			piece->distance[first + i] = pairs[i].distance;
		}
	}
	else
	{
		if (!reserve(piece, count))
			return false;
		if (count > 0)
			memcpy(piece->pair + piece->pairs, pairs, count * sizeof(*pairs));
		piece->pairs += count;
	}
	piece->counts[row] = count;
	return true;
}

/*
 * Compute the distances of the settled observations' references where chords do not give them.
 */
static void
measure(struct cpu_settled *settled, const struct cpu_neighbours_piece *piece)
{
	const struct dataset *dataset = piece->search->dataset;
	uint32_t	k = piece->search->question.k;
	uint32_t	pairs = settled->count * k;
	uint32_t	place[CPU_SETTLED_PAIRS];

	for (uint32_t i = 0; i < pairs; i++)
	{
		place[i] = piece->index->place[settled->reference[i]];
		__builtin_prefetch(&dataset->latitude[place[i]]);
		__builtin_prefetch(&dataset->longitude[place[i]]);
	}
	for (uint32_t i = 0; i < pairs; i++)
	{
		const struct cpu_observation *from = &piece->observation[cpu_neighbours_row(piece, settled->row[i / k])];

		settled->chord[i] = geonn_metric_distance(dataset->metric, from->latitude, from->longitude,
												  dataset->latitude[place[i]], dataset->longitude[place[i]]);
	}
}

/*
 * Keep the pairs of an observation whose distances are in order, except where two are equal or rounding decides.
 */
static bool
keep(struct cpu_neighbours_piece *piece, uint32_t row, const uint32_t *reference, const double *distance)
{
	const struct cpu_index *index = piece->index;
	const struct question *question = &piece->search->question;
	uint32_t	k = question->k;
	struct candidate pair[CPU_SETTLED_PAIRS];
	uint32_t	count = k;
	bool		rising = true;

	for (uint32_t i = 1; i < k; i++)
		rising &= distance[i - 1] < distance[i];
	if (rising && distance[k - 1] <= question->max_distance && piece->tag != NULL && piece->best == NULL)
	{
		size_t		first = (size_t) row * k;

		for (uint32_t i = 0; i < k; i++)
			piece->tag[first + i] = index->tag[reference[i]];
		memcpy(piece->distance + first, distance, k * sizeof(*distance));
		piece->counts[row] = k;
		return true;
	}
	for (uint32_t i = 0; i < k; i++)
		pair[i] = (struct candidate) {distance[i], index->place[reference[i]], 0};
	if (!rising)
		candidates_sort(pair, k);
	while (count > 0 && pair[count - 1].distance > question->max_distance)
		count--;
	return CPU_PATH_NAME(cpu_settled_pairs) (piece, row, pair, count);
}

void
CPU_PATH_NAME(cpu_settled_end) (struct cpu_settled *settled, struct cpu_neighbours_piece *piece)
{
	const struct dataset *dataset = piece->search->dataset;
	uint32_t	k = piece->search->question.k;
	uint32_t	pairs = settled->count * k;

	if (pairs == 0)
		return;
	if (geonn_metric_chord_decides(dataset->metric))
		geonn_metric_near_distances(dataset->metric, settled->chord, (pairs + LANES - 1) / LANES * LANES);
	else
		measure(settled, piece);
	for (uint32_t i = 0; i < settled->count; i++)
		if (!keep(piece, settled->row[i], settled->reference + i * k, settled->chord + i * k))
			break;
	settled->count = 0;
}

/* Fetch into the cache where the pairs of a row go: k values of each column, which may begin anywhere in a line. */
static void
prefetch_pairs(const struct cpu_neighbours_piece *piece, uint32_t row, uint32_t k)
{
	size_t		first = (size_t) row * k;
	size_t		last = first + k - 1;

	for (size_t i = first; i < last; i += LINE_VALUES)
	{
		__builtin_prefetch(&piece->tag[i], 1);
		__builtin_prefetch(&piece->distance[i], 1);
	}
	__builtin_prefetch(&piece->tag[last], 1);
	__builtin_prefetch(&piece->distance[last], 1);
}

bool
CPU_PATH_NAME(cpu_settled_keep) (struct cpu_settled *settled, struct cpu_neighbours_piece *piece,
								 const struct cpu_collector *collector, uint32_t row)
{
	const struct cpu_index *index = piece->index;
	const struct question *question = &piece->search->question;
	uint32_t	k = question->k;
	uint32_t	references = 0;
	uint32_t   *reference;
	double	   *chord;

	/* an observation's own radius and a cutoff are the collector's business */
	if (collector->count != k || collector->cutoff.present ||
		collector->max_distance < question->max_distance || cpu_collector_stopped(collector))
		return false;
	if ((settled->count + 1) * k > CPU_SETTLED_PAIRS)
		CPU_PATH_NAME(cpu_settled_end) (settled, piece);
	if (piece->short_of_memory)
		return false;
	reference = settled->reference + settled->count * k;
	chord = settled->chord + settled->count * k;
	for (uint32_t i = 0; i < k; i++)
	{
		uint32_t	at = collector->points[i].place;
		struct geonn_vector there = {index->x[at], index->y[at], index->z[at]};

		references += index->start[at + 1] - index->start[at];
		reference[i] = index->start[at];
		chord[i] = geonn_chord_squared(collector->from, there);
	}
	if (references != k)
		return false;
	if (piece->tag != NULL && piece->best == NULL)
		prefetch_pairs(piece, row, k);
	settled->row[settled->count++] = row;
	piece->answered++;
	return true;
}
