/*
 * describe.c
 *		geonn_describe(): the columns of a relation that a join would use, and why.  It also warns of
 *		functions of other roles that a call by name could find.
 */
#include "postgres.h"

#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

#include "base/creators.h"
#include "points/describe.h"
#include "base/result.h"

/* columns of the result */
#define DESCRIBE_COLUMNS 5

PG_FUNCTION_INFO_V1(geonn_describe);

PointSource *
geonn_called_relation(FunctionCallInfo fcinfo)
{
	GeonnOptions options;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return NULL;
	geonn_parse_options(PG_GETARG_JSONB_P(1), GEONN_OPTIONS_RELATION, &options);
	return geonn_relation_source(PG_GETARG_OID(0), &options.reference, NIL,
								 PG_ARGISNULL(2) ? NIL : geonn_overlaps_names(PG_GETARG_DATUM(2)));
}

/*
 * Add a row for a column, if the source has it; compared_as is the family of its windows.
 */
static void
put_column(ReturnSetInfo *result, const char *role, const PointColumn *column, Oid compared_as)
{
	NameData	name;
	Datum		values[DESCRIBE_COLUMNS];
	bool		nulls[DESCRIBE_COLUMNS] = {false};

	if (column->name == NULL)
		return;
	namestrcpy(&name, column->name);
	values[0] = CStringGetTextDatum(role);
	values[1] = NameGetDatum(&name);
	values[2] = ObjectIdGetDatum(column->type);
	values[3] = CStringGetTextDatum(column->reason);
	values[4] = ObjectIdGetDatum(compared_as);
	nulls[4] = !OidIsValid(compared_as);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

Datum
geonn_describe(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	PointSource *source;

	InitMaterializedSRF(fcinfo, 0);
	geonn_require_columns(result->setDesc, DESCRIBE_COLUMNS);
	geonn_warn_of_search_path(get_func_namespace(fcinfo->flinfo->fn_oid));
	source = geonn_called_relation(fcinfo);
	if (source == NULL)
		return (Datum) 0;
	for (int role = 0; role < COLUMN_ROLES; role++)
		put_column(result, geonn_role_name(role), &source->columns[role], InvalidOid);
	put_column(result, "radius", &source->radius, InvalidOid);
	for (int i = 0; i < source->window_count; i++)
		put_column(result, "window", &source->windows[i], source->window_types[i].family);
	return (Datum) 0;
}
