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

/* Radii, and the bounds on squared chords that go with them; each column rises */
struct search_radii
{
	uint32_t	count;
	double		radius[GEONN_RADII_MAX];	/* metres */
	double		within[GEONN_RADII_MAX];	/* every candidate within the radius has at most this squared chord */
	double		certain[GEONN_RADII_MAX];	/* every reference with at most this squared chord is within the radius */
};

/*
 * Set the radii and their bounds on squared chords.  Candidates are at most `most` metres away: greater radii are cut
 * off to it; if `most` is negative or NaN, no radius has a candidate.
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
