/*
 * known.h
 *		What the planner knows of a join's arguments.
 */
#ifndef GEONN_KNOWN_H
#define GEONN_KNOWN_H

#include "nodes/pathnodes.h"
#include "utils/array.h"

/*
 * The value of an argument, as far as it is known while planning; NULL: it is not, or it is NULL.
 * It is good for estimates: of a parameter it may be the value of this execution alone.
 */
extern Const *geonn_known_value(PlannerInfo *root, Node *argument);

/*
 * The relation in an argument of type regclass, named as text or not; InvalidOid: not known, or no
 * such relation.  Raises no error.  With root it may be the value of a parameter in this
 * execution alone; where root is NULL, it is what the plan itself says.  Where the plan says it by a
 * name, another relation can have the name when the plan is executed.
 */
extern Oid	geonn_known_relation(PlannerInfo *root, Node *argument);

/*
 * Is the argument a value that comes with the parameters of an execution, and that the
 * planner does not know, as in a generic plan?
 */
extern bool geonn_comes_later(PlannerInfo *root, Node *argument);

/* The argument's array of column names (name[]), as far as the planner knows it; NULL: not. */
extern ArrayType *geonn_known_names(PlannerInfo *root, Node *argument);

#endif							/* GEONN_KNOWN_H */
