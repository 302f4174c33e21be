/*
 * sql_join.c
 *		The plan node of nearest-neighbour subqueries: PostGIS's statements, by a search for many rows at once.
 *
 * FROM o, LATERAL (SELECT ... FROM r ORDER BY o.g <-> r.g LIMIT k) n asks for the k nearest rows of r for each row
 * of o.  The node reads r once, by a plan of its own, and keeps its rows in memory.  It searches for the neighbours
 * of many outer rows at a time, as lateral.c does for calls, and gives each the same rows as the subquery.
 *
 * The subquery's own expressions decide.  PostGIS's distance differs from geonn's by less than MARGIN, and PostGIS
 * takes two points for one where latitudes and longitudes differ by at most 1e-12 radians.  So the search asks for
 * one reference more than the subquery needs.  Where that one is farther than the last needed one by more than the
 * margin, those before it are all that can be among the rows.  If their distances are as far apart, too, the order is
 * known.  Else the node evaluates the keys of ORDER BY for these few, and sorts.  Where the one more is not farther,
 * as among references at one place, a second search asks for as many as a search can return.  What that leaves
 * undecided is decided by the keys of all references.
 *
 * geonn_distance is what searches order by, so that their distances are exact: only references at one distance are
 * compared by the other keys.  Where these depend on no outer row, the references are sorted by them, and the search
 * returns those at one distance in their order.  It asks for no more references than are needed, and its rows, with
 * their distances, are those of the subquery.
 *
 * The keys of all references also decide for an outer row whose point the engine does not take: NULL, empty, or out
 * of range.  References with a NULL or empty point have no distance, and come last: where the rows that have one
 * are fewer than are needed, all references are candidates, too.  References whose coordinates are out of range are
 * candidates for each outer row.
 *
 * Conditions that join both rows are tested for one reference of the search's answer after the other, until as many as
 * are needed meet them, or until they are too far away for ST_DWithin.  Where the answer ends before, the second search
 * decides, and later rounds search for more.
 *
 * Lines in place of the references' points have margins of their own, and some of them are candidates that do not count
 * among those that are needed (sql_shapes.c).
 *
 * What a row has in it is for sql_outputs.c.
 *
 * Where the references are all rows of a table, and the outputs are their ids and these distances (sql_table.c), they
 * are read only if the engine does not keep them.  The rows of the search are those of the subquery.  What a search does
 * not answer needs the references, which are read then: an outer row whose point the engine does not take, a
 * table with a row that it does not take, and an engine that cannot be had.
 *
 * A statement that PostgreSQL answers must not fail for want of the engine.  Where a round's search cannot begin
 * (sql_fallback.c), its outer rows are answered one by one until the engine can be had again: by PostgreSQL's own plan, if
 * that has an index (sql_own_plan.c), which answers rows that searches leave undecided, too; else by the keys of all
 * references.  The first round's search is complete before the node returns a row; only an engine that ends later, in the
 * middle of a round, is an error.  Where the references do not fit in geonn.session_memory_limit, PostgreSQL's own plan
 * answers, too, or each outer row has them read again.
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"
#include "nodes/makefuncs.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "base/settings.h"
#include "common/protocol.h"
#include "sql/sql_fallback.h"
#include "sql/sql_join.h"
#include "sql/sql_own_plan.h"
#include "sql/sql_rounds.h"

/* ---- the plan ---- */

static const LateralSource subquery_source;
static const LateralSource table_source;

static void
begin_source(SqlJoin *join)
{
	join->lateral.source = join->in_table.table != NULL ? &table_source : &subquery_source;
	join->has_read = false;
	join->in_table.fits_table = true;
}

/*
 * Have rows be made of a table's pairs, whose tags are the ids.
 */
static void
begin_blocks(SqlJoin *join)
{
	const BlockColumn tag = BLOCK_OF_PAIR(tag);
	const BlockColumn distance = BLOCK_OF_PAIR(distance);
	int			outputs = join->lateral.columns - 1;
	BlockColumn *in_block = palloc(outputs * sizeof(BlockColumn));

	for (int i = 0; i < outputs; i++)
		in_block[i] = join->in_table.table->columns[i] == SEARCH_REFERENCE ? tag : distance;
	geonn_lateral_begin_blocks(&join->lateral, in_block);
}

/*
 * Begin the children but the outer plan.
 */
static void
begin_references(SqlJoin *join, const SqlPrivate *planned, EState *estate, int flags)
{
	PlanState  *references = geonn_lateral_begin_child(&join->lateral, LATERAL_REFERENCES, estate, flags);

	join->fallback.own = geonn_own_plan_begin(&join->lateral, estate, flags);
	geonn_sql_references_begin(&join->references, references, join->fallback.own != NULL, planned->point,
							   (GeonnPointKind) intVal(planned->point_kind), boolVal(planned->has_shapes));
}

static void
begin_observation(SqlJoin *join, const List *point)
{
	ListCell   *cell;

	Assert(list_length(point) == join->references.points);
	join->question.point_column[0] = join->question.point_column[1] = -1;
	foreach(cell, point)
		join->question.observation[foreach_current_index(cell)] = ExecInitExpr(lfirst(cell), &join->lateral.node.custom.ss.ps);
	join->question.observation_column = IsA(linitial(point), Var) ? linitial_node(Var, point)->varattno - 1 : -1;
	if (join->references.points == 2 && IsA(linitial(point), Var) && IsA(lsecond(point), Var))
	{
		join->question.point_column[0] = linitial_node(Var, point)->varattno - 1;
		join->question.point_column[1] = lsecond_node(Var, point)->varattno - 1;
	}
}

static void
begin_join(JoinNode *node, EState *estate, int flags)
{
	SqlJoin    *join = (SqlJoin *) node;
	LateralNode *lateral = &join->lateral;
	PlanState  *plan = &node->custom.ss.ps;
	const CustomScan *scan = (const CustomScan *) plan->plan;
	SqlExpressions *expressions = &join->planned;
	SqlPrivate	planned;

	geonn_unpack_fields(scan->custom_exprs, expressions);
	geonn_unpack_fields(geonn_lateral_begin_plan(lateral, estate, flags), &planned);
	lateral->columns = list_length(expressions->outputs) + 1;
	lateral->ord = -1;
	begin_references(join, &planned, estate, flags);
	geonn_candidates_begin(&join->candidates, &join->references, plan, expressions, &planned,
						   lateral->slot->tts_tupleDescriptor, lateral->outer_columns);
	geonn_sql_outputs_begin(&join->outputs, &join->candidates, plan, expressions, &planned, lateral->outer_columns);
	begin_observation(join, expressions->observation);
	join->question.limit = ExecInitExpr((Expr *) expressions->limit, plan);
	join->question.offset = ExecInitExpr((Expr *) expressions->offset, plan);
	if (!IsA(expressions->reach, Const) || !castNode(Const, expressions->reach)->constisnull)
		join->question.reach = ExecInitExpr((Expr *) expressions->reach, plan);
	join->question.excluded = intVal(planned.excluded);
	join->question.is_exact = join->references.kind == GEONN_POINT_NONE;

	/* a worker does not know whether this transaction has made the table, of which nothing may be kept then */
	if (!IsParallelWorker())
		join->in_table.table = geonn_sql_table_begin(planned.table, &join->references, expressions->outputs);
	begin_source(join);
	node->filter = expressions->clauses;

	join->question.metric = intVal(planned.metric);
	join->question.function = strVal(planned.function);
	geonn_lateral_begin_rows(lateral, estate);
	if (join->in_table.table != NULL)
		begin_blocks(join);
}

/* ---- points ---- */

/*
 * Implements LateralSource.read_point: a point that the engine does not take is NULL.
 */
static void
read_outer_point(LateralNode *lateral, Round *round, uint64 number)
{
	const SqlJoin *join = (const SqlJoin *) lateral;
	OuterRow   *row = &round->rows[number];
	bool		is_valid = join->question.k > 0 &&
		geonn_sql_read_observation(join, lateral->expressions, &round->latitudes[number],
								   &round->longitudes[number]) == POINT_VALID;

	row->latitude_is_null = row->longitude_is_null = !is_valid;
	row->limits = NULL;
}

/* ---- the question ---- */

/*
 * The value of LIMIT or OFFSET; NULL means `without`.
 */
static uint64
count_rows(const SqlJoin *join, ExprState *expression, uint64 without, bool is_limit)
{
	bool		is_null;
	int64		count = DatumGetInt64(ExecEvalExprSwitchContext(expression, join->lateral.expressions, &is_null));

	if (is_null)
		return without;
	if (count < 0)
		ereport(ERROR,
				(errcode(is_limit ? ERRCODE_INVALID_ROW_COUNT_IN_LIMIT_CLAUSE :
						 ERRCODE_INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE),
				 is_limit ? errmsg("LIMIT must not be negative") : errmsg("OFFSET must not be negative"),
				 errhint("Give a number of rows from 0 on, or NULL.")));
	return (uint64) count;
}

/*
 * How many references the search returns for a point: one more than the rows that are needed, by which ties show, and
 * those that the conditions exclude.  0: more than a search can return, or than the engine has, or none; or PostgreSQL's own
 * plan is to answer.
 */
static uint32
neighbours_needed(const SqlJoin *join)
{
	uint64		wanted = join->candidates.wanted;
	uint64		skipped = join->candidates.skipped;

	if (geonn_sql_references_suit_own(&join->references))
		return 0;
	if (wanted == 0 || wanted > GEONN_K_MAX || skipped > GEONN_K_MAX || wanted + skipped >= GEONN_K_MAX ||
		wanted + skipped > join->references.valid.count)
		return 0;
	return (uint32) Min(wanted + skipped + !geonn_sql_takes_first(join) + join->question.excluded, GEONN_K_MAX);
}

static void
read_counts(SqlJoin *join)
{
	join->candidates.skipped = count_rows(join, join->question.offset, 0, false);
	join->candidates.wanted = count_rows(join, join->question.limit, PG_UINT64_MAX, true);
	join->progress.asked.count = join->progress.points = 0;
}

/*
 * A join with the references of join->question.given, k of which are searched for.
 */
static GeonnJoin *
describe_join(SqlJoin *join, PointSource *references)
{
	GeonnJoin  *result = palloc0(sizeof(GeonnJoin));

	for (int i = 0; i < 2; i++)
		join->lateral.outer.point_column[i] = join->question.k > 0 ? join->question.point_column[i] : -1;
	result->references = references;
	result->given_references = &join->question.given;
	result->invalid = GEONN_INVALID_COUNTED;
	result->question = (GeonnQuestion) {
		.device = geonn_device,
		.algorithm = geonn_algorithm,
		.metric = join->question.metric,
		.k = Max(join->question.k, 1),
		.max_distance = INFINITY
	};
	geonn_call_describe(&result->label, InvalidOid, references->relation, join->question.function,
						psprintf("k => %u", result->question.k));
	return result;
}

/*
 * Implements LateralSource.make_join: read the references, too.
 */
static GeonnJoin *
make_join(LateralNode *lateral, TupleDesc *row_type)
{
	SqlJoin    *join = (SqlJoin *) lateral;

	read_counts(join);

	/* PostgreSQL does not execute a subquery with LIMIT 0, in which an expression may fail */
	if (join->candidates.wanted > 0)
	{
		geonn_sql_read_references(join);
		if (geonn_sql_takes_first(join) && join->candidates.keys > 1)
			geonn_candidates_order_references(&join->candidates, &join->references);
	}
	join->question.k = neighbours_needed(join);
	join->question.given = (GivenPoints) {
		.count = join->question.k > 0 ? join->references.valid.count : 0,
		.point = geonn_sql_reference_point,
		.state = &join->references,
		.each_alone = true
	};
	*row_type = geonn_sql_references_row_type();
	return describe_join(join, geonn_sql_references_describe(&join->references));
}

/* ---- the references of a table ---- */

/*
 * Go on without the table in this execution, in whose memory context this is: the references are those of the node's own
 * plan.  Returns the join.
 */
static GeonnJoin *
leave_table(SqlJoin *join)
{
	join->lateral.source = &subquery_source;
	return make_join(&join->lateral, &join->lateral.row_type);
}

/*
 * Implements GivenPoints.point: a row of the table.
 */
static void
table_point(void *state, uint64 number, PointRow *row)
{
	const SqlJoin *join = state;
	const Reference *reference = join->references.rows[number];

	row->id = reference->values[join->in_table.table->id];
	row->latitude = reference->latitude;
	row->longitude = reference->longitude;
}

/*
 * Implements GeonnJoin.read_given.
 */
static bool
read_table(void *state)
{
	SqlJoin    *join = state;

	geonn_beside_search(geonn_sql_read_references, join);
	join->in_table.fits_table = geonn_sql_table_is_complete(join->in_table.table, &join->references);
	join->question.given.count = join->references.count;
	return join->in_table.fits_table;
}

/*
 * Implements LateralSource.make_join.
 */
static GeonnJoin *
make_table_join(LateralNode *lateral, TupleDesc *row_type)
{
	SqlJoin    *join = (SqlJoin *) lateral;
	GeonnJoin  *result;

	read_counts(join);
	if (join->candidates.wanted == 0 || join->candidates.wanted > GEONN_K_MAX)
		return leave_table(join);
	join->question.k = (uint32) join->candidates.wanted;
	join->question.given = (GivenPoints) {.point = table_point,.state = join,.each_alone = true};
	result = describe_join(join, geonn_sql_table_source(join->in_table.table));
	result->given_table = &join->in_table.table->table;
	result->read_given = read_table;
	*row_type = join->in_table.table->row_type;
	return result;
}

/*
 * Implements LateralSource.begin_round: the rows that a call left out, as the search of the first round says, may be
 * among the subquery's.
 */
static void
begin_table_round(LateralNode *lateral)
{
	SqlJoin    *join = (SqlJoin *) lateral;
	MemoryContext former;

	join->progress.is_searched = geonn_sql_try_round(join) && join->in_table.fits_table &&
		geonn_search_report(lateral->node.search).references_skipped == 0;
	if (join->progress.is_searched)
	{
		join->in_table.answers_left = join->progress.points * join->question.k;
		return;
	}
	geonn_lateral_abandon_searches(lateral);
	former = MemoryContextSwitchTo(lateral->node.context);
	lateral->join = leave_table(join);
	MemoryContextSwitchTo(former);
	geonn_sql_begin_round(lateral);
}

/*
 * Implements LateralSource.next: the search's rows, and then those of the outer rows without a point.
 */
static bool
next_of_table(LateralNode *lateral, Datum *values, bool *nulls)
{
	SqlJoin    *join = (SqlJoin *) lateral;
	Answer		answer;

	/* all pairs were taken: do not ask the search again, as the engine may have ended since */
	if (join->progress.stage == STAGE_SEARCH &&
		(join->in_table.answers_left == 0 || !geonn_next_answer(&join->progress.answers, &join->references, false, &answer)))
		join->progress.stage = STAGE_ALL;
	if (join->progress.stage != STAGE_SEARCH)
		return geonn_sql_next_pair(lateral, values, nulls);
	join->in_table.answers_left--;
	for (int i = 0; i < lateral->columns - 1; i++)
	{
		values[i] = join->in_table.table->columns[i] == SEARCH_REFERENCE ? Int64GetDatum((int64) answer.reference) :
			Float8GetDatum(answer.distance);
		nulls[i] = false;
	}
	join->in_table.rank = answer.number + 1 == join->in_table.number ? join->in_table.rank + 1 : 1;
	join->in_table.number = answer.number + 1;
	values[lateral->columns - 1] = UInt64GetDatum(join->in_table.number << RANK_BITS | join->in_table.rank);
	nulls[lateral->columns - 1] = false;
	return true;
}

/*
 * Implements LateralSource.next_block.
 */
static GeonnBlock *
next_block_of_table(LateralNode *lateral)
{
	SqlJoin    *join = (SqlJoin *) lateral;
	GeonnBlock *block = join->progress.stage == STAGE_SEARCH && join->in_table.answers_left > 0 ?
		geonn_search_next_pair(lateral->node.search) : NULL;

	if (block != NULL)
		join->in_table.answers_left -= block->pairs - block->pair;
	return block;
}

static const LateralSource subquery_source = {
	.make_join = make_join,
	.read_point = read_outer_point,
	.begin_round = geonn_sql_begin_round,
	.searches_again = true,
	.next = geonn_sql_next_pair,
	.rank_bits = RANK_BITS
};

static const LateralSource table_source = {
	.make_join = make_table_join,
	.read_point = read_outer_point,
	.begin_round = begin_table_round,
	.searches_again = true,
	.next = next_of_table,
	.next_block = next_block_of_table,
	.rank_bits = RANK_BITS
};

static void
end_execution(JoinNode *node)
{
	SqlJoin    *join = (SqlJoin *) node;

	begin_source(join);
	geonn_candidates_reset(&join->candidates);
	ExecClearTuple(join->candidates.pair);
	geonn_lateral_end_execution(node);
}

/* ---- EXPLAIN ---- */

static void
explain_join(const JoinNode *node, List *ancestors, ExplainState *explain)
{
	const SqlJoin *join = (const SqlJoin *) node;
	const SqlExpressions *planned = &join->planned;

	if (join->in_table.table != NULL)
		geonn_node_explain_relation(explain, "References", join->in_table.table->table.table);
	geonn_node_explain_expression(node, ancestors, explain, "Order By", linitial(planned->keys));
	geonn_node_explain_expression(node, ancestors, explain, "Limit", planned->limit);
	if (planned->conditions != NIL)
		geonn_node_explain_expression(node, ancestors, explain, "Condition",
									  (Node *) make_ands_explicit(planned->conditions));
	if (!explain->analyze)
		return;
	ExplainPropertyUInteger("Candidates Rechecked", NULL, join->candidates.rechecked, explain);
	ExplainPropertyUInteger("Rows Searched Again", NULL, join->progress.widened, explain);
	ExplainPropertyUInteger("Rows Compared with All References", NULL, join->fallback.rows, explain);
}

const JoinNodeMethods geonn_sql_join_methods = {
	.scan = {"geonn subquery join", geonn_node_create},
	.filter_label = "Join Filter",
	.size = sizeof(SqlJoin),
	.begin = begin_join,
	.next_row = geonn_lateral_next_row,
	.end_execution = end_execution,
	.explain = explain_join
};
