/*
 * search_state.h
 *		What a search knows, for the files that make it: join.c, search_observations.c and search_shared.c.
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
	bool		is_numbered;
	bool		is_taken;		/* rows are taken from it one by one */
	TupleTableSlot *slot;		/* through which they come */
	uint64		waiting;		/* rows that were put and have not been taken */
	uint64		taken;			/* rows that were taken since the store was last empty */
	uint64	   *numbers;		/* of the taken and the waiting rows, in their order */
	uint64		room;			/* of these */
} RowStore;

struct GeonnSearch
{
	const GeonnJoin *join;
	GeonnCall	call;			/* the call that the search is part of */
	MemoryContext context;		/* of all of it */
	MemoryContext row_context;	/* for what comparing ids and keys of a row takes */
	GeonnResultRow row;			/* what rows are */
	PreparedJoin prepared;		/* all of it is 0 where the references have not been read */

	/* rows to be taken later, and the values of the current row */
	RowStore	store;
	Datum	   *values;			/* [row.descriptor->natts] */
	bool	   *nulls;

	SharedSearch *shared;		/* whose observations are divided; NULL: alone */
	const SharedReferences *references;	/* of another search; NULL: its own */

	/* where observations are watched */
	ObservationWatcher watch;	/* NULL: they are not */
	void	   *watch_state;
	uint64		number;			/* of the observation of the present row */

	/* for the report */
	uint64		without_candidates; /* observations left out for their group or limits */
	uint64		local_rows;		/* rows of observations that were left out: they stayed here */
	double		preparing;		/* ms */
	double		spent_reading;	/* ms */

	/* where rows are taken one by one */
	GeonnRun	run;
	PointReading *reading;		/* of the observations */
	bool		all_read;
};

/* ---- references (search_shared.c) ---- */

/* Have the references in the engine.  Returns whether the observations have to be read. */
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

/* Store the row that the values are. */
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
