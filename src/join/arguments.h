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
	GEONN_NEAREST_POINTS
} GeonnFunction;

/* the arguments of one call; those that its function does not have are 0 or NULL */
typedef struct GeonnArguments
{
	GeonnFunction function;
	const char *function_name;
	GeonnJoin  *join;			/* what is asked; without sources and label */
	Oid			obs;
	Oid			ref;
	char	   *obs_sql;
	char	   *ref_sql;
	ArrayType  *latitudes;		/* of float8, with any dimensions and NULLs */
	ArrayType  *longitudes;
	List	   *by;				/* of char *: column names, each once */
	GeonnOptions options;
	char	   *text;			/* "k => 3, ...": those that do not have their defaults, without
								 * sources */
} GeonnArguments;

/*
 * Read the arguments that the function is called with, in the current memory context.
 * Raises an error for a value that is NULL, unknown or out of range.
 */
extern GeonnArguments *geonn_arguments_read(FunctionCallInfo fcinfo, GeonnFunction function);

/*
 * The argument of this name in a call that the planner has; NULL: the function has none, or
 * not of the right type.
 */
extern Node *geonn_call_argument(const FuncExpr *call, const char *name);

/* The relation or query of either side; NULL: an array. */
extern Node *geonn_call_observations(const FuncExpr *call);
extern Node *geonn_call_references(const FuncExpr *call);

#endif							/* GEONN_ARGUMENTS_H */
