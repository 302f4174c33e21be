/*
 * snapshot_order.h
 *		Which transactions two snapshots see, compared.
 */
#ifndef GEONN_SNAPSHOT_ORDER_H
#define GEONN_SNAPSHOT_ORDER_H

#include "utils/snapshot.h"

/*
 * Copy into one piece of memory of this context what decides which transactions and commands an MVCC snapshot sees.
 */
extern Snapshot geonn_snapshot_copy(Snapshot snapshot, MemoryContext context);

/* Has all that had ended for the first snapshot ended for the next one? */
extern bool geonn_snapshot_follows(const SnapshotData *next, const SnapshotData *first);

/*
 * Have the same transactions of other processes ended for both snapshots?  Whether both see the same commands of the own
 * transaction (curcid), the caller asks.
 */
extern bool geonn_snapshot_is_same(const SnapshotData *a, const SnapshotData *b);

#endif							/* GEONN_SNAPSHOT_ORDER_H */
