/*
 * definition.h
 *		What a cache asks, as the arguments that it keeps and as a join; and the columns that its table
 *		has for it.
 */
#ifndef GEONN_CACHE_DEFINITION_H
#define GEONN_CACHE_DEFINITION_H

#include "cache/catalog.h"
#include "join/arguments.h"

/*
 * The first columns of a target.  One of counts has the number of the radius as rank, from 1 on, and then radius, count and
 * sums in place of the last two.
 */
typedef enum TargetColumn
{
	TARGET_OBSERVATION_ID,
	TARGET_RANK,
	TARGET_REFERENCE_ID,
	TARGET_DISTANCE
} TargetColumn;

/* the greatest number of columns of a target */
#define TARGET_COLUMNS_MAX 5

/*
 * The JSON object that a cache keeps of the values, [geonn_argument_count], with which it is made.  Sets the arguments of
 * other questions than the cache's to NULL; raises an error if these are not the defaults.
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

/* The attribute numbers of the columns of a row type in a target, [row_type->natts]. */
extern void geonn_target_attributes(Oid target, TupleDesc row_type, AttrNumber *attributes);

/* Raise an error unless the observations' ids can be part of a primary key. */
extern void geonn_cache_check_ids(const GeonnJoin *join);

/* Raise the error about an id that two observations have, or about an observation whose id is NULL. */
__attribute__((noreturn))
extern void geonn_cache_raise_duplicate(const GeonnCache *cache, Oid type, Datum id);
__attribute__((noreturn))
extern void geonn_cache_raise_null(const GeonnCache *cache);

#endif							/* GEONN_CACHE_DEFINITION_H */
