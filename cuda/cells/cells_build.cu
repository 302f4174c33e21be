/*
 * cells_build.cu
 *		Makes a dataset's table of squares on a GPU, from its index.
 *
 * A warp takes a range, 64, 16, 4 or 1 squares of a block that form a square
 * themselves.  It walks the index once, from the middle of the range, and keeps the
 * positions that can be the nearest of some point of the range, at most 64.  Then each
 * lane takes squares of the range and finds out which of the kept ones are
 * candidates there: as bits of a number.  One candidate is a single, and up to
 * eight are a list.
 *
 * Ranges are taken in rounds, each a launch.  What a range leaves for the next round:
 *
 *	- if it has more than 64 candidates, its four quarters;
 *	- if references are so dense that most of its squares would be divided, or it is one
 *	  square, the blocks of its squares;
 *	- the block of each square with more than eight candidates.
 *
 * So where references are dense squares become small.  All entries say CELLS_CROWDED
 * before the first round: what a round has no room for, or the last one leaves, stays so.
 *
 *
 * What is left out
 *
 * Notation is that of cells_square.cuh.  Let m be the middle of a range, rho the
 * greatest distance between m and a point of the range, and b the nearest position to m
 * that has been seen.
 *
 * A position c with |m - c| > |m - b| + 2 rho = reach is left out: for each p of
 * the range |p - c| >= |m - c| - rho > |m - b| + rho >= |p - b|.  Reach is taken 2^-40
 * of itself longer, which makes the squares differ by more than the factor of
 * geonn_chord_limit(), 2^-46, and by more than what roundings of |m - c| and |m - b|
 * amount to, some e of themselves.  m need not be a unit vector for that.  Points
 * nearer to m than so much are a cap of the sphere, of less than half of it, and a plane
 * picture from the centre shows a cap as a convex figure; so rho is the distance of the
 * farthest corner.  It is computed from unit vectors, but for 13 e with the length of p,
 * where 2^-48 = 32 e is added.
 *
 * Of boxes of the index, index_walk.cuh shows that those left out have no position
 * within the limit, the square of reach.  Where references are far from the range, in
 * terms of its own size, that is not enough: whole regions are within reach of a
 * range that sees only their edge.  So a box is left out as well if b comes before all
 * that can be in it at each corner of the range.  For a corner q and p = q / |q| this is
 * so if the least |p - c|^2 of the box exceeds |p - b|^2 by 2 (d + 9 e), or, which is better
 * near the antipode, the greatest |p + c|^2 is less than |p + b|^2 by as much: either is
 * 2 p.(b - c) but for 9 e, and |q| >= 1.  Twice the margin is more than that, for roundings
 * of p, 6 e times a chord, and 2^-46 = 128 e of the squares is for those of squares.
 *
 * A position in reach is left out if b comes before it in the whole range.  When 64
 * have been kept, each of these is compared with each other one.  Within a
 * square, the same is done with the nearest to its middle, and then with each other one.
 *
 * All of this holds whatever b is, so which positions are found first makes no
 * difference to answers.
 *
 *
 * Which squares are divided
 *
 * Those with more than eight candidates, if one is near: within NEAR half sides of the
 * square's middle.  Each such square has two references or more in it or beside it,
 * so that all of its squares are less than CELLS_FINE_SQUARES for each reference, which is
 * what there is room for.  Far from all references, dividing helps less: where
 * references form a ring, squares inside it would have to be divided until they are
 * smaller than the references are apart, and there are many.  So a list may have up to
 * 32 candidates, and far squares with more have a part of the room for themselves.
 */
#include <math.h>

#include "cuda/base/columns.cuh"
#include "cuda/cells/cells_square.cuh"
#include "cuda/index/warp_share.cuh"

#define BLOCK_THREADS WARP_BLOCK_THREADS
#define BLOCK_WARPS WARP_BLOCK_WARPS

/* squares of the faces for each reference, and of divided squares */
#define FACE_SQUARES 16
#define FINE_SQUARES 40

/* one of so many blocks of divided squares is for far squares */
#define FAR_SHARE 5

/* most squares of the faces, and of divided ones: some 200 MB */
#define FACE_SQUARES_MAX ((uint32_t) 1 << 24)
#define FINE_SQUARES_MAX ((uint32_t) 1 << 25)

/* so few divided squares always have room */
#define FINE_SQUARES_MIN ((uint32_t) 1 << 16)

/* fours of lists for four squares */
#define FOURS_OF_FOUR 2

/* rounds: two for each level of blocks, and some more */
#define ROUNDS 16

/* ranges that a round may leave, for each block that there is room for */
#define RANGES_OF_BLOCK 2

/* candidates of a range: bits of a number */
#define KEPT_MAX 64

/* a square with more candidates is divided, if one is near */
#define CANDIDATES 8
#define LIST_MAX (4 * CELLS_FOURS_MAX)

/* near: this many half sides away */
#define NEAR 8.0

/* references in or around a range, for each of its squares, that make it a dense one */
#define DENSE 6

/* leaves that a range looks at */
#define LEAVES_MAX 128

/* a range of squares, side by side */
struct __align__(16) range
{
	uint32_t	block;
	uint32_t	u;				/* units of the block's first corner */
	uint32_t	v;
	uint8_t		face;
	uint8_t		shift;			/* a square's side is 2^shift units */
	uint8_t		first;			/* square of the block, by the bits of column and row in turn */
	uint8_t		side_bits;		/* the range's side is 2^side_bits squares */
};

static_assert(sizeof(struct range) == 16, "read and written as one");

struct build_room
{
	uint32_t	ranges_max;
	struct range *range[2];		/* [ranges_max] of this round and the next one */
	uint32_t   *count;			/* [ROUNDS + 1] ranges of each round */
	uint32_t   *taken;			/* [ROUNDS + 1] of these */
};

/* candidates of a warp's range, turned, in shared memory */
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
	double		x[4];			/* not turned */
	double		y[4];
	double		z[4];
	double		limit[4];		/* on squared chords, or if the best is more than a quarter of the
								 * circle away from the middle, on those to the antipodes */
};

/* what a warp knows while it walks for a range; the same in all lanes */
struct seen
{
	struct cells_square square; /* the whole range */
	struct geonn_vector middle; /* turned */
	double		rho;
	struct geonn_vector best;	/* turned: the nearest position to the middle */
	double		best_square;	/* its squared chord */
	double		limit;			/* on squared chords to the middle */
	double		margin;			/* of cells_comes_before() */
	uint32_t	count;			/* kept */
	uint32_t	inside;			/* positions within rho of the middle */
	bool		overflow;		/* more than could be kept */
	bool		compared;		/* boxes of the walk's level, with the best */
};

/* ---- room ---- */

static uint32_t
at_most(uint64_t number, uint32_t most)
{
	return number < most ? (uint32_t) number : most;
}

size_t
cells_place(void *memory, uint32_t positions, struct cells *cells)
{
	uint32_t	squares = at_most((uint64_t) positions * FACE_SQUARES, FACE_SQUARES_MAX);
	uint32_t	fine = at_most((uint64_t) positions * FINE_SQUARES, FINE_SQUARES_MAX);
	size_t		entries;
	size_t		bytes = 0;

	*cells = {};
	cells->positions = positions;
	cells->side = (uint32_t) sqrt(squares / (6.0 * CELLS_BLOCK));
	if (cells->side == 0)
		cells->side = 1;
	cells->scale = (double) cells->side * (double) ((uint32_t) 1 << (CELLS_UNIT_BITS - 1));
	cells->face_blocks = 6 * cells->side * cells->side;
	cells->blocks_max = cells->face_blocks +
		(fine > FINE_SQUARES_MIN ? fine : FINE_SQUARES_MIN) / CELLS_BLOCK;
	entries = (size_t) cells->blocks_max * CELLS_BLOCK;
	cells->fours_max = (uint32_t) (entries / 4 * FOURS_OF_FOUR);
	cells->record = (struct cells_record *)
		next_column(memory, &bytes, positions * sizeof(struct cells_record));
	cells->entry = (uint32_t *) next_column(memory, &bytes, entries * sizeof(uint32_t));
	cells->four = (uint4 *) next_column(memory, &bytes, cells->fours_max * sizeof(uint4));
	cells->counts = (struct cells_counts *)
		next_column(memory, &bytes, sizeof(struct cells_counts));
	return bytes;
}

static size_t
place_room(void *memory, const struct cells *cells, struct build_room *room)
{
	size_t		bytes = 0;

	room->ranges_max = cells->blocks_max * RANGES_OF_BLOCK;
	for (int i = 0; i < 2; i++)
		room->range[i] = (struct range *)
			next_column(memory, &bytes, room->ranges_max * sizeof(struct range));
	room->count = (uint32_t *) next_column(memory, &bytes, (ROUNDS + 1) * sizeof(uint32_t));
	room->taken = (uint32_t *) next_column(memory, &bytes, (ROUNDS + 1) * sizeof(uint32_t));
	return bytes;
}

size_t
cells_build_room(const struct cells *cells)
{
	struct build_room room;

	return place_room(NULL, cells, &room);
}

/* ---- ranges ---- */

/* the whole of a block of the faces */
static __device__ __forceinline__ struct range
face_range(const struct cells *cells, uint32_t block)
{
	uint32_t	of_face = cells->side * cells->side;
	uint32_t	rest = block % of_face;
	struct range range;

	range.block = block;
	range.u = rest % cells->side << CELLS_UNIT_BITS;
	range.v = rest / cells->side << CELLS_UNIT_BITS;
	range.face = (uint8_t) (block / of_face);
	range.shift = CELLS_FIRST_SHIFT;
	range.first = 0;
	range.side_bits = CELLS_SIDE_BITS;
	return range;
}

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

/* the squares of a range, from one of its block's on, that form a square of this side */
static __device__ __forceinline__ struct cells_square
squares_of(const struct cells *cells, const struct range *range, uint32_t first,
		   uint32_t side_bits)
{
	return cells_square_of(range->u + (column_of(first) << range->shift),
						   range->v + (row_of(first) << range->shift),
						   1u << (range->shift + side_bits), cells->scale);
}

/*
 * Numbers for the lanes that want one, from a counter of those taken; CELLS_NONE for the
 * others.
 */
static __device__ __forceinline__ uint32_t
take_number(uint32_t *taken, bool wants)
{
	uint32_t	lanes = __ballot_sync(INDEX_ALL_LANES, wants);
	uint32_t	first = 0;

	if (lanes == 0)
		return CELLS_NONE;
	if (index_lane() == 0)
		first = atomicAdd(taken, __popc(lanes));
	first = __shfl_sync(INDEX_ALL_LANES, first, 0);
	return wants ? first + __popc(lanes & ((1u << index_lane()) - 1)) : CELLS_NONE;
}

/* leave ranges for the next round, one for each lane that has one */
static __device__ __forceinline__ void
leave(const struct build_room *room, int round, bool has, struct range range)
{
	uint32_t	place = take_number(&room->count[round + 1], has && round + 1 < ROUNDS);

	if (place < room->ranges_max)
		*(uint4 *) &room->range[(round + 1) % 2][place] = *(const uint4 *) &range;
}

/* ---- the candidates of a range ---- */

static __device__ __forceinline__ struct geonn_vector
kept_vector(const struct kept *kept, uint32_t number)
{
	struct geonn_vector vector;

	vector.x = kept->x[number];
	vector.y = kept->y[number];
	vector.z = kept->z[number];
	return vector;
}

/* a range's corner, of the lane's number */
static __device__ __forceinline__ struct geonn_vector
lane_corner(const struct cells_square *square)
{
	return cells_vector_at(square->u + (index_lane() & 1 ? square->half : -square->half),
						   square->v + (index_lane() & 2 ? square->half : -square->half));
}

/* the distance of the farthest corner from the middle, as the essay has it */
static __device__ __forceinline__ double
farthest_corner(struct geonn_vector middle, struct geonn_vector corner)
{
	double		away = geonn_chord_squared(middle, corner);

	away = fmax(away, __shfl_xor_sync(INDEX_ALL_LANES, away, 1));
	away = fmax(away, __shfl_xor_sync(INDEX_ALL_LANES, away, 2));
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
 * Whether the best comes before all that a box has, at each corner of the range and so
 * for each point in it.
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

		if (seen->best_square <= 2.0)
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
	if (index_lane() < 4)
	{
		struct geonn_vector best = cells_turned_back(face, seen->best);
		struct geonn_vector corner;

		corner.x = corners->x[index_lane()];
		corner.y = corners->y[index_lane()];
		corner.z = corners->z[index_lane()];
		corners->limit[index_lane()] = seen->best_square <= 2.0 ?
			geonn_chord_squared(corner, best) * (1.0 + 0x1p-46) + 2.0 * seen->margin :
			(geonn_antichord_squared(corner, best) - 2.0 * seen->margin) * (1.0 - 0x1p-46);
	}
	__syncwarp();
}

/*
 * index_walk_next(), but for boxes that are behind the best.  What the lanes have of a
 * level is compared with the best once, and again when that has changed or the walk
 * comes back to the level.
 */
static __device__ __forceinline__ bool
next_leaf(struct index_walk *walk, struct seen *seen, const struct corners *corners,
		  uint32_t *leaf)
{
	uint32_t	limit_key = __float_as_uint(__double2float_ru(seen->limit));

	while (walk->level < walk->levels)
	{
		uint32_t	nearest;
		uint32_t	child;
		uint32_t	node;

		if (!seen->compared && seen->best_square < INFINITY && walk->key != INDEX_NONE &&
			box_is_behind(walk->index, (size_t) walk->index->shape.first[walk->level] +
						  walk->parent * INDEX_WIDTH + index_lane(), seen, corners))
			walk->key = INDEX_NONE;
		seen->compared = true;
		nearest = index_warp_smallest(walk->key);
		child = nearest % INDEX_WIDTH;
		node = walk->parent * INDEX_WIDTH + child;
		if (nearest - child > limit_key)
		{
			index_walk_up(walk);
			seen->compared = false;
			continue;
		}
		if (index_lane() == child)
			walk->key = INDEX_NONE;
		if (walk->level == 0)
		{
			*leaf = node;
			return true;
		}
		index_walk_down<INDEX_UNCONDITIONED>(walk, node);
		seen->compared = false;
	}
	return false;
}

/*
 * Note the nearest of the lanes' positions, if it is nearer than the best.  Returns whether it
 * is.
 */
static __device__ __forceinline__ bool
look_for_best(struct seen *seen, struct geonn_vector vector, double square)
{
	double		least = square;
	int			lane;
	double		reach;

	if (!__any_sync(INDEX_ALL_LANES, square < seen->best_square))
		return false;
	for (int lanes = INDEX_WIDTH / 2; lanes > 0; lanes /= 2)
		least = fmin(least, __shfl_xor_sync(INDEX_ALL_LANES, least, lanes));
	lane = __ffs(__ballot_sync(INDEX_ALL_LANES, square == least)) - 1;
	seen->best.x = __shfl_sync(INDEX_ALL_LANES, vector.x, lane);
	seen->best.y = __shfl_sync(INDEX_ALL_LANES, vector.y, lane);
	seen->best.z = __shfl_sync(INDEX_ALL_LANES, vector.z, lane);
	seen->best_square = least;
	reach = (sqrt(least) + 2.0 * seen->rho) * (1.0 + 0x1p-40);
	seen->limit = fmin(seen->limit, reach * reach * (1.0 + 0x1p-50));
	seen->margin = cells_margin(reach, reach + seen->rho);
	seen->compared = false;
	return true;
}

/* whether a position may be a candidate, as far as the best tells */
static __device__ __forceinline__ bool
is_candidate(const struct seen *seen, struct geonn_vector vector)
{
	return geonn_chord_squared(seen->middle, vector) <= seen->limit &&
		!cells_comes_before(seen->best, vector, &seen->square, seen->margin);
}

/*
 * Keep those of the kept ones for which this lane's two bits are set, the first for
 * number `lane`, the other for INDEX_WIDTH + lane.
 */
static __device__ __forceinline__ void
keep_only(struct kept *kept, struct seen *seen, const bool *stays)
{
	struct geonn_vector vector[2];
	uint32_t	position[2];
	uint32_t	count = 0;

	for (int j = 0; j < 2; j++)
	{
		vector[j] = kept_vector(kept, j * INDEX_WIDTH + index_lane());
		position[j] = kept->position[j * INDEX_WIDTH + index_lane()];
	}
	__syncwarp();
	for (int j = 0; j < 2; j++)
	{
		uint32_t	lanes = __ballot_sync(INDEX_ALL_LANES, stays[j]);
		uint32_t	number = count + __popc(lanes & ((1u << index_lane()) - 1));

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

/* Leave out which of the kept ones the best comes before. */
static __device__ __forceinline__ void
compare_with_best(struct kept *kept, struct seen *seen)
{
	bool		stays[2];

	for (int j = 0; j < 2; j++)
	{
		uint32_t	number = j * INDEX_WIDTH + index_lane();

		stays[j] = number < seen->count && is_candidate(seen, kept_vector(kept, number));
	}
	keep_only(kept, seen, stays);
}

/* Leave out which of the kept ones any other comes before. */
static __device__ __forceinline__ void
compare_with_all(struct kept *kept, struct seen *seen)
{
	bool		stays[2];

	for (int j = 0; j < 2; j++)
	{
		uint32_t	number = j * INDEX_WIDTH + index_lane();
		struct geonn_vector vector = kept_vector(kept, number);

		stays[j] = number < seen->count;
		for (uint32_t i = 0; i < seen->count; i++)
			stays[j] = stays[j] && !cells_comes_before(kept_vector(kept, i), vector,
													   &seen->square, seen->margin);
	}
	keep_only(kept, seen, stays);
}

/* Keep the lanes' candidates, or note that they are too many. */
static __device__ __forceinline__ void
keep(struct kept *kept, struct seen *seen, bool has, struct geonn_vector vector, uint32_t position)
{
	uint32_t	lanes = __ballot_sync(INDEX_ALL_LANES, has);
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
	number = seen->count + __popc(lanes & ((1u << index_lane()) - 1));
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
 * Walk for a range.  Where too many are seen, it only finds out how dense they are.
 */
static __device__ __forceinline__ void
collect(const struct index *index, const struct cells *cells, const struct range *range,
		uint32_t dense, struct kept *kept, struct corners *corners, struct seen *seen)
{
	struct index_walk walk;
	struct geonn_vector corner;
	uint32_t	leaf;
	uint32_t	leaves = 0;

	seen->square = squares_of(cells, range, range->first, range->side_bits);
	seen->middle = cells_vector_at(seen->square.u, seen->square.v);
	corner = lane_corner(&seen->square);
	seen->rho = farthest_corner(seen->middle, corner);
	seen->best = {};
	seen->best_square = INFINITY;
	seen->limit = INFINITY;
	seen->margin = INFINITY;
	seen->count = 0;
	seen->inside = 0;
	seen->overflow = false;
	seen->compared = false;

	corner = cells_turned_back(range->face, corner);
	if (index_lane() < 4)
	{
		corners->x[index_lane()] = corner.x;
		corners->y[index_lane()] = corner.y;
		corners->z[index_lane()] = corner.z;
	}
	index_walk_begin(&walk, index, cells_turned_back(range->face, seen->middle), 0, INDEX_NONE);
	while (next_leaf(&walk, seen, corners, &leaf))
	{
		uint32_t	position = leaf * INDEX_WIDTH + index_lane();
		bool		present = position < index->shape.positions;
		struct geonn_vector vector = cells_turned(range->face, index_vector(index, position));
		double		square = present ? geonn_chord_squared(seen->middle, vector) : INFINITY;

		if (look_for_best(seen, vector, square))
			limit_corners(corners, seen, range->face);
		seen->inside += __popc(__ballot_sync(INDEX_ALL_LANES, square <= seen->rho * seen->rho));
		if (!seen->overflow)
			keep(kept, seen, present && is_candidate(seen, vector), vector, position);
		if (++leaves == LEAVES_MAX)
			seen->overflow = true;
		if (seen->overflow)
		{
			if (seen->inside >= dense || leaves == LEAVES_MAX)
				return;
			seen->limit = fmin(seen->limit, seen->rho * seen->rho);
		}
	}
	if (!seen->overflow)
		compare_with_best(kept, seen);
}

/* ---- the squares of a range ---- */

/* Which of a range's candidates are those of one of its squares, as bits. */
static __device__ __forceinline__ uint64_t
candidates_of(const struct kept *kept, const struct seen *seen, const struct cells_square *square,
			  bool *is_near)
{
	uint64_t	candidates = 0;
	double		greatest = -INFINITY;
	struct geonn_vector best = {};
	double		near;
	int			count;

	for (uint32_t i = 0; i < seen->count; i++)
	{
		struct geonn_vector vector = kept_vector(kept, i);
		double		nearness = fma(square->v, vector.z, fma(square->u, vector.y, vector.x));

		if (nearness > greatest)
		{
			greatest = nearness;
			best = vector;
		}
	}
	near = NEAR * square->half * best.x;
	*is_near = fabs(fma(-square->u, best.x, best.y)) <= near &&
		fabs(fma(-square->v, best.x, best.z)) <= near;
	for (uint32_t i = 0; i < seen->count; i++)
		if (!cells_comes_before(best, kept_vector(kept, i), square, seen->margin))
			candidates |= (uint64_t) 1 << i;

	/* two remain two: the best is nearer to the middle; and many are to be divided anyway */
	count = __popcll(candidates);
	if (count <= 2 || (*is_near && count > 2 * CANDIDATES))
		return candidates;
	for (uint64_t left = candidates; left != 0; left &= left - 1)
	{
		int			i = __ffsll(left) - 1;
		struct geonn_vector vector = kept_vector(kept, i);

		for (uint64_t others = candidates; others != 0; others &= others - 1)
			if (cells_comes_before(kept_vector(kept, __ffsll(others) - 1), vector, square,
								   seen->margin))
			{
				candidates &= ~((uint64_t) 1 << i);
				break;
			}
	}
	return candidates;
}

/* Blocks for the squares of lanes that want one, or CELLS_NONE. */
static __device__ __forceinline__ uint32_t
take_block(const struct cells *cells, bool wants, bool is_near)
{
	uint32_t	far_blocks = (cells->blocks_max - cells->face_blocks) / FAR_SHARE;
	uint32_t	near_end = cells->blocks_max - far_blocks;
	uint32_t	near_number = take_number(&cells->counts->near_blocks, wants && is_near);
	uint32_t	far_number = take_number(&cells->counts->far_blocks, wants && !is_near);

	if (near_number < near_end - cells->face_blocks)
		return cells->face_blocks + near_number;
	return far_number < far_blocks ? near_end + far_number : CELLS_NONE;
}

/* Place for the lists of lanes that want so many fours.  Returns it, or CELLS_NONE. */
static __device__ __forceinline__ uint32_t
take_fours(const struct cells *cells, uint32_t fours)
{
	uint32_t	sum = fours;	/* of this lane and those before it */
	uint32_t	first = 0;

	for (int lanes = 1; lanes < INDEX_WIDTH; lanes *= 2)
	{
		uint32_t	before = __shfl_up_sync(INDEX_ALL_LANES, sum, lanes);

		sum += index_lane() >= lanes ? before : 0;
	}
	if (index_lane() == INDEX_WIDTH - 1 && sum > 0)
		first = atomicAdd(&cells->counts->fours, sum);
	first = __shfl_sync(INDEX_ALL_LANES, first, INDEX_WIDTH - 1) + sum - fours;
	return fours > 0 && first + fours <= cells->fours_max ? first : CELLS_NONE;
}

static __device__ __forceinline__ void
write_list(const struct cells *cells, const struct kept *kept, uint64_t candidates, uint32_t place)
{
	while (candidates != 0)
	{
		uint32_t	four[4];

#pragma unroll
		for (int i = 0; i < 4; i++)
		{
			four[i] = candidates != 0 ? kept->position[__ffsll(candidates) - 1] : CELLS_NONE;
			candidates &= candidates - 1;
		}
		cells->four[place++] = make_uint4(four[0], four[1], four[2], four[3]);
	}
}

/* the range that a square of a range becomes, in a block */
static __device__ __forceinline__ struct range
range_of_square(const struct range *range, uint32_t number, uint32_t block)
{
	struct range fine = *range;

	fine.block = block;
	fine.u += column_of(number) << range->shift;
	fine.v += row_of(number) << range->shift;
	fine.shift = (uint8_t) (range->shift - CELLS_SIDE_BITS);
	fine.first = 0;
	fine.side_bits = CELLS_SIDE_BITS;
	return fine;
}

/*
 * Make the entries of a range's squares, each by a lane.  All lanes take part.  If the
 * range has too many candidates, all of its squares have.
 */
static __device__ __forceinline__ void
make_entries(const struct cells *cells, const struct build_room *room, int round,
			 const struct range *range, const struct kept *kept, const struct seen *seen)
{
	uint32_t	squares = 1u << 2 * range->side_bits;

	for (uint32_t begin = 0; begin < squares; begin += INDEX_WIDTH)
	{
		uint32_t	number = range->first + begin + index_lane();
		bool		present = begin + index_lane() < squares;
		bool		is_near = seen->best_square <= NEAR * NEAR * (seen->rho * seen->rho);
		uint64_t	candidates = 0;
		uint32_t	count = KEPT_MAX + 1;
		uint32_t	entry = CELLS_CROWDED_ENTRY;
		bool		divide;
		uint32_t	block;
		uint32_t	fours;
		uint32_t	place;

		if (present && !seen->overflow)
		{
			struct cells_square square = squares_of(cells, range, number, 0);

			candidates = candidates_of(kept, seen, &square, &is_near);
			count = __popcll(candidates);
		}
		divide = present && range->shift > 0 && count > (is_near ? CANDIDATES : LIST_MAX) &&
			round + 1 < ROUNDS;
		block = take_block(cells, divide, is_near);
		fours = present && count > 1 && count <= LIST_MAX && block == CELLS_NONE ? (count + 3) / 4 : 0;
		place = take_fours(cells, fours);

		if (present && count == 1)
			entry = CELLS_SINGLE << CELLS_KIND_SHIFT | kept->position[__ffsll(candidates) - 1];
		else if (block != CELLS_NONE)
			entry = CELLS_DIVIDED << CELLS_KIND_SHIFT | block;
		else if (place != CELLS_NONE)
		{
			write_list(cells, kept, candidates, place);
			entry = CELLS_LIST << CELLS_KIND_SHIFT | (fours - 1) << CELLS_FOURS_SHIFT | place;
		}
		if (present)
			cells->entry[(size_t) range->block * CELLS_BLOCK + row_of(number) * CELLS_SIDE +
						 column_of(number)] = entry;
		leave(room, round, block != CELLS_NONE, range_of_square(range, number, block));
	}
}

static __device__ __forceinline__ void
make_range(const struct index *index, const struct cells *cells, const struct build_room *room,
		   int round, const struct range *range, struct kept *kept, struct corners *corners)
{
	uint32_t	squares = 1u << 2 * range->side_bits;
	struct seen seen;

	collect(index, cells, range, DENSE * squares, kept, corners, &seen);
	if (seen.overflow && range->side_bits > 0 && seen.inside < DENSE * squares)
	{
		struct range quarter = *range;

		quarter.side_bits--;
		quarter.first = (uint8_t) (range->first + index_lane() * (squares / 4));
		leave(room, round, index_lane() < 4, quarter);
	}
	else
		make_entries(cells, room, round, range, kept, &seen);
	__syncwarp();				/* all lanes are done with what is kept */
}

/* ---- kernels ---- */

static __global__ void __launch_bounds__(BLOCK_THREADS)
record_kernel(const __grid_constant__ struct index index, struct cells_record *record)
{
	uint32_t	position = blockIdx.x * BLOCK_THREADS + threadIdx.x;

	if (position < index.shape.positions)
	{
		struct geonn_vector vector = index_vector(&index, position);

		record[position].x = vector.x;
		record[position].y = vector.y;
		record[position].z = vector.z;
		record[position].tag = index.tag[index.start[position]];
	}
}

/*
 * A round: each warp takes ranges until none is left.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
round_kernel(const __grid_constant__ struct index index, const __grid_constant__ struct cells cells,
			 const __grid_constant__ struct build_room room, int round)
{
	__shared__ struct kept kept[BLOCK_WARPS];
	__shared__ struct corners corners[BLOCK_WARPS];
	uint32_t	warp = threadIdx.x / INDEX_WIDTH;
	uint32_t	count = round == 0 ? cells.face_blocks : min(room.count[round], room.ranges_max);

	for (;;)
	{
		uint32_t	number = 0;
		struct range range;

		if (index_lane() == 0)
			number = atomicAdd(&room.taken[round], 1);
		number = __shfl_sync(INDEX_ALL_LANES, number, 0);
		if (number >= count)
			return;
		if (round == 0)
			range = face_range(&cells, number);
		else
			*(uint4 *) &range = *(const uint4 *) &room.range[round % 2][number];
		make_range(&index, &cells, &room, round, &range, &kept[warp], &corners[warp]);
	}
}

cudaError_t
cells_build(const struct cells *cells, const struct index *index, void *memory,
			cudaStream_t stream)
{
	struct build_room room;
	uint32_t	blocks;
	cudaError_t error;

	place_room(memory, cells, &room);
	if ((error = resident_blocks(round_kernel, &blocks)) != cudaSuccess ||
		(error = cudaMemsetAsync(cells->entry, CELLS_CROWDED_ENTRY & 0xFF,
								 (size_t) cells->blocks_max * CELLS_BLOCK * sizeof(uint32_t),
								 stream)) != cudaSuccess ||
		(error = cudaMemsetAsync(cells->counts, 0, sizeof(struct cells_counts),
								 stream)) != cudaSuccess ||
		(error = cudaMemsetAsync(room.count, 0, (ROUNDS + 1) * sizeof(uint32_t),
								 stream)) != cudaSuccess ||
		(error = cudaMemsetAsync(room.taken, 0, (ROUNDS + 1) * sizeof(uint32_t),
								 stream)) != cudaSuccess)
		return error;
	record_kernel<<<(cells->positions + BLOCK_THREADS - 1) / BLOCK_THREADS, BLOCK_THREADS, 0,
		stream>>> (*index, cells->record);
	for (int round = 0; round < ROUNDS; round++)
		round_kernel<<<blocks, BLOCK_THREADS, 0, stream>>> (*index, *cells, room, round);
	return cudaGetLastError();
}
