/*
 * point_row.h
 *		Rows of a source, and the messages about those that are no points.
 */
#ifndef GEONN_POINT_ROW_H
#define GEONN_POINT_ROW_H

#include "storage/block.h"

#include "points/columns.h"
#include "points/shape.h"

typedef enum PointStatus
{
	POINT_VALID,
	POINT_NULL,					/* the id or a coordinate is NULL, or the point is empty */
	POINT_NOT_FINITE,
	POINT_SWAPPED,				/* the latitude is out of range, but swapped with the longitude both would fit */
	POINT_LATITUDE_OUT,
	POINT_LONGITUDE_OUT
} PointStatus;

#define POINT_STATUSES 6

/* a page of a plain table */
typedef struct PointPage
{
	Oid			table;
	BlockNumber number;
} PointPage;

/* why a value of PostGIS's types can be neither point nor shape */
typedef struct GeonnRefusal
{
	const char *reason;			/* a sentence about "the shape" or "the point", without its row */
	bool		is_curve;		/* the type is none that geonn reads: a curve or surface */
} GeonnRefusal;

/* A row.  What its pointers point to is valid during the consumer's call. */
typedef struct PointRow
{
	PointStatus status;
	bool		id_is_null;
	Datum		id;
	bool		latitude_is_null;
	bool		longitude_is_null;
	double		latitude;		/* degrees; for a shape, the coordinates that geonn_shape_survey() finds */
	double		longitude;
	GeonnShapeReader *shape;	/* a reader at the shape's first part; NULL: the row is a point, or is not valid */
	const GeonnRefusal *refusal;	/* why the value cannot be read, with GEONN_INVALID_NAMED; NULL: it can */
	const char *untransformed;	/* that the value cannot be transformed to degrees, and why, for a message after "the point" or
								 * "the shape"; NULL: nothing is to be said */
	const Datum *by;			/* [by_count] values of the columns to join by */
	const bool *by_is_null;
	const GeonnLimits *limits;	/* NULL: the source has no limits (geonn_has_limits) */
	const Datum *values;		/* [query_columns] values of all columns of the source's query */
	const bool *nulls;
	PointPage	page;			/* the page from which the row was read; its table is 0 if other processes share the
								 * reading */
} PointRow;

/* Return what the value of a row of the source is called in messages. */
static inline const char *
geonn_place_word(const PointSource *source)
{
	return geonn_has_shapes(source) ? "shape" : "point";
}

/* Return whether the row's radius or a window excludes all candidates. */
static inline bool
geonn_row_is_limited_to_none(const PointRow *row)
{
	return row->limits != NULL && row->limits->none;
}

/* what to do about invalid coordinates */
typedef enum InvalidPolicy
{
	GEONN_INVALID_SKIPPED,		/* leave the row out, and count it for one warning after all rows */
	GEONN_INVALID_KEPT,			/* pass the row on, and count it for one warning after all rows */
	GEONN_INVALID_COUNTED,		/* pass the row on to a consumer that counts it, without a warning */
	GEONN_INVALID_NAMED,		/* as before, also rows whose value is an error otherwise: PointRow.refusal names it */
	GEONN_INVALID_IS_ERROR		/* raise an error for the first such row */
} InvalidPolicy;

/* Return the status of coordinates in degrees. */
extern PointStatus geonn_point_status(double latitude, double longitude);

/* Return how many rows have invalid coordinates; counts is by PointStatus. */
extern uint64 geonn_count_invalid(const uint64 *counts);

/*
 * Raise the error about the row's invalid coordinates.  `whose` names the row (geonn_whose_row); source is NULL for a
 * given point.
 */
__attribute__((noreturn))
extern void geonn_raise_invalid(const PointSource *source, const PointRow *row, const char *whose);

/*
 * Raise the error that a value of a point column cannot be read as a point.  The error comes under every policy but
 * GEONN_INVALID_NAMED.
 */
__attribute__((noreturn))
extern void geonn_raise_wrong_point(const PointSource *source, GeonnPointState state,
									int32 detail, const PointRow *row);

/* Return what is wrong with such a value, for a message about the point that `whose` names. */
extern char *geonn_wrong_point(GeonnPointState state, int32 detail, const char *whose);

/* Return a row's name for a message, for example: id 7 of relation "city"; and without its source: id 7. */
extern char *geonn_whose_row(const PointSource *source, const PointRow *row);
extern char *geonn_named_row(const PointSource *source, const PointRow *row);

/*
 * Return which coordinate of a row is out of range, and what it is, for example: latitude is out of range: 91; or that the row's
 * value cannot be transformed, and why.
 */
extern char *geonn_written_invalid(const PointSource *source, const PointRow *row);

/* Return a value of a row for a message, as its column's type writes it; shorten a long one. */
extern char *geonn_written_value(const PointColumn *column, const PointRow *row);

/* Report the skipped rows after all have been read; counts is by PointStatus. */
extern void geonn_tell_of_rows(const PointSource *source, InvalidPolicy invalid,
							   const uint64 *counts);

/*
 * Raise geonn_check's warning about the mistake that explains coordinates out of range, if one does.
 * fits_swapped: the valid points would also be valid with latitude and longitude swapped.
 */
extern void geonn_warn_of_mistake(const PointSource *source, const uint64 *counts,
								  bool fits_swapped);

/* Points that the caller passes, in place of a source's rows. */
typedef struct GivenPoints
{
	uint64		count;

	/*
	 * get a point by its number; numbers come in order, from 0 on.  What the row points to lives until the
	 * next call.  The function does not set the status
	 */
	void		(*point) (void *state, uint64 number, PointRow *row);

	/*
	 * get the coordinates of all points.  Returns false if a point is not valid, or has limits: then all points
	 * must be taken one by one.  NULL: points must always be taken one by one
	 */
	bool		(*points) (void *state, const double **latitudes, const double **longitudes);
	void	   *state;

	/*
	 * each point belongs to a call of its own.  The code that gives the points then warns of the skipped
	 * points of all calls
	 */
	bool		each_alone;

	bool		more_follow;	/* searches for other points follow, with the same references */
	bool		goes_on;		/* after these points, the search goes on with other points (geonn_search_go_on) */
} GivenPoints;

/*
 * Get a point by its number, from 0 on, with its status.  The caller passes a row that is 0, or that has
 * another of these points.
 */
extern void geonn_given_row(const GivenPoints *given, uint64 number, PointRow *row);

/* Warn of given points that are skipped, or (kept) that stay without a neighbour; counts is by PointStatus. */
extern void geonn_warn_of_given(const uint64 *counts, bool kept);

/* Raise the error about the first given point with invalid coordinates, if a point has them. */
extern void geonn_check_given(const GivenPoints *given);

#endif							/* GEONN_POINT_ROW_H */
