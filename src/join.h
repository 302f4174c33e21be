/*
 * join.h
 *		A join: two sources of points, a question, and where the pairs go.
 */
#ifndef GEONN_JOIN_H
#define GEONN_JOIN_H

#include "utils/tuplestore.h"

#include "client.h"
#include "columns.h"
#include "reader.h"

typedef struct GeonnJoin
{
	PointSource *observations;	/* NULL: points of arrays */
	PointSource *references;
	GeonnQuestion question;		/* but for columns and ids, which the join knows */
	bool		exclude_self;
	bool		keep_unmatched;
	InvalidPolicy invalid;

	/* instead of observations: their ids are 1 ... points */
	int			points;
	const double *latitude;		/* [points] */
	const double *longitude;
	const bool *latitude_is_null;
	const bool *longitude_is_null;
} GeonnJoin;

/*
 * A join under way, in a memory context of its own below the current one.  Its
 * rows are of this type (NULL: not composite), which is checked against the
 * join.  Either all rows are stored, or they are taken one by one.
 */
typedef struct GeonnSearch GeonnSearch;

extern GeonnSearch *geonn_search_begin(GeonnJoin *join, TupleDesc row_type);

/* Rows are to have only these attributes of the row type, numbered from 1 on. */
extern void geonn_search_project(GeonnSearch *search, TupleDesc descriptor,
								 const AttrNumber *attributes);

/* Store all rows. */
extern void geonn_search_store(GeonnSearch *search, Tuplestorestate *store);

/* Find all rows now, and keep them until they are taken one by one. */
extern void geonn_search_complete(GeonnSearch *search);

/*
 * The next row; false where there is none.  What its values point to lives until the
 * next call.
 */
extern bool geonn_search_next(GeonnSearch *search, Datum *values, bool *nulls);

/* Let go of all that it holds, at any time. */
extern void geonn_search_end(GeonnSearch *search);

#endif							/* GEONN_JOIN_H */
