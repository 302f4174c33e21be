/*
 * live_id.c
 *		Ids of references as a base of a table, and the rows that were added to it, have them: by numbers.
 *
 * The number of an integer is the integer, and that of another id passed by value is its Datum.  All other ids are
 * copied.  Those of the base are in a file of their own beside it, and their numbers are the offsets there.  Those of
 * rows that were added are in this process's memory, and their numbers are negative: -1 less the number of the row.
 * Whatever numbers a damaged base has, each is compared with the length of the file, or of the array.
 *
 * Among references at one distance, the first one in the order of ids is the nearest; where ids are equal, the
 * coordinates and the bytes of the ids decide (references.c).  Bases have only ids of types whose equal values have the
 * same bytes, so that the last of these never counts.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "base/compat.h"
#include "base/value.h"
#include "live/live_id.h"

int64
geonn_live_id_append(const PageIdType *type, MemoryFile *values, int64 id)
{
	Datum		value = Int64GetDatum(id);

	if (type->by_value)
		return id;
	return (int64) geonn_memory_file_append(values, DatumGetPointer(value), datumGetSize(value, false, type->length));
}

LiveIds
geonn_live_ids_begin(const PageIdType *type, const MemoryFile *values)
{
	return (LiveIds) {.type = *type,.values = values,.context = CurrentMemoryContext};
}

static void
make_room(LiveIds *ids, uint32 row)
{
	uint32		room = row + row / 2 + 64;

	if (row < ids->room)
		return;
	ids->added = ids->room == 0 ? MemoryContextAllocHuge(ids->context, room * sizeof(Datum)) :
		repalloc_huge(ids->added, room * sizeof(Datum));
	memset(ids->added + ids->room, 0, (room - ids->room) * sizeof(Datum));
	ids->bytes += (room - ids->room) * sizeof(Datum);
	ids->room = room;
}

int64
geonn_live_id_add(LiveIds *ids, uint32 row, int64 id)
{
	MemoryContext former;

	if (ids->type.by_value)
		return id;
	make_room(ids, row);
	former = MemoryContextSwitchTo(ids->context);
	ids->added[row] = datumCopy(Int64GetDatum(id), false, ids->type.length);
	MemoryContextSwitchTo(former);
	ids->bytes += GetMemoryChunkSpace(DatumGetPointer(ids->added[row]));
	return -1 - (int64) row;
}

void
geonn_live_id_remove(LiveIds *ids, uint32 row)
{
	if (row >= ids->room || ids->added[row] == 0)
		return;
	ids->bytes -= GetMemoryChunkSpace(DatumGetPointer(ids->added[row]));
	pfree(DatumGetPointer(ids->added[row]));
	ids->added[row] = 0;
}

Datum
geonn_live_id_value(const LiveIds *ids, int64 number)
{
	const void *value = NULL;

	if (ids->type.is_integer)
		return geonn_integer_value(ids->type.type, number);
	if (ids->type.by_value)
		return Int64GetDatum(number);
	if (number >= 0)
		value = ids->type.length == -1 ? (const void *) geonn_memory_file_varlena(ids->values, (uint64) number) :
			geonn_memory_file_bytes(ids->values, (uint64) number, ids->type.length);
	else if (-1 - number < ids->room)
		value = DatumGetPointer(ids->added[-1 - number]);
	if (value == NULL)
		elog(ERROR, "the geonn base of a table has a damaged id");
	return PointerGetDatum(value);
}

bool
geonn_live_id_is_same(const LiveIds *ids, int64 number, int64 id)
{
	if (ids->type.by_value)
		return number == id;
	return datumIsEqual(geonn_live_id_value(ids, number), Int64GetDatum(id), false, ids->type.length);
}

bool
geonn_live_id_is_before(const LiveIds *ids, int64 number, int64 other)
{
	return DatumGetInt32(FunctionCall2Coll(ids->type.compare, ids->type.collation, geonn_live_id_value(ids, number),
										   geonn_live_id_value(ids, other))) < 0;
}
