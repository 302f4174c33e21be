/*
 * gauges.c
 *		Reads GPUs' gauges: utilisation, temperature, power.
 *
 * Gauges come from NVML, the library of NVIDIA's driver that nvidia-smi uses,
 * too.  The engine loads NVML when a client first asks for gauges, so neither
 * the build nor the start needs it; where it is missing, gauges are unknown.
 * CUDA and NVML number GPUs differently, and CUDA_VISIBLE_DEVICES hides some
 * GPUs from CUDA alone, so the engine finds a GPU by its UUID.  If a GPU is
 * divided (MIG), each instance has a UUID of its own, but temperature and
 * power only exist for the whole GPU: these are shown, and the utilisation is
 * unknown.
 *
 * A call into the driver can take long, or never return.  So each reading has
 * a thread of its own, one at a time, and no other thread has to wait for it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/server/gauges.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "engine/search/backends.h"
#include "engine/server/event_loop.h"

/* types as in nvml.h; 0 is success for every function */
typedef struct nvmlDevice_st *nvml_device;

struct nvml_utilization
{
	unsigned	gpu;			/* percent */
	unsigned	memory;
};

#define NVML_TEMPERATURE_GPU 0

static struct
{
	int			(*initialize) (void);
	int			(*device_by_uuid) (const char *uuid, nvml_device *device);
	int			(*device_of_instance) (nvml_device instance, nvml_device *device);
	int			(*utilization) (nvml_device device, struct nvml_utilization *utilization);
	int			(*temperature) (nvml_device device, int sensor, unsigned *celsius);
	int			(*power) (nvml_device device, unsigned *milliwatts);
}			nvml;				/* functions of NVML, used by the reading thread alone; NULL: this NVML lacks the
								 * function */

static struct
{
	pthread_mutex_t lock;

	/* guarded by lock */
	bool		under_way;
	bool		is_known;		/* a reading is over */
	struct gauges gauges[GEONN_DEVICES_MAX];
}			state = {
	.lock = PTHREAD_MUTEX_INITIALIZER
};

static const struct gauges nothing_known = {GEONN_UNKNOWN, GEONN_UNKNOWN, GEONN_UNKNOWN};

/*
 * Look a function up.  `function` is the address of a pointer: C does not allow assigning a void *
 * to a pointer to a function.
 */
static void
find_function(void *library, const char *name, void *function)
{
	void	   *address = dlsym(library, name);

	memcpy(function, &address, sizeof(address));
}

/*
 * Return whether NVML answers.  The library is loaded once; while that fails, each reading tries
 * again, because a driver can be installed, and loaded, later.
 */
static bool
open_library(void)
{
	static bool is_open;
	void	   *library;

	if (is_open)
		return true;
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return false;
	find_function(library, "nvmlInit_v2", &nvml.initialize);
	find_function(library, "nvmlDeviceGetHandleByUUID", &nvml.device_by_uuid);
	find_function(library, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
				  &nvml.device_of_instance);
	find_function(library, "nvmlDeviceGetUtilizationRates", &nvml.utilization);
	find_function(library, "nvmlDeviceGetTemperature", &nvml.temperature);
	find_function(library, "nvmlDeviceGetPowerUsage", &nvml.power);
	is_open = nvml.initialize != NULL && nvml.device_by_uuid != NULL && nvml.initialize() == 0;
	if (!is_open)
		dlclose(library);
	return is_open;
}

/* Find the GPU with this UUID, as CUDA reports it; or the GPU one of whose MIG instances has the UUID. */
static bool
find_gpu(const char *uuid, nvml_device *gpu)
{
	char		instance_uuid[sizeof(((struct device *) NULL)->uuid)];
	nvml_device instance;

	if (strncmp(uuid, "GPU-", 4) != 0)
		return false;
	if (nvml.device_by_uuid(uuid, gpu) == 0)
		return true;
	snprintf(instance_uuid, sizeof(instance_uuid), "MIG-%s", uuid + 4);
	return nvml.device_of_instance != NULL &&
		nvml.device_by_uuid(instance_uuid, &instance) == 0 &&
		nvml.device_of_instance(instance, gpu) == 0;
}

/* Return a value as a gauge; GEONN_UNKNOWN if it is greater than `most`. */
static int32_t
gauge(unsigned value, unsigned most)
{
	return value <= most ? (int32_t) value : GEONN_UNKNOWN;
}

static struct gauges
read_gpu(const struct device *device)
{
	struct gauges gauges = nothing_known;
	struct nvml_utilization utilization = {0};
	unsigned	celsius = 0;
	unsigned	milliwatts = 0;
	nvml_device gpu;

	if (!find_gpu(device->uuid, &gpu))
		return gauges;
	if (nvml.utilization != NULL && nvml.utilization(gpu, &utilization) == 0)
		gauges.utilization = gauge(utilization.gpu, 100);
	if (nvml.temperature != NULL && nvml.temperature(gpu, NVML_TEMPERATURE_GPU, &celsius) == 0)
		gauges.temperature = gauge(celsius, 1000);
	if (nvml.power != NULL && nvml.power(gpu, &milliwatts) == 0)
		gauges.power = gauge(milliwatts, 100000000);
	return gauges;
}

static void *
reading_main(void *argument)
{
	struct gauges gauges[GEONN_DEVICES_MAX];

	(void) argument;
	for (int i = 0; i < engine_device_count; i++)
	{
		const struct device *device = &engine_devices[i];

		/* a device that is not usable may not know its UUID yet */
		gauges[i] = nothing_known;
		if (device->operations->is_gpu && atomic_load(&device->usable) &&
			open_library())
			gauges[i] = read_gpu(device);
	}

	pthread_mutex_lock(&state.lock);
	memcpy(state.gauges, gauges, (size_t) engine_device_count * sizeof(*gauges));
	state.is_known = true;
	state.under_way = false;
	pthread_mutex_unlock(&state.lock);
	event_loop_wake();
	return NULL;
}

bool
gauges_begin_reading(void)
{
	pthread_t	thread;
	bool		begun;

	if (!gauges_are_read())
		return true;
	pthread_mutex_lock(&state.lock);
	state.is_known = false;
	begun = state.under_way = pthread_create(&thread, NULL, reading_main, NULL) == 0;
	pthread_mutex_unlock(&state.lock);
	if (begun)
		pthread_detach(thread);
	return begun;
}

bool
gauges_are_read(void)
{
	bool		under_way;

	pthread_mutex_lock(&state.lock);
	under_way = state.under_way;
	pthread_mutex_unlock(&state.lock);
	return !under_way;
}

struct gauges
gauges_of(int device_number)
{
	struct gauges gauges;

	pthread_mutex_lock(&state.lock);
	gauges = state.is_known ? state.gauges[device_number] : nothing_known;
	pthread_mutex_unlock(&state.lock);
	return gauges;
}
