/*
 * arcs_turns_test.c
 *		A shape that asks for very many pairs is answered turn by turn to the end: its search, the measuring of what was found,
 *		the choice, the order and the writing of its pairs each go on in a next turn, with the same bytes as in one.  While it
 *		is copied and prepared, others work.
 *
 * Usage: arcs_turns_test [SEED].  Turns of 0 ms end at each look at the clock: their number says how often a kind of work
 * looks at it.
 *
 * rooms: engine/cpu engine/cpu/arcs
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/thread_pool.h"
#include "engine/cpu/arcs/arcs_probe.h"
#include "engine/cpu/turn.h"
#include "../lib/pages.h"
#include "../lib/random.h"
#include "../lib/verdict.h"

/* what a turn has left is known to the CPU's code alone, whose functions the test does not call */
#pragma GCC diagnostic ignored "-Wunused-function"
#include "engine/cpu/arcs/arcs_found.h"

/* as many sides as have a turn for themselves, in a ring of this radius, in degrees */
#define SIDES 70000
#define RADIUS 20.0

/* so many are copied and prepared in dozens of pieces; others work between these at least so often, on a busy host */
#define MANY_SIDES (1 << 20)
#define SEATS_LEAST 5

/* references are points: a half in the ring, and the others nearer than max_distance */
#define POINTS 60000
#define MAX_DISTANCE 200.0

/* after so many pairs, at most, each kind of work looks at the clock */
#define LOOK 16384

/* what turns have left to do */
enum
{
	SEARCHING,
	MEASURING,
	CHOOSING,
	ORDERING,
	WRITING,
	KINDS
};

static const char *const names[KINDS] = {"searching", "measuring", "choosing", "ordering", "writing"};

static struct device machine = {.operations = &cpu_device_operations};
static atomic_bool cancelled;
static struct dataset *references;

/* a search for the one shape, and in how many turns it was answered */
struct asked
{
	struct search search;
	uint32_t	turns[KINDS];
	uint32_t	all_turns;
};

static void
add_row(const struct geonn_batch_columns *batch, uint32_t row, struct geonn_vector from, struct geonn_vector to, int32_t shape,
		int32_t polygon)
{
	batch->latitude[row] = from.x;
	batch->longitude[row] = from.y;
	batch->end_latitude[row] = to.x;
	batch->end_longitude[row] = to.y;
	batch->shape[row] = shape;
	batch->polygon[row] = polygon;
}

/* A place on a ring around 0, 0, by its turn from 0 to 1: degrees of latitude and longitude. */
static struct geonn_vector
on_ring(double radius, double turn)
{
	return (struct geonn_vector) {radius * sin(2.0 * M_PI * turn), radius * cos(2.0 * M_PI * turn), 0.0};
}

static struct geonn_batch_columns
make_batch(uint32_t rows, uint32_t room)
{
	struct geonn_batch_columns batch;
	size_t		bytes = geonn_batch_layout(NULL, rows, room, GEONN_COLUMN_ARC, &batch);

	geonn_batch_layout(allocate_pages(bytes), rows, room, GEONN_COLUMN_ARC, &batch);
	return batch;
}

static bool
make_references(void)
{
	struct geonn_batch_columns batch = make_batch(POINTS, 1);
	struct failure failure;

	for (uint32_t i = 0; i < POINTS; i++)
	{
		double		radius = i % 2 ? RADIUS * 0.99 * sqrt(random_between(0.0, 1.0)) : RADIUS + random_between(0.0, 0.001);
		struct geonn_vector place = on_ring(radius, random_between(0.0, 1.0));

		add_row(&batch, i, place, place, (int32_t) i, 0);
		batch.tag[i] = (int64_t) random_bits();
	}
	references = dataset_create(1, GEONN_METRIC_SPHERE, GEONN_COLUMN_ARC);
	references->sealed = dataset_append(references, &batch, POINTS, &failure) && dataset_check_end(references, &failure);
	free(batch.latitude);
	return references->sealed;
}

/* Note which kind of work a turn has left. */
static void
note_left(struct asked *asked)
{
	const struct dataset *shapes = asked->search.shapes;
	const struct cpu_probes_left *left;

	if (shapes->built[CPU_NUMBER] == NULL)
		return;
	left = &cpu_turn_probes(&asked->search)->left;
	asked->all_turns++;
	if (left->pair != NULL)
		asked->turns[WRITING]++;
	else if (left->work == NULL)
		return;
	else if (left->work->progress.stage < STAGE_END)
		asked->turns[SEARCHING]++;
	else if (left->work->maybe_seen < left->work->maybe_count)
		asked->turns[MEASURING]++;
	else if (left->work->chosen_seen < left->work->maybe_left)
		asked->turns[CHOOSING]++;
	else
		asked->turns[ORDERING]++;
}

/* Begin to ask for all references within the distance of a ring of so many sides. */
static void
begin(struct asked *asked, uint32_t sides, uint32_t room, bool places)
{
	struct search *search = &asked->search;

	*asked = (struct asked) {
		.search = {
			.dataset = references,
			.shapes = dataset_create(0, GEONN_METRIC_SPHERE, GEONN_COLUMN_ARC),
			.question = {.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = MAX_DISTANCE,.places = places},
			.algorithm = GEONN_ALGORITHM_INDEX,
			.rows = 1,
			.arcs = sides,
			.cancelled = &cancelled,
			.columns = make_batch(sides, room)
		}
	};
	for (uint32_t i = 0; i < sides; i++)
		add_row(&search->columns, i, on_ring(RADIUS, (double) i / sides), on_ring(RADIUS, (double) ((i + 1) % sides) / sides),
				0, 1);
}

/* Ask as the scheduler does, in turns of so many ms.  False if the search fails. */
static bool
ask(struct asked *asked, int64_t turn_ms, uint32_t room, bool places)
{
	struct search *search = &asked->search;
	enum device_progress progress = DEVICE_YIELDED;

	begin(asked, SIDES, room, places);
	cpu_turn_set_ms(turn_ms);
	while (progress == DEVICE_YIELDED && !search->failed)
	{
		search->builds = !machine.operations->is_built(&machine, search, search->algorithm) ? references :
			search->shapes->built[CPU_NUMBER] == NULL ? search->shapes : NULL;
		search->failed = !machine.operations->build(&machine, search, &search->failure);
		if (!search->failed)
			progress = machine.operations->turn(&machine, search);
		if (progress == DEVICE_YIELDED)
			note_left(asked);
	}
	if (search->failed)
		printf("# %s\n", search->failure.message);
	return !search->failed;
}

static void
forget(struct asked *asked)
{
	free(asked->search.columns.latitude);
	machine.operations->discard(&machine, asked->search.shapes->built[CPU_NUMBER]);
	dataset_free(asked->search.shapes);
}

/* Whether the first pairs of two answers have the same bytes. */
static bool
are_same(const struct search *a, const struct search *b, uint32_t pairs)
{
	const double *const of_a[] = {
		a->columns.distance, a->columns.latitude, a->columns.longitude, a->columns.end_latitude, a->columns.end_longitude,
		a->columns.fraction
	};
	const double *const of_b[] = {
		b->columns.distance, b->columns.latitude, b->columns.longitude, b->columns.end_latitude, b->columns.end_longitude,
		b->columns.fraction
	};
	bool		same = a->pairs >= pairs && b->pairs >= pairs &&
		memcmp(a->columns.tag, b->columns.tag, pairs * sizeof(int64_t)) == 0;

	for (int i = 0; i < (a->question.places ? 6 : 1); i++)
		same = same && memcmp(of_a[i], of_b[i], pairs * sizeof(double)) == 0;
	return same;
}

static bool
are_rising(const struct search *search)
{
	for (uint32_t i = 1; i < search->pairs; i++)
		if (search->columns.distance[i - 1] > search->columns.distance[i])
			return false;
	return search->columns.distance[0] == 0.0 && search->columns.distance[search->pairs - 1] > 0.0;
}

/* Ask in one turn after the other, and in short ones. */
static void
test_turns(bool places)
{
	struct asked at_once;
	struct asked cut;
	struct asked partly;
	long		few = 0;
	bool		sound = ask(&at_once, 1000000, POINTS, places);

	sound = ask(&cut, 0, POINTS, places) && sound;
	sound = ask(&partly, 0, POINTS - LOOK, places) && sound;
	report(places ? "all pairs are found, with places" : "all pairs are found",
		   sound && at_once.search.answered == 1 && at_once.search.pairs == POINTS && at_once.search.columns.count[0] == POINTS &&
		   are_rising(&at_once.search));
	report("short turns give the same bytes as one", cut.search.answered == 1 && cut.search.pairs == POINTS &&
		   cut.search.columns.count[0] == POINTS && !cut.search.cutoff.present &&
		   are_same(&at_once.search, &cut.search, POINTS));
	report("and the first of them where the room is short", partly.search.answered == 0 && partly.search.pairs == POINTS - LOOK &&
		   partly.search.columns.count[0] == POINTS - LOOK && partly.search.cutoff.present &&
		   are_same(&at_once.search, &partly.search, POINTS - LOOK));
	for (int kind = 0; kind < KINDS; kind++)
	{
		/* merges go through all pairs for each doubling of what is in order */
		uint32_t	least = POINTS / LOOK * (kind == ORDERING ? (uint32_t) log2(POINTS) : 1);

		printf("# %s: %u turns of %u, at least %u expected\n", names[kind], cut.turns[kind], cut.all_turns, least);
		few += cut.turns[kind] < least;
	}
	report_failures("each kind of work looks at the clock, and goes on in the next turn", few);
	forget(&at_once);
	forget(&cut);
	forget(&partly);
}

/*
 * Another thread, which takes a seat again and again, after a pause of a millisecond: from the copy of the first arcs on, and
 * once all are copied.
 */
struct other
{
	const volatile struct dataset *shapes;
	atomic_bool ended;
	uint32_t	seats[2];
};

static void *
take_seats(void *context)
{
	struct other *other = context;

	while (!atomic_load(&other->ended))
	{
		thread_pool_enter();
		if (other->shapes->count > 0)
			other->seats[other->shapes->sealed]++;
		thread_pool_leave();
		usleep(1000);
	}
	return NULL;
}

/* Other threads work while shapes are copied and prepared, where one may work at a time. */
static void
test_preparation(void)
{
	struct asked asked;
	struct other other = {.shapes = NULL};
	pthread_t	thread;
	bool		built;

	begin(&asked, MANY_SIDES, 1, false);
	other.shapes = asked.search.builds = asked.search.shapes;
	if (pthread_create(&thread, NULL, take_seats, &other) != 0)
		exit(EXIT_FAILURE);
	built = machine.operations->build(&machine, &asked.search, &asked.search.failure);
	atomic_store(&other.ended, true);
	pthread_join(thread, NULL);
	printf("# another thread had a seat %u times before the copy ended, and %u times after that\n", other.seats[0], other.seats[1]);
	report("others work while shapes are copied", built && other.seats[0] >= SEATS_LEAST);
	report("and while they are prepared", built && other.seats[1] >= SEATS_LEAST);
	forget(&asked);
}

int
main(int argument_count, char **words)
{
	struct failure failure;

	random_state = argument_count > 1 ? strtoull(words[1], NULL, 10) : random_state;
	printf("# seed %llu\n", (unsigned long long) random_state);
	thread_pool_set_threads(1);
	if (!machine.operations->probe(&machine, &failure) || !make_references())
		return EXIT_FAILURE;
	test_preparation();
	test_turns(false);
	test_turns(true);
	machine.operations->discard(&machine, references->built[CPU_NUMBER]);
	dataset_free(references);
	machine.operations->close(&machine);
	return summed_up();
}
