/*
 * live_page.h
 *		The points on one page of a plain table, as a snapshot sees them.
 */
#ifndef GEONN_LIVE_PAGE_H
#define GEONN_LIVE_PAGE_H

#include "access/htup_details.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#include "points/point_row.h"

/* a row with an integer id */
typedef struct LiveRow
{
	OffsetNumber offset;		/* of its line pointer */
	PointStatus status;
	int64		id;				/* this and the coordinates are set where the status is POINT_VALID */
	double		latitude;		/* degrees */
	double		longitude;
} LiveRow;

/* what reads pages of one table */
typedef struct LivePageReader
{
	Relation	relation;		/* a plain table of the heap, locked */
	Snapshot	snapshot;		/* an MVCC snapshot */
	const PointSource *source;	/* has a latitude and a longitude */
	const AttrNumber *attributes;	/* as in PlainTable */
	bool		by_xmin;		/* as for geonn_page_is_settled */
	BufferAccessStrategy strategy;	/* NULL: the default */
	MemoryContext context;		/* for what converting coordinates allocates; it is reset after each page */
	Datum	   *values;			/* [source->query_columns] */
	bool	   *nulls;			/* likewise */

	/* the page that was read last */
	bool		settled;		/* geonn_page_is_settled */
	int			count;
	LiveRow		rows[MaxHeapTuplesPerPage]; /* [count] in the order of their line pointers */
} LivePageReader;

/* Create a reader in the current memory context. */
extern LivePageReader *geonn_live_page_reader(const PointSource *source, const AttrNumber *attributes,
											  Relation relation, Snapshot snapshot);

/* Read a page that the table has. */
extern void geonn_live_page_read(LivePageReader *reader, BlockNumber block);

/*
 * Is the page all-visible, or had each transaction that has inserted a tuple there or deleted one ended before
 * the snapshot was taken?  by_xmin: only those that are older than its xmin count as such.  The caller has a lock of
 * the page.
 */
extern bool geonn_page_is_settled(Page page, Snapshot snapshot, bool by_xmin);

#endif							/* GEONN_LIVE_PAGE_H */
