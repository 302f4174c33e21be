/*
 * random_datasets.h
 *		Random points of several kinds as datasets, for tests of clusters and of assignments.
 */
#ifndef GEONN_TEST_RANDOM_DATASETS_H
#define GEONN_TEST_RANDOM_DATASETS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/dataset/dataset.h"
#include "engine/dataset/point_windows.h"
#include "../lib/random.h"

#define DEGREES 57.295779513082323

enum places
{
	EVERYWHERE,
	IN_TOWN,					/* within some kilometres */
	IN_SPOTS,					/* in crowds, with some between them */
	ON_LATTICE,					/* many coincide, and many are at one distance */
	AT_POLE,
	AT_ANTIMERIDIAN,
	COINCIDENT,
	PLACES
};

static inline void
draw_point(enum places places, double *latitude, double *longitude)
{
	double		spot = random_below(8);

	switch (places)
	{
		case EVERYWHERE:
			*latitude = asin(random_between(-1, 1)) * DEGREES;
			*longitude = random_between(-180, 180);
			return;
		case IN_TOWN:
			*latitude = random_between(52.4, 52.6);
			*longitude = random_between(13.2, 13.6);
			return;
		case IN_SPOTS:
			*latitude = random_below(9) == 0 ? random_between(40, 41) : 40 + spot / 8 + random_between(-0.002, 0.002);
			*longitude = random_below(9) == 0 ? random_between(-4, -3) : -4 + spot / 8 + random_between(-0.002, 0.002);
			return;
		case ON_LATTICE:
			*latitude = random_below(12) / 64.0;
			*longitude = random_below(12) / 64.0;
			return;
		case AT_POLE:
			*latitude = random_below(9) == 0 ? 90 : 90 - fabs(random_magnitude(1e-6, 0.1));
			*longitude = random_between(-180, 180);
			return;
		case AT_ANTIMERIDIAN:
			*latitude = random_between(-0.05, 0.05);
			*longitude = 180 + random_between(-0.05, 0.05);
			if (random_below(2) && *longitude > 180)
				*longitude -= 360;
			return;
		case COINCIDENT:
		case PLACES:
			*latitude = 1;
			*longitude = 2;
			return;
	}
}

/*
 * Make a sealed dataset of so many points, with tags that rise, and values for the columns (GEONN_COLUMN_...) but weights.
 * Windows are among so many moments.
 */
static inline struct dataset *
make_points(size_t count, enum places places, enum geonn_metric metric, uint32_t columns, int64_t moments)
{
	struct dataset *made = dataset_create(1, metric, columns);

	made->count = count;
	made->sealed = true;
	for (int i = 0; i < DATASET_COLUMNS; i++)
		if (dataset_columns[i].present == 0 || dataset_columns[i].present & columns)
		{
			void	   *column = calloc(count, dataset_columns[i].width);

			memcpy((char *) made + dataset_columns[i].member, &column, sizeof(column));
		}
	for (size_t i = 0; i < count; i++)
	{
		draw_point(places, &made->latitude[i], &made->longitude[i]);
		made->tag[i] = (int64_t) (3 * i) - 50;
		if (made->group != NULL)
			made->group[i] = random_below(4) * 10;
		if (made->radius != NULL)
			made->radius[i] = random_below(3) == 0 ? INFINITY : random_magnitude(1, 1e6);
		if (made->party[0] != NULL)
			made->party[0][i] = random_below(3);
		for (int window = 0; window < GEONN_WINDOWS_MAX && made->edges != NULL; window++)
			if (made->low[window] != NULL)
			{
				made->low[window][i] = random_below((int) moments);
				made->high[window][i] = made->low[window][i] + 1 + random_below((int) moments / 8 + 2);
				made->edges[i] |= geonn_edges_of(window, (enum geonn_edge) random_below(2), (enum geonn_edge) random_below(2));
			}
	}
	return made;
}

#endif							/* GEONN_TEST_RANDOM_DATASETS_H */
