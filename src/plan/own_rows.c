/*
 * own_rows.c
 *		Joins of a call's rows with the rows of the table of its observations.
 *
 * FROM obs o JOIN geonn_nearest('obs', 'ref') n ON n.obs_id = o.id asks for columns of the observations
 * besides their neighbours.  Where id is a unique key, the rows of n that meet a row of o are the neighbours
 * of that row.  So the node of lateral.c can search for the points of the rows of o, and the call need not
 * read the table: o is read once, by any plan and with all conditions that PostgreSQL finds for it.
 *
 * The call would read the same rows: by the same snapshot, with the same policies.  That holds for one
 * table without children, and for a partitioned table, whose unique indexes hold for the rows of all
 * partitions; with such an index it has no foreign partitions, whose rows could come in any number.  The
 * node checks that the user may read the table, as the call does.  In a view, PostgreSQL reads the table as
 * the view's owner: where policies could make that other rows, no node is offered.  A name in text can come
 * to mean another table before the plan is executed, which the node finds out.
 *
 * The rows of a view that is a security barrier are not taken.  PostgreSQL plans it as a query of its own.  Columns
 * that nothing has asked for by then, as the coordinates can be, are NULL in it; and it has the owner's policies,
 * while the call reads the table as the user.
 *
 * Only the id of o is in the query.  Its coordinates are asked for when PostgreSQL asks for the number of the
 * function's rows: all clauses are known by then, and no path has been made.  Partitions in front of the
 * function in FROM have the columns that they give by then, so they get the coordinates, too.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planmain.h"
#include "parser/parse_coerce.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "join/arguments.h"
#include "join/result_row.h"
#include "plan/known.h"
#include "plan/own_rows.h"
#include "base/value.h"

/* a table in FROM that is also the call's obs */
typedef struct OwnTable
{
	RelOptInfo *rel;
	AttrNumber	attributes[COLUMN_ROLES];	/* by ColumnRole; of a partitioned table, not of its partitions */
	Oid			family;			/* the operator family of the unique index of the id */
	Oid			collation;		/* that index's collation */
} OwnTable;

/*
 * The row type's column obs_id; NULL: it has none.
 */
static Form_pg_attribute
number_attribute(const RangeTblFunction *call)
{
	AttrNumber	number = geonn_row_column(call, "obs_id");

	return number == 0 ? NULL : TupleDescAttr(geonn_row_type(call), number - 1);
}

/* ---- the table ---- */

/*
 * The table of observations; InvalidOid: unknown, or an argument rules the node out.
 */
static Oid
observations_of(const FuncExpr *expression)
{
	Node	   *options = geonn_expression_argument(expression, "options");

	if (options != NULL && !IsA(options, Const))
		return InvalidOid;
	/* an assignment is one of all observations together */
	if (geonn_expression_assigns(expression))
		return InvalidOid;
	for (int i = 0; i < geonn_argument_count; i++)
	{
		const GeonnArgument *argument = &geonn_arguments[i];
		const Const *value;

		if (argument->traits & GEONN_OWN_ANY)
			continue;
		value = (const Const *) geonn_expression_argument(expression, argument->name);
		if (value != NULL &&
			(!IsA(value, Const) ||
			 !geonn_argument_is_default(argument, (NullableDatum) {value->constvalue, value->constisnull})))
			return InvalidOid;
	}
	return geonn_known_relation(NULL, geonn_expression_argument(expression, "obs"));
}

static bool
is_table_alone(PlannerInfo *root, RelOptInfo *rel, Oid table)
{
	RangeTblEntry *entry;

	if (rel == NULL || rel->reloptkind != RELOPT_BASEREL || rel->rtekind != RTE_RELATION)
		return false;
	entry = planner_rt_fetch(rel->relid, root);
	if (entry->relid != table || entry->tablesample != NULL)
		return false;
	return entry->relkind == RELKIND_PARTITIONED_TABLE ? entry->inh :
		entry->relkind == RELKIND_RELATION && !entry->inh && !has_subclass(table);
}

/*
 * Does the present snapshot see the transaction that wrote this catalog row?
 */
static bool
is_seen(HeapTuple row)
{
	TransactionId writer = HeapTupleHeaderGetXmin(row->t_data);

	return TransactionIdIsCurrentTransactionId(writer) || !XidInMVCCSnapshot(writer, GetActiveSnapshot());
}

/*
 * Does the snapshot see all partitions, in all levels?  A partition that was attached later may have had
 * rows, when the snapshot was taken, whose ids no index of the table kept unique.
 */
static bool
has_seen_partitions(Oid table)
{
	List	   *relations = find_all_inheritors(table, NoLock, NULL);
	bool		all_seen = true;
	ListCell   *cell;

	foreach(cell, relations)
	{
		HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(lfirst_oid(cell)));

		if (!HeapTupleIsValid(row))
			return false;
		all_seen = all_seen && is_seen(row);
		ReleaseSysCache(row);
	}
	list_free(relations);
	return all_seen;
}

/*
 * Does this index make the column unique?  If so, set family and collation.  The snapshot must see the index:
 * an older snapshot (REPEATABLE READ) may still see two rows with one id, of which one was deleted before the
 * index was built.
 */
static bool
is_unique_by(Oid index, AttrNumber column, OwnTable *table)
{
	Relation	opened = index_open(index, AccessShareLock);
	const FormData_pg_index *form = opened->rd_index;
	bool		is_unique = form->indisunique && form->indimmediate && form->indisvalid &&
		opened->rd_rel->relam == BTREE_AM_OID && form->indnkeyatts == 1 &&
		form->indkey.values[0] == column &&
		heap_attisnull(opened->rd_indextuple, Anum_pg_index_indpred, NULL) &&
		is_seen(opened->rd_indextuple) &&
		(!form->indcheckxmin ||
		 TransactionIdPrecedes(HeapTupleHeaderGetXmin(opened->rd_indextuple->t_data), TransactionXmin));

	if (is_unique)
	{
		table->family = opened->rd_opfamily[0];
		table->collation = opened->rd_indcollation[0];
	}
	index_close(opened, NoLock);
	return is_unique;
}

/*
 * Does any index make the column unique?  The relation's own list is read: before 16, the planner has no
 * indexes of partitioned tables.
 */
static bool
is_unique_column(Relation relation, AttrNumber column, OwnTable *table)
{
	List	   *indexes = RelationGetIndexList(relation);
	bool		is_unique = false;
	ListCell   *cell;

	foreach(cell, indexes)
		is_unique = is_unique || is_unique_by(lfirst_oid(cell), column, table);
	list_free(indexes);
	return is_unique && (relation->rd_rel->relkind != RELKIND_PARTITIONED_TABLE ||
						 has_seen_partitions(RelationGetRelid(relation)));
}

static bool
becomes_double(Oid type)
{
	return type == FLOAT8OID || type == FLOAT4OID || geonn_integer_width(type) > 0;
}

/*
 * Set *table.  False: this relation is not the call's obs, or its rows cannot replace observations.
 */
static bool
find_table(PlannerInfo *root, RelOptInfo *rel, const RangeTblFunction *call, Oid oid,
		   OwnTable *table)
{
	Form_pg_attribute number = number_attribute(call);
	const PointSource *source;
	Relation	relation;
	bool		suits;

	if (!is_table_alone(root, rel, oid))
		return false;
	source = geonn_known_source(NULL, castNode(FuncExpr, call->funcexpr), "obs");
	if (source == NULL || source->point_kind != GEONN_POINT_NONE || geonn_has_radius(source))
		return false;
	table->rel = rel;
	for (int role = 0; role <= COLUMN_LONGITUDE; role++)
		table->attributes[role] = get_attnum(oid, source->columns[role].name);
	if (!becomes_double(source->columns[COLUMN_LATITUDE].type) ||
		!becomes_double(source->columns[COLUMN_LONGITUDE].type) ||
		number == NULL || geonn_row_column(call, "ord") != 0 ||
		!geonn_attribute_takes_id(number, &source->columns[COLUMN_ID]))
		return false;
	relation = table_open(oid, NoLock);

	/*
	 * In a view, PostgreSQL reads the table as the view's owner.  A plan for a table with row-level security is
	 * for one role alone.
	 */
	suits = (!OidIsValid(rel->userid) || rel->userid == GetUserId() || !relation->rd_rel->relrowsecurity) &&
		geonn_is_stored(oid, table->attributes[COLUMN_LATITUDE]) &&
		geonn_is_stored(oid, table->attributes[COLUMN_LONGITUDE]) &&
		TupleDescAttr(RelationGetDescr(relation), table->attributes[COLUMN_ID] - 1)->attnotnull &&
		is_unique_column(relation, table->attributes[COLUMN_ID], table);
	table_close(relation, NoLock);
	return suits;
}

/* ---- the clause ---- */

/*
 * Does a clause equate both ids, by the operators of the unique index?
 */
static bool
is_joined_by(List *clauses, RelOptInfo *function, AttrNumber number, const OwnTable *table)
{
	ListCell   *cell;

	foreach(cell, clauses)
	{
		const RestrictInfo *clause = lfirst_node(RestrictInfo, cell);
		const Node *id = geonn_compared_with(clause, function->relid, number);

		if (id != NULL && geonn_is_column(id, table->rel->relid, table->attributes[COLUMN_ID]) &&
			list_member_oid(clause->mergeopfamilies, table->family) &&
			(!OidIsValid(table->collation) || table->collation == ((OpExpr *) clause->clause)->inputcollid))
			return true;
	}
	return false;
}

/* ---- what the planner asks for ---- */

/*
 * The table's column in the outer rows, cast to this type; NULL: the outer rows lack it.
 */
static Node *
outer_column(RelOptInfo *outer, const OwnTable *table, ColumnRole role, Oid type)
{
	ListCell   *cell;

	foreach(cell, outer->reltarget->exprs)
	{
		Node	   *column = lfirst(cell);

		if (IsA(column, Var) && geonn_is_column(column, table->rel->relid, table->attributes[role]))
			return coerce_to_target_type(NULL, copyObject(column), exprType(column), type, -1,
										 COERCION_EXPLICIT, COERCE_IMPLICIT_CAST, -1);
	}
	return NULL;
}

bool
geonn_find_own_rows(PlannerInfo *root, RelOptInfo *function, RelOptInfo *outer, List *clauses, RowCall *own)
{
	const RangeTblFunction *call = own->call;
	Oid			oid = observations_of(castNode(FuncExpr, call->funcexpr));
	int			relid = -1;
	OwnTable	table;

	own->number = geonn_row_column(call, "obs_id");
	while (OidIsValid(oid) && (relid = bms_next_member(outer->relids, relid)) >= 0)
	{
		if (!find_table(root, root->simple_rel_array[relid], call, oid, &table) ||
			!is_joined_by(clauses, function, own->number, &table))
			continue;
		own->table = oid;
		own->point = list_make4(outer_column(outer, &table, COLUMN_LATITUDE, FLOAT8OID),
								outer_column(outer, &table, COLUMN_LONGITUDE, FLOAT8OID),
								makeNullConst(TEXTOID, -1, InvalidOid),
								outer_column(outer, &table, COLUMN_ID, number_attribute(call)->atttypid));
		if (!list_member_ptr(own->point, NULL))
			return true;
	}
	return false;
}

/*
 * Have partitions, in all levels, return this column of their parent.
 */
static void
add_to_partitions(PlannerInfo *root, const Var *column)
{
	ListCell   *cell;

	foreach(cell, root->append_rel_list)
	{
		const AppendRelInfo *link = lfirst_node(AppendRelInfo, cell);
		RelOptInfo *partition = root->simple_rel_array[link->child_relid];
		Var		   *translated;

		if (link->parent_relid != (Index) column->varno || partition == NULL)
			continue;
		translated = list_nth_node(Var, link->translated_vars, column->varattno - 1);
		if (!list_member(partition->reltarget->exprs, translated))
			partition->reltarget->exprs = lappend(partition->reltarget->exprs,
												  copyObject(translated));
		add_to_partitions(root, translated);
	}
}

/*
 * Have the table's scan return the coordinates, up to the join with the function.
 */
static void
want_points(PlannerInfo *root, const RelOptInfo *function, const OwnTable *table)
{
	Relids		wanted_by = bms_add_member(bms_make_singleton(function->relid), table->rel->relid);

	for (int role = COLUMN_LATITUDE; role <= COLUMN_LONGITUDE; role++)
	{
		AttrNumber	number = table->attributes[role];
		Oid			oid = planner_rt_fetch(table->rel->relid, root)->relid;
		Oid			type;
		int32		modifier;
		Oid			collation;
		Var		   *column;

		get_atttypetypmodcoll(oid, number, &type, &modifier, &collation);
		column = makeVar((int) table->rel->relid, number, type, modifier, collation, 0);
		geonn_add_columns(root, list_make1(column), wanted_by);
		add_to_partitions(root, column);
	}
}

void
geonn_want_own_points(PlannerInfo *root, const FuncExpr *expression)
{
	Oid			oid = observations_of(expression);
	RangeTblFunction *call;
	RelOptInfo *function;
	AttrNumber	number;
	List	   *clauses;
	OwnTable	table;

	if (!OidIsValid(oid) || !geonn_statement_takes_nodes(root))
		return;
	function = geonn_relation_of_call(root, expression, &call);
	if (function == NULL)
		return;
	number = geonn_row_column(call, "obs_id");
	clauses = list_concat(geonn_equalities(root, function, number), function->joininfo);
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		if (find_table(root, root->simple_rel_array[i], call, oid, &table) &&
			is_joined_by(clauses, function, number, &table))
			want_points(root, function, &table);
	}
}
