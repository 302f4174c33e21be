/*
 * row_type.h
 *		The call of a join in FROM, and the type of its rows.
 */
#ifndef GEONN_ROW_TYPE_H
#define GEONN_ROW_TYPE_H

#include "access/tupdesc.h"
#include "nodes/pathnodes.h"

/*
 * The call of a function in FROM that is a join: its expression, which is a FuncExpr, and the column
 * definition list, if it has one.  NULL for anything else in FROM.
 */
extern RangeTblFunction *geonn_join_call(RangeTblEntry *entry);

/*
 * The type of the call's rows, as it is now, in the current memory context: the composite type of the
 * argument row_type, or of type record, what the column definition list says.  NULL: neither.
 */
extern TupleDesc geonn_row_type(const RangeTblFunction *call);

/*
 * The function in FROM that has this expression, with its call; NULL: none, or its arguments are of
 * other relations.
 */
extern RelOptInfo *geonn_relation_of_call(PlannerInfo *root, const FuncExpr *expression,
										  RangeTblFunction **call);

/* The number of the column of this name in the call's row type; 0: it has none. */
extern AttrNumber geonn_row_column(const RangeTblFunction *call, const char *name);

#endif							/* GEONN_ROW_TYPE_H */
