/*
 * engine_status.c
 *		Reports the status of the engine and of its devices.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/server/engine_status.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/host.h"
#include "engine/search/backends.h"
#include "engine/server/datasets.h"
#include "engine/server/event_loop.h"
#include "engine/server/gauges.h"
#include "engine/server/session.h"

/* Sessions wait at most this many ms for GPUs' gauges; after that the engine reports them as unknown. */
#define MEASURE_PATIENCE_MS 500

static struct
{
	int64_t		started_at;		/* microseconds since 1970 */
	uint64_t	base_memory;	/* how many bytes were resident before the first session */
	int64_t		measured_by_ms; /* until when sessions wait for gauges that are being read; 0: no session waits */
}			engine;

void
engine_status_open(void)
{
	engine.started_at = unix_us();
}

void
engine_status_note_memory(void)
{
	engine.base_memory = host_memory_resident();
}

/*
 * Write the reason why no GPU is in use: why none was found, or why the last one is unusable.
 * Write "" if a GPU is in use.
 */
static void
no_gpu_reason(char *reason, size_t size)
{
	struct failure why = engine_no_gpu;

	reason[0] = '\0';
	for (int i = 0; i < engine_device_count; i++)
	{
		const struct device *device = &engine_devices[i];

		if (!device->operations->is_gpu)
			continue;
		if (atomic_load(&device->usable))
			return;
		why = scheduler_why_unusable(device);
	}
	if (why.detail[0])
		snprintf(reason, size, "%.120s: %.120s", why.message, why.detail);
	else
		snprintf(reason, size, "%s", why.message);
}

static bool
send_device_status(int socket, struct device *device)
{
	bool		usable = atomic_load(&device->usable);
	const struct device_operations *operations = device->operations;
	struct gauges gauges = gauges_of(device->number);
	struct geonn_device_status status = {
		.number = (uint32_t) device->number,
		.kind = operations->kind,
		.state = usable ? GEONN_DEVICE_READY : GEONN_DEVICE_FAILED,
		.in_use_by_auto = backends_auto_uses(device),
		.capability_major = device->capability_major,
		.capability_minor = device->capability_minor,
		.threads = operations->threads != NULL ? operations->threads() : 0,
		.utilization = gauges.utilization,
		.temperature = gauges.temperature,
		.power = gauges.power,
		.memory_total = device->memory_total,
		.memory_free = usable ? operations->memory_free(device) : 0,
		.batches = atomic_load(&device->batches)
	};

	memcpy(status.name, device->name, sizeof(status.name));
	memcpy(status.uuid, device->uuid, sizeof(status.uuid));
	if (!usable)
	{
		struct failure why = scheduler_why_unusable(device);

		memcpy(status.reason, why.message, sizeof(status.reason));
	}
	return geonn_channel_send(socket, GEONN_DEVICE_STATUS, &status, -1) == GEONN_CHANNEL_OK;
}

bool
engine_status_send(int socket)
{
	struct geonn_engine_status status = {
		.pid = getpid(),
		.devices = (uint32_t) engine_device_count,
		.queued = admission_queued(NULL),
		.idle = session_count_idle(),
		.base_memory = engine.base_memory,
		.started_at = engine.started_at,
		.release = GEONN_VERSION
	};

	for (const struct session *session = session_first(); session != NULL; session = session->next)
	{
		if (session->dataset != NULL)
			status.sessions++;
		for (int i = 0; i < GEONN_RING_SLOTS; i++)
			status.searches += session->slots[i].busy;
	}
	datasets_report(&status);
	batch_memory_report(&status);
	no_gpu_reason(status.no_gpu_reason, sizeof(status.no_gpu_reason));
	if (geonn_channel_send(socket, GEONN_ENGINE_STATUS, &status, -1) != GEONN_CHANNEL_OK)
		return false;
	for (int i = 0; i < engine_device_count; i++)
		if (!send_device_status(socket, &engine_devices[i]))
			return false;
	return true;
}

bool
engine_status_measure(void)
{
	if (!gauges_begin_reading())
		return false;
	if (engine.measured_by_ms == 0)
		engine.measured_by_ms = now_ms() + MEASURE_PATIENCE_MS;
	return true;
}

bool
engine_status_is_measured(void)
{
	if (engine.measured_by_ms == 0 ||
		!(gauges_are_read() || now_ms() >= engine.measured_by_ms))
		return false;
	engine.measured_by_ms = 0;
	return true;
}

int
engine_status_measured_within_ms(void)
{
	int64_t		left = engine.measured_by_ms - now_ms();

	if (engine.measured_by_ms == 0)
		return -1;
	return left > 0 ? (int) left : 0;
}
