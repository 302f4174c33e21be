/*
 * columns.c
 *		Which columns of a relation or query are the id, the coordinates, the columns to join by, and those
 *		with the points' limits.
 *
 * The id is the primary key if that is one column, else a column "id".  The
 * coordinates are found by their names; a relation without a latitude and a
 * longitude has them in its one column of type geography(Point),
 * geometry(Point,4326) or point.  A side without points may have shapes, in the one
 * column whose type names lines, polygons or collections.  A column whose type names no kind, as geography alone,
 * is read as points; from the first value in it that is no point on, it is read as shapes.
 * Names are compared without regard to case.
 * Where several columns qualify, or none, an error lists what was found and what
 * would do.  Columns that options or the arguments "by", "differs" and "overlaps" name are
 * taken as named, spelled as in the catalog.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "parser/parse_coerce.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "points/column_hints.h"
#include "points/columns.h"

/* an error message lists at most this many column names */
#define COLUMNS_LISTED	20

typedef struct RoleRules
{
	const char *name;			/* geonn_role_name */
	const char *column_names[5];
	const char *expected_names; /* the columns that are expected, as words for messages */
	const char *option;			/* geonn_role_option */
} RoleRules;

static const RoleRules rules[COLUMN_ROLES] = {
	[COLUMN_ID] = {
		.name = "id",.option = "id",.column_names = {"id"},
		.expected_names = "a primary key of one column, or a column id"
	},
	[COLUMN_LATITUDE] = {
		.name = "latitude",.option = "lat",.column_names = {"lat", "latitude"},
		.expected_names = "a column lat or latitude"
	},
	[COLUMN_LONGITUDE] = {
		.name = "longitude",.option = "lon",.column_names = {"lon", "lng", "long", "longitude"},
		.expected_names = "a column lon, lng, long or longitude"
	},
	[COLUMN_POINT] = {
		.name = "point",.option = "geog",
		.expected_names = "a column of type geography(Point), geometry(Point,4326) or point"
	},
	[COLUMN_SHAPE] = {
		.name = "shape",.option = "shape",
		.expected_names = "a column of type geography(LineString), geometry(Polygon,4326) and the like"
	},
	[COLUMN_RADIUS] = {.name = "radius",.option = "radius"}
};

const WeightWords geonn_weight_words[] = {
	[WEIGHTS_SUMMED] = {
		"weight", "the argument weights", "Weights are finite numbers, from -1.8e308 to 1.8e308.", "NULL"
	},
	[WEIGHTS_PRIORITY] = {
		"priority", "the argument priority", "Priorities are finite numbers, from -1.8e308 to 1.8e308.", "NULL"
	},
	[WEIGHTS_CAPACITY] = {
		"capacity", "the argument capacity_column", "Capacities are whole numbers, 0 or more; a reference with 0 takes none.",
		"0"
	}
};

static bool
is_name_of(const RoleRules *rule, const char *name)
{
	for (int i = 0; rule->column_names[i] != NULL; i++)
	{
		if (pg_strcasecmp(rule->column_names[i], name) == 0)
			return true;
	}
	return false;
}

static bool
is_coordinate_type(Oid base_type)
{
	return base_type == FLOAT8OID || base_type == FLOAT4OID || base_type == NUMERICOID ||
		base_type == INT8OID || base_type == INT4OID || base_type == INT2OID;
}

/* Does the column suit this role? */
static bool
is_candidate(const RoleRules *rule, Form_pg_attribute attribute)
{
	int32		typmod = attribute->atttypmod;
	GeonnPointKind kind;

	if (attribute->attisdropped)
		return false;
	if (rule != &rules[COLUMN_POINT] && rule != &rules[COLUMN_SHAPE])
		return is_name_of(rule, NameStr(attribute->attname));
	kind = geonn_point_kind(getBaseTypeAndTypmod(attribute->atttypid, &typmod));
	return kind != GEONN_POINT_NONE &&
		(rule == &rules[COLUMN_POINT] || (kind != GEONN_POINT_NATIVE && geonn_typmod_is_shape(typmod)));
}

/* Return what keeps a column of this type from holding points, or shapes, of WGS84; NULL: nothing. */
static char *
problem_of(ColumnRole role, Oid type, int32 typmod)
{
	GeonnPointKind kind = geonn_point_kind(type);

	return role == COLUMN_SHAPE ? geonn_shape_typmod_problem(kind, type, typmod) :
		geonn_point_typmod_problem(kind, type, typmod);
}

/* Return whether a column of this declared type can hold points or shapes, whichever the role needs. */
static bool
may_hold(ColumnRole role, Form_pg_attribute attribute)
{
	int32		typmod = attribute->atttypmod;
	Oid			type = getBaseTypeAndTypmod(attribute->atttypid, &typmod);

	return problem_of(role, type, typmod) == NULL;
}

/* Return whether a column of this type can hold points or shapes, as the role needs, once its SRID is transformed to 4326. */
static bool
is_transformable(ColumnRole role, Oid type, int32 typmod)
{
	int32		srid = geonn_typmod_srid(typmod);

	return geonn_point_kind(type) == GEONN_POINT_GEOMETRY && srid != 0 && srid != GEONN_POINT_SRID &&
		problem_of(role, type, geonn_typmod_in_degrees(typmod)) == NULL;
}

/* Return the names of all columns, or of those that suit a role. */
static char *
list_columns(TupleDesc descriptor, const RoleRules *only)
{
	StringInfoData list;
	int			listed = 0;

	initStringInfo(&list);
	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (attribute->attisdropped ||
			(only != NULL && !is_candidate(only, attribute)) ||
			(only == &rules[COLUMN_POINT] && !may_hold(COLUMN_POINT, attribute)) ||
			(only == &rules[COLUMN_SHAPE] && !may_hold(COLUMN_SHAPE, attribute)))
			continue;
		if (++listed > COLUMNS_LISTED)
			continue;
		appendStringInfo(&list, "%s\"%s\"", listed > 1 ? ", " : "",
						 NameStr(attribute->attname));
	}
	if (listed > COLUMNS_LISTED)
		appendStringInfo(&list, " and %d more", listed - COLUMNS_LISTED);
	return list.data;
}

/*
 * Return the attribute of the primary key if that is a single column, otherwise 0; *key_columns is
 * the number of its columns.
 */
static AttrNumber
primary_key_attribute(Oid relation, int *key_columns)
{
	Oid			constraint;
	Bitmapset  *attributes = get_primary_key_attnos(relation, true, &constraint);

	*key_columns = bms_num_members(attributes);
	if (*key_columns != 1)
		return 0;
	return bms_singleton_member(attributes) + FirstLowInvalidHeapAttributeNumber;
}

/*
 * Mark a source's columns as unclear.  Returns whether the source is quiet, so that no error is raised.
 */
static bool
note_unclear(PointSource *source)
{
	source->unclear = true;
	return source->quiet;
}

static void
raise_missing(PointSource *source, TupleDesc descriptor, const char *what,
			  const char *expected, int key_columns, const char *hint)
{
	StringInfoData detail;

	if (note_unclear(source))
		return;
	initStringInfo(&detail);
	appendStringInfo(&detail, "geonn looks for %s.", expected);
	if (key_columns > 1)
		appendStringInfo(&detail, " The primary key here has %d columns.",
						 key_columns);
	if (descriptor->natts > 0)
		appendStringInfo(&detail, " The columns here are %s.",
						 list_columns(descriptor, NULL));
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_COLUMN),
			 errmsg("%s has no %s", source->title, what),
			 errdetail_internal("%s", detail.data),
			 errhint("%s", hint)));
}

/* Fill in a column; attribute is NULL only in an unclear source. */
static void
fill_column(PointColumn *column, Form_pg_attribute attribute, const char *reason)
{
	if (attribute == NULL)
		return;
	Assert(attribute->attnum > 0 && !attribute->attisdropped);
	column->name = pstrdup(NameStr(attribute->attname));
	column->type = attribute->atttypid;
	column->typmod = attribute->atttypmod;
	column->collation = attribute->attcollation;
	column->base_type = getBaseTypeAndTypmod(attribute->atttypid, &column->typmod);
	column->reason = reason;
	column->attribute = attribute->attnum;
}

/* Have the values of a column of another SRID, or of any, transformed.  Returns what problem_of() returns. */
static char *
settle_srid(PointSource *source, ColumnRole role, PointColumn *column)
{
	char	   *problem = problem_of(role, column->base_type, column->typmod);
	int32		srid = geonn_typmod_srid(column->typmod);

	if (source->point_kind != GEONN_POINT_GEOMETRY || source->refuses_srids || srid == GEONN_POINT_SRID)
		return problem;
	source->transform = geonn_transform_create(column->base_type, srid);
	if (!is_transformable(role, column->base_type, column->typmod))
		return problem;
	column->reason = psprintf("%s; transformed from SRID %d to %d", column->reason, srid, GEONN_POINT_SRID);
	return NULL;
}

static void
choose_column(PointSource *source, ColumnRole role, Form_pg_attribute attribute,
			  const char *reason)
{
	const RoleRules *rule = &rules[role];
	PointColumn *column = &source->columns[role];
	char	   *problem = NULL;

	fill_column(column, attribute, reason);
	if (role == COLUMN_ID)
		return;
	if (role == COLUMN_POINT || role == COLUMN_SHAPE)
	{
		source->point_kind = geonn_point_kind(column->base_type);
		if (role == COLUMN_SHAPE && source->point_kind == GEONN_POINT_NATIVE)
			source->point_kind = GEONN_POINT_NONE;
		source->may_have_shapes = role == COLUMN_POINT && source->point_kind != GEONN_POINT_NATIVE &&
			geonn_typmod_is_any(column->typmod);
		if (source->may_have_shapes)
			column->reason = psprintf("%s; each value says what it is", reason);
		if (source->point_kind != GEONN_POINT_NONE)
			problem = settle_srid(source, role, column);
		else
			problem = role == COLUMN_SHAPE ? "The type of a shape column is PostGIS's geography or geometry." :
				"The type of a point column is geography(Point), geometry(Point,4326) or point.";
	}
	else if (!is_coordinate_type(column->base_type))
		problem = psprintf("The type of a %s column is double precision, real, numeric, bigint, integer or smallint.",
						   rule->name);
	if (problem != NULL && !note_unclear(source))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("%s column \"%s\" of %s has type %s",
						rule->name, column->name, source->title,
						format_type_with_typemod(column->type, attribute->atttypmod)),
				 errdetail_internal("%s", problem),
				 role == COLUMN_SHAPE && source->points_alone ? errhint(GEONN_POINTS_OF_SHAPES_HINT) :
				 role == COLUMN_SHAPE ?
				 errhint("Use shapes of SRID 4326, as ST_Transform makes them, in a view or query; ST_CurveToLine makes lines and polygons of curves.") :
				 role == COLUMN_POINT && source->point_kind != GEONN_POINT_NONE ?
				 errhint("%s", geonn_points_hint(source, column)) :
				 role == COLUMN_RADIUS ? errhint("Cast it to such a type in a view or query.") :
				 role != COLUMN_POINT && TypeCategory(column->base_type) == TYPCATEGORY_STRING ?
				 errhint("Cast it in a view or query, as in %s::float8 AS %s, and use that.",
						 quote_identifier(column->name), rule->option) :
				 OidIsValid(source->relation) ?
				 errhint("Create a view of it with columns id, lat and lon of such types, and use that.") :
				 errhint("Cast it to such a type in the query.")));
}

static bool
is_reference(const PointSource *source)
{
	return strcmp(source->option_prefix, "ref_") == 0;
}

/*
 * Count the attributes of exactly this name (a query may have several); without a name, the candidates
 * that suit this role.  *found becomes the last one that suits, or else some candidate; NULL: none.
 */
static int
count_matches(TupleDesc descriptor, ColumnRole role, const char *name, Form_pg_attribute *found)
{
	int			count = 0;

	*found = NULL;
	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);
		bool		suits = name != NULL || (role != COLUMN_POINT && role != COLUMN_SHAPE);

		if (name == NULL ? !is_candidate(&rules[role], attribute) :
			attribute->attisdropped || strcmp(NameStr(attribute->attname), name) != 0)
			continue;
		suits = suits || may_hold(role, attribute);
		if (suits || *found == NULL)
			*found = attribute;
		count += suits;
	}
	return count;
}

/* Return the attribute of this name.  Returns NULL only if the source is unclear. */
static Form_pg_attribute
require_attribute(PointSource *source, TupleDesc descriptor, const char *name,
				  const char *namer)
{
	Form_pg_attribute found;

	if (count_matches(descriptor, COLUMN_ROLES, name, &found) > 1 && !note_unclear(source))
		ereport(ERROR,
				(errcode(ERRCODE_AMBIGUOUS_COLUMN),
				 errmsg("%s has more than one column \"%s\"", source->title, name),
				 errdetail("The column is named by %s.", namer),
				 errhint("Give each column of the query a name of its own.")));
	if (found == NULL && !note_unclear(source))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("%s has no column \"%s\"", source->title, name),
				 errdetail("The column is named by %s. The columns here are %s.", namer,
						   list_columns(descriptor, NULL)),
				 source->paired && strcmp(namer, "options") != 0 &&
				 strcmp(namer, geonn_weight_words[source->weights_are].argument) != 0 ?
				 errhint("Spell columns as the catalog does, without quotes. If the two sides call it by different names, give both, that of the observations first, as in '{%s=%s}'.",
						 is_reference(source) ? name : "my_column", is_reference(source) ? "my_column" : name) :
				 errhint("Spell columns as the catalog does, without quotes.")));
	return found;
}

/*
 * Choose the column that an option names for the role.  False: none does.
 */
static bool
choose_named(PointSource *source, TupleDesc descriptor, ColumnRole role, const GeonnColumnNames *named)
{
	const char *name = named->names[role];

	if (name != NULL)
		choose_column(source, role, require_attribute(source, descriptor, name, "options"), "options");
	return name != NULL;
}

/*
 * Return the only column that can be transformed for a role; NULL: none can.  It is looked for where no column suits the
 * role as it is.
 */
static Form_pg_attribute
find_transformable(PointSource *source, TupleDesc descriptor, ColumnRole role)
{
	Form_pg_attribute found = NULL;
	StringInfoData names;
	int			count = 0;

	initStringInfo(&names);
	for (int i = 0; i < descriptor->natts && !source->refuses_srids; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);
		int32		typmod = attribute->atttypmod;
		Oid			type;

		if (!is_candidate(&rules[role], attribute))
			continue;
		type = getBaseTypeAndTypmod(attribute->atttypid, &typmod);
		if (!is_transformable(role, type, typmod))
			continue;
		appendStringInfo(&names, "%s\"%s\"", count++ == 0 ? "" : ", ", NameStr(attribute->attname));
		found = attribute;
	}
	if (count > 1 && !note_unclear(source))
		ereport(ERROR,
				(errcode(ERRCODE_AMBIGUOUS_COLUMN),
				 errmsg("%s has more than one %s column", source->title, rules[role].name),
				 errdetail("Candidates are %s, of other SRIDs than %d.", names.data, GEONN_POINT_SRID),
				 role == COLUMN_SHAPE && source->points_alone ? errhint(GEONN_POINTS_OF_SHAPES_HINT) :
				 errhint("Name one of them in the argument options, as in '{\"%s%s\": \"%s\"}'.", source->option_prefix,
						 rules[role].option, NameStr(found->attname))));
	return found;
}

/* Return the only candidate for this role, or NULL if none exists. */
static Form_pg_attribute
find_candidate(PointSource *source, TupleDesc descriptor, ColumnRole role)
{
	Form_pg_attribute found;

	if (count_matches(descriptor, role, NULL, &found) > 1 && !note_unclear(source))
		ereport(ERROR,
				(errcode(ERRCODE_AMBIGUOUS_COLUMN),
				 errmsg("%s has more than one %s column", source->title, rules[role].name),
				 errdetail("Candidates are %s.", list_columns(descriptor, &rules[role])),
				 role == COLUMN_SHAPE && source->points_alone ? errhint(GEONN_POINTS_OF_SHAPES_HINT) :
				 role == COLUMN_SHAPE ?
				 errhint("Name one of them in the argument options, as in '{\"%sshape\": \"%s\"}'.",
						 source->option_prefix, NameStr(found->attname)) :
				 errhint("%s", geonn_names_hint(source, descriptor))));
	return found;
}

static void
find_id(PointSource *source, TupleDesc descriptor, const GeonnColumnNames *named)
{
	int			key_columns = 0;
	AttrNumber	key = 0;
	Form_pg_attribute chosen;

	if (choose_named(source, descriptor, COLUMN_ID, named))
		return;
	if (OidIsValid(source->relation))
		key = primary_key_attribute(source->relation, &key_columns);
	if (key > 0)
	{
		choose_column(source, COLUMN_ID, TupleDescAttr(descriptor, key - 1), "primary key");
		return;
	}
	chosen = find_candidate(source, descriptor, COLUMN_ID);
	if (chosen == NULL)
		raise_missing(source, descriptor, "id column",
					  OidIsValid(source->relation) ? rules[COLUMN_ID].expected_names :
					  "a column id, since a query has no primary key",
					  key_columns, geonn_id_hint(source, descriptor));
	choose_column(source, COLUMN_ID, chosen, "column name");
}

/*
 * Choose the column where none can hold points of SRID 4326: one of such shapes, of points that can be transformed, or
 * of shapes that can be.  Else raises the error about a column of shapes, or about this one.
 */
static void
choose_other(PointSource *source, TupleDesc descriptor, Form_pg_attribute point)
{
	Form_pg_attribute shape = find_candidate(source, descriptor, COLUMN_SHAPE);
	Form_pg_attribute found = NULL;
	ColumnRole	role = shape != NULL ? COLUMN_SHAPE : COLUMN_POINT;

	if (shape == NULL || !may_hold(COLUMN_SHAPE, shape))
		found = find_transformable(source, descriptor, COLUMN_POINT);
	if (found != NULL)
		role = COLUMN_POINT;
	else if (shape != NULL && !may_hold(COLUMN_SHAPE, shape))
		found = find_transformable(source, descriptor, COLUMN_SHAPE);
	choose_column(source, role, found != NULL ? found : shape != NULL ? shape : point, "column type");
}

static void
find_coordinates(PointSource *source, TupleDesc descriptor, const GeonnColumnNames *named)
{
	Form_pg_attribute latitude;
	Form_pg_attribute longitude;
	Form_pg_attribute point;

	if (choose_named(source, descriptor, COLUMN_SHAPE, named) || choose_named(source, descriptor, COLUMN_POINT, named) ||
		(choose_named(source, descriptor, COLUMN_LATITUDE, named) &&
		 choose_named(source, descriptor, COLUMN_LONGITUDE, named)))
		return;

	latitude = find_candidate(source, descriptor, COLUMN_LATITUDE);
	longitude = find_candidate(source, descriptor, COLUMN_LONGITUDE);
	if (latitude != NULL && longitude != NULL)
	{
		choose_column(source, COLUMN_LATITUDE, latitude, "column name");
		choose_column(source, COLUMN_LONGITUDE, longitude, "column name");
		return;
	}
	point = find_candidate(source, descriptor, COLUMN_POINT);
	if (point != NULL && !may_hold(COLUMN_POINT, point))
		choose_other(source, descriptor, point);
	else if (point != NULL)
		choose_column(source, COLUMN_POINT, point, "column type");
	else if (latitude == NULL && longitude == NULL)
		raise_missing(source, descriptor, "coordinate columns",
					  psprintf("%s with %s, or for %s", rules[COLUMN_LATITUDE].expected_names,
							   rules[COLUMN_LONGITUDE].expected_names,
							   rules[COLUMN_POINT].expected_names), 0, geonn_names_hint(source, descriptor));
	else
	{
		const RoleRules *missing = &rules[latitude == NULL ? COLUMN_LATITUDE : COLUMN_LONGITUDE];

		raise_missing(source, descriptor, psprintf("%s column", missing->name),
					  missing->expected_names, 0, geonn_names_hint(source, descriptor));
	}
}

void
geonn_read_as_shapes(PointSource *source)
{
	if (geonn_has_shapes(source))
		return;
	Assert(source->may_have_shapes && source->columns[COLUMN_POINT].attribute > 0);
	source->columns[COLUMN_SHAPE] = source->columns[COLUMN_POINT];
	source->columns[COLUMN_POINT] = (PointColumn) {0};
	source->may_have_shapes = false;
}

const char *
geonn_role_name(ColumnRole role)
{
	return rules[role].name;
}

const char *
geonn_role_option(ColumnRole role)
{
	return rules[role].option;
}

/* ---- columns of limits and weights ---- */

NamedWindow
geonn_named_window(const PointSource *source, int number)
{
	return (NamedWindow)
	{
		.title = source->title,
			.name = source->windows[number].name,
			.declared = source->windows[number].type,
			.type = source->window_types[number]
	};
}

/* Find the columns of the radius and of the windows.  The caller of geonn_find_columns() has checked the number of windows. */
static void
find_limits(PointSource *source, TupleDesc descriptor, const GeonnColumnNames *named, List *overlaps)
{
	ListCell   *cell;

	for (ColumnRole role = COLUMN_RADIUS; role < COLUMN_ROLES; role++)
		(void) choose_named(source, descriptor, role, named);
	foreach(cell, overlaps)
	{
		int			number = source->window_count++;
		NamedWindow window;

		Assert(number < GEONN_WINDOWS_MAX);
		fill_column(&source->windows[number],
					require_attribute(source, descriptor, lfirst(cell), "the argument overlaps"),
					"overlaps");
		window = geonn_named_window(source, number);
		if (!source->quiet)
			geonn_window_describe(&window);
		else if (!OidIsValid(window.declared) || !geonn_window_find_type(window.declared, &window.type))
			source->unclear = true;
		source->window_types[number] = window.type;
	}
}

static void
find_weights(PointSource *source, TupleDesc descriptor, List *weights)
{
	const WeightWords *words = &geonn_weight_words[source->weights_are];
	ListCell   *cell;

	foreach(cell, weights)
	{
		PointColumn *column = &source->weights[source->weight_count++];

		fill_column(column, require_attribute(source, descriptor, lfirst(cell), words->argument),
					words->argument + strlen("the argument "));
		if (!is_coordinate_type(column->base_type) && !note_unclear(source))
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("%s column \"%s\" of %s has type %s", words->role, column->name, source->title,
							format_type_be(column->type)),
					 errdetail("The type of a %s column is double precision, real, numeric, bigint, integer or smallint.",
							   words->role),
					 errhint("Cast it to such a type in a view or query.")));
	}
}

void
geonn_find_columns(PointSource *source, TupleDesc descriptor, const GeonnColumnNames *named, List *by, List *overlaps)
{
	Form_pg_attribute shape;
	ListCell   *cell;

	source->option_prefix = named->prefix;
	source->paired = named->paired;
	source->refuses_srids = named->refuses_srids;
	source->points_alone = named->points_alone;
	source->weights_are = named->weights_are;
	source->column_count = COLUMN_ROLES + list_length(by) + list_length(named->differs) + list_length(overlaps) +
		list_length(named->weights);
	source->columns = palloc0(source->column_count * sizeof(PointColumn));
	source->by = source->columns + COLUMN_ROLES;
	source->windows = source->by + list_length(by) + list_length(named->differs);
	source->weights = source->windows + list_length(overlaps);
	find_id(source, descriptor, named);
	find_coordinates(source, descriptor, named);
	if (!named->points_alone && named->names[COLUMN_POINT] == NULL && named->names[COLUMN_LATITUDE] == NULL &&
		!geonn_has_shapes(source) && count_matches(descriptor, COLUMN_SHAPE, NULL, &shape) > 0)
		fill_column(&source->unused_shape, shape, "beside points, so not used; the option obs_shape or ref_shape has it used");
	foreach(cell, by)
		fill_column(&source->by[source->by_count++],
					require_attribute(source, descriptor, lfirst(cell), "the argument by"),
					"by");
	foreach(cell, named->differs)
		fill_column(&source->by[source->by_count++],
					require_attribute(source, descriptor, lfirst(cell), "the argument differs"),
					"differs");
	source->differs_count = list_length(named->differs);
	find_limits(source, descriptor, named, overlaps);
	find_weights(source, descriptor, named->weights);
	Assert(source->by + source->by_count == source->windows);
	Assert(source->windows + source->window_count == source->weights);
	Assert(source->weights + source->weight_count == source->columns + source->column_count);
	Assert(source->unclear || source->columns[COLUMN_ID].attribute > 0);
	Assert(source->unclear || source->point_kind != GEONN_POINT_NONE ||
		   (source->columns[COLUMN_LATITUDE].name != NULL && source->columns[COLUMN_LONGITUDE].name != NULL));
}
