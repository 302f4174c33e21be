/*
 * reader.c
 *		The points of a relation or query, as the caller of the statement may
 *		see them.
 *
 * A plain query reads a relation, SELECT id, lat, lon FROM it.  So the executor
 * takes care of privileges, row-level security, views, partitions and foreign
 * tables, and raises its usual errors.  The query runs with the snapshot of the
 * calling statement, and gives its rows one by one to a DestReceiver of this
 * file, so that nothing is collected.  A query that only reads tables from end to
 * end is left to table_reader.c.  row_values.c converts values; casts in the query
 * would hide plain columns from the planner.  The caller's own queries run in the
 * same way, if they change nothing.
 *
 * A join checks the caller's privileges on both sides before it reads either, so
 * that a statement that must fail fails at once.  The caller is the current user,
 * also in a view, as for every function.  A planner hook could find the view's
 * owner, but is not installed yet when the first statement of a session loads this
 * library.  And arguments that the view's reader decides on would choose which of
 * the owner's tables that reader sees.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "tcop/dest.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "common/geodesy.h"
#include "base/compat.h"
#include "points/citus.h"
#include "points/query.h"
#include "points/reader.h"
#include "points/remembered_source.h"
#include "points/table_reader.h"

/* conversions use memory that is reset after this many rows, or after a block */
#define ROWS_A_RESET	1024

/* given points are taken this many at a time */
#define GIVEN_AT_ONCE	256

struct PointReading
{
	DestReceiver receiver;		/* the first field: the executor gives its rows to the reading */
	const PointSource *source;
	InvalidPolicy invalid;
	PointConsumer consume;
	PointBlockConsumer consume_block;	/* NULL: rows are given one by one */
	void	   *state;
	MemoryContext conversion;

	PointPage	page;			/* the page of the present row */
	int			attributes;		/* how many of a row's attributes are needed, up to the last that is */
	Datum	   *by;				/* [source->by_count] of the present row */
	bool	   *by_is_null;
	GeonnLimits limits;			/* the limits of the present row */

	uint64		rows;
	uint64		counts[POINT_STATUSES];

	const GivenPoints *given;	/* points that the caller passes, in place of rows of the source; or NULL */
	bool		are_numbered;	/* as in geonn_reading_given */
	QueryDesc  *description;	/* NULL: points are given, or the tables come from another process that shares them */
	List	   *plain;			/* of PlainTable: the tables that the reading reads from end to end */
	TableReader *tables;		/* NULL: rows come from the executor */

	/* rows of the table reader that the reading has still to take */
	int			left;
	Datum	   *values;
	bool	   *nulls;
	bool		ended;
	bool		met_shape;		/* geonn_reading_met_shape */
	bool		goes_on_with_shapes;	/* geonn_reading_go_on_with_shapes */
};

/* ---- a row ---- */

static void
take_row(PointReading *reading, const Datum *values, const bool *nulls)
{
	const PointSource *source = reading->source;
	int			id_attribute = source->columns[COLUMN_ID].attribute - 1;
	MemoryContext former = MemoryContextSwitchTo(reading->conversion);
	PointRow	row = {
		.status = POINT_NULL,
		.id = values[id_attribute],
		.id_is_null = nulls[id_attribute],
		.by = reading->by,
		.by_is_null = reading->by_is_null,
		.values = values,
		.nulls = nulls,
		.page = reading->page
	};
	ShapeOwner	owner = {source, &row};
	GeonnPointState state = GEONN_POINT_OK;
	int32		detail = 0;
	GeonnRefusal refusal;

	Assert(id_attribute >= 0 && id_attribute < source->query_columns);
	if (++reading->rows % ROWS_A_RESET == 0 || geonn_has_shapes(source))
		MemoryContextReset(reading->conversion);
	if (geonn_has_shapes(source) && reading->invalid == GEONN_INVALID_NAMED)
		geonn_try_shape(source, values, nulls, &row);
	else if (geonn_has_shapes(source))
		geonn_read_shape(&owner, values, nulls, &row);
	else if (reading->invalid == GEONN_INVALID_NAMED)
		state = geonn_try_place(source, values, nulls, &row, &detail);
	else
		state = geonn_read_place(source, values, nulls, &row, &detail);
	if (unlikely(state == GEONN_POINT_NOT_A_POINT && source->may_have_shapes))
	{
		if (!reading->goes_on_with_shapes)
		{
			reading->met_shape = true;
			MemoryContextSwitchTo(former);
			return;
		}
		geonn_read_as_shapes(unconstify(PointSource *, source));
		geonn_read_shape(&owner, values, nulls, &row);
		state = GEONN_POINT_OK;
	}
	if (unlikely(state != GEONN_POINT_OK && state != GEONN_POINT_EMPTY))
	{
		if (reading->invalid != GEONN_INVALID_NAMED)
			geonn_raise_wrong_point(source, state, detail, &row);
		refusal = (GeonnRefusal) {.reason = geonn_wrong_point(state, detail, "the point")};
		row.refusal = &refusal;
	}
	if (!row.id_is_null && !row.latitude_is_null && !row.longitude_is_null)
	{
		row.status = geonn_point_status(row.latitude, row.longitude);
		if (unlikely(row.status != POINT_VALID) && reading->invalid == GEONN_INVALID_IS_ERROR)
			geonn_raise_invalid(source, &row, geonn_whose_row(source, &row));
	}
	reading->counts[row.status]++;

	for (int i = 0; i < source->by_count; i++)
	{
		reading->by[i] = values[source->by[i].attribute - 1];
		reading->by_is_null[i] = nulls[source->by[i].attribute - 1];
	}
	if (geonn_has_limits(source))
	{
		geonn_read_limits(source, values, nulls, &reading->limits);
		for (int i = 0; i < source->weight_count && row.status == POINT_VALID; i++)
			reading->limits.weights[i] = geonn_read_weight(source, &source->weights[i], &row);
		row.limits = &reading->limits;
	}
	MemoryContextSwitchTo(former);
	reading->consume(reading->state, &row);
}

static bool
receive_row(TupleTableSlot *slot, DestReceiver *receiver)
{
	PointReading *reading = (PointReading *) receiver;

	slot_getsomeattrs(slot, reading->attributes);
	take_row(reading, slot->tts_values, slot->tts_isnull);
	return !reading->met_shape;
}

/* ---- the query ---- */

static void
raise_changed(const PointSource *source)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("%s was changed while the statement ran", source->title),
			 errdetail("It was renamed, replaced or altered between the moment its columns were chosen and its reading."),
			 errhint("Run the statement again.")));
}

/* Check that the columns still have the types that they had when they were chosen. */
static void
receive_startup(DestReceiver *receiver, int operation pg_attribute_unused(),
				TupleDesc descriptor)
{
	PointReading *reading = (PointReading *) receiver;
	const PointSource *source = reading->source;

	if (descriptor->natts != source->query_columns)
		raise_changed(source);
	for (int i = 0; i < source->column_count; i++)
	{
		const PointColumn *column = &source->columns[i];

		if (column->name == NULL)
			continue;
		Assert(column->attribute > 0 && column->attribute <= descriptor->natts);
		if (getBaseType(TupleDescAttr(descriptor, column->attribute - 1)->atttypid) != column->base_type)
			raise_changed(source);
		reading->attributes = Max(reading->attributes, column->attribute);
	}
}

static void
receive_nothing(DestReceiver *receiver pg_attribute_unused())
{
}

static void
name_source(void *argument)
{
	const PointSource *source = argument;

	errcontext("reading points from %s", source->title);
}

static void
begin_context(ErrorContextCallback *context, const PointSource *source)
{
	context->previous = error_context_stack;
	context->callback = name_source;
	context->arg = unconstify(PointSource *, source);
	error_context_stack = context;
}

/*
 * Plan the source's query.  The query names its relation, and since the columns were chosen, another session, or a
 * function in a view that is read, may have given that name to another relation.  So check the name before planning,
 * because otherwise planning could fail with an error about a missing name; and check it again while planning.  The
 * columns' types are checked when the first row comes.
 */
static PlannedStmt *
plan_source(const PointSource *source, int options)
{
	PlannedStmt *plan;

	if (OidIsValid(source->relation) &&
		RangeVarGetRelid(makeRangeVar(source->schema, source->name, -1), NoLock,
						 true) != source->relation)
		raise_changed(source);
	geonn_citus_check_named(source);
	plan = geonn_plan_query(source->query, source->title, options, source->relation,
							source->conditions);
	if (plan == NULL)
		raise_changed(source);
	return plan;
}

List *
geonn_relations_read(const PointSource *source)
{
	ErrorContextCallback context;
	List	   *relations;

	begin_context(&context, source);
	relations = plan_source(source, 0)->relationOids;
	error_context_stack = context.previous;
	return relations;
}

/*
 * Starts the executor as EXPLAIN does: far enough to check privileges, but not so far that a
 * foreign table would do anything.
 */
List *
geonn_check_tables(const PointSource *source)
{
	PointReading reading = {.source = source};
	ErrorContextCallback context;
	QueryDesc  *description;
	List	   *tables;

	tables = geonn_remembered_tables(source);
	if (tables != NIL)
		return tables;
	begin_context(&context, source);
	description = CreateQueryDesc(plan_source(source, 0), source->query, GetActiveSnapshot(), InvalidSnapshot,
								  None_Receiver, NULL, NULL, 0);
	ExecutorStart(description, EXEC_FLAG_EXPLAIN_ONLY);
	receive_startup(&reading.receiver, CMD_SELECT, description->tupDesc);
	tables = geonn_plain_tables(description);
	geonn_remember_tables(source, description->plannedstmt, tables);
	ExecutorEnd(description);
	FreeQueryDesc(description);
	error_context_stack = context.previous;
	return tables;
}

/* ---- a part at a time ---- */

/*
 * Name the query in an error's context, as SPI does.
 */
static void
name_query(void *argument)
{
	const PointSource *source = argument;

	errcontext("SQL statement \"%s\"", source->query);
	name_source(argument);
}

static PointReading *
create_reading(const PointSource *source, InvalidPolicy invalid, PointConsumer consume,
			   void *state)
{
	PointReading *reading = palloc0(sizeof(PointReading));

	reading->receiver.receiveSlot = receive_row;
	reading->receiver.rStartup = receive_startup;
	reading->receiver.rShutdown = receive_nothing;
	reading->receiver.rDestroy = receive_nothing;
	/* PostgreSQL has no kind for receivers of extensions, so use another one. */
	reading->receiver.mydest = DestTuplestore;

	reading->source = source;
	reading->invalid = invalid;
	reading->consume = consume;
	reading->state = state;
	reading->conversion = AllocSetContextCreate(CurrentMemoryContext, "geonn conversion",
												ALLOCSET_SMALL_SIZES);
	if (source == NULL)
		return reading;
	reading->by = palloc(source->by_count * sizeof(Datum));
	reading->by_is_null = palloc(source->by_count * sizeof(bool));
	return reading;
}

PointReading *
geonn_reading_begin(const PointSource *source, InvalidPolicy invalid, ReadingManner manner,
					PointConsumer consume, void *state)
{
	PointReading *reading = create_reading(source, invalid, consume, state);
	ErrorContextCallback context;
	List	   *tables;
	int			options = manner == GEONN_READ_AT_ONCE ? CURSOR_OPT_PARALLEL_OK :
		manner == GEONN_READ_SHARED ? GEONN_PLAN_TABLES : 0;

	begin_context(&context, source);
	reading->description = CreateQueryDesc(plan_source(source, options), source->query,
										   GetActiveSnapshot(), InvalidSnapshot,
										   &reading->receiver, NULL, NULL, 0);
	ExecutorStart(reading->description, 0);
	tables = geonn_plain_tables(reading->description);
	if (tables != NIL)
	{
		receive_startup(&reading->receiver, CMD_SELECT, reading->description->tupDesc);
		reading->plain = tables;
		reading->tables = geonn_table_reader_begin(tables, source->query_columns,
												   reading->description->snapshot);
	}
	error_context_stack = context.previous;
	return reading;
}

PointReading *
geonn_reading_given(const GivenPoints *given, bool are_numbered, InvalidPolicy invalid, PointConsumer consume,
					void *state)
{
	PointReading *reading = create_reading(NULL, invalid, consume, state);

	reading->given = given;
	reading->are_numbered = are_numbered;
	return reading;
}

void
geonn_reading_give(PointReading *reading, const GivenPoints *given)
{
	Assert(reading->given != NULL && reading->source == NULL);
	reading->given = given;
	reading->rows = 0;
	reading->ended = false;
}

List *
geonn_reading_tables(const PointReading *reading)
{
	return reading->plain;
}

PointReading *
geonn_reading_attach(const PointSource *source, InvalidPolicy invalid, SharedTables *tables,
					 PointConsumer consume, void *state)
{
	PointReading *reading = create_reading(source, invalid, consume, state);

	reading->tables = geonn_table_reader_attach(tables);
	return reading;
}

const uint64 *
geonn_reading_counts(const PointReading *reading)
{
	return reading->counts;
}

uint64
geonn_reading_rows(const PointReading *reading)
{
	return reading->rows;
}

void
geonn_reading_go_on_with_shapes(PointReading *reading)
{
	reading->goes_on_with_shapes = true;
}

bool
geonn_reading_met_shape(const PointReading *reading)
{
	return reading->met_shape;
}

PointPage
geonn_reading_page(const PointReading *reading)
{
	return reading->page;
}

/* May a source's values be points in degrees? */
static bool
suits_blocks(const PointSource *source)
{
	int32		srid = source->transform == NULL ? GEONN_POINT_SRID : geonn_transform_srid(source->transform);

	return !geonn_has_shapes(source) && (srid == GEONN_POINT_SRID || srid == 0);
}

void
geonn_reading_in_blocks(PointReading *reading, PointBlockConsumer consume)
{
	const PointSource *source = reading->source;

	if (reading->given != NULL ||
		(reading->tables != NULL && source->by_count == 0 && !geonn_has_limits(source) && suits_blocks(source) &&
		 (source->point_kind != GEONN_POINT_NONE ||
		  (source->columns[COLUMN_LATITUDE].base_type == FLOAT8OID &&
		   source->columns[COLUMN_LONGITUDE].base_type == FLOAT8OID))))
		reading->consume_block = consume;
}

/* Read the coordinates of a row that a block may have.  Returns false if the row is to be taken alone. */
static inline bool
read_for_block(const PointSource *source, const Datum *values, const bool *nulls, double *latitude, double *longitude)
{
	const PointColumn *columns = source->columns;
	int			number = columns[COLUMN_POINT].attribute - 1;
	int32		detail;

	if (source->point_kind == GEONN_POINT_NONE)
	{
		*latitude = DatumGetFloat8(values[columns[COLUMN_LATITUDE].attribute - 1]);
		*longitude = DatumGetFloat8(values[columns[COLUMN_LONGITUDE].attribute - 1]);
		return !nulls[columns[COLUMN_LATITUDE].attribute - 1] && !nulls[columns[COLUMN_LONGITUDE].attribute - 1];
	}
	return !nulls[number] &&
		geonn_point_decode(source->point_kind, values[number], latitude, longitude, &detail) == GEONN_POINT_OK &&
		(source->transform == NULL || geonn_transform_note(source->transform, GEONN_POINT_SRID) == GEONN_POINT_SRID);
}

/*
 * Take rows of the table reader: valid rows as a block, other rows one by one.  From the first shape on, or the first point that
 * is to be transformed, no more blocks are taken.  Returns how many rows were.
 */
static int
take_block(PointReading *reading, int rows)
{
	const PointSource *source = reading->source;
	int			id = source->columns[COLUMN_ID].attribute - 1;
	Datum		ids[MaxHeapTuplesPerPage];
	double		latitudes[MaxHeapTuplesPerPage];
	double		longitudes[MaxHeapTuplesPerPage];
	int			valid = 0;
	int			taken = 0;

	Assert(rows <= MaxHeapTuplesPerPage && source->by_count == 0 && suits_blocks(source));
	/* what rows that were taken alone have left there */
	MemoryContextReset(reading->conversion);
	for (; taken < rows; taken++)
	{
		const Datum *values = reading->values + taken * source->query_columns;
		const bool *nulls = reading->nulls + taken * source->query_columns;

		ids[valid] = values[id];
		if (likely(read_for_block(source, values, nulls, &latitudes[valid], &longitudes[valid]) && !nulls[id] &&
				   geonn_coordinates_valid(latitudes[valid], longitudes[valid])))
			valid++;
		else if (source->may_have_shapes)
			break;
		else
			take_row(reading, values, nulls);
	}
	reading->rows += valid;
	reading->counts[POINT_VALID] += valid;
	if (valid > 0)
		reading->consume_block(reading->state, valid, ids, latitudes, longitudes);
	if (taken < rows)
	{
		take_row(reading, reading->values + taken * source->query_columns, reading->nulls + taken * source->query_columns);
		taken++;
	}
	if (!suits_blocks(source))
		reading->consume_block = NULL;
	return taken;
}

/*
 * Get the next rows of the table reader.  Returns how many rows came.  Note their page, unless
 * other processes share the reading.
 */
static int
next_rows(PointReading *reading)
{
	int			rows = geonn_table_reader_next(reading->tables, &reading->values, &reading->nulls);

	if (reading->description != NULL && rows > 0)
		reading->page = (PointPage)
	{
		.table = geonn_table_reader_table(reading->tables),
			.number = geonn_table_reader_block(reading->tables)
	};
	return rows;
}

/* Take up to this many rows of the tables.  Returns false if the tables had fewer. */
static bool
read_tables(PointReading *reading, uint64 rows)
{
	int			columns = reading->source->query_columns;

	while (rows > 0 && !reading->met_shape)
	{
		int			taken = 1;

		if (reading->left == 0)
			reading->left = next_rows(reading);
		if (reading->left == 0)
			return false;
		if (reading->consume_block != NULL)
			taken = take_block(reading, (int) Min((uint64) reading->left, rows));
		else
			take_row(reading, reading->values, reading->nulls);
		reading->values += taken * columns;
		reading->nulls += taken * columns;
		reading->left -= taken;
		rows -= taken;
	}
	return true;
}

/*
 * End the reading.  was_run: the executor has returned all of its rows.  If not, drop the executor's
 * measurements: they say little, and other extensions would list the query with them, or take it for a
 * statement of the session if it ends together with the calling one.
 */
static void
end_reading(PointReading *reading, bool was_run)
{
	QueryDesc  *description = reading->description;

	if (reading->ended)
		return;
	reading->ended = true;
	if (reading->tables != NULL)
		geonn_table_reader_end(reading->tables);
	if (description == NULL)
		return;
	if (!was_run)
		geonn_query_measurements(description) = NULL;
	ExecutorFinish(description);
	ExecutorEnd(description);
	FreeQueryDesc(description);
}

/* Take the next given points: valid points as a block, if blocks are wanted, other points one by one. */
static void
take_given(PointReading *reading, int rows)
{
	Datum		ids[GIVEN_AT_ONCE];
	double		latitudes[GIVEN_AT_ONCE];
	double		longitudes[GIVEN_AT_ONCE];
	const double *all_latitudes;
	const double *all_longitudes;
	uint64		first = reading->rows;
	int			valid = 0;
	PointRow	row = {0};

	Assert(rows <= GIVEN_AT_ONCE && first + rows <= reading->given->count);
	if (reading->consume_block != NULL && reading->are_numbered && reading->given->points != NULL &&
		reading->given->points(reading->given->state, &all_latitudes, &all_longitudes))
	{
		for (int i = 0; i < rows; i++)
			ids[i] = UInt64GetDatum(++reading->rows);
		reading->counts[POINT_VALID] += rows;
		reading->consume_block(reading->state, rows, ids, all_latitudes + first, all_longitudes + first);
		return;
	}
	for (int i = 0; i < rows; i++)
	{
		geonn_given_row(reading->given, reading->rows++, &row);
		reading->counts[row.status]++;
		if (row.status != POINT_VALID || reading->consume_block == NULL)
		{
			reading->consume(reading->state, &row);
			continue;
		}
		ids[valid] = reading->are_numbered ? UInt64GetDatum(reading->rows) : row.id;
		latitudes[valid] = row.latitude;
		longitudes[valid++] = row.longitude;
	}
	if (valid > 0)
		reading->consume_block(reading->state, valid, ids, latitudes, longitudes);
}

/* Take up to this many given points.  Returns false if these were the last. */
static bool
read_given(PointReading *reading, uint64 rows)
{
	const GivenPoints *given = reading->given;

	while (rows > 0 && reading->rows < given->count)
	{
		int			taken = (int) Min(Min(rows, given->count - reading->rows), GIVEN_AT_ONCE);

		CHECK_FOR_INTERRUPTS();
		take_given(reading, taken);
		rows -= taken;
	}
	if (reading->rows < given->count)
		return true;
	reading->ended = true;
	if (!given->each_alone)
		geonn_warn_of_given(reading->counts, reading->invalid == GEONN_INVALID_KEPT);
	return false;
}

bool
geonn_reading_next(PointReading *reading, uint64 rows)
{
	ErrorContextCallback context;
	uint64		before = reading->rows;
	bool		more;
	bool		alone;

	if (reading->ended)
		return false;
	if (reading->given != NULL)
		return read_given(reading, rows > 0 ? rows : PG_UINT64_MAX);
	begin_context(&context, reading->source);
	context.callback = name_query;
	if (reading->tables != NULL)
		more = read_tables(reading, rows > 0 ? rows : PG_UINT64_MAX);
	else
	{
		geonn_executor_run(reading->description, rows);
		more = rows > 0 && reading->rows - before == rows;
	}
	Assert(rows == 0 || reading->rows - before <= rows);
	error_context_stack = context.previous;
	if (reading->met_shape)
	{
		end_reading(reading, false);
		return false;
	}
	if (more)
		return true;
	alone = reading->description != NULL;
	end_reading(reading, reading->tables == NULL);
	if (alone)
		geonn_tell_of_rows(reading->source, reading->invalid,
						   reading->counts);
	return false;
}

void
geonn_reading_end(PointReading *reading)
{
	end_reading(reading, false);
}

bool
geonn_read_points(const PointSource *source, InvalidPolicy invalid,
				  PointConsumer consume, void *state)
{
	/* without workers, where an error of theirs could be taken for a refusal of the row that is being read */
	PointReading *reading = geonn_reading_begin(source, invalid,
												invalid == GEONN_INVALID_NAMED ? GEONN_READ_IN_PARTS : GEONN_READ_AT_ONCE,
												consume, state);

	(void) geonn_reading_next(reading, 0);
	return !reading->met_shape;
}

/* Return pages in the order of the reading's tables.  Returns NULL if the reading has other tables than pages. */
static const TablePages *
in_order_of_reading(const PointReading *reading, const TablePages *pages, int count)
{
	TablePages *ordered = palloc(Max(count, 1) * sizeof(TablePages));
	ListCell   *cell;

	if (list_length(reading->plain) != count)
		return NULL;
	foreach(cell, reading->plain)
	{
		int			number = 0;

		while (number < count && pages[number].table != ((PlainTable *) lfirst(cell))->table)
			number++;
		if (number == count)
			return NULL;
		ordered[foreach_current_index(cell)] = pages[number];
	}
	return ordered;
}

bool
geonn_read_pages(const PointSource *source, InvalidPolicy invalid, const TablePages *pages, int count,
				 PointConsumer consume, void *state)
{
	PointReading *reading = geonn_reading_begin(source, invalid, GEONN_READ_IN_PARTS, consume, state);
	const TablePages *ordered = in_order_of_reading(reading, pages, count);

	if (ordered != NULL)
	{
		geonn_table_reader_limit(reading->tables, ordered);
		(void) geonn_reading_next(reading, 0);
	}
	else
		geonn_reading_end(reading);
	return ordered != NULL && !reading->met_shape;
}
