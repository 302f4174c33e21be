/*
 * cells_nearest.c
 *		Finds the nearest reference of a few observations on the CPU, by a table of
 *		squares.
 *
 * Observations are in any order, so what they need lies anywhere in the table.  A
 * block of them goes through the search step by step, and each step asks for
 * the memory that the next one reads:
 *
 *	1.	The square of the face that has the observation.
 *	2.	Its entry; where it is divided, that of the smaller square, and so on.
 *	3.	The candidates' vectors.
 *	4.	Where a square has several candidates, their chords.
 *	5.	Distances.
 *
 * Why the answer is right: cells_square.h shows that the square of an observation has it,
 * and cells_fill.c that the reference that comes first is among its square's
 * candidates.  Of several ones, those above geonn_chord_limit() of the
 * smallest squared chord cannot come first, and the order (distance, place)
 * decides between the others.
 */
#include "engine/cpu/squares/cells.h"

#include "common/metric.h"
#include "engine/cpu/base/vectors.h"
#include "engine/cpu/walk/walk.h"

/* The observations of a search, and what the steps found of each. */
struct steps
{
	int32_t		u[CPU_VECTORS_BLOCK];	/* the point on its face, in units */
	int32_t		v[CPU_VECTORS_BLOCK];
	uint32_t	at[CPU_VECTORS_BLOCK];	/* index of the entry */
	uint32_t	entry[CPU_VECTORS_BLOCK];	/* the entry */
	uint32_t	list[CPU_VECTORS_BLOCK];	/* numbers of the observations that have several candidates */
	uint32_t	lists;

	/* the nearest position's */
	double		x[CPU_VECTORS_BLOCK];
	double		y[CPU_VECTORS_BLOCK];
	double		z[CPU_VECTORS_BLOCK];
	int64_t		tag[CPU_VECTORS_BLOCK];
};

static inline uint32_t
kind_of(uint32_t entry)
{
	return entry >> CPU_CELLS_KIND_SHIFT;
}

static inline uint32_t
position_of(uint32_t entry)
{
	return entry & ((UINT32_C(1) << CPU_CELLS_KIND_SHIFT) - 1);
}

static inline uint32_t
length_of(uint32_t entry)
{
	return (entry >> CPU_CELLS_LENGTH_SHIFT & (CPU_CELLS_LIST_MAX - 1)) + 1;
}

static inline const uint32_t *
list_of(const struct cpu_cells *cells, uint32_t entry)
{
	return cells->list + (entry & ((UINT32_C(1) << CPU_CELLS_LENGTH_SHIFT) - 1));
}

/*
 * Find observations' squares.
 */
static void
find_squares(const struct cpu_cells_search *search, struct steps *steps)
{
	const struct cpu_cells *cells = search->cells;
	double		scale = cells->scale;
	int32_t		last = (int32_t) cells_side_units(cells->side) - 1;
	int32_t		side = (int32_t) cells->side;
	int32_t		face[CPU_VECTORS_BLOCK];

	for (uint32_t i = 0; i < search->count; i++)
	{
		double		x = search->x[i];
		double		y = search->y[i];
		double		z = search->z[i];
		bool		y_largest = fabs(y) > fabs(x);
		double		largest = y_largest ? y : x;
		double		u = y_largest ? z : y;
		double		v = y_largest ? x : z;
		double		axis = y_largest ? 2.0 : 0.0;
		bool		z_largest = fabs(z) > fabs(largest);
		double		units;
		int32_t		unit_u;
		int32_t		unit_v;

		u = z_largest ? x : u;
		v = z_largest ? y : v;
		axis = z_largest ? 4.0 : axis;
		largest = z_largest ? z : largest;
		units = scale / fabs(largest);
		unit_u = (int32_t) (u * units + scale);
		unit_v = (int32_t) (v * units + scale);
		face[i] = (int32_t) (largest < 0.0 ? axis + 1.0 : axis);
		unit_u = unit_u < last ? unit_u : last;
		unit_v = unit_v < last ? unit_v : last;
		steps->u[i] = unit_u > 0 ? unit_u : 0;
		steps->v[i] = unit_v > 0 ? unit_v : 0;
	}
	for (uint32_t i = 0; i < search->count; i++)
	{
		int32_t		block = (face[i] * side + (steps->v[i] >> CELLS_UNIT_BITS)) * side +
			(steps->u[i] >> CELLS_UNIT_BITS);

		steps->at[i] = (uint32_t) (block * (int32_t) CELLS_BLOCK +
								   (steps->v[i] >> CELLS_FIRST_SHIFT) % (int32_t) CELLS_SIDE * (int32_t) CELLS_SIDE +
								   (steps->u[i] >> CELLS_FIRST_SHIFT) % (int32_t) CELLS_SIDE);
	}
	for (uint32_t i = 0; i < search->count; i++)
		__builtin_prefetch(&cells->entry[steps->at[i]]);
}

/*
 * Read each observation's entry.  From a divided square, go on to the smaller square that holds the
 * observation, until a square is not divided.
 */
static void
read_entries(const struct cpu_cells_search *search, struct steps *steps)
{
	const struct cpu_cells *cells = search->cells;
	uint32_t	divided[CPU_VECTORS_BLOCK];
	uint32_t	count = 0;

	for (uint32_t i = 0; i < search->count; i++)
	{
		steps->entry[i] = cells->entry[steps->at[i]];
		divided[count] = i;
		count += kind_of(steps->entry[i]) == CPU_CELLS_DIVIDED;
	}
	for (int shift = CELLS_FIRST_SHIFT - CELLS_SIDE_BITS; count > 0; shift -= CELLS_SIDE_BITS)
	{
		uint32_t	again = 0;

		for (uint32_t j = 0; j < count; j++)
		{
			uint32_t	i = divided[j];
			uint32_t	column = (uint32_t) steps->u[i] >> shift & (CELLS_SIDE - 1);
			uint32_t	row = (uint32_t) steps->v[i] >> shift & (CELLS_SIDE - 1);

			steps->at[i] = position_of(steps->entry[i]) * CELLS_BLOCK + row * CELLS_SIDE + column;
			__builtin_prefetch(&cells->entry[steps->at[i]]);
		}
		for (uint32_t j = 0; j < count; j++)
		{
			uint32_t	i = divided[j];

			steps->entry[i] = cells->entry[steps->at[i]];
			divided[again] = i;
			again += kind_of(steps->entry[i]) == CPU_CELLS_DIVIDED;
		}
		count = again;
	}
}

/*
 * Prefetch the memory of candidates.  List the observations with several candidates, and those that
 * the index has to answer; returns how many are left to the index.
 */
static uint32_t
sort_kinds(const struct cpu_cells_search *search, struct steps *steps)
{
	const struct cpu_cells *cells = search->cells;
	uint32_t	left = 0;
	uint32_t	lists = 0;

	for (uint32_t i = 0; i < search->count; i++)
	{
		uint32_t	entry = steps->entry[i];
		uint32_t	kind = kind_of(entry);
		const void *needed = kind == CPU_CELLS_LIST ? (const void *) list_of(cells, entry) :
			(const void *) &cells->record[kind == CPU_CELLS_ONE ? position_of(entry) : 0];

		__builtin_prefetch(needed);
		steps->list[lists] = i;
		lists += kind == CPU_CELLS_LIST;
		search->left[left] = i;
		left += kind == CPU_CELLS_CROWDED;
	}
	steps->lists = lists;
	return left;
}

static void
set_nearest(const struct cpu_cells *cells, struct steps *steps, uint32_t i, uint32_t position)
{
	const struct cpu_cells_record *record = &cells->record[position];

	steps->x[i] = record->x;
	steps->y[i] = record->y;
	steps->z[i] = record->z;
	steps->tag[i] = record->tag;
}

/* Return the first candidate within a limit, in the order of cpu_decide(). */
static __attribute__((noinline)) uint32_t
decide(const struct cpu_cells_search *search, struct geonn_vector from, const uint32_t *list,
	   uint32_t length, double limit)
{
	struct cpu_decision decision = {{INFINITY, UINT32_MAX, 0}, 0};

	for (uint32_t j = 0; j < length; j++)
	{
		const struct cpu_cells_record *record = &search->cells->record[list[j]];

		if (cpu_filter_chord(record->x - from.x, record->y - from.y, record->z - from.z) <= limit)
			cpu_decide(search->index, search->metric, from, list[j], &decision);
	}
	return decision.position;
}

/*
 * Find the nearest of several candidates.
 */
static void
look_through(const struct cpu_cells_search *search, struct steps *steps, uint32_t i)
{
	const struct cpu_cells *cells = search->cells;
	struct geonn_vector from = {search->x[i], search->y[i], search->z[i]};
	const uint32_t *list = list_of(cells, steps->entry[i]);
	uint32_t	length = length_of(steps->entry[i]);
	double		smallest = INFINITY;
	double		second = INFINITY;
	uint32_t	nearest = list[0];

	for (uint32_t j = 0; j < length; j++)
	{
		const struct cpu_cells_record *record = &cells->record[list[j]];
		double		chord = cpu_filter_chord(record->x - from.x, record->y - from.y,
											 record->z - from.z);
		double		larger = chord > smallest ? chord : smallest;

		second = second < larger ? second : larger;
		nearest = chord < smallest ? list[j] : nearest;
		smallest = chord < smallest ? chord : smallest;
	}
	if (second <= geonn_chord_limit(smallest))
		nearest = decide(search, from, list, length, geonn_chord_limit(smallest));
	set_nearest(cells, steps, i, nearest);
}

uint32_t
CPU_PATH_NAME(cpu_cells_nearest) (const struct cpu_cells_search *search)
{
	const struct cpu_cells *cells = search->cells;
	struct steps steps;
	uint32_t	left;

	find_squares(search, &steps);
	read_entries(search, &steps);
	left = sort_kinds(search, &steps);
	for (uint32_t j = 0; j < steps.lists; j++)
	{
		uint32_t	entry = steps.entry[steps.list[j]];
		const uint32_t *list = list_of(cells, entry);
		uint32_t	length = length_of(entry);

		for (uint32_t l = 0; l < length; l++)
			__builtin_prefetch(&cells->record[list[l]]);
	}
	for (uint32_t i = 0; i < search->count; i++)
	{
		uint32_t	entry = steps.entry[i];

		set_nearest(cells, &steps, i, kind_of(entry) == CPU_CELLS_ONE ? position_of(entry) : 0);
	}
	for (uint32_t j = 0; j < steps.lists; j++)
		look_through(search, &steps, steps.list[j]);
	for (uint32_t i = 0; i < search->count; i++)
	{
		struct geonn_vector from = {search->x[i], search->y[i], search->z[i]};
		struct geonn_vector there = {steps.x[i], steps.y[i], steps.z[i]};

		search->distance[i] = geonn_metric_distance_of(search->metric, from, there);
	}
	for (uint32_t i = 0; i < search->count; i++)
	{
		if (search->distance[i] <= search->max_distance)
			search->tag[i] = steps.tag[i];
		else
			search->distance[i] = INFINITY;
	}
	return left;
}
