/*
 * parcel.h
 *		Rows of points on their way from one process to another.
 */
#ifndef GEONN_PARCEL_H
#define GEONN_PARCEL_H

#include "storage/shm_mq.h"

#include "points/reader.h"

/* rows that a parcel has room for: 200 kB of ids and coordinates */
#define PARCEL_ROWS 8192

/* rows of pages that follow one another */
typedef struct ParcelRun
{
	uint64		place;			/* of the first page (geonn_reading_place) */
	uint64		rows;
} ParcelRun;

typedef struct Parcel
{
	int			by_count;
	uint32		rows;
	uint32		runs;
	ParcelRun  *run;			/* [runs] */
	Datum	   *id;				/* [rows] */
	double	   *latitude;
	double	   *longitude;
	Datum	   *by;				/* [rows][by_count] */
	bool	   *by_is_null;

	uint64		last_place;		/* of the last row that was added */
	uint32		next_run;		/* the first one that has not been given */
	uint32		next_row;
} Parcel;

/* Get room for rows, which have so many columns to join by; in the current memory context. */
extern void geonn_parcel_create(Parcel *parcel, int by_count);

/* Have no rows in it. */
extern void geonn_parcel_clear(Parcel *parcel);

/* Add valid rows, for which there is room, from the page at this place; all values are by value. */
extern void geonn_parcel_add_row(Parcel *parcel, uint64 place, const PointRow *row);
extern void geonn_parcel_add_block(Parcel *parcel, uint64 place, uint32 rows, const Datum *ids,
								   const double *latitudes, const double *longitudes);

/* Send it; waits where the queue is full.  False: nobody receives any more. */
extern bool geonn_parcel_send(const Parcel *parcel, shm_mq_handle *queue);

/* What a message has that was sent so, with as many columns; it lives as long as the message. */
extern void geonn_parcel_open(Parcel *parcel, int by_count, char *message, Size length);

/* Has all of it been given? */
extern bool geonn_parcel_is_empty(const Parcel *parcel);

/* The place of the run that is to be given next. */
extern uint64 geonn_parcel_place(const Parcel *parcel);

/* Give that run: as a block, or row by row where consume_block is NULL. */
extern void geonn_parcel_give_run(Parcel *parcel, PointConsumer consume,
								  PointBlockConsumer consume_block, void *state);

#endif							/* GEONN_PARCEL_H */
