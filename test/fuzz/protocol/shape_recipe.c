/*
 * shape_recipe.c
 *		Sound values of PostGIS's types, made of any bytes.
 *
 * Damaged bytes seldom have counts that fit, so that a reader of them is soon at its end.  Here a byte decides what comes
 * next: the flags Z, M, of boxes and of further flags; a type; how many members, rings or vertices; and a vertex, near
 * (0, 0) or of the pool of hostile numbers.  Where no bytes are left, all that follows is empty.
 */
#include "shape_recipe.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* as in points/geometry.c */
#define FLAG_Z			0x01
#define FLAG_M			0x02
#define FLAG_BOX		0x04
#define FLAG_GEODETIC	0x08
#define FLAG_EXTENDED	0x10
#define FLAG_VERSION_2	0x40

#define POINT		1
#define LINE		2
#define POLYGON		3
#define MULTIPOINT	4
#define COLLECTION	7
#define LAST_TYPE	15

/* a geometry below the last depth is a point */
#define DEPTH_MOST 40

/* room for a geometry without its members, and for what is left of collections around it */
#define ROOM 4096

static const double hostile[] = {
	NAN, INFINITY, -INFINITY, 90, -90, 90.000000000000014, 180, -180, 180.00000000000003, 360, 361, -181, 89.99999999999999,
	1e-308, -5e-324, DBL_MAX, 0x1p-1022, -0.0, 270, 45
};

static uint8_t
take(struct recipe *recipe)
{
	return recipe->next < recipe->size ? recipe->data[recipe->next++] : 0;
}

static void
put(struct recipe *recipe, const void *bytes, size_t count)
{
	memcpy(recipe->bytes + recipe->length, bytes, count);
	recipe->length += count;
}

static void
put_number(struct recipe *recipe, uint32_t number)
{
	put(recipe, &number, sizeof(number));
}

static void
put_coordinate(struct recipe *recipe)
{
	uint8_t		byte = take(recipe);
	double		coordinate = (int8_t) byte / 8.0;

	if (byte % 16 == 15)
	{
		coordinate = hostile[take(recipe) % (sizeof(hostile) / sizeof(hostile[0]))];
		recipe->may_be_wrong = true;
	}
	put(recipe, &coordinate, sizeof(coordinate));
}

static void
put_vertices(struct recipe *recipe, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		put_coordinate(recipe);
		put_coordinate(recipe);
		for (int j = 2; j < recipe->dimensions; j++)
		{
			double		number = 256.0 * j + take(recipe);	/* Z and M differ */

			put(recipe, &number, sizeof(number));
		}
	}
}

static void
note_part(struct recipe *recipe, uint8_t type, uint32_t count, bool is_last_ring)
{
	if (count > 0)
		recipe->parts[recipe->part_count++] = (struct recipe_part) {
			.position = recipe->length,
			.count = count,
			.is_line = type == LINE,
			.is_ring = type == POLYGON,
			.is_last_ring = is_last_ring
		};
}

static void
put_rings(struct recipe *recipe)
{
	uint32_t	rings = take(recipe) % 4;
	uint32_t	counts[3];
	size_t		stride = recipe->dimensions * sizeof(double);

	put_number(recipe, rings);
	for (uint32_t i = 0; i < rings; i++)
		put_number(recipe, counts[i] = 1 + take(recipe) % 6);
	if (rings % 2)
		put_number(recipe, 0);
	for (uint32_t i = 0; i < rings; i++)
	{
		uint8_t	   *first = recipe->bytes + recipe->length;

		note_part(recipe, POLYGON, counts[i], i + 1 == rings);
		put_vertices(recipe, counts[i]);
		if (take(recipe) % 16 == 15)
			recipe->may_be_wrong = true;
		else
			memcpy(first + (counts[i] - 1) * stride, first, 2 * sizeof(double));
	}
}

static bool
has_room(const struct recipe *recipe)
{
	return recipe->length + ROOM <= RECIPE_BYTES && recipe->part_count + 3 <= RECIPE_PARTS;
}

static void
put_geometry(struct recipe *recipe, uint8_t type, int depth)
{
	uint32_t	count;

	put_number(recipe, type);
	if (type == POLYGON)
	{
		put_rings(recipe);
		return;
	}
	count = take(recipe) % (type == POINT ? 2 : 6);
	if (!has_room(recipe))
		count = 0;
	put_number(recipe, count);
	if (type == POINT || type == LINE)
	{
		note_part(recipe, type, count, false);
		put_vertices(recipe, count);
		return;
	}
	if (type > COLLECTION)
	{
		recipe->may_be_wrong = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++)
	{
		uint8_t		byte = take(recipe);
		uint8_t		member = byte == 255 ? 1 + take(recipe) % LAST_TYPE : 1 + byte % COLLECTION;

		if (type != COLLECTION)
			member = type - MULTIPOINT + POINT;
		put_geometry(recipe, has_room(recipe) && depth < DEPTH_MOST ? member : POINT, depth + 1);
	}
}

void
recipe_make(struct recipe *recipe, const uint8_t *data, size_t size)
{
	static const uint8_t srid[] = {0x00, 0x10, 0xE6};	/* 4326 */
	static const float box[8];
	uint8_t		flags;

	recipe->data = data;
	recipe->size = size;
	recipe->next = 0;
	recipe->length = 0;
	recipe->part_count = 0;
	recipe->may_be_wrong = false;
	flags = take(recipe) & (FLAG_Z | FLAG_M | FLAG_BOX | FLAG_GEODETIC | FLAG_EXTENDED | FLAG_VERSION_2);
	recipe->dimensions = 2 + (flags & FLAG_Z ? 1 : 0) + (flags & FLAG_M ? 1 : 0);
	recipe->has_measures = (flags & FLAG_M) != 0;
	put(recipe, srid, sizeof(srid));
	put(recipe, &flags, sizeof(flags));
	if ((flags & FLAG_VERSION_2) && (flags & FLAG_EXTENDED))
		put(recipe, box, 8);
	if (flags & FLAG_BOX)
		put(recipe, box, 2 * sizeof(float) * (flags & FLAG_GEODETIC ? 3 : recipe->dimensions));
	put_geometry(recipe, 1 + take(recipe) % COLLECTION, 0);
}
