/*
 * describe.h
 *		Which relation, and which of its columns, a function that looks at one relation is
 *		asked about.
 */
#ifndef GEONN_DESCRIBE_H
#define GEONN_DESCRIBE_H

#include "fmgr.h"

#include "points/columns.h"

/*
 * The source of a call with the arguments rel, options and overlaps.  Raises the errors that a join
 * raises for such columns.  NULL: rel or options is NULL.
 */
extern PointSource *geonn_called_relation(FunctionCallInfo fcinfo);

#endif							/* GEONN_DESCRIBE_H */
