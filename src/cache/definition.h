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
 * The object of the values, [geonn_argument_count], with which a cache is made.  Raises an error
 * if they have both a radius and arguments of k.
 */
extern Jsonb *geonn_keep_arguments(const NullableDatum *values);

/* The arguments that the cache keeps.  Raises an error for any that are wrong. */
extern GeonnArguments *geonn_kept_arguments(const GeonnCache *cache);

/* The cache's object after these changes, which may also have a key "name", for the caller. */
extern Jsonb *geonn_change_arguments(const GeonnCache *cache, Jsonb *changes);

/* The cache's join.  Looks its sources up and locks them as a SELECT does. */
extern GeonnJoin *geonn_cache_join(const GeonnCache *cache);

/*
 * The same for a refresh: an error that a column is missing has the hint to name another one by
 * geonn_cache_alter.
 */
extern GeonnJoin *geonn_cache_join_again(const GeonnCache *cache);

/* The target's columns: a row type for the join, or their definitions for SQL. */
extern TupleDesc geonn_cache_row_type(const GeonnJoin *join);
extern char *geonn_cache_definitions(const GeonnJoin *join);

/* The attribute numbers of these columns in a target, [TARGET_COLUMNS]. */
extern void geonn_target_attributes(Oid target, AttrNumber *attributes);

/* Raise an error unless a primary key can be made of the observations' ids. */
extern void geonn_cache_check_ids(const GeonnJoin *join);

/* Raise the error for an observation's duplicate id, or for a NULL id. */
__attribute__((noreturn))
extern void geonn_cache_raise_duplicate(const GeonnCache *cache, Oid type, Datum id);
__attribute__((noreturn))
extern void geonn_cache_raise_null(const GeonnCache *cache);

#endif							/* GEONN_CACHE_DEFINITION_H */
