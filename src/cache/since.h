/*
 * since.h
 *		Up to which time changed_since proves that the next refresh need not read a row.
 */
#ifndef GEONN_CACHE_SINCE_H
#define GEONN_CACHE_SINCE_H

#include "cache/catalog.h"

/*
 * Called before a snapshot is taken: each row that the snapshot does not see will have this time or
 * a later one in the column changed_since, if that was set to now(). 0: not known.
 */
extern TimestampTz geonn_cache_since(const GeonnCache *cache);

#endif							/* GEONN_CACHE_SINCE_H */
