/*
 * snapshot_order.h
 *		Which transactions two snapshots see, compared.
 */
#ifndef GEONN_SNAPSHOT_ORDER_H
#define GEONN_SNAPSHOT_ORDER_H

#include "utils/snapshot.h"

/*
 * Copy those parts of an MVCC snapshot that decide which transactions and commands it sees, into one piece of
 * memory of this context.
 */
extern Snapshot geonn_snapshot_copy(Snapshot snapshot, MemoryContext context);

/* Return whether every transaction that had ended for the first snapshot has ended for the next one. */
extern bool geonn_snapshot_follows(const SnapshotData *next, const SnapshotData *first);

/*
 * Return whether the same transactions of other processes have ended for both snapshots.  The caller compares the
 * commands of its own transaction that both see (curcid).
 */
extern bool geonn_snapshot_is_same(const SnapshotData *a, const SnapshotData *b);

#endif							/* GEONN_SNAPSHOT_ORDER_H */
