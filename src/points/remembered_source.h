/*
 * remembered_source.h
 *		Tables whose columns were chosen, and whose plan was made, by an earlier call of this process.
 */
#ifndef GEONN_REMEMBERED_SOURCE_H
#define GEONN_REMEMBERED_SOURCE_H

#include "nodes/plannodes.h"

#include "points/columns.h"

/*
 * The source that geonn_relation_source makes of this relation, without columns to join by and windows.  It is found
 * without a look at the catalogs if the relation is a table that is remembered, and no column is named.
 */
extern PointSource *geonn_remembered_source(Oid relation, const GeonnColumnNames *named);

/*
 * What geonn_check_tables returns for the source, and its privileges are checked; NIL: it is not remembered, or it is
 * to raise an error.
 */
extern List *geonn_remembered_tables(const PointSource *source);

/* Remember that this plan of the source reads these tables, if it is one table. */
extern void geonn_remember_tables(const PointSource *source, const PlannedStmt *plan, const List *tables);

#endif							/* GEONN_REMEMBERED_SOURCE_H */
