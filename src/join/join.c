/*
 * join.c
 *		A join: two sources of points, a question, and where the pairs go.
 *
 * In this order: the row type is checked against the ids, and the caller's
 * privileges on both sides, so that a statement bound to fail says so
 * before it does any work; the references are read and sealed, or found in the
 * engine, where they are kept and have not changed (join_prepare.c); the
 * observations are read, and pairs go to the result meanwhile.  Without
 * references no observation has a pair; then the observations are read only if
 * the unmatched are kept, or an invalid one is an error.
 *
 * An observation that can have a neighbour goes to the engine.  One that can have none, for its NULLs,
 * its group, its limits or its coordinates, stays here.  Where the unmatched are kept its row is stored.
 *
 * A count has a row of each valid observation for each radius: of zeros, which are stored, if the observation stays
 * here or if no references are there.
 *
 * A caller takes rows one by one: those that are stored, then pairs that have come.  Observations are
 * read only while no row can be taken, and no more of them than the ring has places for.
 *
 * Several processes can make one search together: one of them prepares it.  That process reads the
 * references and, where the observations are not given, lays out in shared memory how their tables are
 * divided.  All of them, it included, then take part with searches of their own.
 *
 * All that a call holds (connection, batches, ids) hangs on one memory
 * context of its own, and goes with it at the end, on an error and on a
 * cancellation.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/float.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "base/compat.h"
#include "base/settings.h"
#include "join/join_prepare.h"
#include "points/parallel_reader.h"

/* how many observations are read at a time where rows are taken one by one */
#define ROWS_A_READING	1024

/* observations sent at a time under exclude_self */
#define EXCLUDED_AT_ONCE	256

struct GeonnSearch
{
	const GeonnJoin *join;
	GeonnCall	call;			/* the call that the search is part of */
	MemoryContext context;		/* has all that the search allocates */
	GeonnResultRow row;			/* how a pair becomes a row */
	PreparedJoin prepared;		/* 0 until the references are in the engine */
	PointReading *reading;		/* the reading of the observations */
	bool		all_read;		/* all observations were read */

	/* the values of the current row, then the number of its observation */
	Datum	   *values;			/* [row.descriptor->natts + 1] */
	bool	   *nulls;

	/* rows not yet returned, with their observation's number as the last column */
	Tuplestorestate *store;		/* NULL: the search has not begun */
	TupleTableSlot *slot;		/* holds the row taken last */
	uint64		waiting;		/* how many rows these are */
	GeonnRun	run;			/* a run of pairs, returned one by one */

	/* the references of another search; NULL: it has its own */
	const SharedReferences *references;
	SharedSearch *shared;		/* the search that processes share; NULL: this one is alone */

	ObservationWatcher watch;	/* NULL: observations are not watched */
	void	   *watch_state;
	uint64		number;			/* the number of the present row's observation (geonn_search_number) */

	/* where this process answers the observations */
	LiveNeighbour *found;		/* [question.k] the neighbours of the present one */
	uint64		answered;		/* how many were answered */
	LiveDifference difference;	/* as in GeonnReport */
	GeonnWork	work;			/* as the client's */

	/* for the report */
	uint64		without_candidates; /* unsent observations: no reference suits their group or limits */
	uint64		local_rows;		/* how many rows the unsent observations have */
	double		preparing;		/* ms, as in GeonnReport */
	double		spent_reading;	/* ms, likewise */
};

/* ---- a search ---- */

GeonnSearch *
geonn_search_begin(const GeonnJoin *join, TupleDesc row_type)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn join",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	GeonnSearch *search = palloc0(sizeof(GeonnSearch));

	search->join = join;
	search->context = context;
	geonn_result_row_begin(&search->row, row_type, join->given != NULL,
						   geonn_observation_id(join), &join->references->columns[COLUMN_ID],
						   &join->question);
	MemoryContextSwitchTo(former);
	return search;
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

void
geonn_search_follow(GeonnSearch *search, const SharedReferences *references)
{
	search->references = references;
}

void
geonn_search_take_part(GeonnSearch *search, SharedSearch *shared)
{
	search->shared = shared;
	search->references = &shared->references;
}

/* ---- pairs ---- */

/*
 * Store search->values as a row.
 */
static void
store_row(GeonnSearch *search)
{
	/* all stored rows have been returned */
	if (search->waiting == 0)
		tuplestore_clear(search->store);
	search->values[search->row.descriptor->natts] = UInt64GetDatum(search->number);
	tuplestore_putvalues(search->store, search->slot->tts_tupleDescriptor, search->values, search->nulls);
	search->waiting++;
}

/*
 * Return the next pair as a row; without wait, only if one has arrived.  While pairs arrive, nothing waits
 * for the engine: so interrupts are checked here.
 */
static bool
take_pair(GeonnSearch *search, bool wait, Datum *values, bool *nulls)
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

/* ---- observations ---- */

InvalidPolicy
geonn_observations_policy(const GeonnJoin *join)
{
	return join->keep_unmatched && join->invalid == GEONN_INVALID_SKIPPED ? GEONN_INVALID_KEPT :
		join->invalid;
}

static Datum
result_id(const GeonnSearch *search, const PointRow *row)
{
	return search->join->given == NULL ? row->id :
		Int64GetDatum((int64) geonn_reading_rows(search->reading));
}

/*
 * Find an observation's neighbours among the references that this process knows, and store their rows.
 */
static void
answer_observation(GeonnSearch *search, const PointRow *row)
{
	const GeonnQuestion *question = &search->prepared.question;
	GeonnPair	pair = {
		.observation_id = result_id(search, row),
		.number = search->answered++,
		.observation_latitude = row->latitude,
		.observation_longitude = row->longitude
	};
	LiveSearch	neighbours;

	CHECK_FOR_INTERRUPTS();
	geonn_live_search_begin(&neighbours, row->latitude, row->longitude, question->k,
							question->max_distance, search->found);
	geonn_live_table_search(geonn_live_table(search->prepared.live), &neighbours);
	geonn_live_search_end(&neighbours);
	search->number = pair.number;
	search->work.pairs += neighbours.count;
	search->work.unmatched += neighbours.count == 0;
	for (uint32 i = 0; i < Max(neighbours.count, question->unmatched); i++)
	{
		pair.matched = i < neighbours.count;
		pair.tag = search->found[i].id;
		pair.distance = search->found[i].distance;
		pair.rank = i + 1;
		geonn_result_row_pair(&search->row, &pair, search->prepared.references, search->values,
							  search->nulls);
		store_row(search);
	}
}

static void
add_observation(GeonnSearch *search, const PointRow *row, GeonnPointColumns *columns)
{
	GeonnClient *client = search->prepared.client;
	Datum		id = result_id(search, row);

	if (search->join->exclude_self)
		geonn_references_excluded(search->prepared.references, row->id, &columns->excluded_first,
								  &columns->excluded_last);
	/* a batch with long ids can be full before the ring's places are used up */
	while (geonn_client_places(client) == 0)
	{
		if (take_pair(search, true, search->values, search->nulls))
			store_row(search);
	}
	geonn_client_add_observations(client, 1, &id, &row->latitude, &row->longitude, columns);
}

/*
 * Send observations without groups, parties and limits; under exclude_self, with their excluded tags.
 */
static void
add_observations(const GeonnSearch *search, uint32 rows, const Datum *ids, const double *latitudes,
				 const double *longitudes)
{
	GeonnPointColumns columns[EXCLUDED_AT_ONCE];
	uint32		count;

	for (uint32 first = 0; first < rows; first += count)
	{
		count = search->join->exclude_self ? Min(rows - first, EXCLUDED_AT_ONCE) : rows - first;
		for (uint32 i = 0; i < count && search->join->exclude_self; i++)
			geonn_references_excluded(search->prepared.references, ids[first + i],
									  &columns[i].excluded_first, &columns[i].excluded_last);
		geonn_client_add_observations(search->prepared.client, count, ids + first, latitudes + first,
									  longitudes + first, columns);
	}
}

/*
 * Send these observations, except those that search->watch rejects.
 */
static void
consume_observations(void *state, uint32 rows, const Datum *ids, const double *latitudes,
					 const double *longitudes)
{
	GeonnSearch *search = state;
	uint32		first = 0;

	for (uint32 i = 0; search->watch != NULL && i < rows; i++)
	{
		PointRow	row = {
			.status = POINT_VALID,
			.id = ids[i],
			.latitude = latitudes[i],
			.longitude = longitudes[i],
			.page = geonn_reading_page(search->reading)
		};

		if (search->watch(search->watch_state, &row, true))
			continue;
		add_observations(search, i - first, ids + first, latitudes + first, longitudes + first);
		first = i + 1;
	}
	add_observations(search, rows - first, ids + first, latitudes + first, longitudes + first);
}

/*
 * Store the rows of an observation without candidates, of which a count finds none within each radius.
 */
static void
store_zeros(GeonnSearch *search, const PointRow *row)
{
	uint32		weights = search->join->question.weights;
	double		none[3 * GEONN_WEIGHTS_MAX] = {0};
	GeonnPair	pair = {
		.observation_id = result_id(search, row),
		.observation_latitude = row->latitude,
		.observation_longitude = row->longitude,
		.matched = true,
		.sums = none
	};

	for (uint32 i = 0; i < weights; i++)
	{
		none[weights + i] = get_float8_infinity();
		none[2 * weights + i] = -get_float8_infinity();
	}
	search->number = GEONN_NOT_SENT;
	for (uint32 i = 0; i < search->join->question.radii; i++)
	{
		pair.rank = i + 1;
		geonn_result_row_pair(&search->row, &pair, search->prepared.references, search->values, search->nulls);
		search->local_rows++;
		store_row(search);
	}
}

/*
 * Do all observations of a count have no candidates, since no references are there?
 */
static bool
counts_nothing(const GeonnSearch *search)
{
	return search->join->question.radii > 0 && geonn_client_references(search->prepared.client) == 0;
}

/*
 * Find the group and the parties of an observation, and set its columns.  False: it can have no candidate.
 */
static bool
find_columns(const GeonnSearch *search, const PointRow *row, GeonnPointColumns *columns)
{
	const PreparedJoin *prepared = &search->prepared;

	if (row->status != POINT_VALID || geonn_row_is_limited_to_none(row) || counts_nothing(search))
		return false;
	columns->limits = row->limits;
	if (prepared->groups != NULL)
		columns->group = geonn_groups_find(prepared->groups, row->by, row->by_is_null);
	if (columns->group == GEONN_NO_GROUP)
		return false;
	for (int i = 0; i < GEONN_PARTIES_MAX && prepared->parties[i] != NULL; i++)
	{
		if (geonn_groups_has_null(prepared->parties[i], row->by_is_null))
			return false;
		columns->party[i] = geonn_groups_find(prepared->parties[i], row->by, row->by_is_null);
	}
	return true;
}

static void
consume_observation(void *state, const PointRow *row)
{
	GeonnSearch *search = state;
	MemoryContext former = MemoryContextSwitchTo(search->prepared.row_context);
	GeonnPointColumns columns = {0};
	bool		may_match;

	MemoryContextReset(search->prepared.row_context);
	may_match = find_columns(search, row, &columns);
	if (search->watch == NULL || search->watch(search->watch_state, row, may_match))
	{
		if (may_match && search->prepared.alone)
			answer_observation(search, row);
		else if (may_match)
			add_observation(search, row, &columns);
		else if (row->status == POINT_VALID)
			search->without_candidates++;
		if (!may_match && search->join->question.radii > 0 && row->status == POINT_VALID)
			store_zeros(search, row);
		if (!may_match && search->join->keep_unmatched)
		{
			search->local_rows++;
			search->number = GEONN_NOT_SENT;
			geonn_result_row_unmatched(&search->row, result_id(search, row), row->id_is_null,
									   row->latitude_is_null ? NULL : &row->latitude,
									   row->longitude_is_null ? NULL : &row->longitude,
									   search->values, search->nulls);
			store_row(search);
		}
	}
	MemoryContextSwitchTo(former);
}

static Size
tables_offset(int processes)
{
	return MAXALIGN(offsetof(SharedSearch, reports) + processes * sizeof(GeonnReport));
}

static SharedTables *
shared_tables(SharedSearch *shared)
{
	return (SharedTables *) ((char *) shared + tables_offset(shared->processes));
}

/*
 * Begin to read the observations: this checks the caller's privileges before any work is done.
 */
static void
begin_reading(GeonnSearch *search, ReadingManner manner)
{
	const GeonnJoin *join = search->join;
	InvalidPolicy invalid = geonn_observations_policy(join);

	if (join->given != NULL)
		search->reading = geonn_reading_given(join->given, invalid, consume_observation, search);
	else if (search->shared != NULL)
		search->reading = geonn_reading_attach(join->observations, invalid,
											   shared_tables(search->shared), consume_observation,
											   search);
	else
		search->reading = geonn_reading_begin(join->observations, invalid, manner,
											  consume_observation, search);
}

/* ---- references ---- */

/*
 * Bring the references into the engine, or attach to those of another search.  Returns whether the
 * observations have to be read.
 */
static bool
prepare(GeonnSearch *search)
{
	const GeonnJoin *join = search->join;
	const GeonnQuestion *question = &search->prepared.question;
	int			columns = search->row.descriptor->natts;

	search->values = palloc0((columns + 1) * sizeof(Datum));
	search->nulls = palloc0((columns + 1) * sizeof(bool));
	if (search->references != NULL)
	{
		search->call = search->references->call;
		search->prepared = geonn_join_attach(join, &search->row, &search->call,
											 search->references->dataset);
	}
	else
	{
		geonn_call_begin(&search->call);
		search->prepared = geonn_join_prepare(join, &search->row, &search->call);
		search->preparing = geonn_milliseconds_since(search->call.begun);
	}
	if (search->prepared.alone)
		return true;
	if (search->prepared.live != NULL)
		geonn_live_note_engine(search->prepared.live, search->preparing,
							   search->prepared.counts[POINT_VALID]);
	if (search->reading != NULL && question->id_by_value && !counts_nothing(search) &&
		(question->columns & ~(GEONN_COLUMN_EXCLUDED | GEONN_COLUMNS_WEIGHTS)) == 0 &&
		(!join->exclude_self || geonn_references_exclude_by_tag(search->prepared.references)))
		geonn_reading_in_blocks(search->reading, consume_observations);
	return geonn_client_references(search->prepared.client) > 0 ||
		join->keep_unmatched || join->question.radii > 0 ||
		(join->invalid == GEONN_INVALID_IS_ERROR && join->given == NULL);
}

SharedReferences
geonn_search_references(const GeonnSearch *search)
{
	return (SharedReferences)
	{
		.call = search->call,
		.dataset = geonn_client_dataset(search->prepared.client)
	};
}

/* ---- rows ---- */

/*
 * Answer all observations by what this process knows of the references.
 */
static void
answer_alone(GeonnSearch *search)
{
	const uint64 *counts;
	LiveWork	work;

	search->found = palloc0(search->prepared.question.k * sizeof(LiveNeighbour));
	search->difference = geonn_live_table_difference(geonn_live_table(search->prepared.live));
	search->work.devices = 1;
	search->work.algorithms = 1 << GEONN_ALGORITHM_INDEX;
	(void) geonn_reading_next(search->reading, 0);
	counts = geonn_reading_counts(search->reading);
	work = (LiveWork)
	{
		.rows = search->waiting,
		.observations = search->answered,
		.unmatched = search->work.unmatched,
		.milliseconds = geonn_milliseconds_since(search->call.begun)
	};
	for (int i = 0; i < POINT_STATUSES; i++)
	{
		work.observations_skipped += i != POINT_VALID ? counts[i] : 0;
		work.references_skipped += i != POINT_VALID ? search->prepared.counts[i] : 0;
	}
	geonn_live_note_call(search->prepared.live, &work);
}

static void
begin_taking(GeonnSearch *search)
{
	TupleDesc	row = search->row.descriptor;
	AttrNumber	number = (AttrNumber) (row->natts + 1);
	TupleDesc	stored = CreateTemplateTupleDesc(number);

	for (AttrNumber i = 1; i < number; i++)
		TupleDescCopyEntry(stored, i, row, i);
	TupleDescInitEntry(stored, number, "number", INT8OID, -1, 0);
	TupleDescFinalize(stored);
	search->slot = MakeSingleTupleTableSlot(stored, &TTSOpsMinimalTuple);
	search->store = tuplestore_begin_heap(false, false, work_mem);
	search->all_read = search->shared != NULL && search->shared->references.dataset == 0;
	if (search->all_read)
		return;
	if (search->shared != NULL)
		geonn_shared_search_begin(search->shared);
	begin_reading(search, GEONN_READ_IN_PARTS);
	search->all_read = !prepare(search);
	if (search->prepared.alone)
	{
		answer_alone(search);
		search->all_read = true;
	}
}

/*
 * Read as many observations as fit in the ring before pairs are taken.
 */
static void
read_some(GeonnSearch *search)
{
	uint64		rows = Min(geonn_client_places(search->prepared.client), ROWS_A_READING);
	instr_time	begun;

	INSTR_TIME_SET_CURRENT(begun);
	search->all_read = !geonn_reading_next(search->reading, rows);
	search->spent_reading += geonn_milliseconds_since(begun);
	if (!search->all_read)
		return;
	geonn_client_finish(search->prepared.client);
	if (search->shared != NULL)
		geonn_shared_search_end(search->shared, geonn_reading_counts(search->reading));
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

void
geonn_search_complete(GeonnSearch *search)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);

	begin_taking(search);
	for (;;)
	{
		if (!search->all_read && geonn_client_places(search->prepared.client) > 0)
			read_some(search);
		else if (take_pair(search, true, search->values, search->nulls))
			store_row(search);
		else if (search->all_read)
			break;
	}
	MemoryContextSwitchTo(former);
}

static inline void
take_run_pair(GeonnSearch *search, Datum *values, bool *nulls)
{
	search->number = search->run.number + search->run.next;
	geonn_result_row_run(&search->row, &search->run, search->prepared.references, values, nulls);
}

/*
 * Return a row without waiting: one from the store, or a pair that has arrived.
 */
static bool
take_row(GeonnSearch *search, Datum *values, bool *nulls)
{
	TupleTableSlot *slot = search->slot;
	int			columns = search->row.descriptor->natts;

	if (search->waiting > 0)
	{
		(void) tuplestore_gettupleslot(search->store, true, false, slot);
		slot_getallattrs(slot);
		memcpy(values, slot->tts_values, columns * sizeof(Datum));
		memcpy(nulls, slot->tts_isnull, columns * sizeof(bool));
		search->number = DatumGetUInt64(slot->tts_values[columns]);
		search->waiting--;
		return true;
	}
	if (search->prepared.client != NULL &&
		geonn_client_take_run(search->prepared.client, &search->run))
	{
		take_run_pair(search, values, nulls);
		return true;
	}
	return take_pair(search, false, values, nulls);
}

bool
geonn_search_next(GeonnSearch *search, Datum *values, bool *nulls)
{
	MemoryContext former;
	bool		found;

	CHECK_FOR_INTERRUPTS();
	if (search->run.next < search->run.end)
	{
		take_run_pair(search, values, nulls);
		return true;
	}
	former = MemoryContextSwitchTo(search->context);
	if (search->store == NULL)
		begin_taking(search);

	/* read while the ring has places, and else wait for the engine */
	while (!(found = take_row(search, values, nulls)))
	{
		if (!search->all_read && geonn_client_places(search->prepared.client) > 0)
			read_some(search);
		else if ((found = take_pair(search, true, values, nulls)) || search->all_read)
			break;
	}
	MemoryContextSwitchTo(former);
	return found;
}

/* ---- several processes ---- */

static Size
bytes_needed(const GeonnSearch *search, int processes)
{
	Size		size = tables_offset(processes);

	return search->join->given != NULL ? size :
		add_size(size, geonn_share_tables(NULL, geonn_reading_tables(search->reading),
										  search->join->observations->query_columns,
										  GetActiveSnapshot()));
}

Size
geonn_search_prepare_shared(GeonnSearch *search, int processes)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);
	Size		size;

	begin_reading(search, GEONN_READ_SHARED);
	size = bytes_needed(search, processes);
	MemoryContextSwitchTo(former);
	return size;
}

int
geonn_search_share(GeonnSearch *search, SharedSearch *shared)
{
	const GeonnJoin *join = search->join;
	List	   *tables = join->given != NULL ? NIL : geonn_reading_tables(search->reading);
	int			workers = join->given != NULL ? INT_MAX : geonn_count_readers(tables, 1);
	MemoryContext former;

	if (workers == 0 || bytes_needed(search, shared->processes) > shared->bytes)
		return 0;
	former = MemoryContextSwitchTo(search->context);
	shared->observation_table = join->observations != NULL ? join->observations->relation : InvalidOid;
	shared->reference_table = join->references->relation;
	pg_atomic_init_u32(&shared->begun, 0);
	pg_atomic_init_u32(&shared->ended, 0);
	for (int i = 0; i < POINT_STATUSES; i++)
		pg_atomic_init_u64(&shared->counts[i], 0);
	shared->references.dataset = 0;
	if (prepare(search) || join->given != NULL)
	{
		if (join->given == NULL)
			(void) geonn_share_tables(shared_tables(shared), tables,
									  join->observations->query_columns, GetActiveSnapshot());
		shared->references = geonn_search_references(search);
	}
	MemoryContextSwitchTo(former);
	return workers;
}

void
geonn_shared_search_begin(SharedSearch *shared)
{
	pg_atomic_fetch_add_u32(&shared->begun, 1);
}

void
geonn_shared_search_end(SharedSearch *shared, const uint64 *counts)
{
	for (int i = 0; i < POINT_STATUSES; i++)
		pg_atomic_fetch_add_u64(&shared->counts[i], (int64) counts[i]);
	pg_atomic_fetch_add_u32(&shared->ended, 1);
}

void
geonn_tell_of_observations(const GeonnJoin *join, const uint64 *counts)
{
	if (join->observations != NULL)
		geonn_tell_of_rows(join->observations, geonn_observations_policy(join), counts);
	else
		geonn_warn_of_given(counts, join->keep_unmatched);
}

void
geonn_search_tell(const GeonnSearch *search, SharedSearch *shared)
{
	uint64		counts[POINT_STATUSES];

	if (shared->references.dataset == 0 ||
		pg_atomic_read_u32(&shared->begun) != pg_atomic_read_u32(&shared->ended))
		return;
	for (int i = 0; i < POINT_STATUSES; i++)
		counts[i] = pg_atomic_read_u64(&shared->counts[i]);
	geonn_tell_of_observations(search->join, counts);
}

/* ---- what was done, and the end ---- */

GeonnReport
geonn_search_report(const GeonnSearch *search)
{
	GeonnReport report = {
		.references_kept = search->prepared.kept,
		.references_named = search->prepared.named,
		.alone = search->prepared.alone,
		.difference = search->difference,
		.reference_workers = search->prepared.workers,
		.preparing = search->preparing,
		.reading = search->spent_reading
	};

	for (int i = 0; i < POINT_STATUSES; i++)
	{
		uint64		count = search->reading != NULL ? geonn_reading_counts(search->reading)[i] : 0;

		report.observations += count;
		if (i != POINT_VALID)
		{
			report.observations_skipped += count;
			report.references_skipped += search->prepared.counts[i];
		}
	}
	report.references = search->prepared.counts[POINT_VALID];
	report.work = search->prepared.client != NULL ? geonn_client_work(search->prepared.client) : search->work;
	report.unmatched = report.work.unmatched + search->without_candidates;

	/* rows from the engine and the store, less those not yet returned */
	report.rows = report.work.pairs / geonn_question_pairs_of_radius(&search->prepared.question) + search->local_rows -
		search->waiting - (search->run.end - search->run.next);
	if (search->join->keep_unmatched)
		report.rows += report.work.unmatched;
	return report;
}

static const char *
side_name(const PointSource *source)
{
	if (source == NULL)
		return "arrays";
	return OidIsValid(source->relation) ? source->quoted_name : source->title;
}

void
geonn_search_log(const GeonnSearch *search, const GeonnReport *report)
{
	const struct geonn_call_label *label = &search->join->label;
	double		duration;

	/* the process that began the call writes the line */
	if (geonn_log_min_duration < 0 || search->call.pid != MyProcPid)
		return;
	duration = geonn_milliseconds_since(search->call.begun);
	if (duration < geonn_log_min_duration)
		return;
	ereport(LOG,
			(errmsg("duration: %.3f ms  %s(%s, %s%s%s): rows=%llu observations=%llu skipped=%llu unmatched=%llu references=%llu%s batches=%llu reading references=%.3f ms building=%.3f ms reading observations=%.3f ms waiting=%.3f ms",
					duration, label->function, side_name(search->join->observations),
					side_name(search->join->references),
					label->arguments[0] != '\0' ? ", " : "", label->arguments,
					(unsigned long long) report->rows,
					(unsigned long long) report->observations,
					(unsigned long long) report->observations_skipped,
					(unsigned long long) report->unmatched,
					(unsigned long long) report->references,
					report->references_kept ? " (kept)" : "",
					(unsigned long long) report->work.batches,
					report->preparing, report->work.building, report->reading,
					report->work.waiting),
			 errhidestmt(true)));
}

void
geonn_search_end(GeonnSearch *search)
{
	if (search->prepared.client != NULL)
	{
		/* what the engine cannot count */
		GeonnReport report = geonn_search_report(search);
		struct geonn_finished finished = {
			.rows = report.rows,
			.observations_skipped = report.observations_skipped,
			.references_skipped = report.references_skipped,
			.unmatched = report.unmatched
		};

		geonn_client_end(search->prepared.client, &finished);
	}
	if (search->reading != NULL)
		geonn_reading_end(search->reading);
	if (search->store != NULL)
		tuplestore_end(search->store);
	MemoryContextDelete(search->context);
}
