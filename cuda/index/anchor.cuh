/*
 * anchor.cuh
 *		Squared distances in float32, by offsets from an anchor.
 *
 * A warp that searches for several observations does so around one vector, the
 * anchor.  Offsets from it are exact in float64 but for 2^-53, and so float32
 * is enough to compare what is near it, with a bound on the error:
 *
 * Let o and r be the offsets of an observation and a position from the anchor,
 * s the true |r - o|^2, and u = 2^-24.  Both offsets are rounded to float32, each
 * component off by u relatively.  anchor_value() computes v for |r|^2 - 2 o.r, of
 * which |r|^2 comes from anchor_place().  That is off by 2 u |r|^2 for the
 * components, and by 3 u |r|^2 for roundings.  The components' errors move 2 o.r by
 * at most 4 u |o||r|.  Of three more roundings two are of at most |r|^2 + 2 |o||r|,
 * and the last is of v itself, about s - |o|^2.  Altogether v is off by at most
 *
 *		u (7 |r|^2 + 8 |o||r| + max(s, |o|^2))
 *
 * and as |r| <= |o| + sqrt(s), and 2 |o| sqrt(s) <= |o|^2 + s, by at most
 *
 *		E (|o|^2 + s),  E = 27 u < 2^-19.2							(1)
 *
 * The sum v + |o|^2 in float32, which is s, is off by another 6 u |o|^2 + u s:
 *
 *		|fl(v + |o|^2) - s| <= 34 u (|o|^2 + s) < 2^-18 (|o|^2 + s)		(2)
 *
 * What underflows in float32 is below 2^-140, for which ANCHOR_FLOOR makes up.
 */
#ifndef GEONN_ANCHOR_CUH
#define GEONN_ANCHOR_CUH

#include "cuda/index/index_walk.cuh"

/* The allowed error, as a share of |o|^2 + s: more than twice the sum of the essay's bounds (1) and (2). */
#define ANCHOR_MARGIN 0x1p-17f
#define ANCHOR_FLOOR 0x1p-120f

/* a factor that makes up for the roundings of a few float32 operations on a bound */
#define ANCHOR_ABOVE (1.0f + 0x1p-20f)

/* an observation as its offset from the anchor, in float32 */
struct anchor_offset
{
	float		x;				/* (x, y, z): the offset times -2 */
	float		y;
	float		z;
	float		square;			/* the square of the offset's length */
	float		norm;			/* the length of the offset, rounded up */
};

/* Return the root of a square above ANCHOR_FLOOR, rounded up. */
static __device__ __forceinline__ float
anchor_root_above(float square)
{
	return square * rsqrtf(square) * ANCHOR_ABOVE;
}

/* Return a position's offset from the anchor (x, y, z), and the square of the offset's length (w). */
static __device__ __forceinline__ float4
anchor_place(struct geonn_vector vector, struct geonn_vector anchor)
{
	float		x = (float) (vector.x - anchor.x);
	float		y = (float) (vector.y - anchor.y);
	float		z = (float) (vector.z - anchor.z);

	return make_float4(x, y, z, __fmaf_rn(z, z, __fmaf_rn(y, y, __fmul_rn(x, x))));
}

static __device__ __forceinline__ struct anchor_offset
anchor_offset_of(struct geonn_vector vector, struct geonn_vector anchor)
{
	float4		place = anchor_place(vector, anchor);
	struct anchor_offset offset;

	offset.x = -2.0f * place.x;
	offset.y = -2.0f * place.y;
	offset.z = -2.0f * place.z;
	offset.square = place.w;
	offset.norm = anchor_root_above(offset.square + ANCHOR_FLOOR);
	return offset;
}

/* Return the squared distance from the observation to a position, less the square of the observation's own offset. */
static __device__ __forceinline__ float
anchor_value(const struct anchor_offset *offset, float4 place)
{
	return __fmaf_rn(offset->z, place.z,
					 __fmaf_rn(offset->y, place.y, __fmaf_rn(offset->x, place.x, place.w)));
}

/* Return the largest, or the smallest, of all lanes' floats, which must be at least 0. */
static __device__ __forceinline__ float
anchor_largest(float value)
{
	return __uint_as_float(~warp_smallest(~__float_as_uint(value)));
}

static __device__ __forceinline__ float
anchor_smallest(float value)
{
	return __uint_as_float(warp_smallest(__float_as_uint(value)));
}

/* Return the nth smallest of the different values among the lanes' floats; infinity if the lanes have fewer. */
static __device__ __forceinline__ float
anchor_nth_smallest(float value, int nth)
{
	for (int i = 1; i < nth; i++)
		if (value == anchor_smallest(value))
			value = INFINITY;
	return anchor_smallest(value);
}

#endif							/* GEONN_ANCHOR_CUH */
