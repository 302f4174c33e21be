/*
 * other_heap.c
 *		A table access method that is not the heap, to see that the module reads its
 *		tables row by row; it counts what it is asked for.
 *
 * The method does all as the heap does.  But its routines are its own, so the module must
 * not take its scans for the heap's.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "fmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(other_heap_handler);
PG_FUNCTION_INFO_V1(other_heap_asked);

static TableAmRoutine routine;
static int64 asked;

static bool
get_next_slot(TableScanDesc scan, ScanDirection direction, TupleTableSlot *slot)
{
	asked++;
	return GetHeapamTableAmRoutine()->scan_getnextslot(scan, direction, slot);
}

Datum
other_heap_handler(PG_FUNCTION_ARGS pg_attribute_unused())
{
	routine = *GetHeapamTableAmRoutine();
	routine.scan_getnextslot = get_next_slot;
	PG_RETURN_POINTER(&routine);
}

/*
 * How often this process has asked for a next row.
 */
Datum
other_heap_asked(PG_FUNCTION_ARGS pg_attribute_unused())
{
	PG_RETURN_INT64(asked);
}
