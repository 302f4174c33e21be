/*
 * radii.h
 *		The radii of a count, as all devices compare them with squared chords.
 */
#ifndef GEONN_SEARCH_RADII_H
#define GEONN_SEARCH_RADII_H

#include <stdint.h>

#include "common/assertion.h"
#include "common/metric.h"
#include "common/protocol.h"

/* radii, and what squared chords say of them; each column is rising */
struct search_radii
{
	uint32_t	count;
	double		radius[GEONN_RADII_MAX];	/* metres */
	double		within[GEONN_RADII_MAX];	/* no candidate within the radius has a greater squared chord */
	double		certain[GEONN_RADII_MAX];	/* any reference with at most this one is within the radius */
};

/*
 * Set the radii, with what squared chords say of them.  No candidate is farther than `most` metres: radii beyond that
 * are cut off, and if it is negative or NaN, none has a candidate.
 */
static inline void
search_radii_set(struct search_radii *radii, enum geonn_metric metric, const double *radius, uint32_t count, double most)
{
	geonn_assert(count <= GEONN_RADII_MAX);
	radii->count = count;
	for (uint32_t i = 0; i < count; i++)
	{
		double		reach = geonn_metric_reach(radius[i], most);

		radii->radius[i] = reach;
		radii->within[i] = reach < 0.0 ? -1.0 : geonn_metric_radius_limit(metric, reach);
		radii->certain[i] = reach < 0.0 ? -1.0 : geonn_metric_certain_limit(metric, reach);
		geonn_assert(radii->certain[i] <= radii->within[i]);
		geonn_assert(i == 0 || (radii->within[i - 1] <= radii->within[i] && radii->certain[i - 1] <= radii->certain[i]));
	}
}

#endif							/* GEONN_SEARCH_RADII_H */
