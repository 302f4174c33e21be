/*
 * full_search.c
 *		The search for all observations, and the baselines that are made of what it reads.
 *
 * The first fill and each full refresh search once, and each observation is read once: while the
 * search reads observations, they are added to the baseline, if one is to be made, and while it
 * returns their rows, an array gets their reaches, by the numbers that the search gives to
 * observations.  The engine gets the references once; they are read again for their baseline alone.
 *
 * Rows come in about the order in which the observations are read, mostly that of their table: the
 * primary key is then made of ids that are nearly sorted, and a range of ids is in a few pages.  In
 * the order of the baseline, in which points that follow each other are near each other, the engine
 * would need less time, and readers of the table more.
 *
 * The points of a baseline are sorted by their keys, and written in that order.  A point takes its number
 * through the sort, and is written with the reach that the array has for it.
 *
 * PostgreSQL's tuplesort makes a tuple of each row, and copies it several times: a first fill of 500,000
 * observations took 0.81 s of this process with it, and 0.66 s with the sort below.  It sorts points by
 * what they all have: a key of 64 bits and bytes that nothing looks into.  They are appended to a buffer, and
 * an array has for each the key and where it begins.  The array is sorted.  When buffer and array reach
 * maintenance_work_mem, the points are written to a temporary file in their order, a run, and the buffer
 * begins anew.  At the end the runs, of which the last one stays in memory, are merged: a heap has the
 * present point of each run.
 *
 * If a baseline of the side is stored that may have the same points, the new one has its seed.  Points are
 * then also added to bags of their blocks.  If all bags are those of the directory, the stored baseline
 * can stay, and nothing is sorted to the end or written.
 */
#include "postgres.h"

#include <math.h>

#include "commands/tablespace.h"
#include "lib/binaryheap.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

#include "cache/changed_pages.h"
#include "cache/full_search.h"

/* the number of a point for which the search has no rows */
#define NOT_SEARCHED	PG_UINT64_MAX

/* first room of the reaches */
#define FIRST_REACHES	1024

/* ---- points in the order of their keys ---- */

/* a point in the buffer or in a file; its bytes follow */
typedef struct Record
{
	Fingerprint fingerprint;
	uint64		number;
	uint32		length;
} Record;

/* where a point begins in the buffer */
typedef struct Place
{
	uint64		key;
	Size		offset;
} Place;

#define ST_SORT sort_places
#define ST_ELEMENT_TYPE Place
#define ST_COMPARE(a, b) ((a)->key < (b)->key ? -1 : (a)->key > (b)->key)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* points are fetched into the processor's cache this many places ahead */
#define PLACES_AHEAD	16

/* the room that buffer and array have at first */
#define FIRST_BYTES		65536
#define FIRST_PLACES	1024

/* a run, and its present point */
typedef struct SortRun
{
	BufFile    *file;			/* NULL: the run is the points in memory */
	uint64		left;			/* how many points follow the present one */
	Record		record;
	char	   *bytes;
	Size		room;			/* the room of bytes, if the run is in a file */
} SortRun;

/* a sort of points, first without any; points with equal keys come in any order */
typedef struct PointSort
{
	MemoryContext context;
	Size		memory;			/* how many bytes buffer and array may take */
	char	   *buffer;
	Size		used;
	Size		room;
	Place	   *places;
	uint64		count;
	uint64		places_room;
	uint64		next;			/* the index of the place that is read next */
	List	   *runs;
	binaryheap *heap;			/* of the runs that have a present point; NULL: points are still added */
} PointSort;

/*
 * Create a sort without points, in the current memory context.
 */
static PointSort *
begin_sort(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn point sort",
												  ALLOCSET_DEFAULT_SIZES);
	PointSort  *sort = MemoryContextAllocZero(context, sizeof(PointSort));

	sort->context = context;
	sort->memory = (Size) maintenance_work_mem * 1024;
	sort->room = FIRST_BYTES;
	sort->buffer = MemoryContextAlloc(context, sort->room);
	sort->places_room = FIRST_PLACES;
	sort->places = MemoryContextAlloc(context, sort->places_room * sizeof(Place));
	return sort;
}

/*
 * Copy the record of a place, and return where its bytes are.
 */
static char *
read_place(const PointSort *sort, uint64 place, Record *record)
{
	char	   *start = sort->buffer + sort->places[place].offset;

	if (place + PLACES_AHEAD < sort->count)
	{
		const char *ahead = sort->buffer + sort->places[place + PLACES_AHEAD].offset;

		__builtin_prefetch(ahead);
		__builtin_prefetch(ahead + sizeof(Record) + 24);
	}
	memcpy(record, start, sizeof(Record));
	return start + sizeof(Record);
}

static SortRun *
add_run(PointSort *sort)
{
	SortRun    *run = palloc0(sizeof(SortRun));

	run->left = sort->count;
	sort->runs = lappend(sort->runs, run);
	sort_places(sort->places, sort->count);
	return run;
}

/*
 * Write the points in memory to a file, in their order.
 */
static void
write_run(PointSort *sort)
{
	MemoryContext former = MemoryContextSwitchTo(sort->context);
	SortRun    *run = add_run(sort);

	PrepareTempTablespaces();
	run->file = BufFileCreateTemp(false);
	for (uint64 i = 0; i < sort->count; i++)
	{
		Record		record;
		char	   *bytes = read_place(sort, i, &record);

		CHECK_FOR_INTERRUPTS();
		BufFileWrite(run->file, bytes - sizeof(Record), sizeof(Record) + record.length);
	}
	if (BufFileSeek(run->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind a temporary file: %m"),
				 errhint("Check the disks of temp_tablespaces, then run the refresh again.")));
	sort->used = 0;
	sort->count = 0;
	MemoryContextSwitchTo(former);
}

static void
read_file(BufFile *file, void *to, Size length)
{
	if (BufFileRead(file, to, length) != length)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read a temporary file: %m"),
				 errhint("Check the disks of temp_tablespaces, then run the refresh again.")));
}

/*
 * Go to the run's next point.  Returns false at its end.
 */
static bool
advance(PointSort *sort, SortRun *run)
{
	if (run->left == 0)
		return false;
	run->left--;
	if (run->file == NULL)
	{
		run->bytes = read_place(sort, sort->next++, &run->record);
		return true;
	}
	read_file(run->file, &run->record, sizeof(Record));
	if (run->record.length > run->room)
	{
		run->room = Max(run->record.length, 1024);
		run->bytes = MemoryContextAllocHuge(sort->context, run->room);
	}
	read_file(run->file, run->bytes, run->record.length);
	return true;
}

/*
 * Add a point, whose bytes are copied, with a number by which the caller knows it again.
 */
static void
sort_point(PointSort *sort, const BaselinePoint *point, uint64 number)
{
	Record		record = {point->fingerprint, number, point->length};
	Size		needed = sizeof(Record) + point->length;

	Assert(sort->heap == NULL);
	if (sort->count > 0 &&
		sort->used + needed + (sort->count + 1) * sizeof(Place) > sort->memory)
		write_run(sort);
	if (sort->used + needed > sort->room)
	{
		sort->room = Max(Min(sort->room * 2, sort->memory), sort->used + needed);
		sort->buffer = repalloc_huge(sort->buffer, sort->room);
	}
	if (sort->count == sort->places_room)
	{
		sort->places_room *= 2;
		sort->places = repalloc_huge(sort->places, sort->places_room * sizeof(Place));
	}
	sort->places[sort->count++] = (Place) {point->fingerprint.key, sort->used};
	memcpy(sort->buffer + sort->used, &record, sizeof(Record));
	memcpy(sort->buffer + sort->used + sizeof(Record), point->bytes, point->length);
	sort->used += needed;
}

/* the heap has its greatest element at the top: here the run with the least key */
static int
by_least_key(Datum first, Datum second, void *arg pg_attribute_unused())
{
	uint64		a = ((const SortRun *) DatumGetPointer(first))->record.fingerprint.key;
	uint64		b = ((const SortRun *) DatumGetPointer(second))->record.fingerprint.key;

	return a > b ? -1 : a < b;
}

static void
begin_merge(PointSort *sort)
{
	MemoryContext former = MemoryContextSwitchTo(sort->context);
	ListCell   *cell;

	(void) add_run(sort);
	sort->heap = binaryheap_allocate(list_length(sort->runs), by_least_key, NULL);
	foreach(cell, sort->runs)
	{
		if (advance(sort, lfirst(cell)))
			binaryheap_add_unordered(sort->heap, PointerGetDatum(lfirst(cell)));
	}
	binaryheap_build(sort->heap);
	MemoryContextSwitchTo(former);
}

/*
 * Go past the point at the top of the heap.
 */
static void
pass_first(PointSort *sort)
{
	Datum		first = binaryheap_first(sort->heap);

	if (advance(sort, (SortRun *) DatumGetPointer(first)))
		binaryheap_replace_first(sort->heap, first);
	else
		(void) binaryheap_remove_first(sort->heap);
}

/*
 * Get the next point, whose bytes are valid until the next call, and its number.  Returns false after the last
 * one.  No points can be added after the first call.
 */
static bool
next_sorted(PointSort *sort, BaselinePoint *point, uint64 *number)
{
	const SortRun *run;

	if (sort->heap == NULL)
		begin_merge(sort);
	else if (!binaryheap_empty(sort->heap))
		pass_first(sort);
	if (binaryheap_empty(sort->heap))
		return false;
	run = (const SortRun *) DatumGetPointer(binaryheap_first(sort->heap));
	*number = run->record.number;
	*point = (BaselinePoint)
	{
		.fingerprint = run->record.fingerprint,.bytes = run->bytes,.length = run->record.length
	};
	return true;
}

static void
end_sort(PointSort *sort)
{
	ListCell   *cell;

	foreach(cell, sort->runs)
	{
		const SortRun *run = lfirst(cell);

		if (run->file != NULL)
			BufFileClose(run->file);
	}
	MemoryContextDelete(sort->context);
}

/* ---- a baseline that is made ---- */

struct BaselineBuild
{
	GeonnBaseline *baseline;
	const GeonnQuestion *question;	/* the join's for observations; NULL: the points have no reaches */
	MemoryContext context;
	MemoryContext row_context;
	PointSort  *sort;
	StringInfoData bytes;
	Bag		   *bags;			/* [baseline->count]; NULL: no baseline is stored */
	float	   *reaches;		/* [searched]; NaN: the observation has less than k rows so far */
	uint64		searched;
	uint64		room;
};

/*
 * Begin the baseline of a side without points, in the current memory context, to do what last_run->plan says.
 */
static BaselineBuild *
begin_baseline(const GeonnCache *cache, const GeonnJoin *join, const GeonnLastRun *last_run, CacheSide side)
{
	GeonnBaseline *baseline = geonn_baseline_create(cache, join, side, last_run->sides.seed[side]);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn baseline",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	BaselineBuild *build = palloc0(sizeof(BaselineBuild));

	build->baseline = baseline;
	build->question = side == SIDE_OBSERVATIONS ? &join->question : NULL;
	build->context = context;
	build->row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_SMALL_SIZES);
	build->sort = begin_sort();
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

/*
 * Does the stored baseline have the same points?
 */
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

/*
 * Number the next observation that is searched for.
 */
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
 * Add a point.  Points that are searched for get numbers from 0 on, in the order of these calls, and the reach of
 * an observation without rows, until set_reach.
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
	sort_point(build->sort, &point, number);
	MemoryContextSwitchTo(former);
	MemoryContextReset(build->row_context);
}

/*
 * The reach of the point of this number.
 */
static float
reach_of(const BaselineBuild *build, uint64 number, const char *bytes)
{
	if (build->question == NULL)
		return -1;
	if (number != NOT_SEARCHED && !isnan(build->reaches[number]))
		return build->reaches[number];
	return geonn_baseline_reach(&build->baseline->schema, build->question, bytes, 0, 0);
}

/*
 * Write the points in place of the stored baseline.
 */
static void
write_points(BaselineBuild *build)
{
	BaselineWriter *writer = geonn_baseline_writer_begin(build->baseline, true);
	BaselinePoint point;
	uint64		number;

	while (next_sorted(build->sort, &point, &number))
	{
		point.reach = reach_of(build, number, point.bytes);
		geonn_baseline_add(writer, &point);
	}
	geonn_baseline_writer_end(writer);
}

/*
 * Write the baseline in place of the stored one, and free the points.  may_keep: leave the stored one as it is if
 * it has the same points.  Returns whether it was left.
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
	end_sort(build->sort);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(build->context);
	return keeps;
}

static void
take_row(void *state, const PointRow *row)
{
	add_point(state, row, false);
}

/*
 * Add all points of the source, with the active snapshot, without searching for any.
 */
static void
read_source(BaselineBuild *build, const PointSource *source)
{
	geonn_read_points(source, GEONN_INVALID_COUNTED, take_row, build);
}

/* ---- both baselines ---- */

static void
delete_baselines(const GeonnCache *cache, const GeonnJoin *join, GeonnLastRun *last_run)
{
	for (int side = 0; side < CACHE_SIDES && last_run->has_baselines; side++)
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
	switch (last_run->plan)
	{
		case BASELINES_KEEP:
			return NULL;
		case BASELINES_SKIP:
			delete_baselines(cache, join, last_run);
			return NULL;
		case BASELINES_MAKE:
			if (!pg_strong_random(last_run->sides.seed, sizeof(last_run->sides.seed)))
				elog(ERROR, "could not get random bytes");
			break;
		case BASELINES_COMPARE:
			break;
	}
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
	references = begin_baseline(cache, join, last_run, SIDE_REFERENCES);
	read_source(references, join->references);
	same_references = end_baseline(references, true);
	/* with other references, observations have other reaches */
	(void) end_baseline(build, same_references);
	last_run->has_baselines = true;
}

/* ---- the search ---- */

/* a search under way */
typedef struct Watched
{
	const FullSearch *full;
	bool		has_read;		/* the search has read an observation */
} Watched;

/*
 * An observation with a NULL id is left to the rows: they raise the error.
 */
static bool
watch(void *state, const PointRow *row, bool will_send)
{
	Watched    *watched = state;
	const FullSearch *full = watched->full;

	watched->has_read = true;
	if (full->wants != NULL)
		return !row->id_is_null && full->wants(full->state, row->id);
	if (!row->id_is_null)
		add_point(full->build, row, will_send);
	return true;
}

/*
 * A copy of the join for a search that has been made before, which warns of nothing.
 */
static GeonnJoin
join_again(const FullSearch *full)
{
	GeonnJoin	join = *full->join;

	if (full->wants != NULL)
		join.invalid = GEONN_INVALID_COUNTED;
	return join;
}

/*
 * Set the reach of an observation by its last row so far.
 */
static void
set_reach(BaselineBuild *build, const GeonnSearch *search, const Datum *values, const bool *nulls)
{
	uint64		number = geonn_search_number(search);

	if (number == GEONN_NOT_SENT || nulls[TARGET_DISTANCE])
		return;
	if (number >= build->searched)
		elog(ERROR, "a row is of no observation that was searched for");
	if (build->question->k > 0 && (uint64) DatumGetInt32(values[TARGET_RANK]) >= build->question->k)
		build->reaches[number] = geonn_rounded_up(DatumGetFloat8(values[TARGET_DISTANCE]));
}

uint64
geonn_full_search(const FullSearch *full)
{
	Watched		watched = {full, false};
	GeonnJoin	join = join_again(full);
	GeonnSearch *search = geonn_search_begin(&join, full->row_type);
	GeonnReport report;
	Datum		values[TARGET_COLUMNS];
	bool		nulls[TARGET_COLUMNS];
	uint64		rows = 0;

	if (full->build != NULL || full->wants != NULL)
		geonn_search_watch(search, watch, &watched);
	while (geonn_search_next(search, values, nulls))
	{
		if (nulls[TARGET_OBSERVATION_ID])
			geonn_cache_raise_null(full->cache);
		if (full->build != NULL)
			set_reach(full->build, search, values, nulls);
		full->consume(full->state, values, nulls);
		rows++;
	}
	report = geonn_search_report(search);
	geonn_search_log(search, &report);
	geonn_search_end(search);
	/* without references the search may have had no need to read */
	if (full->build != NULL && !watched.has_read)
		read_source(full->build, join.observations);
	return rows;
}
