/*
 * arcs_sides.c
 *		Tells on which side of a line or ring an observation lies, seen along it.
 *
 * The side of an arc is the sign of a determinant: the exact one of its two vectors and the point's (common/ring_side.h).  An
 * arc longer than a quarter circle has one great circle, too.
 *
 * Where the nearest place is a vertex, two arcs meet there: the one before it and the one behind it, of those that have
 * a length; in a line or ring that ends where it begins, the last arc comes before the first.  The point then has the side that
 * both arcs give it.  Beyond a bend of more than a right angle they may disagree.  A point whose nearest place is a bend lies
 * outside of it: to the right where the line turns to the left.  So the answer is the same whichever of the two arcs a search
 * has found.  The bend alone would not do: in a line that is all but straight, rounding decides which way it turns, and also
 * whether the nearest place is a vertex.
 *
 * Where one arc ends the line, its great circle decides, as if the line went on.  A point straight ahead is on it.
 */
#include "engine/cpu/arcs/arcs_sides.h"

#include "common/ring_side.h"
#include "engine/dataset/dataset_arcs.h"

#define NO_ARC SIZE_MAX

static struct geonn_vector
begin_of(const struct dataset *dataset, size_t arc)
{
	return geonn_flattened(geonn_unit_vector(dataset->latitude[arc], dataset->longitude[arc]));
}

static struct geonn_vector
end_of(const struct dataset *dataset, size_t arc)
{
	return geonn_flattened(geonn_unit_vector(dataset->end_latitude[arc], dataset->end_longitude[arc]));
}

static bool
is_same(struct geonn_vector u, struct geonn_vector v)
{
	return u.x == v.x && u.y == v.y && u.z == v.z;
}

static bool
has_length(const struct dataset *dataset, size_t arc)
{
	return !is_same(begin_of(dataset, arc), end_of(dataset, arc));
}

static bool
begins_part(const struct dataset *dataset, size_t arc)
{
	return arc == 0 || !dataset_part_goes_on(dataset, arc);
}

/* Return the last arc with length up to this one, in the same part; NO_ARC: none. */
static size_t
last_with_length(const struct dataset *dataset, size_t arc)
{
	while (!has_length(dataset, arc))
		if (begins_part(dataset, arc--))
			return NO_ARC;
	return arc;
}

/* Return the first arc with length of arcs first ... last; NO_ARC: none. */
static size_t
first_with_length(const struct dataset *dataset, size_t first, size_t last)
{
	while (first <= last && !has_length(dataset, first))
		first++;
	return first <= last ? first : NO_ARC;
}

/* Return 1 if a vector lies to the left of an arc, -1 if to the right, 0 if on its great circle. */
static int
turn_of(const struct dataset *dataset, size_t arc, struct geonn_vector vector)
{
	return geonn_orientation(begin_of(dataset, arc), end_of(dataset, arc), vector);
}

static enum geonn_line_side
side_of(int turn)
{
	return turn > 0 ? GEONN_LINE_LEFT : turn < 0 ? GEONN_LINE_RIGHT : GEONN_LINE_ON;
}

enum geonn_line_side
cpu_arcs_side(const struct dataset *dataset, size_t arc, struct geonn_vector point)
{
	return side_of(turn_of(dataset, arc, geonn_flattened(point)));
}

/* Return the last arc with length before a vertex where an arc begins; NO_ARC: the line begins there. */
static size_t
find_before(const struct dataset *dataset, size_t arc, size_t last)
{
	if (!begins_part(dataset, arc))
		return last_with_length(dataset, arc - 1);
	return is_same(begin_of(dataset, arc), end_of(dataset, last)) ? last_with_length(dataset, last) : NO_ARC;
}

enum geonn_line_side
cpu_arcs_side_at_vertex(const struct dataset *dataset, size_t arc, bool at_end, struct geonn_vector point)
{
	struct geonn_vector flat = geonn_flattened(point);
	size_t		last = arc + (size_t) (dataset->part_end[arc] - dataset->segment[arc]);
	size_t		before = at_end ? last_with_length(dataset, arc) : find_before(dataset, arc, last);
	size_t		behind = first_with_length(dataset, at_end ? arc + 1 : arc, last);
	int			side_before;
	int			side_behind;
	int			bend;

	geonn_assert(last < dataset->count && dataset->shape[last] == dataset->shape[arc]);
	if (before == NO_ARC && behind == NO_ARC)
		return GEONN_LINE_NO_SIDE;
	side_before = turn_of(dataset, before == NO_ARC ? behind : before, flat);
	side_behind = turn_of(dataset, behind == NO_ARC ? before : behind, flat);
	bend = side_before == side_behind ? 0 : turn_of(dataset, before, end_of(dataset, behind));
	return side_of(bend != 0 ? -bend : side_before);
}
