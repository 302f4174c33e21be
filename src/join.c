/*
 * join.c
 *		A join: two sources of points, a question, and where the pairs go.
 *
 * In this order: the row type is checked against the ids, and the caller's
 * privileges on both sides, so that a statement which cannot succeed says so
 * before it does any work; the references are read and sealed; the
 * observations are read, and pairs go to the result while they are.  Where
 * there is no reference there is no pair, and the observations are not read
 * unless they are kept.
 *
 * An observation that can have no neighbour, for its NULLs, its group or its
 * coordinates, is not sent to the engine.  Where the unmatched are kept it goes
 * to the result at once, as a left join's does.
 *
 * All that a call holds (connection, batches, ids) hangs on one memory
 * context of its own, and goes with it at the end, on an error and on a
 * cancellation.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "common/protocol.h"
#include "groups.h"
#include "join.h"
#include "reader.h"
#include "references.h"
#include "sink.h"

/* rows between two resets of the memory that comparing ids and keys uses */
#define ROWS_A_RESET	256

typedef struct Search
{
	const GeonnJoin *join;
	GeonnClient *client;
	GeonnReferences *references;
	GeonnGroups *groups;		/* NULL: there are none */
	bool		identities;		/* some references are left out for their ids */
	GeonnSink	sink;
	MemoryContext row_context;
	uint64		rows;
} Search;

static const PointColumn point_number = {
	.name = "ord",
	.type = INT8OID,
	.typmod = -1,
	.base_type = INT8OID
};

/*
 * Take a pair, if there is one.  Where the engine is ahead nothing waits for as
 * long as there are pairs, so an interrupt is asked for here.
 */
static bool
take_pair(Search *search, bool wait)
{
	GeonnPair	pair;

	CHECK_FOR_INTERRUPTS();
	if (!geonn_client_next_pair(search->client, wait, &pair))
		return false;
	geonn_sink_put(&search->sink, &pair, search->references);
	return true;
}

/*
 * Take the pairs that are there; with wait, at least those of one batch.
 */
static void
drain(Search *search, bool wait)
{
	while (take_pair(search, wait))
		wait = false;
}

static void
take_all(Search *search)
{
	while (take_pair(search, true))
		;
}

static void
begin_row(Search *search)
{
	if (++search->rows % ROWS_A_RESET == 0)
		MemoryContextReset(search->row_context);
}

static void
consume_reference(void *state, const PointRow *row)
{
	Search	   *search = state;
	MemoryContext former;
	int32		group = 0;

	if (row->status != POINT_VALID)
		return;
	begin_row(search);
	former = MemoryContextSwitchTo(search->row_context);
	if (search->groups != NULL)
		group = geonn_groups_add(search->groups, row->by, row->by_is_null);
	if (group != GEONN_NO_GROUP)
		geonn_references_add(search->references, search->client, row, group);
	MemoryContextSwitchTo(former);
}

/*
 * Send an observation, which may have a neighbour.
 */
static void
add_observation(Search *search, const PointRow *row, int32 group)
{
	int32		identity = GEONN_NO_IDENTITY;

	if (search->identities)
		identity = geonn_reference_identity(search->references, row->id);
	while (!geonn_client_has_place(search->client))
		drain(search, true);
	if (geonn_client_add_observation(search->client, row->id, row->latitude, row->longitude,
									 group, identity))
		drain(search, false);
}

static void
consume_observation(void *state, const PointRow *row)
{
	Search	   *search = state;
	MemoryContext former;
	int32		group = GEONN_NO_GROUP;

	begin_row(search);
	former = MemoryContextSwitchTo(search->row_context);
	if (row->status == POINT_VALID)
		group = search->groups == NULL ? 0 :
			geonn_groups_find(search->groups, row->by, row->by_is_null);
	if (group != GEONN_NO_GROUP)
		add_observation(search, row, group);
	else if (search->join->keep_unmatched)
		geonn_sink_put_unmatched(&search->sink, row->id, row->id_is_null,
								 row->latitude_is_null ? NULL : &row->latitude,
								 row->longitude_is_null ? NULL : &row->longitude);
	MemoryContextSwitchTo(former);
}

static PointRow
array_row(const GeonnJoin *join, int number)
{
	PointRow	row = {
		.status = POINT_NULL,
		.id = Int64GetDatum(number + 1),
		.latitude_is_null = join->latitude_is_null[number],
		.longitude_is_null = join->longitude_is_null[number],
		.latitude = join->latitude[number],
		.longitude = join->longitude[number]
	};

	if (!row.latitude_is_null && !row.longitude_is_null)
		row.status = geonn_point_status(row.latitude, row.longitude);
	return row;
}

/*
 * The observations that were given as arrays.
 */
static void
read_arrays(Search *search)
{
	const GeonnJoin *join = search->join;
	uint64		counts[POINT_STATUSES] = {0};

	for (int i = 0; i < join->points; i++)
	{
		PointRow	row = array_row(join, i);

		CHECK_FOR_INTERRUPTS();
		counts[row.status]++;
		consume_observation(search, &row);
	}
	geonn_warn_of_rows("the arrays lat and lon", counts, join->keep_unmatched,
					   "With invalid => 'error' the first of them is named.");
}

/*
 * What arrays hold is known before anything is done.
 */
static void
check_arrays(const GeonnJoin *join)
{
	for (int i = 0; i < join->points; i++)
	{
		PointRow	row = array_row(join, i);

		if (row.status != POINT_VALID && row.status != POINT_NULL)
			geonn_raise_invalid(row.status, row.latitude, row.longitude,
								psprintf("point %d of the arrays", i + 1));
	}
}

static void
open_client(Search *search, GeonnJoin *join, const PointColumn *observation_id)
{
	GeonnQuestion *question = &join->question;

	get_typlenbyval(observation_id->base_type, &question->id_length, &question->id_by_value);
	question->unmatched = join->keep_unmatched;
	question->columns = (search->groups != NULL ? GEONN_COLUMN_GROUP : 0) |
		(search->identities ? GEONN_COLUMN_IDENTITY : 0);
	search->client = geonn_client_open(question);
}

static void
search_all(Search *search, GeonnJoin *join)
{
	geonn_read_points(join->references, join->invalid, consume_reference, search);
	if (geonn_references_seal(search->references, search->client) == 0 &&
		!join->keep_unmatched && !(join->invalid == GEONN_INVALID_IS_ERROR && join->observations != NULL))
		return;
	if (join->observations == NULL)
		read_arrays(search);
	else
		geonn_read_points(join->observations,
						  join->keep_unmatched && join->invalid == GEONN_INVALID_SKIPPED ?
						  GEONN_INVALID_KEPT : join->invalid, consume_observation, search);
	geonn_client_finish(search->client);
	take_all(search);
}

void
geonn_run_join(FunctionCallInfo fcinfo, GeonnJoin *join)
{
	const PointColumn *reference_id = &join->references->columns[COLUMN_ID];
	const PointColumn *observation_id = join->observations == NULL ? &point_number :
		&join->observations->columns[COLUMN_ID];
	Search		search = {.join = join};
	MemoryContext context;
	MemoryContext former;

	/* the result is the caller's, all else this context's */
	geonn_sink_begin(&search.sink, fcinfo, join->observations == NULL ? "ord" : "obs_id",
					 observation_id, reference_id, join->question.metric);
	context = AllocSetContextCreate(CurrentMemoryContext, "geonn join", ALLOCSET_DEFAULT_SIZES);
	former = MemoryContextSwitchTo(context);
	search.row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_DEFAULT_SIZES);

	if (join->observations != NULL)
		geonn_check_readable(join->observations);
	geonn_check_readable(join->references);
	if (join->observations == NULL && join->invalid == GEONN_INVALID_IS_ERROR)
		check_arrays(join);

	if (join->references->by_count > 0)
		search.groups = geonn_groups_create(join->observations, join->references);
	search.identities = join->exclude_self;
	search.references = geonn_references_create(join->references,
												geonn_sink_needs_coordinates(&search.sink),
												join->exclude_self ? join->observations : NULL);
	open_client(&search, join, observation_id);
	search_all(&search, join);

	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}
