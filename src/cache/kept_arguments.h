/*
 * kept_arguments.h
 *		What a cache keeps of the arguments that it was made with, as JSON.
 */
#ifndef GEONN_KEPT_ARGUMENTS_H
#define GEONN_KEPT_ARGUMENTS_H

#include "cache/catalog.h"
#include "join/arguments.h"

/*
 * The object of the values, [geonn_argument_count], with which a cache is made.  Raises an error
 * if they have both a radius and arguments of k.
 */
extern Jsonb *geonn_keep_arguments(const NullableDatum *values);

/* The arguments that the cache keeps.  Raises an error for any that are wrong. */
extern GeonnArguments *geonn_kept_arguments(const GeonnCache *cache);

/* The cache's object after these changes, which may also have a key "name", for the caller. */
extern Jsonb *geonn_change_arguments(const GeonnCache *cache, Jsonb *changes);

#endif							/* GEONN_KEPT_ARGUMENTS_H */
