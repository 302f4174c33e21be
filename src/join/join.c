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
 * The references are prepared in search_shared.c.  What becomes of each observation is in
 * search_observations.c, and searches that several processes make together are in search_shared.c.
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
#include "portability/instr_time.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "join/search_state.h"

/* how many observations are read at a time where rows are taken one by one */
#define ROWS_A_READING	1024

GeonnSearch *
geonn_search_begin(const GeonnJoin *join, TupleDesc row_type)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn join",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	GeonnSearch *search = palloc0(sizeof(GeonnSearch));

	search->join = join;
	search->context = context;
	search->row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_DEFAULT_SIZES);
	geonn_result_row_begin(&search->row, row_type, join->given != NULL,
						   geonn_observation_id(join), &join->references->columns[COLUMN_ID],
						   join->question.metric);
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

static void
begin_store(GeonnSearch *search, Tuplestorestate *rows)
{
	search->store = (RowStore)
	{
		.context = CurrentMemoryContext,
		.rows = rows,
		.descriptor = search->row.descriptor,
		.is_numbered = search->watch != NULL
	};
}

/*
 * From now on rows are taken, and room of rows that were taken is used again.
 */
static void
take_from_store(RowStore *store)
{
	store->slot = MakeSingleTupleTableSlot(store->descriptor, &TTSOpsMinimalTuple);
	store->is_taken = true;
}

void
geonn_search_store(GeonnSearch *search, Tuplestorestate *store)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);

	begin_store(search, store);
	geonn_search_begin_reading(search, GEONN_READ_AT_ONCE);
	if (geonn_search_prepare(search))
	{
		instr_time	begun;

		INSTR_TIME_SET_CURRENT(begun);
		(void) geonn_reading_next(search->reading, 0);
		/* pairs are stored meanwhile, but that is not waiting */
		search->spent_reading = geonn_milliseconds_since(begun) -
			geonn_client_work(search->prepared.client).waiting;
		geonn_client_finish(search->prepared.client);
		while (geonn_search_take_pair(search, true, search->values, search->nulls))
			geonn_search_store_row(search);
	}
	MemoryContextSwitchTo(former);
}

void
geonn_search_complete(GeonnSearch *search)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);

	geonn_search_store(search, tuplestore_begin_heap(false, false, work_mem));
	take_from_store(&search->store);
	search->all_read = true;
	MemoryContextSwitchTo(former);
}

static void
begin_taking(GeonnSearch *search)
{
	begin_store(search, tuplestore_begin_heap(false, false, work_mem));
	take_from_store(&search->store);
	if (search->shared != NULL)
	{
		geonn_search_attach(search);
		return;
	}
	geonn_search_begin_reading(search, GEONN_READ_IN_PARTS);
	search->all_read = !geonn_search_prepare(search);
}

/*
 * Read as many observations as can be sent without pairs being taken first.
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

/*
 * The next pair of the run as a row.
 */
static inline void
take_run_pair(GeonnSearch *search, Datum *values, bool *nulls)
{
	search->number = search->run.number + search->run.next;
	geonn_result_row_run(&search->row, &search->run, search->prepared.references, values, nulls);
}

/*
 * Take a row that is at hand: one that waits in the store, or a pair that has come.
 */
static bool
take_row(GeonnSearch *search, Datum *values, bool *nulls)
{
	RowStore   *store = &search->store;

	if (store->waiting > 0)
	{
		(void) tuplestore_gettupleslot(store->rows, true, false, store->slot);
		slot_getallattrs(store->slot);
		memcpy(values, store->slot->tts_values, store->descriptor->natts * sizeof(Datum));
		memcpy(nulls, store->slot->tts_isnull, store->descriptor->natts * sizeof(bool));
		search->number = store->is_numbered ? store->numbers[store->taken] : 0;
		store->taken++;
		store->waiting--;
		return true;
	}
	if (search->prepared.client != NULL &&
		geonn_client_take_run(search->prepared.client, &search->run))
	{
		take_run_pair(search, values, nulls);
		return true;
	}
	return geonn_search_take_pair(search, false, values, nulls);
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
	if (!search->store.is_taken)
		begin_taking(search);

	/* read while the ring has places, and else wait for the engine */
	while (!(found = take_row(search, values, nulls)))
	{
		if (!search->all_read && geonn_client_places(search->prepared.client) > 0)
			read_some(search);
		else if ((found = geonn_search_take_pair(search, true, values, nulls)) || search->all_read)
			break;
	}
	MemoryContextSwitchTo(former);
	return found;
}

GeonnReport
geonn_search_report(const GeonnSearch *search)
{
	GeonnReport report = {
		.references_kept = search->prepared.kept,
		.references_named = search->prepared.named,
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
	if (search->prepared.client != NULL)
		report.work = geonn_client_work(search->prepared.client);
	report.unmatched = report.work.unmatched + search->without_candidates;

	/* what has come out of the engine and the store, but for what waits to be taken */
	report.rows = report.work.pairs + search->local_rows - (search->run.end - search->run.next);
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
	if (search->store.is_taken)
		tuplestore_end(search->store.rows);
	MemoryContextDelete(search->context);
}
