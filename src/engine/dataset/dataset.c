/*
 * dataset.c
 *		A set of references, in their order.
 *
 * References arrive batch by batch into three columns that double as they
 * fill; realloc moves large blocks by remapping pages, so no byte of them is
 * copied.
 */
#include "engine/dataset/dataset.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/geodesy.h"

#define FIRST_CAPACITY	256
#define PAGE_BYTES		4096

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
	return 2 * sizeof(double) + sizeof(int64_t) +
		(dataset->columns & GEONN_COLUMN_GROUP ? sizeof(int32_t) : 0) +
		(dataset->columns & GEONN_COLUMN_IDENTITY ? sizeof(int32_t) : 0);
}

static bool
resize_column(void *column_address, size_t bytes)
{
	void	  **column = column_address;
	void	   *resized = realloc(*column, bytes);

	if (resized == NULL)
		return false;
	*column = resized;
	return true;
}

/*
 * Make room for `count` references in all.
 */
static bool
reserve(struct dataset *dataset, size_t count, struct failure *failure)
{
	size_t		capacity = dataset->capacity ? dataset->capacity : FIRST_CAPACITY;

	if (count <= dataset->capacity)
		return true;
	while (capacity < count)
		capacity *= 2;

	if (!resize_column(&dataset->latitude, capacity * sizeof(double)) ||
		!resize_column(&dataset->longitude, capacity * sizeof(double)) ||
		!resize_column(&dataset->tag, capacity * sizeof(int64_t)) ||
		(dataset->columns & GEONN_COLUMN_GROUP &&
		 !resize_column(&dataset->group, capacity * sizeof(int32_t))) ||
		(dataset->columns & GEONN_COLUMN_IDENTITY &&
		 !resize_column(&dataset->identity, capacity * sizeof(int32_t))))
		return fail(failure, GEONN_ERROR_MEMORY,
					"not enough memory for %zu references: %zu bytes needed",
					count, capacity * dataset_row_bytes(dataset));
	dataset->capacity = capacity;
	return true;
}

bool
dataset_append(struct dataset *dataset, const struct geonn_batch_columns *batch,
			   uint32_t rows, struct failure *failure)
{
	size_t		count = dataset->count + rows;

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

	/* copy before checking: the client can change shared memory at any time */
	memcpy(dataset->latitude + dataset->count, batch->latitude, rows * sizeof(double));
	memcpy(dataset->longitude + dataset->count, batch->longitude, rows * sizeof(double));
	memcpy(dataset->tag + dataset->count, batch->tag, rows * sizeof(int64_t));
	if (dataset->group != NULL)
		memcpy(dataset->group + dataset->count, batch->group, rows * sizeof(int32_t));
	if (dataset->identity != NULL)
		memcpy(dataset->identity + dataset->count, batch->identity, rows * sizeof(int32_t));
	for (size_t i = dataset->count; i < count; i++)
		if (!geonn_coordinates_valid(dataset->latitude[i], dataset->longitude[i]))
			return fail(failure, GEONN_ERROR_PROTOCOL,
						"reference coordinates are out of range");

	dataset->count = count;
	return true;
}

/*
 * Shrink a column to these bytes; if that fails, the column stays as it was.
 */
static void *
fit_column(void *column, size_t bytes)
{
	void	   *fitted = column != NULL ? realloc(column, bytes) : NULL;

	return fitted != NULL ? fitted : column;
}

void
dataset_fit(struct dataset *dataset)
{
	if (dataset->count == 0 || dataset->count == dataset->capacity)
		return;
	dataset->latitude = fit_column(dataset->latitude, dataset->count * sizeof(double));
	dataset->longitude = fit_column(dataset->longitude, dataset->count * sizeof(double));
	dataset->tag = fit_column(dataset->tag, dataset->count * sizeof(int64_t));
	dataset->group = fit_column(dataset->group, dataset->count * sizeof(int32_t));
	dataset->identity = fit_column(dataset->identity, dataset->count * sizeof(int32_t));
	dataset->capacity = dataset->count;
}

size_t
dataset_bytes(const struct dataset *dataset)
{
	size_t		bytes = dataset->count * dataset_row_bytes(dataset);

	for (int kind = 0; kind < GEONN_FILE_KINDS; kind++)
		bytes += dataset->file_bytes[kind];
	return bytes;
}

size_t
dataset_memory(const struct dataset *dataset)
{
	size_t		bytes = malloc_usable_size(dataset->latitude) +
		malloc_usable_size(dataset->longitude) + malloc_usable_size(dataset->tag) +
		malloc_usable_size(dataset->group) + malloc_usable_size(dataset->identity);

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
	free(dataset->latitude);
	free(dataset->longitude);
	free(dataset->tag);
	free(dataset->group);
	free(dataset->identity);
	dataset->latitude = dataset->longitude = NULL;
	dataset->tag = NULL;
	dataset->group = dataset->identity = NULL;
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
