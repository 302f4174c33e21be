/*
 * leaf.h
 *		Which pages of one table may have changed since the lists of its pages were made.
 */
#ifndef GEONN_CACHE_LEAF_H
#define GEONN_CACHE_LEAF_H

#include "common/protocol.h"
#include "join/join.h"
#include "points/reader.h"

/* numbers of pages, ascending */
typedef struct PageSet
{
	BlockNumber *pages;
	uint32		count;
	uint32		room;
} PageSet;

/* what a leaf's lists of pages were made of, as stored; the numbers of the unsettled pages follow */
typedef struct LeafState
{
	uint64		subject[2];		/* a hash of what geonn_describe_pages says */
	uint64		position;		/* XLogRecPtr */
	Oid			table;
	uint32		pages;			/* how many the table had */
	uint32		unsettled;		/* how many were unsettled */
	uint32		unused;
} LeafState;

typedef struct Leaf
{
	Oid			table;
	const AttrNumber *attributes;	/* as in PlainTable; NULL: the table is no leaf any more */
	LeafState	now;			/* the state that this run stores */
	PageSet		unsettled;		/* the pages that are unsettled now */

	bool		was_leaf;		/* the last run stored a state of it, which is former */
	LeafState	former;
	BlockNumber *former_unsettled;	/* [former.unsettled] */

	bool		is_same;		/* pages but the changed ones are as the last run read them */
	PageSet		changed;		/* if is_same: the pages that may have changed since the last run */
	bool	   *is_listed;		/* [geonn_leaf_changed_count]: the page has a new list; NULL: all get one */
	bool		looked;			/* geonn_leaf_look read pages or found other ones: the state has to be stored anew */
} Leaf;

/*
 * Look at the pages of the table.  seed is the secret key of the subject's hash; position is the end of the
 * WAL, not later than now.  Returns false if pages do not show the table's changes.
 */
extern bool geonn_leaf_look(Leaf *leaf, const PointSource *source, const GeonnQuestion *question,
							const uint64 *seed, uint64 position);

/*
 * How many pages may have changed, and the number of one of them, counted from 0.  Unless is_same, all
 * pages that the leaf has or had may have.
 */
extern uint32 geonn_leaf_changed_count(const Leaf *leaf);
extern BlockNumber geonn_leaf_changed_page(const Leaf *leaf, uint32 number);

#endif							/* GEONN_CACHE_LEAF_H */
