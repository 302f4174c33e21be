/*
 * session_search.c
 *		Checks a session's searches, passes them to the scheduler, and answers
 *		them.
 */
#include "engine/server/session.h"

#include <string.h>

#include "common/assertion.h"
#include "engine/search/backends.h"
#include "engine/search/ways.h"
#include "engine/server/datasets.h"

#define SEARCH_FLAGS (GEONN_SEARCH_TIES | GEONN_SEARCH_RESUME | GEONN_SEARCH_EXTREMES | GEONN_SEARCH_PLACES | \
					  GEONN_SEARCH_SHAPES | GEONN_SEARCH_THIN)

static void
send_results(struct session *session, const struct search *search)
{
	struct geonn_results results = {
		.slot = search->slot,
		.first = search->first,
		.observations = search->answered,
		.pairs = search->pairs,
		.flags = (search->one_each ? GEONN_RESULTS_ONE_EACH : 0) |
		(search->cutoff.present ? GEONN_RESULTS_PARTIAL : 0),
		.device = search->device,
		.algorithm = search->algorithm,
		.build_microseconds = search->build_microseconds,
		.cpu_reason = search_cpu_reason(search, session->choice)
	};
	uint64_t	counts = search->one_each ? 0 : search->answered + search->cutoff.present;
	uint64_t	doubles = !search->question.places ? 1 : search->shapes != NULL ? 6 : 4;

	memcpy(results.ways, search->ways, sizeof(results.ways));
	geonn_assert(search->answered > 0 || search->cutoff.present);
	geonn_assert(search->answered == 0 || !search->cutoff.present);
	geonn_assert(search->answered <= search->rows - search->first && search->pairs <= search->columns.room);
	geonn_assert(!search->one_each || search->pairs == search->answered * (search->question.assigns ? 2 : 1));
	call_add(session->call, &(struct geonn_statistics) {
		.observations = search->answered,
		.bytes = search->pairs * (sizeof(int64_t) + doubles * sizeof(double)) +
		counts * sizeof(uint32_t)
	});
	session_send(session, GEONN_RESULTS, &results, -1);
}

static bool
is_same_question(const struct question *a, const struct question *b)
{
	return a->k == b->k && a->ties == b->ties && a->radii == b->radii && a->extremes == b->extremes &&
		a->places == b->places && a->algorithm == b->algorithm && a->max_distance == b->max_distance &&
		a->min_points == b->min_points && a->thins == b->thins && a->assigns == b->assigns && a->capacity == b->capacity;
}

/* Return whether a request with radii is a count as protocol_search.h describes it. */
static bool
is_count(const struct geonn_search *request)
{
	if (request->radii > GEONN_RADII_MAX || request->k != 0 ||
		(request->flags & ~(GEONN_SEARCH_EXTREMES | GEONN_SEARCH_SHAPES)) != 0)
		return false;
	for (uint32_t i = 0; i < request->radii; i++)
		if (!(request->radius[i] >= 0) || (i > 0 && !(request->radius[i] > request->radius[i - 1])))
			return false;
	return true;
}

/* Return whether a request with min_points asks for clusters, or for a thinning, as protocol_search.h describes them. */
static bool
asks_for_clusters(const struct geonn_search *request, const struct dataset *dataset)
{
	bool		thins = request->flags == GEONN_SEARCH_THIN && request->min_points == 1;

	return request->k == 0 && request->radii == 0 && (thins || request->flags == 0) && request->rows == dataset->count &&
		(dataset->columns & ~(GEONN_COLUMN_GROUP | GEONN_COLUMNS_WINDOWS | (thins ? GEONN_COLUMN_WEIGHT : 0))) == 0;
}

/*
 * Return whether a request with a dataset of observations assigns them as protocol_search.h describes it.  From the first such
 * request on the session holds the dataset.
 */
static bool
assigns(struct session *session, const struct geonn_search *request)
{
	const struct dataset *dataset = session->dataset;
	const uint32_t kept = GEONN_COLUMN_GROUP | GEONN_COLUMN_RADIUS | GEONN_COLUMNS_WINDOWS | GEONN_COLUMNS_PARTIES;

	if (session->asking == NULL)
		session->asking = datasets_attach(request->asking);
	return session->slots[request->slot].columns.room >= 2 && session->asking != NULL &&
		session->asking->id == request->asking && request->k == 0 && request->radii == 0 && request->min_points == 0 &&
		request->flags == 0 && request->rows == session->asking->count && dataset->count > 0 &&
		session->asking->metric == dataset->metric && (dataset->columns & ~(kept | GEONN_COLUMN_WEIGHT)) == 0 &&
		session->asking->columns == (dataset->columns & kept);
}

/* Return whether a client may ask this question.  If not, end the session. */
static bool
check_question(struct session *session, const struct geonn_search *request,
			   const struct question *question)
{
	const struct search *last = &session->slots[request->slot].search;

	if (request->first >= request->rows)
		session_fail_protocol(session, "a search that begins behind its last row");
	else if (request->k > GEONN_K_MAX)
		session_fail_protocol(session, "a search for too many neighbours");
	else if (!(request->max_distance >= 0))
		session_fail_protocol(session, "a max_distance that is negative or not a number");
	else if (request->algorithm > GEONN_ALGORITHM_BRUTE ||
			 request->flags & ~SEARCH_FLAGS ||
			 (request->radii == 0 && request->flags & GEONN_SEARCH_EXTREMES) ||
			 (request->min_points == 0 && request->flags & GEONN_SEARCH_THIN))
		session_fail_protocol(session, "unknown algorithm or flags");
	else if (request->min_points > 0 && !asks_for_clusters(request, session->dataset))
		session_fail_protocol(session, "clusters with another question, or of other references than all");
	else if (request->asking > 0 && !assigns(session, request))
		session_fail_protocol(session, "an assignment with another question, or of other observations than all of one dataset");
	else if (request->radii > 0 && !is_count(request))
		session_fail_protocol(session, "a count with too many radii, or with radii that do not rise");
	else if (request->flags & GEONN_SEARCH_RESUME &&
			 !(last->cutoff.present && last->first == request->first &&
			   is_same_question(question, &last->question)))
		session_fail_protocol(session, "a resumed search without partial results before it");
	else if (request->flags & GEONN_SEARCH_PLACES && (request->radii > 0 || !(session->dataset->columns & GEONN_COLUMN_ARC)))
		session_fail_protocol(session, "a count, or a search of points, for places");
	else if (request->flags & GEONN_SEARCH_SHAPES && !(session->dataset->columns & GEONN_COLUMN_ARC))
		session_fail_protocol(session, "shapes that ask for points");
	else
		return true;
	return false;
}

/*
 * See that a slot has the shapes of a request, if the observations are shapes, or a dataset for them, when the first one is
 * asked about.  *observations becomes the number of the observations.  If that fails, end the session.
 */
static bool
has_shapes(struct session *session, struct slot *slot, const struct geonn_search *request, uint32_t *observations)
{
	bool		goes_on = request->first > 0 || request->flags & GEONN_SEARCH_RESUME;
	uint32_t	last;			/* the number of the last shape: the client can change the batch meanwhile */
	struct failure failure;

	if (!(request->flags & GEONN_SEARCH_SHAPES) || !goes_on)
		slot_forget_shapes(slot);
	if (!(request->flags & GEONN_SEARCH_SHAPES))
		return true;
	if (!goes_on && !slot_begin_shapes(slot, GEONN_COLUMN_ARC, &failure))
	{
		session_fail(session, &failure);
		return false;
	}
	if (goes_on && (slot->shapes == NULL || slot->shapes->count != request->rows))
	{
		session_fail_protocol(session, "a search that goes on with other shapes");
		return false;
	}
	last = (uint32_t) (goes_on ? slot->shapes->shape : (const volatile int32_t *) slot->columns.shape)[request->rows - 1];
	*observations = last + 1;
	if (last < request->rows && request->first <= last)
		return true;
	session_fail_protocol(session, "a search that begins behind its last shape");
	return false;
}

/*
 * See that a slot has an empty dataset, to which the CPU attaches the clusters, or the assignment, that a search is for; a search
 * that goes on finds those of the one before.  If memory is short, end the session.
 */
static bool
has_answer(struct session *session, struct slot *slot, const struct geonn_search *request, const struct question *question)
{
	struct failure failure;

	if (request->first > 0 && slot->shapes != NULL && is_same_question(question, &slot->search.question))
		return true;
	slot_forget_shapes(slot);
	if (slot_begin_shapes(slot, 0, &failure))
		return true;
	session_fail(session, &failure);
	return false;
}

/* Have the references of a dataset be the observations: they take the place of a batch's rows. */
static void
observe_references(struct geonn_batch_columns *columns, const struct dataset *dataset)
{
	int64_t    *tag = columns->tag;

	for (int i = 0; i < DATASET_COLUMNS; i++)
	{
		void	   *column = dataset_column_of(dataset, i);

		memcpy((char *) columns + dataset_columns[i].batch_member, &column, sizeof(column));
	}
	columns->tag = tag;			/* answers go there */
}

/* Return the question of a request, without the radii of a count, which are not checked yet. */
static struct question
question_of(const struct geonn_search *request)
{
	return (struct question) {
		.k = request->k,
		.ties = (request->flags & GEONN_SEARCH_TIES) != 0,
		.places = (request->flags & GEONN_SEARCH_PLACES) != 0,
		/* there are no other clusters or assignments than those by the index */
		.algorithm = request->min_points > 0 || request->asking > 0 ? GEONN_ALGORITHM_INDEX :
			(enum geonn_algorithm) request->algorithm,
		.max_distance = request->max_distance,
		.min_points = request->min_points,
		.thins = (request->flags & GEONN_SEARCH_THIN) != 0,
		.assigns = request->asking > 0,
		.capacity = request->capacity
	};
}

void
session_search(struct session *session, const union geonn_message *message)
{
	const struct geonn_search *request = &message->search;
	bool		has_rows = request->min_points == 0 && request->asking == 0;
	struct slot *slot = session_filled_slot(session, request->slot, has_rows ? request->rows : 1);
	struct search *search;
	struct cutoff cutoff = {0};
	double		pairs_each = 0.0;
	uint32_t	observations = request->rows;
	struct question question = question_of(request);

	if (slot == NULL || !check_question(session, request, &question) ||
		!(has_rows ? has_shapes(session, slot, request, &observations) : has_answer(session, slot, request, &question)))
		return;
	geonn_assert(session->dataset->sealed);
	if (request->radii > 0)
	{
		question.radii = request->radii;
		question.max_distance = request->radius[request->radii - 1];
		question.extremes = (request->flags & GEONN_SEARCH_EXTREMES) != 0;
		memcpy(question.radius, request->radius, sizeof(question.radius));
		question.algorithm = GEONN_ALGORITHM_INDEX; /* no other counts */
	}
	search = &slot->search;
	if (request->flags & GEONN_SEARCH_RESUME)
		cutoff = search->cutoff;
	if (is_same_question(&question, &search->question))
		pairs_each = search->answered > 0 ? (double) search->pairs / search->answered :
			search->pairs_each;
	memset(search, 0, sizeof(*search));
	search->session = session;
	search->slot = request->slot;
	search->dataset = session->dataset;
	search->question = question;
	search->columns = slot->columns;
	search->asking = question.assigns ? session->asking : NULL;
	if (!has_rows)
		observe_references(&search->columns, question.assigns ? session->asking : search->dataset);
	search->first = request->first;
	search->rows = observations;
	search->shapes = slot->shapes;
	search->arcs = request->flags & GEONN_SEARCH_SHAPES ? request->rows : 0;
	search->cutoff = slot->cutoff = cutoff;
	search->choice = search_choice(search, session->choice);
	search->pairs_each = pairs_each;
	search->cancelled = &session->cancelled;
	search->call = session->call;
	if (request->first == 0 && !(request->flags & GEONN_SEARCH_RESUME))
		call_add(session->call, &(struct geonn_statistics) {
			.batches = 1,
			/* observations have no tag */
			.bytes = has_rows ? request->rows * (dataset_row_bytes(session->dataset) - sizeof(int64_t)) : 0
		});

	if (session->dataset->count == 0)
	{
		/* The dataset is empty: no observation has a neighbour, and devices get no empty datasets. */
		search->answered = search->rows - search->first;
		memset(slot->columns.count + search->first, 0,
			   search->answered * sizeof(*slot->columns.count));
		slot_forget_shapes(slot);
		send_results(session, search);
		return;
	}
	search->algorithm = question.algorithm;
	search->stays = session->dataset->labelled;
	slot->busy = true;
	session->under_way++;
	scheduler_submit(&session->queue, search);
}

/*
 * Submit a search again for which memory was short, on the host or on a GPU, if a kept dataset can
 * be dropped to free some.  The device discards that dataset before it starts the search.
 */
static bool
search_again(struct session *session, struct search *search)
{
	if ((search->failure.code != GEONN_ERROR_MEMORY &&
		 search->failure.code != GEONN_ERROR_LIMIT) ||
		!(datasets_make_room(&search->failure) ||
		  (!search->wants_memory && scheduler_is_discarding())))
		return false;
	search->wants_memory = true;
	search->answered = 0;
	search->pairs = 0;
	search->one_each = false;
	search->device_state = 0;
	search->algorithm = search->question.algorithm;
	search->cutoff = session->slots[search->slot].cutoff;
	search->choice = search_choice(search, session->choice);
	search->left = GEONN_CPU_NONE;
	memset(search->ways, 0, sizeof(search->ways));
	search->failed = false;
	call_add(session->call, &(struct geonn_statistics) {.fallbacks = 1});
	scheduler_submit(&session->queue, search);
	return true;
}

void
session_search_finished(struct search *search)
{
	struct session *session = search->session;

	geonn_assert(search == &session->slots[search->slot].search);
	geonn_assert(session->slots[search->slot].busy && session->under_way > 0);
	if (search->failed && session->state != SESSION_ENDED && search_again(session, search))
		return;
	session->slots[search->slot].busy = false;
	session->under_way--;
	datasets_account(search->dataset);
	call_move(session->call, &search->phase, GEONN_PHASE_OBSERVATIONS);
	if (session->state == SESSION_ENDED)
		return;
	if (search->failed)
	{
		session_fail(session, &search->failure);
		return;
	}
	if (backends_fell_back(search))
		call_add(session->call, &(struct geonn_statistics) {.fallbacks = 1});
	send_results(session, search);
	if (search->first + search->answered == search->rows)
		slot_forget_shapes(&session->slots[search->slot]);
}
