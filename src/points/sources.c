/*
 * sources.c
 *		Relations and queries from which points are read: their columns, and the query that reads them.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "lib/stringinfo.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "points/citus.h"
#include "points/column_hints.h"
#include "points/query.h"
#include "points/sources.h"
#include "points/unsteady_column.h"

/* Make the query that reads the source's columns from this relation. */
static void
make_query(PointSource *source, const char *from)
{
	StringInfoData query;

	initStringInfo(&query);
	appendStringInfoString(&query, "SELECT ");
	for (int i = 0; i < source->column_count; i++)
	{
		PointColumn *column = &source->columns[i];

		if (column->name == NULL)
			continue;
		appendStringInfo(&query, "%s%s", source->query_columns > 0 ? ", " : "", quote_identifier(column->name));
		column->attribute = ++source->query_columns;
	}
	appendStringInfo(&query, " FROM %s", from);
	Assert(source->query_columns <= source->column_count);
	source->query = query.data;
}

bool
geonn_has_points(char kind)
{
	return kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE || kind == RELKIND_VIEW ||
		kind == RELKIND_MATVIEW || kind == RELKIND_FOREIGN_TABLE;
}

/* Raise an error if each reading of a view makes the id anew: the caller's join by the id would lead to other rows. */
static void
refuse_unsteady_id(PointSource *source, Relation view)
{
	PointColumn *id = &source->columns[COLUMN_ID];
	const char *maker = id->attribute > 0 ? geonn_unsteady_column(view, id->attribute) : NULL;

	if (maker == NULL)
		return;
	source->unclear = true;
	if (!source->quiet)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("each reading of %s makes the id \"%s\" anew", source->title, id->name),
				 errdetail("%s makes it. A row may have another id when a join reads the view again.", maker),
				 errhint("%s", geonn_steady_id_hint(source, RelationGetDescr(view)))));
}

static PointSource *
choose_columns(Relation named, bool quiet, const GeonnColumnNames *names, List *by,
			   List *overlaps)
{
	PointSource *source = palloc0(sizeof(PointSource));
	Relation	shard = geonn_citus_shard(named, &source->citus);
	Relation	relation = shard != NULL ? shard : named;

	source->relation = RelationGetRelid(relation);
	source->named = RelationGetRelid(named);
	source->quiet = quiet;
	source->name = pstrdup(RelationGetRelationName(relation));
	source->schema = get_namespace_name(RelationGetNamespace(relation));
	source->quoted_name = quote_qualified_identifier(source->schema, RelationGetRelationName(named));
	source->title = psprintf("relation \"%s\"", RelationGetRelationName(named));
	geonn_find_columns(source, RelationGetDescr(relation), names, by, overlaps);
	if (relation->rd_rel->relkind == RELKIND_VIEW)
		refuse_unsteady_id(source, relation);
	make_query(source, quote_qualified_identifier(source->schema, source->name));
	if (shard != NULL)
		relation_close(shard, NoLock);
	return source;
}

PointSource *
geonn_relation_source(Oid oid, const GeonnColumnNames *named, List *by, List *overlaps)
{
	Relation	relation = try_relation_open(oid, AccessShareLock);
	PointSource *source;
	char		kind;

	if (relation == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", oid),
				 errhint("The relation may have been dropped since the statement was written or prepared.")));

	kind = relation->rd_rel->relkind;
	if (!geonn_has_points(kind))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("cannot read points from relation \"%s\"",
						RelationGetRelationName(relation)),
				 errdetail_relkind_not_supported(kind),
				 errhint("Use a table, view, materialized view or foreign table.")));
	source = choose_columns(relation, false, named, by, overlaps);
	relation_close(relation, NoLock);
	return source;
}

PointSource *
geonn_clear_source(Oid oid, const GeonnColumnNames *named, List *by, List *overlaps)
{
	Relation	relation = try_relation_open(oid, AccessShareLock);
	PointSource *source = NULL;

	if (relation == NULL)
		return NULL;
	if (geonn_has_points(relation->rd_rel->relkind) && list_length(overlaps) <= GEONN_WINDOWS_MAX)
		source = choose_columns(relation, true, named, by, overlaps);
	relation_close(relation, NoLock);
	return source == NULL || source->unclear ? NULL : source;
}

PointSource *
geonn_query_source(const char *argument, const char *query, const GeonnColumnNames *named,
				   List *by, List *overlaps)
{
	PointSource *source = palloc0(sizeof(PointSource));
	PlannedStmt *plan;
	TupleDesc	descriptor;

	source->title = psprintf("query %s", argument);
	source->query = pstrdup(query);
	plan = geonn_plan_query(source->query, source->title, CURSOR_OPT_PARALLEL_OK, InvalidOid,
							NIL);
	descriptor = ExecCleanTypeFromTL(plan->planTree->targetlist);
	source->query_columns = descriptor->natts;
	geonn_find_columns(source, descriptor, named, by, overlaps);
	return source;
}
