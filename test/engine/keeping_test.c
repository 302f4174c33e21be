/*
 * keeping_test.c
 *		Which datasets the engine keeps, how many, and what they take from others.
 *
 * Usage: keeping_test ENGINE [cpu|cuda [SEED [sanitized]]]
 *
 * "sanitized" leaves out what depends on the engine's memory, of which sanitizers take what
 * they want.
 *
 * rooms: engine/server engine/dataset
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "nearest.h"

/* so many datasets are kept at most (datasets.c) */
#define KEPT_MOST		4096

#define SEALED (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

#define KEPT_BYTES 1000000000

/*
 * Send references as one batch to the dataset that the client has opened.
 */
static bool
send_points(struct client *client, const struct points *points)
{
	uint32_t	rows = points->count > 0 ? (uint32_t) points->count : 1;

	return client_allocate(client, 0, rows, rows) &&
		client_send_references(client, points->count, points->latitude, points->longitude,
							   points->tag, false);
}

/*
 * Have a dataset under this subject, with as many files of its own; returns whether the
 * engine had it.
 */
static bool
is_kept(const struct engine *engine, const struct points *points, int subject, int files,
		bool *right)
{
	struct client client;
	char		name[16];
	bool		kept;

	snprintf(name, sizeof(name), "%d", subject);
	client_connect(&client, engine);
	client.keep = true;
	*right = *right && client_open_labelled(&client, request.device, name, "1");
	kept = *right && client.sealed;
	for (int kind = 0; *right && !kept && kind < files; kind++)
	{
		int			file = text_file("kept", SEALED);

		client_leave(&client, (uint32_t) kind, file);
		close(file);
	}
	*right = *right && (kept || send_points(&client, points));
	client_close(&client);
	return kept;
}

static void
test_label(const struct engine *engine)
{
	struct points many = uniform_points(3000);
	struct points one = uniform_points(1);
	struct points none = points_create(0);
	struct geonn_engine_status status;
	struct client client;
	bool		right;

	client_connect(&client, engine);
	right = client_create(&client, request.device, GEONN_METRIC_SPHERE, 0) && send_points(&client, &many);
	client_close(&client);
	report("without a label no references are kept",
		   right && engine_status(engine, &status, NULL, 0) && status.kept == 0);
	right = true;
	right = !is_kept(engine, &many, 1, 0, &right) && is_kept(engine, &many, 1, 0, &right) &&
		!is_kept(engine, &one, 2, 0, &right) && is_kept(engine, &one, 2, 0, &right) &&
		!is_kept(engine, &none, 3, 0, &right) && is_kept(engine, &none, 3, 0, &right);
	report("with a label any are", right);
	points_free(&many);
	points_free(&one);
	points_free(&none);
}

/*
 * Sessions that miss one label at the same time send the same references, each its own.
 */
static void
test_same_label(const struct engine *engine)
{
	struct points points = uniform_points(2000);
	struct client clients[3];
	bool		right = true;

	for (int i = 0; i < 2; i++)
	{
		client_connect(&clients[i], engine);
		clients[i].keep = true;
		right = right && client_open_labelled(&clients[i], request.device, "one label", "1") && !clients[i].sealed;
	}
	for (int i = 0; i < 2; i++)
		right = right && send_points(&clients[i], &points);
	client_connect(&clients[2], engine);
	right = right && client_open_labelled(&clients[2], request.device, "one label", "1") && clients[2].sealed;
	report("of sessions that send references of one label at a time, the first one's stay",
		   right && clients[2].dataset == clients[0].dataset && clients[0].dataset != clients[1].dataset);
	for (int i = 0; i < 3; i++)
		client_close(&clients[i]);
	points_free(&points);
}

/* how a search of one observation was answered */
struct how
{
	bool		answered;
	enum geonn_algorithm algorithm;
};

/*
 * Ask one observation for its nearest of a kept dataset, which is sent if the engine lacks it.
 */
static struct how
ask_kept(const struct engine *engine, const struct points *points, const char *subject)
{
	struct points observation = *points;
	struct answer answer;
	struct client client;
	struct how	how = {false};

	observation.count = 1;
	client_connect(&client, engine);
	client.keep = true;
	if (client_open_labelled(&client, request.device, subject, "1") &&
		(client.sealed ? client_allocate(&client, 0, 1, 1) : send_points(&client, points)) &&
		client_search(&client, 1, points->latitude, points->longitude, &answer))
		how = (struct how) {
			answers_right(points, &observation, &answer, 1),
			(enum geonn_algorithm) client.message.results.algorithm
		};
	client_close(&client);
	return how;
}

/*
 * The first questions of a kept dataset are answered without its index.
 */
static void
test_first_questions(const struct engine *engine)
{
	struct points points = uniform_points(300000);
	struct geonn_engine_status before;
	struct geonn_engine_status after;
	struct how	how = ask_kept(engine, &points, "few questions");
	double		begun = now_ms();
	int			questions = 1;
	bool		right = how.answered && engine_status(engine, &before, NULL, 0);

	report("the first question of kept references is answered by brute force",
		   right && how.algorithm == GEONN_ALGORITHM_BRUTE);
	for (; right && how.algorithm == GEONN_ALGORITHM_BRUTE && wait_more(begun); questions++)
	{
		how = ask_kept(engine, &points, "few questions");
		right = how.answered;
	}
	printf("# question %d has the index\n", questions);
	report("after some more the index is built", right && how.algorithm == GEONN_ALGORITHM_INDEX);
	report("and takes the memory that is counted from the start",
		   engine_status(engine, &after, NULL, 0) && after.kept == before.kept && after.kept_memory == before.kept_memory);
	points_free(&points);
}

/*
 * Sessions that ask for one observation and sessions that ask for more, of the same references: some build the index while
 * others go by brute force.
 */
static void
test_questions_side_by_side(const struct engine *engine)
{
	enum
	{
		SESSIONS = 6,
		ROUNDS = 20
	};
	struct points points = uniform_points(100000);
	struct points observations = points;
	struct geonn_search search = {.k = 1,.max_distance = INFINITY};
	struct answer answers[100];
	struct client clients[SESSIONS];
	bool		right = true;

	observations.count = 100;
	for (int round = 0; right && round < ROUNDS; round++)
	{
		char		subject[16];

		snprintf(subject, sizeof(subject), "beside %d", round);
		for (int i = 0; i < SESSIONS; i++)
		{
			client_connect(&clients[i], engine);
			clients[i].keep = true;
			right = right && client_open_labelled(&clients[i], request.device, subject, "1") &&
				(clients[i].sealed ? client_allocate(&clients[i], 0, 100, 100) : send_points(&clients[i], &points));
		}
		for (int i = 0; right && i < SESSIONS; i++)
		{
			struct geonn_batch_columns *columns = &clients[i].slots[0].columns;

			search.rows = i % 3 == 2 ? 100 : 1 + i;
			memcpy(columns->latitude, points.latitude, search.rows * sizeof(double));
			memcpy(columns->longitude, points.longitude, search.rows * sizeof(double));
			client_send(&clients[i], GEONN_SEARCH, &search);
		}
		for (int i = 0; i < SESSIONS; i++)
		{
			observations.count = i % 3 == 2 ? 100 : 1 + (size_t) i;
			right = right && client_expect(&clients[i], GEONN_RESULTS) &&
				clients[i].message.results.pairs == observations.count;
			for (size_t row = 0; right && row < observations.count; row++)
				answers[row] = (struct answer) {
					1, clients[i].slots[0].columns.tag[row], clients[i].slots[0].columns.distance[row]
				};
			right = right && answers_right(&points, &observations, answers, 7);
			client_close(&clients[i]);
		}
	}
	report("small and large questions side by side have the right answers", right);
	points_free(&points);
}

/* bytes that a process takes of the host's memory */
static double
resident_memory_of(pid_t process)
{
	char		path[64];
	unsigned long long size = 0;
	unsigned long long resident = 0;
	FILE	   *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int) process);
	file = fopen(path, "r");
	if (file == NULL || fscanf(file, "%llu %llu", &size, &resident) != 2)
		exit(EXIT_FAILURE);
	fclose(file);
	return (double) resident * (double) sysconf(_SC_PAGESIZE);
}

/*
 * Does the engine, soon, take what its status says, or not much more?
 */
static bool
memory_is_told(const struct engine *engine, const char *when)
{
	struct geonn_engine_status status;
	double		told;
	double		taken;
	double		begun = now_ms();

	do
	{
		if (!engine_status(engine, &status, NULL, 0))
			return false;
		told = (double) (status.kept_memory + status.transfer_memory + status.base_memory);
		taken = resident_memory_of(engine->pid);
	} while (taken > 1.3 * told && wait_more(begun));
	printf("# %s: %u datasets, %.1f MB resident, %.1f MB by the status\n", when, status.datasets,
		   taken / 1e6, told / 1e6);
	return taken <= 1.3 * told;
}

/*
 * Milliseconds that the engine works, on whatever it has to do, until a session of its own has a status.
 */
static double
work_until_answer(const struct engine *engine, bool *right)
{
	struct geonn_engine_status status;
	double		worked = cpu_ms_of(engine->pid);

	*right = *right && engine_status(engine, &status, NULL, 0);
	return cpu_ms_of(engine->pid) - worked;
}

/*
 * Datasets of many sizes, each searched by index, so that devices have built of it.
 */
static void
keep_many(const struct engine *engine, const struct points *points, int count, bool *right)
{
	for (int i = 0; *right && i < count; i++)
	{
		struct points part = *points;
		struct points observations = *points;
		struct answer answers[100];
		struct client client;
		char		subject[16];

		part.count = i % 64 == 0 ? points->count : (size_t) (1 + i % 13 * 100);
		observations.count = 100;
		snprintf(subject, sizeof(subject), "many %d", i);
		client_connect(&client, engine);
		client.keep = true;
		*right = client_open_labelled(&client, request.device, subject, "1") &&
			send_points(&client, &part) &&
			client_search(&client, 100, points->latitude, points->longitude, answers) &&
			answers_right(&part, &observations, answers, 99);
		client_close(&client);
	}
}

static void
test_number(void)
{
	struct points points = uniform_points(20000);
	struct geonn_configure configure = {.transfer_memory_limit = 1 << 30};
	struct geonn_engine_status status;
	struct engine engine;
	double		slowest = 0.0;
	double		begun;
	bool		right = true;

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.kept_memory_limit = KEPT_BYTES});
	keep_many(&engine, &points, KEPT_MOST + 500, &right);
	right = right && engine_status(&engine, &status, NULL, 0) && status.kept <= KEPT_MOST &&
		status.kept == status.datasets;
	report("so many datasets are kept and no more", right);
	if (!request.sanitized && request.device == GEONN_DEVICE_CPU)
		report("the status tells the memory that they take",
			   memory_is_told(&engine, "many kept"));

	right = geonn_channel_send(engine.supervisor, GEONN_CONFIGURE, &configure, -1) ==
		GEONN_CHANNEL_OK;
	for (int i = 0; right && i < 300; i++)
	{
		double		worked = work_until_answer(&engine, &right);

		slowest = worked > slowest ? worked : slowest;
	}
	printf("# the engine worked %.1f ms at most until an answer while they left\n", slowest);
	right = right && slowest < 500;
	begun = now_ms();
	do
		right = right && engine_status(&engine, &status, NULL, 0);
	while (right && status.datasets > 0 && wait_more(begun));
	report("others get their answers while all of them leave", right && status.datasets == 0);
	if (!request.sanitized && request.device == GEONN_DEVICE_CPU)
		report("and the memory is given back", memory_is_told(&engine, "all gone"));
	engine_stop(&engine);
	points_free(&points);
}

/*
 * The least recently used one leaves, held or not; one that is used stays.
 */
static void
test_order_of_use(void)
{
	struct points points = uniform_points(1);
	struct engine engine;
	bool		right = true;

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.kept_memory_limit = KEPT_BYTES});
	for (int i = 0; i < KEPT_MOST + 10; i++)
	{
		right = right && !is_kept(&engine, &points, i, 0, &right);
		if (i % 1000 == 999)
			right = right && is_kept(&engine, &points, 0, 0, &right);
	}
	right = right && is_kept(&engine, &points, 0, 0, &right) &&
		is_kept(&engine, &points, KEPT_MOST + 9, 0, &right) &&
		is_kept(&engine, &points, 11, 0, &right) &&
		!is_kept(&engine, &points, 1, 0, &right);
	report("the one that was used least recently makes place", right);
	engine_stop(&engine);
	points_free(&points);
}

static int
kept_files_of(const struct engine *engine)
{
	return descriptors_of(engine->pid, "memfd:text", true);
}

/*
 * With few descriptors, which this process has from here on, too.
 */
static void
test_descriptors(void)
{
	enum
	{
		DESCRIPTORS = 256,
		SESSIONS = 64
	};
	const struct rlimit limit = {DESCRIPTORS, DESCRIPTORS};
	struct points points = uniform_points(10);
	struct client clients[SESSIONS];
	struct geonn_engine_status status;
	struct engine engine;
	bool		right = setrlimit(RLIMIT_NOFILE, &limit) == 0;
	bool		refused = false;
	double		begun;
	int			sessions = 0;
	int			files;

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.kept_memory_limit = KEPT_BYTES});
	for (int i = 0; right && i < 300; i++)
		right = !is_kept(&engine, &points, i, 1 + i % GEONN_FILE_KINDS, &right) && right;

	/* once those that have left are closed */
	begun = now_ms();
	do
		files = kept_files_of(&engine);
	while (files > DESCRIPTORS / 4 && wait_more(begun));
	printf("# %d of %d descriptors have files of kept datasets\n", files, DESCRIPTORS);
	right = right && files > DESCRIPTORS / 8 && files <= DESCRIPTORS / 4 &&
		is_kept(&engine, &points, 299, 1 + 299 % GEONN_FILE_KINDS, &right);
	report("kept datasets have a part of the descriptors", right);

	/*
	 * All are let in before any has a batch: a client that cannot be accepted waits, and its
	 * test would, too.
	 */
	for (int i = 0; i < SESSIONS; i++)
	{
		client_connect(&clients[i], &engine);
		right = right && client_open(&clients[i], request.device, 0);
	}
	while (right && !refused && sessions < SESSIONS)
	{
		struct client *client = &clients[sessions++];
		uint32_t	slot = 0;

		while (slot < GEONN_RING_SLOTS && client_allocate(client, slot, 256, 256))
			slot++;
		refused = slot == 0;	/* with fewer batches than it asked for, a session goes on */
	}
	printf("# %d sessions of %d\n", sessions, SESSIONS);
	report("sessions have the descriptors that they need in place of kept datasets",
		   right && kept_files_of(&engine) == 0 && sessions > SESSIONS / 4);
	report("and one that finds none left is told of open files",
		   refused && clients[sessions - 1].message.header.type == GEONN_ERROR &&
		   strstr(clients[sessions - 1].message.error.hint, "open files") != NULL);
	for (int i = 0; i < SESSIONS; i++)
		client_close(&clients[i]);
	report("after which all is as before",
		   right && !is_kept(&engine, &points, 1000, 3, &right) &&
		   is_kept(&engine, &points, 1000, 3, &right) &&
		   engine_status(&engine, &status, NULL, 0) && status.kept > 0);
	engine_stop(&engine);
	points_free(&points);
}

int
main(int argument_count, char **words)
{
	struct engine engine;

	tests_begin(argument_count, words);
	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.kept_memory_limit = KEPT_BYTES});
	test_label(&engine);
	test_same_label(&engine);
	if (request.device == GEONN_DEVICE_CPU)
	{
		test_first_questions(&engine);
		test_questions_side_by_side(&engine);
	}
	engine_stop(&engine);
	test_number();
	test_order_of_use();
	test_descriptors();
	return summed_up();
}
