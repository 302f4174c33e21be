/*
 * definition.c
 *		What a cache asks: the arguments that it keeps, the join that they make, and the columns that its
 *		table has for the answer.
 *
 * The arguments of a cache are those of geonn_nearest, geonn_within, geonn_within_count or
 * geonn_cluster.  The same table describes them (join/arguments.c), when the cache is made and in
 * each refresh.
 *
 * The column geonn_cache.arguments is an object of arguments by name, with those of the table in
 * join/arguments.c that caches have.  One that is NULL is left out, and one that is not there
 * has its default, so a cache lives on when an argument is added.  A cache has arguments of one
 * question, never of two.  PostgreSQL's own functions turn values into JSON and back, as in a
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
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "cache/definition.h"
#include "base/compat.h"
#include "base/value.h"
#include "base/words.h"
#include "join/nearest.h"

/* ---- names of arguments ---- */

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
 * Write names as "a, b and c", with `word` in place of "and": `first`, if any, then the arguments of
 * a cache that `wanted` accepts (NULL: all).
 */
static char *
list_names(const char *first, bool (*wanted) (const GeonnArgument *argument), const char *word)
{
	List	   *names = first == NULL ? NIL : list_make1(unconstify(char *, first));

	for (int i = 0; i < geonn_argument_count; i++)
	{
		if (is_kept(i) && (wanted == NULL || wanted(&geonn_arguments[i])))
			names = lappend(names, unconstify(char *, geonn_arguments[i].name));
	}
	return geonn_list_names(names, "", word);
}

/* ---- as a row ---- */

/* Make a row of these values, or only of those that are not NULL. */
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
 * Look up a function whose first argument is a record.
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

static const char question_detail[] = "A cache has the k nearest references, all references within radius, how many are within radii, or the clusters of one relation.";

/* Set the arguments of other questions than the cache's own to NULL.  Raises an error unless they had their defaults. */
static void
check_question(NullableDatum *values)
{
	const char *question;
	int			asked = geonn_arguments_question(values, &question);
	const GeonnArgument *excluded = geonn_arguments_of_one_question(values, &question);

	if (excluded == NULL)
		return;
	if (asked != GEONN_OF_CLUSTERS && geonn_argument_questions(excluded) == GEONN_OF_RADII)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is given without radii", excluded->name),
				 errdetail_internal("%s", question_detail),
				 errhint("Give radii, too: weights are added up within them.")));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%s is given together with %s", question, excluded->name),
			 errdetail_internal("%s", question_detail),
			 asked != GEONN_OF_RADIUS ? errhint("Leave %s out.", excluded->name) :
			 errhint("For the k nearest ones up to a distance, give k and max_distance without radius.")));
}

Jsonb *
geonn_keep_arguments(NullableDatum *values)
{
	int			level = NewGUCNestLevel();
	FmgrInfo	function;
	Jsonb	   *object;

	check_question(values);
	/* numbers have all their digits */
	geonn_set("extra_float_digits", "3");
	find_function(&function, F_TO_JSONB);
	object = DatumGetJsonbP(FunctionCall1(&function,
										  HeapTupleGetDatum(make_row(values, false))));
	AtEOXact_GUC(true, level);
	return object;
}

static void
name_cache(void *cache)
{
	errcontext("arguments of cache \"%s\"", (const char *) cache);
}

/* Return the next key of an object, and its value unless that is an array or object.  Returns NULL at the end. */
static char *
next_key(JsonbIterator **iterator, JsonbValue *value)
{
	JsonbIteratorToken token;
	char	   *key;

	do
		token = JsonbIteratorNext(iterator, value, true);
	while (token != WJB_KEY && token != WJB_DONE);
	if (token == WJB_DONE)
		return NULL;
	key = pnstrdup(value->val.string.val, value->val.string.len);
	(void) JsonbIteratorNext(iterator, value, true);
	return key;
}

/*
 * Raise an error unless the keys of an object are arguments of a cache.  Changes may also have the key name, for the
 * cache's name, and may have null only as a value of arguments that allow it.  Returns the questions for which an
 * argument that asks them is given and not null, as bits GEONN_OF_...; radius asks for clusters where these are the
 * cache's own question (`present`).
 */
static int
check_keys(Jsonb *object, bool is_changes, int present)
{
	int			code = is_changes ? ERRCODE_INVALID_PARAMETER_VALUE : ERRCODE_DATA_CORRUPTED;
	JsonbIterator *iterator = JsonbIteratorInit(&object->root);
	JsonbValue	value;
	char	   *key;
	int			asked = 0;

	if (!JB_ROOT_IS_OBJECT(object))
		ereport(ERROR,
				(errcode(code),
				 is_changes ? errmsg("the argument changes is not an object") :
				 errmsg("the arguments of a cache are not an object"),
				 is_changes ? errhint("Give an object, as in '{\"k\": 5}'.") :
				 errhint("Drop the cache with geonn_cache_drop, and create it again.")));
	while ((key = next_key(&iterator, &value)) != NULL)
	{
		const GeonnArgument *argument = find_argument(key);

		if (argument == NULL && !(is_changes && strcmp(key, "name") == 0))
			ereport(ERROR,
					(errcode(code),
					 is_changes ? errmsg("\"%s\" of a cache cannot be changed", key) :
					 errmsg("a cache has no argument \"%s\"", key),
					 is_changes ? errdetail("A change names any of %s.", list_names("name", NULL, "and")) :
					 errdetail("Its arguments are %s.", list_names(NULL, NULL, "and")),
					 is_changes ? errhint("For other observations, references or another table, create a new cache.") :
					 errhint("Drop the cache with geonn_cache_drop, and create it again.")));
		if (value.type != jbvNull)
		{
			int			asks = argument != NULL ? geonn_argument_asks(argument) : 0;

			asked |= asks != 0 && (geonn_argument_questions(argument) & present) != 0 ? present : asks;
		}
		else if (is_changes && (argument == NULL || !may_be_null(argument)))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("\"%s\" of a cache cannot be null", key),
					 errdetail("Null can be given for %s.", list_names(NULL, may_be_null, "and")),
					 errhint("Give a value, or leave \"%s\" out to keep the present one.", key)));
	}
	return asked;
}

/*
 * Return the values that a cache keeps; check and parse them unless arguments is NULL.  Only the extension's
 * owner can have written wrong values.
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
	(void) check_keys(cache->arguments, false, 0);
	set_from_object(values, cache->arguments);
	if (arguments != NULL)
	{
		check_question(values);
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

/* Return what the table of a cache of these questions has, as bits GEONN_OF_... */
static const char *
contents_of(int questions)
{
	return (questions & GEONN_OF_CLUSTERS) != 0 ? "clusters" : (questions & GEONN_OF_RADII) != 0 ? "counts" : "neighbours";
}

/*
 * Check changes of a cache with the question `present`, or raise an error.  Returns the question that the changes ask, as a
 * bit GEONN_OF_...; 0: none.
 */
static int
check_changes(Jsonb *changes, int present)
{
	int			asked = check_keys(changes, true, present);

	if ((asked & (asked - 1)) != 0 && ((asked | present) & GEONN_OF_CLUSTERS) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("changes has more than one of k, radius and radii"),
				 errdetail_internal("%s", question_detail),
				 errhint("Give one of them; for the k nearest ones up to a distance, give k and max_distance.")));
	return asked;
}

Jsonb *
geonn_change_arguments(const GeonnCache *cache, Jsonb *changes)
{
	NullableDatum *values = kept_values(cache, NULL);
	const char *question;
	int			present = geonn_arguments_question(values, &question);
	int			asked = check_changes(changes, present);

	if (asked != 0 && strcmp(contents_of(asked), contents_of(present)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a cache of %s cannot become one of %s", contents_of(present), contents_of(asked)),
				 errdetail("Their tables have other columns."),
				 errhint("Create a new cache with geonn_cache_create.")));
	for (int i = 0; i < geonn_argument_count; i++)
	{
		int			questions = geonn_argument_questions(&geonn_arguments[i]);

		if (asked != 0 && questions != 0 && (questions & asked) == 0)
			values[i].isnull = true;
	}
	set_from_object(values, changes);
	(void) geonn_arguments_read(GEONN_CACHE, values);
	return geonn_keep_arguments(values);
}

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
	GeonnArguments *arguments = geonn_kept_arguments(cache);

	check_relation(cache, cache->obs, arguments->join->question.min_points > 0 ? "of points" : "obs");
	check_relation(cache, cache->ref, "ref");
	return geonn_make_join(arguments);
}

/* Return whether the cache is one of clusters. */
static bool
has_clusters(const GeonnCache *cache)
{
	return geonn_kept_arguments(cache)->join->question.min_points > 0;
}

/* What hint_at_alter() says of a cache. */
typedef struct AlterHint
{
	const char *name;
	const char *options;		/* an example */
} AlterHint;

/* Error callback: if a column is missing, hint at geonn_cache_alter(), which can name another one. */
static void
hint_at_alter(void *state)
{
	const AlterHint *hint = state;
	int			code = geterrcode();

	if (code == ERRCODE_UNDEFINED_COLUMN || code == ERRCODE_AMBIGUOUS_COLUMN)
		errhint("If a column was renamed, rename it back, or have the cache read it: columns are named by options, by, differs, overlaps and weights, as in SELECT geonn_cache_alter(%s, '{\"options\": %s}').",
				quote_literal_cstr(hint->name), hint->options);
}

GeonnJoin *
geonn_cache_join_again(const GeonnCache *cache)
{
	AlterHint	hint = {
		cache->name,
		has_clusters(cache) ? "{\"lat\": \"y\", \"lon\": \"x\"}" : "{\"obs_lat\": \"y\", \"obs_lon\": \"x\"}"
	};
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = hint_at_alter,
		.arg = &hint
	};
	GeonnJoin  *join;

	error_context_stack = &context;
	join = geonn_cache_join(cache);
	error_context_stack = context.previous;
	return join;
}

/* ---- the target's columns ---- */

/* A column of a target.  Columns of ids have the type of the ids. */
typedef struct TargetDefinition
{
	const char *name;
	Oid			type;
} TargetDefinition;

static const TargetDefinition pair_columns[] = {
	[TARGET_OBSERVATION_ID] = {"obs_id", InvalidOid},
	[TARGET_RANK] = {"rank", INT4OID},
	[TARGET_REFERENCE_ID] = {"ref_id", InvalidOid},
	[TARGET_DISTANCE] = {"distance", FLOAT8OID}
};

static const TargetDefinition count_columns[] = {
	[TARGET_OBSERVATION_ID] = {"obs_id", InvalidOid},
	[TARGET_RANK] = {"rank", INT4OID},
	{"radius", FLOAT8OID},
	{"count", INT8OID},
	{"sums", FLOAT8ARRAYOID}
};

static const TargetDefinition cluster_columns[] = {
	[TARGET_OBSERVATION_ID] = {"id", InvalidOid},
	[TARGET_CLUSTER] = {"cluster", InvalidOid},
	{"kind", TEXTOID}
};

StaticAssertDecl(lengthof(pair_columns) <= TARGET_COLUMNS_MAX && lengthof(count_columns) <= TARGET_COLUMNS_MAX,
				 "a target has too many columns");

static const PointColumn *
id_column(const GeonnJoin *join, TargetColumn column)
{
	return column == TARGET_OBSERVATION_ID ? &join->observations->columns[COLUMN_ID] :
		&join->references->columns[COLUMN_ID];
}

TupleDesc
geonn_cache_row_type(const GeonnJoin *join)
{
	bool		clusters = join->question.min_points > 0;
	bool		counts = join->question.radii > 0;
	const TargetDefinition *columns = clusters ? cluster_columns : counts ? count_columns : pair_columns;
	int			count = clusters ? lengthof(cluster_columns) : counts ? lengthof(count_columns) : lengthof(pair_columns);
	TupleDesc	type = CreateTemplateTupleDesc(count);

	for (int i = 0; i < count; i++)
	{
		AttrNumber	number = (AttrNumber) (i + 1);

		if (!OidIsValid(columns[i].type))
		{
			const PointColumn *id = id_column(join, i);

			/* points without a cluster have NULL there, which a domain may refuse */
			if (clusters && i == TARGET_CLUSTER)
				TupleDescInitEntry(type, number, columns[i].name, id->base_type, id->typmod, 0);
			else
				TupleDescInitEntry(type, number, columns[i].name, id->type, geonn_declared_typmod(id), 0);
			TupleDescInitEntryCollation(type, number, id->collation);
		}
		else
			TupleDescInitEntry(type, number, columns[i].name, columns[i].type, -1, 0);
	}
	TupleDescFinalize(type);
	return BlessTupleDesc(type);
}

bool
geonn_target_is_key(TupleDesc row_type, int column)
{
	return column == TARGET_OBSERVATION_ID ||
		(column == TARGET_RANK && strcmp(NameStr(TupleDescAttr(row_type, column)->attname), "rank") == 0);
}

const char *
geonn_target_key(TupleDesc row_type)
{
	return geonn_target_is_key(row_type, TARGET_RANK) ? "(obs_id, rank)" : "(id)";
}

void
geonn_target_attributes(Oid target, TupleDesc row_type, AttrNumber *attributes)
{
	for (int i = 0; i < row_type->natts; i++)
		attributes[i] = get_attnum(target, NameStr(TupleDescAttr(row_type, i)->attname));
}

char *
geonn_cache_definitions(const GeonnJoin *join)
{
	TupleDesc	type = geonn_cache_row_type(join);
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < type->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(type, i);

		appendStringInfo(&text, "%s%s %s", i > 0 ? ", " : "", NameStr(column->attname),
						 geonn_type_sql(column->atttypid, column->atttypmod, column->attcollation));
		/* With NOT NULL here, ADD PRIMARY KEY need not scan all rows for NULLs. */
		if (geonn_target_is_key(type, i))
			appendStringInfoString(&text, " NOT NULL");
	}
	return text.data;
}

/* ---- ids that cannot be keys ---- */

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
				 errdetail("The primary key of a cache's table, %s, is in the btree order of the type.",
						   geonn_target_key(geonn_cache_row_type(join))),
				 errhint("Use a column of another type as id, by %s in options or in a view.",
						 join->question.min_points > 0 ? "id" : "obs_id")));
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
			 errhint("Name another column as %s in options, or give cache \"%s\" a view that has each id once.",
					 has_clusters(cache) ? "id" : "obs_id", cache->name)));
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
