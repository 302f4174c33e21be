/*
 * definition.h
 *		What a cache asks, as the arguments that it keeps and as a join; and the columns that its table
 *		has for it.
 */
#ifndef GEONN_CACHE_DEFINITION_H
#define GEONN_CACHE_DEFINITION_H

#include "cache/catalog.h"
#include "join/arguments.h"

/* the columns of a target, in this order */
typedef enum TargetColumn
{
	TARGET_OBSERVATION_ID,
	TARGET_RANK,
	TARGET_REFERENCE_ID,
	TARGET_DISTANCE
} TargetColumn;

#define TARGET_COLUMNS 4

/*
 * The JSON object that a cache keeps of the values, [geonn_argument_count], with which it is made.  If they
 * have a radius, sets the arguments of k to NULL; raises an error if these are not the defaults.
 */
extern Jsonb *geonn_keep_arguments(NullableDatum *values);

/* The arguments that the cache keeps.  Raises an error for any that are wrong. */
extern GeonnArguments *geonn_kept_arguments(const GeonnCache *cache);

/* The object that the cache keeps, after these changes; their key "name" is left to the caller. */
extern Jsonb *geonn_change_arguments(const GeonnCache *cache, Jsonb *changes);

/* The cache's join.  Looks its sources up and locks them as a SELECT does. */
extern GeonnJoin *geonn_cache_join(const GeonnCache *cache);

/*
 * The cache's join for a refresh: as geonn_cache_join, but an error about a missing column has the hint to
 * name another column by geonn_cache_alter.
 */
extern GeonnJoin *geonn_cache_join_again(const GeonnCache *cache);

/* The target's columns, as a row type for the join, and as definitions in SQL. */
extern TupleDesc geonn_cache_row_type(const GeonnJoin *join);
extern char *geonn_cache_definitions(const GeonnJoin *join);

/* The attribute numbers of these columns in a target, [TARGET_COLUMNS]. */
extern void geonn_target_attributes(Oid target, AttrNumber *attributes);

/* Raise an error unless the observations' ids can be part of a primary key. */
extern void geonn_cache_check_ids(const GeonnJoin *join);

/* Raise the error about an id that two observations have, or about an observation whose id is NULL. */
__attribute__((noreturn))
extern void geonn_cache_raise_duplicate(const GeonnCache *cache, Oid type, Datum id);
__attribute__((noreturn))
extern void geonn_cache_raise_null(const GeonnCache *cache);

#endif							/* GEONN_CACHE_DEFINITION_H */
