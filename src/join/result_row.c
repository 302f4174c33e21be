/*
 * result_row.c
 *		What the rows of a result are: pairs, counts, or clusters, as the row type has them.
 *
 * The caller says by the argument row_type which columns a row has: any of
 * those of the table below, by their names, in any order.  The table says of a
 * column what types it may have, what its values are made of, and how.  What a
 * search has to know of references and observations follows from that.  The ids
 * have the types of the tables; integers may become wider.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "base/words.h"
#include "client/connection.h"
#include "join/geodesics.h"
#include "join/result_row.h"
#include "base/value.h"

/* The types that a column of the result may have; ids come first. */
typedef enum ColumnType
{
	TYPE_OBSERVATION_ID,
	TYPE_REFERENCE_ID,
	TYPE_COUNT,					/* bigint or integer */
	TYPE_TEXT,
	TYPE_DOUBLE,
	TYPE_DOUBLES				/* double precision[] */
} ColumnType;

#define ID_TYPES (TYPE_REFERENCE_ID + 1)

/* what the values of a column are */
typedef enum ResultValue
{
	VALUE_OBSERVATION_ID,
	VALUE_REFERENCE_ID,
	VALUE_DISTANCE,
	VALUE_RANK,
	VALUE_OBSERVATION_LATITUDE,
	VALUE_OBSERVATION_LONGITUDE,
	VALUE_REFERENCE_LATITUDE,
	VALUE_REFERENCE_LONGITUDE,
	VALUE_BEARING,
	VALUE_REFERENCE_FRACTION,
	VALUE_REFERENCE_SEGMENT,
	VALUE_REFERENCE_SIDE,
	VALUE_REFERENCE_MEASURE,
	VALUE_NEAR_LATITUDE,
	VALUE_NEAR_LONGITUDE,
	VALUE_RADIUS,
	VALUE_COUNT,
	VALUE_SUM,
	VALUE_SUMS,
	VALUE_MIN,
	VALUE_MINS,
	VALUE_MAX,
	VALUE_MAXS,
	VALUE_CLUSTER,
	VALUE_KIND,
	VALUE_KEPT_BY
} ResultValue;

/* Which rows may have a column; and which rows have it unless the caller says otherwise. */
enum
{
	OF_PAIRS = 1 << 0,
	OF_COUNTS = 1 << 1,
	OF_CLUSTERS = 1 << 2,
	OF_THINNINGS = 1 << 3,
	USUAL_OF_PAIRS = OF_PAIRS << 4,
	USUAL_OF_COUNTS = OF_COUNTS << 4,
	USUAL_OF_CLUSTERS = OF_CLUSTERS << 4,
	USUAL_OF_THINNINGS = OF_THINNINGS << 4
};

/* a row of the table */
typedef struct ResultColumn
{
	const char *name;
	int			rows;			/* bits OF_PAIRS ... */
	ColumnType	type;
	int			needs;			/* GEONN_NEEDS_...; the value is NULL if one of them is missing */
	ResultValue value;
	const char *name_if_numbered;	/* for numbered observations; NULL: name */
	BlockColumn in_block;		/* where the column's values lie in a block; 0: they are made one by one */
} ResultColumn;

struct ResultAttribute
{
	const ResultColumn *column; /* NULL: a dropped column of the row type */
	Oid			type;			/* the type of the column's values in the result */
	Oid			narrow_type;	/* the type of ids that become wider integers in rows; InvalidOid: ids stay as they are */
	BlockColumn in_block;		/* where the column's values lie in a block; 0: values have to be made one by one */
};

/* ---- the columns ---- */

static const ResultColumn result_columns[] = {
	{"id", OF_CLUSTERS | OF_THINNINGS | USUAL_OF_CLUSTERS | USUAL_OF_THINNINGS, TYPE_REFERENCE_ID, GEONN_NEEDS_REFERENCE_ID,
		VALUE_REFERENCE_ID, NULL, {0}},
	{"kept_by", OF_THINNINGS | USUAL_OF_THINNINGS, TYPE_REFERENCE_ID, GEONN_NEEDS_REFERENCE_ID, VALUE_KEPT_BY, NULL, {0}},
	{"cluster", OF_CLUSTERS | USUAL_OF_CLUSTERS, TYPE_COUNT, 0, VALUE_CLUSTER, NULL, {0}},
	{"kind", OF_CLUSTERS | USUAL_OF_CLUSTERS, TYPE_TEXT, 0, VALUE_KIND, NULL, {0}},
	{"obs_id", OF_PAIRS | OF_COUNTS | USUAL_OF_PAIRS | USUAL_OF_COUNTS, TYPE_OBSERVATION_ID,
		GEONN_NEEDS_OBSERVATION_ID, VALUE_OBSERVATION_ID, "ord", BLOCK_OF_OBSERVATION(observation_id)},
	{"ref_id", OF_PAIRS | USUAL_OF_PAIRS, TYPE_REFERENCE_ID, GEONN_NEEDS_REFERENCE_ID, VALUE_REFERENCE_ID, NULL, {0}},
	{"distance", OF_PAIRS | USUAL_OF_PAIRS, TYPE_DOUBLE, GEONN_NEEDS_DISTANCE, VALUE_DISTANCE, NULL,
		BLOCK_OF_PAIR(distance)},
	{"rank", OF_PAIRS | OF_COUNTS, TYPE_COUNT, 0, VALUE_RANK, NULL, {0}},
	{"radius", OF_COUNTS | USUAL_OF_COUNTS, TYPE_DOUBLE, 0, VALUE_RADIUS, NULL, {0}},
	{"count", OF_COUNTS | USUAL_OF_COUNTS, TYPE_COUNT, 0, VALUE_COUNT, NULL, BLOCK_OF_PAIR(tag)},
	{"sum", OF_COUNTS, TYPE_DOUBLE, 0, VALUE_SUM, NULL, {0}},
	{"sums", OF_COUNTS | USUAL_OF_COUNTS, TYPE_DOUBLES, 0, VALUE_SUMS, NULL, {0}},
	{"min", OF_COUNTS, TYPE_DOUBLE, GEONN_NEEDS_EXTREMES, VALUE_MIN, NULL, {0}},
	{"mins", OF_COUNTS, TYPE_DOUBLES, GEONN_NEEDS_EXTREMES, VALUE_MINS, NULL, {0}},
	{"max", OF_COUNTS, TYPE_DOUBLE, GEONN_NEEDS_EXTREMES, VALUE_MAX, NULL, {0}},
	{"maxs", OF_COUNTS, TYPE_DOUBLES, GEONN_NEEDS_EXTREMES, VALUE_MAXS, NULL, {0}},
	{"obs_lat", OF_PAIRS | OF_COUNTS, TYPE_DOUBLE, GEONN_NEEDS_OBSERVATION_LATITUDE, VALUE_OBSERVATION_LATITUDE,
		NULL, BLOCK_OF_OBSERVATION(observation_latitude)},
	{"obs_lon", OF_PAIRS | OF_COUNTS, TYPE_DOUBLE, GEONN_NEEDS_OBSERVATION_LONGITUDE, VALUE_OBSERVATION_LONGITUDE,
		NULL, BLOCK_OF_OBSERVATION(observation_longitude)},
	{"ref_lat", OF_PAIRS, TYPE_DOUBLE, GEONN_NEEDS_REFERENCE_COORDINATES, VALUE_REFERENCE_LATITUDE, NULL, {0}},
	{"ref_lon", OF_PAIRS, TYPE_DOUBLE, GEONN_NEEDS_REFERENCE_COORDINATES, VALUE_REFERENCE_LONGITUDE, NULL, {0}},
	{"bearing", OF_PAIRS, TYPE_DOUBLE, GEONN_NEEDS_DISTANCE | GEONN_NEEDS_REFERENCE_COORDINATES, VALUE_BEARING,
		NULL, {0}},
	{"ref_fraction", OF_PAIRS, TYPE_DOUBLE, GEONN_NEEDS_REFERENCE_COORDINATES, VALUE_REFERENCE_FRACTION, NULL, {0}},
	{"ref_segment", OF_PAIRS, TYPE_COUNT, GEONN_NEEDS_SEGMENT, VALUE_REFERENCE_SEGMENT, NULL, {0}},
	{"ref_side", OF_PAIRS, TYPE_TEXT, GEONN_NEEDS_SEGMENT, VALUE_REFERENCE_SIDE, NULL, {0}},
	{"ref_measure", OF_PAIRS, TYPE_DOUBLE, GEONN_NEEDS_MEASURE, VALUE_REFERENCE_MEASURE, NULL, {0}},
	{"obs_near_lat", OF_PAIRS, TYPE_DOUBLE, GEONN_NEEDS_DISTANCE | GEONN_NEEDS_REFERENCE_COORDINATES, VALUE_NEAR_LATITUDE,
		NULL, {0}},
	{"obs_near_lon", OF_PAIRS, TYPE_DOUBLE, GEONN_NEEDS_DISTANCE | GEONN_NEEDS_REFERENCE_COORDINATES, VALUE_NEAR_LONGITUDE,
		NULL, {0}}
};

/* Return the bit of the rows that answer a question. */
static int
rows_of(const GeonnQuestion *question)
{
	return question->thins ? OF_THINNINGS : question->min_points > 0 ? OF_CLUSTERS : question->radii > 0 ? OF_COUNTS : OF_PAIRS;
}

static const char *
column_name(const ResultColumn *column, bool numbered)
{
	return numbered && column->name_if_numbered != NULL ? column->name_if_numbered :
		column->name;
}

static char *
known_columns(int rows, bool numbered)
{
	List	   *names = NIL;

	for (int i = 0; i < (int) lengthof(result_columns); i++)
	{
		if (result_columns[i].rows & rows)
			names = lappend(names, unconstify(char *, column_name(&result_columns[i], numbered)));
	}
	return geonn_list_names(names, "", NULL);
}

/* Return the entry of result_columns for an attribute, among the columns of these rows; NULL: the attribute is dropped. */
static const ResultColumn *
find_column(Form_pg_attribute attribute, int rows, bool numbered)
{
	if (attribute->attisdropped)
		return NULL;
	for (int i = 0; i < (int) lengthof(result_columns); i++)
	{
		if ((result_columns[i].rows & rows) &&
			strcmp(NameStr(attribute->attname), column_name(&result_columns[i], numbered)) == 0)
			return &result_columns[i];
	}
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_COLUMN),
			 errmsg("row_type has a column \"%s\", which geonn does not know",
					NameStr(attribute->attname)),
			 errdetail("The columns of a row_type are any of %s.", known_columns(rows, numbered)),
			 errhint("Rename the column of the type, or leave it out; AS in the SELECT list gives a column of the answer another name.")));
}

/* ---- their types ---- */

/* Write the attributes as an SQL column definition list, with types that suit: bigint for any integer. */
static char *
suitable_columns(const ResultAttribute *attributes, int count, bool numbered,
				 const PointColumn *const ids[ID_TYPES])
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < count; i++)
	{
		const ResultColumn *column = attributes[i].column;
		const PointColumn *id = column != NULL && column->type < ID_TYPES ? ids[column->type] : NULL;

		if (column == NULL)
			continue;
		appendStringInfo(&list, "%s%s %s", list.len > 0 ? ", " : "",
						 column_name(column, numbered),
						 column->type == TYPE_DOUBLE ? "double precision" :
						 column->type == TYPE_DOUBLES ? "double precision[]" :
						 column->type == TYPE_TEXT ? "text" :
						 id == NULL || geonn_integer_width(id->base_type) > 0 ? "bigint" :
						 format_type_with_typemod(id->type, geonn_declared_typmod(id)));
	}
	return list.data;
}

/* Return the suffix of the extension's row types for ids of this column's type; NULL: none exists. */
static const char *
ready_ids(const PointColumn *id)
{
	return geonn_integer_width(id->base_type) > 0 ? "" : id->base_type == UUIDOID ? "_uuid" :
		id->base_type == TEXTOID || id->base_type == VARCHAROID ? "_text" : NULL;
}

/* Return the extension's row type for these ids, if row_type is another of the extension's types; NULL otherwise. */
static const char *
ready_type(Oid row_type, int rows, bool numbered, const PointColumn *const ids[ID_TYPES])
{
	const char *usual = rows == OF_THINNINGS ? "geonn_thinned" : rows == OF_CLUSTERS ? "geonn_clustered" :
		rows == OF_COUNTS ? "geonn_within_row" : numbered ? "geonn_point_pair" : "geonn_pair";
	const char *kind = ready_ids(ids[rows == OF_COUNTS ? TYPE_OBSERVATION_ID : TYPE_REFERENCE_ID]);
	const char *other = numbered ? kind : ready_ids(ids[TYPE_OBSERVATION_ID]);
	Oid			relation = get_typ_typrelid(row_type);
	Oid			ready;

	if (kind == NULL || other == NULL || strcmp(kind, other) != 0 ||
		strncmp(get_rel_name(relation), usual, strlen(usual)) != 0)
		return NULL;
	ready = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
							CStringGetDatum(psprintf("%s%s", usual, kind)),
							ObjectIdGetDatum(get_rel_namespace(relation)));
	return OidIsValid(ready) ? format_type_be(ready) : NULL;
}

/* Give a hint how to get rows of these columns.  ready: the extension's type that has them, or NULL. */
static int
row_type_hint(const char *ready, const char *columns)
{
	if (ready != NULL)
		return errhint("Pass row_type => NULL::%s.", ready);
	return errhint("In FROM, pass row_type => NULL::record and write AS t(%s) behind the call; or CREATE TYPE my_pair AS (%s); and pass row_type => NULL::my_pair.",
				   columns, columns);
}

/*
 * Accepts a length only if the id's type has the same: lengths differ in meaning between types, as
 * char(5) pads and varchar(5) does not.
 */
bool
geonn_attribute_takes_id(Form_pg_attribute attribute, const PointColumn *id)
{
	int			width = geonn_integer_width(id->base_type);

	if (width > 0 && geonn_integer_width(attribute->atttypid) >= width)
		return true;
	if (attribute->atttypid != id->type &&
		(get_typtype(attribute->atttypid) == TYPTYPE_DOMAIN ||
		 !IsBinaryCoercible(id->base_type, attribute->atttypid)))
		return false;
	return attribute->atttypmod == -1 ||
		(attribute->atttypmod == id->typmod &&
		 (attribute->atttypid == id->type || attribute->atttypid == id->base_type));
}

static void
check_type(const GeonnResultRow *row, int number, bool numbered,
		   const PointColumn *const ids[ID_TYPES])
{
	TupleDesc	descriptor = row->descriptor;
	Form_pg_attribute attribute = TupleDescAttr(descriptor, number);
	const ResultColumn *column = row->attributes[number].column;
	const PointColumn *id = NULL;
	const char *expected = "double precision";
	const char *suitable;
	bool		fits = attribute->atttypid == FLOAT8OID;
	int			rows = rows_of(row->question);

	if (column == NULL)
		return;
	if (column->type < ID_TYPES)
	{
		id = ids[column->type];
		expected = format_type_with_typemod(id->type, geonn_declared_typmod(id));
		fits = geonn_attribute_takes_id(attribute, id);
	}
	else if (column->type == TYPE_COUNT)
	{
		expected = "bigint or integer";
		fits = attribute->atttypid == INT8OID || attribute->atttypid == INT4OID;
	}
	else if (column->type == TYPE_TEXT)
	{
		expected = "text";
		fits = attribute->atttypid == TEXTOID;
	}
	else if (column->type == TYPE_DOUBLES)
	{
		expected = "double precision[]";
		fits = attribute->atttypid == FLOAT8ARRAYOID;
	}
	if (fits)
		return;
	suitable = suitable_columns(row->attributes, descriptor->natts, numbered, ids);
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("column %s of the row type %s has type %s, and its values are of type %s",
					column_name(column, numbered), format_type_be(descriptor->tdtypeid),
					format_type_with_typemod(attribute->atttypid, attribute->atttypmod), expected),
			 id == NULL ? 0 : id->attribute == 0 ?
			 errdetail("The values are the numbers of the points.") :
			 errdetail("The values are those of the id column \"%s\".", id->name),
			 descriptor->tdtypeid == RECORDOID ?
			 errhint("Write AS t(%s) behind the call.", suitable) :
			 row_type_hint(ready_type(descriptor->tdtypeid, rows, numbered, ids), suitable)));
}

/* ---- rows ---- */

/* the values of ref_side, from GEONN_LINE_LEFT on */
static const char *const side_words[] = {"left", "right", "on"};

/* the values of kind: of a cluster's number that is negative, 0, or positive */
static const char *const kind_words[] = {"border", "noise", "core"};

void
geonn_result_row_begin(GeonnResultRow *row, TupleDesc descriptor, bool numbered,
					   const PointColumn *observation_id, const PointColumn *reference_id,
					   const GeonnQuestion *question)
{
	int			rows = rows_of(question);
	const PointColumn *const ids[ID_TYPES] = {
		[TYPE_OBSERVATION_ID] = observation_id,
		[TYPE_REFERENCE_ID] = reference_id
	};

	if (descriptor == NULL)
	{
		ResultAttribute usual[lengthof(result_columns)];
		int			count = 0;

		for (int i = 0; i < (int) lengthof(result_columns); i++)
		{
			if (result_columns[i].rows & rows * (USUAL_OF_PAIRS / OF_PAIRS))
				usual[count++].column = &result_columns[i];
		}
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("row_type is not of a composite type"),
				 errdetail("The columns of a row_type say what the result has: any of %s.",
						   known_columns(rows, numbered)),
				 row_type_hint(NULL, suitable_columns(usual, count, numbered, ids))));
	}

	row->question = question;
	row->sums = row->mins = row->maxs = NULL;
	if (question->weights > 0)
	{
		Datum		zeros[GEONN_WEIGHTS_MAX];

		for (uint32 i = 0; i < question->weights; i++)
			zeros[i] = Float8GetDatum(0);
		row->sums = construct_array(zeros, (int) question->weights, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL,
									TYPALIGN_DOUBLE);
		row->mins = palloc(ARR_OVERHEAD_WITHNULLS(1, question->weights) + question->weights * sizeof(float8));
		row->maxs = palloc(ARR_OVERHEAD_WITHNULLS(1, question->weights) + question->weights * sizeof(float8));
	}
	for (int i = 0; i < (int) lengthof(side_words); i++)
		row->sides[i] = CStringGetTextDatum(side_words[i]);
	for (int i = 0; i < (int) lengthof(kind_words); i++)
		row->kinds[i] = CStringGetTextDatum(kind_words[i]);
	row->descriptor = descriptor;
	row->attributes = palloc0(descriptor->natts * sizeof(ResultAttribute));
	row->needs = 0;
	for (int i = 0; i < descriptor->natts; i++)
	{
		ResultAttribute *attribute = &row->attributes[i];

		attribute->column = find_column(TupleDescAttr(descriptor, i), rows, numbered);
		if (attribute->column == NULL)
			continue;
		row->needs |= attribute->column->needs;
		attribute->type = TupleDescAttr(descriptor, i)->atttypid;
		if (attribute->column->type < ID_TYPES)
		{
			Oid			type = ids[attribute->column->type]->base_type;

			if (geonn_integer_width(type) > 0 && type != attribute->type)
				attribute->narrow_type = type;
		}
		if (!OidIsValid(attribute->narrow_type) &&
			(attribute->column->type != TYPE_COUNT || attribute->type == INT8OID))
			attribute->in_block = attribute->column->in_block;
	}
	for (int i = 0; i < descriptor->natts; i++)
		check_type(row, i, numbered, ids);
}

void
geonn_result_row_project(GeonnResultRow *row, TupleDesc descriptor, const AttrNumber *attributes)
{
	ResultAttribute *chosen = palloc(descriptor->natts * sizeof(ResultAttribute));

	row->needs = 0;
	for (int i = 0; i < descriptor->natts; i++)
	{
		chosen[i] = row->attributes[attributes[i] - 1];
		if (chosen[i].column != NULL)
			row->needs |= chosen[i].column->needs;
	}
	row->attributes = chosen;
	row->descriptor = descriptor;
}

void
geonn_result_row_take_tags(GeonnResultRow *row)
{
	for (int i = 0; i < row->descriptor->natts; i++)
	{
		ResultAttribute *attribute = &row->attributes[i];

		/* The Datum of an integer is the same in all types that have room for the integer. */
		if (attribute->column != NULL && attribute->column->value == VALUE_REFERENCE_ID)
			attribute->in_block = (BlockColumn) BLOCK_OF_PAIR(tag);
	}
}

bool
geonn_result_row_in_blocks(const GeonnResultRow *row, int count, BlockColumn *columns)
{
	for (int i = 0; i < count; i++)
	{
		columns[i] = row->attributes[i].in_block;
		if (columns[i].values == 0)
			return false;
	}
	return true;
}

static inline Datum
convert_id(const ResultAttribute *attribute, Datum id)
{
	if (!OidIsValid(attribute->narrow_type))
		return id;
	return geonn_integer_value(attribute->type, geonn_integer(attribute->narrow_type, id));
}

static Datum
convert_count(const ResultAttribute *attribute, uint64 count)
{
	const char *name = attribute->column->name;

	if (attribute->type == INT8OID)
		return Int64GetDatum((int64) count);
	if (count > PG_INT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("%s is out of range for type integer", name),
				 errhint("Give the column %s of the row_type the type bigint.", name)));
	return Int32GetDatum((int32) count);
}

/* Raise an error if a sum is infinite: an exact sum may be beyond all finite numbers of the type. */
static double
check_sum(double sum)
{
	if (unlikely(isinf(sum)))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("a sum of weights is out of range for type double precision"),
				 errhint("Divide the weights by a constant in a view or query.")));
	return sum;
}

static Datum
sums_value(const GeonnResultRow *row, const double *sums)
{
	for (uint32 i = 0; i < row->question->weights; i++)
		((double *) ARR_DATA_PTR(row->sums))[i] = check_sum(sums[i]);
	return PointerGetDatum(row->sums);
}

/* Return a least or a greatest weight; NULL if it is infinite, because no candidate has a weight. */
static Datum
extreme_value(double extreme, bool *is_null)
{
	*is_null = isinf(extreme);
	return *is_null ? (Datum) 0 : Float8GetDatum(extreme);
}

/* Return an array of the least or of the greatest weights, in the memory of `value`. */
static Datum
extremes_value(const GeonnResultRow *row, const double *extremes, ArrayType *value)
{
	Datum		elements[GEONN_WEIGHTS_MAX];
	bool		nulls[GEONN_WEIGHTS_MAX];
	int			count = (int) row->question->weights;
	int			first = 1;
	ArrayType  *array;

	for (int i = 0; i < count; i++)
		elements[i] = extreme_value(extremes[i], &nulls[i]);
	array = construct_md_array(elements, nulls, 1, &count, &first, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL,
							   TYPALIGN_DOUBLE);
	memcpy(value, array, VARSIZE(array));
	pfree(array);
	return PointerGetDatum(value);
}

/*
 * Return the value of a column of weights in the row of a count; the question must have weights.
 * sums is GeonnBlock.distance.
 */
static Datum
weights_value(const GeonnResultRow *row, ResultValue value, const double *sums, bool *is_null)
{
	const double *least = sums + row->question->weights;
	const double *greatest = least + row->question->weights;

	switch (value)
	{
		case VALUE_SUM:
			return Float8GetDatum(check_sum(sums[0]));
		case VALUE_SUMS:
			return sums_value(row, sums);
		case VALUE_MIN:
			return extreme_value(least[0], is_null);
		case VALUE_MINS:
			return extremes_value(row, least, row->mins);
		case VALUE_MAX:
			return extreme_value(greatest[0], is_null);
		case VALUE_MAXS:
			return extremes_value(row, greatest, row->maxs);
		default:
			pg_unreachable();
	}
}

/* Return the word for the observation's side of a line or ring; NULL: it is on none. */
static Datum
side_value(const GeonnResultRow *row, const GeonnBlock *block, bool *is_null)
{
	int			side = block->place_side == NULL ? GEONN_LINE_NO_SIDE : block->place_side[block->pair];

	*is_null = side == GEONN_LINE_NO_SIDE;
	if (*is_null)
		return (Datum) 0;
	if (side < GEONN_LINE_LEFT || side > GEONN_LINE_ON)
		geonn_connection_violation("an unknown side of a line");
	return row->sides[side - GEONN_LINE_LEFT];
}

/* Return the number of the cluster of the block's present reference, which is not noise. */
static uint64
cluster_number(const GeonnBlock *block)
{
	double		number = fabs(block->distance[block->pair]);

	if (!(number >= 1 && number <= GEONN_REFERENCES_MAX))
		geonn_connection_violation("an unknown cluster");
	return (uint64) number;
}

/* Return the id of the keeper of the block's present reference, whose tag has the place of the distance; NULL: it is kept. */
static Datum
keeper_value(const ResultAttribute *attribute, const GeonnBlock *block, const GeonnReferences *references, bool *is_null)
{
	int64		keeper;

	memcpy(&keeper, &block->distance[block->pair], sizeof(keeper));
	*is_null = keeper == block->tag[block->pair];
	return *is_null ? (Datum) 0 : convert_id(attribute, geonn_reference_id(references, keeper));
}

/* Get the place of the pair's observation that is nearest to the reference: a point itself. */
static void
near_place(const GeonnBlock *block, double *latitude, double *longitude)
{
	bool		is_shape = block->near_latitude != NULL;

	*latitude = is_shape ? block->near_latitude[block->pair] : block->observation_latitude[block->observation];
	*longitude = is_shape ? block->near_longitude[block->pair] : block->observation_longitude[block->observation];
}

/*
 * Set a value that is not in the block.
 */
static Datum
make_value(const GeonnResultRow *row, const ResultAttribute *attribute, const GeonnBlock *block,
		   const GeonnReferences *references, bool *is_null)
{
	uint32		observation = block->observation;
	uint32		pair = block->pair;
	double		latitude = 0;
	double		longitude = 0;
	double		near_latitude = 0;
	double		near_longitude = 0;

	if ((attribute->column->needs & GEONN_NEEDS_REFERENCE_COORDINATES) != 0 && row->has_places)
	{
		latitude = block->place_latitude[pair];
		longitude = block->place_longitude[pair];
	}
	else if ((attribute->column->needs & GEONN_NEEDS_REFERENCE_COORDINATES) != 0)
		geonn_reference_coordinates(references, block->tag[pair], &latitude, &longitude);
	if ((attribute->column->needs & GEONN_NEEDS_REFERENCE_COORDINATES) != 0)
		near_place(block, &near_latitude, &near_longitude);
	switch (attribute->column->value)
	{
		case VALUE_OBSERVATION_ID:
			return convert_id(attribute, block->observation_id[observation]);
		case VALUE_REFERENCE_ID:
			return convert_id(attribute, geonn_reference_id(references, block->tag[pair]));
		case VALUE_DISTANCE:
			return Float8GetDatum(block->distance[pair]);
		case VALUE_RANK:
			return convert_count(attribute, block->rank);
		case VALUE_OBSERVATION_LATITUDE:
			return Float8GetDatum(block->observation_latitude[observation]);
		case VALUE_OBSERVATION_LONGITUDE:
			return Float8GetDatum(block->observation_longitude[observation]);
		case VALUE_REFERENCE_LATITUDE:
			return Float8GetDatum(latitude);
		case VALUE_REFERENCE_LONGITUDE:
			return Float8GetDatum(longitude);
		case VALUE_BEARING:
			*is_null = block->distance[pair] == 0;
			return *is_null ? (Datum) 0 :
				Float8GetDatum(geonn_bearing(row->question->metric, near_latitude, near_longitude, latitude, longitude));
		case VALUE_NEAR_LATITUDE:
			return Float8GetDatum(near_latitude);
		case VALUE_NEAR_LONGITUDE:
			return Float8GetDatum(near_longitude);
		case VALUE_REFERENCE_FRACTION:
			*is_null = !row->has_places || isnan(block->place_fraction[pair]);
			return *is_null ? (Datum) 0 : Float8GetDatum(block->place_fraction[pair]);
		case VALUE_REFERENCE_SEGMENT:
			*is_null = block->place_segment == NULL || block->place_segment[pair] <= 0;
			return *is_null ? (Datum) 0 : convert_count(attribute, (uint64) block->place_segment[pair]);
		case VALUE_REFERENCE_SIDE:
			return side_value(row, block, is_null);
		case VALUE_REFERENCE_MEASURE:
			*is_null = block->place_measure == NULL || isnan(block->place_measure[pair]);
			return *is_null ? (Datum) 0 : Float8GetDatum(block->place_measure[pair]);
		case VALUE_RADIUS:
			return Float8GetDatum(row->question->radius[block->rank - 1]);
		case VALUE_COUNT:
			return convert_count(attribute, (uint64) block->tag[pair]);
		case VALUE_SUM:
		case VALUE_SUMS:
		case VALUE_MIN:
		case VALUE_MINS:
		case VALUE_MAX:
		case VALUE_MAXS:
			*is_null = row->sums == NULL;
			return *is_null ? (Datum) 0 : weights_value(row, attribute->column->value, block->distance + pair, is_null);
		case VALUE_CLUSTER:
			*is_null = block->distance[pair] == 0;
			return *is_null ? (Datum) 0 : convert_count(attribute, cluster_number(block));
		case VALUE_KEPT_BY:
			return keeper_value(attribute, block, references, is_null);
		case VALUE_KIND:
			return row->kinds[1 + (block->distance[pair] > 0) - (block->distance[pair] < 0)];
	}
	pg_unreachable();
}

/* Return the GEONN_NEEDS_... bits of the data that the block's present pair has, or an observation without a pair. */
static int
data_there(const GeonnBlock *block)
{
	if (block->matched)
		return ~0;
	return (block->observation_id != NULL ? GEONN_NEEDS_OBSERVATION_ID : 0) |
		(block->observation_latitude != NULL ? GEONN_NEEDS_OBSERVATION_LATITUDE : 0) |
		(block->observation_longitude != NULL ? GEONN_NEEDS_OBSERVATION_LONGITUDE : 0);
}

void
geonn_result_row_fill(const GeonnResultRow *row, const GeonnBlock *block, const GeonnReferences *references, Datum *values,
					  bool *nulls)
{
	int			columns = row->descriptor->natts;

	for (int i = 0; i < columns; i++)
	{
		const ResultAttribute *attribute = &row->attributes[i];

		if (block->matched && attribute->in_block.values > 0)
		{
			values[i] = geonn_block_value(block, attribute->in_block);
			nulls[i] = false;
			continue;
		}
		nulls[i] = attribute->column == NULL || (attribute->column->needs & ~data_there(block)) != 0;
		values[i] = nulls[i] ? (Datum) 0 : make_value(row, attribute, block, references, &nulls[i]);
	}
}
