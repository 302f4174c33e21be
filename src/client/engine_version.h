/*
 * engine_version.h
 *		The error that the engine has another version than this session's
 *		module, with the hint that mends it.
 */
#ifndef GEONN_ENGINE_VERSION_H
#define GEONN_ENGINE_VERSION_H

#include <sys/types.h>

/*
 * Raise the error that this engine has another version.  `release` is the engine's version, or empty
 * if the engine sent none.
 */
extern void geonn_raise_other_version(const char *release, pid_t engine)
			__attribute__((noreturn));

#endif							/* GEONN_ENGINE_VERSION_H */
