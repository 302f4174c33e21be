/*
 * changed_pages.h
 *		Which pages of a side's tables may have changed since its baseline was made or brought up to
 *		date.
 */
#ifndef GEONN_CACHE_CHANGED_PAGES_H
#define GEONN_CACHE_CHANGED_PAGES_H

#include "points/table_reader.h"

#include "cache/baseline.h"

/* A point in the list of its page: its key in the baseline, and half of its hash. */
typedef struct PageEntry
{
	uint64		key;
	uint64		hash;
} PageEntry;

/*
 * Find which pages of the source may have changed, before its rows are read with the active snapshot; new lists are made
 * from these rows.  Returns NULL, and deletes the baseline's lists, if the source is not made of tables whose pages show
 * their changes, or if lists would not pay.  reads_all: the caller reads all rows, whatever has changed.
 */
extern ChangedPages *geonn_pages_look(GeonnBaseline *baseline, const PointSource *source,
									  const GeonnQuestion *question, bool reads_all);

/*
 * Return whether the last run has stored lists, and only few pages may have changed.  If so, the caller reads these pages:
 * geonn_pages_to_read() returns them for each table, by OID (NULL: none), and geonn_pages_former() calls back for each
 * point that the pages had.  If not, the caller reads all rows.  With NULL as pages, returns false.
 */
extern bool geonn_pages_are_few(const ChangedPages *pages);
extern const TablePages *geonn_pages_to_read(const ChangedPages *pages, int *count);
typedef void (*PageEntryConsumer) (void *state, const PageEntry *entry);
extern void geonn_pages_former(ChangedPages *pages, PageEntryConsumer consume, void *state);

/* Have geonn_pages_store() delete all lists, and write none.  With NULL, does nothing. */
extern void geonn_pages_give_up(ChangedPages *pages);

/*
 * Enter a row that was read for the baseline into the new lists.  The rows of a page must come one
 * after the other.  With NULL, does nothing.
 */
extern void geonn_pages_add(ChangedPages *pages, const PointRow *row, const Fingerprint *fingerprint);

/* Write the new lists, after all rows to be read have been read.  With NULL, does nothing. */
extern void geonn_pages_store(ChangedPages *pages);

#endif							/* GEONN_CACHE_CHANGED_PAGES_H */
