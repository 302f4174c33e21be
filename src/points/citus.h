/*
 * citus.h
 *		Tables of Citus: which shard a reference table is read by.
 */
#ifndef GEONN_CITUS_H
#define GEONN_CITUS_H

#include "points/columns.h"
#include "utils/relcache.h"

/*
 * Open the relation that is read in place of this one, which is open: the shard that a reference table of Citus has
 * in this database, locked until the end of the transaction; NULL: the relation itself is read.  Sets *kind.
 *
 * A shard stays the one that is read until something changes about the relation, of which Citus's catalogs tell
 * as of any change, or until geonn_citus_is_written.
 */
extern Relation geonn_citus_shard(Relation relation, CitusKind *kind);

/* Does this transaction hold a lock that writers take on the relation, which then is read itself? */
extern bool geonn_citus_is_written(Oid relation);

/* May the role read the source's columns in the relation that the caller named? */
extern bool geonn_citus_may_read_named(const PointSource *source);

/* Raise PostgreSQL's error unless the role may read the source's columns in the relation that the caller named. */
extern void geonn_citus_check_named(const PointSource *source);

/* Tell in a notice how a source of Citus is read, if it is one. */
extern void geonn_citus_tell(const PointSource *source);

#endif							/* GEONN_CITUS_H */
