/*
 * polygons_take.cuh
 *		Finds the polygons that an observation lies in, on a GPU.
 *
 * For kernels.  A thread takes an observation, in the order of the curve, and does what engine/shapes/polygons.c does: it goes
 * through the boxes that hold the observation, and asks the stretches of each polygon that is left, from the top.  The
 * signs are those of common/ring_side.h, exact on every device, so that nothing is left for the CPU to decide.
 *
 * Recursion would take a stack of unknown size; so the numbers of what is left on each level are in arrays.
 */
#ifndef GEONN_POLYGONS_TAKE_CUH
#define GEONN_POLYGONS_TAKE_CUH

#include "cuda/arcs/polygons.cuh"
#include "engine/shapes/stretch.h"

/* An observation may look at this many boxes and stretches; beyond that the CPU answers. */
#define POLYGONS_VISITS_MAX 4096

/* an observation */
struct polygons_asking
{
	struct geonn_vector point;
	double		longitude;		/* shape_stretch_longitude() */
	uint32_t	visits;
};

/* ---- sides ---- */

static __device__ __forceinline__ struct geonn_vector
polygons_vertex(const struct polygons *polygons, uint32_t number)
{
	const double *parts = (const double *) &polygons->vertex[number];
	struct geonn_vector vector;

	vector.x = __ldg(&parts[0]);
	vector.y = __ldg(&parts[1]);
	vector.z = __ldg(&parts[2]);
	return vector;
}

/* Return geonn_ring_side() of the arcs of a stretch of level 0. */
static __device__ __noinline__ enum geonn_side
polygons_stretch_side(const struct polygons *polygons, struct geonn_vector point, uint32_t first, uint32_t last)
{
	struct geonn_vector p = geonn_flattened(point);
	struct geonn_vector a = {0.0, 0.0, 0.0};
	int			from = 0;
	bool		odd = false;

	for (uint32_t i = first; i <= last; i++)
	{
		struct geonn_vector b = geonn_flattened(polygons_vertex(polygons, i));
		int			to = geonn_north(p, b);

		if (to == 0 && geonn_dot(p, b) > 0.0)
			return GEONN_ON_BORDER;
		if (i > first)
		{
			enum geonn_side side = geonn_arc_crossing(p, a, from, b, to);

			if (side == GEONN_ON_BORDER)
				return side;
			odd ^= side == GEONN_INSIDE;
		}
		a = b;
		from = to;
	}
	return odd ? GEONN_INSIDE : GEONN_OUTSIDE;
}

/*
 * Return whether the stretch is crossed, judged by its ends alone; a call of its own, because few
 * stretches need this test.
 */
static __device__ __noinline__ bool
polygons_crosses(const struct polygons *polygons, struct geonn_vector point, const struct shape_polygons_stretch *stretch)
{
	return shape_stretch_crosses(stretch, polygons->vertex, point);
}

/*
 * Return the side of a polygon that the observation is on; an arbitrary side once the observation
 * has looked at too many stretches.
 */
static __device__ __forceinline__ enum geonn_side
polygons_side_of(const struct polygons *polygons, struct polygons_asking *asking, const struct shape_polygon *polygon)
{
	const struct shape_polygons_stretch *stretch = polygons->stretch + polygon->stretch;
	uint32_t	begin[SHAPE_POLYGONS_LEVELS];	/* the polygon's first stretch of each level */
	uint32_t	count[SHAPE_POLYGONS_LEVELS];
	uint32_t	next[SHAPE_POLYGONS_LEVELS];	/* of each level, the next stretch to look at, and the end of the
												 * stretches */
	uint32_t	end[SHAPE_POLYGONS_LEVELS];
	int			top = 0;
	int			level;
	bool		odd = polygon->pole_is_inside != 0;

	begin[0] = 0;
	count[0] = polygon->stretches;
	for (; count[top] > SHAPE_POLYGONS_STRETCH; top++)
	{
		begin[top + 1] = begin[top] + count[top];
		count[top + 1] = (count[top] + SHAPE_POLYGONS_STRETCH - 1) / SHAPE_POLYGONS_STRETCH;
	}
	level = top;
	next[top] = 0;
	end[top] = count[top];
	while (asking->visits < POLYGONS_VISITS_MAX)
	{
		uint32_t	number = next[level];
		const struct shape_polygons_stretch *now = &stretch[begin[level] + number];
		enum shape_stretch_answer answer;

		if (number == end[level])
		{
			if (level == top)
				break;
			level++;
			continue;
		}
		next[level]++;
		asking->visits++;
		answer = shape_stretch_ask(now, asking->point, asking->longitude);
		if (answer == SHAPE_STRETCH_ENDS)
			odd ^= polygons_crosses(polygons, asking->point, now);
		if (answer != SHAPE_STRETCH_OPEN)
			continue;
		if (level > 0)
		{
			level--;
			next[level] = number * SHAPE_POLYGONS_STRETCH;
			end[level] = min(number * SHAPE_POLYGONS_STRETCH + SHAPE_POLYGONS_STRETCH, count[level]);
		}
		else
		{
			enum geonn_side side = polygons_stretch_side(polygons, asking->point, now->first, now->last);

			if (side == GEONN_ON_BORDER)
				return side;
			odd ^= side == GEONN_INSIDE;
		}
	}
	return odd ? GEONN_INSIDE : GEONN_OUTSIDE;
}

/* ---- boxes ---- */

/* Return a mask: bit i is set if box i of a node holds the observation. */
static __device__ __forceinline__ uint32_t
polygons_holding(const struct shape_boxes_node *node, struct geonn_vector point)
{
	const float at[3] = {(float) point.x, (float) point.y, (float) point.z};
	uint32_t	bits = (1u << SHAPE_BOXES_WIDTH) - 1;

#pragma unroll
	for (int axis = 0; axis < 3; axis++)
#pragma unroll
		for (int half = 0; half < 2; half++)
		{
			float4		low = __ldg((const float4 *) node->low[axis] + half);
			float4		high = __ldg((const float4 *) node->high[axis] + half);
			uint32_t	four = (uint32_t) (low.x <= at[axis] && at[axis] <= high.x) |
				(uint32_t) (low.y <= at[axis] && at[axis] <= high.y) << 1 |
				(uint32_t) (low.z <= at[axis] && at[axis] <= high.z) << 2 |
				(uint32_t) (low.w <= at[axis] && at[axis] <= high.w) << 3;

			bits &= four << (4 * half) | 0xF0u >> (4 * half);
		}
	return bits;
}

/* Read an observation. */
static __device__ __forceinline__ struct polygons_asking
polygons_ask(const struct index_order *order, uint32_t row)
{
	double2		point = order->point[row];
	struct polygons_asking asking;

	asking.point = geonn_unit_vector(point.x, point.y);
	asking.longitude = shape_stretch_longitude(asking.point, point.y);
	asking.visits = 0;
	return asking;
}

/*
 * Find the polygons that the observation is in or on the border of.  `wants` is asked with a polygon's first arc whether to
 * test the polygon; `take` gets the first arc of each polygon that holds the observation.  Returns false if the observation
 * had to look at too many boxes and stretches.
 */
template <typename Wants, typename Take>
static __device__ __forceinline__ bool
polygons_take(const struct polygons *polygons, struct polygons_asking *asking, Wants wants, Take take)
{
	uint32_t	number[SHAPE_BOXES_LEVELS];	/* of each level the present node, and a bit for each of its boxes still to
											 * be entered */
	uint32_t	bits[SHAPE_BOXES_LEVELS];
	int			top = polygons->levels - 1;
	int			level = top;

	number[top] = 0;
	bits[top] = polygons_holding(&polygons->node[top][0], asking->point);
	while (asking->visits < POLYGONS_VISITS_MAX)
	{
		uint32_t	child;

		if (bits[level] == 0)
		{
			if (level == top)
				break;
			level++;
			continue;
		}
		child = number[level] * SHAPE_BOXES_WIDTH + (uint32_t) __ffs(bits[level]) - 1;
		bits[level] &= bits[level] - 1;
		asking->visits++;
		if (level > 0)
		{
			level--;
			number[level] = child;
			bits[level] = polygons_holding(&polygons->node[level][child], asking->point);
		}
		else if (wants(polygons->polygon[child].arc) &&
				 polygons_side_of(polygons, asking, &polygons->polygon[child]) != GEONN_OUTSIDE)
			take(polygons->polygon[child].arc);
	}
	return asking->visits < POLYGONS_VISITS_MAX;
}

#endif							/* GEONN_POLYGONS_TAKE_CUH */
