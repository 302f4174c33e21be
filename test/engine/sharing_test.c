/*
 * sharing_test.c
 *		Sessions that use one engine at a time: each gets its turn soon, a small
 *		search sooner than large ones, as many as there are threads side by
 *		side, and all together they take no more threads than the settings say.
 *
 * Usage: sharing_test ENGINE [cpu|cuda [SEED]]
 *
 * The searches that others have to get along with take long in different ways:
 * brute force, and points that no index helps with.  A device that is too fast
 * to be caught at one says so ("was over"), and nothing was shown then.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/random.h"
#include "../lib/verdict.h"
#include "../lib/definition.h"

/* how soon a small search is answered beside a long one, and how soon a long
 * one is gone when its client is */
#define TURN_MS 2000
#define CANCEL_MS 1000

/* what a turn of a long search takes at least of each core */
#define LONG_TURN_MS 40

/* how much slower a sanitizer may make all that */
static int	patience = 1;

/* of the CPU */
#define THREADS 3

static const char *engine_program;
static enum geonn_device_choice device = GEONN_DEVICE_CPU;

/* a verdict on what is asked of several things */
static void
report_of(const char *property, const char *of_what, bool holds)
{
	char		line[160];

	snprintf(line, sizeof(line), "%s: %s", property, of_what);
	report(line, holds);
}

/* from a place on, up to so many degrees away in both directions */
static struct points
square_points(size_t count, double latitude, double longitude, double degrees)
{
	struct points points = points_create(count, PLACES_UNIFORM);

	for (size_t i = 0; i < count; i++)
	{
		points.latitude[i] = latitude + random_between(0, degrees);
		points.longitude[i] = longitude + random_between(0, degrees);
	}
	return points;
}

/* over nine places, some centimetres apart */
static struct points
jittering_points(size_t count)
{
	struct points points = points_create(count, PLACES_UNIFORM);

	for (size_t i = 0; i < count; i++)
	{
		points.latitude[i] = 52.5 + random_below(3) * 1e-7;
		points.longitude[i] = 13.4 + random_below(3) * 1e-7;
	}
	return points;
}

enum hardship
{
	BRUTE_FORCE,
	ANTIPODE,
	ANTIPODE_NEIGHBOURS,
	ANTIPODE_SPHEROID,
	JITTER,
	HARDSHIPS
};

/* a search that takes long */
struct hard_search
{
	const char *name;
	enum geonn_metric metric;
	struct client_question question;
	struct points references;
	struct points observations;
};

static struct hard_search
hard_search(enum hardship hardship)
{
	size_t		rows = device == GEONN_DEVICE_CPU ? 20000 : 1 << 20;
	struct hard_search hard = {
		.question = {
			.k = 1,
			.algorithm = GEONN_ALGORITHM_INDEX,
			.max_distance = INFINITY
		}
	};

	switch (hardship)
	{
		case BRUTE_FORCE:
			/* minutes on a few cores, seconds on a GPU */
			hard.name = "brute force";
			hard.question.algorithm = GEONN_ALGORITHM_BRUTE;
			hard.references = points_create(3000000, PLACES_UNIFORM);
			hard.observations = points_create(device == GEONN_DEVICE_CPU ? 1 << 17 : 1 << 21,
											  PLACES_UNIFORM);
			break;
		case ANTIPODE:
		case ANTIPODE_NEIGHBOURS:
			hard.name = "by index, at the antipode of references within a metre";
			hard.references = square_points(300000, 52.5, 13.4, 1e-5);
			hard.observations = square_points(rows, -52.5 - 1e-5, 13.4 - 180, 1e-5);
			if (hardship == ANTIPODE)
				break;
			hard.name = "by index, 100 neighbours at the antipode of references within a metre";
			hard.question.k = 100;
			break;
		case ANTIPODE_SPHEROID:
			hard.name = "by index on the spheroid, at the antipode of references within a degree";
			hard.metric = GEONN_METRIC_SPHEROID;
			hard.references = square_points(100000, 1, 1, 1);
			hard.observations = square_points(rows, -2, -179, 1);
			break;
		case JITTER:
			hard.name = "by index, references jittering over nine places";
			hard.references = jittering_points(1000000);
			hard.observations = square_points(rows, 52.49, 13.39, 0.02);
			break;
		case HARDSHIPS:
			break;
	}
	return hard;
}

/*
 * Whether a session of its own gets the answers to a small question.
 */
static bool
small_search_right(const struct engine *engine)
{
	struct points points = points_create(20, PLACES_UNIFORM);
	struct client_points sent = points_to_send(&points);
	struct client_question nearest = {.k = 1,.max_distance = INFINITY};
	struct definition definition = definition_create(&points, &points, GEONN_METRIC_SPHERE, 1);
	struct client_answers answers;
	struct client client;
	bool		right;

	client_connect(&client, engine);
	right = client_open(&client, device, 0) && client_allocate(&client, 0, 256, 256) &&
		client_send_dataset(&client, &sent, false) &&
		client_collect(&client, &nearest, &sent, &answers);
	if (right)
	{
		right = answers.first[points.count] == points.count;
		for (size_t i = 0; right && i < points.count; i++)
		{
			const struct neighbour *expected = definition.candidates[i].list;

			right = answers.first[i] == i && answers.tag[i] == points.tag[expected->place] &&
				memcmp(&answers.distance[i], &expected->distance, sizeof(double)) == 0;
		}
		client_free_answers(&answers);
	}
	client_close(&client);
	definition_free(&definition);
	points_free(&points);
	return right;
}

/*
 * Send a search's observations in all slots, the same in each; whether they
 * are on their way.
 */
static bool
begin_search(struct client *client, const struct hard_search *hard)
{
	const struct client_question *question = &hard->question;
	struct geonn_search search = {
		.rows = (uint32_t) hard->observations.count,
		.k = question->k,
		.algorithm = question->algorithm,
		.max_distance = question->max_distance
	};
	struct client_points references = points_to_send(&hard->references);

	if (!client_create(client, device, hard->metric, 0))
		return false;
	for (uint32_t i = 0; i < 2; i++)
		if (!client_allocate(client, i, search.rows, search.rows))
			return false;
	if (!client_send_dataset(client, &references, false))
		return false;
	for (uint32_t i = 0; i < 2; i++)
	{
		memcpy(client->slots[i].columns.latitude, hard->observations.latitude,
			   search.rows * sizeof(double));
		memcpy(client->slots[i].columns.longitude, hard->observations.longitude,
			   search.rows * sizeof(double));
		search.slot = i;
		client_send(client, GEONN_SEARCH, &search);
	}
	return true;
}

/* how long an engine has worked, all its threads together */
static double
worked_ms(const struct engine *engine)
{
	clockid_t	clock;
	struct timespec time = {0};

	if (clock_getcpuclockid(engine->pid, &clock) == 0)
		clock_gettime(clock, &time);
	return (double) time.tv_sec * 1e3 + (double) time.tv_nsec * 1e-6;
}

/* wait until no session is left in an engine */
static bool
await_no_session(const struct engine *engine)
{
	struct geonn_engine_status status;
	double		begin = now_ms();

	do
	{
		usleep(2000);
		if (!engine_status(engine, &status, NULL, 0))
			return false;
	} while (status.sessions > 0 && now_ms() - begin < 20000);
	return status.sessions == 0;
}

static void
test_long_search(const struct engine *engine, enum hardship hardship)
{
	struct hard_search hard = hard_search(hardship);
	struct geonn_engine_status status;
	struct client client;
	double		begin;
	double		worked;
	double		took;
	bool		right;

	client_connect(&client, engine);
	right = begin_search(&client, &hard);

	/* it is at work before the other one comes */
	usleep(300000);
	begin = now_ms();
	worked = worked_ms(engine);
	right = right && small_search_right(engine);
	took = now_ms() - begin;
	worked = worked_ms(engine) - worked;
	right = right && engine_status(engine, &status, NULL, 0);
	printf("# a small search took %.0f ms, %.0f ms of work%s\n", took, worked,
		   right && status.searches == 0 ? "; the long one was over" : "");

	/* on a busy host the engine, which is nice, stands back behind others */
	if (device == GEONN_DEVICE_CPU && worked < took)
		took = worked;
	report_of("a long search lets others have their turn", hard.name, right && took < TURN_MS * patience);

	client_close(&client);
	begin = now_ms();
	right = right && await_no_session(engine);
	took = now_ms() - begin;
	printf("# a cancelled search was gone after %.0f ms\n", took);
	report_of("a client that goes away takes its searches with it within a second", hard.name,
		   right && took < CANCEL_MS * patience);
	points_free(&hard.references);
	points_free(&hard.observations);
}

/*
 * Send observations to the dataset that another session has, in one batch.
 */
static bool
join_search(struct client *client, uint64_t dataset, const struct hard_search *hard)
{
	struct geonn_search search = {
		.rows = (uint32_t) hard->observations.count,
		.k = hard->question.k,
		.algorithm = hard->question.algorithm,
		.max_distance = hard->question.max_distance
	};

	if (!client_attach(client, device, dataset) ||
		!client_allocate(client, 0, search.rows, search.rows))
		return false;
	memcpy(client->slots[0].columns.latitude, hard->observations.latitude,
		   search.rows * sizeof(double));
	memcpy(client->slots[0].columns.longitude, hard->observations.longitude,
		   search.rows * sizeof(double));
	client_send(client, GEONN_SEARCH, &search);
	return true;
}

/* the work that the engine does, in ms, until so many small searches are answered; -1: none */
static double
work_until_answered(const struct engine *engine, int searches)
{
	double		worked = worked_ms(engine);

	for (int i = 0; i < searches; i++)
		if (!small_search_right(engine))
			return -1;
	return worked_ms(engine) - worked;
}

/*
 * Sixteen long searches, one after the other in turns: what a small one waits for
 * is not a turn of each, but less than a third of that.
 */
static void
test_many_long_searches(const struct engine *engine)
{
	enum
	{
		FEW = 2,
		MANY = 16,
		SMALL = 8
	};
	struct hard_search hard = hard_search(BRUTE_FORCE);
	struct geonn_engine_status status;
	struct client clients[MANY];
	double		beside_few = -1;
	double		beside_many = -1;
	bool		right;

	client_connect(&clients[0], engine);
	right = begin_search(&clients[0], &hard);
	for (int i = 1; i < MANY; i++)
	{
		client_connect(&clients[i], engine);
		right = right && join_search(&clients[i], clients[0].dataset, &hard);
		if (i + 1 == FEW)
		{
			usleep(500000);
			beside_few = right ? work_until_answered(engine, SMALL) : -1;
		}
	}
	usleep(500000);
	beside_many = right ? work_until_answered(engine, SMALL) : -1;
	right = right && engine_status(engine, &status, NULL, 0) && status.searches >= MANY;
	printf("# %d small searches: %.0f ms of work beside %d long ones, %.0f beside %d\n",
		   SMALL, beside_few, FEW, beside_many, MANY);
	report("a small search does not wait for a turn of each long one",
		   right && beside_few >= 0 && beside_many >= 0 &&
		   beside_many < SMALL * MANY * LONG_TURN_MS * patience * (double) sysconf(_SC_NPROCESSORS_ONLN) / 3);
	for (int i = 0; i < MANY; i++)
		client_close(&clients[i]);
	report("and many that are cancelled are gone", await_no_session(engine));
	points_free(&hard.references);
	points_free(&hard.observations);
}

/*
 * Send references whose tags are in disorder, without a seal.
 */
static bool
send_unsorted(struct client *client, size_t count)
{
	const uint32_t rows = 65536;
	struct geonn_references references = {.rows = rows};

	if (!client_create(client, device, GEONN_METRIC_SPHERE, 0) ||
		!client_allocate(client, 0, rows, 1))
		return false;
	memset(client->slots[0].columns.latitude, 0, rows * sizeof(double));
	memset(client->slots[0].columns.longitude, 0, rows * sizeof(double));
	for (size_t sent = 0; sent < count; sent += rows)
	{
		for (uint32_t i = 0; i < rows; i++)
			client->slots[0].columns.tag[i] = (int64_t) random_bits();
		client_send(client, GEONN_REFERENCES, &references);
		if (!client_expect(client, GEONN_RELEASED))
			return false;
	}
	return true;
}

/*
 * What is left of a sort is held against the work of a whole one, so that it
 * does not matter how busy the host is.
 */
static void
test_cancelled_sort(const struct engine *engine)
{
	const size_t count = (size_t) 1 << 22;
	struct geonn_seal seal = {.order_by_tag = 1};
	struct client client;
	double		whole = 0;
	double		left;
	bool		right;

	client_connect(&client, engine);
	right = send_unsorted(&client, count);
	if (right)
	{
		whole = worked_ms(engine);
		client_send(&client, GEONN_SEAL, &seal);
		right = client_expect(&client, GEONN_SEALED);
		whole = worked_ms(engine) - whole;
	}
	client_close(&client);
	right = right && await_no_session(engine);
	client_connect(&client, engine);
	right = right && send_unsorted(&client, count);
	if (right)
	{
		client_send(&client, GEONN_SEAL, &seal);
		usleep(5000);
		left = worked_ms(engine);
		client_close(&client);
		right = await_no_session(engine);
		left = worked_ms(engine) - left;
		printf("# a sort took %.0f ms of work, and %.0f ms more when its client had gone\n",
			   whole, left);
		right = right && left < whole / 2;
	}
	report("a client that goes away takes the sort of its references with it",
		   right && small_search_right(engine));
}

/* how many threads a process has; 0 where it is gone */
static int
count_threads(pid_t pid)
{
	char		path[40];
	DIR		   *folder;
	int			threads = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int) pid);
	folder = opendir(path);
	if (folder == NULL)
		return 0;
	for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
		threads += entry->d_name[0] != '.';
	closedir(folder);
	return threads;
}

/*
 * Search by both algorithms for some tenths of a second.
 */
static bool
search_for_a_while(const struct engine *engine)
{
	struct points points = points_create(10000, PLACES_UNIFORM);
	struct client_points sent = points_to_send(&points);
	struct client_question question = {.max_distance = INFINITY};
	struct client_answers answers;
	struct client client;
	bool		right;

	client_connect(&client, engine);
	right = client_open(&client, GEONN_DEVICE_CPU, 0) &&
		client_allocate(&client, 0, 4096, 8192) && client_allocate(&client, 1, 4096, 8192) &&
		client_send_dataset(&client, &sent, false);
	for (int i = 0; right && i < 4; i++)
	{
		question.algorithm = i % 2 ? GEONN_ALGORITHM_BRUTE : GEONN_ALGORITHM_INDEX;
		question.k = i < 2 ? 1 : 3;
		right = client_collect(&client, &question, &sent, &answers);
		if (right)
			client_free_answers(&answers);
	}
	client_close(&client);
	points_free(&points);
	return right;
}

/* how many calls search at this moment; -1: the engine does not say */
static int
count_searching(const struct engine *engine)
{
	struct geonn_list request = {.listing = GEONN_LIST_CALLS};
	struct geonn_call_status calls[32];
	struct client client;
	int			searching = -1;
	ssize_t		bytes = -1;

	client_connect(&client, engine);
	if (client_hello(&client))
	{
		client_send(&client, GEONN_LIST, &request);
		if (client_expect(&client, GEONN_LISTED) && client.descriptor >= 0)
			bytes = pread(client.descriptor, calls, sizeof(calls), 0);
	}
	client_close(&client);
	if (bytes >= 0)
		searching = 0;
	for (size_t i = 0; bytes >= 0 && i < (size_t) bytes / sizeof(calls[0]); i++)
		searching += calls[i].phase == GEONN_PHASE_SEARCHING;
	return searching;
}

/* the most calls that search at a time, of many moments of half a second */
static int
most_searching(const struct engine *engine)
{
	double		until = now_ms() + 500 * patience;
	int			most = 0;

	while (now_ms() < until)
	{
		int			searching = count_searching(engine);

		if (searching > most)
			most = searching;
		usleep(1000);
	}
	return most;
}

/*
 * Sessions with long searches, more than there are threads: each thread has a
 * search of its own.
 */
static void
test_side_by_side(void)
{
	enum
	{
		LONG = THREADS + 2
	};
	struct geonn_configure settings = {.cpu_threads = THREADS,.transfer_memory_limit = 1 << 30};
	struct geonn_call calls[LONG];
	struct hard_search hard = hard_search(BRUTE_FORCE);
	struct client clients[LONG];
	struct engine engine;
	int			most;
	bool		right = true;

	engine_start(&engine, engine_program, &settings);
	for (int i = 0; i < LONG; i++)
	{
		calls[i] = (struct geonn_call) {.pid = 1,.number = (uint64_t) i + 1,.label = {.function = "long"}};
		client_connect(&clients[i], &engine);
		clients[i].call = &calls[i];
		right = right && (i == 0 ? begin_search(&clients[0], &hard) :
						  join_search(&clients[i], clients[0].dataset, &hard));
	}
	most = most_searching(&engine);
	printf("# %d of %d sessions search at a time, with %d threads\n", most, LONG, THREADS);
	report("as many searches as threads are under way side by side, and no more",
		   right && most == THREADS);

	settings.cpu_threads = 1;
	right = right && geonn_channel_send(engine.supervisor, GEONN_CONFIGURE, &settings, -1) ==
		GEONN_CHANNEL_OK;
	usleep(300000 * (useconds_t) patience);
	most = most_searching(&engine);
	report("and fewer once there are fewer threads", right && most == 1);
	for (int i = 0; i < LONG; i++)
		client_close(&clients[i]);
	report("and when they are cancelled, all are gone", await_no_session(&engine));
	engine_stop(&engine);
	points_free(&hard.references);
	points_free(&hard.observations);
}

/*
 * With one thread, all that sessions ask for at a time takes one core.
 */
static void
test_one_core(void)
{
	struct hard_search hard = hard_search(BRUTE_FORCE);
	struct hard_search other = hard_search(ANTIPODE_NEIGHBOURS);
	struct client clients[3];
	struct engine engine;
	double		begin;
	double		worked;
	double		took;
	bool		right;

	engine_start(&engine, engine_program, &(struct geonn_configure) {.cpu_threads = 1});
	for (int i = 0; i < 3; i++)
		client_connect(&clients[i], &engine);
	right = begin_search(&clients[0], &hard) && begin_search(&clients[1], &other) &&
		send_unsorted(&clients[2], (size_t) 1 << 21);
	begin = now_ms();
	worked = worked_ms(&engine);
	client_send(&clients[2], GEONN_SEAL, &(struct geonn_seal) {.order_by_tag = 1});
	usleep(1000000);
	worked = worked_ms(&engine) - worked;
	took = now_ms() - begin;
	printf("# %.0f ms of work in %.0f ms\n", worked, took);
	report("with one thread, searches and a sort at a time take one core", right && worked < 1.2 * took);
	for (int i = 0; i < 3; i++)
		client_close(&clients[i]);
	engine_stop(&engine);
	points_free(&hard.references);
	points_free(&hard.observations);
	points_free(&other.references);
	points_free(&other.observations);
}

/*
 * Threads that help are created when they are first asked to: a small batch
 * asks for none.
 */
static void
test_small_batches(void)
{
	enum
	{
		MANY = 16,
		/* the server, the disposal, a sanitizer's, and those that take searches in turn */
		MOST = 6
	};
	struct points points = points_create(256, PLACES_UNIFORM);
	struct client_points sent = points_to_send(&points);
	struct client_question question = {.k = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY};
	struct client_answers answers;
	struct client client;
	struct engine engine;
	int			threads;
	bool		right;

	/* without a GPU, whose driver has threads of its own */
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	engine_start(&engine, engine_program, &(struct geonn_configure) {.cpu_threads = MANY});
	unsetenv("CUDA_VISIBLE_DEVICES");
	client_connect(&client, &engine);
	right = client_open(&client, GEONN_DEVICE_CPU, 0) && client_allocate(&client, 0, 256, 256) &&
		client_send_dataset(&client, &sent, false);
	for (int i = 0; right && i < 200; i++)
	{
		right = client_collect(&client, &question, &sent, &answers);
		if (right)
			client_free_answers(&answers);
	}
	threads = count_threads(engine.pid);
	printf("# %d threads\n", threads);
	report("a small batch asks no other thread for help", right && threads <= MOST);
	client_close(&client);
	engine_stop(&engine);
	points_free(&points);
}

static void
test_threads(void)
{
	/* those that take searches, and workers for the seats that these leave free; the server,
	 * the disposal, and a sanitizer's */
	enum
	{
		MOST = THREADS + THREADS - 1 + 3,
		SESSIONS = 8
	};
	pid_t		children[SESSIONS];
	struct engine engine;
	int			running = SESSIONS;
	int			most = 0;
	bool		right = true;

	/* without a GPU, whose driver has threads of its own */
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	engine_start(&engine, engine_program, &(struct geonn_configure) {.cpu_threads = THREADS});
	unsetenv("CUDA_VISIBLE_DEVICES");
	fflush(stdout);
	for (int i = 0; i < SESSIONS; i++)
	{
		children[i] = fork();
		if (children[i] == 0)
			_exit(search_for_a_while(&engine) ? 0 : 1);
	}
	while (running > 0)
	{
		int			threads = count_threads(engine.pid);

		if (threads > most)
			most = threads;
		for (int i = 0; i < SESSIONS; i++)
		{
			int			status;

			if (children[i] == 0 || waitpid(children[i], &status, WNOHANG) == 0)
				continue;
			right = right && status == 0;
			children[i] = 0;
			running--;
		}
		usleep(1000);
	}
	engine_stop(&engine);
	printf("# %d threads at most, with %d for the CPU\n", most, THREADS);
	report("eight sessions at a time share the threads of the CPU",
		   right && most >= THREADS && most <= MOST);
}

int
main(int argument_count, char **words)
{
	uint64_t	seed = 20240229;
	struct engine engine;

	if (argument_count < 2)
	{
		fprintf(stderr, "usage: %s ENGINE [cpu|cuda [SEED [sanitized]]]\n", words[0]);
		return EXIT_FAILURE;
	}
	engine_program = words[1];
	if (argument_count > 2 && strcmp(words[2], "cuda") == 0)
		device = GEONN_DEVICE_CUDA;
	if (argument_count > 3)
		seed = strtoull(words[3], NULL, 10);
	if (argument_count > 4 && strcmp(words[4], "sanitized") == 0)
		patience = 10;
	random_state = seed;
	points_seed(seed);
	printf("# seed %llu, device %s\n", (unsigned long long) seed,
		   device == GEONN_DEVICE_CUDA ? "cuda" : "cpu");

	engine_start(&engine, engine_program, &(struct geonn_configure) {.cpu_threads = THREADS});
	for (int hardship = 0; hardship < HARDSHIPS; hardship++)
		test_long_search(&engine, (enum hardship) hardship);
	if (device == GEONN_DEVICE_CPU)
		test_many_long_searches(&engine);
	test_cancelled_sort(&engine);
	engine_stop(&engine);
	if (device == GEONN_DEVICE_CPU)
	{
		test_side_by_side();
		test_one_core();
	}
	test_small_batches();
	test_threads();

	return summed_up();
}
