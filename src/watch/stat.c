/*
 * stat.c
 *		geonn_stat_progress, geonn_stat and geonn_stat_reset(): joins under way,
 *		and those that have ended.
 *
 * The engine keeps the figures (calls.c and statistics.c there) under labels, which hold
 * OIDs of databases, users and relations; this file looks up their names.  Names are in
 * the catalogs of the label's database, so a label of another database is shown without
 * names, as in pg_locks.  Its texts are not shown either, since they may be in another
 * encoding.  Relations, by name and OID, and texts of other users' calls are shown to
 * members of pg_read_all_stats only.
 *
 * The views start no engine: while none runs, they are empty.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "common/string.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "client/connection.h"
#include "client/engine_list.h"
#include "common/protocol.h"
#include "join/report.h"
#include "base/result.h"

PG_FUNCTION_INFO_V1(geonn_progress);
PG_FUNCTION_INFO_V1(geonn_statistics);
PG_FUNCTION_INFO_V1(geonn_stat_reset);

enum progress_column
{
	PROGRESS_PID,
	PROGRESS_SESSIONS,
	PROGRESS_LABEL,				/* columns of the label */
	PROGRESS_PHASE = PROGRESS_LABEL + 8,
	PROGRESS_OBSERVATIONS_DONE,
	PROGRESS_OBSERVATIONS_EXPECTED,
	PROGRESS_REFERENCES,
	PROGRESS_DEVICE,
	PROGRESS_STARTED_AT,
	PROGRESS_COLUMNS
};

enum label_column
{
	LABEL_DATABASE,
	LABEL_USER,
	LABEL_FUNCTION,
	LABEL_OBSERVATIONS,
	LABEL_OBSERVATIONS_NAME,
	LABEL_REFERENCES,
	LABEL_REFERENCES_NAME,
	LABEL_ARGUMENTS,
	LABEL_COLUMNS
};

StaticAssertDecl((int) PROGRESS_PHASE == (int) PROGRESS_LABEL + (int) LABEL_COLUMNS,
				 "a label has other columns");

enum statistics_column
{
	STATISTICS_LABEL,
	STATISTICS_CALLS = STATISTICS_LABEL + LABEL_COLUMNS,
	STATISTICS_FAILED,
	STATISTICS_ROWS,
	STATISTICS_OBSERVATIONS,
	STATISTICS_OBSERVATIONS_SKIPPED,
	STATISTICS_UNMATCHED,
	STATISTICS_REFERENCES,
	STATISTICS_REFERENCES_SKIPPED,
	STATISTICS_REFERENCES_KEPT,
	STATISTICS_BATCHES,
	STATISTICS_BYTES,
	STATISTICS_FALLBACKS,
	STATISTICS_TOTAL_TIME,
	STATISTICS_QUEUED_TIME,
	STATISTICS_REFERENCES_TIME,
	STATISTICS_SORTING_TIME,
	STATISTICS_BUILDING_TIME,
	STATISTICS_SEARCHING_TIME,
	STATISTICS_WAITING_TIME,
	STATISTICS_OBSERVATIONS_TIME,
	STATISTICS_LAST_ERROR,
	STATISTICS_LAST_ERROR_AT,
	STATISTICS_SINCE,
	STATISTICS_COLUMNS
};

/* a result row: every column is NULL until it is set */
typedef struct Row
{
	Datum		values[STATISTICS_COLUMNS];
	bool		nulls[STATISTICS_COLUMNS];
} Row;

StaticAssertDecl((int) STATISTICS_COLUMNS >= (int) PROGRESS_COLUMNS,
				 "a row is too short");

static const char *const phase_names[GEONN_PHASES] = {
	[GEONN_PHASE_OBSERVATIONS] = "reading observations",
	[GEONN_PHASE_QUEUED] = "waiting for a session",
	[GEONN_PHASE_REFERENCES] = "reading references",
	[GEONN_PHASE_SORTING] = "sorting references",
	[GEONN_PHASE_WAITING] = "waiting for a device",
	[GEONN_PHASE_BUILDING] = "building",
	[GEONN_PHASE_SEARCHING] = "searching"
};

static void
set_value(Row *row, int column, Datum value)
{
	row->values[column] = value;
	row->nulls[column] = false;
}

static void
set_count(Row *row, int column, uint64 count)
{
	set_value(row, column, Int64GetDatum((int64) count));
}

static void
set_text(Row *row, int column, const char *text)
{
	set_value(row, column, CStringGetTextDatum(text));
}

/* ---- labels ---- */

/*
 * The name of a relation of this database, if it still exists.
 */
static void
set_relation(Row *row, int column, Oid relation)
{
	char	   *name = get_rel_name(relation);
	char	   *schema = name != NULL ? get_namespace_name(get_rel_namespace(relation)) : NULL;

	if (schema != NULL)
		set_text(row, column, quote_qualified_identifier(schema, name));
}

/*
 * Set a row's columns from first on from the label, except what this user may not see.
 */
static void
set_label(Row *row, int first, const struct geonn_call_label *label)
{
	bool		may_know = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		has_privs_of_role(GetUserId(), label->user);

	set_value(row, first + LABEL_DATABASE, ObjectIdGetDatum(label->database));
	set_value(row, first + LABEL_USER, ObjectIdGetDatum(label->user));
	set_text(row, first + LABEL_FUNCTION, label->function);
	if (!may_know)
		return;
	if (OidIsValid(label->observations))
		set_value(row, first + LABEL_OBSERVATIONS, ObjectIdGetDatum(label->observations));
	if (OidIsValid(label->references))
		set_value(row, first + LABEL_REFERENCES, ObjectIdGetDatum(label->references));
	if (label->database != MyDatabaseId)
		return;
	set_relation(row, first + LABEL_OBSERVATIONS_NAME, label->observations);
	set_relation(row, first + LABEL_REFERENCES_NAME, label->references);
	set_text(row, first + LABEL_ARGUMENTS, label->arguments);
}

/*
 * The texts come from modules like this one, but by way of the engine: check them
 * all the same.
 */
static void
check_label(const struct geonn_call_label *label)
{
	if (memchr(label->function, '\0', sizeof(label->function)) == NULL ||
		memchr(label->arguments, '\0', sizeof(label->arguments)) == NULL ||
		!pg_is_ascii(label->function) ||
		(label->database == MyDatabaseId &&
		 !pg_verifymbstr(label->arguments, strlen(label->arguments), true)))
		geonn_connection_violation("a label with malformed texts");
}

/* ---- geonn_stat_progress ---- */

static void
set_devices(Row *row, uint64 devices)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < 64; i++)
	{
		if (devices & (UINT64CONST(1) << i))
			appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "", geonn_device_name(i));
	}
	if (text.len > 0)
		set_text(row, PROGRESS_DEVICE, text.data);
}

Datum
geonn_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	struct geonn_listed listed = {0};
	struct geonn_call_status *calls;

	InitMaterializedSRF(fcinfo, 0);
	geonn_require_columns(result->setDesc, PROGRESS_COLUMNS);
	calls = geonn_engine_list(GEONN_LIST_CALLS, sizeof(*calls), &listed);
	for (uint64 i = 0; i < listed.entries; i++)
	{
		const struct geonn_call_status *call = &calls[i];
		Row			row;

		memset(row.nulls, true, sizeof(row.nulls));
		check_label(&call->label);
		if (call->phase >= GEONN_PHASES)
			geonn_connection_violation("a call in an unknown phase");
		set_value(&row, PROGRESS_PID, Int32GetDatum(call->pid));
		set_value(&row, PROGRESS_SESSIONS, Int32GetDatum(call->sessions));
		set_label(&row, PROGRESS_LABEL, &call->label);
		set_text(&row, PROGRESS_PHASE, phase_names[call->phase]);
		set_count(&row, PROGRESS_OBSERVATIONS_DONE, call->observations);
		if (call->expected > 0)
			set_count(&row, PROGRESS_OBSERVATIONS_EXPECTED, call->expected);
		set_count(&row, PROGRESS_REFERENCES, call->references);
		set_devices(&row, call->devices);
		set_value(&row, PROGRESS_STARTED_AT,
				  TimestampTzGetDatum(geonn_timestamp_from_unix(call->started_at)));
		tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
	}
	return (Datum) 0;
}

/* ---- geonn_stat ---- */

static void
set_time(Row *row, int column, uint64 microseconds)
{
	set_value(row, column, Float8GetDatum(microseconds / 1000.0));
}

static void
set_times(Row *row, const uint64 *microseconds)
{
	uint64		total = 0;

	for (int phase = 0; phase < GEONN_PHASES; phase++)
		total += microseconds[phase];
	set_time(row, STATISTICS_TOTAL_TIME, total);
	set_time(row, STATISTICS_QUEUED_TIME, microseconds[GEONN_PHASE_QUEUED]);
	set_time(row, STATISTICS_REFERENCES_TIME, microseconds[GEONN_PHASE_REFERENCES]);
	set_time(row, STATISTICS_SORTING_TIME, microseconds[GEONN_PHASE_SORTING]);
	set_time(row, STATISTICS_BUILDING_TIME, microseconds[GEONN_PHASE_BUILDING]);
	set_time(row, STATISTICS_SEARCHING_TIME, microseconds[GEONN_PHASE_SEARCHING]);
	set_time(row, STATISTICS_WAITING_TIME, microseconds[GEONN_PHASE_WAITING]);
	set_time(row, STATISTICS_OBSERVATIONS_TIME, microseconds[GEONN_PHASE_OBSERVATIONS]);
}

/*
 * The last error is the engine's own text, about memory, devices and the like: it
 * contains no user's data.
 */
static void
set_last_error(Row *row, const struct geonn_statistics *sum)
{
	if (memchr(sum->last_error, '\0', sizeof(sum->last_error)) == NULL)
		geonn_connection_violation("an error with a malformed text");
	if (sum->last_error_at == 0)
		return;
	if (pg_is_ascii(sum->last_error))
		set_text(row, STATISTICS_LAST_ERROR, sum->last_error);
	set_value(row, STATISTICS_LAST_ERROR_AT,
			  TimestampTzGetDatum(geonn_timestamp_from_unix(sum->last_error_at)));
}

Datum
geonn_statistics(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	struct geonn_listed listed = {0};
	struct geonn_statistics *sums;

	InitMaterializedSRF(fcinfo, 0);
	geonn_require_columns(result->setDesc, STATISTICS_COLUMNS);
	sums = geonn_engine_list(GEONN_LIST_STATISTICS, sizeof(*sums), &listed);
	for (uint64 i = 0; i < listed.entries; i++)
	{
		const struct geonn_statistics *sum = &sums[i];
		Row			row;

		memset(row.nulls, true, sizeof(row.nulls));
		check_label(&sum->label);
		set_label(&row, STATISTICS_LABEL, &sum->label);
		set_count(&row, STATISTICS_CALLS, sum->calls);
		set_count(&row, STATISTICS_FAILED, sum->failed);
		set_count(&row, STATISTICS_ROWS, sum->rows);
		set_count(&row, STATISTICS_OBSERVATIONS, sum->observations);
		set_count(&row, STATISTICS_OBSERVATIONS_SKIPPED, sum->observations_skipped);
		set_count(&row, STATISTICS_UNMATCHED, sum->unmatched);
		set_count(&row, STATISTICS_REFERENCES, sum->references);
		set_count(&row, STATISTICS_REFERENCES_SKIPPED, sum->references_skipped);
		set_count(&row, STATISTICS_REFERENCES_KEPT, sum->kept);
		set_count(&row, STATISTICS_BATCHES, sum->batches);
		set_count(&row, STATISTICS_BYTES, sum->bytes);
		set_count(&row, STATISTICS_FALLBACKS, sum->fallbacks);
		set_times(&row, sum->microseconds);
		set_last_error(&row, sum);
		set_value(&row, STATISTICS_SINCE,
				  TimestampTzGetDatum(geonn_timestamp_from_unix(listed.since)));
		tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
	}
	return (Datum) 0;
}

Datum
geonn_stat_reset(PG_FUNCTION_ARGS pg_attribute_unused())
{
	struct geonn_listed listed;

	(void) geonn_engine_list(GEONN_LIST_RESET, sizeof(struct geonn_statistics), &listed);
	PG_RETURN_VOID();
}
