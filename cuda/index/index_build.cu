/*
 * index_build.cu
 *		Builds the index of a dataset on a GPU.
 *
 * prepare	makes of each reference a record, its vector and its tag in one
 *			sector of memory, and the code of its place on the curve.
 * sort		brings (code, place in the dataset) into order, by as few passes as
 *			cells of 2.4 m take; with windows by (slab, code), after a first sort
 *			by the lows of windows, which orders what one cell has in time; with
 *			groups a last sort, by group, follows.  Radix sort is stable, so
 *			equals stay in the dataset's order.
 * fill		gathers the records in that order.  A warp makes a leaf: its
 *			positions, its box, its code.  It counts the positions that differ
 *			from the one before.
 *
 * Here the host waits, for that count.  If no references coincide, which is
 * what fill takes for granted, only the levels above are left to do.
 * Else the first reference of each position is selected, and fill makes the
 * leaves of these once more.
 *
 * Cells of 2.4 m are too large where references are very dense or, worse, many of
 * two or more places in one cell arrive in turns, so that none are neighbours.
 * Where a whole leaf of different positions has one code, fill says so, and
 * the order is made again: by a hash of the vector, which brings coincident
 * references together, and then by the code of a cell of a centimetre.
 *
 * An index takes about 42 bytes a reference, with groups and identities 50, with
 * a window 18 more and with radiuses 8.  While it is built, 69 more: 32 for the
 * record, 24 for codes and places, as many again for the sort, less what it
 * overlaps.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "cuda/base/blocks.cuh"
#include "cuda/base/columns.cuh"
#include "cuda/base/try.cuh"
#include "cuda/index/index_conditions.cuh"

#define BLOCK_THREADS 256
#define BLOCK_WARPS (BLOCK_THREADS / INDEX_WIDTH)

/* a leaf is crowded if its box is smaller than this, about a cell of the code */
#define CROWDED_EXTENT 0x1p-21

/* with more crowded leaves than this, references are sorted again, by finer codes */
#define CROWDED_LEAVES_MAX 8

/* What the kernels of a build report; the host waits for the report. */
struct build_status
{
	uint32_t	repeats;		/* how many references coincide with the reference before them */
	uint32_t	crowded;		/* how many crowded leaves have different positions */
	uint32_t	positions;		/* how many positions were selected */
};

/* the keys of the sorts, the least significant first */
enum sort_key
{
	KEY_CONDITION,				/* the low of a window, or the radius */
	KEY_HASH,
	KEY_CODE,					/* the curve code, of cells of 2.4 m */
	KEY_FINE_CODE,				/* the curve code, of cells of a centimetre */
	KEY_SLAB,
	KEY_SLAB_CODE,				/* KEY_SLAB and KEY_CODE together as one key; used once the codes have been made */
	KEY_GROUP
};

#define CODE_BITS (3 + 2 * INDEX_CODE_LEVELS)
#define FINE_CODE_BITS (3 + 2 * SPACE_CURVE_LEVELS)
static_assert(WINDOW_SLAB_BITS + CODE_BITS <= 64, "a key of slab and code");

/* how many bits each kind of key has */
static const int key_bits[] = {
	64, 64, CODE_BITS, FINE_CODE_BITS, WINDOW_SLAB_BITS, WINDOW_SLAB_BITS + CODE_BITS, 32
};

struct build_room
{
	struct index_record *record;	/* [references] in the dataset's order; payload: tag */
	uint64_t   *key;			/* [references] keys of the present sort */
	uint64_t   *sorted_key;		/* [references] the keys, sorted */
	uint32_t   *place;			/* [references] places of references, in the order of the sorts so far */
	uint32_t   *sorted_place;	/* [references] the places after the present sort */
	uint8_t    *is_first;		/* [references] in the sorted order: the reference is the first of
								 * its position */
	struct build_status *status;
	void	   *scratch;		/* memory for CUB's functions */
	size_t		scratch_bytes;
	int			code_shift;		/* sorted keys shifted right by this many bits are the values of leaf_code */
};

void
index_place_conditions(void *memory, size_t *offset, uint32_t rows, uint32_t columns,
					   struct index_conditions *conditions)
{
	*conditions = {};
	if (columns & GEONN_COLUMN_RADIUS)
		place_columns(memory, offset, rows, &conditions->radius);
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (columns & GEONN_COLUMN_WINDOW << i)
			place_columns(memory, offset, rows, &conditions->low[i], &conditions->high[i]);
	if (columns & GEONN_COLUMNS_WINDOWS)
		place_columns(memory, offset, rows, &conditions->edges);
}

size_t
index_place(void *memory, uint32_t references, enum geonn_metric metric, uint32_t columns,
			struct index *index)
{
	struct index_shape shape = index_shape_of(references);
	size_t		positions = (size_t) shape.nodes[0] * INDEX_WIDTH;
	size_t		nodes = shape.all_nodes;
	size_t		bytes = 0;

	*index = {};
	index->references = references;
	index->metric = metric;
	index->columns = columns;
	index->shape = shape;
	place_columns(memory, &bytes, positions, &index->x, &index->y, &index->z);
	place_columns(memory, &bytes, positions + 1, &index->start);
	place_columns(memory, &bytes, references, &index->place, &index->tag);
	place_columns(memory, &bytes, nodes, &index->low_x, &index->low_y, &index->low_z,
				  &index->high_x, &index->high_y, &index->high_z);
	if (columns & GEONN_COLUMN_GROUP)
	{
		place_columns(memory, &bytes, positions, &index->group);
		place_columns(memory, &bytes, nodes, &index->low_group, &index->high_group);
	}
	else if ((columns & GEONN_COLUMNS_WINDOWS) == 0)
		place_columns(memory, &bytes, shape.nodes[0], &index->leaf_code);
	index_place_conditions(memory, &bytes, (uint32_t) positions, columns, &index->conditions);
	if (columns & GEONN_COLUMN_RADIUS)
		place_columns(memory, &bytes, nodes, &index->node_limit);
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (columns & GEONN_COLUMN_WINDOW << i)
			place_columns(memory, &bytes, nodes, &index->node_low[i], &index->node_high[i]);
	if (columns & GEONN_COLUMNS_WINDOWS)
		place_columns(memory, &bytes, 1, &index->exclusive, &index->order);
	return bytes;
}

/*
 * Lay out the memory for the build; *bytes becomes its size.
 */
static cudaError_t
place_room(void *memory, uint32_t references, struct build_room *room, size_t *bytes)
{
	size_t		count = references;
	size_t		sort_bytes = 0;
	size_t		select_bytes = 0;

	CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, sort_bytes, (uint64_t *) NULL,
											 (uint64_t *) NULL, (uint32_t *) NULL,
											 (uint32_t *) NULL, references));
	CUDA_TRY(cub::DeviceSelect::Flagged(NULL, select_bytes,
										thrust::counting_iterator<uint32_t>(0),
										(uint8_t *) NULL, (uint32_t *) NULL, (uint32_t *) NULL,
										references));
	*bytes = 0;
	place_columns(memory, bytes, count, &room->record, &room->key, &room->sorted_key,
				  &room->place, &room->sorted_place, &room->is_first);
	place_columns(memory, bytes, 1, &room->status);
	room->scratch_bytes = sort_bytes > select_bytes ? sort_bytes : select_bytes;
	room->scratch = next_column(memory, bytes, room->scratch_bytes);
	room->code_shift = 0;
	return cudaSuccess;
}

size_t
index_build_room(uint32_t references)
{
	struct build_room room;
	size_t		bytes;

	return place_room(NULL, references, &room, &bytes) == cudaSuccess ? bytes : INDEX_NO_ROOM;
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
prepare_kernel(struct build_room room, struct index_source source, uint32_t references,
			   enum geonn_metric metric)
{
	uint32_t	place = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	struct index_record record;

	if (place >= references)
		return;
	record.vector = geonn_metric_vector(metric, source.latitude[place], source.longitude[place]);
	record.payload = (uint64_t) source.tag[place];
	room.record[place] = record;
	room.key[place] = index_code(record.vector);
	room.place[place] = place;
}

static __device__ __forceinline__ uint64_t
mix(uint64_t bits)
{
	bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
	bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
	return bits ^ (bits >> 31);
}

/* the slab of a reference */
static __device__ __forceinline__ uint32_t
slab_of(const struct window_order *order, const struct index_conditions *conditions,
		uint32_t place)
{
	uint32_t	window = order->window;

	return window_slab_of(order, conditions->low[window][place], conditions->high[window][place]);
}

/*
 * Each thread makes the key of this kind for one reference, in the order of the sorts so far;
 * before the first sort, in the dataset's order.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
key_kernel(const __grid_constant__ struct build_room room,
		   const __grid_constant__ struct index_source source, const struct window_order *order,
		   uint32_t references, enum sort_key kind, bool is_first)
{
	uint32_t	index = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	uint32_t	place;
	struct geonn_vector vector;
	uint64_t	key = 0;

	if (index >= references)
		return;
	if (is_first)
		room.place[index] = index;
	place = room.place[index];
	vector = room.record[place].vector;
	/* The sort compares unsigned keys: turn signed values into unsigned ones of the same order. */
	switch (kind)
	{
		case KEY_CONDITION:
			key = order == NULL ? __double_as_longlong(source.conditions.radius[place]) :
				(uint64_t) source.conditions.low[order->window][place] ^ (uint64_t) 1 << 63;
			break;
		case KEY_HASH:
			key = mix(__double_as_longlong(vector.x) +
					  mix(__double_as_longlong(vector.y) + mix(__double_as_longlong(vector.z))));
			break;
		case KEY_CODE:
			key = index_code(vector);
			break;
		case KEY_FINE_CODE:
			key = space_curve_code(vector, SPACE_CURVE_LEVELS);
			break;
		case KEY_SLAB:
			key = slab_of(order, &source.conditions, place);
			break;
		case KEY_SLAB_CODE:
			key = (uint64_t) slab_of(order, &source.conditions, place) << CODE_BITS | index_code(vector);
			break;
		case KEY_GROUP:
			key = (uint32_t) source.group[place] ^ 0x80000000u;
			break;
	}
	room.key[index] = key;
}

/*
 * Compute the box around the vectors of the warp's lanes: lane 0 gets its low
 * corner, lane INDEX_WIDTH / 2 the negated high one.  Each half of the warp
 * computes one corner.
 */
static __device__ __forceinline__ struct geonn_vector
warp_corner(struct geonn_vector low, struct geonn_vector high)
{
	bool		is_low = warp_lane() < INDEX_WIDTH / 2;
	struct geonn_vector corner;
	struct geonn_vector sent;

	corner.x = is_low ? low.x : -high.x;
	corner.y = is_low ? low.y : -high.y;
	corner.z = is_low ? low.z : -high.z;
	sent.x = is_low ? -high.x : low.x;
	sent.y = is_low ? -high.y : low.y;
	sent.z = is_low ? -high.z : low.z;
	for (int lanes = INDEX_WIDTH / 2; lanes > 0; lanes /= 2)
	{
		corner.x = fmin(corner.x, __shfl_xor_sync(ALL_LANES, sent.x, lanes));
		corner.y = fmin(corner.y, __shfl_xor_sync(ALL_LANES, sent.y, lanes));
		corner.z = fmin(corner.z, __shfl_xor_sync(ALL_LANES, sent.z, lanes));
		sent = corner;
	}
	return corner;
}

static __device__ __forceinline__ void
store_corner(const struct index *index, size_t node, struct geonn_vector corner)
{
	if (warp_lane() == 0)
	{
		index->low_x[node] = corner.x;
		index->low_y[node] = corner.y;
		index->low_z[node] = corner.z;
	}
	else if (warp_lane() == INDEX_WIDTH / 2)
	{
		index->high_x[node] = -corner.x;
		index->high_y[node] = -corner.y;
		index->high_z[node] = -corner.z;
	}
}

/* Return in lane 0 whether a leaf with these corners is small enough to count as crowded. */
static __device__ __forceinline__ bool
is_small(struct geonn_vector corner)
{
	double		x = corner.x + __shfl_down_sync(ALL_LANES, corner.x, INDEX_WIDTH / 2);
	double		y = corner.y + __shfl_down_sync(ALL_LANES, corner.y, INDEX_WIDTH / 2);
	double		z = corner.z + __shfl_down_sync(ALL_LANES, corner.z, INDEX_WIDTH / 2);

	return fmin(fmin(x, y), z) > -CROWDED_EXTENT;
}

/* Return whether two references have the same conditions, byte for byte. */
static __device__ __forceinline__ bool
same_conditions(const struct index_conditions *conditions, uint32_t place, uint32_t other_place)
{
	if (conditions->radius != NULL && __double_as_longlong(conditions->radius[place]) !=
		__double_as_longlong(conditions->radius[other_place]))
		return false;
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (conditions->low[i] != NULL && (conditions->low[i][place] != conditions->low[i][other_place] ||
										conditions->high[i][place] != conditions->high[i][other_place]))
			return false;
	return conditions->edges == NULL || conditions->edges[place] == conditions->edges[other_place];
}

/* Return whether two references have the same coordinates, group and conditions. */
template <bool CONDITIONED>
static __device__ __forceinline__ bool
coincide(const struct index_source *source, uint32_t place,
		 struct geonn_vector vector, uint32_t other_place, struct geonn_vector other)
{
	if (vector.x != other.x || vector.y != other.y || vector.z != other.z)
		return false;
	if (source->group != NULL && source->group[place] != source->group[other_place])
		return false;
	return !CONDITIONED || same_conditions(&source->conditions, place, other_place);
}

/*
 * Set the tag and place of each sorted reference, and whether it is
 * the first of its position.  All lanes of the warp must call this.
 */
template <bool CONDITIONED>
static __device__ __forceinline__ void
fill_reference(const struct index *index, const struct build_room *room,
			   const struct index_source *source, uint32_t number, uint32_t place,
			   const struct index_record *record, bool is_close)
{
	bool		present = number < index->references;
	uint32_t	other_place = __shfl_up_sync(ALL_LANES, place, 1);
	struct geonn_vector other;
	bool		is_repeat;
	uint32_t	firsts;
	uint32_t	different;		/* bits of the lanes whose vector differs from that of the lane before */
	uint32_t	repeats;

	other.x = __shfl_up_sync(ALL_LANES, record->vector.x, 1);
	other.y = __shfl_up_sync(ALL_LANES, record->vector.y, 1);
	other.z = __shfl_up_sync(ALL_LANES, record->vector.z, 1);
	if (warp_lane() == 0 && number > 0)
	{
		other_place = room->place[number - 1];
		other = room->record[other_place].vector;
	}
	is_repeat = present && number > 0 &&
		coincide<CONDITIONED>(source, place, record->vector, other_place, other);
	if (present)
	{
		index->place[number] = place;
		index->tag[number] = (int64_t) record->payload;
		index->start[number] = number;
		room->is_first[number] = !is_repeat;
	}

	firsts = __ballot_sync(ALL_LANES, present && !is_repeat);
	repeats = __ballot_sync(ALL_LANES, is_repeat);
	different = firsts;
	if (CONDITIONED)
		different = __ballot_sync(ALL_LANES, present &&
								  (record->vector.x != other.x || record->vector.y != other.y ||
								   record->vector.z != other.z));
	if (warp_lane() == 0)
	{
		if (is_close && different >> 1 != 0)
			atomicAdd(&room->status->crowded, 1);
		if (repeats != 0)
			atomicAdd(&room->status->repeats, __popc(repeats));
	}
}

/*
 * Each warp makes a leaf.  In the first run, before references at one place have been joined, every
 * sorted reference is a position.
 */
template <bool positions_known, bool CONDITIONED>
static __global__ void __launch_bounds__(BLOCK_THREADS)
fill_kernel(const __grid_constant__ struct index index,
			const __grid_constant__ struct build_room room,
			const __grid_constant__ struct index_source source)
{
	uint32_t	leaf = blockIdx.x * BLOCK_WARPS + threadIdx.x / INDEX_WIDTH;
	uint32_t	position = leaf * INDEX_WIDTH + warp_lane();
	uint32_t	number = min(position, index.shape.positions - 1);
	uint32_t	place;
	struct index_record record;
	struct geonn_vector corner;

	if (leaf >= index.shape.nodes[0])
		return;
	if (positions_known)
		number = index.start[number];
	place = room.place[number];
	record = room.record[place];
	corner = warp_corner(record.vector, record.vector);
	store_corner(&index, leaf, corner);
	if (!positions_known)
		fill_reference<CONDITIONED>(&index, &room, &source, position, place, &record, is_small(corner));

	index.x[position] = record.vector.x;
	index.y[position] = record.vector.y;
	index.z[position] = record.vector.z;
	if (index.group != NULL)
	{
		int32_t		group = source.group[place];

		index.group[position] = group;
		if (warp_lane() == 0)
			index.low_group[leaf] = group;
		if (warp_lane() == INDEX_WIDTH - 1)
			index.high_group[leaf] = group;
	}
	else if (index.leaf_code != NULL && warp_lane() == 0)
		index.leaf_code[leaf] = room.sorted_key[number] >> room.code_shift;

	if (position == index.shape.positions - 1)
		index.start[position + 1] = index.references;
}

/* Each warp makes a node of a level above the leaves, from up to 32 children. */
template <bool CONDITIONED>
static __global__ void __launch_bounds__(BLOCK_THREADS)
level_kernel(const __grid_constant__ struct index index, int level)
{
	uint32_t	node = blockIdx.x * BLOCK_WARPS + threadIdx.x / INDEX_WIDTH;
	uint32_t	child = min(node * INDEX_WIDTH + warp_lane(), index.shape.nodes[level - 1] - 1);
	size_t		from = (size_t) index.shape.first[level - 1] + child;
	size_t		to = (size_t) index.shape.first[level] + node;
	struct geonn_vector low;
	struct geonn_vector high;

	if (node >= index.shape.nodes[level])
		return;
	low.x = index.low_x[from];
	low.y = index.low_y[from];
	low.z = index.low_z[from];
	high.x = index.high_x[from];
	high.y = index.high_y[from];
	high.z = index.high_z[from];
	store_corner(&index, to, warp_corner(low, high));
	if (index.group != NULL)
	{
		/* Positions are sorted by group: the first and the last position have the smallest and the largest group. */
		if (warp_lane() == 0)
			index.low_group[to] = index.low_group[from];
		if (warp_lane() == INDEX_WIDTH - 1)
			index.high_group[to] = index.high_group[from];
	}
	if (CONDITIONED)
		conditions_of_node(&index, from, to);
}

/* Each warp copies the conditions of a leaf's positions from the references, and computes the bounds of the leaf. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
conditions_kernel(const __grid_constant__ struct index index,
				  const __grid_constant__ struct index_conditions source, const uint32_t *places)
{
	uint32_t	leaf = blockIdx.x * BLOCK_WARPS + threadIdx.x / INDEX_WIDTH;
	uint32_t	position = leaf * INDEX_WIDTH + warp_lane();

	if (leaf < index.shape.nodes[0])
		conditions_of_leaf(&index, &source, leaf, position,
						   places[index.start[min(position, index.shape.positions - 1)]]);
}

/*
 * Sort the places by one key, stably.
 */
static cudaError_t
sort_by(struct build_room *room, uint32_t references, enum sort_key kind, cudaStream_t stream)
{
	size_t		scratch_bytes = room->scratch_bytes;
	uint32_t   *place = room->place;

	CUDA_TRY(cub::DeviceRadixSort::SortPairs(room->scratch, scratch_bytes, room->key,
											 room->sorted_key, room->place, room->sorted_place,
											 references, 0, key_bits[kind], stream));
	room->place = room->sorted_place;
	room->sorted_place = place;
	if (kind == KEY_CODE || kind == KEY_FINE_CODE)
		room->code_shift = kind == KEY_CODE ? 0 : FINE_CODE_BITS - CODE_BITS;
	return cudaSuccess;
}

/* Sort the places of the references.  If the first sort is by KEY_CODE, prepare_kernel has already made its keys. */
static cudaError_t
sort_references(struct build_room *room, const struct index *index,
				const struct index_source *source, bool fine, cudaStream_t stream)
{
	bool		has_windows = index->order != NULL;
	enum sort_key kinds[5];
	int			count = 0;

	if (index->columns & INDEX_COLUMNS_CONDITIONS)
		kinds[count++] = KEY_CONDITION;
	if (fine)
	{
		kinds[count++] = KEY_HASH;
		kinds[count++] = KEY_FINE_CODE;
		if (has_windows)
			kinds[count++] = KEY_SLAB;
	}
	else
		kinds[count++] = has_windows ? KEY_SLAB_CODE : KEY_CODE;
	if (index->group != NULL)
		kinds[count++] = KEY_GROUP;

	for (int i = 0; i < count; i++)
	{
		if (i > 0 || kinds[i] != KEY_CODE)
			key_kernel<<<blocks_for(index->references, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>>
				(*room, *source, index->order, index->references, kinds[i], i == 0);
		CUDA_TRY(cudaGetLastError());
		CUDA_TRY(sort_by(room, index->references, kinds[i], stream));
	}
	return cudaSuccess;
}

template <bool positions_known>
static void
launch_fill(const struct index *index, const struct build_room *room,
			const struct index_source *source, cudaStream_t stream)
{
	uint32_t	blocks = blocks_for(index->shape.nodes[0], BLOCK_WARPS);

	if (index->columns & INDEX_COLUMNS_CONDITIONS)
		fill_kernel<positions_known, true> <<<blocks, BLOCK_THREADS, 0, stream>>>
			(*index, *room, *source);
	else
		fill_kernel<positions_known, false> <<<blocks, BLOCK_THREADS, 0, stream>>>
			(*index, *room, *source);
}

/* Run the fill kernel, and wait until its status is on the host. */
static cudaError_t
fill(const struct index *index, const struct build_room *room, const struct index_source *source,
	 struct build_status *status, cudaStream_t stream)
{
	CUDA_TRY(cudaMemsetAsync(room->status, 0, sizeof(*status), stream));
	launch_fill<false>(index, room, source, stream);
	CUDA_TRY(cudaGetLastError());
	CUDA_TRY(cudaMemcpyAsync(status, room->status, sizeof(*status), cudaMemcpyDeviceToHost, stream));
	return cudaStreamSynchronize(stream);
}

/* Fill the leaves a second time if some references coincide, because these share one position. */
static cudaError_t
fill_positions(const struct index *index, struct build_room *room,
			   const struct index_source *source, cudaStream_t stream)
{
	size_t		scratch_bytes = room->scratch_bytes;

	CUDA_TRY(cub::DeviceSelect::Flagged(room->scratch, scratch_bytes,
										thrust::counting_iterator<uint32_t>(0), room->is_first,
										index->start, &room->status->positions,
										index->references, stream));
	launch_fill<true>(index, room, source, stream);
	return cudaGetLastError();
}

/* Make the conditions of the leaves, and the levels above the leaves. */
static cudaError_t
make_levels(const struct index *index, const struct build_room *room,
			const struct index_source *source, cudaStream_t stream)
{
	bool		conditioned = (index->columns & INDEX_COLUMNS_CONDITIONS) != 0;

	if (index->exclusive != NULL)
		CUDA_TRY(cudaMemsetAsync(index->exclusive, 0, sizeof(uint32_t), stream));
	if (conditioned)
		conditions_kernel<<<blocks_for(index->shape.nodes[0], BLOCK_WARPS), BLOCK_THREADS, 0,
			stream>>> (*index, source->conditions, room->place);
	for (int level = 1; level < index->shape.levels; level++)
	{
		uint32_t	blocks = blocks_for(index->shape.nodes[level], BLOCK_WARPS);

		if (conditioned)
			level_kernel<true> <<<blocks, BLOCK_THREADS, 0, stream>>> (*index, level);
		else
			level_kernel<false> <<<blocks, BLOCK_THREADS, 0, stream>>> (*index, level);
	}
	return cudaGetLastError();
}

cudaError_t
index_build(struct index *index, const struct index_source *source, void *memory,
			cudaStream_t stream)
{
	uint32_t	references = index->references;
	struct build_status status;
	struct build_room room;
	size_t		bytes;

	CUDA_TRY(place_room(memory, references, &room, &bytes));
	index->shape = index_shape_of(references);
	prepare_kernel<<<blocks_for(references, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>>
		(room, *source, references, index->metric);
	CUDA_TRY(cudaGetLastError());
	CUDA_TRY(sort_references(&room, index, source, false, stream));
	CUDA_TRY(fill(index, &room, source, &status, stream));
	if (status.crowded > CROWDED_LEAVES_MAX)
	{
		CUDA_TRY(sort_references(&room, index, source, true, stream));
		CUDA_TRY(fill(index, &room, source, &status, stream));
	}
	if (status.repeats > 0)
	{
		index->shape = index_shape_of(references - status.repeats);
		CUDA_TRY(fill_positions(index, &room, source, stream));
	}
	return make_levels(index, &room, source, stream);
}
