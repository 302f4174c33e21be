/*
 * create.c
 *		Caches are made and altered.
 *
 * A cache's table is an ordinary table of the role that made the cache.  Triggers on it notice when
 * anything but a refresh changes its rows (cache/changed.c).  One transaction makes all of it: the
 * table, its rows, the entry in geonn_cache, and the baselines, which keep the points that were
 * read, so that the first refresh finds what has changed since, as any later one does.  Rows and
 * baselines are read with one snapshot.
 *
 * Privileges are checked when they are used: geonn_cache_alter reads the cache again after it has
 * locked it, checks the owner after it has locked the table, and checks the new definition as that
 * owner.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/varlena.h"

#include "cache/changed.h"
#include "cache/last_run.h"
#include "cache/schedule.h"
#include "cache/since.h"
#include "cache/sorted_rows.h"
#include "cache/target.h"

PG_FUNCTION_INFO_V1(geonn_cache_create);
PG_FUNCTION_INFO_V1(geonn_cache_alter);

/* the arguments of geonn_cache_create */
enum
{
	ARGUMENT_NAME,
	ARGUMENT_OBS,
	ARGUMENT_REF,
	ARGUMENT_K,
	ARGUMENT_MAX_DISTANCE,
	ARGUMENT_METRIC,
	ARGUMENT_BY,
	ARGUMENT_EXCLUDE_SELF,
	ARGUMENT_KEEP_UNMATCHED,
	ARGUMENT_TIES,
	ARGUMENT_INVALID,
	ARGUMENT_OPTIONS,
	ARGUMENT_TARGET,
	ARGUMENT_RADIUS,
	ARGUMENT_CHANGED_SINCE
};

/* ---- create ---- */

static void
require(FunctionCallInfo fcinfo, int number, const char *name)
{
	if (PG_ARGISNULL(number))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" of geonn_cache_create is NULL", name)));
}

__attribute__((noreturn))
static void
raise_radius(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("radius is given together with k, max_distance or ties"),
			 errdetail("A cache has all references within radius, or the k nearest ones.")));
}

static void
check_name(const char *name)
{
	if (name[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("the name of a cache is empty")));
}

static GeonnCache *
read_arguments(FunctionCallInfo fcinfo)
{
	static const char *const names[] = {
		[ARGUMENT_NAME] = "name",[ARGUMENT_OBS] = "obs",[ARGUMENT_REF] = "ref",
		[ARGUMENT_K] = "k",[ARGUMENT_METRIC] = "metric",
		[ARGUMENT_EXCLUDE_SELF] = "exclude_self",[ARGUMENT_KEEP_UNMATCHED] = "keep_unmatched",
		[ARGUMENT_TIES] = "ties",[ARGUMENT_INVALID] = "invalid",[ARGUMENT_OPTIONS] = "options"
	};
	GeonnCache *cache = palloc0(sizeof(GeonnCache));

	for (int i = 0; i < (int) lengthof(names); i++)
	{
		if (names[i] != NULL)
			require(fcinfo, i, names[i]);
	}
	geonn_cache_check_primary();
	cache->schema = geonn_cache_schema(fcinfo);
	cache->name = text_to_cstring(PG_GETARG_TEXT_PP(ARGUMENT_NAME));
	cache->obs = PG_GETARG_OID(ARGUMENT_OBS);
	cache->ref = PG_GETARG_OID(ARGUMENT_REF);
	cache->k = PG_GETARG_INT32(ARGUMENT_K);
	cache->within = !PG_ARGISNULL(ARGUMENT_RADIUS);
	cache->has_distance = cache->within || !PG_ARGISNULL(ARGUMENT_MAX_DISTANCE);
	if (cache->has_distance)
		cache->distance = PG_GETARG_FLOAT8(cache->within ? ARGUMENT_RADIUS : ARGUMENT_MAX_DISTANCE);
	cache->metric = PG_GETARG_TEXT_P(ARGUMENT_METRIC);
	cache->by = PG_ARGISNULL(ARGUMENT_BY) ? NULL : PG_GETARG_ARRAYTYPE_P(ARGUMENT_BY);
	cache->exclude_self = PG_GETARG_BOOL(ARGUMENT_EXCLUDE_SELF);
	cache->keep_unmatched = PG_GETARG_BOOL(ARGUMENT_KEEP_UNMATCHED);
	cache->ties = PG_GETARG_TEXT_P(ARGUMENT_TIES);
	cache->invalid = PG_GETARG_TEXT_P(ARGUMENT_INVALID);
	cache->options = PG_GETARG_JSONB_P(ARGUMENT_OPTIONS);
	if (!PG_ARGISNULL(ARGUMENT_CHANGED_SINCE))
		cache->changed_since = pstrdup(NameStr(*PG_GETARG_NAME(ARGUMENT_CHANGED_SINCE)));

	if (cache->within &&
		(cache->k != 1 || !PG_ARGISNULL(ARGUMENT_MAX_DISTANCE) ||
		 strcmp(text_to_cstring(cache->ties), "first") != 0))
		raise_radius();
	/* as geonn_cache_find reads it later, so that both sign the same question */
	if (cache->within)
		cache->k = 0;
	check_name(cache->name);
	return cache;
}

static void
raise_name_taken(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 errmsg("cache \"%s\" already exists", name)));
}

/*
 * The name of the table to make, for SQL, with the schema in which CREATE TABLE will put it.
 */
static char *
new_table(FunctionCallInfo fcinfo, const GeonnCache *cache, Oid *schema)
{
	RangeVar   *name;

	if (PG_ARGISNULL(ARGUMENT_TARGET))
	{
		if (strlen(cache->name) >= NAMEDATALEN)
			ereport(ERROR,
					(errcode(ERRCODE_NAME_TOO_LONG),
					 errmsg("\"%s\" is too long for the name of a table", cache->name),
					 errdetail("It has %zu bytes, and a name has at most %d.", strlen(cache->name),
							   NAMEDATALEN - 1),
					 errhint("Name the table by the argument target.")));
		name = makeRangeVar(NULL, cache->name, -1);
	}
	else
		name = makeRangeVarFromNameList(textToQualifiedNameList(PG_GETARG_TEXT_PP(ARGUMENT_TARGET)));
	*schema = RangeVarGetCreationNamespace(name);
	if (isTempNamespace(*schema) || name->relpersistence == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the table of a cache cannot be temporary")));
	name->schemaname = get_namespace_name(*schema);
	return quote_qualified_identifier(name->schemaname, name->relname);
}

/*
 * Enter the cache into geonn_cache, which gives it its number.
 */
static void
enter(GeonnCache *cache)
{
	NameData	changed_since;	/* all of its bytes are stored */
	Oid			types[] = {TEXTOID, OIDOID, OIDOID, OIDOID, INT4OID, FLOAT8OID, FLOAT8OID, TEXTOID,
	NAMEARRAYOID, BOOLOID, BOOLOID, TEXTOID, TEXTOID, JSONBOID, NAMEOID};
	Datum		values[] = {CStringGetTextDatum(cache->name), ObjectIdGetDatum(cache->target),
		ObjectIdGetDatum(cache->obs), ObjectIdGetDatum(cache->ref), Int32GetDatum(cache->k),
		Float8GetDatum(cache->distance), Float8GetDatum(cache->distance),
		PointerGetDatum(cache->metric), PointerGetDatum(cache->by),
		BoolGetDatum(cache->exclude_self), BoolGetDatum(cache->keep_unmatched),
	PointerGetDatum(cache->ties), PointerGetDatum(cache->invalid), JsonbPGetDatum(cache->options),
	NameGetDatum(&changed_since)};
	char		nulls[] = "               ";
	bool		is_null;

	if (cache->within)
		nulls[4] = 'n';
	if (cache->within || !cache->has_distance)
		nulls[5] = 'n';
	if (!cache->within)
		nulls[6] = 'n';
	if (cache->by == NULL)
		nulls[8] = 'n';
	if (cache->changed_since == NULL)
		nulls[14] = 'n';
	else
		namestrcpy(&changed_since, cache->changed_since);
	if (geonn_catalog_run(cache->schema,
						  "INSERT INTO $S.geonn_cache (name, target, obs, ref, k, max_distance, radius,"
						  " metric, by, exclude_self, keep_unmatched, ties, invalid, options,"
						  " changed_since)"
						  " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
						  " ON CONFLICT (name) DO NOTHING RETURNING id",
						  NULL, lengthof(types), types, values, nulls) == 0)
		raise_name_taken(cache->name);
	cache->id = DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
											&is_null));
}

/*
 * The first fill stores rows without converting them, so each column must have the type of its
 * values.
 */
static bool
has_columns(TupleDesc table, TupleDesc row_type)
{
	if (table->natts != row_type->natts)
		return false;
	for (int i = 0; i < row_type->natts; i++)
	{
		if (TupleDescAttr(table, i)->atttypid != TupleDescAttr(row_type, i)->atttypid)
			return false;
	}
	return true;
}

/*
 * Look up the table that this command has made.  Meanwhile another session may have renamed its
 * schema, or that of a type, so that the name is another table's; and event triggers may have
 * altered it.
 */
static Oid
made_table(const char *name, TupleDesc row_type)
{
	RangeVar   *range = makeRangeVarFromNameList(textToQualifiedNameList(cstring_to_text(name)));
	Relation	table = table_openrv(range, AccessShareLock);
	Oid			target = RelationGetRelid(table);

	if (table->rd_createSubid != GetCurrentSubTransactionId())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table %s is not the one that was made for the cache", name),
				 errhint("Its schema was renamed meanwhile: run the same command again.")));
	if (!has_columns(RelationGetDescr(table), row_type))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table %s does not have the columns that were made for the cache", name),
				 errhint("An event trigger altered it, or a schema was renamed meanwhile.")));
	table_close(table, NoLock);
	return target;
}

/*
 * Raise an error that names a duplicate id, for which the primary key could not be made.  The
 * table's rows are newer than the function's snapshot.
 */
static void
find_duplicate(const GeonnCache *cache, TupleDesc row_type)
{
	SortedRows *rows = geonn_sorted_rows_create(row_type, maintenance_work_mem);

	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	geonn_sorted_rows_add_table(rows, cache->target);
	PopActiveSnapshot();
	geonn_sorted_rows_check(rows, cache);
	geonn_sorted_rows_end(rows);
}

static void
run_step(void *command)
{
	geonn_run_command(command);
}

/*
 * Give the filled table its primary key.  A subtransaction does so: if ids are not unique, it is
 * rolled back, and the table can still be searched for a duplicate.
 */
static void
add_key(const GeonnCache *cache, TupleDesc row_type)
{
	ErrorData  *error = geonn_attempt(run_step,
									  psprintf("ALTER TABLE %s ADD PRIMARY KEY (obs_id, rank)",
											   geonn_cache_target_name(cache)));

	if (error == NULL)
		return;
	if (error->sqlerrcode == ERRCODE_UNIQUE_VIOLATION)
		find_duplicate(cache, row_type);
	ReThrowError(error);
}

/*
 * The statements name the table and the triggers' function by their schemas, and another session
 * may have renamed these meanwhile: another role's function would then run as each role that writes
 * the table.
 */
static void
make_triggers(const GeonnCache *cache)
{
	StringInfoData signature;

	geonn_run_command(geonn_changes_triggers(cache));
	initStringInfo(&signature);
	if (!geonn_changes_sign(&signature, cache))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table %s did not get the triggers of a cache", geonn_cache_target_name(cache)),
				 errhint("If a schema was renamed meanwhile, run the same command again.")));
}

Datum
geonn_cache_create(PG_FUNCTION_ARGS)
{
	GeonnCache *cache = read_arguments(fcinfo);
	GeonnJoin  *join = geonn_cache_join(cache);
	Oid			schema;
	char	   *table = new_table(fcinfo, cache, &schema);
	GeonnRunResult result = {
		.status = "succeeded",
		.mode = "fill",
		.searched = -1,
		.counted = true
	};
	GeonnLastRun last_run = {0};
	GeonnLabels now;
	TimestampTz since;
	int64		run;

	geonn_cache_check_changed_since(cache);
	geonn_cache_check_ids(join);
	SPI_connect();
	geonn_run_command(psprintf("CREATE TABLE %s (%s) WITH (fillfactor = 90)", table,
							   geonn_cache_definitions(join)));
	cache->target = made_table(table, geonn_cache_row_type(join));
	cache->owner = geonn_relation_owner(cache->target);
	enter(cache);
	run = geonn_cache_log_start(cache);
	since = geonn_cache_since(cache);
	PushActiveSnapshot(GetTransactionSnapshot());
	now = geonn_labels_now(join);
	result.rows = result.inserted = (int64) geonn_target_fill(cache);
	geonn_last_run_create(cache);
	add_key(cache, geonn_cache_row_type(join));
	make_triggers(cache);
	geonn_last_run_make_baselines(cache, join, &last_run);
	geonn_last_run_store(cache, join, now, result.rows, &last_run, since);
	PopActiveSnapshot();
	geonn_cache_log_finish(cache, run, &result);
	SPI_finish();
	PG_RETURN_OID(cache->target);
}

/* ---- alter ---- */

/*
 * Check the keys and values of changes, or raise an error.  Returns whether k, radius and name are
 * given and not null.
 */
static void
check_changes(Jsonb *changes, bool *has_k, bool *has_radius, bool *has_name)
{
	static const char *const known[] = {
		"name", "k", "max_distance", "radius", "metric", "by", "exclude_self",
		"keep_unmatched", "ties", "invalid", "options", "changed_since"
	};
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	value;
	char	   *key = NULL;

	*has_k = *has_radius = *has_name = false;
	if (!JB_ROOT_IS_OBJECT(changes))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the argument changes is not an object"),
				 errhint("Give an object, as in '{\"k\": 5}'.")));
	iterator = JsonbIteratorInit(&changes->root);
	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		Assert(key != NULL || token != WJB_VALUE);	/* a key precedes its value */
		if (token == WJB_KEY)
		{
			bool		is_known = false;

			key = pnstrdup(value.val.string.val, value.val.string.len);
			for (int i = 0; i < (int) lengthof(known); i++)
				is_known |= strcmp(key, known[i]) == 0;
			if (!is_known)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("\"%s\" of a cache cannot be changed", key),
						 errdetail("A change names any of name, k, max_distance, radius, metric, by, exclude_self, keep_unmatched, ties, invalid, options and changed_since.")));
		}
		else if (token == WJB_VALUE && value.type == jbvNull &&
				 strcmp(key, "max_distance") != 0 && strcmp(key, "by") != 0 &&
				 strcmp(key, "changed_since") != 0)
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("\"%s\" of a cache cannot be null", key),
					 errdetail("Null can be given for max_distance, by and changed_since.")));
		else if (token == WJB_VALUE && value.type != jbvNull)
		{
			*has_k |= strcmp(key, "k") == 0;
			*has_radius |= strcmp(key, "radius") == 0;
			*has_name |= strcmp(key, "name") == 0;
		}
	}
	if (*has_k && *has_radius)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("changes has both k and radius"),
				 errdetail("A cache has all references within radius, or the k nearest ones.")));
}

Datum
geonn_cache_alter(PG_FUNCTION_ARGS)
{
	Oid			schema = geonn_cache_schema(fcinfo);
	GeonnCache *cache = geonn_cache_find(schema, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	Oid			types[] = {INT4OID, JSONBOID, BOOLOID, BOOLOID};
	Datum		values[lengthof(types)];
	bool		has_k;
	bool		has_radius;
	bool		has_name;
	char	   *name;
	bool		is_null;
	GeonnIdentity former;

	check_changes(PG_GETARG_JSONB_P(1), &has_k, &has_radius, &has_name);
	(void) geonn_cache_lock(cache, true, false);
	cache = geonn_cache_find_again(cache);
	geonn_cache_hold(cache, AccessShareLock);
	SPI_connect();
	values[0] = Int32GetDatum(cache->id);
	values[1] = PG_GETARG_DATUM(1);
	values[2] = BoolGetDatum(has_k);
	values[3] = BoolGetDatum(has_radius);
	if (has_name &&
		geonn_catalog_run(schema, "SELECT FROM $S.geonn_cache WHERE name OPERATOR(pg_catalog.=)"
						  " ($2 OPERATOR(pg_catalog.->>) 'name'::pg_catalog.text)"
						  " AND id OPERATOR(pg_catalog.<>) $1",
						  NULL, 2, types, values, NULL) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("a cache of the new name already exists")));
	if (geonn_catalog_run(schema,
						  "UPDATE $S.geonn_cache c SET name = n.name, metric = n.metric, by = n.by,"
						  " k = CASE WHEN $4 THEN NULL ELSE n.k END,"
						  " max_distance = CASE WHEN $4 THEN NULL ELSE n.max_distance END,"
						  " radius = CASE WHEN $3 THEN NULL ELSE n.radius END,"
						  " exclude_self = n.exclude_self, keep_unmatched = n.keep_unmatched,"
						  " ties = CASE WHEN $4 THEN 'first'::pg_catalog.text ELSE n.ties END,"
						  " invalid = n.invalid, options = n.options,"
						  " changed_since = n.changed_since"
						  " FROM (SELECT (pg_catalog.jsonb_populate_record(x, $2)).*, x.name AS former"
						  " FROM $S.geonn_cache x WHERE x.id OPERATOR(pg_catalog.=) $1) n"
						  " WHERE c.id OPERATOR(pg_catalog.=) n.id"
						  " RETURNING c.name, n.former, c.radius IS NOT NULL AND"
						  " ($2 OPERATOR(pg_catalog.->>) 'max_distance'::pg_catalog.text IS NOT NULL OR"
						  " COALESCE($2 OPERATOR(pg_catalog.->>) 'ties'::pg_catalog.text, ''::pg_catalog.text)"
						  " OPERATOR(pg_catalog.<>) ALL ('{\"\",first}'::pg_catalog.text[]))",
						  NULL, lengthof(types), types, values, NULL) != 1)
		elog(ERROR, "cache %d is missing", cache->id);
	name = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	cache->name = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2);
	if (DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 3, &is_null)))
		raise_radius();
	check_name(name);
	(void) geonn_catalog_run(schema, "DELETE FROM $S.geonn_cache_last_run"
							 " WHERE cache OPERATOR(pg_catalog.=) $1", NULL,
							 1, types, values, NULL);
	if (strcmp(name, cache->name) != 0)
		geonn_cache_rename_jobs(cache, name);
	cache = geonn_cache_find(schema, name);
	/* check the new definition as a refresh will read it */
	former = geonn_become_owner(cache);
	(void) geonn_cache_join(cache);
	geonn_cache_check_changed_since(cache);
	geonn_become_former(former);
	SPI_finish();
	PG_RETURN_VOID();
}
