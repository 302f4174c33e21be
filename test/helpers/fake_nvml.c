/*
 * fake_nvml.c
 *		A library that answers as NVML does, for gauges_test.
 *
 * The library knows one GPU, one that is divided, and one whose answers make no sense.
 * A handle is the place in the list of UUIDs, plus 1; an instance's has INSTANCE added.
 */
#include <string.h>
#include <unistd.h>

#define SUCCESS			0
#define NOT_SUPPORTED	3
#define NOT_FOUND		6
#define INSTANCE		100

static const char *const uuids[] = {
	"GPU-00000000-0000-0000-0000-000000000001",
	"MIG-00000000-0000-0000-0000-000000000002",
	"GPU-00000000-0000-0000-0000-000000000003"
};

struct utilization
{
	unsigned	gpu;
	unsigned	memory;
};

extern int	nvmlInit_v2(void);
extern int	nvmlDeviceGetHandleByUUID(const char *uuid, long *device);
extern int	nvmlDeviceGetDeviceHandleFromMigDeviceHandle(long instance, long *device);
extern int	nvmlDeviceGetUtilizationRates(long device, struct utilization *utilization);
extern int	nvmlDeviceGetTemperature(long device, int sensor, unsigned *celsius);
extern int	nvmlDeviceGetPowerUsage(long device, unsigned *milliwatts);

static int	initialized;

int
nvmlInit_v2(void)
{
	initialized++;
	return SUCCESS;
}

int
nvmlDeviceGetHandleByUUID(const char *uuid, long *device)
{
	if (initialized != 1)
		return NOT_SUPPORTED;
	for (long i = 0; i < 3; i++)
		if (strcmp(uuid, uuids[i]) == 0)
		{
			*device = i + 1 + (uuid[0] == 'M' ? INSTANCE : 0);
			return SUCCESS;
		}
	return NOT_FOUND;
}

int
nvmlDeviceGetDeviceHandleFromMigDeviceHandle(long instance, long *device)
{
	*device = instance - INSTANCE;
	return instance > INSTANCE ? SUCCESS : NOT_FOUND;
}

int
nvmlDeviceGetUtilizationRates(long device, struct utilization *utilization)
{
	/* a driver takes its time */
	usleep(100000);
	utilization->gpu = device == 1 ? 97 : 4000000000u;
	utilization->memory = 3;
	return device == 2 ? NOT_SUPPORTED : SUCCESS;
}

int
nvmlDeviceGetTemperature(long device, int sensor, unsigned *celsius)
{
	*celsius = device == 3 ? 4000000000u : 40 + (unsigned) device;
	return sensor == 0 ? SUCCESS : NOT_SUPPORTED;
}

int
nvmlDeviceGetPowerUsage(long device, unsigned *milliwatts)
{
	*milliwatts = device == 3 ? 4000000000u : (unsigned) device * 71500;
	return device > INSTANCE ? NOT_SUPPORTED : SUCCESS;
}
