/*
 * report.h
 *		What searches have done, as EXPLAIN ANALYZE shows it.
 */
#ifndef GEONN_REPORT_H
#define GEONN_REPORT_H

#include "client/client.h"

/* the header of this struct differs between releases */
struct ExplainState;

typedef struct GeonnReport
{
	uint64		references;		/* in the dataset */
	uint64		references_skipped; /* left out for their NULLs or coordinates */
	bool		references_kept;	/* the engine kept them, so they were not read */
	bool		references_named;	/* the result needs their ids */
	int			reference_workers;	/* the most parallel workers that helped to read */
	uint64		observations;	/* read */
	uint64		observations_skipped;	/* left out for the same */
	uint64		unmatched;		/* other observations without a neighbour */
	uint64		rows;			/* rows of the result that were taken */
	GeonnWork	work;
	double		preparing;		/* ms for the references until they were sealed */
	double		reading;		/* ms for the observations */
} GeonnReport;

/* what processes that search together have done */
typedef struct ProcessReports
{
	int			count;			/* 0: one process searches alone */
	GeonnReport *reports;		/* [count], the leader's first */
} ProcessReports;

/*
 * Take the workers' reports out of those in shared memory, [count], and add them to these and to the
 * sum.  There may be more workers than the last time, if shared memory was scarce then; what is
 * allocated lives as long as the memory context.
 */
extern void geonn_reports_take(ProcessReports *taken, GeonnReport *shared, int count,
							   GeonnReport *sum, MemoryContext context);

/* A device's name, by its number in geonn_devices. */
extern const char *geonn_device_name(int number);

/* Add the report of another search with the same references. */
extern void geonn_report_add(GeonnReport *sum, const GeonnReport *report);

/* Show the sum; and each process's report, the leader's first. */
extern void geonn_report_explain(const GeonnReport *sum, struct ExplainState *explain);
extern void geonn_report_explain_processes(const GeonnReport *reports, int processes,
										   struct ExplainState *explain);

#endif							/* GEONN_REPORT_H */
