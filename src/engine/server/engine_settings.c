/*
 * engine_settings.c
 *		The engine's settings, which its supervisor sends.
 *
 * The command line says where the engine listens, and has no setting.  All of them come
 * in the message configure: when the engine starts, and again when one of them changes.
 * A setting is a field of that message (protocol.h), a line of the table below, and what
 * the supervisor fills in.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/server/engine_settings.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/channel.h"
#include "engine/base/log.h"
#include "engine/base/thread_pool.h"
#include "engine/search/scheduler.h"
#include "engine/server/admission.h"
#include "engine/server/batch_memory.h"
#include "engine/server/datasets.h"
#include "engine/server/idle.h"

/* how many bytes batches may take in an engine that is started by hand */
#define TRANSFER_BYTES (UINT64_C(1) << 30)

static const struct
{
	const char *name;
	size_t		place;			/* offset of the setting in struct geonn_configure */
	uint64_t	most;			/* the range is 0 ... most */
	void		(*use) (uint64_t value);
}			settings[] = {
#define SETTING(name, most, use) {#name, offsetof(struct geonn_configure, name), most, use}
	SETTING(cpu_threads, GEONN_CPU_THREADS_MAX, thread_pool_set_threads),
	SETTING(max_sessions, INT32_MAX, admission_set_limit),
	SETTING(transfer_memory_limit, INT64_MAX, batch_memory_set_limit),
	SETTING(idle_session_timeout, INT32_MAX, idle_set_timeout),
	SETTING(gpu_memory_limit, INT64_MAX, scheduler_set_gpu_memory_limit),
	SETTING(kept_memory_limit, INT64_MAX, datasets_set_kept_limit)
#undef SETTING
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

_Static_assert(sizeof(struct geonn_configure) ==
			   sizeof(struct geonn_header) + SETTINGS * sizeof(uint64_t),
			   "each setting of the message has a line of the table");

static uint64_t
value_of(const struct geonn_configure *configure, size_t setting)
{
	uint64_t	value;

	memcpy(&value, (const char *) configure + settings[setting].place, sizeof(value));
	return value;
}

bool
engine_settings_use(const struct geonn_configure *configure)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (value_of(configure, i) > settings[i].most)
		{
			log_line(LOG_ERROR, "the supervisor sent %llu as %s, whose maximum is %llu",
					 (unsigned long long) value_of(configure, i), settings[i].name,
					 (unsigned long long) settings[i].most);
			return false;
		}
	for (size_t i = 0; i < SETTINGS; i++)
		settings[i].use(value_of(configure, i));
	return true;
}

/*
 * Wait for the first message.  If the supervisor speaks another version of the
 * protocol, send pong: the supervisor finds the engine's version there, and
 * ends the engine.
 */
static bool
receive_first(union geonn_message *message)
{
	struct geonn_ping version = {.number = 0};
	enum geonn_channel_status status;

	do
	{
		struct pollfd wait = {.fd = GEONN_SUPERVISOR_DESCRIPTOR,.events = POLLIN};

		if (poll(&wait, 1, -1) < 0 && errno != EINTR)
		{
			log_line(LOG_ERROR, "could not wait for the supervisor: %s", strerror(errno));
			return false;
		}
		status = geonn_channel_receive(GEONN_SUPERVISOR_DESCRIPTOR, message, NULL);
		if (status == GEONN_CHANNEL_OTHER_VERSION)
			geonn_channel_send(GEONN_SUPERVISOR_DESCRIPTOR, GEONN_PONG, &version, -1);
	} while (status == GEONN_CHANNEL_AGAIN || status == GEONN_CHANNEL_OTHER_VERSION);
	if (status == GEONN_CHANNEL_MALFORMED)
		log_line(LOG_ERROR, "the supervisor sent a malformed message");
	else if (status == GEONN_CHANNEL_FAILED)
		log_line(LOG_ERROR, "could not receive from the supervisor: %s", strerror(errno));
	return status == GEONN_CHANNEL_OK;
}

bool
engine_settings_begin(bool supervised)
{
	const struct geonn_configure by_hand = {.transfer_memory_limit = TRANSFER_BYTES};
	union geonn_message message;

	if (!supervised)
		return engine_settings_use(&by_hand);
	if (!receive_first(&message))
		return false;
	if (message.header.type != GEONN_CONFIGURE)
	{
		log_line(LOG_ERROR, "the supervisor's first message has no settings");
		return false;
	}
	return engine_settings_use(&message.configure);
}
