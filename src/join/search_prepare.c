/*
 * search_prepare.c
 *		What a search has before it reads its observations: the references in the engine.
 *
 * A search reads its references itself, or follows another one, which has read them.
 */
#include "postgres.h"

#include "portability/instr_time.h"
#include "utils/memutils.h"

#include "join/search_state.h"

void
geonn_search_make_room(GeonnSearch *search)
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

	geonn_search_make_room(search);
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
	geonn_search_make_room(search);
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
