/*
 * arcs_answer.h
 *		What searches by arcs for points and for shapes share: visits, polygons around a place, and how shapes that were
 *		found become pairs.
 *
 * For arcs_search.c, whose essay says more, and for arcs_probe_search.c.
 */
#ifndef GEONN_CPU_ARCS_ANSWER_H
#define GEONN_CPU_ARCS_ANSWER_H

#include "engine/cpu/arcs/arcs_found.h"
#include "engine/cpu/base/floats.h"
#include "engine/cpu/walk/settled.h"

/*
 * A search asks is_over() after this many observations, or measured arcs, and looks at `cancelled` after this many leaves.
 */
#define ROWS_UNTIL_LOOK 32
#define MEASURED_UNTIL_LOOK 4096
#define LEAVES_UNTIL_LOOK 4096

/* the same of a shape that asks: steps are leaves, parts, or two arcs by brute force */
#define STEPS_UNTIL_LOOK 64

/* If a shape that asks has more pairs than this, merges put them into order, which a turn may leave to the next one. */
#define SORTED_AT_ONCE 16384

/* Count the candidates of an observation if there are at most so many times k shapes: the search itself takes longer. */
#define COUNTED_EACH 8

/* Return whether the walk may end early. */
static inline bool
is_stopped(struct work *work)
{
	if (++work->leaves % LEAVES_UNTIL_LOOK == 0 &&
		atomic_load_explicit(work->piece->search->cancelled, memory_order_relaxed))
		work->over = true;
	return work->over || work->short_of_memory;
}

/* Return whether to stop the search for a shape, because the turn is over or for another reason. */
static inline bool
is_too_late(struct work *work)
{
	if (++work->steps % STEPS_UNTIL_LOOK == 0 && work->piece->is_over(work->piece->turn, 0))
		work->over = true;
	return is_stopped(work);
}

/* Insert a visit among the visits from `first` on; the nearest comes last.  Returns how many visits there are now. */
FLOATS_INLINE uint32_t
add_visit(struct visit *visits, uint32_t first, uint32_t count, struct visit next)
{
	uint32_t	at = count++;

	for (; at > first && visits[at - 1].gap < next.gap; at--)
		visits[at] = visits[at - 1];
	visits[at] = next;
	return count;
}

/*
 * Return the squares of the gaps between a box and a node's boxes, along each axis from `low` to `high`; of a place both are
 * the same.
 */
FLOATS_INLINE floats
gaps_between(const float *low, const float *high, const struct shape_boxes_node *node)
{
	const floats zero = {0};
	floats		gap[3];

	for (int axis = 0; axis < 3; axis++)
	{
		floats		below = floats_load(node->low[axis]) - floats_all(high[axis]);
		floats		above = floats_all(low[axis]) - floats_load(node->high[axis]);

		below = (floats) ((float_keys) below & (below > zero));
		above = (floats) ((float_keys) above & (above > zero));
		gap[axis] = below + above;
	}
	return floats_chord(gap[0], gap[1], gap[2]);
}

FLOATS_INLINE void
prefetch(const void *from, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += 64)
		__builtin_prefetch((const char *) from + at);
}

/*
 * Fetch into the cache what a visit will read: a node; of a node just above leaves, also the leaves;
 * of a leaf, its vertices, its shapes and the first one's tag.
 */
FLOATS_INLINE void
prefetch_visit(const struct work *work, const struct visit *visit)
{
	const struct cpu_arcs *arcs = work->arcs;

	if (visit->level >= 0)
		prefetch(&arcs->boxes.node[visit->level][visit->number], sizeof(struct shape_boxes_node));
	if (visit->level == 0)
		prefetch(&arcs->leaf[visit->number * SHAPE_BOXES_WIDTH], SHAPE_BOXES_WIDTH * sizeof(struct cpu_arcs_leaf));
	if (visit->level < 0)
	{
		const struct cpu_arcs_leaf *leaf = &arcs->leaf[visit->number];

		for (int i = 0; i < CPU_ARCS_LEAF; i++)
			__builtin_prefetch(&arcs->vertices.vertex[leaf->vertex[i]]);
		__builtin_prefetch(&arcs->vertices.vertex[leaf->vertex[CPU_ARCS_LEAF - 1] + 1]);
		__builtin_prefetch(leaf->shape);
		if (!work->conditions.plain)
			__builtin_prefetch(&work->conditions.dataset->tag[leaf->arc[0]]);
	}
}

/*
 * Add the boxes within the limit, of the node of a visit, to the visits; gaps are those to a box from `low` to `high`, and the
 * nearest comes last.  Returns how many visits there are now.
 */
FLOATS_INLINE uint32_t
add_visits(const struct work *work, const float *low, const float *high, struct visit from, struct visit *visits, uint32_t count)
{
	floats		gaps = gaps_between(low, high, &work->arcs->boxes.node[from.level][from.number]);
	uint32_t	first = count;

	for (uint32_t bits = floats_within(gaps, floats_all(work->limit_squared)); bits != 0; bits &= bits - 1)
	{
		uint32_t	i = (uint32_t) __builtin_ctz(bits);

		count = add_visit(visits, first, count,
						  (struct visit) {gaps[i], from.level - 1, from.number * SHAPE_BOXES_WIDTH + i});
	}
	if (count > first)
		prefetch_visit(work, &visits[count - 1]);
	if (count > first + 1)
		prefetch_visit(work, &visits[count - 2]);
	return count;
}

/* ---- polygons ---- */

/* Offer a polygon if the conditions allow it and it holds a place, which is the vertex `own` of a shape. */
static inline void
ask_polygon(struct work *work, uint32_t number, struct geonn_vector place, double longitude, uint32_t own)
{
	const struct shape_polygons *polygons = &work->arcs->polygons;
	uint32_t	arc = polygons->polygon[number].arc;

	if (arcs_is_candidate(&work->conditions, arc) &&
		shape_polygons_side(polygons, number, place, longitude) != GEONN_OUTSIDE)
		offer(work, (struct maybe) {0.0, (uint32_t) work->piece->search->dataset->shape[arc], arc, NO_VERTEX, own}, 0.0);
}

/* Return bits: bit i is set if box i of a node holds the place. */
FLOATS_INLINE uint32_t
holding(const double *place, const struct shape_boxes_node *node)
{
	uint32_t	bits = (1u << FLOATS) - 1;

	for (int axis = 0; axis < 3; axis++)
	{
		floats		at = floats_all((float) place[axis]);

		bits &= floats_within(floats_load(node->low[axis]), at) &
			floats_within(at, floats_load(node->high[axis]));
	}
	return bits;
}

/* Offer the polygons that hold a place, which is the vertex `own` of a shape. */
static inline void
ask_polygons(struct work *work, struct geonn_vector place, double longitude, uint32_t own)
{
	const struct shape_boxes *boxes = &work->arcs->polygons.boxes;
	struct visit visits[SHAPE_BOXES_VISITS];
	uint32_t	count = boxes->levels > 0;
	const double from[3] = {place.x, place.y, place.z};

	visits[0] = (struct visit) {0.0f, boxes->levels - 1, 0};
	while (count > 0 && !is_stopped(work))
	{
		struct visit next = visits[--count];
		const struct shape_boxes_node *node;
		uint32_t	bits;

		if (next.level < 0)
		{
			ask_polygon(work, next.number, place, longitude, own);
			continue;
		}
		node = &boxes->node[next.level][next.number];
		bits = holding(from, node);
		for (; bits != 0; bits &= bits - 1)
			visits[count++] = (struct visit) {
				0.0f, next.level - 1, next.number * SHAPE_BOXES_WIDTH + (uint32_t) __builtin_ctz(bits)
			};
	}
}

/* ---- the answer ---- */

/* Return the distance of the observation to an arc, or something greater where that is beyond this limit, a chord. */
typedef double (*measure_maybe) (const struct work *work, const struct maybe *maybe, double limit);

/* Make room for an answer of so many shapes, and as much for merges. */
static inline bool
reserve_chosen(struct work *work, size_t count)
{
	struct candidate *larger;

	if (2 * count <= work->chosen_capacity)
		return true;
	larger = realloc(work->chosen, 4 * count * sizeof(*larger));
	work->short_of_memory = work->short_of_memory || larger == NULL;
	if (larger == NULL)
		return false;
	work->chosen = larger;
	work->chosen_capacity = 4 * count;
	return true;
}

/* Return whether what was measured of a shape stays, if an arc has this distance from this place of the observation. */
static inline bool
is_no_better(const struct found *found, double distance, uint32_t arc, uint32_t own)
{
	return distance > found->distance ||
		(distance == found->distance && (arc > found->arc || (arc == found->arc && own >= found->own)));
}

/* Note the distance of an arc of a shape that was found, and where on the observation. */
static inline void
note_distance(struct found *found, double distance, uint32_t arc, uint32_t own)
{
	if (is_no_better(found, distance, arc, own))
		return;
	found->distance = distance;
	found->arc = arc;
	found->own = own;
}

/* Return whether to leave the answer of an observation: the search is cancelled or, of a shape that asks, the turn is over. */
static bool
is_answer_late(void *context)
{
	struct work *work = context;

	work->over = atomic_load(work->piece->search->cancelled) ||
		(work->piece->probes != NULL && work->piece->is_over(work->piece->turn, 0));
	return work->over;
}

/* Measure the shapes that may be among the answers, and choose the answers.  Returns how many pairs the observation has. */
FLOATS_INLINE size_t
choose(struct work *work, const struct cutoff *cutoff, const measure_maybe measure)
{
	while (work->maybe_seen < work->maybe_count)
	{
		struct maybe maybe = work->maybe[work->maybe_seen++];
		struct found *found = find(work, maybe.shape);
		double		limit = fmin(work->limit, found->upper + SHAPE_ARCS_MARGIN);

		if (maybe.lower > limit)
			continue;
		__builtin_prefetch(&work->piece->search->dataset->tag[maybe.arc]);
		/* Where shapes touch, many arcs are at distance 0, and one of them stands for all. */
		if (maybe.vertex != MEASURED_VERTEX && !is_no_better(found, 0.0, maybe.arc, maybe.own))
			note_distance(found, maybe.vertex == NO_VERTEX ? 0.0 : measure(work, &maybe, limit), maybe.arc, maybe.own);
		work->maybe[work->maybe_left++] = maybe;
		if (++work->measured % MEASURED_UNTIL_LOOK == 0 && is_answer_late(work))
			return 0;
	}
	if (!reserve_chosen(work, work->found))
		return 0;
	while (work->chosen_seen < work->maybe_left)
	{
		struct found *found = find(work, work->maybe[work->chosen_seen++].shape);

		if (found->distance >= 0.0 && arcs_is_within_radiuses(&work->conditions, found->arc, found->distance))
			work->chosen[work->chosen_count++] = (struct candidate) {found->distance, found->arc, found->own};
		found->distance = -1.0;
		if (work->chosen_seen % MEASURED_UNTIL_LOOK == 0 && is_answer_late(work))
			return 0;
	}
	if (work->piece->probes != NULL && work->chosen_count > SORTED_AT_ONCE &&
		!candidates_merge(&work->merging, work->chosen, work->chosen_count, is_answer_late, work))
		return 0;
	return candidates_choose(work->chosen, work->chosen_count, work->question, cutoff);
}

/*
 * Return how many shapes with upper bounds give an observation its limit (arcs_search.c): k, or all candidates where these are
 * fewer.  Too few would lose answers, too many only leave the limit as it is.  So shapes are counted that the conditions allow
 * at any distance, as offer() takes no others, or, where they are many beside k, just those of the dataset.
 */
static inline uint32_t
limiting_shapes(const struct work *work)
{
	const struct cpu_arcs *arcs = work->arcs;
	uint32_t	k = work->question->k < arcs->shapes ? work->question->k : arcs->shapes;
	uint32_t	count = 0;

	if (work->conditions.plain || arcs->shapes > GEONN_K_MAX || arcs->shapes > COUNTED_EACH * k)
		return k;
	for (uint32_t i = 0; i < arcs->shapes && count < k; i++)
		count += arcs_is_candidate(&work->conditions, arcs->shape_arc[i]);
	return count;
}

/*
 * Begin with an observation and a limit of its chords.  The values in row `number` of the batch are read once, because the
 * client can change the batch meanwhile.
 */
static inline void
begin_observation(struct work *work, uint32_t number, double limit)
{
	cpu_conditions_read(&work->conditions.of, &work->piece->search->columns, number);
	if (work->piece->search->columns.radius != NULL)
		limit = fmin(limit, sqrt(geonn_metric_radius_limit(GEONN_METRIC_SPHERE, work->conditions.of.radius)) + SHAPE_ARCS_MARGIN);
	set_limit(work, limit);
	work->k = limiting_shapes(work);
	work->best_count = work->found = 0;
	work->maybe_count = work->maybe_seen = work->maybe_left = 0;
	work->chosen_seen = work->chosen_count = 0;
	work->merging = (struct candidates_merging) {.run = 1};
	if (++work->stamp == 0)
	{
		memset(work->table, 0, work->table_size * sizeof(*work->table));
		work->stamp = 1;
	}
}

/* End with the observation of a row: choose its pairs, and keep them. */
FLOATS_INLINE void
end_observation(struct work *work, uint32_t row, const measure_maybe measure)
{
	struct cpu_neighbours_piece *piece = work->piece;
	struct cutoff cutoff = piece->first + row == piece->search->first ? piece->search->cutoff : (struct cutoff) {0};
	size_t		count = 0;

	if (!work->over && !work->short_of_memory)
		count = choose(work, &cutoff, measure);
	if (count > piece->pairs_max)
		count = piece->pairs_max;
	piece->short_of_memory = piece->short_of_memory || work->short_of_memory;
	work->over = work->over || work->short_of_memory ||
		!CPU_PATH_NAME(cpu_settled_pairs) (piece, row, work->chosen, (uint32_t) count);
	if (work->over)
		return;
	piece->answered++;
	work->pairs += count;
}

static inline void
free_work(struct work *work)
{
	free(work->best);
	free(work->best_shape);
	free(work->table);
	free(work->maybe);
	free(work->chosen);
}

/* Answer the observations of a piece, each by a call of `answer` with its row, until the piece is over. */
FLOATS_INLINE void
answer_piece(struct cpu_neighbours_piece *piece, void (*const answer) (struct work *work, uint32_t row))
{
	const struct search *search = piece->search;
	uint32_t	k = search->question.k;
	struct work work = {
		.piece = piece,
		.arcs = piece->arcs,
		.bundle = {.end = piece->answered},
		.limit = SHAPE_BEYOND_CHORDS,
		.question = &search->question,
		.conditions = arcs_conditions_of(search->dataset),
		.widest = fmin(sqrt(geonn_metric_radius_limit(GEONN_METRIC_SPHERE, search->question.max_distance)) + SHAPE_ARCS_MARGIN,
					   SHAPE_BEYOND_CHORDS),
		.best = malloc(((size_t) k + 1) * sizeof(*work.best)),
		.best_shape = malloc(((size_t) k + 1) * sizeof(*work.best_shape))
	};
	uint32_t	next_look = ROWS_UNTIL_LOOK;

	piece->short_of_memory = work.best == NULL || work.best_shape == NULL || !grow_table(&work);
	work.over = piece->short_of_memory;
	while (piece->answered < piece->count && !work.over)
	{
		answer(&work, piece->row[piece->answered]);
		if (piece->answered < next_look && work.measured < MEASURED_UNTIL_LOOK)
			continue;
		if (piece->is_over(piece->turn, work.pairs))
			work.over = true;
		work.pairs = work.measured = 0;
		next_look = piece->answered + ROWS_UNTIL_LOOK;
	}
	free_work(&work);
}

#endif							/* GEONN_CPU_ARCS_ANSWER_H */
