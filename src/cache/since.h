/*
 * since.h
 *		How far back rows may be stamped that a refresh does not see.
 */
#ifndef GEONN_CACHE_SINCE_H
#define GEONN_CACHE_SINCE_H

#include "cache/catalog.h"

/*
 * Before a snapshot is taken: rows that it does not see have now() of this moment or later in the
 * column changed_since.  0: not known.
 */
extern TimestampTz geonn_cache_since(const GeonnCache *cache);

#endif							/* GEONN_CACHE_SINCE_H */
