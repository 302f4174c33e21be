/*
 * faults_test.c
 *		Calls that fail in the engine: those that a start or a search makes, in
 *		turn, and memory that runs out on the way.
 *
 * Usage: faults_test ENGINE [cpu|cuda [SEED]]
 *
 * ENGINE is build/test/geonn-engine-faults, which test/engine/faults/plan.h describes.
 * On the CPU it is the calls into the system that fail, on a GPU those into CUDA.
 * Searches are of eight kinds; on the CPU three of them are tried unless
 * GEONN_LONG is set in the environment.
 *
 * On the CPU also a build that hangs, or seems to, and one that comes after a cancelled one.
 *
 * Whatever fails, a search ends with an error or with the very bytes that it has
 * without the fault, soon; and the next one is right.  On the CPU the engine
 * stays; a GPU may be lost, and then the engine ends in order, and another one
 * serves.
 *
 * rooms: engine/base engine/server engine/search engine/dataset cuda/lane
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nearest.h"

#define MOST_CALLS 20000

/* references of an index that takes longer to build than a turn lasts */
#define MANY 70000

/* what is asked, so that every part of a device comes to work */
static const struct scenario
{
	const char *name;
	uint32_t	columns;
	enum geonn_metric metric;
	struct client_question question;
	uint32_t	room;			/* for pairs, in a batch */
}			scenarios[] = {
	{"nearest", 0, GEONN_METRIC_SPHERE, {.k = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}, 1024},
	{"nearest by brute force", 0, GEONN_METRIC_SPHERE, {.k = 1,.algorithm = GEONN_ALGORITHM_BRUTE,.max_distance = INFINITY}, 1024},
	{"nearest on the spheroid", 0, GEONN_METRIC_SPHEROID, {.k = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}, 1024},
	{"five nearest with ties", 0, GEONN_METRIC_SPHERE, {.k = 5,.ties = true,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}, 8192},
	{"nearest of a group", GEONN_COLUMN_GROUP, GEONN_METRIC_SPHERE, {.k = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}, 1024},
	{"hundred nearest by brute force", 0, GEONN_METRIC_SPHERE, {.k = 100,.algorithm = GEONN_ALGORITHM_BRUTE,.max_distance = INFINITY}, 65536},
	{"all within a radius", 0, GEONN_METRIC_SPHERE, {.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = 4e6}, 65536},
	{"all, in parts", 0, GEONN_METRIC_SPHERE, {.algorithm = GEONN_ALGORITHM_BRUTE,.max_distance = INFINITY}, 256},
};

#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

static struct points references;
static struct points observations;
static int32_t *groups;			/* of either */
static struct client_answers expected[SCENARIOS];
static char folder[] = "/tmp/geonn-faults-XXXXXX";
static const struct geonn_configure *settings;	/* of the engine */
static struct engine engine;

enum outcome
{
	OUTCOME_RIGHT,
	OUTCOME_ERROR,				/* the engine said why */
	OUTCOME_ENDED,				/* it closed the connection without a word */
	OUTCOME_WRONG,
	OUTCOME_SLOW
};

#define OUTCOMES 5

static const char *const outcome_names[] = {"right", "an error", "ended", "WRONG", "NO ANSWER"};

/* ---- plans ---- */

static void
path_of(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", folder, name);
}

/*
 * Have the engine follow this plan, from its start or its next client on.
 */
static void
order(const char *when, const char *action, const char *target, int number)
{
	char		path[128];
	char		draft[128];
	FILE	   *file;

	path_of(path, sizeof(path), "fired");
	unlink(path);
	path_of(path, sizeof(path), when);
	path_of(draft, sizeof(draft), "draft");
	file = fopen(draft, "w");
	if (file == NULL || fprintf(file, "%s %s %d\n", action, target, number) < 0 ||
		fclose(file) != 0 || rename(draft, path) != 0)
		exit(EXIT_FAILURE);
}

/*
 * Whether it has happened, and what that was.
 */
static bool
has_fired(char *what, size_t size)
{
	char		path[128];
	FILE	   *file;

	path_of(path, sizeof(path), "fired");
	file = fopen(path, "r");
	if (file == NULL)
		return false;
	if (fgets(what, (int) size, file) == NULL)
		what[0] = '\0';
	what[strcspn(what, "\n")] = '\0';
	fclose(file);
	return true;
}

/* ---- searches ---- */

static bool
same_answers(const struct client_answers *one, const struct client_answers *other)
{
	return one->count == other->count &&
		memcmp(one->first, other->first, (one->count + 1) * sizeof(size_t)) == 0 &&
		memcmp(one->tag, other->tag, one->first[one->count] * sizeof(int64_t)) == 0 &&
		memcmp(one->distance, other->distance, one->first[one->count] * sizeof(double)) == 0;
}

/*
 * References and observations sent, the question asked.  Where it works, the
 * answers are the caller's to free.
 */
static bool
ask(struct client *client, const struct scenario *scenario, struct client_answers *answers)
{
	struct client_points from = {
		.count = observations.count,
		.latitude = observations.latitude,
		.longitude = observations.longitude,
		.group = groups
	};
	struct client_points to = {
		.count = references.count,
		.latitude = references.latitude,
		.longitude = references.longitude,
		.tag = references.tag,
		.group = groups
	};

	return client_create(client, request.device, scenario->metric, scenario->columns) &&
		client_allocate(client, 0, 1024, scenario->room) &&
		client_send_dataset(client, &to, true) &&
		client_collect(client, &scenario->question, &from, answers);
}

static enum outcome
outcome_of(size_t number)
{
	double		begun = now_ms();
	struct client_answers answers;
	struct client client;
	enum outcome outcome;

	if (!client_try_connect(&client, &engine))
		return OUTCOME_ENDED;
	if (ask(&client, &scenarios[number], &answers))
	{
		outcome = same_answers(&answers, &expected[number]) ? OUTCOME_RIGHT : OUTCOME_WRONG;
		client_free_answers(&answers);
	}
	else
		outcome = client.message.header.type == GEONN_ERROR ? OUTCOME_ERROR : OUTCOME_ENDED;
	client_close(&client);
	return now_ms() - begun > PATIENCE_MS ? OUTCOME_SLOW : outcome;
}

/*
 * Whether the next search is right: on a new engine, if the present one lost a
 * GPU and has ended, in order.
 */
static bool
next_is_right(size_t number, int *restarts)
{
	int			status;

	order("session", "none", "-", 0);
	for (int i = 0; i < 100; i++)
	{
		if (outcome_of(number) == OUTCOME_RIGHT)
			return true;
		if (request.device == GEONN_DEVICE_CPU)
			return false;
		if (waitpid(engine.pid, &status, WNOHANG) == engine.pid)
		{
			if (!WIFEXITED(status))
				return false;
			close(engine.supervisor);
			engine_start(&engine, request.engine_program, settings);
			++*restarts;
		}
		usleep(50000);
	}
	return false;
}

/* ---- what is left behind ---- */

struct remains
{
	int			descriptors;	/* but for the pool's batches */
	uint32_t	datasets;
	uint32_t	sessions;
	uint32_t	searches;
	uint64_t	gpu_memory_free;
};

/*
 * Of an engine that has nothing to do; it may take a moment to notice that.
 */
static struct remains
remains(void)
{
	struct geonn_engine_status status = {0};
	struct geonn_device_status devices[2] = {0};
	struct remains found = {0};
	double		begun = now_ms();

	do
	{
		if (engine_status(&engine, &status, devices, 2) &&
			status.sessions == 0 && status.datasets == status.kept)
			break;
	} while (wait_more(begun));
	found.descriptors = INT_MAX;
	for (int i = 0; i < 5; i++)
	{
		int			descriptors = descriptors_of(engine.pid, "geonn batch", false);

		found.descriptors = descriptors < found.descriptors ? descriptors : found.descriptors;
		usleep(5000);
	}
	found.datasets = status.datasets - status.kept;
	found.sessions = status.sessions;
	found.searches = status.searches;
	found.gpu_memory_free = devices[1].memory_free;
	return found;
}

static bool
leaves_nothing(const struct remains *before)
{
	struct remains after = remains();
	bool		nothing = after.descriptors == before->descriptors && after.datasets == 0 &&
		after.sessions == 0 && after.searches == 0 &&
		after.gpu_memory_free + (64 << 20) >= before->gpu_memory_free;

	if (!nothing)
		printf("# before: %d descriptors, %llu bytes of GPU free; after: %d, %llu, and %u datasets, %u sessions, %u searches\n",
			   before->descriptors, (unsigned long long) before->gpu_memory_free, after.descriptors,
			   (unsigned long long) after.gpu_memory_free, after.datasets, after.sessions,
			   after.searches);
	return nothing;
}

/* ---- properties ---- */

static void
sum_up(const char *what, const char *name, const int *counts, int restarts, bool right)
{
	char		property[200];

	snprintf(property, sizeof(property), "%s, %s: %d right, %d errors, %d ended, %d new engines",
			 what, name, counts[OUTCOME_RIGHT], counts[OUTCOME_ERROR], counts[OUTCOME_ENDED],
			 restarts);
	report(property, right && counts[OUTCOME_WRONG] == 0 && counts[OUTCOME_SLOW] == 0);
}

/*
 * One search with this plan.  False once the plan has nothing to happen any more.
 */
static bool
try_plan(size_t scenario, const char *action, const char *target, int number, int *counts,
		 int *restarts, bool *right)
{
	char		what[64] = "";
	enum outcome outcome;
	bool		fired;
	bool		next;

	order("session", action, target, number);
	outcome = outcome_of(scenario);
	fired = has_fired(what, sizeof(what));
	next = next_is_right(scenario, restarts);
	if (outcome >= OUTCOME_WRONG || !next)
		printf("# %s, %s %s %d (%s): %s, the next one %s\n", scenarios[scenario].name, action, target,
			   number, what, outcome_names[outcome], next ? "right" : "not");
	counts[outcome]++;
	*right = *right && next;
	return fired && next;
}

/*
 * The first calls are looked at one by one, then ever fewer: of many, most are of
 * the same few places.  It is fewer of those that cost a start of CUDA.
 */
static int
next_call(int number, bool restarts)
{
	int			each = restarts ? 16 : 64;

	return number + 1 + (number > each ? number * 4 / each : 0);
}

/* Does a search call what is to fail?  Of CUDA, one on the spheroid does not: the CPU answers it. */
static bool
has_calls(size_t scenario, const char *target)
{
	return scenarios[scenario].metric != GEONN_METRIC_SPHEROID || strcmp(target, "cuda") != 0;
}

/*
 * Calls of a search in turn.
 */
static void
test_calls(size_t scenario, const char *action, const char *target)
{
	struct remains before = remains();
	int			counts[OUTCOMES] = {0};
	int			restarts = 0;
	bool		right = true;
	char		what[64];
	int			number = 1;

	while (number < MOST_CALLS &&
		   try_plan(scenario, action, target, number, counts, &restarts, &right))
		number = next_call(number, strcmp(action, "lose") == 0);
	snprintf(what, sizeof(what), "%s %s", action, target);
	sum_up(what, scenarios[scenario].name, counts, restarts,
		   right && (number > 1 || !has_calls(scenario, target)) && leaves_nothing(&before));
}

/*
 * No memory from the nth time on that the engine gets to a place.
 */
static void
test_no_memory(size_t scenario)
{
	static const char *const places[] = {"references", "sort", "build", "search", "drain"};
	struct remains before = remains();
	int			counts[OUTCOMES] = {0};
	int			restarts = 0;
	bool		right = true;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (int number = 1; number < 3; number++)
			try_plan(scenario, "exhaust", places[i], number, counts, &restarts, &right);
	sum_up("no memory", scenarios[scenario].name, counts, restarts, right && leaves_nothing(&before));
}

/*
 * Calls of a start in turn: it does not start, in order, or it serves.
 */
static void
test_start(const char *action, const char *target)
{
	int			counts[OUTCOMES] = {0};
	int			restarts = 0;
	int			refused = 0;
	bool		right = true;
	bool		fired = true;
	char		what[64] = "";
	char		name[64];

	/* a GPU that fails then is not used */
	if (request.device == GEONN_DEVICE_CUDA)
		request.device = GEONN_DEVICE_AUTO;
	engine_stop(&engine);
	for (int number = 1; right && fired && number < MOST_CALLS;
		 number = next_call(number, request.device != GEONN_DEVICE_CPU))
	{
		bool		started;

		order("start", action, target, number);
		started = engine_try_start(&engine, request.engine_program, NULL, settings);
		if (started)
		{
			usleep(10000);
			counts[outcome_of(0)]++;
		}
		fired = has_fired(what, sizeof(what));
		right = !started || next_is_right(0, &restarts);
		right = right && WIFEXITED(engine_stop(&engine)) && (started || fired);
		refused += !started;
		if (!right)
			printf("# %s %s %d (%s): %s\n", action, target, number, what,
				   started ? "started, and the next one not right" : "no orderly end");
	}
	snprintf(name, sizeof(name), "%d refused", refused);
	snprintf(what, sizeof(what), "%s %s at the start", action, target);
	sum_up(what, name, counts, restarts, right);
	engine_start(&engine, request.engine_program, settings);
	if (request.device == GEONN_DEVICE_AUTO)
		request.device = GEONN_DEVICE_CUDA;
}

/*
 * The right answers, from the engine without a fault; other tests hold those
 * against the definition.
 */
static void
learn_answers(void)
{
	bool		right = true;

	for (size_t i = 0; i < SCENARIOS; i++)
	{
		struct client client;

		client_connect(&client, &engine);
		if (!ask(&client, &scenarios[i], &expected[i]))
		{
			printf("# %s: %s\n", scenarios[i].name, client.message.error.message);
			right = false;
		}
		client_close(&client);
	}
	report("without a fault the searches have answers", right);
	if (!right)
		exit(summed_up());
}

/*
 * Batches that the kernel does not take along, for a while or for good.
 */
static void
test_crowd(void)
{
	struct client_answers answers;
	struct client client;
	bool		refused;

	order("session", "crowd", "call", 3);
	report("a batch that the kernel does not take along at first comes later",
		   outcome_of(0) == OUTCOME_RIGHT);
	order("session", "crowd", "call", INT_MAX);
	client_connect(&client, &engine);
	refused = !ask(&client, &scenarios[0], &answers) &&
		client.message.header.type == GEONN_ERROR &&
		client.message.error.code == GEONN_ERROR_LIMIT &&
		strcmp(client.message.error.hint, GEONN_CROWDED_HINT) == 0;
	client_close(&client);
	report("one that it never takes along is an error whose hint names the limit", refused);
	order("session", "none", "-", 0);
	report("and the next search has the right answers", outcome_of(0) == OUTCOME_RIGHT);
}

/*
 * Begin a search whose answers are known, in a process of its own, which ends with its outcome.
 */
static pid_t
begin_search(size_t number)
{
	pid_t		child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		exit(EXIT_FAILURE);
	if (child == 0)
		_exit((int) outcome_of(number));
	return child;
}

static bool
ends_right(pid_t child)
{
	int			status;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) &&
		WEXITSTATUS(status) == OUTCOME_RIGHT;
}

/* wait until the fault has happened */
static bool
await_fault(void)
{
	char		what[64];

	for (int i = 0; i < 6000; i++)
	{
		if (has_fired(what, sizeof(what)))
			return true;
		usleep(10000);
	}
	return false;
}

/*
 * The only thread of the CPU builds a large index, and does not come back for an hour.
 */
static void
test_hanging_build(void)
{
	const struct geonn_configure one_thread = {.cpu_threads = 1};
	struct points few = references;
	struct client_answers of_few = expected[0];
	struct geonn_ping ping = {.number = 7};
	struct pollfd answer;
	union geonn_message message;
	struct client client;
	char		fired[128];
	bool		right;
	pid_t		child;

	engine_start(&engine, request.engine_program, &one_thread);
	references = uniform_points(MANY);
	client_connect(&client, &engine);
	right = ask(&client, &scenarios[0], &expected[0]);
	client_close(&client);

	order("session", "hang", "build", 1);
	child = begin_search(0);
	right = right && await_fault();
	points_free(&references);
	references = few;
	client_free_answers(&expected[0]);
	expected[0] = of_few;
	report("while the only thread builds a large index, another session's search is answered",
		   right && outcome_of(0) == OUTCOME_RIGHT);

	answer = (struct pollfd) {.fd = engine.supervisor,.events = POLLIN};
	right = right && geonn_channel_send(engine.supervisor, GEONN_PING, &ping, -1) == GEONN_CHANNEL_OK;
	report("while the build is overdue, a ping is not answered", right && poll(&answer, 1, 1000) == 0);
	path_of(fired, sizeof(fired), "fired");
	unlink(fired);
	report("when the build ends, that ping is answered",
		   engine_answer(&engine, &message) == GEONN_PONG && message.pong.number == ping.number);
	report("and the search that waited for the build has the right answers", ends_right(child));
	engine_stop(&engine);
}

/*
 * Are the answers right if the first search of some references has one observation?
 */
static bool
few_are_right(const struct points *points)
{
	struct points one = observations;
	struct answer answer;
	struct client client;
	bool		right;

	one.count = 1;
	client_connect(&client, &engine);
	right = client_create(&client, request.device, GEONN_METRIC_SPHERE, 0) && client_allocate(&client, 0, 1024, 1024) &&
		client_send_references(&client, points->count, points->latitude, points->longitude, points->tag, false) &&
		client_search(&client, 1, one.latitude, one.longitude, &answer) && answers_right(points, &one, &answer, 1);
	client_close(&client);
	return right;
}

/*
 * The only thread of the CPU builds a large index for a second time, as the search for which it did so first was
 * cancelled.
 */
static void
test_second_build(void)
{
	const struct geonn_configure one_thread = {.cpu_threads = 1};
	const uint32_t rows = (uint32_t) observations.count;
	struct geonn_search search = {.rows = rows,.k = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY};
	struct points many = uniform_points(MANY);
	struct geonn_engine_status status;
	struct client owner;
	struct client clients[2];
	char		fired[128];
	bool		right;

	engine_start(&engine, request.engine_program, &one_thread);
	path_of(fired, sizeof(fired), "fired");
	client_connect(&owner, &engine);
	right = client_create(&owner, request.device, GEONN_METRIC_SPHERE, 0) && client_allocate(&owner, 0, 1024, 1024) &&
		client_send_references(&owner, many.count, many.latitude, many.longitude, many.tag, false);
	for (int i = 0; i < 2; i++)
	{
		order("session", "wait", "build", 1);
		client_connect(&clients[i], &engine);
		right = right && client_attach(&clients[i], request.device, owner.dataset) &&
			client_allocate(&clients[i], 0, rows, rows);
		if (!right)
			break;
		memcpy(clients[i].slots[0].columns.latitude, observations.latitude, rows * sizeof(double));
		memcpy(clients[i].slots[0].columns.longitude, observations.longitude, rows * sizeof(double));
		client_send(&clients[i], GEONN_SEARCH, &search);
		right = await_fault();
		if (i > 0)
			break;
		client_close(&clients[i]);

		/* the engine handles what it hears in order */
		right = right && engine_status(&engine, &status, NULL, 0);
		unlink(fired);
	}
	report("while the only thread builds for the second time, another session's search is answered",
		   right && outcome_of(0) == OUTCOME_RIGHT);
	report("also one of few observations, of as many references without an index", right && few_are_right(&many));
	unlink(fired);
	client_close(&clients[1]);
	client_close(&owner);
	engine_stop(&engine);
	points_free(&many);
}

/*
 * Points whose tags fall, so that they are sorted.
 */
static void
make_points(void)
{
	references = uniform_points(300);
	observations = uniform_points(60);
	groups = calloc(references.count, sizeof(*groups));
	if (groups == NULL)
		exit(EXIT_FAILURE);
	for (size_t i = 0; i < references.count; i++)
	{
		references.tag[i] = (int64_t) (references.count - i);
		groups[i] = (int32_t) (i % 3);
	}
}

int
main(int argument_count, char **words)
{
	static const struct geonn_configure kept = {.kept_memory_limit = 1000000};
	bool		on_cpu;

	tests_begin(argument_count, words);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (mkdtemp(folder) == NULL || setenv("GEONN_FAULTS", folder, 1) != 0)
		return EXIT_FAILURE;
	on_cpu = request.device == GEONN_DEVICE_CPU;
	make_points();

	engine_start(&engine, request.engine_program, settings);
	learn_answers();
	for (size_t i = 0; i < SCENARIOS; i += on_cpu && getenv("GEONN_LONG") == NULL ? 3 : 1)
	{
		test_calls(i, "fail", on_cpu ? "call" : "cuda");
		if (on_cpu)
			test_no_memory(i);
		else if (i % 3 == 0)
			test_calls(i, "lose", "cuda");
	}
	test_start("fail", on_cpu ? "call" : "cuda");
	if (on_cpu)
		test_crowd();
	else
		test_start("lose", "cuda");
	engine_stop(&engine);

	/* and where a search finds what it needs */
	settings = &kept;
	engine_start(&engine, request.engine_program, settings);
	test_calls(0, "fail", on_cpu ? "call" : "cuda");
	engine_stop(&engine);
	if (on_cpu)
	{
		test_hanging_build();
		test_second_build();
	}

	for (size_t i = 0; i < SCENARIOS; i++)
		client_free_answers(&expected[i]);
	points_free(&references);
	points_free(&observations);
	free(groups);
	order("session", "none", "-", 0);
	if (chdir(folder) == 0)
	{
		unlink("session");
		unlink("fired");
		rmdir(folder);
	}
	return summed_up();
}
