/*
 * sql_outputs.c
 *		What a nearest-neighbour subquery returns of each of its rows: its outputs, among them the distance.
 *
 * Outputs that have the first key in them, alone or in a larger expression, take its value from a column of their own,
 * which is set once for each row: from the keys, where these were evaluated; from the search, whose distance
 * geonn_distance is; and for PostGIS's operator <-> by a formula.
 *
 * A statement that returns the distances of its neighbours needs PostGIS's own value for each, to the last bit.
 * PostGIS computes it by that formula, in a fifth of the time that a call of its function takes: the others go to
 * copies of the points, to their boxes, and to the spheroid of their SRID.  The same formula, in the same order, with the
 * sine, cosine and arctangent of the same library, has the same bits, unless PostGIS's compiler has rounded otherwise,
 * as by fused multiplication and addition, or a version of PostGIS computes otherwise.  Both show at once: with fused
 * operations, 55 of 100 values differ.  So a process compares the formula's values with PostGIS's, which it returns,
 * until COMPARED_FIRST of them, all there were, have been the same, and one of COMPARED_EACH after that.  At the first
 * difference it never uses the formula again.
 *
 * What PostGIS treats in a way of its own stays with it: coordinates at the ends of their ranges, which it moves into
 * them, and points at most SAME_PLACE from each other, of which it takes some for one.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

#include "common/geodesy.h"
#include "sql/sql_distance.h"
#include "sql/sql_outputs.h"

/* the operator's function */
#define FORMULA_FUNCTION "geography_distance_knn"

/* by chance, so many values would be the same once in 10^88 processes */
#define COMPARED_FIRST 256
#define COMPARED_EACH 1024

/* of this process */
static uint64 formula_values;	/* how many values the formula had */
static bool formula_differs;	/* one was not PostGIS's */

/* ---- the plan ---- */

/* the first key, and the number of the column that has its value */
typedef struct DistanceColumn
{
	const Node *key;
	AttrNumber	number;
} DistanceColumn;

static Node *
take_distance_walk(Node *node, void *argument)
{
	const DistanceColumn *distance = argument;

	if (node == NULL)
		return NULL;
	if (equal(node, distance->key))
		return (Node *) makeVar(INDEX_VAR, distance->number, FLOAT8OID, -1, InvalidOid, 0);
	return expression_tree_mutator(node, take_distance_walk, argument);
}

void
geonn_sql_outputs_begin(SqlOutputs *outputs, SqlCandidates *candidates, PlanState *plan,
						const SqlExpressions *expressions, const SqlPrivate *planned, int outer_columns)
{
	const OpExpr *key = linitial(expressions->keys);
	DistanceColumn distance = {(const Node *) key, (AttrNumber) (candidates->distance + 1)};

	outputs->candidates = candidates;
	outputs->is_exact = candidates->references->kind == GEONN_POINT_NONE;
	outputs->takes_formula = IsA(key, OpExpr) && !candidates->references->has_shapes &&
		strcmp(strVal(planned->function), FORMULA_FUNCTION) == 0;
	outputs->is_left = outputs->takes_formula &&
		equal(geonn_value_of_point(linitial(key->args)), linitial(expressions->observation));
	outputs->count = list_length(expressions->outputs);
	outputs->output = palloc(outputs->count * sizeof(Output));
	for (int i = 0; i < outputs->count; i++)
	{
		Node	   *expression = take_distance_walk(list_nth(expressions->outputs, i), &distance);
		bool		is_column = IsA(expression, Var);
		ListCell   *cell;

		outputs->output[i] = (Output) {
			.expression = ExecInitExpr((Expr *) expression, plan),
			.key = list_nth_int(planned->equal_keys, i),
			.column = is_column ? ((Var *) expression)->varattno - 1 : -1
		};
		foreach(cell, pull_var_clause(expression, 0))
		{
			AttrNumber	column = lfirst_node(Var, cell)->varattno;

			outputs->shows_distance |= column == distance.number;
			outputs->shows_outer |= column <= outer_columns;
		}
	}
}

/* ---- the formula ---- */

/*
 * In PostGIS's order: another order rounds otherwise.
 */
static double
radians_of(double degrees)
{
	return M_PI * degrees / 180.0;
}

/*
 * Set the point; false: the formula does not take it.
 */
static bool
set_point(double latitude, double longitude, FormulaPoint *point)
{
	if (!(fabs(latitude) < 90 && fabs(longitude) < 180))
		return false;
	point->longitude = radians_of(longitude);
	point->sine = sin(radians_of(latitude));
	point->cosine = cos(radians_of(latitude));
	return true;
}

/*
 * Set the point of a reference, which keeps what takes long.
 */
static bool
set_reference(Reference *reference, FormulaPoint *point)
{
	if (reference->cosine != 0)
	{
		*point = (FormulaPoint) {radians_of(reference->longitude), reference->sine, reference->cosine};
		return true;
	}
	if (!set_point(reference->latitude, reference->longitude, point))
		return false;
	reference->sine = point->sine;
	reference->cosine = point->cosine;
	return true;
}

static double
distance_by_formula(const FormulaPoint *left, const FormulaPoint *right)
{
	double		longitude = right->longitude - left->longitude;
	double		cosine = cos(longitude);
	double		east = right->cosine * sin(longitude);
	double		north = left->cosine * right->sine - left->sine * right->cosine * cosine;

	return GEONN_SPHERE_RADIUS * atan2(sqrt(east * east + north * north),
									   left->sine * right->sine + left->cosine * right->cosine * cosine);
}

/*
 * Get the first key's value by the formula; false: it has none.
 */
static bool
find_by_formula(SqlOutputs *outputs, const Candidate *candidate, const Round *round, uint64 number, double *distance)
{
	FormulaPoint point;

	/* A distance that the search does not know is NaN, which fails this comparison, too. */
	if (!outputs->takes_formula || formula_differs || !(candidate->distance > SAME_PLACE))
		return false;
	if (!outputs->is_in_formula &&
		!set_point(round->latitudes[number], round->longitudes[number], &outputs->formula))
		return false;
	outputs->is_in_formula = true;
	if (!set_reference(outputs->candidates->references->rows[candidate->reference], &point))
		return false;
	*distance = outputs->is_left ? distance_by_formula(&outputs->formula, &point) :
		distance_by_formula(&point, &outputs->formula);
	return true;
}

/* ---- a row ---- */

void
geonn_sql_outputs_reset(SqlOutputs *outputs)
{
	outputs->is_in_formula = false;
}

static void
set_distance(const SqlOutputs *outputs, Datum value, bool is_null)
{
	const SqlCandidates *candidates = outputs->candidates;

	candidates->pair->tts_values[candidates->distance] = value;
	candidates->pair->tts_isnull[candidates->distance] = is_null;
}

bool
geonn_sql_show_distance(SqlOutputs *outputs, const Candidate *candidate, const Round *round, uint64 number)
{
	double		distance = candidate->distance;

	if (!outputs->shows_distance)
		return true;
	if (candidate->keys != NULL)
	{
		set_distance(outputs, candidate->keys[0], candidate->nulls[0]);
		return true;
	}
	if (outputs->is_exact ? isnan(distance) :
		(formula_values < COMPARED_FIRST || (formula_values + 1) % COMPARED_EACH == 0 ||
		 !find_by_formula(outputs, candidate, round, number, &distance)))
		return false;
	formula_values += !outputs->is_exact;
	set_distance(outputs, Float8GetDatum(distance), false);
	return true;
}

void
geonn_sql_evaluate_distance(SqlOutputs *outputs, const Candidate *candidate, const Round *round, uint64 number)
{
	bool		is_null;
	Datum		value = ExecEvalExprSwitchContext(outputs->candidates->key[0], outputs->candidates->expressions, &is_null);
	double		distance;

	set_distance(outputs, value, is_null);
	if (!find_by_formula(outputs, candidate, round, number, &distance))
		return;
	formula_values++;
	formula_differs |= is_null || DatumGetFloat8(value) != distance;
}

Datum
geonn_sql_output(const SqlOutputs *outputs, int number, const Candidate *candidate, bool *is_null)
{
	const Output *output = &outputs->output[number];
	const TupleTableSlot *pair = outputs->candidates->pair;

	Assert(number < outputs->count);
	if (output->key >= 0 && candidate->keys != NULL)
	{
		*is_null = candidate->nulls[output->key];
		return candidate->keys[output->key];
	}
	if (output->column >= 0)
	{
		*is_null = pair->tts_isnull[output->column];
		return pair->tts_values[output->column];
	}
	return ExecEvalExprSwitchContext(output->expression, outputs->candidates->expressions, is_null);
}
