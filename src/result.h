/*
 * result.h
 *		Whether a function's result is what this module returns.
 */
#ifndef GEONN_RESULT_H
#define GEONN_RESULT_H

#include "access/tupdesc.h"

/*
 * Raise an error where a result type of the extension's objects has another
 * number of columns: the objects are of another version than the module.
 */
extern void geonn_require_columns(TupleDesc descriptor, int columns);

#endif							/* GEONN_RESULT_H */
