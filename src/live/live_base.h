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

/* A leaf has this many points, and an inner node this many children. */
#define LIVE_NODE	16
#define LIVE_NODE_BITS	4

/* Nodes have at most this many levels: LIVE_NODE to this power exceeds all numbers of points. */
#define LIVE_LEVELS	8

/* what a base ends with */
typedef struct LiveBaseHead
{
	uint64		format;
	uint64		position;		/* XLogRecPtr: the end of the WAL before the first page was read */
	uint64		horizon;		/* FullTransactionId: the xmin of the snapshot with which the pages were read */
	uint64		counts[POINT_STATUSES]; /* how many rows have each status */
	uint32		blocks;			/* how many pages the table had */
	uint32		rows;			/* how many rows the snapshot saw */
	uint32		points;			/* how many of the rows are points */
	uint32		starts;			/* 0: points have no groups; otherwise the number of groups, plus 1 */
	int32		srid;			/* the SRID of the values of which points were made; 0: all were NULL, or are no geometry */
	uint32		unused;
} LiveBaseHead;

typedef struct LivePoint
{
	double		latitude;		/* degrees; NaN: the row is no point */
	double		longitude;
	int64		id;				/* the number of the id (live_id.h); for a row that is no point, its PointStatus */
} LivePoint;

/* a point's unit vector */
typedef struct LiveVector
{
	float		x;
	float		y;
	float		z;
} LiveVector;

/* The points of a leaf as unit vectors; unused places have numbers far from any point. */
typedef struct LiveLeaf
{
	float		x[LIVE_NODE];
	float		y[LIVE_NODE];
	float		z[LIVE_NODE];
} LiveLeaf;

/* The boxes around the children of an inner node; unused places have numbers far from any point. */
typedef struct LiveBoxes
{
	LiveLeaf	low;
	LiveLeaf	high;
} LiveBoxes;

/*
 * A base.  Another process has written it, so whatever it says of rows is checked when it is read
 * (geonn_live_base_rows, geonn_live_status).
 */
typedef struct LiveBase
{
	MemoryFile *file;
	MemoryFile *values;			/* the ids, if they are not passed by value; NULL: numbers are the ids */
	const LiveBaseHead *head;
	const LivePoint *points;	/* [head->rows] in the order of pages */
	const OffsetNumber *offset; /* [head->rows] their line pointers */
	const LiveLeaf *leaves;		/* [nodes[0]] */
	const uint32 *row;			/* [head->points] the number of each point's row, in the order of the index */
	const uint32 *start;		/* [head->starts] where each group's first point is in the order of the index; the last
								 * value is where the points without a group begin, which come last */
	const int32 *group;			/* [head->rows] each row's group; NULL: points have no groups */
	int			levels;			/* how many levels of inner nodes; 0: the only leaf, if any, is the root */
	uint32		nodes[LIVE_LEVELS + 1]; /* how many nodes each level has; level 0 are the leaves */
	const LiveBoxes *boxes[LIVE_LEVELS + 1];	/* of each level from 1 on: [nodes[level]] */
	const uint32 *first_row;	/* [head->blocks + 1] the number of each page's first row */
	const XLogRecPtr *lsn;		/* [head->blocks] the LSN that each page had when it was read */
	const uint8 *settled;		/* [head->blocks] was the page settled? */
} LiveBase;

/* the points of all groups and of none */
#define LIVE_ALL_GROUPS	(-1)

/*
 * Read all pages of the table, and make a base of them.  The base lives as long as the current memory context, and
 * its files can be left with a dataset.  Returns NULL if the base would have more than most_bytes.  *bytes becomes
 * the bytes of the base; for a base that would be too large, the bytes of the rows read so far.
 */
extern LiveBase *geonn_live_base_make(PageReader *reader, uint64 most_bytes, uint64 *bytes);

/*
 * Open the base in a file that another process has made, with the ids in a file beside it.  Returns NULL if
 * the file has another format.
 */
extern LiveBase *geonn_live_base_open(MemoryFile *file, MemoryFile *values);

/*
 * Return whether so many transactions have begun since the base was made that numbers of new ones may soon look older
 * than it.
 */
extern bool geonn_live_base_is_old(const LiveBase *base);

/* Find the rows of a page: the number of the first one, and of the one after the last. */
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

/* Return the point of a row.  The number of its id is the id as it was read. */
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

/* A search for the nearest points of one observation, or for all points within a distance. */
typedef struct LiveSearch
{
	struct geonn_vector from;
	float		x;				/* `from` as float32 */
	float		y;
	float		z;
	double		max_distance;	/* metres */
	float		limit;			/* points whose squared chord, in float32, is above the limit are no neighbours */
	uint32		k;				/* 0: all points within max_distance */
	uint32		count;
	int32		group;			/* only points of this group are neighbours; LIVE_ALL_GROUPS: all points */
	uint32		first;			/* places in the base: from this one on */
	uint32		end;			/* before this one */
	const LiveIds *ids;			/* NULL: ids are integers */
	const GeonnReferences *excluding;	/* tells which ids equal own_id: points with them are passed over; NULL: none are */
	Datum		own_id;			/* the observation's */
	LiveNeighbour *found;		/* [k] a heap whose first element is the last in the order of neighbours */
	bool		ties;			/* the search also finds all points at the distance of the k-th */
	LiveNeighbour *tied;		/* [tied_room] the points at the distance of the k-th; for k = 0 all points found.  In
								 * the current memory context; NULL: none yet */
	uint32		tied_count;
	uint32		tied_room;
} LiveSearch;

/*
 * Begin a search for the nearest points of a group, or of LIVE_ALL_GROUPS.  The question has k, max_distance and ties;
 * found has room for k; ids is as in LiveSearch.  The search passes over no id.
 */
extern void geonn_live_search_begin(LiveSearch *search, const GeonnQuestion *question, double latitude,
									double longitude, int32 group, const LiveIds *ids, LiveNeighbour *found);

/*
 * Have the search pass over the references whose ids equal this id of an observation.  The caller does so before it offers
 * any point.
 */
extern void geonn_live_search_exclude(LiveSearch *search, const GeonnReferences *references, Datum own_id);

/* Offer the points of the base to the search, except those whose rows have a bit in `masked`. */
extern void geonn_live_search_base(LiveSearch *search, const LiveBase *base, const uint64 *masked);

/*
 * Offer points to the search: `count` whole leaves with their points and the points' groups; groups may be NULL if the
 * search is for all groups.
 */
extern void geonn_live_search_leaves(LiveSearch *search, const LiveLeaf *leaves, const LivePoint *points,
									 const int32 *groups, uint32 count);

/* End the search: put the found neighbours into order.  Returns how many they are. */
extern uint32 geonn_live_search_end(LiveSearch *search);

/* Return the found neighbour with this number, from 0 on. */
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

/* Fill a place of a leaf that has no point. */
static inline void
geonn_live_no_point(LiveLeaf *leaves, uint32 number)
{
	static const LiveVector nowhere = {1e15f, 1e15f, 1e15f};

	geonn_live_put_vector(leaves, number, &nowhere);
}

#endif							/* GEONN_LIVE_BASE_H */
