/*
 * sql_within.c
 *		The plan node of joins within a distance, in PostGIS's words, by a search for many rows at once.
 *
 * FROM o JOIN r ON ST_DWithin(o.g, r.g, d), or ST_Distance(o.g, r.g) <= d, asks for all rows of r within d metres of
 * each row of o.  The node reads r once, keeps its rows in memory, and searches for the references of many outer rows
 * at a time, as lateral.c does for calls.
 *
 * PostGIS's function decides, by the clause as it is written.  On the sphere its distance, which ST_Distance rounds to
 * a tenth of MARGIN, differs from geonn's by less than MARGIN, and it takes two points at most SAME_PLACE from each
 * other for one.  On the spheroid its distance is LEAST_RATIO to GREATEST_RATIO times as long as on the sphere, which is
 * much faster to search, and near a point of known latitude between two bounds that are less far apart (sql_ratios.c).  So the
 * search is for all references that may be within the distance, and the node tests the clause only for those that may
 * also not be.
 *
 * Both sides may have lines and polygons, too; ST_Covers and ST_Intersects ask for those at the distance 0.  The distances
 * of PostGIS's function to these have no bound of their errors: it skips arcs by circles around several of them, and
 * takes a point for one inside, or not, by how many edges cross an arc from it to one outside, of which it may count one
 * wrongly.  So geonn's distance decides, and the function only where this is within MARGIN_OF_SHAPES of the limit, or on
 * the spheroid between the two ratios.
 *
 * A semi or anti join without other clauses asks only whether some reference is within the distance.  So its search is
 * for the nearest one alone.  If that may be within the distance, but the function says no, another one may be: a
 * second search finds all that may be, for these outer rows together.
 *
 * The engine does not take points out of range, as PostGIS does, nor what turns out to be no point.  The function is called
 * for each pair with one; where PostgreSQL has an index, its own plan says for which references of such a row of o, and of
 * all rows where many references are so.  The function may fail for such a pair.  So it is called only where PostgreSQL
 * calls it, too: where the other clauses hold, and a semi or anti join has found nothing yet.
 * NULL and empty points are within no distance.
 *
 * Comparisons take NaN for greater than any number: all distances are less, while ST_DWithin has none within it.
 *
 * A statement that PostgreSQL answers must not fail for want of the engine.  Where a round's search cannot begin
 * (sql_fallback.c), the function is called for all pairs of this round, until the engine can be had again.  Where
 * PostgreSQL has an index, its own plan says for which pairs (sql_own_plan.c).  Where the references do not
 * fit in geonn.session_memory_limit, that plan says so, too, or each outer row has them read again.
 *
 * Statements that update, delete or lock rows have the node, too.  For a row that another transaction has updated, PostgreSQL
 * executes the plan again with this row's new version alone: there the function decides, without a search.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "base/settings.h"
#include "common/protocol.h"
#include "join/references.h"
#include "sql/sql_borders.h"
#include "sql/sql_fallback.h"
#include "sql/sql_own_plan.h"
#include "sql/sql_ratios.h"
#include "sql/sql_references.h"
#include "sql/sql_within.h"
#include "sql/sql_within_form.h"
#include "sql/sql_zones.h"

/* metres: as MARGIN, where references may be lines or polygons */
#define MARGIN_OF_SHAPES 1e-3

/* which references the function is called for, of an outer row that the search did not decide */
typedef enum ComparedWith
{
	COMPARED_WITH_NONE,
	COMPARED_WITH_INVALID,		/* references that the engine does not take */
	COMPARED_WITH_OWN,			/* references that PostgreSQL's own plan finds */
	COMPARED_WITH_ALL
} ComparedWith;

typedef struct WithinJoin
{
	LateralNode lateral;		/* first field */
	WithinExpressions planned;
	SqlReferences references;
	Zones		zones;			/* where references.zones has it: answers in place of the engine (sql_zones.c) */
	bool		is_spheroid;
	bool		shapes_ask;		/* outer rows may have lines and polygons */
	bool		asks_cover;		/* the function is ST_Covers or ST_CoveredBy */
	double		margin;			/* metres, on the sphere: farther from the distance, the search decides */
	bool		is_comparison;	/* the clause compares a distance */
	bool		is_strict;		/* and by < or > */
	const char *function;		/* PostGIS's, that measures */
	ExprState  *clause;			/* ST_DWithin, or a comparison of ST_Distance: decides whether a pair is within the distance */
	ExprState  *observation;	/* its point of the outer row */
	ExprState  *radius;
	bool		same_radius;	/* it does not depend on the outer row */
	bool		asks_nearest;	/* the search is for the nearest reference alone */
	int			shown_columns;	/* how many leading columns of references rows have; the others stay NULL there */
	bool		rechecks_row;	/* the plan is executed again for a row that another transaction has updated (EvalPlanQual) */
	ExprState  *implied;		/* is tested before the function is called */
	ExprState  *others;			/* the other clauses, where they may be tested before the clause, too */
	bool		asks_whether;	/* one pair by which all clauses hold is enough for an outer row */
	TupleTableSlot *pair;		/* like the scan's slot: an outer row and a reference for the call */
	ExprContext *expressions;	/* its tuple is pair */
	Fallback	fallback;

	/* one execution */
	GivenPoints given;			/* the references for the engine */
	double		searched;		/* the radius of searches; NaN: nothing is within the distance; set if same_radius */
	Borders		borders;		/* of the references */
	bool	   *matched;		/* [references.count] of a right join: the reference matches an outer row */
	uint64		next_alone;		/* of a right join, after the last outer row: the next reference that may match none */
	uint64		decided;		/* how many pairs were found without the function */
	uint64		rechecked;		/* how many pairs of the search the function was called for */

	/* a round */
	bool		is_searched;	/* the round has a search */
	bool		has_answers;	/* not all of its rows were taken */
	Answers		answers;		/* those of its present search */
	uint64		reference;		/* of the present pair; PG_UINT64_MAX: it is not kept */
	Numbers		undecided;		/* the outer rows of whose nearest references the function said no */
	uint64		present;		/* the outer row whose columns pair has; PG_UINT64_MAX: none */
	uint64		next_row;		/* the next outer row to be compared with references; those before were answered */
	ComparedWith comparison;	/* which references the row before that is being compared with */
	uint64		next_reference; /* the next of these */
} WithinJoin;

static const LateralSource within_source;
static const LateralSource zones_source;

/* Is the comparison one by < or >? */
static bool
excludes_equal(const OpExpr *comparison)
{
	Oid			function = get_opcode(comparison->opno);

	return function == F_FLOAT8LT || function == F_FLOAT8GT;
}

static void
begin_join(JoinNode *node, EState *estate, int flags)
{
	WithinJoin *join = (WithinJoin *) node;
	LateralNode *lateral = &join->lateral;
	PlanState  *plan = &node->custom.ss.ps;
	const CustomScan *scan = (const CustomScan *) plan->plan;
	WithinExpressions *expressions = &join->planned;
	WithinPrivate planned;
	PlanState  *references;
	bool		is_of_plane;

	geonn_unpack_fields(scan->custom_exprs, expressions);
	geonn_unpack_fields(geonn_lateral_begin_plan(lateral, estate, flags), &planned);
	is_of_plane = intVal(planned.search) == WITHIN_PLANE;
	lateral->source = is_of_plane ? &zones_source : &within_source;
	references = geonn_lateral_begin_child(lateral, LATERAL_REFERENCES, estate, flags);
	join->fallback.own = geonn_own_plan_begin(lateral, estate, flags);
	geonn_sql_references_begin(&join->references, references, join->fallback.own != NULL, planned.point,
							   is_of_plane ? GEONN_POINT_GEOMETRY : GEONN_POINT_GEOGRAPHY,
							   intVal(planned.search) == WITHIN_SHAPES);
	join->references.takes_empty_members = true;
	if (is_of_plane)
		join->references.zones = &join->zones;
	node->has_no_search = is_of_plane;
	lateral->columns = join->references.columns + 1;
	lateral->ord = -1;
	join->is_spheroid = intVal(planned.metric) == GEONN_METRIC_SPHEROID;
	join->shapes_ask = boolVal(planned.shapes_ask);
	join->margin = join->references.has_shapes || join->shapes_ask ? MARGIN_OF_SHAPES : MARGIN;
	join->is_comparison = IsA(expressions->clause, OpExpr);
	join->is_strict = join->is_comparison && excludes_equal((const OpExpr *) expressions->clause);
	join->function = strVal(planned.function);
	join->asks_cover = strcmp(join->function, "st_covers") == 0 || strcmp(join->function, "st_coveredby") == 0;
	join->clause = ExecInitExpr((Expr *) expressions->clause, plan);
	join->observation = ExecInitExpr((Expr *) expressions->observation, plan);
	join->implied = ExecInitQual(expressions->implied, plan);
	join->radius = ExecInitExpr((Expr *) expressions->radius, plan);
	join->same_radius = !contain_var_clause(expressions->radius);
	node->filter = expressions->clauses;
	join->asks_whether = boolVal(planned.others_first) && (lateral->type == JOIN_SEMI || lateral->type == JOIN_ANTI);
	join->asks_nearest = join->asks_whether && node->filter == NIL;
	join->shown_columns = geonn_lateral_count_shown(lateral, lateral->outer_columns, join->references.columns);
	join->rechecks_row = estate->es_epq_active != NULL;
	join->pair = ExecInitExtraTupleSlot(estate, lateral->slot->tts_tupleDescriptor, &TTSOpsVirtual);
	join->expressions = CreateExprContext(estate);
	join->expressions->ecxt_scantuple = join->pair;
	geonn_lateral_begin_rows(lateral, estate);
	memset(lateral->neighbours.found_slot->tts_isnull, true, join->references.columns * sizeof(bool));
	if (boolVal(planned.others_first))
		join->others = lateral->type == JOIN_INNER ? plan->qual : lateral->filter;
}

/* ---- the question ---- */

/*
 * Evaluate the distance.  Returns the radius, on the sphere, within which all references are that may be within it;
 * NaN: none is.
 */
static double
evaluate_radius(const WithinJoin *join)
{
	bool		is_null;
	double		radius = DatumGetFloat8(ExecEvalExprSwitchContext(join->radius, join->lateral.expressions, &is_null));

	if (!is_null && isnan(radius) && join->is_comparison)
		return INFINITY;
	if (is_null || !(radius >= 0))
		return get_float8_nan();
	return Max((radius + join->margin) / (join->is_spheroid ? LEAST_RATIO : 1), SAME_PLACE);
}

/*
 * May the function be false although the distance is 0?  ST_Covers is so at the vertices of a hole.  Where outer rows have
 * shapes, references are what is to be covered: one may turn out to be a shape, too.
 */
static bool
may_be_uncovered(WithinJoin *join, uint64 number, const Reference *reference)
{
	const Round *round = join->lateral.round;
	const struct varlena *shape = round->rows[number].shape;

	if (!join->asks_cover)
		return false;
	if (join->shapes_ask)
		return shape == NULL || reference->shape.arcs > 0 ||
			geonn_is_on_border(PointerGetDatum(shape), reference->latitude, reference->longitude);
	return geonn_borders_have(&join->borders, reference, round->latitudes[number], round->longitudes[number]);
}

/*
 * What a search within this radius says of the answer's reference.  A point is in a polygon, or on a line, whatever the function
 * says, but for its border.  Of two shapes, the latitudes of the nearest places are unknown.
 */
static Verdict
verdict_of(WithinJoin *join, double searched, uint64 number, const Answer *answer)
{
	const Round *round = join->lateral.round;
	const Reference *reference = join->references.rows[answer->reference];
	bool		asks_shape = round->rows[number].shape != NULL;
	double		radius = searched * (join->is_spheroid ? LEAST_RATIO : 1) - join->margin;

	if (answer->distance == 0 && (!join->is_strict || radius > MARGIN) && (asks_shape || reference->shape.arcs > 0))
		return may_be_uncovered(join, number, reference) ? VERDICT_OPEN : VERDICT_WITHIN;
	if (!(searched > SAME_PLACE))
		return VERDICT_OPEN;
	return geonn_verdict(answer->distance, radius, join->margin, join->is_spheroid,
						 !asks_shape ? round->latitudes[number] : reference->shape.arcs == 0 ? reference->latitude : NAN);
}

/*
 * Have the round keep an outer row's shape, if the engine takes it.
 */
static PointStatus
read_outer_shape(const LateralNode *lateral, Round *round, uint64 number, Datum value)
{
	const WithinJoin *join = (const WithinJoin *) lateral;
	ShapeTraits shape;
	MemoryContext former = MemoryContextSwitchTo(lateral->expressions->ecxt_per_tuple_memory);
	PointStatus status;

	value = PointerGetDatum(PG_DETOAST_DATUM(value));
	status = geonn_read_shape_value(GEONN_POINT_GEOGRAPHY, value, &round->latitudes[number], &round->longitudes[number],
									&shape);
	if (status == POINT_VALID &&
		(shape.arcs > GEONN_BATCH_ROWS_MAX || (!shape.is_whole && !IsA(join->planned.observation, Var))))
		status = POINT_NOT_FINITE;
	MemoryContextSwitchTo(round->memory);
	if (status == POINT_VALID)
		round->rows[number].shape = (const struct varlena *) DatumGetPointer(datumCopy(value, false, -1));
	MemoryContextSwitchTo(former);
	return status;
}

/*
 * Implements LateralSource.read_point.  A row that has no references has neither latitude nor longitude; one whose
 * point the engine does not take has a longitude alone.
 */
static void
read_outer_point(LateralNode *lateral, Round *round, uint64 number)
{
	const WithinJoin *join = (const WithinJoin *) lateral;
	OuterRow   *row = &round->rows[number];
	double		searched = join->same_radius ? join->searched : evaluate_radius(join);
	PointStatus status = POINT_NULL;
	NullableDatum point;

	/* PostgreSQL evaluates the point only if it has a reference */
	if (!isnan(searched) && (join->references.rereads || join->references.count > 0))
	{
		point.value = ExecEvalExprSwitchContext(join->observation, lateral->expressions, &point.isnull);
		status = geonn_sql_read_outer_point(&join->references, &point, &round->latitudes[number], &round->longitudes[number]);
		/* references of another SRID, or such that are read again, are compared by PostGIS's function alone */
		if (status == POINT_NOT_FINITE && join->shapes_ask && join->references.foreign == 0 && !join->references.rereads)
			status = read_outer_shape(lateral, round, number, point.value);
	}
	row->latitude_is_null = status != POINT_VALID;
	row->longitude_is_null = status == POINT_NULL;
	row->limits = NULL;
	if (!join->same_radius && status == POINT_VALID)
	{
		GeonnLimits *limits = MemoryContextAlloc(round->memory, sizeof(GeonnLimits));

		geonn_limits_begin(limits);
		geonn_limits_set_radius(limits, searched, false);
		row->limits = limits;
	}
}

/*
 * Implements LateralSource.make_join: read the references, too.
 */
static GeonnJoin *
make_join(LateralNode *lateral, TupleDesc *row_type)
{
	WithinJoin *join = (WithinJoin *) lateral;
	GeonnJoin  *result = palloc0(sizeof(GeonnJoin));

	geonn_sql_references_read(&join->references);
	geonn_borders_begin(&join->borders, &join->references);
	if (join->same_radius)
		join->searched = evaluate_radius(join);
	join->given = (GivenPoints) {
		.count = join->references.valid.count,
		.point = geonn_sql_reference_point,
		.state = &join->references,
		.each_alone = true
	};

	result->references = geonn_sql_references_describe(&join->references);
	result->given_references = &join->given;
	result->given_radius = !join->same_radius;
	result->given_shapes = join->shapes_ask;
	result->invalid = GEONN_INVALID_COUNTED;
	result->question = (GeonnQuestion) {
		.device = geonn_device,
		.algorithm = geonn_algorithm,
		.metric = GEONN_METRIC_SPHERE,
		.k = join->asks_nearest ? 1 : 0,
		.max_distance = join->same_radius && !isnan(join->searched) ? join->searched : INFINITY
	};
	geonn_call_describe(&result->label, InvalidOid, InvalidOid, join->function,
						join->asks_nearest ? "the nearest" : "all");
	*row_type = geonn_sql_references_row_type();
	return result;
}

/*
 * Implements LateralSource.read_point for polygons of a plane.  Coordinates of any SRID are no latitudes and longitudes for
 * the counts of rows, so these count the point as NULL.  A row whose point is not looked up has NaN.
 */
static void
read_point_of_plane(LateralNode *lateral, Round *round, uint64 number)
{
	const WithinJoin *join = (const WithinJoin *) lateral;
	OuterRow   *row = &round->rows[number];
	PointStatus status = POINT_NULL;
	NullableDatum point;

	/* PostgreSQL evaluates the point only if it has a reference */
	if (join->references.rereads || join->references.count > 0)
	{
		point.value = ExecEvalExprSwitchContext(join->observation, lateral->expressions, &point.isnull);
		status = geonn_zones_read_point(&join->zones, &point, &round->longitudes[number], &round->latitudes[number]);
		status = geonn_sql_status_beside(&join->references, status, point.isnull);
	}
	if (status != POINT_VALID)
		round->longitudes[number] = get_float8_nan();
	row->latitude_is_null = true;
	row->longitude_is_null = status == POINT_NULL;
	row->limits = NULL;
}

/*
 * Begin to note which references of a right join match an outer row: these must be kept.
 */
static void
begin_matches(WithinJoin *join)
{
	if (join->references.rereads)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("geonn cannot keep the references of a right join"),
				 geonn_sql_tell_memory()));
	join->matched = MemoryContextAllocExtended(CurrentMemoryContext, join->references.count + 1,
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	join->next_alone = 0;
}

/*
 * Implements LateralSource.note_match.
 */
static void
note_match(LateralNode *lateral)
{
	const WithinJoin *join = (const WithinJoin *) lateral;

	join->matched[join->reference] = true;
}

/*
 * Implements LateralSource.next_alone.
 */
static bool
next_alone(LateralNode *lateral, Datum *values, bool *nulls)
{
	WithinJoin *join = (WithinJoin *) lateral;
	const SqlReferences *references = &join->references;

	while (join->next_alone < references->count)
	{
		uint64		number = join->next_alone++;

		CHECK_FOR_INTERRUPTS();
		if (join->matched[number])
			continue;
		geonn_copy_columns(values, nulls, references->rows[number]->values, references->rows[number]->nulls,
						   references->columns);
		return true;
	}
	return false;
}

/*
 * Implements LateralSource.make_join for polygons of a plane: read them.
 */
static GeonnJoin *
make_join_of_plane(LateralNode *lateral, TupleDesc *row_type)
{
	WithinJoin *join = (WithinJoin *) lateral;
	GeonnJoin  *result = palloc0(sizeof(GeonnJoin));

	geonn_sql_references_read(&join->references);
	if (lateral->type == JOIN_RIGHT)
		begin_matches(join);
	result->invalid = GEONN_INVALID_COUNTED;
	*row_type = geonn_sql_references_row_type();
	return result;
}

/* ---- pairs ---- */

/*
 * Have the pair's columns be those of an outer row.
 */
static void
show_outer_row(WithinJoin *join, uint64 number)
{
	const LateralNode *lateral = &join->lateral;

	if (join->present == number)
		return;
	join->present = number;
	ExecClearTuple(join->pair);
	geonn_lateral_set_outer(lateral, number, join->pair, lateral->outer_columns);
}

/*
 * Call the function for the pair of an outer row and a reference; PG_UINT64_MAX: one that is not kept.  It gets shapes that the
 * engine takes without empty members.
 */
static Datum
call_function(WithinJoin *join, uint64 number, uint64 reference, bool *is_null)
{
	const SqlReferences *references = &join->references;
	const struct varlena *outer_shape = join->lateral.round->rows[number].shape;
	const Var  *observation = (const Var *) join->planned.observation;
	Datum	   *values = join->pair->tts_values;
	Datum	   *value = &values[join->lateral.outer_columns + references->point[0]];
	Datum		outer_value;
	Datum		result;
	MemoryContext former = MemoryContextSwitchTo(join->expressions->ecxt_per_tuple_memory);

	if (references->has_shapes && reference != PG_UINT64_MAX && references->rows[reference]->status == POINT_VALID &&
		references->rows[reference]->shape.arcs > 0 && !references->rows[reference]->shape.is_whole)
		*value = geonn_without_empty_members(references->kind, *value);
	if (outer_shape == NULL || !IsA(observation, Var))
		result = ExecEvalExpr(join->clause, join->expressions, is_null);
	else
	{
		/* the value is another one for this call alone, as the slot serves the next pairs, too */
		Assert(observation->varattno > 0 && observation->varattno <= join->lateral.outer_columns);
		outer_value = values[observation->varattno - 1];
		values[observation->varattno - 1] = geonn_without_empty_members(references->kind, PointerGetDatum(outer_shape));
		result = ExecEvalExpr(join->clause, join->expressions, is_null);
		values[observation->varattno - 1] = outer_value;
	}
	MemoryContextSwitchTo(former);
	return result;
}

/*
 * Call the function for an outer row and a reference, numbered as above, with these values, if the other clauses hold.
 */
static bool
is_within(WithinJoin *join, uint64 number, uint64 reference, const Datum *values, const bool *nulls)
{
	const LateralNode *lateral = &join->lateral;
	TupleTableSlot *pair = join->pair;
	bool		is_null;
	Datum		result = BoolGetDatum(false);

	CHECK_FOR_INTERRUPTS();
	show_outer_row(join, number);
	memcpy(pair->tts_values + lateral->outer_columns, values, join->references.columns * sizeof(Datum));
	memcpy(pair->tts_isnull + lateral->outer_columns, nulls, join->references.columns * sizeof(bool));
	ExecStoreVirtualTuple(pair);
	ResetExprContext(join->expressions);
	is_null = !ExecQual(join->implied, join->expressions) || !ExecQual(join->others, join->expressions);
	if (!is_null)
		result = call_function(join, number, reference, &is_null);
	ExecClearTuple(pair);
	return !is_null && DatumGetBool(result);
}

/*
 * Set the values of a pair with a reference: the columns that rows have.  The others stay NULL.
 */
static void
set_pair(const WithinJoin *join, uint64 number, const Datum *reference, const bool *reference_nulls, Datum *values,
		 bool *nulls)
{
	int			columns = join->references.columns;

	geonn_copy_columns(values, nulls, reference, reference_nulls, join->shown_columns);
	values[columns] = UInt64GetDatum(number + 1);
	nulls[columns] = false;
}

/*
 * Call the function for an outer row and a reference that the search has found.
 */
static bool
is_rechecked(WithinJoin *join, uint64 number, uint64 reference)
{
	const Reference *row = join->references.rows[reference];

	join->rechecked++;
	return is_within(join, number, reference, row->values, row->nulls);
}

/*
 * Set the values of a pair that the search found.  A reference lies anywhere in memory: it is not looked at for columns that rows
 * do not have.
 */
static void
set_found_pair(WithinJoin *join, uint64 number, uint64 reference, Datum *values, bool *nulls)
{
	const Reference *row = join->shown_columns == 0 ? NULL : join->references.rows[reference];

	join->reference = reference;
	set_pair(join, number, row == NULL ? NULL : row->values, row == NULL ? NULL : row->nulls, values, nulls);
}

/*
 * Is the answer's reference within the distance?
 */
static bool
is_confirmed(WithinJoin *join, const Answer *answer, uint64 number)
{
	const Round *round = join->lateral.round;
	Verdict		verdict;

	Assert(number < round->given.count);
	geonn_check_reference_number((int64) answer->reference, join->references.count);
	verdict = verdict_of(join, join->same_radius ? join->searched : round->rows[number].limits->radius, number, answer);
	join->decided += verdict != VERDICT_OPEN;
	if (verdict == VERDICT_WITHIN || (verdict == VERDICT_OPEN && is_rechecked(join, number, answer->reference)))
		return true;
	if (join->asks_nearest && join->lateral.searches.second == NULL)
		geonn_numbers_add(&join->undecided, number, round->memory);
	return false;
}

/*
 * Find the next pair within the distance among the answers of the round's present search; false: none is left.
 */
static bool
next_answer(WithinJoin *join, Datum *values, bool *nulls)
{
	bool		is_second = join->lateral.searches.second != NULL;
	bool		looks_at_rows = !join->asks_nearest && (join->shown_columns > 0 || join->references.has_shapes);
	Answer		answer;

	while (geonn_next_answer(&join->answers, &join->references, looks_at_rows, &answer))
	{
		uint64		number = is_second ? join->undecided.numbers[answer.number] : answer.number;

		if (number < join->next_row || !is_confirmed(join, &answer, number))
			continue;
		set_found_pair(join, number, answer.reference, values, nulls);
		return true;
	}
	return false;
}

/*
 * Find the next pair of a point of the round and a polygon that has it inside; false: none is left.
 */
static bool
next_of_plane(WithinJoin *join, Datum *values, bool *nulls)
{
	const PlaneFound *found;
	uint64		number;

	while ((found = geonn_zones_next(&join->zones, join->lateral.round, join->asks_whether, join->asks_nearest,
									 &number)) != NULL)
	{
		if (!found->is_sure && !is_rechecked(join, number, found->number))
			continue;
		join->decided += found->is_sure;
		set_found_pair(join, number, found->number, values, nulls);
		return true;
	}
	return false;
}

/*
 * Does the search, once it has begun, answer for this outer row?
 */
static bool
is_searched_for(const WithinJoin *join, uint64 number)
{
	const Round *round = join->lateral.round;

	return join->references.zones != NULL ? !isnan(round->longitudes[number]) : !round->rows[number].latitude_is_null;
}

/*
 * Which references the search has not decided about, for an outer row.
 */
static ComparedWith
comparison_of(const WithinJoin *join, uint64 number)
{
	const OuterRow *row = &join->lateral.round->rows[number];
	bool		has_no_search = join->references.rereads || !is_searched_for(join, number) ||
		(!join->is_searched && join->references.valid.count > 0) || geonn_sql_references_suit_own(&join->references);

	if (row->longitude_is_null || (row->is_matched && join->asks_whether))
		return COMPARED_WITH_NONE;
	if (has_no_search)
		return join->fallback.own != NULL ? COMPARED_WITH_OWN : COMPARED_WITH_ALL;
	return join->references.invalid.count > 0 ? COMPARED_WITH_INVALID : COMPARED_WITH_NONE;
}

static void
begin_search(LateralNode *lateral)
{
	/* the first round's is complete before the node returns a row */
	geonn_lateral_begin_search(lateral, !lateral->searches.has_references);
	((WithinJoin *) lateral)->answers = (Answers) {.search = lateral->node.search};
}

/*
 * Begin the round's search.  False: the engine cannot be had, or no reference is to be searched for.
 */
static bool
try_search(WithinJoin *join)
{
	join->undecided = (Numbers) {0};
	join->is_searched = join->has_answers = join->references.valid.count > 0 &&
		(join->references.zones != NULL || geonn_try_search(&join->fallback, &join->lateral, begin_search));
	return join->is_searched;
}

/*
 * Go on to the next outer row that has to be compared with references; false: none is left, or the engine, which could not
 * be had for the round, searches for them now.
 */
static bool
next_compared_row(WithinJoin *join)
{
	const Round *round = join->lateral.round;

	join->comparison = COMPARED_WITH_NONE;
	if (!join->is_searched && join->next_row < round->given.count && geonn_may_ask_again(&join->fallback) &&
		try_search(join))
		return false;
	while (join->comparison == COMPARED_WITH_NONE && join->next_row < round->given.count)
		join->comparison = comparison_of(join, join->next_row++);
	join->next_reference = 0;
	if (join->comparison == COMPARED_WITH_OWN)
		geonn_own_plan_show(join->fallback.own, join->next_row - 1);
	if (join->comparison == COMPARED_WITH_ALL)
	{
		join->fallback.rows++;
		if (join->references.rereads)
			geonn_sql_references_reread(&join->references);
	}
	return join->comparison != COMPARED_WITH_NONE;
}

/*
 * Get the next row of a plan that the present row has to be compared with; NULL: none is left.
 */
static const TupleTableSlot *
next_compared_of_plan(WithinJoin *join)
{
	TupleTableSlot *slot;

	if (join->comparison == COMPARED_WITH_OWN)
		return geonn_own_plan_next(join->fallback.own);
	slot = geonn_sql_references_next(&join->references);
	if (TupIsNull(slot))
		return NULL;
	slot_getallattrs(slot);
	return slot;
}

/*
 * Get the columns of the next reference that the present row has to be compared with; false: none is left.
 */
static bool
next_compared_reference(WithinJoin *join, const Datum **values, const bool **nulls)
{
	const SqlReferences *references = &join->references;
	uint64		number = join->next_reference++;

	if (join->comparison == COMPARED_WITH_NONE)
		return false;
	if (join->comparison == COMPARED_WITH_ALL && (references->rereads || join->fallback.is_lost))
		geonn_count_compared(&join->fallback, 1, references->rereads);
	if (join->comparison == COMPARED_WITH_OWN || references->rereads)
	{
		const TupleTableSlot *slot = next_compared_of_plan(join);

		if (slot == NULL)
			return false;
		join->reference = PG_UINT64_MAX;
		*values = slot->tts_values;
		*nulls = slot->tts_isnull;
		return true;
	}
	if (number >= (join->comparison == COMPARED_WITH_ALL ? references->count : references->invalid.count))
		return false;
	if (join->comparison == COMPARED_WITH_INVALID)
		number = references->invalid.numbers[number];
	join->reference = number;
	*values = references->rows[number]->values;
	*nulls = references->rows[number]->nulls;
	return true;
}

/*
 * Find the next pair within the distance that the search has not decided about; false: none is left.
 */
static bool
next_compared(WithinJoin *join, Datum *values, bool *nulls)
{
	const Datum *reference;
	const bool *reference_nulls;

	for (;;)
	{
		if (!next_compared_reference(join, &reference, &reference_nulls))
		{
			if (!next_compared_row(join))
				return false;
		}
		else if (is_within(join, join->next_row - 1, join->reference, reference, reference_nulls))
		{
			set_pair(join, join->next_row - 1, reference, reference_nulls, values, nulls);
			if (join->asks_whether)
				join->comparison = COMPARED_WITH_NONE;
			return true;
		}
	}
}

/*
 * Implements GivenPoints.point: the point of an outer row that the second search is for.
 */
static void
undecided_point(void *state, uint64 number, PointRow *row)
{
	const WithinJoin *join = state;

	geonn_round_point(join->lateral.round, join->undecided.numbers[number], row);
}

/*
 * Begin the second search, and find all rows.
 */
static void
begin_second_search(LateralNode *lateral)
{
	WithinJoin *join = (WithinJoin *) lateral;
	GivenPoints given = {
		.count = join->undecided.count,
		.point = undecided_point,
		.state = join,
		.each_alone = true
	};

	geonn_lateral_begin_second_search(lateral, &given, 0, true);
	join->answers = (Answers) {.search = lateral->searches.second};
}

/*
 * Implements LateralSource.next.  Where the second search cannot begin, all outer rows of the round that are not matched are
 * compared.
 */
static bool
next_pair(LateralNode *lateral, Datum *values, bool *nulls)
{
	WithinJoin *join = (WithinJoin *) lateral;

	do
	{
		while (join->has_answers)
		{
			if (join->references.zones != NULL ? next_of_plane(join, values, nulls) : next_answer(join, values, nulls))
				return true;
			join->has_answers = lateral->searches.second == NULL && join->undecided.count > 0;
			if (join->has_answers && !geonn_try_search(&join->fallback, lateral, begin_second_search))
				join->is_searched = join->has_answers = false;
		}
		if (next_compared(join, values, nulls))
			return true;
	} while (join->has_answers);
	return false;
}

/*
 * Implements LateralSource.begin_round.
 */
static void
begin_round(LateralNode *lateral)
{
	WithinJoin *join = (WithinJoin *) lateral;

	join->present = PG_UINT64_MAX;
	join->next_row = 0;
	join->comparison = COMPARED_WITH_NONE;
	join->is_searched = join->has_answers = false;
	geonn_zones_begin_round(&join->zones);
	/* a subquery of such a plan has all of its rows */
	if (!(join->rechecks_row && join->references.count <= 1) && !geonn_sql_references_suit_own(&join->references) &&
		geonn_may_ask(&join->fallback))
		(void) try_search(join);
}

static const LateralSource within_source = {
	.make_join = make_join,
	.read_point = read_outer_point,
	.begin_round = begin_round,
	.searches_again = true,
	.next = next_pair
};

static const LateralSource zones_source = {
	.make_join = make_join_of_plane,
	.read_point = read_point_of_plane,
	.begin_round = begin_round,
	.next = next_pair,
	.note_match = note_match,
	.next_alone = next_alone
};

static void
end_execution(JoinNode *node)
{
	WithinJoin *join = (WithinJoin *) node;

	ExecClearTuple(join->pair);
	geonn_lateral_end_execution(node);
}

/* ---- EXPLAIN ---- */

static void
explain_join(const JoinNode *node, List *ancestors, ExplainState *explain)
{
	const WithinJoin *join = (const WithinJoin *) node;

	geonn_node_explain_expression(node, ancestors, explain, "Within", join->planned.clause);
	if (!explain->analyze)
		return;
	ExplainPropertyUInteger("Pairs Decided", NULL, join->decided, explain);
	ExplainPropertyUInteger("Pairs Rechecked", NULL, join->rechecked, explain);
	ExplainPropertyUInteger("Rows Compared with All References", NULL, join->fallback.rows, explain);
}

const JoinNodeMethods geonn_within_methods = {
	.scan = {"geonn within join", geonn_node_create},
	.filter_label = "Join Filter",
	.size = sizeof(WithinJoin),
	.begin = begin_join,
	.next_row = geonn_lateral_next_row,
	.end_execution = end_execution,
	.explain = explain_join
};
