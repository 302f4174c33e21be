/*
 * point_windows.h
 *		The windows of one point, and whether they overlap a reference's.
 */
#ifndef GEONN_POINT_WINDOWS_H
#define GEONN_POINT_WINDOWS_H

#include "common/window.h"
#include "engine/dataset/dataset.h"

struct point_windows
{
	int64_t		low[GEONN_WINDOWS_MAX];
	int64_t		high[GEONN_WINDOWS_MAX];
	uint16_t	edges;
};

/* Read the windows of an observation, each value once, because the client can change the batch meanwhile. */
static inline struct point_windows
point_windows_read(const struct geonn_batch_columns *batch, uint32_t row)
{
	struct point_windows windows = {0};

	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (batch->low[i] != NULL)
		{
			windows.low[i] = ((const volatile int64_t *) batch->low[i])[row];
			windows.high[i] = ((const volatile int64_t *) batch->high[i])[row];
		}
	if (batch->edges != NULL)
		windows.edges = ((const volatile uint16_t *) batch->edges)[row];
	return windows;
}

/* Return whether each window of a point overlaps the window of the reference at this place. */
static inline bool
point_windows_overlap(const struct point_windows *windows, const struct dataset *dataset,
					  size_t place)
{
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (dataset->low[i] != NULL &&
			!geonn_windows_overlap(i, windows->low[i], windows->high[i], windows->edges,
								   dataset->low[i][place], dataset->high[i][place],
								   dataset->edges[place]))
			return false;
	return true;
}

#endif							/* GEONN_POINT_WINDOWS_H */
