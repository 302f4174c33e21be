/*
 * lateral_search.c
 *		The searches of a lateral join's rounds.
 *
 * The first round's search reads the references, and stays until the end: the later rounds use the same.  These have
 * one search together, which goes on with the points of each, so that its session and batches are there already.  What
 * begins in a subtransaction must not outlast it, so that a round there has a search of its own.
 * If the first round has all rows, this process may answer them, if it knows the references (live/live.c).
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "plan/lateral.h"

GeonnSearch *
geonn_lateral_create_search(const LateralNode *state, const GeonnJoin *join, TupleDesc row_type)
{
	GeonnSearch *search = geonn_search_begin(join, row_type);

	if (state->node.attributes != NULL)
		geonn_search_project(search, state->descriptor, state->node.attributes);
	return search;
}

void
geonn_lateral_end_following_search(JoinNode *node)
{
	if (node->following != NULL)
		geonn_node_end_search(node, node->following, false);
	node->following = NULL;
}

/*
 * Send a search's points.  finds_all: find all rows now.  A rollback to a savepoint must not undo what is still being
 * read, so that is done in a subtransaction, too.
 */
static void
send_search(const LateralNode *state, GeonnSearch *search, bool finds_all)
{
	if (finds_all || (!state->node.keeps_order && GetCurrentSubTransactionId() != state->node.begun_in))
		geonn_search_complete(search);
	else
		geonn_search_send(search);
}

/*
 * Search with the search of the round before, whose session and batches this round uses, too; begin it if there is none.
 */
static void
follow_search(LateralNode *state)
{
	JoinNode   *node = &state->node;
	Round	   *round = state->round;
	MemoryContext former = MemoryContextSwitchTo(node->context);

	if (node->following != NULL && state->searches.following_join.question.k != state->join->question.k)
		geonn_lateral_end_following_search(node);
	round->given.more_follow = true;
	round->given.goes_on = !state->outer.has_ended;
	if (node->following == NULL)
	{
		state->searches.following_join = *state->join;
		state->searches.following_join.given = &round->given;
		node->search = node->following = geonn_lateral_create_search(state, &state->searches.following_join, state->row_type);
		geonn_search_follow(node->following, &state->searches.references);
		geonn_search_send(node->following);
	}
	else
	{
		state->searches.following_join.given = &round->given;
		node->search = node->following;
		geonn_search_go_on(node->following);
	}
	MemoryContextSwitchTo(former);
}

void
geonn_lateral_begin_search(LateralNode *state, bool finds_all)
{
	JoinNode   *node = &state->node;
	Round	   *round = state->round;
	MemoryContext former;

	Assert(round->given.count > 0);
	if (state->searches.has_references && !finds_all && GetCurrentSubTransactionId() == node->begun_in)
	{
		follow_search(state);
		return;
	}
	former = MemoryContextSwitchTo(state->searches.has_references ? round->memory : node->context);
	round->given.goes_on = false;

	/* this copy lives as long as the search that uses it */
	round->join = *state->join;
	round->join.given = &round->given;
	round->given.more_follow = state->searches.has_references || !state->outer.has_ended || state->source->searches_again;
	node->search = geonn_lateral_create_search(state, &round->join, state->row_type);
	if (state->searches.has_references)
		geonn_search_follow(node->search, &state->searches.references);
	else
		node->first = node->search;
	send_search(state, node->search, finds_all);
	if (!state->searches.has_references && round->given.more_follow)
	{
		state->searches.references = geonn_search_references(node->search);
		state->searches.has_references = true;
	}
	MemoryContextSwitchTo(former);
}

/*
 * Send the references by a search without points, where the first one was abandoned.
 */
static void
send_references(LateralNode *state)
{
	JoinNode   *node = &state->node;
	MemoryContext former = MemoryContextSwitchTo(node->context);
	GivenPoints *given = palloc0(sizeof(GivenPoints));
	GeonnJoin  *join = palloc(sizeof(GeonnJoin));

	given->more_follow = true;
	*join = *state->join;
	join->given = given;
	node->first = geonn_lateral_create_search(state, join, state->row_type);
	geonn_search_send(node->first);
	state->searches.references = geonn_search_references(node->first);
	state->searches.has_references = true;
	MemoryContextSwitchTo(former);
}

void
geonn_lateral_begin_second_search(LateralNode *state, const GivenPoints *given, uint32 k, bool finds_all)
{
	MemoryContext former;

	Assert(state->searches.second == NULL && given->count > 0);
	if (!state->searches.has_references)
		send_references(state);
	former = MemoryContextSwitchTo(state->round->memory);
	state->searches.second_given = *given;
	state->searches.second_join = *state->join;
	state->searches.second_join.given = &state->searches.second_given;
	state->searches.second_join.question.k = k;
	state->searches.second = geonn_search_begin(&state->searches.second_join, state->row_type);
	geonn_search_follow(state->searches.second, &state->searches.references);
	send_search(state, state->searches.second, finds_all);
	MemoryContextSwitchTo(former);
}

void
geonn_lateral_end_second_search(LateralNode *state)
{
	if (state->searches.second != NULL)
		geonn_node_end_search(&state->node, state->searches.second, false);
	state->searches.second = NULL;
}

void
geonn_lateral_abandon_searches(LateralNode *state)
{
	JoinNode   *node = &state->node;

	geonn_lateral_end_second_search(state);
	if (node->search != NULL && node->search != node->first && node->search != node->following)
		geonn_node_end_search(node, node->search, false);
	geonn_lateral_end_following_search(node);
	if (node->first != NULL)
		geonn_node_end_search(node, node->first, false);
	node->first = node->search = NULL;
	state->searches.has_references = false;
}
