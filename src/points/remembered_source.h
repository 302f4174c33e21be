/*
 * remembered_source.h
 *		Tables whose columns were chosen, and whose plan was made, by an earlier call of this process.
 */
#ifndef GEONN_REMEMBERED_SOURCE_H
#define GEONN_REMEMBERED_SOURCE_H

#include "nodes/plannodes.h"

#include "points/columns.h"

/*
 * Return the source that geonn_relation_source() makes of this relation, without columns to join by and windows.  If
 * the process remembers the table, and no column is named, it does not look at the catalogs.
 */
extern PointSource *geonn_remembered_source(Oid relation, const GeonnColumnNames *named);

/*
 * Return what geonn_check_tables() would return for the source, after a check of privileges.  NIL: this process does
 * not remember the table, or geonn_check_tables() has to raise an error.
 */
extern List *geonn_remembered_tables(const PointSource *source);

/* Remember that this plan of the source reads these tables, if they are one table. */
extern void geonn_remember_tables(const PointSource *source, const PlannedStmt *plan, const List *tables);

#endif							/* GEONN_REMEMBERED_SOURCE_H */
