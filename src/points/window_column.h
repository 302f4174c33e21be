/*
 * window_column.h
 *		Columns with the windows of points, and with their radiuses.
 */
#ifndef GEONN_WINDOW_COLUMN_H
#define GEONN_WINDOW_COLUMN_H

#include "utils/typcache.h"

#include "base/point_limits.h"

/* what the values of a column of windows are */
typedef struct WindowType
{
	Oid			type;			/* of the column, below any domain */
	Oid			element;		/* type of a single value, or of a range's bounds, below any domain */
	Oid			family;			/* windows of one family can be compared: the widest such type, as
								 * bigint for all integers */
	bool		is_range;
} WindowType;

/* a column that is named in the argument overlaps, for messages */
typedef struct NamedWindow
{
	const char *title;			/* of its source, as in: relation "city" */
	const char *name;
	Oid			declared;		/* its type */
	bool		is_array;		/* it is the elements of the argument windows */
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

/* Describe a type as declared.  False: it is none of windows. */
extern bool geonn_window_find_type(Oid declared, WindowType *type);

/*
 * Set window->type from window->declared.  Raises an error that names the cast to write, unless
 * values of the type have an order that 64 bits can hold.
 */
extern void geonn_window_describe(NamedWindow *window);

/* Raise an error that names the cast to write, unless the two columns have the same family. */
extern void geonn_window_check_pair(const NamedWindow *observation, const NamedWindow *reference);

/* The entry of a range type, for geonn_window_read; NULL: values are no ranges. */
extern TypeCacheEntry *geonn_window_range(const WindowType *type);

/*
 * Set window number of the limits to the column's value; of an empty range, and of NULL, the limits
 * become none.  May leave memory allocated in the current memory context.
 */
extern void geonn_window_read(const WindowType *type, TypeCacheEntry *range, Datum value,
							  bool is_null, int number, GeonnLimits *limits);

/* Of which kind a value of the column is.  May leave memory allocated, as geonn_window_read. */
extern WindowKind geonn_window_kind(const WindowType *type, TypeCacheEntry *range, Datum value,
									bool is_null);

/* Limits without any radius, before windows are read. */
extern void geonn_limits_begin(GeonnLimits *limits);

/* Set the radius: NULL and NaN do not limit the point, a negative one leaves no candidate. */
extern void geonn_limits_set_radius(GeonnLimits *limits, double radius, bool is_null);

#endif							/* GEONN_WINDOW_COLUMN_H */
