/*
 * arcs_conditions.h
 *		Which shapes an observation may find, by the columns of both.
 *
 * All arcs of a shape have the same columns, so the place of any of its arcs stands for it.
 *
 * The radius of an observation limits a search as max_distance does.  The radius of a shape does not: farther shapes may have
 * larger ones.  Bounds of a shape's chord tell before its distance is known whether it is within its radius.
 */
#ifndef GEONN_CPU_ARCS_CONDITIONS_H
#define GEONN_CPU_ARCS_CONDITIONS_H

#include "common/metric.h"
#include "engine/dataset/point_parties.h"
#include "engine/dataset/point_windows.h"

struct arcs_conditions
{
	const struct dataset *dataset;
	bool		plain;			/* all shapes are candidates */

	/* The observation's values in the columns that the dataset has. */
	int32_t		group;
	int64_t		excluded_first;
	int64_t		excluded_last;
	double		radius;			/* metres; negative: the observation has no candidate */
	struct point_windows windows;
	struct point_parties parties;
};

static inline struct arcs_conditions
arcs_conditions_of(const struct dataset *dataset)
{
	return (struct arcs_conditions) {
		.dataset = dataset,
		.plain = (dataset->columns & ~(GEONN_COLUMN_ARC | GEONN_COLUMNS_WEIGHTS)) == 0,
		.radius = INFINITY
	};
}

/* Read an observation's columns, each value once, because the client can change the batch meanwhile. */
static inline void
arcs_conditions_read(struct arcs_conditions *conditions, const struct geonn_batch_columns *columns, uint32_t row)
{
	if (columns->group != NULL)
		conditions->group = ((const volatile int32_t *) columns->group)[row];
	if (columns->excluded_first != NULL)
	{
		conditions->excluded_first = ((const volatile int64_t *) columns->excluded_first)[row];
		conditions->excluded_last = ((const volatile int64_t *) columns->excluded_last)[row];
	}
	if (columns->radius != NULL)
		conditions->radius = geonn_metric_reach(INFINITY, ((const volatile double *) columns->radius)[row]);
	if (columns->edges != NULL)
		conditions->windows = point_windows_read(columns, row);
	if (columns->party[0] != NULL)
		conditions->parties = point_parties_read(columns, row);
}

/* Return whether the conditions allow a pair with the shape of the arc at this place, at whatever distance. */
static inline bool
arcs_is_candidate(const struct arcs_conditions *conditions, uint32_t place)
{
	const struct dataset *dataset = conditions->dataset;

	if (conditions->plain)
		return true;
	if (dataset->group != NULL && dataset->group[place] != conditions->group)
		return false;
	if (dataset->columns & GEONN_COLUMN_EXCLUDED &&
		dataset->tag[place] >= conditions->excluded_first && dataset->tag[place] <= conditions->excluded_last)
		return false;
	return (dataset->edges == NULL || point_windows_overlap(&conditions->windows, dataset, place)) &&
		(dataset->party[0] == NULL || point_parties_differ(&conditions->parties, dataset, place));
}

/*
 * Return whether a shape is beyond its own radius, because the chord to it is at least `chord`, in radii.  A chord is no
 * longer than its arc.
 */
static inline bool
arcs_is_beyond_radius(const struct arcs_conditions *conditions, uint32_t place, double chord)
{
	return conditions->dataset->radius != NULL && chord * GEONN_SPHERE_RADIUS > conditions->dataset->radius[place];
}

/* Return whether a shape is within its own radius, because the chord to it is at most `chord`, in radii. */
static inline bool
arcs_is_within_radius(const struct arcs_conditions *conditions, uint32_t place, double chord)
{
	const double *radius = conditions->dataset->radius;

	/* a radius of NaN, which only a faulty client sends, allows no pair */
	return radius == NULL ||
		(radius[place] >= 0.0 && chord <= sqrt(geonn_metric_certain_limit(GEONN_METRIC_SPHERE, radius[place])));
}

/* Return whether a distance is within the observation's radius and the shape's own. */
static inline bool
arcs_is_within_radiuses(const struct arcs_conditions *conditions, uint32_t place, double distance)
{
	return conditions->dataset->radius == NULL ||
		(distance <= conditions->radius && distance <= conditions->dataset->radius[place]);
}

#endif							/* GEONN_CPU_ARCS_CONDITIONS_H */
