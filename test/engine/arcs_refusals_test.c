/*
 * arcs_refusals_test.c
 *		Whether a dataset of arcs takes what makes shapes, and refuses each way in which arcs make none, by name.
 *
 * rooms: engine/dataset engine/cpu/arcs
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/verdict.h"
#include "arcs_sets.h"

static void
expect_refusal(const char *what, const char *message)
{
	struct failure failure = {0};
	struct dataset *dataset = make_dataset(GEONN_COLUMN_GROUP | GEONN_COLUMN_WEIGHT | GEONN_COLUMN_RADIUS |
										   GEONN_COLUMNS_WINDOWS | GEONN_COLUMNS_PARTIES | GEONN_COLUMN_SEGMENT, false, &failure);
	char		property[200];

	snprintf(property, sizeof(property), "%s: refused, %s", what, message);
	report(property, dataset == NULL && strstr(failure.message, message) != NULL);
	if (dataset != NULL)
		dataset_free(dataset);
}

/* two squares as polygons of two shapes */
static void
make_squares(void)
{
	arcs.count = 0;
	for (int square = 0; square < 2; square++)
		for (int i = 0; i < 4; i++)
		{
			struct point corners[5] = {{0, 0}, {0, 1}, {1, 1}, {1, 0}, {0, 0}};

			set.shape[0] = square;
			add_arc(&corners[i], &corners[i + 1], 0, square + 1);
			arcs.segment[arcs.count - 1] = i + 1;
			arcs.part_end[arcs.count - 1] = 4;
		}
}

int
main(void)
{
	struct failure failure;
	struct dataset *dataset;

	set.tag[0] = set.tag[1] = set.group[0] = set.group[1] = 0;
	make_squares();
	dataset = make_dataset(GEONN_COLUMN_GROUP | GEONN_COLUMN_SEGMENT, false, &failure);
	report("two squares are taken", dataset != NULL);
	dataset_free(dataset);

	arcs.end_latitude[3] = 91;
	expect_refusal("an end beyond the pole", "out of range");
	make_squares();
	arcs.end_longitude[3] = NAN;
	expect_refusal("an end that is not a number", "out of range");
	make_squares();
	arcs.end_longitude[0] = arcs.longitude[1] = 180;
	expect_refusal("antipodal ends", "antipodal");
	make_squares();
	arcs.shape[4] = 2;
	expect_refusal("a shape that is left out", "shape 2 follows shape");
	make_squares();
	arcs.shape[0] = 1;
	expect_refusal("a first shape that is not 0", "shape 1 follows shape -1");
	make_squares();
	arcs.tag[2] = 7;
	expect_refusal("two tags of a shape", "different tags");
	make_squares();
	arcs.group[6] = 7;
	expect_refusal("two groups of a shape", "different groups");
	make_squares();
	arcs.weight[6] = 7;
	expect_refusal("two weights of a shape", "different weights");
	make_squares();
	arcs.conditions.radius[6] = 7;
	expect_refusal("two radiuses of a shape", "different radiuses");
	make_squares();
	arcs.conditions.low[0][1] = 7;
	expect_refusal("two windows of a shape", "different windows");
	make_squares();
	arcs.conditions.high[GEONN_WINDOWS_MAX - 1][1] = 7;
	expect_refusal("two last windows of a shape", "different windows");
	make_squares();
	arcs.conditions.edges[1] = 7;
	expect_refusal("two edges of a shape", "different windows");
	make_squares();
	arcs.conditions.party[GEONN_PARTIES_MAX - 1][6] = 7;
	expect_refusal("two parties of a shape", "different parties");
	make_squares();
	for (int i = 4; i < 8; i++)
		arcs.polygon[i] = -1;
	expect_refusal("a polygon that comes twice", "polygon -1 follows polygon 1");
	make_squares();
	arcs.polygon[5] = INT32_MIN;
	expect_refusal("a polygon without a number", "out of range");
	make_squares();
	arcs.end_latitude[3] = 0.5;
	expect_refusal("a ring that is not closed", "polygon 1 is not closed");
	make_squares();
	arcs.end_latitude[7] = 0.5;
	expect_refusal("a last ring that is not closed", "polygon 2 is not closed");
	make_squares();
	arcs.segment[2] = 4;
	expect_refusal("an arc that is left out of a ring", "arc 4 of a line or ring that ends with arc 4 is out of order");
	make_squares();
	arcs.part_end[2] = 5;
	expect_refusal("two ends of a ring", "arc 3 of a line or ring that ends with arc 5 is out of order");
	make_squares();
	arcs.part_end[4] = 0;
	expect_refusal("a ring that ends before it begins", "arc 1 of a line or ring that ends with arc 0 is out of order");
	make_squares();
	arcs.segment[4] = -1;
	expect_refusal("a number below 0", "arc -1 of a line or ring that ends with arc 4 is out of order");
	make_squares();
	for (int i = 0; i < 4; i++)
		arcs.part_end[i] = 5;
	expect_refusal("a ring that goes on in another shape", "arc 1 of a line or ring that ends with arc 4 is out of order");
	make_squares();
	for (int i = 4; i < 8; i++)
		arcs.part_end[i] = 5;
	expect_refusal("a last ring that lacks an arc", "the last line or ring lacks arcs");
	return summed_up();
}
