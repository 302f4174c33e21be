/*
 * device_work.h
 *		What tests inside the engine have a device do for a search.
 */
#ifndef GEONN_TEST_DEVICE_WORK_H
#define GEONN_TEST_DEVICE_WORK_H

#include "engine/search/device.h"

/*
 * Have the device build what the search lacks, and work on the search until its turns end, as the scheduler does.  False with
 * the failure if it could not be built.
 */
static inline bool
device_work(struct device *device, struct search *search, struct failure *failure)
{
	do
	{
		search->builds = !device->operations->is_built(device, search, search->algorithm) ? search->dataset :
			search->arcs > 0 && search->shapes->built[device->number] == NULL ? search->shapes : NULL;
		if (!device->operations->build(device, search, failure))
			return false;
	} while (device->operations->turn(device, search) == DEVICE_YIELDED);
	return true;
}

/* Free a dataset, which may be NULL, and what the device, the first one, has built of it. */
static inline void
device_forget(struct device *device, struct dataset *dataset)
{
	if (dataset == NULL)
		return;
	if (dataset->built[0] != NULL)
		device->operations->discard(device, dataset->built[0]);
	dataset_free(dataset);
}

#endif							/* GEONN_TEST_DEVICE_WORK_H */
