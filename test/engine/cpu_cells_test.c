/*
 * cpu_cells_test.c
 *		The CPU's table of squares against brute force: the same bytes, whatever the
 *		references and observations are like, and on all paths that this processor has.
 *
 * The oracle computes all squared chords, and takes the first by (distance, place) of those near
 * the smallest one.  It shares geodesy.h with the engine, which says what distances are, and
 * nothing else.
 *
 * Usage: cpu_cells_test [seed [sanitized]].  "sanitized": fewer points, and time does not count.
 *
 * rooms: engine/cpu/squares engine/cpu/base
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/thread_pool.h"
#include "engine/cpu/squares/cells.h"
#include "engine/cpu/base/curve.h"
#include "engine/cpu/base/vectors.h"
#include "engine/search/device.h"
#include "../lib/parallel.h"
#include "../lib/verdict.h"
#include "cells_points.h"

/* more than any squared chord near another one that rounding could change places with */
#define NEAR_CHORD 1e-9

/* what a tag is for a place, and what an answer's column has before */
#define TAG_OF(place) (1000 + 7 * (int64_t) (place))
#define UNTOUCHED_TAG INT64_C(0x7f7f7f7f7f7f7f7f)
#define UNTOUCHED_DISTANCE (-77.0)

/* of each property: sets of several sizes, as the table of a few references is of other squares */
#define SETS 2
#define SETS_PART 8

/* of the larger sets, and of the ring whose squares are crowded */
#define REFERENCES 6000

static atomic_bool cancelled;
static bool sanitized;

static const char *const paths[] = {"portable", "avx2", "avx512"};

#define PATHS (sizeof(paths) / sizeof(paths[0]))

/* ---- datasets and tables ---- */

struct tables
{
	struct dataset *dataset;
	struct search search;
	struct cpu_index *index;
	struct cpu_cells *cells;
	double		longest_ms;		/* of CPU time, of the calls that made the table */
	int			calls;
};

static void
bail_out(const char *why)
{
	printf("Bail out! %s\n", why);
	exit(EXIT_FAILURE);
}

static double *
copy_of(const double *column, size_t count)
{
	double	   *copy = malloc((count + 1) * sizeof(double));

	if (copy == NULL)
		bail_out("not enough memory");
	return memcpy(copy, column, count * sizeof(double));
}

/* a dataset and its index, without a table */
static struct tables
index_of(const struct places *references)
{
	struct tables tables = {.dataset = dataset_create(1, GEONN_METRIC_SPHERE, 0)};
	struct failure failure;

	tables.dataset->count = references->count;
	tables.dataset->latitude = copy_of(references->latitude, references->count);
	tables.dataset->longitude = copy_of(references->longitude, references->count);
	tables.dataset->tag = malloc(references->count * sizeof(int64_t));
	for (uint32_t i = 0; i < references->count; i++)
		tables.dataset->tag[i] = TAG_OF(i);
	tables.search = (struct search) {
		.dataset = tables.dataset,
		.question = {.k = 1,.max_distance = INFINITY},
		.cancelled = &cancelled
	};
	tables.index = cpu_index_build(&tables.search, &failure);
	if (tables.index == NULL)
		bail_out(failure.message);
	return tables;
}

/* milliseconds of CPU time that this thread has had, which a busy host does not lengthen */
static double
thread_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double) time.tv_sec * 1e3 + (double) time.tv_nsec * 1e-6;
}

/*
 * A table that is made at once, or job by job.
 */
static struct tables
make_tables(const struct places *references, bool by_jobs)
{
	struct tables tables = index_of(references);
	struct cpu_cells_building *building = cpu_cells_begin(tables.dataset, tables.index);
	bool		is_complete = false;

	if (building == NULL)
		bail_out("no memory for a table");
	while (!is_complete)
	{
		double		worked = thread_ms();

		is_complete = cpu_cells_go_on(building, by_jobs ? 0 : INT64_MAX);
		worked = thread_ms() - worked;
		tables.longest_ms = worked > tables.longest_ms ? worked : tables.longest_ms;
		tables.calls++;
	}
	tables.cells = cpu_cells_finish(building);
	return tables;
}

static struct tables
tables_of(const struct places *references)
{
	return make_tables(references, false);
}

static void
forget(struct tables *tables)
{
	cpu_cells_free(tables->cells);
	cpu_index_free(tables->index);
	dataset_free(tables->dataset);
}

static double
blocks_along_face(const struct places *references)
{
	struct tables tables = tables_of(references);
	double		side = tables.cells->side;

	forget(&tables);
	return side;
}

static double
squares_along_block(void)
{
	return (double) (1u << CELLS_UNIT_BITS);
}

/* ---- the oracle ---- */

struct truth
{
	const struct places *references;
	const struct places *observations;
	struct geonn_vector *to;	/* [references] */
	struct geonn_vector *from;	/* [observations] */
	uint32_t   *place;			/* [observations] of the nearest reference */
	double	   *distance;		/* [observations] */
};

static struct geonn_vector *
vectors_of(const struct places *places)
{
	struct geonn_vector *vectors = malloc((places->count + 1) * sizeof(*vectors));

	if (vectors == NULL)
		bail_out("not enough memory");
	for (uint32_t i = 0; i < places->count; i++)
		vectors[i] = geonn_unit_vector(places->latitude[i], places->longitude[i]);
	return vectors;
}

static void
find_truth(void *argument, size_t begin, size_t end)
{
	struct truth *truth = argument;
	uint32_t	references = truth->references->count;
	double	   *chords = malloc(references * sizeof(double));

	if (chords == NULL)
		bail_out("not enough memory");
	for (size_t i = begin; i < end; i++)
	{
		struct geonn_vector from = truth->from[i];
		double		smallest = INFINITY;

		for (uint32_t j = 0; j < references; j++)
		{
			double		x = truth->to[j].x - from.x;
			double		y = truth->to[j].y - from.y;
			double		z = truth->to[j].z - from.z;

			chords[j] = x * x + y * y + z * z;
			smallest = chords[j] < smallest ? chords[j] : smallest;
		}
		truth->distance[i] = INFINITY;
		for (uint32_t j = 0; j < references; j++)
			if (chords[j] <= smallest * (1.0 + NEAR_CHORD) + NEAR_CHORD * NEAR_CHORD)
			{
				double		distance = geonn_distance_of(from, truth->to[j]);

				if (distance < truth->distance[i])
				{
					truth->distance[i] = distance;
					truth->place[i] = j;
				}
			}
	}
	free(chords);
}

static struct truth
truth_of(const struct sets *sets)
{
	uint32_t	rows = sets->observations.count;
	struct truth truth = {
		&sets->references, &sets->observations, vectors_of(&sets->references),
		vectors_of(&sets->observations), malloc(rows * sizeof(uint32_t)), malloc(rows * sizeof(double))
	};

	parallel(rows, 256, find_truth, &truth);
	return truth;
}

static void
forget_truth(struct truth *truth)
{
	free(truth->to);
	free(truth->from);
	free(truth->place);
	free(truth->distance);
}

/* ---- comparing ---- */

/* an answer with room on both sides that must stay as it is */
struct answer
{
	int64_t		tag[CPU_VECTORS_BLOCK + 1];
	double		distance[CPU_VECTORS_BLOCK + 1];
	uint32_t	left[CPU_VECTORS_BLOCK + 1];
	bool		is_left[CPU_VECTORS_BLOCK];
};

/*
 * Look through the answers of `count` observations from `first` on.
 */
static void
compare(const struct truth *truth, uint32_t first, uint32_t count, double max_distance,
		struct answer *answer, uint32_t left, struct outcome *outcome)
{
	memset(answer->is_left, 0, sizeof(answer->is_left));
	for (uint32_t i = 0; i < left; i++)
	{
		outcome->stray += answer->left[i] >= count || (i > 0 && answer->left[i] <= answer->left[i - 1]);
		if (answer->left[i] < count)
			answer->is_left[answer->left[i]] = true;
	}
	outcome->stray += answer->tag[count] != UNTOUCHED_TAG ||
		answer->distance[count] != UNTOUCHED_DISTANCE || answer->left[count] != UINT32_MAX;
	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	row = first + i;
		bool		matched = truth->distance[row] <= max_distance;
		double		distance = matched ? truth->distance[row] : INFINITY;

		if (answer->is_left[i])
			continue;
		if (memcmp(&answer->distance[i], &distance, sizeof(distance)) == 0 &&
			(!matched || answer->tag[i] == TAG_OF(truth->place[row])))
			continue;
		if (outcome->different++ == 0)
			printf("# observation (%.17g, %.17g): tag %lld at %.17g, and not %lld at %.17g\n",
				   truth->observations->latitude[row], truth->observations->longitude[row],
				   (long long) answer->tag[i], answer->distance[i],
				   (long long) TAG_OF(truth->place[row]), distance);
	}
	outcome->rows += count;
	outcome->left += left;
}

/*
 * Search by a table, so many observations at a time.
 */
static void
search_all(const struct tables *tables, const struct truth *truth, double max_distance,
		   struct outcome *outcome)
{
	static const uint32_t counts[] = {CPU_VECTORS_BLOCK, CPU_VECTORS_BLOCK - 1, 1, 100, CPU_VECTORS_BLOCK};
	uint32_t	rows = truth->observations->count;
	uint32_t	count;

	for (uint32_t first = 0, i = 0; first < rows; first += count, i++)
	{
		double		vectors[3][CPU_VECTORS_BLOCK];
		struct answer answer;
		struct cpu_cells_search search = {
			.cells = tables->cells,.index = tables->index,.metric = GEONN_METRIC_SPHERE,
			.max_distance = max_distance,.x = vectors[0],.y = vectors[1],.z = vectors[2],
			.tag = answer.tag,.distance = answer.distance,.left = answer.left
		};

		count = counts[i % 5] < rows - first ? counts[i % 5] : rows - first;
		search.count = count;
		for (uint32_t j = 0; j < count; j++)
		{
			vectors[0][j] = truth->from[first + j].x;
			vectors[1][j] = truth->from[first + j].y;
			vectors[2][j] = truth->from[first + j].z;
		}
		for (uint32_t j = 0; j <= CPU_VECTORS_BLOCK; j++)
		{
			answer.tag[j] = UNTOUCHED_TAG;
			answer.distance[j] = UNTOUCHED_DISTANCE;
			answer.left[j] = UINT32_MAX;
		}
		compare(truth, first, count, max_distance, &answer, cpu_path->cells_nearest(&search), outcome);
	}
}

static bool
choose_path(const char *name)
{
	struct failure failure;

	return cpu_path_choose(name, &failure);
}

/*
 * Build and search on each path that there is.
 */
static void
try_sets(const struct sets *sets, double max_distance, struct outcome *outcome)
{
	struct truth truth = truth_of(sets);

	/* the distance of an observation, which has its neighbour, and the next float64 below, by which it
	 * has none */
	if (max_distance == 0)
		max_distance = random_below(2) ? truth.distance[0] : nextafter(truth.distance[0], 0);
	for (size_t i = 0; i < PATHS; i++)
		if (choose_path(paths[i]))
		{
			struct tables tables = tables_of(&sets->references);

			outcome->stray += tables.cells->used > tables.cells->bytes;
			search_all(&tables, &truth, max_distance, outcome);
			forget(&tables);
		}
	forget_truth(&truth);
}

static void
tell(const char *line, bool holds)
{
	report(line, holds);
}

/* ---- tables without room, without time, and without a search ---- */

/* what a table's entries say */
struct census
{
	uint32_t	blocks;			/* that are in use */
	uint64_t	listed;			/* positions in lists */
	uint64_t	crowded;		/* squares */
	uint64_t	wrong;			/* entries that point to no place of the table */
};

static struct census
census_of(const struct tables *tables)
{
	const struct cpu_cells *cells = tables->cells;
	struct census census = {.blocks = cells->face_blocks};

	for (size_t i = 0; i < (size_t) census.blocks * CELLS_BLOCK; i++)
	{
		uint32_t	entry = cells->entry[i];
		uint32_t	rest = entry & ((1u << CPU_CELLS_KIND_SHIFT) - 1);
		uint32_t	length = (rest >> CPU_CELLS_LENGTH_SHIFT) + 1;
		uint32_t	place = rest & ((1u << CPU_CELLS_LENGTH_SHIFT) - 1);

		switch (entry >> CPU_CELLS_KIND_SHIFT)
		{
			case CPU_CELLS_ONE:
				census.wrong += rest >= tables->index->shape.positions;
				break;
			case CPU_CELLS_LIST:
				census.wrong += length < 2 || place + length > cells->list_max;
				for (uint32_t j = 0; j < length && place + j < cells->list_max; j++)
					census.wrong += cells->list[place + j] >= tables->index->shape.positions;
				census.listed += length;
				break;
			case CPU_CELLS_DIVIDED:
				/* in the order of their blocks, each has its squares in a later block */
				census.wrong += rest >= cells->blocks_max || rest <= i / CELLS_BLOCK;
				if (rest < cells->blocks_max && rest >= census.blocks)
					census.blocks = rest + 1;
				break;
			default:
				census.crowded++;
		}
	}
	return census;
}

/*
 * A ring of references, with a table that lacks blocks or room for lists.
 */
static void
test_exhaustion(const char *what, uint32_t references, bool blocks)
{
	struct sets sets = room_for_sets();
	struct outcome outcome = {0};
	struct truth truth;
	struct tables tables;
	struct census census;
	bool		short_of;
	char		line[200];

	add_ring(&sets.references, references);
	add_anywhere(&sets.observations, many_observations);
	truth = truth_of(&sets);
	choose_path(NULL);
	tables = tables_of(&sets.references);
	census = census_of(&tables);
	search_all(&tables, &truth, INFINITY, &outcome);
	short_of = blocks ? census.blocks == tables.cells->blocks_max :
		census.listed > tables.cells->list_max - CELLS_BLOCK * CPU_CELLS_LIST_MAX;
	snprintf(line, sizeof(line), "%s (blocks %u of %u, listed %llu of %u, crowded %llu, differences %llu, "
			 "left to the index %.1f %%)", what, census.blocks, tables.cells->blocks_max,
			 (unsigned long long) census.listed, tables.cells->list_max,
			 (unsigned long long) census.crowded, (unsigned long long) outcome.different,
			 100.0 * (double) outcome.left / (double) outcome.rows);
	report(line, short_of && census.crowded > 0 && census.wrong == 0 && outcome.different == 0 &&
		   outcome.stray == 0 && outcome.left > 0 && outcome.left < outcome.rows &&
		   tables.cells->used <= tables.cells->bytes);
	forget(&tables);
	forget_truth(&truth);
	forget_sets(&sets);
}

static bool
is_on_face(struct geonn_vector turned)
{
	return turned.x >= fabs(turned.y) && turned.x >= fabs(turned.z);
}

/* the number of the unit along a face's side that has a coordinate of -1 ... 1 */
static uint32_t
unit_of(double coordinate, uint32_t side)
{
	double		scale = cells_scale_of(side);

	return (uint32_t) fmin(scale + scale * coordinate, cells_side_units(side) - 1.0);
}

/*
 * Where one of two references comes first in a square, it is nearer to its corners,
 * and to any points of it.
 */
static void
test_order(void)
{
	int			pairs = sanitized ? 10000 : 200000;
	uint32_t	side = cells_side_of(65536 * 8);
	long		wrong = 0;
	long		decided = 0;

	for (int i = 0; i < pairs; i++)
	{
		struct places places = room_for(3);
		struct place centre = anywhere();
		double		km = fabs(random_magnitude(1e-6, 20000));
		uint32_t	shift = random_below(7) * CELLS_SIDE_BITS;
		struct geonn_vector turned[3];
		struct cells_square square;
		uint32_t	face = 0;
		double		reach;

		add_around(&places, centre, km);
		add_around(&places, centre, random_below(2) ? km : km * 0.001);
		if (random_below(2))
			centre = anywhere();
		add(&places, centre.latitude, centre.longitude);
		for (int j = 0; j < 3; j++)
			turned[j] = geonn_unit_vector(places.latitude[j], places.longitude[j]);
		while (!is_on_face(cells_turned(face, turned[2])))
			face++;
		for (int j = 0; j < 3; j++)
			turned[j] = cells_turned(face, turned[j]);
		square = cells_square_of(unit_of(turned[2].y / turned[2].x, side) >> shift << shift,
								 unit_of(turned[2].z / turned[2].x, side) >> shift << shift,
								 1u << shift, cells_scale_of(side));
		reach = sqrt(fmax(geonn_chord_squared(turned[0], cells_vector_at(square.u, square.v)),
						  geonn_chord_squared(turned[1], cells_vector_at(square.u, square.v)))) +
			2.0 * square.half;
		if (cells_comes_before(turned[0], turned[1], &square, cells_margin(reach, reach)))
		{
			decided++;
			for (int j = 0; j < 8; j++)
			{
				double		u = j < 4 ? (j & 1 ? 1 : -1) : random_between(-1, 1);
				double		v = j < 4 ? (j & 2 ? 1 : -1) : j < 6 ? 1 : random_between(-1, 1);
				struct geonn_vector point =
					cells_vector_at(square.u + u * square.half, square.v + v * square.half);

				wrong += !(geonn_distance_of(point, turned[0]) < geonn_distance_of(point, turned[1]));
			}
		}
		free(places.latitude);
		free(places.longitude);
	}
	printf("# %ld of %d pairs have an order\n", decided, pairs);
	report("what comes first in a square is nearer to all points of it", wrong == 0 && decided > pairs / 200);
}

/*
 * What `used` counts: records, and all entries and lists that there are.
 */
static void
test_used(void)
{
	struct sets sets = room_for_sets();
	struct tables tables;
	struct census census;
	size_t		expected;

	make_clusters(&sets);
	tables = tables_of(&sets.references);
	census = census_of(&tables);
	expected = tables.index->shape.positions * sizeof(struct cpu_cells_record) +
		((size_t) census.blocks * CELLS_BLOCK + census.listed) * sizeof(uint32_t);
	report("bytes in use are those of records, blocks and lists, and fewer than were reserved",
		   census.wrong == 0 && tables.cells->used == expected && tables.cells->used < tables.cells->bytes);
	forget(&tables);
	forget_sets(&sets);
}

/*
 * A table that is made bit by bit is as good, and each bit is short, whatever the references are like.
 */
static void
test_bits(void)
{
	static const make_sets makes[] = {make_clusters, make_ring, make_far_crowd, make_crowd};
	bool		right = true;
	double		longest_ms = 0;

	choose_path("portable");
	for (size_t i = 0; i < sizeof(makes) / sizeof(makes[0]); i++)
	{
		struct sets sets = room_for_sets();
		struct outcome outcome = {0};
		struct truth truth;
		struct tables tables;
		struct tables at_once;

		makes[i](&sets);
		truth = truth_of(&sets);
		tables = make_tables(&sets.references, true);
		at_once = tables_of(&sets.references);
		search_all(&tables, &truth, INFINITY, &outcome);
		right = right && tables.calls > 1 && at_once.calls == 1 && outcome.different == 0 &&
			outcome.stray == 0 && census_of(&tables).wrong == 0 &&
			tables.cells->blocks == at_once.cells->blocks;
		longest_ms = tables.longest_ms > longest_ms ? tables.longest_ms : longest_ms;
		forget(&tables);
		forget(&at_once);
		forget_truth(&truth);
		forget_sets(&sets);
	}
	report("a table that is made bit by bit is as good as one that is made at once", right);
	report_measure("and each bit is short", sanitized || longest_ms < 300, "the longest took",
				   longest_ms, "ms of CPU time");
}

/*
 * Where nearly all squares are crowded, a table does not help; and otherwise it does.
 */
static void
test_help(void)
{
	struct sets sets = room_for_sets();
	struct sets ring = room_for_sets();
	struct tables tables;
	struct tables crowded;

	/* a ring of fewer is not crowded */
	many_references = REFERENCES;
	make_clusters(&sets);
	make_ring(&ring);
	choose_path(NULL);
	tables = tables_of(&sets.references);
	crowded = tables_of(&ring.references);
	report("tables of clusters help, those of a ring do not",
		   cpu_cells_help(tables.cells) && !cpu_cells_help(crowded.cells));
	forget(&tables);
	forget(&crowded);
	forget_sets(&sets);
	forget_sets(&ring);
}

int
main(int count, char **words)
{
	if (count > 1)
		random_state = strtoull(words[1], NULL, 10);
	sanitized = count > 2 && strcmp(words[2], "sanitized") == 0;
	many_references = sanitized ? 1500 : REFERENCES;
	many_observations = sanitized ? 1500 : 6000;
	printf("# seed %llu\n", (unsigned long long) random_state);
	cpu_curve_initialize();
	test_order();
	test_properties(SETS, SETS_PART);
	test_exhaustion("a table without free blocks", many_references, true);
	test_exhaustion("a table without room for lists", 1000, false);
	test_used();
	test_bits();
	test_help();
	thread_pool_close();
	return summed_up();
}
