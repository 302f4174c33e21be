/*
 * result.c
 *		The rows that functions return in the extension's own types.
 */
#include "postgres.h"

#include "funcapi.h"

#include "base/result.h"

static void
require_columns(TupleDesc descriptor, int columns)
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

ReturnSetInfo *
geonn_rows_begin(FunctionCallInfo fcinfo, int columns)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	require_columns(result->setDesc, columns);
	return result;
}

TupleDesc
geonn_result_type(FunctionCallInfo fcinfo, int columns)
{
	TupleDesc	descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	require_columns(descriptor, columns);
	return BlessTupleDesc(descriptor);
}
