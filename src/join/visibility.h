/*
 * visibility.h
 *		A table's visibility map, page by page.
 */
#ifndef GEONN_VISIBILITY_H
#define GEONN_VISIBILITY_H

#include "postgres.h"

#include "access/visibilitymapdefs.h"
#include "access/xlogdefs.h"
#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/relcache.h"

/* blocks of the table in a byte, and on a page, of the visibility map (as in visibilitymap.c) */
#define BLOCKS_A_BYTE	(BITS_PER_BYTE / BITS_PER_HEAPBLOCK)
#define MAP_BYTES		(BLCKSZ - MAXALIGN(SizeOfPageHeaderData))
#define BLOCKS_A_MAP	((BlockNumber) (MAP_BYTES * BLOCKS_A_BYTE))

/* a page of the visibility map, as it was at one moment */
typedef struct MapPage
{
	XLogRecPtr	lsn;
	uint8		bits[MAP_BYTES];
} MapPage;

/*
 * Copy the page of the visibility map that describes this block, the first of a multiple of
 * BLOCKS_A_MAP, and the following ones.  The map may end before it: then none of them has a bit, and
 * the copy has no LSN.
 */
extern void geonn_read_map(Relation table, BlockNumber first, MapPage *copy);

/* Do all transactions see all tuples of this block, which is so many after the first of the page? */
static inline bool
geonn_map_is_visible(const MapPage *map, BlockNumber number)
{
	return map->bits[number / BLOCKS_A_BYTE] >> number % BLOCKS_A_BYTE * BITS_PER_HEAPBLOCK &
		VISIBILITYMAP_ALL_VISIBLE;
}

#endif							/* GEONN_VISIBILITY_H */
