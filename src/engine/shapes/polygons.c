/*
 * polygons.c
 *		Finds the polygons that an observation lies in.
 *
 * A tree of boxes (boxes.h) gives the polygons whose inside may hold an observation.  For each of
 * them its arcs decide, by the rule of common/ring.c: the observation p is inside if an odd number of arcs cross the
 * meridian between p and the north pole N, or an even number if N is inside.  Each arc's crossing is decided by
 * exact signs, whether p is on it too.
 *
 *
 * Stretches
 *
 * The vertices of a polygon lie in the order of its rings, long arcs with their middles.  Up to eight arcs of
 * one ring that follow each other are a stretch of level 0, eight stretches one of the next level, and so on,
 * across rings too, until at most eight are left.  Let the places of a stretch have longitudes from `west` to
 * `east`, less than half a turn apart, and sines of latitudes from `south` to `north`.
 *
 *	1.	If p's longitude is not between west and east, no arc crosses the half of the great circle from p to N, and p is
 *		on none.
 *	2.	If the stretch is south of p, likewise.
 *	3.	If it is north of p, its arcs cross p's great circle on p's side only, as the
 *		other side is more than half a turn from all of them, and between p and N.  So crossings are where the
 *		ends of an arc are on different sides, east and not, and of a path the two
 *		ends tell whether their number is odd.  In a stretch of several rings, a whole
 *		ring adds an even number.  Of the first ring it has the rest, up to that ring's first vertex, and of the last one a
 *		beginning, from that ring's first vertex on.
 *	4.	Else the stretches below are asked, or the arcs.
 *
 * Only stretches whose rectangle holds p are opened, so that p looks at some arcs of a ring of millions.  A
 * stretch that spans half a turn, or comes within 2^-20 of a pole, where longitudes say little, has all
 * longitudes; it is opened unless it is south of p.  So is every stretch not south of p where p is that near
 * a pole.
 *
 * Rectangles are float32, wider than the arcs by 5e-4 degrees and 2^-22, which is more than what rounding
 * moves: at 2^-20 from a pole, a vector that is off by 2^-51 has a longitude within 2^-31.  North and
 * south are widened by the sagittas, too (cpu/arcs/arcs.c).  Longitudes of an arc are between those of its ends.
 *
 *
 * Boxes
 *
 * The inside of a polygon is between the southernmost and the northernmost place of its rings, unless it has a
 * pole, and between their westernmost and easternmost longitude where some meridian is free of them and N is not inside, as
 * along that meridian nothing is inside.  N is given with the polygon; whether the south pole is inside, the
 * rule above tells.  The box holds the part of the sphere between these latitudes and longitudes.
 */
#include "engine/shapes/polygons.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/arc.h"
#include "engine/base/memory_block.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"
#include "engine/base/memory_columns.h"
#include "engine/cpu/base/curve.h"
#include "engine/shapes/stretch.h"
#include "engine/dataset/dataset_arcs.h"
#include "engine/search/space_curve.h"

#define DEGREES_WIDER 5e-4
#define SINE_WIDER 0x1p-22

/* a piece of the build has this many polygons */
#define PIECE_POLYGONS SHAPE_BOXES_WIDTH

/* or this many stretches */
#define PIECE_STRETCHES (PIECE_ROWS / SHAPE_POLYGONS_STRETCH)

#define LOOK_ARCS 65536

struct building
{
	struct shape_polygons *polygons;
	const struct dataset *dataset;
	const struct shape_vertices *vertices;
	const atomic_bool *cancelled;
	struct shape_polygon *unsorted;
	struct radix_sort sort;
	size_t		stretches;
};

static bool
is_cancelled(const struct building *building)
{
	return atomic_load_explicit(building->cancelled, memory_order_relaxed);
}

/* ---- sides ---- */

/* the stretches of a polygon, by level */
struct levels
{
	const struct shape_polygons_stretch *stretch[SHAPE_POLYGONS_LEVELS];
	uint32_t	count[SHAPE_POLYGONS_LEVELS];
	int			top;
};

static struct levels
levels_of(const struct shape_polygons *polygons, const struct shape_polygon *polygon)
{
	struct levels levels = {.stretch = {polygons->stretch + polygon->stretch},.count = {polygon->stretches}};

	for (; levels.count[levels.top] > SHAPE_POLYGONS_STRETCH; levels.top++)
	{
		levels.stretch[levels.top + 1] = levels.stretch[levels.top] + levels.count[levels.top];
		levels.count[levels.top + 1] = (levels.count[levels.top] + SHAPE_POLYGONS_STRETCH - 1) / SHAPE_POLYGONS_STRETCH;
	}
	return levels;
}

/* a point that is asked about */
struct asking
{
	const struct geonn_vector *vertex;
	struct geonn_vector point;
	double		longitude;		/* shape_stretch_longitude() */
};

/* Return GEONN_INSIDE if an odd number of the arcs of stretches first ... end - 1 of a level cross the meridian. */
static enum geonn_side
ask(const struct asking *asking, const struct levels *levels, int level, uint32_t first, uint32_t end)
{
	bool		odd = false;

	for (uint32_t i = first; i < end; i++)
	{
		const struct shape_polygons_stretch *stretch = &levels->stretch[level][i];
		enum shape_stretch_answer answer = shape_stretch_ask(stretch, asking->point, asking->longitude);
		enum geonn_side side;

		if (answer == SHAPE_STRETCH_ENDS)
			odd ^= shape_stretch_crosses(stretch, asking->vertex, asking->point);
		if (answer != SHAPE_STRETCH_OPEN)
			continue;
		if (level > 0)
		{
			uint32_t	first = i * SHAPE_POLYGONS_STRETCH;
			uint32_t	below = levels->count[level - 1] - first;

			side = ask(asking, levels, level - 1, first,
					   first + (below < SHAPE_POLYGONS_STRETCH ? below : SHAPE_POLYGONS_STRETCH));
		}
		else
			side = geonn_ring_side(asking->vertex + stretch->first, stretch->last - stretch->first + 1, false,
								   asking->point);
		if (side == GEONN_ON_BORDER)
			return side;
		odd ^= side == GEONN_INSIDE;
	}
	return odd ? GEONN_INSIDE : GEONN_OUTSIDE;
}

static enum geonn_side
side_of(const struct shape_polygons *polygons, const struct shape_polygon *polygon, struct geonn_vector point,
		double longitude)
{
	struct levels levels = levels_of(polygons, polygon);
	struct asking asking = {polygons->vertex, point, shape_stretch_longitude(point, longitude)};
	enum geonn_side side = ask(&asking, &levels, levels.top, 0, levels.count[levels.top]);

	if (side == GEONN_ON_BORDER || !polygon->pole_is_inside)
		return side;
	return side == GEONN_INSIDE ? GEONN_OUTSIDE : GEONN_INSIDE;
}

enum geonn_side
shape_polygons_side(const struct shape_polygons *polygons, uint32_t number, struct geonn_vector point, double longitude)
{
	return side_of(polygons, &polygons->polygon[number], point, longitude);
}

/* ---- the build: rings and stretches ---- */

static bool
begins_polygon(const struct dataset *dataset, size_t i)
{
	return i == 0 || dataset->polygon[i] != dataset->polygon[i - 1];
}

static bool
begins_ring(const struct dataset *dataset, size_t i)
{
	return i == 0 || !dataset_arc_goes_on(dataset, i);
}

/* Return the last vertex of a ring, by the ring's last arc. */
static uint32_t
last_vertex(const struct building *building, size_t arc)
{
	return building->vertices->first[arc] + 1 + dataset_arc_is_long(building->dataset, arc);
}

/* Return how many stretches a ring has, by its first and last vertex. */
static uint32_t
stretches_of_ring(uint32_t first, uint32_t last)
{
	return (last - first + SHAPE_POLYGONS_STRETCH - 1) / SHAPE_POLYGONS_STRETCH;
}

/* Return how many stretches all levels have, if level 0 has `count`. */
static size_t
all_stretches(uint32_t count)
{
	size_t		all = count;

	while (count > SHAPE_POLYGONS_STRETCH)
	{
		count = (count + SHAPE_POLYGONS_STRETCH - 1) / SHAPE_POLYGONS_STRETCH;
		all += count;
	}
	return all;
}

/* Take a polygon that has so many stretches; in the second round, write it into `unsorted`. */
static void
take_polygon(struct building *building, size_t first, uint32_t stretches)
{
	if (building->unsorted != NULL)
		building->unsorted[building->polygons->count] = (struct shape_polygon) {
			.arc = (uint32_t) first,
			.stretch = (uint32_t) building->stretches,
			.stretches = stretches,
			.pole_is_inside = building->dataset->polygon[first] < 0
		};
	building->polygons->count++;
	building->stretches += all_stretches(stretches);
}

/* Go through all polygons: the first time to count what they need, the second time to note where each has its part. */
static void
go_through_polygons(struct building *building)
{
	const struct dataset *dataset = building->dataset;
	const uint32_t *vertex = building->vertices->first;
	size_t		first = 0;		/* of the polygon under way */
	size_t		ring = 0;		/* of the ring under way */
	uint32_t	stretches = 0;	/* of the polygon's rings before it */

	building->polygons->count = 0;
	building->stretches = 0;
	for (size_t i = 1; i <= dataset->count; i++)
	{
		bool		ends_polygon = i == dataset->count || begins_polygon(dataset, i);

		if (i % LOOK_ARCS == 0 && is_cancelled(building))
			return;
		if (!ends_polygon && !begins_ring(dataset, i))
			continue;
		if (dataset->polygon[i - 1] != 0)
			stretches += stretches_of_ring(vertex[ring], last_vertex(building, i - 1));
		if (ends_polygon && dataset->polygon[i - 1] != 0)
			take_polygon(building, first, stretches);
		ring = i;
		if (!ends_polygon)
			continue;
		first = i;
		stretches = 0;
	}
}

static double
longitude_of(struct geonn_vector v)
{
	return atan2(v.y, v.x) * (180.0 / 3.14159265358979323846);
}

/*
 * Set the longitudes of a stretch: all longitudes if it is too wide; otherwise turned so that it
 * begins between -180 and 180.
 */
static void
settle_longitudes(struct shape_polygons_stretch *stretch, double west, double east)
{
	bool		everywhere = !(east - west < 179.9);

	if (!everywhere && west < -180.0)
	{
		west += 360.0;
		east += 360.0;
	}
	else if (!everywhere && west >= 180.0)
	{
		west -= 360.0;
		east -= 360.0;
	}
	stretch->west = everywhere ? SHAPE_POLYGONS_EVERYWHERE : (float) west;
	stretch->east = everywhere ? -SHAPE_POLYGONS_EVERYWHERE : (float) east;
}

/* Make a stretch of level 0; its `first`, `last` and rings are set. */
static void
measure_stretch(const struct geonn_vector *vertex, struct shape_polygons_stretch *stretch)
{
	double		longitude = longitude_of(vertex[stretch->first]);
	double		west = longitude;
	double		east = longitude;
	double		south = 1.0;
	double		north = -1.0;
	double		sagitta = 0.0;

	for (uint32_t i = stretch->first; i <= stretch->last; i++)
	{
		double		turn = remainder(longitude_of(vertex[i]) - longitude, 360.0);

		if (fabs(vertex[i].z) > SHAPE_POLYGONS_NEAR_POLE || fabs(turn) > 179.9)
			east = INFINITY;
		longitude += turn;
		west = longitude < west ? longitude : west;
		east = longitude > east ? longitude : east;
		south = vertex[i].z < south ? vertex[i].z : south;
		north = vertex[i].z > north ? vertex[i].z : north;
		if (i > stretch->first)
			sagitta = fmax(sagitta, SHAPE_ARCS_SAGITTA * geonn_chord_squared(vertex[i - 1], vertex[i]));
	}
	settle_longitudes(stretch, west - DEGREES_WIDER, east + DEGREES_WIDER);
	stretch->south = (float) (south - sagitta - SINE_WIDER);
	stretch->north = (float) (north + sagitta + SINE_WIDER);
}

/* Return the least stretch that contains both a and b, where b follows a. */
static struct shape_polygons_stretch
joined(const struct shape_polygons_stretch *a, const struct shape_polygons_stretch *b)
{
	struct shape_polygons_stretch both = {
		.south = a->south < b->south ? a->south : b->south,
		.north = a->north > b->north ? a->north : b->north,
		.first = a->first,
		.last = b->last,
		.first_ring = a->first_ring,
		.last_ring = b->last_ring
	};
	/* Turn b to a's side of the earth.  A turn more or less rounds to 2^-15 degrees, at each of at most eleven levels. */
	double		turn = 360.0 * rint(((double) a->west + a->east - b->west - b->east) / 720.0);
	double		west = fmin(a->west, b->west + turn);
	double		east = fmax(a->east, b->east + turn);

	if (a->west == SHAPE_POLYGONS_EVERYWHERE || b->west == SHAPE_POLYGONS_EVERYWHERE)
		east = INFINITY;
	settle_longitudes(&both, west, east);
	return both;
}

/* Cut a ring whose vertices are first ... last into stretches.  Returns how many they are. */
static uint32_t
cut_ring(struct shape_polygons_stretch *stretch, uint32_t first, uint32_t last)
{
	uint32_t	count = 0;

	for (uint32_t at = first; at < last; at += SHAPE_POLYGONS_STRETCH)
		stretch[count++] = (struct shape_polygons_stretch) {
			.first = at,
			.last = last - at < SHAPE_POLYGONS_STRETCH ? last : at + SHAPE_POLYGONS_STRETCH,
			.first_ring = first,
			.last_ring = first
		};
	return count;
}

/* Cut the rings of a polygon into stretches; those of higher levels have no vertices yet. */
static void
cut_polygon(const struct building *building, const struct shape_polygon *polygon)
{
	const struct dataset *dataset = building->dataset;
	const struct shape_polygons *polygons = building->polygons;
	struct shape_polygons_stretch *stretch = polygons->stretch + polygon->stretch;
	const uint32_t *vertex = building->vertices->first;
	size_t		ring = polygon->arc;

	for (size_t i = polygon->arc + (size_t) 1; stretch < polygons->stretch + polygon->stretch + polygon->stretches; i++)
	{
		if (i % LOOK_ARCS == 0 && is_cancelled(building))
			return;
		if (i < dataset->count && !begins_ring(dataset, i))
			continue;
		stretch += cut_ring(stretch, vertex[ring], last_vertex(building, i - 1));
		ring = i;
	}
	memset(stretch, 0, (all_stretches(polygon->stretches) - polygon->stretches) * sizeof(*stretch));
}

/* Make the stretches of higher levels of a polygon. */
static void
join_stretches(const struct shape_polygons *polygons, const struct shape_polygon *polygon)
{
	struct shape_polygons_stretch *stretch = polygons->stretch + polygon->stretch + polygon->stretches;
	uint32_t	count = polygon->stretches;

	while (count > SHAPE_POLYGONS_STRETCH)
	{
		const struct shape_polygons_stretch *below = stretch - count;

		for (uint32_t at = 0; at < count; at += SHAPE_POLYGONS_STRETCH)
		{
			*stretch = below[at];
			for (uint32_t next = at + 1; next < count && next < at + SHAPE_POLYGONS_STRETCH; next++)
				*stretch = joined(stretch, &below[next]);
			stretch++;
		}
		count = (count + SHAPE_POLYGONS_STRETCH - 1) / SHAPE_POLYGONS_STRETCH;
	}
}

/* ---- the build: boxes ---- */

/* The part of the sphere between two longitudes and two sines of latitudes. */
struct zone
{
	double		west;
	double		east;
	double		south;
	double		north;
};

/* Find the zone that contains the inside of a polygon. */
static struct zone
zone_of(const struct shape_polygons *polygons, const struct shape_polygon *polygon)
{
	struct levels levels = levels_of(polygons, polygon);
	struct shape_polygons_stretch all = levels.stretch[levels.top][0];
	struct geonn_vector south_pole = {0.0, 0.0, -1.0};
	struct zone zone;

	for (uint32_t i = 1; i < levels.count[levels.top]; i++)
		all = joined(&all, &levels.stretch[levels.top][i]);
	zone = (struct zone) {all.west, all.east, fmax(all.south, -1.0), fmin(all.north, 1.0)};
	if (all.west != SHAPE_POLYGONS_EVERYWHERE && !polygon->pole_is_inside)
		return zone;
	zone.west = -180.0;
	zone.east = 180.0;
	if (polygon->pole_is_inside)
		zone.north = 1.0;
	if (side_of(polygons, polygon, south_pole, 0.0) != GEONN_OUTSIDE)
		zone.south = -1.0;
	return zone;
}

/*
 * Find the least and the greatest value of a wave, cosine or sine, between two angles in degrees at most a
 * turn apart; `top` is an angle where the wave is greatest.
 */
static void
range_of_wave(double low, double high, double top, double *least, double *greatest)
{
	const double radians = 3.14159265358979323846 / 180.0;
	double		at_low = cos((low - top) * radians);
	double		at_high = cos((high - top) * radians);

	*least = fmin(at_low, at_high);
	*greatest = fmax(at_low, at_high);
	for (double turn = -720.0; turn <= 720.0; turn += 360.0)
	{
		if (low <= top + turn && top + turn <= high)
			*greatest = 1.0;
		if (low <= top + turn + 180.0 && top + turn + 180.0 <= high)
			*least = -1.0;
	}
}

static void
set_box(struct shape_boxes *boxes, uint32_t number, const struct zone *zone)
{
	const double wider = 1e-9;
	double		nearest_pole = fmax(fabs(zone->south), fabs(zone->north));
	double		nearest_equator = zone->south < 0.0 && zone->north > 0.0 ? 0.0 : fmin(fabs(zone->south), fabs(zone->north));
	double		narrow = sqrt(1.0 - nearest_pole * nearest_pole);
	double		wide = sqrt(1.0 - nearest_equator * nearest_equator);
	double		low[3] = {0.0, 0.0, zone->south - wider};
	double		high[3] = {0.0, 0.0, zone->north + wider};

	for (int axis = 0; axis < 2; axis++)
	{
		double		least;
		double		greatest;

		range_of_wave(zone->west, zone->east, axis == 0 ? 0.0 : 90.0, &least, &greatest);
		low[axis] = least * (least < 0.0 ? wide : narrow) - wider;
		high[axis] = greatest * (greatest > 0.0 ? wide : narrow) + wider;
	}
	shape_boxes_set(boxes, number, low, high);
}

static uint64_t
key_of(const struct zone *zone)
{
	double		middle = (zone->west + zone->east) / 2.0 * (3.14159265358979323846 / 180.0);
	double		sine = (zone->south + zone->north) / 2.0;
	double		cosine = sqrt(fmax(1.0 - sine * sine, 0.0));

	return space_curve_code((struct geonn_vector) {cosine * cos(middle), cosine * sin(middle), sine},
							CPU_CURVE_KEY_LEVELS);
}

static size_t
end_of_piece(const struct building *building, size_t piece)
{
	size_t		end = (piece + 1) * PIECE_POLYGONS;

	return end < building->polygons->count ? end : building->polygons->count;
}

static void
cut_polygons(void *context, size_t piece)
{
	const struct building *building = context;

	for (size_t i = piece * PIECE_POLYGONS; i < end_of_piece(building, piece) && !is_cancelled(building); i++)
		cut_polygon(building, &building->unsorted[i]);
}

/* Measure the stretches of level 0: so many threads work on one polygon of very many sides. */
static void
measure_stretches(void *context, size_t piece)
{
	const struct building *building = context;
	struct shape_polygons_stretch *stretch = building->polygons->stretch;

	if (is_cancelled(building))
		return;
	for (size_t i = piece * PIECE_STRETCHES; i < (piece + 1) * PIECE_STRETCHES && i < building->stretches; i++)
		if (stretch[i].first < stretch[i].last)
			measure_stretch(building->polygons->vertex, &stretch[i]);
}

static void
join_polygons(void *context, size_t piece)
{
	struct building *building = context;

	for (size_t i = piece * PIECE_POLYGONS; i < end_of_piece(building, piece) && !is_cancelled(building); i++)
	{
		struct zone zone;

		join_stretches(building->polygons, &building->unsorted[i]);
		zone = zone_of(building->polygons, &building->unsorted[i]);
		building->sort.key[i] = key_of(&zone);
		building->sort.value[i] = (uint32_t) i;
	}
}

/* Copies polygons into the order of the sort, and sets their boxes; no two pieces share a node of boxes. */
static void
order_polygons(void *context, size_t piece)
{
	struct building *building = context;

	for (size_t i = piece * PIECE_POLYGONS; i < end_of_piece(building, piece) && !is_cancelled(building); i++)
	{
		struct shape_polygon *polygon = &building->polygons->polygon[i];
		struct zone zone;

		*polygon = building->unsorted[building->sort.value[i]];
		zone = zone_of(building->polygons, polygon);
		set_box(&building->polygons->boxes, (uint32_t) i, &zone);
	}
}

static size_t
place_columns(const struct building *building, void *memory)
{
	struct shape_polygons *polygons = building->polygons;
	struct column_block block = {memory, 0};

	COLUMN_PLACE(&block, polygons->polygon, polygons->count);
	COLUMN_PLACE(&block, polygons->stretch, building->stretches);
	shape_boxes_place(&polygons->boxes, &block, polygons->count);
	return block.bytes;
}

/* Place what the build alone needs. */
static size_t
place_room(struct building *building, void *memory)
{
	struct column_block block = {memory, 0};
	uint32_t	count = building->polygons->count;

	COLUMN_PLACE(&block, building->unsorted, count);
	radix_sort_place(&building->sort, &block, count);
	building->sort.count = count;
	building->sort.cancelled = building->cancelled;
	return block.bytes;
}

static bool
fill(struct building *building, struct failure *failure)
{
	size_t		pieces = (building->polygons->count + PIECE_POLYGONS - 1) / PIECE_POLYGONS;

	go_through_polygons(building);
	thread_pool_run(cut_polygons, building, pieces);
	thread_pool_run(measure_stretches, building, (building->stretches + PIECE_STRETCHES - 1) / PIECE_STRETCHES);
	thread_pool_run(join_polygons, building, pieces);
	if (is_cancelled(building))
		return true;
	if (!radix_sort(&building->sort))
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory to sort %u polygons", building->polygons->count);
	thread_pool_run(order_polygons, building, pieces);
	shape_boxes_finish(&building->polygons->boxes);
	return true;
}

bool
shape_polygons_build(struct shape_polygons *polygons, const struct dataset *dataset, const struct shape_vertices *vertices,
					 const atomic_bool *cancelled, struct failure *failure)
{
	struct building building = {
		.polygons = polygons,
		.dataset = dataset,
		.vertices = vertices,
		.cancelled = cancelled
	};
	size_t		room_bytes;
	void	   *room;
	bool		done;

	go_through_polygons(&building);
	if (polygons->count == 0 || is_cancelled(&building))
		return true;
	polygons->vertex = vertices->vertex;
	polygons->bytes = place_columns(&building, NULL);
	polygons->memory = memory_block_allocate(polygons->bytes, failure, "the index of %u polygons", polygons->count);
	if (polygons->memory == NULL)
		return false;
	place_columns(&building, polygons->memory);
	room_bytes = place_room(&building, NULL);
	room = memory_block_allocate(room_bytes, failure, "sorting %u polygons", polygons->count);
	if (room == NULL)
		return false;
	place_room(&building, room);
	done = fill(&building, failure);
	memory_block_release(room, room_bytes);
	return done;
}

void
shape_polygons_free(struct shape_polygons *polygons)
{
	memory_block_release(polygons->memory, polygons->bytes);
}
