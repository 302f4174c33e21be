/*
 * report.c
 *		What searches have done, as EXPLAIN ANALYZE shows it.
 *
 * Times are sums over all processes.  While a process waits for the engine it
 * does nothing else: where it waits long, the devices bound the statement, and
 * where it waits little, reading and PostgreSQL's other nodes do.
 */
#include "postgres.h"

#include "commands/explain.h"
#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

#include "common/protocol.h"
#include "base/compat.h"
#include "join/report.h"

void
geonn_report_add(GeonnReport *sum, const GeonnReport *report)
{
	sum->references = Max(sum->references, report->references);
	sum->references_skipped = Max(sum->references_skipped, report->references_skipped);
	sum->references_kept |= report->references_kept;
	sum->references_named |= report->references_named;
	sum->reference_workers = Max(sum->reference_workers, report->reference_workers);
	sum->observations += report->observations;
	sum->observations_skipped += report->observations_skipped;
	sum->unmatched += report->unmatched;
	sum->rows += report->rows;
	sum->preparing += report->preparing;
	sum->reading += report->reading;
	sum->work.batches += report->work.batches;
	sum->work.pairs += report->work.pairs;
	sum->work.devices |= report->work.devices;
	sum->work.algorithms |= report->work.algorithms;
	sum->work.building += report->work.building;
	sum->work.waiting += report->work.waiting;
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

void
geonn_report_explain(const GeonnReport *sum, ExplainState *explain)
{
	explain_names("Algorithm", names_of_bits(sum->work.algorithms, algorithm_name), explain);
	explain_names("Devices", geonn_device_names(sum->work.devices), explain);
	ExplainPropertyInteger("Batches", NULL, (int64) sum->work.batches, explain);
	ExplainPropertyInteger("References Read", NULL, (int64) sum->references, explain);
	ExplainPropertyInteger("References Skipped", NULL, (int64) sum->references_skipped, explain);
	if (sum->reference_workers > 0)
		ExplainPropertyInteger("Reference Workers", NULL, sum->reference_workers, explain);
	ExplainPropertyInteger("Observations Skipped", NULL, (int64) sum->observations_skipped,
						   explain);
	ExplainPropertyInteger("Observations Unmatched", NULL, (int64) sum->unmatched, explain);
	if (explain->timing)
	{
		ExplainPropertyBool("References Kept", sum->references_kept, explain);
		ExplainPropertyBool("References Named", sum->references_named, explain);
		ExplainPropertyFloat("References Reading Time", "ms", sum->preparing, 3, explain);
		ExplainPropertyFloat("Dataset Build Time", "ms", sum->work.building, 3, explain);
		ExplainPropertyFloat("Observations Reading Time", "ms", sum->reading, 3, explain);
		ExplainPropertyFloat("Engine Waiting Time", "ms", sum->work.waiting, 3, explain);
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
