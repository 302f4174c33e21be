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
	PointSource *observations;	/* NULL: see given; the points have no ids.  For clusters the same source as references */
	PointSource *references;
	GeonnQuestion question;		/* completed by make_question: columns, ids, unmatched */
	bool		exclude_self;
	bool		keep_unmatched;
	InvalidPolicy invalid;
	struct geonn_call_label label;	/* what the views of calls show */

	/*
	 * observations that the caller passes.  Result rows then have the observation's number, ord, from 1 on,
	 * in place of an id
	 */
	const GivenPoints *given;

	/* the window of the given observations; NULL: they have no windows */
	const NamedWindow *given_window;

	/* each given observation has a radius among its limits */
	bool		given_radius;

	bool		given_shapes;	/* the given observations may be shapes (PointRow.shape) */

	/* references that the caller passes; the source describes their columns */
	const GivenPoints *given_references;

	/*
	 * if set, the given references are all rows of this table, and the caller has checked the privileges to read
	 * them.  The search calls read_given only if the engine does not keep the references: it sets their count, and
	 * returns false if the search can have no references
	 */
	const PlainTable *given_table;
	bool		(*read_given) (void *state);	/* the state is that of given_references */
} GeonnJoin;

/* Are observations or references shapes? */
static inline bool
geonn_join_has_shapes(const GeonnJoin *join)
{
	return geonn_has_shapes(join->references) || join->given_shapes ||
		(join->observations != NULL && geonn_has_shapes(join->observations));
}

/* Return what the join does about observations with invalid coordinates. */
extern InvalidPolicy geonn_observations_policy(const GeonnJoin *join);

/*
 * Begin a join, in a memory context of its own below the current one.  Rows that the caller takes one by
 * one have the type row_type (NULL: not composite), which is checked against the join.
 */
typedef struct GeonnSearch GeonnSearch;

extern GeonnSearch *geonn_search_begin(const GeonnJoin *join, TupleDesc row_type);

/* Have rows contain only these attributes (from 1) of the row type. */
extern void geonn_search_project(GeonnSearch *search, TupleDesc descriptor,
								 const AttrNumber *attributes);

/*
 * A watcher is called for each observation that the search reads, in the order of reading, before the
 * observation is sent to the engine.  will_send: the observation can have neighbours.  Returns false to leave
 * the observation out of the search and of the result.
 */
typedef bool (*ObservationWatcher) (void *state, const PointRow *row, bool will_send);

/* Set the watcher of observations; to be called before the first row is taken. */
extern void geonn_search_watch(GeonnSearch *search, ObservationWatcher watch, void *state);

/*
 * Return the number of the observation whose row was returned last, among all sent observations, from 0 on;
 * GEONN_NOT_SENT if that observation was not sent.  Only for a watched search.
 */
#define GEONN_NOT_SENT PG_UINT64_MAX
extern uint64 geonn_search_number(const GeonnSearch *search);

/*
 * A search's references, for other searches of the same join with other points, in this process or in
 * parallel workers.  Plain data, which can lie in shared memory.
 */
typedef struct SharedReferences
{
	GeonnCall	call;			/* the call to which all searches with the references belong */
	uint64		dataset;		/* the number of the dataset (geonn_client_dataset) */
	bool		has_shapes;		/* geonn_has_shapes() of the references, as their reading has left it */
	bool		shapes_ask;		/* geonn_has_shapes() of the observations when the references were prepared */
} SharedReferences;

/*
 * Return the references of this search, which has read them.  Until this search ends, other searches
 * can begin with them; a search that has begun keeps them.
 */
extern SharedReferences geonn_search_references(const GeonnSearch *search);

/* Have the search use these references, and read none.  The caller does so before the first row is taken. */
extern void geonn_search_follow(GeonnSearch *search, const SharedReferences *references);

/* Begin the search, and send all observations for which the ring has room. */
extern void geonn_search_send(GeonnSearch *search);

/*
 * Go on with the points that the join now has as given points.  The caller has taken all rows of the points
 * before, which had goes_on.  The rows are numbered from 1 on again.
 */
extern void geonn_search_go_on(GeonnSearch *search);

/* Find all rows now, and store them until they are taken. */
extern void geonn_search_complete(GeonnSearch *search);

/*
 * Get the next row.  Returns false after the last row.  What the row's values point to lives until the next row is taken.
 */
extern bool geonn_search_next(GeonnSearch *search, Datum *values, bool *nulls);

/*
 * Go on to the next pair, and return the block whose present pair it is.  The pair's tag is the reference's id if ids
 * are integers and rows have no coordinates of references.  The caller may go on by geonn_block_next() until the block
 * ends.  Returns NULL if the next pair is stored as a row, or if none is left; geonn_search_next() says which.
 */
extern GeonnBlock *geonn_search_next_pair(GeonnSearch *search);

/*
 * Find where the values of the rows' first `count` columns lie in the blocks of geonn_search_next_pair(); to be called once
 * the references are prepared.  Returns false if some do not lie there, or if the answer has observations without a
 * neighbour.
 */
extern bool geonn_search_in_blocks(const GeonnSearch *search, int count, BlockColumn *columns);

/*
 * The shared memory of processes that search together; SharedTables follow the struct.  One process
 * prepares a search, and all use its references in searches of their own for the same join.  Observations
 * come from tables that the processes divide, or each process is given some.
 */
typedef struct SharedSearch
{
	Size		bytes;			/* the size of the struct, with the reports and the tables */
	SharedReferences references;	/* dataset 0: no observation has a neighbour, so no process reads any */
	Oid			observation_table;	/* the relation of the prepared join's observations, or InvalidOid; arguments may
									 * name another one now */
	Oid			reference_table;	/* the relation of the prepared join's references, or InvalidOid; arguments may name
									 * another one now */
	pg_atomic_uint32 srid;		/* that of the observations (geonn_transform_share) */
	pg_atomic_uint32 begun;		/* how many processes have begun to take part */
	pg_atomic_uint32 ended;		/* how many processes have read their share of the observations */
	pg_atomic_uint64 counts[POINT_STATUSES];	/* by status, how many observations those processes have read that have ended */
	int			processes;		/* the greatest number of processes */
	GeonnReport reports[FLEXIBLE_ARRAY_MEMBER]; /* the reports of the processes; that of the process that prepared the
												 * search comes first */
} SharedSearch;

/* Begin to prepare the search.  Returns the bytes of shared memory that this many processes need. */
extern Size geonn_search_prepare_shared(GeonnSearch *search, int processes);

/*
 * Read the references, and let other processes take part.  `shared` has bytes and processes set; its other
 * fields are 0, or left from an earlier search.  Returns the number of useful workers.  0: the observations are
 * too few, or cannot be divided; nothing was done, and one process searches alone.
 */
extern int	geonn_search_share(GeonnSearch *search, SharedSearch *shared);

/* Have the search take part in a shared search, instead of searching alone.  The caller does so before the first row is taken. */
extern void geonn_search_take_part(GeonnSearch *search, SharedSearch *shared);

/* Note that this process begins to read its observations; and that it has read all of them, with these counts. */
extern void geonn_shared_search_begin(SharedSearch *shared);
extern void geonn_shared_search_end(SharedSearch *shared, const uint64 *counts);

/* Warn of invalid observations, once all processes have read theirs.  Only for the process that prepared the search. */
extern void geonn_search_tell(const GeonnSearch *search, SharedSearch *shared);

/* Warn of invalid observations; counts is by PointStatus. */
extern void geonn_tell_of_observations(const GeonnJoin *join, const uint64 *counts);

/* Return what the search has done so far. */
extern GeonnReport geonn_search_report(const GeonnSearch *search);

/*
 * Log the call that the search began, with the summed report of its processes, if the call lasted
 * geonn.log_min_duration or longer.
 */
extern void geonn_search_log(const GeonnSearch *search, const GeonnReport *report);

/* Free all that the search holds.  May be called at any time. */
extern void geonn_search_end(GeonnSearch *search);

#endif							/* GEONN_JOIN_H */
