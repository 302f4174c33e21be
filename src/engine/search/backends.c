/*
 * backends.c
 *		The kinds of devices that the engine knows, and which of them a session
 *		may use.
 *
 * A new kind of device needs a table of operations in a folder of its own, its
 * declaration in device.h, a line in the list below, and its name among
 * protocol_dataset.h's GEONN_DEVICE_KINDS.  The rest of the engine learns what it has
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

struct device engine_devices[GEONN_DEVICES_MAX];
int			engine_device_count;
struct failure engine_no_gpu;

void
backends_find(void)
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
			engine_devices[found].operations = operations;
			engine_devices[found].number = found;
			engine_devices[found].ordinal = ordinal;
		}
		any_gpu = any_gpu || (operations->is_gpu && count > 0);
		if (operations->is_gpu && count == 0)
			engine_no_gpu = none;
	}
	if (any_gpu)
		memset(&engine_no_gpu, 0, sizeof(engine_no_gpu));
	else
		log_line(LOG_NOTE, "no GPU is used, searches run on the CPU: %s%s%s",
				 engine_no_gpu.message, engine_no_gpu.detail[0] ? ": " : "", engine_no_gpu.detail);
	engine_device_count = found;
}

/* Return whether choice auto prefers a GPU to this device.  by_usable: count only GPUs that are usable. */
static bool
is_outranked(const struct device *device, bool by_usable)
{
	for (int i = 0; i < engine_device_count; i++)
		if (engine_devices[i].operations->is_gpu && !device->operations->is_gpu &&
			(!by_usable || atomic_load(&engine_devices[i].usable)))
			return true;
	return false;
}

bool
backends_serves(const struct device *device, enum geonn_device_choice choice)
{
	if (choice == GEONN_DEVICE_AUTO)
		return !is_outranked(device, true);
	return choice == geonn_device_choice_of(device->operations->kind);
}

bool
backends_auto_uses(const struct device *device)
{
	return atomic_load(&device->usable) && backends_serves(device, GEONN_DEVICE_AUTO);
}

bool
backends_fell_back(const struct search *search)
{
	return search->choice == GEONN_DEVICE_AUTO && is_outranked(&engine_devices[search->device], false);
}

/* Return whether this choice allows GPUs alone. */
static bool
means_gpus(enum geonn_device_choice choice)
{
	for (size_t i = 0; i < BACKENDS; i++)
		if (geonn_device_choice_of(backends[i]->kind) == choice)
			return backends[i]->is_gpu;
	return false;
}

bool
backends_can_serve(enum geonn_device_choice choice, struct failure *failure)
{
	for (int i = 0; i < engine_device_count; i++)
		if (atomic_load(&engine_devices[i].usable) && backends_serves(&engine_devices[i], choice))
			return true;
	if (!means_gpus(choice))
		return fail(failure, GEONN_ERROR_NO_DEVICE, "no device can be used");
	fail(failure, GEONN_ERROR_NO_DEVICE, "no GPU can be used");
	fail_detail(failure, "%s", engine_no_gpu.message);
	fail_hint(failure, "%s", engine_no_gpu.hint[0] ?
			  engine_no_gpu.hint :
			  "Set geonn.device to auto or cpu, or make a GPU available to the server.");
	return false;
}
