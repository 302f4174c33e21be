/*
 * search_observations.c
 *		What becomes of each observation of a search.
 *
 * An observation that can have a neighbour goes to the engine.  Where the ring has no place for it,
 * pairs are taken first.  One that can have none, for its NULLs, its group, its limits or its
 * coordinates, stays here.  Where the unmatched are kept its row is stored at once.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "join/search_state.h"

/* the room that the array of numbers has at first */
#define FIRST_ROOM	1024

/* how many ids are converted to excluded tags at a time */
#define EXCLUDED_AT_ONCE	512

InvalidPolicy
geonn_observations_policy(const GeonnJoin *join)
{
	return join->keep_unmatched && join->invalid == GEONN_INVALID_SKIPPED ? GEONN_INVALID_KEPT :
		join->invalid;
}

static void
put_number(RowStore *store, uint64 number)
{
	uint64		place = store->taken + store->waiting;

	if (place >= store->room)
	{
		store->room = Max(store->room * 2, FIRST_ROOM);
		store->numbers = store->numbers == NULL ?
			MemoryContextAllocHuge(store->context, store->room * sizeof(uint64)) :
			repalloc_huge(store->numbers, store->room * sizeof(uint64));
	}
	store->numbers[place] = number;
}

void
geonn_search_store_row(GeonnSearch *search)
{
	RowStore   *store = &search->store;

	/* all rows put before have been taken */
	if (store->is_taken && store->waiting == 0)
	{
		tuplestore_clear(store->rows);
		store->taken = 0;
	}
	if (store->is_numbered)
		put_number(store, search->number);
	tuplestore_putvalues(store->rows, store->descriptor, search->values, search->nulls);
	store->waiting++;
}

bool
geonn_search_take_pair(GeonnSearch *search, bool wait, Datum *values, bool *nulls)
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
drain(GeonnSearch *search, bool wait)
{
	while (geonn_search_take_pair(search, wait, search->values, search->nulls))
	{
		geonn_search_store_row(search);
		wait = false;
	}
}

/*
 * An observation's id, as its row has it.
 */
static Datum
result_id(const GeonnSearch *search, const PointRow *row)
{
	return search->join->given == NULL ? row->id :
		Int64GetDatum((int64) geonn_reading_rows(search->reading));
}

static void
add_observation(GeonnSearch *search, const PointRow *row, int32 group)
{
	GeonnClient *client = search->prepared.client;
	GeonnPointColumns columns = {
		.group = group,
		.limits = row->limits
	};

	if (search->join->exclude_self)
		geonn_references_excluded(search->prepared.references, row->id, &columns.excluded_first,
								  &columns.excluded_last);
	while (geonn_client_places(client) == 0)
		drain(search, true);
	if (geonn_client_add_observation(client, result_id(search, row), row->latitude,
									 row->longitude, &columns) &&
		!search->store.is_taken)
		drain(search, false);
}

/*
 * Send observations that have nothing but their coordinates and, under exclude_self, their ids.
 */
static void
add_observations(GeonnSearch *search, uint32 rows, const Datum *ids, const double *latitudes,
				 const double *longitudes)
{
	GeonnClient *client = search->prepared.client;
	bool		excludes = search->join->exclude_self;
	int64		excluded[EXCLUDED_AT_ONCE];

	while (rows > 0)
	{
		uint32		places;

		while ((places = geonn_client_places(client)) == 0)
			drain(search, true);
		places = Min(places, rows);
		if (excludes)
		{
			places = Min(places, EXCLUDED_AT_ONCE);
			geonn_references_excluded_tags(search->prepared.references, places, ids, excluded);
		}
		if (geonn_client_add_observations(client, places, ids, latitudes, longitudes, excluded) &&
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

static void
consume_observation(void *state, const PointRow *row)
{
	GeonnSearch *search = state;
	GeonnGroups *groups = search->prepared.groups;
	MemoryContext former = MemoryContextSwitchTo(search->row_context);
	int32		group = GEONN_NO_GROUP;

	MemoryContextReset(search->row_context);
	if (row->status == POINT_VALID && !geonn_row_is_limited_to_none(row))
		group = groups == NULL ? 0 : geonn_groups_find(groups, row->by, row->by_is_null);
	if (search->watch == NULL || search->watch(search->watch_state, row, group != GEONN_NO_GROUP))
	{
		if (group != GEONN_NO_GROUP)
			add_observation(search, row, group);
		else if (row->status == POINT_VALID)
			search->without_candidates++;
		if (group == GEONN_NO_GROUP && search->join->keep_unmatched)
		{
			search->local_rows++;
			search->number = GEONN_NOT_SENT;
			geonn_result_row_unmatched(&search->row, result_id(search, row), row->id_is_null,
									   row->latitude_is_null ? NULL : &row->latitude,
									   row->longitude_is_null ? NULL : &row->longitude,
									   search->values, search->nulls);
			geonn_search_store_row(search);
		}
	}
	MemoryContextSwitchTo(former);
}

void
geonn_search_read_in_blocks(GeonnSearch *search)
{
	const GeonnQuestion *question = &search->prepared.question;

	if (question->id_by_value && (question->columns & ~GEONN_COLUMN_EXCLUDED) == 0 &&
		(!search->join->exclude_self ||
		 geonn_references_exclude_by_tag(search->prepared.references)))
		geonn_reading_in_blocks(search->reading, consume_observations);
}

void
geonn_search_begin_reading(GeonnSearch *search, ReadingManner manner)
{
	const GeonnJoin *join = search->join;
	InvalidPolicy invalid = geonn_observations_policy(join);

	search->reading = join->given != NULL ?
		geonn_reading_given(join->given, invalid, consume_observation, search) :
		geonn_reading_begin(join->observations, invalid, manner, consume_observation, search);
}

void
geonn_search_attach_reading(GeonnSearch *search, SharedTables *tables)
{
	const GeonnJoin *join = search->join;

	search->reading = geonn_reading_attach(join->observations, geonn_observations_policy(join), tables,
										   consume_observation, search);
	geonn_search_read_in_blocks(search);
}
