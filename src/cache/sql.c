/*
 * sql.c
 *		Statements of the caches' code: the role that each runs as, and what its names may be.
 *
 * The extension's owner owns the extension's tables, and no other role reads or writes them: users
 * have the views.  So statements on these tables run with the owner's privileges, most often a
 * superuser's, and must find nothing by name that another role could have put there.  The
 * search_path is set for them; functions, operators (OPERATOR(pg_catalog.=), and no IN, CASE x WHEN
 * or IS DISTINCT FROM), types and relations are qualified all the same.
 *
 * The statements name their schema, and a schema's owner can rename it at any
 * time: no lock keeps a schema's name.  Between the moment when the module reads that name and
 * the moment when the parser looks it up, another schema can get it, with
 * tables, triggers and functions of its owner's.  These would run with the privileges that the
 * statement has.  It is not enough to look at a plan before it is executed: when the plan cache
 * hears that a relation was analyzed, it parses the text again, and names can then be
 * found elsewhere.
 *
 * So a hook looks at each analysis of such a statement, the first one and all later ones.  It
 * comes before rewriting and planning, and thus before anything of what was found has
 * run: rules, policies and constant expressions of another's relation do not count.  Later nothing is
 * looked up by name any more, and the relations stay locked.
 *
 *	 - A statement that writes a cache's table must have found that table.
 *	 - All others must have found relations and functions of pg_catalog, of this extension and of
 *	   pg_cron.  Only superusers, and the role that created an extension, can add to it.
 *
 * Statements that triggers or functions execute meanwhile have another text.
 *
 * Another hook starts the statements that write a cache's table without the triggers that notice changes
 * (cache/last_run.c): it removes them from the executor's description of the table.  Only a query of the
 * very plan that the refresh executes counts as its own.
 *
 * Where the module opens a table of its own by access methods, it checks in the same way that the name
 * is that of this extension's table.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parse_node.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "cache/sql.h"
#include "base/compat.h"
#include "base/extension.h"

/* ---- the extension's objects ---- */

Oid
geonn_cache_schema(FunctionCallInfo fcinfo)
{
	return get_func_namespace(fcinfo->flinfo->fn_oid);
}

Oid
geonn_own_table(Oid schema, const char *name)
{
	Oid			relation = get_relname_relid(name, schema);

	if (!OidIsValid(relation) || strcmp(geonn_extension_of(RelationRelationId, relation), "geonn") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the extension's table %s does not exist", name),
				 errhint("Run ALTER EXTENSION geonn UPDATE, or drop and create the extension.")));
	return relation;
}

Oid
geonn_cache_table(Oid schema)
{
	return geonn_own_table(schema, "geonn_cache");
}

Oid
geonn_changes_function(Oid schema)
{
	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
						   CStringGetDatum("geonn_cache_changed"),
						   PointerGetDatum(buildoidvector(NULL, 0)),
						   ObjectIdGetDatum(schema));
}

Oid
geonn_relation_owner(Oid relation)
{
	return GetSysCacheOid1(RELOID, Anum_pg_class_relowner, ObjectIdGetDatum(relation));
}

/* ---- names ---- */

/* The module's own statement that this backend is preparing or executing, or NULL. */
static const GeonnOwnStatement *own_statement = NULL;

static post_parse_analyze_hook_type previous_analyze;
static ExecutorStart_hook_type previous_start;

static bool
is_trusted(Oid catalog, Oid object, Oid schema)
{
	const char *extension;

	if (schema == PG_CATALOG_NAMESPACE)
		return true;
	extension = geonn_extension_of(catalog, object);
	return strcmp(extension, "geonn") == 0 || strcmp(extension, "pg_cron") == 0;
}

static bool
is_foreign_function(Oid function, void *state pg_attribute_unused())
{
	return !is_trusted(ProcedureRelationId, function, get_func_namespace(function));
}

/* Return whether the tree has an untrusted relation or function (is_trusted). */
static bool
has_foreign(Node *node, void *state)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, has_foreign, state, QTW_EXAMINE_RTES_BEFORE);
	if (IsA(node, RangeTblEntry))
	{
		/* what else it has comes next */
		Oid			relation = ((RangeTblEntry *) node)->relid;

		return ((RangeTblEntry *) node)->rtekind == RTE_RELATION &&
			!is_trusted(RelationRelationId, relation, get_rel_namespace(relation));
	}
	return check_functions_in_node(node, is_foreign_function, state) ||
		expression_tree_walker(node, has_foreign, state);
}

static bool
is_meant(Query *query, Oid target)
{
	if (!OidIsValid(target))
		return !has_foreign((Node *) query, NULL);
	return query->resultRelation > 0 &&
		rt_fetch(query->resultRelation, query->rtable)->relid == target;
}

static void
look_at_query(ParseState *state, Query *query, geonn_jumble_state *jumble)
{
	if (previous_analyze != NULL)
		previous_analyze(state, query, jumble);
	if (own_statement == NULL || state->p_sourcetext == NULL ||
		strcmp(state->p_sourcetext, own_statement->statement) != 0 ||
		is_meant(query, own_statement->target))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("a name in a statement of geonn's is that of another object"),
			 errdetail("The statement is: %s", own_statement->statement),
			 errhint("If a schema was renamed meanwhile, run the same command again.")));
}

/* ---- triggers that do not fire ---- */

/* Disable the triggers of this function in the copy of the triggers that the executor makes for a statement. */
static void
leave_out_triggers(ResultRelInfo *relation, Oid function)
{
	TriggerDesc *triggers = relation->ri_TrigDesc;
	bool		others = false;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		if (triggers->triggers[i].tgfoid == function)
			triggers->triggers[i].tgenabled = TRIGGER_DISABLED;
		else
			others = true;
	}
	/* Without any trigger left, the executor need not fetch the former rows. */
	if (!others)
		relation->ri_TrigDesc = NULL;
}

static void
start_query(QueryDesc *query, int flags)
{
	const GeonnOwnStatement *own = own_statement;
	ListCell   *cell;

	if (previous_start != NULL)
		previous_start(query, flags);
	else
		standard_ExecutorStart(query, flags);

	/* A rule may have added statements to the plan: they do not set the command tag. */
	if (own == NULL || own->plan == NULL || !query->plannedstmt->canSetTag ||
		!list_member_ptr(own->plan->stmt_list, query->plannedstmt))
		return;
	foreach(cell, query->estate->es_opened_result_relations)
	{
		ResultRelInfo *relation = lfirst(cell);

		if (RelationGetRelid(relation->ri_RelationDesc) == own->target)
			leave_out_triggers(relation, own->triggers);
	}
}

/* ---- the module's own statements ---- */

const GeonnOwnStatement *
geonn_set_own_statement(const GeonnOwnStatement *own)
{
	const GeonnOwnStatement *former = own_statement;

	own_statement = own;
	return former;
}

void
geonn_own_statements(void)
{
	previous_analyze = post_parse_analyze_hook;
	post_parse_analyze_hook = look_at_query;
	previous_start = ExecutorStart_hook;
	ExecutorStart_hook = start_query;
}

void
geonn_set(const char *setting, const char *value)
{
	(void) set_config_option(setting, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
							 false);
}

GeonnIdentity
geonn_become(Oid role, int restrictions)
{
	GeonnIdentity former = {.level = NewGUCNestLevel()};

	GetUserIdAndSecContext(&former.user, &former.context);
	SetUserIdAndSecContext(role, former.context | restrictions);
	geonn_set("search_path", "pg_catalog, pg_temp");
	return former;
}

void
geonn_become_former(GeonnIdentity former)
{
	AtEOXact_GUC(false, former.level);
	SetUserIdAndSecContext(former.user, former.context);
}

void
geonn_plan_by_index(void)
{
	/* Settings with which costs, and so statistics, do not choose another plan. */
	static const struct
	{
		const char *setting;
		const char *value;
	}			settings[] = {
		{"enable_bitmapscan", "off"},
		{"enable_hashjoin", "off"},
		{"enable_indexonlyscan", "off"},
		{"enable_indexscan", "on"},
		{"enable_material", "off"},
		{"enable_memoize", "off"},
		{"enable_mergejoin", "off"},
		{"enable_nestloop", "on"},
		{"enable_seqscan", "off"},
		{"enable_tidscan", "on"},
		{"jit", "off"},
		{"max_parallel_workers_per_gather", "0"}
	};

	for (int i = 0; i < (int) lengthof(settings); i++)
		geonn_set(settings[i].setting, settings[i].value);
}

void
geonn_run_command(const char *command)
{
	int			result;

	SPI_connect();
	result = SPI_execute(command, false, 0);
	if (result < 0)
		elog(ERROR, "could not run \"%s\": %s", command, SPI_result_code_string(result));
	SPI_finish();
}

/* Copy the rows that SPI has read or changed into this memory context. */
static GeonnRows *
copy_rows(MemoryContext context)
{
	MemoryContext former = MemoryContextSwitchTo(context);
	GeonnRows  *rows = palloc0(sizeof(GeonnRows));

	rows->count = SPI_processed;
	if (SPI_tuptable != NULL)
	{
		rows->type = CreateTupleDescCopy(SPI_tuptable->tupdesc);
		rows->rows = palloc(rows->count * sizeof(HeapTuple));
		for (uint64 i = 0; i < rows->count; i++)
			rows->rows[i] = heap_copytuple(SPI_tuptable->vals[i]);
	}
	MemoryContextSwitchTo(former);
	return rows;
}

static GeonnRows *
run_prepared(const char *statement, Snapshot snapshot, int count, const GeonnValue *values)
{
	MemoryContext context = CurrentMemoryContext;
	Oid			types[GEONN_VALUES_MAX];
	Datum		data[GEONN_VALUES_MAX];
	char		nulls[GEONN_VALUES_MAX];
	SPIPlanPtr	plan;
	GeonnRows  *rows;
	int			result;

	Assert(count <= GEONN_VALUES_MAX);
	for (int i = 0; i < count; i++)
	{
		types[i] = values[i].type;
		data[i] = values[i].value;
		nulls[i] = values[i].is_null ? 'n' : ' ';
	}
	SPI_connect();
	plan = SPI_prepare(statement, count, types);
	if (plan == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", statement, SPI_result_code_string(SPI_result));
	result = SPI_execute_snapshot(plan, data, nulls, snapshot == NULL ? InvalidSnapshot : snapshot,
								  InvalidSnapshot, false, true, 0);
	if (result < 0)
		elog(ERROR, "could not run \"%s\": %s", statement, SPI_result_code_string(result));
	rows = copy_rows(context);
	SPI_finish();
	return rows;
}

GeonnRows *
geonn_run_as(Oid role, const char *statement, Snapshot snapshot, int count, const GeonnValue *values)
{
	GeonnOwnStatement own = {.statement = statement};
	const GeonnOwnStatement *former;
	GeonnRows  *volatile rows = NULL;
	GeonnIdentity caller = geonn_become(role, SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS);

	/* whatever the statistics say */
	geonn_plan_by_index();
	former = geonn_set_own_statement(&own);
	PG_TRY();
	{
		rows = run_prepared(statement, snapshot, count, values);
	}
	PG_FINALLY();
	{
		(void) geonn_set_own_statement(former);
	}
	PG_END_TRY();
	geonn_become_former(caller);
	return rows;
}

/*
 * Put the schema in place of each $S.
 */
static char *
with_schema(const char *statement, Oid schema)
{
	const char *name = quote_identifier(get_namespace_name(schema));
	StringInfoData text;

	initStringInfo(&text);
	for (const char *next = statement; *next != '\0'; next++)
	{
		if (next[0] == '$' && next[1] == 'S')
		{
			appendStringInfoString(&text, name);
			next++;
		}
		else
			appendStringInfoChar(&text, *next);
	}
	return text.data;
}

GeonnRows *
geonn_catalog_run(Oid schema, const char *statement, Snapshot snapshot, int count,
				  const GeonnValue *values)
{
	return geonn_run_as(geonn_relation_owner(geonn_cache_table(schema)),
						with_schema(statement, schema), snapshot, count, values);
}

Datum
geonn_row_value(const GeonnRows *rows, uint64 row, int column)
{
	bool		is_null;
	Datum		value = heap_getattr(rows->rows[row], column, rows->type, &is_null);

	if (is_null)
		elog(ERROR, "column %d of a row of geonn's own tables is NULL", column);
	return value;
}

char *
geonn_row_text(const GeonnRows *rows, uint64 row, int column)
{
	return SPI_getvalue(rows->rows[row], rows->type, column);
}
