/*
 * known.c
 *		What the planner knows of the call of a join in FROM: its row type and its arguments.
 *
 * The argument row_type says what columns the rows have: it is of a composite type, or of type record,
 * and then a column definition list stands behind the call.  PostgreSQL keeps that list with the call
 * in a RangeTblFunction.  The planner's files and both plan nodes have calls in that form, so
 * that they need not tell the two apart.
 *
 * A table is a constant of type regclass where the query has its name as a literal.  Clients that send
 * names as parameters of type text or varchar, or write a cast, have text cast to regclass: the
 * executor looks the name up.  The cast is stable, so the planner leaves it in place.  It is not
 * computed here, since it raises an error for a name that is not there, while a query must be planned
 * without.  The name is looked up here in the same way, but for the errors.
 *
 * A plan that is executed later may meet another table of that name: search_path is the same, or
 * PostgreSQL plans anew, but a table can have been created in a schema that comes first in it.  So
 * the node takes the table from the argument itself, and checks what it needs (join_node.c).
 *
 * While the planner is at work, the module has other queries planned:
 *
 *	- the references of a nearest-neighbour subquery, beside PostgreSQL's own plan of it (sql_form.c): once for each, as
 *	  notes keep what was found; and only where such subqueries nest at most NESTED_MAX deep in it;
 *	- a statement with such subqueries as values, a second time (sql_statement.c): at the top alone;
 *	- the query by which a call will read a side, for its rows (estimate.c): once for each side, and for each set of clauses
 *	  by which observations could be chosen; and its tables (scan.c).
 *
 * In each of these, a function that the planner evaluates, a view on a call or a policy may bring a statement with the
 * same again.  So each could multiply what the one before it takes, without a limit.  From the fifth statement on that is
 * planned while another one is, none of them is done (geonn_may_plan_another): PostgreSQL alone plans it.  That also ends
 * the estimate of a view that contains itself.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "base/compat.h"
#include "base/extension.h"
#include "base/settings.h"
#include "join/arguments.h"
#include "join/nearest.h"
#include "plan/known.h"
#include "points/column_pairs.h"
#include "points/query.h"
#include "points/sources.h"

/* how many statements may be in planning, each while the one before it is, for the last of them to have others planned */
#define DEPTH_MAX 4

/* ---- notes ---- */

/* one plan's notes, in its memory.  They end with planner_cxt: another plan may reuse root's address. */
typedef struct NotesOfPlan
{
	MemoryContextCallback callback;
	PlanNotes  *all;
	struct NotesOfPlan *next;
	const PlannerInfo *root;
	List	   *notes;
} NotesOfPlan;

static void
forget_notes(void *argument)
{
	const NotesOfPlan *forgotten = argument;
	NotesOfPlan **place = &forgotten->all->first;

	while (*place != forgotten)
		place = &(*place)->next;
	*place = forgotten->next;
}

static NotesOfPlan *
find_notes(const PlanNotes *notes, const PlannerInfo *root)
{
	NotesOfPlan *of_plan = notes->first;

	while (of_plan != NULL && of_plan->root != root)
		of_plan = of_plan->next;
	return of_plan;
}

List *
geonn_plan_notes(const PlanNotes *notes, const PlannerInfo *root)
{
	const NotesOfPlan *of_plan = find_notes(notes, root);

	return of_plan != NULL ? of_plan->notes : NIL;
}

void
geonn_add_plan_note(PlanNotes *notes, PlannerInfo *root, void *note)
{
	MemoryContext former = MemoryContextSwitchTo(root->planner_cxt);
	NotesOfPlan *of_plan = find_notes(notes, root);

	if (of_plan == NULL)
	{
		of_plan = palloc0(sizeof(NotesOfPlan));
		of_plan->callback.func = forget_notes;
		of_plan->callback.arg = of_plan;
		of_plan->all = notes;
		of_plan->next = notes->first;
		of_plan->root = root;
		MemoryContextRegisterResetCallback(root->planner_cxt, &of_plan->callback);
		notes->first = of_plan;
	}
	of_plan->notes = lappend(of_plan->notes, note);
	MemoryContextSwitchTo(former);
}

/* ---- statements in planning ---- */

static int	depth;				/* geonn_planning_depth */

void
geonn_planning_begins(void)
{
	depth++;
}

void
geonn_planning_ends(void)
{
	Assert(depth > 0);
	depth--;
}

int
geonn_planning_depth(void)
{
	return depth;
}

bool
geonn_may_plan_another(void)
{
	return depth <= DEPTH_MAX;
}

bool
geonn_statement_takes_nodes(const PlannerInfo *root)
{
	return root->parse->rowMarks == NIL &&
		(root->parse->commandType == CMD_SELECT || root->parse->commandType == CMD_INSERT);
}

/*
 * Have a plan made anew for another role, and when the privilege to search is granted or revoked.
 */
static void
depend_on_privilege(bool *depends_on_role, List **items)
{
	uint32		hash = GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(geonn_search_privilege()));
	PlanInvalItem *needed;
	ListCell   *cell;

	*depends_on_role = true;
	foreach(cell, *items)
	{
		const PlanInvalItem *item = lfirst_node(PlanInvalItem, cell);

		if (item->cacheId == PROCOID && item->hashValue == hash)
			return;
	}
	needed = makeNode(PlanInvalItem);
	needed->cacheId = PROCOID;
	needed->hashValue = hash;
	*items = lappend(*items, needed);
}

/*
 * The planner makes a plan without nodes here.  If that is for want of the privilege, it is for this role alone, and until
 * the privilege is granted.
 */
static void
depend_on_refusal(bool *depends_on_role, List **items)
{
	if (geonn_enabled && OidIsValid(geonn_search_privilege()))
		depend_on_privilege(depends_on_role, items);
}

bool
geonn_may_plan(PlannerInfo *root)
{
	if (geonn_may_search())
		return true;
	depend_on_refusal(&root->glob->dependsOnRole, &root->glob->invalItems);
	return false;
}

PlannedStmt *
geonn_without_nodes(PlannedStmt *plan)
{
	depend_on_refusal(&plan->dependsOnRole, &plan->invalItems);
	return plan;
}

void
geonn_depend_on_privilege(PlannerInfo *root)
{
	depend_on_privilege(&root->glob->dependsOnRole, &root->glob->invalItems);
}

/* ---- calls and their row types ---- */

RangeTblFunction *
geonn_join_call(RangeTblEntry *entry)
{
	RangeTblFunction *call;
	FuncExpr   *expression;
	char	   *name;
	FmgrInfo	info;

	if (entry->rtekind != RTE_FUNCTION || entry->funcordinality ||
		list_length(entry->functions) != 1)
		return NULL;
	call = linitial_node(RangeTblFunction, entry->functions);
	if (!IsA(call->funcexpr, FuncExpr))
		return NULL;
	expression = (FuncExpr *) call->funcexpr;

	/* do not look up other functions: that may load their libraries */
	name = get_func_name(expression->funcid);
	if (name == NULL || strncmp(name, "geonn_", strlen("geonn_")) != 0)
		return NULL;
	fmgr_info(expression->funcid, &info);
	return geonn_is_join(info.fn_addr) ? call : NULL;
}

TupleDesc
geonn_row_type(const RangeTblFunction *call)
{
	TupleDesc	row_type;

	if (call->funccolnames != NIL)
		return BuildDescFromLists(call->funccolnames, call->funccoltypes, call->funccoltypmods,
								  call->funccolcollations);
	return get_expr_result_type(call->funcexpr, NULL, &row_type) == TYPEFUNC_COMPOSITE ? row_type :
		NULL;
}

RelOptInfo *
geonn_relation_of_call(PlannerInfo *root, const FuncExpr *expression, RangeTblFunction **call)
{
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		RelOptInfo *rel = root->simple_rel_array[i];

		if (rel == NULL || rel->reloptkind != RELOPT_BASEREL || !bms_is_empty(rel->lateral_relids))
			continue;
		*call = geonn_join_call(planner_rt_fetch(i, root));
		if (*call != NULL && (*call)->funcexpr == (const Node *) expression)
			return rel;
	}
	return NULL;
}

AttrNumber
geonn_row_column(const RangeTblFunction *call, const char *name)
{
	TupleDesc	row_type = geonn_row_type(call);

	for (int i = 0; row_type != NULL && i < row_type->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(row_type, i);

		if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), name) == 0)
			return (AttrNumber) (i + 1);
	}
	return 0;
}

bool
geonn_is_column(const Node *expression, Index relid, AttrNumber number)
{
	const Var  *column = (const Var *) expression;

	while (IsA(column, RelabelType))
		column = (const Var *) ((const RelabelType *) column)->arg;
	return IsA(column, Var) && column->varno == (int) relid && column->varattno == number &&
		column->varlevelsup == 0;
}

Node *
geonn_compared_with(const RestrictInfo *clause, Index relid, AttrNumber number)
{
	List	   *sides = clause->mergeopfamilies == NIL ? NIL : ((OpExpr *) clause->clause)->args;

	return sides == NIL ? NULL : geonn_is_column(linitial(sides), relid, number) ? lsecond(sides) :
		geonn_is_column(lsecond(sides), relid, number) ? linitial(sides) : NULL;
}

static bool
is_member_column(PlannerInfo *root pg_attribute_unused(), RelOptInfo *rel, EquivalenceClass *class,
				 EquivalenceMember *member, void *number)
{
	return !geonn_below_outer_join(class) &&
		geonn_is_column((Node *) member->em_expr, rel->relid, *(AttrNumber *) number);
}

List *
geonn_equalities(PlannerInfo *root, RelOptInfo *rel, AttrNumber number)
{
	return number != 0 && rel->reloptkind == RELOPT_BASEREL && rel->has_eclass_joins ?
		generate_implied_equalities_for_column(root, rel, is_member_column, &number, NULL) : NIL;
}

/* ---- arguments ---- */

/*
 * Only parameters and RelabelTypes are evaluated: functions could raise errors.
 */
Const *
geonn_known_value(PlannerInfo *root, Node *argument)
{
	Node	   *inner = argument;

	while (inner != NULL && IsA(inner, RelabelType))
		inner = (Node *) ((RelabelType *) inner)->arg;
	if (inner != NULL && IsA(inner, Param) && root != NULL)
		argument = estimate_expression_value(root, argument);
	if (argument == NULL || !IsA(argument, Const) || ((Const *) argument)->constisnull)
		return NULL;
	return (Const *) argument;
}

List *
geonn_known_names(PlannerInfo *root, Node *argument)
{
	Const	   *value = geonn_known_value(root, argument);
	List	   *list = NIL;
	Datum	   *names;
	bool	   *nulls;
	int			count;

	if (value == NULL || value->consttype != NAMEARRAYOID)
		return NIL;
	deconstruct_array(DatumGetArrayTypeP(value->constvalue), NAMEOID, NAMEDATALEN, false,
					  TYPALIGN_CHAR, &names, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		if (!nulls[i])
			list = lappend(list, NameStr(*DatumGetName(names[i])));
	}
	return list;
}

static bool
can_look_up(const char *schema)
{
	Oid			oid;

	/* pg_temp means the session's own schema */
	if (strcmp(schema, "pg_temp") == 0)
		return true;
	oid = get_namespace_oid(schema, true);
	return OidIsValid(oid) &&
		object_aclcheck(NamespaceRelationId, oid, GetUserId(), ACL_USAGE) == ACLCHECK_OK;
}

/*
 * The relation that a cast of the text to regclass finds; InvalidOid: it would raise an error.
 */
static Oid
find_relation(char *text)
{
	List	   *names = NIL;
	RangeVar   *name;
	const char *database;

	if (!SplitIdentifierString(text, '.', &names) || names == NIL || list_length(names) > 3)
		return InvalidOid;
	for (int i = 0; i < list_length(names); i++)
		list_nth_cell(names, i)->ptr_value = makeString(list_nth(names, i));
	name = makeRangeVarFromNameList(names);
	if (name->schemaname != NULL && !can_look_up(name->schemaname))
		return InvalidOid;
	database = name->catalogname != NULL ? get_database_name(MyDatabaseId) : NULL;
	if (name->catalogname != NULL && (database == NULL || strcmp(name->catalogname, database) != 0))
		return InvalidOid;
	return RangeVarGetRelid(name, NoLock, true);
}

/*
 * The text, or varchar, that the expression casts to regclass; NULL: it is no such cast.
 */
static Node *
cast_text(Node *expression)
{
	FuncExpr   *function = (FuncExpr *) expression;

	if (expression == NULL || !IsA(expression, FuncExpr) ||
		(function->funcid != F_REGCLASS && function->funcid != F_TO_REGCLASS))
		return NULL;
	return linitial(function->args);
}

Oid
geonn_known_relation(PlannerInfo *root, Node *argument)
{
	Node	   *name = cast_text(argument);
	Const	   *value = geonn_known_value(root, name != NULL ? name : argument);

	if (value == NULL)
		return InvalidOid;
	if (name != NULL)
		return find_relation(TextDatumGetCString(value->constvalue));
	return value->consttype == REGCLASSOID ? DatumGetObjectId(value->constvalue) : InvalidOid;
}

/*
 * Set the bool *context if the expression has an external parameter.  Returns true, which ends the walk, if
 * it depends on anything else.
 */
static bool
depends_on_other(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXTERN)
	{
		*(bool *) context = true;
		return false;
	}
	if (IsA(node, Param) || IsA(node, Var))
		return true;
	return expression_tree_walker(node, depends_on_other, context);
}

bool
geonn_comes_later(PlannerInfo *root, Node *argument)
{
	Node	   *name = cast_text(argument);
	bool		has_parameter = false;

	return !depends_on_other(argument, &has_parameter) && has_parameter &&
		geonn_known_value(root, name != NULL ? name : argument) == NULL;
}

/* ---- columns ---- */

static char *
named_column(const Const *options, const char *side, const char *what)
{
	/* options that name columns of points, which have no other side, have no prefix */
	char	   *key = strcmp(side, "points") == 0 ? pstrdup(what) : psprintf("%s_%s", side, what);
	Jsonb	   *object = options != NULL ? DatumGetJsonbP(options->constvalue) : NULL;
	JsonbValue	space;
	JsonbValue *value;

	if (object == NULL || !JB_ROOT_IS_OBJECT(object))
		return NULL;
	value = getKeyJsonValueFromContainer(&object->root, key, strlen(key), &space);
	return value != NULL && value->type == jbvString ?
		pnstrdup(value->val.string.val, value->val.string.len) : NULL;
}

GeonnColumnNames
geonn_named_columns(PlannerInfo *root, const FuncExpr *expression, const char *side)
{
	Const	   *options = geonn_known_value(root, geonn_expression_argument(expression, "options"));
	GeonnColumnNames named = {0};

	for (ColumnRole role = 0; role < COLUMN_ROLES; role++)
		named.names[role] = named_column(options, side, geonn_role_option(role));
	return named;
}

PointSource *
geonn_known_source(PlannerInfo *root, const FuncExpr *expression, const char *side)
{
	Oid			relation = geonn_known_relation(root, geonn_expression_argument(expression, side));
	GeonnColumnNames named = geonn_named_columns(root, expression, side);
	bool		is_reference = strcmp(side, "obs") != 0;
	List	   *by = geonn_known_names(root, geonn_expression_argument(expression, "by"));
	List	   *overlaps = geonn_known_names(root, geonn_expression_argument(expression, "overlaps"));

	if (!OidIsValid(relation) || geonn_relation_name(relation) == NULL ||
		(named.names[COLUMN_LATITUDE] == NULL) != (named.names[COLUMN_LONGITUDE] == NULL))
		return NULL;

	return geonn_clear_source(relation, &named, geonn_names_of_side(by, is_reference),
							  geonn_names_of_side(overlaps, is_reference));
}

bool
geonn_is_stored(Oid table, AttrNumber number)
{
	char		generated;

	if (number <= 0)
		return false;
	generated = get_attgenerated(table, number);
	return generated == '\0' || generated == ATTRIBUTE_GENERATED_STORED;
}
