/*
 * result.h
 *		What functions that return rows of their own have in common.
 */
#ifndef GEONN_RESULT_H
#define GEONN_RESULT_H

#include "access/tupdesc.h"
#include "datatype/timestamp.h"

/*
 * Raise an error where a result type of the extension's objects has another
 * number of columns: the objects are of another version than the module.
 */
extern void geonn_require_columns(TupleDesc descriptor, int columns);

/* The time of so many microseconds since 1970, as the engine tells it. */
extern TimestampTz geonn_timestamp_from_unix(int64 microseconds);

#endif							/* GEONN_RESULT_H */
