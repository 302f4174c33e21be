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

/* what goes for the lists of a leaf, as stored; the numbers of the unsettled pages follow */
typedef struct LeafState
{
	uint8		subject[GEONN_SUBJECT_BYTES];
	uint64		position;		/* XLogRecPtr */
	uint32		pages;
	uint32		pages_a_row;
	uint32		unsettled;
	uint32		unused;
} LeafState;

typedef struct Leaf
{
	Oid			table;
	const AttrNumber *attributes;	/* as in SourceTable; NULL: the table is no leaf any more */
	LeafState	now;
	PageSet		unsettled;

	bool		was_leaf;		/* former is known */
	LeafState	former;
	BlockNumber *former_unsettled;	/* [former.unsettled] */

	bool		is_same;		/* its pages are those of the last run, but for the changed ones */
	PageSet		changed;		/* if it is the same: pages that may have changed */
	bool		looked;			/* pages were looked at, so that the state is another one */
} Leaf;

/*
 * Take the former state from what geonn_leaf_state wrote; false if that is no state.
 */
extern bool geonn_leaf_set_former(Leaf *leaf, const char *state, Size length);

/* Append the present state to these bytes. */
extern void geonn_leaf_state(Leaf *leaf, StringInfo bytes);

/*
 * Look at the pages of the table.  position is the end of the WAL, not later than now.  Returns false
 * if pages do not show the table's changes.
 */
extern bool geonn_leaf_look(Leaf *leaf, const PointSource *source, const GeonnQuestion *question,
							uint64 position);

/*
 * How many pages may have changed, and which, from 0 on: of a leaf that is not the same all that it
 * has or had.
 */
extern uint32 geonn_leaf_changed_count(const Leaf *leaf);
extern BlockNumber geonn_leaf_changed_page(const Leaf *leaf, uint32 number);

/* May this page have changed? */
extern bool geonn_leaf_has_changed(const Leaf *leaf, BlockNumber page);

#endif							/* GEONN_CACHE_LEAF_H */
