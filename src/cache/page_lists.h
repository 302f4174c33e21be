/*
 * page_lists.h
 *		The rows of geonn_cache_page: which points each page of a side's leaves had in the last run.
 */
#ifndef GEONN_CACHE_PAGE_LISTS_H
#define GEONN_CACHE_PAGE_LISTS_H

#include "cache/baseline.h"

/* a point, in the list of its page: its key in the baseline, and half of its hash */
typedef struct PageEntry
{
	uint64		key;
	uint64		hash;
} PageEntry;

/* the entry of a point, and its page */
typedef struct PagePoint
{
	PointPage	page;
	PageEntry	entry;
} PagePoint;

/* the lists of one side of a cache */
typedef struct PageLists PageLists;

/* How many pages of a leaf, with this many rows a page, share a row of geonn_cache_page: 1 or more. */
extern uint32 geonn_page_lists_width(uint32 rows_a_page);

/*
 * Open the lists, in the current memory context, to read them as the snapshot sees them; or to write
 * them.
 */
extern PageLists *geonn_page_lists_open(const GeonnCache *cache, CacheSide side, LOCKMODE lock,
										Snapshot snapshot);
extern void geonn_page_lists_close(PageLists *lists);

/*
 * Choose the leaf that the next calls are about; each of its rows has the lists of pages_a_row pages.
 * InvalidOid: they are about the state of the whole side.
 */
extern void geonn_page_lists_choose(PageLists *lists, Oid table, uint32 pages_a_row);

/* The list of a page; valid until the next call.  Fast for pages in their order. */
extern const PageEntry *geonn_page_lists_find(PageLists *lists, BlockNumber page, uint32 *count);

/*
 * For a leaf that has no lists: append a point to the list of its page.  The points of a page come one
 * after the other, and pages in ascending order from any page on to the last, and then from the
 * first.  geonn_page_lists_end writes the lists that have not been written.
 */
extern void geonn_page_lists_add(PageLists *lists, const PagePoint *point);
extern void geonn_page_lists_end(PageLists *lists);

/*
 * Replace the lists of these pages, which are in ascending order, by lists of these points, which are in
 * the order of their pages.
 */
extern void geonn_page_lists_replace(PageLists *lists, const BlockNumber *pages, uint32 page_count,
									 const PagePoint *points, uint64 point_count);

/*
 * The state that was stored with the lists, any bytes, valid until the next call; NULL: none was.  A state is
 * set once; replaces: one was stored.
 */
extern const bytea *geonn_page_lists_state(PageLists *lists);
extern void geonn_page_lists_set_state(PageLists *lists, const void *state, Size length, bool replaces);

/* Delete the leaf's lists and state. */
extern void geonn_page_lists_remove(PageLists *lists);

/* Delete all lists and states of a side. */
extern void geonn_page_lists_delete(const GeonnCache *cache, CacheSide side);

#endif							/* GEONN_CACHE_PAGE_LISTS_H */
