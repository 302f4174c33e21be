/*
 * counts.c
 *		Cases of counts within radii and of sums, for search_test.
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
		int			weights;
		enum weights kind;		/* of the first weight; the others are of the kinds after it */
	}			cases[] = {
		{PLACES_UNIFORM, 1, 0, 0, 0, WEIGHTS_WHOLE},
		{PLACES_UNIFORM, 33, 0, 4, 0, WEIGHTS_WHOLE},
		{PLACES_UNIFORM, 1025, 0, 0, 0, WEIGHTS_WHOLE},
		{PLACES_UNIFORM, 6000, 0, 600, 0, WEIGHTS_WHOLE},
		{PLACES_UNIFORM, 40000, 0, 0, 0, WEIGHTS_WHOLE},
		{PLACES_UNIFORM, 40000, 2, 0, 0, WEIGHTS_WHOLE},
		{PLACES_CITIES, 40000, 0, 3, 0, WEIGHTS_WHOLE},
		{PLACES_CITIES, 6000, 30, 1000, 0, WEIGHTS_WHOLE},
		{PLACES_CITIES, 6000, 3000, 0, 0, WEIGHTS_WHOLE},
		{PLACES_ONE_CITY, 3000, 3, 0, 0, WEIGHTS_WHOLE},
		{PLACES_ONE_CELL, 3000, 0, 30, 0, WEIGHTS_WHOLE},
		{PLACES_CITY_AND_HERMIT, 3000, 0, 0, 0, WEIGHTS_WHOLE},
		{PLACES_COINCIDENT, 3000, 0, 0, 0, WEIGHTS_WHOLE},
		{PLACES_COINCIDENT, 3000, 5, 5, 0, WEIGHTS_WHOLE},
		{PLACES_HEAPS, 6000, 0, 0, 0, WEIGHTS_WHOLE},
		{PLACES_HEAPS, 6000, 4, 50, 0, WEIGHTS_WHOLE},
		{PLACES_POLAR, 3000, 2, 0, 0, WEIGHTS_WHOLE},
		{PLACES_POLAR, 3000, 0, 1, 0, WEIGHTS_WHOLE},
		{PLACES_ANTIMERIDIAN, 3000, 0, 20, 0, WEIGHTS_WHOLE},
		{PLACES_TRACK, 3000, 0, 3000, 0, WEIGHTS_WHOLE},
		{PLACES_UNIFORM, 6000, 0, 0, 1, WEIGHTS_WHOLE},
		{PLACES_UNIFORM, 40000, 0, 40, 2, WEIGHTS_WHOLE},
		{PLACES_CITIES, 6000, 5, 0, 1, WEIGHTS_MONEY},
		{PLACES_CITIES, 6000, 0, 100, 1, WEIGHTS_COMMON},
		{PLACES_HEAPS, 6000, 3, 30, 3, WEIGHTS_WHOLE},
		{PLACES_UNIFORM, 6000, 0, 10, 1, WEIGHTS_EXTREME},
		{PLACES_COINCIDENT, 3000, 4, 4, 4, WEIGHTS_MONEY},
		{PLACES_ONE_CELL, 1000, 0, 0, 1, WEIGHTS_ZERO}
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		char		name[96];
		struct test_case test;

		snprintf(name, sizeof(name), "counts: %s, %u groups, %u ranges of excluded tags, %d weights",
				 places_names[cases[i].places], cases[i].groups, cases[i].excluded, cases[i].weights);
		test = begin(name, GEONN_METRIC_SPHERE, cases[i].references, cases[i].places,
					 cases[i].references > 10000 ? 60 : 150, i % 4 == 3);
		case_draw_groups(&test, cases[i].groups);
		case_draw_excluded(&test, cases[i].excluded);
		for (int weight = 0; weight < cases[i].weights; weight++)
		{
			points_draw_weights(&test.references, weight,
								(enum weights) ((cases[i].kind + (enum weights) weight) % WEIGHTS_KINDS));
			test.columns |= GEONN_COLUMN_WEIGHT << weight;
		}
		test.order_by_tag = true;
		finish_case(&test, cases[i].references, many_counts_right);
	}
}
