/*
 * clusters.c
 *		Clusters of the references of a dataset on the CPU: DBSCAN with one answer; and thinning (thin.c).
 *
 * Clusters are found for the positions of the index: references at one place, of one group and with the same windows, have
 * the same neighbours, so a million coincident references cost no more than one.  The work goes phase by phase
 * (clusters_state.h), and in each phase item by item, of leaves or parts of them, nodes or blocks, side by side on all threads
 * that are free.  A phase begins when all items of the one before it are done; a turn may end after any item, and the next turn
 * goes on from there.
 *
 * Which threads do what, and when, decides which way sets are united in, but not which positions are in a set.  Sets are
 * numbered in the order of the dataset, by their first place, so the numbers do not depend on it either.
 */
#include "engine/cpu/clusters/clusters_state.h"

#include <stdlib.h>

#include "common/assertion.h"
#include "common/metric.h"
#include "engine/base/clock.h"
#include "engine/base/memory_block.h"
#include "engine/base/memory_columns.h"
#include "engine/base/thread_pool.h"

/* so many references are an item of PLACES, NUMBERS and RANKS */
#define BLOCK_PLACES 4096

/* a thread looks after so many ms whether another one waits for its seat; each has so many pieces a turn */
#define PIECE_MS 2
#define PIECES_PER_THREAD 32

/* comparing so many pairs, of which each may need its windows, or a geodesic, takes some 50 ms */
#define WINDOWS_MOST (UINT64_C(1) << 25)
#define GEODESICS_MOST (UINT64_C(1) << 15)

/* Lay out the memory, and return its bytes.  With NULL as memory, only compute the bytes. */
static size_t
place_columns(struct cpu_clusters *clusters, void *memory)
{
	const struct index_shape *shape = &clusters->index->shape;
	struct column_block block = {memory, 0};

	/* sorting leaves the order in the first column, and needs the others only before */
	if (clusters->thins)
		COLUMN_PLACE(&block, clusters->order, clusters->index->references);
	COLUMN_PLACE(&block, clusters->parent, shape->positions);
	COLUMN_PLACE(&block, clusters->number, shape->positions);
	COLUMN_PLACE(&block, clusters->position, clusters->index->references);
	COLUMN_PLACE(&block, clusters->core, shape->all_nodes);
	if (clusters->thins)
	{
		COLUMN_PLACE(&block, clusters->fate, shape->positions < CLUSTERS_LOT ? shape->positions : CLUSTERS_LOT);
		return block.bytes < clusters_sort_bytes(clusters) ? clusters_sort_bytes(clusters) : block.bytes;
	}
	COLUMN_PLACE(&block, clusters->first_core, shape->all_nodes);
	COLUMN_PLACE(&block, clusters->joined, shape->all_nodes);
	return block.bytes;
}

/* Begin a phase.  level: of ACROSS and JOIN. */
static void
begin_phase(struct cpu_clusters *clusters, enum clusters_phase phase, int level)
{
	const struct index_shape *shape = &clusters->index->shape;

	clusters->phase = phase;
	clusters->level = level;
	if (phase == CLUSTERS_JOIN)
		clusters->items = shape->nodes[level + 1];
	else if (phase == CLUSTERS_PLACES || phase == CLUSTERS_NUMBERS || phase == CLUSTERS_RANKS)
		clusters->items = (uint32_t) (clusters->index->references / BLOCK_PLACES + 1);
	else if (phase == CLUSTERS_DROP || phase == CLUSTERS_KEEP || phase == CLUSTERS_SETTLE)
		clusters->items = (clusters->lot_count - 1) / clusters->each + 1;
	else
		clusters->items = phase == CLUSTERS_INSIDE ? shape->nodes[0] : (shape->positions - 1) / clusters->each + 1;
	atomic_store(&clusters->next, 0);
}

static void
begin_next_phase(struct cpu_clusters *clusters)
{
	int			level = clusters->level;

	if (clusters->thins)
	{
		begin_phase(clusters, clusters_next_of_thinning(clusters), 0);
		return;
	}
	switch (clusters->phase)
	{
		case CLUSTERS_NUMBERS:
			begin_phase(clusters, CLUSTERS_COMPLETE, 0);
			return;
		case CLUSTERS_INSIDE:
			begin_phase(clusters, CLUSTERS_ACROSS, 0);
			return;
		case CLUSTERS_ACROSS:
			if (level + 1 < clusters->index->shape.levels)
				begin_phase(clusters, CLUSTERS_JOIN, level);
			else
				begin_phase(clusters, CLUSTERS_BORDER, 0);
			return;
		case CLUSTERS_JOIN:
			begin_phase(clusters, CLUSTERS_ACROSS, level + 1);
			return;
		default:
			begin_phase(clusters, clusters->phase + 1, 0);
			return;
	}
}

/* Return how many positions are an item where each may be compared with all others: a power of 2, at most those of a leaf. */
static uint32_t
positions_of_item(const struct cpu_index *index, enum geonn_metric metric)
{
	uint64_t	most = !geonn_metric_chord_decides(metric) ? GEODESICS_MOST : index->edges != NULL ? WINDOWS_MOST : UINT64_MAX;
	uint32_t	each = INDEX_WIDTH;

	while (each > 1 && each * (uint64_t) index->shape.positions > most)
		each /= 2;
	return each;
}

struct cpu_clusters *
cpu_clusters_create(const struct search *search, const struct cpu_index *index, struct failure *failure)
{
	const struct question *question = &search->question;
	struct cpu_clusters *clusters = calloc(1, sizeof(*clusters));

	if (clusters == NULL)
	{
		fail(failure, GEONN_ERROR_MEMORY, "not enough memory for a search");
		return NULL;
	}
	clusters->dataset = search->dataset;
	clusters->index = index;
	clusters->min_points = question->min_points;
	clusters->thins = question->thins;
	clusters->radius = question->max_distance;
	clusters->within = geonn_metric_radius_limit(search->dataset->metric, question->max_distance);
	clusters->certain = geonn_metric_certain_limit(search->dataset->metric, question->max_distance);
	clusters->each = positions_of_item(index, search->dataset->metric);
	clusters->bytes = place_columns(clusters, NULL);
	clusters->memory = memory_block_allocate(clusters->bytes, failure, clusters->thins ? "the thinning of %zu references" :
												 "the clusters of %zu references", index->references);
	if (clusters->memory == NULL)
	{
		free(clusters);
		return NULL;
	}
	place_columns(clusters, clusters->memory);
	if (clusters->thins && !clusters_sort(clusters, search, failure))
	{
		cpu_clusters_free(clusters);
		return NULL;
	}
	begin_phase(clusters, clusters->thins ? CLUSTERS_PLACES : CLUSTERS_CORES, 0);
	return clusters;
}

size_t
cpu_clusters_bytes(const struct cpu_clusters *clusters)
{
	return clusters->bytes;
}

void
cpu_clusters_free(struct cpu_clusters *clusters)
{
	if (clusters != NULL)
		memory_block_release(clusters->memory, clusters->bytes);
	free(clusters);
}

/* Note the position of each reference of a block, in the order of the index. */
static void
note_places(struct cpu_clusters *clusters, uint32_t block)
{
	const struct cpu_index *index = clusters->index;
	size_t		end = ((size_t) block + 1) * BLOCK_PLACES;
	uint32_t	position = 0;

	/* find the last position that begins at the block's first reference or before it */
	for (uint32_t behind = index->shape.positions; behind - position > 1;)
	{
		uint32_t	middle = position + (behind - position) / 2;

		if (index->start[middle] <= (size_t) block * BLOCK_PLACES)
			position = middle;
		else
			behind = middle;
	}
	for (size_t i = (size_t) block * BLOCK_PLACES; i < end && i < index->references; i++)
	{
		while (index->start[position + 1] <= i)
			position++;
		clusters->position[index->place[i]] = position;
	}
}

/* Number the sets whose first place is in a block of places. */
static void
number_sets(struct cpu_clusters *clusters, uint32_t block)
{
	size_t		end = ((size_t) block + 1) * BLOCK_PLACES;

	for (size_t place = (size_t) block * BLOCK_PLACES; place < end && place < clusters->index->references; place++)
	{
		uint32_t	position = clusters->position[place];
		uint32_t   *number;

		if (!clusters_is_core(clusters, position))
			continue;
		number = &clusters->number[clusters_root(clusters, position)];
		if (*number == 0)
			*number = ++clusters->numbers;
	}
}

static bool
is_on_one_thread(enum clusters_phase phase)
{
	return phase == CLUSTERS_NUMBERS || phase == CLUSTERS_RANKS || phase == CLUSTERS_SETTLE;
}

/*
 * Take items of the present phase and work on them, until none is left, or the piece or the turn is over.  The first piece does
 * one item in any case.
 */
static void
work_piece(void *context, size_t number)
{
	struct cpu_clusters *clusters = context;
	int64_t		begun_ms = now_ms();
	int64_t		end_ms = begun_ms + PIECE_MS;
	uint64_t	item;

	if (number > 0 && begun_ms >= clusters->end_ms)
		return;
	/* what is on one thread is one piece */
	if (end_ms > clusters->end_ms || is_on_one_thread(clusters->phase))
		end_ms = clusters->end_ms;
	do
	{
		item = atomic_fetch_add(&clusters->next, 1);
		if (item >= clusters->items)
			return;
		if (clusters->phase == CLUSTERS_PLACES)
			note_places(clusters, (uint32_t) item);
		else if (clusters->phase == CLUSTERS_NUMBERS)
			number_sets(clusters, (uint32_t) item);
		else if (clusters->phase == CLUSTERS_RANKS)
			clusters_rank_places(clusters, (size_t) item * BLOCK_PLACES, BLOCK_PLACES);
		else
			cpu_path->clusters_work(clusters, (uint32_t) item);
	} while (now_ms() < end_ms && !atomic_load_explicit(clusters->cancelled, memory_order_relaxed));
}

bool
cpu_clusters_go_on(struct cpu_clusters *clusters, const atomic_bool *cancelled, int64_t end_ms)
{
	clusters->cancelled = cancelled;
	clusters->end_ms = end_ms;
	while (clusters->phase != CLUSTERS_COMPLETE)
	{
		thread_pool_run(work_piece, clusters,
						is_on_one_thread(clusters->phase) ? 1 : PIECES_PER_THREAD * thread_pool_threads());
		if (atomic_load(&clusters->next) < clusters->items || atomic_load(cancelled))
			return false;
		begin_next_phase(clusters);
	}
	return true;
}

int64_t
cpu_clusters_of(const struct cpu_clusters *clusters, uint32_t place)
{
	uint32_t	position = clusters->position[place];
	bool		is_core = clusters_is_core(clusters, position);
	uint32_t	core = is_core ? position : atomic_load_explicit(&clusters->parent[position], memory_order_relaxed);
	int64_t		number = core == CLUSTERS_NONE ? 0 : clusters->number[clusters_root(clusters, core)];

	return is_core ? number : -number;
}

uint32_t
cpu_clusters_keeper(const struct cpu_clusters *clusters, uint32_t place)
{
	uint32_t	position = clusters->position[place];
	bool		is_kept = clusters_is_core(clusters, position);
	uint32_t	keeper = is_kept ? position : atomic_load_explicit(&clusters->parent[position], memory_order_relaxed);

	geonn_assert(keeper != CLUSTERS_NONE && clusters->number[keeper] > 0);
	return clusters->order[clusters->number[keeper] - 1];
}
