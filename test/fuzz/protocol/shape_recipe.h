/*
 * shape_recipe.h
 *		Sound values of PostGIS's types, made of any bytes.
 */
#ifndef GEONN_FUZZ_SHAPE_RECIPE_H
#define GEONN_FUZZ_SHAPE_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* a value has no more bytes and parts than these */
#define RECIPE_BYTES 32768
#define RECIPE_PARTS 1024

/* A part that is not empty, as the reader has to find it. */
struct recipe_part
{
	size_t		position;		/* of its first vertex among the bytes */
	uint32_t	count;			/* vertices */
	bool		is_line;
	bool		is_ring;
	bool		is_last_ring;
};

struct recipe
{
	const uint8_t *data;		/* the bytes of which the value is made */
	size_t		size;
	size_t		next;

	uint8_t		bytes[RECIPE_BYTES];	/* the value, without its varlena header */
	size_t		length;
	int			dimensions;		/* numbers of a vertex */
	bool		has_measures;	/* the last of them is a measure */
	bool		may_be_wrong;	/* hostile coordinates, an open ring, or a curve: the reader may refuse it */
	struct recipe_part parts[RECIPE_PARTS];
	int			part_count;
};

/* Make the value of these bytes: points, lines, polygons and collections of all of these, down to some depth, also empty. */
extern void recipe_make(struct recipe *recipe, const uint8_t *data, size_t size);

#endif							/* GEONN_FUZZ_SHAPE_RECIPE_H */
