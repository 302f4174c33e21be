/*
 * arcs_search.c
 *		Finds the nearest shapes of observations by the index of arcs.
 *
 * Observations come along the curve.  For each, the polygons around it are found first: their shapes
 * are at distance 0.  Then the search goes through the boxes of leaves, the nearest first, as far as a limit,
 * a chord in radii that shrinks as shapes are found.  It begins with the limit of the observation before and the way from
 * there, where no condition can make that wrong.
 *
 * Observations that follow each other are a bundle.  One list (boxes_list.h) has the polygons whose boxes
 * overlap the bundle's box, another one the leaves, or small nodes, in a region that is wider by two limits of the
 * observation before.  An observation goes through these lists.  If its limit then reaches beyond the region, it
 * walks from the top of the tree, too, and the rest of the bundle gets a wider region.  What is offered twice is measured
 * twice, and changes nothing.
 *
 * A leaf gives two bounds for each arc, or piece of an arc, from the distance of the observation to its chord
 * in float64: with its sagitta less and more (arcs.c).  The upper bounds of k shapes, each the least
 * over the arcs that were seen of the shape, give the limit.  Where fewer than k shapes are candidates, the upper bounds of all
 * of them do: no shape that may be in the answer is beyond the greatest.  An arc stays a candidate while its lower bound is
 * within the limit, and within the upper bound of its own shape.  At the end those that are left are measured by
 * common/arc.h, with the vertices that are as near, and candidates.c puts the least distance of each shape in order.
 * Arcs whose distances are equal are all measured (see below).  The first of them stands for its shape in the answer: the
 * order of shapes is that of any of their arcs.
 *
 *
 * The margin
 *
 * Limits are upper bounds and SHAPE_ARCS_MARGIN = 2^-45, or 256 e where e = 2^-53.  Let arcs A and B have the
 * distances a <= b as common/arc.h computes them; then the lower bound of A must be within the upper bound of
 * B and the margin.  Both distances are within 10 nm, 14.2 e, of the truth, and as a chord grows by no more
 * than its angle, the true chord of A is at most 28.4 e greater than that of B.  The vectors that the index has
 * are within 5.44 e of the truth, for each arc (arc.h), and the ends of pieces are off the arc by less than 5 e more (arcs.c).
 * The distance to a chord comes from w = p - a and d = b - a: each part of them is off by 2 e; the fraction t = w d / d d,
 * times |d|, by 8 e |w| <= 16 e; a part of w - t d by 20 e, the distance by 40 e at most.  Its square and root add 2 e.
 * Together 28.4 + 2 * 10.44 + 2 * 42 = 134 e.
 *
 * max_distance gives a limit by geonn_metric_radius_limit(), which holds for points within 14.2 e of their truth; the
 * same margin is added.  Distances decide at the end.  The same margin tells whether a shape is within its own radius.
 */
#include "engine/cpu/arcs/arcs.h"

#include "common/arc.h"
#include "common/metric.h"
#include "engine/cpu/arcs/arcs_answer.h"
#include "engine/cpu/arcs/arcs_leaf.h"

/* A bundle has this many observations; with fewer than BUNDLE_MIN, the walk uses no lists. */
#define BUNDLE_ROWS 16
#define BUNDLE_MIN 2

/*
 * A region is wider than its bundle, by this many limits of the observation before; nodes up to this part of the region's
 * length count as small.
 */
#define REGION_LIMITS 2.0
#define REGION_SMALL 0.25f

/* Rounding to float32 moves a bound of a region by less than this. */
#define REGION_MORE 0x1p-22

/* ---- leaves ---- */

/* Offer an arc of a leaf, with bounds from the square of the distance to its chord. */
static void
offer_lane(struct work *work, const struct cpu_arcs_leaf *leaf, uint32_t lane, double square, double sagitta)
{
	double		distance = sqrt(square);

	if (distance - sagitta <= work->limit)
		offer(work, (struct maybe) {distance - sagitta, leaf->shape[lane], leaf->arc[lane],
									cpu_arcs_measured(work->arcs, leaf->vertex[lane]), 0}, distance + sagitta);
}

/* Offer the arcs of a leaf. */
static void
visit_leaf(struct work *work, uint32_t number)
{
	const struct cpu_arcs_leaf *leaf = &work->arcs->leaf[number];
	const double from[3] = {work->from.x, work->from.y, work->from.z};
	struct chord_squares squares;
	uint32_t	bits;

	leaf_chord_squares(work->arcs->vertices.vertex, leaf, from, &squares);
	bits = chord_squares_within(&squares, work->limit);
	if (bits == 0)
		return;
	if ((bits & (bits - 1)) != 0)
	{
		/* Take the nearest chord first: it lowers the limit, and few others remain within. */
		uint32_t	nearest = chord_squares_nearest(&squares, bits);

		offer_lane(work, leaf, nearest, squares.square[nearest], squares.sagitta[nearest]);
		bits &= chord_squares_within(&squares, work->limit) & ~(1u << nearest);
	}
	for (; bits != 0; bits &= bits - 1)
	{
		uint32_t	i = (uint32_t) __builtin_ctz(bits);

		offer_lane(work, leaf, i, squares.square[i], squares.sagitta[i]);
	}
}

/* ---- the walk ---- */

/* Make the visits, the nearest first, which comes last in the array, and those that they add. */
static void
go_through(struct work *work, struct visit *visits, uint32_t count)
{
	const float from[3] = {(float) work->from.x, (float) work->from.y, (float) work->from.z};

	while (count > 0)
	{
		struct visit next = visits[--count];

		if (next.gap > work->limit_squared)
			continue;
		if (count > 0 && visits[count - 1].level < 0)
			prefetch_visit(work, &visits[count - 1]);
		if (next.level >= 0)
			count = add_visits(work, from, from, next, visits, count);
		else
		{
			visit_leaf(work, next.number);
			if (is_stopped(work))
				return;
		}
	}
}

static void
walk(struct work *work)
{
	struct visit visits[SHAPE_BOXES_VISITS] = {{0.0f, work->arcs->boxes.levels - 1, 0}};

	go_through(work, visits, 1);
}

/* ---- bundles ---- */

/* List the leaves in a region that is wider than the bundle by `wider`. */
static void
list_leaves(struct work *work, double wider)
{
	struct bundle *bundle = &work->bundle;

	bundle->leaves.small = 0.0f;
	for (int axis = 0; axis < 3; axis++)
	{
		bundle->leaves.region_low[axis] = (float) (bundle->box.low[axis] - wider - REGION_MORE);
		bundle->leaves.region_high[axis] = (float) (bundle->box.high[axis] + wider + REGION_MORE);
		bundle->leaves.small = fmaxf(bundle->leaves.small, REGION_SMALL *
									 (bundle->leaves.region_high[axis] - bundle->leaves.region_low[axis]));
	}
	bundle->has_leaves = CPU_PATH_NAME(cpu_boxes_list_fill) (&bundle->leaves, &work->arcs->boxes);
}

/* Return by how much a region should be wider than its bundle, after an observation with the present limit. */
static double
region_wider(const struct work *work)
{
	return work->question->k == 0 ? work->widest : fmin(REGION_LIMITS * work->limit, SHAPE_BEYOND_CHORDS);
}

/*
 * Begin a bundle with the next observation.
 */
static void
begin_bundle(struct work *work)
{
	const struct cpu_neighbours_piece *piece = work->piece;
	struct bundle *bundle = &work->bundle;
	uint32_t	first = piece->answered;
	uint32_t	rows = piece->count - first < BUNDLE_ROWS ? piece->count - first : BUNDLE_ROWS;

	bundle->end = first + rows;
	bundle->has_leaves = bundle->has_polygons = false;
	if (rows < BUNDLE_MIN)
		return;
	bundle->box = cpu_empty_box;
	for (uint32_t i = first; i < bundle->end; i++)
		cpu_box_enlarge(&bundle->box, piece->observation[piece->row[i]].vector);
	list_leaves(work, region_wider(work));
	for (int axis = 0; axis < 3; axis++)
	{
		bundle->polygons.region_low[axis] = (float) bundle->box.low[axis];
		bundle->polygons.region_high[axis] = (float) bundle->box.high[axis];
	}
	bundle->polygons.small = -1.0f;
	bundle->has_polygons = CPU_PATH_NAME(cpu_boxes_list_fill) (&bundle->polygons, &work->arcs->polygons.boxes);
}

/* Return whether the region of the bundle's leaves covers everything within the limit. */
static bool
is_in_region(const struct work *work)
{
	const struct cpu_boxes_list *leaves = &work->bundle.leaves;
	const double from[3] = {work->from.x, work->from.y, work->from.z};

	for (int axis = 0; axis < 3; axis++)
		if (from[axis] - work->limit < leaves->region_low[axis] || from[axis] + work->limit > leaves->region_high[axis])
			return false;
	return true;
}

/*
 * Visit the bundle's leaves within the limit, the nearest first.
 */
static void
visit_bundle(struct work *work)
{
	const struct cpu_boxes_list *leaves = &work->bundle.leaves;
	const float from[3] = {(float) work->from.x, (float) work->from.y, (float) work->from.z};
	float		gaps[SHAPE_BOXES_LIST_MAX];
	float_keys	lane = {0, 1, 2, 3, 4, 5, 6, 7};
	float_keys	least = float_keys_all(INT32_MAX);
	struct visit visits[SHAPE_BOXES_LIST_MAX + SHAPE_BOXES_VISITS];
	uint32_t	count = 0;
	uint32_t	nearest;

	if (leaves->count == 0)
		return;

	/* Gaps are never negative, so their bits are in the order of their values; the last bits give way to the number. */
	for (uint32_t at = 0; at < leaves->count; at += FLOATS, lane += FLOATS)
	{
		floats		sum = gaps_between(from, from, &leaves->node[at / FLOATS]);

		floats_store(gaps + at, sum);
		least = float_keys_smaller(least, ((float_keys) sum & ~(SHAPE_BOXES_LIST_MAX - 1)) | lane);
	}
	nearest = (uint32_t) least[0];
	for (int i = 1; i < FLOATS; i++)
		nearest = (uint32_t) least[i] < nearest ? (uint32_t) least[i] : nearest;
	nearest &= SHAPE_BOXES_LIST_MAX - 1;
	visits[0] = (struct visit) {gaps[nearest], leaves->level[nearest], leaves->number[nearest]};
	go_through(work, visits, 1);
	gaps[nearest] = INFINITY;
	for (uint32_t at = 0; at < leaves->count; at += FLOATS)
		for (uint32_t bits = floats_within(floats_load(gaps + at), floats_all(work->limit_squared)); bits != 0;
			 bits &= bits - 1)
		{
			uint32_t	i = at + (uint32_t) __builtin_ctz(bits);

			count = add_visit(visits, 0, count, (struct visit) {gaps[i], leaves->level[i], leaves->number[i]});
			if (leaves->level[i] < 0)
				__builtin_prefetch(&work->arcs->leaf[leaves->number[i]]);
		}
	go_through(work, visits, count);
}

/*
 * Offer the arcs within the limit.
 */
static void
find_arcs(struct work *work)
{
	if (work->bundle.has_leaves)
	{
		visit_bundle(work);
		if (is_in_region(work))
			return;
	}
	walk(work);
	if (work->bundle.has_leaves && work->piece->answered + 1 < work->bundle.end)
		list_leaves(work, region_wider(work));
}

/* ---- polygons ---- */

/* Offer the polygons of the bundle's list that hold the observation. */
static void
ask_listed_polygons(struct work *work, double longitude)
{
	const struct cpu_boxes_list *list = &work->bundle.polygons;
	const double from[3] = {work->from.x, work->from.y, work->from.z};

	for (uint32_t first = 0; first < list->count; first += FLOATS)
		for (uint32_t bits = holding(from, &list->node[first / FLOATS]); bits != 0 && !is_stopped(work); bits &= bits - 1)
			ask_polygon(work, list->number[first + (uint32_t) __builtin_ctz(bits)], work->from, longitude, 0);
}

/* ---- the answer ---- */

/*
 * Return the distance of the observation to an arc: to the arc's inside, and to those of its ends that
 * may be within the limit.
 */
static double
measure(const struct work *work, const struct maybe *maybe, double limit)
{
	struct geonn_vector a = work->arcs->vertices.vertex[maybe->vertex];
	struct geonn_vector b = work->arcs->vertices.vertex[maybe->vertex + 1];
	double		distance = geonn_foot_distance(work->from, a, b);

	if (geonn_chord_squared(work->from, a) <= limit * limit)
		distance = fmin(distance, geonn_distance_of(work->from, a));
	if (geonn_chord_squared(work->from, b) <= limit * limit)
		distance = fmin(distance, geonn_distance_of(work->from, b));
	return distance;
}

static void
answer(struct work *work, uint32_t row)
{
	struct cpu_neighbours_piece *piece = work->piece;
	const struct cpu_observation *observation = &piece->observation[row];
	double		limit = work->widest;

	if (piece->by_index && piece->answered == work->bundle.end)
		begin_bundle(work);
	if (work->conditions.plain && work->best_count == work->k && work->k > 0)
		limit = fmin(limit, work->best[work->best_count - 1] + SHAPE_ARCS_MARGIN +
					 sqrt(geonn_chord_squared(work->from, observation->vector)));
	begin_observation(work, piece->first + row, limit);
	work->from = observation->vector;
	if (piece->by_index)
	{
		if (work->bundle.has_polygons)
			ask_listed_polygons(work, observation->longitude);
		else
			ask_polygons(work, work->from, observation->longitude, 0);
		find_arcs(work);
	}
	else
	{
		for (uint32_t i = 0; i < work->arcs->polygons.count && !is_stopped(work); i++)
			ask_polygon(work, i, work->from, observation->longitude, 0);
		for (uint32_t i = 0; i < work->arcs->boxes.entries && !is_stopped(work); i++)
			visit_leaf(work, i);
	}
	end_observation(work, row, measure);
}

void
CPU_PATH_NAME(cpu_arcs_search) (struct cpu_neighbours_piece *piece)
{
	if (piece->probes != NULL)
		CPU_PATH_NAME(cpu_arcs_probe) (piece);
	else
		answer_piece(piece, answer);
}
