/*
 * changed.h
 *		Triggers that notice changes of a cache's table by anything but its refresh.
 */
#ifndef GEONN_CACHE_CHANGED_H
#define GEONN_CACHE_CHANGED_H

#include "lib/stringinfo.h"

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

/* This transaction has made a row of geonn_cache_last_run: its later changes must delete it. */
extern void geonn_changes_forget(void);

#endif							/* GEONN_CACHE_CHANGED_H */
