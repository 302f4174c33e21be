/*
 * dataset.c
 *		A set of references, in their order.
 *
 * References arrive batch by batch into three columns that double as they
 * fill; realloc moves large blocks by remapping pages, so no byte of them is
 * copied.
 */
#include "dataset.h"

#include <stdlib.h>
#include <string.h>

#include "../common/geodesy.h"

#define FIRST_CAPACITY	4096

struct dataset *
dataset_create(uint64_t id)
{
	struct dataset *dataset = calloc(1, sizeof(*dataset));

	if (dataset != NULL)
		dataset->id = id;
	return dataset;
}

static bool
resize_column(void *column_address, size_t capacity)
{
	void	  **column = column_address;
	void	   *resized = realloc(*column, capacity * sizeof(double));

	if (resized == NULL)
		return false;
	*column = resized;
	return true;
}

/*
 * Make room for this many references in all.
 */
static bool
reserve(struct dataset *dataset, size_t count, struct failure *failure)
{
	size_t		capacity = dataset->capacity ? dataset->capacity : FIRST_CAPACITY;

	if (count <= dataset->capacity)
		return true;
	while (capacity < count)
		capacity *= 2;

	if (!resize_column(&dataset->latitude, capacity) ||
		!resize_column(&dataset->longitude, capacity) ||
		!resize_column(&dataset->tag, capacity))
		return fail(failure, GEONN_ERROR_MEMORY,
					"not enough memory for %zu references: %zu bytes needed",
					count, 3 * capacity * sizeof(double));
	dataset->capacity = capacity;
	return true;
}

bool
dataset_append(struct dataset *dataset, const double *latitude,
			   const double *longitude, const int64_t *tag, uint32_t rows,
			   struct failure *failure)
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

	/* copy first: what stands in shared memory may change under a check */
	memcpy(dataset->latitude + dataset->count, latitude, rows * sizeof(double));
	memcpy(dataset->longitude + dataset->count, longitude, rows * sizeof(double));
	memcpy(dataset->tag + dataset->count, tag, rows * sizeof(int64_t));
	for (size_t i = dataset->count; i < count; i++)
		if (!geonn_coordinates_valid(dataset->latitude[i], dataset->longitude[i]))
			return fail(failure, GEONN_ERROR_PROTOCOL,
						"reference coordinates are out of range");

	dataset->count = count;
	return true;
}

struct reference
{
	int64_t		tag;
	double		latitude;
	double		longitude;
};

static int
compare_references(const void *left, const void *right)
{
	const struct reference *a = left;
	const struct reference *b = right;

	if (a->tag != b->tag)
		return a->tag < b->tag ? -1 : 1;
	if (a->latitude != b->latitude)
		return a->latitude < b->latitude ? -1 : 1;
	if (a->longitude != b->longitude)
		return a->longitude < b->longitude ? -1 : 1;
	return 0;
}

bool
dataset_sort(struct dataset *dataset, struct failure *failure)
{
	size_t		bytes = dataset->count * sizeof(struct reference);
	struct reference *rows;

	if (dataset->count < 2)
		return true;
	rows = malloc(bytes);
	if (rows == NULL)
		return fail(failure, GEONN_ERROR_MEMORY,
					"not enough memory to sort %zu references: %zu bytes needed",
					dataset->count, bytes);

	for (size_t i = 0; i < dataset->count; i++)
		rows[i] = (struct reference) {
			dataset->tag[i], dataset->latitude[i], dataset->longitude[i]
		};
	qsort(rows, dataset->count, sizeof(struct reference), compare_references);
	for (size_t i = 0; i < dataset->count; i++)
	{
		dataset->tag[i] = rows[i].tag;
		dataset->latitude[i] = rows[i].latitude;
		dataset->longitude[i] = rows[i].longitude;
	}
	free(rows);
	return true;
}

void
dataset_free(struct dataset *dataset)
{
	free(dataset->latitude);
	free(dataset->longitude);
	free(dataset->tag);
	free(dataset);
}
