/*
 * search_shared.c
 *		A search that several processes make together.
 *
 * One process prepares it: it reads the references and lays out, in shared memory, how the tables of
 * the observations are divided.  All of them, it included, then take part with searches of their own.
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "join/search_state.h"

static SharedTables *
shared_tables(SharedSearch *shared)
{
	return (SharedTables *) ((char *) shared + MAXALIGN(sizeof(SharedSearch)));
}

Size
geonn_search_shared_size(GeonnSearch *search)
{
	const GeonnJoin *join = search->join;
	MemoryContext former = MemoryContextSwitchTo(search->context);
	Size		size = MAXALIGN(sizeof(SharedSearch));

	geonn_search_begin_reading(search, GEONN_READ_SHARED);
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
	if (geonn_search_prepare(search))
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

void
geonn_search_attach(GeonnSearch *search)
{
	SharedSearch *shared = search->shared;

	if (shared->dataset == 0)
	{
		search->all_read = true;
		return;
	}
	pg_atomic_fetch_add_u32(&shared->begun, 1);
	geonn_search_make_room(search);
	search->call = shared->call;
	search->prepared = geonn_join_attach(search->join, &search->row, &search->call, shared->dataset);
	geonn_search_attach_reading(search, shared_tables(shared));
}

void
geonn_search_detach(GeonnSearch *search)
{
	SharedSearch *shared = search->shared;

	for (int i = 0; i < POINT_STATUSES; i++)
		pg_atomic_fetch_add_u64(&shared->counts[i],
								(int64) geonn_reading_counts(search->reading)[i]);
	pg_atomic_fetch_add_u32(&shared->ended, 1);
}
