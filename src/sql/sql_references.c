/*
 * sql_references.c
 *		The references of a nearest-neighbour subquery: the rows of their plan, and which of them the engine gets.
 *
 * The node keeps the rows in memory, as its expressions need their columns.  The engine gets the points that it
 * takes.  A NULL or empty point has no distance; one whose coordinates are out of range has one for PostGIS alone, and
 * so has a line or polygon in a column whose type leaves open what its values are, unless the node takes shapes: then the
 * engine gets those that it takes, whose values the node keeps, not compressed (sql_shapes.c).
 *
 * Where the rows need more memory than geonn.session_memory_limit, PostgreSQL's own plan answers each outer row
 * (sql_own_plan.c).  Where that has no index, the references' plan is executed again for each outer row, up to
 * geonn.compared_pairs_limit.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "base/settings.h"
#include "join/reference_memory.h"
#include "sql/sql_references.h"

/*
 * PostgreSQL's own plan takes as long for an outer row as PostGIS's function takes for some hundred references, which the
 * engine does not take
 */
#define INVALID_MOST 100

/* bytes; most references lie in two lines */
#define CACHE_LINE 64

void
geonn_sql_references_begin(SqlReferences *references, PlanState *plan, bool has_own, const List *point,
						   GeonnPointKind kind, bool has_shapes)
{
	TupleDesc	columns = ExecGetResultType(plan);

	references->plan = plan;
	references->has_own = has_own;
	references->columns = columns->natts;
	references->kind = kind;
	references->has_shapes = has_shapes;
	references->points = list_length(point);
	for (int i = 0; i < references->points; i++)
		references->point[i] = list_nth_int(point, i);
	references->slot = ExecInitExtraTupleSlot(plan->state, columns, &TTSOpsMinimalTuple);
}

/* Read the point of a row of either side, as geonn_sql_read_outer_point() does; an empty one of WGS84 is POINT_NULL. */
static PointStatus
read_point(const SqlReferences *references, const NullableDatum *values, double *latitude, double *longitude)
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
	if (state == GEONN_POINT_EMPTY && detail == GEONN_POINT_SRID)
		return POINT_NULL;
	if (state != GEONN_POINT_OK)
		return POINT_NOT_FINITE;
	/* PostGIS's cast to geography moves these to 180 */
	if (*longitude > 180 && *longitude <= 180 + 1e-9)
		return POINT_LONGITUDE_OUT;
	return geonn_point_status(*latitude, *longitude);
}

PointStatus
geonn_sql_status_beside(const SqlReferences *references, PointStatus status, bool is_null)
{
	return status == POINT_NULL && !is_null && (references->foreign > 0 || references->rereads) ? POINT_NOT_FINITE : status;
}

PointStatus
geonn_sql_read_outer_point(const SqlReferences *references, const NullableDatum *values, double *latitude, double *longitude)
{
	PointStatus status = read_point(references, values, latitude, longitude);

	return references->kind == GEONN_POINT_NONE ? status : geonn_sql_status_beside(references, status, values[0].isnull);
}

/* Has a value of PostGIS's another SRID than the engine, or the plane, has? */
static bool
is_foreign(const SqlReferences *references, const NullableDatum *value)
{
	const struct varlena *bytes = (const struct varlena *) DatumGetPointer(value->value);
	int32		srid;
	int			dimensions;
	size_t		position;

	if (value->isnull || references->kind == GEONN_POINT_NONE)
		return false;
	return !geonn_geometry_header(references->kind, (const uint8 *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), &srid,
								  &dimensions, &position) ||
		srid != (references->zones != NULL ? references->zones->srid : GEONN_POINT_SRID);
}

bool
geonn_sql_references_suit_own(const SqlReferences *references)
{
	return references->has_own && (references->invalid.count > INVALID_MOST || references->foreign > 0);
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
	SqlReferences *references = state;
	uint64		index = references->valid.numbers[number];

	Assert(number < references->valid.count && references->rows[index]->status == POINT_VALID);
	row->id = UInt64GetDatum(index);
	row->latitude = references->rows[index]->latitude;
	row->longitude = references->rows[index]->longitude;
	if (references->shapes == 0)
		return;
	if (number > 0 && references->shape != NULL)
		geonn_shape_close(references->shape);
	references->shape = references->rows[index]->shape.arcs > 0 ?
		geonn_shape_open(references->kind, references->rows[index]->values[references->point[0]], NULL, NULL) : NULL;
	row->shape = references->shape;
}

Datum
geonn_sql_plain_point(const SqlReferences *references, Datum value)
{
	if (references->kind == GEONN_POINT_NONE)
		return value;
	return PointerGetDatum(PG_DETOAST_DATUM(value));
}

TupleDesc
geonn_sql_references_row_type(void)
{
	TupleDesc	type = CreateTemplateTupleDesc(SEARCH_COLUMNS);

	TupleDescInitEntry(type, SEARCH_REFERENCE + 1, "ref_id", INT8OID, -1, 0);
	TupleDescInitEntry(type, SEARCH_DISTANCE + 1, "distance", FLOAT8OID, -1, 0);
	TupleDescInitEntry(type, SEARCH_NUMBER + 1, "ord", INT8OID, -1, 0);
	TupleDescFinalize(type);
	return type;
}

bool
geonn_take_answer_row(GeonnSearch *search, Answer *answer)
{
	Datum		values[SEARCH_COLUMNS];
	bool		nulls[SEARCH_COLUMNS];

	if (!geonn_search_next(search, values, nulls))
		return false;
	*answer = (Answer) {
		.number = DatumGetUInt64(values[SEARCH_NUMBER]) - 1,
		.reference = DatumGetUInt64(values[SEARCH_REFERENCE]),
		.distance = DatumGetFloat8(values[SEARCH_DISTANCE])
	};
	return true;
}

void
geonn_fetch_answer_rows(const SqlReferences *references, const GeonnBlock *block)
{
	/* the engine may write these while they are read */
	const volatile int64 *tags = block->tag + block->pair;
	uint32		count = Min(block->pairs - block->pair, ANSWERS_TOGETHER);

	for (uint32 i = 0; i < count; i++)
		__builtin_prefetch(&references->rows[tags[i]]);
	for (uint32 i = 0; i < count; i++)
	{
		uint64		number = (uint64) tags[i];
		const char *row;

		if (number >= references->count)
			continue;
		row = (const char *) references->rows[number];
		__builtin_prefetch(row);
		__builtin_prefetch(row + CACHE_LINE);
	}
}

PointSource *
geonn_sql_references_describe(const SqlReferences *references)
{
	PointSource *source = palloc0(sizeof(PointSource));

	source->title = "the subquery";
	source->column_count = COLUMN_ROLES;
	source->columns = palloc0(COLUMN_ROLES * sizeof(PointColumn));
	source->columns[COLUMN_ID] = (PointColumn) {
		.name = "number",
		.type = INT8OID,
		.typmod = -1,
		.base_type = INT8OID,
		.attribute = 1
	};
	if (references->shapes > 0)
	{
		source->columns[COLUMN_SHAPE] = (PointColumn) {.name = "shape",.attribute = 2};
		source->point_kind = references->kind;
	}
	return source;
}

/*
 * Bytes of a copy of the reference's value, besides the row, that geonn_sql_plain_point makes.
 */
static Size
bytes_of_copy(const SqlReferences *references, TupleTableSlot *row)
{
	bool		is_null;
	Datum		value;

	if (references->kind == GEONN_POINT_NONE)
		return 0;
	value = slot_getattr(row, (AttrNumber) (references->point[0] + 1), &is_null);
	return is_null || !VARATT_IS_EXTENDED(DatumGetPointer(value)) ? 0 : toast_raw_datum_size(value);
}

/*
 * Read the point or shape of a reference.
 */
static void
read_value(const SqlReferences *references, const NullableDatum *values, Reference *reference)
{
	MemoryContext former;

	reference->shape = (ShapeTraits) {.is_measured = true};
	reference->status = read_point(references, values, &reference->latitude, &reference->longitude);
	if (!references->has_shapes || reference->status != POINT_NOT_FINITE)
		return;
	former = MemoryContextSwitchTo(references->reading);
	reference->status = geonn_read_shape_value(references->kind, values[0].value, &reference->latitude,
											   &reference->longitude, &reference->shape);
	if (reference->status == POINT_VALID && !reference->shape.is_whole && !references->takes_empty_members)
		reference->status = POINT_NOT_FINITE;
	MemoryContextSwitchTo(former);
	MemoryContextReset(references->reading);
}

/*
 * Keep a row; false: it does not fit.  A search's references lie anywhere in memory, so that each is one piece: the
 * reference, its nulls, and a copy of the row, to which its values point.
 */
static bool
keep_row(SqlReferences *references, TupleTableSlot *row, ReferenceMemory *memory)
{
	int			columns = references->columns;
	TupleTableSlot *slot = references->slot;
	bool		is_copy;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(row, &is_copy);
	Size		row_at = MAXALIGN(offsetof(Reference, values) + columns * (sizeof(Datum) + sizeof(bool)));
	Size		bytes = row_at + tuple->t_len;
	Size		bytes_besides = bytes_of_copy(references, row);
	Reference  *reference;
	NullableDatum values[2];

	Assert(row_at == MAXALIGN(row_at) && references->points <= (int) lengthof(values));
	if (!geonn_reference_memory_has_room(bytes + bytes_besides))
		return false;
	geonn_reference_memory_add_bytes(memory, bytes + bytes_besides, "rows");
	reference = palloc(bytes);
	references->rows[references->count] = reference;
	reference->sine = reference->cosine = 0;
	reference->nulls = (bool *) &reference->values[columns];
	memcpy((char *) reference + row_at, tuple, tuple->t_len);
	if (is_copy)
		pfree(tuple);
	ExecStoreMinimalTuple((MinimalTuple) ((char *) reference + row_at), slot, false);
	slot_getallattrs(slot);
	memcpy(reference->values, slot->tts_values, columns * sizeof(Datum));
	memcpy(reference->nulls, slot->tts_isnull, columns * sizeof(bool));
	for (int i = 0; i < references->points; i++)
	{
		int			column = references->point[i];

		if (!reference->nulls[column])
			reference->values[column] = geonn_sql_plain_point(references, reference->values[column]);
		values[i] = (NullableDatum) {reference->values[column], reference->nulls[column]};
	}
	if (references->zones != NULL)
		reference->status = geonn_zones_add(references->zones, references->count, &values[0]);
	else
		read_value(references, values, reference);
	references->count++;
	references->foreign += reference->status == POINT_NOT_FINITE && is_foreign(references, &values[0]);
	return references->zones == NULL || geonn_zones_count(references->zones, memory);
}

void
geonn_sql_references_number(SqlReferences *references)
{
	references->valid.count = references->invalid.count = 0;
	references->shapes = references->areas = references->unmeasured = 0;
	for (uint64 i = 0; i < references->count; i++)
	{
		PointStatus status = references->rows[i]->status;
		const ShapeTraits *shape = &references->rows[i]->shape;

		references->shapes += status == POINT_VALID && shape->arcs > 0;
		references->areas += status == POINT_VALID && shape->is_area;
		references->unmeasured += status == POINT_VALID && !shape->is_measured;
		if (status != POINT_NULL)
			geonn_numbers_add(status == POINT_VALID ? &references->valid : &references->invalid, i, CurrentMemoryContext);
	}
}

void
geonn_sql_references_reread(SqlReferences *references)
{
	/* the plan keeps what it allocates until the node ends */
	MemoryContext former = MemoryContextSwitchTo(references->plan->state->es_query_cxt);

	ExecReScan(references->plan);
	MemoryContextSwitchTo(former);
}

TupleTableSlot *
geonn_sql_references_next(SqlReferences *references)
{
	/* the plan keeps what it allocates until the node ends */
	MemoryContext former = MemoryContextSwitchTo(references->plan->state->es_query_cxt);
	TupleTableSlot *slot = ExecProcNode(references->plan);

	MemoryContextSwitchTo(former);
	return slot;
}

static void
forget_rows(SqlReferences *references)
{
	references->count = references->foreign = 0;
	references->valid = references->invalid = (Numbers) {0};
}

int
geonn_sql_tell_memory(void)
{
	errdetail("They need more memory than geonn.session_memory_limit, which is %d kB, leaves.", geonn_session_memory_limit);
	return errhint("Raise geonn.session_memory_limit, or set geonn.enable_sql_joins to off for this statement.");
}

void
geonn_sql_references_read(SqlReferences *references)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn references of a subquery",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	ReferenceMemory *memory = geonn_reference_memory_create("the subquery", 0, false);
	uint64		room = 1024;

	references->rereads = false;
	references->reading = AllocSetContextCreate(context, "geonn shape", ALLOCSET_SMALL_SIZES);
	references->rows = palloc(room * sizeof(Reference *));
	forget_rows(references);
	if (references->zones != NULL)
		geonn_zones_begin(references->zones);
	while (!references->rereads)
	{
		TupleTableSlot *slot = geonn_sql_references_next(references);

		if (TupIsNull(slot))
			break;
		CHECK_FOR_INTERRUPTS();
		if (references->count == room)
		{
			room *= 2;
			references->rows = repalloc_huge(references->rows, room * sizeof(Reference *));
		}
		references->rereads = !keep_row(references, slot, memory);
	}
	ExecClearTuple(references->slot);
	geonn_sql_references_number(references);
	if (references->zones != NULL && !references->rereads)
		geonn_zones_end(references->zones);
	MemoryContextSwitchTo(former);
	if (!references->rereads)
		return;
	forget_rows(references);
	MemoryContextDelete(context);
	ereport(WARNING,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 references->has_own ?
			 errmsg("PostgreSQL's own plan answers rows of a join, one after the other, as geonn cannot keep its references") :
			 errmsg("geonn reads the references of a join again for each row"),
			 geonn_sql_tell_memory()));
}
