/*
 * turn.c
 *		What all turns of a search on the CPU share.
 */
#include "engine/cpu/turn.h"

#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/memory_block.h"
#include "engine/cpu/arcs/arcs_probe.h"
#include "engine/cpu/walk/nearest.h"

bool
cpu_turn_is_nearest(const struct search *search, const struct cpu_built *built)
{
	const struct dataset *dataset = search->dataset;

	if (search->algorithm != GEONN_ALGORITHM_INDEX || !search_is_nearest(search) ||
		search->cutoff.present || built->arcs != NULL)
		return false;

	/* A key needs a number for each part; the parts are at most dataset->count. */
	return dataset->columns == 0 ||
		((dataset->columns & GEONN_COLUMN_EXCLUDED) == 0 && !built->index->limited &&
		 dataset->count < CPU_NEAREST_PARTS_MAX);
}

/* A shape of so many sides may take longer than a turn, and so it has turns for itself. */
#define SIDES_ALONE 65536

static int64_t turn_ms = CPU_TURN_MS;

void
cpu_turn_set_ms(int64_t ms)
{
	turn_ms = ms;
}

int64_t
cpu_turn_end(const struct search *search, uint32_t rows)
{
	return now_ms() + (search->shapes != NULL && rows == 1 ? turn_ms : CPU_TURN_LIMIT * turn_ms);
}

bool
cpu_turn_has_left(const struct search *search, uint32_t observation)
{
	const struct cpu_probes *probes = cpu_turn_probes(search);

	return probes != NULL && probes->left.work != NULL && probes->left.shape == observation;
}

uint32_t
cpu_turn_rows(const struct search *search, uint32_t first, uint32_t rows)
{
	const struct cpu_probes *probes = cpu_turn_probes(search);

	if (probes == NULL)
		return rows;
	if (cpu_turn_has_left(search, first))
		return 1;
	for (uint32_t i = 0; i < rows; i++)
		if (probes->first_side[first + i + 1] - probes->first_side[first + i] >= SIDES_ALONE)
			return i > 0 ? i : 1;
	return rows;
}

bool
cpu_turn_by_columns(const struct search *search)
{
	return search->question.algorithm == GEONN_ALGORITHM_AUTO && search->dataset->count <= CPU_COLUMNS_MAX;
}

bool
cpu_turn_read_points(const struct search *search, uint32_t first, const uint32_t *row, uint32_t count,
					 double (*degrees)[CPU_VECTORS_BLOCK], double *x, double *y, double *z)
{
	const struct cpu_probes *probes = cpu_turn_probes(search);
	const volatile double *all_latitudes = probes != NULL ? search->shapes->latitude : search->columns.latitude;
	const volatile double *all_longitudes = probes != NULL ? search->shapes->longitude : search->columns.longitude;

	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	number = first + (row != NULL ? row[i] : i);
		uint32_t	at = probes != NULL ? probes->arc[number] : number;

		degrees[0][i] = all_latitudes[at];
		degrees[1][i] = all_longitudes[at];
	}
	if (!cpu_path->valid(degrees[0], degrees[1], count))
		return false;
	cpu_path->vectors(search->dataset->metric, degrees[0], degrees[1], count, x, y, z);
	return true;
}

bool
cpu_turn_read_vectors(const struct search *search, uint32_t first, const uint32_t *row,
					  uint32_t count, double *x, double *y, double *z)
{
	double		degrees[2][CPU_VECTORS_BLOCK];

	return cpu_turn_read_points(search, first, row, count, degrees, x, y, z);
}

uint32_t
cpu_turn_part(const struct search *search, const struct cpu_index *index, uint32_t number)
{
	int32_t		group;

	if (search->columns.group == NULL || index->parts >= CPU_NEAREST_PARTS_MAX)
		return 0;
	group = ((const volatile int32_t *) search->columns.group)[number];
	return index->slabs != NULL ? cpu_slabs_group(index->slabs, group) : cpu_index_part_of(index, group);
}

bool
cpu_turn_reserve(struct cpu_turn_room *room, size_t bytes, uint32_t rows, struct failure *failure)
{
	if (bytes <= room->bytes)
		return true;
	memory_block_release(room->memory, room->bytes);
	room->bytes = 0;
	room->memory = memory_block_allocate(bytes, failure, "searching %u observations at a time", rows);
	if (room->memory == NULL)
		return false;
	room->bytes = bytes;
	return true;
}

void
cpu_turn_account(struct search *search, uint32_t rows, const uint32_t *counts, uint32_t pairs)
{
	if (counts != NULL)
		memcpy(search->columns.count + search->first + search->answered, counts,
			   rows * sizeof(*counts));
	search_account(search, rows, pairs, counts == NULL);
}

void
cpu_turn_out_of_range(struct search *search)
{
	search->failed = true;
	fail(&search->failure, GEONN_ERROR_PROTOCOL, "observation coordinates are out of range");
}
