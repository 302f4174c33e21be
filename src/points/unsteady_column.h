/*
 * unsteady_column.h
 *		Columns of views whose values each reading makes anew.
 */
#ifndef GEONN_UNSTEADY_COLUMN_H
#define GEONN_UNSTEADY_COLUMN_H

#include "access/attnum.h"
#include "utils/relcache.h"

/*
 * Return what makes a view's column anew at each reading, as the beginning of a sentence: a window function, or a
 * volatile one.  NULL: nothing does.  Locks the views that the view reads, as a SELECT from it does.
 */
extern const char *geonn_unsteady_column(Relation view, AttrNumber column);

#endif							/* GEONN_UNSTEADY_COLUMN_H */
