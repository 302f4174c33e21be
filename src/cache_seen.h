/*
 * cache_seen.h
 *		What a refresh of a cache saw, for the next one to begin with.
 */
#ifndef GEONN_CACHE_SEEN_H
#define GEONN_CACHE_SEEN_H

#include "cache_copy.h"

/* labels of both sides as they are now, or empty values */
typedef struct GeonnLabels
{
	bytea	   *label[CACHE_SIDES];
} GeonnLabels;

typedef struct GeonnSeen
{
	bool		exists;			/* what follows is known, and the table is as it was left */
	const char *reason;			/* why it does not exist */
	bool		same[CACHE_SIDES];	/* nothing has changed since */
	int64		rows;
	uint64		seed[CACHE_SIDES][2];
	TimestampTz since;			/* what changed_since has older is seen; 0: not known */
	bool		copied;
	int			futile;
	int			pause;
} GeonnSeen;

/* The labels of what the join reads, with the active snapshot. */
extern GeonnLabels geonn_seen_now(const GeonnJoin *join);

/* What the last run saw, against these labels. */
extern GeonnSeen *geonn_seen_load(const GeonnCache *cache, const GeonnJoin *join,
								  GeonnLabels now, Snapshot snapshot);

/* Have changes of a table be noticed that this transaction has made. */
extern void geonn_seen_create(const GeonnCache *cache);

/*
 * Before anything is read: have changes of the table by others be noticed from now on,
 * where they would not be.  May wait for others' transactions.  Where the snapshot is taken
 * already they are not noticed, and the next run is a full one.
 */
extern void geonn_seen_begin(const GeonnCache *cache);

/*
 * The table has so many rows, and is what the join returns, for these labels; copies of what
 * it read are there, or not (copied is false).
 */
extern void geonn_seen_end(const GeonnCache *cache, const GeonnJoin *join, GeonnLabels now,
						   int64 rows, const GeonnSeen *seen, TimestampTz since);

/* The copy of a side, with the seed that seen has; it is not read yet. */
extern GeonnCopy *geonn_seen_copy(const GeonnCache *cache, const GeonnJoin *join,
								  const GeonnSeen *seen, CacheSide side);

/* Make copies of what the join reads, with the active snapshot and new seeds. */
extern void geonn_seen_make_copies(const GeonnCache *cache, GeonnJoin *join, GeonnSeen *seen);

#endif							/* GEONN_CACHE_SEEN_H */
