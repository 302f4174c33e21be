/*
 * search_shared.c
 *		What a search has before it reads its observations: the references, its own or others'.
 *
 * A search reads its references itself, or follows another one, which has read them.  Several processes
 * can make one search together: one of them prepares it.  That process reads the references and, where the
 * observations are not given, lays out in shared memory how their tables are divided.  All of them, it
 * included, then take part with searches of their own.
 */
#include "postgres.h"

#include "portability/instr_time.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "join/search_state.h"

/* ---- references ---- */

/*
 * Make room for the current row's values, until it is stored.
 */
static void
make_room(GeonnSearch *search)
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
 * Have the references of another search, as geonn_search_prepare() does.
 */
static bool
follow(GeonnSearch *search)
{
	const GeonnJoin *join = search->join;

	make_room(search);
	if (join->invalid == GEONN_INVALID_IS_ERROR)
		geonn_check_given(join->given);
	search->call = search->references->call;
	search->prepared = geonn_join_attach(join, &search->row, &search->call,
										 search->references->dataset);
	return search->references->count > 0 || join->keep_unmatched;
}

bool
geonn_search_prepare(GeonnSearch *search)
{
	const GeonnJoin *join = search->join;
	instr_time	spent;

	if (search->references != NULL)
		return follow(search);
	make_room(search);
	geonn_call_begin(&search->call);
	search->prepared = geonn_join_prepare(join, &search->row, &search->call);
	INSTR_TIME_SET_CURRENT(spent);
	INSTR_TIME_SUBTRACT(spent, search->call.begun);
	search->preparing = INSTR_TIME_GET_MILLISEC(spent);
	if (search->reading != NULL)
		geonn_search_read_in_blocks(search);
	return geonn_client_references(search->prepared.client) > 0 ||
		join->keep_unmatched ||
		(join->invalid == GEONN_INVALID_IS_ERROR && join->given == NULL);
}

SharedReferences
geonn_search_references(GeonnSearch *search)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);

	if (search->prepared.client == NULL)
		(void) geonn_search_prepare(search);
	MemoryContextSwitchTo(former);
	return (SharedReferences)
	{
		.call = search->call,
		.dataset = geonn_client_dataset(search->prepared.client),
		.count = geonn_client_references(search->prepared.client)
	};
}

/* ---- several processes ---- */

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

static Size
bytes_needed(const GeonnSearch *search, int processes)
{
	Size		size = tables_offset(processes);

	return search->join->given != NULL ? size :
		add_size(size, geonn_shared_tables_size(geonn_reading_tables(search->reading),
												search->join->observations->query_columns,
												GetActiveSnapshot()));
}

Size
geonn_search_prepare_shared(GeonnSearch *search, int processes)
{
	MemoryContext former = MemoryContextSwitchTo(search->context);
	Size		size;

	geonn_search_begin_reading(search, GEONN_READ_SHARED);
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
	if (geonn_search_prepare(search) || join->given != NULL)
	{
		if (join->given == NULL)
			geonn_shared_tables_begin(shared_tables(shared), tables,
									  join->observations->query_columns, GetActiveSnapshot());
		shared->references = geonn_search_references(search);
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
geonn_search_tell(GeonnSearch *search, SharedSearch *shared)
{
	uint64		counts[POINT_STATUSES];

	if (shared->references.dataset == 0 ||
		pg_atomic_read_u32(&shared->begun) != pg_atomic_read_u32(&shared->ended))
		return;
	for (int i = 0; i < POINT_STATUSES; i++)
		counts[i] = pg_atomic_read_u64(&shared->counts[i]);
	geonn_tell_of_observations(search->join, counts);
}

void
geonn_search_attach(GeonnSearch *search)
{
	SharedSearch *shared = search->shared;

	if (shared->references.dataset == 0)
	{
		search->all_read = true;
		return;
	}
	geonn_shared_search_begin(shared);
	make_room(search);
	search->call = shared->references.call;
	search->prepared = geonn_join_attach(search->join, &search->row, &search->call,
										 shared->references.dataset);
	geonn_search_attach_reading(search, shared_tables(shared));
}
