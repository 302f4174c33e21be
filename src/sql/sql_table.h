/*
 * sql_table.h
 *		Nearest-neighbour subqueries whose references are all rows of a table: what the engine may keep of them.
 */
#ifndef GEONN_SQL_TABLE_H
#define GEONN_SQL_TABLE_H

#include "plan/lateral.h"
#include "sql/sql_form.h"
#include "sql/sql_references.h"

/* such a subquery's references */
typedef struct SqlTable
{
	PlainTable	table;			/* its attributes are those of source: id, latitude and longitude */
	int			id;				/* the id among the references' columns, from 0 on */
	int		   *columns;		/* which column of a search each output is: SEARCH_REFERENCE or SEARCH_DISTANCE */
	TupleDesc	row_type;		/* of the searches */
} SqlTable;

/*
 * For the planner: the table of a form, which is complete but for this, and whose references have these columns
 * (expressions of the query), as in SqlPrivate (sql_plan.h).  NIL: the references are no table's, or the outputs need more
 * of a reference than its id and its distance.
 */
extern List *geonn_sql_table(const SqlForm *form, const Query *query, const List *columns);

/* The table that a plan has in SqlPrivate, and whose outputs these are; NULL: it has none. */
extern SqlTable *geonn_sql_table_begin(const List *planned, const SqlReferences *references, const List *outputs);

/* The table as a source of points, in the current memory context. */
extern PointSource *geonn_sql_table_source(const SqlTable *table);

/* Are the references, which were read, all points that the engine takes, with an id? */
extern bool geonn_sql_table_is_complete(const SqlTable *table, const SqlReferences *references);

#endif							/* GEONN_SQL_TABLE_H */
