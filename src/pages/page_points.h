/*
 * page_points.h
 *		The points on one page of a plain table, as a snapshot sees them.
 */
#ifndef GEONN_PAGE_POINTS_H
#define GEONN_PAGE_POINTS_H

#include "access/htup_details.h"
#include "fmgr.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#include "join/groups.h"
#include "points/columns.h"
#include "points/point_row.h"

/* the type of a table's ids */
typedef struct PageIdType
{
	Oid			type;			/* below domains */
	Oid			collation;
	bool		is_integer;
	bool		by_value;
	int16		length;
	FmgrInfo   *compare;		/* compares ids by the btree order of their type; NULL: ids are integers */
} PageIdType;

/* Describe the type of a source's ids.  Returns false if a base cannot have such ids. */
extern bool geonn_page_id_type(const PointSource *source, PageIdType *type);

/* Return an id other than NULL in the form in which the reader of a page has it: an integer, or a copied Datum. */
extern int64 geonn_page_id_read(const PageIdType *type, Datum id);

/* a row */
typedef struct PageRow
{
	OffsetNumber offset;		/* the offset of the row's line pointer */
	bool		known;			/* the row is one of KnownRows; the fields below are not set */
	PointStatus status;
	int64		id;				/* the id in the form of geonn_page_id_read(), until the next page is read; id and
								 * coordinates are set if the status is POINT_VALID */
	double		latitude;		/* degrees */
	double		longitude;
	int32		group;			/* the row's group, if the reader has groups */
} PageRow;

/*
 * Rows of a page that its reader knows: the tuples at these line pointers, if transactions before the horizon have
 * inserted them, all of which the reader knows to be committed.
 */
typedef struct KnownRows
{
	const OffsetNumber *offset; /* [count] in their order */
	int			count;
	TransactionId horizon;
} KnownRows;

/* what reads pages of one table */
typedef struct PageReader
{
	Relation	relation;		/* a plain table of the heap, locked */
	Snapshot	snapshot;		/* an MVCC snapshot */
	const PointSource *source;	/* of points */
	const AttrNumber *attributes;	/* as in PlainTable */
	PageIdType	id_type;
	GeonnGroups *groups;		/* the groups, by the source's columns to join by; keys of rows are added; NULL: no
								 * such columns */
	bool		met_shape;		/* a value is no point, and the source may have shapes: no page may be used any more */
	bool		by_xmin;		/* as for geonn_page_unsettled_by */
	int32		srid;			/* the SRID of the values that were read; 0: none yet, or they are no geometry */
	BufferAccessStrategy strategy;	/* NULL: the default */
	MemoryContext context;		/* memory for ids, and for converting coordinates; reset before each page */
	Datum	   *values;			/* [source->query_columns] */
	bool	   *nulls;			/* [source->query_columns] */
	Datum	   *by;				/* [source->by_count] the values of the columns to join by */
	bool	   *by_is_null;		/* [source->by_count] */

	/* the page that was read last */
	XLogRecPtr	lsn;			/* the LSN that the page had then */
	TransactionId unsettled_by; /* geonn_page_unsettled_by */
	int			count;
	PageRow		rows[MaxHeapTuplesPerPage]; /* [count] the rows, in the order of their line pointers */
} PageReader;

/* Return how to read many pages of a table that has `blocks` pages; NULL is the default. */
extern BufferAccessStrategy geonn_page_strategy(BlockNumber blocks);

/* Create a reader in the current memory context, without groups. */
extern PageReader *geonn_page_reader(const PointSource *source, const AttrNumber *attributes, Relation relation,
									 Snapshot snapshot);

/* Read a page that the table has. */
extern void geonn_page_read(PageReader *reader, BlockNumber block, const KnownRows *known);

/* a page is unsettled, by something other than a single transaction of another process */
#define UNSETTLED_BY_MORE	BootstrapTransactionId

/*
 * Return what makes a page unsettled.  A page is settled if it is all-visible, or if each transaction that has
 * inserted or deleted a tuple on it had ended before the snapshot was taken; with by_xmin, only transactions older
 * than the snapshot's xmin count as ended.  Returns InvalidTransactionId for a settled page; the one transaction
 * of another process that had not ended; or UNSETTLED_BY_MORE.  The caller holds a lock of the page.
 */
extern TransactionId geonn_page_unsettled_by(Page page, Snapshot snapshot, bool by_xmin);

#endif							/* GEONN_PAGE_POINTS_H */
