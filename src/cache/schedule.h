/*
 * schedule.h
 *		Refreshes by pg_cron.
 */
#ifndef GEONN_CACHE_SCHEDULE_H
#define GEONN_CACHE_SCHEDULE_H

#include "cache/catalog.h"

/* Remove the cache's jobs, if pg_cron is loaded.  Returns whether the cache had any. */
extern bool geonn_cache_unschedule(const GeonnCache *cache);

/* Have the cache's jobs call geonn_refresh with the new name of the cache. */
extern void geonn_cache_rename_jobs(const GeonnCache *cache, const char *name);

#endif							/* GEONN_CACHE_SCHEDULE_H */
