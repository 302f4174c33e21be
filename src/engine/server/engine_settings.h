/*
 * engine_settings.h
 *		The engine's settings, which its supervisor sends.
 */
#ifndef GEONN_ENGINE_SETTINGS_H
#define GEONN_ENGINE_SETTINGS_H

#include <stdbool.h>

#include "common/protocol.h"

/*
 * Use the settings that the engine begins with.  A supervised one waits for its
 * supervisor's first message, which has them; one that is started by hand has 1 GB for
 * batches, a thread for each core, keeps no dataset, and has no other limit.  False where
 * the supervisor has gone, or sends anything else: the engine ends, and the log says why.
 */
extern bool engine_settings_begin(bool supervised);

/*
 * Use these settings from now on.  False where one is out of range: then none is used, and
 * the log says which it is.
 */
extern bool engine_settings_use(const struct geonn_configure *configure);

#endif							/* GEONN_ENGINE_SETTINGS_H */
