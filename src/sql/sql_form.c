/*
 * sql_form.c
 *		Nearest-neighbour subqueries, as users of PostGIS write them: which the planner can give to a node.
 *
 *	FROM o, LATERAL (SELECT ... FROM r WHERE ... ORDER BY o.g <-> r.g, ... LIMIT k OFFSET n) n
 *
 * Such a subquery is one whose first key of ORDER BY is a distance of the table in sql_distance.c, between a point of the outer
 * row and one of the subquery's own rows.  It is taken if nothing else in it depends on the outer row except the
 * keys, the columns that it returns, and conditions that the node can test (sql_conditions.c): then its rows before
 * these and ORDER BY, the references, are the same for all outer rows.  They can be rows of anything: a table, a view,
 * a join.  They come from a query of their own, a copy of the subquery that returns what the node's expressions need.
 * It is planned like a subquery of the statement, so privileges, policies, security barriers, locks and snapshots are
 * those of the statement.
 *
 * PostgreSQL has planned the subquery itself by then.  So a subquery of this kind among the references is planned twice, one
 * in its references four times, and so on: planning would double with each level.  Where they nest more than NESTED_MAX
 * deep, the outer ones are left to PostgreSQL, which plans each once.
 *
 * The types of the points say that these are points, in degrees, or leave open what they are.  A value that turns out to be
 * no point is decided about by PostGIS's function, or by PostgreSQL's own plan, as one out of range is.  So columns whose
 * values are too long for points on average are left to PostgreSQL.  In place of a reference's point, a<->b may have lines or
 * polygons (sql_shapes.c).
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/planner.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"

#include "base/compat.h"
#include "base/settings.h"
#include "common/protocol.h"
#include "plan/known.h"
#include "sql/sql_conditions.h"
#include "sql/sql_form.h"
#include "sql/sql_reasons.h"
#include "sql/sql_table.h"

/* what a reference takes besides its columns, in the session and in the engine */
#define BYTES_A_REFERENCE 128
/* and for each byte of shapes, of which an arc has 16, and takes 150 more */
#define BYTES_OF_SHAPES 11

/* the part of geonn.session_memory_limit that references may take whose number is a guess */
#define SURE_PART (1.0 / 16)

/* how deep such subqueries may nest in one that has a node, itself included: each level doubles the planning */
#define NESTED_MAX 3

/* the assumed number of rows of a LIMIT that is not known */
#define UNKNOWN_LIMIT 10

/* what finding out about a subquery needs */
typedef struct Search
{
	PlannerInfo *root;
	SqlForm    *form;
	const Query *query;
	SqlConditions conditions;
	List	   *columns;		/* the references' columns: expressions of the subquery */
	bool		failed;			/* an expression has a part that the node cannot evaluate */
} Search;

/* ---- expressions ---- */

/*
 * The number, from 0 on, of the references' column that has this expression's values.
 */
static int
reference_column(Search *search, Node *expression)
{
	ListCell   *cell;

	foreach(cell, search->columns)
	{
		if (equal(lfirst(cell), expression))
			return foreach_current_index(cell);
	}
	search->columns = lappend(search->columns, copyObject(expression));
	return list_length(search->columns) - 1;
}

static Node *
translate_walk(Node *node, Search *search)
{
	Var		   *column;
	ListCell   *cell;

	if (node == NULL)
		return NULL;
	foreach(cell, search->form->point)
	{
		if (equal(node, list_nth(search->columns, lfirst_int(cell))))
			return (Node *) makeVar(REFERENCES_VARNO, (AttrNumber) (lfirst_int(cell) + 1), exprType(node),
									exprTypmod(node), exprCollation(node), 1);
	}
	if (IsA(node, PlaceHolderVar) || IsA(node, SubLink) || IsA(node, GroupingFunc) ||
		(IsA(node, Param) && ((Param *) node)->paramkind != PARAM_EXTERN))
	{
		search->failed = true;
		return node;
	}
	if (!IsA(node, Var))
		return expression_tree_mutator(node, translate_walk, search);
	column = copyObject((Var *) node);
	if (column->varlevelsup == 0)
		return (Node *) makeVar(REFERENCES_VARNO, (AttrNumber) (reference_column(search, node) + 1),
								column->vartype, column->vartypmod, column->varcollid, 1);
	search->failed |= column->varlevelsup > 1;
	column->varlevelsup = 0;
	search->form->outer_columns = list_append_unique(search->form->outer_columns, column);
	return (Node *) column;
}

/*
 * Translate an expression of the subquery into one that the node evaluates.  The references are no relation of the
 * plan yet: while PostgreSQL simplifies the expression, their columns are of an outer query, so that it does not
 * look for their constraints.
 */
static Node *
translate_expression(Search *search, Node *expression)
{
	Node	   *result = eval_const_expressions(search->root, translate_walk(copyObject(expression), search));

	IncrementVarSublevelsUp(result, -1, 1);
	return result;
}

/* The values that the node reads in place of these points. */
static List *
values_of_points(List *points)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, points)
		result = lappend(result, geonn_value_of_point(lfirst(cell)));
	return result;
}

static List *
translate_list(Search *search, List *expressions)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, expressions)
		result = lappend(result, translate_expression(search, lfirst(cell)));
	return result;
}

static Node *
translate_count(Search *search, Node *expression)
{
	if (expression == NULL)
		return (Node *) makeNullConst(INT8OID, -1, InvalidOid);
	return translate_expression(search, expression);
}

/* May this many rows of the path, as references, take this part of geonn.session_memory_limit? */
static bool
rows_fit(const Path *references, bool has_shapes, double rows, double part)
{
	int			width = references->pathtarget->width * (has_shapes ? BYTES_OF_SHAPES : 1);

	return geonn_session_memory_limit < 0 ||
		rows * ((double) width + BYTES_A_REFERENCE) / 1024 <= geonn_session_memory_limit * part;
}

bool
geonn_references_fit(const Path *references, bool has_shapes)
{
	return rows_fit(references, has_shapes, references->rows, 0.5);
}

bool
geonn_references_surely_fit(const Path *references, bool has_shapes, double most)
{
	return rows_fit(references, has_shapes, most, 1) || rows_fit(references, has_shapes, references->rows, SURE_PART);
}

double
geonn_largest_relation(const PlannerInfo *root)
{
	double		rows = 0;

	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		const RelOptInfo *rel = root->simple_rel_array[i];

		if (rel != NULL && rel->reloptkind == RELOPT_BASEREL)
			rows = Max(rows, rel->tuples);
	}
	return rows;
}

/* ---- the subquery ---- */

/*
 * What keeps the node from answering any question by this query; NULL: nothing does.
 */
static const char *
problem_of_query(const Query *query)
{
	if (query->commandType != CMD_SELECT || query->setOperations != NULL)
		return "it is no plain SELECT";
	if (query->hasAggs || query->groupClause != NIL || query->groupingSets != NIL || query->havingQual != NULL ||
		query->hasWindowFuncs || query->distinctClause != NIL)
		return "it groups its rows";
	if (query->hasTargetSRFs)
		return "a function in it returns several rows";
	if (query->hasSubLinks || query->cteList != NIL)
		return "it has a subquery of its own";
	if (query->rowMarks != NIL)
		return "it locks rows";
	if (query->limitOption == LIMIT_OPTION_WITH_TIES)
		return "it returns rows WITH TIES";
	if (contain_volatile_functions(unconstify(Node *, (const Node *) query)))
		return "a function in it is volatile";
	return NULL;
}

static bool
read_keys(Search *search)
{
	SqlForm    *form = search->form;
	ListCell   *cell;

	foreach(cell, search->query->sortClause)
	{
		const SortGroupClause *clause = lfirst_node(SortGroupClause, cell);
		Node	   *key = get_sortgroupclause_expr(unconstify(SortGroupClause *, clause),
												   search->query->targetList);

		form->keys = lappend(form->keys, translate_expression(search, key));
		form->operators = lappend_oid(form->operators, clause->sortop);
		form->collations = lappend_oid(form->collations, exprCollation(key));
		form->nulls_first = lappend_int(form->nulls_first, clause->nulls_first);
	}
	return linitial_oid(form->operators) == Float8LessOperator && linitial_int(form->nulls_first) == 0;
}

/*
 * A row of the subquery, as one value.  UPDATE keeps it, too, for PostgreSQL, which can need it where another transaction
 * has updated a row; but the node finds such a row's references anew.
 */
static Node *
make_row(PlannerInfo *root, const RelOptInfo *rel, List *values)
{
	RowExpr    *row = makeNode(RowExpr);

	row->args = values;
	row->row_typeid = RECORDOID;
	row->row_format = COERCE_IMPLICIT_CAST;
	row->colnames = copyObject(planner_rt_fetch(rel->relid, root)->eref->colnames);
	row->location = -1;
	return (Node *) row;
}

/*
 * Translate the columns that the statement uses of the subquery.
 */
static void
read_outputs(Search *search, const RelOptInfo *rel)
{
	Bitmapset  *used = NULL;
	List	   *row = NIL;
	bool		uses_row;
	ListCell   *cell;

	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &used);
	pull_varattnos((Node *) extract_actual_clauses(rel->baserestrictinfo, false), rel->relid, &used);
	uses_row = bms_is_member(-FirstLowInvalidHeapAttributeNumber, used);
	foreach(cell, search->query->targetList)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, cell);
		bool		is_used = !entry->resjunk &&
			(uses_row || bms_is_member(entry->resno - FirstLowInvalidHeapAttributeNumber, used));
		Node	   *output = is_used ? translate_expression(search, (Node *) entry->expr) : NULL;

		search->form->outputs = lappend(search->form->outputs, output);
		if (is_used)
			row = lappend(row, output);
	}
	if (uses_row)
		search->form->row = make_row(search->root, rel, row);
}

/*
 * The query that returns the references' columns.
 */
static Query *
query_of_references(Search *search)
{
	Query	   *query = copyObject(unconstify(Query *, search->query));
	ListCell   *cell;

	query->targetList = NIL;
	query->sortClause = NIL;
	query->jointree->quals = (Node *) make_ands_explicit(copyObject(search->conditions.own));
	query->limitCount = query->limitOffset = NULL;
	foreach(cell, search->columns)
	{
		Node	   *expression = lfirst(cell);
		const Var  *column = (const Var *) expression;
		char	   *name = IsA(expression, Var) && column->varattno != 0 ?
			get_rte_attribute_name(rt_fetch(column->varno, query->rtable), column->varattno) : pstrdup("point");

		query->targetList = lappend(query->targetList,
									makeTargetEntry(copyObject((Expr *) expression),
													(AttrNumber) (list_length(query->targetList) + 1), name, false));
		search->form->names = lappend(search->form->names, makeString(name));
	}
	return query;
}

/*
 * Does PostgreSQL's own path for the subquery get its rows in the order of distance from an index?
 */
static bool
descends(const Path *path)
{
	while (path != NULL && !IsA(path, IndexPath))
		path = IsA(path, SubqueryScanPath) ? ((const SubqueryScanPath *) path)->subpath :
			IsA(path, LimitPath) ? ((const LimitPath *) path)->subpath :
			IsA(path, ProjectionPath) ? ((const ProjectionPath *) path)->subpath :
			IsA(path, IncrementalSortPath) ? ((const IncrementalSortPath *) path)->spath.subpath : NULL;
	return path != NULL && ((const IndexPath *) path)->indexorderbys != NIL;
}

static double
estimate_count(PlannerInfo *root, Node *expression, double unknown)
{
	const Const *value = (const Const *) estimate_expression_value(root, expression);

	if (!IsA(value, Const))
		return unknown;
	return value->constisnull ? -1 : (double) DatumGetInt64(value->constvalue);
}

/*
 * Set what the planner estimates by.  Returns why no node should answer; NULL: one may.
 */
static const char *
estimate_form(Search *search, const RelOptInfo *rel)
{
	SqlForm    *form = search->form;
	double		limit = estimate_count(search->root, form->limit, UNKNOWN_LIMIT);
	double		offset = Max(estimate_count(search->root, form->offset, 0), 0);
	List	   *outputs = list_difference_ptr(form->outputs, list_make1(NULL));
	QualCost	cost;

	if (limit < 0)
		return "it has no LIMIT";
	if (limit + offset >= GEONN_K_MAX)
		return "LIMIT and OFFSET are too large";
	form->needed = limit + offset;
	cost_qual_eval(&cost, list_difference(outputs, form->keys), search->root);
	form->output_cost = cost.per_tuple;
	form->descends = rel->cheapest_total_path != NULL && descends(rel->cheapest_total_path);
	return NULL;
}

Path *
geonn_path_of_references(const RelOptInfo *rel)
{
	Path	   *cheapest = rel->cheapest_total_path;
	ListCell   *cell;

	foreach(cell, rel->pathlist)
	{
		Path	   *path = lfirst(cell);

		if (path->param_info == NULL && path->parallel_safe && !cheapest->parallel_safe &&
			path->total_cost < 2 * cheapest->total_cost)
			return path;
	}
	return cheapest;
}

/* the forms whose references were planned in the plans that are being made, noted for these and those around them */
static PlanNotes forms_within;

/*
 * How deep do forms whose references were planned nest in this plan?
 */
static int
nesting(const PlannerInfo *root)
{
	int			deepest = 0;
	ListCell   *cell;

	foreach(cell, geonn_plan_notes(&forms_within, root))
		deepest = Max(deepest, ((const SqlForm *) lfirst(cell))->nesting);
	return deepest;
}

/*
 * Plan the query that returns the references.
 */
static void
plan_references(PlannerInfo *root, Query *query, SqlForm *form)
{
	for (PlannerInfo *around = root; around != NULL; around = around->parent_root)
		geonn_add_plan_note(&forms_within, around, form);
	form->root = geonn_subquery_planner(root, query);
	form->references = geonn_path_of_references(fetch_upper_rel(form->root, UPPERREL_FINAL, NULL));
}

/*
 * Find out about the subquery, with this distance.  Returns why no node can answer it; NULL: one can.
 */
static const char *
read_form(Search *search, const RelOptInfo *rel, const DistanceFunction *function, List *one, List *other)
{
	SqlForm    *form = search->form;
	const Query *query = search->query;
	List	   *observation = contain_vars_of_level((Node *) one, 1) ? one : other;
	List	   *reference = observation == one ? other : one;
	const char *problem = problem_of_query(query);
	Query	   *references;
	ListCell   *cell;

	if (problem != NULL)
		return problem;
	if (contain_vars_of_level((Node *) observation, 0) || contain_vars_of_level((Node *) reference, 1) ||
		!contain_vars_of_level((Node *) reference, 0))
		return "its distance is not between a point of the outer row and one of its own";
	form->has_shapes = function->kind != GEONN_POINT_NONE && geonn_is_of_shapes(linitial(reference));
	if (form->has_shapes && !function->takes_shapes)
		return "only <-> measures lines and polygons within known limits of geonn_distance";
	if (function->kind != GEONN_POINT_NONE)
		problem = geonn_problem_of_points(search->root->parse->rtable, linitial(observation));
	if (function->kind != GEONN_POINT_NONE && problem == NULL && !form->has_shapes)
		problem = geonn_problem_of_points(query->rtable, linitial(reference));
	if (problem != NULL)
		return problem;

	/* PostGIS takes a geometry without a SRID for one of WGS84, as it takes a geography */
	form->kind = function->kind == GEONN_POINT_NONE ? GEONN_POINT_NONE : GEONN_POINT_GEOGRAPHY;
	form->metric = function->metric;
	form->function = function->name;
	foreach(cell, values_of_points(reference))
		form->point = lappend_int(form->point, reference_column(search, lfirst(cell)));
	form->observation = translate_list(search, values_of_points(observation));
	problem = geonn_divide_sql_conditions(query, observation, reference, &search->conditions);
	if (problem != NULL)
		return problem;
	if (form->has_shapes && search->conditions.reach != NULL)
		return "ST_DWithin does not measure lines and polygons within known limits of geonn_distance";
	form->conditions = translate_list(search, search->conditions.joined);
	form->reach = search->conditions.reach == NULL ? (Node *) makeNullConst(FLOAT8OID, -1, InvalidOid) :
		translate_expression(search, search->conditions.reach);
	form->excluded = search->conditions.excluded;
	if (!read_keys(search))
		return "the distance is not in ascending order, with NULLs last";
	form->limit = translate_count(search, query->limitCount);
	form->offset = translate_count(search, query->limitOffset);
	if (contain_var_clause(form->limit) || contain_var_clause(form->offset))
		return "LIMIT or OFFSET depends on the outer row";
	read_outputs(search, rel);
	if (search->failed)
		return "it refers to an outer query, or to an expression below an outer join";
	references = query_of_references(search);
	for (int level = 1; level <= (int) search->root->query_level; level++)
	{
		if (contain_vars_of_level((Node *) references, level))
			return "a condition in it depends on the outer row";
	}
	problem = estimate_form(search, rel);
	if (problem != NULL)
		return problem;
	form->alias = list_length(query->jointree->fromlist) == 1 && IsA(linitial(query->jointree->fromlist), RangeTblRef) ?
		rt_fetch(((RangeTblRef *) linitial(query->jointree->fromlist))->rtindex, query->rtable)->eref->aliasname :
		"references";
	form->nesting = nesting(rel->subroot) + 1;
	if (form->nesting > NESTED_MAX)
		return "nearest-neighbour subqueries nest too deep in it";
	if (!geonn_may_plan_another())
		return "too many statements are being planned, each while another one is";
	plan_references(search->root, references, form);
	if (geonn_has_many_groups(form->root, &search->conditions, form->references->rows, form->needed))
		return "a condition divides its rows into many groups";
	if (!geonn_references_fit(form->references, form->has_shapes))
		return "its rows would take more than half of geonn.session_memory_limit";
	if (form->descends && !geonn_references_surely_fit(form->references, form->has_shapes, geonn_largest_relation(form->root)))
		return "its rows may take more than geonn.session_memory_limit, and an index has them in order";
	form->table = geonn_sql_table(form, query, search->columns);
	return NULL;
}

/* ---- for the planner ---- */

/* the forms of the plans that are being made: SqlForm * */
static PlanNotes known_forms;

bool
geonn_sql_asks_for_nearest_one(const Query *query)
{
	const Const *limit;

	if (query->sortClause == NIL || query->limitCount == NULL ||
		!geonn_sql_is_distance(get_sortgroupclause_expr(linitial(query->sortClause), query->targetList)))
		return false;
	limit = (const Const *) eval_const_expressions(NULL, query->limitCount);
	return IsA(limit, Const) && !limit->constisnull && DatumGetInt64(limit->constvalue) == 1 &&
		query->limitOption == LIMIT_OPTION_COUNT;
}

const SqlForm *
geonn_sql_form(PlannerInfo *root, RelOptInfo *rel)
{
	Query	   *query = planner_rt_fetch(rel->relid, root)->subquery;
	const DistanceFunction *function;
	Node	   *key;
	List	   *one;
	List	   *other;
	Search		search = {.root = root,.query = query};
	MemoryContext former;
	ListCell   *cell;

	if (query == NULL || query->sortClause == NIL || query->limitCount == NULL)
		return NULL;
	foreach(cell, geonn_plan_notes(&known_forms, root))
	{
		if (((const SqlForm *) lfirst(cell))->relid == rel->relid)
			return lfirst(cell);
	}
	key = get_sortgroupclause_expr(linitial(query->sortClause), query->targetList);
	function = geonn_read_distance(key, &one, &other);
	if (function == NULL && !(geonn_is_distance_in_degrees(key) && contain_vars_of_level(key, 1)))
		return NULL;
	former = MemoryContextSwitchTo(root->planner_cxt);
	search.form = palloc0(sizeof(SqlForm));
	search.form->relid = rel->relid;
	search.form->problem = function != NULL ? read_form(&search, rel, function, one, other) :
		"its distance is in degrees of the plane; a cast of both points to geography makes it metres";
	geonn_add_plan_note(&known_forms, root, search.form);
	MemoryContextSwitchTo(former);
	if (search.form->problem != NULL)
		geonn_left_to_postgresql(SQL_SUBQUERY, planner_rt_fetch(rel->relid, root)->eref->aliasname, search.form->problem);
	return search.form;
}

Index
geonn_add_references(PlannerInfo *root, const SqlForm *form)
{
	RangeTblEntry *entry = makeNode(RangeTblEntry);
	Index		number = (Index) list_length(root->parse->rtable) + 1;

	entry->rtekind = RTE_SUBQUERY;
	entry->subquery = form->root->parse;
	entry->alias = makeAlias(form->alias, form->names);
	entry->eref = makeAlias(form->alias, form->names);
	entry->inFromCl = true;
	root->parse->rtable = lappend(root->parse->rtable, entry);
	expand_planner_arrays(root, (int) number + 1 - root->simple_rel_array_size);
	root->simple_rte_array[number] = entry;
	build_simple_rel(root, (int) number, NULL)->subroot = form->root;
	return number;
}

Plan *
geonn_plan_references(const SqlForm *form, Index references)
{
	SubqueryScan *scan = makeNode(SubqueryScan);
	Plan	   *plan = create_plan(form->root, form->references);
	ListCell   *cell;

	foreach(cell, plan->targetlist)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, cell);
		Var		   *column = makeVar((int) references, entry->resno, exprType((Node *) entry->expr),
									 exprTypmod((Node *) entry->expr), exprCollation((Node *) entry->expr), 0);

		scan->scan.plan.targetlist = lappend(scan->scan.plan.targetlist,
											 makeTargetEntry((Expr *) column, entry->resno, entry->resname, entry->resjunk));
	}
	scan->scan.plan.startup_cost = plan->startup_cost;
	scan->scan.plan.total_cost = plan->total_cost;
	scan->scan.plan.plan_rows = plan->plan_rows;
	scan->scan.plan.plan_width = plan->plan_width;
	scan->scan.scanrelid = references;
	scan->subplan = plan;
	return (Plan *) scan;
}
