/*
 * full_search.c
 *		The search for all observations, and the baselines that are made of what it reads.  Its rows fill a
 *		new table, or those of the table that differ from them are updated.
 *
 * The first fill and each full refresh search once, and each observation is read once.  While the
 * search reads observations, they are added to the baseline, if one is to be made.  While it
 * returns their rows, an array gets their reaches, by the numbers that the search gives to
 * observations.  The engine gets the references once; they are read again for their baseline alone.
 *
 * A new table is filled as COPY fills one, many rows at a time, and its index is made afterwards.
 *
 * Rows come in about the order in which the observations are read, mostly that of their table: the
 * primary key is then made of ids that are nearly sorted, and a range of ids is in a few pages.  In
 * the order of the baseline, in which points that follow each other are near each other, the engine
 * would need less time, and readers of the table more.
 *
 * The points of a baseline are sorted by their keys, and written in that order.  A point takes its number
 * through the sort, and is written with the reach that the array has for it.
 *
 * If a baseline of the side is stored that may have the same points, the new one has its seed.  Points are
 * then also added to bags of their blocks.  If all bags are those of the directory, the stored baseline
 * can stay, and nothing is sorted to the end or written.
 *
 * A full refresh mostly finds few differences or none, so it does not sort all rows to find them.
 * Rows are divided into partitions by a hash of their ids.  Each partition has a sum of 128 bits: the
 * hash of each row that the search returns is added, and the hash of each row of the table is
 * subtracted.  Only partitions whose sum is not zero then matter.  Their observations are searched for
 * again, these rows and those of the table are sorted by the primary key, and merged:
 * a row that only the search has is inserted, a row that only the table has is deleted, and one that
 * both have, with other values, is updated.
 *
 * Nothing is missed, for these reasons:
 *
 *	 - Rows with equal keys are in the same partition: equal ids have equal hashes (cache/sorted_rows.h).
 *	   So merging some partitions finds the differences that merging all rows would find in them.
 *	 - The hash of a row is of the bytes of all its values.  Values that are equal and have other
 *	   bytes, as with citext, differ, as they do in is_same_row of cache/sorted_rows.c.
 *	 - If the sum of a partition is zero, the search and the table have the same rows there, each as
 *	   often as the other, but for an accident that is as unlikely as with those of a
 *	   baseline (cache/baseline.h).  The hashes have a random key, so that such an accident cannot be
 *	   arranged.  Sums of values would not do, as two observations may have exchanged their rows; a
 *	   keyed hash of the whole row has no such law.
 *	 - The table has a key only once.  If the search returns it twice, for a duplicate id, the rows are
 *	   not the same, the sum is not zero, and the merge finds the duplicate.
 *
 * The second search has the same snapshot, and so the same rows, unless a view or query depends on
 * anything else, such as the time of day: the table then has rows of either search.  To keep the rows
 * of the first one would take longer than the comparison itself, each time, for the sake of those that
 * differ.  Where most rows are expected to differ, all rows of one search are sorted at once.
 */
#include "postgres.h"

#include <math.h>

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "cache/full_search.h"
#include "cache/changed_pages.h"
#include "cache/cluster_rows.h"
#include "cache/siphash.h"
#include "cache/sorted_rows.h"

/* the number of a point for which nothing is searched */
#define NOT_SEARCHED	PG_UINT64_MAX

/* first room of the reaches */
#define FIRST_REACHES	1024

/* rows are written into a new table this many at a time */
#define ROWS_A_FILL		1000

/* partitions of rows, each with a bag */
#define PARTITIONS		65536

/* ---- a baseline that is made ---- */

struct BaselineBuild
{
	GeonnBaseline *baseline;
	const GeonnQuestion *question;	/* the join's question, for a baseline of observations; NULL: points get no reaches */
	MemoryContext context;
	MemoryContext row_context;
	BaselineSort *sort;
	StringInfoData bytes;
	Bag		   *bags;			/* [baseline->count], to compare with the stored baseline; NULL: none is compared */
	float	   *reaches;		/* [searched]; NaN: the observation has fewer than k rows so far */
	uint64		searched;
	uint64		room;
};

/*
 * Begin an empty baseline of a side, in the current memory context.  As last_run->plan says, it
 * replaces the stored one, or is compared with it first.
 */
static BaselineBuild *
begin_baseline(const GeonnCache *cache, const GeonnJoin *join, const GeonnLastRun *last_run, CacheSide side)
{
	GeonnBaseline *baseline = geonn_baseline_create(cache, join, side, last_run->sides.seed[side]);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn baseline",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	BaselineBuild *build = palloc0(sizeof(BaselineBuild));

	Assert(last_run->plan == BASELINES_MAKE || last_run->plan == BASELINES_COMPARE);
	build->baseline = baseline;
	build->question = side == SIDE_OBSERVATIONS ? &join->question : NULL;
	build->context = context;
	build->row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_SMALL_SIZES);
	build->sort = geonn_baseline_sort_begin(baseline);
	initStringInfo(&build->bytes);
	build->room = FIRST_REACHES;
	build->reaches = palloc(build->room * sizeof(float));
	if (last_run->plan == BASELINES_COMPARE)
	{
		geonn_baseline_load(baseline);
		build->bags = MemoryContextAllocExtended(context, baseline->count * sizeof(Bag),
												 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	}
	MemoryContextSwitchTo(former);
	baseline->pages = geonn_pages_look(baseline, geonn_side_source(join, side), &join->question, true);
	return build;
}

/* Return whether the stored baseline has the same points. */
static bool
has_same_points(const BaselineBuild *build)
{
	const GeonnBaseline *baseline = build->baseline;

	for (uint32 i = 0; build->bags != NULL && i < baseline->count; i++)
	{
		if (!geonn_bag_is(&build->bags[i], &baseline->blocks[i].bag))
			return false;
	}
	return build->bags != NULL;
}

/* Return the number of the next observation that is searched for, which has no reach yet. */
static uint64
next_number(BaselineBuild *build)
{
	if (build->searched == build->room)
	{
		build->room *= 2;
		build->reaches = repalloc_huge(build->reaches, build->room * sizeof(float));
	}
	build->reaches[build->searched] = NAN;
	return build->searched++;
}

/*
 * Add a point.  Points that are searched for (is_searched) are numbered from 0, in the order of these
 * calls, and have the reach of a point without rows until set_reach().
 */
static void
add_point(BaselineBuild *build, const PointRow *row, bool is_searched)
{
	GeonnBaseline *baseline = build->baseline;
	uint64		number = is_searched ? next_number(build) : NOT_SEARCHED;
	MemoryContext former;
	BaselinePoint point;

	if (!geonn_baseline_has(&baseline->schema, row))
		return;
	former = MemoryContextSwitchTo(build->row_context);
	resetStringInfo(&build->bytes);
	geonn_baseline_write(baseline, row, &build->bytes, &point);
	geonn_pages_add(baseline->pages, row, &point.fingerprint);
	if (build->bags != NULL)
		geonn_bag_add(&build->bags[geonn_baseline_find_block(baseline, point.fingerprint.key)],
					  point.fingerprint.hash);
	geonn_baseline_sort_add(build->sort, &point, number);
	MemoryContextSwitchTo(former);
	MemoryContextReset(build->row_context);
}

/* Return the reach of the point with this number. */
static float
reach_of(const BaselineBuild *build, uint64 number, const char *bytes)
{
	Assert(number == NOT_SEARCHED || number < build->searched);
	if (build->question == NULL)
		return -1;
	if (number != NOT_SEARCHED && !isnan(build->reaches[number]))
		return build->reaches[number];
	return geonn_baseline_reach(&build->baseline->schema, build->question, bytes, 0, 0);
}

/* Write the points over the stored baseline. */
static void
write_points(BaselineBuild *build)
{
	BaselineWriter *writer = geonn_baseline_writer_begin(build->baseline, true);
	BaselinePoint point;
	uint64		number;

	while (geonn_baseline_sort_next(build->sort, &point, &number))
	{
		point.reach = reach_of(build, number, point.bytes);
		geonn_baseline_add(writer, &point);
	}
	geonn_baseline_writer_end(writer);
}

/*
 * Write the baseline over the stored one; with may_keep, keep the stored one if it has the same points.
 * Frees the points.  Returns whether the stored baseline was kept.
 */
static bool
end_baseline(BaselineBuild *build, bool may_keep)
{
	MemoryContext former = MemoryContextSwitchTo(build->context);
	bool		keeps = may_keep && has_same_points(build);

	if (!keeps)
		write_points(build);
	geonn_pages_store(build->baseline->pages);
	geonn_baseline_close(build->baseline);
	geonn_baseline_sort_end(build->sort);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(build->context);
	return keeps;
}

/* Let go of the points, and leave what is stored as it is. */
static void
abandon_baseline(BaselineBuild *build)
{
	geonn_baseline_close(build->baseline);
	geonn_baseline_sort_end(build->sort);
	MemoryContextDelete(build->context);
}

static void
take_row(void *state, const PointRow *row)
{
	add_point(state, row, false);
}

/*
 * Add the source's points, as the active snapshot sees them, to the baseline.  None of them is searched for.  From the first
 * one that is a shape on, the source is read as shapes, and the baseline will be abandoned.
 */
static void
read_source(BaselineBuild *build, PointSource *source)
{
	if (!geonn_read_points(source, GEONN_INVALID_COUNTED, take_row, build))
		geonn_read_as_shapes(source);
}

/* ---- both baselines ---- */

/*
 * Delete the stored baselines.  If the last run is not known, as after geonn_cache_alter(), some may be
 * stored all the same.
 */
static void
delete_baselines(const GeonnCache *cache, const GeonnJoin *join, GeonnLastRun *last_run)
{
	for (int side = 0; side < CACHE_SIDES && (last_run->has_baselines || !last_run->exists); side++)
	{
		GeonnBaseline *baseline = geonn_baseline_create(cache, join, side, last_run->sides.seed[side]);

		geonn_baseline_delete(baseline);
		geonn_baseline_close(baseline);
	}
	last_run->has_baselines = false;
}

BaselineBuild *
geonn_baselines_begin(const GeonnCache *cache, const GeonnJoin *join, GeonnLastRun *last_run)
{
	/* A baseline stores points, and cannot store shapes.  The rows of clusters depend on points at any distance. */
	if (geonn_join_has_shapes(join) || join->question.min_points > 0)
		last_run->plan = BASELINES_SKIP;
	if (last_run->plan == BASELINES_SKIP)
		delete_baselines(cache, join, last_run);
	if (last_run->plan == BASELINES_SKIP || last_run->plan == BASELINES_KEEP)
		return NULL;
	if (last_run->plan == BASELINES_MAKE &&
		!pg_strong_random(last_run->sides.seed, sizeof(last_run->sides.seed)))
		elog(ERROR, "could not get random bytes");
	return begin_baseline(cache, join, last_run, SIDE_OBSERVATIONS);
}

void
geonn_baselines_end(const GeonnCache *cache, const GeonnJoin *join, GeonnLastRun *last_run,
					BaselineBuild *build)
{
	BaselineBuild *references;
	bool		same_references;

	if (build == NULL)
		return;
	/* the search has met a shape */
	if (geonn_join_has_shapes(join))
	{
		abandon_baseline(build);
		delete_baselines(cache, join, last_run);
		return;
	}
	references = begin_baseline(cache, join, last_run, SIDE_REFERENCES);
	read_source(references, join->references);
	same_references = end_baseline(references, true);
	/*
	 * Reaches of observations depend on the references: keep the observations' baseline only if
	 * that of the references was kept.
	 */
	(void) end_baseline(build, same_references);
	last_run->has_baselines = true;
}

/* ---- the search ---- */

/* a search for all observations */
typedef struct FullSearch
{
	const GeonnCache *cache;
	const GeonnJoin *join;
	TupleDesc	row_type;

	/* the baseline to which the search adds the observations; NULL: none is made */
	BaselineBuild *build;

	/*
	 * tells whether to search for the observations with this id; NULL: search for all.  If set, this is
	 * a second search, which does not repeat warnings
	 */
	bool		(*wants) (void *state, Datum id);

	/* takes each row; the values, and what the function allocates, live until it returns */
	void		(*consume) (void *state, const Datum *values, const bool *nulls);
	void	   *state;

	MemoryContext row_context;	/* memory for what is allocated for one row */
	bool		has_read;		/* the search has read an observation */
} FullSearch;

/* Skip a NULL id here: search_fully() raises the error when it gets a row with one. */
static bool
watch(void *state, const PointRow *row, bool will_send)
{
	FullSearch *full = state;

	full->has_read = true;
	if (full->wants != NULL)
	{
		MemoryContext former = MemoryContextSwitchTo(full->row_context);
		bool		wanted = !row->id_is_null && full->wants(full->state, row->id);

		MemoryContextSwitchTo(former);
		MemoryContextReset(full->row_context);
		return wanted;
	}
	if (!row->id_is_null)
		add_point(full->build, row, will_send);
	return true;
}

/* Set the reach of an observation for which k neighbours are asked, by its last row so far. */
static void
set_reach(BaselineBuild *build, const GeonnSearch *search, const Datum *values, const bool *nulls)
{
	uint64		number = geonn_search_number(search);

	if (build->question->k == 0 || number == GEONN_NOT_SENT || nulls[TARGET_DISTANCE])
		return;
	if (number >= build->searched)
		elog(ERROR, "a row is of no observation that was searched for");
	if ((uint64) DatumGetInt32(values[TARGET_RANK]) >= build->question->k)
		build->reaches[number] = geonn_rounded_up(DatumGetFloat8(values[TARGET_DISTANCE]));
}

/* Take a row of clusters, which depends on all points: none is left out before the search. */
static void
take_clustered(void *state, const Datum *values, const bool *nulls)
{
	FullSearch *full = state;

	if (full->wants == NULL || full->wants(full->state, values[TARGET_OBSERVATION_ID]))
		full->consume(full->state, values, nulls);
}

/*
 * Search with the active snapshot.  Rows come roughly in the order in which observations are read.  Raises
 * an error about a NULL id.  Returns the number of rows.
 */
static uint64
search_fully(FullSearch *full)
{
	GeonnJoin	join = *full->join;
	GeonnSearch *search;
	GeonnReport report;
	Datum		values[TARGET_COLUMNS_MAX];
	bool		nulls[TARGET_COLUMNS_MAX];
	uint64		rows = 0;
	MemoryContext former;

	if (full->wants != NULL)
		join.invalid = GEONN_INVALID_COUNTED;
	if (join.question.min_points > 0)
		return geonn_visit_clusters(&join, full->row_type, take_clustered, full);
	full->row_context = AllocSetContextCreate(CurrentMemoryContext, "geonn row", ALLOCSET_DEFAULT_SIZES);
	full->has_read = false;
	search = geonn_search_begin(&join, full->row_type);
	if (full->build != NULL || full->wants != NULL)
		geonn_search_watch(search, watch, full);
	while (geonn_search_next(search, values, nulls))
	{
		if (nulls[TARGET_OBSERVATION_ID])
			geonn_cache_raise_null(full->cache);
		if (full->build != NULL)
			set_reach(full->build, search, values, nulls);
		former = MemoryContextSwitchTo(full->row_context);
		full->consume(full->state, values, nulls);
		MemoryContextSwitchTo(former);
		MemoryContextReset(full->row_context);
		rows++;
	}
	report = geonn_search_report(search);
	geonn_search_log(search, &report);
	geonn_search_end(search);
	MemoryContextDelete(full->row_context);
	/* If the dataset has no references, the search may have read no observations. */
	if (full->build != NULL && !full->has_read)
		read_source(full->build, join.observations);
	return rows;
}

/* ---- a new table is filled with the rows ---- */

typedef struct Filling
{
	Relation	table;
	int			options;		/* the options of table_multi_insert */
	BulkInsertState state;
	TupleTableSlot *slots[ROWS_A_FILL];
	int			count;
	TupleDesc	row_type;
	AttrNumber	attributes[TARGET_COLUMNS_MAX];
	MemoryContext row_context;	/* memory for the values of the rows */
} Filling;

static void
flush(Filling *filling)
{
	table_multi_insert(filling->table, filling->slots, filling->count,
					   GetCurrentCommandId(true), filling->options, filling->state);
	for (int i = 0; i < filling->count; i++)
		ExecClearTuple(filling->slots[i]);
	filling->count = 0;
	MemoryContextReset(filling->row_context);
}

static void
fill_row(void *state, const Datum *values, const bool *nulls)
{
	Filling    *filling = state;
	TupleTableSlot *slot = filling->slots[filling->count++];
	MemoryContext former = MemoryContextSwitchTo(filling->row_context);

	Assert(filling->count <= ROWS_A_FILL);
	/* dropped columns are NULL */
	memset(slot->tts_isnull, true, filling->table->rd_att->natts * sizeof(bool));
	for (int i = 0; i < filling->row_type->natts; i++)
	{
		Form_pg_attribute type = TupleDescAttr(filling->row_type, i);
		int			column = filling->attributes[i] - 1;

		slot->tts_isnull[column] = nulls[i];
		if (!nulls[i])
			slot->tts_values[column] = type->attbyval ? values[i] :
				datumCopy(values[i], false, type->attlen);
	}
	MemoryContextSwitchTo(former);
	ExecStoreVirtualTuple(slot);
	if (filling->count == ROWS_A_FILL)
		flush(filling);
}

uint64
geonn_full_fill(const GeonnCache *cache, const GeonnJoin *join, BaselineBuild *build, Relation table,
				int options)
{
	Filling    *filling = palloc0(sizeof(Filling));
	FullSearch	search = {
		.cache = cache,
		.join = join,
		.row_type = geonn_cache_row_type(join),
		.build = build,
		.consume = fill_row,
		.state = filling
	};
	uint64		rows;

	filling->row_type = search.row_type;
	geonn_target_attributes(cache->target, filling->row_type, filling->attributes);
	filling->row_context = AllocSetContextCreate(CurrentMemoryContext, "geonn rows",
												 ALLOCSET_DEFAULT_SIZES);
	filling->table = table;
	filling->options = options | TABLE_INSERT_SKIP_FSM;
	filling->state = GetBulkInsertState();
	for (int i = 0; i < ROWS_A_FILL; i++)
		filling->slots[i] = table_slot_create(table, NULL);
	rows = search_fully(&search);
	if (filling->count > 0)
		flush(filling);
	table_finish_bulk_insert(table, filling->options);
	for (int i = 0; i < ROWS_A_FILL; i++)
		ExecDropSingleTupleTableSlot(filling->slots[i]);
	FreeBulkInsertState(filling->state);
	MemoryContextDelete(filling->row_context);
	return rows;
}

/* ---- the table's rows are compared with those found ---- */

typedef struct FullCompare
{
	const GeonnCache *cache;
	TupleDesc	row_type;
	GeonnRunResult *result;
	IdHash		id_hash;
	BaselineType types[TARGET_COLUMNS_MAX];
	uint64		key[2];			/* the secret key of the rows' hashes */
	Bag		   *bags;			/* [PARTITIONS] the bag of the search's rows, less the bag of the table's rows */
	bool	   *differs;		/* [PARTITIONS] whether the partition's rows differ; NULL: all may differ */
	StringInfoData bytes;
	RowMerge	merge;
} FullCompare;

static uint32
partition_of(const FullCompare *comparison, Datum id)
{
	return (uint32) (geonn_id_hash(&comparison->id_hash, id) % PARTITIONS);
}

/* ---- rows are compared by bags ---- */

static void
hash_row(FullCompare *comparison, const Datum *values, const bool *nulls, uint64 *hash)
{
	StringInfo	bytes = &comparison->bytes;

	resetStringInfo(bytes);
	appendBinaryStringInfo(bytes, (const char *) nulls, comparison->row_type->natts * sizeof(bool));
	for (int i = 0; i < comparison->row_type->natts; i++)
	{
		if (!nulls[i])
			geonn_baseline_write_value(bytes, comparison->types[i], values[i]);
	}
	geonn_siphash(comparison->key, bytes->data, bytes->len, hash);
}

static void
add_found(void *state, const Datum *values, const bool *nulls)
{
	FullCompare *comparison = state;
	uint64		hash[2];

	hash_row(comparison, values, nulls, hash);
	geonn_bag_add(&comparison->bags[partition_of(comparison, values[TARGET_OBSERVATION_ID])], hash);
}

static void
remove_row(void *state, const Datum *values, const bool *nulls, TableReader *reader pg_attribute_unused(),
		   int row pg_attribute_unused())
{
	FullCompare *comparison = state;
	uint64		hash[2];

	hash_row(comparison, values, nulls, hash);
	geonn_bag_remove(&comparison->bags[partition_of(comparison, values[TARGET_OBSERVATION_ID])], hash);
}

/* Find out in which partitions rows differ.  Returns whether any do. */
static bool
find_different(FullCompare *comparison)
{
	static const Bag empty;
	bool		any = false;

	comparison->differs = palloc(PARTITIONS * sizeof(bool));
	for (int i = 0; i < PARTITIONS; i++)
	{
		comparison->differs[i] = !geonn_bag_is(&comparison->bags[i], &empty);
		any |= comparison->differs[i];
	}
	return any;
}

/* ---- rows that are sorted ---- */

static bool
may_differ(void *state, Datum id)
{
	const FullCompare *comparison = state;

	return comparison->differs[partition_of(comparison, id)];
}

static void
sort_found(void *state, const Datum *values, const bool *nulls)
{
	FullCompare *comparison = state;

	geonn_sorted_rows_add(comparison->merge.found, NULL, values, nulls);
}

static void
sort_row(void *state, const Datum *values, const bool *nulls, TableReader *reader, int row)
{
	FullCompare *comparison = state;
	ItemPointerData tid;

	if (comparison->differs != NULL && !may_differ(comparison, values[TARGET_OBSERVATION_ID]))
		return;
	tid = geonn_table_reader_tid(reader, row);
	geonn_sorted_rows_add(comparison->merge.in_table, &tid, values, nulls);
}

/*
 * Search; sort the found rows, and the table's rows of the same partitions; write the differences.  Returns
 * the number of rows of the search.
 */
static uint64
sort_and_merge(FullCompare *comparison, FullSearch *search)
{
	uint64		rows;

	comparison->merge = geonn_merge_begin(comparison->cache, comparison->row_type);
	search->consume = sort_found;
	rows = search_fully(search);
	geonn_target_read(comparison->cache->target, comparison->row_type, comparison->row_type->natts, sort_row, comparison);
	geonn_merge_end(&comparison->merge, comparison->result);
	return rows;
}

/*
 * Compare bags first.
 */
static uint64
compare_bags(FullCompare *comparison, FullSearch *search)
{
	uint64		rows;

	if (!pg_strong_random(comparison->key, sizeof(comparison->key)))
		elog(ERROR, "could not get random bytes");
	comparison->bags = palloc0(PARTITIONS * sizeof(Bag));
	search->consume = add_found;
	rows = search_fully(search);
	geonn_target_read(comparison->cache->target, comparison->row_type, comparison->row_type->natts, remove_row,
					  comparison);
	if (find_different(comparison))
	{
		search->build = NULL;
		search->wants = may_differ;
		(void) sort_and_merge(comparison, search);
	}
	return rows;
}

void
geonn_full_update(const GeonnCache *cache, const GeonnJoin *join, TupleDesc row_type, BaselineBuild *build,
				  bool expects_many, GeonnRunResult *result)
{
	FullCompare comparison = {
		.cache = cache,
		.row_type = row_type,
		.result = result,
		.id_hash = geonn_id_hash_of(TupleDescAttr(row_type, TARGET_OBSERVATION_ID))
	};
	FullSearch	search = {
		.cache = cache,
		.join = join,
		.row_type = row_type,
		.build = build,
		.state = &comparison
	};

	for (int i = 0; i < row_type->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(row_type, i);

		comparison.types[i] = (BaselineType) {column->attbyval, column->attlen};
	}
	initStringInfo(&comparison.bytes);
	result->rows = (int64) (expects_many ? sort_and_merge(&comparison, &search) :
							compare_bags(&comparison, &search));
}
