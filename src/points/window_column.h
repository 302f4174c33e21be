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
	Oid			family;			/* the widest comparable type, such as bigint for all integers; only windows of one
								 * family can overlap */
	TypeCacheEntry *range;		/* the range type, from the cache of types; NULL: values are no ranges */
} WindowType;

/* A column that the argument overlaps names, for messages. */
typedef struct NamedWindow
{
	const char *title;			/* the name of the column's source in messages, for example: relation "city" */
	const char *name;
	Oid			declared;		/* the column's declared type */
	bool		is_array;		/* the windows are the elements of the argument windows, instead of a column */
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

/* A sentence for errdetail: the types that windows may have. */
extern const char geonn_window_types[];

/* Describe a column's declared type.  Returns false if its values are no windows. */
extern bool geonn_window_find_type(Oid declared, WindowType *type);

/*
 * Set window->type from window->declared.  Raises an error that names the cast to write, unless the
 * type's values have an order that fits into 64 bits.
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

/* Return the kind of a value of the column.  May leave memory allocated in the current memory context. */
extern WindowKind geonn_window_kind(const WindowType *type, Datum value, bool is_null);

/* Set the limits of a point without radius and windows.  The caller does so before windows are read. */
extern void geonn_limits_begin(GeonnLimits *limits);

/* Set the radius.  NULL and NaN do not limit the point; a negative radius leaves no candidate. */
extern void geonn_limits_set_radius(GeonnLimits *limits, double radius, bool is_null);

#endif							/* GEONN_WINDOW_COLUMN_H */
