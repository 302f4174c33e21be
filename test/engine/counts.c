/*
 * counts.c
 *		Cases of counts within radii, for search_test.
 *
 * Other cases ask for counts, too, but few have nodes that a radius contains whole, and in most of them an engine may
 * have the references in an order in which it cannot find excluded tags.
 */
#include "counts.h"

#include <stdio.h>

/* times that a case asks for some counts */
#define ROUNDS 4

static bool
many_counts_right(struct test_case *test)
{
	bool		right = true;

	for (int i = 0; i < ROUNDS; i++)
		right = counts_right(test) && right;
	return right;
}

void
counts_test(begin_case_function begin)
{
	static const struct
	{
		enum places places;
		size_t		references;
		uint32_t	groups;
		uint32_t	excluded;	/* ranges of tags; 0: none are excluded */
	}			cases[] = {
		{PLACES_UNIFORM, 1, 0, 0},
		{PLACES_UNIFORM, 33, 0, 4},
		{PLACES_UNIFORM, 1025, 0, 0},
		{PLACES_UNIFORM, 6000, 0, 600},
		{PLACES_UNIFORM, 40000, 0, 0},
		{PLACES_UNIFORM, 40000, 2, 0},
		{PLACES_CITIES, 40000, 0, 3},
		{PLACES_CITIES, 6000, 30, 1000},
		{PLACES_CITIES, 6000, 3000, 0},
		{PLACES_ONE_CITY, 3000, 3, 0},
		{PLACES_ONE_CELL, 3000, 0, 30},
		{PLACES_CITY_AND_HERMIT, 3000, 0, 0},
		{PLACES_COINCIDENT, 3000, 0, 0},
		{PLACES_COINCIDENT, 3000, 5, 5},
		{PLACES_HEAPS, 6000, 0, 0},
		{PLACES_HEAPS, 6000, 4, 50},
		{PLACES_POLAR, 3000, 2, 0},
		{PLACES_POLAR, 3000, 0, 1},
		{PLACES_ANTIMERIDIAN, 3000, 0, 20},
		{PLACES_TRACK, 3000, 0, 3000}
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		char		name[96];
		struct test_case test;

		snprintf(name, sizeof(name), "counts: %s, %u groups, %u ranges of excluded tags",
				 places_names[cases[i].places], cases[i].groups, cases[i].excluded);
		test = begin(name, GEONN_METRIC_SPHERE, cases[i].references, cases[i].places,
					 cases[i].references > 10000 ? 60 : 150, i % 4 == 3);
		if (cases[i].groups > 0)
		{
			points_draw_groups(&test.references, cases[i].groups);
			points_draw_groups(&test.observations, cases[i].groups + 1);
			test.columns |= GEONN_COLUMN_GROUP;
		}
		if (cases[i].excluded > 0)
		{
			points_draw_excluded(&test.observations, &test.references, cases[i].excluded);
			test.columns |= GEONN_COLUMN_EXCLUDED;
		}
		test.order_by_tag = true;
		finish_case(&test, cases[i].references, many_counts_right);
	}
}
