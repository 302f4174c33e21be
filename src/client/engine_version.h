/*
 * engine_version.h
 *		An engine of another version than this session's module, and what ends
 *		that.
 */
#ifndef GEONN_ENGINE_VERSION_H
#define GEONN_ENGINE_VERSION_H

#include <sys/types.h>

/*
 * Raise the error for this engine; release is its version, empty where it did
 * not tell.
 */
extern void geonn_raise_other_version(const char *release, pid_t engine)
			__attribute__((noreturn));

#endif							/* GEONN_ENGINE_VERSION_H */
