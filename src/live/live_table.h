/*
 * live_table.h
 *		A table's references as a snapshot sees them: a base, and what differs from it.
 */
#ifndef GEONN_LIVE_TABLE_H
#define GEONN_LIVE_TABLE_H

#include "join/call.h"
#include "live/live_base.h"

typedef struct LiveTable LiveTable;

/*
 * Begin with a base, the type of its ids, and its groups, to which readers of pages add (NULL: none).  All of them must
 * live as long as the current memory context, and the table does, too.
 */
extern LiveTable *geonn_live_table_begin(LiveBase *base, const PageIdType *id_type, const GeonnGroups *groups);

/*
 * Return whether a snapshot sees, for certain, what the last look saw.  If so, this counts as a look that
 * has read no page.
 */
extern bool geonn_live_table_is_current(LiveTable *table, Snapshot snapshot);

/* how a look at the table ended */
typedef enum LiveLook
{
	LIVE_LOOK_COMPLETE,
	LIVE_LOOK_TELLS_NOTHING,	/* the snapshot is older than the base, or geonn_live_table_bytes() exceeds the limit, or
								 * the reader has met a shape */
	LIVE_LOOK_LACKS_MOST		/* more rows of the base are missing in the table than the limit allows */
} LiveLook;

/*
 * Look at the table, of which the base was made, with the reader's snapshot.  The base must not be old
 * (geonn_live_base_is_old).  A look ends as soon as a limit is exceeded.
 */
extern LiveLook geonn_live_table_look(LiveTable *table, PageReader *reader, uint64 most_bytes, uint64 most_masked);

/* Return how many bytes the added rows and groups take, with the arrays of pages and of masked rows. */
extern uint64 geonn_live_table_bytes(const LiveTable *table);

/* Return how many bytes an array of all points takes at most that a search for all within a distance may find. */
extern uint64 geonn_live_table_all_bytes(const LiveTable *table);

/* Return how many rows have each status, as the last look saw them: [POINT_STATUSES]. */
extern const uint64 *geonn_live_table_counts(const LiveTable *table);

extern TableDifference geonn_live_table_difference(const LiveTable *table);

/* The ids of the table's rows. */
extern const LiveIds *geonn_live_table_ids(const LiveTable *table);

/* Offer all points, as the last look saw them, to the search. */
extern void geonn_live_table_search(const LiveTable *table, LiveSearch *search);

#endif							/* GEONN_LIVE_TABLE_H */
