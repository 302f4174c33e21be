/*
 * point_tree.h
 *		A tree of points, which finds those that are near another point.
 */
#ifndef GEONN_CACHE_POINT_TREE_H
#define GEONN_CACHE_POINT_TREE_H

#include "common/geodesy.h"

typedef struct PointTree PointTree;

/* a point that is in a tree */
typedef struct TreePoint
{
	struct geonn_vector at;		/* geonn_metric_vector's */
	double		latitude;
} TreePoint;

/* Is the squared chord from `at` to the point at most the limit? */
static inline bool
geonn_tree_point_is_near(const TreePoint *point, struct geonn_vector at, double limit)
{
	double		x = point->at.x - at.x;
	double		y = point->at.y - at.y;
	double		z = point->at.z - at.z;

	return x * x + y * y + z * z <= limit;
}

/* Make a tree of these points, which are put into another order and must live as long as the tree. */
extern PointTree *geonn_point_tree_create(TreePoint *points, uint32 count);

/* Is the squared chord from `at` to any of the points at most the limit? */
extern bool geonn_point_tree_has_near(const PointTree *tree, struct geonn_vector at, double limit);

/*
 * Find the points whose squared chord from `at` is at most the limit.  Returns how many they are; a number
 * greater than room says that they did not fit into found.
 */
extern uint32 geonn_point_tree_find(const PointTree *tree, struct geonn_vector at, double limit,
									TreePoint *found, uint32 room);

#endif							/* GEONN_CACHE_POINT_TREE_H */
