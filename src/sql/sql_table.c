/*
 * sql_table.c
 *		Nearest-neighbour subqueries whose references are all rows of a table: what the engine may keep of them.
 *
 *	SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) FROM r ORDER BY 2, 1 LIMIT k
 *
 * returns what a call of geonn_nearest_points returns.  Where the subquery needs no more of a reference than its id, an
 * integer, and its distance, a search has its rows, and the references can stay in the engine as those of a call, under
 * the same label (kept_dataset.c).  Calls and statements then use the same dataset.  A statement that names no id has
 * the latitude for one, in whose place its search returns the distance.
 *
 * The statement's own checks are all that is needed to use what is kept: they are of the same columns of all rows.  So
 * a table whose row-level security concerns the role is left out.  Where nothing is kept, the statement's own plan reads
 * the references, and they are sent under the label.
 *
 * A call leaves out rows without an id or coordinates, and those that are out of range, where the statement has rows, or an
 * error.  Where a table has such rows, the node goes on without a table.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "base/compat.h"
#include "base/value.h"
#include "plan/known.h"
#include "points/sources.h"
#include "sql/sql_plan.h"
#include "sql/sql_table.h"

/* ---- the plan ---- */

/*
 * The only relation that the query reads, all rows of which are as the label of a dataset says; NULL: none is.
 */
static const RangeTblEntry *
whole_table(const Query *query)
{
	const RangeTblEntry *entry;

	if (query->jointree->quals != NULL || list_length(query->jointree->fromlist) != 1 ||
		!IsA(linitial(query->jointree->fromlist), RangeTblRef))
		return NULL;
	entry = rt_fetch(linitial_node(RangeTblRef, query->jointree->fromlist)->rtindex, query->rtable);
	return entry->rtekind == RTE_RELATION && (entry->relkind == RELKIND_RELATION || entry->relkind == RELKIND_MATVIEW) &&
		entry->tablesample == NULL && entry->securityQuals == NIL && !has_subclass(entry->relid) ? entry : NULL;
}

static bool
is_column(const Node *expression, int column)
{
	return IsA(expression, Var) && ((const Var *) expression)->varno == REFERENCES_VARNO &&
		((const Var *) expression)->varattno == column + 1;
}

/*
 * Are the subquery's order, and what the statement uses of it, those of a call by this id?  -1: it has none.
 */
static bool
is_of_call(const SqlForm *form, int id, Oid type)
{
	ListCell   *cell;

	if (form->row != NULL || !IsA(form->offset, Const) ||
		!((const Const *) form->offset)->constisnull || list_length(form->keys) > 2)
		return false;
	if (list_length(form->keys) == 2 &&
		(!is_column(lsecond(form->keys), id) ||
		 lsecond_oid(form->operators) != lookup_type_cache(type, TYPECACHE_LT_OPR)->lt_opr))
		return false;
	foreach(cell, form->outputs)
	{
		if (lfirst(cell) != NULL && !is_column(lfirst(cell), id) && !equal(lfirst(cell), linitial(form->keys)))
			return false;
	}
	return true;
}

/*
 * The table as a source of points, by its columns id, latitude and longitude; quiet: NULL in place of an error.
 */
static PointSource *
source_of(Oid table, const AttrNumber *attributes, bool quiet)
{
	GeonnColumnNames named = {
		.names = {
			[COLUMN_ID] = get_attname(table, attributes[0], false),
			[COLUMN_LATITUDE] = get_attname(table, attributes[1], false),
			[COLUMN_LONGITUDE] = get_attname(table, attributes[2], false)
		}
	};

	return quiet ? geonn_clear_source(table, &named, NIL, NIL) : geonn_relation_source(table, &named, NIL, NIL);
}

List *
geonn_sql_table(const SqlForm *form, const Query *query, const List *columns)
{
	const RangeTblEntry *entry = form->kind == GEONN_POINT_NONE ? whole_table(query) : NULL;
	int			latitude = linitial_int(form->point);
	int			longitude = llast_int(form->point);
	bool		has_id = list_length(columns) == 3;
	int			id = has_id ? 3 - latitude - longitude : latitude;	/* of the columns 0, 1 and 2 */
	AttrNumber	attributes[3];
	const PointSource *source;
	SqlTablePlan planned;

	if (entry == NULL || list_length(columns) > 3 || latitude == longitude)
		return NIL;
	for (int i = 0; i < 3; i++)
	{
		const Var  *column = list_nth(columns, i == 0 ? id : i == 1 ? latitude : longitude);

		if (!IsA(column, Var) || !geonn_is_stored(entry->relid, column->varattno) ||
			(i == 0 && has_id ? geonn_integer_width(column->vartype) == 0 : column->vartype != FLOAT8OID))
			return NIL;
		attributes[i] = column->varattno;
	}
	if (!is_of_call(form, has_id ? id : -1, ((const Var *) list_nth(columns, id))->vartype))
		return NIL;
	source = source_of(entry->relid, attributes, true);

	/* Citus can have the rows elsewhere */
	if (source == NULL || source->relation != entry->relid)
		return NIL;
	planned = (SqlTablePlan) {
		.table = list_make1_oid(entry->relid),
		.attributes = list_make3_int(attributes[0], attributes[1], attributes[2]),
		.id = makeInteger(id)
	};
	return geonn_pack_fields(&planned);
}

/* ---- execution ---- */

SqlTable *
geonn_sql_table_begin(const List *packed, const SqlReferences *references, const List *outputs)
{
	SqlTablePlan planned;
	SqlTable   *table;
	bool		has_id = false;
	ListCell   *cell;

	if (packed == NIL)
		return NULL;
	geonn_unpack_fields(packed, &planned);
	table = palloc0(sizeof(SqlTable));
	table->table.table = linitial_oid(planned.table);
	table->table.attributes = palloc(3 * sizeof(AttrNumber));
	foreach(cell, planned.attributes)
		table->table.attributes[foreach_current_index(cell)] = (AttrNumber) lfirst_int(cell);
	table->id = intVal(planned.id);

	/* an output that is no column is the distance */
	table->columns = palloc(list_length(outputs) * sizeof(int));
	foreach(cell, outputs)
	{
		bool		is_id = IsA(lfirst(cell), Var);

		table->columns[foreach_current_index(cell)] = is_id ? SEARCH_REFERENCE : SEARCH_DISTANCE;
		has_id |= is_id;
	}
	table->row_type = geonn_sql_references_row_type();
	TupleDescInitEntry(table->row_type, SEARCH_REFERENCE + 1, has_id ? "ref_id" : "distance",
					   has_id ? TupleDescAttr(references->slot->tts_tupleDescriptor, table->id)->atttypid : FLOAT8OID, -1, 0);
	TupleDescFinalize(table->row_type);
	return table;
}

PointSource *
geonn_sql_table_source(const SqlTable *table)
{
	return source_of(table->table.table, table->table.attributes, false);
}

bool
geonn_sql_table_is_complete(const SqlTable *table, const SqlReferences *references)
{
	if (references->rereads || references->valid.count < references->count)
		return false;
	for (uint64 i = 0; i < references->count; i++)
	{
		if (references->rows[i]->nulls[table->id])
			return false;
	}
	return true;
}
