/*
 * brute_scan.cu
 *		Brute force, first part: which chunks of references may have the nearest?
 *
 * A dot product is a sum of eight products of float16 pieces (brute_filter.cuh),
 * which is what tensor cores compute for 16 observations and 8 references with
 * one instruction.  It leaves four of its 128 dot products in each lane, two of
 * one observation and two of another, for which two three-way integer maxima
 * (four maxima before Hopper) are enough.
 *
 * On an H200, which runs this at 1.81 GHz, the maxima alone would take 4 cycles
 * for 128 pairs and each quarter of a multiprocessor, and the matrix products
 * 4.2: 29 T pairs/s.  But they hinder each other: a stream of nothing but these
 * takes 6.3 to 7 cycles, 17 to 19 T pairs/s.  scan takes 7.3.
 *
 * Which reference had a maximum is not recorded: decide looks through the
 * chunk again.  A lane sees two of the eight columns of references, a quarter;
 * so scan assigns each whole chunk to one quarter.
 *
 *
 * Pieces
 *
 * A matrix product has four lanes for each of its rows and columns, each with
 * two of the eight factors:
 *
 *		lane	observation's			reference's
 *		0		x high, x high			x high, x low
 *		1		y high, y high			y high, y low
 *		2		z high, z high			z high, z low
 *		3		x low, y low			x high, y high
 *
 * The references' are stored as scan reads them: 16 bytes, of four products,
 * for each of 32 lanes, then those of the next four products.  CHUNK / 2
 * products make a span of four chunks: columns 2q and 2q + 1 of the i-th product
 * are the references 2i and 2i + 1 of the q-th chunk.
 */
#include <limits.h>

#include <cuda_fp16.h>

#include "cuda/brute/brute_filter.cuh"

/* a chunk has this many references, of which a lane keeps only the largest dot product; a span has
 * four chunks */
#define CHUNK 128
#define SPAN (4 * CHUNK)
#define TILE_SPANS (BRUTE_TILE / SPAN)

static_assert(CHUNK == 4 * 32, "a lane of decide looks at four references");

/* ---- pieces ---- */

static __device__ __forceinline__ uint32_t
pack_halves(__half low_bits, __half high_bits)
{
	return (uint32_t) __half_as_ushort(low_bits) | (uint32_t) __half_as_ushort(high_bits) << 16;
}

static __device__ __forceinline__ void
split(double number, __half *high, __half *low)
{
	*high = __double2half(number);
	*low = __double2half(number - (double) __half2float(*high));
}

/*
 * Return k of the proof, times SCAN_UNIT, for an observation; *z becomes its
 * z, times the same.
 */
static __device__ __forceinline__ double
observation_factor(struct geonn_vector vector, __half *z)
{
	const double factor = SCAN_UNIT * (1.0 - 0x1p-8);

	*z = __float2half_rz(__double2float_rz(factor * vector.z));
	if (fabsf(__half2float(*z)) < 0x1p-14f)
	{
		*z = __float2half_rz(0.0f);
		return factor;
	}
	return (double) __half2float(*z) / vector.z;
}

/* Return the float16 pieces of an observation, which its four lanes compute. */
static __device__ __forceinline__ uint4
observation_pieces(struct geonn_vector vector)
{
	__half		z;
	double		factor = observation_factor(vector, &z);
	__half		x_high;
	__half		x_low;
	__half		y_high;
	__half		y_low;

	split(factor * vector.x, &x_high, &x_low);
	split(factor * vector.y, &y_high, &y_low);
	return make_uint4(pack_halves(x_high, x_high), pack_halves(y_high, y_high),
					  pack_halves(z, z), pack_halves(x_low, y_low));
}

static __global__ void
arrange_kernel(struct brute_references references)
{
	uint32_t	index = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	uint32_t	chunk = index / CHUNK;
	uint32_t	product = index / SPAN * (CHUNK / 2) + index % CHUNK / 2;
	uint32_t	column = chunk % 4 * 2 + index % 2;
	struct brute_frame frame = *references.frame;
	double		scale = SCAN_UNIT * frame.scale;
	struct geonn_vector vector = {frame.x, frame.y, frame.z};
	uint32_t   *pieces = &references.pieces[((size_t) (product / 4) * 32 + 4 * column) * 4 + product % 4];
	__half		x_high;
	__half		x_low;
	__half		y_high;
	__half		y_low;
	__half		z_high;
	__half		z_low;

	/* repeated references (NaN) get 0 */
	if (!isnan(references.x_single[index]))
		vector = load_vector(references.x, references.y, references.z, index);
	split(scale * (vector.x - frame.x), &x_high, &x_low);
	split(scale * (vector.y - frame.y), &y_high, &y_low);
	split(scale * (vector.z - frame.z), &z_high, &z_low);
	pieces[0] = pack_halves(x_high, x_low);
	pieces[4] = pack_halves(y_high, y_low);
	pieces[8] = pack_halves(z_high, z_low);
	pieces[12] = pack_halves(x_high, y_high);
}

/* ---- scan ---- */

/*
 * Multiply 16 observations with 8 references.  rows has the pieces of
 * observations lane / 4 and lane / 4 + 8, column those of reference lane / 4.
 * dot gets the first one's products with references 2 (lane % 4) and the next,
 * then the second's.
 */
static __device__ __forceinline__ void
multiply(float dot[4], const uint32_t rows[2], uint32_t column)
{
	asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
		"{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
		: "=f"(dot[0]), "=f"(dot[1]), "=f"(dot[2]), "=f"(dot[3])
		: "r"(rows[0]), "r"(rows[1]), "r"(column), "f"(0.0f));
}

/* A lane works on every eighth of its warp's observations, beginning with observation lane / 4. */
#define OWN (SCAN_PER_WARP / 8)

/* the dot products that a lane keeps of its observations, for a quarter of all chunks */
struct scan_kept
{
	int			best[OWN];
	int			second[OWN];
	int			third[OWN];		/* the largest dot product in all chunks except the best and the second best */
	uint32_t	best_chunk[OWN];
	uint32_t	second_chunk[OWN];
};

/*
 * Make each observation's pieces, once for its four lanes: in shared memory,
 * where the first tile will be.
 */
static __device__ __forceinline__ void
load_pieces(uint32_t *pieces, uint4 *shared, const struct brute_room *room, uint32_t rows,
			uint32_t first)
{
	for (uint32_t i = threadIdx.x; i < SCAN_PER_BLOCK; i += BLOCK_THREADS)
	{
		uint32_t	observation = min(blockIdx.x * SCAN_PER_BLOCK + i, rows - 1);

		shared[i] = observation_pieces(load_vector(room->x, room->y, room->z, observation));
	}
	__syncthreads();
#pragma unroll
	for (int i = 0; i < OWN; i++)
	{
		uint32_t	place = first % SCAN_PER_BLOCK + 8 * i;

		pieces[i] = ((const uint32_t *) &shared[place])[threadIdx.x % 4];
	}
	__syncthreads();
}

/* Load the dot products that the previous launch left, or begin with none. */
static __device__ __forceinline__ void
load_kept(struct scan_kept *kept, const struct scan_states *states, size_t state, uint32_t rows,
		  uint32_t first, bool resume)
{
#pragma unroll
	for (int i = 0; i < OWN; i++)
	{
		uint32_t	observation = min(first + 8 * i, rows - 1);
		int4		known = {INT_MIN, 0, INT_MIN, 0};

		if (resume)
			known = states->best[4 * (state + observation) + threadIdx.x % 4];
		kept->best[i] = known.x;
		kept->best_chunk[i] = (uint32_t) known.y;
		kept->second[i] = known.z;
		kept->second_chunk[i] = (uint32_t) known.w;
		kept->third[i] = resume ? states->third[state + observation] : INT_MIN;
	}
}

/*
 * Compare observations with a chunk of references; this lane's pieces begin at
 * `next`.
 */
static __device__ __forceinline__ void
scan_chunk(struct scan_kept *kept, const uint32_t *pieces, const uint4 *next, uint32_t chunk)
{
	int			largest[OWN];

#pragma unroll
	for (int i = 0; i < OWN; i++)
		largest[i] = INT_MIN;

#pragma unroll 4
	for (int four = 0; four < CHUNK / 8; four++, next += 32)
	{
		uint4		columns = *next;

#pragma unroll
		for (int i = 0; i < OWN; i += 2)
#pragma unroll
			for (int j = 0; j < 4; j++)
			{
				float		dot[4];

				multiply(dot, &pieces[i], j == 0 ? columns.x : j == 1 ? columns.y :
						 j == 2 ? columns.z : columns.w);
				largest[i] = __vimax3_s32(largest[i], __float_as_int(dot[0]),
										  __float_as_int(dot[1]));
				largest[i + 1] = __vimax3_s32(largest[i + 1], __float_as_int(dot[2]),
											  __float_as_int(dot[3]));
			}
	}

#pragma unroll
	for (int i = 0; i < OWN; i++)
	{
		bool		is_best = largest[i] > kept->best[i];
		bool		is_second = largest[i] > kept->second[i];

		kept->third[i] = max(kept->third[i], min(kept->second[i], largest[i]));
		kept->second_chunk[i] = is_best ? kept->best_chunk[i] :
			is_second ? chunk : kept->second_chunk[i];
		kept->second[i] = max(kept->second[i], min(kept->best[i], largest[i]));
		kept->best_chunk[i] = is_best ? chunk : kept->best_chunk[i];
		kept->best[i] = max(kept->best[i], largest[i]);
	}
}

static __device__ __forceinline__ void
store_kept(struct scan_kept *kept, const struct scan_states *states, size_t state, uint32_t rows,
		   uint32_t first)
{
#pragma unroll
	for (int i = 0; i < OWN; i++)
	{
		uint32_t	observation = first + 8 * i;

		/* the four lanes that share an observation agree on the largest of their values */
		kept->third[i] = max(kept->third[i], __shfl_xor_sync(ALL_LANES, kept->third[i], 1));
		kept->third[i] = max(kept->third[i], __shfl_xor_sync(ALL_LANES, kept->third[i], 2));
		if (observation < rows)
		{
			states->best[4 * (state + observation) + threadIdx.x % 4] =
				make_int4(kept->best[i], (int) kept->best_chunk[i], kept->second[i],
						  (int) kept->second_chunk[i]);
			states->third[state + observation] = kept->third[i];
		}
	}
}

static __global__ void
__launch_bounds__(BLOCK_THREADS, 3)
scan_kernel(struct brute_references references, struct brute_room room, uint32_t rows,
			struct scan_states states, uint32_t first_tile, uint32_t end_tile, bool resume)
{
	__shared__ struct scan_tile tiles[2];
	uint32_t	lane = threadIdx.x % 32;
	uint32_t	first = blockIdx.x * SCAN_PER_BLOCK + threadIdx.x / 32 * SCAN_PER_WARP + lane / 4;
	size_t		state = (size_t) blockIdx.y * rows;
	uint32_t	spans = (references.count + SPAN - 1) / SPAN;
	uint32_t	pieces[OWN];
	struct scan_kept kept;

	load_pieces(pieces, tiles[0].pieces, &room, rows, first);
	load_kept(&kept, &states, state, rows, first, resume);

	begin_segment(tiles, &references, &first_tile, &end_tile);
	for (uint32_t number = first_tile; number < end_tile; number++)
	{
		const uint4 *next = &take_tile(tiles, &references, number, end_tile)->pieces[lane];
		uint32_t	span = number * TILE_SPANS;
		uint32_t	end_span = min(span + TILE_SPANS, spans);

		for (; span < end_span; span++, next += CHUNK / 8 * 32)
			scan_chunk(&kept, pieces, next, 4 * span + lane % 4);
		__syncthreads();
	}
	store_kept(&kept, &states, state, rows, first);
}

/* ---- decide ---- */

/* Return which of the four references from first_index on reach the floor: bit j stands for reference first_index + j. */
static __device__ __forceinline__ uint32_t
hits_of_four(const struct brute_references *references, uint32_t first_index,
			 float x, float y, float z, float floor)
{
	float4		rx = *(const float4 *) &references->x_single[first_index];
	float4		ry = *(const float4 *) &references->y_single[first_index];
	float4		rz = *(const float4 *) &references->z_single[first_index];

	return (dot_product(x, y, z, rx.x, ry.x, rz.x) >= floor ? 1 : 0) |
		(dot_product(x, y, z, rx.y, ry.y, rz.y) >= floor ? 2 : 0) |
		(dot_product(x, y, z, rx.z, ry.z, rz.z) >= floor ? 4 : 0) |
		(dot_product(x, y, z, rx.w, ry.w, rz.w) >= floor ? 8 : 0);
}

/*
 * Return to lanes with is_given the reference of their chunk that reaches the
 * floor, if only one does, so that float64 is not needed; otherwise, and to
 * other lanes, NO_REFERENCE.  The warp looks at four observations' chunks at a
 * time, eight lanes at each.
 */
static __device__ __forceinline__ uint32_t
only_of_chunk(const struct brute_references *references, struct geonn_vector own,
			  bool is_given, uint32_t chunk, float floor)
{
	uint32_t	lane = threadIdx.x % 32;
	uint32_t	given_lanes = __ballot_sync(ALL_LANES, is_given);
	float		own_x = shrunk_single(own.x);
	float		own_y = shrunk_single(own.y);
	float		own_z = shrunk_single(own.z);
	uint32_t	index = NO_REFERENCE;

	for (uint32_t step = 0; step < 8; step++)
	{
		uint32_t	source = 4 * step + lane / 8;
		uint32_t	first_index = __shfl_sync(ALL_LANES, chunk, source) * CHUNK + 4 * (lane % 8);
		float		x = __shfl_sync(ALL_LANES, own_x, source);
		float		y = __shfl_sync(ALL_LANES, own_y, source);
		float		z = __shfl_sync(ALL_LANES, own_z, source);
		float		its_floor = __shfl_sync(ALL_LANES, floor, source);
		uint32_t	hits = 0;
		uint32_t	place;
		uint32_t	hit_lanes;
		uint32_t	found;

		if ((given_lanes >> (4 * step)) % 16 == 0)
			continue;
#pragma unroll
		for (int j = 0; j < CHUNK / 32; j++)
			hits |= hits_of_four(references, first_index + 32 * j, x, y, z, its_floor) << (4 * j);
		place = __ffs(hits) - 1;
		found = first_index + place / 4 * 32 + place % 4;
		if (__popc(hits) != 1)
			found = NO_REFERENCE;

		/* lanes 4 * step ... 4 * step + 3 fetch what eight lanes found */
		hit_lanes = __ballot_sync(ALL_LANES, hits != 0) >> (lane % 4 * 8) & 0xFF;
		found = __shfl_sync(ALL_LANES, found, lane % 4 * 8 + __ffs(hit_lanes) - 1);
		if (lane / 4 == step && is_given && __popc(hit_lanes) == 1)
			index = found;
	}
	return index;
}

/*
 * Find the first, in the order (distance, index), of the references of a chunk
 * that reach the floor.  hits has a bit for each of this lane's four
 * references, set if it reaches the floor.
 */
static __device__ void
first_of_chunk(const struct brute_references *references, struct geonn_vector observation,
			   uint32_t first_index, uint32_t hits, double *distance, uint32_t *index)
{
	double		s[4];
	double		smallest = CHORD_SQUARED_ANY;
	double		limit;

	*distance = INFINITY;
	*index = NO_REFERENCE;
#pragma unroll
	for (int j = 0; j < 4; j++)
	{
		s[j] = INFINITY;
		if (hits >> j & 1)
			s[j] = geonn_chord_squared(observation, load_vector(references->x, references->y,
																references->z, first_index + j));
		smallest = fmin(smallest, s[j]);
	}
	limit = geonn_chord_limit(warp_smallest(smallest));
#pragma unroll
	for (int j = 0; j < 4; j++)
	{
		double		other;

		if (s[j] > limit)
			continue;
		other = geonn_metric_distance_of(references->metric, observation,
										 load_vector(references->x, references->y,
													 references->z, first_index + j));
		if (other < *distance)
		{
			*distance = other;
			*index = first_index + j;
		}
	}
	warp_first(distance, index);
}

/* The whole warp finds the answer for one observation, in the chunks whose dot product is at least `least`. */
static __device__ __forceinline__ uint32_t
decide_observation(const struct brute_references *references, struct geonn_vector vector,
				   const struct scan_states *states, size_t state, uint32_t segments,
				   uint32_t rows, int least, float floor)
{
	uint32_t	lane = threadIdx.x % 32;
	float		x = shrunk_single(vector.x);
	float		y = shrunk_single(vector.y);
	float		z = shrunk_single(vector.z);
	double		distance = INFINITY;
	uint32_t	index = NO_REFERENCE;

	/* a segment's states are eight pairs (dot product, chunk) */
	for (uint32_t segment = lane / 8; segment < (segments + 3) / 4 * 4; segment += 4)
	{
		const int2 *pairs = (const int2 *) &states->best[4 * (state + (size_t) segment * rows)];
		int2		pair = {INT_MIN, 0};
		uint32_t	lanes;

		if (segment < segments)
			pair = pairs[lane % 8];
		lanes = __ballot_sync(ALL_LANES, pair.x >= least);

		for (; lanes != 0; lanes &= lanes - 1)
		{
			uint32_t	chunk = (uint32_t) __shfl_sync(ALL_LANES, pair.y, __ffs(lanes) - 1);
			uint32_t	first_index = chunk * CHUNK + 4 * lane;
			uint32_t	hits = hits_of_four(references, first_index, x, y, z, floor);
			double		chunk_distance;
			uint32_t	chunk_index;

			first_of_chunk(references, vector, first_index, hits, &chunk_distance, &chunk_index);
			if (comes_before(chunk_distance, chunk_index, distance, index))
			{
				distance = chunk_distance;
				index = chunk_index;
			}
		}
	}
	return index;
}

/* Return d of the proof, computed from scan's best dot product, which is positive. */
static __device__ __forceinline__ double
least_dot(const struct brute_frame *frame, struct geonn_vector vector, float best)
{
	__half		z;
	double		factor = observation_factor(vector, &z) / SCAN_UNIT;

	return (best * 0x1p-28 - SCAN_ERROR) / (factor * frame->scale) +
		(vector.x * frame->x + vector.y * frame->y + vector.z * frame->z);
}

/* a lane has an observation */
static __global__ void
__launch_bounds__(BLOCK_THREADS)
decide_kernel(struct brute_references references, struct brute_room room, uint32_t rows,
			  struct scan_states states, uint32_t segments)
{
	uint32_t	observation = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	uint32_t	lane = threadIdx.x % 32;
	bool		exists = observation < rows;
	struct geonn_vector own = load_vector(room.x, room.y, room.z, min(observation, rows - 1));
	int			best = INT_MIN;
	int			third = 0;
	uint32_t	candidates = 0;
	uint32_t	chunk = 0;
	uint32_t	index;
	int			least;
	float		floor = FLOOR_ANY;
	bool		is_ambiguous;
	uint32_t	place;
	uint32_t	lanes;

	if (exists)
	{
		room.count[observation] = 1;
		for (uint32_t segment = 0; segment < segments; segment++)
		{
			size_t		state = (size_t) segment * rows + observation;

			for (int quarter = 0; quarter < 4; quarter++)
				best = max(best, states.best[4 * state + quarter].x);
			third = max(third, states.third[state]);
		}
	}

	least = __float_as_int(__fsub_rd(__int_as_float(best), SCAN_MARGIN));
	is_ambiguous = exists && third >= least;
	if (best > 0)
		floor = __double2float_rd(SHRINK * least_dot(references.frame, own, __int_as_float(best)) -
								  DOT_ERROR);

	/* ambiguous observations are listed for redo */
	place = warp_take(&room.status->ambiguous, is_ambiguous);
	if (is_ambiguous)
	{
		room.ambiguous[place] = observation;
		room.floor[place] = floor;
	}
	if (exists && !is_ambiguous)
		for (uint32_t i = 0; i < 4 * segments; i++)
		{
			int4		known = states.best[4 * ((size_t) (i / 4) * rows + observation) + i % 4];

			candidates += (known.x >= least) + (known.z >= least);
			chunk = known.x >= least ? (uint32_t) known.y : chunk;
		}
	index = only_of_chunk(&references, own, candidates == 1, chunk, floor);

	lanes = __ballot_sync(ALL_LANES, candidates != 0 && index == NO_REFERENCE);
	while (lanes != 0)
	{
		int			source = __ffs(lanes) - 1;
		uint32_t	first = decide_observation(&references, vector_of_lane(own, source), &states,
											   observation - lane + source, segments, rows,
											   __shfl_sync(ALL_LANES, least, source),
											   __shfl_sync(ALL_LANES, floor, source));

		lanes &= lanes - 1;
		if (lane == source)
			index = first;
	}

	if (index != NO_REFERENCE)
	{
		room.latitude[observation] =
			geonn_metric_distance_of(references.metric, own,
									 load_vector(references.x, references.y, references.z, index));
		((int64_t *) room.longitude)[observation] = references.tag[index];
	}
}

/* ---- launches ---- */

static struct scan_states
scan_states_of(const struct brute_room *room)
{
	struct scan_states states;

	states.best = (int4 *) room->states;
	states.third = (int *) (states.best + 4 * (size_t) room->scan_states);
	return states;
}

cudaError_t
arrange_launch(const struct brute_references *references, cudaStream_t stream)
{
	uint32_t	blocks = references->tiles * (BRUTE_TILE / BLOCK_THREADS);

	arrange_kernel<<<blocks, BLOCK_THREADS, 0, stream>>> (*references);
	return cudaGetLastError();
}

cudaError_t
scan_launch(const struct brute_search *search, uint32_t blocks, uint32_t end_tile)
{
	scan_kernel<<<dim3(blocks, search->segments), BLOCK_THREADS, 0, search->stream>>>
		(*search->references, *search->room, search->rows, scan_states_of(search->room),
		 search->next_tile, end_tile, search->next_tile > 0);
	return cudaGetLastError();
}

cudaError_t
decide_launch(const struct brute_search *search)
{
	uint32_t	blocks = blocks_for(search->rows, BLOCK_THREADS);

	decide_kernel<<<blocks, BLOCK_THREADS, 0, search->stream>>>
		(*search->references, *search->room, search->rows, scan_states_of(search->room),
		 search->segments);
	return cudaGetLastError();
}

cudaError_t
scan_resident_blocks(int *blocks)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, scan_kernel, BLOCK_THREADS, 0);
}
