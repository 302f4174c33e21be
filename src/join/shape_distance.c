/*
 * shape_distance.c
 *		geonn_distance() of two shapes: both are read as outlines, which are then measured (common/outline.h).
 */
#include "postgres.h"

#include "fmgr.h"

#include "base/compat.h"
#include "common/outline.h"
#include "join/geodesics.h"
#include "points/shape.h"

PG_FUNCTION_INFO_V1(geonn_distance_of_shapes);

/* An outline, and its arrays, which are palloc'd and grow */
typedef struct Outline
{
	struct geonn_outline outline;
	struct geonn_vector *vectors;
	size_t		vector_count;
	size_t		vector_room;
	struct geonn_outline_part *parts;
	size_t		part_room;
} Outline;

/* Return the array with room for so many elements: itself, or a larger copy. */
static void *
with_room(void *array, size_t *room, size_t wanted, size_t element)
{
	if (wanted <= *room)
		return array;
	*room = Max(wanted, 2 * *room);
	return repalloc_huge(array, *room * element);
}

static void
append_part(Outline *shape, const GeonnPart *part)
{
	size_t		number = shape->outline.part_count++;

	shape->parts = with_room(shape->parts, &shape->part_room, number + 1, sizeof(*shape->parts));
	shape->parts[number] = (struct geonn_outline_part) {
		.first = shape->vector_count,
		.count = part->count,
		.is_ring = part->kind == GEONN_PART_RING,
		.is_last_ring = part->is_last_ring,
		.pole_is_inside = part->pole_is_inside
	};
	shape->vectors = with_room(shape->vectors, &shape->vector_room, shape->vector_count + part->count, sizeof(*shape->vectors));
	memcpy(shape->vectors + shape->vector_count, part->vectors, part->count * sizeof(*shape->vectors));
	shape->vector_count += part->count;
}

static char *
name_argument(const void *which)
{
	return pstrdup(which);
}

/* Read a shape, which errors call that of `which`.  Returns false if it is empty. */
static bool
read_outline(GeonnPointKind kind, Datum value, const char *which, Outline *shape)
{
	GeonnShapeReader *reader = geonn_shape_open(kind, value, name_argument, which);
	GeonnPart	part;

	shape->outline.part_count = 0;
	shape->vector_count = 0;
	shape->vector_room = 16;
	shape->vectors = palloc(shape->vector_room * sizeof(*shape->vectors));
	shape->part_room = 1;
	shape->parts = palloc(shape->part_room * sizeof(*shape->parts));
	while (geonn_shape_next(reader, &part))
		append_part(shape, &part);
	geonn_shape_close(reader);
	if (shape->outline.part_count == 0)
		return false;
	shape->outline.vectors = shape->vectors;
	shape->outline.parts = shape->parts;
	shape->outline.boxes = palloc_extended(geonn_outline_boxes(shape->vector_count, shape->outline.part_count) *
										   sizeof(*shape->outline.boxes), MCXT_ALLOC_HUGE);
	geonn_outline_complete(&shape->outline);
	return true;
}

/*
 * Return the distance of two shapes; -1 if one is empty.  Not inlined: otherwise the JIT compiler could inline the function
 * below, and its code could not call what only this library sees.
 */
static pg_noinline double
distance_of_shapes(GeonnPointKind kind, Datum value1, Datum value2, const char *metric)
{
	Outline		shape1;
	Outline		shape2;
	bool		is_empty;

	if (geonn_metric_of(metric, strlen(metric)) != GEONN_METRIC_SPHERE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("shapes have no metric \"%s\"", metric),
				 errhint("Use the metric 'sphere'; for two points write geonn_distance(lat1, lon1, lat2, lon2, 'spheroid').")));
	is_empty = !read_outline(kind, value1, "the first argument", &shape1);
	/* read the second shape even if the first is empty: a wrong one is an error */
	if (!read_outline(kind, value2, "the second argument", &shape2) || is_empty)
		return -1;
	return geonn_outline_distance(&shape1.outline, &shape2.outline, geonn_shape_pause);
}

Datum
geonn_distance_of_shapes(PG_FUNCTION_ARGS)
{
	double		distance = distance_of_shapes(geonn_kind_of_shape(fcinfo->flinfo, 0), PG_GETARG_DATUM(0), PG_GETARG_DATUM(1),
											  NameStr(*PG_GETARG_NAME(2)));

	if (distance < 0)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(distance);
}
