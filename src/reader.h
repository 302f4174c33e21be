/*
 * reader.h
 *		The points of a relation or query, as the caller of the statement may
 *		see them.
 */
#ifndef GEONN_READER_H
#define GEONN_READER_H

#include "columns.h"
#include "table_reader.h"

typedef enum PointStatus
{
	POINT_VALID,
	POINT_NULL,					/* NULL id or coordinates, or an empty point */
	POINT_NOT_FINITE,
	POINT_LATITUDE_OUT,
	POINT_LONGITUDE_OUT
} PointStatus;

#define POINT_STATUSES 5

/* a row; what it points to is the consumer's during its call */
typedef struct PointRow
{
	PointStatus status;
	bool		id_is_null;
	Datum		id;
	bool		latitude_is_null;
	bool		longitude_is_null;
	double		latitude;		/* degrees */
	double		longitude;
	const Datum *by;
	const bool *by_is_null;
} PointRow;

/* what to do about coordinates that are no point's */
typedef enum InvalidPolicy
{
	GEONN_INVALID_SKIPPED,		/* a warning tells of them afterwards */
	GEONN_INVALID_KEPT,			/* likewise, and the consumer takes them */
	GEONN_INVALID_COUNTED,		/* the consumer does */
	GEONN_INVALID_IS_ERROR
} InvalidPolicy;

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
	GEONN_READ_IN_PARTS,
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

/* Rows that were read, by PointStatus; and what there is to be told of so many. */
extern const uint64 *geonn_reading_counts(const PointReading *reading);
extern void geonn_tell_of_rows(const PointSource *source, InvalidPolicy invalid,
							   const uint64 *counts);

/*
 * Read so many rows, or all (0); false where there were fewer, and all is read.
 */
extern bool geonn_reading_next(PointReading *reading, uint64 rows);

/* Read no more; not needed where all is read. */
extern void geonn_reading_end(PointReading *reading);

/* Is this a point? */
extern PointStatus geonn_point_status(double latitude, double longitude);

/* Raise the error of such coordinates; whose is as in: id 7 of relation "city". */
__attribute__((noreturn))
extern void geonn_raise_invalid(PointStatus status, double latitude, double longitude,
								const char *whose);

/*
 * The warning of rows that were skipped, or are kept without a neighbour.
 * counts is by PointStatus.
 */
extern void geonn_warn_of_rows(const char *title, const uint64 *counts, bool kept,
							   const char *hint);

#endif							/* GEONN_READER_H */
