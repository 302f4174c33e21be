/*
 * brute_scan.cu
 *		Brute force, first part: which chunk of references has the nearest?
 *
 * scan spends 3.6 issue slots a pair: a multiplication, two multiply-adds and
 * half a three-way integer maximum (one instruction on Hopper, two elsewhere),
 * the rest on loading the references.  Which reference had the maximum is not
 * recorded: decide looks through the one chunk again.
 */
#include <limits.h>

#include "brute_filter.cuh"

/* references of which scan keeps only the largest dot product */
#define CHUNK 64
#define TILE_CHUNKS (BRUTE_TILE / CHUNK)

static_assert(CHUNK == 64, "a lane of decide looks at two references");

/* ---- scan ---- */

/* thread t of a block works on its observations t, t + BLOCK_THREADS, ... */
static __global__ void
__launch_bounds__(BLOCK_THREADS, 2)
scan_kernel(struct brute_references references, struct brute_room room, uint32_t rows,
			struct scan_states states, uint32_t first_tile, uint32_t end_tile, bool resume)
{
	__shared__ struct tile tiles[2];
	uint32_t	first = blockIdx.x * SCAN_PER_BLOCK + threadIdx.x;
	size_t		state = (size_t) blockIdx.y * rows;
	uint32_t	chunks = (references.count + CHUNK - 1) / CHUNK;
	float		x[SCAN_PER_THREAD];
	float		y[SCAN_PER_THREAD];
	float		z[SCAN_PER_THREAD];
	int			best[SCAN_PER_THREAD];
	int			second[SCAN_PER_THREAD];
	uint32_t	best_chunk[SCAN_PER_THREAD];

#pragma unroll
	for (int i = 0; i < SCAN_PER_THREAD; i++)
	{
		uint32_t	observation = min(first + i * BLOCK_THREADS, rows - 1);

		x[i] = shrunk_single(room.x[observation]);
		y[i] = shrunk_single(room.y[observation]);
		z[i] = shrunk_single(room.z[observation]);
		best[i] = resume ? states.best[state + observation] : INT_MIN;
		second[i] = resume ? states.second[state + observation] : INT_MIN;
		best_chunk[i] = resume ? states.chunk[state + observation] : 0;
	}

	begin_segment(tiles, &references, &first_tile, &end_tile);
	for (uint32_t number = first_tile; number < end_tile; number++)
	{
		const struct tile *tile = take_tile(tiles, &references, number, end_tile);
		uint32_t	chunk = number * TILE_CHUNKS;
		uint32_t	end_chunk = min(chunk + TILE_CHUNKS, chunks);

		for (int place = 0; chunk < end_chunk; chunk++)
		{
			int			largest[SCAN_PER_THREAD];

#pragma unroll
			for (int i = 0; i < SCAN_PER_THREAD; i++)
				largest[i] = INT_MIN;

#pragma unroll 4
			for (int four = 0; four < CHUNK / 4; four++, place += 4)
			{
				float4		rx = *(const float4 *) &tile->x[place];
				float4		ry = *(const float4 *) &tile->y[place];
				float4		rz = *(const float4 *) &tile->z[place];

#pragma unroll
				for (int i = 0; i < SCAN_PER_THREAD; i++)
				{
					float		a = dot_product(x[i], y[i], z[i], rx.x, ry.x, rz.x);
					float		b = dot_product(x[i], y[i], z[i], rx.y, ry.y, rz.y);
					float		c = dot_product(x[i], y[i], z[i], rx.z, ry.z, rz.z);
					float		d = dot_product(x[i], y[i], z[i], rx.w, ry.w, rz.w);

					largest[i] = __vimax3_s32(largest[i], __float_as_int(a), __float_as_int(b));
					largest[i] = __vimax3_s32(largest[i], __float_as_int(c), __float_as_int(d));
				}
			}

#pragma unroll
			for (int i = 0; i < SCAN_PER_THREAD; i++)
			{
				second[i] = max(second[i], min(best[i], largest[i]));
				best_chunk[i] = largest[i] > best[i] ? chunk : best_chunk[i];
				best[i] = max(best[i], largest[i]);
			}
		}
		__syncthreads();
	}

#pragma unroll
	for (int i = 0; i < SCAN_PER_THREAD; i++)
	{
		uint32_t	observation = first + i * BLOCK_THREADS;

		if (observation < rows)
		{
			states.best[state + observation] = best[i];
			states.second[state + observation] = second[i];
			states.chunk[state + observation] = best_chunk[i];
		}
	}
}

/* ---- decide ---- */

/*
 * The answer among several references of one chunk that reach the floor: in
 * this lane chunk_first + 2 * lane if hit_a, and the next one if hit_b.
 */
static __device__ uint32_t
first_of_chunk(const struct brute_references *references, struct geonn_vector observation,
			   uint32_t index_a, bool hit_a, bool hit_b)
{
	struct geonn_vector a;
	struct geonn_vector b;
	double		s_a = CHORD_SQUARED_ANY;
	double		s_b = CHORD_SQUARED_ANY;
	double		limit;
	double		distance = INFINITY;
	uint32_t	index = NO_REFERENCE;

	if (hit_a)
	{
		a = load_vector(references->x, references->y, references->z, index_a);
		s_a = geonn_chord_squared(observation, a);
	}
	if (hit_b)
	{
		b = load_vector(references->x, references->y, references->z, index_a + 1);
		s_b = geonn_chord_squared(observation, b);
	}
	limit = geonn_chord_limit(warp_smallest(fmin(s_a, s_b)));

	if (s_a <= limit)
	{
		distance = geonn_distance_of(observation, a);
		index = index_a;
	}
	if (s_b <= limit)
	{
		double		distance_b = geonn_distance_of(observation, b);

		if (is_before(distance_b, index_a + 1, distance, index))
		{
			distance = distance_b;
			index = index_a + 1;
		}
	}
	warp_first(&distance, &index);
	return index;
}

/*
 * The warp together finds the answer within a chunk.
 */
static __device__ __forceinline__ uint32_t
decide_chunk(const struct brute_references *references, struct geonn_vector own,
			 int source, uint32_t chunk, float floor)
{
	uint32_t	lane = threadIdx.x % 32;
	uint32_t	index = chunk * CHUNK + 2 * lane;
	float2		rx = *(const float2 *) &references->x_single[index];
	float2		ry = *(const float2 *) &references->y_single[index];
	float2		rz = *(const float2 *) &references->z_single[index];
	float		x = __shfl_sync(ALL_LANES, shrunk_single(own.x), source);
	float		y = __shfl_sync(ALL_LANES, shrunk_single(own.y), source);
	float		z = __shfl_sync(ALL_LANES, shrunk_single(own.z), source);
	bool		hit_a = index < references->count &&
		dot_product(x, y, z, rx.x, ry.x, rz.x) >= floor;
	bool		hit_b = index + 1 < references->count &&
		dot_product(x, y, z, rx.y, ry.y, rz.y) >= floor;
	uint32_t	lanes_a = __ballot_sync(ALL_LANES, hit_a);
	uint32_t	lanes_b = __ballot_sync(ALL_LANES, hit_b);
	struct geonn_vector observation;

	/* the only one that reaches the floor needs no float64 */
	if (__popc(lanes_a) + __popc(lanes_b) == 1)
		return chunk * CHUNK + 2 * (__ffs(lanes_a | lanes_b) - 1) + (lanes_b != 0);

	observation.x = __shfl_sync(ALL_LANES, own.x, source);
	observation.y = __shfl_sync(ALL_LANES, own.y, source);
	observation.z = __shfl_sync(ALL_LANES, own.z, source);
	return first_of_chunk(references, observation, index, hit_a, hit_b);
}

/* a lane has an observation; the warp looks at their chunks one by one */
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
	int			second = INT_MIN;
	uint32_t	chunk = 0;
	uint32_t	index = NO_REFERENCE;
	float		floor;
	bool		is_ambiguous;
	uint32_t	lanes;

	if (exists)
	{
		room.count[observation] = 1;
		for (uint32_t segment = 0; segment < segments; segment++)
		{
			size_t		state = (size_t) segment * rows + observation;
			int			other = states.best[state];

			second = max(second, max(states.second[state], min(best, other)));
			chunk = other > best ? states.chunk[state] : chunk;
			best = max(best, other);
		}
	}

	floor = __fsub_rd(__int_as_float(best), MARGIN);
	is_ambiguous = exists && __int_as_float(max(second, 0)) >= floor;

	lanes = __ballot_sync(ALL_LANES, is_ambiguous);
	if (lanes != 0)
	{
		uint32_t	place = 0;

		if (lane == 0)
			place = atomicAdd(&room.status->ambiguous, __popc(lanes));
		place = __shfl_sync(ALL_LANES, place, 0) + __popc(lanes & ((1u << lane) - 1));
		if (is_ambiguous)
		{
			room.ambiguous[place] = observation;
			room.floor[place] = best > 0 ? floor : FLOOR_ANY;
		}
	}

	lanes = __ballot_sync(ALL_LANES, exists && !is_ambiguous);
	while (lanes != 0)
	{
		int			source = __ffs(lanes) - 1;
		uint32_t	first = decide_chunk(&references, own, source,
										 __shfl_sync(ALL_LANES, chunk, source),
										 __shfl_sync(ALL_LANES, floor, source));

		lanes &= lanes - 1;
		if (lane == source)
			index = first;
	}

	if (index != NO_REFERENCE)
	{
		room.latitude[observation] =
			geonn_distance_of(own, load_vector(references.x, references.y, references.z, index));
		((int64_t *) room.longitude)[observation] = references.tag[index];
	}
}

/* ---- launches ---- */

static struct scan_states
scan_states_of(const struct brute_room *room)
{
	struct scan_states states;

	states.best = (int *) room->states;
	states.second = states.best + room->scan_states;
	states.chunk = (uint32_t *) (states.second + room->scan_states);
	return states;
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
