/*
 * changed.h
 *		Changes of a cache's table by anything but its refresh.
 */
#ifndef GEONN_CACHE_CHANGED_H
#define GEONN_CACHE_CHANGED_H

#include "executor/spi.h"
#include "utils/plancache.h"

#include "cache/catalog.h"

/* The statements that give a cache's table the triggers that notice changes. */
extern char *geonn_changes_triggers(const GeonnCache *cache);

/*
 * Add to the signature what tells that these triggers are what they were, by the active
 * snapshot.  Returns whether no change passes them by.
 */
extern bool geonn_changes_sign(StringInfo text, const GeonnCache *cache);

/*
 * Execute a prepared statement that has this plan, as one of the refresh's own: it does
 * not fire those triggers.  Returns what SPI_execute_plan does.
 */
extern int	geonn_changes_execute(const GeonnCache *cache, SPIPlanPtr statement,
								  const CachedPlan *plan);

/* This transaction makes a row of geonn_cache_last_run: changes are to delete it. */
extern void geonn_changes_forget(void);

/* Called once by _PG_init. */
extern void geonn_own_statements(void);

#endif							/* GEONN_CACHE_CHANGED_H */
