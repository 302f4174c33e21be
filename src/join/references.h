/*
 * references.h
 *		References on their way into a dataset, and what is asked of them later.
 */
#ifndef GEONN_REFERENCES_H
#define GEONN_REFERENCES_H

#include "client/client.h"
#include "join/reference_memory.h"
#include "points/columns.h"
#include "points/reader.h"

typedef struct GeonnReferences GeonnReferences;

/* the identity of an observation whose id no reference has */
#define GEONN_NO_IDENTITY (-1)

/* what will be asked of them */
typedef enum ReferenceDetail
{
	REFERENCE_DISTANCE,			/* nothing but how far they are */
	REFERENCE_ID,				/* geonn_reference_id, _identity */
	REFERENCE_COORDINATES		/* the same, and geonn_reference_coordinates */
} ReferenceDetail;

/*
 * Get ready to take them in; they live as long as the current memory context, and what they
 * take is added to this memory.
 * excluded_by: geonn_reference_identity will be asked for ids of these
 * observations, or NULL.
 * Raises an error where the type of the ids has no order, or where the
 * observations' ids cannot be compared with them.
 */
extern GeonnReferences *geonn_references_create(const PointSource *source,
												ReferenceDetail detail,
												const PointSource *excluded_by,
												ReferenceMemory *memory);

/*
 * The same of references that another client has sealed, in a dataset that this one is
 * attached to, with the same arguments; or with REFERENCE_DISTANCE in any case.
 */
extern GeonnReferences *geonn_references_attach(const PointSource *source,
												ReferenceDetail detail,
												const PointSource *excluded_by,
												GeonnClient *client);

/* Bytes of the files that they have, of those that are sealed. */
extern uint64 geonn_references_file_bytes(const GeonnReferences *references);

/* Take in a valid row; group is its number, or 0 where there are no groups. */
extern void geonn_references_add(GeonnReferences *references, GeonnClient *client,
								 const PointRow *row, int32 group);

/*
 * Can they be taken in as blocks (PointBlockConsumer), where there are no groups?  Then
 * nothing but their ids and coordinates is needed of them.
 */
extern bool geonn_references_take_blocks(const GeonnReferences *references);

/* Take in so many valid rows at once. */
extern void geonn_references_add_block(GeonnReferences *references, GeonnClient *client,
									   uint32 rows, const Datum *ids, const double *latitudes,
									   const double *longitudes);

/*
 * There are no more: see that all are in the dataset, in their order, and seal
 * it.  Returns how many there are.  labelled: the dataset need not be found by its
 * contents.
 */
extern uint64 geonn_references_seal(GeonnReferences *references, GeonnClient *client,
									bool labelled);

/* The id of a reference, by its tag; what it points to lives as long as the references. */
extern Datum geonn_reference_id(const GeonnReferences *references, int64 tag);

/* The coordinates of a reference, in degrees as they were read. */
extern void geonn_reference_coordinates(const GeonnReferences *references, int64 tag,
										double *latitude, double *longitude);

/* The identity of the references with this id of an observation, in the dataset. */
extern int32 geonn_reference_identity(const GeonnReferences *references, Datum id);

#endif							/* GEONN_REFERENCES_H */
