/*
 * transform.h
 *		Values of another SRID become values of SRID 4326, by PostGIS's own ST_Transform.
 */
#ifndef GEONN_TRANSFORM_H
#define GEONN_TRANSFORM_H

#include "port/atomics.h"

/* what transforms the values of one column */
typedef struct GeonnTransform GeonnTransform;

/*
 * Prepare to transform values of a column of this type, PostGIS's geometry.  srid is that of the column's type; 0: the
 * first value decides.  Looks nothing up yet.  The transform lives as long as the current memory context.
 */
extern GeonnTransform *geonn_transform_create(Oid type, int32 srid);

/* Take note of the SRID of a value.  Returns another SRID where the value should have that one, else this one. */
extern int32 geonn_transform_note(GeonnTransform *transform, int32 srid);

/*
 * Have several processes read the column, each with a transform: all values must have the SRID that the first of them
 * finds, which is kept there, and is 0 before.  NULL: this process reads alone.  Does nothing without a transform.
 */
extern void geonn_transform_share(GeonnTransform *transform, pg_atomic_uint32 *srid);

/*
 * Begin anew, for values of a column whose SRID is this one; 0: its type's, or that of the first value.  With is_lenient, a
 * value of another SRID is noted, and is no error.  NULL: does nothing.
 */
extern void geonn_transform_restart(GeonnTransform *transform, int32 srid, bool is_lenient);

/* Return whether values of several SRIDs were noted since a lenient beginning; false for NULL. */
extern bool geonn_transform_is_mixed(const GeonnTransform *transform);

/* Return the column's SRID; 0: not known yet. */
extern int32 geonn_transform_srid(const GeonnTransform *transform);

/*
 * Return a value of this SRID in SRID 4326, in the current memory context; the value is not empty.  Where ST_Transform raises an
 * error about the value, as for a place outside of the projection's area, sets *reason to the error's message; the result has no
 * meaning then.
 * Raises the errors that each call of ST_Transform by the current role raises: that the role lacks EXECUTE, or that PostGIS does
 * not know the SRID.
 */
extern Datum geonn_transform_value(GeonnTransform *transform, int32 srid, Datum value, const char **reason);

/*
 * Return what the values of a column mean, for labels: a hash of the definition of the SRID that the column's type has, or
 * of all definitions if the type has none; 1: none is found; 2: the current role may not call ST_Transform; 0 for NULL: other
 * SRIDs than 4326 are refused.
 */
extern uint64 geonn_transform_meaning(const GeonnTransform *transform);

#endif							/* GEONN_TRANSFORM_H */
