/*
 * sql_statement.c
 *		Statements that ask for the nearest rows without a LATERAL subquery.
 *
 * SELECT (SELECT r.id FROM r ORDER BY r.g <-> o.g LIMIT 1) FROM o returns what
 *
 *	SELECT n.id FROM o LEFT JOIN LATERAL (SELECT r.id FROM r ORDER BY r.g <-> o.g LIMIT 1) n ON true
 *
 * returns, where nothing groups the rows of o.  DISTINCT ON can ask for the nearest row, too (sql_distinct.c).
 * UPDATE o SET c = (SELECT ...) is like the first: its FROM has o.  PostgreSQL executes the first row by row, and has no
 * path that could be another way.  So such a statement is planned twice: as it is, and with its subqueries in FROM.  The
 * second plan is taken if it has the node of sql_join.c, and costs less.  Subqueries in FROM, views and WITH queries are
 * looked through, too.
 *
 * A subquery in a larger expression is left where it is: CASE and AND may keep it from being evaluated.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"

#include "base/compat.h"
#include "base/extension.h"
#include "base/settings.h"
#include "plan/known.h"
#include "plan/lateral_path.h"
#include "sql/sql_distinct.h"
#include "sql/sql_form.h"
#include "sql/sql_join.h"
#include "sql/sql_own_plan.h"
#include "sql/sql_reasons.h"
#include "sql/sql_statement.h"
#include "sql/sql_within.h"
#include "sql/sql_zone_scan.h"

/* a statement that costs less is for so few rows that a second plan would take longer than what it can save */
#define COST_OF_FEW_ROWS 12

static planner_hook_type previous_hook;

/* ---- subqueries as values ---- */

/*
 * The place of the subquery that is this column's value, perhaps cast, if it asks for the nearest row; NULL: it is
 * anything else.
 */
static Node **
find_subquery(Node **expression)
{
	const SubLink *link;

	for (;;)
	{
		if (*expression == NULL)
			return NULL;
		if (IsA(*expression, RelabelType))
			expression = (Node **) &((RelabelType *) *expression)->arg;
		else if (IsA(*expression, CoerceViaIO))
			expression = (Node **) &((CoerceViaIO *) *expression)->arg;
		else if (IsA(*expression, FuncExpr) && ((FuncExpr *) *expression)->funcformat != COERCE_EXPLICIT_CALL &&
				 list_length(((FuncExpr *) *expression)->args) >= 1)
			expression = (Node **) &linitial(((FuncExpr *) *expression)->args);
		else
			break;
	}
	link = (const SubLink *) *expression;
	if (!IsA(link, SubLink) || link->subLinkType != EXPR_SUBLINK || !IsA(link->subselect, Query) ||
		!geonn_sql_asks_for_nearest_one((const Query *) link->subselect))
		return NULL;
	return expression;
}

/*
 * Can columns of this query that are subqueries come from a join?  Each row of its FROM and WHERE must be one of its
 * own.
 */
static bool
has_plain_rows(const Query *query)
{
	return (query->commandType == CMD_SELECT || query->commandType == CMD_UPDATE) && query->hasSubLinks &&
		query->setOperations == NULL && !query->hasAggs && query->groupClause == NIL &&
		query->groupingSets == NIL && query->havingQual == NULL && !query->hasWindowFuncs &&
		!query->hasTargetSRFs && query->rowMarks == NIL && query->jointree->fromlist != NIL;
}

/*
 * Join the query's rows with the subquery, which returns at most one row for each.  Returns its column.
 */
static Var *
join_subquery(Query *query, Query *subquery)
{
	const Node *value = (const Node *) linitial_node(TargetEntry, subquery->targetList)->expr;
	RangeTblEntry *entry = makeNode(RangeTblEntry);
	RangeTblRef *reference = makeNode(RangeTblRef);
	JoinExpr   *join = makeNode(JoinExpr);
	Var		   *column;

	query->rtable = lappend(query->rtable, geonn_make_lateral_entry(subquery));
	reference->rtindex = list_length(query->rtable);
	entry->rtekind = RTE_JOIN;
	entry->jointype = JOIN_LEFT;
	entry->inFromCl = true;
	entry->eref = makeAlias("unnamed_join", NIL);
	query->rtable = lappend(query->rtable, entry);

	join->jointype = JOIN_LEFT;
	join->larg = (Node *) query->jointree;
	join->rarg = (Node *) reference;
	join->quals = makeBoolConst(true, false);
	join->rtindex = list_length(query->rtable);
	query->jointree = makeFromExpr(list_make1(join), NULL);

	column = makeVar(reference->rtindex, 1, exprType(value), exprTypmod(value), exprCollation(value), 0);
	geonn_note_outer_join(column, join->rtindex);
	return column;
}

/*
 * Move the subqueries that ask for the nearest rows into FROM; `try`: only say whether the query has one.
 */
static bool
move_subqueries(Query *query, bool try)
{
	bool		has_one = false;
	ListCell   *cell;

	if (!has_plain_rows(query))
		return false;
	foreach(cell, query->targetList)
	{
		TargetEntry *target = lfirst_node(TargetEntry, cell);
		Node	  **place = find_subquery((Node **) &target->expr);

		has_one |= place != NULL;
		if (place != NULL && !try)
			*place = (Node *) join_subquery(query, castNode(Query, ((SubLink *) *place)->subselect));
	}
	return has_one;
}

/*
 * Move the subqueries of a query, and of those in its FROM and WITH, into FROM; `try`: only say whether one of them has one.
 */
static bool
rewrite(Query *query, bool try)
{
	bool		has_one = move_subqueries(query, try) || geonn_rewrite_distinct(query, try);
	ListCell   *cell;

	foreach(cell, query->rtable)
	{
		const RangeTblEntry *entry = lfirst_node(RangeTblEntry, cell);

		if (entry->rtekind != RTE_SUBQUERY || !rewrite(entry->subquery, try))
			continue;
		has_one = true;

		/* no node is in a statement that locks rows: OFFSET keeps the subquery apart from UPDATE and MERGE */
		if (!try && query->commandType != CMD_SELECT && query->commandType != CMD_INSERT &&
			entry->subquery->limitOffset == NULL)
			entry->subquery->limitOffset = (Node *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(0),
															  false, FLOAT8PASSBYVAL);
	}
	foreach(cell, query->cteList)
	{
		Query	   *with = (Query *) lfirst_node(CommonTableExpr, cell)->ctequery;

		if (IsA(with, Query))
			has_one |= rewrite(with, try);
	}
	return has_one;
}

/* ---- for the planner ---- */

static PlannedStmt *
plan_as_it_is(Query *query, const char *text, int options, ParamListInfo parameters GEONN_EXPLAIN_PARAMETER)
{
	if (previous_hook != NULL)
		return previous_hook(query, text, options, parameters GEONN_EXPLAIN_ARGUMENT);
	return standard_planner(query, text, options, parameters GEONN_EXPLAIN_ARGUMENT);
}

/* the cost of a statement that is executed */
typedef struct StatementCost
{
	Cost		total;
	double		rows;			/* for how many rows the subqueries are executed */
} StatementCost;

static bool
add_subqueries(Node *node, void *context)
{
	StatementCost *cost = context;
	const SubPlan *subquery = (const SubPlan *) node;

	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))
		cost->total += subquery->startup_cost + cost->rows * subquery->per_call_cost;
	return expression_tree_walker(node, add_subqueries, context);
}

/*
 * What a plan costs.  PostgreSQL does not count RETURNING, ON CONFLICT and the actions of MERGE.  Their subqueries are added, as
 * if each row had all of them.
 */
static Cost
cost_of(const PlannedStmt *planned)
{
	StatementCost cost = {.total = planned->planTree->total_cost};

	if (IsA(planned->planTree, ModifyTable))
	{
		const ModifyTable *change = (const ModifyTable *) planned->planTree;

		cost.rows = outerPlan(change)->plan_rows;
		(void) add_subqueries((Node *) change->onConflictSet, &cost);
		/* each partition has the same subqueries, and a row is of one partition */
		if (change->mergeActionLists != NIL)
			(void) add_subqueries(linitial(change->mergeActionLists), &cost);
		if (change->returningLists != NIL)
			(void) add_subqueries(linitial(change->returningLists), &cost);
	}
	return cost.total;
}

/*
 * A cursor's statement is planned as it is: UPDATE ... WHERE CURRENT OF needs a plan without a join.
 */
static PlannedStmt *
plan_both_ways(Query *query, const char *text, int options, ParamListInfo parameters GEONN_EXPLAIN_PARAMETER)
{
	uint64		nodes;
	ZoneScans	scans = {0};
	Query	   *copy;
	PlannedStmt *plain;
	PlannedStmt *joined;

	if (!geonn_enable_sql_joins || (options & CURSOR_OPT_FAST_PLAN) != 0 ||
		(!rewrite(query, true) && !geonn_asks_for_zones_of_rows(query)))
		return plan_as_it_is(query, text, options, parameters GEONN_EXPLAIN_ARGUMENT);
	if (!geonn_may_search())
		return geonn_without_nodes(plan_as_it_is(query, text, options, parameters GEONN_EXPLAIN_ARGUMENT));
	copy = copyObject(query);
	plain = plan_as_it_is(query, text, options, parameters GEONN_EXPLAIN_ARGUMENT);
	if (cost_of(plain) < COST_OF_FEW_ROWS)
		return plain;
	(void) rewrite(copy, false);
	nodes = geonn_subquery_nodes();
	(void) geonn_offer_zone_scans(&scans);
	joined = plan_as_it_is(copy, text, options, parameters GEONN_EXPLAIN_ARGUMENT);
	(void) geonn_offer_zone_scans(NULL);
	if (geonn_subquery_nodes() == nodes && scans.nodes == 0)
		return plain;
	return cost_of(joined) + scans.zones < cost_of(plain) ? joined : plain;
}

static PlannedStmt *
plan_statement(Query *query, const char *text, int options, ParamListInfo parameters GEONN_EXPLAIN_PARAMETER)
{
	PlannedStmt *volatile plan = NULL;
	ZoneScans  *former = geonn_offer_zone_scans(NULL);

	geonn_planning_begins();
	PG_TRY();
	{
		plan = geonn_may_plan_another() ? plan_both_ways(query, text, options, parameters GEONN_EXPLAIN_ARGUMENT) :
			plan_as_it_is(query, text, options, parameters GEONN_EXPLAIN_ARGUMENT);
		geonn_statement_is_planned();
	}
	PG_FINALLY();
	{
		(void) geonn_offer_zone_scans(former);
		geonn_planning_ends();
	}
	PG_END_TRY();
	return plan;
}

void
geonn_plan_sql_statements(void)
{
	geonn_register_lateral_form(&geonn_subquery_form);
	geonn_register_lateral_form(&geonn_within_lateral_form);
	geonn_own_plan_register();
	geonn_plan_zone_scans();
	previous_hook = planner_hook;
	planner_hook = plan_statement;
}
