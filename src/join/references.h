/*
 * references.h
 *		References on their way into a dataset, and their ids and coordinates later.
 */
#ifndef GEONN_REFERENCES_H
#define GEONN_REFERENCES_H

#include <math.h>

#include "client/client.h"
#include "join/reference_memory.h"
#include "points/columns.h"
#include "points/reader.h"

typedef struct GeonnReferences GeonnReferences;

/* what will be asked of the references */
typedef enum ReferenceDetail
{
	REFERENCE_DISTANCE,			/* only the distances of pairs */
	REFERENCE_ID,				/* distances; geonn_reference_id and geonn_references_excluded */
	REFERENCE_COORDINATES		/* all of that, and geonn_reference_coordinates */
} ReferenceDetail;

/*
 * Create an empty set of references, which lives as long as the current memory context; its bytes are counted in memory.
 * columns are the question's (GEONN_COLUMN_...).  excluded_by: the observations for whose ids geonn_references_excluded()
 * will be called, or NULL.  Raises an error if the ids' type has no order, or if the observations' ids cannot be compared
 * with the references'.
 *
 * With NULL as memory, get the references that another client has sealed, from the dataset to which this client is
 * attached.  The other arguments must be the same as there; but REFERENCE_DISTANCE is always allowed.
 */
extern GeonnReferences *geonn_references_begin(const PointSource *source,
											   ReferenceDetail detail,
											   const PointSource *excluded_by, uint32 columns,
											   ReferenceMemory *memory, GeonnClient *client);

/* Return the id with this tag, out of ids that belong to another owner than the references. */
typedef Datum LentId(const void *ids, int64 tag);

/*
 * Create references without ids of their own: id_of() finds an id by its tag.  The references live as long as the current
 * memory context, and have no coordinates.  excluded_by is as in geonn_references_begin(), for geonn_reference_is_own().
 */
extern GeonnReferences *geonn_references_lend(const PointSource *source, LentId *id_of, const void *ids,
											  const PointSource *excluded_by);

/* Return how many bytes the files of sealed references have. */
extern uint64 geonn_references_file_bytes(const GeonnReferences *references);

/* Add a valid row, a point or a shape.  Its limits, which are those in columns, allow candidates. */
extern void geonn_references_add(GeonnReferences *references, GeonnClient *client,
								 const PointRow *row, const GeonnPointColumns *columns);

/*
 * Return whether references without groups, parties and limits can be added in blocks (PointBlockConsumer): if
 * this process sorts nothing.
 */
extern bool geonn_references_take_blocks(const GeonnReferences *references);

/* Add this many valid rows.  columns is [rows], or NULL if the question has no columns. */
extern void geonn_references_add_block(GeonnReferences *references, GeonnClient *client,
									   uint32 rows, const Datum *ids, const double *latitudes,
									   const double *longitudes, const GeonnPointColumns *columns);

/* Let go of references that were not sealed, and of the disk space that sorting them takes. */
extern void geonn_references_abandon(GeonnReferences *references);

/* End adding references: send those that this process has sorted to the dataset, and seal it. */
extern void geonn_references_seal(GeonnReferences *references, GeonnClient *client);

/* Raise the error that the engine has named a reference by this number, of so many. */
__attribute__((noreturn))
extern void geonn_unknown_reference(int64 number, uint64 count);

/* Raise an error unless a reference's number, which may come from the engine, is one of so many. */
static inline void
geonn_check_reference_number(int64 number, uint64 count)
{
	if (unlikely(number < 0 || (uint64) number >= count))
		geonn_unknown_reference(number, count);
}

/* Return the id of a reference, by its tag.  What the id points to lives as long as the references. */
extern Datum geonn_reference_id(const GeonnReferences *references, int64 tag);

/* Return whether geonn_reference_id(), if it may be called, returns the tag itself. */
extern bool geonn_references_have_ids_as_tags(const GeonnReferences *references);

/* Get the coordinates of a reference, in degrees as they were read. */
extern void geonn_reference_coordinates(const GeonnReferences *references, int64 tag,
										double *latitude, double *longitude);

/*
 * Find the tags, from *first to *last, of the references whose id equals this id of an observation.
 * *last is less than *first if no reference has the id.
 */
extern void geonn_references_excluded(const GeonnReferences *references, Datum id, int64 *first,
									  int64 *last);

/* Return whether the id of the lent reference with this tag equals this id of an observation. */
extern bool geonn_reference_is_own(const GeonnReferences *references, int64 tag, Datum id);

/*
 * Return the signs of a reference's coordinates, which tell -0 from 0: the last key in the order of references with equal
 * ids.
 */
static inline int
geonn_reference_signs(double latitude, double longitude)
{
	return (signbit(latitude) != 0) << 1 | (signbit(longitude) != 0);
}

/* Return whether an observation's id excludes exactly one tag, the id itself. */
extern bool geonn_references_exclude_by_tag(const GeonnReferences *references);

#endif							/* GEONN_REFERENCES_H */
