/*
 * snapshot_order.c
 *		Which transactions two snapshots see, compared.
 *
 * The essay of live_table.c says what follows for the rows of a table.
 */
#include "postgres.h"

#include "access/transam.h"
#include "utils/memutils.h"

#include "pages/snapshot_order.h"

/*
 * Return the bytes of a snapshot's subtransactions.  If they were too many for the snapshot, its copies have
 * none, whatever subxcnt says (CopySnapshot).
 */
static Size
subtransaction_bytes(const SnapshotData *snapshot)
{
	return snapshot->suboverflowed ? 0 : snapshot->subxcnt * sizeof(TransactionId);
}

Snapshot
geonn_snapshot_copy(Snapshot snapshot, MemoryContext context)
{
	Size		xids = snapshot->xcnt * sizeof(TransactionId);
	Size		subxids = subtransaction_bytes(snapshot);
	char	   *bytes = MemoryContextAlloc(context, sizeof(SnapshotData) + xids + subxids);
	Snapshot	copy = (Snapshot) bytes;

	*copy = *snapshot;
	copy->xip = (TransactionId *) (bytes + sizeof(SnapshotData));
	copy->subxip = (TransactionId *) (bytes + sizeof(SnapshotData) + xids);
	if (xids > 0)
		memcpy(copy->xip, snapshot->xip, xids);
	if (subxids > 0)
		memcpy(copy->subxip, snapshot->subxip, subxids);
	return copy;
}

static bool
is_among(TransactionId transaction, const TransactionId *transactions, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
	{
		if (transactions[i] == transaction)
			return true;
	}
	return false;
}

bool
geonn_snapshot_follows(const SnapshotData *next, const SnapshotData *first)
{
	if (TransactionIdPrecedes(next->xmax, first->xmax))
		return false;
	for (uint32 i = 0; i < next->xcnt; i++)
	{
		if (TransactionIdPrecedes(next->xip[i], first->xmax) &&
			!is_among(next->xip[i], first->xip, first->xcnt))
			return false;
	}
	return true;
}

bool
geonn_snapshot_is_same(const SnapshotData *a, const SnapshotData *b)
{
	return a->xmin == b->xmin && a->xmax == b->xmax && a->xcnt == b->xcnt &&
		a->suboverflowed == b->suboverflowed &&
		subtransaction_bytes(a) == subtransaction_bytes(b) &&
		(a->xcnt == 0 || memcmp(a->xip, b->xip, a->xcnt * sizeof(TransactionId)) == 0) &&
		(subtransaction_bytes(a) == 0 || memcmp(a->subxip, b->subxip, subtransaction_bytes(a)) == 0);
}
