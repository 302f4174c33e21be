/*
 * reader.h
 *		The points of a relation or query, as the caller of the statement may
 *		see them.
 */
#ifndef GEONN_READER_H
#define GEONN_READER_H

#include "points/point_row.h"
#include "points/table_reader.h"

/* takes each row, in the order in which rows come */
typedef void (*PointConsumer) (void *state, const PointRow *row);

/*
 * May be called with many valid rows at once, if all their values are passed by
 * value.
 */
typedef void (*PointBlockConsumer) (void *state, uint32 rows, const Datum *ids,
									const double *latitudes, const double *longitudes);

/*
 * A value of a column of coordinates or radiuses, of this type below domains.  May leave memory
 * allocated in the current memory context.
 */
extern double geonn_number(Oid type, Datum value);

/*
 * Raise the error that reading the source would raise, for lack of privileges
 * for example, without reading it.
 */
extern void geonn_check_readable(const PointSource *source);

/*
 * Check the same.  Returns the table if the source's rows are that table's rows as
 * they are (see geonn_plain_tables), else InvalidOid; *attributes
 * [source->query_columns] are the table's columns in a row.
 */
extern Oid	geonn_check_table(const PointSource *source, AttrNumber **attributes);

/* Read all rows with the statement's snapshot. */
extern void geonn_read_points(const PointSource *source, InvalidPolicy invalid,
							  PointConsumer consume, void *state);

/*
 * Read the rows of some pages, in ascending ranges, of the one plain table that is the source
 * (geonn_check_table).  False, and nothing is read, if the source is now planned as anything else.
 */
extern bool geonn_read_pages(const PointSource *source, InvalidPolicy invalid, const PageRange *ranges,
							 int count, PointConsumer consume, void *state);

/*
 * Read some rows at a time, for a caller that takes rows one by one.  The reading
 * lives as long as the current memory context, and uses the snapshot that is
 * active when it begins.
 */
typedef struct PointReading PointReading;

/* how the caller is going to read */
typedef enum ReadingManner
{
	GEONN_READ_IN_PARTS,		/* or all at once, but without a parallel plan */
	GEONN_READ_AT_ONCE,			/* all at once, with a parallel plan if that is faster */
	GEONN_READ_SHARED			/* only to find the tables, which other processes help to read */
} ReadingManner;

extern PointReading *geonn_reading_begin(const PointSource *source, InvalidPolicy invalid,
										 ReadingManner manner, PointConsumer consume,
										 void *state);

/* Give valid rows as blocks where possible: only if ids are passed by value. */
extern void geonn_reading_in_blocks(PointReading *reading, PointBlockConsumer consume);

/*
 * The page of the table that the rows of the present block are on.  Returns false, and leaves it, if they
 * are not of the one table that this process reads alone.
 */
extern bool geonn_reading_page(const PointReading *reading, BlockNumber *page);

/*
 * The tables (PlainTable) that the reading reads from end to end, so that others
 * can help; NIL if it reads anything else.
 */
extern List *geonn_reading_tables(const PointReading *reading);

/*
 * Take part in reading the tables that another process shares for this source, with
 * the same policy.  Reports no skipped rows: the process that shares them does.
 */
extern PointReading *geonn_reading_attach(const PointSource *source, InvalidPolicy invalid,
										  SharedTables *tables, PointConsumer consume,
										  void *state);

/* The place of the present row or block (geonn_table_reader_place), if the reading is of tables. */
extern uint64 geonn_reading_place(const PointReading *reading);

/* The numbers of rows read so far, by PointStatus. */
extern const uint64 *geonn_reading_counts(const PointReading *reading);

/*
 * Read this many rows, or all (0); false if fewer came, and all is read.
 */
extern bool geonn_reading_next(PointReading *reading, uint64 rows);

/* End the reading; not needed after all is read. */
extern void geonn_reading_end(PointReading *reading);

#endif							/* GEONN_READER_H */
