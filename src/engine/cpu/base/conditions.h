/*
 * conditions.h
 *		What the columns of an observation say of its candidates.
 *
 * All walks of the CPU read an observation's columns here, each value once: the batch is shared with the client.  What
 * the conditions say of leaves, nodes and positions of an index is in walk/walk.h.
 */
#ifndef GEONN_CPU_CONDITIONS_H
#define GEONN_CPU_CONDITIONS_H

#include "common/metric.h"
#include "engine/dataset/point_parties.h"
#include "engine/dataset/point_windows.h"

/* a range of tags, whose references are passed over; empty if last < first */
struct cpu_tags
{
	int64_t		first;
	int64_t		last;
};

/* where the batch lacks a column, the value that allows all references; windows and parties are then not compared */
struct cpu_conditions
{
	int32_t		group;
	struct cpu_tags excluded;
	double		radius;			/* metres; negative: the observation has no candidate */
	struct point_windows windows;
	struct point_parties parties;
};

/* Read the group of an observation; 0 without groups. */
static inline int32_t
cpu_group_read(const struct geonn_batch_columns *columns, uint32_t number)
{
	return columns->group != NULL ? ((const volatile int32_t *) columns->group)[number] : 0;
}

/* Read the radius of an observation.  NaN, which only a faulty client sends, leaves no candidate. */
static inline double
cpu_radius_read(const struct geonn_batch_columns *columns, uint32_t number)
{
	return columns->radius != NULL ?
		geonn_metric_reach(INFINITY, ((const volatile double *) columns->radius)[number]) : INFINITY;
}

/* Read the tags that an observation excludes. */
static inline struct cpu_tags
cpu_tags_read(const struct geonn_batch_columns *columns, uint32_t number)
{
	if (columns->excluded_first == NULL)
		return (struct cpu_tags) {0, -1};
	return (struct cpu_tags) {
		((const volatile int64_t *) columns->excluded_first)[number],
		((const volatile int64_t *) columns->excluded_last)[number]
	};
}

static inline bool
cpu_tags_have(struct cpu_tags tags, int64_t tag)
{
	return tag >= tags.first && tag <= tags.last;
}

/* Read all columns of an observation.  Windows and parties that the batch lacks stay as they are. */
static inline void
cpu_conditions_read(struct cpu_conditions *conditions, const struct geonn_batch_columns *columns, uint32_t number)
{
	conditions->group = cpu_group_read(columns, number);
	conditions->excluded = cpu_tags_read(columns, number);
	conditions->radius = cpu_radius_read(columns, number);
	if (columns->edges != NULL)
		conditions->windows = point_windows_read(columns, number);
	if (columns->party[0] != NULL)
		conditions->parties = point_parties_read(columns, number);
}

#endif							/* GEONN_CPU_CONDITIONS_H */
