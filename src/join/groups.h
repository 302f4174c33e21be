/*
 * groups.h
 *		Numbers for the groups that a join is by: equal keys, equal numbers.
 */
#ifndef GEONN_GROUPS_H
#define GEONN_GROUPS_H

#include "client/client.h"
#include "join/reference_memory.h"
#include "points/columns.h"

typedef struct GeonnGroups GeonnGroups;

/* a key that has a NULL in it, or is none of the references' */
#define GEONN_NO_GROUP (-1)

/*
 * No groups yet, in the current memory context, which they live as long as; what they take is
 * added to the memory of their references.
 * Raises an error unless both sources have by columns of the same types, which
 * have an equality.
 */
extern GeonnGroups *geonn_groups_create(const PointSource *observations,
										const PointSource *references,
										ReferenceMemory *memory);

/* Bytes of their file, of sealed ones. */
extern uint64 geonn_groups_file_bytes(const GeonnGroups *groups);

/*
 * The groups of the dataset that the client is attached to; the sources are like
 * those that they were created with.
 */
extern GeonnGroups *geonn_groups_attach(const PointSource *observations,
										const PointSource *references, GeonnClient *client);

/* The number of a key's group, which is a new one where it has none yet. */
extern int32 geonn_groups_add(GeonnGroups *groups, const Datum *key, const bool *is_null);

/*
 * There are no more: now they can be found, here and by those who attach to the
 * client's dataset, which is not sealed yet.
 */
extern void geonn_groups_seal(GeonnGroups *groups, GeonnClient *client);

/* The number of a key's group; where they are sealed. */
extern int32 geonn_groups_find(GeonnGroups *groups, const Datum *key, const bool *is_null);

#endif							/* GEONN_GROUPS_H */
