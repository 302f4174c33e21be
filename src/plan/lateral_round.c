/*
 * lateral_round.c
 *		Outer rows of a lateral join, whose neighbours are searched for at once.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "plan/lateral_round.h"

/* outer rows in the first and the largest round */
#define ROWS_FIRST 64
#define ROWS_MAX 65536

void
geonn_round_point(Round *round, uint64 number, PointRow *row)
{
	const OuterRow *outer = &round->rows[number];
	MemoryContext former;

	Assert(number < round->given.count);
	row->latitude = round->latitudes[number];
	row->longitude = round->longitudes[number];
	row->latitude_is_null = outer->latitude_is_null;
	row->longitude_is_null = outer->longitude_is_null;
	row->limits = outer->limits;
	if (round->reader != NULL)
		geonn_shape_close(round->reader);
	row->shape = round->reader = NULL;
	if (outer->shape == NULL)
		return;
	former = MemoryContextSwitchTo(round->memory);
	row->shape = round->reader = geonn_shape_open(GEONN_POINT_GEOGRAPHY, PointerGetDatum(outer->shape), NULL, NULL);
	(void) geonn_shape_survey(row->shape, &row->latitude, &row->longitude);
	MemoryContextSwitchTo(former);
}

/*
 * Implements GivenPoints.point.
 */
static void
round_point(void *round, uint64 number, PointRow *row)
{
	geonn_round_point(round, number, row);
}

/*
 * Implements GivenPoints.points.
 */
static bool
round_points(void *argument, const double **latitudes, const double **longitudes)
{
	const Round *round = argument;

	Assert(round->points <= round->given.count);
	*latitudes = round->latitudes;
	*longitudes = round->longitudes;
	return round->points == round->given.count;
}

void
geonn_rounds_begin(LateralNode *state)
{
	MemoryContext former;

	for (int i = 0; i < (int) lengthof(state->outer.rounds); i++)
	{
		Round	   *round = &state->outer.rounds[i];

		memset(round, 0, sizeof(*round));
		round->memory = AllocSetContextCreate(state->node.context, "geonn lateral join", ALLOCSET_DEFAULT_SIZES);
		round->given.point = round_point;
		round->given.points = round_points;
		round->given.state = round;
		round->given.each_alone = true;
	}
	state->round = &state->outer.rounds[0];
	state->outer.next = &state->outer.rounds[1];
	state->outer.wanted = ROWS_FIRST;
	state->outer.point_column[0] = -1;
	state->outer.block.rows = 0;
	former = MemoryContextSwitchTo(state->node.context);
	state->outer.reader = geonn_table_reader_of_plan(linitial(state->node.custom.custom_ps), state->outer.numbers,
													 state->outer_columns);
	MemoryContextSwitchTo(former);
}

void
geonn_set_no_neighbour(LateralNode *state)
{
	int			columns = state->slot->tts_tupleDescriptor->natts - state->outer_columns;

	memset(state->slot->tts_values + state->outer_columns, 0, columns * sizeof(Datum));
	memset(state->slot->tts_isnull + state->outer_columns, true, columns * sizeof(bool));
}

void
geonn_round_make_join(LateralNode *state)
{
	MemoryContext former = MemoryContextSwitchTo(state->node.context);

	state->join = state->source->make_join(state, &state->row_type);
	MemoryContextSwitchTo(former);
}

/*
 * Did an outer join below fill the columns of the call's table with NULLs?  Such a row has a NULL id, which
 * the table itself never has.
 */
static bool
is_extended_row(LateralNode *state)
{
	bool		is_null = false;

	if (OidIsValid(state->call.table))
		ExecEvalExprSwitchContext(state->call.point[POINT_VALUE], state->expressions, &is_null);
	return is_null;
}

/*
 * Have the round keep the columns of the scan's slot, as those of its next row.
 */
static void
keep_columns(const LateralNode *state, Round *round)
{
	const TupleTableSlot *slot = state->slot;
	int			columns = state->outer_columns;
	Datum	   *values = round->values + round->given.count * columns;
	bool	   *nulls = round->nulls + round->given.count * columns;
	MemoryContext former = MemoryContextSwitchTo(round->memory);

	Assert(round->given.count < (uint64) round->room);
	for (int i = 0; i < columns; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(slot->tts_tupleDescriptor, i);

		nulls[i] = slot->tts_isnull[i];
		values[i] = attribute->attbyval || nulls[i] ? slot->tts_values[i] :
			datumCopy(slot->tts_values[i], false, attribute->attlen);
	}
	MemoryContextSwitchTo(former);
}

/*
 * Keep the outer row that the scan's slot has, and its point.  False: the point is invalid, and the error must wait until
 * the rows of earlier points have been returned.
 */
static bool
keep_outer_row(LateralNode *state, Round *round)
{
	uint64		number = round->given.count;
	OuterRow   *row = &round->rows[number];
	PointStatus status;

	ResetExprContext(state->expressions);
	row->shape = NULL;
	state->source->read_point(state, round, number);
	row->is_matched = false;
	status = row->latitude_is_null || row->longitude_is_null ? POINT_NULL :
		geonn_point_status(round->latitudes[number], round->longitudes[number]);
	if (state->join->invalid == GEONN_INVALID_IS_ERROR && round->given.count > 0 &&
		status != POINT_VALID && status != POINT_NULL)
		return false;
	if (status != POINT_NULL || !is_extended_row(state))
		state->outer.counts[status]++;
	keep_columns(state, round);
	round->points += status == POINT_VALID && row->limits == NULL;
	round->given.count++;
	return true;
}

/* ---- outer rows of the executor ---- */

static TupleTableSlot *
next_outer_row(LateralNode *state)
{
	TupleTableSlot *outer = state->outer.held;

	state->outer.held = NULL;
	if (outer != NULL)
		return outer;
	if (!state->outer.has_ended)
		outer = ExecProcNode(linitial(state->node.custom.custom_ps));
	state->outer.has_ended = TupIsNull(outer);
	return state->outer.has_ended ? NULL : outer;
}

/*
 * Take the next outer row.  False: none is left, or it has to wait for the next round.
 */
static bool
take_outer_row(LateralNode *state, Round *round)
{
	TupleTableSlot *outer = next_outer_row(state);
	TupleTableSlot *slot = state->slot;

	if (outer == NULL)
		return false;
	if (state->join == NULL)
		geonn_round_make_join(state);
	slot_getsomeattrs(outer, state->outer.greatest_number);
	for (int i = 0; i < state->outer_columns; i++)
	{
		slot->tts_values[i] = outer->tts_values[state->outer.numbers[i] - 1];
		slot->tts_isnull[i] = outer->tts_isnull[state->outer.numbers[i] - 1];
	}
	if (!keep_outer_row(state, round))
		state->outer.held = outer;
	return state->outer.held == NULL;
}

/* ---- outer rows of a table, page by page ---- */

/*
 * Have the reader's next rows; false: none is left.  EXPLAIN ANALYZE counts them as those of the child, those of a page
 * that a LIMIT leaves, too.
 */
static bool
next_block(LateralNode *state)
{
	const PlanState *child = linitial(state->node.custom.custom_ps);
	Datum	   *values;
	bool	   *nulls;

	CHECK_FOR_INTERRUPTS();
	if (state->outer.has_ended)
		return false;
	if (child->instrument != NULL)
		InstrStartNode(child->instrument);
	state->outer.block.rows = geonn_table_reader_next(state->outer.reader, &values, &nulls);
	if (child->instrument != NULL)
		InstrStopNode(child->instrument, state->outer.block.rows);
	state->outer.block.values = values;
	state->outer.block.nulls = nulls;
	state->outer.has_ended = state->outer.block.rows == 0;
	return !state->outer.has_ended;
}

static void
pass_rows(LateralNode *state, int rows)
{
	Assert(rows <= state->outer.block.rows);
	state->outer.block.rows -= rows;
	state->outer.block.values += rows * state->outer_columns;
	state->outer.block.nulls += rows * state->outer_columns;
}

/*
 * Keep as many rows of the block, whose columns are all passed by value, as the round may have.
 */
static void
keep_words(LateralNode *state, Round *round)
{
	int			columns = state->outer_columns;
	int			rows = (int) Min((uint64) state->outer.block.rows, (uint64) state->outer.wanted - round->given.count);
	int			latitude = state->outer.point_column[0];
	int			longitude = state->outer.point_column[1];
	double	   *latitudes = round->latitudes + round->given.count;
	double	   *longitudes = round->longitudes + round->given.count;
	OuterRow   *outer = round->rows + round->given.count;
	int			valid = 0;

	Assert(rows > 0 && round->given.count + rows <= (uint64) round->room);
	memset(outer, 0, rows * sizeof(OuterRow));
	for (int i = 0; i < rows; i++)
	{
		const Datum *values = state->outer.block.values + i * columns;
		const bool *nulls = state->outer.block.nulls + i * columns;
		bool		is_valid;

		latitudes[i] = DatumGetFloat8(values[latitude]);
		longitudes[i] = DatumGetFloat8(values[longitude]);
		is_valid = !nulls[latitude] && !nulls[longitude] && geonn_coordinates_valid(latitudes[i], longitudes[i]);
		valid += is_valid;
		if (unlikely(!is_valid))
			outer[i].latitude_is_null = outer[i].longitude_is_null = true;
	}
	memcpy(round->values + round->given.count * columns, state->outer.block.values, rows * columns * sizeof(Datum));
	memcpy(round->nulls + round->given.count * columns, state->outer.block.nulls, rows * columns * sizeof(bool));
	round->given.count += rows;
	round->points += valid;
	state->outer.counts[POINT_VALID] += valid;
	state->outer.counts[POINT_NULL] += rows - valid;
	pass_rows(state, rows);
}

/*
 * Take rows of the table.  False: none is left, or the next one has to wait for the next round.
 */
static bool
take_of_table(LateralNode *state, Round *round)
{
	TupleTableSlot *slot = state->slot;

	if (state->outer.block.rows == 0 && !next_block(state))
		return false;
	if (state->join == NULL)
		geonn_round_make_join(state);
	if (state->outer.keeps_words && state->outer.point_column[0] >= 0)
	{
		keep_words(state, round);
		return true;
	}
	geonn_copy_columns(slot->tts_values, slot->tts_isnull, state->outer.block.values, state->outer.block.nulls,
					   state->outer_columns);
	if (!keep_outer_row(state, round))
		return false;
	pass_rows(state, 1);
	return true;
}

/*
 * Have room for as many rows as are wanted.
 */
static void
make_room(const LateralNode *state, Round *round, Size row_bytes)
{
	Assert(state->outer.wanted > 0 && state->outer.wanted <= ROWS_MAX);
	if (round->room == state->outer.wanted)
		return;
	if (round->latitudes != NULL)
		pfree(round->latitudes);
	round->room = state->outer.wanted;
	round->latitudes = MemoryContextAllocHuge(state->node.context, round->room * row_bytes);
	round->longitudes = round->latitudes + round->room;
	round->rows = (OuterRow *) (round->longitudes + round->room);
	round->values = (Datum *) (round->rows + round->room);
	round->nulls = (bool *) (round->values + (Size) round->room * state->outer_columns);
}

void
geonn_round_take(LateralNode *state, Round *round)
{
	Size		limit = (Size) work_mem * 1024 / 2;
	Size		row_bytes = 2 * sizeof(double) + sizeof(OuterRow) + state->outer_columns * (sizeof(Datum) + sizeof(bool));

	MemoryContextReset(round->memory);
	round->reader = NULL;
	round->given.count = round->points = 0;
	make_room(state, round, row_bytes);
	ExecClearTuple(state->slot);
	geonn_set_no_neighbour(state);
	state->expressions->ecxt_scantuple = ExecStoreVirtualTuple(state->slot);
	while (round->given.count < (uint64) state->outer.wanted &&
		   (round->given.count == 0 || MemoryContextMemAllocated(round->memory, false) + round->room * row_bytes < limit) &&
		   (state->outer.reader != NULL ? take_of_table(state, round) : take_outer_row(state, round)))
		;

	/* columns that are pointers need memory of their own */
	state->outer.wanted = (int) Min(Min((Size) state->outer.wanted * 4, ROWS_MAX),
									(state->outer.keeps_words ? limit / 8 * 5 : limit / 2) / row_bytes);
}
