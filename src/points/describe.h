/*
 * describe.h
 *		Which columns of a relation a join would use.
 */
#ifndef GEONN_DESCRIBE_H
#define GEONN_DESCRIBE_H

#include "fmgr.h"

#include "points/columns.h"

/*
 * Make the source of a call with the arguments rel, options and overlaps.  Raises the errors that a
 * join raises for such columns.  Returns NULL if rel or options is NULL.
 */
extern PointSource *geonn_called_relation(FunctionCallInfo fcinfo);

#endif							/* GEONN_DESCRIBE_H */
