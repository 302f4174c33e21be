/*
 * clusters_state.h
 *		What the work on clusters has at any time, for the files of this room.
 *
 * A set is a tree of core positions: each has a parent, and a root is its own.  The parent of a core position has never a
 * greater number, so the root is the least of its set.  Threads unite sets side by side, without locks.
 */
#ifndef GEONN_CPU_CLUSTERS_STATE_H
#define GEONN_CPU_CLUSTERS_STATE_H

#include "engine/cpu/clusters/clusters.h"
#include "engine/cpu/index/index.h"

/* no position */
#define CLUSTERS_NONE UINT32_MAX

/*
 * The phases, in their order; ACROSS and JOIN alternate, level by level.  A thinning has PLACES, RANKS, then DROP, KEEP and
 * SETTLE for each lot of positions, and BORDER at last (thin.c); its core positions are those that are kept.  In brackets:
 * what a phase goes through; parts are `each` positions of a leaf, or of the lot.
 */
enum clusters_phase
{
	CLUSTERS_CORES,				/* [parts] which positions are core */
	CLUSTERS_INSIDE,			/* [leaves] unite core positions of one leaf */
	CLUSTERS_ACROSS,			/* [parts] unite core positions below nodes of the level that have one parent */
	CLUSTERS_JOIN,				/* [nodes of the level above] which nodes have one set */
	CLUSTERS_BORDER,			/* [parts] the nearest core position of all others */
	CLUSTERS_PLACES,			/* [blocks of references, in the order of the index] the position of each place */
	CLUSTERS_NUMBERS,			/* [blocks of places] number the sets in the order of places; on one thread */
	CLUSTERS_RANKS,				/* [blocks of places, by rank] number the positions by their first places; on one thread */
	CLUSTERS_DROP,				/* [parts of the lot] which have a kept position within the radius */
	CLUSTERS_KEEP,				/* [parts of the lot] which of the others have no position of the lot before them near */
	CLUSTERS_SETTLE,			/* [parts of the lot] which of the rest have a kept one there; on one thread */
	CLUSTERS_COMPLETE
};

struct cpu_clusters
{
	const struct dataset *dataset;
	const struct cpu_index *index;
	uint32_t	min_points;
	bool		thins;
	double		radius;			/* metres */
	double		within;			/* every pair within the radius has at most this squared chord */
	double		certain;		/* every pair with at most this squared chord is within the radius */
	uint32_t	each;			/* positions of a part, so few that it takes no longer than a turn */
	const atomic_bool *cancelled;	/* of the present turn */
	int64_t		end_ms;			/* of the present turn */

	enum clusters_phase phase;
	int			level;			/* of ACROSS and JOIN: the level of the nodes that are united */
	uint32_t	items;			/* how many parts, leaves, nodes or blocks the phase goes through */
	atomic_uint_fast64_t next;	/* the next item that a thread takes */

	/*
	 * [positions] of a core position: its parent.  Of another one, after BORDER: its nearest core position, or
	 * CLUSTERS_NONE.
	 */
	_Atomic uint32_t *parent;

	/*
	 * [nodes of all levels] a bit for each core position of a leaf, and for each child of another node that has core
	 * positions below it
	 */
	_Atomic uint32_t *core;
	uint32_t   *first_core;		/* [nodes of all levels] the first core position below each node, or CLUSTERS_NONE */
	uint8_t    *joined;			/* [nodes of all levels] all core positions below the node are surely of one set */
	uint32_t   *position;		/* [references] by place */
	uint32_t   *number;			/* [positions] of each root; of a thinning the rank of each position; from 1 on */
	uint32_t	numbers;		/* how many have one */

	/* of a thinning */
	uint32_t   *order;			/* [references] places by rank; after RANKS the first place of each position, by number */
	uint32_t	lot_first;		/* how many positions come before the lot */
	uint32_t	lot_count;
	uint8_t    *fate;			/* [lot_count] enum clusters_fate */
	void	   *memory;
	size_t		bytes;
};

/* what is known of a position of the lot */
enum clusters_fate
{
	FATE_OPEN,
	FATE_KEPT,
	FATE_DROPPED
};

/* so many positions are decided together, as a lot */
#define CLUSTERS_LOT 4096

/* Return the position of a member of the lot. */
static inline uint32_t
clusters_member(const struct cpu_clusters *clusters, uint32_t member)
{
	return clusters->position[clusters->order[clusters->lot_first + member]];
}

/* Add a position to the core ones, or remove it.  No other thread may read or write them meanwhile. */
static inline void
clusters_set_core(struct cpu_clusters *clusters, uint32_t position, bool is_core)
{
	const struct index_shape *shape = &clusters->index->shape;

	for (int level = 0; level < shape->levels; level++)
	{
		uint32_t	bit = UINT32_C(1) << position % INDEX_WIDTH;
		_Atomic uint32_t *word = &clusters->core[shape->first[level] + (position /= INDEX_WIDTH)];
		uint32_t	others = atomic_load_explicit(word, memory_order_relaxed) & ~bit;

		atomic_store_explicit(word, is_core ? others | bit : others, memory_order_relaxed);
		if (others != 0)
			return;
	}
}

/* Sort the places of a thinning by rank.  Returns false with the failure if memory is short. */
extern bool clusters_sort(struct cpu_clusters *clusters, const struct search *search, struct failure *failure);

/* Return how many bytes of the clusters' memory that takes. */
extern size_t clusters_sort_bytes(const struct cpu_clusters *clusters);

/* Number the positions that have a first place in a block of `count` places from `first` on, by rank. */
extern void clusters_rank_places(struct cpu_clusters *clusters, size_t first, size_t count);

/* Return the phase of a thinning that follows the present one, and prepare it. */
extern enum clusters_phase clusters_next_of_thinning(struct cpu_clusters *clusters);

static inline bool
clusters_is_core(const struct cpu_clusters *clusters, uint32_t position)
{
	return clusters->core[position / INDEX_WIDTH] >> position % INDEX_WIDTH & 1;
}

/* Return the root of a core position's set, and shorten the way to it. */
static inline uint32_t
clusters_root(const struct cpu_clusters *clusters, uint32_t position)
{
	uint32_t	parent = atomic_load_explicit(&clusters->parent[position], memory_order_relaxed);

	while (parent != position)
	{
		uint32_t	above = atomic_load_explicit(&clusters->parent[parent], memory_order_relaxed);

		/* another thread may have shortened it already */
		if (above != parent)
			(void) atomic_compare_exchange_strong_explicit(&clusters->parent[position], &parent, above,
														   memory_order_relaxed, memory_order_relaxed);
		position = above;
		parent = atomic_load_explicit(&clusters->parent[position], memory_order_relaxed);
	}
	return position;
}

/* Unite the sets of two core positions: the greater root gets the lesser one as its parent. */
static inline void
clusters_unite(struct cpu_clusters *clusters, uint32_t a, uint32_t b)
{
	for (;;)
	{
		uint32_t	lesser;
		uint32_t	greater;
		uint32_t	root;

		a = clusters_root(clusters, a);
		b = clusters_root(clusters, b);
		if (a == b)
			return;
		lesser = a < b ? a : b;
		greater = root = a < b ? b : a;
		if (atomic_compare_exchange_strong_explicit(&clusters->parent[greater], &root, lesser, memory_order_relaxed,
													memory_order_relaxed))
			return;
	}
}

#endif							/* GEONN_CPU_CLUSTERS_STATE_H */
