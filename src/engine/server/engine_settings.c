/*
 * engine_settings.c
 *		The engine's settings, which its supervisor sends.
 *
 * The command line says where the engine listens, and has no setting.  All of them come
 * in the message configure: when the engine starts, and again when one of them changes.
 * A setting is a field of that message (protocol.h), a line of the table below, and what
 * the supervisor fills in.
 */
#include "engine/server/engine_settings.h"

#include <stddef.h>
#include <string.h>

#include "engine/base/log.h"
#include "engine/base/thread_pool.h"
#include "engine/search/scheduler.h"
#include "engine/server/admission.h"
#include "engine/server/batch_memory.h"
#include "engine/server/datasets.h"
#include "engine/server/session.h"

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
	SETTING(idle_session_timeout, INT32_MAX, session_set_idle_timeout),
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
