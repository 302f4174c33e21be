/*
 * stat.c
 *		geonn_stat_progress, geonn_stat and geonn_stat_reset(): joins under way,
 *		and those that have ended.
 *
 * The engine keeps the figures (calls.c there) under labels, which hold
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
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "client/connection.h"
#include "client/engine_list.h"
#include "base/result.h"
#include "base/words.h"
#include "common/protocol.h"
#include "join/call.h"
#include "join/join_prepare.h"

PG_FUNCTION_INFO_V1(geonn_progress);
PG_FUNCTION_INFO_V1(geonn_statistics);
PG_FUNCTION_INFO_V1(geonn_stat_reset);

/* columns of the views */
#define PROGRESS_COLUMNS	16
#define STATISTICS_COLUMNS	31

static const char *const phase_names[GEONN_PHASES] = {
	[GEONN_PHASE_OBSERVATIONS] = "reading observations",
	[GEONN_PHASE_QUEUED] = "waiting for a session",
	[GEONN_PHASE_REFERENCES] = "reading references",
	[GEONN_PHASE_SORTING] = "sorting references",
	[GEONN_PHASE_WAITING] = "waiting for a device",
	[GEONN_PHASE_BUILDING] = "building",
	[GEONN_PHASE_SEARCHING] = "searching"
};

/* ---- labels ---- */

/* Add a relation's OID, and its name if the relation is in this database and still exists. */
static void
add_relation(Row *row, Oid relation, bool may_know, bool is_here)
{
	char	   *name = may_know && is_here ? get_rel_name(relation) : NULL;
	char	   *schema = name != NULL ? get_namespace_name(get_rel_namespace(relation)) : NULL;

	row_add(row, ObjectIdGetDatum(relation), !may_know || !OidIsValid(relation));
	row_add_text(row, schema == NULL ? NULL : quote_qualified_identifier(schema, name));
}

/*
 * Add the columns of a label, with NULLs for those that this user may not see.
 */
static void
add_label(Row *row, const struct geonn_call_label *label)
{
	bool		may_know = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		has_privs_of_role(GetUserId(), label->user);
	bool		is_here = label->database == MyDatabaseId;

	row_add(row, ObjectIdGetDatum(label->database), false);
	row_add(row, ObjectIdGetDatum(label->user), false);
	row_add_text(row, label->function);
	add_relation(row, label->observations, may_know, is_here);
	add_relation(row, label->references, may_know, is_here);
	row_add_text(row, may_know && is_here ? label->arguments : NULL);
}

/* Check the texts of a label: any backend's module may have sent them to the engine. */
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

Datum
geonn_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = geonn_rows_begin(fcinfo, PROGRESS_COLUMNS);
	struct geonn_listed listed = {0};
	struct geonn_call_status *calls = geonn_engine_list(GEONN_LIST_CALLS, sizeof(*calls), &listed);

	for (uint64 i = 0; i < listed.entries; i++)
	{
		const struct geonn_call_status *call = &calls[i];
		Row			row = {0};

		check_label(&call->label);
		if (call->phase >= GEONN_PHASES)
			geonn_connection_violation("a call in an unknown phase");
		row_add(&row, Int32GetDatum(call->pid), false);
		row_add(&row, Int32GetDatum(call->sessions), false);
		add_label(&row, &call->label);
		row_add_text(&row, phase_names[call->phase]);
		row_add_number(&row, call->observations);
		row_add(&row, Int64GetDatum((int64) call->expected), call->expected == 0);
		row_add_number(&row, call->references);
		row_add_text(&row, call->devices == 0 ? NULL :
					 geonn_list_names(geonn_device_names(call->devices), "", NULL));
		row_add_time(&row, call->started_at, call->started_at == 0);
		row_put(&row, result);
	}
	return (Datum) 0;
}

/* ---- geonn_stat ---- */

/* Add the total milliseconds, and the milliseconds of each phase. */
static void
add_times(Row *row, const uint64 *microseconds)
{
	static const enum geonn_phase shown[] = {
		GEONN_PHASE_QUEUED, GEONN_PHASE_REFERENCES, GEONN_PHASE_SORTING, GEONN_PHASE_BUILDING,
		GEONN_PHASE_SEARCHING, GEONN_PHASE_WAITING, GEONN_PHASE_OBSERVATIONS
	};
	uint64		total = 0;

	StaticAssertStmt(lengthof(shown) == GEONN_PHASES, "another number of phases");
	for (int phase = 0; phase < GEONN_PHASES; phase++)
		total += microseconds[phase];
	row_add(row, Float8GetDatum(total / 1000.0), false);
	for (int i = 0; i < (int) lengthof(shown); i++)
		row_add(row, Float8GetDatum(microseconds[shown[i]] / 1000.0), false);
}

/* Add the last error.  Its text is the engine's own, about memory, devices and the like, so it contains no user's data. */
static void
add_last_error(Row *row, const struct geonn_statistics *sum)
{
	if (memchr(sum->last_error, '\0', sizeof(sum->last_error)) == NULL)
		geonn_connection_violation("an error with a malformed text");
	row_add_text(row, sum->last_error_at != 0 && pg_is_ascii(sum->last_error) ? sum->last_error : NULL);
	row_add_time(row, sum->last_error_at, sum->last_error_at == 0);
}

Datum
geonn_statistics(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = geonn_rows_begin(fcinfo, STATISTICS_COLUMNS);
	struct geonn_listed listed = {0};
	struct geonn_statistics *sums;

	geonn_count_own_calls();
	sums = geonn_engine_list(GEONN_LIST_STATISTICS, sizeof(*sums), &listed);

	for (uint64 i = 0; i < listed.entries; i++)
	{
		const struct geonn_statistics *sum = &sums[i];
		Row			row = {0};

		check_label(&sum->label);
		add_label(&row, &sum->label);
		row_add_number(&row, sum->calls);
		row_add_number(&row, sum->failed);
		row_add_number(&row, sum->rows);
		row_add_number(&row, sum->observations);
		row_add_number(&row, sum->observations_skipped);
		row_add_number(&row, sum->unmatched);
		row_add_number(&row, sum->references);
		row_add_number(&row, sum->references_skipped);
		row_add_number(&row, sum->kept);
		row_add_number(&row, sum->batches);
		row_add_number(&row, sum->bytes);
		row_add_number(&row, sum->fallbacks);
		add_times(&row, sum->microseconds);
		add_last_error(&row, sum);
		row_add_time(&row, listed.since, false);
		row_put(&row, result);
	}
	return (Datum) 0;
}

Datum
geonn_stat_reset(PG_FUNCTION_ARGS pg_attribute_unused())
{
	struct geonn_listed listed;

	geonn_count_own_calls();
	(void) geonn_engine_list(GEONN_LIST_RESET, sizeof(struct geonn_statistics), &listed);
	PG_RETURN_VOID();
}
