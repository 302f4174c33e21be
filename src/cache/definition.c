/*
 * definition.c
 *		What a cache asks, as a join, and the columns that its table has for the answer.
 *
 * The arguments of a cache are those of geonn_nearest or geonn_within.  The same table describes
 * them (join/arguments.c), when the cache is made and in each refresh.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "cache/definition.h"
#include "cache/kept_arguments.h"
#include "base/compat.h"
#include "join/nearest.h"

static const char *const target_names[TARGET_COLUMNS] = {
	[TARGET_OBSERVATION_ID] = "obs_id",
	[TARGET_RANK] = "rank",
	[TARGET_REFERENCE_ID] = "ref_id",
	[TARGET_DISTANCE] = "distance"
};

/* ---- a join ---- */

static void
check_relation(const GeonnCache *cache, Oid relation, const char *argument)
{
	if (get_rel_name(relation) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation %s of cache \"%s\" was dropped", argument, cache->name),
				 errhint("Drop the cache with geonn_cache_drop, and create it again.")));
}

GeonnJoin *
geonn_cache_join(const GeonnCache *cache)
{
	check_relation(cache, cache->obs, "obs");
	check_relation(cache, cache->ref, "ref");
	return geonn_make_join(geonn_kept_arguments(cache));
}

/*
 * What the arguments of a call could name, geonn_cache_alter names for a cache.
 */
static void
hint_at_alter(void *name)
{
	int			code = geterrcode();

	if (code == ERRCODE_UNDEFINED_COLUMN || code == ERRCODE_AMBIGUOUS_COLUMN)
		errhint("If a column was renamed, rename it back, or have the cache read it: columns are named by options, by and overlaps, as in SELECT geonn_cache_alter(%s, '{\"options\": {\"obs_lat\": \"y\", \"obs_lon\": \"x\"}}').",
				quote_literal_cstr(name));
}

GeonnJoin *
geonn_cache_join_again(const GeonnCache *cache)
{
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = hint_at_alter,
		.arg = cache->name
	};
	GeonnJoin  *join;

	error_context_stack = &context;
	join = geonn_cache_join(cache);
	error_context_stack = context.previous;
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

			TupleDescInitEntry(type, number, target_names[i], id->type,
							   geonn_declared_typmod(id), 0);
			TupleDescInitEntryCollation(type, number, id->collation);
		}
		else
			TupleDescInitEntry(type, number, target_names[i],
							   i == TARGET_RANK ? INT4OID : FLOAT8OID, -1, 0);
	}
	TupleDescFinalize(type);
	return BlessTupleDesc(type);
}

void
geonn_target_attributes(Oid target, AttrNumber *attributes)
{
	for (int i = 0; i < TARGET_COLUMNS; i++)
		attributes[i] = get_attnum(target, target_names[i]);
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
		/* else the primary key would be preceded by a search of all rows for NULLs */
		if (i == TARGET_OBSERVATION_ID || i == TARGET_RANK)
			appendStringInfoString(&text, " NOT NULL");
	}
	return text.data;
}

/* ---- ids that cannot be a key's ---- */

void
geonn_cache_check_ids(const GeonnJoin *join)
{
	const PointColumn *id = id_column(join, TARGET_OBSERVATION_ID);
	TypeCacheEntry *type = lookup_type_cache(id->base_type,
											 TYPECACHE_LT_OPR | TYPECACHE_CMP_PROC);

	if (!OidIsValid(type->lt_opr) || !OidIsValid(type->cmp_proc))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("id column \"%s\" of %s has type %s, which has no order", id->name,
						join->observations->title, format_type_be(id->type)),
				 errdetail("The primary key of a cache's table, (obs_id, rank), is in the btree order of the type."),
				 errhint("Use a column of another type as id, by obs_id in options or in a view.")));
}

static const char *
name_of_observations(const GeonnCache *cache)
{
	char	   *name = get_rel_name(cache->obs);

	return name != NULL ? name : "obs";
}

void
geonn_cache_raise_duplicate(const GeonnCache *cache, Oid type, Datum id)
{
	Oid			output;
	bool		is_varlena;

	getTypeOutputInfo(type, &output, &is_varlena);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("ids of relation \"%s\" are not unique", name_of_observations(cache)),
			 errdetail("Id %s occurs more than once.", OidOutputFunctionCall(output, id)),
			 errhint("Name another column as obs_id in options, or give cache \"%s\" a view that has each id once.",
					 cache->name)));
}

void
geonn_cache_raise_null(const GeonnCache *cache)
{
	ereport(ERROR,
			(errcode(ERRCODE_NOT_NULL_VIOLATION),
			 errmsg("an id of relation \"%s\" is NULL", name_of_observations(cache)),
			 errdetail("Cache \"%s\" has keep_unmatched, so it keeps all rows of the relation, each by its id.",
					   cache->name),
			 errhint("Give such rows an id, leave them out in a view, name another column as obs_id in options, or do without keep_unmatched.")));
}
