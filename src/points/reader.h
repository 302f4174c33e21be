/*
 * reader.h
 *		The points of a relation or query, as the caller of the statement may
 *		see them.
 */
#ifndef GEONN_READER_H
#define GEONN_READER_H

#include "points/row_values.h"
#include "points/table_reader.h"

/* is called with each row, in the order in which rows come */
typedef void (*PointConsumer) (void *state, const PointRow *row);

/*
 * May be called in place of a PointConsumer with many valid rows at once, if all
 * their values are passed by value.
 */
typedef void (*PointBlockConsumer) (void *state, uint32 rows, const Datum *ids,
									const double *latitudes, const double *longitudes);

/*
 * Raise the error that reading the source would raise, for lack of privileges for example, without reading
 * it.  Returns the tables (PlainTable) that make up the source, in order (geonn_plain_tables): a table
 * itself, or the leaves of its partitions or children.  NIL: the source has other rows.
 */
extern List *geonn_check_tables(const PointSource *source);

/*
 * The OIDs of all relations that the source's query names, or reads by way of views, partitions and children.
 * The list changes only if these relations do.
 */
extern List *geonn_relations_read(const PointSource *source);

/* Read all rows with the statement's snapshot. */
extern void geonn_read_points(const PointSource *source, InvalidPolicy invalid,
							  PointConsumer consume, void *state);

/*
 * Read the rows of some pages of the tables that make up the source (geonn_check_tables); pages has an
 * element for each.  Returns false, and has read nothing, if the source's plan now reads anything but these
 * tables.
 */
extern bool geonn_read_pages(const PointSource *source, InvalidPolicy invalid, const TablePages *pages,
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
	GEONN_READ_IN_PARTS,		/* some rows at a time, or all at once, without a parallel plan */
	GEONN_READ_AT_ONCE,			/* all rows at once, with a parallel plan if that is faster */
	GEONN_READ_SHARED			/* no row: only tables are determined, which processes then share */
} ReadingManner;

extern PointReading *geonn_reading_begin(const PointSource *source, InvalidPolicy invalid,
										 ReadingManner manner, PointConsumer consume,
										 void *state);

/*
 * Begin to read given points.  are_numbered: blocks have their numbers, from 1 on, in place of ids.  The warning about
 * them comes at the end, unless GivenPoints.each_alone.
 */
extern PointReading *geonn_reading_given(const GivenPoints *given, bool are_numbered, InvalidPolicy invalid,
										 PointConsumer consume, void *state);

/* Go on with other given points, after the last of those before; they are numbered from the first on. */
extern void geonn_reading_give(PointReading *reading, const GivenPoints *given);

/* Give valid rows to this consumer in blocks, where possible; ids must be passed by value. */
extern void geonn_reading_in_blocks(PointReading *reading, PointBlockConsumer consume);

/* The page that the rows of the present block were read from, as PointRow.page. */
extern PointPage geonn_reading_page(const PointReading *reading);

/*
 * The tables (PlainTable) that the reading reads from end to end, so that other
 * processes can help; NIL if it reads anything else.
 */
extern List *geonn_reading_tables(const PointReading *reading);

/*
 * Take part in reading the tables that another process shares for this source, with
 * the same policy.  Reports no skipped rows: the process that shares them does.
 */
extern PointReading *geonn_reading_attach(const PointSource *source, InvalidPolicy invalid,
										  SharedTables *tables, PointConsumer consume,
										  void *state);

/* The position of the present row or block (geonn_table_reader_position), if the reading is of tables. */
extern uint64 geonn_reading_position(const PointReading *reading);

/* How many rows were read so far, the present one included: in all, and by PointStatus. */
extern uint64 geonn_reading_rows(const PointReading *reading);
extern const uint64 *geonn_reading_counts(const PointReading *reading);

/*
 * Read this many rows, or all (0); false if fewer came, and all is read.
 */
extern bool geonn_reading_next(PointReading *reading, uint64 rows);

/* End the reading; not needed after all is read. */
extern void geonn_reading_end(PointReading *reading);

#endif							/* GEONN_READER_H */
