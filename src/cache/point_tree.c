/*
 * point_tree.c
 *		Which of a set of points are near another point?
 *
 * The points are halved along the longest side of the box around them, and so are both halves, until
 * few are left.  Only boxes that are near enough are looked into.  The squared distance
 * from a box is computed from differences that are not greater than those from any point in it, by
 * the same operations in the same order.  Rounding keeps the order of numbers, so no point that is
 * near is missed.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "cache/point_tree.h"

/* points of a part that is not halved */
#define POINTS_A_LEAF	4

#define AXES			3

typedef struct Node
{
	double		low[AXES];		/* the box around its points */
	double		high[AXES];
	uint32		first;			/* the index of its first point */
	uint32		count;
	uint32		second_half;	/* number of this node; the first half's is the next one.  0: a leaf */
} Node;

struct PointTree
{
	TreePoint  *points;
	Node	   *nodes;
	uint32		count;			/* how many nodes the tree has */
};

static inline double
along(const TreePoint *point, int axis)
{
	return axis == 0 ? point->at.x : axis == 1 ? point->at.y : point->at.z;
}

/* ---- making a tree ---- */

static int
by_axis(const void *first, const void *second, void *axis)
{
	double		a = along(first, *(int *) axis);
	double		b = along(second, *(int *) axis);

	return a < b ? -1 : a > b;
}

/*
 * Find the box around a node's points.  Returns the axis along which it is longest.
 */
static int
find_box(const PointTree *tree, Node *node)
{
	int			longest = 0;

	for (int axis = 0; axis < AXES; axis++)
	{
		node->low[axis] = node->high[axis] = along(&tree->points[node->first], axis);
		for (uint32 i = 1; i < node->count; i++)
		{
			double		value = along(&tree->points[node->first + i], axis);

			node->low[axis] = Min(node->low[axis], value);
			node->high[axis] = Max(node->high[axis], value);
		}
		if (node->high[axis] - node->low[axis] > node->high[longest] - node->low[longest])
			longest = axis;
	}
	return longest;
}

static uint32
add_node(PointTree *tree, uint32 first, uint32 count)
{
	uint32		number = tree->count++;
	Node	   *node = &tree->nodes[number];
	int			axis;

	CHECK_FOR_INTERRUPTS();
	*node = (Node)
	{
		.first = first,.count = count
	};
	axis = find_box(tree, node);
	if (count > POINTS_A_LEAF)
	{
		qsort_arg(tree->points + first, count, sizeof(*tree->points), by_axis, &axis);
		(void) add_node(tree, first, count / 2);
		node->second_half = add_node(tree, first + count / 2, count - count / 2);
	}
	return number;
}

PointTree *
geonn_point_tree_create(TreePoint *points, uint32 count)
{
	PointTree  *tree = palloc0(sizeof(PointTree));

	tree->points = points;
	if (count == 0)
		return tree;
	/* each leaf has half as many points as may be in one, or more */
	tree->nodes = MemoryContextAllocHuge(CurrentMemoryContext,
										 (2 * (Size) (count / (POINTS_A_LEAF / 2)) + 1) * sizeof(Node));
	(void) add_node(tree, 0, count);
	return tree;
}

/* ---- questions ---- */

static double
squared_distance(const Node *node, struct geonn_vector at)
{
	double		sides[AXES];
	const double place[AXES] = {at.x, at.y, at.z};

	for (int axis = 0; axis < AXES; axis++)
	{
		if (place[axis] < node->low[axis])
			sides[axis] = node->low[axis] - place[axis];
		else
			sides[axis] = place[axis] > node->high[axis] ? place[axis] - node->high[axis] : 0;
	}
	return sides[0] * sides[0] + sides[1] * sides[1] + sides[2] * sides[2];
}

typedef struct Finding
{
	struct geonn_vector at;
	double		limit;
	TreePoint  *found;
	uint32		count;
	uint32		room;
} Finding;

static void
find(const PointTree *tree, uint32 number, Finding *finding)
{
	const Node *node = &tree->nodes[number];

	if (finding->count > finding->room || squared_distance(node, finding->at) > finding->limit)
		return;
	if (node->second_half > 0)
	{
		find(tree, number + 1, finding);
		find(tree, node->second_half, finding);
		return;
	}
	for (uint32 i = 0; i < node->count; i++)
	{
		const TreePoint *point = &tree->points[node->first + i];

		if (!geonn_tree_point_is_near(point, finding->at, finding->limit))
			continue;
		if (finding->count < finding->room)
			finding->found[finding->count] = *point;
		finding->count++;
	}
}

uint32
geonn_point_tree_find(const PointTree *tree, struct geonn_vector at, double limit, TreePoint *found,
					  uint32 room)
{
	Finding		finding = {.at = at,.limit = limit,.found = found,.room = room};

	if (tree->count > 0)
		find(tree, 0, &finding);
	return finding.count;
}

bool
geonn_point_tree_has_near(const PointTree *tree, struct geonn_vector at, double limit)
{
	return geonn_point_tree_find(tree, at, limit, NULL, 0) > 0;
}
