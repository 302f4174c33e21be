/*
 * cells_collect.cuh
 *		A warp collects the positions that can be the nearest of some point in a range
 *		of squares.
 *
 * For the kernels of cells_build.cu.  The warp walks the index from the middle of the range, and
 * keeps candidates in shared memory.
 *
 *
 * What is left out
 *
 * cells_range.h says what, and why.  Points nearer to m than so much are a cap of the
 * sphere, of less than half of it, and a plane picture from the centre shows a cap as a
 * convex figure; so rho is the distance of the farthest corner.  It is computed from unit
 * vectors, but for 13 e with the length of p.
 *
 * When 64 have been kept, each of these is compared with each other one.  Within a
 * square, the same is done with the nearest to its middle, and then with each other one.
 */
#ifndef GEONN_CELLS_COLLECT_CUH
#define GEONN_CELLS_COLLECT_CUH

#include "cuda/cells/cells.cuh"
#include "cuda/index/index_walk.cuh"
#include "engine/search/cells_range.h"

/* the greatest number of candidates that are kept for a range: one for each bit of a uint64_t */
#define KEPT_MAX 64

/* the greatest number of leaves that a walk for a range looks at */
#define LEAVES_MAX 128

/* a range of squares, side by side */
struct __align__(16) range
{
	uint32_t	block;
	uint32_t	u;				/* (u, v), in units, is the block's first corner */
	uint32_t	v;
	uint8_t		face;
	uint8_t		shift;			/* a square's side is 2^shift units */
	uint8_t		first;			/* the range's first square in the block; bits of column and row
								 * alternate */
	uint8_t		side_bits;		/* the range's side is 2^side_bits squares */
};

static_assert(sizeof(struct range) == 16, "read and written as one");

/* candidates of a warp's range, in shared memory; vectors come from cells_turned() */
struct kept
{
	double		x[KEPT_MAX];
	double		y[KEPT_MAX];
	double		z[KEPT_MAX];
	uint32_t	position[KEPT_MAX];
};

/* the corners of a warp's range, in shared memory */
struct corners
{
	double		x[4];			/* vectors as the index has them */
	double		y[4];
	double		z[4];
	double		limit[4];		/* limit on squared chords to a box, or to the box's antipodes
								 * if the best is more than a quarter of a circle from the
								 * middle */
};

/* what a warp knows while it walks for a range; the same in all lanes */
struct seen
{
	struct cells_range range;
	uint32_t	count;			/* how many candidates are kept */
	uint32_t	inside;			/* how many positions are within rho of the middle */
	bool		overflow;		/* more candidates than KEPT_MAX came, or LEAVES_MAX leaves */
	int			level;			/* level and parent of the boxes last compared with the best;
								 * level is -1 once the best has changed */
	uint32_t	parent;
};

static __device__ __forceinline__ uint32_t
column_of(uint32_t square)
{
	return (square & 1) | (square >> 1 & 2) | (square >> 2 & 4);
}

static __device__ __forceinline__ uint32_t
row_of(uint32_t square)
{
	return column_of(square >> 1);
}

/* the square that 2^side_bits by 2^side_bits squares of a block form, from square `first` on */
static __device__ __forceinline__ struct cells_square
squares_of(const struct cells *cells, const struct range *range, uint32_t first,
		   uint32_t side_bits)
{
	return cells_square_of(range->u + (column_of(first) << range->shift),
						   range->v + (row_of(first) << range->shift),
						   1u << (range->shift + side_bits), cells->scale);
}

static __device__ __forceinline__ struct geonn_vector
kept_vector(const struct kept *kept, uint32_t number)
{
	struct geonn_vector vector;

	vector.x = kept->x[number];
	vector.y = kept->y[number];
	vector.z = kept->z[number];
	return vector;
}

/* the distance of the farthest corner from the middle: rho of the essay */
static __device__ __forceinline__ double
farthest_corner(struct geonn_vector middle, struct geonn_vector corner)
{
	double		away = geonn_chord_squared(middle, corner);

	away = fmax(away, __shfl_xor_sync(ALL_LANES, away, 1));
	away = fmax(away, __shfl_xor_sync(ALL_LANES, away, 2));
	return sqrt(away) + 0x1p-48;
}

static __device__ __forceinline__ double
outside(double place, double low, double high)
{
	return fmax(fmax(low - place, place - high), 0.0);
}

static __device__ __forceinline__ double
farther_end(double place, double low, double high)
{
	return fmax(fabs(place + low), fabs(place + high));
}

/*
 * Whether the best is nearer than a box's positions to each corner of the range,
 * and so to each point in it.
 */
static __device__ __forceinline__ bool
box_is_behind(const struct index *index, size_t place, const struct seen *seen,
			  const struct corners *corners)
{
	struct geonn_vector low;
	struct geonn_vector high;
	bool		is_behind = true;

	low.x = index->low_x[place];
	low.y = index->low_y[place];
	low.z = index->low_z[place];
	high.x = index->high_x[place];
	high.y = index->high_y[place];
	high.z = index->high_z[place];
	for (int i = 0; i < 4 && is_behind; i++)
	{
		double		x = corners->x[i];
		double		y = corners->y[i];
		double		z = corners->z[i];

		if (cells_range_is_near(&seen->range))
		{
			x = outside(x, low.x, high.x);
			y = outside(y, low.y, high.y);
			z = outside(z, low.z, high.z);
			is_behind = fma(z, z, fma(y, y, x * x)) > corners->limit[i];
		}
		else
		{
			x = farther_end(x, low.x, high.x);
			y = farther_end(y, low.y, high.y);
			z = farther_end(z, low.z, high.z);
			is_behind = fma(z, z, fma(y, y, x * x)) < corners->limit[i];
		}
	}
	return is_behind;
}

/* set the corners' limits by the best */
static __device__ __forceinline__ void
limit_corners(struct corners *corners, const struct seen *seen, uint32_t face)
{
	__syncwarp();
	if (warp_lane() < 4)
	{
		struct geonn_vector best = cells_turned_back(face, seen->range.best);
		struct geonn_vector corner;

		corner.x = corners->x[warp_lane()];
		corner.y = corners->y[warp_lane()];
		corner.z = corners->z[warp_lane()];
		corners->limit[warp_lane()] = cells_range_corner_limit(&seen->range, corner, best);
	}
	__syncwarp();
}

/*
 * Leave out those of the walk's children, one for each lane, that box_is_behind() finds; do it
 * again only if the best has changed or the walk comes back.
 */
static __device__ __forceinline__ void
leave_out(struct index_walk *walk, struct seen *seen, const struct corners *corners)
{
	if (seen->level == walk->level && seen->parent == walk->parent)
		return;
	seen->level = walk->level;
	seen->parent = walk->parent;
	if (seen->range.best_square < INFINITY && walk->key != INDEX_NONE &&
		box_is_behind(walk->index, (size_t) walk->index->shape.first[walk->level] +
					  walk->parent * INDEX_WIDTH + warp_lane(), seen, corners))
		walk->key = INDEX_NONE;
}

/*
 * Make the nearest of the lanes' positions the best, if it is nearer than the best so far.
 * Returns whether it is.
 */
static __device__ __forceinline__ bool
look_for_best(struct seen *seen, struct geonn_vector vector, double square)
{
	double		least;
	int			lane;

	if (!__any_sync(ALL_LANES, square < seen->range.best_square))
		return false;
	least = warp_smallest(square);
	lane = __ffs(__ballot_sync(ALL_LANES, square == least)) - 1;
	cells_range_see(&seen->range, vector_of_lane(vector, lane), least);
	seen->level = -1;
	return true;
}

/* whether the position is within the search's limit and the best reference so far does not rule it
 * out */
static __device__ __forceinline__ bool
is_candidate(const struct seen *seen, struct geonn_vector vector)
{
	return geonn_chord_squared(seen->range.middle, vector) <= seen->range.limit &&
		!cells_comes_before(seen->range.best, vector, &seen->range.square, seen->range.margin);
}

/*
 * Drop all kept candidates but those for which stays is set: this lane's stays[0]
 * is for number `lane`, its stays[1] for INDEX_WIDTH + lane.
 */
static __device__ __forceinline__ void
keep_only(struct kept *kept, struct seen *seen, const bool *stays)
{
	struct geonn_vector vector[2];
	uint32_t	position[2];
	uint32_t	count = 0;

	for (int j = 0; j < 2; j++)
	{
		vector[j] = kept_vector(kept, j * INDEX_WIDTH + warp_lane());
		position[j] = kept->position[j * INDEX_WIDTH + warp_lane()];
	}
	__syncwarp();
	for (int j = 0; j < 2; j++)
	{
		uint32_t	lanes = __ballot_sync(ALL_LANES, stays[j]);
		uint32_t	number = count + lanes_before(lanes);

		if (stays[j])
		{
			kept->x[number] = vector[j].x;
			kept->y[number] = vector[j].y;
			kept->z[number] = vector[j].z;
			kept->position[number] = position[j];
		}
		count += __popc(lanes);
	}
	__syncwarp();
	seen->count = count;
}

/* Drop the kept candidates that the best rules out. */
static __device__ __forceinline__ void
compare_with_best(struct kept *kept, struct seen *seen)
{
	bool		stays[2];

	for (int j = 0; j < 2; j++)
	{
		uint32_t	number = j * INDEX_WIDTH + warp_lane();

		stays[j] = number < seen->count && is_candidate(seen, kept_vector(kept, number));
	}
	keep_only(kept, seen, stays);
}

/* Drop the kept candidates that another one rules out. */
static __device__ __forceinline__ void
compare_with_all(struct kept *kept, struct seen *seen)
{
	bool		stays[2];

	for (int j = 0; j < 2; j++)
	{
		uint32_t	number = j * INDEX_WIDTH + warp_lane();
		struct geonn_vector vector = kept_vector(kept, number);

		stays[j] = number < seen->count;
		for (uint32_t i = 0; i < seen->count; i++)
			stays[j] = stays[j] && !cells_comes_before(kept_vector(kept, i), vector,
													   &seen->range.square, seen->range.margin);
	}
	keep_only(kept, seen, stays);
}

/* Keep the lanes' candidates; if they are too many even without those that others rule out, set
 * overflow. */
static __device__ __forceinline__ void
keep(struct kept *kept, struct seen *seen, bool has, struct geonn_vector vector, uint32_t position)
{
	uint32_t	lanes = __ballot_sync(ALL_LANES, has);
	uint32_t	number;

	if (seen->count + __popc(lanes) > KEPT_MAX)
		compare_with_best(kept, seen);
	if (seen->count + __popc(lanes) > KEPT_MAX)
		compare_with_all(kept, seen);
	if (seen->count + __popc(lanes) > KEPT_MAX)
	{
		seen->overflow = true;
		return;
	}
	number = seen->count + lanes_before(lanes);
	if (has)
	{
		kept->x[number] = vector.x;
		kept->y[number] = vector.y;
		kept->z[number] = vector.z;
		kept->position[number] = position;
	}
	seen->count += __popc(lanes);
	__syncwarp();
}

/*
 * Walk the index and collect the candidates of a range.  After an overflow, the
 * walk only counts how dense positions are.
 */
static __device__ __forceinline__ void
collect(const struct index *index, const struct cells *cells, const struct range *range,
		uint32_t dense, struct kept *kept, struct corners *corners, struct seen *seen)
{
	struct index_walk walk;
	struct geonn_vector corner;
	double		inner;
	uint32_t	leaf;
	uint32_t	leaves = 0;

	cells_range_begin(&seen->range, squares_of(cells, range, range->first, range->side_bits));
	corner = cells_range_corner(&seen->range, warp_lane());
	seen->range.rho = farthest_corner(seen->range.middle, corner);
	inner = seen->range.rho * seen->range.rho;
	seen->count = 0;
	seen->inside = 0;
	seen->overflow = false;
	seen->level = -1;

	corner = cells_turned_back(range->face, corner);
	if (warp_lane() < 4)
	{
		corners->x[warp_lane()] = corner.x;
		corners->y[warp_lane()] = corner.y;
		corners->z[warp_lane()] = corner.z;
	}
	index_walk_begin(&walk, index, cells_turned_back(range->face, seen->range.middle), 0,
					 INDEX_NONE);
	while (index_walk_next(&walk, seen->range.limit, &leaf,
						   [&](struct index_walk *at) { leave_out(at, seen, corners); }))
	{
		uint32_t	position = leaf * INDEX_WIDTH + warp_lane();
		bool		present = position < index->shape.positions;
		struct geonn_vector vector = cells_turned(range->face, index_vector(index, position));
		double		square = present ? geonn_chord_squared(seen->range.middle, vector) : INFINITY;

		if (look_for_best(seen, vector, square))
			limit_corners(corners, seen, range->face);
		seen->inside += __popc(__ballot_sync(ALL_LANES, square <= inner));
		if (!seen->overflow)
			keep(kept, seen, present && is_candidate(seen, vector), vector, position);
		if (++leaves == LEAVES_MAX)
			seen->overflow = true;
		if (seen->overflow)
		{
			if (seen->inside >= dense || leaves == LEAVES_MAX)
				return;
			seen->range.limit = fmin(seen->range.limit, inner);
		}
	}
	if (!seen->overflow)
		compare_with_best(kept, seen);
}

#endif							/* GEONN_CELLS_COLLECT_CUH */
