/*
 * references.h
 *		References on their way into a dataset, and their ids and coordinates later.
 */
#ifndef GEONN_REFERENCES_H
#define GEONN_REFERENCES_H

#include "client/client.h"
#include "join/reference_memory.h"
#include "points/columns.h"
#include "points/reader.h"

typedef struct GeonnReferences GeonnReferences;

/* what will be asked of the references */
typedef enum ReferenceDetail
{
	REFERENCE_DISTANCE,			/* no more than the distances that pairs have */
	REFERENCE_ID,				/* geonn_reference_id, geonn_references_excluded */
	REFERENCE_COORDINATES		/* these, and geonn_reference_coordinates */
} ReferenceDetail;

/*
 * Prepare to take in references, which live as long as the current memory context; what
 * they take is added to this memory.  columns are those of the question (GEONN_COLUMN_...).
 * excluded_by, or NULL: the observations for whose ids geonn_references_excluded will be asked.
 * Raises an error if the ids' type has no order, or if the observations' ids cannot be compared with
 * the references'.
 *
 * Where memory is NULL, get the references that another client has sealed, from the dataset to which
 * this client is attached.  The other arguments must be the same as there; but REFERENCE_DISTANCE is
 * always allowed.
 */
extern GeonnReferences *geonn_references_begin(const PointSource *source,
											   ReferenceDetail detail,
											   const PointSource *excluded_by, uint32 columns,
											   ReferenceMemory *memory, GeonnClient *client);

/* How many bytes the files of sealed references have. */
extern uint64 geonn_references_file_bytes(const GeonnReferences *references);

/*
 * Take in a valid row whose limits leave it candidates; group is the number of its group, or 0 where the join
 * is by no columns.
 */
extern void geonn_references_add(GeonnReferences *references, GeonnClient *client,
								 const PointRow *row, int32 group);

/*
 * Can the references be taken in as blocks (PointBlockConsumer), if they have neither
 * groups nor limits?  True if only their ids and coordinates are needed.
 */
extern bool geonn_references_take_blocks(const GeonnReferences *references);

/* Take in this many valid rows at once; columns is [rows], or NULL where the question has none. */
extern void geonn_references_add_block(GeonnReferences *references, GeonnClient *client,
									   uint32 rows, const Datum *ids, const double *latitudes,
									   const double *longitudes, const GeonnPointColumns *columns);

/*
 * End taking in references: send all of them to the dataset, in their order, and
 * seal it.
 */
extern void geonn_references_seal(GeonnReferences *references, GeonnClient *client);

/* The id of a reference, by its tag; what it points to lives as long as the references. */
extern Datum geonn_reference_id(const GeonnReferences *references, int64 tag);

/* The coordinates of a reference, in degrees as they were read. */
extern void geonn_reference_coordinates(const GeonnReferences *references, int64 tag,
										double *latitude, double *longitude);

/*
 * The tags, from *first to *last, of the references whose id equals this id of an observation;
 * *last is less than *first where the references have no such id.
 */
extern void geonn_references_excluded(const GeonnReferences *references, Datum id, int64 *first,
									  int64 *last);

/* Does each id of an observation exclude one tag, which is the id? */
extern bool geonn_references_exclude_by_tag(const GeonnReferences *references);

#endif							/* GEONN_REFERENCES_H */
