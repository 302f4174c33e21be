/*
 * reader.h
 *		The points of a relation or query, as the caller of the statement may
 *		see them.
 */
#ifndef GEONN_READER_H
#define GEONN_READER_H

#include "points/row_values.h"
#include "points/table_reader.h"

/* A function that is called with each row, in the order in which rows come. */
typedef void (*PointConsumer) (void *state, const PointRow *row);

/*
 * A function that is called in place of a PointConsumer with many valid rows at once; all values of
 * these rows are passed by value.
 */
typedef void (*PointBlockConsumer) (void *state, uint32 rows, const Datum *ids,
									const double *latitudes, const double *longitudes);

/*
 * Raise the errors that reading the source would raise, for example for lack of privileges, without reading it.  Returns
 * the tables (PlainTable) that make up the source, in order (geonn_plain_tables): a table itself, or the leaves of its
 * partitions or children.  NIL: the source's rows come from something else.
 */
extern List *geonn_check_tables(const PointSource *source);

/*
 * Return the OIDs of all relations that the source's query names, or reads through views, partitions and
 * children.  The list changes only if these relations do.
 */
extern List *geonn_relations_read(const PointSource *source);

/*
 * Read all rows of the source with the statement's snapshot.  Returns false if the source may have shapes, and has one:
 * the rows before it were read.
 */
extern bool geonn_read_points(const PointSource *source, InvalidPolicy invalid,
							  PointConsumer consume, void *state);

/*
 * Read the rows of some pages of the tables that make up the source (geonn_check_tables); pages has an element for each
 * table.  If the source's plan now reads anything but these tables, returns false and reads nothing; returns false, too,
 * where geonn_read_points() does.
 */
extern bool geonn_read_pages(const PointSource *source, InvalidPolicy invalid, const TablePages *pages,
							 int count, PointConsumer consume, void *state);

/*
 * A reading of some rows at a time, for a caller that takes rows one by one.  It lives as long as
 * the current memory context, and uses the snapshot that is active when it begins.
 */
typedef struct PointReading PointReading;

/* how the caller is going to read */
typedef enum ReadingManner
{
	GEONN_READ_IN_PARTS,		/* some rows at a time, or all at once, without a parallel plan */
	GEONN_READ_AT_ONCE,			/* all rows at once, with a parallel plan if that is faster */
	GEONN_READ_SHARED			/* no rows: the reading only finds the tables, which processes then share */
} ReadingManner;

extern PointReading *geonn_reading_begin(const PointSource *source, InvalidPolicy invalid,
										 ReadingManner manner, PointConsumer consume,
										 void *state);

/*
 * Begin to read given points.  are_numbered: blocks have the points' numbers, from 1 on, in place of ids.  The warning
 * about skipped points comes at the end, unless GivenPoints.each_alone is set.
 */
extern PointReading *geonn_reading_given(const GivenPoints *given, bool are_numbered, InvalidPolicy invalid,
										 PointConsumer consume, void *state);

/* Go on with other given points, after the last of the points before; their numbers begin anew. */
extern void geonn_reading_give(PointReading *reading, const GivenPoints *given);

/* Give valid rows to this consumer in blocks, where possible; ids must be passed by value. */
extern void geonn_reading_in_blocks(PointReading *reading, PointBlockConsumer consume);

/* Return the page from which the rows of the present block were read, as PointRow.page. */
extern PointPage geonn_reading_page(const PointReading *reading);

/*
 * Return the tables (PlainTable) that the reading reads from end to end, so that other processes
 * can help; NIL if it reads anything else.
 */
extern List *geonn_reading_tables(const PointReading *reading);

/*
 * Take part in reading the tables that another process shares for this source, with the same
 * policy.  Leaves the report of skipped rows to the process that shares the tables.
 */
extern PointReading *geonn_reading_attach(const PointSource *source, InvalidPolicy invalid,
										  SharedTables *tables, PointConsumer consume,
										  void *state);

/* Return how many rows were read so far, the present one included: in all, and by PointStatus. */
extern uint64 geonn_reading_rows(const PointReading *reading);
extern const uint64 *geonn_reading_counts(const PointReading *reading);

/*
 * Have the reading go on at a value that is no point, of a source that may have shapes: from that row on, the source is
 * read as shapes (geonn_read_as_shapes).
 */
extern void geonn_reading_go_on_with_shapes(PointReading *reading);

/*
 * Read this many rows, or all rows (0).  Returns false if fewer came, because all have been read, or because the reading
 * has met a shape.
 */
extern bool geonn_reading_next(PointReading *reading, uint64 rows);

/* Return whether the reading has ended, without a report, at a value that is no point, of a source that may have shapes. */
extern bool geonn_reading_met_shape(const PointReading *reading);

/* End the reading; not needed once all rows have been read. */
extern void geonn_reading_end(PointReading *reading);

#endif							/* GEONN_READER_H */
