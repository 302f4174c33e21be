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

#include "engine/cpu/base/conditions.h"

struct arcs_conditions
{
	const struct dataset *dataset;
	bool		plain;			/* all shapes are candidates */
	struct cpu_conditions of;	/* the observation's values in the columns that the dataset has */
};

static inline struct arcs_conditions
arcs_conditions_of(const struct dataset *dataset)
{
	return (struct arcs_conditions) {
		.dataset = dataset,
		.plain = (dataset->columns & ~(GEONN_COLUMNS_OF_ARCS | GEONN_COLUMNS_WEIGHTS)) == 0
	};
}

/* Return whether the conditions allow a pair with the shape of the arc at this place, at whatever distance. */
static inline bool
arcs_is_candidate(const struct arcs_conditions *conditions, uint32_t place)
{
	const struct dataset *dataset = conditions->dataset;

	if (conditions->plain)
		return true;
	if (dataset->group != NULL && dataset->group[place] != conditions->of.group)
		return false;
	if (dataset->columns & GEONN_COLUMN_EXCLUDED && cpu_tags_have(conditions->of.excluded, dataset->tag[place]))
		return false;
	return (dataset->edges == NULL || point_windows_overlap(&conditions->of.windows, dataset, place)) &&
		(dataset->party[0] == NULL || point_parties_differ(&conditions->of.parties, dataset, place));
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
		(distance <= conditions->of.radius && distance <= conditions->dataset->radius[place]);
}

#endif							/* GEONN_CPU_ARCS_CONDITIONS_H */
