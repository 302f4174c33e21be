/*
 * sql_fallback.h
 *		Searches without which a statement goes on, where the engine cannot be had.
 */
#ifndef GEONN_SQL_FALLBACK_H
#define GEONN_SQL_FALLBACK_H

/*
 * Begin a search by this function.  False: the engine cannot be had, and a warning says why.  Other errors are raised.
 */
extern bool geonn_try_search(void (*begin) (void *state), void *state);

/* Within such a function: execute a plan of the statement, any error of which is raised. */
extern void geonn_beside_search(void (*execute) (void *state), void *state);

#endif							/* GEONN_SQL_FALLBACK_H */
