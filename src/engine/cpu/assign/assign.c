/*
 * assign.c
 *		Assigns the observations of a search to references with a capacity, on the CPU.
 *
 * The answer takes the pairs in the order (distance, observation, reference), each whose observation has no reference yet, and
 * whose reference has room.  So does the work: each observation looks for the first reference that has room, and waits.  The one
 * that is first in the order of (distance, observation) is taken out.  If its reference still has room, this is the next pair of
 * the answer: rooms only shrink, so no other observation can get a pair that comes before the one for which it waits.  If not, it
 * looks again, from its distance on, and waits at the new distance.
 *
 * Most of the time goes into looking, and other threads can help with that only if several observations look at a time.  So with
 * the first one those look that come soon after it, and wait for references that are full.  Whenever an observation looks, it
 * gets to know a distance below which no reference has room for it, so neither threads nor turns show in the answer.  But where
 * all look for the same few references, these are full again before most have their turn; then fewer look ahead.
 *
 * Observations with the same coordinates and the same conditions are twins.  Only the first one of them looks and waits.  When it
 * has its reference, the next one waits for the same, at the same distance.  So the work on twins is linear.  It is not where
 * many observations are almost at one place: each of them may look once for each reference that others fill.  Of references at
 * one place, the first one fills up before the next.
 */
#include "engine/cpu/assign/assign_state.h"

#include <stdlib.h>
#include <string.h>

#include "common/assertion.h"
#include "common/metric.h"
#include "engine/base/clock.h"
#include "engine/base/memory_block.h"
#include "engine/base/memory_columns.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"

/* from so many looks on, threads help: fewer would take less time than waking these up */
#define PIECE_MIN 16

/* ASSIGN_LOOKS_MAX are divided into so many pieces, each of which one thread does */
#define PIECES 128

/* at first, and at least, so many look again at a time */
#define AHEAD_FIRST 256
#define AHEAD_MIN 16

/* so many get their takers before the clock is looked at, which takes about a millisecond */
#define TAKE_MAX 4096

/* ---- the beginning ---- */

/* Lay out the memory, and return its bytes.  With NULL as memory, only compute the bytes. */
static size_t
place_columns(struct cpu_assign *assign, void *memory)
{
	const struct index_shape *shape = &assign->index->shape;
	size_t		references = assign->index->references;
	size_t		looks = assign->observations < ASSIGN_LOOKS_MAX ? assign->observations : ASSIGN_LOOKS_MAX;
	struct column_block block = {memory, 0};
	struct column_block sorting;

	COLUMN_PLACE(&block, assign->first_taker, (size_t) shape->positions + 1);
	COLUMN_PLACE(&block, assign->place, references);
	COLUMN_PLACE(&block, assign->room, references);
	COLUMN_PLACE(&block, assign->open, shape->positions);
	COLUMN_PLACE(&block, assign->reach, (size_t) shape->nodes[0] * INDEX_WIDTH);
	COLUMN_PLACE(&block, assign->node_reach, (size_t) shape->all_nodes + INDEX_WIDTH);
	COLUMN_PLACE(&block, assign->taker, assign->observations);
	COLUMN_PLACE(&block, assign->distance, assign->observations);
	COLUMN_PLACE(&block, assign->twin, assign->observations);
	COLUMN_PLACE(&block, assign->queue, assign->observations);
	COLUMN_PLACE(&block, assign->looking, looks);
	COLUMN_PLACE(&block, assign->entry, looks);
	sorting = block;
	radix_sort_place(&assign->sort, &sorting, assign->observations);
	COLUMN_PLACE(&block, assign->heap, assign->observations);
	return block.bytes > sorting.bytes ? block.bytes : sorting.bytes;
}

/* Return how many observations the reference at a place may have. */
static uint32_t
capacity_of(const struct cpu_assign *assign, const struct question *question, uint32_t place)
{
	double		capacity = assign->dataset->weight[0] == NULL ? question->capacity : assign->dataset->weight[0][place];

	/* a reference without a weight has none, and one can have no more than all */
	return !(capacity >= 1) ? 0 : capacity >= assign->observations ? assign->observations : (uint32_t) capacity;
}

/* Set the greatest reach below each node. */
static void
begin_nodes(struct cpu_assign *assign)
{
	const struct index_shape *shape = &assign->index->shape;
	const double *below = assign->reach;
	size_t		count = shape->positions;

	for (int level = 0; level < shape->levels; level++)
	{
		double	   *nodes = assign->node_reach + shape->first[level];

		for (uint32_t node = 0; node < shape->nodes[level]; node++)
			nodes[node] = -1.0;
		for (size_t i = 0; i < count; i++)
			if (below[i] > nodes[i / INDEX_WIDTH])
				nodes[i / INDEX_WIDTH] = below[i];
		below = nodes;
		count = shape->nodes[level];
	}
	for (int i = 0; i < INDEX_WIDTH; i++)
		assign->node_reach[shape->all_nodes + (uint32_t) i] = -1.0;
}

/* List the takers of all positions. */
static void
begin_takers(struct cpu_assign *assign, const struct question *question)
{
	const struct cpu_index *index = assign->index;
	const struct dataset *dataset = assign->dataset;
	uint32_t	takers = 0;

	for (uint32_t position = 0; position < index->shape.nodes[0] * INDEX_WIDTH; position++)
		assign->reach[position] = -1.0;
	for (uint32_t position = 0; position < index->shape.positions; position++)
	{
		assign->first_taker[position] = assign->open[position] = takers;
		for (uint32_t i = index->start[position]; i < index->start[position + 1]; i++)
		{
			uint32_t	place = index->place[i];
			uint32_t	capacity = capacity_of(assign, question, place);

			if (capacity == 0)
				continue;
			assign->place[takers] = place;
			assign->room[takers++] = capacity;
			assign->reach[position] = dataset->radius == NULL ? INFINITY : dataset->radius[place] >= 0.0 ?
				geonn_metric_radius_limit(dataset->metric, dataset->radius[place]) : -1.0;
		}
	}
	assign->first_taker[index->shape.positions] = takers;
	begin_nodes(assign);
}

size_t
cpu_assign_bytes(const struct cpu_assign *assign)
{
	return assign->bytes;
}

void
cpu_assign_free(struct cpu_assign *assign)
{
	if (assign != NULL)
		memory_block_release(assign->memory, assign->bytes);
	free(assign);
}

/* ---- the heap ---- */

static bool
waits_before(struct assign_waiting a, struct assign_waiting b)
{
	return a.distance < b.distance || (a.distance == b.distance && a.observation < b.observation);
}

/* Move an entry of the heap down, until none below it comes before it. */
static void
sink(struct cpu_assign *assign, uint32_t entry)
{
	struct assign_waiting *heap = assign->heap;
	struct assign_waiting waiting = heap[entry];

	for (uint64_t below; (below = 2 * (uint64_t) entry + 1) < assign->heap_count; entry = (uint32_t) below)
	{
		if (below + 1 < assign->heap_count && waits_before(heap[below + 1], heap[below]))
			below++;
		if (!waits_before(heap[below], waiting))
			break;
		heap[entry] = heap[below];
	}
	heap[entry] = waiting;
}

static void
add_to_heap(struct cpu_assign *assign, uint32_t observation)
{
	struct assign_waiting *heap = assign->heap;
	struct assign_waiting waiting = {assign->distance[observation], observation};
	uint32_t	entry = assign->heap_count++;

	for (; entry > 0 && waits_before(waiting, heap[(entry - 1) / 2]); entry = (entry - 1) / 2)
		heap[entry] = heap[(entry - 1) / 2];
	heap[entry] = waiting;
}

/* ---- looking ---- */

/* Have a piece of the observations that are looking find takers. */
static void
find_piece(void *context, size_t number)
{
	struct cpu_assign *assign = context;
	uint32_t	first = (uint32_t) number * assign->piece;
	uint32_t	left = assign->looks - first;

	cpu_path->assign_find(assign, assign->looking + first, left < assign->piece ? left : assign->piece);
}

/* Have the observations that are looking find takers, as many as can before the turn ends. */
static void
find_takers(struct cpu_assign *assign)
{
	assign->piece = assign->looks > PIECES * PIECE_MIN ? (assign->looks + PIECES - 1) / PIECES : PIECE_MIN;
	thread_pool_run(find_piece, assign, (assign->looks + assign->piece - 1) / assign->piece);
}

/* ---- twins ---- */

/* Return the column of a batch in which twins have the same value, by its number in dataset_columns; NULL: there is none. */
static const char *
column_of_twins(const struct geonn_batch_columns *columns, int number)
{
	return dataset_columns[number].batch_member == offsetof(struct geonn_batch_columns, tag) ? NULL :
		*(const char *const *) ((const char *) columns + dataset_columns[number].batch_member);
}

/* Are two observations at one place, with the same conditions? */
static bool
are_twins(const struct cpu_assign *assign, uint32_t a, uint32_t b)
{
	for (int i = 0; i < DATASET_COLUMNS; i++)
	{
		const char *values = column_of_twins(&assign->columns, i);
		size_t		width = dataset_columns[i].width;

		if (values != NULL && memcmp(values + a * width, values + b * width, width) != 0)
			return false;
	}
	return true;
}

/* Mix the values by which observations are twins into the keys of the sort. */
static void
hash_observations(struct cpu_assign *assign)
{
	for (uint32_t observation = 0; observation < assign->observations; observation++)
	{
		assign->sort.key[observation] = 0;
		assign->sort.value[observation] = observation;
	}
	for (int i = 0; i < DATASET_COLUMNS; i++)
	{
		const char *values = column_of_twins(&assign->columns, i);
		size_t		width = dataset_columns[i].width;

		for (uint32_t observation = 0; values != NULL && observation < assign->observations; observation++)
		{
			uint64_t	value = 0;
			uint64_t	key;

			memcpy(&value, values + observation * width, width);
			/* the multiplier of splitmix64 */
			key = (assign->sort.key[observation] ^ value) * UINT64_C(0xbf58476d1ce4e5b9);
			assign->sort.key[observation] = key ^ key >> 31;
		}
	}
	assign->sort.count = assign->observations;
}

/*
 * Find the twins, and queue the first one of each.  Equal keys are next to each other then, in the order of observations.  Where
 * values that differ have equal keys, some twins may not be found.
 */
static bool
find_twins(struct cpu_assign *assign)
{
	const uint32_t *sorted;

	hash_observations(assign);
	if (!radix_sort(&assign->sort))
		return false;
	sorted = assign->sort.value;
	for (uint32_t i = 0; i < assign->observations; i++)
	{
		assign->taker[i] = assign->twin[i] = ASSIGN_NONE;
		assign->distance[i] = -1.0;
	}
	for (uint32_t i = 0; i + 1 < assign->observations; i++)
		if (assign->sort.key[i] == assign->sort.key[i + 1] && are_twins(assign, sorted[i], sorted[i + 1]))
		{
			assign->twin[sorted[i]] = sorted[i + 1];
			/* until it waits */
			assign->distance[sorted[i + 1]] = INFINITY;
		}
	for (uint32_t observation = 0; observation < assign->observations; observation++)
		if (assign->distance[observation] < 0.0)
			assign->queue[assign->queue_count++] = observation;
	return true;
}

struct cpu_assign *
cpu_assign_create(const struct search *search, const struct cpu_index *index, struct failure *failure)
{
	struct cpu_assign *assign = calloc(1, sizeof(*assign));

	if (assign == NULL)
	{
		fail(failure, GEONN_ERROR_MEMORY, "not enough memory for a search");
		return NULL;
	}
	assign->dataset = search->dataset;
	assign->index = index;
	assign->columns = search->columns;
	assign->observations = search->rows;
	assign->max_distance = search->question.max_distance;
	assign->ahead = AHEAD_FIRST;
	assign->bytes = place_columns(assign, NULL);
	assign->memory = memory_block_allocate(assign->bytes, failure, "assigning %u observations", assign->observations);
	if (assign->memory == NULL)
	{
		free(assign);
		return NULL;
	}
	place_columns(assign, assign->memory);
	begin_takers(assign, &search->question);
	assign->sort.cancelled = search->cancelled;
	if (!find_twins(assign))
	{
		cpu_assign_free(assign);
		fail(failure, GEONN_ERROR_MEMORY, "not enough memory for a search");
		return NULL;
	}
	return assign;
}

/* Have the next observations of the queue find their first takers.  Returns whether these were the last ones. */
static bool
find_first(struct cpu_assign *assign)
{
	assign->looks = 0;
	/* in the last turn some may have had no time to look */
	for (uint32_t i = assign->queue_first; i < assign->queue_count && assign->looks < ASSIGN_LOOKS_MAX; i++)
		if (assign->distance[assign->queue[i]] < 0.0)
			assign->looking[assign->looks++] = assign->queue[i];
	find_takers(assign);
	while (assign->queue_first < assign->queue_count && assign->distance[assign->queue[assign->queue_first]] >= 0.0)
		assign->queue_first++;
	return assign->queue_first == assign->queue_count;
}

/*
 * Bring those of the queue that have takers in order, unless the search is cancelled.  Returns false if memory is short.
 */
static bool
order_queue(struct cpu_assign *assign)
{
	struct radix_sort *sort = &assign->sort;

	sort->count = 0;
	for (uint32_t i = 0; i < assign->queue_count; i++)
	{
		uint32_t	observation = assign->queue[i];

		if (assign->taker[observation] == ASSIGN_NONE)
			continue;
		sort->key[sort->count] = radix_sort_key(assign->distance[observation]);
		sort->value[sort->count++] = observation;
	}
	if (!radix_sort(sort))
		return false;
	if (atomic_load(assign->cancelled))
		return true;
	memcpy(assign->queue, sort->value, sort->count * sizeof(*sort->value));
	assign->queue_count = (uint32_t) sort->count;
	assign->queue_first = 0;
	return true;
}

/* ---- taking ---- */

/* Note that a position has no room. */
static void
close_position(struct cpu_assign *assign, uint32_t position)
{
	const struct index_shape *shape = &assign->index->shape;
	double	   *below = assign->reach;
	uint32_t	count = shape->nodes[0] * INDEX_WIDTH;

	below[position] = -1.0;
	for (int level = 0; level < shape->levels; level++)
	{
		uint32_t	first = position & ~(uint32_t) (INDEX_WIDTH - 1);
		uint32_t	end = count - first < INDEX_WIDTH ? count : first + INDEX_WIDTH;
		double		most = below[first];

		for (uint32_t i = first + 1; i < end; i++)
			most = below[i] > most ? below[i] : most;
		position /= INDEX_WIDTH;
		below = assign->node_reach + shape->first[level];
		count = shape->nodes[level];
		if (most == below[position])
			return;
		below[position] = most;
	}
}

/* Give an observation its taker, which has room, for good; its twin waits then. */
static void
take(struct cpu_assign *assign, uint32_t observation)
{
	uint32_t	taker = assign->taker[observation];
	uint32_t	twin = assign->twin[observation];

	assign->taken++;
	if (--assign->room[taker] == 0)
	{
		uint32_t	position = last_up_to(assign->first_taker, assign->index->shape.positions, taker);

		/* takers of one place fill up one after the other */
		geonn_assert(assign->open[position] == taker);
		if (++assign->open[position] == assign->first_taker[position + 1])
			close_position(assign, position);
	}
	if (twin != ASSIGN_NONE)
	{
		assign->taker[twin] = taker;
		assign->distance[twin] = assign->distance[observation];
		add_to_heap(assign, twin);
	}
}

/* Does an observation wait for a taker that is full? */
static bool
waits_in_vain(const struct cpu_assign *assign, uint32_t observation)
{
	uint32_t	taker = assign->taker[observation];

	return taker != ASSIGN_NONE && assign->room[taker] == 0;
}

/* Take the first ones that wait, until one waits in vain.  Returns false if none is left that has a taker. */
static bool
take_first_ones(struct cpu_assign *assign)
{
	for (int i = 0; i < TAKE_MAX; i++)
	{
		struct assign_waiting waiting = {INFINITY, ASSIGN_NONE};
		bool		is_queued;

		/* some have been taken out of the queue to look */
		while (assign->queue_first < assign->queue_count && assign->queue[assign->queue_first] == ASSIGN_NONE)
			assign->queue_first++;
		if (assign->queue_first < assign->queue_count)
		{
			waiting.observation = assign->queue[assign->queue_first];
			waiting.distance = assign->distance[waiting.observation];
		}
		is_queued = assign->heap_count == 0 || waits_before(waiting, assign->heap[0]);
		if (!is_queued)
			waiting = assign->heap[0];
		if (waiting.distance == INFINITY)
			return false;
		geonn_assert(waiting.distance == assign->distance[waiting.observation]);
		if (waits_in_vain(assign, waiting.observation))
			break;
		if (is_queued)
			assign->queue_first++;
		else
		{
			assign->heap[0] = assign->heap[--assign->heap_count];
			sink(assign, 0);
		}
		take(assign, waiting.observation);
	}
	return true;
}

/* Have those look again that wait in vain, of the first ones of the heap and of the queue. */
static void
look_again(struct cpu_assign *assign)
{
	uint32_t	half = assign->ahead / 2;
	uint32_t	left = assign->queue_count - assign->queue_first;
	uint32_t	of_heap;
	uint32_t	looks = 0;
	bool		in_time;

	for (uint32_t i = 0; i < assign->heap_count && i < 4 * half && looks < half; i++)
		if (waits_in_vain(assign, assign->heap[i].observation))
		{
			assign->entry[looks] = i;
			assign->looking[looks++] = assign->heap[i].observation;
		}
	of_heap = looks;
	for (uint32_t i = 0; i < left && i < 4 * half && looks < of_heap + half; i++)
	{
		uint32_t   *queued = &assign->queue[assign->queue_first + i];

		if (*queued != ASSIGN_NONE && waits_in_vain(assign, *queued))
		{
			assign->looking[looks++] = *queued;
			*queued = ASSIGN_NONE;
		}
	}
	assign->looks = looks;
	find_takers(assign);
	/* an entry moves only among those below it */
	for (uint32_t i = of_heap; i-- > 0;)
	{
		assign->heap[assign->entry[i]].distance = assign->distance[assign->looking[i]];
		sink(assign, assign->entry[i]);
	}
	for (uint32_t i = of_heap; i < looks; i++)
		if (assign->taker[assign->looking[i]] != ASSIGN_NONE)
			add_to_heap(assign, assign->looking[i]);
	/* of a turn that has ended, some had no time to look */
	in_time = now_ms() < assign->end_ms;
	if (in_time && assign->taken < looks / 8 && assign->ahead > AHEAD_MIN)
		assign->ahead /= 2;
	else if (in_time && assign->taken > looks / 2 && assign->ahead < ASSIGN_LOOKS_MAX)
		assign->ahead *= 2;
	assign->taken = 0;
}

bool
cpu_assign_go_on(struct cpu_assign *assign, struct search *search, int64_t end_ms)
{
	assign->cancelled = assign->sort.cancelled = search->cancelled;
	assign->end_ms = end_ms;
	do
	{
		bool		has_memory = true;

		if (assign->phase == PHASE_TAKE)
		{
			if (!take_first_ones(assign))
				return true;
			look_again(assign);
			continue;
		}
		if (assign->phase == PHASE_ORDER)
			has_memory = order_queue(assign);
		else if (!find_first(assign))
			continue;
		if (!has_memory)
		{
			search->failed = true;
			return fail(&search->failure, GEONN_ERROR_MEMORY, "not enough memory for a search");
		}
		if (!atomic_load(search->cancelled))
			assign->phase++;
	} while (!atomic_load(search->cancelled) && now_ms() < end_ms);
	return false;
}

uint32_t
cpu_assign_of(const struct cpu_assign *assign, uint32_t observation, double *distance)
{
	uint32_t	taker = assign->taker[observation];

	*distance = assign->distance[observation];
	return taker == ASSIGN_NONE ? ASSIGN_NONE : assign->place[taker];
}
