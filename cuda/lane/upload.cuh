/*
 * upload.cuh
 *		Copies of a dataset's columns to a GPU.
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
	void	   *target;			/* on the GPU */
	const void *source;			/* ordinary host memory */
	size_t		bytes;
};

/* columns that an upload may have */
#define UPLOAD_COLUMNS_MAX 5

struct upload
{
	struct upload_column columns[UPLOAD_COLUMNS_MAX];
	int			count;
};

/* Add a column to an upload that began zeroed. */
extern void upload_add(struct upload *upload, void *target, const void *source, size_t bytes);

/*
 * Copy, so that what is enqueued on the device's building stream afterwards
 * finds the columns there.
 */
extern cudaError_t upload_run(struct device *device, const struct upload *upload);

#endif							/* GEONN_UPLOAD_CUH */
