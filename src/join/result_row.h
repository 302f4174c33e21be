/*
 * result_row.h
 *		The rows of a result: pairs, as values of the row type's columns.
 */
#ifndef GEONN_RESULT_ROW_H
#define GEONN_RESULT_ROW_H

#include "access/tupdesc.h"
#include "utils/array.h"

#include "client/client.h"
#include "join/references.h"
#include "points/columns.h"

/* The data that a column's values need.  An unmatched observation has only its id and coordinates. */
enum
{
	GEONN_NEEDS_OBSERVATION_ID = 1 << 0,
	GEONN_NEEDS_OBSERVATION_LATITUDE = 1 << 1,
	GEONN_NEEDS_OBSERVATION_LONGITUDE = 1 << 2,
	GEONN_NEEDS_DISTANCE = 1 << 3,
	GEONN_NEEDS_REFERENCE_ID = 1 << 4,
	GEONN_NEEDS_REFERENCE_COORDINATES = 1 << 5,
	GEONN_NEEDS_EXTREMES = 1 << 6,	/* of the weights of a count */
	GEONN_NEEDS_SEGMENT = 1 << 7,	/* the arc of a shape that a place is on */
	GEONN_NEEDS_MEASURE = 1 << 8	/* of places of lines */
};

/* a column of the rows */
typedef struct ResultAttribute ResultAttribute;

typedef struct GeonnResultRow
{
	TupleDesc	descriptor;		/* the rows' type */
	const GeonnQuestion *question;	/* the question: its metric for bearings, and what a count counts */
	bool		has_places;		/* coordinates of references are the places of the pairs (GeonnBlock); if not, those of the
								 * references */
	int			needs;			/* GEONN_NEEDS_... that any column has */
	ResultAttribute *attributes;	/* [descriptor->natts] */
	ArrayType  *sums;			/* the present array of sums; NULL: the question has no weights */
	ArrayType  *mins;			/* the present arrays of mins and of maxs */
	ArrayType  *maxs;
	Datum		sides[3];		/* the words for GEONN_LINE_LEFT, GEONN_LINE_RIGHT and GEONN_LINE_ON */
	Datum		kinds[3];		/* the words for border points, noise and core points */
} GeonnResultRow;

/*
 * Describe rows of this type, for answers to the question; the caller must keep the question as long.  Raises an
 * error if the type is NULL (not composite), or if its columns, which are matched by name, do not suit the question
 * or the ids.  numbered: the observations are given, and the rows have their numbers, ord, in place of obs_id.
 * The caller sets has_places once the references are prepared.
 */
extern void geonn_result_row_begin(GeonnResultRow *row, TupleDesc descriptor, bool numbered,
								   const PointColumn *observation_id,
								   const PointColumn *reference_id, const GeonnQuestion *question);

/* Return whether ids of this column can be values of the row type's attribute, as they are or as wider integers. */
extern bool geonn_attribute_takes_id(Form_pg_attribute attribute, const PointColumn *id);

/* From now on rows have only these attributes of the row type, [descriptor->natts], numbered from 1 on. */
extern void geonn_result_row_project(GeonnResultRow *row, TupleDesc descriptor,
									 const AttrNumber *attributes);

/* Let rows take the tags of references as their ids, which are integers. */
extern void geonn_result_row_take_tags(GeonnResultRow *row);

/* Find where the values of the first `count` attributes lie in blocks.  Returns false if some do not lie there. */
extern bool geonn_result_row_in_blocks(const GeonnResultRow *row, int count, BlockColumn *columns);

/*
 * Write the row of the block's present pair, or of an observation without a pair.  What the row's values point to lives
 * until the next pair is taken.
 */
extern void geonn_result_row_fill(const GeonnResultRow *row, const GeonnBlock *block, const GeonnReferences *references,
								  Datum *values, bool *nulls);

#endif							/* GEONN_RESULT_ROW_H */
