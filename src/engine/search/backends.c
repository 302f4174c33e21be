/*
 * backends.c
 *		The kinds of devices that the engine knows.
 *
 * A new kind of device needs a table of operations in a folder of its own, its
 * declaration in device.h, a line in the list below, and its name among
 * protocol.h's GEONN_DEVICE_KINDS.  The rest of the engine learns what it has
 * to know of a device from the table.
 */
#include "engine/search/backends.h"

#include <string.h>

#include "engine/base/log.h"

static const struct device_operations *const backends[] = {
	&cpu_device_operations,		/* device 0 */
	&cuda_device_operations
};

#define BACKENDS (sizeof(backends) / sizeof(backends[0]))

int
backends_find(struct device *devices, struct failure *no_gpu)
{
	bool		any_gpu = false;
	int			found = 0;

	for (size_t i = 0; i < BACKENDS; i++)
	{
		const struct device_operations *operations = backends[i];
		struct failure none = {0};
		int			count = operations->count != NULL ? operations->count(&none) : 1;

		for (int ordinal = 0; ordinal < count && found < GEONN_DEVICES_MAX; ordinal++, found++)
		{
			devices[found].operations = operations;
			devices[found].number = found;
			devices[found].ordinal = ordinal;
		}
		any_gpu = any_gpu || (operations->is_gpu && count > 0);
		if (operations->is_gpu && count == 0)
			*no_gpu = none;
	}
	if (any_gpu)
		memset(no_gpu, 0, sizeof(*no_gpu));
	else
		log_line(LOG_NOTE, "no GPU is used, searches run on the CPU: %s%s%s",
				 no_gpu->message, no_gpu->detail[0] ? ": " : "", no_gpu->detail);
	return found;
}

bool
backends_means_gpus(enum geonn_device_choice choice)
{
	for (size_t i = 0; i < BACKENDS; i++)
		if (geonn_device_choice_of(backends[i]->kind) == choice)
			return backends[i]->is_gpu;
	return false;
}
