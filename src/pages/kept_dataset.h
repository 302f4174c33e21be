/*
 * kept_dataset.h
 *		Labels, by which the engine finds the kept dataset that has a table's references as they are now.
 */
#ifndef GEONN_KEPT_DATASET_H
#define GEONN_KEPT_DATASET_H

#include "access/visibilitymapdefs.h"
#include "access/xlogdefs.h"
#include "storage/bufpage.h"

#include "join/reference_fate.h"
#include "points/columns.h"

/* A fate: find references that the engine keeps by their labels; have the engine keep those that a call reads. */
extern const ReferenceFate geonn_kept_fate;

/*
 * A fate like geonn_kept_fate, tried after rows were counted: meanwhile another session may have
 * left the references with the engine.
 */
extern const ReferenceFate geonn_kept_meanwhile_fate;

/*
 * Write labels of the datasets that contain these references for this question, as the active snapshot sees them; the
 * first label is that of a dataset with exactly this detail.  The references are the rows of this table, which is locked.
 * settled: write labels even if the table has pages that are not all-visible; each of these pages is then looked at.
 * Returns the number of labels, at most GEONN_LABELS_MAX for REFERENCE_DISTANCE and one otherwise.  0: changes of the
 * table cannot be detected, so no kept dataset may be used.  The caller may read the rows before or after this call.
 */
extern int	geonn_label_dataset(const PointSource *source, const PlainTable *table,
								const GeonnQuestion *question, ReferenceDetail detail,
								bool settled, struct geonn_label *labels);

/*
 * Write the subject of a label, GEONN_SUBJECT_BYTES: everything on which the meaning of the table's pages
 * depends.  Returns false if the visibility map does not show all changes to the active snapshot.
 */
extern bool geonn_describe_pages(const PointSource *source, Relation table,
								 const AttrNumber *attributes, const GeonnQuestion *question,
								 uint8 *subject);

/* ---- the visibility map ---- */

/*
 * Lock a table for SERIALIZABLE, before its visibility map stands for its pages.  Returns false if the map must not,
 * because a transaction may be writing: then each page is looked at under its lock.  In other isolation levels, locks
 * nothing and returns true.
 */
extern bool geonn_lock_for_map(Relation table, Snapshot snapshot);

/* A byte, and a page, of the visibility map describe this many blocks of the table (as in visibilitymap.c). */
#define BLOCKS_A_BYTE	(BITS_PER_BYTE / BITS_PER_HEAPBLOCK)
#define MAP_BYTES		(BLCKSZ - MAXALIGN(SizeOfPageHeaderData))
#define BLOCKS_A_MAP	((BlockNumber) (MAP_BYTES * BLOCKS_A_BYTE))

/* A page of the visibility map, as it was at one moment. */
typedef struct MapPage
{
	XLogRecPtr	lsn;
	uint8		bits[MAP_BYTES];
} MapPage;

/*
 * Copy the page of the visibility map for the BLOCKS_A_MAP blocks from `first` on, a multiple of
 * BLOCKS_A_MAP.  If the map ends before these blocks, the copy has neither bits nor LSN.
 */
extern void geonn_read_map(Relation table, BlockNumber first, MapPage *copy);

/* Return whether all transactions see all tuples of this block.  Its number counts from the map page's first block. */
static inline bool
geonn_map_is_visible(const MapPage *map, BlockNumber number)
{
	return map->bits[number / BLOCKS_A_BYTE] >> number % BLOCKS_A_BYTE * BITS_PER_HEAPBLOCK &
		VISIBILITYMAP_ALL_VISIBLE;
}

#endif							/* GEONN_KEPT_DATASET_H */
