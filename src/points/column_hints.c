/*
 * column_hints.c
 *		What to type where a source lacks a column, or has one that cannot be used.
 *
 * Hints have the option written out, with a column of the source that looks right.  No hint numbers the rows of a
 * view: PostgreSQL may begin a second reading of a table elsewhere (synchronize_seqscans), and each row would have
 * another number then.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "points/column_hints.h"

/* Names of keys in tables that other programs load: ogr2ogr, shapefiles, osm2pgsql, geopandas, ArcGIS, Rails. */
static const char *const key_names[] = {"gid", "fid", "ogc_fid", "osm_id", "objectid", "index", "uuid", "pk", "key"};

static const char *const latitude_parts[] = {"lat", NULL};
static const char *const longitude_parts[] = {"lon", "lng", NULL};

/* Return the first column whose name contains one of these parts, in upper or lower case; NULL: none. */
static const char *
column_with_part(TupleDesc descriptor, const char *const *parts)
{
	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);
		char	   *name = asc_tolower(NameStr(attribute->attname), strlen(NameStr(attribute->attname)));

		for (const char *const *part = parts; *part != NULL && !attribute->attisdropped; part++)
		{
			if (strstr(name, *part) != NULL)
				return NameStr(attribute->attname);
		}
	}
	return NULL;
}

/*
 * Return the column that looks like a key: one with a name that programs give to keys, or else the only one
 * whose name ends in _id; NULL: none.
 */
static const char *
key_like_column(TupleDesc descriptor)
{
	const char *found = NULL;
	int			count = 0;

	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);
		const char *name = NameStr(attribute->attname);
		size_t		length = strlen(name);

		if (attribute->attisdropped)
			continue;
		for (size_t j = 0; j < lengthof(key_names); j++)
		{
			if (pg_strcasecmp(name, key_names[j]) == 0)
				return name;
		}
		if (length > 3 && pg_strcasecmp(name + length - 3, "_id") == 0)
		{
			found = name;
			count++;
		}
	}
	return count == 1 ? found : NULL;
}

/* Return whether the current role may add a column to the source's relation. */
static bool
may_add_column(Oid relation, bool *inherited)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Form_pg_class form;
	bool		may;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relation);
	form = (Form_pg_class) GETSTRUCT(tuple);
	*inherited = form->relkind == RELKIND_PARTITIONED_TABLE || form->relhassubclass;
	may = (form->relkind == RELKIND_RELATION || form->relkind == RELKIND_PARTITIONED_TABLE) &&
		!form->relispartition && !OidIsValid(form->reloftype) &&
		object_ownercheck(RelationRelationId, relation, GetUserId());
	ReleaseSysCache(tuple);
	return may;
}

const char *
geonn_names_hint(const PointSource *source, TupleDesc descriptor)
{
	const char *latitude = column_with_part(descriptor, latitude_parts);
	const char *longitude = column_with_part(descriptor, longitude_parts);
	const char *options = psprintf("options => '{\"%slat\": \"%s\", \"%slon\": \"%s\"}'",
								   source->option_prefix, latitude == NULL ? "my_lat" : latitude,
								   source->option_prefix, longitude == NULL ? "my_lon" : longitude);

	return OidIsValid(source->relation) ?
		psprintf("Name the columns, as in %s; or rename them, or use a view with columns id, lat and lon.", options) :
		psprintf("Name its columns id, lat and lon, as in SELECT code AS id, lat, lon; or name them, as in %s.", options);
}

/* Write the option that names the id: the column that looks like a key, or else an example. */
static const char *
key_option(const PointSource *source, TupleDesc descriptor)
{
	const char *key = key_like_column(descriptor);

	return key == NULL ? psprintf("as in options => '{\"%sid\": \"my_key\"}'", source->option_prefix) :
		psprintf("perhaps options => '{\"%sid\": \"%s\"}'", source->option_prefix, key);
}

const char *
geonn_id_hint(const PointSource *source, TupleDesc descriptor)
{
	const char *option = key_option(source, descriptor);
	bool		inherited;

	if (!OidIsValid(source->relation))
		return psprintf("Name its columns id, lat and lon, as in SELECT code AS id, lat, lon; or name the column that identifies its rows, %s.",
						option);
	if (may_add_column(source->relation, &inherited))
		return psprintf("Name the column that identifies its rows, %s; or add one: ALTER TABLE %s ADD id %s;",
						option, source->quoted_name,
						/* Before PostgreSQL 17 a partitioned table has no identity column, and children inherit none. */
						inherited ? "bigserial" : "bigint GENERATED ALWAYS AS IDENTITY");
	return psprintf("Name the column that identifies its rows, %s; %sor make a table that numbers them: CREATE TABLE my_points AS SELECT row_number() OVER () AS id, * FROM %s;",
					option,
					get_rel_relkind(source->relation) == RELKIND_VIEW ? "or have the view select the key of its table, too; " : "",
					source->quoted_name);
}

const char *
geonn_steady_id_hint(const PointSource *source, TupleDesc descriptor)
{
	return psprintf("Have the view select the key of its table, and name that, %s; or make a table of it: CREATE TABLE my_points AS TABLE %s;",
					key_option(source, descriptor), source->quoted_name);
}

const char *
geonn_points_hint(const PointSource *source, const PointColumn *column)
{
	if (geonn_typmod_is_shape(column->typmod) && source->points_alone)
		return GEONN_POINTS_OF_SHAPES_HINT;
	if (geonn_typmod_is_shape(column->typmod))
		return psprintf("For the nearest lines and polygons use options => '{\"%sshape\": \"%s\"}'; for points a view that has points alone.",
						source->option_prefix, column->name);
	return "Use points of SRID 4326, as ST_Transform makes them, in a view or query.";
}

void
geonn_tell_unused_shape(const PointSource *source)
{
	static TimestampTz told_statement = 0;
	static Oid	told[2];		/* the last two relations of which the client was told in that statement */
	TimestampTz statement = GetCurrentStatementStartTimestamp();

	if (source->unused_shape.name == NULL || IsParallelWorker() ||
		(statement == told_statement && (source->relation == told[0] || source->relation == told[1])))
		return;
	told[1] = statement == told_statement ? told[0] : InvalidOid;
	told[0] = source->relation;
	told_statement = statement;
	ereport(NOTICE,
			(errmsg("column \"%s\" of %s is not used: it has shapes, and the points beside it are used",
					source->unused_shape.name, source->title),
			 errhint("For the nearest lines and polygons use options => '{\"%sshape\": \"%s\"}'.",
					 source->option_prefix, source->unused_shape.name)));
}
