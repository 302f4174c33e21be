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

/* the data that a column's values need; an unmatched observation has only its id and coordinates */
enum
{
	GEONN_NEEDS_OBSERVATION_ID = 1 << 0,
	GEONN_NEEDS_OBSERVATION_LATITUDE = 1 << 1,
	GEONN_NEEDS_OBSERVATION_LONGITUDE = 1 << 2,
	GEONN_NEEDS_DISTANCE = 1 << 3,
	GEONN_NEEDS_REFERENCE_ID = 1 << 4,
	GEONN_NEEDS_REFERENCE_COORDINATES = 1 << 5,
	GEONN_NEEDS_EXTREMES = 1 << 6	/* of the weights of a count */
};

/* a column of the rows */
typedef struct ResultAttribute ResultAttribute;

typedef struct GeonnResultRow
{
	TupleDesc	descriptor;		/* the rows' type */
	const GeonnQuestion *question;	/* says how bearings are measured, and what is counted */
	bool		has_places;		/* coordinates of references are the places that pairs have (GeonnBlock) */
	int			needs;			/* GEONN_NEEDS_... that any column has */
	ResultAttribute *attributes;	/* [descriptor->natts] */
	ArrayType  *sums;			/* the present value of the column sums; NULL: the question has no weights */
	ArrayType  *mins;			/* likewise */
	ArrayType  *maxs;
} GeonnResultRow;

/*
 * Describe rows of this type, of an answer to the question, which must live as long.  Raises an error if the type is
 * NULL (not composite), or if its columns, which are matched by name, do not suit the question or the ids.
 * numbered: the observations are given, and the rows have their numbers, ord, in place of obs_id.  has_places: as
 * in GeonnResultRow; of a row without places, references have the coordinates.
 */
extern void geonn_result_row_begin(GeonnResultRow *row, TupleDesc descriptor, bool numbered,
								   const PointColumn *observation_id,
								   const PointColumn *reference_id, const GeonnQuestion *question,
								   bool has_places);

/*
 * Can ids of this column be values of the row type's attribute as they are, or as wider integers?
 */
extern bool geonn_attribute_takes_id(Form_pg_attribute attribute, const PointColumn *id);

/*
 * From now on rows have only these attributes of the row type,
 * [descriptor->natts] of them, numbered from 1 on.
 */
extern void geonn_result_row_project(GeonnResultRow *row, TupleDesc descriptor,
									 const AttrNumber *attributes);

/* The tags of references are their ids, which are integers: rows have them as they are. */
extern void geonn_result_row_take_tags(GeonnResultRow *row);

/* Where the values of the first attributes lie in blocks, so many of them; false: not all do. */
extern bool geonn_result_row_in_blocks(const GeonnResultRow *row, int count, BlockColumn *columns);

/*
 * Write the row of the block's present pair, or of an observation without one; what its values point to lives until the
 * next pair is taken.
 */
extern void geonn_result_row_fill(const GeonnResultRow *row, const GeonnBlock *block, const GeonnReferences *references,
								  Datum *values, bool *nulls);

#endif							/* GEONN_RESULT_ROW_H */
