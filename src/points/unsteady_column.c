/*
 * unsteady_column.c
 *		Columns of views whose values each reading makes anew.
 *
 * A column is followed from the view to where its value comes from: through the views, subqueries, joins, WITH queries
 * and branches of UNION that pass it on.  On the way, a window function makes it unsteady, as row_number() does: rows
 * that its ORDER BY does not tell apart come in the order of the reading, which another session's scan changes
 * (synchronize_seqscans).  So does a volatile function that is given no column, as random() and nextval() are.  A
 * function of the row's columns does not, nor one in FROM: many functions are volatile only because they have no label.
 * Materialized views are tables.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/optimizer.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteHandler.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "points/unsteady_column.h"

/* A column that was looked at.  Each column is looked at once, however often nested queries name it. */
typedef struct SeenColumn
{
	Oid			view;			/* the view that has the column; InvalidOid: `query` has it */
	const Query *query;
	AttrNumber	column;
} SeenColumn;

/* A query, and the query of which it is a part. */
typedef struct QueryLevel
{
	Query	   *query;
	const struct QueryLevel *outer; /* NULL: the query is a view's */
	List	  **seen;			/* SeenColumn * */
} QueryLevel;

static const char *column_of_query(const QueryLevel *level, AttrNumber column);

static bool
is_new(List **seen, Oid view, const Query *query, AttrNumber column)
{
	SeenColumn *now;
	ListCell   *cell;

	foreach(cell, *seen)
	{
		const SeenColumn *former = lfirst(cell);

		if (former->view == view && former->query == query && former->column == column)
			return false;
	}
	now = palloc(sizeof(SeenColumn));
	*now = (SeenColumn) {view, query, column};
	*seen = lappend(*seen, now);
	return true;
}

static bool
is_volatile(Oid function, void *context pg_attribute_unused())
{
	return func_volatile(function) == PROVOLATILE_VOLATILE;
}

/* Return whether the expression has a volatile function that gets no column. */
static bool
has_volatile(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, NextValueExpr) ||
		(check_functions_in_node(node, is_volatile, NULL) && !contain_var_clause(node)))
		return true;
	return IsA(node, Query) ? query_tree_walker((Query *) node, has_volatile, context, 0) :
		expression_tree_walker(node, has_volatile, context);
}

static const QueryLevel *
level_above(const QueryLevel *level, Index levels)
{
	while (level != NULL && levels-- > 0)
		level = level->outer;
	return level;
}

static const char *
column_of_with_query(const QueryLevel *level, const RangeTblEntry *entry, AttrNumber column)
{
	const QueryLevel *home = level_above(level, entry->ctelevelsup);
	ListCell   *cell;

	/* A recursive query that reads itself gets its rows from its other branch: nothing to find here. */
	if (home == NULL || entry->self_reference)
		return NULL;
	foreach(cell, home->query->cteList)
	{
		CommonTableExpr *with = lfirst_node(CommonTableExpr, cell);

		if (strcmp(with->ctename, entry->ctename) == 0 && IsA(with->ctequery, Query))
			return column_of_query(&(QueryLevel) {(Query *) with->ctequery, home, home->seen}, column);
	}
	return NULL;
}

/* Works on a copy of the view's query: the query itself ends with the cached entry of its relation. */
static const char *
column_of_view(Relation view, AttrNumber column, List **seen)
{
	return is_new(seen, RelationGetRelid(view), NULL, column) ?
		column_of_query(&(QueryLevel) {copyObject(get_view_query(view)), NULL, seen}, column) : NULL;
}

static const char *
column_of_relation(Oid oid, AttrNumber column, List **seen)
{
	Relation	relation;
	const char *maker;

	if (get_rel_relkind(oid) != RELKIND_VIEW)
		return NULL;
	relation = relation_open(oid, AccessShareLock);
	maker = column_of_view(relation, column, seen);
	relation_close(relation, NoLock);
	return maker;
}

/* Return what makes this expression of the query unsteady; NULL: nothing. */
static const char *
expression(const QueryLevel *level, Node *node)
{
	if (contain_windowfuncs(node))
		return "A window function";
	if (has_volatile(node, NULL))
		return "A volatile function";
	for (Index above = 0; level != NULL; above++, level = level->outer)
	{
		ListCell   *cell;

		foreach(cell, pull_vars_of_level(node, above))
		{
			const Var  *var = lfirst_node(Var, cell);
			RangeTblEntry *entry = rt_fetch(var->varno, level->query->rtable);
			const char *maker = NULL;

			if (var->varattno <= 0)
				continue;
			if (entry->rtekind == RTE_RELATION)
				maker = column_of_relation(entry->relid, var->varattno, level->seen);
			else if (entry->rtekind == RTE_SUBQUERY)
				maker = column_of_query(&(QueryLevel) {entry->subquery, level, level->seen}, var->varattno);
			else if (entry->rtekind == RTE_JOIN)
				maker = expression(level, list_nth(entry->joinaliasvars, var->varattno - 1));
			else if (entry->rtekind == RTE_CTE)
				maker = column_of_with_query(level, entry, var->varattno);
#if PG_VERSION_NUM >= 180000
			else if (entry->rtekind == RTE_GROUP)
				maker = expression(level, list_nth(entry->groupexprs, var->varattno - 1));
#endif
			if (maker != NULL)
				return maker;
		}
	}
	return NULL;
}

static const char *
column_of_query(const QueryLevel *level, AttrNumber column)
{
	TargetEntry *target = get_tle_by_resno(level->query->targetList, column);
	ListCell   *cell;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (!is_new(level->seen, InvalidOid, level->query, column))
		return NULL;
	if (level->query->setOperations == NULL)
		return target == NULL ? NULL : expression(level, (Node *) target->expr);
	foreach(cell, level->query->rtable)
	{
		RangeTblEntry *branch = lfirst_node(RangeTblEntry, cell);
		const char *maker = branch->rtekind != RTE_SUBQUERY ? NULL :
			column_of_query(&(QueryLevel) {branch->subquery, level, level->seen}, column);

		if (maker != NULL)
			return maker;
	}
	return NULL;
}

const char *
geonn_unsteady_column(Relation view, AttrNumber column)
{
	List	   *seen = NIL;

	return column_of_view(view, column, &seen);
}
