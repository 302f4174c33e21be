/*
 * sql_fallback.h
 *		How a statement of PostGIS's goes on without the engine.
 */
#ifndef GEONN_SQL_FALLBACK_H
#define GEONN_SQL_FALLBACK_H

#include "utils/timestamp.h"

#include "plan/lateral.h"

/* of a node; it stays from one execution of the node to the next */
typedef struct Fallback
{
	PlanState  *own;			/* PostgreSQL's own plan for an outer row (sql_own_plan.c); NULL: none has an index */
	bool		is_lost;		/* the engine could not be had when it was asked last */
	TimestampTz ask_at;			/* then: when it is asked again */
	char	   *reason;			/* the error of that time; NULL: there was none */
	uint64		rows;			/* how many outer rows were compared with all references */
} Fallback;

/*
 * Begin a search by this function, which may be called twice.  False: the engine cannot be had, all of the node's searches
 * were abandoned, and a warning says why.  Other errors are raised.
 */
extern bool geonn_try_search(Fallback *fallback, LateralNode *lateral, void (*begin) (LateralNode *lateral));

/* May a round ask the engine?  And is it to be asked again, after it was lost? */
extern bool geonn_may_ask(const Fallback *fallback);
extern bool geonn_may_ask_again(const Fallback *fallback);

/* Within a function of geonn_try_search: execute a plan of the statement, any error of which is raised. */
extern void geonn_beside_search(void (*execute) (void *state), void *state);

/*
 * Count pairs of rows that are compared one by one, which a search would have found.  Beyond geonn.compared_pairs_limit pairs
 * of all nodes of the client's statement that is an error; rereads: the references do not fit in memory.
 */
extern void geonn_count_compared(const Fallback *fallback, uint64 pairs, bool rereads);

#endif							/* GEONN_SQL_FALLBACK_H */
