/*
 * groups.h
 *		Numbers for the keys of the columns to join by: equal keys have equal numbers, their group; and for the
 *		values of columns that differ, each of which has parties as numbers.
 */
#ifndef GEONN_GROUPS_H
#define GEONN_GROUPS_H

#include "client/client.h"
#include "join/reference_memory.h"
#include "points/columns.h"

typedef struct GeonnGroups GeonnGroups;

/* The group of a key with a NULL, or of a key that no reference has. */
#define GEONN_NO_GROUP (-1)

/* The columns of which keys are made. */
typedef enum GroupKey
{
	GROUP_KEY_BY,				/* the columns of the argument by */
	GROUP_KEY_DIFFERS			/* + 0 ... differs_count - 1: this one of the argument differs */
} GroupKey;

/*
 * Create an empty set of groups, which lives as long as the current memory context; its bytes are added to
 * memory.  Raises an error unless the columns of both sources have the same types, with an equality.
 *
 * With NULL as memory, get the groups of the dataset to which the client is attached; the sources must be
 * like the sources with which the groups were created.
 */
extern GeonnGroups *geonn_groups_begin(const PointSource *observations,
									   const PointSource *references, GroupKey key,
									   ReferenceMemory *memory, GeonnClient *client);

/*
 * Create the groups of a base, for the argument by: empty without a file; otherwise with the groups in the file, which
 * another process has made.  Keys can be added even after the set is sealed.  Only geonn_groups_bytes() counts the
 * set's bytes.
 */
extern GeonnGroups *geonn_groups_of_base(const PointSource *references, MemoryFile *file);

/* Raise an error unless the columns of the argument by have the same types, with an equality, in both sources. */
extern void geonn_groups_check(const PointSource *observations, const PointSource *references);

/* Return how many bytes the file of sealed groups has. */
extern uint64 geonn_groups_file_bytes(const GeonnGroups *groups);

/* Return how many groups the set has; and how many bytes groups of a base take outside of their file. */
extern uint32 geonn_groups_count(const GeonnGroups *groups);
extern uint64 geonn_groups_bytes(const GeonnGroups *groups);

/* Return the number of a row's group; a new key gets a new group.  values has the source's [by_count] values. */
extern int32 geonn_groups_add(GeonnGroups *groups, const Datum *values, const bool *is_null);

/*
 * End adding groups.  From now on this process, and clients that attach to this client's dataset,
 * can find groups.  The caller does so before the dataset is sealed.
 */
extern void geonn_groups_seal(GeonnGroups *groups, GeonnClient *client);

/* Close the descriptor of the file of sealed groups, which this process has made and has left with a dataset. */
extern void geonn_groups_close_descriptor(GeonnGroups *groups);

/* Return the number of a row's group, or GEONN_NO_GROUP; the groups must be sealed. */
extern int32 geonn_groups_find(GeonnGroups *groups, const Datum *values, const bool *is_null);

/* Return whether a row has no key, because one of its columns is NULL. */
extern bool geonn_groups_has_null(const GeonnGroups *groups, const bool *is_null);

#endif							/* GEONN_GROUPS_H */
