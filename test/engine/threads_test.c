/*
 * threads_test.c
 *		The CPU's threads: each takes a search of its own, as many as the
 *		settings say work at a time, and none is woken for little.
 *
 * Usage: threads_test ENGINE [cpu [SEED [sanitized]]]
 *
 * rooms: engine/search engine/base
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
#include <unistd.h>

#include "../lib/random.h"
#include "../lib/verdict.h"
#include "busy.h"

/* how much slower a sanitizer may make all that */
static int	patience = 1;

/* of the CPU */
#define THREADS 3

static const enum geonn_device_choice device = GEONN_DEVICE_CPU;
static const char *engine_program;

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

/*
 * The most calls that search at a time in half a second: in the first one in
 * which it is as many as awaited, or else after many seconds.
 */
static int
most_searching(const struct engine *engine, int awaited)
{
	double		end = now_ms() + PATIENCE_MS;
	int			most;

	do
	{
		double		until = now_ms() + 500 * patience;

		for (most = 0; now_ms() < until; usleep(1000))
		{
			int			searching = count_searching(engine);

			if (searching > most)
				most = searching;
		}
	} while (most != awaited && now_ms() < end);
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
	struct hard_search hard = busy_hard_search(device, BRUTE_FORCE);
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
		right = right && (i == 0 ? busy_begin(&clients[0], device, &hard) :
						  busy_join(&clients[i], device, clients[0].dataset, &hard));
	}
	most = most_searching(&engine, THREADS);
	printf("# %d of %d sessions search at a time, with %d threads\n", most, LONG, THREADS);
	report("as many searches as threads are under way side by side, and no more",
		   right && most == THREADS);

	settings.cpu_threads = 1;
	right = right && geonn_channel_send(engine.supervisor, GEONN_CONFIGURE, &settings, -1) ==
		GEONN_CHANNEL_OK;
	most = most_searching(&engine, 1);
	report("and fewer once there are fewer threads", right && most == 1);
	for (int i = 0; i < LONG; i++)
		client_close(&clients[i]);
	report("and when they are cancelled, all are gone", busy_await_no_session(&engine));
	engine_stop(&engine);
	points_free(&hard.references);
	points_free(&hard.observations);
}

/*
 * With one thread, all that sessions ask for at a time is done by one thread
 * at a time: the engine takes no more of the CPU's time than one thread can, however busy the host is.
 */
static void
test_one_thread(void)
{
	struct hard_search hard = busy_hard_search(device, BRUTE_FORCE);
	struct client clients[2];
	struct engine engine;
	double		worked_ms;
	double		begin;
	double		elapsed_ms;
	bool		right;

	engine_start(&engine, engine_program, &(struct geonn_configure) {.cpu_threads = 1});
	for (int i = 0; i < 2; i++)
		client_connect(&clients[i], &engine);
	right = busy_begin(&clients[0], device, &hard) &&
		busy_send_unsorted(&clients[1], device, (size_t) 1 << 22);
	client_send(&clients[1], GEONN_SEAL, &(struct geonn_seal) {.order_by_tag = 1});
	begin = now_ms();
	worked_ms = cpu_ms_of(engine.pid);
	usleep(400 * 1000);
	worked_ms = cpu_ms_of(engine.pid) - worked_ms;
	elapsed_ms = now_ms() - begin;
	printf("# the engine's threads work for %.0f of %.0f ms\n", worked_ms, elapsed_ms);
	report("with one thread, a search and a sort take turns", right && worked_ms > 0.0 && worked_ms < 1.2 * elapsed_ms);
	for (int i = 0; i < 2; i++)
		client_close(&clients[i]);
	engine_stop(&engine);
	points_free(&hard.references);
	points_free(&hard.observations);
}

/*
 * Ask a new engine for small batches, and return how many threads it has then; 0 if an answer fails.
 */
static int
threads_after_small_batches(const struct client_points *sent, unsigned cpu_threads)
{
	struct client_question question = {.k = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY};
	struct client_answers answers;
	struct client client;
	struct engine engine;
	int			threads;
	bool		right;

	engine_start(&engine, engine_program, &(struct geonn_configure) {.cpu_threads = cpu_threads});
	client_connect(&client, &engine);
	right = client_open(&client, GEONN_DEVICE_CPU, 0) && client_allocate(&client, 0, 256, 256) &&
		client_send_dataset(&client, sent, false);
	for (int i = 0; right && i < 200; i++)
	{
		right = client_collect(&client, &question, sent, &answers);
		if (right)
			client_free_answers(&answers);
	}
	threads = count_threads(engine.pid);
	client_close(&client);
	engine_stop(&engine);
	return right ? threads : 0;
}

/*
 * Threads that help are created when they are first asked to: a small batch
 * asks for none.  An engine that a busy host stops for a turn's time in the middle of a batch takes its
 * observations for slow ones, and asks for help from then on: one of several engines has no such batch.
 */
static void
test_small_batches(void)
{
	enum
	{
		MANY = 16,
		ENGINES = 20,
		/* the server, the disposal, a sanitizer's, and those that take searches in turn */
		MOST = 6
	};
	struct points points = points_create(256, PLACES_UNIFORM);
	struct client_points sent = points_to_send(&points);
	int			threads = MANY;

	for (int i = 0; i < ENGINES && threads > MOST; i++)
	{
		threads = threads_after_small_batches(&sent, MANY);
		printf("# %d threads\n", threads);
	}
	report("a small batch asks no other thread for help", threads > 0 && threads <= MOST);
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

	engine_start(&engine, engine_program, &(struct geonn_configure) {.cpu_threads = THREADS});
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

	if (argument_count < 2)
	{
		fprintf(stderr, "usage: %s ENGINE [cpu [SEED [sanitized]]]\n", words[0]);
		return EXIT_FAILURE;
	}
	engine_program = words[1];
	if (argument_count > 3)
		seed = strtoull(words[3], NULL, 10);
	if (argument_count > 4 && strcmp(words[4], "sanitized") == 0)
		patience = 10;
	random_state = seed;
	points_seed(seed);
	printf("# seed %llu\n", (unsigned long long) seed);

	/* a GPU's driver has threads of its own */
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	test_side_by_side();
	test_one_thread();
	test_small_batches();
	test_threads();
	return summed_up();
}
