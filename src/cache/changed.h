/*
 * changed.h
 *		Triggers that notice changes of a cache's table by anything but its refresh.
 */
#ifndef GEONN_CACHE_CHANGED_H
#define GEONN_CACHE_CHANGED_H

#include "executor/spi.h"
#include "utils/plancache.h"

#include "cache/catalog.h"

/* The OID of these triggers' function. */
extern Oid	geonn_changes_function(Oid schema);

/* The statements that create the triggers of a cache's table. */
extern char *geonn_changes_triggers(const GeonnCache *cache);

/*
 * Add the versions of these triggers to the signature, as the active snapshot sees them.  Returns
 * whether they notice every change.
 */
extern bool geonn_changes_sign(StringInfo text, const GeonnCache *cache);

/*
 * Execute a prepared statement with this plan as one of the refresh's own, which does not fire
 * those triggers.  Returns what SPI_execute_plan does.
 */
extern int	geonn_changes_execute(const GeonnCache *cache, SPIPlanPtr statement,
								  const CachedPlan *plan);

/* This transaction has made a row of geonn_cache_last_run: its later changes must delete it. */
extern void geonn_changes_forget(void);

/* Install the hook of these statements.  Called once by _PG_init. */
extern void geonn_own_statements(void);

#endif							/* GEONN_CACHE_CHANGED_H */
