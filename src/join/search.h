/*
 * search.h
 *		The state of a search, for the files that make it: join.c and observations.c.
 */
#ifndef GEONN_SEARCH_H
#define GEONN_SEARCH_H

#include "executor/tuptable.h"
#include "utils/tuplestore.h"

#include "join/join.h"
#include "join/join_prepare.h"

struct GeonnSearch
{
	const GeonnJoin *join;
	GeonnCall	call;			/* the call that the search is part of */
	MemoryContext context;		/* has all that the search allocates */
	GeonnResultRow row;			/* how a pair becomes a row */
	PreparedJoin prepared;		/* 0 until the references are in the engine */
	PointReading *reading;		/* the reading of the observations */
	bool		all_read;		/* all observations were read */

	/* the values of the current row, then the number of its observation */
	Datum	   *values;			/* [row.descriptor->natts + 1] */
	bool	   *nulls;

	/* rows not yet returned, with their observation's number as the last column */
	Tuplestorestate *store;		/* NULL: the search has not begun */
	TupleTableSlot *slot;		/* holds the row taken last */
	uint64		waiting;		/* how many rows these are */
	GeonnBlock *block;			/* whose present pair was returned last; NULL: none is at hand */

	/* the references of another search; NULL: it has its own */
	const SharedReferences *references;
	SharedSearch *shared;		/* the search that processes share; NULL: this one is alone */

	ObservationWatcher watch;	/* NULL: observations are not watched */
	void	   *watch_state;
	uint64		number;			/* the number of the present row's observation (geonn_search_number) */

	/* observations that were read before the references were prepared */
	PointRow   *ahead;			/* [ahead_count] */
	int			ahead_count;
	bool		looks_ahead;	/* they are being read */

	/* where this process answers the observations */
	uint64		answered;		/* how many were answered */
	GeonnWork	work;			/* as the client's */

	/* for the report */
	uint64		without_candidates; /* unsent observations: no reference suits their group or limits */
	uint64		local_rows;		/* how many rows the unsent observations have */
	double		preparing;		/* ms, as in GeonnReport */
	double		spent_reading;	/* ms, likewise */
};

/* Store search->values as a row, to be returned before others. */
extern void geonn_search_store_row(GeonnSearch *search);

/*
 * Go on to the next pair, which is the present one of search->block then; without wait, only if one has arrived.  Returns
 * false if none has, or if all have been taken.
 */
extern bool geonn_search_take_pair(GeonnSearch *search, bool wait);

/* Write the row of search->block's present pair. */
static inline void
geonn_search_show_pair(GeonnSearch *search, Datum *values, bool *nulls)
{
	search->number = search->block->number + search->block->observation;
	geonn_result_row_fill(&search->row, search->block, search->prepared.references, values, nulls);
}

/* Wait for the next pair, and store its row; false: all have been taken. */
extern bool geonn_search_store_pair(GeonnSearch *search);

/* Read more than POINTS_ALONE observations, or all; returns whether these are all. */
extern bool geonn_search_look_ahead(void *state);

/* Take the observations that it has read. */
extern void geonn_search_take_ahead(GeonnSearch *search);

/* Take an observation; the state is the search. */
extern void geonn_search_consume_observation(void *state, const PointRow *row);

/* Take observations without groups, parties and limits, which are valid. */
extern void geonn_search_consume_observations(void *state, uint32 rows, const Datum *ids,
											  const double *latitudes, const double *longitudes);

/* Do all observations of a count have no candidates, since no references are there? */
extern bool geonn_search_counts_nothing(const GeonnSearch *search);

#endif							/* GEONN_SEARCH_H */
