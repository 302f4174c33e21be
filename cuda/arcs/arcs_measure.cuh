/*
 * arcs_measure.cuh
 *		What searches by the index of arcs compute: the gaps of boxes, the distances to chords, and those to arcs.
 *
 * For kernels.  The distance of an observation to an arc's chord, with the arc's sagitta less and more, bounds that to the arc,
 * as on the CPU (engine/cpu/arcs/arcs_search.c).
 *
 *
 * The margin
 *
 * It is that of src/engine/cpu/arcs/arcs_search.c, SHAPE_ARCS_MARGIN = 2^-45 or 256 e.  The bounds here differ in how the
 * fraction t of the chord is computed: by the inverse of the chord's square, rounded, in place of a division, and with fused
 * operations.  The inverse adds a rounding, so t times |d| is off by 9 e |w| <= 18 e in place of 16 e, a part of
 * w - t d by 22 e, and the distance by 44 e: together 28.4 + 2 * 5.44 + 2 * 46 = 131 e.  An arc without length
 * has d = 0, so that any finite t will do.
 *
 * Boxes are as in engine/shapes/boxes.h: a gap is the true one at most, but for 2^-24 of itself, and their squares and sums
 * are off by 2^-21 relatively.  A child of a node may come too early by 2^-20 of the square of its gap.  limit_squared
 * is 2^-18 more.
 */
#ifndef GEONN_ARCS_MEASURE_CUH
#define GEONN_ARCS_MEASURE_CUH

#include "common/arc.h"
#include "cuda/arcs/arcs.cuh"

/* ---- leaves ---- */

/* one of a leaf's ends, a or b */
static __device__ __forceinline__ struct geonn_vector
arcs_end(const double end[3][ARCS_WIDTH], uint32_t i)
{
	struct geonn_vector vector;

	vector.x = __ldg(&end[0][i]);
	vector.y = __ldg(&end[1][i]);
	vector.z = __ldg(&end[2][i]);
	return vector;
}

/*
 * Return the square of the distance from an observation to an arc's chord, in radii.  *sagitta becomes the
 * greatest distance between the chord and the arc.
 */
static __device__ __forceinline__ double
arcs_square_to(const struct arcs_leaf *leaf, uint32_t i, struct geonn_vector from, double *sagitta)
{
	struct geonn_vector a = arcs_end(leaf->a, i);
	struct geonn_vector b = arcs_end(leaf->b, i);
	double		dx = b.x - a.x;
	double		dy = b.y - a.y;
	double		dz = b.z - a.z;
	double		wx = from.x - a.x;
	double		wy = from.y - a.y;
	double		wz = from.z - a.z;
	double		t = fma(wz, dz, fma(wy, dy, wx * dx)) * __ldg(&leaf->inverse[i]);

	t = fmin(fmax(t, 0.0), 1.0);
	wx = fma(-t, dx, wx);
	wy = fma(-t, dy, wy);
	wz = fma(-t, dz, wz);
	*sagitta = SHAPE_ARCS_SAGITTA * fma(dz, dz, fma(dy, dy, dx * dx));
	return fma(wz, wz, fma(wy, wy, wx * wx));
}

/* Return the distance in metres to an arc: the arc's inside, and those of its ends that may be within the limit. */
static __device__ __noinline__ double
arcs_measure(const struct arcs_leaf *leaf, uint32_t i, struct geonn_vector from, double limit)
{
	struct geonn_vector a = arcs_end(leaf->a, i);
	struct geonn_vector b = arcs_end(leaf->b, i);
	double		distance = geonn_foot_distance(from, a, b);

	if (geonn_chord_squared(from, a) <= limit * limit)
		distance = fmin(distance, geonn_distance_of(from, a));
	if (geonn_chord_squared(from, b) <= limit * limit)
		distance = fmin(distance, geonn_distance_of(from, b));
	return distance;
}

/* ---- boxes ---- */

/* Return how far p is outside low ... high. */
static __device__ __forceinline__ float
arcs_gap(float p, float low, float high)
{
	return fmaxf(fmaxf(low - p, p - high), 0.0f);
}

/* Add the squares of the gaps on one axis. */
static __device__ __forceinline__ void
arcs_add_squares(float *square, float p, const float *low, const float *high)
{
#pragma unroll
	for (int half = 0; half < 2; half++)
	{
		float4		lows = __ldg((const float4 *) low + half);
		float4		highs = __ldg((const float4 *) high + half);
		float		gap[4] = {
			arcs_gap(p, lows.x, highs.x), arcs_gap(p, lows.y, highs.y), arcs_gap(p, lows.z, highs.z), arcs_gap(p, lows.w, highs.w)
		};

#pragma unroll
		for (int i = 0; i < 4; i++)
			square[4 * half + i] = fmaf(gap[i], gap[i], square[4 * half + i]);
	}
}

/* Compute the squares of the gaps between an observation and a node's boxes. */
static __device__ __forceinline__ void
arcs_box_squares(const struct shape_boxes_node *node, struct geonn_vector from, float *square)
{
#pragma unroll
	for (int i = 0; i < ARCS_WIDTH; i++)
		square[i] = 0.0f;
	arcs_add_squares(square, (float) from.x, node->low[0], node->high[0]);
	arcs_add_squares(square, (float) from.y, node->low[1], node->high[1]);
	arcs_add_squares(square, (float) from.z, node->low[2], node->high[2]);
}

/* Return the square of a limit, a little increased for rounding, to compare squares of gaps with. */
static __device__ __forceinline__ float
arcs_limit_squared(double limit)
{
	return (float) (limit * limit * (1.0 + 0x1p-18));
}

/* Return the limit on chords, in radii, for a max_distance in metres. */
static inline double
arcs_limit_of(double max_distance)
{
	return fmin(sqrt(geonn_metric_radius_limit(GEONN_METRIC_SPHERE, max_distance)) + SHAPE_ARCS_MARGIN, SHAPE_BEYOND_CHORDS);
}

#endif							/* GEONN_ARCS_MEASURE_CUH */
