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
 * The first columns of a target.  In the target of counts, rank is the number of the radius, from 1 on, and the columns
 * after rank are radius, count and sums.  In that of clusters, cluster and kind come after the id, and no rank does.
 */
typedef enum TargetColumn
{
	TARGET_OBSERVATION_ID,
	TARGET_RANK,
	TARGET_REFERENCE_ID,
	TARGET_DISTANCE,
	TARGET_CLUSTER = TARGET_RANK
} TargetColumn;

/* a target has at most this many columns */
#define TARGET_COLUMNS_MAX 5

/*
 * Make the JSON object that a cache keeps, of the values, [geonn_argument_count], with which it is made.  Sets the
 * arguments of other questions than the cache's own to NULL; raises an error if they do not have their defaults.
 */
extern Jsonb *geonn_keep_arguments(NullableDatum *values);

/* Return the arguments that the cache keeps.  Raises an error about any that is wrong. */
extern GeonnArguments *geonn_kept_arguments(const GeonnCache *cache);

/* Return the object that the cache keeps after these changes.  The caller handles the key "name" of changes. */
extern Jsonb *geonn_change_arguments(const GeonnCache *cache, Jsonb *changes);

/* Make the cache's join: look up its sources, and lock them as a SELECT does. */
extern GeonnJoin *geonn_cache_join(const GeonnCache *cache);

/*
 * Make the cache's join for a refresh.  Unlike geonn_cache_join(), gives the error about a missing column
 * the hint to name another column by geonn_cache_alter().
 */
extern GeonnJoin *geonn_cache_join_again(const GeonnCache *cache);

/* Return the target's columns, as a row type for the join; and as column definitions in SQL. */
extern TupleDesc geonn_cache_row_type(const GeonnJoin *join);
extern char *geonn_cache_definitions(const GeonnJoin *join);

/* Return whether the column, from 0 on, is part of the target's primary key; and that key's columns, with parentheses. */
extern bool geonn_target_is_key(TupleDesc row_type, int column);
extern const char *geonn_target_key(TupleDesc row_type);

/* Find the attribute numbers, in a target, of the columns of a row type, [row_type->natts]. */
extern void geonn_target_attributes(Oid target, TupleDesc row_type, AttrNumber *attributes);

/* Raise an error unless the observations' ids can be part of a primary key. */
extern void geonn_cache_check_ids(const GeonnJoin *join);

/* Raise the error about an id that two observations have; and about an observation whose id is NULL. */
__attribute__((noreturn))
extern void geonn_cache_raise_duplicate(const GeonnCache *cache, Oid type, Datum id);
__attribute__((noreturn))
extern void geonn_cache_raise_null(const GeonnCache *cache);

#endif							/* GEONN_CACHE_DEFINITION_H */
