/*
 * result_row.c
 *		What the rows of a result are: pairs, as the row type has them.
 *
 * The caller says by the argument row_type which columns a row has: any of
 * those that this file knows, by their names, in any order.  The ids have the
 * types of the tables; integers may become wider.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "join/bearing.h"
#include "join/result_row.h"
#include "value.h"

static const char *const column_names[SINK_COLUMNS] = {
	[SINK_OBSERVATION_ID] = "obs_id",
	[SINK_REFERENCE_ID] = "ref_id",
	[SINK_DISTANCE] = "distance",
	[SINK_RANK] = "rank",
	[SINK_OBSERVATION_LATITUDE] = "obs_lat",
	[SINK_OBSERVATION_LONGITUDE] = "obs_lon",
	[SINK_REFERENCE_LATITUDE] = "ref_lat",
	[SINK_REFERENCE_LONGITUDE] = "ref_lon",
	[SINK_BEARING] = "bearing"
};

static const char *
column_name(SinkColumn column, const char *ordinal)
{
	return column == SINK_OBSERVATION_ID ? ordinal : column_names[column];
}

static char *
known_columns(const char *ordinal)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < SINK_COLUMNS; i++)
		appendStringInfo(&list, "%s%s", i > 0 ? ", " : "", column_name(i, ordinal));
	return list.data;
}

static SinkColumn
find_column(Form_pg_attribute attribute, const char *ordinal)
{
	if (attribute->attisdropped)
		return SINK_NOTHING;
	for (int i = 0; i < SINK_COLUMNS; i++)
	{
		if (strcmp(NameStr(attribute->attname), column_name(i, ordinal)) == 0)
			return i;
	}
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_COLUMN),
			 errmsg("row_type has a column \"%s\", which geonn does not know",
					NameStr(attribute->attname)),
			 errdetail("The columns of a row_type are any of %s.", known_columns(ordinal))));
}

/*
 * The type that a column of the result should have for such ids: as bigint
 * does for all integers.
 */
static char *
suitable_type(const PointColumn *id)
{
	if (geonn_integer_width(id->base_type) > 0)
		return pstrdup("bigint");
	return format_type_with_typemod(id->type, id->type == id->base_type ? id->typmod : -1);
}

/*
 * These columns of a row type, with types that suit.
 */
static char *
suitable_columns(const SinkColumn *columns, int count, const char *ordinal,
				 const PointColumn *const ids[2])
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < count; i++)
	{
		SinkColumn	column = columns[i];

		if (column == SINK_NOTHING)
			continue;
		appendStringInfo(&list, "%s%s %s", list.len > 0 ? ", " : "",
						 column_name(column, ordinal),
						 column <= SINK_REFERENCE_ID ? suitable_type(ids[column]) :
						 column == SINK_RANK ? "bigint" : "double precision");
	}
	return list.data;
}

/*
 * The two ways to have rows of these columns.
 */
static int
row_type_hint(const char *columns)
{
	return errhint("In FROM, pass row_type => NULL::record and write AS t(%s) behind the call; or CREATE TYPE my_pair AS (%s); and pass row_type => NULL::my_pair.",
				   columns, columns);
}

/*
 * Can ids of this column be values of the result's attribute as they are, or
 * as wider integers?  A length means something else to each type: char(5) pads
 * what varchar(5) does not.
 */
static bool
takes_id(Form_pg_attribute attribute, const PointColumn *id)
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
check_type(TupleDesc descriptor, int number, const SinkColumn *columns, const char *ordinal,
		   const PointColumn *const ids[2])
{
	Form_pg_attribute attribute = TupleDescAttr(descriptor, number);
	SinkColumn	column = columns[number];
	const char *expected = "double precision";
	const char *suitable;
	bool		fits = attribute->atttypid == FLOAT8OID;

	if (column == SINK_NOTHING)
		return;
	if (column <= SINK_REFERENCE_ID)
	{
		expected = format_type_with_typemod(ids[column]->type,
											ids[column]->type == ids[column]->base_type ?
											ids[column]->typmod : -1);
		fits = takes_id(attribute, ids[column]);
	}
	else if (column == SINK_RANK)
	{
		expected = "bigint or integer";
		fits = attribute->atttypid == INT8OID || attribute->atttypid == INT4OID;
	}
	if (fits)
		return;
	suitable = suitable_columns(columns, descriptor->natts, ordinal, ids);
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("column %s of the row type %s has type %s, and its values are of type %s",
					column_name(column, ordinal), format_type_be(descriptor->tdtypeid),
					format_type_with_typemod(attribute->atttypid, attribute->atttypmod), expected),
			 column > SINK_REFERENCE_ID ? 0 : ids[column]->attribute == 0 ?
			 errdetail("They are the numbers of the points.") :
			 errdetail("They are the values of the id column \"%s\".", ids[column]->name),
			 descriptor->tdtypeid == RECORDOID ?
			 errhint("Write AS t(%s) behind the call.", suitable) : row_type_hint(suitable)));
}

void
geonn_sink_begin(GeonnSink *sink, TupleDesc descriptor, const char *ordinal,
				 const PointColumn *observation_id, const PointColumn *reference_id,
				 int metric)
{
	static const SinkColumn usual[] = {
		SINK_OBSERVATION_ID, SINK_REFERENCE_ID, SINK_DISTANCE
	};
	const PointColumn *const ids[2] = {observation_id, reference_id};

	if (descriptor == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("row_type is not of a composite type"),
				 errdetail("Its columns say what the result has: any of %s.",
						   known_columns(ordinal)),
				 row_type_hint(suitable_columns(usual, lengthof(usual), ordinal, ids))));

	memset(sink, 0, sizeof(*sink));
	sink->metric = metric;
	sink->descriptor = descriptor;
	sink->columns = palloc(descriptor->natts * sizeof(SinkColumn));
	for (int i = 0; i < descriptor->natts; i++)
	{
		SinkColumn	column = find_column(TupleDescAttr(descriptor, i), ordinal);

		sink->columns[i] = column;
		if (column == SINK_NOTHING)
			continue;
		sink->has[column] = true;
		if (column <= SINK_REFERENCE_ID)
		{
			sink->id_type[column] = ids[column]->base_type;
			sink->id_result[column] = TupleDescAttr(descriptor, i)->atttypid;
			sink->widens[column] = geonn_integer_width(sink->id_type[column]) > 0 &&
				sink->id_type[column] != sink->id_result[column];
		}
	}
	for (int i = 0; i < descriptor->natts; i++)
		check_type(descriptor, i, sink->columns, ordinal, ids);
}

void
geonn_sink_project(GeonnSink *sink, TupleDesc descriptor, const AttrNumber *attributes)
{
	SinkColumn *columns = palloc(descriptor->natts * sizeof(SinkColumn));

	memset(sink->has, 0, sizeof(sink->has));
	for (int i = 0; i < descriptor->natts; i++)
	{
		columns[i] = sink->columns[attributes[i] - 1];
		if (columns[i] != SINK_NOTHING)
			sink->has[columns[i]] = true;
	}
	sink->columns = columns;
	sink->descriptor = descriptor;
}

bool
geonn_sink_needs_coordinates(const GeonnSink *sink)
{
	return sink->has[SINK_REFERENCE_LATITUDE] || sink->has[SINK_REFERENCE_LONGITUDE] ||
		sink->has[SINK_BEARING];
}

bool
geonn_sink_needs_reference_id(const GeonnSink *sink)
{
	return sink->has[SINK_REFERENCE_ID];
}

bool
geonn_sink_needs_observation_id(const GeonnSink *sink)
{
	return sink->has[SINK_OBSERVATION_ID];
}

/*
 * An id as its column of the result has it.
 */
static inline Datum
convert_id(const GeonnSink *sink, SinkColumn column, Datum id)
{
	if (!sink->widens[column])
		return id;
	return geonn_integer_value(sink->id_result[column],
							   geonn_integer(sink->id_type[column], id));
}

static Datum
rank_value(const GeonnSink *sink, int number, uint64 rank)
{
	if (TupleDescAttr(sink->descriptor, number)->atttypid == INT8OID)
		return Int64GetDatum((int64) rank);
	if (rank > PG_INT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("rank is out of range for type integer"),
				 errhint("Give the column rank of the row_type the type bigint.")));
	return Int32GetDatum((int32) rank);
}

/*
 * The value of a column that needs the reference's coordinates.
 */
static Datum
coordinate_value(const GeonnSink *sink, SinkColumn column, const GeonnPair *pair,
				 const GeonnReferences *references, bool *is_null)
{
	double		latitude;
	double		longitude;
	double		bearing = 0;

	geonn_reference_coordinates(references, pair->reference, &latitude, &longitude);
	if (column == SINK_REFERENCE_LATITUDE)
		return Float8GetDatum(latitude);
	if (column == SINK_REFERENCE_LONGITUDE)
		return Float8GetDatum(longitude);
	*is_null = !geonn_bearing(sink->metric, pair->observation_latitude,
							  pair->observation_longitude, latitude, longitude, &bearing);
	return Float8GetDatum(bearing);
}

static inline void
fill_row(const GeonnSink *sink, const GeonnPair *pair, const GeonnReferences *references,
		 Datum *values, bool *nulls)
{
	int			columns = sink->descriptor->natts;

	for (int i = 0; i < columns; i++)
	{
		nulls[i] = false;
		switch (sink->columns[i])
		{
			case SINK_OBSERVATION_ID:
				values[i] = convert_id(sink, SINK_OBSERVATION_ID, pair->observation_id);
				break;
			case SINK_REFERENCE_ID:
				values[i] = convert_id(sink, SINK_REFERENCE_ID,
									   geonn_reference_id(references, pair->reference));
				break;
			case SINK_DISTANCE:
				values[i] = Float8GetDatum(pair->distance);
				break;
			case SINK_RANK:
				values[i] = rank_value(sink, i, pair->rank);
				break;
			case SINK_OBSERVATION_LATITUDE:
				values[i] = Float8GetDatum(pair->observation_latitude);
				break;
			case SINK_OBSERVATION_LONGITUDE:
				values[i] = Float8GetDatum(pair->observation_longitude);
				break;
			case SINK_REFERENCE_LATITUDE:
			case SINK_REFERENCE_LONGITUDE:
			case SINK_BEARING:
				values[i] = coordinate_value(sink, sink->columns[i], pair, references, &nulls[i]);
				break;
			case SINK_NOTHING:
				values[i] = (Datum) 0;
				nulls[i] = true;
				break;
		}
	}
}

void
geonn_sink_pair(const GeonnSink *sink, const GeonnPair *pair, const GeonnReferences *references,
				Datum *values, bool *nulls)
{
	if (pair->matched)
		fill_row(sink, pair, references, values, nulls);
	else
		geonn_sink_unmatched(sink, pair->observation_id, false, &pair->observation_latitude,
							 &pair->observation_longitude, values, nulls);
}

void
geonn_sink_run(const GeonnSink *sink, GeonnRun *run, const GeonnReferences *references,
			   Datum *values, bool *nulls)
{
	uint32		number = run->next++;
	const GeonnPair pair = {
		.observation_id = run->observation_id[number],
		.observation_latitude = run->observation_latitude[number],
		.observation_longitude = run->observation_longitude[number],
		.matched = true,
		.reference = run->reference[number],
		.distance = run->distance[number],
		.rank = 1
	};

	fill_row(sink, &pair, references, values, nulls);
}

void
geonn_sink_unmatched(const GeonnSink *sink, Datum id, bool id_is_null, const double *latitude,
					 const double *longitude, Datum *values, bool *nulls)
{
	for (int i = 0; i < sink->descriptor->natts; i++)
	{
		SinkColumn	column = sink->columns[i];

		values[i] = (Datum) 0;
		nulls[i] = true;
		if (column == SINK_OBSERVATION_ID && !id_is_null)
			values[i] = convert_id(sink, SINK_OBSERVATION_ID, id);
		else if (column == SINK_OBSERVATION_LATITUDE && latitude != NULL)
			values[i] = Float8GetDatum(*latitude);
		else if (column == SINK_OBSERVATION_LONGITUDE && longitude != NULL)
			values[i] = Float8GetDatum(*longitude);
		else if (column == SINK_RANK)
			values[i] = rank_value(sink, i, 1);
		else
			continue;
		nulls[i] = false;
	}
}
