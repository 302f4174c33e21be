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
	uint64		references;		/* how many the dataset has */
	uint64		references_skipped; /* how many were left out for their NULLs or coordinates */
	bool		references_kept;	/* the engine kept the references, so they were not read */
	bool		references_named;	/* the result needs the references' ids */
	int			reference_workers;	/* the greatest number of parallel workers that helped to read them */
	uint64		observations;	/* how many were read */
	uint64		observations_skipped;	/* how many were left out for their NULLs or coordinates */
	uint64		unmatched;		/* how many others have no neighbour */
	uint64		rows;			/* how many rows of the result were taken */
	GeonnWork	work;
	double		preparing;		/* ms that passed until the references were sealed */
	double		reading;		/* ms that were spent reading observations */
} GeonnReport;

/* what processes that search together have done */
typedef struct ProcessReports
{
	int			count;			/* 0: one process searches alone */
	GeonnReport *reports;		/* [count], the leader's first */
} ProcessReports;

/*
 * Take the workers' reports out of shared memory, which has [count] reports, and add them to *taken and to
 * the sum.  Workers may be more than the last time, if shared memory was scarce then; what is
 * allocated lives as long as the memory context.
 */
extern void geonn_reports_take(ProcessReports *taken, GeonnReport *shared, int count,
							   GeonnReport *sum, MemoryContext context);

/* The names, of char *, of the devices whose bits are set, by their numbers in geonn_devices. */
extern List *geonn_device_names(uint64 devices);

/* Add the report of another search with the same references. */
extern void geonn_report_add(GeonnReport *sum, const GeonnReport *report);

/* Have EXPLAIN show the sum; and each process's report, the leader's first. */
extern void geonn_report_explain(const GeonnReport *sum, struct ExplainState *explain);
extern void geonn_report_explain_processes(const GeonnReport *reports, int processes,
										   struct ExplainState *explain);

#endif							/* GEONN_REPORT_H */
