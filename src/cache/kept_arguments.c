/*
 * kept_arguments.c
 *		What a cache keeps of the arguments that it was made with, as JSON.
 *
 * The column geonn_cache.arguments is an object of arguments by name, with those of the table in
 * join/arguments.c that caches have.  One that is NULL is left out, and one that is not there
 * has its default, so a cache lives on when an argument is added.  A cache has arguments of k or of
 * the radius, never of both.  PostgreSQL's own functions turn values into JSON and back, as in a
 * row with a column for each argument: so a value can be given in changes in all ways in
 * which jsonb_populate_record takes it.
 *
 * Relations are not among them: they are columns of the type regclass, which pg_dump writes by
 * name.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "nodes/makefuncs.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/jsonb.h"

#include "cache/kept_arguments.h"
#include "base/compat.h"

static bool
is_kept(int number)
{
	return geonn_argument_has(&geonn_arguments[number], GEONN_CACHE);
}

static const GeonnArgument *
find_argument(const char *name)
{
	for (int i = 0; i < geonn_argument_count; i++)
	{
		if (is_kept(i) && strcmp(geonn_arguments[i].name, name) == 0)
			return &geonn_arguments[i];
	}
	return NULL;
}

static bool
may_be_null(const GeonnArgument *argument)
{
	return argument->hint == NULL;
}

/*
 * The names of a cache's arguments that are wanted (NULL: of all), behind a first one or NULL: "a, b
 * and c", with this word.
 */
static char *
list_names(const char *first, bool (*wanted) (const GeonnArgument *argument), const char *word)
{
	const char *last = first;
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < geonn_argument_count; i++)
	{
		if (!is_kept(i) || (wanted != NULL && !wanted(&geonn_arguments[i])))
			continue;
		if (last != NULL)
			appendStringInfo(&list, "%s%s", list.len > 0 ? ", " : "", last);
		last = geonn_arguments[i].name;
	}
	appendStringInfo(&list, " %s %s", word, last);
	return list.data;
}

/* ---- as a row ---- */

/*
 * A row of these values, or only of those that are not NULL.
 */
static HeapTuple
make_row(const NullableDatum *values, bool with_nulls)
{
	TupleDesc	type;
	Datum	   *columns = palloc(geonn_argument_count * sizeof(Datum));
	bool	   *nulls = palloc(geonn_argument_count * sizeof(bool));
	AttrNumber	count = 0;

	for (int i = 0; i < geonn_argument_count; i++)
		count += is_kept(i) && (with_nulls || !values[i].isnull);
	type = CreateTemplateTupleDesc(count);
	count = 0;
	for (int i = 0; i < geonn_argument_count; i++)
	{
		if (!is_kept(i) || (!with_nulls && values[i].isnull))
			continue;
		columns[count] = values[i].value;
		nulls[count++] = values[i].isnull;
		TupleDescInitEntry(type, count, geonn_arguments[i].name, geonn_arguments[i].type, -1, 0);
	}
	TupleDescFinalize(type);
	return heap_form_tuple(BlessTupleDesc(type), columns, nulls);
}

/*
 * Look up a function whose first argument is such a row.
 */
static void
find_function(FmgrInfo *function, Oid oid)
{
	Const	   *row = makeNullConst(RECORDOID, -1, InvalidOid);

	fmgr_info(oid, function);
	fmgr_info_set_expr((Node *) makeFuncExpr(oid, RECORDOID, list_make1(row), InvalidOid,
											 InvalidOid, COERCE_EXPLICIT_CALL), function);
}

/*
 * The object of the values that are not NULL.  Numbers have all their digits, whatever
 * extra_float_digits says.
 */
static Jsonb *
to_object(const NullableDatum *values)
{
	int			level = NewGUCNestLevel();
	FmgrInfo	function;
	Jsonb	   *object;

	(void) set_config_option("extra_float_digits", "3", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	find_function(&function, F_TO_JSONB);
	object = DatumGetJsonbP(FunctionCall1(&function,
										  HeapTupleGetDatum(make_row(values, false))));
	AtEOXact_GUC(true, level);
	return object;
}

/*
 * Set the values that the object has.
 */
static void
set_from_object(NullableDatum *values, Jsonb *object)
{
	HeapTuple	former = make_row(values, true);
	FmgrInfo	function;
	HeapTupleHeader row;
	int			count = 0;

	find_function(&function, F_JSONB_POPULATE_RECORD);
	row = DatumGetHeapTupleHeader(FunctionCall2(&function, HeapTupleGetDatum(former),
												JsonbPGetDatum(object)));
	for (int i = 0; i < geonn_argument_count; i++)
	{
		if (is_kept(i))
			values[i].value = GetAttributeByNum(row, (AttrNumber) ++count, &values[i].isnull);
	}
}

/* ---- what a cache keeps ---- */

/*
 * The values without those of k where a radius is among them; an error if those say anything.
 */
static NullableDatum *
of_one_question(const NullableDatum *values)
{
	NullableDatum *kept = palloc(geonn_argument_count * sizeof(NullableDatum));
	bool		has_radius = false;

	for (int i = 0; i < geonn_argument_count; i++)
		has_radius |= is_kept(i) && geonn_argument_of_radius(&geonn_arguments[i]) &&
			!values[i].isnull;
	for (int i = 0; i < geonn_argument_count; i++)
	{
		kept[i] = values[i];
		if (!is_kept(i) || !has_radius || !geonn_argument_of_k(&geonn_arguments[i]))
			continue;
		if (!geonn_argument_is_default(&geonn_arguments[i], values[i]))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("radius is given together with %s",
							list_names(NULL, geonn_argument_of_k, "or")),
					 errdetail("A cache has all references within radius, or the k nearest ones."),
					 errhint("For the k nearest ones up to a distance, give k and max_distance without radius.")));
		kept[i].isnull = true;
	}
	return kept;
}

Jsonb *
geonn_keep_arguments(const NullableDatum *values)
{
	return to_object(of_one_question(values));
}

static void
name_cache(void *cache)
{
	errcontext("arguments of cache \"%s\"", (const char *) cache);
}

/*
 * Raise an error unless an object has arguments of a cache, and no others.
 */
static void
check_names(Jsonb *object)
{
	JsonbIterator *iterator = JsonbIteratorInit(&object->root);
	JsonbIteratorToken token;
	JsonbValue	value;

	if (!JB_ROOT_IS_OBJECT(object))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the arguments of a cache are not an object"),
				 errhint("Drop the cache with geonn_cache_drop, and create it again.")));
	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		char	   *name;

		if (token != WJB_KEY)
			continue;
		name = pnstrdup(value.val.string.val, value.val.string.len);
		if (find_argument(name) == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("a cache has no argument \"%s\"", name),
					 errdetail("Its arguments are %s.", list_names(NULL, NULL, "and")),
					 errhint("Drop the cache with geonn_cache_drop, and create it again.")));
	}
}

/*
 * The values that a cache keeps, and what they are where arguments is not NULL.  The extension
 * writes none that are wrong, but its owner can.
 */
static NullableDatum *
kept_values(const GeonnCache *cache, GeonnArguments **arguments)
{
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = name_cache,
		.arg = cache->name
	};
	NullableDatum *values = palloc0(geonn_argument_count * sizeof(NullableDatum));

	for (int i = 0; i < geonn_argument_count; i++)
		values[i].isnull = true;
	error_context_stack = &context;
	check_names(cache->arguments);
	set_from_object(values, cache->arguments);
	if (arguments != NULL)
	{
		(void) of_one_question(values);
		*arguments = geonn_arguments_read(GEONN_CACHE, values);
	}
	error_context_stack = context.previous;
	return values;
}

GeonnArguments *
geonn_kept_arguments(const GeonnCache *cache)
{
	GeonnArguments *arguments;

	(void) kept_values(cache, &arguments);
	arguments->obs = cache->obs;
	arguments->ref = cache->ref;
	return arguments;
}

/* ---- changes ---- */

/*
 * Check the keys and values of changes, or raise an error.  Returns whether k and radius are given
 * and not null.
 */
static void
check_changes(Jsonb *changes, bool *has_k, bool *has_radius)
{
	JsonbIterator *iterator = JsonbIteratorInit(&changes->root);
	JsonbIteratorToken token;
	JsonbValue	value;
	char	   *key = NULL;
	const GeonnArgument *argument = NULL;

	*has_k = *has_radius = false;
	if (!JB_ROOT_IS_OBJECT(changes))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the argument changes is not an object"),
				 errhint("Give an object, as in '{\"k\": 5}'.")));
	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		Assert(key != NULL || token != WJB_VALUE);	/* a key precedes its value */
		if (token == WJB_KEY)
		{
			key = pnstrdup(value.val.string.val, value.val.string.len);
			argument = find_argument(key);
			if (argument == NULL && strcmp(key, "name") != 0)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("\"%s\" of a cache cannot be changed", key),
						 errdetail("A change names any of %s.", list_names("name", NULL, "and")),
						 errhint("For other observations, references or another table, create a new cache.")));
		}
		else if (token == WJB_VALUE && value.type == jbvNull &&
				 (argument == NULL || argument->hint != NULL))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("\"%s\" of a cache cannot be null", key),
					 errdetail("Null can be given for %s.", list_names(NULL, may_be_null, "and")),
					 errhint("Give a value, or leave \"%s\" out to keep the present one.", key)));
		else if (token == WJB_VALUE && value.type != jbvNull)
		{
			*has_k |= strcmp(key, "k") == 0;
			*has_radius |= strcmp(key, "radius") == 0;
		}
	}
	if (*has_k && *has_radius)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("changes has both k and radius"),
				 errdetail("A cache has all references within radius, or the k nearest ones."),
				 errhint("Leave out one of them; for the k nearest ones up to a distance, give k and max_distance.")));
}

Jsonb *
geonn_change_arguments(const GeonnCache *cache, Jsonb *changes)
{
	NullableDatum *values;
	bool		has_k;
	bool		has_radius;

	check_changes(changes, &has_k, &has_radius);
	values = kept_values(cache, NULL);
	for (int i = 0; i < geonn_argument_count; i++)
	{
		if ((has_k && geonn_argument_of_radius(&geonn_arguments[i])) ||
			(has_radius && geonn_argument_of_k(&geonn_arguments[i])))
			values[i].isnull = true;
	}
	set_from_object(values, changes);
	(void) geonn_arguments_read(GEONN_CACHE, values);
	return geonn_keep_arguments(values);
}
