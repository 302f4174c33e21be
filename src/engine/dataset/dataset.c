/*
 * dataset.c
 *		A set of references, in their order.
 *
 * References arrive batch by batch into columns that double as they
 * fill; realloc moves large blocks by remapping pages, so no byte of them is
 * copied.
 */
#include "engine/dataset/dataset.h"

#include <malloc.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/assertion.h"
#include "common/geodesy.h"
#include "engine/dataset/dataset_arcs.h"

#define FIRST_CAPACITY	256
#define PAGE_BYTES		4096

#define COLUMN(present, type, name) \
	{present, sizeof(type), offsetof(struct dataset, name), offsetof(struct geonn_batch_columns, name)}
#define WINDOW(number) \
	COLUMN(GEONN_COLUMN_WINDOW << (number), int64_t, low[number]), \
	COLUMN(GEONN_COLUMN_WINDOW << (number), int64_t, high[number])
#define WEIGHT(number) COLUMN(GEONN_COLUMN_WEIGHT << (number), double, weight[number])
#define PARTY(number) COLUMN(GEONN_COLUMN_PARTY << (number), int32_t, party[number])

const struct dataset_column dataset_columns[DATASET_COLUMNS] = {
	COLUMN(0, double, latitude),
	COLUMN(0, double, longitude),
	COLUMN(0, int64_t, tag),
	COLUMN(GEONN_COLUMN_GROUP, int32_t, group),
	COLUMN(GEONN_COLUMN_RADIUS, double, radius),
	WINDOW(0),
	WINDOW(1),
	WINDOW(2),
	COLUMN(GEONN_COLUMNS_WINDOWS, uint16_t, edges),
	WEIGHT(0),
	WEIGHT(1),
	WEIGHT(2),
	WEIGHT(3),
	PARTY(0),
	PARTY(1),
	COLUMN(GEONN_COLUMN_ARC, double, end_latitude),
	COLUMN(GEONN_COLUMN_ARC, double, end_longitude),
	COLUMN(GEONN_COLUMN_ARC, int32_t, shape),
	COLUMN(GEONN_COLUMN_ARC, int32_t, polygon),
	COLUMN(GEONN_COLUMN_SEGMENT, int32_t, segment),
	COLUMN(GEONN_COLUMN_SEGMENT, int32_t, part_end),
	COLUMN(GEONN_COLUMN_MEASURE, double, measure),
	COLUMN(GEONN_COLUMN_MEASURE, double, end_measure)
};

static void *
address_at(const void *structure, size_t member)
{
	void	   *address;

	memcpy(&address, (const char *) structure + member, sizeof(address));
	return address;
}

void *
dataset_column_of(const struct dataset *dataset, int number)
{
	return address_at(dataset, dataset_columns[number].member);
}

/* Return a column of a batch, by its number in dataset_columns; NULL: the batch does not have the column. */
static void *
column_of_batch(const struct geonn_batch_columns *batch, int number)
{
	return address_at(batch, dataset_columns[number].batch_member);
}

static void
set_column(struct dataset *dataset, int number, void *column)
{
	memcpy((char *) dataset + dataset_columns[number].member, &column, sizeof(column));
}

static bool
has_column(const struct dataset *dataset, int number)
{
	uint32_t	present = dataset_columns[number].present;

	return present == 0 || dataset->columns & present;
}

struct dataset *
dataset_create(uint64_t id, enum geonn_metric metric, uint32_t columns)
{
	struct dataset *dataset = calloc(1, sizeof(*dataset));

	if (dataset == NULL)
		return NULL;
	dataset->id = id;
	dataset->metric = metric;
	dataset->columns = columns;
	for (int kind = 0; kind < GEONN_FILE_KINDS; kind++)
		dataset->files[kind] = -1;
	return dataset;
}

size_t
dataset_row_bytes(const struct dataset *dataset)
{
	size_t		bytes = 0;

	for (int i = 0; i < DATASET_COLUMNS; i++)
		bytes += has_column(dataset, i) ? dataset_columns[i].width : 0;
	return bytes;
}

static bool
resize_column(struct dataset *dataset, int number, size_t count)
{
	void	   *resized;

	if (!has_column(dataset, number))
		return true;
	resized = realloc(dataset_column_of(dataset, number), count * dataset_columns[number].width);
	if (resized == NULL)
		return false;
	set_column(dataset, number, resized);
	return true;
}

/* Enlarge the columns so that each has room for `count` references. */
static bool
reserve(struct dataset *dataset, size_t count, struct failure *failure)
{
	size_t		capacity = dataset->capacity ? dataset->capacity : FIRST_CAPACITY;

	if (count <= dataset->capacity)
		return true;
	while (capacity < count)
		capacity *= 2;

	for (int i = 0; i < DATASET_COLUMNS; i++)
		if (!resize_column(dataset, i, capacity))
			return fail(failure, GEONN_ERROR_MEMORY,
						"not enough memory for %zu references: %zu bytes needed",
						count, capacity * dataset_row_bytes(dataset));
	dataset->capacity = capacity;
	return true;
}

/* Copy a column of a batch behind the dataset's rows; NULL: the batch lacks the column. */
static void
append_column(struct dataset *dataset, int number, const void *column, uint32_t rows)
{
	size_t		width = dataset_columns[number].width;
	char	   *to = (char *) dataset_column_of(dataset, number) + dataset->count * width;

	if (column != NULL)
		memcpy(to, column, rows * width);
	else
		memset(to, 0, rows * width);
}

bool
dataset_append(struct dataset *dataset, const struct geonn_batch_columns *batch,
			   uint32_t rows, struct failure *failure)
{
	size_t		count = dataset->count + rows;

	geonn_assert(!dataset->sealed);
	if (count > GEONN_REFERENCES_MAX)
	{
		fail(failure, GEONN_ERROR_LIMIT,
			 "too many references: %zu, and a dataset holds at most %d",
			 count, GEONN_REFERENCES_MAX);
		fail_hint(failure, "Join against fewer references at a time.");
		return false;
	}
	if (!reserve(dataset, count, failure))
		return false;

	geonn_assert(count <= dataset->capacity);
	/* Copy first, then check the copy: the client can change shared memory at any time. */
	for (int i = 0; i < DATASET_COLUMNS; i++)
		if (has_column(dataset, i))
			append_column(dataset, i, column_of_batch(batch, i), rows);
	for (size_t i = dataset->count; i < count; i++)
		if (!geonn_coordinates_valid(dataset->latitude[i], dataset->longitude[i]))
			return fail(failure, GEONN_ERROR_PROTOCOL,
						"the coordinates of a row are out of range");
	for (int weight = 0; weight < GEONN_WEIGHTS_MAX; weight++)
		for (size_t i = dataset->count; dataset->weight[weight] != NULL && i < count; i++)
			if (isinf(dataset->weight[weight][i]))
				return fail(failure, GEONN_ERROR_PROTOCOL, "a reference's weight is infinite");
	if (dataset->shape != NULL && !dataset_check_arcs(dataset, count, failure))
		return false;

	dataset->count = count;
	return true;
}

bool
dataset_check_end(const struct dataset *dataset, struct failure *failure)
{
	if (dataset->shape == NULL || dataset->count == 0)
		return true;
	if (dataset->segment != NULL && dataset_part_goes_on(dataset, dataset->count))
		return fail(failure, GEONN_ERROR_PROTOCOL, "the last line or ring lacks arcs");
	return dataset_check_last_ring(dataset, dataset->count, failure);
}

void
dataset_fit(struct dataset *dataset)
{
	geonn_assert(!dataset->sealed && dataset->count <= dataset->capacity);
	if (dataset->count == 0 || dataset->count == dataset->capacity)
		return;

	/* realloc() may fail to make a column smaller; the column then stays as it was. */
	for (int i = 0; i < DATASET_COLUMNS; i++)
		resize_column(dataset, i, dataset->count);
	dataset->capacity = dataset->count;
}

atomic_uint_fast64_t dataset_squares_bytes;
atomic_uint_fast64_t dataset_squares_limit = UINT64_MAX;

bool
dataset_take_squares(struct dataset *dataset, size_t bytes)
{
	uint64_t	taken = atomic_load(&dataset_squares_bytes);

	do
		if (taken + bytes > atomic_load(&dataset_squares_limit))
			return false;
	while (!atomic_compare_exchange_weak(&dataset_squares_bytes, &taken, taken + bytes));
	atomic_fetch_add(&dataset->squares_bytes, bytes);
	return true;
}

void
dataset_give_squares(struct dataset *dataset, size_t bytes)
{
	geonn_assert(bytes <= atomic_load(&dataset->squares_bytes));
	geonn_assert(bytes <= atomic_load(&dataset_squares_bytes));
	atomic_fetch_sub(&dataset->squares_bytes, bytes);
	atomic_fetch_sub(&dataset_squares_bytes, bytes);
}

size_t
dataset_memory(const struct dataset *dataset)
{
	size_t		bytes = 0;

	for (int i = 0; i < DATASET_COLUMNS; i++)
		bytes += malloc_usable_size(dataset_column_of(dataset, i));
	for (int kind = 0; kind < GEONN_FILE_KINDS; kind++)
		bytes += geonn_align(dataset->file_bytes[kind], PAGE_BYTES);
	return bytes + atomic_load(&dataset->built_bytes) + sizeof(*dataset);
}

uint32_t
dataset_descriptors(const struct dataset *dataset)
{
	uint32_t	count = 0;

	for (int kind = 0; kind < GEONN_FILE_KINDS; kind++)
		count += dataset->files[kind] >= 0;
	return count;
}

void
dataset_free_references(struct dataset *dataset)
{
	geonn_assert(dataset->users == 0 && !dataset->kept);
	for (int i = 0; i < DATASET_COLUMNS; i++)
	{
		free(dataset_column_of(dataset, i));
		set_column(dataset, i, NULL);
	}
	for (int kind = 0; kind < GEONN_FILE_KINDS; kind++)
	{
		if (dataset->files[kind] >= 0)
			close(dataset->files[kind]);
		dataset->files[kind] = -1;
	}
}

void
dataset_free(struct dataset *dataset)
{
	dataset_free_references(dataset);
	free(dataset);
}
