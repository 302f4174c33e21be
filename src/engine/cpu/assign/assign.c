/*
 * assign.c
 *		Assigns the observations of a search to references with a capacity, on the CPU.
 *
 * The answer takes the pairs in the order (distance, observation, reference), each whose observation has no reference yet, and
 * whose reference has room.  All observations and all references order their pairs by that one order, so the answer is the one
 * matching that is stable: no observation and no reference would both rather have each other.  Deferred acceptance finds it,
 * whichever observation proposes next: a free observation proposes to the first reference that would take it, because that has
 * room or holds a worse one; the reference then gives up its worst one, which is free again.  A reference that has refused an
 * observation, or has given it up, never takes it later, as those that it holds only become better.  So an observation for
 * which no reference is left has none in the answer, and neither threads nor turns show.
 *
 * First each observation finds the reference that is first for it, on all threads.  Then observations propose in the order of
 * those distances, which is not far from the order of the answer, so that few are given up.  One that is refused, or is given up,
 * looks for its next reference (assign_walk.c): a chunk of them at a time, on all threads, by what references hold at the time.
 * One thread then lets them propose, one after the other.  Where most of a chunk are refused, since all look for the same few
 * references, chunks become smaller, down to one: then none looks in vain.
 *
 * An observation that is free looks no nearer than where it was refused, and no nearer than where its twin is, an observation at
 * the same place, with the same conditions, that comes right before it in the queue: all that the twin did not get refuse it,
 * too.  So crowds at one place whose conditions are the same stay linear.
 *
 * Of references at one place the first one fills up first, and holds the best ones.  So the first that would take an
 * observation is found by halving.
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

/* at most so many observations look for a reference at a time */
#define CHUNK_MAX 8192

/* as many as can look at a time are divided into so many pieces, each of which one thread does */
#define PIECES 128

/* the first so many look at a time; then fewer where that takes more than so many ms, so that a turn ends in time, or more */
#define LOOK_FIRST 256
#define LOOK_MS 20

/* ---- the beginning ---- */

/* Lay out the memory, and return its bytes.  With NULL as memory, only compute the bytes. */
static size_t
place_columns(struct cpu_assign *assign, void *memory)
{
	const struct index_shape *shape = &assign->index->shape;
	size_t		references = assign->index->references;
	struct column_block block = {memory, 0};

	COLUMN_PLACE(&block, assign->first_taker, (size_t) shape->positions + 1);
	COLUMN_PLACE(&block, assign->place, references);
	COLUMN_PLACE(&block, assign->room, references);
	COLUMN_PLACE(&block, assign->worst, references);
	COLUMN_PLACE(&block, assign->reach, (size_t) shape->nodes[0] * INDEX_WIDTH);
	COLUMN_PLACE(&block, assign->node_reach, (size_t) shape->all_nodes + INDEX_WIDTH);
	COLUMN_PLACE(&block, assign->taker, assign->observations);
	COLUMN_PLACE(&block, assign->distance, assign->observations);
	COLUMN_PLACE(&block, assign->left, assign->observations);
	COLUMN_PLACE(&block, assign->right, assign->observations);
	COLUMN_PLACE(&block, assign->twin, assign->observations);
	COLUMN_PLACE(&block, assign->queue, assign->observations);
	COLUMN_PLACE(&block, assign->free, assign->observations);
	return block.bytes;
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

/* List the takers of all positions, none of which holds an observation. */
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
		assign->first_taker[position] = takers;
		for (uint32_t i = index->start[position]; i < index->start[position + 1]; i++)
		{
			uint32_t	place = index->place[i];
			uint32_t	capacity = capacity_of(assign, question, place);

			if (capacity == 0)
				continue;
			assign->place[takers] = place;
			assign->room[takers] = capacity;
			assign->worst[takers++] = ASSIGN_NONE;
			assign->reach[position] = dataset->radius == NULL ? INFINITY : dataset->radius[place] >= 0.0 ?
				geonn_metric_radius_limit(dataset->metric, dataset->radius[place]) : -1.0;
		}
	}
	assign->first_taker[index->shape.positions] = takers;
	begin_nodes(assign);
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
	assign->chunk = CHUNK_MAX;
	assign->most = LOOK_FIRST;
	assign->bytes = place_columns(assign, NULL);
	assign->memory = memory_block_allocate(assign->bytes, failure, "assigning %u observations", assign->observations);
	if (assign->memory == NULL)
	{
		free(assign);
		return NULL;
	}
	place_columns(assign, assign->memory);
	begin_takers(assign, &search->question);
	return assign;
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

/* ---- what takers hold ---- */

/* Unite two heaps, and return the top. */
static uint32_t
unite(struct cpu_assign *assign, uint32_t a, uint32_t b)
{
	uint32_t	top = ASSIGN_NONE;
	uint32_t   *link = &top;

	/* a skew heap: go down the right sides, and swap the sides on the way, so that they stay short in the mean */
	while (a != ASSIGN_NONE && b != ASSIGN_NONE)
	{
		uint32_t	worse = assign_is_worse(assign->distance[a], a, assign->distance[b], b) ? a : b;
		uint32_t	right = assign->right[worse];

		b = worse == a ? b : a;
		a = right;
		*link = worse;
		assign->right[worse] = assign->left[worse];
		link = &assign->left[worse];
	}
	*link = a != ASSIGN_NONE ? a : b;
	return top;
}

/* Return the greatest of so many reaches. */
static double
greatest(const double *reach, uint32_t count)
{
	double		most = reach[0];

	for (uint32_t i = 1; i < count; i++)
		most = reach[i] > most ? reach[i] : most;
	return most;
}

/* Lower the reach of a taker's position, and of the nodes above it, if the taker is the position's last. */
static void
lower_reach(struct cpu_assign *assign, uint32_t position, uint32_t taker)
{
	const struct index_shape *shape = &assign->index->shape;
	double	   *below = assign->reach;
	uint32_t	count = shape->nodes[0] * INDEX_WIDTH;
	uint32_t	number = position;
	double		reach;

	if (taker + 1 < assign->first_taker[position + 1])
		return;
	reach = geonn_metric_radius_limit(assign->dataset->metric, assign->distance[assign->worst[taker]]);
	if (!(reach < below[position]))
		return;
	below[position] = reach;
	for (int level = 0; level < shape->levels; level++)
	{
		uint32_t	first = number & ~(uint32_t) (INDEX_WIDTH - 1);
		double		most = greatest(below + first, count - first < INDEX_WIDTH ? count - first : INDEX_WIDTH);

		number /= INDEX_WIDTH;
		below = assign->node_reach + shape->first[level];
		count = shape->nodes[level];
		if (most == below[number])
			return;
		below[number] = most;
	}
}

/* Return the position of a taker. */
static uint32_t
position_of(const struct cpu_assign *assign, uint32_t taker)
{
	return last_up_to(assign->first_taker, assign->index->shape.positions, taker);
}

/*
 * Let an observation propose to its taker.  Returns the observation that is free then: the one that the taker gives up, the
 * observation itself if the taker refuses, or ASSIGN_NONE.
 */
static uint32_t
propose(struct cpu_assign *assign, uint32_t observation)
{
	uint32_t	taker = assign->taker[observation];
	uint32_t	worst = assign->worst[taker];
	uint32_t	freed = ASSIGN_NONE;

	if (!assign_would_take(assign, taker, observation, assign->distance[observation]))
		return observation;
	if (assign->room[taker] > 0)
		assign->room[taker]--;
	else
	{
		freed = worst;
		worst = unite(assign, assign->left[worst], assign->right[worst]);
	}
	assign->left[observation] = assign->right[observation] = ASSIGN_NONE;
	assign->worst[taker] = unite(assign, worst, observation);
	if (assign->room[taker] == 0)
		lower_reach(assign, position_of(assign, taker), taker);
	return freed;
}

/* ---- the work ---- */

/* Have a piece of the observations that are looking find takers. */
static void
find_piece(void *context, size_t number)
{
	struct cpu_assign *assign = context;
	uint32_t	first = (uint32_t) number * assign->piece;
	uint32_t	left = assign->looking - first;

	if (!atomic_load_explicit(assign->cancelled, memory_order_relaxed))
		cpu_path->assign_find(assign, assign->free + assign->free_count + first, left < assign->piece ? left : assign->piece);
}

/* Have the observations that are looking find takers, and see how many can look at a time. */
static void
find_takers(struct cpu_assign *assign)
{
	int64_t		began_ms = now_ms();
	int64_t		took_ms;

	assign->piece = assign->most > PIECES ? assign->most / PIECES : 1;
	/* other threads would take longer to wake up than one piece takes */
	if (assign->looking <= assign->piece)
		find_piece(assign, 0);
	else
		thread_pool_run(find_piece, assign, (assign->looking + assign->piece - 1) / assign->piece);
	took_ms = now_ms() - began_ms;
	/* but each thread has one that looks */
	if (took_ms > LOOK_MS && assign->most > thread_pool_threads())
		assign->most /= 2;
	else if (took_ms < LOOK_MS / 4 && assign->looking == assign->most && assign->most < CHUNK_MAX)
		assign->most *= 2;
}

/* Have the next observations find their first takers. */
static void
find_first(struct cpu_assign *assign)
{
	uint32_t	left = assign->observations - assign->found;

	assign->looking = left < assign->most ? left : assign->most;
	for (uint32_t i = 0; i < assign->looking; i++)
		assign->free[i] = assign->found + i;
	find_takers(assign);
	assign->found += assign->looking;
}

/* Are two observations at one place, with the same conditions? */
static bool
are_twins(const struct cpu_assign *assign, uint32_t a, uint32_t b)
{
	for (int i = 0; i < DATASET_COLUMNS; i++)
	{
		const struct dataset_column *column = &dataset_columns[i];
		const char *values = *(const char *const *) ((const char *) &assign->columns + column->batch_member);

		if (column->batch_member != offsetof(struct geonn_batch_columns, tag) && values != NULL &&
			memcmp(values + a * column->width, values + b * column->width, column->width) != 0)
			return false;
	}
	return true;
}

/* Make the queue.  Returns false with the failure if memory is short. */
static bool
make_queue(struct cpu_assign *assign, struct failure *failure)
{
	struct radix_sort sort = {.cancelled = assign->cancelled};
	struct column_block block = {NULL, 0};
	void	   *memory;
	bool		sorted;

	radix_sort_place(&sort, &block, assign->observations);
	memory = memory_block_allocate(block.bytes, failure, "assigning %u observations", assign->observations);
	if (memory == NULL)
		return false;
	block = (struct column_block) {memory, 0};
	radix_sort_place(&sort, &block, assign->observations);
	sort.count = 0;
	for (uint32_t observation = 0; observation < assign->observations; observation++)
	{
		if (assign->taker[observation] == ASSIGN_NONE)
			continue;
		/* as integers, the bits of numbers from 0 on have the same order */
		memcpy(&sort.key[sort.count], &assign->distance[observation], sizeof(double));
		sort.value[sort.count++] = observation;
	}
	sorted = radix_sort(&sort) || fail(failure, GEONN_ERROR_MEMORY, "not enough memory for a search");
	memcpy(assign->queue, sort.value, sort.count * sizeof(*sort.value));
	assign->queue_count = (uint32_t) sort.count;
	memory_block_release(memory, block.bytes);
	assign->has_queue = sorted;
	return sorted;
}

/* Let observations of the queue propose, until as many are free as look for takers at a time. */
static void
propose_queued(struct cpu_assign *assign)
{
	uint32_t	first = assign->free_count;
	uint32_t	end = assign->queue_count - assign->proposed < CHUNK_MAX ? assign->queue_count : assign->proposed + CHUNK_MAX;

	while (assign->proposed < end && assign->free_count < assign->chunk)
	{
		uint32_t	observation = assign->queue[assign->proposed];
		uint32_t	before = assign->proposed > 0 ? assign->queue[assign->proposed - 1] : ASSIGN_NONE;
		uint32_t	freed = propose(assign, observation);

		/* twins have the same first distance */
		assign->twin[observation] = before != ASSIGN_NONE && are_twins(assign, before, observation) ? before : ASSIGN_NONE;
		assign->proposed++;
		if (freed != ASSIGN_NONE)
			assign->free[assign->free_count++] = freed;
	}
	/* the first one that was freed is to be the last one of the list */
	for (uint32_t last = assign->free_count; first + 1 < last; first++)
	{
		uint32_t	freed = assign->free[first];

		assign->free[first] = assign->free[--last];
		assign->free[last] = freed;
	}
}

/* Have a chunk of the free observations look for takers, and propose to these.  Cancelled, leave them as they are. */
static void
propose_free(struct cpu_assign *assign)
{
	uint32_t	end = assign->free_count;
	uint32_t	next = end;
	uint32_t	refused = 0;
	uint32_t	freed_count;

	assign->looking = end < assign->chunk ? end : assign->chunk;
	if (assign->looking > assign->most)
		assign->looking = assign->most;
	assign->free_count -= assign->looking;
	/* twins follow each other, the first one last */
	for (uint32_t i = end; i-- > assign->free_count;)
	{
		uint32_t	observation = assign->free[i];
		uint32_t	twin = assign->twin[observation];

		if (twin != ASSIGN_NONE && assign->distance[twin] > assign->distance[observation])
			assign->distance[observation] = assign->distance[twin];
	}
	find_takers(assign);
	if (atomic_load(assign->cancelled))
		return;
	/* those that are freed take the places of those that have proposed */
	for (uint32_t i = end; i-- > assign->free_count;)
	{
		uint32_t	observation = assign->free[i];
		uint32_t	freed = assign->taker[observation] == ASSIGN_NONE ? ASSIGN_NONE : propose(assign, observation);

		if (freed != ASSIGN_NONE)
			assign->free[--next] = freed;
		refused += freed == observation;
	}
	freed_count = end - next;
	memmove(assign->free + assign->free_count, assign->free + next, freed_count * sizeof(*assign->free));
	assign->free_count += freed_count;
	/* those that were given up had not looked in vain */
	if (refused > assign->looking / 2)
		assign->chunk = assign->chunk > 1 ? assign->chunk / 2 : 1;
	else if (assign->looking == assign->chunk && assign->chunk < CHUNK_MAX)
		assign->chunk *= 2;
}

bool
cpu_assign_go_on(struct cpu_assign *assign, struct search *search, int64_t end_ms)
{
	assign->cancelled = search->cancelled;
	do
	{
		if (assign->found < assign->observations)
			find_first(assign);
		else if (!assign->has_queue)
		{
			search->failed = !make_queue(assign, &search->failure);
			if (search->failed)
				return false;
		}
		else if (assign->proposed < assign->queue_count && assign->free_count < assign->chunk)
			propose_queued(assign);
		else if (assign->free_count > 0)
			propose_free(assign);
		else
			return true;
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
