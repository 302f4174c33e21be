/*
 * cells_search.cu
 *		Finds the nearest reference of each observation on a GPU, by the table.
 *
 * A thread takes an observation, in the order in which they came: degrees to a vector,
 * the vector to its square, the square's entry, and that of a smaller square while
 * it is divided; then the candidates of the square.  All of it that is not in
 * registers is 16 bytes in, 16 bytes out, and some sectors of a table that the second
 * cache holds.  What takes longest is float64: the sines, and the arc sine.
 *
 * Observations in crowded squares are listed.  If there are any, the host has the index
 * search for them, in an order of theirs.
 *
 *
 * Why the answer is exact
 *
 * The square has the observation (cells_square.h), and all positions that can come
 * first are among its candidates (cells_build.cu).  Their squared chords are
 * those of geonn_chord_squared(), so that what exceeds geonn_chord_limit() of the least
 * does not come first.  What does not is compared by (distance, place).  Coincident
 * references are one position, which begins with the first of them; if they are
 * several, these are compared like any others.
 */
#include "cuda/base/columns.cuh"
#include "cuda/cells/cells.cuh"
#include "cuda/index/warp_share.cuh"
#include "engine/search/cells_square.h"

#define BLOCK_THREADS 256

/* what has been found for an observation */
struct found
{
	struct geonn_vector vector;
	int64_t		tag;
	double		least;			/* the squared chord to this position */
	double		second;			/* the second least squared chord */
};

/* return the entry of the smallest square that contains a point */
static __device__ __forceinline__ uint2
entry_of(const struct cells *cells, struct geonn_vector from)
{
	struct cells_spot spot = cells_spot_of(from, cells->scale, cells_side_units(cells->side));
	uint32_t	block = (spot.face * cells->side + (spot.v >> CELLS_UNIT_BITS)) * cells->side +
		(spot.u >> CELLS_UNIT_BITS);
	uint2		entry;

	for (int shift = CELLS_FIRST_SHIFT;; shift -= CELLS_SIDE_BITS)
	{
		entry = __ldg(&cells->entry[(size_t) block * CELLS_BLOCK +
									(spot.v >> shift & (CELLS_SIDE - 1)) * CELLS_SIDE +
									(spot.u >> shift & (CELLS_SIDE - 1))]);
		if (entry.x >> CELLS_KIND_SHIFT != CELLS_DIVIDED)
			return entry;
		block = entry.x & ((1u << CELLS_KIND_SHIFT) - 1);
	}
}

static __device__ __forceinline__ struct cells_record
load_record(const struct cells *cells, uint32_t position)
{
	const double2 *halves = (const double2 *) &cells->record[position];
	double2		first = __ldg(&halves[0]);
	double2		last = __ldg(&halves[1]);
	struct cells_record record;

	record.x = first.x;
	record.y = first.y;
	record.z = last.x;
	record.tag = __double_as_longlong(last.y);
	return record;
}

static __device__ __forceinline__ struct geonn_vector
record_vector(const struct cells_record *record)
{
	struct geonn_vector vector;

	vector.x = record->x;
	vector.y = record->y;
	vector.z = record->z;
	return vector;
}

static __device__ __forceinline__ void
look_at(struct found *found, const struct cells_record *record, double square)
{
	bool		is_less = square < found->least;

	found->second = is_less ? found->least : fmin(found->second, square);
	found->least = is_less ? square : found->least;
	found->vector.x = is_less ? record->x : found->vector.x;
	found->vector.y = is_less ? record->y : found->vector.y;
	found->vector.z = is_less ? record->z : found->vector.z;
	found->tag = is_less ? record->tag : found->tag;
}

/*
 * Look at two positions, of which the second may be CELLS_NONE: both records are loaded at the
 * same time, as most warps have an observation with two candidates.
 */
static __device__ __forceinline__ void
look_at_two(struct found *found, const struct cells *cells, struct geonn_vector from, uint32_t one,
			uint32_t other)
{
	struct cells_record record = load_record(cells, one);
	struct cells_record other_record = load_record(cells, other != CELLS_NONE ? other : one);
	double		other_square = geonn_chord_squared(from, record_vector(&other_record));

	look_at(found, &record, geonn_chord_squared(from, record_vector(&record)));
	look_at(found, &other_record, other != CELLS_NONE ? other_square : INFINITY);
}

/* the position that an entry gives by its distance, in the index's order, from another position */
static __device__ __forceinline__ uint32_t
position_beside(uint32_t position, uint32_t away)
{
	return away != 0 ? position + (uint32_t) (int32_t) (int16_t) away : CELLS_NONE;
}

/* the positions of an entry of kind CELLS_FEW or CELLS_LIST, four at a time */
static __device__ __forceinline__ uint4
four_of(const struct cells *cells, uint2 entry, uint32_t number)
{
	if (entry.x >> CELLS_KIND_SHIFT == CELLS_FEW)
		return make_uint4(entry.x, position_beside(entry.x, entry.y & 0xFFFF),
						  position_beside(entry.x, entry.y >> 16), CELLS_NONE);
	return __ldg(&cells->four[(entry.x & ((1u << CELLS_FOURS_SHIFT) - 1)) + number]);
}

static __device__ __forceinline__ uint32_t
fours_of(uint2 entry)
{
	return entry.x >> CELLS_KIND_SHIFT == CELLS_FEW ? 1 :
		(entry.x >> CELLS_FOURS_SHIFT & (CELLS_FOURS_MAX - 1)) + 1;
}

/* an answer */
struct answer
{
	double		distance;		/* metres */
	int64_t		tag;
};

/*
 * Return the first candidate, in the order (distance, place), within the limit
 * on squared chords.
 */
static __device__ __noinline__ struct answer
decide(const struct cells *cells, const struct index *index, struct geonn_vector from,
	   uint2 entry, double limit)
{
	struct answer first = {INFINITY, 0};
	uint32_t	first_place = UINT32_MAX;

	for (uint32_t i = 0; i < fours_of(entry); i++)
	{
		uint4		four = four_of(cells, entry, i);
		uint32_t	positions[4] = {four.x, four.y, four.z, four.w};

		for (int j = 0; j < 4 && positions[j] != CELLS_NONE; j++)
		{
			struct cells_record record = load_record(cells, positions[j]);
			double		distance;
			uint32_t	place;

			if (geonn_chord_squared(from, record_vector(&record)) > limit)
				continue;
			distance = geonn_metric_distance_of(index->metric, from, record_vector(&record));
			place = index->place[index->start[positions[j]]];
			if (comes_before(distance, place, first.distance, first_place))
			{
				first.distance = distance;
				first.tag = record.tag;
				first_place = place;
			}
		}
	}
	return first;
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
search_kernel(const __grid_constant__ struct cells cells,
			  const __grid_constant__ struct index index,
			  const __grid_constant__ struct cells_search search, uint32_t *list)
{
	uint32_t	row = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	bool		present = row < search.rows;
	double		latitude = present ? __ldcs(&search.latitude[row]) : 0.0;
	double		longitude = present ? __ldcs(&search.longitude[row]) : 0.0;
	struct geonn_vector from;
	struct found found = {{}, 0, INFINITY, INFINITY};
	uint2		entry;
	double		limit;
	struct answer answer;
	bool		is_crowded;
	uint32_t	number;
	bool		matched;

	if (!geonn_coordinates_valid(latitude, longitude))
	{
		search.status->out_of_range = 1;
		latitude = 0.0;
		longitude = 0.0;
	}
	from = geonn_unit_vector(latitude, longitude);
	entry = entry_of(&cells, from);
	is_crowded = present && entry.x == CELLS_CROWDED_ENTRY;
	number = warp_take(&search.status->listed, is_crowded);
	if (is_crowded)
		list[number] = row;
	if (!present || is_crowded)
		return;

	for (uint32_t i = 0; i < fours_of(entry); i++)
	{
		uint4		four = four_of(&cells, entry, i);

		look_at_two(&found, &cells, from, four.x, four.y);
		if (four.z != CELLS_NONE)
			look_at_two(&found, &cells, from, four.z, four.w);
	}
	limit = geonn_chord_limit(found.least);
	if (found.second <= limit)
		answer = decide(&cells, &index, from, entry, limit);
	else
		answer = {geonn_metric_distance_of(index.metric, from, found.vector), found.tag};
	matched = answer.distance <= search.max_distance;
	__stcs(&search.distance[row], matched ? answer.distance : INFINITY);
	__stcs((long long *) &search.tag[row], matched ? answer.tag : 0);
}

/* ---- for the host ---- */

/*
 * Lay out the memory of a search: the list, and what the index needs.
 */
static size_t
place_room(void *memory, uint32_t rows, bool has_table, uint32_t **list, void **index_room)
{
	size_t		bytes = 0;

	*list = NULL;
	if (has_table)
		place_columns(memory, &bytes, rows, list);
	*index_room = next_column(memory, &bytes, index_nearest_room(rows));
	return bytes;
}

size_t
cells_search_room(uint32_t rows, bool has_table)
{
	uint32_t   *list;
	void	   *index_room;

	return place_room(NULL, rows, has_table, &list, &index_room);
}

/* enqueue the search by the index, or more of it, for the observations on the list, or for all if the
 * list is NULL */
static cudaError_t
enqueue_by_index(struct cells_search *search, uint32_t rows, const uint32_t *list, void *room)
{
	struct index_nearest nearest = {};

	nearest.index = search->index;
	nearest.rows = rows;
	nearest.latitude = search->latitude;
	nearest.longitude = search->longitude;
	nearest.max_distance = search->max_distance;
	nearest.list = list;
	nearest.tag = search->tag;
	nearest.distance = search->distance;
	nearest.status = &search->status->index;
	nearest.room = room;
	nearest.stream = search->stream;
	if (search->by_index)
		return index_nearest_decide(&nearest);
	search->by_index = true;
	return index_nearest_enqueue(&nearest);
}

cudaError_t
cells_search_enqueue(struct cells_search *search)
{
	uint32_t   *list;
	void	   *index_room;

	search->by_index = false;
	place_room(search->room, search->rows, search->cells != NULL, &list, &index_room);
	if (search->cells == NULL)
		return enqueue_by_index(search, search->rows, NULL, index_room);
	CUDA_TRY(cudaMemsetAsync(search->status, 0, sizeof(struct cells_status), search->stream));
	search_kernel<<<blocks_for(search->rows, BLOCK_THREADS), BLOCK_THREADS, 0, search->stream>>>
		(*search->cells, *search->index, *search, list);
	return cudaGetLastError();
}

bool
cells_search_out_of_range(const struct cells_search *search, const struct cells_status *status)
{
	return (search->cells != NULL ? status->out_of_range : status->index.out_of_range) != 0;
}

bool
cells_search_done(const struct cells_search *search, const struct cells_status *status)
{
	if (cells_search_out_of_range(search, status))
		return true;
	return search->by_index ? status->index.decided >= status->index.ambiguous : status->listed == 0;
}

cudaError_t
cells_search_go_on(struct cells_search *search, const struct cells_status *status)
{
	uint32_t   *list;
	void	   *index_room;

	place_room(search->room, search->rows, search->cells != NULL, &list, &index_room);
	return enqueue_by_index(search, list != NULL ? status->listed : search->rows, list, index_room);
}
