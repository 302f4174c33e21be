/*
 * sql_rounds.c
 *		The rounds of the plan node of nearest-neighbour subqueries: what becomes of each outer row (sql_join.c).
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "common/protocol.h"
#include "join/references.h"
#include "sql/sql_own_plan.h"
#include "sql/sql_rounds.h"
#include "sql/sql_shapes.h"

/* rows after the last rank have that rank, too */
#define RANK_MAX ((UINT64CONST(1) << RANK_BITS) - 1)

PointStatus
geonn_sql_read_observation(const SqlJoin *join, ExprContext *expressions, double *latitude, double *longitude)
{
	NullableDatum values[2];

	for (int i = 0; i < join->references.points; i++)
		values[i].value = ExecEvalExprSwitchContext(join->question.observation[i], expressions, &values[i].isnull);
	return geonn_sql_read_outer_point(&join->references, values, latitude, longitude);
}

bool
geonn_sql_takes_first(const SqlJoin *join)
{
	const SqlCandidates *candidates = &join->candidates;

	return join->question.is_exact &&
		(candidates->keys == 1 || (candidates->later_are_of_references && candidates->conditions == NULL));
}

void
geonn_sql_read_references(void *state)
{
	SqlJoin    *join = state;
	MemoryContext former = MemoryContextSwitchTo(join->lateral.node.context);

	if (!join->has_read)
		geonn_sql_references_read(&join->references);
	join->has_read = true;
	MemoryContextSwitchTo(former);
}

/* ---- candidates ---- */

/*
 * Set the pair's columns of the present outer row, for expressions.
 */
static void
show_outer_row(SqlJoin *join)
{
	SqlProgress *progress = &join->progress;
	const LateralNode *lateral = &join->lateral;
	TupleTableSlot *pair = join->candidates.pair;
	int			column = join->question.observation_column;

	if (progress->is_shown)
		return;
	progress->is_shown = true;
	ExecClearTuple(pair);
	geonn_lateral_set_outer(lateral, progress->present, pair, lateral->outer_columns);
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
	Assert(number < join->lateral.round->given.count);
	join->progress.present = number;
	join->progress.is_shown = false;
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

	if (join->question.reach == NULL)
		return INFINITY;
	value = ExecEvalExprSwitchContext(join->question.reach, join->candidates.expressions, &is_null);

	/* ST_DWithin itself refuses a negative one */
	return is_null || !(DatumGetFloat8(value) >= 0) ? INFINITY : DatumGetFloat8(value) * 1.01 + 1;
}

/*
 * The greatest distance, by geonn, of a reference that the keys may put before one at this distance.
 */
static double
greatest_in_doubt(const SqlJoin *join, double distance)
{
	if (geonn_sql_takes_first(join))
		return -INFINITY;
	if (join->references.has_shapes)
		return geonn_shapes_in_doubt(distance, join->references.unmeasured == 0, join->references.areas > 0);
	return join->question.is_exact ? distance : Max(distance + MARGIN, SAME_PLACE);
}

/* ---- stages ---- */

/*
 * Pass over the answers for an outer row that was answered before the engine could be had.
 */
static void
pass_answers(SqlJoin *join, uint64 count)
{
	Answer		answer;

	for (uint64 i = 0; i < count; i++)
		(void) geonn_next_answer(&join->progress.answers, &join->references, false, &answer);
}

/*
 * Take the rows of the next point that the search has answered, and choose among them, or note that they leave the
 * outer row undecided.  `asked` has the numbers of the outer rows; NULL: they are those of the points.  False: none
 * is left.
 */
static bool
take_answer(SqlJoin *join, uint32 k, const Numbers *asked)
{
	SqlProgress *progress = &join->progress;
	const SqlReferences *references = &join->references;
	SqlCandidates *candidates = &join->candidates;
	uint64		needed = candidates->wanted + candidates->skipped;
	uint64		answered = Min(k, references->valid.count);
	uint64		counted = 0;
	double		bound = INFINITY;
	double		reach = INFINITY;
	double		distance = 0;
	bool		is_ordered = references->invalid.count == 0;

	if (progress->points_left == 0)
		return false;
	progress->points_left--;
	for (uint64 i = 0; i < answered; i++)
	{
		Answer		answer;

		if (!geonn_next_answer(&progress->answers, references, true, &answer))
			elog(ERROR, "a search lacks rows of %llu points", (unsigned long long) progress->points_left + 1);
		geonn_check_reference_number((int64) answer.reference, references->count);
		if (i == 0)
		{
			uint64		number = asked == NULL ? answer.number : asked->numbers[answer.number];

			if (asked == NULL && number < progress->next_row)
			{
				pass_answers(join, answered - 1);
				return true;
			}
			begin_outer_row(join, number);
			reach = reach_of_row(join);
		}
		else if (answer.distance <= greatest_in_doubt(join, distance))
			is_ordered = false;
		else if (references->areas > 0 && references->invalid.count == 0)
			candidates->group++;
		distance = answer.distance;
		if (distance > Min(bound, reach) || !geonn_candidates_add(candidates, answer.reference, distance))
			continue;
		if (references->areas == 0 && !references->rows[answer.reference]->shape.is_measured)
			is_ordered = false;
		else if (++counted == needed)
			bound = greatest_in_doubt(join, distance);
	}
	if (distance <= Min(bound, reach) && answered < references->valid.count)
	{
		geonn_numbers_add(&progress->undecided, progress->present, join->lateral.round->memory);
		return true;
	}

	/*
	 * The conditions left fewer than are needed: those without a distance, which come last, are among the rows, too.  Some of
	 * those that the engine does not take may have none, either.
	 */
	if (candidates->count < needed && isinf(reach) &&
		references->valid.count + references->invalid.count < references->count)
	{
		geonn_numbers_add(&progress->undecided, progress->present, join->lateral.round->memory);
		return true;
	}
	for (uint64 i = 0; i < references->invalid.count; i++)
		(void) geonn_candidates_add(candidates, references->invalid.numbers[i], NAN);
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
	const Round *round = join->lateral.round;
	uint64		outer = join->progress.asked.numbers[number];

	Assert(number < join->progress.asked.count && outer < round->given.count);
	row->latitude = round->latitudes[outer];
	row->longitude = round->longitudes[outer];
}

static void
begin_search(LateralNode *lateral)
{
	SqlJoin    *join = (SqlJoin *) lateral;
	SqlProgress *progress = &join->progress;

	progress->points = progress->points_left = lateral->round->points;
	geonn_lateral_begin_search(lateral, !lateral->searches.has_references);
	progress->answers = (Answers) {.search = lateral->node.search};
}

static void
begin_second_search(LateralNode *lateral)
{
	SqlJoin    *join = (SqlJoin *) lateral;
	SqlProgress *progress = &join->progress;
	GivenPoints given = {
		.count = progress->asked.count,
		.point = asked_point,
		.state = join,
		.each_alone = true
	};

	progress->points_left = progress->asked.count;
	geonn_lateral_begin_second_search(lateral, &given, GEONN_K_MAX, false);
	progress->answers = (Answers) {.search = lateral->searches.second};
}

/*
 * Search again for the outer rows that are undecided, from this one on.  False: the engine cannot be had.
 */
static bool
search_again(SqlJoin *join, uint64 first)
{
	SqlProgress *progress = &join->progress;

	Assert(first < progress->undecided.count);
	progress->asked = progress->undecided;
	progress->asked.numbers += first;
	progress->asked.count -= first;
	progress->undecided = (Numbers) {0};
	progress->next_undecided = 0;
	if (!geonn_try_search(&join->fallback, &join->lateral, begin_second_search))
	{
		progress->undecided = progress->asked;
		return false;
	}
	progress->widened += progress->asked.count;
	progress->stage = STAGE_SECOND_SEARCH;
	return true;
}

/*
 * The engine could not be had for the present round: ask again, for the outer rows that are left.  False: nothing is to be
 * asked, or it cannot be had now.
 */
static bool
ask_again(SqlJoin *join)
{
	SqlProgress *progress = &join->progress;

	if (join->question.k == 0 || !geonn_may_ask_again(&join->fallback))
		return false;
	if (progress->is_searched)
		return progress->next_undecided < progress->undecided.count && search_again(join, progress->next_undecided);
	if (progress->next_row == join->lateral.round->given.count ||
		!geonn_try_search(&join->fallback, &join->lateral, begin_search))
		return false;
	progress->is_searched = true;
	progress->stage = STAGE_SEARCH;
	return true;
}

/*
 * Go on to the next outer row that is left; false: none is.
 */
static bool
next_left_row(SqlJoin *join, uint64 *number)
{
	SqlProgress *progress = &join->progress;
	const Round *round = join->lateral.round;

	if (progress->is_searched && round->points == round->given.count)
		progress->next_row = round->points;
	while (progress->is_searched && progress->next_row < round->given.count &&
		   !round->rows[progress->next_row].latitude_is_null)
		progress->next_row++;
	if (progress->next_row < round->given.count)
		*number = progress->next_row++;
	else if (progress->next_undecided < progress->undecided.count)
		*number = progress->undecided.numbers[progress->next_undecided++];
	else
		return false;
	return true;
}

/*
 * Choose among all references, which are in memory, for the present outer row.  A row without a point has no distances: if
 * they are the only key, any references will do.  False: that is not so, and only_any is set.
 */
static bool
choose_among_all(SqlJoin *join, bool only_any)
{
	SqlCandidates *candidates = &join->candidates;
	uint64		count = join->references.count;
	double		latitude;
	double		longitude;

	if (candidates->keys == 1 && candidates->conditions == NULL && candidates->wanted < count && candidates->skipped < count &&
		geonn_sql_read_observation(join, candidates->expressions, &latitude, &longitude) == POINT_NULL)
		count = Min(count, candidates->wanted + candidates->skipped);
	else if (only_any)
		return false;
	else
	{
		join->fallback.rows++;
		if (join->fallback.is_lost)
			geonn_count_compared(&join->fallback, count, false);
	}
	for (uint64 i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		(void) geonn_candidates_add(candidates, i, NAN);
	}
	geonn_candidates_sort(candidates);
	return true;
}

/*
 * Read all references again, and choose among them, for the present outer row.
 */
static void
choose_rereading(SqlJoin *join)
{
	join->fallback.rows++;
	geonn_count_compared(&join->fallback, geonn_candidates_reread(&join->candidates, &join->references), true);
}

/*
 * Find the rows of the next outer row that is left, by PostgreSQL's own plan or by comparing it with all references.
 * False: no row is left.
 */
static bool
answer_alone(SqlJoin *join)
{
	uint64		number;

	if (join->candidates.wanted == 0)
		return false;
	if (ask_again(join))
		return true;
	if (!next_left_row(join, &number))
		return false;
	if (join->fallback.own == NULL)
		geonn_sql_read_references(join);
	begin_outer_row(join, number);
	show_outer_row(join);
	if (join->has_read && !join->references.rereads && choose_among_all(join, join->fallback.own != NULL))
		return true;
	if (join->fallback.own == NULL)
	{
		choose_rereading(join);
		return true;
	}
	geonn_own_plan_show(join->fallback.own, number);
	join->progress.own_rank = 1;
	return true;
}

/*
 * Find the rows of the next outer row; false: the round has no more.
 */
static bool
next_outer_row(SqlJoin *join)
{
	SqlProgress *progress = &join->progress;

	CHECK_FOR_INTERRUPTS();
	switch (progress->stage)
	{
		case STAGE_SEARCH:
			if (progress->is_searched && take_answer(join, join->question.k, NULL))
				return true;
			progress->stage = STAGE_ALL;
			if (progress->undecided.count > 0 && join->question.k < GEONN_K_MAX)
				(void) search_again(join, 0);
			return true;
		case STAGE_SECOND_SEARCH:
			if (take_answer(join, GEONN_K_MAX, &progress->asked))
				return true;
			geonn_lateral_end_second_search(&join->lateral);
			progress->stage = STAGE_ALL;
			return true;
		case STAGE_ALL:
			if (answer_alone(join))
				return true;
			progress->stage = STAGE_END;
			return false;
		case STAGE_END:
			return false;
	}
	pg_unreachable();
}

bool
geonn_sql_try_round(SqlJoin *join)
{
	SqlProgress *progress = &join->progress;

	progress->asked.count = progress->points = join->in_table.number = 0;
	progress->stage = STAGE_SEARCH;
	progress->undecided = (Numbers) {0};
	progress->next_row = progress->next_undecided = 0;
	geonn_candidates_reset(&join->candidates);
	progress->own_rank = 0;
	return join->question.k > 0 && geonn_may_ask(&join->fallback) &&
		geonn_try_search(&join->fallback, &join->lateral, begin_search);
}

void
geonn_sql_begin_round(LateralNode *lateral)
{
	SqlJoin    *join = (SqlJoin *) lateral;
	SqlProgress *progress = &join->progress;

	/* where the conditions excluded more references than was expected, search for more */
	if (join->candidates.conditions != NULL && progress->asked.count > progress->points / 8)
		lateral->join->question.k = join->question.k = Min(join->question.k * 4, GEONN_K_MAX);
	progress->is_searched = geonn_sql_try_round(join);
}

/*
 * Get the outputs of the next row of PostgreSQL's own plan for the present outer row; false: none is left.
 */
static bool
next_own_pair(SqlJoin *join, Datum *values, bool *nulls)
{
	SqlProgress *progress = &join->progress;
	LateralNode *lateral = &join->lateral;
	const TupleTableSlot *slot = geonn_own_plan_next(join->fallback.own);

	Assert(progress->own_rank > 0);
	if (slot == NULL)
	{
		progress->own_rank = 0;
		return false;
	}
	geonn_copy_columns(values, nulls, slot->tts_values, slot->tts_isnull, lateral->columns - 1);
	for (int i = 0; i < lateral->columns - 1; i++)
		values[i] = MakeExpandedObjectReadOnly(values[i], nulls[i], TupleDescAttr(lateral->descriptor, i)->attlen);
	values[lateral->columns - 1] =
		UInt64GetDatum((progress->present + 1) << RANK_BITS | Min(progress->own_rank++, RANK_MAX));
	nulls[lateral->columns - 1] = false;
	return true;
}

bool
geonn_sql_next_pair(LateralNode *lateral, Datum *values, bool *nulls)
{
	SqlJoin    *join = (SqlJoin *) lateral;
	SqlProgress *progress = &join->progress;
	const Candidate *candidate;

	while ((candidate = geonn_candidates_next(&join->candidates)) == NULL)
	{
		if (progress->own_rank > 0 && next_own_pair(join, values, nulls))
			return true;
		if (!next_outer_row(join))
			return false;
	}
	if (!geonn_sql_show_distance(&join->outputs, candidate, lateral->round, progress->present))
	{
		show_outer_row(join);
		geonn_sql_evaluate_distance(&join->outputs, candidate, lateral->round, progress->present);
	}
	for (int i = 0; i < lateral->columns - 1; i++)
	{
		Datum		value = geonn_sql_output(&join->outputs, i, candidate, &nulls[i]);

		/* a function that changes an array or record in place would change the column for the others */
		values[i] = MakeExpandedObjectReadOnly(value, nulls[i], TupleDescAttr(lateral->descriptor, i)->attlen);
	}
	values[lateral->columns - 1] =
		UInt64GetDatum((progress->present + 1) << RANK_BITS | Min(join->candidates.next, RANK_MAX));
	nulls[lateral->columns - 1] = false;
	return true;
}
