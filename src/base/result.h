/*
 * result.h
 *		What the functions that return rows of the extension's own types have
 *		in common.
 */
#ifndef GEONN_RESULT_H
#define GEONN_RESULT_H

#include "access/tupdesc.h"
#include "datatype/timestamp.h"

/*
 * Raise an error where a result type has another number of columns than the
 * module returns: then the extension's objects are of another version than the
 * module.
 */
extern void geonn_require_columns(TupleDesc descriptor, int columns);

/* Convert a time of the engine's, microseconds since 1970 (UTC). */
extern TimestampTz geonn_timestamp_from_unix(int64 microseconds);

#endif							/* GEONN_RESULT_H */
