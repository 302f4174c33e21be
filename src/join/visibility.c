/*
 * visibility.c
 *		A table's visibility map, page by page.
 *
 * Bits and LSN of a page of the map are read together, under its lock: whatever sets a bit sets the
 * LSN under the same lock, so a copy with an old LSN has only old bits.
 */
#include "postgres.h"

#include "access/visibilitymap.h"
#include "storage/bufmgr.h"

#include "join/visibility.h"

void
geonn_read_map(Relation table, BlockNumber first, MapPage *copy)
{
	Buffer		map = InvalidBuffer;

	memset(copy, 0, sizeof(*copy));
	(void) visibilitymap_get_status(table, first, &map);
	if (!BufferIsValid(map))
		return;
	LockBuffer(map, BUFFER_LOCK_SHARE);
	copy->lsn = BufferGetLSNAtomic(map);
	memcpy(copy->bits, PageGetContents(BufferGetPage(map)), sizeof(copy->bits));
	UnlockReleaseBuffer(map);
}
