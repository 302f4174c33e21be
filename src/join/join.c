/*
 * join.c
 *		A join: two sources of points, a question, and where the pairs go.
 *
 * First the row type is checked against the ids, and the caller's privileges on
 * both sides, so that a statement bound to fail says so before it does any
 * work.  Then the references are read and sealed, or found in the engine, where
 * they are kept and have not changed (join_prepare.c).  At last the observations
 * are read, and pairs go to the result meanwhile.  Without references no
 * observation has a pair; then the observations are read only if the unmatched
 * are kept, or an invalid one is an error.  For clusters the references themselves ask, and no observations are read.
 *
 * observations.c has what becomes of each observation.
 *
 * The first observation that is a shape may come after points, in a column whose type leaves that open.  Then the answers
 * to the points are taken, and the references are prepared once more, as shapes, for this observation and all that follow:
 * for points the answer is the same either way.
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
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "base/compat.h"
#include "base/settings.h"
#include "join/search.h"

/* If the caller takes rows one by one, the search reads this many observations at a time. */
#define ROWS_A_READING	1024

/* ... and so many times fewer if they are shapes: most have fewer arcs, and the ring has places for all of these */
#define ARCS_A_SHAPE	16

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

/* ---- the reading of observations ---- */

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

	if (join->observations != NULL)
		geonn_transform_share(join->observations->transform, search->shared != NULL ? &search->shared->srid : NULL);
	if (join->given != NULL)
		search->reading = geonn_reading_given(join->given, true, invalid, geonn_search_consume_observation, search);
	else if (search->shared != NULL)
		search->reading = geonn_reading_attach(join->observations, invalid,
											   shared_tables(search->shared),
											   geonn_search_consume_observation, search);
	else
		search->reading = geonn_reading_begin(join->observations, invalid, manner,
											  geonn_search_consume_observation, search);
	if (join->given == NULL)
		geonn_reading_go_on_with_shapes(search->reading);
}

/* ---- references ---- */

/*
 * Return whether observations may be read before the references are prepared.  Not if processes search together, because
 * they divide the observations; nor if a watcher is set, because it expects that the engine has the references.
 */
static bool
may_look_ahead(const GeonnSearch *search)
{
	return search->join->given == NULL && search->reading != NULL && search->store != NULL && search->shared == NULL &&
		search->watch == NULL && !search->join->question.assigns && !geonn_has_shapes(search->join->observations);
}

/*
 * Do the observations have to be read?
 */
static bool
needs_observations(const GeonnSearch *search)
{
	const GeonnJoin *join = search->join;

	return geonn_client_references(search->prepared.client) > 0 ||
		join->keep_unmatched || join->question.radii > 0 ||
		(join->invalid == GEONN_INVALID_IS_ERROR && join->given == NULL);
}

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
											 search->references);
	}
	else
	{
		geonn_call_begin(&search->call);
		search->prepared = geonn_join_prepare(join, &search->row, &search->call,
											  may_look_ahead(search) ? geonn_search_look_ahead : NULL, search);
		search->preparing = geonn_milliseconds_since(search->call.begun) - search->spent_reading;
	}
	geonn_search_note_prepared(search);
	if (search->prepared.own != NULL)
		return true;
	if (search->reading != NULL && !join->given_shapes && !question->assigns && question->id_by_value &&
		!geonn_search_counts_nothing(search) &&
		(question->columns & ~(GEONN_COLUMN_EXCLUDED | GEONN_COLUMNS_WEIGHTS | GEONN_COLUMNS_OF_ARCS)) == 0 &&
		(!join->exclude_self || (join->given == NULL && geonn_references_exclude_by_tag(search->prepared.references))))
		geonn_reading_in_blocks(search->reading, geonn_search_consume_observations);
	return needs_observations(search);
}

SharedReferences
geonn_search_references(const GeonnSearch *search)
{
	return (SharedReferences)
	{
		.call = search->call,
		.dataset = geonn_client_dataset(search->prepared.client),
		.has_shapes = geonn_has_shapes(search->join->references),
		.shapes_ask = search->prepared.question.shapes
	};
}

/* ---- rows ---- */

/* Answer all observations in this process, by the references that it knows. */
static void
answer_alone(GeonnSearch *search)
{
	const uint64 *counts;
	struct geonn_finished work;

	search->work.devices = 1;
	search->work.algorithms = 1 << GEONN_ALGORITHM_INDEX;
	geonn_search_take_ahead(search);
	(void) geonn_reading_next(search->reading, 0);
	counts = geonn_reading_counts(search->reading);
	work = (struct geonn_finished)
	{
		.rows = search->waiting,
		.observations = search->answered,
		.unmatched = search->work.unmatched + search->without_candidates,
		.microseconds = (uint64) (geonn_milliseconds_since(search->call.begun) * 1000 + 0.5)
	};
	for (int i = 0; i < POINT_STATUSES; i++)
	{
		work.observations_skipped += i != POINT_VALID ? counts[i] : 0;
		work.references_skipped += i != POINT_VALID ? search->prepared.counts[i] : 0;
	}
	search->prepared.own->note_call(search->prepared.own_state, &work);
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
	if (search->join->question.min_points > 0)
	{
		/* the references ask, so no observations are read */
		search->all_read = true;
		if (prepare(search) && geonn_client_references(search->prepared.client) > 0)
		{
			(void) geonn_cluster_memory_create(search->join->references->title,
											   geonn_client_references(search->prepared.client),
											   search->join->question.thins);
			geonn_client_ask_for_clusters(search->prepared.client);
		}
		return;
	}
	begin_reading(search, GEONN_READ_IN_PARTS);
	search->all_read = !prepare(search);
	if (search->join->question.assigns && !search->all_read)
	{
		instr_time	begun;

		geonn_search_begin_assigning(search);
		INSTR_TIME_SET_CURRENT(begun);
		(void) geonn_reading_next(search->reading, 0);
		search->spent_reading += geonn_milliseconds_since(begun);
		geonn_search_assign(search);
		search->all_read = true;
	}
	if (!search->all_read && search->prepared.own == NULL)
		geonn_search_take_ahead(search);
	if (search->prepared.own != NULL)
	{
		answer_alone(search);
		search->all_read = true;
	}
}

/* Read as many observations as fit into the ring before the caller must take pairs. */
static void
read_some(GeonnSearch *search)
{
	uint64		rows = Min(geonn_client_places(search->prepared.client), ROWS_A_READING);
	instr_time	begun;

	if (search->prepared.question.shapes)
		rows = (rows + ARCS_A_SHAPE - 1) / ARCS_A_SHAPE;
	INSTR_TIME_SET_CURRENT(begun);
	search->all_read = !geonn_reading_next(search->reading, rows);
	search->spent_reading += geonn_milliseconds_since(begun);
	if (!search->all_read)
		return;
	if (search->join->given != NULL && search->join->given->goes_on)
		geonn_client_flush(search->prepared.client);
	else
		geonn_client_finish(search->prepared.client);
	if (search->shared != NULL)
		geonn_shared_search_end(search->shared, geonn_reading_counts(search->reading));
}

/* Send observations as long as the ring has places for them. */
static void
send_some(GeonnSearch *search)
{
	while (!search->all_read && geonn_client_places(search->prepared.client) > 0)
		read_some(search);
}

void
geonn_search_send(GeonnSearch *search)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);

	begin_taking(search);
	send_some(search);
	MemoryContextSwitchTo(former);
}

void
geonn_search_go_on(GeonnSearch *search)
{
	const GivenPoints *given = search->join->given;
	MemoryContext former = MemoryContextSwitchTo(search->context);

	if (search->join->invalid == GEONN_INVALID_IS_ERROR)
		geonn_check_given(given);
	geonn_reading_give(search->reading, given);
	geonn_client_expect(search->prepared.client, given->count);
	search->all_read = !needs_observations(search);
	send_some(search);
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
		else if (!geonn_search_store_pair(search) && search->all_read)
			break;
	}
	MemoryContextSwitchTo(former);
}

/*
 * Wait for the next row: a stored row, or the present pair of search->block.  Returns false if the caller
 * has taken all rows.
 */
static bool
await_row(GeonnSearch *search)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);
	bool		found;

	if (search->store == NULL)
		begin_taking(search);

	/* Read observations as long as the ring has places; otherwise wait for the engine. */
	while (!(found = search->waiting > 0 || geonn_search_take_pair(search, false)))
	{
		if (!search->all_read && geonn_client_places(search->prepared.client) > 0)
			read_some(search);
		else if ((found = geonn_search_take_pair(search, true)) || search->all_read)
			break;
	}
	MemoryContextSwitchTo(former);
	return found;
}

static inline GeonnBlock *
next_pair(GeonnSearch *search)
{
	CHECK_FOR_INTERRUPTS();
	if (search->waiting > 0)
		return NULL;
	if (search->block != NULL && geonn_block_next(search->block))
		return search->block;
	return await_row(search) && search->waiting == 0 ? search->block : NULL;
}

GeonnBlock *
geonn_search_next_pair(GeonnSearch *search)
{
	return next_pair(search);
}

bool
geonn_search_in_blocks(const GeonnSearch *search, int count, BlockColumn *columns)
{
	return !search->prepared.question.unmatched && geonn_result_row_in_blocks(&search->row, count, columns);
}

/*
 * Return a stored row; false: none is.
 */
static bool
take_stored(GeonnSearch *search, Datum *values, bool *nulls)
{
	TupleTableSlot *slot = search->slot;
	int			columns = search->row.descriptor->natts;

	if (search->waiting == 0)
		return false;
	(void) tuplestore_gettupleslot(search->store, true, false, slot);
	slot_getallattrs(slot);
	memcpy(values, slot->tts_values, columns * sizeof(Datum));
	memcpy(nulls, slot->tts_isnull, columns * sizeof(bool));
	search->number = DatumGetUInt64(slot->tts_values[columns]);
	search->waiting--;
	return true;
}

bool
geonn_search_next(GeonnSearch *search, Datum *values, bool *nulls)
{
	if (next_pair(search) == NULL)
		return take_stored(search, values, nulls);
	geonn_search_show_pair(search, values, nulls);
	return true;
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
	int			workers = join->given != NULL ? INT_MAX : geonn_table_workers(tables);
	MemoryContext former;

	if (workers == 0 || bytes_needed(search, shared->processes) > shared->bytes)
		return 0;
	former = MemoryContextSwitchTo(search->context);
	shared->observation_table = join->observations != NULL ? join->observations->relation : InvalidOid;
	shared->reference_table = join->references->relation;
	pg_atomic_init_u32(&shared->srid, 0);
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
		.read_reason = search->prepared.read_reason,
		.kept_bytes = search->prepared.kept_bytes,
		.references_named = search->prepared.named,
		.alone = search->prepared.own != NULL,
		.difference = search->prepared.difference,
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
	memcpy(report.fates, search->prepared.fates, sizeof(report.fates));
	report.references = search->prepared.counts[POINT_VALID];
	report.work = search->prepared.client != NULL ? geonn_client_work(search->prepared.client) : search->work;
	if (search->former != NULL)
		geonn_work_add(&report.work, geonn_client_work(search->former));
	report.unmatched = report.work.unmatched + search->without_candidates;

	/* The rows returned: those from the engine and the store, less the rows that still wait. */
	report.rows = report.work.pairs / geonn_question_pairs_of_radius(&search->prepared.question) + search->local_rows -
		search->waiting;
	if (search->join->question.assigns)
		report.rows -= report.work.unmatched;
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

/* Return the names of a join's sides, or of the only one of clusters. */
static const char *
names_of_sides(const GeonnJoin *join)
{
	if (join->observations == join->references)
		return side_name(join->references);
	return psprintf("%s, %s", side_name(join->observations), side_name(join->references));
}

void
geonn_search_log(const GeonnSearch *search, const GeonnReport *report)
{
	const struct geonn_call_label *label = &search->join->label;
	double		duration;

	/* only the process that began the call writes the message and the line */
	if (search->call.pid != MyProcPid)
		return;
	ereport(DEBUG2,
			(errmsg_internal("%s(%s) has ended", label->function, names_of_sides(search->join)),
			 errdetail_internal("%s", geonn_report_ways_text(report))));
	if (geonn_log_min_duration < 0)
		return;
	duration = geonn_milliseconds_since(search->call.begun);
	if (duration < geonn_log_min_duration)
		return;
	ereport(LOG,
			(errmsg("duration: %.3f ms  %s(%s%s%s): rows=%llu observations=%llu skipped=%llu unmatched=%llu references=%llu%s batches=%llu reading references=%.3f ms building=%.3f ms reading observations=%.3f ms waiting=%.3f ms",
					duration, label->function, names_of_sides(search->join),
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
	static const struct geonn_finished nothing;

	if (search->former != NULL)
		geonn_client_end(search->former, &nothing);
	if (search->asking != NULL)
		geonn_client_end(search->asking, &nothing);
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
