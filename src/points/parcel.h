/*
 * parcel.h
 *		Rows of points on their way from one process to another.
 */
#ifndef GEONN_PARCEL_H
#define GEONN_PARCEL_H

#include "storage/shm_mq.h"

#include "points/reader.h"

/* how many rows a parcel has room for: 200 kB of ids and coordinates */
#define PARCEL_ROWS 8192

/* rows of pages that follow each other */
typedef struct ParcelRun
{
	uint64		position;		/* the position of the first page (geonn_reading_position) */
	uint64		rows;
} ParcelRun;

/* the columns, those of the widest alignment first */
typedef enum ParcelColumn
{
	PARCEL_ID,					/* a Datum */
	PARCEL_LATITUDE,			/* a double */
	PARCEL_LONGITUDE,
	PARCEL_BY,					/* by_count Datums */
	PARCEL_LIMITS,				/* the first bytes of GeonnLimits */
	PARCEL_BY_IS_NULL			/* by_count bools */
} ParcelColumn;

#define PARCEL_COLUMNS (PARCEL_BY_IS_NULL + 1)

typedef struct Parcel
{
	uint32		rows;
	uint32		runs;
	ParcelRun  *run;			/* [runs] */
	char	   *column[PARCEL_COLUMNS];	/* the values of all rows */
	Size		width[PARCEL_COLUMNS];	/* bytes of a row; 0: rows have no such values */

	uint64		last_position;	/* the page of the row that was added last */
	uint32		next_run;		/* the first run still to be given to the consumer */
	uint32		next_row;		/* the first row of that run */
} Parcel;

/* Allocate room for rows of this source, in the current memory context. */
extern void geonn_parcel_create(Parcel *parcel, const PointSource *source);

/* Remove all rows. */
extern void geonn_parcel_clear(Parcel *parcel);

/* Add one or several valid rows from the page at this position.  There must be room, and values be by value. */
extern void geonn_parcel_add_row(Parcel *parcel, uint64 position, const PointRow *row);
extern void geonn_parcel_add_block(Parcel *parcel, uint64 position, uint32 rows, const Datum *ids,
								   const double *latitudes, const double *longitudes);

/* Send the parcel; waits while the queue is full.  False: the receiver has detached. */
extern bool geonn_parcel_send(const Parcel *parcel, shm_mq_handle *queue);

/* Open a received parcel with rows of this source; it lives as long as the message. */
extern void geonn_parcel_open(Parcel *parcel, const PointSource *source, char *message, Size length);

/* Have all rows been given to the consumer? */
extern bool geonn_parcel_is_empty(const Parcel *parcel);

/* The position of the next run to give. */
extern uint64 geonn_parcel_position(const Parcel *parcel);

/* Give that run to the consumer: as a block, or row by row if consume_block is NULL. */
extern void geonn_parcel_give_run(Parcel *parcel, PointConsumer consume,
								  PointBlockConsumer consume_block, void *state);

#endif							/* GEONN_PARCEL_H */
