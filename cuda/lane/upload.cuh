/*
 * upload.cuh
 *		Copies a dataset's columns to a GPU.
 */
#ifndef GEONN_UPLOAD_CUH
#define GEONN_UPLOAD_CUH

#include <cuda_runtime_api.h>

extern "C"
{
#include "engine/search/device.h"
}

struct upload_column
{
	void	   *target;			/* address on the GPU */
	const void *source;			/* address in ordinary host memory */
	size_t		bytes;
};

/* the greatest number of columns of an upload */
#define UPLOAD_COLUMNS_MAX (8 + 2 * GEONN_WINDOWS_MAX)

struct upload
{
	struct upload_column columns[UPLOAD_COLUMNS_MAX];
	int			count;
};

/* Add a column to an upload, which the caller zeroes before the first column; with NULL as target add nothing. */
template <typename Type>
static inline void
upload_add(struct upload *upload, const Type *target, const Type *source, size_t count)
{
	if (target != NULL)
		upload->columns[upload->count++] = {(void *) target, source, count * sizeof(Type)};
}

/*
 * Copy the columns to the GPU.  Work that the caller enqueues on the device's
 * building stream afterwards finds them there.
 */
extern cudaError_t upload_run(struct device *device, const struct upload *upload);

#endif							/* GEONN_UPLOAD_CUH */
