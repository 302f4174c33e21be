/*
 * arcs_places.c
 *		Finds the place of a shape that is nearest to an observation, and how far along the shape's lines that is.
 *
 * A pair of a search by arcs has the first of the shape's arcs that are as near as its distance.  That arc
 * is measured once more, as the search has measured it: what gives the pair's distance, an end, the middle of a long arc or
 * the foot, is the place.  So a place at a vertex has that vertex's degrees, and the place does not depend on how
 * observations were put into batches and pieces.  common/arc.c has the error of other places.
 *
 * The fraction of a place needs the lengths of all lines before it.  Few searches ask for places; so the fractions at
 * which arcs begin are computed when one first does, and stay with the index.  They are 8 bytes for each arc,
 * and a dataset of polygons alone has none.  The lengths of arcs are computed on all threads.  Their sums are made by
 * one thread in the order of arcs, in two parts: a sum is off by 10 nm for each arc, and by its own rounding.
 *
 * The number of an arc in its shape, and the measures at its ends, come with the arc, as columns of the dataset; arcs_sides.c
 * finds the side.
 *
 * A pair of two shapes also has an arc of the observation: the first one that is as near to the reference's arc.  The nearest
 * place of one of these two arcs is an end, or the middle of a long one, unless they cross (arcs_probe_search.c).  It is
 * looked for among those of the observation first.  Where the shapes meet, both places are the same: such an end, or where the
 * arcs cross; or the vertex of one shape for which the search has found that the other shape holds it.
 */
#include "engine/cpu/arcs/arcs.h"

#include <math.h>

#include "common/arc.h"
#include "engine/base/memory_block.h"
#include "engine/base/thread_pool.h"
#include "engine/base/memory_columns.h"
#include "engine/cpu/arcs/arcs_probe.h"
#include "engine/cpu/arcs/arcs_sides.h"
#include "engine/cpu/walk/neighbours.h"
#include "engine/cpu/base/vectors.h"
#include "engine/dataset/dataset_arcs.h"

/* ---- fractions ---- */

struct measuring
{
	const struct search *search;
	double	   *length;			/* [dataset->count] the length of each arc of a line, in metres; 0 for all other arcs */
};

static bool
is_cancelled(const struct search *search)
{
	return atomic_load_explicit(search->cancelled, memory_order_relaxed);
}

static void
measure_arcs(void *context, size_t piece)
{
	const struct measuring *measuring = context;
	const struct dataset *dataset = measuring->search->dataset;
	size_t		end = piece_end(piece, dataset->count);

	if (is_cancelled(measuring->search))
		return;
	for (size_t first = piece * PIECE_ROWS; first < end; first += CPU_VECTORS_BLOCK)
	{
		size_t		rows = end - first < CPU_VECTORS_BLOCK ? end - first : CPU_VECTORS_BLOCK;
		double		a[3][CPU_VECTORS_BLOCK];
		double		b[3][CPU_VECTORS_BLOCK];

		cpu_path->vectors(GEONN_METRIC_SPHERE, dataset->latitude + first, dataset->longitude + first, rows,
						  a[0], a[1], a[2]);
		cpu_path->vectors(GEONN_METRIC_SPHERE, dataset->end_latitude + first, dataset->end_longitude + first, rows,
						  b[0], b[1], b[2]);
		for (size_t i = 0; i < rows; i++)
			measuring->length[first + i] = dataset->polygon[first + i] != 0 ? 0.0 :
				geonn_distance_of((struct geonn_vector) {a[0][i], a[1][i], a[2][i]},
								  (struct geonn_vector) {b[0][i], b[1][i], b[2][i]});
	}
}

/* Turn the lengths of a shape's arcs into the fractions at which the arcs begin. */
static void
make_fractions(double *value, size_t count)
{
	struct geonn_sum sum = {0.0, 0.0};

	for (size_t i = 0; i < count; i++)
	{
		struct geonn_sum more = {value[i], 0.0};

		value[i] = sum.high;
		sum = geonn_sum_plus(sum, more);
	}
	/* NAN in a shape without length */
	for (size_t i = 0; i < count; i++)
		value[i] /= sum.high;
}

bool
cpu_arcs_wants_fractions(const struct cpu_arcs *arcs, const struct search *search)
{
	return search->question.places && arcs->vertices.has_lines && atomic_load(&arcs->fraction) == NULL;
}

bool
cpu_arcs_add_fractions(struct cpu_arcs *arcs, const struct search *search, struct failure *failure)
{
	struct dataset *dataset = search->dataset;
	size_t		bytes = dataset->count * sizeof(double);
	struct measuring measuring = {search, memory_block_allocate(bytes, failure, "the lengths of %zu arcs", dataset->count)};
	size_t		first = 0;

	if (measuring.length == NULL)
		return false;
	thread_pool_run(measure_arcs, &measuring, pieces_of(dataset->count));
	while (first < dataset->count && !is_cancelled(search))
	{
		size_t		end = first + 1;

		while (end < dataset->count && dataset->shape[end] == dataset->shape[first])
			end++;
		make_fractions(measuring.length + first, end - first);
		first = end;
	}
	if (is_cancelled(search))
	{
		memory_block_release(measuring.length, bytes);
		return fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
	}
	arcs->fraction_bytes = bytes;
	atomic_store(&arcs->fraction, measuring.length);
	atomic_fetch_add(&dataset->built_bytes, bytes);
	return true;
}

static bool
has_length(const struct dataset *dataset, size_t arc)
{
	return dataset->latitude[arc] != dataset->end_latitude[arc] || dataset->longitude[arc] != dataset->end_longitude[arc];
}

/*
 * Return whether an arc is a point, rather than a repeated vertex of a line: a point has no length, nor does any arc
 * before or behind it in its part.
 */
static bool
is_point(const struct dataset *dataset, size_t arc)
{
	if (has_length(dataset, arc))
		return false;
	for (size_t i = arc; i > 0 && dataset_arc_goes_on(dataset, i); i--)
		if (has_length(dataset, i - 1))
			return false;
	for (size_t i = arc + 1; i < dataset->count && dataset_arc_goes_on(dataset, i); i++)
		if (has_length(dataset, i))
			return false;
	return true;
}

/* Find at which fractions of its shape's lines an arc begins and ends; NAN if the arc is on no line. */
static void
find_fractions(const struct cpu_arcs *arcs, const struct dataset *dataset, size_t arc, double *begin, double *end)
{
	const double *fraction = atomic_load(&arcs->fraction);

	*begin = *end = NAN;
	if (fraction == NULL || dataset->polygon[arc] != 0 || is_point(dataset, arc) || isnan(fraction[arc]))
		return;
	*begin = fraction[arc];
	*end = arc + 1 < dataset->count && dataset->shape[arc + 1] == dataset->shape[arc] ? fraction[arc + 1] :
		1.0;
}

/* ---- places ---- */

/*
 * Find the place on an arc, or on half of one, whose foot has this distance.  Returns false if the foot has another
 * distance, or if the point is a pole of the great circle, from which all of the arc is equally far.
 */
static bool
find_foot(struct geonn_vector point, struct geonn_vector a, struct geonn_vector b, double distance,
		  struct cpu_place *place)
{
	struct geonn_vector foot = geonn_arc_foot(point, a, b);

	if (geonn_foot_distance(point, a, b) != distance || !(geonn_dot(foot, foot) >= 0x1p-800))
		return false;
	geonn_vector_degrees(foot, &place->latitude, &place->longitude);
	return true;
}

/*
 * Find the place on a long arc that has this distance: the foot on its first half or on its second,
 * or the middle.  Returns false if none of them has: then an end of the arc has.
 */
static bool
find_beyond(struct geonn_vector point, struct geonn_vector a, struct geonn_vector middle, struct geonn_vector b,
			double distance, struct cpu_place *place)
{
	if (find_foot(point, a, middle, distance, place) || find_foot(point, middle, b, distance, place))
		return true;
	if (geonn_distance_of(point, middle) != distance)
		return false;
	geonn_vector_degrees(middle, &place->latitude, &place->longitude);
	return true;
}

enum where
{
	AT_BEGIN,
	BETWEEN,
	AT_END
};

/* Find the place on an arc that has this distance: the place's degrees, and where on the arc it is. */
static enum where
find_place(const struct dataset *dataset, uint32_t arc, struct geonn_vector point, double distance, struct cpu_place *place)
{
	double		latitude = dataset->latitude[arc];
	double		longitude = dataset->longitude[arc];
	double		end_latitude = dataset->end_latitude[arc];
	double		end_longitude = dataset->end_longitude[arc];
	struct geonn_vector a = geonn_unit_vector(latitude, longitude);
	struct geonn_vector b = geonn_unit_vector(end_latitude, end_longitude);

	if (geonn_distance_of(point, a) == distance)
	{
		place->latitude = latitude;
		place->longitude = longitude;
		return AT_BEGIN;
	}
	/* At a vertex the distance is 0, and only rounding would decide between foot and end: take the end. */
	if (!(distance == 0.0 && geonn_distance_of(point, b) == 0.0) &&
		(dataset_arc_is_long(dataset, arc) ?
		 find_beyond(point, a, geonn_arc_middle(latitude, longitude, end_latitude, end_longitude), b, distance, place) :
		 find_foot(point, a, b, distance, place)))
		return BETWEEN;
	place->latitude = end_latitude;
	place->longitude = end_longitude;
	return AT_END;
}

/* Return which part of an arc's length lies before a place between its ends; NAN if the arc has no length. */
static double
share_before(const struct dataset *dataset, uint32_t arc, const struct cpu_place *place)
{
	struct geonn_vector a = geonn_unit_vector(dataset->latitude[arc], dataset->longitude[arc]);
	struct geonn_vector b = geonn_unit_vector(dataset->end_latitude[arc], dataset->end_longitude[arc]);
	double		share = geonn_distance_of(a, geonn_unit_vector(place->latitude, place->longitude)) / geonn_distance_of(a, b);

	/* Rounding must not put the place behind the beginning of the next arc; a share of NaN stays NaN. */
	return share > 1.0 ? 1.0 : share;
}

/* Return the measure at a place of an arc; NAN if the arc has none. */
static double
measure_at(const struct dataset *dataset, uint32_t arc, enum where where, double share)
{
	double		begin = dataset->measure[arc];
	double		end = dataset->end_measure[arc];

	/* two products, which do not overflow as the difference of the measures may */
	return where == AT_BEGIN || begin == end ? begin : where == AT_END ? end : (1.0 - share) * begin + share * end;
}

/* Complete the place that is there on an arc, for the side of a place of the observation. */
static void
complete_place(const struct cpu_arcs *arcs, const struct dataset *dataset, uint32_t arc, enum where where,
			   struct geonn_vector from, struct cpu_place *place)
{
	double		share = where == BETWEEN ? share_before(dataset, arc, place) : NAN;
	double		begin;
	double		end;

	find_fractions(arcs, dataset, arc, &begin, &end);
	place->fraction = where == AT_BEGIN ? begin : where == AT_END ? end : begin + (end - begin) * share;
	if (dataset->measure != NULL)
		place->measure = measure_at(dataset, arc, where, share);
	if (dataset->segment == NULL || dataset->segment[arc] == 0)
		return;
	place->segment = dataset->segment[arc];
	place->side = where == BETWEEN ? cpu_arcs_side(dataset, arc, from) :
		cpu_arcs_side_at_vertex(dataset, arc, where == AT_END, from);
}

static struct cpu_place
place_at(double latitude, double longitude)
{
	return (struct cpu_place) {latitude, longitude, NAN, NAN, 0, GEONN_LINE_NO_SIDE, latitude, longitude};
}

struct cpu_place
cpu_arcs_place(const struct cpu_arcs *arcs, const struct dataset *dataset, const struct cpu_observation *observation,
			   double distance, uint32_t arc)
{
	struct cpu_place place = place_at(observation->latitude, observation->longitude);

	if (dataset->polygon[arc] == 0 || distance != 0.0)
		complete_place(arcs, dataset, arc, find_place(dataset, arc, observation->vector, distance, &place),
					   observation->vector, &place);
	return place;
}

/* ---- places of two shapes ---- */

/* the ends of an arc, and between them the middle of a long one */
struct corners
{
	size_t		count;
	struct geonn_vector vector[3];
	double		latitude[3];
	double		longitude[3];
};

static struct corners
corners_of(const struct dataset *dataset, uint32_t arc)
{
	double		latitude = dataset->latitude[arc];
	double		longitude = dataset->longitude[arc];
	double		end_latitude = dataset->end_latitude[arc];
	double		end_longitude = dataset->end_longitude[arc];
	struct corners corners = {1, {geonn_unit_vector(latitude, longitude)}, {latitude}, {longitude}};

	if (dataset_arc_is_long(dataset, arc))
	{
		corners.vector[1] = geonn_arc_middle(latitude, longitude, end_latitude, end_longitude);
		geonn_vector_degrees(corners.vector[1], &corners.latitude[1], &corners.longitude[1]);
		corners.count++;
	}
	corners.vector[corners.count] = geonn_unit_vector(end_latitude, end_longitude);
	corners.latitude[corners.count] = end_latitude;
	corners.longitude[corners.count++] = end_longitude;
	return corners;
}

/* Return the corner of an arc that is nearest to another arc, the first of these; *distance has the least distance so far. */
static size_t
nearest_corner(const struct corners *corners, const struct corners *others, double *distance)
{
	size_t		nearest = SIZE_MAX;

	for (size_t i = 0; i < corners->count; i++)
	{
		double		measured = geonn_chain_distance(corners->vector[i], others->vector, others->count);

		if (measured >= *distance)
			continue;
		*distance = measured;
		nearest = i;
	}
	return nearest;
}

/* Find where two arcs cross, or the first halves of them that do.  Returns false if they meet along a stretch, or nearly. */
static bool
find_crossing(const struct corners *corners, const struct corners *others, struct cpu_place *place)
{
	for (size_t i = 1; i < others->count; i++)
		for (size_t j = 1; j < corners->count; j++)
		{
			const struct geonn_vector *own = &corners->vector[j];
			const struct geonn_vector *other = &others->vector[i];
			struct geonn_vector crossing;

			if (geonn_arcs_distance(own[-1], own[0], other[-1], other[0]) > 0.0)
				continue;
			if (!geonn_arcs_crossing(own[-1], own[0], other[-1], other[0], &crossing))
				return false;
			geonn_vector_degrees(crossing, &place->latitude, &place->longitude);
			place->own_latitude = place->latitude;
			place->own_longitude = place->longitude;
			return true;
		}
	return false;
}

/*
 * Find the places of an arc and of an arc of an observation that have this distance.  Returns where on its arc the reference's
 * place is.
 */
static enum where
find_places(const struct dataset *dataset, uint32_t arc, const struct dataset *shapes, uint32_t own_arc, double distance,
			struct cpu_place *place)
{
	struct corners corners = corners_of(shapes, own_arc);
	struct corners others = corners_of(dataset, arc);
	struct cpu_place own = {0};
	double		least = INFINITY;
	size_t		corner = nearest_corner(&corners, &others, &least);
	size_t		other = nearest_corner(&others, &corners, &least);
	enum where	where;

	geonn_assert(distance == 0.0 || least == distance);
	if (distance < least && find_crossing(&corners, &others, place))
		return BETWEEN;
	if (other != SIZE_MAX)
	{
		*place = place_at(others.latitude[other], others.longitude[other]);
		if (distance > 0.0)
		{
			find_place(shapes, own_arc, others.vector[other], least, &own);
			place->own_latitude = own.latitude;
			place->own_longitude = own.longitude;
		}
		return other == 0 ? AT_BEGIN : other + 1 == others.count ? AT_END : BETWEEN;
	}
	own = *place = place_at(corners.latitude[corner], corners.longitude[corner]);
	where = find_place(dataset, arc, corners.vector[corner], least, place);
	if (distance == 0.0 && where == BETWEEN)
		*place = own;
	else if (distance == 0.0)
		*place = place_at(place->latitude, place->longitude);
	return where;
}

/* Return the arc of a shape that is an observation that begins at a vertex, or has its middle there. */
static uint32_t
arc_of_vertex(const struct cpu_probes *probes, uint32_t shape, uint32_t vertex)
{
	uint32_t	first = probes->arc[shape];
	uint32_t	end = probes->arc[shape + 1];

	while (end - first > 1)
	{
		uint32_t	middle = first + (end - first) / 2;

		if (probes->vertices.first[middle] <= vertex)
			first = middle;
		else
			end = middle;
	}
	return first;
}

struct cpu_place
cpu_arcs_place_of_shape(const struct cpu_arcs *arcs, const struct dataset *dataset, const struct cpu_probes *probes,
						uint32_t shape, const struct candidate *pair)
{
	const struct dataset *shapes = probes->dataset;
	uint32_t	arc = pair->place;
	uint32_t	own_arc = pair->own == OWN_POLYGON ? 0 : arc_of_vertex(probes, shape, pair->own & ~OWN_ARC);
	struct cpu_place place = place_at(dataset->latitude[arc], dataset->longitude[arc]);
	enum where	where = AT_BEGIN;

	if (pair->own < OWN_POLYGON)
		return place_at(shapes->latitude[own_arc], shapes->longitude[own_arc]);
	if (pair->own & OWN_ARC)
		where = find_places(dataset, arc, shapes, own_arc, pair->distance, &place);
	complete_place(arcs, dataset, arc, where, geonn_unit_vector(place.own_latitude, place.own_longitude), &place);
	if (pair->distance == 0.0 && place.side != GEONN_LINE_NO_SIDE)
		place.side = GEONN_LINE_ON;
	return place;
}
