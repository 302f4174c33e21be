/*
 * arcs_search.c
 *		Finds the nearest shapes of observations by the index of arcs.
 *
 * Observations come along the curve.  For each, the polygons around it are found first: their shapes
 * are at distance 0.  Then a walk goes through the boxes of leaves, the nearest first, as far as a limit,
 * a chord in radii that shrinks as shapes are found.  It begins with the limit of the observation before and the way from
 * there, where no condition can make that wrong.
 *
 * A leaf gives two bounds for each arc, from the distance of the observation to the arc's chord
 * in float64: with the arc's sagitta less and more (arcs.c).  The upper bounds of k shapes, each the least
 * over the arcs that were seen of the shape, give the limit.  An arc stays a candidate while its lower bound is
 * within the limit, and within the upper bound of its own shape.  At the end those that are left are measured by
 * common/arc.h, with the vertices that are as near, and candidates.c puts the least distance of each shape in order.
 * Arcs whose distances are equal are all measured (see below).  The first of them stands for its shape in the answer: the
 * order of shapes is that of any of their arcs.
 *
 *
 * The margin
 *
 * Limits are upper bounds and MARGIN = 2^-45, or 256 e where e = 2^-53.  Let arcs A and B have the
 * distances a <= b as common/arc.h computes them; then the lower bound of A must be within the upper bound of
 * B and the margin.  Both distances are within 10 nm, 14.2 e, of the truth, and as a chord grows by no more
 * than its angle, the true chord of A is at most 28.4 e greater than that of B.  The vectors that the index has
 * are within 5.44 e of the truth, for each arc (arc.h).  The distance to a chord comes from w = p - a and d = b - a:
 * each part of them is off by 2 e; the fraction t = w d / d d, times |d|, by 8 e |w| <= 16 e; a part of w - t d by
 * 20 e, the distance by 40 e at most.  Its square and root add 2 e.  Together 28.4 + 2 * 5.44 + 2 * 42 = 123 e.
 *
 * max_distance gives a limit by geonn_metric_radius_limit(), which holds for points within 14.2 e of their truth; the
 * same margin is added.  Distances decide at the end.  The same margin tells whether a shape is within its own radius.
 */
#include "engine/cpu/arcs.h"

#include <stdlib.h>
#include <string.h>

#include "common/arc.h"
#include "engine/cpu/arcs_conditions.h"
#include "engine/cpu/floats.h"
#include "engine/cpu/neighbours.h"
#include "engine/cpu/settled.h"

#define MARGIN 0x1p-45

/* longer than any chord */
#define BEYOND_CHORDS 2.25

/* the number of no polygon */
#define NO_POLYGON UINT32_MAX

#define TABLE_MIN 64

/* is_over() is asked after so many observations, or measured arcs; `cancelled` after so many leaves */
#define ROWS_UNTIL_LOOK 32
#define MEASURED_UNTIL_LOOK 4096
#define LEAVES_UNTIL_LOOK 4096

/* a shape that has been found */
struct found
{
	double		upper;			/* chord, in radii: the shape is no farther */
	double		distance;		/* metres, the least that was measured; -1: it is chosen */
	uint32_t	arc;			/* the first arc in the dataset that has it */
	uint32_t	place;			/* the shape's first arc in the dataset */
	uint32_t	stamp;			/* of the observation; else the entry is free */
};

/* an arc that may be the nearest one of its shape, with the least chord that it may have */
struct maybe
{
	double		lower;
	uint32_t	place;			/* its shape */
	uint32_t	position;		/* of the arc in the index */
	uint32_t	polygon;		/* the polygon that has the observation inside, instead of an arc; or NO_POLYGON */
};

/* what the walk has still to visit */
struct visit
{
	float		gap;			/* the square of the distance, a little less */
	int32_t		level;			/* of a node; -1: a leaf */
	uint32_t	number;
};

struct work
{
	struct cpu_neighbours_piece *piece;
	const struct cpu_arcs *arcs;
	const struct question *question;
	double		widest;			/* the limit that max_distance gives */

	/* the observation */
	struct geonn_vector from;
	struct arcs_conditions conditions;
	double		limit;			/* chord; what is farther does not matter */
	float		limit_squared;	/* a little more */

	/* the k shapes with the least upper bounds so far, in that order, with these bounds and their places */
	uint32_t	best_count;
	double	   *best;
	uint32_t   *best_place;

	struct found *table;		/* open addressing */
	uint32_t	table_size;		/* a power of two */
	uint32_t	found;
	uint32_t	stamp;

	struct maybe *maybe;
	size_t		maybe_count;
	size_t		maybe_capacity;
	struct candidate *chosen;
	size_t		chosen_capacity;

	uint64_t	pairs;			/* since the caller was asked whether to stop */
	uint64_t	measured;
	uint32_t	leaves;
	bool		short_of_memory;
	bool		over;
};

/* ---- what has been found ---- */

static void
set_limit(struct work *work, double limit)
{
	work->limit = limit;
	work->limit_squared = (float) (limit * limit * (1.0 + 0x1p-18));
}

/* The entry of a shape, or the free entry that it would have. */
static struct found *
find(const struct work *work, uint32_t place)
{
	uint32_t	at = place * UINT32_C(2654435761) >> 7;

	for (;; at++)
	{
		struct found *found = &work->table[at & (work->table_size - 1)];

		if (found->stamp != work->stamp || found->place == place)
			return found;
	}
}

/* Make the table twice as large. */
static bool
grow_table(struct work *work)
{
	struct found *former = work->table;
	uint32_t	former_size = work->table_size;

	work->table_size = former_size > 0 ? 2 * former_size : TABLE_MIN;
	work->table = calloc(work->table_size, sizeof(*work->table));
	if (work->table == NULL)
	{
		work->table = former;
		work->table_size = former_size;
		work->short_of_memory = true;
		return false;
	}
	for (uint32_t i = 0; i < former_size; i++)
		if (former[i].stamp == work->stamp)
			*find(work, former[i].place) = former[i];
	free(former);
	return true;
}

/* Put a shape among the best, with its new upper bound. */
static void
rank(struct work *work, uint32_t place, double former, double upper)
{
	uint32_t	k = work->question->k;
	uint32_t	at;

	/* it leaves its former place, if it has one */
	for (at = work->best_count; at > 0 && work->best[at - 1] >= former; at--)
		if (work->best_place[at - 1] == place)
		{
			work->best_count--;
			memmove(&work->best[at - 1], &work->best[at], (work->best_count - (at - 1)) * sizeof(*work->best));
			memmove(&work->best_place[at - 1], &work->best_place[at],
					(work->best_count - (at - 1)) * sizeof(*work->best_place));
			break;
		}
	if (work->best_count == k && upper >= work->best[k - 1])
		return;
	if (work->best_count < k)
		work->best_count++;
	for (at = work->best_count - 1; at > 0 && work->best[at - 1] > upper; at--)
	{
		work->best[at] = work->best[at - 1];
		work->best_place[at] = work->best_place[at - 1];
	}
	work->best[at] = upper;
	work->best_place[at] = place;
	if (work->best_count == k && work->best[k - 1] + MARGIN < work->limit)
		set_limit(work, work->best[k - 1] + MARGIN);
}

/*
 * Take note of an arc, or of the inside of a polygon, with bounds of its chord.
 */
static void
offer(struct work *work, struct maybe maybe, double upper)
{
	struct found *found;

	if (!arcs_is_candidate(&work->conditions, maybe.place) ||
		arcs_is_beyond_radius(&work->conditions, maybe.place, maybe.lower - MARGIN) ||
		(2 * work->found >= work->table_size && !grow_table(work)))
		return;
	found = find(work, maybe.place);
	if (found->stamp != work->stamp)
	{
		*found = (struct found) {INFINITY, INFINITY, UINT32_MAX, maybe.place, work->stamp};
		work->found++;
	}
	else if (maybe.lower > found->upper + MARGIN)
		return;
	if (upper < found->upper)
	{
		if (work->question->k > 0 && arcs_is_within_radius(&work->conditions, maybe.place, upper + MARGIN))
			rank(work, maybe.place, found->upper, upper);
		found->upper = upper;
	}
	if (work->maybe_count == work->maybe_capacity)
	{
		size_t		capacity = work->maybe_capacity > 0 ? 2 * work->maybe_capacity : TABLE_MIN;
		struct maybe *larger = realloc(work->maybe, capacity * sizeof(*larger));

		work->short_of_memory = work->short_of_memory || larger == NULL;
		if (larger == NULL)
			return;
		work->maybe = larger;
		work->maybe_capacity = capacity;
	}
	work->maybe[work->maybe_count++] = maybe;
}

/* ---- leaves ---- */

typedef double doubles __attribute__((vector_size(8 * CPU_ARCS_LEAF)));
typedef int64_t double_bits __attribute__((vector_size(8 * CPU_ARCS_LEAF)));

FLOATS_INLINE doubles
doubles_load(const double *from)
{
	doubles		a;

	memcpy(&a, from, sizeof(a));
	return a;
}

/* bit i: lane i of a is at most lane i of b */
FLOATS_INLINE uint32_t
doubles_within(const doubles *a, const doubles *b)
{
#ifdef __AVX2__
	const double *first = (const double *) a;
	const double *second = (const double *) b;
	__m256d		low = _mm256_cmp_pd(_mm256_loadu_pd(first), _mm256_loadu_pd(second), _CMP_LE_OQ);
	__m256d		high = _mm256_cmp_pd(_mm256_loadu_pd(first + 4), _mm256_loadu_pd(second + 4), _CMP_LE_OQ);

	return (uint32_t) _mm256_movemask_pd(low) | (uint32_t) _mm256_movemask_pd(high) << 4;
#else
	uint32_t	bits = 0;

	for (int i = 0; i < CPU_ARCS_LEAF; i++)
		bits |= (uint32_t) ((*a)[i] <= (*b)[i]) << i;
	return bits;
#endif
}

/* Offer an arc of a leaf, by the square of the distance to its chord. */
static void
offer_lane(struct work *work, uint32_t leaf, uint32_t lane, double square, double sagitta)
{
	double		distance = sqrt(square);
	uint32_t	position = leaf * CPU_ARCS_LEAF + lane;

	if (distance - sagitta <= work->limit)
		offer(work, (struct maybe) {distance - sagitta, work->arcs->place[position], position, NO_POLYGON},
			  distance + sagitta);
}

/* Offer the arcs of a leaf. */
static void
visit_leaf(struct work *work, uint32_t number)
{
	const struct cpu_arcs_leaf *leaf = &work->arcs->leaf[number];
	doubles		ax = doubles_load(leaf->a[0]);
	doubles		ay = doubles_load(leaf->a[1]);
	doubles		az = doubles_load(leaf->a[2]);
	doubles		dx = doubles_load(leaf->b[0]) - ax;
	doubles		dy = doubles_load(leaf->b[1]) - ay;
	doubles		dz = doubles_load(leaf->b[2]) - az;
	doubles		wx = work->from.x - ax;
	doubles		wy = work->from.y - ay;
	doubles		wz = work->from.z - az;
	doubles		chord = dx * dx + dy * dy + dz * dz;

	/* of an arc without length any fraction will do, but NaN */
	doubles		t = (wx * dx + wy * dy + wz * dz) / (chord + 0x1p-200);
	double_bits within = t < 1.0;
	doubles		square;
	doubles		sagitta = CPU_ARCS_SAGITTA * chord;
	doubles		bound = work->limit + sagitta;
	uint32_t	bits;

	t = (doubles) (((double_bits) t & within) | ((double_bits) (1.0 - (doubles) {0}) & ~within));
	t = (doubles) ((double_bits) t & (t > 0.0));
	wx -= t * dx;
	wy -= t * dy;
	wz -= t * dz;
	square = wx * wx + wy * wy + wz * wz;
	bound *= bound;
	bits = doubles_within(&square, &bound);
	if (bits == 0)
		return;
	if ((bits & (bits - 1)) != 0)
	{
		/* the nearest chord first: it leaves few others within the limit */
		uint32_t	nearest = (uint32_t) __builtin_ctz(bits);

		for (uint32_t rest = bits & (bits - 1); rest != 0; rest &= rest - 1)
			nearest = square[__builtin_ctz(rest)] < square[nearest] ? (uint32_t) __builtin_ctz(rest) : nearest;
		offer_lane(work, number, nearest, square[nearest], sagitta[nearest]);
		bound = work->limit + sagitta;
		bound *= bound;
		bits &= doubles_within(&square, &bound) & ~(1u << nearest);
	}
	for (; bits != 0; bits &= bits - 1)
	{
		uint32_t	i = (uint32_t) __builtin_ctz(bits);

		offer_lane(work, number, i, square[i], sagitta[i]);
	}
}

/* Whether the walk may end early. */
static bool
is_stopped(struct work *work)
{
	if (++work->leaves % LEAVES_UNTIL_LOOK == 0 &&
		atomic_load_explicit(work->piece->search->cancelled, memory_order_relaxed))
		work->over = true;
	return work->over || work->short_of_memory;
}

/* ---- the walk ---- */

/* Fetch what a visit needs into the cache. */
FLOATS_INLINE void
prefetch(const struct work *work, const struct visit *visit)
{
	const char *from = visit->level < 0 ? (const char *) &work->arcs->leaf[visit->number] :
		(const char *) &work->arcs->boxes.node[visit->level][visit->number];
	size_t		bytes = visit->level < 0 ? sizeof(struct cpu_arcs_leaf) : sizeof(struct cpu_boxes_node);

	for (size_t at = 0; at < bytes; at += 64)
		__builtin_prefetch(from + at);
}

/*
 * Add what a node has within the limit to the visits, the nearest last.  Returns how many there are now.
 */
static uint32_t
add_visits(const struct work *work, const struct cpu_boxes_node *node, int level, uint32_t number,
		   struct visit *visits, uint32_t count)
{
	const floats zero = {0};
	floats		gap[3];
	floats		sum;
	float		gaps[FLOATS];
	uint32_t	first = count;
	const double from[3] = {work->from.x, work->from.y, work->from.z};

	for (int axis = 0; axis < 3; axis++)
	{
		floats		at = floats_all((float) from[axis]);
		floats		below = floats_load(node->low[axis]) - at;
		floats		above = at - floats_load(node->high[axis]);

		below = (floats) ((float_keys) below & (below > zero));
		above = (floats) ((float_keys) above & (above > zero));
		gap[axis] = below + above;
	}
	sum = floats_chord(gap[0], gap[1], gap[2]);
	floats_store(gaps, sum);
	for (uint32_t bits = floats_within(sum, floats_all(work->limit_squared)); bits != 0; bits &= bits - 1)
	{
		uint32_t	i = (uint32_t) __builtin_ctz(bits);
		struct visit next = {gaps[i], level - 1, number * CPU_BOXES_WIDTH + i};
		uint32_t	at = count++;

		for (; at > first && visits[at - 1].gap < next.gap; at--)
			visits[at] = visits[at - 1];
		visits[at] = next;
	}
	if (count > first)
		prefetch(work, &visits[count - 1]);
	if (count > first + 1)
		prefetch(work, &visits[count - 2]);
	return count;
}

static void
walk(struct work *work)
{
	const struct cpu_boxes *boxes = &work->arcs->boxes;
	struct visit visits[CPU_BOXES_LEVELS * CPU_BOXES_WIDTH];
	uint32_t	count = 1;

	visits[0] = (struct visit) {0.0f, boxes->levels - 1, 0};
	while (count > 0)
	{
		struct visit next = visits[--count];

		if (next.gap > work->limit_squared)
			continue;
		if (next.level >= 0)
			count = add_visits(work, &boxes->node[next.level][next.number], next.level, next.number, visits, count);
		else
		{
			visit_leaf(work, next.number);
			if (is_stopped(work))
				return;
		}
	}
}

/* ---- polygons ---- */

static void
ask_polygon(struct work *work, uint32_t number, double longitude)
{
	const struct cpu_polygons *polygons = &work->arcs->polygons;
	uint32_t	place = polygons->polygon[number].place;

	if (arcs_is_candidate(&work->conditions, place) &&
		cpu_polygons_side(polygons, number, work->from, longitude) != GEONN_OUTSIDE)
		offer(work, (struct maybe) {.place = place,.polygon = number}, 0.0);
}

/* Offer the polygons that have the observation inside. */
static void
ask_polygons(struct work *work, double longitude)
{
	const struct cpu_boxes *boxes = &work->arcs->polygons.boxes;
	struct visit visits[CPU_BOXES_LEVELS * CPU_BOXES_WIDTH];
	uint32_t	count = boxes->levels > 0;
	const double from[3] = {work->from.x, work->from.y, work->from.z};

	visits[0] = (struct visit) {0.0f, boxes->levels - 1, 0};
	while (count > 0 && !is_stopped(work))
	{
		struct visit next = visits[--count];
		const struct cpu_boxes_node *node;
		uint32_t	bits = (1u << FLOATS) - 1;

		if (next.level < 0)
		{
			ask_polygon(work, next.number, longitude);
			continue;
		}
		node = &boxes->node[next.level][next.number];
		for (int axis = 0; axis < 3; axis++)
		{
			floats		at = floats_all((float) from[axis]);

			bits &= floats_within(floats_load(node->low[axis]), at) & floats_within(at, floats_load(node->high[axis]));
		}
		for (; bits != 0; bits &= bits - 1)
			visits[count++] = (struct visit) {
				0.0f, next.level - 1, next.number * CPU_BOXES_WIDTH + (uint32_t) __builtin_ctz(bits)
			};
	}
}

/* ---- the answer ---- */

/*
 * The distance of the observation to an arc and to those of its ends that may be as near as the limit.
 */
static double
measure(const struct work *work, uint32_t position)
{
	const struct cpu_arcs_leaf *leaf = &work->arcs->leaf[position / CPU_ARCS_LEAF];
	uint32_t	i = position % CPU_ARCS_LEAF;
	struct geonn_vector a = {leaf->a[0][i], leaf->a[1][i], leaf->a[2][i]};
	struct geonn_vector b = {leaf->b[0][i], leaf->b[1][i], leaf->b[2][i]};
	double		limit = work->limit * work->limit;
	double		distance = geonn_foot_distance(work->from, a, b);

	if (geonn_chord_squared(work->from, a) <= limit)
		distance = fmin(distance, geonn_distance_of(work->from, a));
	if (geonn_chord_squared(work->from, b) <= limit)
		distance = fmin(distance, geonn_distance_of(work->from, b));
	return distance;
}

static bool
reserve_chosen(struct work *work, size_t count)
{
	struct candidate *larger;

	if (count <= work->chosen_capacity)
		return true;
	larger = realloc(work->chosen, 2 * count * sizeof(*larger));
	work->short_of_memory = work->short_of_memory || larger == NULL;
	if (larger == NULL)
		return false;
	work->chosen = larger;
	work->chosen_capacity = 2 * count;
	return true;
}

/*
 * Measure what may be among the answers, and choose from that.  Returns how many pairs the observation has.
 */
static size_t
choose(struct work *work, const struct cutoff *cutoff)
{
	size_t		left = 0;
	size_t		count = 0;

	for (size_t i = 0; i < work->maybe_count; i++)
	{
		struct maybe maybe = work->maybe[i];
		bool		is_inside = maybe.polygon != NO_POLYGON;
		struct found *found;
		double		distance;
		uint32_t	arc;

		if (maybe.lower > work->limit)
			continue;
		found = find(work, maybe.place);
		if (maybe.lower > found->upper + MARGIN)
			continue;
		distance = is_inside ? 0.0 : measure(work, maybe.position);
		arc = is_inside ? work->arcs->polygons.polygon[maybe.polygon].arc : work->arcs->arc[maybe.position];
		if (distance < found->distance || (distance == found->distance && arc < found->arc))
		{
			found->distance = distance;
			found->arc = arc;
		}
		work->maybe[left++] = maybe;
		if (++work->measured % MEASURED_UNTIL_LOOK == 0 && atomic_load(work->piece->search->cancelled))
		{
			work->over = true;
			return 0;
		}
	}
	if (!reserve_chosen(work, left))
		return 0;
	for (size_t i = 0; i < left; i++)
	{
		struct found *found = find(work, work->maybe[i].place);

		if (found->distance < 0.0)
			continue;
		if (arcs_is_within_radiuses(&work->conditions, found->place, found->distance))
			work->chosen[count++] = (struct candidate) {found->distance, found->arc};
		found->distance = -1.0;
	}
	return candidates_choose(work->chosen, count, work->question, cutoff);
}

/* Read what an observation is, once: the batch is shared with the client. */
static void
begin(struct work *work, const struct cpu_observation *observation, uint32_t number)
{
	double		limit = work->widest;

	arcs_conditions_read(&work->conditions, &work->piece->search->columns, number);
	if (work->conditions.plain && work->best_count == work->question->k && work->question->k > 0)
		limit = fmin(limit, work->best[work->best_count - 1] + MARGIN +
					 sqrt(geonn_chord_squared(work->from, observation->vector)));
	if (work->piece->search->columns.radius != NULL)
		limit = fmin(limit, sqrt(geonn_metric_radius_limit(GEONN_METRIC_SPHERE, work->conditions.radius)) + MARGIN);
	set_limit(work, limit);
	work->from = observation->vector;
	work->best_count = work->found = 0;
	work->maybe_count = 0;
	if (++work->stamp == 0)
	{
		memset(work->table, 0, work->table_size * sizeof(*work->table));
		work->stamp = 1;
	}
}

static void
answer(struct work *work, uint32_t row)
{
	struct cpu_neighbours_piece *piece = work->piece;
	const struct cpu_observation *observation = &piece->observation[row];
	uint32_t	number = piece->first + row;
	struct cutoff cutoff = number == piece->search->first ? piece->search->cutoff : (struct cutoff) {0};
	size_t		count = 0;

	begin(work, observation, number);
	if (piece->by_index)
	{
		ask_polygons(work, observation->longitude);
		walk(work);
	}
	else
	{
		for (uint32_t i = 0; i < work->arcs->polygons.count && !is_stopped(work); i++)
			ask_polygon(work, i, observation->longitude);
		for (uint32_t i = 0; i < work->arcs->boxes.entries && !is_stopped(work); i++)
			visit_leaf(work, i);
	}
	if (!work->over && !work->short_of_memory)
		count = choose(work, &cutoff);
	if (count > piece->pairs_max)
		count = piece->pairs_max;
	if (!CPU_PATH_NAME(cpu_settled_reserve) (piece, count))
		work->short_of_memory = true;
	piece->short_of_memory = piece->short_of_memory || work->short_of_memory;
	work->over = work->over || work->short_of_memory;
	if (work->over)
		return;
	if (count > 0)
		memcpy(piece->pair + piece->pairs, work->chosen, count * sizeof(*piece->pair));
	piece->pairs += count;
	piece->counts[row] = (uint32_t) count;
	piece->answered++;
	work->pairs += count;
}

void
CPU_PATH_NAME(cpu_arcs_search) (struct cpu_neighbours_piece *piece)
{
	const struct search *search = piece->search;
	uint32_t	k = search->question.k;
	struct work work = {
		.piece = piece,
		.arcs = piece->arcs,
		.question = &search->question,
		.conditions = arcs_conditions_of(search->dataset),
		.widest = fmin(sqrt(geonn_metric_radius_limit(GEONN_METRIC_SPHERE, search->question.max_distance)) + MARGIN,
					   BEYOND_CHORDS),
		.best = malloc(((size_t) k + 1) * sizeof(*work.best)),
		.best_place = malloc(((size_t) k + 1) * sizeof(*work.best_place))
	};
	uint32_t	next_look = ROWS_UNTIL_LOOK;

	piece->short_of_memory = work.best == NULL || work.best_place == NULL || !grow_table(&work);
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
	free(work.best);
	free(work.best_place);
	free(work.table);
	free(work.maybe);
	free(work.chosen);
}
