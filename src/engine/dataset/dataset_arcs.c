/*
 * dataset_arcs.c
 *		Checks references that are arcs of shapes, and tells which are long.
 *
 * The index of arcs (engine/cpu/arcs/arcs.c) relies on these rules: the arcs of a shape and those of a
 * polygon are adjacent, and the rings of a polygon are closed.  Arcs follow each other in a ring while
 * each begins where the one before ends, by the same degrees.
 */
#include "engine/dataset/dataset_arcs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/arc.h"
#include "common/assertion.h"

/*
 * Return whether the ends of an arc are antipodal (arc.h).  Antipodes within 2^-40 have opposite
 * latitudes with the same precision, because latitudes never differ by more than the distance: for
 * most arcs the latitudes decide, without vectors.
 */
static bool
is_antipodal(const struct dataset *dataset, size_t i)
{
	return fabs(dataset->latitude[i] + dataset->end_latitude[i]) < 1e-3 &&
		geonn_arc_is_antipodal(geonn_unit_vector(dataset->latitude[i], dataset->longitude[i]),
							   geonn_unit_vector(dataset->end_latitude[i], dataset->end_longitude[i]));
}

static bool
is_same_place(double latitude1, double longitude1, double latitude2, double longitude2)
{
	return (latitude1 == latitude2 && longitude1 == longitude2) ||
		geonn_chord_squared(geonn_unit_vector(latitude1, longitude1), geonn_unit_vector(latitude2, longitude2)) == 0.0;
}

bool
dataset_check_last_ring(const struct dataset *dataset, size_t end, struct failure *failure)
{
	size_t		first = dataset->ring_first;

	geonn_assert(end > 0 && (dataset->polygon[end - 1] == 0 || first < end));
	if (dataset->polygon[end - 1] == 0 ||
		is_same_place(dataset->end_latitude[end - 1], dataset->end_longitude[end - 1],
					  dataset->latitude[first], dataset->longitude[first]))
		return true;
	return fail(failure, GEONN_ERROR_PROTOCOL, "a ring of polygon %d is not closed", dataset->last_polygon);
}

/* Check an arc by itself. */
static bool
check_arc(const struct dataset *dataset, size_t i, struct failure *failure)
{
	if (!geonn_coordinates_valid(dataset->end_latitude[i], dataset->end_longitude[i]))
		return fail(failure, GEONN_ERROR_PROTOCOL, "the coordinates of an arc's end are out of range");
	if (is_antipodal(dataset, i))
		return fail(failure, GEONN_ERROR_PROTOCOL, "the ends of an arc are antipodal");
	if (dataset->polygon[i] == INT32_MIN)
		return fail(failure, GEONN_ERROR_PROTOCOL, "the number of a polygon is out of range");
	return true;
}

/*
 * Return whether an arc has the same bytes as the arc before it in a column; true if column is NULL: the
 * dataset does not have it.
 */
static inline bool
is_same(const void *column, size_t width, size_t i)
{
	const char *value;

	if (column == NULL)
		return true;
	value = (const char *) column + i * width;
	return memcmp(value, value - width, width) == 0;
}

/*
 * All arcs of a shape must have the same tag, group, radius, windows, weights and parties.  Return the name of the
 * first of these in which arc i differs from the arc before it; NULL: none.
 */
static const char *
difference(const struct dataset *dataset, size_t i)
{
	if (!is_same(dataset->tag, sizeof(*dataset->tag), i))
		return "tags";
	if (!is_same(dataset->group, sizeof(*dataset->group), i))
		return "groups";
	if (!is_same(dataset->radius, sizeof(*dataset->radius), i))
		return "radiuses";
	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
		if (!is_same(dataset->low[window], sizeof(int64_t), i) || !is_same(dataset->high[window], sizeof(int64_t), i))
			return "windows";
	if (!is_same(dataset->edges, sizeof(*dataset->edges), i))
		return "windows";
	for (int weight = 0; weight < GEONN_WEIGHTS_MAX; weight++)
		if (!is_same(dataset->weight[weight], sizeof(double), i))
			return "weights";
	for (int party = 0; party < GEONN_PARTIES_MAX; party++)
		if (!is_same(dataset->party[party], sizeof(int32_t), i))
			return "parties";
	return NULL;
}

/* Check the number of arc i, and that of the last arc of its part. */
static bool
check_number(const struct dataset *dataset, size_t i, bool same_polygon, struct failure *failure)
{
	int32_t		number = dataset->segment[i];
	int32_t		end = dataset->part_end[i];

	if (i > 0 && dataset_part_goes_on(dataset, i) ?
		same_polygon && dataset_arc_goes_on(dataset, i) && number == dataset->segment[i - 1] + 1 &&
		end == dataset->part_end[i - 1] :
		number >= 0 && number <= end)
		return true;
	return fail(failure, GEONN_ERROR_PROTOCOL, "arc %d of a line or ring that ends with arc %d is out of order", number, end);
}

bool
dataset_check_arcs(struct dataset *dataset, size_t count, struct failure *failure)
{
	for (size_t i = dataset->count; i < count; i++)
	{
		int32_t		expected = i == 0 ? 0 : dataset->shape[i - 1];
		bool		same_shape = i > 0 && dataset->shape[i] == expected;
		const char *differs = same_shape ? difference(dataset, i) : NULL;
		int32_t		polygon = dataset->polygon[i];
		bool		same_polygon = same_shape && polygon == dataset->polygon[i - 1];

		if (!check_arc(dataset, i, failure))
			return false;
		dataset->part_bytes += geonn_arc_pieces_bytes(dataset_arc_pieces(dataset, i));
		if (!same_shape && dataset->shape[i] != (i == 0 ? 0 : expected + 1))
			return fail(failure, GEONN_ERROR_PROTOCOL, "shape %d follows shape %d", dataset->shape[i],
						i == 0 ? -1 : expected);
		if (differs != NULL)
			return fail(failure, GEONN_ERROR_PROTOCOL, "arcs of shape %d have different %s", dataset->shape[i], differs);
		if (dataset->segment != NULL && !check_number(dataset, i, same_polygon, failure))
			return false;
		if (same_polygon && dataset_arc_goes_on(dataset, i))
			continue;

		/* Arc i begins another ring, or another part of a shape. */
		dataset->part_bytes += polygon == 0 ? GEONN_LINE_INDEX_BYTES : GEONN_RING_INDEX_BYTES;
		if (i > 0 && !dataset_check_last_ring(dataset, i, failure))
			return false;
		if (polygon == 0)
			continue;
		if (!same_polygon && abs(polygon) <= dataset->last_polygon)
			return fail(failure, GEONN_ERROR_PROTOCOL, "polygon %d follows polygon %d", polygon, dataset->last_polygon);
		geonn_assert(abs(polygon) >= dataset->last_polygon);
		dataset->last_polygon = abs(polygon);
		dataset->ring_first = i;
	}
	return true;
}

uint32_t
dataset_arc_pieces(const struct dataset *dataset, size_t arc)
{
	return geonn_arc_pieces(dataset->latitude[arc], dataset->longitude[arc], dataset->end_latitude[arc],
							dataset->end_longitude[arc]);
}

bool
dataset_arc_is_long(const struct dataset *dataset, size_t arc)
{
	double		along = fabs(dataset->latitude[arc] - dataset->end_latitude[arc]);
	double		across = fabs(dataset->longitude[arc] - dataset->end_longitude[arc]);

	/*
	 * A path along a meridian and a parallel is never shorter than the arc: where it is below a
	 * quarter circle, so is the arc.
	 */
	across = across > 360.0 ? across - 360.0 : across;
	across = across > 180.0 ? 360.0 - across : across;
	if (along + across < 89.9)
		return false;
	return geonn_arc_is_long(geonn_unit_vector(dataset->latitude[arc], dataset->longitude[arc]),
							 geonn_unit_vector(dataset->end_latitude[arc], dataset->end_longitude[arc]));
}

struct geonn_vector
dataset_arc_middle(const struct dataset *dataset, size_t arc)
{
	return geonn_arc_middle(dataset->latitude[arc], dataset->longitude[arc], dataset->end_latitude[arc],
							dataset->end_longitude[arc]);
}
