/*
 * sql.c
 *		Statements of the caches' code: the role that each runs as, and what becomes of its errors.
 *
 * The extension's owner owns the extension's tables, and no other role reads or writes them: users
 * have the views.  So statements on these tables run with the owner's privileges, most often a
 * superuser's, and must find nothing by name that another role could have put there.  The
 * search_path is set for them; functions, operators (OPERATOR(pg_catalog.=), and no IN, CASE x WHEN
 * or IS DISTINCT FROM), types and relations are qualified all the same; and own_names.c checks the
 * objects that the names resolve to.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "cache/own_names.h"
#include "cache/sql.h"

/* ---- the extension's objects ---- */

Oid
geonn_cache_schema(FunctionCallInfo fcinfo)
{
	return get_func_namespace(fcinfo->flinfo->fn_oid);
}

static void
raise_missing(const char *table)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("the extension's table %s does not exist", table),
			 errhint("Run ALTER EXTENSION geonn UPDATE, or drop and create the extension.")));
}

Oid
geonn_cache_table(Oid schema)
{
	Oid			relation = get_relname_relid("geonn_cache", schema);

	if (!OidIsValid(relation))
		raise_missing("geonn_cache");
	return relation;
}

Oid
geonn_own_table(Oid schema, const char *name)
{
	Oid			relation = get_relname_relid(name, schema);

	if (!OidIsValid(relation) || !geonn_is_own_relation(relation))
		raise_missing(name);
	return relation;
}

Oid
geonn_relation_owner(Oid relation)
{
	HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(row))
	{
		owner = ((Form_pg_class) GETSTRUCT(row))->relowner;
		ReleaseSysCache(row);
	}
	return owner;
}

/* ---- statements ---- */

void
geonn_set_search_path(void)
{
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

void
geonn_plan_by_index(void)
{
	/* costs, and thus statistics, choose only among what is left */
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
		(void) set_config_option(settings[i].setting, settings[i].value, PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
}

void
geonn_run_command(const char *command)
{
	int			result = SPI_execute(command, false, 0);

	if (result < 0)
		elog(ERROR, "could not run \"%s\": %s", command, SPI_result_code_string(result));
}

static void
run_prepared(const char *statement, Snapshot snapshot, int count, const Oid *types,
			 const Datum *values, const char *nulls)
{
	SPIPlanPtr	plan = SPI_prepare(statement, count, unconstify(Oid *, types));
	int			result;

	if (plan == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", statement, SPI_result_code_string(SPI_result));
	result = SPI_execute_snapshot(plan, unconstify(Datum *, values), nulls,
								  snapshot == NULL ? InvalidSnapshot : snapshot,
								  InvalidSnapshot, false, true, 0);
	if (result < 0)
		elog(ERROR, "could not run \"%s\": %s", statement, SPI_result_code_string(result));
	SPI_freeplan(plan);
}

uint64
geonn_run_as(Oid role, const char *statement, Snapshot snapshot, int count,
			 const Oid *types, const Datum *values, const char *nulls)
{
	GeonnOwnNames names = {.statement = statement};
	const GeonnOwnNames *former;
	Oid			user;
	int			context;
	int			level = NewGUCNestLevel();

	/* no operators and functions of other roles; and by indexes, whatever the statistics say */
	geonn_set_search_path();
	geonn_plan_by_index();
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(role, context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS);
	former = geonn_look_at_names(&names);
	PG_TRY();
	{
		run_prepared(statement, snapshot, count, types, values, nulls);
	}
	PG_FINALLY();
	{
		(void) geonn_look_at_names(former);
	}
	PG_END_TRY();
	SetUserIdAndSecContext(user, context);
	AtEOXact_GUC(true, level);
	return SPI_processed;
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

uint64
geonn_catalog_run(Oid schema, const char *statement, Snapshot snapshot, int count,
				  const Oid *types, const Datum *values, const char *nulls)
{
	return geonn_run_as(geonn_relation_owner(geonn_cache_table(schema)),
						with_schema(statement, schema), snapshot, count, types, values, nulls);
}

/* ---- errors ---- */

/*
 * Errors of parallel workers have names of functions that do not outlive them.
 */
ErrorData *
geonn_take_error(MemoryContext context)
{
	ErrorData  *error;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	error->filename = error->filename == NULL ? NULL : pstrdup(error->filename);
	error->funcname = error->funcname == NULL ? NULL : pstrdup(error->funcname);
	FlushErrorState();
	return error;
}

ErrorData *
geonn_attempt(void (*step) (void *state), void *state)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		step(state);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		error = geonn_take_error(context);
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}
