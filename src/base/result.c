/*
 * result.c
 *		What the functions that return rows of the extension's own types have
 *		in common.
 */
#include "postgres.h"

#include "base/result.h"

void
geonn_require_columns(TupleDesc descriptor, int columns)
{
	if (descriptor->natts == columns)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("the result type has %d columns, and this version of geonn returns %d",
					descriptor->natts, columns),
			 errdetail("The extension's objects in this database are of another version, or were altered."),
			 errhint("Run ALTER EXTENSION geonn UPDATE, or drop and create the extension.")));
}

TimestampTz
geonn_timestamp_from_unix(int64 microseconds)
{
	return microseconds -
		((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)) * USECS_PER_DAY;
}
