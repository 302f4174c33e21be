/*
 * reader.h
 *		The points of a relation or query, as the caller of the statement may
 *		see them.
 */
#ifndef GEONN_READER_H
#define GEONN_READER_H

#include "points/point_row.h"
#include "points/table_reader.h"

/* is given each row, in the order in which they come */
typedef void (*PointConsumer) (void *state, const PointRow *row);

/*
 * May be given many valid rows at once, if all that there is to them are values.
 */
typedef void (*PointBlockConsumer) (void *state, uint32 rows, const Datum *ids,
									const double *latitudes, const double *longitudes);

/*
 * Raise the error that reading the source would raise for want of privileges or
 * the like, without reading it.
 */
extern void geonn_check_readable(const PointSource *source);

/*
 * The same.  Returns the table whose rows, as they are, the source's would be (see
 * geonn_plain_tables), or InvalidOid; *attributes are the table's columns that a row
 * has [source->query_columns].
 */
extern Oid	geonn_check_table(const PointSource *source, AttrNumber **attributes);

/* Read all rows with the statement's snapshot. */
extern void geonn_read_points(const PointSource *source, InvalidPolicy invalid,
							  PointConsumer consume, void *state);

/*
 * Read a part at a time: for those who take rows one by one.  It lives as long as
 * the current memory context, and uses the snapshot that is active when it begins.
 */
typedef struct PointReading PointReading;

/* how rows are going to be read */
typedef enum ReadingManner
{
	GEONN_READ_IN_PARTS,		/* or as a whole, but a parallel plan is not wanted */
	GEONN_READ_AT_ONCE,			/* so that parallel workers are of use */
	GEONN_READ_SHARED			/* from the tables, by others */
} ReadingManner;

extern PointReading *geonn_reading_begin(const PointSource *source, InvalidPolicy invalid,
										 ReadingManner manner, PointConsumer consume,
										 void *state);

/* Have valid rows given as blocks, where the reading can; ids that are no values cannot be. */
extern void geonn_reading_in_blocks(PointReading *reading, PointBlockConsumer consume);

/*
 * The tables (PlainTable) that it reads from end to end, so that others can help;
 * NIL: it reads anything else.
 */
extern List *geonn_reading_tables(const PointReading *reading);

/*
 * Read what others leave of tables that a reading of this source has, with the same
 * policy.  Nothing is told of rows that are no points: whoever shares them does.
 */
extern PointReading *geonn_reading_attach(const PointSource *source, InvalidPolicy invalid,
										  SharedTables *tables, PointConsumer consume,
										  void *state);

/* Where the present row or block comes from, as geonn_table_reader_place; if it reads tables. */
extern uint64 geonn_reading_place(const PointReading *reading);

/* Rows that were read, by PointStatus. */
extern const uint64 *geonn_reading_counts(const PointReading *reading);

/*
 * Read so many rows, or all (0); false where there were fewer, and all is read.
 */
extern bool geonn_reading_next(PointReading *reading, uint64 rows);

/* Read no more; not needed where all is read. */
extern void geonn_reading_end(PointReading *reading);

#endif							/* GEONN_READER_H */
