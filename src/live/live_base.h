/*
 * live_base.h
 *		The base of a table's references: a memory file with its points in the order of an index, and with
 *		each one's page.
 */
#ifndef GEONN_LIVE_BASE_H
#define GEONN_LIVE_BASE_H

#include "client/memory_file.h"
#include "client/question.h"
#include "common/geodesy.h"
#include "join/references.h"
#include "live/live_id.h"
#include "pages/page_points.h"

/* how many points a leaf has, and how many children an inner node */
#define LIVE_NODE	16
#define LIVE_NODE_BITS	4

/* the greatest number of levels: LIVE_NODE to this power exceeds all numbers of points */
#define LIVE_LEVELS	8

/* what a base ends with */
typedef struct LiveBaseHead
{
	uint64		format;
	uint64		position;		/* XLogRecPtr: the end of the WAL before any page was read */
	uint64		horizon;		/* FullTransactionId: xmin of the snapshot that read the pages */
	uint64		counts[POINT_STATUSES]; /* how many rows have each status */
	uint32		blocks;			/* how many pages the table had */
	uint32		rows;			/* how many rows the snapshot saw */
	uint32		points;			/* how many of them are points */
	uint32		starts;			/* 0: they are in no groups; else one more than there are groups */
} LiveBaseHead;

typedef struct LivePoint
{
	double		latitude;		/* degrees; NaN: the row is no point */
	double		longitude;
	int64		id;				/* the number of the id (live_id.h), or the row's PointStatus */
} LivePoint;

/* a point's unit vector */
typedef struct LiveVector
{
	float		x;
	float		y;
	float		z;
} LiveVector;

/* the points of a leaf as unit vectors, padded with numbers that are far from any point */
typedef struct LiveLeaf
{
	float		x[LIVE_NODE];
	float		y[LIVE_NODE];
	float		z[LIVE_NODE];
} LiveLeaf;

/* the boxes around the children of an inner node, padded likewise */
typedef struct LiveBoxes
{
	LiveLeaf	low;
	LiveLeaf	high;
} LiveBoxes;

/*
 * A base.  What it says of rows is to be checked when it is read (geonn_live_base_rows,
 * geonn_live_status): another process has written it.
 */
typedef struct LiveBase
{
	MemoryFile *file;
	MemoryFile *values;			/* ids that are not passed by value; NULL: there are none */
	const LiveBaseHead *head;
	const LivePoint *points;	/* [head->rows] in the order of pages */
	const OffsetNumber *offset; /* [head->rows] their line pointers */
	const LiveLeaf *leaves;		/* [nodes[0]] */
	const uint32 *row;			/* [head->points] the number of each point's row, in the order of the index */
	const uint32 *start;		/* [head->starts] the place in that order of each group's first point, and of the first one
								 * of no group, which come last */
	const int32 *group;			/* [head->rows] each row's group; NULL, as start: there are no groups */
	int			levels;			/* how many levels of inner nodes; 0: the one leaf, if any, is the root */
	uint32		nodes[LIVE_LEVELS + 1]; /* how many nodes each level has, the leaves' first */
	const LiveBoxes *boxes[LIVE_LEVELS + 1];	/* of each level from 1 on: [nodes[level]] */
	const uint32 *first_row;	/* [head->blocks + 1] the number of each page's first row */
	const XLogRecPtr *lsn;		/* [head->blocks] the page's LSN when it was read */
	const uint8 *settled;		/* [head->blocks] was the page settled? */
} LiveBase;

/* the points of all groups and of none */
#define LIVE_ALL_GROUPS	(-1)

/*
 * Read all pages of the table, and make a base of them; it lives as long as the current memory context, and its files
 * can be left with a dataset.  NULL: the base would have more than this many bytes.  *bytes is how many it has, or in
 * that case those of the rows that were read.
 */
extern LiveBase *geonn_live_base_make(PageReader *reader, uint64 most_bytes, uint64 *bytes);

/* The base in a file that another process has made, and the ids beside it; NULL: the file has another form. */
extern LiveBase *geonn_live_base_open(MemoryFile *file, MemoryFile *values);

/* Have so many transactions begun since the base was made that the numbers of new ones may soon be taken for old ones? */
extern bool geonn_live_base_is_old(const LiveBase *base);

/* The rows of a page: the number of the first one, and of the one after the last. */
static inline void
geonn_live_base_rows(const LiveBase *base, BlockNumber block, uint32 *first, uint32 *end)
{
	*first = *end = 0;
	if (block >= base->head->blocks)
		return;
	*first = base->first_row[block];
	*end = base->first_row[block + 1];
	if (*first > *end || *end > base->head->rows || *end - *first > MaxHeapTuplesPerPage)
		elog(ERROR, "the geonn base of a table has a damaged list of rows");
}

/* The point of a row, where the id's number is the id as it was read. */
static inline LivePoint
geonn_live_point(const PageRow *row)
{
	return row->status == POINT_VALID ? (LivePoint) {row->latitude, row->longitude, row->id} :
		(LivePoint) {NAN, NAN, row->status};
}

static inline PointStatus
geonn_live_status(const LivePoint *point)
{
	if (!isnan(point->latitude))
		return POINT_VALID;
	if (point->id <= POINT_VALID || point->id >= POINT_STATUSES)
		elog(ERROR, "the geonn base of a table has a damaged row");
	return (PointStatus) point->id;
}

/* ---- the nearest points ---- */

typedef struct LiveNeighbour
{
	double		distance;		/* metres */
	double		chord;			/* the squared chord */
	double		latitude;		/* degrees */
	double		longitude;
	int64		id;				/* the number of the id */
} LiveNeighbour;

/* a search for the nearest points of one observation, or for all within a distance */
typedef struct LiveSearch
{
	struct geonn_vector from;
	float		x;				/* the same */
	float		y;
	float		z;
	double		max_distance;	/* metres */
	float		limit;			/* points with a squared chord above it, as float32, are no neighbours */
	uint32		k;				/* 0: all points within max_distance */
	uint32		count;
	int32		group;			/* points of others are no neighbours; or LIVE_ALL_GROUPS */
	uint32		first;			/* places in the base: from this one on */
	uint32		end;			/* before this one */
	const LiveIds *ids;			/* NULL: they are integers */
	const GeonnReferences *excluding;	/* tell which ids are the observation's own, which are passed over; NULL: none are */
	Datum		own_id;			/* the observation's */
	LiveNeighbour *found;		/* [k] a heap whose first element comes last in the order of neighbours */
	bool		ties;			/* points at the distance of the k-th are found, too */
	LiveNeighbour *tied;		/* [tied_room] these points, or for k = 0 all, in the current memory context; NULL: none yet */
	uint32		tied_count;
	uint32		tied_room;
} LiveSearch;

/*
 * Begin a search for the nearest points of a group, or of LIVE_ALL_GROUPS.  The question has k, max_distance and ties;
 * found has room for k; ids is as in LiveSearch.  No id is passed over.
 */
extern void geonn_live_search_begin(LiveSearch *search, const GeonnQuestion *question, double latitude,
									double longitude, int32 group, const LiveIds *ids, LiveNeighbour *found);

/* Pass over the references whose ids equal an observation's id; before any point is offered. */
extern void geonn_live_search_exclude(LiveSearch *search, const GeonnReferences *references, Datum own_id);

/* Offer the points of the base, but for those whose rows have a bit in `masked`. */
extern void geonn_live_search_base(LiveSearch *search, const LiveBase *base, const uint64 *masked);

/* Offer points: this many whole leaves with their points, and the points' groups, which may be NULL if all are asked for. */
extern void geonn_live_search_leaves(LiveSearch *search, const LiveLeaf *leaves, const LivePoint *points,
									 const int32 *groups, uint32 count);

/* End the search: bring what was found into order.  Returns how many neighbours there are. */
extern uint32 geonn_live_search_end(LiveSearch *search);

/* One of them, by its number from 0 on. */
static inline const LiveNeighbour *
geonn_live_search_neighbour(const LiveSearch *search, uint32 number)
{
	return number < search->count ? &search->found[number] : &search->tied[number - search->count];
}

/* Compute the unit vectors of points. */
extern void geonn_live_vectors(const LivePoint *points, uint32 count, LiveVector *vectors);

/* Write a place of a leaf. */
static inline void
geonn_live_put_vector(LiveLeaf *leaves, uint32 number, const LiveVector *vector)
{
	LiveLeaf   *leaf = &leaves[number / LIVE_NODE];

	leaf->x[number % LIVE_NODE] = vector->x;
	leaf->y[number % LIVE_NODE] = vector->y;
	leaf->z[number % LIVE_NODE] = vector->z;
}

/* Write a place of a leaf that has no point. */
static inline void
geonn_live_no_point(LiveLeaf *leaves, uint32 number)
{
	static const LiveVector nowhere = {1e15f, 1e15f, 1e15f};

	geonn_live_put_vector(leaves, number, &nowhere);
}

#endif							/* GEONN_LIVE_BASE_H */
