/*
 * nearest.c
 *		geonn_nearest(): each observation with its nearest reference.
 *
 * In this order: the columns of both relations are found and the caller's
 * privileges on both checked, so that a statement which cannot succeed says
 * so before it does any work; the references are read and sealed; the
 * observations are read, and pairs go to the result while they are.  Where
 * there is no reference there is no pair, and the observations are not read.
 *
 * All that a call holds (connection, batches, ids) hangs on one memory
 * context of its own, and goes with it at the end, on an error and on a
 * cancellation.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/memutils.h"

#include "client.h"
#include "columns.h"
#include "geonn.h"
#include "reader.h"
#include "sink.h"

PG_FUNCTION_INFO_V1(geonn_nearest);

typedef struct Search
{
	GeonnClient *client;
	GeonnSink	sink;
} Search;

/*
 * Take the pairs that are there; with wait, at least those of one batch.
 */
static void
drain(Search *search, bool wait)
{
	GeonnPair	pair;

	while (geonn_client_next_pair(search->client, wait, &pair))
	{
		geonn_sink_put(&search->sink, &pair);
		wait = false;
	}
}

static void
consume_reference(void *state, int64 id, double latitude, double longitude)
{
	Search	   *search = state;

	geonn_client_add_reference(search->client, id, latitude, longitude);
}

static void
consume_observation(void *state, int64 id, double latitude, double longitude)
{
	Search	   *search = state;

	while (!geonn_client_has_place(search->client))
		drain(search, true);
	if (geonn_client_add_observation(search->client, id, latitude, longitude))
		drain(search, false);
}

static void
take_all(Search *search)
{
	GeonnPair	pair;

	while (geonn_client_next_pair(search->client, true, &pair))
		geonn_sink_put(&search->sink, &pair);
}

static Oid
relation_argument(FunctionCallInfo fcinfo, int number, const char *name)
{
	if (PG_ARGISNULL(number))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" of geonn_nearest is NULL", name),
				 errhint("Name a table or view, as in geonn_nearest('city', 'airport').")));
	return PG_GETARG_OID(number);
}

Datum
geonn_nearest(PG_FUNCTION_ARGS)
{
	Oid			observation_oid = relation_argument(fcinfo, 0, "obs");
	Oid			reference_oid = relation_argument(fcinfo, 1, "ref");
	PointRelation *observations;
	PointRelation *references;
	MemoryContext context;
	MemoryContext former;
	Search		search;

	geonn_sink_begin(&search.sink, fcinfo);

	context = AllocSetContextCreate(CurrentMemoryContext, "geonn_nearest",
									ALLOCSET_DEFAULT_SIZES);
	former = MemoryContextSwitchTo(context);

	observations = geonn_find_columns(observation_oid);
	references = geonn_find_columns(reference_oid);
	geonn_check_readable(observations);
	geonn_check_readable(references);

	search.client = geonn_client_open(geonn_device);
	geonn_read_points(references, consume_reference, &search);
	if (geonn_client_seal(search.client) > 0)
	{
		geonn_read_points(observations, consume_observation, &search);
		geonn_client_finish(search.client);
		take_all(&search);
	}

	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return (Datum) 0;
}
