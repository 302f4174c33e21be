/*
 * sql_references.c
 *		The references of a nearest-neighbour subquery: the rows of their plan, and which of them the engine gets.
 *
 * The node keeps the rows in memory, as its expressions need their columns.  The engine gets the points that it
 * takes.  A NULL or empty point has no distance; one whose coordinates are out of range has one for PostGIS alone.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "join/reference_memory.h"
#include "plan/sql_references.h"

void
geonn_sql_references_begin(SqlReferences *references, PlanState *plan, const List *point, GeonnPointKind kind)
{
	TupleDesc	columns = ExecGetResultType(plan);

	references->plan = plan;
	references->columns = columns->natts;
	references->kind = kind;
	references->points = list_length(point);
	for (int i = 0; i < references->points; i++)
		references->point[i] = list_nth_int(point, i);
	references->slot = ExecInitExtraTupleSlot(plan->state, columns, &TTSOpsMinimalTuple);
}

PointStatus
geonn_sql_read_point(const SqlReferences *references, const NullableDatum *values, double *latitude, double *longitude)
{
	GeonnPointState state;
	int32		detail;

	for (int i = 0; i < references->points; i++)
	{
		if (values[i].isnull)
			return POINT_NULL;
	}
	if (references->kind == GEONN_POINT_NONE)
	{
		*latitude = DatumGetFloat8(values[0].value);
		*longitude = DatumGetFloat8(values[1].value);
		return geonn_point_status(*latitude, *longitude);
	}
	state = geonn_point_decode(references->kind, values[0].value, latitude, longitude, &detail);
	if (state == GEONN_POINT_EMPTY)
		return POINT_NULL;
	return state == GEONN_POINT_OK ? geonn_point_status(*latitude, *longitude) : POINT_NOT_FINITE;
}

void
geonn_numbers_add(Numbers *numbers, uint64 number, MemoryContext context)
{
	if (numbers->count == numbers->room)
	{
		numbers->room = Max(1024, numbers->room * 2);
		numbers->numbers = numbers->numbers == NULL ?
			MemoryContextAllocHuge(context, numbers->room * sizeof(uint64)) :
			repalloc_huge(numbers->numbers, numbers->room * sizeof(uint64));
	}
	numbers->numbers[numbers->count++] = number;
}

void
geonn_sql_reference_point(void *state, uint64 number, PointRow *row)
{
	const SqlReferences *references = state;
	uint64		index = references->valid.numbers[number];

	row->id = UInt64GetDatum(index);
	row->latitude = references->rows[index].latitude;
	row->longitude = references->rows[index].longitude;
}

static void
keep_row(SqlReferences *references, TupleTableSlot *row, ReferenceMemory *memory)
{
	Reference  *reference = &references->rows[references->count];
	int			columns = references->columns;
	TupleTableSlot *slot = references->slot;
	MinimalTuple tuple = ExecCopySlotMinimalTuple(row);
	NullableDatum values[2];
	PointStatus status;

	geonn_reference_memory_add_bytes(memory, sizeof(Reference) + columns * (sizeof(Datum) + sizeof(bool)) + tuple->t_len,
									 "rows");
	ExecStoreMinimalTuple(tuple, slot, false);
	slot_getallattrs(slot);
	reference->values = palloc(columns * sizeof(Datum));
	reference->nulls = palloc(columns * sizeof(bool));
	memcpy(reference->values, slot->tts_values, columns * sizeof(Datum));
	memcpy(reference->nulls, slot->tts_isnull, columns * sizeof(bool));
	for (int i = 0; i < references->points; i++)
		values[i] = (NullableDatum) {reference->values[references->point[i]], reference->nulls[references->point[i]]};
	status = geonn_sql_read_point(references, values, &reference->latitude, &reference->longitude);
	if (status != POINT_NULL)
		geonn_numbers_add(status == POINT_VALID ? &references->valid : &references->invalid, references->count,
						  CurrentMemoryContext);
	references->count++;
}

/*
 * The next row of the plan, which keeps what it allocates until the node ends.
 */
static TupleTableSlot *
next_row(const SqlReferences *references)
{
	MemoryContext former = MemoryContextSwitchTo(references->plan->state->es_query_cxt);
	TupleTableSlot *slot = ExecProcNode(references->plan);

	MemoryContextSwitchTo(former);
	return slot;
}

void
geonn_sql_references_read(SqlReferences *references)
{
	ReferenceMemory *memory = geonn_reference_memory_create("the subquery", 0);
	uint64		room = 1024;
	TupleTableSlot *slot;

	references->rows = palloc(room * sizeof(Reference));
	references->count = 0;
	references->valid = references->invalid = (Numbers) {0};
	for (slot = next_row(references); !TupIsNull(slot); slot = next_row(references))
	{
		CHECK_FOR_INTERRUPTS();
		if (references->count == room)
		{
			room *= 2;
			references->rows = repalloc_huge(references->rows, room * sizeof(Reference));
		}
		keep_row(references, slot, memory);
	}
	ExecClearTuple(references->slot);
}
