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
 * among those that are needed (sql_lines.c).
 *
 * What a row has in it is for sql_outputs.c.
 *
 * A statement that PostgreSQL answers must not fail for want of the engine.  Where a round's search cannot begin, the
 * keys of all references decide for this round and those after it, and a warning says so.  The first round's search
 * is complete before the node returns a row; only an engine that ends later, in the middle of a round, is an error.
 * Likewise, where the references do not fit in geonn.session_memory_limit, each outer row has them read again.
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "base/settings.h"
#include "common/protocol.h"
#include "plan/sql_candidates.h"
#include "plan/sql_fallback.h"
#include "plan/sql_join.h"
#include "plan/sql_lines.h"
#include "plan/sql_outputs.h"

/* as LateralSource.rank_bits; rows after the last rank have that rank, too */
#define RANK_BITS 20
#define RANK_MAX ((UINT64CONST(1) << RANK_BITS) - 1)

/* what decides for the outer rows that are left in a round */
typedef enum Stage
{
	STAGE_SEARCH,				/* the round's search */
	STAGE_SECOND_SEARCH,		/* a second search, for the rows that the first left undecided */
	STAGE_ALL,					/* all references, for the rows without a search and those still undecided */
	STAGE_END
} Stage;

typedef struct SqlJoin
{
	LateralNode lateral;		/* first field */
	SqlReferences references;
	SqlCandidates candidates;	/* of the present outer row */
	ExprState  *observation[2]; /* the observation's point; [references.points] */
	int			observation_column; /* its column in the scan's slot; -1: it is an expression */
	int			metric;
	const char *function;
	ExprState  *limit;
	ExprState  *offset;
	ExprState  *reach;			/* NULL: none says how far the references may be */
	int			excluded;		/* as SQL_EXCLUDED */
	bool		is_exact;		/* the distance is geonn's own, so that searches have it */
	SqlOutputs	outputs;		/* [lateral.columns - 1] of them */

	/* one execution */
	uint32		k;				/* how many references a search returns; 0: nothing is searched for */
	GivenPoints given;			/* the references for the engine */
	uint64		widened;		/* how many outer rows the second searches were for */
	uint64		compared;		/* how many outer rows were compared with all references */
	bool		without_engine; /* a search could not begin, so that no other one is tried */

	/* a round */
	Stage		stage;
	bool		is_searched;	/* the round has a search */
	uint64		points;			/* how many points the round's search has */
	uint64		points_left;	/* how many points of the present search have answers that were not taken */
	Answers		answers;		/* of the present search */
	Numbers		undecided;		/* the outer rows that the present search leaves undecided */
	Numbers		asked;			/* those that the second search is for */
	uint64		next_row;		/* STAGE_ALL: the next outer row, and the next of undecided */
	uint64		next_undecided;
	uint64		present;		/* the present outer row's number in the round */
	bool		is_shown;		/* the pair has its columns */
} SqlJoin;

/* ---- the plan ---- */

static const LateralSource subquery_source;

static void
begin_join(JoinNode *node, EState *estate, int flags)
{
	SqlJoin    *join = (SqlJoin *) node;
	LateralNode *lateral = &join->lateral;
	PlanState  *plan = &node->custom.ss.ps;
	const CustomScan *scan = (const CustomScan *) plan->plan;
	int			keys = list_length(list_nth(scan->custom_private, SQL_OPERATORS));
	int			outputs = list_length(list_nth(scan->custom_private, SQL_OUTPUTS));
	List	   *rest = scan->custom_exprs;
	const Node *observation;
	PlanState  *references;

	geonn_lateral_begin_plan(lateral, estate, flags);
	lateral->source = &subquery_source;
	lateral->columns = outputs + 1;
	lateral->ord = -1;
	references = ExecInitNode(lsecond(scan->custom_plans), estate,
							  flags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));
	node->custom.custom_ps = lappend(node->custom.custom_ps, references);
	geonn_sql_references_begin(&join->references, references, list_nth(scan->custom_private, SQL_POINT),
							   (GeonnPointKind) intVal(list_nth(scan->custom_private, SQL_POINT_KIND)),
							   boolVal(list_nth(scan->custom_private, SQL_LINES)));
	geonn_candidates_begin(&join->candidates, &join->references, plan, list_truncate(list_copy(rest), keys),
						   list_nth(rest, keys + join->references.points + 3), lateral->slot->tts_tupleDescriptor,
						   lateral->outer_columns);
	rest = list_copy_tail(rest, keys);
	for (int i = 0; i < join->references.points; i++)
		join->observation[i] = ExecInitExpr(list_nth(rest, i), plan);
	observation = linitial(rest);
	join->observation_column = IsA(linitial(rest), Var) ? linitial_node(Var, rest)->varattno - 1 : -1;
	rest = list_copy_tail(rest, join->references.points);
	join->limit = ExecInitExpr(linitial(rest), plan);
	join->offset = ExecInitExpr(lsecond(rest), plan);
	if (!IsA(lthird(rest), Const) || !lthird_node(Const, rest)->constisnull)
		join->reach = ExecInitExpr(lthird(rest), plan);
	join->excluded = intVal(list_nth(scan->custom_private, SQL_EXCLUDED));
	rest = list_copy_tail(rest, 4);
	join->is_exact = join->references.kind == GEONN_POINT_NONE;
	geonn_sql_outputs_begin(&join->outputs, &join->candidates, plan, list_truncate(list_copy(rest), outputs), observation,
							lateral->outer_columns);
	node->filter = list_copy_tail(rest, outputs);

	join->metric = intVal(list_nth(scan->custom_private, SQL_METRIC));
	join->function = strVal(list_nth(scan->custom_private, SQL_FUNCTION));
	geonn_lateral_begin_rows(lateral, estate);
}

/* ---- points ---- */

static PointStatus
read_observation(const SqlJoin *join, ExprContext *expressions, double *latitude, double *longitude)
{
	NullableDatum values[2];

	for (int i = 0; i < join->references.points; i++)
		values[i].value = ExecEvalExprSwitchContext(join->observation[i], expressions, &values[i].isnull);
	return geonn_sql_read_point(&join->references, values, latitude, longitude);
}

/*
 * Implements LateralSource.read_point: a point that the engine does not take is NULL.
 */
static void
read_outer_point(LateralNode *lateral, Round *round pg_attribute_unused(), OuterRow *row)
{
	const SqlJoin *join = (const SqlJoin *) lateral;
	bool		is_valid = join->k > 0 &&
		read_observation(join, lateral->expressions, &row->latitude, &row->longitude) == POINT_VALID;

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
 * Are the first references of a search the rows, in their order?  Where conditions exclude some, PostgreSQL does not
 * evaluate the keys of these, which can fail.
 */
static bool
takes_first(const SqlJoin *join)
{
	const SqlCandidates *candidates = &join->candidates;

	return join->is_exact &&
		(candidates->keys == 1 || (candidates->later_are_of_references && candidates->conditions == NULL));
}

/*
 * How many references the search returns for a point: one more than the rows that are needed, by which ties show, and
 * those that the conditions exclude.  0: more than a search can return, or than the engine has, or none.
 */
static uint32
neighbours_needed(const SqlJoin *join)
{
	uint64		wanted = join->candidates.wanted;
	uint64		skipped = join->candidates.skipped;

	if (wanted == 0 || wanted > GEONN_K_MAX || skipped > GEONN_K_MAX || wanted + skipped >= GEONN_K_MAX ||
		wanted + skipped > join->references.valid.count)
		return 0;
	return (uint32) Min(wanted + skipped + !takes_first(join) + join->excluded, GEONN_K_MAX);
}

/*
 * Implements LateralSource.make_join: read the references, too.
 */
static GeonnJoin *
make_join(LateralNode *lateral, TupleDesc *row_type)
{
	SqlJoin    *join = (SqlJoin *) lateral;
	GeonnJoin  *result = palloc0(sizeof(GeonnJoin));

	join->candidates.skipped = count_rows(join, join->offset, 0, false);
	join->candidates.wanted = count_rows(join, join->limit, PG_UINT64_MAX, true);

	/* PostgreSQL does not execute a subquery with LIMIT 0, in which an expression may fail */
	if (join->candidates.wanted > 0)
	{
		geonn_sql_references_read(&join->references);
		if (takes_first(join) && join->candidates.keys > 1)
			geonn_candidates_order_references(&join->candidates, &join->references);
	}
	join->k = neighbours_needed(join);
	join->without_engine = false;
	join->asked.count = join->points = 0;
	join->given = (GivenPoints) {
		.count = join->k > 0 ? join->references.valid.count : 0,
		.point = geonn_sql_reference_point,
		.state = &join->references,
		.each_alone = true
	};

	result->references = geonn_sql_references_describe(&join->references);
	result->given_references = &join->given;
	result->invalid = GEONN_INVALID_COUNTED;
	result->question = (GeonnQuestion) {
		.device = geonn_device,
		.algorithm = geonn_algorithm,
		.metric = join->metric,
		.k = Max(join->k, 1),
		.max_distance = INFINITY
	};
	geonn_call_describe(&result->label, InvalidOid, InvalidOid, join->function,
						psprintf("k => %u", result->question.k));
	*row_type = geonn_sql_references_row_type();
	return result;
}

/* ---- candidates ---- */

/*
 * Set the pair's columns of the present outer row, for expressions.
 */
static void
show_outer_row(SqlJoin *join)
{
	const LateralNode *lateral = &join->lateral;
	TupleTableSlot *pair = join->candidates.pair;
	int			column = join->observation_column;

	if (join->is_shown)
		return;
	join->is_shown = true;
	ExecClearTuple(pair);
	geonn_lateral_set_outer(lateral, join->present, pair);
	if (column >= 0 && !pair->tts_isnull[column])
	{
		/* where references are read again, the memory of expressions is reset for each of them */
		MemoryContext former = MemoryContextSwitchTo(join->references.rereads ? lateral->round->memory :
													 join->candidates.expressions->ecxt_per_tuple_memory);

		pair->tts_values[column] = geonn_sql_plain_point(&join->references, pair->tts_values[column]);
		MemoryContextSwitchTo(former);
	}
	ExecStoreVirtualTuple(pair);
}

/*
 * Go on to an outer row, and forget the candidates of the one before.
 */
static void
begin_outer_row(SqlJoin *join, uint64 number)
{
	join->present = number;
	join->is_shown = false;
	geonn_sql_outputs_reset(&join->outputs);
	geonn_candidates_reset(&join->candidates);
	if (join->candidates.conditions != NULL)
		show_outer_row(join);
}

/*
 * Metres from the present outer row to the farthest references that can meet the conditions.  ST_DWithin measures on
 * the spheroid, where distances differ from the sphere's by less than 0.6 %.
 */
static double
reach_of_row(const SqlJoin *join)
{
	bool		is_null;
	Datum		value;

	if (join->reach == NULL)
		return INFINITY;
	value = ExecEvalExprSwitchContext(join->reach, join->candidates.expressions, &is_null);

	/* ST_DWithin itself refuses a negative one */
	return is_null || !(DatumGetFloat8(value) >= 0) ? INFINITY : DatumGetFloat8(value) * 1.01 + 1;
}

/*
 * The greatest distance, by geonn, of a reference that the keys may put before one at this distance.
 */
static double
greatest_in_doubt(const SqlJoin *join, double distance)
{
	if (takes_first(join))
		return -INFINITY;
	if (join->references.has_lines)
		return geonn_lines_in_doubt(distance, join->references.unmeasured == 0);
	return join->is_exact ? distance : Max(distance + MARGIN, SAME_PLACE);
}

/* ---- stages ---- */

/*
 * Take the rows of the next point that the search has answered, and choose among them, or note that they leave the
 * outer row undecided.  `asked` has the numbers of the outer rows; NULL: they are those of the points.  False: none
 * is left.
 */
static bool
take_answer(SqlJoin *join, GeonnSearch *search, uint32 k, const Numbers *asked)
{
	const SqlReferences *references = &join->references;
	SqlCandidates *candidates = &join->candidates;
	uint64		needed = candidates->wanted + candidates->skipped;
	uint64		answered = Min(k, references->valid.count);
	uint64		counted = 0;
	double		bound = INFINITY;
	double		reach = INFINITY;
	double		distance = 0;
	bool		is_ordered = references->invalid.count == 0;

	if (join->points_left == 0)
		return false;
	join->points_left--;
	for (uint64 i = 0; i < answered; i++)
	{
		const Answer *answer = geonn_next_answer(&join->answers, search, references, true);

		if (answer == NULL)
			elog(ERROR, "a search lacks rows of %llu points", (unsigned long long) join->points_left + 1);
		if (i == 0)
		{
			begin_outer_row(join, asked == NULL ? answer->number : asked->numbers[answer->number]);
			reach = reach_of_row(join);
		}
		else if (answer->distance <= greatest_in_doubt(join, distance))
			is_ordered = false;
		distance = answer->distance;
		if (distance > Min(bound, reach) || !geonn_candidates_add(candidates, answer->reference, distance))
			continue;
		if (!references->rows[answer->reference]->is_measured)
			is_ordered = false;
		else if (++counted == needed)
			bound = greatest_in_doubt(join, distance);
	}
	if (distance <= Min(bound, reach) && answered < references->valid.count)
	{
		geonn_numbers_add(&join->undecided, join->present, join->lateral.round->memory);
		return true;
	}
	for (uint64 i = 0; i < references->invalid.count; i++)
		(void) geonn_candidates_add(candidates, references->invalid.numbers[i], NAN);

	/* the conditions left fewer than are needed: those without a distance, which come last, are among the rows, too */
	if (candidates->count < needed && isinf(reach) &&
		references->valid.count + references->invalid.count < references->count)
	{
		geonn_numbers_add(&join->undecided, join->present, join->lateral.round->memory);
		return true;
	}
	if (!is_ordered || join->outputs.shows_outer)
		show_outer_row(join);
	if (is_ordered)
		geonn_candidates_choose(candidates);
	else
		geonn_candidates_sort(candidates);
	return true;
}

/*
 * Implements GivenPoints.point: the point of an outer row that the second search is for.
 */
static void
asked_point(void *state, uint64 number, PointRow *row)
{
	const SqlJoin *join = state;
	const OuterRow *outer = &join->lateral.round->rows[join->asked.numbers[number]];

	row->latitude = outer->latitude;
	row->longitude = outer->longitude;
}

/*
 * Begin a search of the present round by this function.  False: the engine cannot be had.
 */
static bool
try_search(SqlJoin *join, void (*begin) (void *join))
{
	join->without_engine = !geonn_try_search(begin, join);
	return !join->without_engine;
}

static void
begin_search(void *state)
{
	SqlJoin    *join = state;
	const Round *round = join->lateral.round;

	join->points_left = 0;
	for (uint64 i = 0; i < round->given.count; i++)
		join->points_left += !round->rows[i].latitude_is_null;
	join->points = join->points_left;
	geonn_answers_begin(&join->answers, join->points * Min(join->k, join->references.valid.count));
	geonn_lateral_begin_search(&join->lateral, !join->lateral.has_references);
}

static void
begin_second_search(void *state)
{
	SqlJoin    *join = state;
	GivenPoints given = {
		.count = join->undecided.count,
		.point = asked_point,
		.state = join,
		.each_alone = true
	};

	join->asked = join->undecided;
	join->undecided = (Numbers) {0};
	join->widened += join->asked.count;
	join->points_left = join->asked.count;
	geonn_answers_begin(&join->answers, join->asked.count * Min(GEONN_K_MAX, join->references.valid.count));
	geonn_lateral_begin_second_search(&join->lateral, &given, GEONN_K_MAX, false);
}

/*
 * Choose among all references, which are read again if they are not kept, for the next outer row that is left.  A row
 * without a point has no distances: if they are the only key, any references will do.  False: no row is left.
 */
static bool
compare_with_all(SqlJoin *join)
{
	const Round *round = join->lateral.round;
	SqlCandidates *candidates = &join->candidates;
	uint64		count = join->references.count;
	uint64		number;
	double		latitude;
	double		longitude;

	while (join->is_searched && join->next_row < round->given.count && !round->rows[join->next_row].latitude_is_null)
		join->next_row++;
	if (candidates->wanted == 0)
		return false;
	if (join->next_row < round->given.count)
		number = join->next_row++;
	else if (join->next_undecided < join->undecided.count)
		number = join->undecided.numbers[join->next_undecided++];
	else
		return false;
	begin_outer_row(join, number);
	show_outer_row(join);
	if (join->references.rereads)
	{
		join->compared++;
		geonn_candidates_reread(candidates, &join->references);
		return true;
	}
	if (candidates->keys == 1 && candidates->conditions == NULL && candidates->wanted < count && candidates->skipped < count &&
		read_observation(join, candidates->expressions, &latitude, &longitude) == POINT_NULL)
		count = Min(count, candidates->wanted + candidates->skipped);
	else
		join->compared++;
	for (uint64 i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		(void) geonn_candidates_add(candidates, i, NAN);
	}
	geonn_candidates_sort(candidates);
	return true;
}

/*
 * Find the rows of the next outer row; false: the round has no more.
 */
static bool
next_outer_row(SqlJoin *join)
{
	CHECK_FOR_INTERRUPTS();
	switch (join->stage)
	{
		case STAGE_SEARCH:
			if (join->is_searched && take_answer(join, join->lateral.node.search, join->k, NULL))
				return true;
			join->stage = STAGE_ALL;
			if (join->undecided.count == 0 || join->k == GEONN_K_MAX)
				return true;
			if (try_search(join, begin_second_search))
				join->stage = STAGE_SECOND_SEARCH;
			else
			{
				geonn_lateral_end_second_search(&join->lateral);
				join->undecided = join->asked;
			}
			return true;
		case STAGE_SECOND_SEARCH:
			if (take_answer(join, join->lateral.second, GEONN_K_MAX, &join->asked))
				return true;
			geonn_lateral_end_second_search(&join->lateral);
			join->stage = STAGE_ALL;
			return true;
		case STAGE_ALL:
			if (compare_with_all(join))
				return true;
			join->stage = STAGE_END;
			return false;
		case STAGE_END:
			return false;
	}
	pg_unreachable();
}

/*
 * Implements LateralSource.begin_round.
 */
static void
begin_round(LateralNode *lateral)
{
	SqlJoin    *join = (SqlJoin *) lateral;

	/* where the conditions excluded more references than was expected, search for more */
	if (join->candidates.conditions != NULL && join->asked.count > join->points / 8)
		lateral->join->question.k = join->k = Min(join->k * 4, GEONN_K_MAX);
	join->asked.count = join->points = 0;
	join->stage = STAGE_SEARCH;
	join->undecided = (Numbers) {0};
	join->next_row = join->next_undecided = 0;
	geonn_candidates_reset(&join->candidates);
	join->is_searched = join->k > 0 && !join->without_engine && try_search(join, begin_search);
	if (!join->is_searched)
		geonn_lateral_abandon_search(lateral);
}

/*
 * Implements LateralSource.next: the outputs of the next pair, and the number of its outer row.
 */
static bool
next_pair(LateralNode *lateral, Datum *values, bool *nulls)
{
	SqlJoin    *join = (SqlJoin *) lateral;
	const Candidate *candidate;

	while ((candidate = geonn_candidates_next(&join->candidates)) == NULL)
	{
		if (!next_outer_row(join))
			return false;
	}
	if (!geonn_sql_show_distance(&join->outputs, candidate, &lateral->round->rows[join->present]))
	{
		show_outer_row(join);
		geonn_sql_evaluate_distance(&join->outputs, candidate, &lateral->round->rows[join->present]);
	}
	for (int i = 0; i < lateral->columns - 1; i++)
	{
		Datum		value = geonn_sql_output(&join->outputs, i, candidate, &nulls[i]);

		/* a function that changes an array or record in place would change the column for the others */
		values[i] = MakeExpandedObjectReadOnly(value, nulls[i], TupleDescAttr(lateral->descriptor, i)->attlen);
	}
	values[lateral->columns - 1] = UInt64GetDatum((join->present + 1) << RANK_BITS | Min(join->candidates.next, RANK_MAX));
	nulls[lateral->columns - 1] = false;
	return true;
}

static const LateralSource subquery_source = {
	.make_join = make_join,
	.read_point = read_outer_point,
	.begin_round = begin_round,
	.searches_again = true,
	.next = next_pair,
	.rank_bits = RANK_BITS
};

static void
end_execution(JoinNode *node)
{
	SqlJoin    *join = (SqlJoin *) node;

	geonn_candidates_reset(&join->candidates);
	ExecClearTuple(join->candidates.pair);
	geonn_lateral_end_execution(node);
}

/* ---- EXPLAIN ---- */

static void
explain_join(const JoinNode *node, List *ancestors, ExplainState *explain)
{
	const SqlJoin *join = (const SqlJoin *) node;
	const CustomScan *scan = (const CustomScan *) node->custom.ss.ps.plan;
	int			after = join->candidates.keys + join->references.points;
	Node	   *limit = list_nth(scan->custom_exprs, after);
	List	   *conditions = list_nth(scan->custom_exprs, after + 3);

	geonn_node_explain_expression(node, ancestors, explain, "Order By", linitial(scan->custom_exprs));
	geonn_node_explain_expression(node, ancestors, explain, "Limit", limit);
	if (conditions != NIL)
		geonn_node_explain_expression(node, ancestors, explain, "Condition", (Node *) make_ands_explicit(conditions));
	if (!explain->analyze)
		return;
	ExplainPropertyUInteger("Candidates Rechecked", NULL, join->candidates.rechecked, explain);
	ExplainPropertyUInteger("Rows Searched Again", NULL, join->widened, explain);
	ExplainPropertyUInteger("Rows Compared with All References", NULL, join->compared, explain);
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
