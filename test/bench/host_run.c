/*
 * host_run.c
 *		Runs from host memory to host memory, through the engine.
 *
 * An engine is started, as PostgreSQL's supervisor would, and several clients
 * attach to one dataset, as the processes of a parallel query do.  Each has a
 * thread, a session and a ring of batches.  Together the batches hold all
 * observations: their coordinates are put there before the clock starts, and
 * answers are left where the engine writes them.  So what is timed is the way
 * of float64 degrees from host memory to tags and distances in host memory,
 * without a copy that the benchmark itself would make.
 *
 *	open		starts the engine, allocates and fills batches, sends references
 *	a search	the clients' threads wait at a barrier, ask for all their
 *				batches, read the counts of what comes, and meet again
 *
 * A batch whose results fill its room is asked again for what is left; the
 * next results take the place of the former.  What belongs to the samples is
 * copied out as it comes (host_samples.c).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "host_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/parallel.h"
#include "host_samples.h"

#define CLIENTS_MAX 128
#define ANSWER_TIMEOUT_MS 600000

/* pairs that a batch has room for; more come in parts */
#define ROOM_MAX ((uint32_t) 1 << 21)

/* observations that tell how long a search takes, where the CPU does it */
#define PILOT_ROWS 4096

/* batches hold at most so many observations, unless asked for */
#define BATCH_ROWS_MAX ((uint32_t) 1 << 20)
#define BATCH_ROWS_MIN ((uint32_t) 1 << 12)

/* so many are enough to keep a GPU busy, and a thread of the CPU, whose batches have at most so many rows */
#define BATCHES_OF_A_DEVICE 32
#define BATCHES_OF_A_THREAD 2
#define BATCH_ROWS_OF_CPU ((uint32_t) 1 << 17)

static void
describe_failure(const struct client *client, const char *what, char *failure)
{
	const union geonn_message *message = &client->message;

	if (message->header.type == GEONN_ERROR)
		snprintf(failure, FAILURE_SIZE, "%s: %s. %.200s", what, message->error.message,
				 message->error.detail);
	else
		snprintf(failure, FAILURE_SIZE, "%s: the engine does not answer, or not as it should",
				 what);
}

/*
 * Copy all answers, k an observation, out of a batch's results.
 */
static bool
take_all(const struct host_run *run, const struct geonn_batch_columns *columns,
		 const struct geonn_results *results, uint64_t batch_first)
{
	bool		one_each = (results->flags & GEONN_RESULTS_ONE_EACH) != 0;
	uint64_t	first = (batch_first + results->first) * run->k;

	for (uint32_t i = 0; i < results->observations; i++)
		if ((one_each ? 1 : columns->count[results->first + i]) != run->k)
			return false;
	for (uint64_t i = 0; i < (uint64_t) results->observations * run->k; i++)
	{
		run->exported_reference[first + i] = (double) bench_tag((uint64_t) columns->tag[i]);
		run->exported_distance[first + i] = columns->distance[i];
	}
	return true;
}

static void
request(struct host_client *client, uint32_t slot, uint32_t rows)
{
	struct geonn_search message = {
		.slot = slot,
		.first = client->next[slot],
		.rows = rows,
		.k = client->run->radii > 0 ? 0 : client->run->k,
		.algorithm = client->run->algorithm,
		.max_distance = conditions_max_distance(&client->run->conditions),
		.radii = client->run->radii
	};

	memcpy(message.radius, client->run->radius, sizeof(message.radius));
	client_send(&client->client, GEONN_SEARCH, &message);
}

/*
 * One client's share of a search.
 */
static void
search_share(struct host_client *client)
{
	const struct host_run *run = client->run;
	struct client *connection = &client->client;
	uint32_t	slots = run->rows_limit > 0 ? 1 : client->slots;
	uint32_t	left = slots;
	uint32_t	rows[GEONN_RING_SLOTS];

	for (uint32_t i = 0; i < slots; i++)
	{
		rows[i] = run->rows_limit > 0 && run->rows_limit < client->rows[i] ? run->rows_limit :
			client->rows[i];
		client->next[i] = 0;
		request(client, i, rows[i]);
	}
	while (left > 0)
	{
		struct geonn_results results;
		const struct geonn_batch_columns *columns;
		uint64_t	pairs = 0;
		uint64_t	batch_first;

		if (client_receive(connection, ANSWER_TIMEOUT_MS) != GEONN_RESULTS)
		{
			describe_failure(connection, "search", client->failure);
			return;
		}
		results = connection->message.results;
		if (results.slot >= slots || results.first != client->next[results.slot] ||
			results.observations < 1 ||
			results.observations > rows[results.slot] - results.first ||
			results.flags & GEONN_RESULTS_PARTIAL)
		{
			snprintf(client->failure, FAILURE_SIZE, "search: results that do not fit the request");
			return;
		}
		columns = &connection->slots[results.slot].columns;
		batch_first = client->first + (uint64_t) results.slot * run->batch_rows;
		if (results.flags & GEONN_RESULTS_ONE_EACH)
			pairs = results.observations;
		else
			for (uint32_t i = 0; i < results.observations; i++)
				pairs += columns->count[results.first + i];
		if (pairs != results.pairs || pairs > columns->room ||
			(run->order == ORDER_EXPORT && !take_all(run, columns, &results, batch_first)))
		{
			snprintf(client->failure, FAILURE_SIZE, "search: not as many pairs as were announced");
			return;
		}
		host_samples_take(run, columns, &results, batch_first);
		client->next[results.slot] += results.observations;
		if (client->next[results.slot] < rows[results.slot])
			request(client, results.slot, rows[results.slot]);
		else
			left--;
	}
}

static void *
client_main(void *argument)
{
	struct host_client *client = argument;
	struct host_run *run = client->run;

	for (;;)
	{
		pthread_barrier_wait(&run->barrier);
		if (run->order == ORDER_END)
			return NULL;
		search_share(client);
		pthread_barrier_wait(&run->barrier);
	}
}

/*
 * All clients search; milliseconds, or less than 0 with the failure.
 */
static double
search_all(struct host_run *run, enum order order, uint32_t rows_limit, char *failure)
{
	double		begin;
	double		end;

	run->order = order;
	run->rows_limit = rows_limit;
	pthread_barrier_wait(&run->barrier);
	begin = now_ms();
	pthread_barrier_wait(&run->barrier);
	end = now_ms();
	for (int i = 0; i < run->clients; i++)
	{
		if (run->client[i].failure[0] == '\0')
			continue;
		snprintf(failure, FAILURE_SIZE, "%s", run->client[i].failure);
		return -1.0;
	}
	return end - begin;
}

/*
 * Would one search of all fit the time?  On the CPU, where brute force may
 * take an hour, a few observations tell.
 */
static bool
fits_limit(struct host_run *run, const struct problem *problem, struct outcome *outcome)
{
	double		observations = (double) run->clients * PILOT_ROWS;
	double		pilot_ms;
	double		expected_ms;

	if (problem->device != GEONN_DEVICE_CPU || isinf(problem->limit_ms) ||
		(double) run->observations < 4 * observations)
		return true;
	pilot_ms = search_all(run, ORDER_SEARCH, PILOT_ROWS, outcome->failure);
	if (pilot_ms >= 0)
		pilot_ms = search_all(run, ORDER_SEARCH, PILOT_ROWS, outcome->failure);
	if (pilot_ms < 0)
		return false;
	expected_ms = pilot_ms * (double) run->observations / observations;
	if (expected_ms > problem->limit_ms)
		snprintf(outcome->failure, FAILURE_SIZE, "left out: it would take about %.3g s",
				 expected_ms * 1e-3);
	return expected_ms <= problem->limit_ms;
}

void
host_run_search(struct host_run *run, const struct problem *problem, struct outcome *outcome)
{
	double		begin = now_ms();

	memset(outcome, 0, sizeof(*outcome));
	outcome->sent_ms = run->sent_ms;
	run->algorithm = problem->algorithm;
	if (!fits_limit(run, problem, outcome))
		return;
	host_samples_make(run, problem);
	outcome->first_ms = search_all(run, ORDER_SEARCH, 0, outcome->failure);
	for (int i = 0; outcome->failure[0] == '\0' && i < problem->repetitions; i++)
	{
		if (i > 0 && now_ms() - begin > problem->limit_ms)
			break;
		for (uint32_t j = 0; j < run->sample_count; j++)
			run->samples[j].count = 0;
		outcome->total_ms[i] = search_all(run, ORDER_SEARCH, 0, outcome->failure);
		outcome->repetitions = i + 1;
	}
	if (outcome->failure[0] == '\0')
	{
		outcome->finished = true;
		outcome_summarize(outcome);
		outcome->verdict = problem->metric != GEONN_METRIC_SPHERE ? (struct verdict) {.right = true} : host_samples_check(run);
	}
	host_samples_free(run);
}

bool
host_run_export(struct host_run *run, const struct problem *problem, FILE *file, char *failure)
{
	bool		written;

	uint64_t	answers = run->observations * run->k;

	run->exported_reference = bench_allocate(answers, sizeof(double));
	run->exported_distance = bench_allocate(answers, sizeof(double));
	run->algorithm = problem->algorithm;
	failure[0] = '\0';
	written = search_all(run, ORDER_EXPORT, 0, failure) >= 0 &&
		fwrite(run->latitude, sizeof(double), run->references, file) == run->references &&
		fwrite(run->longitude, sizeof(double), run->references, file) == run->references;

	for (int column = 0; column < 2; column++)
		for (int i = 0; i < run->clients; i++)
			for (uint32_t j = 0; j < run->client[i].slots; j++)
			{
				const struct geonn_batch_columns *columns = &run->client[i].client.slots[j].columns;
				uint32_t	rows = run->client[i].rows[j];

				written = written && fwrite(column == 0 ? columns->latitude : columns->longitude,
											sizeof(double), rows, file) == rows;
			}
	written = written &&
		fwrite(run->exported_reference, sizeof(double), answers, file) == answers &&
		fwrite(run->exported_distance, sizeof(double), answers, file) == answers;
	if (!written && failure[0] == '\0')
		snprintf(failure, FAILURE_SIZE, "could not write the exported points");
	free(run->exported_reference);
	free(run->exported_distance);
	return written;
}

/*
 * How many observations a batch holds, so that devices are kept busy and
 * CLIENTS_MAX rings hold all.
 */
static uint32_t
choose_batch_rows(const struct problem *problem)
{
	uint64_t	batches_max = CLIENTS_MAX * GEONN_RING_SLOTS;
	uint64_t	devices = problem->gpus > 0 ? (uint64_t) problem->gpus : 1;
	bool		by_cpu = problem->device == GEONN_DEVICE_CPU;
	uint64_t	threads = (uint64_t) (problem->threads > 0 ? problem->threads : parallel_cores());
	uint64_t	enough = problem->observations / (by_cpu ? threads * BATCHES_OF_A_THREAD : devices * BATCHES_OF_A_DEVICE);
	uint64_t	pairs_each = problem->k > 0 ? problem->k : 1;
	uint64_t	rows_max = !by_cpu ? BATCH_ROWS_MAX :
		BATCH_ROWS_OF_CPU * pairs_each <= ROOM_MAX ? BATCH_ROWS_OF_CPU : ROOM_MAX / pairs_each;
	uint64_t	rows = BATCH_ROWS_MIN;

	if (problem->batch_rows > 0)
		return problem->batch_rows;
	while (2 * rows <= rows_max && rows < enough)
		rows *= 2;
	while (rows < GEONN_BATCH_ROWS_MAX && rows * batches_max < problem->observations)
		rows *= 2;
	return (uint32_t) rows;
}

/*
 * Start an engine that may use so many GPUs and threads, with room for all
 * batches.
 */
static void
start_engine(struct host_run *run, const struct problem *problem, uint64_t batch_bytes)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	char	   *saved = visible != NULL ? strdup(visible) : NULL;
	char		chosen[1024] = "";
	const struct geonn_configure settings = {
		.cpu_threads = (uint64_t) problem->threads,
		.transfer_memory_limit = 2 * batch_bytes + (UINT64_C(1) << 30),
		.kept_memory_limit = UINT64_C(1) << 30	/* as by default: tables of squares count */
	};

	/* the first of those that this process sees */
	for (int i = 0; i < problem->gpus; i++)
	{
		size_t		length = strlen(chosen);

		if (saved == NULL)
			snprintf(chosen + length, sizeof(chosen) - length, "%s%d", i > 0 ? "," : "", i);
		else
		{
			const char *name = saved;

			for (int j = 0; j < i; j++)
				name = strchrnul(name, ',') + (*strchrnul(name, ',') != '\0');
			snprintf(chosen + length, sizeof(chosen) - length, "%s%.*s", i > 0 ? "," : "",
					 (int) (strchrnul(name, ',') - name), name);
		}
	}
	setenv("CUDA_VISIBLE_DEVICES", chosen, 1);
	engine_start(&run->engine, problem->engine, &settings);
	if (saved != NULL)
		setenv("CUDA_VISIBLE_DEVICES", saved, 1);
	else
		unsetenv("CUDA_VISIBLE_DEVICES");
	free(saved);
}

/*
 * Connect a client to a dataset, a new one where it is 0, and get its batches.
 */
static bool
open_client(struct host_client *client, const struct problem *problem, uint64_t *dataset,
			uint32_t room, char *failure)
{
	struct host_run *run = client->run;

	client_connect(&client->client, &run->engine);
	if (*dataset != 0 ? !client_attach(&client->client, problem->device, *dataset) :
		!client_create(&client->client, problem->device, problem->metric,
					   conditions_columns(&problem->conditions)))
	{
		describe_failure(&client->client, "open", failure);
		return false;
	}
	*dataset = client->client.message.opened.dataset;
	for (uint32_t i = 0; i < GEONN_RING_SLOTS; i++)
	{
		uint64_t	first = client->first + (uint64_t) i * run->batch_rows;

		if (first >= run->observations)
			break;
		if (!client_allocate(&client->client, i, run->batch_rows, room) ||
			client->client.slots[i].columns.rows != run->batch_rows)
		{
			describe_failure(&client->client, "allocate", failure);
			return false;
		}
		client->rows[i] = (uint32_t) (run->observations - first < run->batch_rows ?
									  run->observations - first : run->batch_rows);
		client->slots = i + 1;
	}
	return true;
}

/* fill_batches' arguments */
struct fill
{
	struct host_run *run;
	struct points points;
};

/*
 * Put observations into batches [begin, end).
 */
static void
fill_batches(void *argument, size_t begin, size_t end)
{
	const struct fill *fill = argument;

	for (size_t batch = begin; batch < end; batch++)
	{
		struct host_client *client = &fill->run->client[batch / GEONN_RING_SLOTS];
		uint32_t	slot = batch % GEONN_RING_SLOTS;
		const struct geonn_batch_columns *columns = &client->client.slots[slot].columns;

		points_fill(&fill->points, batch * fill->run->batch_rows, client->rows[slot],
					columns->latitude, columns->longitude);
		conditions_fill(&fill->run->conditions, fill->run->seed, POINTS_OBSERVATIONS,
						batch * fill->run->batch_rows, client->rows[slot], columns);
	}
}

static bool
send_shapes(struct host_run *run, const struct points *points, char *failure)
{
	struct shapes *shapes = &run->shapes;
	struct client_points references = {.count = run->references};
	double		begin;
	bool		sent;

	shapes_make(shapes, &run->conditions, run->seed, points, run->references);
	references.latitude = shapes->latitude;
	references.longitude = shapes->longitude;
	references.tag = shapes->tag;
	references.end_latitude = shapes->end_latitude;
	references.end_longitude = shapes->end_longitude;
	references.shape = shapes->shape;
	references.polygon = shapes->polygon;
	begin = now_ms();
	sent = client_send_dataset(&run->client[0].client, &references, false);
	run->sent_ms = now_ms() - begin;
	if (!sent)
		describe_failure(&run->client[0].client, "references", failure);
	return sent;
}

static bool
send_references(struct host_run *run, const struct points *points, char *failure)
{
	int64_t    *tag = bench_allocate(run->references, sizeof(int64_t));
	size_t		count = run->references;
	uint32_t	present = conditions_columns(&run->conditions);
	struct geonn_batch_columns columns = {
		.group = present & GEONN_COLUMN_GROUP ? bench_allocate(count, sizeof(int32_t)) : NULL,
		.radius = present & GEONN_COLUMN_RADIUS ? bench_allocate(count, sizeof(double)) : NULL,
		.low = {present & GEONN_COLUMN_WINDOW ? bench_allocate(count, sizeof(int64_t)) : NULL},
		.high = {present & GEONN_COLUMN_WINDOW ? bench_allocate(count, sizeof(int64_t)) : NULL},
		.edges = present & GEONN_COLUMN_WINDOW ? bench_allocate(count, sizeof(uint16_t)) : NULL
	};
	struct client_points references = {
		.count = count,
		.latitude = run->latitude,
		.longitude = run->longitude,
		.tag = tag,
		.group = columns.group,
		.radius = columns.radius,
		.low = {columns.low[0]},
		.high = {columns.high[0]},
		.edges = columns.edges
	};
	double		begin;
	bool		sent;

	for (uint32_t i = 0; i < run->conditions.weights; i++)
		references.weight[i] = columns.weight[i] = bench_allocate(count, sizeof(double));
	points_fill_parallel(points, 0, run->references, run->latitude, run->longitude);
	for (uint32_t i = 0; i < run->references; i++)
		tag[i] = bench_tag(i);
	conditions_fill(&run->conditions, run->seed, POINTS_REFERENCES, 0, count, &columns);
	begin = now_ms();
	/* counts need tags that rise */
	sent = client_send_dataset(&run->client[0].client, &references, run->radii > 0);
	run->sent_ms = now_ms() - begin;
	free(tag);
	free(columns.group);
	free(columns.radius);
	free(columns.low[0]);
	free(columns.high[0]);
	free(columns.edges);
	for (uint32_t i = 0; i < run->conditions.weights; i++)
		free(columns.weight[i]);
	if (!sent)
		describe_failure(&run->client[0].client, "references", failure);
	return sent;
}

struct host_run *
host_run_open(const struct problem *problem, char *failure)
{
	static struct points_city cities[POINTS_CITY_COUNT];
	struct host_run *run = bench_allocate(1, sizeof(struct host_run));
	struct points references = points_of(problem->distribution, problem->seed,
										 POINTS_REFERENCES, cities);
	struct fill fill = {
		.run = run,
		.points = points_of(problem->distribution, problem->seed,
							conditions_observed_set(&problem->conditions), cities)
	};
	struct geonn_batch_columns columns;
	uint64_t	dataset = 0;
	uint64_t	batches;
	uint64_t	room;

	points_make_cities(problem->seed, cities);
	run->observations = problem->observations;
	run->references = problem->references;
	run->k = problem->k;
	run->radii = problem->radii;
	memcpy(run->radius, problem->radius, sizeof(run->radius));
	run->conditions = problem->conditions;
	run->seed = problem->seed;
	run->batch_rows = choose_batch_rows(problem);
	batches = (run->observations + run->batch_rows - 1) / run->batch_rows;
	if (batches > CLIENTS_MAX * GEONN_RING_SLOTS)
	{
		snprintf(failure, FAILURE_SIZE, "%llu observations are %llu batches of %u, and there may be %d",
				 (unsigned long long) run->observations, (unsigned long long) batches,
				 run->batch_rows, CLIENTS_MAX * GEONN_RING_SLOTS);
		free(run);
		return NULL;
	}
	room = (uint64_t) run->batch_rows * run->k;
	if (room > ROOM_MAX)
		room = run->batch_rows > ROOM_MAX ? run->batch_rows : ROOM_MAX;
	run->clients = (int) ((batches + GEONN_RING_SLOTS - 1) / GEONN_RING_SLOTS);
	run->client = bench_allocate((size_t) run->clients, sizeof(struct host_client));
	run->latitude = bench_allocate(run->references, sizeof(double));
	run->longitude = bench_allocate(run->references, sizeof(double));
	pthread_barrier_init(&run->barrier, NULL, (unsigned) run->clients + 1);

	start_engine(run, problem, batches * geonn_batch_layout(NULL, run->batch_rows,
															(uint32_t) room,
															conditions_columns(&run->conditions),
															&columns));
	for (int i = 0; i < run->clients; i++)
	{
		struct host_client *client = &run->client[i];

		client->run = run;
		client->first = (uint64_t) i * GEONN_RING_SLOTS * run->batch_rows;
		client->client.socket = -1;
	}
	for (int i = 0; i < run->clients; i++)
	{
		struct host_client *client = &run->client[i];

		if (!open_client(client, problem, &dataset, (uint32_t) room, failure) ||
			(i == 0 && !(conditions_columns(&run->conditions) & GEONN_COLUMN_ARC ? send_shapes : send_references)
			 (run, &references, failure)))
		{
			host_run_close(run);
			return NULL;
		}
	}
	parallel(batches, 1, fill_batches, &fill);
	for (; run->threads < run->clients; run->threads++)
		if (pthread_create(&run->client[run->threads].thread, NULL, client_main,
						   &run->client[run->threads]) != 0)
		{
			fprintf(stderr, "geonn-bench: could not start %d threads\n", run->clients);
			exit(EXIT_FAILURE);
		}
	return run;
}

void
host_run_close(struct host_run *run)
{
	if (run->threads > 0)
	{
		run->order = ORDER_END;
		pthread_barrier_wait(&run->barrier);
	}
	for (int i = 0; i < run->threads; i++)
		pthread_join(run->client[i].thread, NULL);
	for (int i = 0; i < run->clients; i++)
		if (run->client[i].client.socket >= 0)
			client_close(&run->client[i].client);
	engine_stop(&run->engine);
	pthread_barrier_destroy(&run->barrier);
	free(run->latitude);
	free(run->longitude);
	shapes_free(&run->shapes);
	free(run->client);
	free(run);
}
