/*
 * sql_distinct.c
 *		DISTINCT ON statements that ask for the nearest row of another table.
 *
 *	SELECT DISTINCT ON (o.id) o.id, r.id FROM o, r WHERE ... ORDER BY o.id, o.g <-> r.g, ...
 *
 * joins all rows of o with all of r, sorts these pairs, and keeps the first of each id.  Where id has the primary key
 * of o, that is
 *
 *	SELECT o.id, n.id FROM o, LATERAL (SELECT r.id FROM r WHERE ... ORDER BY o.g <-> r.g, ... LIMIT 1) n ORDER BY o.id
 *
 * In the range table, the subquery takes the place of r.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"

#include "base/compat.h"
#include "sql/sql_distinct.h"
#include "sql/sql_form.h"

typedef struct Pairs
{
	Query	   *query;
	int			outer;			/* the range table's numbers of o and r */
	int			inner;
	List	   *conditions;		/* of WHERE and ON */
	List	   *keys;			/* of ORDER BY after those of DISTINCT ON: SortGroupClause */
	Query	   *subquery;
} Pairs;

/* ---- is it such a query? ---- */

/*
 * Collect the relations and conditions of FROM and WHERE; false: other than inner joins of relations.
 */
static bool
collect_relations(Node *node, List **relations, List **conditions)
{
	ListCell   *cell;

	if (IsA(node, RangeTblRef))
	{
		*relations = lappend_int(*relations, ((RangeTblRef *) node)->rtindex);
		return true;
	}
	if (IsA(node, JoinExpr))
	{
		const JoinExpr *join = (const JoinExpr *) node;

		*conditions = list_concat(*conditions, make_ands_implicit((Expr *) join->quals));
		return join->jointype == JOIN_INNER && collect_relations(join->larg, relations, conditions) &&
			collect_relations(join->rarg, relations, conditions);
	}
	*conditions = list_concat(*conditions, make_ands_implicit((Expr *) castNode(FromExpr, node)->quals));
	foreach(cell, ((const FromExpr *) node)->fromlist)
	{
		if (!collect_relations(lfirst(cell), relations, conditions))
			return false;
	}
	return true;
}

/*
 * The relation whose columns the keys of DISTINCT ON are; 0: they are anything else.  Adds the columns' numbers.
 */
static int
relation_of_keys(const Query *query, Bitmapset **columns)
{
	int			relation = 0;
	ListCell   *cell;

	foreach(cell, query->distinctClause)
	{
		const Var  *column = (const Var *) get_sortgroupclause_expr(lfirst(cell), query->targetList);

		if (!IsA(column, Var) || column->varlevelsup > 0 || (relation != 0 && column->varno != relation))
			return 0;
		relation = column->varno;
		*columns = bms_add_member(*columns, column->varattno - FirstLowInvalidHeapAttributeNumber);
	}
	return relation;
}

/*
 * Do these columns tell the rows of a table apart?
 */
static bool
has_primary_key(const RangeTblEntry *entry, const Bitmapset *columns)
{
	Oid			constraint;
	Bitmapset  *key = get_primary_key_attnos(entry->relid, false, &constraint);

	return key != NULL && bms_is_subset(key, columns) &&
		(entry->relkind == RELKIND_PARTITIONED_TABLE || !entry->inh || !has_subclass(entry->relid));
}

static bool
is_plain_relation(const RangeTblEntry *entry)
{
	return entry->rtekind == RTE_RELATION && !entry->lateral && entry->tablesample == NULL &&
		(entry->relkind == RELKIND_RELATION || entry->relkind == RELKIND_PARTITIONED_TABLE ||
		 entry->relkind == RELKIND_MATVIEW);
}

static bool
refers_to_others(Query *query, const List *relations)
{
	Relids		used = pull_varnos_of_level(NULL, (Node *) query->targetList, 0);

	used = bms_add_members(used, pull_varnos_of_level(NULL, (Node *) query->jointree, 0));
	used = bms_del_member(used, linitial_int(relations));
	return !bms_is_empty(bms_del_member(used, lsecond_int(relations)));
}

static bool
find_pairs(Query *query, Pairs *pairs)
{
	Bitmapset  *columns = NULL;
	List	   *relations = NIL;
	int			keys = list_length(query->distinctClause);

	*pairs = (Pairs) {.query = query};
	if (query->commandType != CMD_SELECT || !query->hasDistinctOn || query->setOperations != NULL || query->hasAggs ||
		query->groupClause != NIL || query->groupingSets != NIL || query->havingQual != NULL || query->hasWindowFuncs ||
		query->hasTargetSRFs || query->hasSubLinks || query->rowMarks != NIL ||
		list_length(query->sortClause) <= keys ||
		!geonn_sql_is_distance(get_sortgroupclause_expr(list_nth(query->sortClause, keys), query->targetList)) ||
		!collect_relations((Node *) query->jointree, &relations, &pairs->conditions) || list_length(relations) != 2)
		return false;
	pairs->outer = relation_of_keys(query, &columns);
	pairs->inner = linitial_int(relations) == pairs->outer ? lsecond_int(relations) : linitial_int(relations);
	pairs->keys = list_copy_tail(query->sortClause, keys);
	return list_member_int(relations, pairs->outer) && !refers_to_others(query, relations) &&
		is_plain_relation(rt_fetch(pairs->outer, query->rtable)) &&
		is_plain_relation(rt_fetch(pairs->inner, query->rtable)) &&
		has_primary_key(rt_fetch(pairs->outer, query->rtable), columns) &&
		!contain_volatile_functions((Node *) query->targetList) &&
		!contain_volatile_functions((Node *) pairs->conditions);
}

/* ---- the subquery ---- */

/*
 * An expression of the query as the subquery has it: its own relation is number 1.
 */
static Node *
inner_expression(Node *node, Pairs *pairs)
{
	Var		   *column;

	if (node == NULL || !IsA(node, Var))
		return node == NULL ? NULL : expression_tree_mutator(node, inner_expression, pairs);
	column = copyObject((Var *) node);
	if (column->varlevelsup == 0 && column->varno == pairs->inner)
		column->varno = 1;
	else
		column->varlevelsup++;
	return (Node *) column;
}

static bool
has_inner_columns(const Pairs *pairs, Node *node)
{
	return bms_is_member(pairs->inner, pull_varnos_of_level(NULL, node, 0));
}

/*
 * The subquery's target of this expression of the query.
 */
static TargetEntry *
inner_target(Pairs *pairs, Node *node, bool is_junk)
{
	Query	   *subquery = pairs->subquery;
	Node	   *expression = inner_expression(node, pairs);
	TargetEntry *target = tlist_member((Expr *) expression, subquery->targetList);
	const Var  *column = (const Var *) expression;

	if (target != NULL)
		return target;
	target = makeTargetEntry((Expr *) expression, (AttrNumber) (list_length(subquery->targetList) + 1),
							 !IsA(column, Var) || column->varlevelsup > 0 || column->varattno == 0 ? pstrdup("value") :
							 get_rte_attribute_name(linitial(subquery->rtable), column->varattno), is_junk);
	subquery->targetList = lappend(subquery->targetList, target);
	return target;
}

/*
 * An expression of the query, with columns of the subquery in place of r's, and of the keys.
 */
static Node *
outer_expression(Node *node, Pairs *pairs)
{
	bool		is_column = node != NULL && IsA(node, Var) && ((Var *) node)->varlevelsup == 0 &&
		((Var *) node)->varno == pairs->inner;
	const TargetEntry *target;
	ListCell   *cell;

	if (node == NULL)
		return NULL;
	foreach(cell, IsA(node, Var) || IsA(node, Const) ? NIL : pairs->keys)
		is_column |= equal(node, get_sortgroupclause_expr(lfirst(cell), pairs->query->targetList));
	if (!is_column)
		return expression_tree_mutator(node, outer_expression, pairs);
	target = inner_target(pairs, node, false);
	return (Node *) makeVar(pairs->inner, target->resno, exprType(node), exprTypmod(node), exprCollation(node), 0);
}

/*
 * The targets of the query but for those that are keys of the subquery alone.
 */
static List *
outer_targets(Pairs *pairs, const List *kept)
{
	List	   *targets = NIL;
	ListCell   *cell;

	foreach(cell, pairs->query->targetList)
	{
		TargetEntry *target = flatCopyTargetEntry(lfirst_node(TargetEntry, cell));
		bool		is_key = get_sortgroupref_clause_noerr(target->ressortgroupref, unconstify(List *, kept)) != NULL;

		if (target->resjunk && !is_key)
			continue;
		target->expr = (Expr *) outer_expression((Node *) target->expr, pairs);
		target->resno = (AttrNumber) (list_length(targets) + 1);
		if (!is_key)
			target->ressortgroupref = 0;
		targets = lappend(targets, target);
	}
	return targets;
}

static void
add_keys(Pairs *pairs)
{
	ListCell   *cell;

	foreach(cell, pairs->keys)
	{
		SortGroupClause *key = copyObject(lfirst_node(SortGroupClause, cell));
		TargetEntry *target = inner_target(pairs, get_sortgroupclause_expr(key, pairs->query->targetList), true);

		target->ressortgroupref = key->tleSortGroupRef = target->resno;
		pairs->subquery->sortClause = lappend(pairs->subquery->sortClause, key);
	}
}

static void
make_subquery(Pairs *pairs)
{
	Query	   *subquery = makeNode(Query);
	RangeTblEntry *entry = copyObject(rt_fetch(pairs->inner, pairs->query->rtable));
	RangeTblRef *reference = makeNode(RangeTblRef);

	reference->rtindex = 1;
	ChangeVarNodes((Node *) entry->securityQuals, pairs->inner, 1, 0);
	subquery->commandType = CMD_SELECT;
	subquery->canSetTag = true;
	subquery->hasRowSecurity = pairs->query->hasRowSecurity;
	subquery->rtable = list_make1(entry);
	geonn_move_permissions(pairs->query, subquery, entry);
	subquery->jointree = makeFromExpr(list_make1(reference), NULL);
	subquery->limitCount = (Node *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(1), false,
											  FLOAT8PASSBYVAL);
	pairs->subquery = subquery;
}

/*
 * Divide the conditions between query and subquery.
 */
static void
divide_conditions(Pairs *pairs)
{
	List	   *inner = NIL;
	List	   *outer = NIL;
	RangeTblRef *references[2] = {makeNode(RangeTblRef), makeNode(RangeTblRef)};
	ListCell   *cell;

	foreach(cell, pairs->conditions)
	{
		if (has_inner_columns(pairs, lfirst(cell)))
			inner = lappend(inner, inner_expression(lfirst(cell), pairs));
		else
			outer = lappend(outer, lfirst(cell));
	}
	references[0]->rtindex = pairs->outer;
	references[1]->rtindex = pairs->inner;
	pairs->subquery->jointree->quals = (Node *) (inner == NIL ? NULL : make_ands_explicit(inner));
	pairs->query->jointree = makeFromExpr(list_make2(references[0], references[1]),
										  (Node *) (outer == NIL ? NULL : make_ands_explicit(outer)));
}

RangeTblEntry *
geonn_make_lateral_entry(Query *subquery)
{
	RangeTblEntry *entry = makeNode(RangeTblEntry);
	List	   *names = NIL;
	ListCell   *cell;

	foreach(cell, subquery->targetList)
	{
		const TargetEntry *target = lfirst_node(TargetEntry, cell);

		if (!target->resjunk)
			names = lappend(names, makeString(pstrdup(target->resname != NULL ? target->resname : "value")));
	}
	entry->rtekind = RTE_SUBQUERY;
	entry->subquery = subquery;
	entry->lateral = true;
	entry->inFromCl = true;
	entry->alias = makeAlias("nearest", NIL);
	entry->eref = makeAlias("nearest", names);
	return entry;
}

bool
geonn_rewrite_distinct(Query *query, bool try)
{
	Pairs		pairs;
	List	   *kept;
	List	   *targets;
	ListCell   *cell;

	if (!find_pairs(query, &pairs))
		return false;
	if (try)
		return true;
	kept = list_truncate(list_copy(query->sortClause), list_length(query->distinctClause));
	make_subquery(&pairs);
	divide_conditions(&pairs);
	targets = outer_targets(&pairs, kept);
	add_keys(&pairs);
	query->targetList = targets;
	query->sortClause = kept;
	query->distinctClause = NIL;
	query->hasDistinctOn = false;
	lfirst(list_nth_cell(query->rtable, pairs.inner - 1)) = geonn_make_lateral_entry(pairs.subquery);

	/* no column refers to the joins that FROM had */
	foreach(cell, query->rtable)
		lfirst_node(RangeTblEntry, cell)->joinaliasvars = NIL;
	return true;
}
