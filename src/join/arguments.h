/*
 * arguments.h
 *		The arguments of geonn_nearest() and its siblings, by name.
 */
#ifndef GEONN_ARGUMENTS_H
#define GEONN_ARGUMENTS_H

#include "fmgr.h"
#include "nodes/primnodes.h"
#include "utils/array.h"

#include "join/join.h"
#include "points/options.h"

typedef enum GeonnFunction
{
	GEONN_NEAREST,
	GEONN_NEAREST_SQL,
	GEONN_WITHIN,
	GEONN_WITHIN_SQL,
	GEONN_NEAREST_POINTS,
	GEONN_CACHE_CREATE,
	GEONN_CACHE,				/* what a cache keeps of these */
	GEONN_SHARD_DDL
} GeonnFunction;

/* when a refresh puts a new table's files in the place of a cache's table's */
typedef enum GeonnReplace
{
	GEONN_REPLACE_AUTO,			/* when most rows differ, and only speed tells */
	GEONN_REPLACE_NEVER,
	GEONN_REPLACE_ALWAYS		/* in each full refresh */
} GeonnReplace;

/* the arguments of one call; 0 where the function lacks the argument, or its value is NULL */
typedef struct GeonnArguments
{
	GeonnFunction function;
	const char *function_name;
	GeonnJoin  *join;			/* what is asked; without sources and label */
	char	   *name;			/* of a cache */
	Oid			obs;
	Oid			ref;
	char	   *obs_sql;
	char	   *ref_sql;
	ArrayType  *latitudes;		/* of float8, with any dimensions and NULLs */
	ArrayType  *longitudes;
	List	   *by;				/* of char *: column names or pairs of them, each once */
	List	   *overlaps;		/* likewise; at most GEONN_WINDOWS_MAX */
	ArrayType  *windows;		/* of any type, with any dimensions and NULLs */
	GeonnOptions options;
	char	   *target;			/* the name of a cache's table */
	GeonnReplace replace;
	char	   *text;			/* "k => 3, ...": those with other values than their defaults,
								 * without sources */
} GeonnArguments;

/* what each row of the table says of its argument, in bits: one of the first two, and any of the others */
typedef enum GeonnArgumentTrait
{
	/* a plan node that takes the observations from elsewhere honours any value (plan/own_rows.c) */
	GEONN_OWN_ANY = 1 << 0,
	GEONN_OWN_DEFAULT = 1 << 1,	/* it honours the default alone */

	GEONN_OF_K = 1 << 2,	/* of a cache or of shards with the k nearest references */
	GEONN_OF_RADIUS = 1 << 3	/* of those with all references within a radius */
} GeonnArgumentTrait;

/* a row of the table */
typedef struct GeonnArgument GeonnArgument;

struct GeonnArgument
{
	const char *name;
	int			functions;		/* a bit for each GeonnFunction that has it */
	int			traits;			/* of GeonnArgumentTrait */
	Oid			type;

	/* the default, as the type's output function writes it; NULL: NULL, or it has none */
	const char *standard;

	/* what it is, where NULL is an error; NULL: NULL is as good as the default */
	const char *hint;

	bool		is_shown;		/* texts show the value, unless it is the default */
	size_t		offset;			/* where the value is kept, from the beginning of the arguments */
	const struct config_enum_entry *words;	/* the values that a text may have */

	/* check a value, and keep it; NULL: keep it as it is */
	void		(*read) (const GeonnArgument *argument, Datum value, GeonnArguments *arguments);
};

extern const GeonnArgument geonn_arguments[];
extern const int geonn_argument_count;

extern bool geonn_argument_has(const GeonnArgument *argument, GeonnFunction function);

/*
 * A cache has the k nearest references, or all within a radius: is the argument of the one
 * question, and not of the other?
 */
extern bool geonn_argument_of_k(const GeonnArgument *argument);
extern bool geonn_argument_of_radius(const GeonnArgument *argument);

/* Is the value the default, or as good as that? */
extern bool geonn_argument_is_default(const GeonnArgument *argument, NullableDatum value);

/*
 * The values that the function is called with, [geonn_argument_count], in the current memory
 * context; NULL where it has no such argument.  Raises an error where one must not be NULL.
 */
extern NullableDatum *geonn_arguments_called(FunctionCallInfo fcinfo, GeonnFunction function);

/*
 * Read values, of which NULL means the default, in the current memory context.  Raises an error
 * for one that is unknown or out of range.
 */
extern GeonnArguments *geonn_arguments_read(GeonnFunction function, const NullableDatum *values);

/*
 * The argument of this name in the expression of a function; NULL: the function has none, or
 * one of another type.
 */
extern Node *geonn_expression_argument(const FuncExpr *expression, const char *name);

/* The relation or query of either side; NULL: an array. */
extern Node *geonn_expression_observations(const FuncExpr *expression);
extern Node *geonn_expression_references(const FuncExpr *expression);

#endif							/* GEONN_ARGUMENTS_H */
