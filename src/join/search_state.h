/*
 * search_state.h
 *		The state of a search, for the files that work on it: join.c, search_observations.c, search_shared.c.
 */
#ifndef GEONN_SEARCH_STATE_H
#define GEONN_SEARCH_STATE_H

#include "executor/tuptable.h"
#include "utils/tuplestore.h"

#include "join/join.h"
#include "join/join_prepare.h"
#include "points/parallel_reader.h"

/*
 * Rows that wait to be taken.  Where observations are watched, a caller asks of each row which
 * observation it belongs to: a tuplestore has no room for that beside the row's own columns.
 */
typedef struct RowStore
{
	MemoryContext context;
	Tuplestorestate *rows;
	TupleDesc	descriptor;
	bool		is_numbered;	/* observations are watched: numbers has the rows' observations */
	bool		is_taken;		/* rows are taken from it one by one */
	TupleTableSlot *slot;		/* gets the row that is taken */
	uint64		waiting;		/* how many rows were stored and have not been taken */
	uint64		taken;			/* how many rows were taken since the store was last empty */
	uint64	   *numbers;		/* [room] the observations of the taken and the waiting rows, in their order */
	uint64		room;
} RowStore;

struct GeonnSearch
{
	const GeonnJoin *join;
	GeonnCall	call;			/* the call that the search is part of */
	MemoryContext context;		/* has all that the search allocates */
	MemoryContext row_context;	/* for what comparing ids and keys of a row allocates */
	GeonnResultRow row;			/* how a pair becomes a row */
	PreparedJoin prepared;		/* 0 until the references are in the engine */

	/* rows to be taken later, and the values of the current row */
	RowStore	store;
	Datum	   *values;			/* [row.descriptor->natts] */
	bool	   *nulls;

	SharedSearch *shared;		/* the search that processes share; NULL: this one is alone */
	const SharedReferences *references;	/* the references of another search; NULL: it has its own */

	/* where observations are watched */
	ObservationWatcher watch;	/* NULL: they are not watched */
	void	   *watch_state;
	uint64		number;			/* the number of the present row's observation (geonn_search_number) */

	/* for the report */
	uint64		without_candidates; /* how many observations were not sent, for their group or limits */
	uint64		local_rows;		/* how many rows observations have that were not sent */
	double		preparing;		/* ms, as in GeonnReport */
	double		spent_reading;	/* ms, likewise */

	/* where rows are taken one by one */
	GeonnRun	run;
	PointReading *reading;		/* the reading of the observations */
	bool		all_read;		/* all observations were read */
};

/* ---- references (search_shared.c) ---- */

/* Bring the references into the engine.  Returns whether the observations have to be read. */
extern bool geonn_search_prepare(GeonnSearch *search);

/* ---- observations (search_observations.c) ---- */

/*
 * Begin to read the observations: this checks the caller's privileges before any work is done.
 */
extern void geonn_search_begin_reading(GeonnSearch *search, ReadingManner manner);

/* Take part in reading observations that processes divide between them. */
extern void geonn_search_attach_reading(GeonnSearch *search, SharedTables *tables);

/* Have observations come as blocks, where none needs work of its own. */
extern void geonn_search_read_in_blocks(GeonnSearch *search);

/* Store search->values as a row. */
extern void geonn_search_store_row(GeonnSearch *search);

/*
 * Take a pair as a row; without wait, only if one has come.  Where the engine is ahead nothing waits
 * while pairs keep coming, so an interrupt is asked for here.
 */
extern bool geonn_search_take_pair(GeonnSearch *search, bool wait, Datum *values, bool *nulls);

/* ---- several processes (search_shared.c) ---- */

/* Attach to the references and the observations of the search that processes share. */
extern void geonn_search_attach(GeonnSearch *search);

#endif							/* GEONN_SEARCH_STATE_H */
