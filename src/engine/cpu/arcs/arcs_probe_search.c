/*
 * arcs_probe_search.c
 *		Finds the nearest shapes of observations that are shapes themselves.
 *
 * Two shapes are at distance 0 where an arc of one meets an arc of the other, or where a part of one lies inside a polygon of
 * the other: then any place of the part does, so its first vertex tells.  Else the distance is the least of any two arcs.
 * So an observation asks the polygons around the first vertex of each of its parts, then for each of its own polygons the
 * parts of references that begin inside, and then its arcs go through the index of arcs.
 *
 * Up to eight sides (arcs, or pieces of arcs) that follow each other are a bundle with one box.  It goes through the boxes
 * of leaves, the nearest first, as arcs_search.c does for a point, with the gaps between boxes.  All bundles of an observation
 * share the limit, and what was found.  In a leaf, the arcs that are within the limit of the bundle's centre, more by the
 * bundle's radius, are compared with the eight sides, the nearest first.  What was found of a shape is a limit for its other
 * arcs: small shapes have many that are within max_distance, and one or two that are as near as the shape is.
 *
 *
 * Bounds
 *
 * Let A and B be arcs of at most a quarter circle that do not meet.  Then an end of one of them is nearest: where the
 * nearest places were inside of both, the great circle through these would cross both at right angles, and a move along both
 * arcs to the side where they meet would bring them nearer.  So let m be the least of the four distances from an end to
 * the other's chord.  An arc and its chord differ by the sagitta at most (arcs.c), so the distance of A and B, as a chord, is
 * within m less and more by the larger sagitta.  If they meet, m more is an upper bound all the same, and 0 is a lower one.
 *
 * They can only meet if the ends of neither lie on one side of the other's plane.  The sign of det(a, b, c) tells, computed as
 * (c - a) (a x (b - a)); with e = 2^-53 the differences are off by e relatively, the product of vectors by 3 e more, the
 * last by 4 e: together by less than 10 e |b - a| |c - a| <= 20 e |b - a|.  Where it exceeds 32 e |b - a| for both ends, they lie
 * on one side for certain.  As no piece is longer than 250 km, arcs that meet have ends less than a quarter circle apart;
 * that leaves out planes that cross on the other side of the earth.  An arc of no length meets another one only at its
 * place, which m says.
 *
 *
 * The margin
 *
 * As in arcs_search.c, but the pieces of both shapes are off by up to 10.44 e: 28.4 + 4 * 10.44 + 2 * 42 = 154 e, which is
 * less than SHAPE_ARCS_MARGIN, 256 e.  A piece that is off may miss what the arc meets, by no more than that.  A bundle's centre
 * has another distance of 42 e in place of one of those, and a radius that is off by less than 10 e.
 *
 * So arcs that meet have pieces whose lower bound is within the margin.  Exact signs are asked for these alone.
 *
 *
 * Brute force measures each two arcs, and asks each two polygons and parts.
 */
#include "engine/cpu/arcs/arcs.h"

#include "common/arc.h"
#include "common/metric.h"
#include "engine/cpu/arcs/arcs_answer.h"
#include "engine/cpu/arcs/arcs_leaf.h"
#include "engine/cpu/arcs/arcs_probe.h"

/* Where |det| is above this, times the length of the chord, its sign is right (essay). */
#define CERTAIN_SIDE 0x1p-48

/* as many sides as a vector has lanes */
struct side_vectors
{
	lanes		a[3];
	lanes		b[3];
	lanes		d[3];			/* from a to b */
	lanes		chord;			/* squared */
	lanes		sagitta;
	lanes		across[3];		/* a x d */
	lanes		certain;		/* CERTAIN_SIDE times the length of the chord, squared */
};

/* sides of an observation that follow each other; the last one's copies fill up the vectors */
struct sides
{
	const struct cpu_probe_side *side;
	uint32_t	used;			/* a bit is set for each side */
	float		low[3];			/* the box of all */
	float		high[3];
	double		centre[3];
	double		radius;			/* no place of a side is farther from the centre */
	struct side_vectors vectors[CPU_ARCS_LEAF / LANES];
};

/* ---- sides ---- */

/* Set the box, the centre and the radius. */
static void
set_box(struct sides *sides)
{
	const struct side_vectors *end = sides->vectors + CPU_ARCS_LEAF / LANES;

	for (int axis = 0; axis < 3; axis++)
	{
		lanes		least = lanes_all(INFINITY);
		lanes		greatest = lanes_all(-INFINITY);
		double		low;
		double		high;

		for (const struct side_vectors *vectors = sides->vectors; vectors < end; vectors++)
		{
			least = lanes_smaller(least, lanes_smaller(vectors->a[axis], vectors->b[axis]) - vectors->sagitta);
			greatest = lanes_larger(greatest, lanes_larger(vectors->a[axis], vectors->b[axis]) + vectors->sagitta);
		}
		low = lanes_smallest(least);
		high = -lanes_smallest(-greatest);
		sides->low[axis] = (float) low;
		sides->high[axis] = (float) high;
		sides->centre[axis] = (low + high) / 2.0;
	}
	sides->radius = 0.0;
	for (const struct side_vectors *vectors = sides->vectors; vectors < end; vectors++)
	{
		lanes		from_a = {0};
		lanes		from_b = {0};
		lanes		square;

		for (int axis = 0; axis < 3; axis++)
		{
			from_a += (vectors->a[axis] - sides->centre[axis]) * (vectors->a[axis] - sides->centre[axis]);
			from_b += (vectors->b[axis] - sides->centre[axis]) * (vectors->b[axis] - sides->centre[axis]);
		}
		square = lanes_larger(from_a, from_b);
		for (int i = 0; i < LANES; i++)
			sides->radius = fmax(sides->radius, sqrt(square[i]) + vectors->sagitta[i]);
	}
}

static void
set_sides(struct sides *sides, const struct cpu_probe_side *side, uint32_t count)
{
	sides->side = side;
	sides->used = (1u << count) - 1;
	for (uint32_t at = 0; at < CPU_ARCS_LEAF; at += LANES)
	{
		struct side_vectors *vectors = &sides->vectors[at / LANES];

		for (uint32_t i = 0; i < LANES; i++)
		{
			const struct cpu_probe_side *one = &side[at + i < count ? at + i : count - 1];

			vectors->a[0][i] = one->a.x;
			vectors->a[1][i] = one->a.y;
			vectors->a[2][i] = one->a.z;
			vectors->b[0][i] = one->b.x;
			vectors->b[1][i] = one->b.y;
			vectors->b[2][i] = one->b.z;
		}
		for (int axis = 0; axis < 3; axis++)
			vectors->d[axis] = vectors->b[axis] - vectors->a[axis];
		vectors->chord = lanes_dot(vectors->d, vectors->d);
		vectors->sagitta = SHAPE_ARCS_SAGITTA * vectors->chord;
		for (int axis = 0; axis < 3; axis++)
			vectors->across[axis] = vectors->a[(axis + 1) % 3] * vectors->d[(axis + 2) % 3] -
				vectors->a[(axis + 2) % 3] * vectors->d[(axis + 1) % 3];
		vectors->certain = CERTAIN_SIDE * CERTAIN_SIDE * vectors->chord;
	}
	set_box(sides);
}

/* ---- leaves ---- */

/* Return bits that are all set where two ends, from which det is computed, lie on one side of a plane for certain. */
LANES_INLINE lanes_of_integers
on_one_side(lanes first, lanes second, lanes certain)
{
	return (first * second > 0.0) & (first * first > certain) & (second * second > certain);
}

/*
 * Find the bounds of the distances of sides to the arc, or the piece of one, between two vertices: the squares of m, and
 * the larger sagittas.  Returns bits: bit i is set if side i and the arc may meet.
 */
static uint32_t
find_bounds(const struct sides *sides, const struct geonn_vector *ends, struct chord_squares *bounds)
{
	const double p[3] = {ends[0].x, ends[0].y, ends[0].z};
	const double q[3] = {ends[1].x, ends[1].y, ends[1].z};
	double		chord = geonn_chord_squared(ends[0], ends[1]);
	lanes		all_of_chord = lanes_all(chord);
	uint32_t	meeting = 0;

	for (int at = 0; at < CPU_ARCS_LEAF; at += LANES)
	{
		const struct side_vectors *side = &sides->vectors[at / LANES];
		lanes		e[3];		/* the arc's chord */
		lanes		normal[3];
		lanes		from_a[3];
		lanes		from_b[3];
		lanes		to_a[3];
		lanes		to_b[3];
		lanes_of_integers meet;

		for (int axis = 0; axis < 3; axis++)
		{
			int			next = (axis + 1) % 3;
			int			last = (axis + 2) % 3;

			e[axis] = lanes_all(q[axis] - p[axis]);
			normal[axis] = lanes_all(p[next] * (q[last] - p[last]) - p[last] * (q[next] - p[next]));
			from_a[axis] = p[axis] - side->a[axis];
			from_b[axis] = q[axis] - side->a[axis];
			to_a[axis] = side->a[axis] - p[axis];
			to_b[axis] = side->b[axis] - p[axis];
		}
		lanes_store(bounds->square + at,
					lanes_smaller(lanes_smaller(lanes_chord_squares(from_a, side->d, side->chord),
												lanes_chord_squares(from_b, side->d, side->chord)),
								  lanes_smaller(lanes_chord_squares(to_a, e, all_of_chord),
												lanes_chord_squares(to_b, e, all_of_chord))));
		lanes_store(bounds->sagitta + at, lanes_larger(side->sagitta, lanes_all(SHAPE_ARCS_SAGITTA * chord)));

		/* An end that is less than a quarter circle away has a chord below the root of 2. */
		meet = (lanes_dot(to_a, to_a) < 2.0) & (side->chord > 0.0) & (all_of_chord > 0.0) &
			~on_one_side(lanes_dot(to_a, normal), lanes_dot(to_b, normal),
						 lanes_all(CERTAIN_SIDE * CERTAIN_SIDE * chord)) &
			~on_one_side(lanes_dot(from_a, side->across), lanes_dot(from_b, side->across), side->certain);
		for (int i = 0; i < LANES; i++)
			meeting |= (uint32_t) (meet[i] & 1) << (at + i);
	}
	return meeting;
}

/* Offer an arc of a leaf with the sides that may be the nearest ones of its shape. */
static void
offer_lane(struct work *work, const struct sides *sides, const struct cpu_arcs_leaf *leaf, uint32_t lane)
{
	struct chord_squares bounds;
	uint32_t	meeting;
	uint32_t	nearest;
	double		limit;

	if (!arcs_is_candidate(&work->conditions, leaf->arc[lane]))
		return;
	meeting = find_bounds(sides, &work->arcs->vertices.vertex[leaf->vertex[lane]], &bounds);
	nearest = chord_squares_nearest(&bounds, sides->used);
	limit = fmin(shape_limit(work, leaf->shape[lane]),
				 sqrt(bounds.square[nearest]) + bounds.sagitta[nearest] + SHAPE_ARCS_MARGIN);
	for (uint32_t bits = (chord_squares_within(&bounds, limit) | meeting) & sides->used; bits != 0; bits &= bits - 1)
	{
		uint32_t	i = (uint32_t) __builtin_ctz(bits);
		double		distance = sqrt(bounds.square[i]);
		double		lower = meeting >> i & 1 ? 0.0 : distance - bounds.sagitta[i];

		if (lower <= limit)
			offer(work, (struct maybe) {lower, leaf->shape[lane], leaf->arc[lane],
										cpu_arcs_measured(work->arcs, leaf->vertex[lane]), OWN_ARC | sides->side[i].vertex},
				  distance + bounds.sagitta[i]);
	}
}

static void
visit_leaf(struct work *work, const struct sides *sides, uint32_t number)
{
	const struct cpu_arcs_leaf *leaf = &work->arcs->leaf[number];
	struct chord_squares squares;

	leaf_chord_squares(work->arcs->vertices.vertex, leaf, sides->centre, &squares);
	for (uint32_t bits = chord_squares_within(&squares, work->limit + sides->radius); bits != 0;)
	{
		/* Take the nearest chord first: it lowers the limits, and few others remain within. */
		uint32_t	i = chord_squares_nearest(&squares, bits);

		bits &= ~(1u << i);
		if (sqrt(squares.square[i]) - squares.sagitta[i] - sides->radius <= shape_limit(work, leaf->shape[i]))
			offer_lane(work, sides, leaf, i);
	}
}

/* ---- the walk ---- */

/* Begin a walk through boxes, unless one is under way. */
static void
begin_walk(struct progress *progress, const struct shape_boxes *boxes)
{
	if (progress->walks)
		return;
	progress->walks = true;
	progress->visits = 1;
	progress->visit[0] = (struct visit) {0.0f, boxes->levels - 1, 0};
}

/* Offer the arcs within the limit of some sides, or go on with that.  If the turn is over, the walk remains under way. */
static void
walk(struct work *work, const struct sides *sides)
{
	struct visit *visits = work->progress.visit;
	uint32_t	count;

	begin_walk(&work->progress, &work->arcs->boxes);
	count = work->progress.visits;
	while (count > 0)
	{
		struct visit next = visits[--count];

		if (next.gap > work->limit_squared)
			continue;
		if (count > 0 && visits[count - 1].level < 0)
			prefetch_visit(work, &visits[count - 1]);
		if (next.level >= 0)
			count = add_visits(work, sides->low, sides->high, next, visits, count);
		else
		{
			visit_leaf(work, sides, next.number);
			if (is_too_late(work))
				break;
		}
	}
	work->progress.visits = count;
	work->progress.walks = count > 0;
}

/* ---- parts and polygons ---- */

/* Ask which polygons hold the observation's parts: by their boxes, or all of them. */
static void
ask_around(struct work *work, const struct cpu_probes *probes, uint32_t shape, bool all)
{
	struct progress *progress = &work->progress;

	for (; probes->arc[shape] + progress->next < probes->arc[shape + 1] && !is_too_late(work); progress->next++)
	{
		uint32_t	i = probes->arc[shape] + (uint32_t) progress->next;
		uint32_t	own = probes->vertices.first[i];
		struct geonn_vector place = probes->vertices.vertex[own];
		double		longitude = probes->dataset->longitude[i];

		if (!cpu_probes_begins_part(probes, i))
			continue;
		if (!all)
			ask_polygons(work, place, longitude, own);
		for (uint32_t polygon = 0; all && polygon < work->arcs->polygons.count && !is_stopped(work); polygon++)
			ask_polygon(work, polygon, place, longitude, own);
	}
}

/* Offer a part of the references if it begins in a polygon of the observation. */
static void
ask_part(struct work *work, const struct cpu_probes *probes, uint32_t polygon, uint32_t number)
{
	const struct cpu_arcs_parts *parts = &work->arcs->parts_built;
	const struct dataset *dataset = work->piece->search->dataset;
	uint32_t	arc = parts->arc[number];

	if (arcs_is_candidate(&work->conditions, arc) &&
		shape_polygons_side(&probes->polygons, polygon, parts->vector[number], dataset->longitude[arc]) != GEONN_OUTSIDE)
		offer(work, (struct maybe) {0.0, (uint32_t) dataset->shape[arc], arc, NO_VERTEX, OWN_POLYGON}, 0.0);
}

/*
 * Ask which parts begin in a polygon of the observation, by the polygon's box, or all of them, or go on with that.  Returns
 * whether all are asked; else the turn is over.
 */
static bool
ask_inside(struct work *work, const struct cpu_probes *probes, uint32_t polygon, bool all)
{
	const struct shape_boxes *boxes = &work->arcs->parts_built.boxes;
	const struct shape_boxes_node *box = &probes->polygons.boxes.node[0][polygon / SHAPE_BOXES_WIDTH];
	uint32_t	at = polygon % SHAPE_BOXES_WIDTH;
	const float low[3] = {box->low[0][at], box->low[1][at], box->low[2][at]};
	const float high[3] = {box->high[0][at], box->high[1][at], box->high[2][at]};
	struct progress *progress = &work->progress;

	for (; all && progress->inner < boxes->entries && !is_too_late(work); progress->inner++)
		ask_part(work, probes, polygon, progress->inner);
	if (all)
		return progress->inner == boxes->entries;
	begin_walk(progress, boxes);
	while (progress->visits > 0 && !is_too_late(work))
	{
		struct visit next = progress->visit[--progress->visits];
		floats		gaps;

		if (next.level < 0)
		{
			ask_part(work, probes, polygon, next.number);
			continue;
		}
		gaps = gaps_between(low, high, &boxes->node[next.level][next.number]);
		for (uint32_t bits = floats_within(gaps, floats_all(0.0f)); bits != 0; bits &= bits - 1)
			progress->visit[progress->visits++] = (struct visit) {
				0.0f, next.level - 1, next.number * SHAPE_BOXES_WIDTH + (uint32_t) __builtin_ctz(bits)
			};
	}
	progress->walks = progress->visits > 0;
	return !progress->walks;
}

/* Ask which parts begin in the observation's polygons. */
static void
ask_all_inside(struct work *work, const struct cpu_probes *probes, uint32_t shape, bool all)
{
	struct progress *progress = &work->progress;

	while (probes->first_polygon[shape] + progress->next < probes->first_polygon[shape + 1] && !is_too_late(work))
	{
		if (!ask_inside(work, probes, probes->polygon[probes->first_polygon[shape] + progress->next], all))
			return;
		progress->inner = 0;
		progress->next++;
	}
}

/* ---- brute force ---- */

/*
 * Measure an arc of the references and all arcs of the observation, or go on with that.  Returns whether all are measured;
 * else the turn is over.
 */
static bool
measure_arc(struct work *work, const struct cpu_probes *probes, uint32_t shape, uint32_t number, uint32_t lane)
{
	const struct cpu_arcs_leaf *leaf = &work->arcs->leaf[number];
	const struct geonn_vector *ends = &work->arcs->vertices.vertex[cpu_arcs_measured(work->arcs, leaf->vertex[lane])];
	const struct cpu_probe_side *side = &probes->side[probes->first_side[shape]];
	uint32_t	count = probes->first_side[shape + 1] - probes->first_side[shape];
	struct progress *progress = &work->progress;
	struct found *found;

	if (progress->inner == 0)
		progress->distance = INFINITY;
	do
	{
		uint32_t	i = progress->inner++;
		const struct geonn_vector *own = &probes->vertices.vertex[side[i].vertex];
		double		measured;

		if (i > 0 && side[i].vertex == side[i - 1].vertex)
			continue;
		measured = geonn_arcs_distance(own[0], own[1], ends[0], ends[1]);
		if (measured >= progress->distance)
			continue;
		progress->distance = measured;
		progress->nearest = side[i].vertex;
	} while (progress->inner < count && !is_too_late(work));
	if (progress->inner < count)
		return false;
	progress->inner = 0;
	offer(work, (struct maybe) {0.0, leaf->shape[lane], leaf->arc[lane], MEASURED_VERTEX, 0}, INFINITY);
	found = find(work, leaf->shape[lane]);
	if (found->stamp == work->stamp)
		note_distance(found, progress->distance, leaf->arc[lane], OWN_ARC | progress->nearest);
	return true;
}

/* Measure all arcs of the references; of an arc in pieces, several times. */
static void
measure_all(struct work *work, const struct cpu_probes *probes, uint32_t shape)
{
	uint64_t   *next = &work->progress.next;

	for (; *next < work->arcs->count && !is_too_late(work); ++*next)
	{
		uint32_t	leaf = (uint32_t) (*next / CPU_ARCS_LEAF);
		uint32_t	lane = (uint32_t) (*next % CPU_ARCS_LEAF);

		if (arcs_is_candidate(&work->conditions, work->arcs->leaf[leaf].arc[lane]) &&
			!measure_arc(work, probes, shape, leaf, lane))
			return;
	}
}

/* ---- the answer ---- */

/* Return the distance of two arcs as geonn_arcs_distance() computes it, or something greater where it is beyond the limit. */
static double
measure(const struct work *work, const struct maybe *maybe, double limit)
{
	const struct geonn_vector *own = &work->piece->probes->vertices.vertex[maybe->own & ~OWN_ARC];
	const struct geonn_vector *other = &work->arcs->vertices.vertex[maybe->vertex];
	double		distance = INFINITY;

	if (maybe->lower <= SHAPE_ARCS_MARGIN)
		return geonn_arcs_distance(own[0], own[1], other[0], other[1]);
	for (int i = 0; i < 2; i++)
	{
		for (int j = 0; j < 2; j++)
			if (geonn_chord_squared(own[i], other[j]) <= limit * limit)
				distance = fmin(distance, geonn_distance_of(own[i], other[j]));
		distance = fmin(distance, geonn_foot_distance(own[i], other[0], other[1]));
		distance = fmin(distance, geonn_foot_distance(other[i], own[0], own[1]));
	}
	return distance;
}

/*
 * Offer the arcs within the limit of an observation's bundles.  Behind the first one, every 2^n-th comes first, and those
 * between two of these later: so the limit shrinks at once to what is near some of the observation, and most bundles are farther.
 * `sides` are those of the first bundle, unless the search goes on.
 */
static void
find_arcs(struct work *work, const struct cpu_probe_side *side, uint32_t count, struct sides *sides)
{
	struct progress *progress = &work->progress;

	if (progress->step == 0)
		for (progress->step = CPU_ARCS_LEAF; progress->step < count;)
			progress->step *= 2;
	while (progress->step >= CPU_ARCS_LEAF && !is_too_late(work))
	{
		uint64_t	left = count - progress->next;

		if (progress->next >= count)
		{
			progress->step /= 2;
			progress->next = progress->step;
			continue;
		}
		if (sides->side != &side[progress->next])
			set_sides(sides, &side[progress->next], left < CPU_ARCS_LEAF ? (uint32_t) left : CPU_ARCS_LEAF);
		walk(work, sides);
		if (progress->walks)
			return;
		progress->next += 2 * progress->step;
	}
}

/*
 * Return a limit for an observation of one bundle after one of one bundle, or something greater: the shapes that were nearest to
 * the former one are no farther than that and the way from there.
 */
static double
limit_by_former(const struct work *work, const struct sides *sides)
{
	struct geonn_vector centre = {sides->centre[0], sides->centre[1], sides->centre[2]};

	if (!work->conditions.plain || work->best_count != work->k || work->k == 0)
		return INFINITY;
	return work->best[work->best_count - 1] + SHAPE_ARCS_MARGIN + work->from_radius + sides->radius +
		sqrt(geonn_chord_squared(work->from, centre));
}

static void
forget(struct work *work)
{
	free_work(work);
	free(work);
}

/* Go on with the observation of a shape that a turn has left.  Returns false if none has. */
static bool
take_up(struct work *work, uint32_t shape)
{
	struct cpu_neighbours_piece *piece = work->piece;
	struct cpu_probes_left *left = &piece->probes->left;

	if (left->work == NULL || left->shape != shape)
		return false;
	free_work(work);
	*work = *left->work;
	free(left->work);
	left->work = NULL;
	work->piece = piece;
	work->question = &piece->search->question;
	work->over = false;
	return true;
}

/* Leave an observation to the next turn, with what was found, unless the search ends. */
static void
leave(struct work *work, uint32_t shape)
{
	struct cpu_neighbours_piece *piece = work->piece;
	struct cpu_probes_left *left = &piece->probes->left;

	if (work->short_of_memory || piece->short_of_memory || atomic_load(piece->search->cancelled))
		return;
	geonn_assert(left->work == NULL);
	left->work = malloc(sizeof(*work));
	left->shape = shape;
	left->forget = forget;
	if (left->work == NULL)
	{
		piece->short_of_memory = true;
		return;
	}
	*left->work = *work;
	work->best = NULL;
	work->best_shape = NULL;
	work->table = NULL;
	work->maybe = NULL;
	work->chosen = NULL;
}

/* Begin with an observation.  `sides` become its first bundle. */
static void
begin(struct work *work, uint32_t shape, const struct cpu_probe_side *side, uint32_t count, struct sides *sides)
{
	set_sides(sides, side, count < CPU_ARCS_LEAF ? count : CPU_ARCS_LEAF);
	begin_observation(work, work->piece->probes->arc[shape],
					  count > CPU_ARCS_LEAF ? work->widest : fmin(work->widest, limit_by_former(work, sides)));
	work->from = (struct geonn_vector) {sides->centre[0], sides->centre[1], sides->centre[2]};
	work->from_radius = count > CPU_ARCS_LEAF ? INFINITY : sides->radius;
	work->progress.stage = STAGE_AROUND;
	work->progress.next = work->progress.step = 0;
	work->progress.walks = false;
	work->progress.inner = 0;
}

static void
answer(struct work *work, uint32_t row)
{
	const struct cpu_neighbours_piece *piece = work->piece;
	const struct cpu_probes *probes = piece->probes;
	uint32_t	shape = piece->first + row;
	const struct cpu_probe_side *side = &probes->side[probes->first_side[shape]];
	uint32_t	count = probes->first_side[shape + 1] - probes->first_side[shape];
	struct progress *progress = &work->progress;
	uint32_t	answered = piece->answered;
	struct sides sides;

	sides.side = NULL;
	/* Only this row can have been left: threads that have other rows do not look, as this one may be left meanwhile. */
	if (row != piece->may_leave || !take_up(work, shape))
		begin(work, shape, side, count, &sides);
	while (progress->stage < STAGE_END && !work->over && !work->short_of_memory)
	{
		if (progress->stage == STAGE_AROUND)
			ask_around(work, probes, shape, !piece->by_index);
		else if (progress->stage == STAGE_INSIDE)
			ask_all_inside(work, probes, shape, !piece->by_index);
		else if (piece->by_index)
			find_arcs(work, side, count, &sides);
		else
			measure_all(work, probes, shape);
		if (work->over)
			break;
		progress->stage++;
		progress->next = 0;
	}
	end_observation(work, row, measure);
	if (piece->answered == answered && row == piece->may_leave)
		leave(work, shape);
}

void
CPU_PATH_NAME(cpu_arcs_probe) (struct cpu_neighbours_piece *piece)
{
	answer_piece(piece, answer);
}
