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
 * in this database, locked until the end of the transaction; NULL: the relation itself is read.  Sets
 * *distributed to whether Citus divides the relation's rows among shards.
 */
extern Relation geonn_citus_shard(Relation relation, bool *distributed);

/* Raise PostgreSQL's error unless the role may read the source's columns in the relation that the caller named. */
extern void geonn_citus_check_named(const PointSource *source);

/* Tell in a notice how a source of Citus is read, if it is one. */
extern void geonn_citus_tell(const PointSource *source);

#endif							/* GEONN_CITUS_H */
