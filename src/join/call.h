/*
 * call.h
 *		A call of a join, as the views and EXPLAIN ANALYZE show it.
 */
#ifndef GEONN_CALL_H
#define GEONN_CALL_H

#include "portability/instr_time.h"

#include "client/client.h"
#include "points/columns.h"

/* A call.  Processes that search together share one call. */
typedef struct GeonnCall
{
	int32		pid;			/* the process that began the call; 0: the call has not begun */
	uint64		number;			/* the call's number among the calls of that process */
	instr_time	begun;
} GeonnCall;

/* the header of this struct differs between releases */
struct ExplainState;

/* why a call has read the references */
typedef enum GeonnReadReason
{
	GEONN_READ_UNKNOWN,			/* another process has read them, or none */
	GEONN_READ_FIRST,			/* the engine keeps them from now on */
	GEONN_READ_NO_KEEPING,
	GEONN_READ_NO_TABLE,
	GEONN_READ_CAPACITIES,
	GEONN_READ_NO_LABEL,
	GEONN_READ_TOO_LARGE,
	GEONN_READ_NO_ROOM
} GeonnReadReason;

/* The differences between a table and the base that this process has of it. */
typedef struct TableDifference
{
	uint64		pages_read;		/* how many pages the last look has read */
	uint64		masked;			/* how many rows of the base are no longer in the table */
	uint64		added;			/* how many rows the table has that are not in the base */
	uint64		added_now;		/* how many of the added rows came with the last look */
	uint64		compared;		/* a search compares at most this many masked rows, added rows and free places */
} TableDifference;

/* the greatest number of fates that references can have (reference_fate.h) */
#define GEONN_FATES_MAX 8

/* a fate that was tried; its texts are constants of this process */
typedef struct GeonnFate
{
	const char *name;			/* NULL: it was not tried, as another one was taken before */
	bool		taken;			/* by some of the calls */
	const char *refused;		/* why not by the last of the others; NULL: all have taken it */
} GeonnFate;

/* what searches have done */
typedef struct GeonnReport
{
	GeonnFate	fates[GEONN_FATES_MAX]; /* of the references, in the order of trying; empty where another process has them */
	uint64		references;		/* how many the dataset has */
	uint64		references_skipped; /* how many were left out because of NULLs or coordinates */
	bool		references_kept;	/* the engine had kept the references, so this process did not read them */
	GeonnReadReason read_reason;	/* if not: why */
	uint64		kept_bytes;		/* how many bytes the engine would keep, or keeps from now on; 0: not known */
	bool		references_named;	/* the result needs the references' ids */
	bool		alone;			/* this process answered the observations by itself, by the references that it knows */
	TableDifference difference; /* if so */
	uint64		observations;	/* how many were read */
	uint64		observations_skipped;	/* how many were left out because of NULLs or coordinates */
	uint64		unmatched;		/* valid ones without a neighbour */
	uint64		rows;			/* how many result rows were returned */
	GeonnWork	work;
	double		preparing;		/* ms from the beginning until the references were sealed */
	double		reading;		/* ms that were spent reading observations */
} GeonnReport;

/* The reports of the processes that share a search. */
typedef struct ProcessReports
{
	int			count;			/* 0: one process searches alone */
	GeonnReport *reports;		/* [count], the leader's first */
} ProcessReports;

/* Return how many milliseconds have passed since this time. */
extern double geonn_milliseconds_since(instr_time begun);

/* Begin a call of this process. */
extern void geonn_call_begin(GeonnCall *call);

/*
 * Fill in the label of a call: its relations (InvalidOid: none), the function's name and its arguments.
 * A long text is cut.
 */
extern void geonn_call_describe(struct geonn_call_label *label, Oid observations,
								Oid references, const char *function,
								const char *arguments);

/* Make the message that tells the engine of the call.  expected: the number of observations, or 0: not known. */
extern struct geonn_call geonn_call_message(const GeonnCall *call,
											const struct geonn_call_label *label,
											uint64 expected);

/* Return the number of rows in the source, as the planner would estimate it for a table; 0 if the source is no table. */
extern uint64 geonn_call_expected(const PointSource *source);

/*
 * Add the workers' reports in shared, [count], to *taken and to the sum, and clear shared.  If *taken has
 * fewer reports than count, as after a shortage of shared memory, it grows, in the memory context.
 */
extern void geonn_reports_take(ProcessReports *taken, GeonnReport *shared, int count,
							   GeonnReport *sum, MemoryContext context);

/* Return the names (char *) of the devices whose bits are set; bit i is the device with number i in geonn_devices. */
extern List *geonn_device_names(uint64 devices);

/* Add the report of another search with the same references to the sum. */
extern void geonn_report_add(GeonnReport *sum, const GeonnReport *report);

/*
 * Say in words why this process has read the references, which need so many bytes while they are kept.
 * Returns NULL if the reason is not known.
 */
extern char *geonn_read_reason_text(GeonnReadReason reason, uint64 bytes);

/* Say in lines which fates the references had, which ways the devices went, and why, as EXPLAIN (ANALYZE, VERBOSE) does. */
extern char *geonn_report_ways_text(const GeonnReport *sum);

/* Have EXPLAIN show the sum of all processes; and each process's report, the leader's first. */
extern void geonn_report_explain(const GeonnReport *sum, struct ExplainState *explain);
extern void geonn_report_explain_processes(const GeonnReport *reports, int processes,
										   struct ExplainState *explain);

#endif							/* GEONN_CALL_H */
