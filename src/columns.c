/*
 * columns.c
 *		Which columns of a relation are its id and its coordinates.
 *
 * The id is the primary key where that is one column, else a column "id".
 * The coordinates go by their names.  Names are compared without regard to
 * case.  What cannot be told for certain is an error that says what there is
 * and what would do; a view that names its columns id, lat and lon always
 * does.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "columns.h"
#include "result.h"

/* column names that an error message lists */
#define COLUMNS_LISTED	20

/* of geonn_describe's result */
#define DESCRIBE_COLUMNS 4

typedef struct RoleRules
{
	const char *name;			/* as geonn_describe shows it */
	const char *article;
	const char *column_names[5];
	const char *expected_names; /* in words */
	const char *expected_types;
	const Oid  *types;			/* ends with InvalidOid */
} RoleRules;

static const Oid id_types[] = {INT8OID, INT4OID, INT2OID, InvalidOid};
static const Oid coordinate_types[] = {
	FLOAT8OID, FLOAT4OID, NUMERICOID, INT8OID, INT4OID, INT2OID, InvalidOid
};

#define COORDINATE_TYPE_NAMES \
	"double precision, real, numeric, bigint, integer or smallint"

static const RoleRules rules[COLUMN_ROLES] = {
	[COLUMN_ID] = {
		"id", "an", {"id"},
		"a primary key of one column, or a column id",
		"bigint, integer or smallint",
		id_types
	},
	[COLUMN_LATITUDE] = {
		"latitude", "a", {"lat", "latitude"},
		"a column lat or latitude",
		COORDINATE_TYPE_NAMES,
		coordinate_types
	},
	[COLUMN_LONGITUDE] = {
		"longitude", "a", {"lon", "lng", "long", "longitude"},
		"a column lon, lng, long or longitude",
		COORDINATE_TYPE_NAMES,
		coordinate_types
	}
};

#define VIEW_HINT \
	"Rename its columns, or create a view of it with columns id, lat and lon, and use that."

PG_FUNCTION_INFO_V1(geonn_describe);

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

/*
 * Names of the relation's columns, or only of those that the rule names.
 */
static char *
list_columns(TupleDesc descriptor, const RoleRules *only)
{
	StringInfoData list;
	int			listed = 0;

	initStringInfo(&list);
	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);
		const char *name = NameStr(attribute->attname);

		if (attribute->attisdropped ||
			(only != NULL && !is_name_of(only, name)))
			continue;
		if (++listed > COLUMNS_LISTED)
			continue;
		appendStringInfo(&list, "%s\"%s\"", listed > 1 ? ", " : "", name);
	}
	if (listed > COLUMNS_LISTED)
		appendStringInfo(&list, " and %d more", listed - COLUMNS_LISTED);
	return list.data;
}

/*
 * The attribute of the primary key where that is one column, else 0;
 * *key_columns is how many it has.
 */
static AttrNumber
primary_key_attribute(Oid relation, int *key_columns)
{
	Oid			constraint;
	Bitmapset  *attributes = get_primary_key_attnos(relation, false, &constraint);

	*key_columns = bms_num_members(attributes);
	if (*key_columns != 1)
		return 0;
	return bms_singleton_member(attributes) + FirstLowInvalidHeapAttributeNumber;
}

static void
raise_missing(Relation relation, const RoleRules *rule, int key_columns)
{
	TupleDesc	descriptor = RelationGetDescr(relation);
	StringInfoData detail;

	initStringInfo(&detail);
	appendStringInfo(&detail, "geonn looks for %s.", rule->expected_names);
	if (key_columns > 1)
		appendStringInfo(&detail, " The primary key here has %d columns.",
						 key_columns);
	if (descriptor->natts > 0)
		appendStringInfo(&detail, " The columns here are %s.",
						 list_columns(descriptor, NULL));
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_COLUMN),
			 errmsg("relation \"%s\" has no %s column",
					RelationGetRelationName(relation), rule->name),
			 errdetail_internal("%s", detail.data),
			 errhint(VIEW_HINT)));
}

/*
 * Take the attribute for this role, if its type can be.
 */
static void
choose_column(PointRelation *found, Relation relation, ColumnRole role,
			  Form_pg_attribute attribute, const char *reason)
{
	const RoleRules *rule = &rules[role];
	PointColumn *column = &found->columns[role];

	column->name = pstrdup(NameStr(attribute->attname));
	column->type = attribute->atttypid;
	column->base_type = getBaseType(attribute->atttypid);
	column->reason = reason;

	for (const Oid *type = rule->types; *type != InvalidOid; type++)
	{
		if (*type == column->base_type)
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("%s column \"%s\" of relation \"%s\" has type %s",
					rule->name, column->name,
					RelationGetRelationName(relation),
					format_type_be(column->type)),
			 errdetail("The type of %s %s column is %s.", rule->article,
					   rule->name, rule->expected_types),
			 errhint("Create a view of it with columns id, lat and lon of such types, and use that.")));
}

static void
find_column(PointRelation *found, Relation relation, ColumnRole role)
{
	TupleDesc	descriptor = RelationGetDescr(relation);
	const RoleRules *rule = &rules[role];
	Form_pg_attribute chosen = NULL;
	int			key_columns = 0;

	if (role == COLUMN_ID)
	{
		AttrNumber	key = primary_key_attribute(RelationGetRelid(relation),
												&key_columns);

		if (key > 0)
		{
			choose_column(found, relation, role,
						  TupleDescAttr(descriptor, key - 1),
						  "primary key");
			return;
		}
	}

	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (attribute->attisdropped ||
			!is_name_of(rule, NameStr(attribute->attname)))
			continue;
		if (chosen != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_AMBIGUOUS_COLUMN),
					 errmsg("relation \"%s\" has more than one %s column",
							RelationGetRelationName(relation), rule->name),
					 errdetail("Candidates are %s.",
							   list_columns(descriptor, rule)),
					 errhint(VIEW_HINT)));
		chosen = attribute;
	}
	if (chosen == NULL)
		raise_missing(relation, rule, key_columns);
	choose_column(found, relation, role, chosen, "column name");
}

PointRelation *
geonn_find_columns(Oid oid)
{
	PointRelation *found = palloc0(sizeof(PointRelation));
	Relation	relation = try_relation_open(oid, AccessShareLock);
	char		kind;

	if (relation == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", oid),
				 errhint("It may have been dropped since the statement was written or prepared.")));

	kind = relation->rd_rel->relkind;
	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE &&
		kind != RELKIND_VIEW && kind != RELKIND_MATVIEW &&
		kind != RELKIND_FOREIGN_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("cannot read points from relation \"%s\"",
						RelationGetRelationName(relation)),
				 errdetail_relkind_not_supported(kind),
				 errhint("Use a table, view, materialized view or foreign table.")));

	found->oid = oid;
	found->name = pstrdup(RelationGetRelationName(relation));
	found->schema = get_namespace_name(RelationGetNamespace(relation));
	found->quoted_name = quote_qualified_identifier(found->schema, found->name);
	for (int role = 0; role < COLUMN_ROLES; role++)
		find_column(found, relation, role);

	relation_close(relation, NoLock);
	return found;
}

Datum
geonn_describe(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	PointRelation *found;

	InitMaterializedSRF(fcinfo, 0);
	geonn_require_columns(result->setDesc, DESCRIBE_COLUMNS);
	found = geonn_find_columns(PG_GETARG_OID(0));
	for (int role = 0; role < COLUMN_ROLES; role++)
	{
		const PointColumn *column = &found->columns[role];
		NameData	name;
		Datum		values[DESCRIBE_COLUMNS];
		bool		nulls[DESCRIBE_COLUMNS] = {false};

		namestrcpy(&name, column->name);
		values[0] = CStringGetTextDatum(rules[role].name);
		values[1] = NameGetDatum(&name);
		values[2] = ObjectIdGetDatum(column->type);
		values[3] = CStringGetTextDatum(column->reason);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
