/*
 * arcs_sets.h
 *		Random sets of shapes, and the arcs of them that are sent to an engine: one set at a time.
 */
#ifndef GEONN_TEST_ARCS_SETS_H
#define GEONN_TEST_ARCS_SETS_H

#include <math.h>

#include "engine/dataset/dataset.h"
#include "../lib/random_conditions.h"
#include "../lib/random_shapes.h"

#define PARTS_MAX 60
#define ARCS_MAX (PARTS_MAX * MOST_RINGS * MOST_VERTICES)

_Static_assert(ARCS_MAX <= CONDITIONS_MAX, "each arc has conditions");

/* shapes of one set: the parts of a shape follow each other */
static struct
{
	int			parts;
	struct shape part[PARTS_MAX];
	int			shape[PARTS_MAX];	/* of each part */
	int			shapes;
	int64_t		tag[PARTS_MAX];
	int32_t		group[PARTS_MAX];
	double		weight[PARTS_MAX];
	struct conditions conditions[PARTS_MAX];
}			set;

/* columns for arcs; observations have their own */
static struct
{
	uint32_t	count;
	double		latitude[ARCS_MAX];
	double		longitude[ARCS_MAX];
	double		end_latitude[ARCS_MAX];
	double		end_longitude[ARCS_MAX];
	int64_t		tag[ARCS_MAX];
	int32_t		group[ARCS_MAX];
	int32_t		shape[ARCS_MAX];
	int32_t		polygon[ARCS_MAX];
	int32_t		segment[ARCS_MAX];
	int32_t		part_end[ARCS_MAX];
	double		weight[ARCS_MAX];
	struct condition_columns conditions;
}			arcs;

static inline bool
pole_is_inside(const struct shape *part, bool *decided)
{
	bool		inside = false;

	*decided = true;
	for (int i = 0; i < part->count; i++)
	{
		struct geonn_vector vectors[2 * MOST_VERTICES];
		size_t		count = vectors_of(&part->chains[i], vectors);
		bool		holds;

		*decided = geonn_ring_holds_pole(vectors, count, NULL, &holds) && *decided;
		inside ^= holds;
	}
	return inside;
}

/* Draw a set of shapes, often of the kind with this number. */
static inline void
draw_set(int number)
{
	int			parts = 1 + random_below(random_below(4) ? 12 : PARTS_MAX);

	set.parts = set.shapes = 0;
	for (int i = 0; i < parts; i++)
	{
		struct shape *part = &set.part[i];
		bool		decided;

		if (i > 0 && random_below(5) == 0)
			*part = set.part[random_below(i)];
		else
			make_shape(part, random_below(3) ? random_below(SHAPE_KINDS) : number);
		if (random_below(12) == 0)
		{
			/* a point, or a ring that is one: an arc of no length */
			part->is_polygon = random_below(4) == 0;
			part->count = 1;
			part->chains[0].count = 2;
			part->chains[0].vertices[1] = part->chains[0].vertices[0];
		}
		if (part->is_polygon)
		{
			pole_is_inside(part, &decided);
			part->is_polygon = decided;
		}
		if (i == 0 || random_below(3) > 0)
			set.shapes++;
		set.shape[i] = set.shapes - 1;
		set.tag[set.shapes - 1] = random_below(2 * parts);
		set.group[set.shapes - 1] = random_below(3);
		set.weight[set.shapes - 1] = random_below(6) ? random_below(2000) / 16.0 - 50.0 : NAN;
		set.conditions[set.shapes - 1] = draw_conditions();
	}
	set.parts = parts;
}

/* Append an arc of a part, with the tag, the group, the weight and the conditions of its shape. */
static inline void
add_arc(const struct point *from, const struct point *to, int part, int32_t polygon)
{
	uint32_t	i = arcs.count++;

	arcs.latitude[i] = from->latitude;
	arcs.longitude[i] = from->longitude;
	arcs.end_latitude[i] = to->latitude;
	arcs.end_longitude[i] = to->longitude;
	arcs.shape[i] = set.shape[part];
	arcs.tag[i] = set.tag[set.shape[part]];
	arcs.group[i] = set.group[set.shape[part]];
	arcs.weight[i] = set.weight[set.shape[part]];
	arcs.polygon[i] = polygon;
	put_conditions(&arcs.conditions, i, &set.conditions[set.shape[part]]);
}

/* Make the arcs of the set. */
static inline void
make_arcs(void)
{
	int32_t		polygons = 0;

	arcs.count = 0;
	for (int part = 0; part < set.parts; part++)
	{
		const struct shape *shape = &set.part[part];
		bool		decided;
		int32_t		polygon = shape->is_polygon ? ++polygons : 0;

		if (shape->is_polygon && pole_is_inside(shape, &decided))
			polygon = -polygon;
		for (int i = 0; i < shape->count; i++)
		{
			const struct chain *chain = &shape->chains[i];

			for (int j = 1; j < chain->count; j++)
				add_arc(&chain->vertices[j - 1], &chain->vertices[j], part, polygon);
		}
	}
}

/* Rows of arcs as a batch. */
static inline struct geonn_batch_columns
batch_of(uint32_t first, uint32_t columns)
{
	struct geonn_batch_columns batch = {
		.latitude = arcs.latitude + first,
		.longitude = arcs.longitude + first,
		.tag = arcs.tag + first,
		.group = arcs.group + first,
		.end_latitude = arcs.end_latitude + first,
		.end_longitude = arcs.end_longitude + first,
		.shape = arcs.shape + first,
		.polygon = arcs.polygon + first,
		.segment = arcs.segment + first,
		.part_end = arcs.part_end + first,
		.weight = {arcs.weight + first}
	};

	set_conditions(&batch, columns, &arcs.conditions, first);
	return batch;
}

/* A dataset of the arcs, sent in two batches; NULL with the failure. */
static inline struct dataset *
make_dataset(uint32_t columns, bool by_tag, struct failure *failure)
{
	static atomic_bool never;
	struct dataset *dataset = dataset_create(1, GEONN_METRIC_SPHERE, GEONN_COLUMN_ARC | columns);
	uint32_t	first = (uint32_t) random_below((int) arcs.count);
	struct geonn_batch_columns batch = batch_of(0, columns);
	struct geonn_batch_columns rest = batch_of(first, columns);

	if ((first == 0 || dataset_append(dataset, &batch, first, failure)) &&
		dataset_append(dataset, &rest, arcs.count - first, failure) && dataset_check_end(dataset, failure) &&
		(!by_tag || dataset_sort(dataset, &never, failure)))
		return dataset;
	dataset_free(dataset);
	return NULL;
}

/* an observation's distance to a shape of the set */
struct shape_pair
{
	double		distance;
	int64_t		tag;
	int			shape;
};

static bool pairs_by_tag;		/* compare_shape_pairs(): equally far shapes are in the order of their tags */

/* Compare two pairs of an observation, for qsort(): the nearer first, of equally far ones the one that the dataset has first. */
static inline int
compare_shape_pairs(const void *first, const void *second)
{
	const struct shape_pair *a = first;
	const struct shape_pair *b = second;

	if (a->distance != b->distance)
		return a->distance < b->distance ? -1 : 1;
	if (pairs_by_tag && a->tag != b->tag)
		return a->tag < b->tag ? -1 : 1;
	return a->shape - b->shape;
}

#endif							/* GEONN_TEST_ARCS_SETS_H */
