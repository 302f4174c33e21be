/*
 * reader.c
 *		The points of a relation, as the caller of the statement may see them.
 *
 * The relation is read by a plain query, SELECT id, lat, lon FROM it, so that
 * privileges, row-level security, views, partitions and foreign tables are
 * the executor's business, and its errors are worded as everywhere.  The
 * query runs through SPI with the snapshot of the calling statement, and
 * gives its rows to a DestReceiver of this file one by one, so that nothing
 * is collected.  Values are converted here rather than by casts in the query:
 * the planner then sees plain columns.
 *
 * Whether the caller may read both relations is asked before either is read,
 * so that a statement that must fail does so at once.
 *
 * A NULL id or coordinate makes a row no candidate, as SQL has it, and is not
 * worth a warning.  A coordinate that is NaN, infinite or out of range most
 * likely is a mistake in the data: such rows are left out with one warning
 * that counts them.  It is given after the relation has been read.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "common/geodesy.h"
#include "reader.h"

/* rows between two resets of the memory that conversions use */
#define ROWS_A_RESET	1024

typedef struct PointReceiver
{
	DestReceiver receiver;		/* first */
	const PointRelation *relation;
	PointConsumer consume;
	void	   *state;
	MemoryContext conversion;

	uint64		rows;
	uint64		nulls;
	uint64		not_finite;
	uint64		latitude_out;
	uint64		longitude_out;
} PointReceiver;

static int64
convert_id(Oid type, Datum value)
{
	switch (type)
	{
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value);
	}
}

static inline double
convert_coordinate(PointReceiver *self, Oid type, Datum value)
{
	MemoryContext former;
	double		result;

	switch (type)
	{
		case FLOAT8OID:
			return DatumGetFloat8(value);
		case FLOAT4OID:
			return DatumGetFloat4(value);
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
			return DatumGetInt32(value);
		case INT8OID:
			return (double) DatumGetInt64(value);
		default:
			former = MemoryContextSwitchTo(self->conversion);
			result = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
														value));
			MemoryContextSwitchTo(former);
			return result;
	}
}

static bool
receive_row(TupleTableSlot *slot, DestReceiver *receiver)
{
	PointReceiver *self = (PointReceiver *) receiver;
	const PointColumn *columns = self->relation->columns;
	double		latitude;
	double		longitude;

	slot_getsomeattrs(slot, COLUMN_ROLES);
	if (++self->rows % ROWS_A_RESET == 0)
		MemoryContextReset(self->conversion);

	if (slot->tts_isnull[COLUMN_ID] || slot->tts_isnull[COLUMN_LATITUDE] ||
		slot->tts_isnull[COLUMN_LONGITUDE])
	{
		self->nulls++;
		return true;
	}

	latitude = convert_coordinate(self, columns[COLUMN_LATITUDE].base_type,
								  slot->tts_values[COLUMN_LATITUDE]);
	longitude = convert_coordinate(self, columns[COLUMN_LONGITUDE].base_type,
								   slot->tts_values[COLUMN_LONGITUDE]);
	if (likely(geonn_coordinates_valid(latitude, longitude)))
		self->consume(self->state,
					  convert_id(columns[COLUMN_ID].base_type,
								 slot->tts_values[COLUMN_ID]),
					  latitude, longitude);
	else if (!isfinite(latitude) || !isfinite(longitude))
		self->not_finite++;
	else if (latitude < -90 || latitude > 90)
		self->latitude_out++;
	else
		self->longitude_out++;
	return true;
}

static void
raise_changed(const PointRelation *relation)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("relation \"%s\" was changed while the statement ran",
					relation->name),
			 errdetail("It was renamed, replaced or altered between the moment its columns were chosen and its reading."),
			 errhint("Run the statement again.")));
}

/*
 * Rows will be taken for what the columns were when they were chosen.
 */
static void
receive_startup(DestReceiver *receiver, int operation pg_attribute_unused(),
				TupleDesc descriptor)
{
	const PointRelation *relation = ((PointReceiver *) receiver)->relation;

	if (descriptor->natts != COLUMN_ROLES)
		raise_changed(relation);
	for (int role = 0; role < COLUMN_ROLES; role++)
	{
		if (getBaseType(TupleDescAttr(descriptor, role)->atttypid) !=
			relation->columns[role].base_type)
			raise_changed(relation);
	}
}

static void
receive_nothing(DestReceiver *receiver pg_attribute_unused())
{
}

static void
name_relation(void *argument)
{
	const PointRelation *relation = argument;

	errcontext("reading points from relation \"%s\"", relation->name);
}

/*
 * The query says what it reads by name.  A function that the other relation's
 * view calls can have given that name to something else since the columns were
 * found, so that is checked here, and the types when the rows begin to come.
 */
static char *
make_query(const PointRelation *relation)
{
	RangeVar   *name = makeRangeVar(relation->schema, relation->name, -1);

	if (RangeVarGetRelid(name, NoLock, true) != relation->oid)
		raise_changed(relation);
	return psprintf("SELECT %s, %s, %s FROM %s",
					quote_identifier(relation->columns[COLUMN_ID].name),
					quote_identifier(relation->columns[COLUMN_LATITUDE].name),
					quote_identifier(relation->columns[COLUMN_LONGITUDE].name),
					relation->quoted_name);
}

static void
begin_context(ErrorContextCallback *context, const PointRelation *relation)
{
	context->previous = error_context_stack;
	context->callback = name_relation;
	context->arg = unconstify(PointRelation *, relation);
	error_context_stack = context;
}

static void
run_query(PointReceiver *receiver)
{
	SPIPrepareOptions prepare = {.cursorOptions = CURSOR_OPT_PARALLEL_OK};
	SPIExecuteOptions execute = {
		.read_only = true,
		.dest = &receiver->receiver
	};
	char	   *query = make_query(receiver->relation);
	SPIPlanPtr	plan;
	int			result;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");

	receiver->receiver.receiveSlot = receive_row;
	receiver->receiver.rStartup = receive_startup;
	receiver->receiver.rShutdown = receive_nothing;
	receiver->receiver.rDestroy = receive_nothing;

	/* there is no kind for receivers of extensions; SPI only tells DestNone */
	receiver->receiver.mydest = DestTuplestore;
	receiver->conversion = AllocSetContextCreate(CurrentMemoryContext,
												 "geonn conversion",
												 ALLOCSET_SMALL_SIZES);

	plan = SPI_prepare_extended(query, &prepare);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare_extended failed for \"%s\": %s", query,
			 SPI_result_code_string(SPI_result));
	result = SPI_execute_plan_extended(plan, &execute);
	if (result != SPI_OK_SELECT)
		elog(ERROR, "SPI_execute_plan_extended failed for \"%s\": %s", query,
			 SPI_result_code_string(result));
	SPI_finish();
}

static void
warn_of_rows(const PointReceiver *receiver)
{
	const PointRelation *relation = receiver->relation;
	const char *latitude;
	const char *longitude;
	StringInfoData detail;
	uint64		skipped = receiver->not_finite + receiver->latitude_out +
		receiver->longitude_out;

	if (receiver->nulls > 0)
		ereport(DEBUG1,
				(errmsg_internal("%llu of %llu rows of relation \"%s\" have a NULL id or coordinate",
								 (unsigned long long) receiver->nulls,
								 (unsigned long long) receiver->rows,
								 relation->name)));
	if (skipped == 0)
		return;

	latitude = quote_identifier(relation->columns[COLUMN_LATITUDE].name);
	longitude = quote_identifier(relation->columns[COLUMN_LONGITUDE].name);
	initStringInfo(&detail);
	appendStringInfo(&detail, "NaN or infinite: %llu; latitude not from -90 to 90: %llu; longitude not from -180 to 360: %llu.",
					 (unsigned long long) receiver->not_finite,
					 (unsigned long long) receiver->latitude_out,
					 (unsigned long long) receiver->longitude_out);
	if (receiver->nulls > 0)
		appendStringInfo(&detail, " Besides, rows with a NULL id or coordinate: %llu.",
						 (unsigned long long) receiver->nulls);
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg_plural("%llu row of relation \"%s\" was skipped: coordinates out of range",
						   "%llu rows of relation \"%s\" were skipped: coordinates out of range",
						   (unsigned long) skipped,
						   (unsigned long long) skipped, relation->name),
			 errdetail_internal("%s", detail.data),
			 errhint("To see them: SELECT * FROM %s WHERE %s NOT BETWEEN -90 AND 90 OR %s NOT BETWEEN -180 AND 360;",
					 relation->quoted_name, latitude, longitude)));
}

PlannedStmt *
geonn_plan_query(const char *query)
{
	List	   *parsed = pg_parse_query(query);
	List	   *analyzed;

	analyzed = pg_analyze_and_rewrite_fixedparams(linitial_node(RawStmt, parsed),
												  query, NULL, 0, NULL);
	return pg_plan_query(linitial_node(Query, analyzed), query, 0, NULL);
}

/*
 * Like EXPLAIN, this lets the executor begin, where it checks privileges, but
 * not so far that a foreign table would do anything.
 */
void
geonn_check_readable(const PointRelation *relation)
{
	ErrorContextCallback context;
	char	   *query = make_query(relation);
	QueryDesc  *description;

	begin_context(&context, relation);
	description = CreateQueryDesc(geonn_plan_query(query), query,
								  GetActiveSnapshot(), InvalidSnapshot,
								  None_Receiver, NULL, NULL, 0);
	ExecutorStart(description, EXEC_FLAG_EXPLAIN_ONLY);
	ExecutorEnd(description);
	FreeQueryDesc(description);
	error_context_stack = context.previous;
}

void
geonn_read_points(const PointRelation *relation, PointConsumer consume,
				  void *state)
{
	ErrorContextCallback context;
	PointReceiver receiver = {
		.relation = relation,
		.consume = consume,
		.state = state
	};

	begin_context(&context, relation);
	run_query(&receiver);
	error_context_stack = context.previous;
	warn_of_rows(&receiver);
}
