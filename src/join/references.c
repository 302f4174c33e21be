/*
 * references.c
 *		References on their way into a dataset, and what is asked of them later.
 *
 * Where distances are equal the first reference wins in the order of ids (by
 * the btree order of their type and the column's collation), then of latitude,
 * then of longitude, then of bytes: 0 before -0, and ids as PostgreSQL's operator
 * *< compares records.  So the order is total, also where ids are equal and their
 * bytes differ, as of numeric 2.0 and 2.00: references that are equal in it give
 * the same rows, however a table has them stored.  In SQL it is
 *
 *	ORDER BY id, lat, lon, ROW(lat, lon, id) USING OPERATOR(pg_catalog.*<)
 *
 * with latitude and longitude as float8.
 *
 * The engine knows references by 64-bit tags and takes them in that order.  What sorts them, and
 * what their tags are, is decided here alone:
 *
 *	asked for				ids			sorted by								tag
 *	distances				integers	the engine, unless they come in order	the id
 *	distances				others		nothing									0
 *	ids						integers	the engine, unless they come in order	the id
 *	ids						others		PostgreSQL								number of a record
 *	coordinates				any			PostgreSQL								number of a record
 *
 * A record, in a memory file, has what is asked of the reference later: the id, or where in a
 * second memory file its bytes are, and the coordinates.  Records are counted from 0 in the order
 * above.  So no process has them in its own memory, and a sort larger than work_mem goes to disk.
 * Both files stay with the dataset, for each process that attaches to it.
 *
 * A shape goes to the dataset as its arcs (shape_arcs.c), all with one tag; so does a point, if observations are shapes.
 * Where PostgreSQL sorts, the sort has the shape's value, and the latitude and longitude are those of its first vertex.
 *
 * Where only distances are asked for, the result is the same whichever of several equally distant
 * references is taken.  Ids of other types than integers are then only checked for NULL, as a row
 * without an id is no reference.
 *
 * Under exclude_self an observation excludes the references whose ids equal its own.  They have one
 * tag, the id, if both ids are integers and tags are ids.  Elsewhere PostgreSQL sorts, and their tags
 * follow each other: a binary search among the records finds the first and the last, with the
 * order's own comparison of the two types.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "port/pg_bitutils.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

#include "client/connection.h"
#include "client/memory_file.h"
#include "common/protocol.h"
#include "base/compat.h"
#include "join/references.h"
#include "join/shape_arcs.h"
#include "base/value.h"

/* columns of the sort */
enum
{
	SORT_ID = 1,
	SORT_LATITUDE,
	SORT_LONGITUDE,
	SORT_SIGNS,					/* the signs of the coordinates, which tell -0 from 0 */
	SORT_IMAGE,					/* the id as an SQL record; NULL if equal ids always have the same bytes */
	SORT_NUMBERS,				/* the bytes of the group's and the parties' numbers */
	SORT_LIMITS,				/* the bytes of the limits; NULL if nothing limits references */
	SORT_SHAPE,					/* the shape's value, or NULL of a point */
	SORT_COLUMNS = SORT_SHAPE
};

#define SORT_KEYS SORT_IMAGE

/* this many ids are converted to tags at a time */
#define TAGS_AT_ONCE 512

/* what SORT_NUMBERS has */
typedef struct Numbers
{
	int32		group;
	int32		party[GEONN_PARTIES_MAX];
} Numbers;

typedef struct Record
{
	Datum		id;				/* the id; if it is not passed by value, the offset of its bytes in `values` */
	double		latitude;
	double		longitude;
} Record;

/* the size of a record without coordinates */
#define SHORT_RECORD offsetof(Record, latitude)

/* the files' contents, for messages */
#define RECORDS_PURPOSE	"references"
#define VALUES_PURPOSE	"ids of references"

struct GeonnReferences
{
	LentId	   *id_of;			/* finds lent ids; if it is set, other fields are set only as far as comparing ids
								 * needs them; NULL: no ids are lent */
	const void *lent;			/* the lent ids */
	const PointSource *source;
	GeonnArcs  *arcs;			/* sends references as arcs; NULL: they are sent as points */
	Oid			type;			/* the ids' type, below domains */
	Oid			collation;
	bool		by_value;
	int16		length;
	ReferenceDetail detail;
	ReferenceMemory *memory;	/* NULL: another process has sealed the references */
	Size		limits_bytes;	/* how many bytes a reference's limits take in the sort */

	/* Set only if PostgreSQL sorts the references; otherwise tags are the ids, or 0 */
	Tuplesortstate *sort;		/* sorts the references that are read here */
	TupleTableSlot *row;		/* for a row that goes into the sort */
	TupleTableSlot *slot;		/* for a row that comes out of the sort */
	TupleDesc	image_type;		/* type of a record with an id; NULL: equal ids always have the same bytes */
	uint64		count;
	size_t		record_bytes;	/* 0: nothing is sorted here */
	MemoryFile *records;
	MemoryFile *values;			/* ids that are not passed by value */
	FmgrInfo   *compare_with_observation;	/* compares an observation's id with a reference's; NULL: not needed */
	Oid			observation_type;	/* the type of an observation's id, below domains */
};

static TypeCacheEntry *
require_order(const PointSource *source)
{
	const PointColumn *id = &source->columns[COLUMN_ID];
	TypeCacheEntry *type = lookup_type_cache(id->base_type,
											 TYPECACHE_LT_OPR | TYPECACHE_CMP_PROC_FINFO |
											 TYPECACHE_BTREE_OPFAMILY);

	if (!OidIsValid(type->lt_opr) || !OidIsValid(type->cmp_proc_finfo.fn_oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("id column \"%s\" of %s has type %s, which has no order",
						id->name, source->title, format_type_be(id->type)),
				 errdetail("Among references at the same distance, the join returns the first id in the btree order of the type."),
				 errhint("Use a column of another type as id, by options or in a view.")));
	return type;
}

static FmgrInfo *
find_comparison(const PointSource *observations, const PointSource *source)
{
	const PointColumn *observation = &observations->columns[COLUMN_ID];
	const PointColumn *reference = &source->columns[COLUMN_ID];
	TypeCacheEntry *left = lookup_type_cache(observation->base_type, TYPECACHE_BTREE_OPFAMILY);
	TypeCacheEntry *right = lookup_type_cache(reference->base_type, TYPECACHE_BTREE_OPFAMILY);
	Oid			function = InvalidOid;
	FmgrInfo   *compare = palloc0(sizeof(FmgrInfo));

	if (OidIsValid(left->btree_opf) && left->btree_opf == right->btree_opf &&
		(observation->base_type == reference->base_type ||
		 !IsPolymorphicType(right->btree_opintype)))
		function = get_opfamily_proc(right->btree_opf, left->btree_opintype,
									 right->btree_opintype, BTORDER_PROC);
	if (!OidIsValid(function))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("exclude_self cannot compare ids of type %s with ids of type %s",
						format_type_be(observation->type), format_type_be(reference->type)),
				 errdetail("The ids of %s and those of %s have these types, and no btree operator compares the two.",
						   observations->title, source->title),
				 errhint("Cast one of them in a view, or use exclude_self => false.")));
	fmgr_info(function, compare);
	return compare;
}

static void
begin_sort(GeonnReferences *references, const TypeCacheEntry *type)
{
	AttrNumber	keys[SORT_KEYS] = {SORT_ID, SORT_LATITUDE, SORT_LONGITUDE, SORT_SIGNS, SORT_IMAGE};
	Oid			before = lookup_type_cache(FLOAT8OID, TYPECACHE_LT_OPR)->lt_opr;
	/* the operator *< of records compares their bytes */
	Oid			image_order = OpernameGetOprid(list_make2(makeString("pg_catalog"), makeString("*<")),
											   RECORDOID, RECORDOID);
	Oid			operators[SORT_KEYS] = {type->lt_opr, before, before, Int4LessOperator, image_order};
	Oid			collations[SORT_KEYS] = {references->collation};
	bool		nulls_first[SORT_KEYS] = {false};
	TupleDesc	descriptor = CreateTemplateTupleDesc(SORT_COLUMNS);
	bool		has_image = !geonn_equal_is_same(references->type, references->collation);

	TupleDescInitEntry(descriptor, SORT_ID, "id", references->type, -1, 0);
	TupleDescInitEntryCollation(descriptor, SORT_ID, references->collation);
	TupleDescInitEntry(descriptor, SORT_LATITUDE, "latitude", FLOAT8OID, -1, 0);
	TupleDescInitEntry(descriptor, SORT_LONGITUDE, "longitude", FLOAT8OID, -1, 0);
	TupleDescInitEntry(descriptor, SORT_SIGNS, "signs", INT4OID, -1, 0);
	TupleDescInitEntry(descriptor, SORT_IMAGE, "image", RECORDOID, -1, 0);
	TupleDescInitEntry(descriptor, SORT_NUMBERS, "numbers", BYTEAOID, -1, 0);
	TupleDescInitEntry(descriptor, SORT_LIMITS, "limits", BYTEAOID, -1, 0);
	TupleDescInitEntry(descriptor, SORT_SHAPE, "shape", BYTEAOID, -1, 0);
	TupleDescFinalize(descriptor);
	if (has_image)
	{
		references->image_type = CreateTemplateTupleDesc(1);
		TupleDescInitEntry(references->image_type, 1, "id", references->type, -1, 0);
		TupleDescInitEntryCollation(references->image_type, 1, references->collation);
		TupleDescFinalize(references->image_type);
		BlessTupleDesc(references->image_type);
	}

	references->sort = tuplesort_begin_heap(descriptor, has_image ? SORT_KEYS : SORT_KEYS - 1,
											keys, operators, collations,
											nulls_first, work_mem, NULL, TUPLESORT_NONE);
	references->row = MakeSingleTupleTableSlot(descriptor, &TTSOpsVirtual);
	references->slot = MakeSingleTupleTableSlot(descriptor, &TTSOpsMinimalTuple);
	references->records = geonn_memory_file_create(RECORDS_PURPOSE);
	if (!references->by_value)
		references->values = geonn_memory_file_create(VALUES_PURPOSE);
}

/* Get the files of references that another client has sealed. */
static void
take_files(GeonnReferences *references, GeonnClient *client)
{
	references->records = geonn_client_take_file(client, GEONN_FILE_RECORDS, RECORDS_PURPOSE);
	references->count = geonn_memory_file_length(references->records) / references->record_bytes;
	/* If references are shapes, the client knows the number of arcs, not of shapes. */
	if (geonn_memory_file_length(references->records) != references->count * references->record_bytes ||
		(!geonn_has_shapes(references->source) && references->count != geonn_client_references(client)))
		geonn_connection_violation("records of a different number of references");
	if (!references->by_value)
		references->values = geonn_client_take_file(client, GEONN_FILE_VALUES, VALUES_PURPOSE);
}

GeonnReferences *
geonn_references_begin(const PointSource *source, ReferenceDetail detail,
					   const PointSource *excluded_by, uint32 columns, ReferenceMemory *memory,
					   GeonnClient *client)
{
	const PointColumn *id = &source->columns[COLUMN_ID];
	TypeCacheEntry *type = require_order(source);
	GeonnReferences *references = palloc0(sizeof(GeonnReferences));
	bool		tags_are_ids = geonn_integer_width(id->base_type) > 0;

	references->source = source;
	if ((columns & GEONN_COLUMN_ARC) != 0 && memory != NULL)
		references->arcs = geonn_arcs_create(source->title, client, memory);
	references->type = id->base_type;
	references->collation = id->collation;
	get_typlenbyval(id->base_type, &references->length, &references->by_value);
	if (excluded_by != NULL)
	{
		references->compare_with_observation = find_comparison(excluded_by, source);
		references->observation_type = excluded_by->columns[COLUMN_ID].base_type;
		tags_are_ids = tags_are_ids && geonn_integer_width(references->observation_type) > 0;
	}
	references->detail = detail;
	references->memory = memory;
	if (detail == REFERENCE_COORDINATES)
		references->record_bytes = sizeof(Record);
	else if (detail == REFERENCE_ID && !tags_are_ids)
		references->record_bytes = SHORT_RECORD;
	if (references->record_bytes > 0 && memory != NULL)
	{
		references->limits_bytes = geonn_limits_bytes(pg_popcount32(columns & GEONN_COLUMNS_WINDOWS),
													  pg_popcount32(columns & GEONN_COLUMNS_WEIGHTS));
		begin_sort(references, type);
	}
	else if (references->record_bytes > 0)
		take_files(references, client);
	return references;
}

uint64
geonn_references_file_bytes(const GeonnReferences *references)
{
	return (references->records != NULL ? geonn_memory_file_length(references->records) : 0) +
		(references->values != NULL ? geonn_memory_file_length(references->values) : 0);
}

/*
 * Count the bytes that this reference will take in the files.
 */
static void
add_to_memory(const GeonnReferences *references, Datum id)
{
	Size		length = references->by_value ? 0 :
		references->length == -1 ? toast_raw_datum_size(id) : (Size) references->length;

	geonn_reference_memory_add_bytes(references->memory,
									 references->record_bytes + MAXALIGN64(length), "ids");
}

static inline int64
tag_of(const GeonnReferences *references, Datum id)
{
	return references->detail == REFERENCE_DISTANCE ? 0 : geonn_integer(references->type, id);
}

void
geonn_references_add(GeonnReferences *references, GeonnClient *client, const PointRow *row,
					 const GeonnPointColumns *columns)
{
	TupleTableSlot *slot = references->row;
	Numbers		numbers = {.group = columns->group};

	if (references->record_bytes == 0 && references->arcs != NULL)
	{
		geonn_arcs_send(references->arcs, row, tag_of(references, row->id), columns);
		return;
	}
	if (references->record_bytes == 0)
	{
		geonn_references_add_block(references, client, 1, &row->id, &row->latitude, &row->longitude,
								   columns);
		if (columns->limits != NULL)
			geonn_reference_memory_add_weights(references->memory, columns->limits->weights);
		return;
	}
	memcpy(numbers.party, columns->party, sizeof(numbers.party));
	/* arcs are counted when they are sent */
	if (references->arcs == NULL)
		geonn_reference_memory_add(references->memory, 1);
	if (columns->limits != NULL)
		geonn_reference_memory_add_weights(references->memory, columns->limits->weights);
	add_to_memory(references, row->id);
	ExecClearTuple(slot);
	memset(slot->tts_isnull, 0, SORT_COLUMNS * sizeof(bool));
	slot->tts_values[SORT_ID - 1] = row->id;
	slot->tts_values[SORT_LATITUDE - 1] = Float8GetDatum(row->latitude);
	slot->tts_values[SORT_LONGITUDE - 1] = Float8GetDatum(row->longitude);
	slot->tts_values[SORT_SIGNS - 1] = Int32GetDatum(geonn_reference_signs(row->latitude, row->longitude));
	slot->tts_values[SORT_NUMBERS - 1] =
		PointerGetDatum(cstring_to_text_with_len((const char *) &numbers, (int) sizeof(numbers)));
	slot->tts_isnull[SORT_IMAGE - 1] = references->image_type == NULL;
	if (references->image_type != NULL)
		slot->tts_values[SORT_IMAGE - 1] =
			heap_copy_tuple_as_datum(heap_form_tuple(references->image_type, &slot->tts_values[SORT_ID - 1],
													 &slot->tts_isnull[SORT_ID - 1]),
									 references->image_type);
	slot->tts_isnull[SORT_LIMITS - 1] = row->limits == NULL;
	if (row->limits != NULL)
		slot->tts_values[SORT_LIMITS - 1] =
			PointerGetDatum(cstring_to_text_with_len((const char *) row->limits,
													 (int) references->limits_bytes));
	slot->tts_isnull[SORT_SHAPE - 1] = row->shape == NULL;
	if (row->shape != NULL)
		slot->tts_values[SORT_SHAPE - 1] = geonn_shape_value(row->shape);
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(references->sort, slot);
}

GeonnReferences *
geonn_references_lend(const PointSource *source, LentId *id_of, const void *ids, const PointSource *excluded_by)
{
	GeonnReferences *references = palloc0(sizeof(GeonnReferences));

	references->id_of = id_of;
	references->lent = ids;
	references->type = source->columns[COLUMN_ID].base_type;
	references->collation = source->columns[COLUMN_ID].collation;
	if (excluded_by != NULL)
	{
		references->compare_with_observation = find_comparison(excluded_by, source);
		references->observation_type = excluded_by->columns[COLUMN_ID].base_type;
	}
	return references;
}

void
geonn_references_abandon(GeonnReferences *references)
{
	if (references->sort != NULL)
		tuplesort_end(references->sort);
	references->sort = NULL;
}

bool
geonn_references_take_blocks(const GeonnReferences *references)
{
	return references->record_bytes == 0;
}

void
geonn_references_add_block(GeonnReferences *references, GeonnClient *client, uint32 rows,
						   const Datum *ids, const double *latitudes, const double *longitudes,
						   const GeonnPointColumns *columns)
{
	int64		tags[TAGS_AT_ONCE];

	geonn_reference_memory_add(references->memory, rows);
	for (uint32 first = 0; first < rows; first += TAGS_AT_ONCE)
	{
		uint32		count = Min(rows - first, TAGS_AT_ONCE);

		for (uint32 i = 0; i < count; i++)
			tags[i] = tag_of(references, ids[first + i]);
		geonn_client_add_references(client, count, tags, latitudes + first, longitudes + first,
									columns == NULL ? NULL : columns + first);
	}
}

/* Append the bytes of an id that is not passed by value.  Returns their offset. */
static Datum
write_value(GeonnReferences *references, Datum id)
{
	Pointer		bytes = DatumGetPointer(id);
	Size		length = references->length;

	if (references->length == -1)
	{
		bytes = (Pointer) PG_DETOAST_DATUM(id);
		length = VARSIZE(bytes);
	}
	return Int64GetDatum((int64) geonn_memory_file_append(references->values, bytes, length));
}

/* Send a reference that has just come out of the sort; the slot has its numbers, its limits and its shape. */
static void
send_sorted_reference(GeonnReferences *references, GeonnClient *client, const Record *record)
{
	TupleTableSlot *slot = references->slot;
	GeonnLimits limits = {0};
	int64		tag = (int64) references->count;
	Numbers		numbers;
	GeonnPointColumns columns = {0};
	PointRow	row = {.id = slot->tts_values[SORT_ID - 1], .latitude = record->latitude, .longitude = record->longitude};
	ShapeOwner	owner = {references->source, &row};

	memcpy(&numbers, VARDATA_ANY(DatumGetPointer(slot->tts_values[SORT_NUMBERS - 1])), sizeof(numbers));
	columns.group = numbers.group;
	memcpy(columns.party, numbers.party, sizeof(columns.party));
	if (!slot->tts_isnull[SORT_LIMITS - 1])
	{
		memcpy(&limits, VARDATA_ANY(DatumGetPointer(slot->tts_values[SORT_LIMITS - 1])),
			   references->limits_bytes);
		columns.limits = &limits;
	}
	if (references->arcs == NULL)
	{
		geonn_client_add_references(client, 1, &tag, &record->latitude, &record->longitude, &columns);
		return;
	}
	if (!slot->tts_isnull[SORT_SHAPE - 1])
		geonn_reopen_shape(&owner, slot->tts_values[SORT_SHAPE - 1], &row);
	geonn_arcs_send(references->arcs, &row, tag, &columns);
}

static void
send_sorted(GeonnReferences *references, GeonnClient *client)
{
	TupleTableSlot *slot = references->slot;
	MemoryContext row_context = AllocSetContextCreate(CurrentMemoryContext,
													  "geonn reference", ALLOCSET_SMALL_SIZES);
	MemoryContext former = MemoryContextSwitchTo(row_context);

	tuplesort_performsort(references->sort);
	while (tuplesort_gettupleslot(references->sort, true, false, slot, NULL))
	{
		Record		record;
		Datum		id;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(row_context);
		slot_getallattrs(slot);
		id = slot->tts_values[SORT_ID - 1];
		record.id = references->by_value ? id : write_value(references, id);
		record.latitude = DatumGetFloat8(slot->tts_values[SORT_LATITUDE - 1]);
		record.longitude = DatumGetFloat8(slot->tts_values[SORT_LONGITUDE - 1]);
		geonn_memory_file_append(references->records, &record, references->record_bytes);
		send_sorted_reference(references, client, &record);
		if (++references->count == PG_INT32_MAX)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("more than %d references", PG_INT32_MAX),
					 errhint("Join against fewer references at a time, and keep the nearest of all answers.")));
	}
	tuplesort_end(references->sort);
	geonn_memory_file_seal(references->records);
	if (references->values != NULL)
		geonn_memory_file_seal(references->values);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(row_context);
}

void
geonn_references_seal(GeonnReferences *references, GeonnClient *client)
{
	if (references->record_bytes == 0)
	{
		geonn_client_seal(client, references->detail == REFERENCE_DISTANCE);
		return;
	}
	send_sorted(references, client);
	geonn_client_leave_file(client, GEONN_FILE_RECORDS, references->records);
	if (references->values != NULL)
		geonn_client_leave_file(client, GEONN_FILE_VALUES, references->values);
	geonn_client_seal(client, true);
}

void
geonn_unknown_reference(int64 number, uint64 count)
{
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("the geonn engine named an unknown reference"),
			 errdetail("The reference's number is %lld of %llu.", (long long) number, (unsigned long long) count),
			 errhint("Run the statement again, and report this as an error in geonn.")));
}

/* Return the record with this number, which may come from the engine and is checked. */
static const Record *
find_record(const GeonnReferences *references, int64 number)
{
	geonn_check_reference_number(number, references->count);
	return geonn_memory_file_bytes(references->records, number * references->record_bytes,
								   references->record_bytes);
}

static Datum
record_id(const GeonnReferences *references, const Record *record)
{
	const void *value;

	if (references->by_value)
		return record->id;
	value = references->length == -1 ?
		(const void *) geonn_memory_file_varlena(references->values, DatumGetInt64(record->id)) :
		geonn_memory_file_bytes(references->values, DatumGetInt64(record->id),
								references->length);
	if (value == NULL)
		geonn_connection_violation("a reference without its id");
	return PointerGetDatum(value);
}

Datum
geonn_reference_id(const GeonnReferences *references, int64 tag)
{
	if (references->id_of != NULL)
		return references->id_of(references->lent, tag);
	if (references->record_bytes > 0)
		return record_id(references, find_record(references, tag));
	return geonn_integer_value(references->type, tag);
}

void
geonn_reference_coordinates(const GeonnReferences *references, int64 tag, double *latitude,
							double *longitude)
{
	const Record *record = find_record(references, tag);

	*latitude = record->latitude;
	*longitude = record->longitude;
}

static int
compare_with(const GeonnReferences *references, Datum id, uint64 number)
{
	Datum		other = record_id(references, find_record(references, (int64) number));

	return DatumGetInt32(FunctionCall2Coll(references->compare_with_observation,
										   references->collation, id, other));
}

/*
 * Return the number of the first record, from low on, whose id is at least the observation's; with
 * after_equal, whose id is greater.
 */
static uint64
find_bound(const GeonnReferences *references, Datum id, uint64 low, bool after_equal)
{
	uint64		high = references->count;

	while (low < high)
	{
		uint64		middle = low + (high - low) / 2;

		if (compare_with(references, id, middle) >= (after_equal ? 0 : 1))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void
geonn_references_excluded(const GeonnReferences *references, Datum id, int64 *first, int64 *last)
{
	uint64		begin;
	uint64		end;

	if (geonn_references_exclude_by_tag(references))
	{
		*first = *last = geonn_integer(references->observation_type, id);
		return;
	}
	begin = end = find_bound(references, id, 0, false);
	if (end < references->count && compare_with(references, id, end) == 0)
		end++;
	/* Most ids occur once: search for the end only if the next reference has the same id. */
	if (end > begin && end < references->count && compare_with(references, id, end) == 0)
		end = find_bound(references, id, end, true);
	*first = (int64) begin;
	*last = (int64) end - 1;
}

bool
geonn_reference_is_own(const GeonnReferences *references, int64 tag, Datum id)
{
	if (geonn_integer_width(references->type) > 0)
		return tag == geonn_integer(references->observation_type, id);
	return DatumGetInt32(FunctionCall2Coll(references->compare_with_observation, references->collation, id,
										   references->id_of(references->lent, tag))) == 0;
}

bool
geonn_references_have_ids_as_tags(const GeonnReferences *references)
{
	return references->lent == NULL && references->record_bytes == 0;
}

bool
geonn_references_exclude_by_tag(const GeonnReferences *references)
{
	return references->compare_with_observation != NULL && references->record_bytes == 0;
}
