/*
 * plane_polygon.c
 *		A polygon of a plane: its rings, and on which side of them a point lies.
 *
 * Only edges at the height of a point bear on the winding numbers about it.  The heights of a polygon are divided into slabs of
 * the same height, and each slab has a list of the edges that reach into it, so that a point meets those of its slab
 * alone.  A height's slab is found by operations of float64 that keep the order of heights: so the slab of a point that is
 * between the ends of an edge is between the slabs of these, and has the edge, however numbers were rounded.
 *
 * An entry of a list is the number of an edge in its ring, of the vertex where it begins, and the edge's box in quanta:
 * 2^-16 of the polygon's width, and of the slab's height, where the first and the last quantum are those of ends below and above
 * the slab.  The edges of a ring but the first follow an entry with RING_MARK and the number of the ring.  Rings stand
 * in their order.  A ring without edges in a slab has the winding number 0 there.
 *
 * A horizontal line crosses climb / height edges on average.  There are as many slabs as let three edges have four and a
 * half entries, so that a list is three times as long as a line has crossings.
 *
 *
 * Quanta
 *
 * Most edges are decided without their vertices.  Quanta of p and of vertices are found by operations that keep the order.  So an
 * edge is not at the height of a point whose quantum is outside those of the edge; and the point is strictly
 * between the heights of its ends where its quantum is strictly between theirs.  Such an edge is on the right of the point where
 * a whole quantum of x lies between them, and counts; on the left, too, and does not count.  A quantum is 2^-16
 * of the width W, and the essay in plane_grid.c shows that 2^-48 W and 2^-1022 / |b.y - a.y| leave no doubt.  Edges for
 * which the latter is not smaller than a quantum, and those that PostGIS may leave out, have all quanta of x, so
 * that their vertices decide.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "zones/plane_polygon.h"

/* flags of an entry; a value has less than 2^26 vertices */
#define RING_MARK UINT32_C(0x80000000)
#define IS_UP UINT32_C(0x40000000)
#define NUMBER_MASK UINT32_C(0x3fffffff)

#define LAST_QUANTUM 65535

/* below this number of edges, a point meets all of them */
#define FEWEST_SORTED 24

/* edges between two looks at whether the statement is to be cancelled */
#define PAUSE 65536

/* ---- sorting ---- */

/* Return the slabs below a height, and a part of one. */
static inline double
height_in_slabs(const PlanePolygon *polygon, double y)
{
	/* of a single slab, the difference may be infinite */
	return polygon->slabs == 1 ? 0 : (y - polygon->y_least) * polygon->slab_scale;
}

static inline uint32
slab_at(const PlanePolygon *polygon, double height)
{
	return Min((uint32) height, polygon->slabs - 1);
}

/* Return the quantum of a height in a slab. */
static inline uint16
quantum_of_height(uint32 slab, double height)
{
	double		quantum = (height - slab) * (LAST_QUANTUM - 1);

	return quantum < 0 ? 0 : quantum < LAST_QUANTUM - 1 ? 1 + (uint16) quantum : LAST_QUANTUM;
}

static inline uint16
quantum_of_x(const PlanePolygon *polygon, double x)
{
	/* without a scale, the difference may be infinite */
	double		quantum = polygon->x_scale > 0 ? (x - polygon->x_least) * polygon->x_scale : 0;

	return (uint16) Min(quantum, LAST_QUANTUM);
}

/* Decide how many slabs there are, and what a quantum is. */
static void
set_scales(PlanePolygon *polygon)
{
	double		width = polygon->x_greatest - polygon->x_least;
	double		height = polygon->y_greatest - polygon->y_least;
	double		slabs = polygon->edges * (height / polygon->climb) / 2;

	/* comparisons with NaN fail: heights of 0, and of more than float64 has */
	polygon->slabs = slabs > 1 && slabs < polygon->edges ? (uint32) slabs : 1;
	polygon->slab_scale = polygon->slabs / height;
	if (!(polygon->slab_scale < DBL_MAX))
		polygon->slabs = 1;
	polygon->x_scale = LAST_QUANTUM / width;
	if (!(polygon->x_scale < DBL_MAX))
		polygon->x_scale = 0;
}

/* Make the entry of an edge from a to b, without its quanta of y. */
static inline PlaneEntry
entry_of(const PlanePolygon *polygon, uint32 edge, struct geonn_plane_point a, struct geonn_plane_point b)
{
	PlaneEntry	entry = {
		.edge = edge | (b.y > a.y ? IS_UP : 0),
		.x_greatest = LAST_QUANTUM
	};

	if (!geonn_plane_edge_is_tiny(a, b) && fabs(b.y - a.y) > 0x1p-980 * polygon->x_scale)
	{
		entry.x_least = quantum_of_x(polygon, Min(a.x, b.x));
		entry.x_greatest = quantum_of_x(polygon, Max(a.x, b.x));
	}
	return entry;
}

/*
 * Go through all edges and the slabs that they reach.  Counts the entries of each slab into ends or, if entries is not NULL,
 * writes them, each slab's from its end on.  last_ring has room for a number a slab.
 */
static void
list_edges(const PlanePolygon *polygon, const PlaneRing *rings, uint32 *ends, PlaneEntry *entries, uint32 *last_ring)
{
	/* the first ring's edges have no mark before them */
	memset(last_ring, 0, polygon->slabs * sizeof(uint32));
	for (uint32 r = 0; r < polygon->rings; r++)
	{
		const PlaneRing *ring = &rings[polygon->first_ring + r];
		struct geonn_plane_point a = plane_vertex(ring, polygon->stride, 0);
		double		from = height_in_slabs(polygon, a.y);

		for (uint32 edge = 0; edge < ring->edges; edge++)
		{
			struct geonn_plane_point b = plane_vertex(ring, polygon->stride, edge + 1);
			double		to = height_in_slabs(polygon, b.y);
			uint32		last = slab_at(polygon, Max(from, to));
			PlaneEntry	entry;

			if (edge % PAUSE == 0)
				CHECK_FOR_INTERRUPTS();
			if (entries != NULL)
				entry = entry_of(polygon, edge, a, b);
			for (uint32 slab = slab_at(polygon, Min(from, to)); slab <= last; slab++)
			{
				if (last_ring[slab] != r)
				{
					last_ring[slab] = r;
					if (entries != NULL)
						entries[ends[slab]] = (PlaneEntry) {.edge = r | RING_MARK};
					ends[slab]++;
				}
				if (entries != NULL)
				{
					entry.y_least = quantum_of_height(slab, Min(from, to));
					entry.y_greatest = quantum_of_height(slab, Max(from, to));
					entries[ends[slab]] = entry;
				}
				ends[slab]++;
			}
			a = b;
			from = to;
		}
	}
}

Size
plane_polygon_sort(PlanePolygon *polygon, const PlaneRing *rings, MemoryContext context)
{
	uint32	   *starts;
	uint32	   *last_ring;
	uint32		count = 0;

	if (polygon->edges < FEWEST_SORTED)
		return 0;
	set_scales(polygon);
	starts = MemoryContextAllocExtended(context, (polygon->slabs + (Size) 1) * sizeof(uint32), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	last_ring = palloc_extended(polygon->slabs * sizeof(uint32), MCXT_ALLOC_HUGE);
	list_edges(polygon, rings, starts, NULL, last_ring);
	for (uint32 slab = 0; slab <= polygon->slabs; slab++)
	{
		uint32		entries = starts[slab];

		starts[slab] = count;
		count += entries;
	}
	polygon->entries = MemoryContextAllocHuge(context, count * sizeof(PlaneEntry));
	list_edges(polygon, rings, starts, polygon->entries, last_ring);
	/* each start has become the end: the start of the next */
	memmove(starts + 1, starts, polygon->slabs * sizeof(uint32));
	starts[0] = 0;
	Assert(starts[polygon->slabs] == count);
	polygon->slab_starts = starts;
	pfree(last_ring);
	return (polygon->slabs + (Size) 1) * sizeof(uint32) + count * sizeof(PlaneEntry);
}

Size
plane_polygon_slab_bytes(const PlanePolygon *polygon)
{
	Size		edges = polygon->edges;

	if (edges < FEWEST_SORTED)
		return 0;
	/*
	 * Less slabs than a quarter of the edges, as a ring climbs twice its height.  An edge reaches into two slabs, and one more
	 * for each height of a slab: half as many as there are edges.  A mark may precede each edge of other rings.
	 */
	return (edges / 4 + 2) * sizeof(uint32) + edges * 5 / 2 * sizeof(PlaneEntry) * (polygon->rings > 1 ? 2 : 1);
}

/* ---- asking ---- */

/* what the rings met so far say of the point */
typedef struct Standing
{
	bool		is_inside;		/* of a member before the present one */
	bool		is_in_member;	/* of the present one */
	uint32		member;
} Standing;

static inline void
note_winding(Standing *standing, const PlaneRing *ring, int winding)
{
	if (ring->is_outer)
	{
		standing->is_inside |= standing->is_in_member;
		standing->is_in_member = winding != 0;
		standing->member = ring->member;
	}
	else if (winding != 0 && ring->member == standing->member)
		standing->is_in_member = false;
}

static PlaneSide
side_by_all(const PlanePolygon *polygon, const PlaneRing *rings, struct geonn_plane_point p)
{
	Standing	standing = {0};

	for (uint32 r = 0; r < polygon->rings; r++)
	{
		const PlaneRing *ring = &rings[polygon->first_ring + r];
		struct geonn_plane_point a = plane_vertex(ring, polygon->stride, 0);
		int			winding = 0;

		for (uint32 edge = 0; edge < ring->edges; edge++)
		{
			struct geonn_plane_point b = plane_vertex(ring, polygon->stride, edge + 1);
			enum geonn_plane_turn turn = geonn_plane_turn(a, b, p);

			if (turn == GEONN_TURN_IN_DOUBT)
				return PLANE_IN_DOUBT;
			winding += turn;
			a = b;
		}
		note_winding(&standing, ring, winding);
	}
	return standing.is_inside || standing.is_in_member ? PLANE_INSIDE : PLANE_OUTSIDE;
}

static PlaneSide
side_by_slab(const PlanePolygon *polygon, const PlaneRing *rings, struct geonn_plane_point p)
{
	double		height = height_in_slabs(polygon, p.y);
	uint32		slab = slab_at(polygon, height);
	uint32		y = quantum_of_height(slab, height);
	uint32		x = quantum_of_x(polygon, p.x);
	const PlaneEntry *end = polygon->entries + polygon->slab_starts[slab + 1];
	const PlaneRing *ring = &rings[polygon->first_ring];
	Standing	standing = {0};
	int			winding = 0;

	for (const PlaneEntry *entry = polygon->entries + polygon->slab_starts[slab]; entry < end; entry++)
	{
		enum geonn_plane_turn turn;

		if (entry->edge & RING_MARK)
		{
			note_winding(&standing, ring, winding);
			ring = &rings[polygon->first_ring + (entry->edge & NUMBER_MASK)];
			winding = 0;
			continue;
		}
		if (y < entry->y_least || y > entry->y_greatest || x > entry->x_greatest + UINT32_C(1))
			continue;
		if (x + 1 < entry->x_least && y > entry->y_least && y < entry->y_greatest)
		{
			winding += entry->edge & IS_UP ? GEONN_TURN_UP : GEONN_TURN_DOWN;
			continue;
		}
		turn = geonn_plane_turn(plane_vertex(ring, polygon->stride, entry->edge & NUMBER_MASK),
								plane_vertex(ring, polygon->stride, (entry->edge & NUMBER_MASK) + 1), p);
		if (turn == GEONN_TURN_IN_DOUBT)
			return PLANE_IN_DOUBT;
		winding += turn;
	}
	note_winding(&standing, ring, winding);
	return standing.is_inside || standing.is_in_member ? PLANE_INSIDE : PLANE_OUTSIDE;
}

PlaneSide
plane_polygon_side(const PlanePolygon *polygon, const PlaneRing *rings, struct geonn_plane_point p)
{
	/* NaN fails the comparisons */
	if (!(p.x >= polygon->x_least && p.x <= polygon->x_greatest && p.y >= polygon->y_least && p.y <= polygon->y_greatest))
		return PLANE_OUTSIDE;
	return polygon->slabs > 0 ? side_by_slab(polygon, rings, p) : side_by_all(polygon, rings, p);
}
