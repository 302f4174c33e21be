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
	GEONN_WITHIN_COUNT,
	GEONN_WITHIN_COUNT_SQL,
	GEONN_WITHIN_COUNT_POINTS,
	GEONN_CLUSTER,
	GEONN_CLUSTER_SQL,
	GEONN_THIN,
	GEONN_THIN_SQL,
	GEONN_ASSIGN,
	GEONN_ASSIGN_SQL,
	GEONN_CACHE_CREATE,
	GEONN_CACHE,				/* the arguments that a cache keeps; no function has this number */
	GEONN_SHARD_DDL
} GeonnFunction;

/* When a refresh swaps in a new table's files, instead of updating rows of the cache. */
typedef enum GeonnReplace
{
	GEONN_REPLACE_AUTO,			/* when most rows are expected to differ, and nothing prevents the swap */
	GEONN_REPLACE_NEVER,
	GEONN_REPLACE_ALWAYS		/* in each full refresh */
} GeonnReplace;

/* how the rows of a table are divided among shards */
typedef enum GeonnPartitioning
{
	GEONN_PARTITION_BY_HASH,
	GEONN_PARTITION_BY_LIST,
	GEONN_PARTITION_BY_RANGE
} GeonnPartitioning;

/* The arguments of one call.  A field is 0 if the function does not have the argument, or if its value is NULL. */
typedef struct GeonnArguments
{
	GeonnFunction function;
	const char *function_name;
	GeonnJoin  *join;			/* the question and the flags; the sources and the label are not set yet */
	char	   *name;			/* the name of a cache */
	Oid			obs;
	Oid			ref;
	char	   *obs_sql;
	char	   *ref_sql;
	ArrayType  *latitudes;		/* of float8; may have any number of dimensions, and NULLs */
	ArrayType  *longitudes;
	List	   *by;				/* of char *: names of columns, or pairs of names, each once */
	List	   *differs;		/* of char *: names or pairs, each once; at most GEONN_PARTIES_MAX */
	List	   *overlaps;		/* of char *: names or pairs, each once; at most GEONN_WINDOWS_MAX */
	ArrayType  *windows;		/* of any type; may have any number of dimensions, and NULLs */
	List	   *weights;		/* of char *: column names, each once; at most GEONN_WEIGHTS_MAX */
	char	   *capacity_column;
	GeonnOptions options;
	char	   *target;			/* the name of a cache's table */
	GeonnReplace replace;
	ArrayType  *servers;		/* of names: the foreign servers of the shards */
	char	   *coordinator;	/* the connection string by which shards reach the coordinator */
	int			sharded;		/* the side that shards divide: 0 the observations, 1 the references */
	GeonnPartitioning partition_by;
	char	   *key;			/* the column that divides the table */
	int			partitions;
	ArrayType  *bounds;			/* of texts */
	char	   *view;			/* the name of the join's view */
	bool		cache;			/* each shard keeps the answer in a cache */
	char	   *schedule;		/* the schedule of the shards' caches */
	ArrayType  *readers;		/* the roles that may read the views */
	char	   *text;			/* "k => 3, ...": the arguments with values other than their defaults, without the
								 * sources */
} GeonnArguments;

/* Bits of an argument in geonn_arguments: one of the first two, and any of the others. */
typedef enum GeonnArgumentTrait
{
	/* the plan node that reads observations from outer rows takes any value of the argument (plan/own_rows.c) */
	GEONN_OWN_ANY = 1 << 0,
	GEONN_OWN_DEFAULT = 1 << 1,	/* the plan node takes only the default */

	/*
	 * Caches and shards have an argument with bits GEONN_OF_... only if they ask one of those questions; an argument
	 * with none of the bits, always.
	 */
	GEONN_OF_K = 1 << 2,		/* for the k nearest references */
	GEONN_OF_RADIUS = 1 << 3,	/* for all references within a radius */
	GEONN_OF_RADII = 1 << 4,	/* for how many are within radii */
	GEONN_OF_CLUSTERS = 1 << 5, /* for clusters of one relation's points */

	GEONN_ASKS = 1 << 6			/* the argument, where it is given, asks the first of its questions */
} GeonnArgumentTrait;

#define GEONN_OF_TWO_SIDES	(GEONN_OF_K | GEONN_OF_RADIUS | GEONN_OF_RADII)
#define GEONN_OF_QUESTIONS	(GEONN_OF_TWO_SIDES | GEONN_OF_CLUSTERS)

/* A row of the table geonn_arguments: one argument, of one or more functions. */
typedef struct GeonnArgument GeonnArgument;

struct GeonnArgument
{
	const char *name;
	int			functions;		/* one bit for each GeonnFunction that has the argument */
	int			traits;			/* bits of GeonnArgumentTrait */
	Oid			type;

	/* the default, as the type's output function writes it; NULL: the default is NULL, or the argument has none */
	const char *standard;

	/* the hint of the error about a NULL; NULL: a NULL stands for the default */
	const char *hint;

	bool		is_shown;		/* text shows the value unless it is the default */
	size_t		offset;			/* the offset of the value in ReadArguments */
	const struct config_enum_entry *words;	/* the values that a text may have */

	/* check a value and store it; NULL: store the value as it is */
	void		(*read) (const GeonnArgument *argument, Datum value, GeonnArguments *arguments);
};

extern const GeonnArgument geonn_arguments[];
extern const int geonn_argument_count;

extern bool geonn_argument_has(const GeonnArgument *argument, GeonnFunction function);

/*
 * Return the bits GEONN_OF_... of the questions that an argument belongs to; 0: all questions.  Caches and shards
 * ask for the k nearest references, or for all within a radius; caches may also ask how many are within radii, or for clusters.
 */
extern int	geonn_argument_questions(const GeonnArgument *argument);

/* Return the question that the argument asks where it is given, as a bit GEONN_OF_...; 0: none. */
extern int	geonn_argument_asks(const GeonnArgument *argument);

/* Return whether the value is the argument's default, or a NULL that stands for it. */
extern bool geonn_argument_is_default(const GeonnArgument *argument, NullableDatum value);

/*
 * Return which question the values of a cache or of shards ask, as a bit GEONN_OF_...; *name becomes the name of the argument
 * that asks it.
 */
extern int	geonn_arguments_question(const NullableDatum *values, const char **name);

/*
 * Find the question as geonn_arguments_question() does, and set all arguments to NULL that belong to other questions
 * only.  Returns the first of these arguments whose value was not the default; NULL: none.
 */
extern const GeonnArgument *geonn_arguments_of_one_question(NullableDatum *values, const char **question);

/*
 * Return the values with which the function is called, [geonn_argument_count], in the current memory context.  An argument
 * that the function does not have is NULL.  Raises an error about a NULL that is not allowed.
 */
extern NullableDatum *geonn_arguments_called(FunctionCallInfo fcinfo, GeonnFunction function);

/*
 * Read values, in the current memory context; a NULL stands for the default.  Raises an error about
 * a value that is unknown or out of range.
 */
extern GeonnArguments *geonn_arguments_read(GeonnFunction function, const NullableDatum *values);

/*
 * Return the argument of this name in the expression of a function; NULL: the function has no such
 * argument, or one of another type.
 */
extern Node *geonn_expression_argument(const FuncExpr *expression, const char *name);

/*
 * Return the argument with the relation or query of the observations, or of the references; NULL: arrays give these
 * points, or the call has no observations.  The references of a call for clusters or a thinning are its points.
 */
extern Node *geonn_expression_observations(const FuncExpr *expression);
extern Node *geonn_expression_references(const FuncExpr *expression);

/* Return whether the call is for clusters or a thinning: it has points in place of observations and references. */
extern bool geonn_expression_has_one_side(const FuncExpr *expression);

/* Return whether the call assigns: its answer is one of all observations together. */
extern bool geonn_expression_assigns(const FuncExpr *expression);

#endif							/* GEONN_ARGUMENTS_H */
