/*
 * plan_fields.h
 *		What a plan has in a list, by names: structs for custom_exprs and custom_private of the plan nodes.
 *
 * PostgreSQL copies plans, sends them to workers, and changes the Vars of their expressions, so that a plan keeps what its
 * node needs in lists.  Such a list has a struct, all of whose members are pointers to Nodes: a List among them, of any
 * kind, for what there are several of.  The planner packs the struct into the list, each member at its place, and the node
 * unpacks the list when it begins.  So what is read has the name under which it was written.
 */
#ifndef GEONN_PLAN_FIELDS_H
#define GEONN_PLAN_FIELDS_H

#include "nodes/pg_list.h"

#define GEONN_FIELDS(fields) \
	(StaticAssertExpr(sizeof(*(fields)) % sizeof(Node *) == 0, "not all members are pointers to Nodes"), \
	 (int) (sizeof(*(fields)) / sizeof(Node *)))

/* The list of the members of *fields. */
#define geonn_pack_fields(fields) geonn_list_fields((fields), GEONN_FIELDS(fields))

/* Set *fields to what was packed. */
#define geonn_unpack_fields(list, fields) geonn_set_fields((list), (fields), GEONN_FIELDS(fields))

static inline void
geonn_set_fields(const List *list, void *fields, int count)
{
	Assert(IsA(list, List) && list_length(list) == count);
	for (int i = 0; i < count; i++)
	{
		const Node *node = list_nth(list, i);

		memcpy((char *) fields + i * sizeof(Node *), &node, sizeof(Node *));
	}
}

static inline List *
geonn_list_fields(const void *fields, int count)
{
	List	   *list = NIL;

	for (int i = 0; i < count; i++)
	{
		Node	   *node;

		memcpy(&node, (const char *) fields + i * sizeof(Node *), sizeof(Node *));
		list = lappend(list, node);
	}
	return list;
}

#endif							/* GEONN_PLAN_FIELDS_H */
