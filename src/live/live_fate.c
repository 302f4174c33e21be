/*
 * live_fate.c
 *		References that this process knows: whether a call's observations are answered by them, and how.
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"
#include "access/xact.h"

#include "base/settings.h"
#include "live/live_calls.h"

/* how a call's observations are answered */
typedef struct LiveAnswers
{
	LiveReferences *references;
	GeonnQuestion question;
	const GeonnReferences *excluding;	/* as in LiveSearch */
	LiveNeighbour *found;		/* [question.k] */
	LiveSearch	search;			/* the search for the neighbours of the present observation */
} LiveAnswers;

/* ---- answers ---- */

/*
 * Implements OwnAnswers.find.
 */
static uint32
find(void *state, const PointRow *row, int32 group)
{
	LiveAnswers *answers = state;
	const LiveTable *table = geonn_live_table(answers->references);
	const LiveIds *ids = geonn_live_table_ids(table);

	geonn_live_search_begin(&answers->search, &answers->question, row->latitude, row->longitude,
							geonn_live_groups(answers->references) != NULL ? group : LIVE_ALL_GROUPS,
							ids->type.is_integer ? NULL : ids, answers->found);
	if (answers->excluding != NULL)
		geonn_live_search_exclude(&answers->search, answers->excluding, row->id);
	geonn_live_table_search(table, &answers->search);
	return geonn_live_search_end(&answers->search);
}

/*
 * Implements OwnAnswers.pair.
 */
static void
set_pair(const void *state, uint32 number, GeonnBlock *block)
{
	static const double no_fraction = NAN;
	const LiveAnswers *answers = state;
	const LiveNeighbour *neighbour = geonn_live_search_neighbour(&answers->search, number);

	block->tag = &neighbour->id;
	block->distance = &neighbour->distance;
	block->place_latitude = &neighbour->latitude;
	block->place_longitude = &neighbour->longitude;
	block->place_fraction = &no_fraction;
}

/*
 * Implements OwnAnswers.note_call.
 */
static void
note_call(const void *state, const struct geonn_finished *work)
{
	const LiveAnswers *answers = state;

	geonn_live_note_call(answers->references, work);
}

static const OwnAnswers own_answers = {
	.find = find,
	.pair = set_pair,
	.note_call = note_call
};

static Datum
lent_id(const void *ids, int64 tag)
{
	return geonn_live_id_value(ids, tag);
}

/* Have this process answer the observations, by the references that it knows. */
static void
use_live_references(const GeonnJoin *join, LiveReferences *references, PreparedJoin *prepared)
{
	const LiveTable *table = geonn_live_table(references);
	LiveAnswers *answers = palloc0(sizeof(LiveAnswers));

	prepared->own = &own_answers;
	prepared->own_state = answers;
	prepared->difference = geonn_live_table_difference(table);
	prepared->kept = true;
	memcpy(prepared->counts, geonn_live_table_counts(table), sizeof(prepared->counts));
	prepared->references = geonn_references_lend(join->references, lent_id, geonn_live_table_ids(table),
												 join->exclude_self ? join->observations : NULL);
	prepared->groups = geonn_live_groups(references);
	if (prepared->groups != NULL)
		geonn_groups_check(join->observations, join->references);
	answers->references = references;
	answers->question = prepared->question;
	answers->excluding = join->exclude_self ? prepared->references : NULL;
	answers->found = palloc0(prepared->question.k * sizeof(LiveNeighbour));
	geonn_tell_of_references(join, prepared->counts);
}

/* ---- fates ---- */

/*
 * Return why this process cannot answer the question, even if it knows the references and the observations are few.
 * NULL: it may be able to.
 */
static const char *
why_not_here(const JoinPreparation *preparation)
{
	const GeonnJoin *join = preparation->join;
	const GeonnQuestion *question = &preparation->prepared->question;
	PageIdType	type;

	if (geonn_kept_memory_limit == 0)
		return "geonn.kept_memory_limit is 0";
	if (preparation->table == NULL || join->given_references != NULL)
		return "they are not the rows of one table, read by this call";
	if (question->min_points > 0)
		return "the question is for clusters, or thins the references out";
	if (question->assigns)
		return "the question assigns all observations together";
	if (join->given != NULL ? join->given->more_follow || join->given->count > POINTS_ALONE :
		preparation->are_few == NULL)
		return "the observations are many, or shared, or watched";
	if ((question->columns & ~(GEONN_COLUMN_GROUP | GEONN_COLUMN_EXCLUDED)) != 0 || question->radii != 0 ||
		question->metric != GEONN_METRIC_SPHERE)
		return "the question has limits, parties, weights, radii, shapes or another metric";
	if (question->device == GEONN_DEVICE_CUDA || question->algorithm == GEONN_ALGORITHM_BRUTE)
		return "a GPU or brute force was asked for";
	if (IsolationIsSerializable() || IsInParallelMode())
		return "the transaction is serializable, or has parallel workers";
	return geonn_page_id_type(join->references, &type) ? NULL : "their ids are of a type that a base cannot have";
}

/* Return whether this process knows the references.  make: as for geonn_live_look(). */
static bool
knows_references(const JoinPreparation *preparation, bool make)
{
	return geonn_live_look(preparation->known, preparation->join->references, preparation->table, make) &&
		(preparation->prepared->question.k > 0 || geonn_live_has_room_for_all(preparation->known));
}

/* Return whether the observations are few, and this process knows the references for them. */
static bool
knows_for_few_rows(JoinPreparation *preparation)
{
	const GeonnJoin *join = preparation->join;
	bool		few;

	if (!geonn_live_is_likely(preparation->known, join->references))
		return false;
	few = preparation->are_few(preparation->state);

	/*
	 * Look the table up again: functions that read the rows may have had this process forget it, or note
	 * another call of it.
	 */
	preparation->known = geonn_live_find(join->references, preparation->table, &preparation->message);
	return few && preparation->known != NULL && knows_references(preparation, true);
}

static const char *
prepare_live(JoinPreparation *preparation)
{
	const char *reason = why_not_here(preparation);

	if (reason != NULL)
		return reason;
	preparation->known = geonn_live_find(preparation->join->references, preparation->table, &preparation->message);
	if (preparation->known == NULL)
		return "the pages of their table do not show its changes";
	if (preparation->join->given == NULL)
		return "the engine is asked before rows are counted";
	if (!knows_references(preparation, false))
		return "this process has no base of them yet, or not enough room";
	use_live_references(preparation->join, preparation->known, preparation->prepared);
	return NULL;
}

static const char *
prepare_counted(JoinPreparation *preparation)
{
	PreparedJoin *prepared = preparation->prepared;
	bool		is_known;

	if (preparation->known == NULL)
		return "this process cannot know them";
	if (preparation->join->given != NULL && preparation->label_count > 0)
		return "the engine can keep them";

	/* End this session before rows are counted: other sessions that want the same dataset would wait for it. */
	if (prepared->client != NULL)
		geonn_live_end_client(prepared->client, &preparation->message);
	prepared->client = NULL;
	is_known = preparation->join->given != NULL ? knows_references(preparation, true) : knows_for_few_rows(preparation);
	if (!is_known)
		return "the observations are many, or this process has no base of them";
	use_live_references(preparation->join, preparation->known, prepared);
	return NULL;
}

/*
 * Implements ReferenceFate.note_engine.
 */
static void
note_engine(const JoinPreparation *preparation, double milliseconds)
{
	if (preparation->known != NULL)
		geonn_live_note_engine(preparation->known, preparation->join->given != NULL ? milliseconds : 0,
							   preparation->prepared->counts[POINT_VALID]);
}

const ReferenceFate geonn_live_fate = {
	.name = "live",
	.prepare = prepare_live,
	.note_engine = note_engine,
	.count_calls = geonn_live_report
};

const ReferenceFate geonn_counted_fate = {
	.name = "counted",
	.prepare = prepare_counted
};
