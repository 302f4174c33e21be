/*
 * query.c
 *		The plan of a query that only reads, and the names of relations in it.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_namespace.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/analyze.h"
#include "parser/parse_relation.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/varlena.h"

#include "base/compat.h"
#include "points/query.h"

/* Give the hint for a text that does not begin like a statement: a name alone probably means a table. */
static void
hint_at_statements(const char *query)
{
	List	   *names = NIL;
	ListCell   *cell;
	StringInfoData table;

	if (strpbrk(query, ";(),'") != NULL ||
		!SplitIdentifierString(pstrdup(query), '.', &names) || names == NIL)
	{
		errhint("Give one SELECT, as in 'SELECT id, lat, lon FROM city', or TABLE and a name, as in 'TABLE city'.");
		return;
	}
	initStringInfo(&table);
	foreach(cell, names)
		appendStringInfo(&table, "%s%s", table.len > 0 ? "." : "", quote_identifier(lfirst(cell)));
	errhint("For a table or view, write TABLE %s, or call geonn_nearest or geonn_within with its name.",
			table.data);
}

/* Let an error's position refer to the query, instead of the statement that contains it. */
static void
explain_query(void *argument)
{
	const char *query = argument;
	int			position = geterrposition();

	if (position <= 0)
		return;
	if (geterrcode() == ERRCODE_SYNTAX_ERROR &&
		strspn(query, " \t\n\r\f") == (size_t) position - 1)
		hint_at_statements(query);
	if (geterrcode() == ERRCODE_UNDEFINED_PARAMETER)
		errhint("The query has no parameters: put values into its text, as in format('SELECT id, lat, lon FROM city WHERE country = %%L', $1), or use a view.");
	errposition(0);
	internalerrposition(position);
	internalerrquery(query);
}

/*
 * Return whether the name in the query has resolved to this relation.  Before, a rename of a schema could have given the
 * name to another relation.  Now the relation is locked, and the name is not looked up again.
 */
static bool
reads(const Query *query, Oid relation)
{
	return query->rtable != NIL && linitial_node(RangeTblEntry, query->rtable)->relid == relation;
}

/* Return the analyzed query SELECT * FROM (query) WHERE conditions. */
static Query *
filter_query(Query *query, List *conditions)
{
	ParseState *state = make_parsestate(NULL);
	ParseNamespaceItem *item = addRangeTableEntryForSubquery(state, query, makeAlias("points", NIL),
														   false, true);
	RangeTblRef *reference = makeNode(RangeTblRef);
	Query	   *outer = makeNode(Query);
	ListCell   *cell;

	Assert(query->commandType == CMD_SELECT && !query->hasModifyingCTE);
	reference->rtindex = item->p_rtindex;
	outer->commandType = CMD_SELECT;
	outer->querySource = query->querySource;
	outer->queryId = query->queryId;
	outer->canSetTag = true;
	outer->rtable = state->p_rtable;
	outer->jointree = makeFromExpr(list_make1(reference),
								   (Node *) make_ands_explicit(copyObject(conditions)));
	foreach(cell, query->targetList)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);

		if (entry->resjunk)
			continue;
		outer->targetList = lappend(outer->targetList,
									makeTargetEntry((Expr *) makeVarFromTargetEntry(item->p_rtindex, entry),
													entry->resno, entry->resname, false));
	}
	free_parsestate(state);
	return outer;
}

PlannedStmt *
geonn_plan_query(const char *query, const char *title, int options, Oid relation, List *conditions)
{
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = explain_query,
		.arg = unconstify(char *, query)
	};
	List	   *parsed;
	List	   *rewritten = NIL;
	PlannedStmt *plan = NULL;
	bool		is_meant = true;
	int			level = NewGUCNestLevel();	/* an error ends the nest level, too */

	if (options & GEONN_PLAN_TABLES)
		(void) set_config_option("enable_indexonlyscan", "off", PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	error_context_stack = &context;
	parsed = pg_parse_query(query);
	if (list_length(parsed) == 1)
	{
		Query	   *analyzed = parse_analyze_fixedparams(linitial_node(RawStmt, parsed), query,
														 NULL, 0, NULL);

		is_meant = !OidIsValid(relation) || reads(analyzed, relation);
		/* A query that changes rows gets no filter: it is refused below. */
		if (conditions != NIL && analyzed->commandType == CMD_SELECT && !analyzed->hasModifyingCTE)
			analyzed = filter_query(analyzed, conditions);
		if (is_meant)
			rewritten = pg_rewrite_query(analyzed);
	}
	if (list_length(rewritten) == 1 &&
		linitial_node(Query, rewritten)->commandType == CMD_SELECT)
		plan = geonn_pg_plan_query(linitial_node(Query, rewritten), query, options & ~GEONN_PLAN_TABLES);
	AtEOXact_GUC(true, level);
	error_context_stack = context.previous;
	if (!is_meant)
		return NULL;
	if (plan == NULL || !CommandIsReadOnly(plan))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("%s is not one SELECT that changes nothing", title),
				 errhint("Give one SELECT without INTO, FOR UPDATE and statements that change rows, as in 'SELECT id, lat, lon FROM city'.")));
	return plan;
}

char *
geonn_relation_name(Oid oid)
{
	Relation	relation = try_relation_open(oid, AccessShareLock);
	Oid			namespace;
	char	   *name;

	if (relation == NULL)
		return NULL;
	namespace = RelationGetNamespace(relation);
	name = quote_qualified_identifier(get_namespace_name(namespace),
									  RelationGetRelationName(relation));
	relation_close(relation, NoLock);
	return object_aclcheck(NamespaceRelationId, namespace, GetUserId(), ACL_USAGE) == ACLCHECK_OK ?
		name : NULL;
}
