/*
 * cache_search.c
 *		What a cache asks: as a join, and as a call in SQL.
 *
 * A cache's arguments are those of geonn_nearest or geonn_within, and are read and
 * checked by the same code, when the cache is made as well as in each refresh.
 */
#include "postgres.h"

#include <math.h>

#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "cache.h"
#include "nearest.h"

static const char *const target_names[TARGET_COLUMNS] = {
	[TARGET_OBSERVATION_ID] = "obs_id",
	[TARGET_RANK] = "rank",
	[TARGET_REFERENCE_ID] = "ref_id",
	[TARGET_DISTANCE] = "distance"
};

/* ---- a join ---- */

typedef struct Arguments
{
	FunctionCallInfo call;
	int			count;
} Arguments;

static void
add_argument(Arguments *arguments, Datum value, bool is_null)
{
	NullableDatum *argument = &arguments->call->args[arguments->count++];

	argument->value = value;
	argument->isnull = is_null;
}

static void
check_relation(const GeonnCache *cache, Oid relation, const char *argument)
{
	if (get_rel_name(relation) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the relation that cache \"%s\" has as %s was dropped", cache->name, argument),
				 errhint("Drop the cache with geonn_cache_drop, and create it again.")));
}

GeonnJoin *
geonn_cache_join(const GeonnCache *cache)
{
	LOCAL_FCINFO(call, 12);
	FmgrInfo	function = {
		.fn_addr = cache->within ? geonn_within : geonn_nearest,
		.fn_mcxt = CurrentMemoryContext
	};
	Arguments	arguments = {.call = call};
	GeonnJoin  *join;

	check_relation(cache, cache->obs, "obs");
	check_relation(cache, cache->ref, "ref");
	InitFunctionCallInfoData(*call, &function, 12, InvalidOid, NULL, NULL);
	add_argument(&arguments, ObjectIdGetDatum(cache->obs), false);
	add_argument(&arguments, ObjectIdGetDatum(cache->ref), false);
	if (!cache->within)
		add_argument(&arguments, Int32GetDatum(cache->k), false);
	add_argument(&arguments, Float8GetDatum(cache->distance), !cache->has_distance);
	add_argument(&arguments, PointerGetDatum(cache->metric), false);
	add_argument(&arguments, PointerGetDatum(cache->by), cache->by == NULL);
	add_argument(&arguments, BoolGetDatum(cache->exclude_self), false);
	add_argument(&arguments, BoolGetDatum(cache->keep_unmatched), false);
	if (!cache->within)
		add_argument(&arguments, PointerGetDatum(cache->ties), false);
	add_argument(&arguments, PointerGetDatum(cache->invalid), false);
	add_argument(&arguments, JsonbPGetDatum(cache->options), false);
	join = geonn_read_join(call);
	strlcpy(join->label.function, "geonn_refresh", sizeof(join->label.function));
	return join;
}

/* ---- the target's columns ---- */

static const PointColumn *
id_column(const GeonnJoin *join, TargetColumn column)
{
	return column == TARGET_OBSERVATION_ID ? &join->observations->columns[COLUMN_ID] :
		&join->references->columns[COLUMN_ID];
}

TupleDesc
geonn_cache_row_type(const GeonnJoin *join)
{
	TupleDesc	type = CreateTemplateTupleDesc(TARGET_COLUMNS);

	for (int i = 0; i < TARGET_COLUMNS; i++)
	{
		AttrNumber	number = (AttrNumber) (i + 1);

		if (i == TARGET_OBSERVATION_ID || i == TARGET_REFERENCE_ID)
		{
			const PointColumn *id = id_column(join, i);

			TupleDescInitEntry(type, number, target_names[i], id->type, id->typmod, 0);
			TupleDescInitEntryCollation(type, number, id->collation);
		}
		else
			TupleDescInitEntry(type, number, target_names[i],
							   i == TARGET_RANK ? INT4OID : FLOAT8OID, -1, 0);
	}
	return BlessTupleDesc(type);
}

static char *
qualified_collation(Oid collation)
{
	HeapTuple	row = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	Form_pg_collation form;
	char	   *name;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	form = (Form_pg_collation) GETSTRUCT(row);
	name = quote_qualified_identifier(get_namespace_name(form->collnamespace),
									  NameStr(form->collname));
	ReleaseSysCache(row);
	return name;
}

char *
geonn_cache_definitions(const GeonnJoin *join)
{
	TupleDesc	type = geonn_cache_row_type(join);
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < TARGET_COLUMNS; i++)
	{
		Form_pg_attribute column = TupleDescAttr(type, i);

		appendStringInfo(&text, "%s%s %s", i > 0 ? ", " : "", target_names[i],
						 format_type_extended(column->atttypid, column->atttypmod,
											  FORMAT_TYPE_TYPEMOD_GIVEN |
											  FORMAT_TYPE_FORCE_QUALIFY));
		if (OidIsValid(column->attcollation) && column->attcollation != DEFAULT_COLLATION_OID)
			appendStringInfo(&text, " COLLATE %s", qualified_collation(column->attcollation));
	}
	return text.data;
}

/* ---- a call ---- */

/*
 * The row type argument: the target's own, or, where columns were added to it, a list of
 * those that are wanted.
 */
static char *
row_type_argument(const GeonnCache *cache, bool *is_record)
{
	Relation	target = relation_open(cache->target, AccessShareLock);
	char	   *type;

	*is_record = RelationGetDescr(target)->natts != TARGET_COLUMNS;
	type = *is_record ? pstrdup("pg_catalog.record") :
		quote_qualified_identifier(get_namespace_name(RelationGetNamespace(target)),
								   RelationGetRelationName(target));
	relation_close(target, NoLock);
	return type;
}

static char *
quoted(PGFunction output, Datum value)
{
	return quote_literal_cstr(DatumGetCString(DirectFunctionCall1(output, value)));
}

char *
geonn_cache_call(const GeonnCache *cache, const char *alias)
{
	bool		is_record;
	char	   *type = row_type_argument(cache, &is_record);
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfo(&text, "%s.%s(%u, %u, metric => %s, exclude_self => %s, keep_unmatched => %s,"
					 " invalid => %s, options => %s, row_type => NULL::%s",
					 quote_identifier(get_namespace_name(cache->schema)),
					 cache->within ? "geonn_within" : "geonn_nearest", cache->obs, cache->ref,
					 quote_literal_cstr(text_to_cstring(cache->metric)),
					 cache->exclude_self ? "true" : "false",
					 cache->keep_unmatched ? "true" : "false",
					 quote_literal_cstr(text_to_cstring(cache->invalid)),
					 quoted(jsonb_out, JsonbPGetDatum(cache->options)), type);
	if (!cache->within)
		appendStringInfo(&text, ", k => %d, ties => %s", cache->k,
						 quote_literal_cstr(text_to_cstring(cache->ties)));
	if (cache->has_distance)
		appendStringInfo(&text, ", %s => '%.17g'", cache->within ? "radius" : "max_distance",
						 cache->distance);
	if (cache->by != NULL)
		appendStringInfo(&text, ", by => %s",
						 quote_literal_cstr(OidOutputFunctionCall(F_ARRAY_OUT,
																  PointerGetDatum(cache->by))));
	appendStringInfo(&text, ") AS %s", alias);
	if (is_record)
		appendStringInfo(&text, " (%s)", geonn_cache_definitions(geonn_cache_join(cache)));
	return text.data;
}

/* ---- rows that may be new ---- */

void
geonn_cache_check_changed_since(const GeonnCache *cache)
{
	AttrNumber	number;

	if (cache->changed_since == NULL)
		return;
	number = get_attnum(cache->obs, cache->changed_since);
	if (number == InvalidAttrNumber || get_atttype(cache->obs, number) != TIMESTAMPTZOID)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("relation \"%s\" has no column \"%s\" of type %s",
						get_rel_name(cache->obs), cache->changed_since,
						format_type_be(TIMESTAMPTZOID)),
				 errhint("changed_since names a column that every INSERT and UPDATE sets to now() or later.")));
}

PointSource *
geonn_cache_changed_source(const GeonnCache *cache, const PointSource *source, TimestampTz since)
{
	PointSource *changed = palloc(sizeof(PointSource));

	geonn_cache_check_changed_since(cache);
	*changed = *source;
	changed->query = psprintf("%s WHERE %s OPERATOR(pg_catalog.>=)"
							  " ('2000-01-01 00:00:00+00'::pg_catalog.timestamptz OPERATOR(pg_catalog.+)"
							  " '" INT64_FORMAT " microseconds'::pg_catalog.interval)",
							  source->query, quote_identifier(cache->changed_since), since);
	return changed;
}
