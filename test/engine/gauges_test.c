/*
 * gauges_test.c
 *		What the engine learns of GPUs' gauges, from a library that answers as NVML
 *		does (fake_nvml.c), which lies beside this program.
 *
 * rooms: engine/server
 */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/search/backends.h"
#include "engine/server/event_loop.h"
#include "engine/server/gauges.h"
#include "../lib/verdict.h"

static const struct device_operations cpu_operations = {.kind = GEONN_KIND_CPU};
static const struct device_operations gpu_operations = {.kind = GEONN_KIND_CUDA,.is_gpu = true};

struct device engine_devices[GEONN_DEVICES_MAX] = {
	{.operations = &cpu_operations,.usable = true},
	{.operations = &gpu_operations,.usable = true,.uuid = "GPU-00000000-0000-0000-0000-000000000001"},
	{.operations = &gpu_operations,.usable = true,.uuid = "GPU-00000000-0000-0000-0000-000000000002"},
	{.operations = &gpu_operations,.usable = true,.uuid = "GPU-00000000-0000-0000-0000-000000000003"},
	{.operations = &gpu_operations,.usable = true,.uuid = "GPU-00000000-0000-0000-0000-000000000004"},
	{.operations = &gpu_operations,.usable = false,.uuid = "GPU-00000000-0000-0000-0000-000000000001"}
};
int			engine_device_count = 6;

static atomic_int readings;

/* a reading is over */
void
event_loop_wake(void)
{
	atomic_fetch_add(&readings, 1);
}

/*
 * Wait until so many readings are over.
 */
static bool
wait_for(int count)
{
	for (int i = 0; i < 120000 && atomic_load(&readings) < count; i++)
		usleep(1000);
	return atomic_load(&readings) == count && gauges_are_read();
}

static bool
has(int number, int32_t utilization, int32_t temperature, int32_t power)
{
	struct gauges gauges = gauges_of(number);

	return gauges.utilization == utilization && gauges.temperature == temperature &&
		gauges.power == power;
}

int
main(void)
{
	bool		right = true;

	report("nothing is known before it is asked for",
		   gauges_are_read() &&
		   has(1, GEONN_UNKNOWN, GEONN_UNKNOWN, GEONN_UNKNOWN));
	right = gauges_begin_reading() && !gauges_are_read() &&
		has(1, GEONN_UNKNOWN, GEONN_UNKNOWN, GEONN_UNKNOWN);
	right = right && gauges_begin_reading();
	report("a reading takes its time, and no client waits for it", right);
	report("a client that asks meanwhile shares it", wait_for(1));
	report("a GPU's gauges are NVML's", has(1, 97, 41, 71500));
	report("an instance's are those of its GPU, as far as that has any",
		   has(2, GEONN_UNKNOWN, 42, 143000));
	report("what cannot be is not known", has(3, GEONN_UNKNOWN, GEONN_UNKNOWN, GEONN_UNKNOWN));
	right = has(0, GEONN_UNKNOWN, GEONN_UNKNOWN, GEONN_UNKNOWN) &&
		has(4, GEONN_UNKNOWN, GEONN_UNKNOWN, GEONN_UNKNOWN) &&
		has(5, GEONN_UNKNOWN, GEONN_UNKNOWN, GEONN_UNKNOWN);
	report("nor what NVML does not know, or cannot be used", right);
	right = gauges_begin_reading() && wait_for(2);
	report("a later reading finds them again", right && has(1, 97, 41, 71500));
	return summed_up();
}
