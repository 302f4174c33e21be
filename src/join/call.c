/*
 * call.c
 *		A call of a join, as the views and the log show it.
 *
 * A call is one call of a function by a statement, or one execution of its plan node.
 * Sessions tell the engine when the call begins and when their part has ended; the engine
 * counts the rest (engine/calls/calls.c says why), and geonn_stat_progress and geonn_stat
 * show it (watch/stat.c).  The texts of queries stay here: they may contain secrets.  The
 * process that began the call writes the line of the log.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

#include "join/call.h"
#include "base/settings.h"

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
	struct geonn_call message = {
		.pid = call->pid,
		.role = GetSessionUserId(),
		.number = call->number,
		.microseconds = (uint64) (geonn_milliseconds_since(call->begun) * 1000),
		.expected = expected,
		.label = *label
	};

	return message;
}

/*
 * Estimate the rows of one table without its children; -1: not a table, or it is locked.
 */
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

/*
 * The name of a side: that of a relation, with its schema, or the kind of
 * source.
 */
static const char *
side_name(const PointSource *source)
{
	if (source == NULL)
		return "arrays";
	return OidIsValid(source->relation) ? source->quoted_name : source->title;
}

void
geonn_call_log(const GeonnCall *call, const struct geonn_call_label *label,
			   const PointSource *observations, const PointSource *references,
			   const GeonnReport *report)
{
	double		duration;

	if (geonn_log_min_duration < 0 || call->pid != MyProcPid)
		return;
	duration = geonn_milliseconds_since(call->begun);
	if (duration < geonn_log_min_duration)
		return;
	ereport(LOG,
			(errmsg("duration: %.3f ms  %s(%s, %s%s%s): rows=%llu observations=%llu skipped=%llu unmatched=%llu references=%llu%s batches=%llu reading references=%.3f ms building=%.3f ms reading observations=%.3f ms waiting=%.3f ms",
					duration, label->function, side_name(observations), side_name(references),
					label->arguments[0] != '\0' ? ", " : "", label->arguments,
					(unsigned long long) report->rows,
					(unsigned long long) report->observations,
					(unsigned long long) report->observations_skipped,
					(unsigned long long) report->unmatched,
					(unsigned long long) report->references,
					report->references_kept ? " (kept)" : "",
					(unsigned long long) report->work.batches,
					report->preparing, report->work.building, report->reading,
					report->work.waiting),
			 errhidestmt(true)));
}
