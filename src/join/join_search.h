/*
 * join_search.h
 *		The state of a join under way, for join.c, which has the essay, and join_prepare.c.
 */
#ifndef GEONN_JOIN_SEARCH_H
#define GEONN_JOIN_SEARCH_H

#include "executor/tuptable.h"
#include "port/atomics.h"

#include "common/protocol.h"
#include "join/call.h"
#include "join/groups.h"
#include "join/join.h"
#include "join/references.h"
#include "join/result_row.h"

/* what processes that search together share */
struct SharedSearch
{
	GeonnCall	call;
	uint64		dataset;		/* 0: nothing is to be done about the observations */
	pg_atomic_uint32 begun;		/* how many have begun to take part */
	pg_atomic_uint32 ended;		/* and have read what there was for them */
	pg_atomic_uint64 counts[POINT_STATUSES];
};

struct GeonnSearch
{
	GeonnJoin  *join;
	GeonnCall	call;			/* that it is part of */
	MemoryContext context;		/* of all of it */
	MemoryContext row_context;
	GeonnSink	sink;
	GeonnClient *client;		/* NULL: the references have not been read */
	GeonnReferences *references;
	GeonnGroups *groups;		/* NULL: there are none */
	ReferenceMemory *memory;	/* of both; NULL: another process has it */
	uint64		rows;

	/* where rows go that are not taken at once */
	Tuplestorestate *store;
	Datum	   *values;			/* [sink.descriptor->natts] */
	bool	   *nulls;

	SharedSearch *shared;		/* whose observations are divided; NULL: alone */

	/* for the report */
	uint64		reference_counts[POINT_STATUSES];
	bool		references_kept;
	bool		references_named;	/* their ids are of use */
	int			reference_workers;	/* that helped to read them */
	uint64		without_group;	/* observations that were not sent for that */
	uint64		kept;			/* rows of observations that were not sent */
	double		preparing;		/* ms */
	double		spent_reading;	/* ms */

	/* where rows are taken one by one */
	GeonnRun	run;
	PointReading *reading;		/* NULL: of given points */
	uint64		point;			/* next one of those given */
	uint64		counts[POINT_STATUSES];	/* of the observations */
	bool		all_read;
	TupleTableSlot *waiting;	/* rows of the store come through it */
	uint64		stored;			/* rows that are there */
};

typedef struct GeonnSearch Search;

/* Another row begins, which may use memory of its own. */
extern void geonn_search_begin_row(Search *search);

/* Say what the engine is asked, as far as the join's columns decide it. */
extern void geonn_search_set_question(Search *search);

/* Know the references of the sealed dataset that the client has. */
extern void geonn_search_attach_references(Search *search);

/*
 * Check what can be checked, and have the references in the engine.  Returns whether
 * there is anything to do about the observations.
 */
extern bool geonn_search_prepare(Search *search);

#endif							/* GEONN_JOIN_SEARCH_H */
