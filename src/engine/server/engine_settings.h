/*
 * engine_settings.h
 *		The engine's settings, which its supervisor sends.
 */
#ifndef GEONN_ENGINE_SETTINGS_H
#define GEONN_ENGINE_SETTINGS_H

#include <stdbool.h>

#include "common/protocol.h"

/*
 * Use the settings that the engine begins with.  A supervised engine waits for
 * its supervisor's first message, which has the settings.  An engine that is
 * started by hand has 1 GB for batches and a thread for each core, keeps no
 * dataset, and has no other limit.  False if the supervisor has gone, or has
 * sent another message: then the caller ends the engine, and the log says why.
 */
extern bool engine_settings_begin(bool supervised);

/*
 * Use these settings from now on.  False if one is out of range: then none of
 * them is used, and the log names it.
 */
extern bool engine_settings_use(const struct geonn_configure *configure);

#endif							/* GEONN_ENGINE_SETTINGS_H */
