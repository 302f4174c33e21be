/*
 * brute_search.cu
 *		Brute force on a GPU: finds the exact nearest reference by looking at
 *		every pair.
 *
 * The answer for an observation is the first reference in the order (distance
 * of geodesy.h, index).  A pair costs a dot product by tensor cores and half
 * an integer maximum; only the few references that these cannot tell from the
 * nearest are compared in float32 and float64.
 *
 *
 * Phases
 *
 * prepare	turns degrees into float64 unit vectors, once a dataset and once
 *			a batch.  References that have the vector of an earlier one are
 *			found by a hash table and silenced: no filter sees them.  (Where two
 *			vectors share a place of the table, the later one's copies are not
 *			found, which costs time alone.)
 * scan		each warp holds SCAN_PER_WARP observations in registers and goes
 *			through the references, which the block stages in shared memory
 *			tile by tile.  It keeps, for each observation and each quarter of
 *			all chunks of 128 references, the two chunks with the largest dot
 *			products, and the largest of all other chunks.
 * decide	where the latter is beyond the margin of brute_filter.cuh, the
 *			nearest is in one of the former: a warp looks at those within the
 *			margin, mostly one, again.  All other observations are ambiguous
 *			and go to a list.
 * redo		goes through the references once more for the listed: each warp
 *			holds REDO_PER_WARP observations, each lane takes its references,
 *			and what reaches an observation's floor is compared in float64.
 *			The floor rises as better references are found.  Where references
 *			lie so close together that all of them reach it, six float64
 *			operations a pair are the price.
 * merge	picks the first of the partial results of redo.
 *
 * If observations are too few to fill a block of scan, all of them are redone,
 * since redo fills the GPU with any number of observations.
 *
 *
 * Launches and memory
 *
 * A launch of scan or redo covers a range of tiles that keeps it short, and
 * leaves its results in the room's states for the next.  Within a launch the
 * range is cut into segments (grid.y), each with states of its own, where
 * blocks would otherwise be too few or the last wave of them too thin.  All
 * launches of a search are in one stream; the host waits for it once, to learn
 * from decide how many observations are ambiguous.  The states of redo take
 * the place of scan's.  Results take the place of the degrees, and the pieces
 * of references that of the hash table.
 *
 * brute_filter.cuh has the filters with their proof, brute_scan.cu and
 * brute_redo.cu have the kernels; this file has the host's side.
 */
#include "cuda/base/columns.cuh"
#include "cuda/base/try.cuh"
#include "cuda/brute/brute_filter.cuh"

/* A search's memory has states for at least this many waves of blocks, even if the search has fewer observations. */
#define WAVES 4

/* One launch of scan, and of redo, compares this many pairs on each multiprocessor: some 5 ms and 25 ms at most. */
#define SCAN_PAIRS ((uint64_t) 1 << 29)
#define REDO_PAIRS ((uint64_t) 1 << 27)

/* the largest magnification of a frame that the proof allows */
#define FRAME_SCALE_MAX 4096.0

/* Return the place of the vector in the hash table. */
static __device__ __forceinline__ uint32_t *
hash_place(const struct brute_references *references, struct geonn_vector vector)
{
	uint64_t	hash = (uint64_t) __double_as_longlong(vector.x);

	hash = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15 + (uint64_t) __double_as_longlong(vector.y);
	hash = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15 + (uint64_t) __double_as_longlong(vector.z);
	hash = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15;
	return &references->pieces[(hash >> 32) * 4 * references->tiles * BRUTE_TILE >> 32];
}

/*
 * Extend the box: the largest 2 + component and 2 - component so far, as the
 * bits of float32, rounded up.
 */
static __device__ __forceinline__ void
extend_box(int *box, double component, bool exists)
{
	int			above = __float_as_int(__double2float_ru(2.0 + component));
	int			below = __float_as_int(__double2float_ru(2.0 - component));

	above = warp_largest(exists ? above : 0);
	below = warp_largest(exists ? below : 0);

	if (threadIdx.x % 32 == 0)
	{
		atomicMax(&box[0], above);
		atomicMax(&box[1], below);
	}
}

static __device__ struct brute_frame
frame_of_box(const int *box)
{
	struct brute_frame frame = {0.0, 0.0, 0.0, 1.0};
	double		centre[3];
	double		radius_squared = 0.0;

	for (int i = 0; i < 3; i++)
	{
		double		above = __int_as_float(box[2 * i]);
		double		below = __int_as_float(box[2 * i + 1]);
		double		half = 0.5 * (above + below) - 2.0;

		centre[i] = 0.5 * (above - below);
		radius_squared += half * half;
	}
	while (frame.scale < FRAME_SCALE_MAX &&
		   4.0 * frame.scale * frame.scale * radius_squared < 0.99)
		frame.scale *= 2.0;
	if (frame.scale > 1.0)
	{
		frame.x = centre[0];
		frame.y = centre[1];
		frame.z = centre[2];
	}
	return frame;
}

static __global__ void
prepare_references_kernel(struct brute_references references)
{
	uint32_t	index = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	bool		exists = index < references.count;
	struct geonn_vector vector = {0.0, 0.0, 0.0};

	if (exists)
		vector = geonn_unit_vector(references.x[index], references.y[index]);
	extend_box(&references.box[0], vector.x, exists);
	extend_box(&references.box[2], vector.y, exists);
	extend_box(&references.box[4], vector.z, exists);
	if (!exists)
		return;
	references.x[index] = vector.x;
	references.y[index] = vector.y;
	references.z[index] = vector.z;
	atomicMin(hash_place(&references, vector), index);
}

/* set float32 vectors and frame */
static __global__ void
silence_references_kernel(struct brute_references references)
{
	uint32_t	index = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	struct geonn_vector vector = {NAN, NAN, NAN};

	if (index == 0)
		*references.frame = frame_of_box(references.box);
	if (index < references.count)
	{
		struct geonn_vector own = load_vector(references.x, references.y, references.z, index);
		uint32_t	first = *hash_place(&references, own);
		struct geonn_vector other = load_vector(references.x, references.y, references.z, first);

		if (first == index || own.x != other.x || own.y != other.y || own.z != other.z)
			vector = own;
	}
	references.x_single[index] = __double2float_rn(vector.x);
	references.y_single[index] = __double2float_rn(vector.y);
	references.z_single[index] = __double2float_rn(vector.z);
}

static __global__ void
prepare_observations_kernel(struct brute_room room, uint32_t rows)
{
	uint32_t	index = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	struct geonn_vector vector = {0.0, 0.0, 1.0};

	if (index >= rows)
		return;
	if (geonn_coordinates_valid(room.latitude[index], room.longitude[index]))
		vector = geonn_unit_vector(room.latitude[index], room.longitude[index]);
	else
		room.status->out_of_range = 1;
	room.x[index] = vector.x;
	room.y[index] = vector.y;
	room.z[index] = vector.z;
}

cudaError_t
brute_measure(struct brute_machine *machine)
{
	int			device;
	uint32_t	multiprocessors;
	int			double_ratio;
	int			scan_blocks;
	int			redo_blocks;

	CUDA_TRY(cudaGetDevice(&device));
	CUDA_TRY(count_multiprocessors(&multiprocessors));
	CUDA_TRY(cudaDeviceGetAttribute(&double_ratio, cudaDevAttrSingleToDoublePrecisionPerfRatio,
									device));
	CUDA_TRY(scan_resident_blocks(&scan_blocks));
	CUDA_TRY(redo_resident_blocks(&redo_blocks));
	if (scan_blocks == 0 || redo_blocks == 0)
		return cudaErrorLaunchOutOfResources;

	machine->scan_blocks = multiprocessors * (uint32_t) scan_blocks;
	machine->redo_blocks = multiprocessors * (uint32_t) redo_blocks;
	machine->scan_pairs = (uint64_t) multiprocessors * SCAN_PAIRS;
	/* redo may have to measure every pair in float64, which takes many times longer on some GPUs */
	machine->redo_pairs = (uint64_t) multiprocessors * REDO_PAIRS * 2 /
		(uint64_t) (double_ratio > 2 ? double_ratio : 2);
	return cudaSuccess;
}

size_t
brute_place_references(void *memory, uint32_t count, enum geonn_metric metric,
					   struct brute_references *references)
{
	size_t		offset = 0;
	uint32_t	tiles = (uint32_t) (((size_t) count + BRUTE_TILE - 1) / BRUTE_TILE);
	size_t		padded = (size_t) tiles * BRUTE_TILE;

	references->count = count;
	references->tiles = tiles;
	references->metric = metric;
	place_columns(memory, &offset, count, &references->x, &references->y, &references->z,
				  &references->tag);
	place_columns(memory, &offset, padded, &references->x_single, &references->y_single,
				  &references->z_single);
	place_columns(memory, &offset, padded * 4, &references->pieces);
	place_columns(memory, &offset, 6, &references->box);
	place_columns(memory, &offset, 1, &references->frame);
	return offset;
}

size_t
brute_place_room(void *memory, uint32_t capacity, const struct brute_machine *machine,
				 struct brute_room *room)
{
	size_t		offset = 0;
	uint32_t	scan_states = WAVES * machine->scan_blocks * SCAN_PER_BLOCK;
	uint32_t	redo_states = WAVES * machine->redo_blocks * REDO_PER_BLOCK;
	size_t		scan_bytes;
	size_t		redo_bytes;

	if (scan_states < capacity)
		scan_states = capacity;
	if (redo_states < capacity)
		redo_states = capacity;
	scan_bytes = (size_t) scan_states * SCAN_STATE_BYTES;
	redo_bytes = redo_states * sizeof(struct redo_state);

	room->capacity = capacity;
	room->scan_states = scan_states;
	room->redo_states = redo_states;
	place_columns(memory, &offset, capacity, &room->latitude, &room->longitude, &room->count,
				  &room->x, &room->y, &room->z, &room->ambiguous, &room->floor);
	room->states = next_column(memory, &offset, scan_bytes > redo_bytes ? scan_bytes : redo_bytes);
	place_columns(memory, &offset, 1, &room->status);
	return offset;
}

cudaError_t
brute_prepare_references(const struct brute_references *references, cudaStream_t stream)
{
	uint32_t	blocks = blocks_for(references->count, BLOCK_THREADS);
	uint32_t	all_blocks = references->tiles * (BRUTE_TILE / BLOCK_THREADS);
	size_t		table_bytes = (size_t) references->tiles * BRUTE_TILE * 4 * sizeof(uint32_t);

	CUDA_TRY(cudaMemsetAsync(references->box, 0, 6 * sizeof(int), stream));
	CUDA_TRY(cudaMemsetAsync(references->pieces, 0xFF, table_bytes, stream));
	prepare_references_kernel<<<blocks, BLOCK_THREADS, 0, stream>>> (*references);
	silence_references_kernel<<<all_blocks, BLOCK_THREADS, 0, stream>>> (*references);
	CUDA_TRY(cudaGetLastError());
	return arrange_launch(references, stream);
}

cudaError_t
brute_prepare_observations(const struct brute_search *search)
{
	uint32_t	blocks = blocks_for(search->rows, BLOCK_THREADS);

	CUDA_TRY(cudaMemsetAsync(search->room->status, 0, sizeof(struct brute_status),
							 search->stream));
	prepare_observations_kernel<<<blocks, BLOCK_THREADS, 0, search->stream>>>
		(*search->room, search->rows);
	return cudaGetLastError();
}

/*
 * Choose how many tiles a launch covers, and into how many segments these are
 * cut: the fewest with which it ends soonest, if all blocks of a wave end with
 * the block that has the most tiles.
 */
static void
plan_launches(struct brute_search *search, uint32_t blocks, uint32_t resident_blocks,
			  uint64_t launch_pairs, uint64_t pairs_per_tile, uint32_t segments_max)
{
	uint64_t	launch_tiles = launch_pairs / pairs_per_tile;
	uint32_t	useful = (WAVES * resident_blocks + blocks - 1) / blocks;
	uint64_t	shortest = UINT64_MAX;

	if (launch_tiles < 1)
		launch_tiles = 1;
	if (launch_tiles > search->references->tiles)
		launch_tiles = search->references->tiles;
	search->launch_tiles = (uint32_t) launch_tiles;
	search->next_tile = 0;

	if (segments_max > useful)
		segments_max = useful;
	if (segments_max > search->launch_tiles)
		segments_max = search->launch_tiles;
	for (uint32_t segments = 1; segments <= segments_max; segments++)
	{
		uint64_t	waves = ((uint64_t) blocks * segments + resident_blocks - 1) / resident_blocks;
		uint64_t	duration = waves * ((launch_tiles + segments - 1) / segments);

		if (duration < shortest)
		{
			shortest = duration;
			search->segments = segments;
		}
	}
}

/*
 * Enqueue a launch of scan or redo over the next tiles; after the last one the phase becomes
 * `after`.
 */
static cudaError_t
enqueue_tiles(struct brute_search *search, uint32_t rows, uint32_t rows_of_block,
			  uint32_t resident_blocks, uint64_t launch_pairs, uint32_t states,
			  cudaError_t (*launch) (const struct brute_search *, uint32_t, uint32_t),
			  enum brute_phase after)
{
	uint32_t	blocks = blocks_for(rows, rows_of_block);
	uint32_t	left = search->references->tiles - search->next_tile;
	uint32_t	end_tile;
	cudaError_t error;

	if (search->next_tile == 0)
		plan_launches(search, blocks, resident_blocks, launch_pairs,
					  (uint64_t) blocks * rows_of_block * BRUTE_TILE, states / rows);
	end_tile = search->next_tile + (left < search->launch_tiles ? left : search->launch_tiles);
	error = launch(search, blocks, end_tile);
	search->next_tile = end_tile;
	if (end_tile == search->references->tiles)
		search->phase = after;
	return error;
}

static cudaError_t
enqueue_scan(struct brute_search *search)
{
	return enqueue_tiles(search, search->rows, SCAN_PER_BLOCK, search->machine->scan_blocks,
						 search->machine->scan_pairs, search->room->scan_states, scan_launch,
						 BRUTE_DECIDE);
}

static cudaError_t
enqueue_redo(struct brute_search *search)
{
	return enqueue_tiles(search, search->status->ambiguous, REDO_PER_BLOCK,
						 search->machine->redo_blocks, search->machine->redo_pairs,
						 search->room->redo_states, redo_launch, BRUTE_MERGE);
}

static cudaError_t
enqueue_decide(struct brute_search *search)
{
	search->phase = BRUTE_WAIT;
	CUDA_TRY(decide_launch(search));
	return cudaMemcpyAsync(search->status, search->room->status, sizeof(struct brute_status),
						   cudaMemcpyDeviceToHost, search->stream);
}

cudaError_t
brute_enqueue(struct brute_search *search)
{
	switch (search->phase)
	{
		case BRUTE_SCAN:
			if (search->rows >= SCAN_PER_BLOCK)
				return enqueue_scan(search);
			/* Too few rows for scan: without its states, decide lists all rows as ambiguous. */
			return enqueue_decide(search);
		case BRUTE_DECIDE:
			return enqueue_decide(search);
		case BRUTE_WAIT:
			if (search->status->out_of_range != 0 || search->status->ambiguous == 0)
			{
				search->phase = BRUTE_DONE;
				return cudaSuccess;
			}
			search->phase = BRUTE_REDO;
			search->next_tile = 0;
			return enqueue_redo(search);
		case BRUTE_REDO:
			return enqueue_redo(search);
		case BRUTE_MERGE:
			search->phase = BRUTE_DONE;
			return merge_launch(search);
		case BRUTE_DONE:
			break;
	}
	return cudaSuccess;
}
