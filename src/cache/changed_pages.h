/*
 * changed_pages.h
 *		Which pages of a side's tables may have changed since its baseline was made or brought up to
 *		date.
 */
#ifndef GEONN_CACHE_CHANGED_PAGES_H
#define GEONN_CACHE_CHANGED_PAGES_H

#include "points/table_reader.h"

#include "cache/baseline.h"

/* a point, in the list of its page: its key in the baseline, and half of its hash */
typedef struct PageEntry
{
	uint64		key;
	uint64		hash;
} PageEntry;

/*
 * Find which pages of the source may have changed, before its rows are read with the active snapshot.  New
 * lists are made of these rows.  Returns NULL, and deletes the baseline's lists, if the source is not made of
 * tables whose pages show their changes, or if lists would not pay.  reads_all: the caller reads all rows,
 * whatever has changed.
 */
extern ChangedPages *geonn_pages_look(GeonnBaseline *baseline, const PointSource *source,
									  const GeonnQuestion *question, bool reads_all);

/*
 * Has the last run stored lists, and may only few pages have changed?  If so, the caller reads these:
 * geonn_pages_to_read returns them for each table, by OID (NULL: none), and geonn_pages_former calls back for
 * each point that they had.  If false, as for NULL, the caller reads all rows.
 */
extern bool geonn_pages_are_few(const ChangedPages *pages);
extern const TablePages *geonn_pages_to_read(const ChangedPages *pages, int *count);
typedef void (*PageEntryConsumer) (void *state, const PageEntry *entry);
extern void geonn_pages_former(ChangedPages *pages, PageEntryConsumer consume, void *state);

/* Have geonn_pages_store delete all lists, and write none.  NULL: does nothing. */
extern void geonn_pages_give_up(ChangedPages *pages);

/*
 * Enter a row that was read for the baseline into the new lists.  The rows of a page come one after the
 * other.  NULL: does nothing.
 */
extern void geonn_pages_add(ChangedPages *pages, const PointRow *row, const Fingerprint *fingerprint);

/* Called after all rows that were to be read: write the new lists.  NULL: does nothing. */
extern void geonn_pages_store(ChangedPages *pages);

#endif							/* GEONN_CACHE_CHANGED_PAGES_H */
