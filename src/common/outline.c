/*
 * outline.c
 *		How far two shapes are from each other.
 *
 * Where an arc of one shape meets an arc of the other, the distance is 0 (arc.c).  If none do, each part of one shape
 * lies on one side of each ring of the other, and its first vector tells on which.  What is inside of both shapes is then
 * bordered by whole rings of either, and each of these rings is inside of the other shape.  So shapes overlap where
 * an arc meets an arc, or where a part of one is in a polygon of the other.
 *
 * In a polygon is what is inside of an odd number of its rings, and what is on one of them.  Signs are exact, so that both
 * questions have the answers of one and the same picture.
 *
 *
 * Boxes
 *
 * Arcs are looked at in stretches, each with a box in space.  The box holds the arcs' ends, and is wider by what an
 * arc rises above its chord.  For an arc of the angle w, with the chord c = 2 sin(w / 2), that is
 * 1 - cos(w / 2) = c^2 / (8 cos(w / 4)^2), at most 0.1465 c^2 up to a quarter circle.  Further 2^-48 on each side make up for
 * rounding: two boxes have a gap of at least 64 * 2^-53 less than the arcs.
 *
 * A pair of boxes whose gap, squared, is above the limit of the least distance so far (geonn_radius_limit()) is left
 * out.  Its arcs are farther from each other, by an angle of 64 * 2^-53, as no angle is smaller than its chord.  The gap has less
 * than 8 * 2^-53 of rounding, and a computed distance of arcs less than 15 * 2^-53 (10 nm): so none of those left out is computed
 * as less.  To have a low limit soon, the pair of boxes with the least gap comes first.
 */
#include "common/outline.h"

#include <math.h>

#include "common/arc.h"
#include "common/assertion.h"

/* ---- boxes ---- */

/* The functions of libm that do this are calls, which take as long as all else that is done with a pair of boxes. */
static inline double
lesser(double one, double other)
{
	return one < other ? one : other;
}

static inline double
greater(double one, double other)
{
	return one > other ? one : other;
}

static struct geonn_outline_box
box_of_arc(struct geonn_vector a, struct geonn_vector b)
{
	double		wider = 0.15 * geonn_chord_squared(a, b) + 0x1p-48;
	struct geonn_outline_box box = {
		.low = {lesser(a.x, b.x) - wider, lesser(a.y, b.y) - wider, lesser(a.z, b.z) - wider},
		.high = {greater(a.x, b.x) + wider, greater(a.y, b.y) + wider, greater(a.z, b.z) + wider}
	};

	return box;
}

static void
widen(struct geonn_outline_box *box, const struct geonn_outline_box *by)
{
	for (int i = 0; i < 3; i++)
	{
		box->low[i] = lesser(box->low[i], by->low[i]);
		box->high[i] = greater(box->high[i], by->high[i]);
	}
}

static inline double
gap_squared(const struct geonn_outline_box *one, const struct geonn_outline_box *other)
{
	double		sum = 0.0;

	for (int i = 0; i < 3; i++)
	{
		double		gap = greater(greater(one->low[i] - other->high[i], other->low[i] - one->high[i]), 0.0);

		sum += gap * gap;
	}
	return sum;
}

/* Return the ends of an arc of a stretch; of a point both are the point. */
static inline void
arc_of(const struct geonn_outline *outline, const struct geonn_outline_box *stretch, size_t number,
	   struct geonn_vector *from, struct geonn_vector *to)
{
	const struct geonn_vector *vector = outline->vectors + stretch->first + number;

	*from = vector[0];
	*to = vector[stretch->is_points ? 0 : 1];
}

/* Make the boxes of the arcs of a stretch. */
static void
make_boxes(const struct geonn_outline *outline, const struct geonn_outline_box *stretch, struct geonn_outline_box *boxes)
{
	for (size_t i = 0; i < stretch->count; i++)
	{
		struct geonn_vector from;
		struct geonn_vector to;

		arc_of(outline, stretch, i, &from, &to);
		boxes[i] = box_of_arc(from, to);
	}
}

/* Append a stretch of so many arcs or points, from a vector on. */
static void
append_stretch(struct geonn_outline *outline, size_t first, size_t count, bool is_points)
{
	struct geonn_outline_box boxes[GEONN_OUTLINE_STRETCH];
	struct geonn_outline_box stretch = {.first = first,.count = count,.is_points = is_points};

	make_boxes(outline, &stretch, boxes);
	for (size_t i = 1; i < count; i++)
		widen(&boxes[0], &boxes[i]);
	for (int i = 0; i < 3; i++)
	{
		stretch.low[i] = boxes[0].low[i];
		stretch.high[i] = boxes[0].high[i];
	}
	outline->boxes[outline->box_count++] = stretch;
}

void
geonn_outline_complete(struct geonn_outline *outline)
{
	size_t		points = 0;		/* that came last, and have no stretch yet */
	const struct geonn_outline_part *part = outline->parts;

	outline->box_count = 0;
	for (size_t i = 0; i < outline->part_count; i++, part++)
	{
		points += part->count == 1;
		if (points > 0 && (part->count > 1 || points == GEONN_OUTLINE_STRETCH || i + 1 == outline->part_count))
		{
			append_stretch(outline, part->first + (part->count == 1) - points, points, true);
			points = 0;
		}
		for (size_t arc = 0; arc + 1 < part->count; arc += GEONN_OUTLINE_STRETCH)
		{
			size_t		rest = part->count - 1 - arc;

			append_stretch(outline, part->first + arc, rest < GEONN_OUTLINE_STRETCH ? rest : GEONN_OUTLINE_STRETCH, false);
		}
	}
	geonn_assert(outline->box_count > 0);
}

/* ---- the nearest arcs ---- */

/* two outlines, and the least distance so far */
struct measuring
{
	const struct geonn_outline *one;
	const struct geonn_outline *other;
	geonn_ring_pause pause;
	double		distance;
	double		limit;			/* on squared gaps */
};

static void
pause_in(const struct measuring *measuring)
{
	if (measuring->pause != NULL)
		measuring->pause();
}

/* Measure the arcs of two stretches. */
static void
measure(struct measuring *measuring, const struct geonn_outline_box *stretch, const struct geonn_outline_box *of_other)
{
	struct geonn_outline_box boxes[GEONN_OUTLINE_STRETCH];
	struct geonn_outline_box other_boxes[GEONN_OUTLINE_STRETCH];

	make_boxes(measuring->one, stretch, boxes);
	make_boxes(measuring->other, of_other, other_boxes);
	for (size_t i = 0; i < stretch->count; i++)
	{
		struct geonn_vector a;
		struct geonn_vector b;

		arc_of(measuring->one, stretch, i, &a, &b);
		for (size_t j = 0; gap_squared(&boxes[i], of_other) <= measuring->limit && j < of_other->count; j++)
		{
			struct geonn_vector c;
			struct geonn_vector d;
			double		distance;

			if (gap_squared(&boxes[i], &other_boxes[j]) > measuring->limit)
				continue;
			arc_of(measuring->other, of_other, j, &c, &d);
			distance = geonn_arcs_distance(a, b, c, d);
			if (distance < measuring->distance)
			{
				measuring->distance = distance;
				measuring->limit = geonn_radius_limit(distance);
			}
		}
	}
}

/* Measure first the two stretches whose boxes have the least gap. */
static void
measure_nearest_boxes(struct measuring *measuring)
{
	const struct geonn_outline_box *nearest = measuring->one->boxes;
	const struct geonn_outline_box *nearest_of_other = measuring->other->boxes;
	double		least = INFINITY;

	for (size_t i = 0; i < measuring->one->box_count && least > 0.0; i++)
	{
		pause_in(measuring);
		for (size_t j = 0; j < measuring->other->box_count; j++)
		{
			double		gap = gap_squared(&measuring->one->boxes[i], &measuring->other->boxes[j]);

			if (gap < least)
			{
				least = gap;
				nearest = &measuring->one->boxes[i];
				nearest_of_other = &measuring->other->boxes[j];
			}
		}
	}
	measure(measuring, nearest, nearest_of_other);
}

static double
nearest_arcs(const struct geonn_outline *one, const struct geonn_outline *other, geonn_ring_pause pause)
{
	struct measuring measuring = {one, other, pause, INFINITY, INFINITY};

	measure_nearest_boxes(&measuring);
	for (size_t i = 0; i < one->box_count; i++)
		for (size_t j = 0; j < other->box_count && measuring.distance > 0.0; j++)
		{
			if (j % 64 == 0)
				pause_in(&measuring);
			if (gap_squared(&one->boxes[i], &other->boxes[j]) <= measuring.limit)
				measure(&measuring, &one->boxes[i], &other->boxes[j]);
		}
	return measuring.distance;
}

/* ---- what lies in a polygon ---- */

/* parts, of which the first and the last are rings; first == end: none */
struct rings
{
	const struct geonn_outline_part *first;
	const struct geonn_outline_part *end;
};

static struct rings
rings_of(const struct geonn_outline *outline)
{
	struct rings rings = {outline->parts, outline->parts + outline->part_count};

	while (rings.first < rings.end && !rings.first->is_ring)
		rings.first++;
	while (rings.first < rings.end && !rings.end[-1].is_ring)
		rings.end--;
	return rings;
}

/* Return whether a polygon of the outline, which has these rings, has the point inside or on its border. */
static bool
holds_point(const struct geonn_outline *outline, struct rings rings, geonn_ring_pause pause, struct geonn_vector point)
{
	bool		is_inside = false;

	for (const struct geonn_outline_part *part = rings.first; part < rings.end; part++)
	{
		enum geonn_side side = GEONN_OUTSIDE;

		if (part->is_ring)
			side = geonn_long_ring_side(outline->vectors + part->first, part->count, part->pole_is_inside, pause, point);
		if (part->is_ring && pause != NULL)
			pause();
		is_inside ^= side == GEONN_INSIDE;
		if (side == GEONN_ON_BORDER || (is_inside && part->is_last_ring))
			return true;
		is_inside &= !part->is_last_ring;
	}
	return false;
}

/* Return whether a polygon of one outline has a part of the other inside, of parts that do not cross its rings. */
static bool
holds_part(const struct geonn_outline *outline, const struct geonn_outline *other, geonn_ring_pause pause)
{
	struct rings rings = rings_of(outline);

	for (size_t i = 0; rings.first < rings.end && i < other->part_count; i++)
	{
		if (pause != NULL && i % 64 == 0)
			pause();
		if (holds_point(outline, rings, pause, other->vectors[other->parts[i].first]))
			return true;
	}
	return false;
}

double
geonn_outline_distance(const struct geonn_outline *one, const struct geonn_outline *other, geonn_ring_pause pause)
{
	double		distance;

	if (holds_part(one, other, pause) || holds_part(other, one, pause))
		return 0.0;
	distance = nearest_arcs(one, other, pause);
	geonn_assert(distance >= 0.0 && !isinf(distance));
	return distance;
}
