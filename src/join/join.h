/*
 * join.h
 *		A join: two sources of points, a question, and where the pairs go.
 */
#ifndef GEONN_JOIN_H
#define GEONN_JOIN_H

#include "port/atomics.h"

#include "client/client.h"
#include "common/protocol.h"
#include "join/call.h"
#include "points/columns.h"
#include "points/reader.h"

typedef struct GeonnJoin
{
	PointSource *observations;	/* NULL: see given; the points have no ids */
	PointSource *references;
	GeonnQuestion question;		/* completed by make_question: columns, ids, unmatched */
	bool		exclude_self;
	bool		keep_unmatched;
	InvalidPolicy invalid;
	struct geonn_call_label label;	/* what the views of calls show */

	/*
	 * Observations that the caller passes.  Result rows then have their number, ord, from 1 on, in place of
	 * an id.
	 */
	const GivenPoints *given;

	/* the window of the given observations; NULL: they have none */
	const NamedWindow *given_window;

	/* the given observations have a radius each, among their limits */
	bool		given_radius;

	/* references that the caller passes; the source describes their columns */
	const GivenPoints *given_references;

	/*
	 * Set: these are all rows of this table, and the caller has checked the privileges to read them.  They are needed
	 * only if the engine does not keep them: read_given then sets their count, and returns false where the search
	 * can have none.
	 */
	const PlainTable *given_table;
	bool		(*read_given) (void *state);	/* the state is that of given_references */
} GeonnJoin;

/* What the join does about observations with invalid coordinates. */
extern InvalidPolicy geonn_observations_policy(const GeonnJoin *join);

/*
 * Begin a join, in a memory context of its own below the current one.  Its rows, taken one by one, are of
 * row_type (NULL: not composite), which is checked against the join.
 */
typedef struct GeonnSearch GeonnSearch;

extern GeonnSearch *geonn_search_begin(const GeonnJoin *join, TupleDesc row_type);

/* Have rows return only these attributes (from 1) of the row type. */
extern void geonn_search_project(GeonnSearch *search, TupleDesc descriptor,
								 const AttrNumber *attributes);

/*
 * Called for each observation that the search reads, in the order of reading, before it is sent to the
 * engine; will_send: it can have neighbours.  Returns false to leave the observation out of the search and of
 * the result.
 */
typedef bool (*ObservationWatcher) (void *state, const PointRow *row, bool will_send);

/* Set the watcher, before the first row is taken. */
extern void geonn_search_watch(GeonnSearch *search, ObservationWatcher watch, void *state);

/*
 * In a watched search: the number, from 0 on, among the sent observations, of the one whose row was returned
 * last; GEONN_NOT_SENT if it was not sent.
 */
#define GEONN_NOT_SENT PG_UINT64_MAX
extern uint64 geonn_search_number(const GeonnSearch *search);

/*
 * A search's references, for other searches of the same join with other points, in this process or in
 * parallel workers.  It is plain data, which can lie in shared memory.
 */
typedef struct SharedReferences
{
	GeonnCall	call;			/* the call that all of these searches are part of */
	uint64		dataset;		/* the number of the dataset (geonn_client_dataset) */
} SharedReferences;

/*
 * The references of this search, which has read them.  Other searches can begin with them until this
 * search ends; searches that have begun by then keep them.
 */
extern SharedReferences geonn_search_references(const GeonnSearch *search);

/* Have the search use these references, and read none; called before the first row is taken. */
extern void geonn_search_follow(GeonnSearch *search, const SharedReferences *references);

/* Begin, and send all observations that the ring has room for. */
extern void geonn_search_send(GeonnSearch *search);

/*
 * Go on with the points that the join has as given ones now, after all rows of those before were taken, which had
 * goes_on.  The rows have numbers from 1 on again.
 */
extern void geonn_search_go_on(GeonnSearch *search);

/* Find all rows now, and keep them until they are taken. */
extern void geonn_search_complete(GeonnSearch *search);

/*
 * The next row; false after the last.  What its values point to lives until the next row is
 * taken.
 */
extern bool geonn_search_next(GeonnSearch *search, Datum *values, bool *nulls);

/*
 * Go on to the next pair, and return the block whose present pair it is; its tag is the reference's id where ids are
 * integers and rows have no coordinates of references.  The caller may go on by geonn_block_next until the block ends.
 * NULL: the next pair is stored as a row, or none is left; geonn_search_next says which.
 */
extern GeonnBlock *geonn_search_next_pair(GeonnSearch *search);

/*
 * Where the values of the rows' first columns lie in these blocks, so many of them, once the references are prepared.  False: not
 * all do, or observations without a neighbour are among the pairs.
 */
extern bool geonn_search_in_blocks(const GeonnSearch *search, int count, BlockColumn *columns);

/*
 * Processes can search together: one prepares a search, and all use its references in searches of their own
 * for the same join.  Observations come from tables that they divide, or are given to each process.
 *
 * The shared memory of these processes; SharedTables follow the struct.
 */
typedef struct SharedSearch
{
	Size		bytes;			/* the size of this struct, the reports and the tables */
	SharedReferences references;	/* dataset 0: no observation has a neighbour, and none is read */
	Oid			observation_table;	/* the prepared join's relations, or InvalidOid */
	Oid			reference_table;	/* likewise; arguments may name others now */
	pg_atomic_uint32 begun;		/* how many processes have begun to take part */
	pg_atomic_uint32 ended;		/* how many of them have read their share of the observations */
	pg_atomic_uint64 counts[POINT_STATUSES];	/* how many observations these have read, by status */
	int			processes;		/* the greatest number of processes */
	GeonnReport reports[FLEXIBLE_ARRAY_MEMBER]; /* the preparing process's, then the others' */
} SharedSearch;

/* Begin to prepare the search; returns the bytes of shared memory that this many processes need. */
extern Size geonn_search_prepare_shared(GeonnSearch *search, int processes);

/*
 * Read the references, and let others take part.  `shared` has bytes and processes; its other fields are 0, or
 * left from an earlier search.  Returns the number of useful workers; 0, and nothing was done, if the
 * observations are too few, or cannot be divided: one process then searches alone.
 */
extern int	geonn_search_share(GeonnSearch *search, SharedSearch *shared);

/* Have the search take part, instead of searching alone; called before the first row is taken. */
extern void geonn_search_take_part(GeonnSearch *search, SharedSearch *shared);

/* Note that this process begins to read its observations; and that it has read all, with these counts. */
extern void geonn_shared_search_begin(SharedSearch *shared);
extern void geonn_shared_search_end(SharedSearch *shared, const uint64 *counts);

/* Warn of invalid observations, if all have been read; for the process that prepared the search. */
extern void geonn_search_tell(const GeonnSearch *search, SharedSearch *shared);

/* Warn of invalid observations; counts is by PointStatus. */
extern void geonn_tell_of_observations(const GeonnJoin *join, const uint64 *counts);

/* What the search has done so far. */
extern GeonnReport geonn_search_report(const GeonnSearch *search);

/*
 * Log the call that the search began, with its processes' summed report, if it lasted geonn.log_min_duration
 * or longer.
 */
extern void geonn_search_log(const GeonnSearch *search, const GeonnReport *report);

/* Free all that the search holds; may be called at any time. */
extern void geonn_search_end(GeonnSearch *search);

#endif							/* GEONN_JOIN_H */
