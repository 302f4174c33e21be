/*
 * changed_pages.h
 *		Which pages of a side's tables may have changed since its baseline was made or brought up to
 *		date.
 */
#ifndef GEONN_CACHE_CHANGED_PAGES_H
#define GEONN_CACHE_CHANGED_PAGES_H

#include "points/table_reader.h"

#include "cache/baseline.h"
#include "cache/page_lists.h"

/*
 * Look at the source's tables, before its rows are read with the active snapshot for this baseline,
 * whose lists of pages will be those of now.  NULL, and the baseline has no lists any more, if the
 * source has other rows than those of tables whose pages show their changes, or lists would not pay.
 * A caller that reads all rows, whatever has changed, says so.
 */
extern ChangedPages *geonn_pages_look(const GeonnBaseline *baseline, const PointSource *source,
									  const GeonnQuestion *question, bool reads_all);

/*
 * Are lists of the last run there, and few pages that may have changed?  Then reading these is
 * enough, and the functions below tell which they are, for each of the source's tables, by OID, and
 * call back for each point that they had.  Otherwise, and with NULL, all rows are to be read.
 */
extern bool geonn_pages_are_few(const ChangedPages *pages);
extern const TablePages *geonn_pages_to_read(const ChangedPages *pages, int *count);
typedef void (*PageEntryConsumer) (void *state, const PageEntry *entry);
extern void geonn_pages_former(ChangedPages *pages, PageEntryConsumer consume, void *state);

/* Have geonn_pages_store write no lists, and delete those of the last run.  NULL: does nothing. */
extern void geonn_pages_give_up(ChangedPages *pages);

/* Enter a row that was read for the baseline into the new lists.  NULL: does nothing. */
extern void geonn_pages_add(ChangedPages *pages, const PointRow *row, const Fingerprint *fingerprint);

/* After all rows that were to be read: write the new lists.  NULL: does nothing. */
extern void geonn_pages_store(ChangedPages *pages);

#endif							/* GEONN_CACHE_CHANGED_PAGES_H */
