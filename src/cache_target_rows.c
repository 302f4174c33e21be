/*
 * cache_target_rows.c
 *		The rows that a cache's table has for some observations.
 *
 * The rows of a few are looked up by the primary key.  For many the whole table is read, page
 * by page, and each row's id is looked for among theirs: one lookup takes as long as
 * reading about a page of rows, so many are more than the table has pages.  The ids
 * are in a table of hashes, with one bit for each of some more hashes before
 * it, which is small enough for the processor's cache and tells of nearly all other rows.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "utils/array.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "cache_target_rows.h"
#include "table_reader.h"

/* ids that are looked up by one statement */
#define IDS_A_STATEMENT	65536

/* bits of the filter for each observation */
#define BITS_AN_ID		16

struct TargetRows
{
	const GeonnCache *cache;
	Form_pg_attribute id;
	TypeCacheEntry *id_type;
	int			id_bits;		/* of an id that is a number, equal if its bits are; else 0 */
	SPIPlanPtr	by_key;
};

TargetRows *
geonn_target_rows_create(const GeonnCache *cache, TupleDesc row_type)
{
	TargetRows *rows = palloc0(sizeof(TargetRows));
	Oid			array_type;
	char	   *statement;

	rows->cache = cache;
	rows->id = TupleDescAttr(row_type, TARGET_OBSERVATION_ID);
	rows->id_type = lookup_type_cache(rows->id->atttypid, TYPECACHE_EQ_OPR_FINFO |
									  TYPECACHE_HASH_EXTENDED_PROC_FINFO);
	if (rows->id->atttypid == INT2OID || rows->id->atttypid == INT4OID ||
		rows->id->atttypid == INT8OID || rows->id->atttypid == OIDOID)
		rows->id_bits = rows->id->attlen * BITS_PER_BYTE;
	array_type = get_array_type(rows->id->atttypid);
	statement = psprintf("SELECT n.number, t.ctid, t.obs_id, t.rank, t.ref_id, t.distance"
						 " FROM (SELECT obs_id, number"
						 " FROM pg_catalog.unnest($1) WITH ORDINALITY AS u(obs_id, number)"
						 " ORDER BY obs_id) AS n"
						 " JOIN %s AS t ON t.obs_id %s n.obs_id",
						 geonn_cache_target_name(cache), geonn_cache_equality(rows->id->atttypid));
	rows->by_key = SPI_prepare(statement, 1, &array_type);
	if (rows->by_key == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", statement, SPI_result_code_string(SPI_result));
	return rows;
}

/*
 * Most ids are numbers, and calling their type's function for each of a table's rows takes
 * longer than reading them.
 */
static inline uint64
hash_of(const TargetRows *rows, Datum id)
{
	if (rows->id_bits > 0)
	{
		/* Fibonacci hashing (Knuth, The Art of Computer Programming 6.4), of the bits that count */
		uint64		hash = ((uint64) id << (64 - rows->id_bits)) * UINT64CONST(0x9E3779B97F4A7C15);

		return hash ^ hash >> 32;
	}
	if (!OidIsValid(rows->id_type->hash_extended_proc))
		return 0;
	return DatumGetUInt64(FunctionCall2Coll(&rows->id_type->hash_extended_proc_finfo,
											rows->id->attcollation, id, Int64GetDatum(0)));
}

uint64
geonn_target_rows_hash(const TargetRows *rows, Datum id)
{
	return hash_of(rows, id);
}

/* ---- by the primary key ---- */

/*
 * One id after the other: the planner, which has the number of ids and not that they are in
 * order, would rather read the whole table.  first is the number of the first id.
 */
static void
read_by_key(TargetRows *rows, const Datum *ids, uint32 first, uint32 count,
			TargetRowConsumer consume, void *state)
{
	int			level = NewGUCNestLevel();
	Datum		array = PointerGetDatum(construct_array(unconstify(Datum *, ids + first), (int) count,
														rows->id->atttypid, rows->id->attlen,
														rows->id->attbyval, rows->id->attalign));
	int			result;

	geonn_plan_by_index();
	result = SPI_execute_plan(rows->by_key, &array, NULL, true, 0);
	AtEOXact_GUC(true, level);
	if (result < 0)
		elog(ERROR, "could not read the table: %s", SPI_result_code_string(result));
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		Datum		values[2 + TARGET_COLUMNS];
		bool		nulls[2 + TARGET_COLUMNS];

		heap_deform_tuple(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, values, nulls);
		consume(state, first + (uint32) DatumGetInt64(values[0]) - 1,
				(ItemPointer) DatumGetPointer(values[1]), values + 2, nulls + 2);
	}
	SPI_freetuptable(SPI_tuptable);
}

/* ---- all rows of the table ---- */

typedef struct IdTable
{
	const TargetRows *rows;
	const Datum *ids;
	uint64	   *filter;			/* a bit for each of filter_mask + 1 hashes */
	uint64		filter_mask;
	uint64	   *hashes;			/* [mask + 1], of the ids that */
	uint32	   *numbers;		/* [mask + 1] tells, from 1 on; 0: none */
	uint64		mask;
} IdTable;

static IdTable
make_id_table(const TargetRows *rows, const Datum *ids, uint32 count)
{
	IdTable		table = {
		.rows = rows,
		.ids = ids,
		.filter_mask = pg_nextpower2_64((uint64) count * BITS_AN_ID) - 1,
		.mask = pg_nextpower2_64((uint64) count * 2) - 1
	};

	table.filter = MemoryContextAllocExtended(CurrentMemoryContext,
											  Max((table.filter_mask + 1) / 8, sizeof(uint64)),
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	table.hashes = MemoryContextAllocHuge(CurrentMemoryContext, (table.mask + 1) * sizeof(uint64));
	table.numbers = MemoryContextAllocExtended(CurrentMemoryContext,
											   (table.mask + 1) * sizeof(uint32),
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint32 i = 0; i < count; i++)
	{
		uint64		hash = geonn_target_rows_hash(rows, ids[i]);
		uint64		bit = hash & table.filter_mask;
		uint64		place = hash & table.mask;

		table.filter[bit / 64] |= UINT64CONST(1) << bit % 64;
		while (table.numbers[place] != 0)
			place = (place + 1) & table.mask;
		table.hashes[place] = hash;
		table.numbers[place] = i + 1;
	}
	return table;
}

/*
 * The next place, from this one on, that tells of an id with this hash; false: there is none.
 */
static inline bool
find_hash(const IdTable *table, uint64 hash, uint64 *place)
{
	while (table->numbers[*place] != 0 && table->hashes[*place] != hash)
		*place = (*place + 1) & table->mask;
	return table->numbers[*place] != 0;
}

/*
 * Pass a row on, for each of the ids that are equal to its own; the first one whose hash
 * is the same is at this place.
 */
static void
match_row(const IdTable *table, uint64 hash, uint64 first, TupleTableSlot *slot,
		  const AttrNumber *attributes, TargetRowConsumer consume, void *state)
{
	const TargetRows *rows = table->rows;
	Datum		values[TARGET_COLUMNS];
	bool		nulls[TARGET_COLUMNS];

	for (int i = 0; i < TARGET_COLUMNS; i++)
		values[i] = slot_getattr(slot, attributes[i], &nulls[i]);
	for (uint64 i = first; find_hash(table, hash, &i); i = (i + 1) & table->mask)
	{
		uint32		number = table->numbers[i] - 1;

		if (DatumGetBool(FunctionCall2Coll(&rows->id_type->eq_opr_finfo, rows->id->attcollation,
										   values[TARGET_OBSERVATION_ID], table->ids[number])))
			consume(state, number, &slot->tts_tid, values, nulls);
	}
}

static void
read_all(TargetRows *rows, Relation relation, const Datum *ids, uint32 count,
		 TargetRowConsumer consume, void *state)
{
	static const char *const names[TARGET_COLUMNS] = {"obs_id", "rank", "ref_id", "distance"};
	IdTable		table = make_id_table(rows, ids, count);
	AttrNumber	attributes[TARGET_COLUMNS];
	PlainTable	only_ids = {relation, attributes};
	TableReader *reader;
	Datum	   *values;
	bool	   *nulls;
	int			found;

	for (int i = 0; i < TARGET_COLUMNS; i++)
		attributes[i] = get_attnum(RelationGetRelid(relation), names[i]);
	reader = geonn_table_reader_begin(list_make1(&only_ids), 1, GetActiveSnapshot());
	while ((found = geonn_table_reader_next(reader, &values, &nulls)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < found; i++)
		{
			uint64		hash = nulls[i] ? 0 : hash_of(rows, values[i]);
			uint64		bit = hash & table.filter_mask;
			uint64		place = hash & table.mask;

			if (!nulls[i] && (table.filter[bit / 64] >> bit % 64 & 1) &&
				find_hash(&table, hash, &place))
				match_row(&table, hash, place, geonn_table_reader_slot(reader, i), attributes,
						  consume, state);
		}
	}
	geonn_table_reader_end(reader);
	pfree(table.filter);
	pfree(table.hashes);
	pfree(table.numbers);
}

void
geonn_target_rows_of(TargetRows *rows, const Datum *ids, uint32 count,
					 TargetRowConsumer consume, void *state)
{
	Relation	relation = table_open(rows->cache->target, AccessShareLock);

	if (count > RelationGetNumberOfBlocks(relation) &&
		OidIsValid(rows->id_type->hash_extended_proc))
		read_all(rows, relation, ids, count, consume, state);
	else
	{
		for (uint32 first = 0; first < count; first += IDS_A_STATEMENT)
			read_by_key(rows, ids, first, Min(count - first, IDS_A_STATEMENT), consume, state);
	}
	table_close(relation, NoLock);
}
