/*
 * join.c
 *		A join: two sources of points, a question, and where the pairs go.
 *
 * In this order: the row type is checked against the ids, and the caller's
 * privileges on both sides, so that a statement bound to fail says so
 * before it does any work; the references are read and sealed, or found in the
 * engine, where they are kept and have not changed (kept_dataset.c); the
 * observations are read, and pairs go to the result meanwhile.  Without
 * references no observation has a pair; then the observations are read only if
 * the unmatched are kept, or an invalid one is an error.
 *
 * An observation that can have no neighbour, for its NULLs, its group, its limits or
 * its coordinates, is not sent to the engine.  Where the unmatched are kept it goes
 * to the result at once, as a left join's does.
 *
 * A caller takes the rows in one of two ways.  A function stores all of them in
 * its result: one query gives the observations, as fast as it can, and whenever
 * the ring is full, pairs are stored first.  The plan node takes rows one by one:
 * it reads observations only while no pair can be taken, and no more of them than
 * the ring has places for.  A row of an observation that stays here waits in a
 * small store meanwhile.
 *
 * All that a call holds (connection, batches, ids) hangs on one memory
 * context of its own, and goes with it at the end, on an error and on a
 * cancellation.
 */
#include "postgres.h"

#include "executor/tuptable.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "common/protocol.h"
#include "join/join_prepare.h"
#include "join/row_store.h"
#include "points/parallel_reader.h"

/* observations that are read at a time where rows are taken one by one */
#define ROWS_A_READING	1024

/* what processes that search together share */
struct SharedSearch
{
	GeonnCall	call;
	uint64		dataset;		/* 0: nothing is to be done about the observations */
	pg_atomic_uint32 begun;		/* how many have begun to take part */
	pg_atomic_uint32 ended;		/* how many have read their share */
	pg_atomic_uint64 counts[POINT_STATUSES];
};

struct GeonnSearch
{
	const GeonnJoin *join;
	GeonnCall	call;			/* the call that the search is part of */
	MemoryContext context;		/* of all of it */
	RowMemory	row_memory;
	GeonnResultRow row;			/* what rows are */
	PreparedJoin prepared;		/* all of it is 0 where the references have not been read */

	/* rows to be taken later, and the values of the current row */
	RowStore	store;
	Datum	   *values;			/* [row.descriptor->natts] */
	bool	   *nulls;

	SharedSearch *shared;		/* whose observations are divided; NULL: alone */
	const SharedReferences *references;	/* of another search; NULL: its own */

	/* where observations are watched */
	ObservationWatcher watch;	/* NULL: they are not */
	void	   *watch_state;
	uint64		number;			/* of the observation of the present row */

	/* for the report */
	uint64		without_candidates; /* observations left out for their group or limits */
	uint64		kept;			/* rows of observations that were left out */
	double		preparing;		/* ms */
	double		spent_reading;	/* ms */

	/* where rows are taken one by one */
	GeonnRun	run;
	PointReading *reading;		/* NULL: of given points */
	uint64		point;			/* next one of those given */
	uint64		counts[POINT_STATUSES];	/* of the observations */
	bool		all_read;
};

typedef struct GeonnSearch Search;

static SharedTables *
shared_tables(SharedSearch *shared)
{
	return (SharedTables *) ((char *) shared + MAXALIGN(sizeof(SharedSearch)));
}

/*
 * Store the row that the values are.
 */
static void
store_row(Search *search)
{
	geonn_row_store_put(&search->store, search->values, search->nulls, search->number);
}

/*
 * Take a pair as a row; without wait, only if one has come.  Where the engine is
 * ahead nothing waits while pairs keep coming, so an interrupt is asked for here.
 */
static bool
take_pair(Search *search, bool wait, Datum *values, bool *nulls)
{
	GeonnClient *client = search->prepared.client;
	GeonnPair	pair;

	CHECK_FOR_INTERRUPTS();
	if (client == NULL || !geonn_client_next_pair(client, wait, &pair))
		return false;
	geonn_result_row_pair(&search->row, &pair, search->prepared.references, values, nulls);
	search->number = pair.number;
	return true;
}

/*
 * Store the pairs that have come; with wait, at least those of one batch.
 */
static void
drain(Search *search, bool wait)
{
	while (take_pair(search, wait, search->values, search->nulls))
	{
		store_row(search);
		wait = false;
	}
}

/*
 * An observation's id, as its row has it.
 */
static Datum
result_id(const Search *search, const PointRow *row)
{
	return search->join->given != NULL ? Int64GetDatum((int64) search->point) : row->id;
}

/*
 * Send an observation, which may have a neighbour.
 */
static void
add_observation(Search *search, const PointRow *row, int32 group)
{
	GeonnClient *client = search->prepared.client;
	GeonnPointColumns columns = {
		.group = group,
		.identity = GEONN_NO_IDENTITY,
		.limits = row->limits
	};

	if (search->join->exclude_self)
		columns.identity = geonn_reference_identity(search->prepared.references, row->id);
	while (geonn_client_places(client) == 0)
		drain(search, true);
	if (geonn_client_add_observation(client, result_id(search, row), row->latitude,
									 row->longitude, &columns) &&
		!search->store.is_taken)
		drain(search, false);
}

/*
 * Send observations that have nothing but their coordinates.
 */
static void
add_observations(Search *search, uint32 rows, const Datum *ids, const double *latitudes,
				 const double *longitudes)
{
	GeonnClient *client = search->prepared.client;

	while (rows > 0)
	{
		uint32		places;

		while ((places = geonn_client_places(client)) == 0)
			drain(search, true);
		places = Min(places, rows);
		if (geonn_client_add_observations(client, places, ids, latitudes, longitudes) &&
			!search->store.is_taken)
			drain(search, false);
		ids += places;
		latitudes += places;
		longitudes += places;
		rows -= places;
	}
}

/*
 * Send those of these observations with which the search is to go on.
 */
static void
consume_observations(void *state, uint32 rows, const Datum *ids, const double *latitudes,
					 const double *longitudes)
{
	Search	   *search = state;
	uint32		first = 0;

	for (uint32 i = 0; search->watch != NULL && i < rows; i++)
	{
		PointRow	row = {
			.status = POINT_VALID,
			.id = ids[i],
			.latitude = latitudes[i],
			.longitude = longitudes[i]
		};

		row.has_page = geonn_reading_page(search->reading, &row.page);
		if (search->watch(search->watch_state, &row, true))
			continue;
		add_observations(search, i - first, ids + first, latitudes + first, longitudes + first);
		first = i + 1;
	}
	add_observations(search, rows - first, ids + first, latitudes + first, longitudes + first);
}

/*
 * Store the row of an observation that is not sent.
 */
static void
store_unmatched(Search *search, const PointRow *row)
{
	search->kept++;
	geonn_result_row_unmatched(&search->row, result_id(search, row), row->id_is_null,
							   row->latitude_is_null ? NULL : &row->latitude,
							   row->longitude_is_null ? NULL : &row->longitude,
							   search->values, search->nulls);
	search->number = GEONN_NOT_SENT;
	store_row(search);
}

static void
consume_observation(void *state, const PointRow *row)
{
	Search	   *search = state;
	GeonnGroups *groups = search->prepared.groups;
	MemoryContext former = geonn_row_memory_enter(&search->row_memory);
	int32		group = GEONN_NO_GROUP;

	if (row->status == POINT_VALID && !geonn_row_is_limited_to_none(row))
		group = groups == NULL ? 0 : geonn_groups_find(groups, row->by, row->by_is_null);
	if (search->watch == NULL || search->watch(search->watch_state, row, group != GEONN_NO_GROUP))
	{
		if (group != GEONN_NO_GROUP)
			add_observation(search, row, group);
		else if (row->status == POINT_VALID)
			search->without_candidates++;
		if (group == GEONN_NO_GROUP && search->join->keep_unmatched)
			store_unmatched(search, row);
	}
	MemoryContextSwitchTo(former);
}

/*
 * Read so many of the observations that were given; false: all are.
 */
static bool
read_given(Search *search, uint64 rows)
{
	const GeonnJoin *join = search->join;

	for (uint64 i = 0; i < rows && search->point < join->given->count; i++)
	{
		PointRow	row = geonn_given_row(join->given, search->point++);

		CHECK_FOR_INTERRUPTS();
		search->counts[row.status]++;
		consume_observation(search, &row);
	}
	if (search->point < join->given->count)
		return true;
	if (!join->given->each_alone)
		geonn_warn_of_given(search->counts, join->keep_unmatched);
	return false;
}

InvalidPolicy
geonn_observations_policy(const GeonnJoin *join)
{
	return join->keep_unmatched && join->invalid == GEONN_INVALID_SKIPPED ? GEONN_INVALID_KEPT :
		join->invalid;
}

GeonnSearch *
geonn_search_begin(const GeonnJoin *join, TupleDesc row_type)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn join",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	Search	   *search = palloc0(sizeof(Search));

	search->join = join;
	search->context = context;
	search->row_memory = geonn_row_memory_create();
	geonn_result_row_begin(&search->row, row_type, join->given != NULL,
						   geonn_observation_id(join), &join->references->columns[COLUMN_ID],
						   join->question.metric);
	MemoryContextSwitchTo(former);
	return search;
}

const GeonnJoin *
geonn_search_join(const GeonnSearch *search)
{
	return search->join;
}

void
geonn_search_project(GeonnSearch *search, TupleDesc descriptor, const AttrNumber *attributes)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);

	geonn_result_row_project(&search->row, descriptor, attributes);
	MemoryContextSwitchTo(former);
}

void
geonn_search_watch(GeonnSearch *search, ObservationWatcher watch, void *state)
{
	search->watch = watch;
	search->watch_state = state;
}

uint64
geonn_search_number(const GeonnSearch *search)
{
	return search->number;
}

/*
 * Have observations come as blocks, where none needs work of its own.
 */
static void
read_in_blocks(Search *search)
{
	const GeonnQuestion *question = &search->prepared.question;

	if (question->id_by_value && question->columns == 0)
		geonn_reading_in_blocks(search->reading, consume_observations);
}

/*
 * The current row's values, until it is stored.
 */
static void
make_room_for_row(Search *search)
{
	search->values = palloc0(search->row.descriptor->natts * sizeof(Datum));
	search->nulls = palloc0(search->row.descriptor->natts * sizeof(bool));
}

void
geonn_search_follow(GeonnSearch *search, const SharedReferences *references)
{
	search->references = references;
}

/*
 * Have the references of another search, as prepare() does.
 */
static bool
follow(Search *search)
{
	const GeonnJoin *join = search->join;

	make_room_for_row(search);
	if (join->invalid == GEONN_INVALID_IS_ERROR)
		geonn_check_given(join->given);
	search->call = search->references->call;
	search->prepared = geonn_join_attach(join, &search->row, &search->call,
										 search->references->dataset);
	return search->references->count > 0 || join->keep_unmatched;
}

/*
 * Begin to read the observations, unless they are given: this checks the caller's
 * privileges before any work is done.
 */
static void
begin_reading(Search *search, ReadingManner manner)
{
	const GeonnJoin *join = search->join;

	if (join->given == NULL)
		search->reading = geonn_reading_begin(join->observations, geonn_observations_policy(join),
											  manner, consume_observation, search);
}

/*
 * Have the references in the engine.  Returns whether the observations have to be read.
 */
static bool
prepare(Search *search)
{
	const GeonnJoin *join = search->join;
	instr_time	spent;

	if (search->references != NULL)
		return follow(search);
	make_room_for_row(search);
	geonn_call_begin(&search->call);
	search->prepared = geonn_join_prepare(join, &search->row, &search->call);
	INSTR_TIME_SET_CURRENT(spent);
	INSTR_TIME_SUBTRACT(spent, search->call.begun);
	search->preparing = INSTR_TIME_GET_MILLISEC(spent);
	if (search->reading != NULL)
		read_in_blocks(search);
	return geonn_client_references(search->prepared.client) > 0 ||
		join->keep_unmatched ||
		(join->invalid == GEONN_INVALID_IS_ERROR && join->given == NULL);
}

SharedReferences
geonn_search_references(GeonnSearch *search)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);

	if (search->prepared.client == NULL)
		(void) prepare(search);
	MemoryContextSwitchTo(former);
	return (SharedReferences)
	{
		.call = search->call,
		.dataset = geonn_client_dataset(search->prepared.client),
		.count = geonn_client_references(search->prepared.client)
	};
}

void
geonn_search_store(GeonnSearch *search, Tuplestorestate *store)
{
	const GeonnJoin *join = search->join;
	MemoryContext former = MemoryContextSwitchTo(search->context);

	geonn_row_store_begin(&search->store, store, search->row.descriptor, search->watch != NULL);
	begin_reading(search, GEONN_READ_AT_ONCE);
	if (prepare(search))
	{
		instr_time	begun;
		instr_time	spent;

		INSTR_TIME_SET_CURRENT(begun);
		if (join->given != NULL)
			(void) read_given(search, join->given->count);
		else
			(void) geonn_reading_next(search->reading, 0);
		INSTR_TIME_SET_CURRENT(spent);
		INSTR_TIME_SUBTRACT(spent, begun);
		/* pairs are stored meanwhile, but that is not waiting */
		search->spent_reading = INSTR_TIME_GET_MILLISEC(spent) -
			geonn_client_work(search->prepared.client).waiting;
		geonn_client_finish(search->prepared.client);
		while (take_pair(search, true, search->values, search->nulls))
			store_row(search);
	}
	MemoryContextSwitchTo(former);
}

void
geonn_search_complete(GeonnSearch *search)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);

	geonn_search_store(search, tuplestore_begin_heap(false, false, work_mem));
	geonn_row_store_begin_taking(&search->store);
	search->all_read = true;
	MemoryContextSwitchTo(former);
}

/*
 * Take part in a search whose observations are divided.
 */
static void
take_part(Search *search)
{
	const GeonnJoin *join = search->join;
	SharedSearch *shared = search->shared;

	if (shared->dataset == 0)
	{
		search->all_read = true;
		return;
	}
	pg_atomic_fetch_add_u32(&shared->begun, 1);
	make_room_for_row(search);
	search->call = shared->call;
	search->prepared = geonn_join_attach(join, &search->row, &search->call, shared->dataset);
	search->reading = geonn_reading_attach(join->observations, geonn_observations_policy(join),
										   shared_tables(shared), consume_observation, search);
	read_in_blocks(search);
}

/*
 * Begin to take rows one by one.
 */
static void
begin_taking(Search *search)
{
	geonn_row_store_begin(&search->store, tuplestore_begin_heap(false, false, work_mem), search->row.descriptor,
						  search->watch != NULL);
	geonn_row_store_begin_taking(&search->store);
	if (search->shared != NULL)
	{
		take_part(search);
		return;
	}
	begin_reading(search, GEONN_READ_IN_PARTS);
	search->all_read = !prepare(search);
}

/*
 * This process has read all of its observations.
 */
static void
end_reading(Search *search)
{
	SharedSearch *shared = search->shared;

	geonn_client_finish(search->prepared.client);
	if (shared == NULL)
		return;
	for (int i = 0; i < POINT_STATUSES; i++)
		pg_atomic_fetch_add_u64(&shared->counts[i],
								(int64) geonn_reading_counts(search->reading)[i]);
	pg_atomic_fetch_add_u32(&shared->ended, 1);
}

/*
 * Read as many observations as can be sent without pairs being taken first.
 */
static void
read_some(Search *search)
{
	uint64		rows = Min(geonn_client_places(search->prepared.client), ROWS_A_READING);

	instr_time	begun;
	instr_time	spent;

	INSTR_TIME_SET_CURRENT(begun);
	search->all_read = search->reading != NULL ? !geonn_reading_next(search->reading, rows) :
		!read_given(search, rows);
	INSTR_TIME_SET_CURRENT(spent);
	INSTR_TIME_SUBTRACT(spent, begun);
	search->spent_reading += INSTR_TIME_GET_MILLISEC(spent);
	if (search->all_read)
		end_reading(search);
}

void
geonn_search_send(GeonnSearch *search)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);

	begin_taking(search);
	while (!search->all_read && geonn_client_places(search->prepared.client) > 0)
		read_some(search);
	MemoryContextSwitchTo(former);
}

/*
 * The next pair of the run as a row.
 */
static inline void
take_run_pair(Search *search, Datum *values, bool *nulls)
{
	search->number = search->run.number + search->run.next;
	geonn_result_row_run(&search->row, &search->run, search->prepared.references, values, nulls);
}

bool
geonn_search_next(GeonnSearch *search, Datum *values, bool *nulls)
{
	MemoryContext former;
	bool		found = false;

	CHECK_FOR_INTERRUPTS();
	if (search->run.next < search->run.end)
	{
		take_run_pair(search, values, nulls);
		return true;
	}
	former = MemoryContextSwitchTo(search->context);
	if (!search->store.is_taken)
		begin_taking(search);
	while (!found)
	{
		if (search->store.waiting > 0)
		{
			search->number = geonn_row_store_take(&search->store, values, nulls);
			found = true;
		}
		else if (search->prepared.client != NULL &&
				 geonn_client_take_run(search->prepared.client, &search->run))
		{
			take_run_pair(search, values, nulls);
			found = true;
		}
		else if (take_pair(search, false, values, nulls))
			found = true;
		else if (!search->all_read && geonn_client_places(search->prepared.client) > 0)
			read_some(search);
		else if (take_pair(search, true, values, nulls))
			found = true;
		else if (search->all_read)
			break;
	}
	MemoryContextSwitchTo(former);
	return found;
}

/* ---- several processes ---- */

Size
geonn_search_shared_size(GeonnSearch *search)
{
	const GeonnJoin *join = search->join;
	MemoryContext former = MemoryContextSwitchTo(search->context);
	Size		size = MAXALIGN(sizeof(SharedSearch));

	begin_reading(search, GEONN_READ_SHARED);
	size = add_size(size, geonn_shared_tables_size(geonn_reading_tables(search->reading),
												   join->observations->query_columns,
												   GetActiveSnapshot()));
	MemoryContextSwitchTo(former);
	return size;
}

int
geonn_search_share(GeonnSearch *search, SharedSearch *shared, Size bytes)
{
	const GeonnJoin *join = search->join;
	List	   *tables = geonn_reading_tables(search->reading);
	int			workers = geonn_count_readers(tables, 1);
	MemoryContext former;

	if (workers == 0 || MAXALIGN(sizeof(SharedSearch)) +
		geonn_shared_tables_size(tables, join->observations->query_columns,
								 GetActiveSnapshot()) > bytes)
		return 0;
	former = MemoryContextSwitchTo(search->context);
	pg_atomic_init_u32(&shared->begun, 0);
	pg_atomic_init_u32(&shared->ended, 0);
	for (int i = 0; i < POINT_STATUSES; i++)
		pg_atomic_init_u64(&shared->counts[i], 0);
	shared->dataset = 0;
	if (prepare(search))
	{
		geonn_shared_tables_begin(shared_tables(shared), tables,
								  join->observations->query_columns, GetActiveSnapshot());
		shared->call = search->call;
		shared->dataset = geonn_client_dataset(search->prepared.client);
	}
	MemoryContextSwitchTo(former);
	return workers;
}

void
geonn_search_take_part(GeonnSearch *search, SharedSearch *shared)
{
	search->shared = shared;
}

void
geonn_search_tell(GeonnSearch *search, SharedSearch *shared)
{
	const GeonnJoin *join = search->join;
	uint64		counts[POINT_STATUSES];

	if (shared->dataset == 0 ||
		pg_atomic_read_u32(&shared->begun) != pg_atomic_read_u32(&shared->ended))
		return;
	for (int i = 0; i < POINT_STATUSES; i++)
		counts[i] = pg_atomic_read_u64(&shared->counts[i]);
	geonn_tell_of_rows(join->observations, geonn_observations_policy(join), counts);
}

GeonnReport
geonn_search_report(const GeonnSearch *search)
{
	const uint64 *counts = search->reading != NULL ? geonn_reading_counts(search->reading) :
		search->counts;
	GeonnReport report = {
		.references_kept = search->prepared.kept,
		.references_named = search->prepared.named,
		.reference_workers = search->prepared.workers,
		.preparing = search->preparing,
		.reading = search->spent_reading
	};

	for (int i = 0; i < POINT_STATUSES; i++)
	{
		report.observations += counts[i];
		if (i != POINT_VALID)
		{
			report.observations_skipped += counts[i];
			report.references_skipped += search->prepared.counts[i];
		}
	}
	report.references = search->prepared.counts[POINT_VALID];
	if (search->prepared.client != NULL)
	{
		report.references_recognised = geonn_client_is_recognised(search->prepared.client);
		report.work = geonn_client_work(search->prepared.client);
	}
	report.unmatched = report.work.unmatched + search->without_candidates;

	/* what has come out of the engine and the store, but for what waits to be taken */
	report.rows = report.work.pairs + search->kept - (search->run.end - search->run.next);
	if (search->join->keep_unmatched)
		report.rows += report.work.unmatched;
	if (search->store.is_taken)
		report.rows -= search->store.waiting;
	return report;
}

void
geonn_search_log(const GeonnSearch *search, const GeonnReport *report)
{
	const GeonnJoin *join = search->join;

	geonn_call_log(&search->call, &join->label, join->observations, join->references, report);
}

/*
 * Let the engine know what it cannot count.
 */
static void
tell_engine(const Search *search)
{
	GeonnReport report = geonn_search_report(search);
	struct geonn_finished finished = {
		.rows = report.rows,
		.observations_skipped = report.observations_skipped,
		.references_skipped = report.references_skipped,
		.unmatched = report.unmatched
	};

	geonn_client_end(search->prepared.client, &finished);
}

void
geonn_search_end(GeonnSearch *search)
{
	if (search->prepared.client != NULL)
		tell_engine(search);
	if (search->reading != NULL)
		geonn_reading_end(search->reading);
	if (search->store.is_taken)
		geonn_row_store_end(&search->store);
	MemoryContextDelete(search->context);
}
