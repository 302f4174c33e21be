/*
 * describe.c
 *		geonn_describe(): which columns of a relation a join would use, and why.
 *
 * The function warns of functions of other roles that a call by name could find.  It looks into the first rows of a table only
 * where the type of a column leaves open what its values are.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "base/creators.h"
#include "base/result.h"
#include "points/citus.h"
#include "points/column_hints.h"
#include "points/column_pairs.h"
#include "points/describe.h"
#include "points/options.h"
#include "points/reader.h"
#include "points/sources.h"

PG_FUNCTION_INFO_V1(geonn_describe);

/* columns of the result */
#define DESCRIBE_COLUMNS 5

/* at so many rows of a table the function looks at most */
#define ROWS_LOOKED_AT 1000

PointSource *
geonn_called_relation(FunctionCallInfo fcinfo)
{
	GeonnOptions options;
	PointSource *source;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return NULL;
	geonn_parse_options(PG_GETARG_JSONB_P(1), GEONN_OPTIONS_RELATION, &options);
	source = geonn_relation_source(PG_GETARG_OID(0), &options.reference, NIL,
								   PG_ARGISNULL(2) ? NIL : geonn_overlaps_names(PG_GETARG_DATUM(2)));
	geonn_tell_unused_shape(source);
	return source;
}

/* ---- what values of a column are ---- */

typedef struct Kinds
{
	const PointSource *source;
	int			rows;			/* that are not NULL */
	int			types[GEONN_POINT_TYPES];	/* by PostGIS's number */
	int32		srid;			/* of the first row */
	bool		has_other_srids;
} Kinds;

static void
look_at(void *state, const PointRow *row)
{
	Kinds	   *kinds = state;
	int			number = kinds->source->columns[COLUMN_POINT].attribute - 1;
	int32		type;
	int32		srid;

	if (row->nulls[number] || !geonn_value_type(kinds->source->point_kind, row->values[number], &type, &srid))
		return;
	if (kinds->rows++ == 0)
		kinds->srid = srid;
	kinds->has_other_srids |= srid != kinds->srid;
	kinds->types[type]++;
}

/* Return what the first values of a column are, whose type leaves that open; NULL: the table has none. */
static char *
kinds_of(const PointSource *source)
{
	PointSource looked_at = *source;
	Kinds		kinds = {.source = source};
	PointReading *reading;
	StringInfoData text;
	bool		has_more;

	/* go on after a shape, and with values of any SRID: none is read as a point */
	looked_at.may_have_shapes = false;
	looked_at.transform = NULL;
	reading = geonn_reading_begin(&looked_at, GEONN_INVALID_NAMED, GEONN_READ_IN_PARTS, look_at, &kinds);
	has_more = geonn_reading_next(reading, ROWS_LOOKED_AT);
	geonn_reading_end(reading);
	if (kinds.rows == 0)
		return NULL;
	initStringInfo(&text);
	for (int i = 0; i < GEONN_POINT_TYPES; i++)
	{
		if (kinds.types[i] > 0)
			appendStringInfo(&text, "%d %s, ", kinds.types[i], geonn_point_type_name(i));
	}
	if (kinds.has_other_srids)
		appendStringInfoString(&text, "of several SRIDs");
	else
		appendStringInfo(&text, "SRID %d", kinds.srid);
	if (has_more)
		appendStringInfo(&text, " in the first %d rows", ROWS_LOOKED_AT);
	return text.data;
}

/* Is the source a table, so that its first rows come at once, with contents that this role may read? */
static bool
may_look(const PointSource *source)
{
	char		kind = get_rel_relkind(source->relation);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(source->relation));
	bool		is_populated = HeapTupleIsValid(tuple) && ((Form_pg_class) GETSTRUCT(tuple))->relispopulated;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return is_populated && (kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE || kind == RELKIND_MATVIEW) &&
		pg_class_aclcheck(source->relation, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

/* ---- the function ---- */

static void
put_column(ReturnSetInfo *result, const char *role, const PointColumn *column, Oid compared_as)
{
	Row			row = {0};

	if (column->name == NULL)
		return;
	row_add_text(&row, role);
	row_add_name(&row, column->name);
	row_add(&row, ObjectIdGetDatum(column->type), false);
	row_add_text(&row, column->reason);
	row_add(&row, ObjectIdGetDatum(compared_as), !OidIsValid(compared_as));
	row_put(&row, result);
}

Datum
geonn_describe(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = geonn_rows_begin(fcinfo, DESCRIBE_COLUMNS);
	PointSource *source;
	const char *kinds = NULL;

	geonn_warn_of_search_path(get_func_namespace(fcinfo->flinfo->fn_oid));
	source = geonn_called_relation(fcinfo);
	if (source == NULL)
		return (Datum) 0;
	geonn_citus_tell(source);
	if (source->may_have_shapes && may_look(source))
		kinds = kinds_of(source);
	if (kinds != NULL)
		source->columns[COLUMN_POINT].reason = psprintf("%s: %s", source->columns[COLUMN_POINT].reason, kinds);
	for (int role = 0; role < COLUMN_ROLES; role++)
		put_column(result, geonn_role_name(role), &source->columns[role], InvalidOid);
	for (int i = 0; i < source->window_count; i++)
		put_column(result, "window", &source->windows[i], source->window_types[i].family);
	put_column(result, "unused shape", &source->unused_shape, InvalidOid);
	return (Datum) 0;
}
