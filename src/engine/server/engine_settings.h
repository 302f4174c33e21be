/*
 * engine_settings.h
 *		The engine's settings, which its supervisor sends.
 */
#ifndef GEONN_ENGINE_SETTINGS_H
#define GEONN_ENGINE_SETTINGS_H

#include <stdbool.h>

#include "common/protocol.h"

/*
 * Use these settings from now on.  False if one is out of range: then none of
 * them is used, and the log names it.
 */
extern bool engine_settings_use(const struct geonn_configure *configure);

#endif							/* GEONN_ENGINE_SETTINGS_H */
