/*
 * array_argument.h
 *		Arrays of names and texts that the functions of this room are given.
 */
#ifndef GEONN_SHARD_ARRAY_ARGUMENT_H
#define GEONN_SHARD_ARRAY_ARGUMENT_H

#include "fmgr.h"

typedef struct ShardArray
{
	const char *argument;		/* its name */
	const char *hint;			/* what to give */
	char	  **elements;		/* [count]; NULL: a NULL */
	int			count;
} ShardArray;

/*
 * The elements of an array of names or texts, in the current memory context.  argument and hint are
 * for messages, and stay the caller's.  Raises an error if it has several dimensions.
 */
extern ShardArray *geonn_shard_array(Datum array, const char *argument, const char *hint);

/* Raise an error if an element is NULL. */
extern void geonn_check_no_nulls(const ShardArray *array);

/*
 * An element, other than NULL, as a value of this type, in the current memory context.  Raises an error
 * that names the argument if it is none.
 */
extern Datum geonn_element_value(const ShardArray *array, int element, Oid type, int32 modifier);

#endif							/* GEONN_SHARD_ARRAY_ARGUMENT_H */
