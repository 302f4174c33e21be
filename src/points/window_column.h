/*
 * window_column.h
 *		Columns with the windows of points, and with their radiuses.
 */
#ifndef GEONN_WINDOW_COLUMN_H
#define GEONN_WINDOW_COLUMN_H

#include "utils/typcache.h"

#include "base/point_limits.h"

/* the type of a column of windows */
typedef struct WindowType
{
	Oid			type;			/* the column's type, below any domain */
	Oid			element;		/* the type of a single value, or of a range's bounds, below any domain */
	Oid			family;			/* the widest comparable type, as bigint for all integers; only windows of one
								 * family can overlap */
	TypeCacheEntry *range;		/* the range type, as this process knows it; NULL: values are no ranges */
} WindowType;

/* a column that the argument overlaps names, for messages */
typedef struct NamedWindow
{
	const char *title;			/* its source's name in messages, as in: relation "city" */
	const char *name;
	Oid			declared;		/* its declared type */
	bool		is_array;		/* the windows are the elements of the argument windows, no column */
	WindowType	type;
} NamedWindow;

typedef enum WindowKind
{
	WINDOW_NULL,
	WINDOW_EMPTY,
	WINDOW_INFINITE,			/* a side has no bound, or an infinite one */
	WINDOW_FINITE
} WindowKind;

#define WINDOW_KINDS	4

/* A sentence for errdetail: which types windows have. */
extern const char geonn_window_types[];

/* Describe a column's declared type.  Returns false if its values are no windows. */
extern bool geonn_window_find_type(Oid declared, WindowType *type);

/*
 * Set window->type from window->declared.  Raises an error that names the cast to write, unless
 * values of the type have an order that 64 bits can hold.
 */
extern void geonn_window_describe(NamedWindow *window);

/* Raise an error that names the cast to write, unless the two columns have the same family. */
extern void geonn_window_check_pair(const NamedWindow *observation, const NamedWindow *reference);

/*
 * Set the limits' window of this number to the column's value; an empty range, or NULL, sets limits->none.
 * May leave memory allocated in the current memory context.
 */
extern void geonn_window_read(const WindowType *type, Datum value, bool is_null, int number,
							  GeonnLimits *limits);

/* The kind of a value of the column.  May leave memory allocated, as geonn_window_read. */
extern WindowKind geonn_window_kind(const WindowType *type, Datum value, bool is_null);

/* Set the limits to those of a point without radius and windows; called before windows are read. */
extern void geonn_limits_begin(GeonnLimits *limits);

/* Set the radius: NULL and NaN do not limit the point, a negative one leaves no candidate. */
extern void geonn_limits_set_radius(GeonnLimits *limits, double radius, bool is_null);

#endif							/* GEONN_WINDOW_COLUMN_H */
