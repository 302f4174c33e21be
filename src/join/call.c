/*
 * call.c
 *		A call of a join, as the views and EXPLAIN ANALYZE show it.
 *
 * A call is one call of a function by a statement, or one execution of its plan node.
 * Sessions tell the engine when the call begins and when their part has ended; the engine
 * counts the rest (engine/calls/calls.c says why), and geonn_stat_progress and geonn_stat
 * show it (watch/stat.c).  The texts of queries stay here: they may contain secrets.
 *
 * Times are sums over all processes.  While a process waits for the engine it
 * does nothing else: where it waits long, the devices bound the statement, and
 * where it waits little, reading and PostgreSQL's other nodes do.
 */
#include "postgres.h"

#include <math.h>

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/explain.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "optimizer/plancat.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "base/settings.h"
#include "base/words.h"
#include "join/call.h"

/* ---- the call ---- */

void
geonn_call_begin(GeonnCall *call)
{
	static uint64 calls = 0;

	call->pid = MyProcPid;
	call->number = ++calls;
	INSTR_TIME_SET_CURRENT(call->begun);
}

void
geonn_call_describe(struct geonn_call_label *label, Oid observations, Oid references,
					const char *function, const char *arguments)
{
	static const char more[] = "...";
	int			length = strlen(arguments);

	memset(label, 0, sizeof(*label));
	label->database = MyDatabaseId;
	label->user = GetUserId();
	label->observations = observations;
	label->references = references;
	strlcpy(label->function, function, sizeof(label->function));
	if (length < GEONN_ARGUMENTS_BYTES)
		memcpy(label->arguments, arguments, length);
	else
	{
		length = pg_mbcliplen(arguments, length, GEONN_ARGUMENTS_BYTES - sizeof(more));
		memcpy(label->arguments, arguments, length);
		memcpy(label->arguments + length, more, sizeof(more));
	}
}

double
geonn_milliseconds_since(instr_time begun)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, begun);
	return INSTR_TIME_GET_MILLISEC(now);
}

struct geonn_call
geonn_call_message(const GeonnCall *call, const struct geonn_call_label *label,
				   uint64 expected)
{
	const PGPROC *leader = MyProc->lockGroupLeader;
	struct geonn_call message = {
		.pid = call->pid,
		.role = GetSessionUserId(),
		.leader = leader == NULL || leader == MyProc ? 0 : leader->pid,
		.number = call->number,
		.microseconds = (uint64) (geonn_milliseconds_since(call->begun) * 1000),
		.expected = expected,
		.label = *label
	};

	return message;
}

/* Estimate the rows of one table, without its children; -1: it is no table, or another transaction has locked it. */
static double
expected_of_table(Oid table)
{
	Relation	relation;
	BlockNumber pages;
	double		tuples = -1;
	double		all_visible;

	/* do not wait for a lock */
	if (!ConditionalLockRelationOid(table, AccessShareLock))
		return -1;
	relation = try_relation_open(table, NoLock);
	if (relation == NULL)
	{
		UnlockRelationOid(table, AccessShareLock);
		return -1;
	}
	if (relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		tuples = 0;
	else if (relation->rd_rel->relkind == RELKIND_RELATION ||
			 relation->rd_rel->relkind == RELKIND_MATVIEW)
		estimate_rel_size(relation, NULL, &pages, &tuples, &all_visible);
	relation_close(relation, AccessShareLock);
	return tuples;
}

uint64
geonn_call_expected(const PointSource *source)
{
	double		rows = 0;
	ListCell   *cell;

	if (!OidIsValid(source->relation))
		return 0;
	foreach(cell, find_all_inheritors(source->relation, NoLock, NULL))
	{
		double		tuples = expected_of_table(lfirst_oid(cell));

		if (tuples < 0)
			return 0;
		rows += tuples;
	}
	return (uint64) rows;
}

/* ---- what its searches have done ---- */

static void
add_fates(GeonnFate *sum, const GeonnFate *fates)
{
	for (int i = 0; i < GEONN_FATES_MAX && fates[i].name != NULL; i++)
	{
		sum[i].name = fates[i].name;
		sum[i].taken |= fates[i].taken;
		if (fates[i].refused != NULL)
			sum[i].refused = fates[i].refused;
	}
}

void
geonn_report_add(GeonnReport *sum, const GeonnReport *report)
{
	add_fates(sum->fates, report->fates);
	sum->references = Max(sum->references, report->references);
	sum->references_skipped = Max(sum->references_skipped, report->references_skipped);
	sum->references_kept |= report->references_kept;
	sum->read_reason = Max(sum->read_reason, report->read_reason);
	sum->kept_bytes = Max(sum->kept_bytes, report->kept_bytes);
	sum->references_named |= report->references_named;
	if (report->alone)
	{
		sum->alone = true;
		sum->difference.pages_read += report->difference.pages_read;
		sum->difference.masked = Max(sum->difference.masked, report->difference.masked);
		sum->difference.added = Max(sum->difference.added, report->difference.added);
	}
	sum->observations += report->observations;
	sum->observations_skipped += report->observations_skipped;
	sum->unmatched += report->unmatched;
	sum->rows += report->rows;
	sum->preparing += report->preparing;
	sum->reading += report->reading;
	geonn_work_add(&sum->work, report->work);
}

static List *
names_of_bits(uint64 bits, const char *(*name) (int number))
{
	List	   *names = NIL;

	for (int i = 0; i < 64; i++)
	{
		if (bits & (UINT64CONST(1) << i))
			names = lappend(names, unconstify(char *, name(i)));
	}
	return names;
}

static const char *
algorithm_name(int number)
{
	return number == GEONN_ALGORITHM_INDEX ? "index" :
		number == GEONN_ALGORITHM_BRUTE ? "brute" : "none";
}

static const char *
device_name(int number)
{
	return number == 0 ? "CPU" : psprintf("GPU %d", number);
}

List *
geonn_device_names(uint64 devices)
{
	return names_of_bits(devices, device_name);
}

static void
explain_names(const char *label, List *names, ExplainState *explain)
{
	if (names != NIL)
		ExplainPropertyList(label, names, explain);
}

/* Return a number of bytes in kB, MB or GB, rounded up to a tenth. */
static char *
size_text(uint64 bytes)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB"};
	double		size = (double) bytes / 1024;
	int			unit = 0;

	for (; size >= 1024 && unit < (int) lengthof(units) - 1; unit++)
		size /= 1024;
	size = ceil(size * 10) / 10;
	return psprintf("%.*f %s", size == floor(size) ? 0 : 1, size, units[unit]);
}

char *
geonn_read_reason_text(GeonnReadReason reason, uint64 bytes)
{
	char	   *limit = size_text((uint64) geonn_kept_memory_limit * 1024 * 1024);

	switch (reason)
	{
		case GEONN_READ_UNKNOWN:
			return NULL;
		case GEONN_READ_FIRST:
			return psprintf("read now, %s are kept for the next call", size_text(bytes));
		case GEONN_READ_NO_KEEPING:
			return pstrdup("geonn.kept_memory_limit is 0");
		case GEONN_READ_NO_TABLE:
			return pstrdup("they are not the rows of one table");
		case GEONN_READ_CAPACITIES:
			return pstrdup("their capacities are checked at each call");
		case GEONN_READ_NO_LABEL:
			return pstrdup("their table is being changed, or is temporary, unlogged or on a standby");
		case GEONN_READ_TOO_LARGE:
			return psprintf("needs %s, geonn.kept_memory_limit is %s", size_text(bytes), limit);
		case GEONN_READ_NO_ROOM:
			return psprintf("needs %s, and what is in use leaves too little of geonn.kept_memory_limit, which is %s", size_text(bytes),
							limit);
	}
	pg_unreachable();
}

/* Have EXPLAIN show whether the engine had kept the references, and if not, why. */
static void
explain_kept(const GeonnReport *sum, ExplainState *explain)
{
	char	   *reason = sum->references_kept ? NULL : geonn_read_reason_text(sum->read_reason, sum->kept_bytes);

	if (reason != NULL && explain->format == EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyText("References Kept", psprintf("false (%s)", reason), explain);
		return;
	}
	ExplainPropertyBool("References Kept", sum->references_kept, explain);
	if (reason != NULL)
		ExplainPropertyText("References Not Kept", reason, explain);
}

/* ---- which fate, which way, and why ---- */

/* a property of EXPLAIN, and a line of DEBUG2 */
typedef struct WayProperty
{
	const char *label;
	List	   *values;			/* char *; NIL: it is not shown */
} WayProperty;

#define WAY_PROPERTIES 4

static const char *
cpu_way_words(int way)
{
	return psprintf("CPU %s", geonn_way_words(way));
}

static const char *
gpu_way_words(int way)
{
	return psprintf("GPU %s", geonn_way_words(way));
}

static void
get_way_properties(const GeonnReport *sum, WayProperty *properties)
{
	List	   *taken = NIL;
	List	   *refused = NIL;

	for (int i = 0; i < GEONN_FATES_MAX; i++)
	{
		const GeonnFate *fate = &sum->fates[i];

		if (fate->taken)
			taken = lappend(taken, pstrdup(fate->name));
		if (fate->refused != NULL)
			refused = lappend(refused, psprintf("%s (%s)", fate->name, fate->refused));
	}
	properties[0] = (WayProperty) {"References Fate", taken};
	properties[1] = (WayProperty) {"Fates Not Taken", refused};
	properties[2] = (WayProperty) {"Ways", list_concat(names_of_bits(sum->work.ways[GEONN_KIND_CPU], cpu_way_words),
													   names_of_bits(sum->work.ways[GEONN_KIND_CUDA], gpu_way_words))};
	properties[3] = (WayProperty) {"Left to the CPU", names_of_bits(sum->work.cpu_reasons, geonn_cpu_reason_words)};
}

char *
geonn_report_ways_text(const GeonnReport *sum)
{
	WayProperty properties[WAY_PROPERTIES];
	StringInfoData text;

	get_way_properties(sum, properties);
	initStringInfo(&text);
	for (int i = 0; i < WAY_PROPERTIES; i++)
		if (properties[i].values != NIL)
			appendStringInfo(&text, "%s%s: %s", text.len > 0 ? "\n" : "", properties[i].label,
							 geonn_list_names(properties[i].values, "", NULL));
	return text.data;
}

void
geonn_report_explain(const GeonnReport *sum, ExplainState *explain)
{
	WayProperty properties[WAY_PROPERTIES];

	explain_names("Algorithm", names_of_bits(sum->work.algorithms, algorithm_name), explain);
	explain_names("Devices", geonn_device_names(sum->work.devices), explain);
	ExplainPropertyInteger("Batches", NULL, (int64) sum->work.batches, explain);
	ExplainPropertyInteger("References Read", NULL, (int64) sum->references, explain);
	ExplainPropertyInteger("References Skipped", NULL, (int64) sum->references_skipped, explain);
	if (sum->alone)
	{
		ExplainPropertyInteger("Pages Read", NULL, (int64) sum->difference.pages_read, explain);
		ExplainPropertyInteger("References Masked", NULL, (int64) sum->difference.masked, explain);
		ExplainPropertyInteger("References Added", NULL, (int64) sum->difference.added, explain);
	}
	ExplainPropertyInteger("Observations Skipped", NULL, (int64) sum->observations_skipped,
						   explain);
	ExplainPropertyInteger("Observations Unmatched", NULL, (int64) sum->unmatched, explain);
	if (explain->timing)
	{
		explain_kept(sum, explain);
		ExplainPropertyBool("References Named", sum->references_named, explain);
		ExplainPropertyFloat("References Reading Time", "ms", sum->preparing, 3, explain);
		ExplainPropertyFloat("Dataset Build Time", "ms", sum->work.building, 3, explain);
		ExplainPropertyFloat("Observations Reading Time", "ms", sum->reading, 3, explain);
		ExplainPropertyFloat("Engine Waiting Time", "ms", sum->work.waiting, 3, explain);
	}
	if (explain->verbose)
	{
		get_way_properties(sum, properties);
		for (int i = 0; i < WAY_PROPERTIES; i++)
			explain_names(properties[i].label, properties[i].values, explain);
	}
}

void
geonn_report_explain_processes(const GeonnReport *reports, int processes, ExplainState *explain)
{
	ExplainOpenGroup("Processes", "Processes", true, explain);
	for (int i = 0; i < processes; i++)
	{
		const GeonnReport *report = &reports[i];
		char	   *name = i == 0 ? pstrdup("Leader") : psprintf("Worker %d", i - 1);
		StringInfoData text;

		initStringInfo(&text);
		appendStringInfo(&text, "batches: %llu, observations: %llu",
						 (unsigned long long) report->work.batches,
						 (unsigned long long) report->observations);
		if (explain->timing)
			appendStringInfo(&text, ", reading: %.3f ms, waiting: %.3f ms", report->reading,
							 report->work.waiting);
		ExplainPropertyText(name, text.data, explain);
	}
	ExplainCloseGroup("Processes", "Processes", true, explain);
}

void
geonn_reports_take(ProcessReports *taken, GeonnReport *shared, int count, GeonnReport *sum,
				   MemoryContext context)
{
	if (taken->count < count)
	{
		GeonnReport *reports = MemoryContextAllocZero(context, count * sizeof(GeonnReport));

		if (taken->count > 0)
			memcpy(reports, taken->reports, taken->count * sizeof(GeonnReport));
		taken->reports = reports;
		taken->count = count;
	}
	for (int i = 1; i < count; i++)
	{
		geonn_report_add(&taken->reports[i], &shared[i]);
		geonn_report_add(sum, &shared[i]);
	}
	memset(shared, 0, count * sizeof(GeonnReport));
}
