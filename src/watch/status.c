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

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"

#include "base/extension.h"
#include "base/result.h"
#include "base/settings.h"
#include "client/connection.h"
#include "common/protocol.h"
#include "supervisor/state.h"

#define ANSWER_MILLISECONDS 1000

PG_FUNCTION_INFO_V1(geonn_status);
PG_FUNCTION_INFO_V1(geonn_device_status);
PG_FUNCTION_INFO_V1(geonn_engine_start);

/* columns of the function and of the view */
#define STATUS_COLUMNS	17
#define DEVICE_COLUMNS	15

static const char *
null_if_empty(const char *text)
{
	return text[0] == '\0' ? NULL : text;
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

/* The figures that geonn_status() shows; NULL or 0: not known. */
typedef struct Status
{
	const char *state;
	const char *reason;
	const char *version;		/* the engine's version */
	pid_t		supervisor;
	pid_t		engine;
	bool		answered;		/* the engine has answered: told and devices are known */
	struct geonn_engine_status told;
	int			devices;		/* how many devices geonn.device = 'auto' uses */
} Status;

/*
 * Receive a message of this type before the deadline.  If another message comes, or none, set state
 * and reason, and return false.
 */
static bool
expect(GeonnConnection *connection, TimestampTz deadline, uint16 type,
	   union geonn_message *message, Status *status)
{
	enum geonn_channel_status received = geonn_connection_await(connection, GEONN_WAIT_ENGINE,
																deadline, message);

	if (received == GEONN_CHANNEL_OK && message->header.type == type)
		return true;

	if (received == GEONN_CHANNEL_AGAIN)
	{
		status->state = "not answering";
		status->reason = "no answer within 1 s; the supervisor restarts the engine when it does not answer for geonn.engine_timeout";
	}
	else if (is_version_error(message, received))
	{
		status->state = "running";
		status->reason = "the engine is of another version than this session's module, " GEONN_VERSION;
		if (message->header.type == GEONN_ERROR)
			status->version = null_if_empty(pstrdup(message->error.detail));
	}
	else
	{
		status->state = "starting";
		status->reason = "the engine has just ended";
	}
	return false;
}

/* Ask the engine for its status.  If the engine does not answer, set only state and reason. */
static void
ask_engine(GeonnConnection *connection, Status *status)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ANSWER_MILLISECONDS);
	struct geonn_hello hello = {.release = GEONN_VERSION};
	struct geonn_status question = {0};
	union geonn_message message;

	/* Hello and status fit into the empty socket; if the engine has ended, receiving fails. */
	(void) geonn_channel_send(connection->socket, GEONN_HELLO, &hello, -1);
	if (!expect(connection, deadline, GEONN_WELCOME, &message, status))
		return;
	(void) geonn_channel_send(connection->socket, GEONN_STATUS, &question, -1);
	if (!expect(connection, deadline, GEONN_ENGINE_STATUS, &message, status))
		return;
	status->told = message.engine_status;
	for (uint32 i = 0; i < status->told.devices; i++)
	{
		if (!expect(connection, deadline, GEONN_DEVICE_STATUS, &message, status))
			return;
		if (message.device_status.in_use_by_auto)
			status->devices++;
	}
	status->answered = true;
	status->state = "running";
	status->version = null_if_empty(status->told.release);
	status->reason = null_if_empty(status->told.no_gpu_reason);
}

/* Report what the supervisor has written, because no engine listens. */
static void
report_absence(Status *status)
{
	EngineReport report;

	bool		is_known = geonn_state_read(status->supervisor, &report);

	if (is_known && report.state == ENGINE_STATE_OFF)
	{
		status->state = "stopped";
		status->reason = "geonn.enabled is off in the server's configuration";
		return;
	}
	status->state = "starting";
	if (!is_known || report.state != ENGINE_STATE_FAILED)
		return;
	status->state = "failed";
	status->reason = null_if_empty(report.detail[0] == '\0' ? pstrdup(report.message) :
								   psprintf("%s. %s", report.message, report.detail));
}

static void
add_status(Row *row, const Status *status)
{
	const struct geonn_engine_status *told = &status->told;
	bool		unknown = !status->answered;

	row_add_text(row, status->state);
	row_add(row, Int32GetDatum(status->supervisor), status->supervisor == 0);
	row_add(row, Int32GetDatum(status->engine), status->engine == 0);
	row_add_text(row, status->version);
	row_add(row, Int32GetDatum(status->devices), unknown);
	row_add(row, Int32GetDatum(told->sessions), unknown);
	row_add(row, Int32GetDatum(told->queued), unknown);
	row_add(row, Int32GetDatum(told->idle), unknown);
	row_add(row, Int32GetDatum(told->datasets), unknown);
	row_add(row, Int32GetDatum(told->kept), unknown);
	row_add(row, Int32GetDatum(told->searches), unknown);
	row_add(row, Int64GetDatum(told->transfer_memory), unknown);
	row_add(row, Int64GetDatum(told->transfer_memory_limit), unknown);
	row_add(row, Int64GetDatum(told->kept_memory), unknown);
	row_add(row, Int64GetDatum(told->base_memory), unknown);
	row_add_time(row, told->started_at, unknown);
	row_add_text(row, status->reason);
}

Datum
geonn_status(PG_FUNCTION_ARGS)
{
	TupleDesc	type = geonn_result_type(fcinfo, STATUS_COLUMNS);
	Status		status = {.supervisor = geonn_state_supervisor()};
	Row			row = {0};

	if (status.supervisor == 0)
	{
		status.state = "stopped";
		status.reason = geonn_enabled ? "a join starts it, or geonn_engine_start()" : "geonn.enabled is off";
	}
	else
	{
		GeonnConnection *connection = geonn_connection_try();

		if (connection == NULL)
			report_absence(&status);
		else
		{
			status.engine = connection->engine_pid;
			ask_engine(connection, &status);
			geonn_connection_close(connection);
		}
	}
	add_status(&row, &status);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(type, row.values, row.nulls)));
}

/* ---- geonn_devices ---- */

#define KIND_WORD(NAME, word) word,
static const char *const kind_words[] = {GEONN_DEVICE_KINDS(KIND_WORD)};

/* Add a device's row to the result.  running: the engine runs; otherwise the device is one of the last engine. */
static void
put_device(const struct geonn_device_status *device, bool running, ReturnSetInfo *result)
{
	Row			row = {0};

	row_add(&row, Int32GetDatum(device->number), false);
	row_add_text(&row, kind_words[device->kind]);
	row_add_text(&row, null_if_empty(device->name));
	row_add_text(&row, null_if_empty(device->uuid));
	row_add_text(&row, !running ? "stopped" : device->state == GEONN_DEVICE_READY ? "ready" : "failed");
	row_add(&row, BoolGetDatum(running && device->in_use_by_auto), false);
	row_add(&row, Int32GetDatum(device->threads), device->threads == 0);
	row_add_text(&row, device->capability_major == 0 ? NULL :
				 psprintf("%u.%u", device->capability_major, device->capability_minor));

	/* a device that failed early may not know its memory */
	row_add(&row, Int64GetDatum(device->memory_total), device->memory_total == 0);
	row_add(&row, Int64GetDatum(device->memory_free), !running || device->memory_total == 0);
	row_add(&row, Int32GetDatum(device->utilization), !running || device->utilization == GEONN_UNKNOWN);
	row_add(&row, Int32GetDatum(device->temperature), !running || device->temperature == GEONN_UNKNOWN);
	row_add(&row, Float8GetDatum(device->power / 1000.0), !running || device->power == GEONN_UNKNOWN);
	row_add(&row, Int64GetDatum(device->batches), !running);
	row_add_text(&row, running ? null_if_empty(device->reason) : NULL);
	row_put(&row, result);
}

static void
receive_status(GeonnConnection *connection, uint16 type,
			   union geonn_message *message)
{
	(void) geonn_connection_receive(connection, GEONN_WAIT_ENGINE, message);
	if (message->header.type != type)
		geonn_connection_violation("a message other than its status");
}

/* Add a row for each device of the running engine to the result. */
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
		receive_status(connection, GEONN_DEVICE_STATUS, &message);
		if (message.device_status.kind >= lengthof(kind_words))
			geonn_connection_violation("a device of an unknown kind");
		put_device(&message.device_status, true, result);
	}
}

Datum
geonn_device_status(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = geonn_rows_begin(fcinfo, DEVICE_COLUMNS);
	GeonnConnection *connection = geonn_connection_open_running();

	if (connection == NULL)
	{
		struct geonn_device_status *known = palloc(GEONN_DEVICES_MAX * sizeof(*known));
		int			count = known_devices_read(known);

		for (int i = 0; i < count; i++)
			put_device(&known[i], false, result);
	}
	else
	{
		put_running_devices(connection, result);
		geonn_connection_close(connection);
	}
	return (Datum) 0;
}

/* ---- geonn_engine_start() ---- */

/* Connects as a join does: starts the engine if none runs, waits for it, and raises the same errors. */
Datum
geonn_engine_start(PG_FUNCTION_ARGS pg_attribute_unused())
{
	GeonnConnection *connection;

	geonn_check_may_search();
	connection = geonn_connection_open();
	geonn_connection_close(connection);
	PG_RETURN_INT32(connection->engine_pid);
}
