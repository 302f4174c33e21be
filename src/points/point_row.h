/*
 * point_row.h
 *		Rows that are no points, and what is said of them.
 */
#ifndef GEONN_POINT_ROW_H
#define GEONN_POINT_ROW_H

#include "points/columns.h"

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

/* Raise the error of a value of a point column that no setting makes a point. */
__attribute__((noreturn))
extern void geonn_raise_wrong_point(const PointSource *source, GeonnPointState state,
									int32 detail, const PointRow *row);

/* Which row it is, for a message: as in id 7 of relation "city". */
extern char *geonn_whose_row(const PointSource *source, const PointRow *row);

/* After all rows: what there is to be told of so many, by PointStatus. */
extern void geonn_tell_of_rows(const PointSource *source, InvalidPolicy invalid,
							   const uint64 *counts);

#endif							/* GEONN_POINT_ROW_H */
