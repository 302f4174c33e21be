/*
 * shape_fuzzer.c
 *		Values of PostGIS's types with damaged bytes, under libFuzzer.
 *
 * The module's reader of shapes (points/shape.c) runs outside of PostgreSQL, on backend_shim.c.  A script's first
 * byte says of which type the value is, and whether its header has one byte or four.  All other bytes are the value, or
 * shape_recipe.c makes a sound value of them, of which a byte may then be damaged.
 *
 * Whatever the bytes are, reading them comes to its end or to an error that says what it is, and reads nothing outside the
 * value.  What is read has the form that shape.h promises, so that distances can be computed.  A part of which
 * degrees alone say that it is right, for a join, is right by its vectors, too.  Of a sound value the reader finds each
 * part where it is, with its measures, and refuses none.
 *
 * rooms: points
 */
#include "postgres.h"

#include <math.h>
#include <stdio.h>

#include "fmgr.h"
#include "utils/float.h"

#include "backend_shim.h"
#include "common/arc.h"
#include "common/ring.h"
#include "points/shape.h"
#include "shape_recipe.h"
#include "steps.h"

#undef snprintf

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Script
{
	const uint8 *data;
	size_t		size;
} Script;

/* bits of a script's first byte */
#define SCRIPT_GEOGRAPHY	1
#define SCRIPT_SHORT		2
#define SCRIPT_SURVEYED		4
#define SCRIPT_RECIPE		8	/* the other bytes are a recipe */
#define SCRIPT_DAMAGED		16	/* and the last two say which byte of the value is damaged */

/* ---- of the server what the reader calls, besides backend_shim.c ---- */

struct varlena *
pg_detoast_datum_packed(struct varlena *value)
{
	return value;
}

char *
float8out_internal(double number)
{
	char	   *text = palloc(32);

	snprintf(text, 32, "%.17g", number);
	return text;
}

/* ---- what has to hold ---- */

/* degrees have said that the part to read next is right, or the whole value is sound */
static bool is_promised;

static struct recipe recipe;
static bool is_sound;			/* the value is that of the recipe, which the reader has to read */

static Datum
make_value(const uint8 *bytes, size_t size, bool is_short)
{
	struct varlena *value = palloc(VARHDRSZ + size);

	if (is_short && size + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
		SET_VARSIZE_SHORT(value, size + VARHDRSZ_SHORT);
	else
		SET_VARSIZE(value, size + VARHDRSZ);
	/* what is read behind the end of a short value is noticed as well */
	value = repalloc_huge(value, VARSIZE_ANY(value));
	memcpy(VARDATA_ANY(value), bytes, size);
	return PointerGetDatum(value);
}

static void
check_part(const GeonnPart *part)
{
	const struct geonn_vector *vectors = part->vectors;
	struct geonn_vector points[3] = {geonn_unit_vector(0, 0), geonn_unit_vector(-90, 0), vectors[part->count / 2]};

	for (size_t i = 0; i < part->count; i++)
	{
		if (!(fabs(geonn_dot(vectors[i], vectors[i]) - 1.0) < 1e-15))
			steps_broken("vectors are unit vectors");
		if (i > 0 && geonn_dot(vectors[i - 1], vectors[i]) < -1e-15)
			steps_broken("no arc is longer than a quarter circle");
	}
	if (part->kind == GEONN_PART_POINT && part->count != 1)
		steps_broken("a point is one vector");
	if (part->kind == GEONN_PART_RING && geonn_chord_squared(vectors[0], vectors[part->count - 1]) != 0)
		steps_broken("a ring ends where it begins");
	if (part->is_last_ring && part->kind != GEONN_PART_RING)
		steps_broken("the last ring is a ring");
	for (int i = 0; i < 3; i++)
	{
		double		distance = geonn_chain_distance(points[i], vectors, part->count);

		if (!(distance >= 0 && distance < 20015116))
			steps_broken("no place is farther than half of a great circle");
		if (i == 2 && distance != 0)
			steps_broken("a vertex is at distance 0");
		if (part->kind == GEONN_PART_RING && i == 2 &&
			geonn_ring_side(vectors, part->count, part->pole_is_inside, points[i]) != GEONN_ON_BORDER)
			steps_broken("a vertex is on the border");
	}
}

/* Check that the part is the one of this number of the recipe. */
static void
check_recipe(const GeonnPart *part, Datum value, int number)
{
	const struct recipe_part *made = &recipe.parts[number];

	if (number >= recipe.part_count)
		steps_broken("a value has no more parts than it was made of");
	if (part->vertices.bytes != (const uint8 *) VARDATA_ANY(value) + made->position || part->vertices.count != made->count ||
		(part->kind == GEONN_PART_LINE) != made->is_line || (part->kind == GEONN_PART_RING) != made->is_ring ||
		part->is_last_ring != made->is_last_ring)
		steps_broken("a part is what it was made of");
	for (uint32 i = 0; i < made->count; i++)
	{
		double		measure = geonn_vertex_measure(&part->vertices, i);
		double		last;

		memcpy(&last, part->vertices.bytes + ((size_t) (i + 1) * recipe.dimensions - 1) * sizeof(double), sizeof(last));
		if (recipe.has_measures ? measure != last : !isnan(measure))
			steps_broken("a vertex has its measure");
	}
}

/*
 * Read the next part by both ways of reading.
 */
static bool
next_part(GeonnShapeReader *reader, GeonnShapeReader *checked, GeonnPart *part)
{
	GeonnPart	other;
	bool		has_other = geonn_shape_next_checked(checked, &other);
	bool		has_part;

	is_promised = is_sound || (has_other && other.vectors == NULL);
	has_part = geonn_shape_next(reader, part);
	if (has_part != has_other || (has_part && (part->kind != other.kind || part->is_last_ring != other.is_last_ring ||
											   part->pole_is_inside != other.pole_is_inside ||
											   part->vertices.bytes != other.vertices.bytes)))
		steps_broken("a part is the same without vectors");
	is_promised = is_sound;
	return has_part;
}

/* Return the value that a script has, or that its recipe makes. */
static Datum
value_of(const Script *script)
{
	uint8		how = script->data[0];

	if ((how & SCRIPT_RECIPE) == 0)
		return make_value(script->data + 1, script->size - 1, how & SCRIPT_SHORT);
	recipe_make(&recipe, script->data + 1, script->size - 1);
	is_promised = is_sound = (how & SCRIPT_DAMAGED) == 0 && !recipe.may_be_wrong;
	if ((how & SCRIPT_DAMAGED) && script->size > 2)
		recipe.bytes[script->data[script->size - 2] % recipe.length] ^= script->data[script->size - 1];
	return make_value(recipe.bytes, recipe.length, how & SCRIPT_SHORT);
}

static void
run_script(void *argument)
{
	const Script *script = argument;
	Datum		value = value_of(script);
	GeonnPointKind kind = script->data[0] & SCRIPT_GEOGRAPHY ? GEONN_POINT_GEOGRAPHY : GEONN_POINT_GEOMETRY;
	GeonnShapeReader *reader = geonn_shape_open(kind, value, NULL, NULL);
	GeonnShapeReader *checked = geonn_shape_open(kind, value, NULL, NULL);
	GeonnExtent extent;
	bool		is_surveyed = (script->data[0] & SCRIPT_SURVEYED) != 0;
	bool		is_empty = false;
	bool		is_in_polygon = false;
	int			number = 0;
	double		latitude;
	double		longitude;
	GeonnPart	part;

	if (geonn_shape_extent(kind, value, &extent) && !(extent.diagonal >= 0 || isnan(extent.diagonal)))
		steps_broken("a box has a diagonal");
	if (is_surveyed)
		is_empty = !geonn_shape_survey(reader, &latitude, &longitude);
	while (next_part(reader, checked, &part))
	{
		if (part.count == 0 || part.vertices.count == 0 || is_empty)
			steps_broken("no part is empty");
		if (is_in_polygon && part.kind != GEONN_PART_RING)
			steps_broken("a polygon's rings follow each other");
		is_in_polygon = part.kind == GEONN_PART_RING && !part.is_last_ring;
		check_part(&part);
		if (is_sound)
			check_recipe(&part, value, number);
		number++;
	}
	if (is_sound && number != recipe.part_count)
		steps_broken("a value has all parts that it was made of");
	if (is_in_polygon)
		steps_broken("each polygon has a last ring");
	/* parts before the one that is out of range are read */
	if (is_surveyed && !is_empty && !geonn_coordinates_valid(latitude, longitude))
		steps_broken("a survey finds nothing out of range in a shape that can be read");
	geonn_shape_close(reader);
	geonn_shape_close(checked);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Script		script = {data, size};

	is_promised = is_sound = false;
	if (size > 0 && !backend_run(run_script, &script) && (backend_error()[0] == '\0' || is_promised))
		steps_broken(is_promised ? "a part that is right by its degrees, or a sound value, can be read" : "an error says what it is");
	return 0;
}
