/*
 * sample.h
 *		Some points of a table, for estimates.
 */
#ifndef GEONN_SAMPLE_H
#define GEONN_SAMPLE_H

#include "nodes/bitmapset.h"
#include "utils/array.h"

#include "base/point_limits.h"
#include "points/options.h"

/* points at most */
#define SAMPLE_POINTS 512

/* no group: a column is NULL */
#define SAMPLE_NO_GROUP 0

typedef struct PointSample
{
	uint64		number;			/* of this process's samples, from 1 on */
	int			count;
	bool		complete;		/* these are all points of the table */
	bool		grouped;		/* groups is filled in */

	/* unit vectors */
	double		x[SAMPLE_POINTS];
	double		y[SAMPLE_POINTS];
	double		z[SAMPLE_POINTS];
	uint32		groups[SAMPLE_POINTS];	/* hashes of the columns to join by */
	bool		has_radius;		/* what limits have */
	int			windows;
	GeonnLimits *limits;		/* [count]; NULL: points have none */
} PointSample;

/*
 * A sample of the table's points, by its columns: those that are named, else those of the usual names
 * and types.  by, overlaps: names of columns to join by, and with windows, of which
 * pairs have one of this side; NULL: none.  NULL: the relation is not a plain
 * table with such columns, the user may not read them, policies apply, or no row has a point.  Raises no
 * error of its own.  The sample lives until the next call but seven, and samples are up to a minute
 * old.
 */
extern const PointSample *geonn_sample(Oid relation, const GeonnColumnNames *named,
									   bool is_reference, ArrayType *by, ArrayType *overlaps);

/*
 * May the role read these columns of the relation (attribute numbers less FirstLowInvalidHeapAttributeNumber;
 * none: any one)?  Asks no hook.
 */
extern bool geonn_may_read(Oid relation, Oid role, const Bitmapset *columns);

#endif							/* GEONN_SAMPLE_H */
