/*
 * slabs.c
 *		How the CPU's index cuts references with windows into parts.
 *
 * A window is mostly a time: when the reference was there.  Observations ask
 * for what was there at their own time, so most references near an observation
 * are no candidates.  If the index were in the order of the curve alone, a
 * search would go through the history of a place to find the one reference
 * that was there.  So the index has the order (group, class of length, slab,
 * curve):
 *
 *	- A slab has the references whose lows are between two values.  A search
 *	  goes through the slabs that the observation's window reaches, and in each
 *	  through what is near, as in a dataset of its own.
 *	- A window that begins in one slab may end in another one, so an observation
 *	  must also go through slabs that begin before its own window, as far as
 *	  references' windows are long.  One long window must not make all slabs
 *	  reach far.  So references are first divided into classes, whose windows
 *	  differ in length by a factor of four at most; classes of few references
 *	  are joined with the next longer one.
 *	- In a class, a slab is about as long as the longest window (three quarters
 *	  of it, so that steps of about that length, which are common, have a slab
 *	  each).  Then an observation of one value reaches two or three slabs, and
 *	  about half of their references are candidates.  Longer slabs have a smaller
 *	  share of candidates, shorter ones cost more walks.
 *	- If the observations' windows are longer than that, slabs are as long as
 *	  these, for the same reason.  The search for which the index is built shows
 *	  how long they are: the median of a sample.  Later searches with much longer
 *	  or shorter windows find the same answers in more time, until they have an
 *	  index of their own (cpu/built.c).
 *	- A slab has at least SLAB_MIN references, below which a walk costs as much
 *	  as it does in a larger slab.  Equal lows are never separated; so where
 *	  windows are few distinct steps of many references each, every step is a
 *	  slab, and a join by windows is as fast as one by groups.  A group of few
 *	  references is one part.
 *
 * A group, class and slab are a part of the index.  Parts with the same group
 * and class are a run.  In a run lows rise, and the largest high so far rises
 * with them, so the parts that a window reaches lie between two places that
 * binary search finds.  Among those, each part's own range decides, with its
 * edges: a window that ends before 12:00 does not reach a slab that begins at
 * 12:00.
 *
 * A window that reaches very many parts would cost as many walks.  Then the
 * caller walks once through all of the group's positions, from the top: nodes
 * have ranges of windows, too.
 *
 * With several windows, the one decides that the fewest pairs of a sample of
 * observations and references have in common; the others are looked at in
 * nodes and positions alone.
 *
 * The parts only save time.  Whatever they are, a search finds all references
 * whose windows overlap: each reference is in one part, and a window that overlaps
 * the reference's overlaps the range of that part.
 */
#include "engine/cpu/index/slabs.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/memory_block.h"
#include "engine/base/thread_pool.h"
#include "engine/base/memory_columns.h"
#include "engine/search/window_lengths.h"

/* a slab has at least this many references, except the last slab of a run */
#define SLAB_MIN 256

/* Lengths of windows are classified by their number of bits, two numbers of bits in a class: 0; below 4, 16, ... */
#define CLASS_LENGTHS 2
#define CLASS_BITS 7

/* how many references are sampled to choose classes by their windows */
#define SAMPLE ((size_t) 1 << 14)

/* a class with a smaller part of the references than 1 / CLASS_PART is joined with the next longer class */
#define CLASS_PART 64

#define SIGN ((uint64_t) 1 << 63)

struct cutting
{
	const struct search *search;
	const struct dataset *dataset;
	struct radix_sort *sort;
	struct cpu_slabs *slabs;
	uint32_t   *part_of;
	const int64_t *low;			/* columns of the window by which the references are cut into slabs */
	const int64_t *high;

	uint8_t		class_of[WINDOW_LENGTHS];	/* the class of windows, by the number of bits of their
											 * length */
	uint64_t	width[WINDOW_LENGTHS];	/* how wide the slabs of a class are */
	uint64_t	common;			/* the longest length with the most common number of bits */

	/* the references in the order (group, class, low); these columns are the keys and values of the sort */
	const uint64_t *key;		/* the group, and the class in the lowest bits */
	const uint32_t *place;
	int64_t    *sorted_low;
};

static bool
is_cancelled(const struct cutting *cutting)
{
	return atomic_load_explicit(cutting->search->cancelled, memory_order_relaxed);
}

/* ---- how long slabs should be ---- */

/*
 * From a sample of windows, choose classes of lengths, the width of each class's
 * slabs, and the most common length.
 */
static void
choose_classes(struct cutting *cutting, uint64_t observed)
{
	size_t		rows = cutting->dataset->count;
	size_t		sample = rows < SAMPLE ? rows : SAMPLE;
	size_t		least = rows / CLASS_PART > SLAB_MIN ? rows / CLASS_PART : SLAB_MIN;
	uint32_t	count[WINDOW_LENGTHS] = {0};
	uint64_t	longest[WINDOW_LENGTHS] = {0};
	int			common = 0;

	for (size_t i = 0; i < sample; i++)
	{
		/* take a pseudo-random reference in each stretch, so that no pattern of references spoils the sample */
		size_t		place = (i * rows + (uint32_t) i * UINT32_C(2654435761) % rows) / sample;
		uint64_t	length = window_length(cutting->low[place], cutting->high[place]);
		int			bits = window_length_bits(cutting->low[place], cutting->high[place]);

		count[bits]++;
		longest[bits] = length > longest[bits] ? length : longest[bits];
	}
	for (int bits = 1; bits < WINDOW_LENGTHS; bits++)
		common = count[bits] > count[common] ? bits : common;
	cutting->common = longest[common];
	window_lengths_divide(count, (uint32_t) (least * sample / rows), CLASS_LENGTHS, cutting->class_of);
	for (int bits = 0; bits < WINDOW_LENGTHS; bits++)
	{
		int			class = cutting->class_of[bits];
		uint64_t	length = longest[bits] > observed ? longest[bits] : observed;

		if (length - length / 4 > cutting->width[class])
			cutting->width[class] = length - length / 4;
	}
}

/* ---- the order (group, class, low) ---- */

static void
make_low_keys(void *context, size_t number)
{
	struct cutting *cutting = context;
	size_t		end = piece_end(number, cutting->dataset->count);

	for (size_t i = number * PIECE_ROWS; i < end; i++)
	{
		cutting->sort->key[i] = (uint64_t) cutting->low[i] ^ SIGN;
		cutting->sort->value[i] = (uint32_t) i;
	}
}

static void
make_class_keys(void *context, size_t number)
{
	struct cutting *cutting = context;
	const struct dataset *dataset = cutting->dataset;
	const struct radix_sort *sort = cutting->sort;
	size_t		end = piece_end(number, cutting->dataset->count);

	for (size_t i = number * PIECE_ROWS; i < end; i++)
	{
		uint32_t	place = sort->value[i];
		uint32_t	group = dataset->group != NULL ? (uint32_t) dataset->group[place] ^ UINT32_C(0x80000000) : 0;

		sort->key[i] = (uint64_t) group << CLASS_BITS |
			cutting->class_of[window_length_bits(cutting->low[place], cutting->high[place])];
	}
}

static void
collect_lows(void *context, size_t number)
{
	struct cutting *cutting = context;
	size_t		end = piece_end(number, cutting->dataset->count);

	for (size_t i = number * PIECE_ROWS; i < end; i++)
		cutting->sorted_low[i] = cutting->low[cutting->place[i]];
}

static bool
sort_references(struct cutting *cutting, struct failure *failure)
{
	struct radix_sort *sort = cutting->sort;

	thread_pool_run(make_low_keys, cutting, pieces_of(sort->count));
	if (!radix_sort(sort))
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory to index %zu references",
					sort->count);
	if (is_cancelled(cutting))
		return false;
	thread_pool_run(make_class_keys, cutting, pieces_of(sort->count));
	if (!radix_sort(sort))
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory to index %zu references",
					sort->count);
	cutting->key = sort->key;
	cutting->place = sort->value;
	cutting->sorted_low = (int64_t *) sort->room_key;
	thread_pool_run(collect_lows, cutting, pieces_of(sort->count));
	return !is_cancelled(cutting);
}

/* ---- runs and parts ---- */

/* Return the end of a slab that begins with reference `first` of the order; the slab's run ends at `end`. */
static size_t
slab_end(const struct cutting *cutting, size_t first, size_t end)
{
	const int64_t *low = cutting->sorted_low;
	uint64_t	width = cutting->width[cutting->key[first] & ((1 << CLASS_BITS) - 1)];
	size_t		at = first + SLAB_MIN;

	while (at < end && (low[at] == low[at - 1] || window_length(low[first], low[at]) < width))
		at++;
	return at < end && end - at >= SLAB_MIN / 2 ? at : end;
}

/*
 * Cut the order into groups, runs and parts.  Before slabs has memory, only count them; with
 * memory, note where each begins.
 */
static void
cut(const struct cutting *cutting, struct cpu_slabs *slabs)
{
	const uint64_t *key = cutting->key;
	size_t		count = cutting->dataset->count;
	bool		noting = slabs->memory != NULL;
	size_t		run_end;
	size_t		group_end;

	slabs->groups = slabs->runs = slabs->parts = 0;
	for (size_t first = 0; first < count; first = group_end)
	{
		bool		is_small;

		for (group_end = first + 1; group_end < count &&
			 key[group_end] >> CLASS_BITS == key[first] >> CLASS_BITS; group_end++)
			;
		is_small = group_end - first < 2 * SLAB_MIN;
		if (noting)
		{
			slabs->group_run[slabs->groups] = slabs->runs;
			if (slabs->group != NULL)
				slabs->group[slabs->groups] = cutting->dataset->group[cutting->place[first]];
		}
		slabs->groups++;
		for (size_t run = first; run < group_end; run = run_end)
		{
			for (run_end = run; run_end < group_end && (is_small || key[run_end] == key[run]); run_end++)
				;
			if (noting)
				slabs->run_part[slabs->runs] = slabs->parts;
			slabs->runs++;
			for (size_t part = run; part < run_end;
				 part = is_small ? run_end : slab_end(cutting, part, run_end))
			{
				if (noting)
					slabs->first[slabs->parts] = (uint32_t) part;
				slabs->parts++;
			}
		}
	}
	if (noting)
	{
		slabs->group_run[slabs->groups] = slabs->runs;
		slabs->run_part[slabs->runs] = slabs->parts;
		slabs->first[slabs->parts] = (uint32_t) count;
	}
}

/* Lay out the columns; slabs has their lengths. */
static size_t
place_columns(struct cpu_slabs *slabs, bool has_groups, void *memory)
{
	struct column_block block = {memory, 0};

	if (has_groups)
		COLUMN_PLACE(&block, slabs->group, slabs->groups);
	COLUMN_PLACE(&block, slabs->group_run, (size_t) slabs->groups + 1);
	COLUMN_PLACE(&block, slabs->run_part, (size_t) slabs->runs + 1);
	COLUMN_PLACE(&block, slabs->low, slabs->parts);
	COLUMN_PLACE(&block, slabs->high, slabs->parts);
	COLUMN_PLACE(&block, slabs->edges, slabs->parts);
	COLUMN_PLACE(&block, slabs->reach, slabs->parts);
	COLUMN_PLACE(&block, slabs->is_uniform, slabs->parts);
	COLUMN_PLACE(&block, slabs->first, (size_t) slabs->parts + 1);
	return block.bytes;
}

/* Return which of two edges at the same value lets more windows overlap. */
static enum geonn_edge
wider_edge(unsigned a, unsigned b)
{
	if (a == GEONN_EDGE_UNBOUNDED || b == GEONN_EDGE_UNBOUNDED)
		return GEONN_EDGE_UNBOUNDED;
	return a == GEONN_EDGE_INCLUSIVE || b == GEONN_EDGE_INCLUSIVE ? GEONN_EDGE_INCLUSIVE :
		GEONN_EDGE_EXCLUSIVE;
}

/*
 * Compute the range of a part.
 */
static void
bound_part(const struct cutting *cutting, uint32_t part)
{
	struct cpu_slabs *slabs = cutting->slabs;
	int			window = slabs->window;
	const uint32_t *place = cutting->place;
	size_t		first = slabs->first[part];
	int64_t		low = cutting->sorted_low[first];
	int64_t		high = cutting->high[place[first]];
	uint16_t	first_edges = cutting->dataset->edges[place[first]];
	unsigned	low_edge = geonn_low_edge(first_edges, window);
	unsigned	high_edge = geonn_high_edge(first_edges, window);
	bool		is_uniform = (cutting->dataset->columns & GEONN_COLUMNS_WINDOWS) == GEONN_COLUMN_WINDOW << window;

	for (size_t i = first + 1; i < slabs->first[part + 1]; i++)
	{
		int64_t		other_low = cutting->sorted_low[i];
		int64_t		other_high = cutting->high[place[i]];
		uint16_t	edges = cutting->dataset->edges[place[i]];

		is_uniform = is_uniform && other_low == low && other_high == high && edges == first_edges;
		if (other_low <= low)
			low_edge = other_low < low ? geonn_low_edge(edges, window) :
				wider_edge(low_edge, geonn_low_edge(edges, window));
		if (other_high >= high)
			high_edge = other_high > high ? geonn_high_edge(edges, window) :
				wider_edge(high_edge, geonn_high_edge(edges, window));
		low = other_low < low ? other_low : low;
		high = other_high > high ? other_high : high;
	}
	slabs->low[part] = low;
	slabs->high[part] = high;
	slabs->edges[part] = geonn_edges_of(window, (enum geonn_edge) low_edge, (enum geonn_edge) high_edge);
	slabs->is_uniform[part] = is_uniform;
}

/*
 * Note the part of each reference of a piece, and compute the ranges of the
 * parts that begin in it.
 */
static void
fill_parts(void *context, size_t number)
{
	struct cutting *cutting = context;
	const struct cpu_slabs *slabs = cutting->slabs;
	size_t		begin = number * PIECE_ROWS;
	size_t		end = piece_end(number, cutting->dataset->count);
	uint32_t	part = last_up_to(slabs->first, slabs->parts, begin);

	if (is_cancelled(cutting))
		return;
	if (slabs->first[part] == begin)
		bound_part(cutting, part);
	for (size_t i = begin; i < end; i++)
	{
		if (i == slabs->first[part + 1])
			bound_part(cutting, ++part);
		cutting->part_of[cutting->place[i]] = part;
	}
}

static void
compute_reaches(struct cpu_slabs *slabs)
{
	for (uint32_t run = 0; run < slabs->runs; run++)
	{
		int64_t		reach = INT64_MIN;

		for (uint32_t part = slabs->run_part[run]; part < slabs->run_part[run + 1]; part++)
		{
			reach = slabs->high[part] > reach ? slabs->high[part] : reach;
			slabs->reach[part] = reach;
		}
	}
}

/*
 * Return the least length for which slabs are cut; shorter windows of observations make no shorter
 * slabs.  It is the greater of the most common length of references' windows, and of the range in
 * which SLAB_MIN references of a group begin.
 */
static uint64_t
least_length(const struct cutting *cutting)
{
	double		slabs = (double) cutting->dataset->count / cutting->slabs->groups / SLAB_MIN;
	double		slab = (double) cutting->slabs->most / (slabs > 1 ? slabs : 1);

	return cutting->common > slab ? cutting->common : (uint64_t) slab;
}

uint64_t
cpu_slabs_length(const struct cpu_slabs *slabs, const struct search *search)
{
	uint64_t	length = window_lengths_observed(search, slabs->window);

	if (length > slabs->most)
		length = slabs->most;
	return length > slabs->least ? length : slabs->least;
}

struct cpu_slabs *
cpu_slabs_create(const struct search *search, struct radix_sort *sort, uint32_t *part_of,
				 struct failure *failure)
{
	const struct dataset *dataset = search->dataset;
	struct cpu_slabs *slabs = calloc(1, sizeof(*slabs));
	int			window = window_lengths_choose(search);
	struct cutting cutting = {
		.search = search,
		.dataset = dataset,
		.sort = sort,
		.slabs = slabs,
		.part_of = part_of,
		.low = dataset->low[window],
		.high = dataset->high[window]
	};

	if (slabs == NULL)
	{
		fail(failure, GEONN_ERROR_MEMORY, "not enough memory to index %zu references", dataset->count);
		return NULL;
	}
	slabs->window = window;
	choose_classes(&cutting, window_lengths_observed(search, window));
	if (!sort_references(&cutting, failure))
	{
		free(slabs);
		return NULL;
	}
	cut(&cutting, slabs);
	slabs->bytes = place_columns(slabs, dataset->group != NULL, NULL);
	slabs->memory = memory_block_allocate(slabs->bytes, failure, "the index of %zu references",
										  dataset->count);
	if (slabs->memory == NULL)
	{
		free(slabs);
		return NULL;
	}
	place_columns(slabs, dataset->group != NULL, slabs->memory);
	cut(&cutting, slabs);
	slabs->most = window_lengths_span(dataset, window);
	slabs->least = least_length(&cutting);
	slabs->length = cpu_slabs_length(slabs, search);
	thread_pool_run(fill_parts, &cutting, pieces_of(dataset->count));
	compute_reaches(slabs);
	return slabs;
}

void
cpu_slabs_free(struct cpu_slabs *slabs)
{
	if (slabs == NULL)
		return;
	memory_block_release(slabs->memory, slabs->bytes);
	free(slabs);
}

/* Return the first of parts first ... end - 1 whose value in a rising column is above `value`, or (or_equal) equals it. */
static uint32_t
first_above(const int64_t *column, uint32_t first, uint32_t end, int64_t value, bool or_equal)
{
	while (first < end)
	{
		uint32_t	middle = first + (end - first) / 2;

		if (column[middle] > value || (or_equal && column[middle] == value))
			end = middle;
		else
			first = middle + 1;
	}
	return first;
}

uint32_t
cpu_slabs_reached(const struct cpu_slabs *slabs, uint32_t group,
				  const struct point_windows *windows, uint32_t *list, uint32_t most)
{
	int64_t		low = windows->low[slabs->window];
	int64_t		high = windows->high[slabs->window];
	uint32_t	count = 0;

	for (uint32_t run = slabs->group_run[group]; run < slabs->group_run[group + 1]; run++)
	{
		uint32_t	first = slabs->run_part[run];
		uint32_t	end = first_above(slabs->low, first, slabs->run_part[run + 1], high, false);

		for (uint32_t part = first_above(slabs->reach, first, end, low, true); part < end; part++)
		{
			if (!geonn_windows_overlap(slabs->window, low, high, windows->edges, slabs->low[part],
									   slabs->high[part], slabs->edges[part]))
				continue;
			if (count == most)
				return most + 1;
			list[count++] = part;
		}
	}
	return count;
}
