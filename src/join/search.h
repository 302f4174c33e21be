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
#include "join/shape_arcs.h"

struct GeonnSearch
{
	const GeonnJoin *join;
	GeonnCall	call;			/* the call that the search is part of */
	MemoryContext context;		/* has all that the search allocates */
	GeonnResultRow row;			/* how a pair becomes a row */
	PreparedJoin prepared;		/* the prepared join; 0 until the references are prepared */
	PointReading *reading;		/* the reading of the observations */
	bool		all_read;		/* all observations were read */

	/* the values of the present row, and behind them the number of its observation */
	Datum	   *values;			/* [row.descriptor->natts + 1] */
	bool	   *nulls;

	/* rows that were not returned yet; their last column is the number of the observation */
	Tuplestorestate *store;		/* NULL: the search has not begun */
	TupleTableSlot *slot;		/* holds the row taken last */
	uint64		waiting;		/* how many rows wait in the store */
	GeonnBlock *block;			/* the block whose present pair was returned last; NULL: no block is at hand */

	/* the references of another search; NULL: this search has its own */
	const SharedReferences *references;
	SharedSearch *shared;		/* the search that processes share; NULL: this process searches alone */

	ObservationWatcher watch;	/* NULL: observations are not watched */
	void	   *watch_state;
	uint64		number;			/* the number of the observation of the present row (geonn_search_number) */

	/* where observations are assigned to references */
	GeonnClient *asking;		/* the client of the dataset of observations; NULL: there is none */
	GeonnReferences *asking_rows;	/* the observations, as references of that dataset */
	ReferenceMemory *asking_memory; /* counts what they take */
	Datum	   *asking_ids;		/* [the block's pairs] of its observations, at each second index; NULL: their tags are ids */
	double	   *asking_latitudes;	/* [2 * the block's pairs] as the ids; behind them the longitudes; NULL: rows have none */

	/* where observations are shapes */
	GeonnArcs  *arcs;			/* makes arcs of them; NULL: none was sent */
	ReferenceMemory *arcs_memory;	/* counts what the engine takes for them */
	GeonnClient *former;		/* the client of the observations before the first shape; NULL: none was a point */

	/* observations read before the references were prepared */
	PointRow   *ahead;			/* [ahead_count] */
	int			ahead_count;
	bool		looks_ahead;	/* observations are being read ahead */

	/* If this process answers the observations itself. */
	uint64		answered;		/* how many were answered */
	GeonnWork	work;			/* as the client's */

	/* for the report */
	uint64		without_candidates; /* how many observations were not sent because no reference suits their group or
									 * limits */
	uint64		local_rows;		/* how many rows come from observations that were not sent */
	double		preparing;		/* ms, as in GeonnReport */
	double		spent_reading;	/* ms, as in GeonnReport */
};

/* Store search->values as a row, which is returned before other rows. */
extern void geonn_search_store_row(GeonnSearch *search);

/*
 * Go on to the next pair, which then is the present pair of search->block.  Without wait, only if a pair has arrived.
 * Returns false if none has, or if all pairs have been taken.
 */
extern bool geonn_search_take_pair(GeonnSearch *search, bool wait);

/* Write the row of search->block's present pair. */
static inline void
geonn_search_show_pair(GeonnSearch *search, Datum *values, bool *nulls)
{
	search->number = search->block->number + search->block->observation;
	geonn_result_row_fill(&search->row, search->block, search->prepared.references, values, nulls);
}

/* Wait for the next pair, and store its row.  Returns false if all pairs have been taken. */
extern bool geonn_search_store_pair(GeonnSearch *search);

/* Note what rows are made of, now that the references are prepared. */
extern void geonn_search_note_prepared(GeonnSearch *search);

/*
 * Read more than POINTS_ALONE observations, if the source has so many.  Returns whether all have been read, and are
 * points.
 */
extern bool geonn_search_look_ahead(void *state);

/* Take the observations that geonn_search_look_ahead() has read. */
extern void geonn_search_take_ahead(GeonnSearch *search);

/* Take an observation of the source; the state is the search. */
extern void geonn_search_consume_observation(void *state, const PointRow *row);

/* Take valid observations of the source, which have no groups, parties and limits; the state is the search. */
extern void geonn_search_consume_observations(void *state, uint32 rows, const Datum *ids,
											  const double *latitudes, const double *longitudes);

/* Begin to collect the observations that are to be assigned; the references are prepared. */
extern void geonn_search_begin_assigning(GeonnSearch *search);

/* Ask for the assignment, once all observations were read. */
extern void geonn_search_assign(GeonnSearch *search);

/* Add an observation that is to be assigned. */
extern void geonn_search_add_assigned(GeonnSearch *search, const PointRow *row, const GeonnPointColumns *columns);

/* Give the observations of an assignment's block their ids, and their coordinates if rows need them. */
extern void geonn_search_name_assigned(GeonnSearch *search);

/* Return whether no observation of a count, or of an assignment, has candidates, because the dataset has no references. */
extern bool geonn_search_counts_nothing(const GeonnSearch *search);

#endif							/* GEONN_SEARCH_H */
