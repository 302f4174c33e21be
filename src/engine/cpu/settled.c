/*
 * settled.c
 *		Makes pairs of observations whose k references are known.
 *
 * Their float32 chords have put the references nearly into order, so that few rows need the sort.  Where chords do
 * not give distances, the references' degrees come into the cache while geodesics of others are computed.
 */
#include "engine/cpu/settled.h"

#include <stdlib.h>

#include "common/metric.h"
#include "engine/cpu/lanes.h"

bool
CPU_PATH_NAME(cpu_settled_reserve) (struct cpu_neighbours_piece *piece, size_t count)
{
	size_t		capacity = 2 * (piece->pairs + count);
	struct candidate *larger;

	if (piece->pairs + count <= piece->capacity)
		return true;
	larger = realloc(piece->pair, capacity * sizeof(*larger));
	if (larger == NULL)
		return false;
	piece->pair = larger;
	piece->capacity = capacity;
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
	const uint32_t *place = settled->place;

	for (uint32_t i = 0; i < settled->count * k; i++)
	{
		__builtin_prefetch(&dataset->latitude[place[i]]);
		__builtin_prefetch(&dataset->longitude[place[i]]);
	}
	for (uint32_t i = 0; i < settled->count * k; i++)
	{
		const struct cpu_observation *from = &piece->observation[settled->row[i / k]];

		settled->chord[i] = geonn_metric_distance(dataset->metric, from->latitude, from->longitude,
												  dataset->latitude[place[i]], dataset->longitude[place[i]]);
	}
}

void
CPU_PATH_NAME(cpu_settled_end) (struct cpu_settled *settled, struct cpu_neighbours_piece *piece)
{
	const struct cpu_index *index = piece->index;
	const struct dataset *dataset = piece->search->dataset;
	const struct question *question = &piece->search->question;
	uint32_t	k = question->k;
	uint32_t	pairs = settled->count * k;
	uint32_t   *place = settled->place;
	double	   *distance = settled->chord;

	if (pairs == 0)
		return;
	if (!CPU_PATH_NAME(cpu_settled_reserve) (piece, pairs))
	{
		piece->short_of_memory = true;
		return;
	}
	for (uint32_t i = 0; i < pairs; i++)
		place[i] = index->place[place[i]];
	if (geonn_metric_chord_decides(dataset->metric))
		geonn_metric_near_distances(dataset->metric, distance, (pairs + LANES - 1) / LANES * LANES);
	else
		measure(settled, piece);
	for (uint32_t i = 0; i < settled->count; i++, place += k, distance += k)
	{
		struct candidate *pair = piece->pair + piece->pairs;
		uint32_t	count = k;
		bool		rising = true;

		for (uint32_t j = 0; j < k; j++)
			pair[j] = (struct candidate) {distance[j], place[j]};
		for (uint32_t j = 1; j < k; j++)
			rising &= distance[j - 1] < distance[j];
		if (!rising)
			candidates_sort(pair, k);
		while (count > 0 && pair[count - 1].distance > question->max_distance)
			count--;
		piece->pairs += count;
		piece->counts[settled->row[i]] = count;
	}
	settled->count = 0;
}

bool
CPU_PATH_NAME(cpu_settled_keep) (struct cpu_settled *settled, struct cpu_neighbours_piece *piece,
								 const struct cpu_collector *collector, uint32_t row)
{
	const struct cpu_index *index = piece->index;
	const struct question *question = &piece->search->question;
	uint32_t	k = question->k;
	uint32_t	references = 0;
	uint32_t   *place;
	double	   *chord;

	/* an observation's own radius and a cutoff are the collector's business */
	if (collector->count != k || collector->cutoff.present ||
		collector->max_distance < question->max_distance || cpu_collector_stopped(collector))
		return false;
	if ((settled->count + 1) * k > CPU_SETTLED_PAIRS)
		CPU_PATH_NAME(cpu_settled_end) (settled, piece);
	if (piece->short_of_memory)
		return false;
	place = settled->place + settled->count * k;
	chord = settled->chord + settled->count * k;
	for (uint32_t i = 0; i < k; i++)
	{
		uint32_t	at = collector->points[i].place;
		struct geonn_vector there = {index->x[at], index->y[at], index->z[at]};

		references += index->start[at + 1] - index->start[at];
		place[i] = index->start[at];
		__builtin_prefetch(&index->place[place[i]]);
		chord[i] = geonn_chord_squared(collector->from, there);
	}
	if (references != k)
		return false;
	settled->row[settled->count++] = row;
	piece->answered++;
	return true;
}
