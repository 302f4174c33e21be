/*
 * report.h
 *		What searches have done, as EXPLAIN ANALYZE shows it.
 */
#ifndef GEONN_REPORT_H
#define GEONN_REPORT_H

#include "client/client.h"

/* its header differs between releases */
struct ExplainState;

typedef struct GeonnReport
{
	uint64		references;		/* in the dataset */
	uint64		references_skipped; /* for their NULLs or coordinates */
	bool		references_kept;	/* they were in the engine already, and not read */
	bool		references_recognised;	/* they were, as it was seen when they were read */
	bool		references_named;	/* their ids are of use */
	int			reference_workers;	/* that helped to read them, at most */
	uint64		observations;	/* read */
	uint64		observations_skipped;
	uint64		unmatched;		/* of the others: without a neighbour */
	uint64		rows;			/* of the result, as far as they were taken */
	GeonnWork	work;
	double		preparing;		/* ms for the references until they were sealed */
	double		reading;		/* ms for the observations */
} GeonnReport;

/* A device's name as geonn_devices numbers it. */
extern const char *geonn_device_name(int number);

/* Add what another search by the same references has done. */
extern void geonn_report_add(GeonnReport *sum, const GeonnReport *report);

/* Show it all; and what each process did, the leader first. */
extern void geonn_report_explain(const GeonnReport *sum, struct ExplainState *explain);
extern void geonn_report_explain_processes(const GeonnReport *reports, int processes,
										   struct ExplainState *explain);

#endif							/* GEONN_REPORT_H */
