/*
 * citus.h
 *		Tables of Citus: which shard a reference table is read by.
 */
#ifndef GEONN_CITUS_H
#define GEONN_CITUS_H

#include "points/columns.h"
#include "utils/relcache.h"

/*
 * Open the relation that is read in place of `relation`, which is open: the shard that a reference table of Citus has in
 * this database, locked until the end of the transaction.  Returns NULL if the relation itself is read.  Sets *kind.
 *
 * The same shard is read until something about the relation changes, or until geonn_citus_is_written().  A change in
 * Citus's catalogs counts: a session hears of it as of any change of the relation.
 */
extern Relation geonn_citus_shard(Relation relation, CitusKind *kind);

/* Return whether this transaction holds a lock that writers take on the relation.  If so, the relation itself is read. */
extern bool geonn_citus_is_written(Oid relation);

/* Return whether the role may read the source's columns in the relation that the caller named. */
extern bool geonn_citus_may_read_named(const PointSource *source);

/* Raise PostgreSQL's error unless the role may read the source's columns in the relation that the caller named. */
extern void geonn_citus_check_named(const PointSource *source);

/* If the source is a table of Citus, tell in a notice how it is read. */
extern void geonn_citus_tell(const PointSource *source);

#endif							/* GEONN_CITUS_H */
