/*
 * live_search.c
 *		The nearest points of a base, found in this process.
 *
 * The k nearest points so far are a heap.  With ties, those at the distance of its last one that have no place there
 * are in an array beside it, which begins anew whenever that distance becomes less.  All points within a distance are in
 * that array alone, which is sorted at the end; where all points would have no room there, the engine is asked
 * (geonn_live_has_room_for_all).
 *
 * The points of a base lie in the order of their groups, if it has any, and of a curve.  Sixteen of them are a leaf,
 * sixteen leaves a node, and so on up to one root.  So the places of one group follow each other, and a search within it
 * passes over children that have none of these.  A node has the boxes around its children.  The search goes down to the
 * children in the order of their boxes' distances, as long as these are within the limit, which shrinks with the points that
 * are found.  Boxes and points are compared by float32; a point within the limit is measured as everywhere,
 * in float64 from its degrees.
 *
 * Why no neighbour is passed over: let u and v be the float64 unit vectors of the observation and of a point,
 * and U and V the float32 vectors that are compared.  Each component is at most 1 and thus off by at most
 * 2^-25, so |U - u| and |V - v| are less than 5.2e-8, and | |U - V| - |u - v| | is less than 1.04e-7.  The
 * float32 sum of the squared differences has five roundings on the way to each term, and is greater than
 * |U - V|^2 by less than 3.1e-7 of it.  So where |u - v| is at most c, the sum is at most
 * (c + 1.04e-7)^2 (1 + 3.1e-7).  The limit is that of a c which is not less than the chord of any neighbour
 * (geonn_chord_limit, geonn_radius_limit), with 1.2e-7 and 4e-7 in place of these two numbers: this covers the
 * rounding of the limit itself.
 *
 * A box has the least and the greatest of its points' float32 components.  Rounding is monotone, so each term of the
 * box's sum, and the sum, is at most that of any of its points.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"

#include "live/live_base.h"

/* room for this many tied points at first */
#define TIED_ROOM	64

/* ---- candidates ---- */

static float
float_limit(double chord_squared)
{
	double		chord = sqrt(chord_squared) + 1.2e-7;

	return (float) Min(chord * chord * (1 + 4e-7), 1e6);
}

/*
 * Return whether neighbour a comes before neighbour b.  The order is that of records of references (references.c):
 * if ids are equal, the coordinates decide.
 */
static inline bool
comes_before(const LiveSearch *search, const LiveNeighbour *a, const LiveNeighbour *b)
{
	if (a->distance != b->distance)
		return a->distance < b->distance;
	if (search->ids == NULL ? a->id < b->id : geonn_live_id_is_before(search->ids, a->id, b->id))
		return true;
	if (search->ids == NULL ? b->id < a->id : geonn_live_id_is_before(search->ids, b->id, a->id))
		return false;
	if (a->latitude != b->latitude)
		return a->latitude < b->latitude;
	if (a->longitude != b->longitude)
		return a->longitude < b->longitude;
	return geonn_reference_signs(a->latitude, a->longitude) < geonn_reference_signs(b->latitude, b->longitude);
}

/* Put a neighbour into the heap of this many elements, in place of the first element. */
static void
sift_down(const LiveSearch *search, uint32 count, LiveNeighbour added)
{
	LiveNeighbour *heap = search->found;
	uint32		place = 0;

	for (;;)
	{
		uint32		child = 2 * place + 1;

		if (child >= count)
			break;
		if (child + 1 < count && comes_before(search, &heap[child], &heap[child + 1]))
			child++;
		if (!comes_before(search, &added, &heap[child]))
			break;
		heap[place] = heap[child];
		place = child;
	}
	heap[place] = added;
}

static void
sift_up(const LiveSearch *search, uint32 place, LiveNeighbour added)
{
	LiveNeighbour *heap = search->found;

	while (place > 0 && comes_before(search, &heap[(place - 1) / 2], &added))
	{
		heap[place] = heap[(place - 1) / 2];
		place = (place - 1) / 2;
	}
	heap[place] = added;
}

/* Add a point at the distance of the k-th neighbour; in a search for all within a distance, add any point. */
static void
add_tied(LiveSearch *search, LiveNeighbour added)
{
	if (search->tied_count == search->tied_room)
	{
		uint32		room = 2 * search->tied_room + TIED_ROOM;

		search->tied = search->tied == NULL ? palloc(room * sizeof(LiveNeighbour)) :
			repalloc_huge(search->tied, room * sizeof(LiveNeighbour));
		search->tied_room = room;
	}
	search->tied[search->tied_count++] = added;
}

/* Put a point into the full heap, in place of its first element, which leaves the k nearest. */
static void
replace_last(LiveSearch *search, LiveNeighbour added)
{
	LiveNeighbour former = search->found[0];

	sift_down(search, search->k, added);
	if (!search->ties)
		return;
	if (search->found[0].distance < former.distance)
		search->tied_count = 0;
	else
		add_tied(search, former);
}

/* Offer a point whose chord in float32 is within the limit: decide by the exact distance. */
static pg_noinline void
offer(LiveSearch *search, const LivePoint *point)
{
	struct geonn_vector to = geonn_unit_vector(point->latitude, point->longitude);
	LiveNeighbour added = {
		.distance = geonn_distance_of(search->from, to),
		.chord = geonn_chord_squared(search->from, to),
		.latitude = point->latitude,
		.longitude = point->longitude,
		.id = point->id
	};

	/* a base that is damaged may have a NaN */
	if (!(added.distance <= search->max_distance))
		return;
	if (search->excluding != NULL && geonn_reference_is_own(search->excluding, point->id, search->own_id))
		return;
	if (search->k == 0)
	{
		add_tied(search, added);
		return;
	}
	if (search->count < search->k)
		sift_up(search, search->count++, added);
	else if (comes_before(search, &added, &search->found[0]))
		replace_last(search, added);
	else
	{
		if (search->ties && added.distance == search->found[0].distance)
			add_tied(search, added);
		return;
	}
	if (search->count == search->k)
		search->limit = Min(search->limit, float_limit(geonn_chord_limit(search->found[0].chord)));
}

void
geonn_live_search_begin(LiveSearch *search, const GeonnQuestion *question, double latitude, double longitude,
						int32 group, const LiveIds *ids, LiveNeighbour *found)
{
	search->from = geonn_unit_vector(latitude, longitude);
	search->x = (float) search->from.x;
	search->y = (float) search->from.y;
	search->z = (float) search->from.z;
	search->max_distance = question->max_distance;
	search->limit = float_limit(geonn_radius_limit(question->max_distance));
	search->group = group;
	search->k = question->k;
	search->count = 0;
	search->ids = ids;
	search->excluding = NULL;
	search->found = found;
	search->ties = question->ties;
	search->tied = NULL;
	search->tied_count = 0;
	search->tied_room = 0;
}

void
geonn_live_search_exclude(LiveSearch *search, const GeonnReferences *references, Datum own_id)
{
	search->excluding = references;
	search->own_id = own_id;
}

static int
compare_tied(const void *a, const void *b, void *search)
{
	CHECK_FOR_INTERRUPTS();
	return comes_before(search, a, b) ? -1 : comes_before(search, b, a);
}

uint32
geonn_live_search_end(LiveSearch *search)
{
	for (uint32 left = search->count; left > 1; left--)
	{
		LiveNeighbour last = search->found[left - 1];

		search->found[left - 1] = search->found[0];
		sift_down(search, left - 1, last);
	}
	if (search->tied_count > 1)
		qsort_arg(search->tied, search->tied_count, sizeof(LiveNeighbour), compare_tied, search);
	return search->count + search->tied_count;
}

/* ---- leaves ---- */

/* Return a bit for each point of the leaf that is within the limit. */
static inline uint32
points_within(const LiveSearch *search, const LiveLeaf *leaf, float *chords)
{
	uint32		near = 0;

	for (int i = 0; i < LIVE_NODE; i++)
	{
		float		dx = leaf->x[i] - search->x;
		float		dy = leaf->y[i] - search->y;
		float		dz = leaf->z[i] - search->z;

		chords[i] = dx * dx + dy * dy + dz * dz;
	}
	for (int i = 0; i < LIVE_NODE; i++)
		near |= (uint32) (chords[i] <= search->limit) << i;
	return near;
}

static void
search_leaf(LiveSearch *search, const LiveBase *base, const uint64 *masked, uint32 node)
{
	float		chords[LIVE_NODE];
	uint32		near = points_within(search, &base->leaves[node], chords);

	for (; near != 0; near &= near - 1)
	{
		int			i = pg_rightmost_one_pos32(near);
		uint32		place = node * LIVE_NODE + i;
		uint32		row = place < base->head->points ? base->row[place] : PG_UINT32_MAX;

		if (chords[i] <= search->limit && place >= search->first && place < search->end && row < base->head->rows &&
			(masked == NULL || (masked[row / 64] >> row % 64 & 1) == 0))
			offer(search, &base->points[row]);
	}
}

void
geonn_live_search_leaves(LiveSearch *search, const LiveLeaf *leaves, const LivePoint *points, const int32 *groups,
						 uint32 count)
{
	float		chords[LIVE_NODE];

	for (uint32 leaf = 0; leaf < count; leaf++)
	{
		CHECK_FOR_INTERRUPTS();
		for (uint32 near = points_within(search, &leaves[leaf], chords); near != 0; near &= near - 1)
		{
			uint32		number = leaf * LIVE_NODE + pg_rightmost_one_pos32(near);

			if (search->group == LIVE_ALL_GROUPS || groups[number] == search->group)
				offer(search, &points[number]);
		}
	}
}

/* ---- inner nodes ---- */

/* A child that is still to be searched, with the squared chord to its box. */
typedef struct Child
{
	float		chord;
	uint32		node;
} Child;

/*
 * Find the children of a node that are within the limit, the nearest first, and have numbers from `from` to `end` - 1
 * in their level.  Returns how many they are.
 */
static int
children_within(const LiveSearch *search, const LiveBoxes *boxes, uint32 first, uint32 from, uint32 end,
				Child *children)
{
	float		chords[LIVE_NODE];
	int			count = 0;

	for (int i = 0; i < LIVE_NODE; i++)
	{
		float		dx = Max(Max(boxes->low.x[i] - search->x, search->x - boxes->high.x[i]), 0.0f);
		float		dy = Max(Max(boxes->low.y[i] - search->y, search->y - boxes->high.y[i]), 0.0f);
		float		dz = Max(Max(boxes->low.z[i] - search->z, search->z - boxes->high.z[i]), 0.0f);

		chords[i] = dx * dx + dy * dy + dz * dz;
	}
	for (int i = 0; i < LIVE_NODE && first + i < end; i++)
	{
		int			place = count;

		if (first + i < from || !(chords[i] <= search->limit))
			continue;
		for (; place > 0 && children[place - 1].chord > chords[i]; place--)
			children[place] = children[place - 1];
		children[place] = (Child) {chords[i], first + i};
		count++;
	}
	return count;
}

static void
search_node(LiveSearch *search, const LiveBase *base, const uint64 *masked, int level, uint32 node)
{
	Child		children[LIVE_NODE];
	int			bits = LIVE_NODE_BITS * level;	/* a child has 2^bits places */
	int			count;

	if (level == 0)
	{
		search_leaf(search, base, masked, node);
		return;
	}
	/* all within a distance may be many */
	CHECK_FOR_INTERRUPTS();
	count = children_within(search, &base->boxes[level][node], node * LIVE_NODE, search->first >> bits,
							((search->end - 1) >> bits) + 1, children);
	for (int i = 0; i < count && children[i].chord <= search->limit; i++)
		search_node(search, base, masked, level - 1, children[i].node);
}

void
geonn_live_search_base(LiveSearch *search, const LiveBase *base, const uint64 *masked)
{
	search->first = 0;
	search->end = base->head->points;
	if (search->group != LIVE_ALL_GROUPS)
	{
		/* check the numbers: a damaged base may have any */
		bool		is_there = (uint64) search->group + 1 < base->head->starts;

		search->first = is_there ? base->start[search->group] : 0;
		search->end = is_there ? Min(base->start[search->group + 1], base->head->points) : 0;
	}
	if (search->first < search->end)
		search_node(search, base, masked, base->levels, 0);
}
