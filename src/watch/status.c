/*
 * status.c
 *		geonn_status() and the view geonn_devices: the engine's state and its
 *		devices; and geonn_engine_start().
 *
 * Monitors look at both all day, and the engine takes the GPUs: so looking
 * starts nothing.  Users call geonn_status() when something is wrong, so it
 * raises no error about the engine, and gives a silent engine one second.
 * geonn_devices asks the engine; where none runs, it shows the devices that
 * are known of the last one, as stopped.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "client/connection.h"
#include "common/protocol.h"
#include "base/result.h"
#include "supervisor/state.h"

#define ANSWER_MILLISECONDS 1000

PG_FUNCTION_INFO_V1(geonn_status);
PG_FUNCTION_INFO_V1(geonn_device_status);
PG_FUNCTION_INFO_V1(geonn_engine_start);

enum status_column
{
	STATUS_STATE,
	STATUS_SUPERVISOR_PID,
	STATUS_ENGINE_PID,
	STATUS_VERSION,
	STATUS_DEVICES,
	STATUS_SESSIONS,
	STATUS_SESSIONS_WAITING,
	STATUS_SESSIONS_IDLE,
	STATUS_DATASETS,
	STATUS_DATASETS_KEPT,
	STATUS_SEARCHES,
	STATUS_TRANSFER_MEMORY,
	STATUS_TRANSFER_MEMORY_LIMIT,
	STATUS_KEPT_MEMORY,
	STATUS_BASE_MEMORY,
	STATUS_STARTED_AT,
	STATUS_REASON,
	STATUS_COLUMNS
};

enum device_column
{
	DEVICE_NUMBER,
	DEVICE_KIND,
	DEVICE_NAME,
	DEVICE_UUID,
	DEVICE_STATE,
	DEVICE_USED,
	DEVICE_THREADS,
	DEVICE_COMPUTE_CAPABILITY,
	DEVICE_MEMORY_TOTAL,
	DEVICE_MEMORY_FREE,
	DEVICE_UTILIZATION,
	DEVICE_TEMPERATURE,
	DEVICE_POWER,
	DEVICE_BATCHES,
	DEVICE_REASON,
	DEVICE_COLUMNS
};

/* a result row: every column is NULL until it is set */
typedef struct Row
{
	Datum		values[STATUS_COLUMNS];
	bool		nulls[STATUS_COLUMNS];
} Row;

StaticAssertDecl((int) STATUS_COLUMNS >= (int) DEVICE_COLUMNS,
				 "a row is too short");

static void
clear_row(Row *row)
{
	memset(row->nulls, true, sizeof(row->nulls));
}

static void
set_value(Row *row, int column, Datum value)
{
	row->values[column] = value;
	row->nulls[column] = false;
}

/* an empty text is shown as NULL */
static void
set_text(Row *row, int column, const char *value)
{
	if (value[0] != '\0')
		set_value(row, column, CStringGetTextDatum(value));
}

/* ---- geonn_status() ---- */

static bool
is_version_error(const union geonn_message *message,
				 enum geonn_channel_status status)
{
	return status == GEONN_CHANNEL_OTHER_VERSION ||
		(status == GEONN_CHANNEL_OK &&
		 message->header.type == GEONN_ERROR &&
		 message->error.code == GEONN_ERROR_VERSION);
}

/*
 * Receive a message of this type before the deadline.  If another message
 * comes, or none, sets the row's state and reason, and returns false.
 */
static bool
expect(GeonnConnection *connection, TimestampTz deadline, uint16 type,
	   union geonn_message *message, Row *row)
{
	enum geonn_channel_status status;
	int			descriptor;

	status = geonn_connection_await(connection, GEONN_WAIT_ENGINE, deadline, message, &descriptor);
	if (descriptor >= 0)
		close(descriptor);
	if (status == GEONN_CHANNEL_OK && message->header.type == type)
		return true;

	if (status == GEONN_CHANNEL_AGAIN)
	{
		set_text(row, STATUS_STATE, "not answering");
		set_text(row, STATUS_REASON, "no answer within 1 s; the supervisor restarts the engine when it does not answer for geonn.engine_timeout");
	}
	else if (is_version_error(message, status))
	{
		set_text(row, STATUS_STATE, "running");
		set_text(row, STATUS_REASON, "the engine is of another version than this session's module, " GEONN_VERSION);
		if (message->header.type == GEONN_ERROR)
			set_text(row, STATUS_VERSION, message->error.detail);
	}
	else
	{
		set_text(row, STATUS_STATE, "starting");
		set_text(row, STATUS_REASON, "the engine has just ended");
	}
	return false;
}

/*
 * Ask the engine for its status.  If it does not answer, returns false with
 * only the row's state and reason set.
 */
static bool
ask_engine(GeonnConnection *connection, Row *row)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													   ANSWER_MILLISECONDS);
	struct geonn_hello hello = {.release = GEONN_VERSION};
	struct geonn_status status = {0};
	struct geonn_engine_status engine;
	union geonn_message message;
	int			used = 0;

	/* both messages fit into the empty socket; if the engine has ended, receiving fails below */
	(void) geonn_channel_send(connection->socket, GEONN_HELLO, &hello, -1);
	if (!expect(connection, deadline, GEONN_WELCOME, &message, row))
		return false;
	(void) geonn_channel_send(connection->socket, GEONN_STATUS, &status, -1);
	if (!expect(connection, deadline, GEONN_ENGINE_STATUS, &message, row))
		return false;
	engine = message.engine_status;
	for (uint32 i = 0; i < engine.devices; i++)
	{
		if (!expect(connection, deadline, GEONN_DEVICE_STATUS, &message, row))
			return false;
		if (message.device_status.in_use_by_auto)
			used++;
	}

	set_text(row, STATUS_STATE, "running");
	set_text(row, STATUS_VERSION, engine.release);
	set_value(row, STATUS_DEVICES, Int32GetDatum(used));
	set_value(row, STATUS_SESSIONS, Int32GetDatum(engine.sessions));
	set_value(row, STATUS_SESSIONS_WAITING, Int32GetDatum(engine.queued));
	set_value(row, STATUS_SESSIONS_IDLE, Int32GetDatum(engine.idle));
	set_value(row, STATUS_DATASETS, Int32GetDatum(engine.datasets));
	set_value(row, STATUS_DATASETS_KEPT, Int32GetDatum(engine.kept));
	set_value(row, STATUS_SEARCHES, Int32GetDatum(engine.searches));
	set_value(row, STATUS_TRANSFER_MEMORY,
			  Int64GetDatum(engine.transfer_memory));
	set_value(row, STATUS_TRANSFER_MEMORY_LIMIT,
			  Int64GetDatum(engine.transfer_memory_limit));
	set_value(row, STATUS_KEPT_MEMORY, Int64GetDatum(engine.kept_memory));
	set_value(row, STATUS_BASE_MEMORY, Int64GetDatum(engine.base_memory));
	set_value(row, STATUS_STARTED_AT,
			  TimestampTzGetDatum(geonn_timestamp_from_unix(engine.started_at)));
	set_text(row, STATUS_REASON, engine.no_gpu_reason);
	return true;
}

/*
 * A supervisor runs, but no engine listens: report what the supervisor says.
 */
static void
report_absence(pid_t supervisor, Row *row)
{
	EngineReport report;

	if (!geonn_state_read(supervisor, &report) ||
		report.state != ENGINE_STATE_FAILED)
	{
		set_text(row, STATUS_STATE, "starting");
		return;
	}
	set_text(row, STATUS_STATE, "failed");
	set_text(row, STATUS_REASON,
			 report.detail[0] == '\0' ? report.message :
			 psprintf("%s. %s", report.message, report.detail));
}

Datum
geonn_status(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor;
	MemoryContext context;
	MemoryContext former = CurrentMemoryContext;
	GeonnConnection *connection;
	pid_t		supervisor = geonn_state_supervisor();
	Row			row;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	geonn_require_columns(descriptor, STATUS_COLUMNS);
	clear_row(&row);

	/* the connection lives in it, and so closes at this function's end, not the statement's */
	context = AllocSetContextCreate(CurrentMemoryContext, "geonn_status",
									ALLOCSET_SMALL_SIZES);
	if (supervisor == 0)
	{
		set_text(&row, STATUS_STATE, "stopped");
		set_text(&row, STATUS_REASON,
				 "a join starts it, or geonn_engine_start()");
	}
	else
	{
		set_value(&row, STATUS_SUPERVISOR_PID, Int32GetDatum(supervisor));
		MemoryContextSwitchTo(context);
		connection = geonn_connection_try();
		MemoryContextSwitchTo(former);
		if (connection == NULL)
			report_absence(supervisor, &row);
		else
		{
			set_value(&row, STATUS_ENGINE_PID,
					  Int32GetDatum(connection->engine_pid));
			(void) ask_engine(connection, &row);
		}
	}
	MemoryContextDelete(context);

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor),
													  row.values, row.nulls)));
}

/* ---- geonn_devices ---- */

#define KIND_WORD(NAME, word) word,
static const char *const kind_words[] = {GEONN_DEVICE_KINDS(KIND_WORD)};

/*
 * What stays the same while the engine runs or does not.
 */
static void
set_device(const struct geonn_device_status *device, Row *row)
{
	clear_row(row);
	set_value(row, DEVICE_NUMBER, Int32GetDatum(device->number));
	set_text(row, DEVICE_KIND, kind_words[device->kind]);
	set_text(row, DEVICE_NAME, device->name);
	set_text(row, DEVICE_UUID, device->uuid);
	if (device->threads > 0)
		set_value(row, DEVICE_THREADS, Int32GetDatum(device->threads));
	if (device->capability_major > 0)
		set_text(row, DEVICE_COMPUTE_CAPABILITY,
				 psprintf("%u.%u", device->capability_major,
						  device->capability_minor));

	/* a device that failed early may not know its memory */
	if (device->memory_total > 0)
		set_value(row, DEVICE_MEMORY_TOTAL, Int64GetDatum(device->memory_total));
}

/*
 * What a running engine says of its device.
 */
static void
set_running_device(const struct geonn_device_status *device, Row *row)
{
	set_device(device, row);
	set_text(row, DEVICE_STATE,
			 device->state == GEONN_DEVICE_READY ? "ready" : "failed");
	set_value(row, DEVICE_USED, BoolGetDatum(device->in_use_by_auto != 0));
	if (device->memory_total > 0)
		set_value(row, DEVICE_MEMORY_FREE, Int64GetDatum(device->memory_free));
	if (device->utilization != GEONN_UNKNOWN)
		set_value(row, DEVICE_UTILIZATION, Int32GetDatum(device->utilization));
	if (device->temperature != GEONN_UNKNOWN)
		set_value(row, DEVICE_TEMPERATURE, Int32GetDatum(device->temperature));
	if (device->power != GEONN_UNKNOWN)
		set_value(row, DEVICE_POWER, Float8GetDatum(device->power / 1000.0));
	set_value(row, DEVICE_BATCHES, Int64GetDatum(device->batches));
	set_text(row, DEVICE_REASON, device->reason);
}

static void
receive_status(GeonnConnection *connection, uint16 type,
			   union geonn_message *message)
{
	int			descriptor;

	(void) geonn_connection_receive(connection, GEONN_WAIT_ENGINE, message, &descriptor);
	if (descriptor >= 0)
		close(descriptor);
	if (message->header.type != type)
		geonn_connection_violation("a message other than its status");
}

/*
 * Put rows of the running engine's devices.
 */
static void
put_running_devices(GeonnConnection *connection, ReturnSetInfo *result)
{
	struct geonn_status status = {.gauges = 1};
	union geonn_message message;
	uint32		devices;

	geonn_connection_send(connection, GEONN_STATUS, &status);
	receive_status(connection, GEONN_ENGINE_STATUS, &message);
	devices = message.engine_status.devices;
	for (uint32 i = 0; i < devices; i++)
	{
		Row			row;

		receive_status(connection, GEONN_DEVICE_STATUS, &message);
		if (message.device_status.kind >= lengthof(kind_words))
			geonn_connection_violation("a device of an unknown kind");
		set_running_device(&message.device_status, &row);
		tuplestore_putvalues(result->setResult, result->setDesc, row.values,
							 row.nulls);
	}
}

/*
 * Put rows of the devices that are known of the last engine.
 */
static void
put_stopped_devices(ReturnSetInfo *result)
{
	struct geonn_device_status *devices = palloc(GEONN_DEVICES_MAX * sizeof(*devices));
	int			count = known_devices_read(devices);

	for (int i = 0; i < count; i++)
	{
		Row			row;

		set_device(&devices[i], &row);
		set_text(&row, DEVICE_STATE, "stopped");
		set_value(&row, DEVICE_USED, BoolGetDatum(false));
		tuplestore_putvalues(result->setResult, result->setDesc, row.values,
							 row.nulls);
	}
}

Datum
geonn_device_status(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext context;
	MemoryContext former = CurrentMemoryContext;
	GeonnConnection *connection;

	InitMaterializedSRF(fcinfo, 0);
	geonn_require_columns(result->setDesc, DEVICE_COLUMNS);
	context = AllocSetContextCreate(CurrentMemoryContext, "geonn_devices",
									ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(context);
	connection = geonn_connection_open_running();
	if (connection != NULL)
		put_running_devices(connection, result);
	else
		put_stopped_devices(result);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return (Datum) 0;
}

/* ---- geonn_engine_start() ---- */

/*
 * Connects as a join does, and so starts the engine where none runs, waits
 * for it, and raises the same errors.
 */
Datum
geonn_engine_start(PG_FUNCTION_ARGS pg_attribute_unused())
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn_engine_start",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	pid_t		engine = geonn_connection_open()->engine_pid;

	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	PG_RETURN_INT32(engine);
}
