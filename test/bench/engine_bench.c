/*
 * engine_bench.c
 *		Times whole searches from host memory to host memory.
 *
 * Starts an engine, gives it uniform random references, and then lets several
 * clients, each a thread with a session and a ring of batches of its own as a
 * parallel query's processes have, send observations and take the answers.
 * What is timed begins with the first observation sent and ends with the last
 * answer read; the dataset is timed apart.  A sample of the answers is held
 * against the definition.
 *
 * Usage: engine_bench ENGINE [-d cpu|cuda] [-n OBSERVATIONS] [-m REFERENCES]
 *                     [-c CLIENTS] [-b BATCH_ROWS] [-r REPEATS] [-s SEED]
 *
 * CUDA_VISIBLE_DEVICES chooses the GPUs.
 */
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/common/geodesy.h"
#include "../client/engine_client.h"
#include "../client/random.h"

#define CLIENTS_MAX 64
#define REPEATS_MAX 100
#define CHECKED 20

static struct
{
	enum geonn_device_choice device;
	size_t		observations;
	size_t		references;
	int			clients;
	uint32_t	batch_rows;
	int			repeats;
}			options = {
	.device = GEONN_DEVICE_AUTO,
	.observations = (size_t) 1 << 24,
	.references = (size_t) 1 << 16,
	.clients = 2,
	.batch_rows = 1 << 18,
	.repeats = 5
};

struct share
{
	struct client client;
	size_t		begin;
	size_t		count;
	const double *latitude;
	const double *longitude;
	struct answer *answers;
	bool		sound;
};

static void
fill_uniform(double *latitude, double *longitude, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		latitude[i] = asin(random_between(-1, 1)) * (180 / M_PI);
		longitude[i] = random_between(-180, 180);
	}
}

static void *
allocate(size_t count, size_t size)
{
	void	   *memory = calloc(count, size);

	if (memory == NULL)
	{
		fprintf(stderr, "not enough memory\n");
		exit(EXIT_FAILURE);
	}
	return memory;
}

static void *
search_share(void *argument)
{
	struct share *share = argument;

	share->sound = client_search(&share->client, share->count,
								 share->latitude + share->begin,
								 share->longitude + share->begin,
								 share->answers + share->begin);
	return NULL;
}

static double
search_all(struct share *shares)
{
	pthread_t	threads[CLIENTS_MAX];
	double		begin = now_ms();

	for (int i = 0; i < options.clients; i++)
		pthread_create(&threads[i], NULL, search_share, &shares[i]);
	for (int i = 0; i < options.clients; i++)
	{
		pthread_join(threads[i], NULL);
		if (!shares[i].sound)
		{
			fprintf(stderr, "search failed: %s %s\n", shares[i].client.message.error.message,
					shares[i].client.message.error.detail);
			exit(EXIT_FAILURE);
		}
	}
	return now_ms() - begin;
}

static bool
sample_right(const double *latitude, const double *longitude,
			 const struct answer *answers, const double *reference_latitude,
			 const double *reference_longitude)
{
	for (int i = 0; i < CHECKED; i++)
	{
		size_t		observation = random_bits() % options.observations;
		double		smallest = INFINITY;
		int64_t		nearest = -1;

		for (size_t j = 0; j < options.references; j++)
		{
			double		distance = geonn_distance_degrees(latitude[observation],
														  longitude[observation],
														  reference_latitude[j],
														  reference_longitude[j]);

			if (distance < smallest)
			{
				smallest = distance;
				nearest = (int64_t) j;
			}
		}
		if (answers[observation].tag != nearest || answers[observation].distance != smallest)
			return false;
	}
	return true;
}

static int
compare_times(const void *left, const void *right)
{
	double		a = *(const double *) left;
	double		b = *(const double *) right;

	return (a > b) - (a < b);
}

static void
print_devices(const struct engine *engine)
{
	struct geonn_engine_status status;
	struct geonn_device_status devices[GEONN_DEVICES_MAX];

	if (!engine_status(engine, &status, devices, GEONN_DEVICES_MAX))
		return;
	for (uint32_t i = 0; i < status.devices; i++)
		if (devices[i].batches > 0)
			printf("  device %u, %s: %llu batches\n", i, devices[i].name,
				   (unsigned long long) devices[i].batches);
}

static void
parse_options(int count, char **words)
{
	int			option;

	while ((option = getopt(count, words, "d:n:m:c:b:r:s:")) != -1)
	{
		switch (option)
		{
			case 'd':
				options.device = strcmp(optarg, "cuda") == 0 ? GEONN_DEVICE_CUDA : GEONN_DEVICE_CPU;
				break;
			case 'n':
				options.observations = strtoull(optarg, NULL, 10);
				break;
			case 'm':
				options.references = strtoull(optarg, NULL, 10);
				break;
			case 'c':
				options.clients = atoi(optarg);
				break;
			case 'b':
				options.batch_rows = (uint32_t) strtoul(optarg, NULL, 10);
				break;
			case 'r':
				options.repeats = atoi(optarg);
				break;
			case 's':
				random_state = strtoull(optarg, NULL, 10);
				break;
			default:
				exit(EXIT_FAILURE);
		}
	}
	if (optind + 1 != count || options.observations < 1 || options.references < 1 ||
		options.clients < 1 || options.clients > CLIENTS_MAX ||
		options.repeats < 1 || options.repeats > REPEATS_MAX)
	{
		fprintf(stderr, "usage: %s [-d cpu|cuda] [-n OBSERVATIONS] [-m REFERENCES] [-c CLIENTS]"
				" [-b BATCH_ROWS] [-r REPEATS] [-s SEED] ENGINE\n", words[0]);
		exit(EXIT_FAILURE);
	}
}

int
main(int argument_count, char **words)
{
	static struct share shares[CLIENTS_MAX];
	static double times[REPEATS_MAX];
	struct engine engine;
	uint64_t	dataset = 0;	/* opened by the first client */
	struct answer *answers;
	double	   *latitude;
	double	   *longitude;
	double	   *reference_latitude;
	double	   *reference_longitude;
	int64_t    *tag;
	double		begin;
	double		median;
	bool		sound = true;

	parse_options(argument_count, words);
	printf("%zu observations x %zu references, %d clients, batches of %u, seed %llu\n",
		   options.observations, options.references, options.clients, options.batch_rows,
		   (unsigned long long) random_state);
	latitude = allocate(options.observations, sizeof(double));
	longitude = allocate(options.observations, sizeof(double));
	answers = allocate(options.observations, sizeof(struct answer));
	reference_latitude = allocate(options.references, sizeof(double));
	reference_longitude = allocate(options.references, sizeof(double));
	tag = allocate(options.references, sizeof(int64_t));
	fill_uniform(reference_latitude, reference_longitude, options.references);
	fill_uniform(latitude, longitude, options.observations);
	for (size_t i = 0; i < options.references; i++)
		tag[i] = (int64_t) i;

	engine_start(&engine, words[optind], NULL, NULL);
	for (int i = 0; i < options.clients; i++)
	{
		struct share *share = &shares[i];

		share->latitude = latitude;
		share->longitude = longitude;
		share->answers = answers;
		share->begin = options.observations * (size_t) i / (size_t) options.clients;
		share->count = options.observations * (size_t) (i + 1) / (size_t) options.clients -
			share->begin;
		client_connect(&share->client, &engine);
		sound = sound && client_open(&share->client, options.device, dataset);
		dataset = share->client.message.opened.dataset;
		for (uint32_t slot = 0; sound && slot < GEONN_RING_SLOTS; slot++)
			sound = client_allocate(&share->client, slot, options.batch_rows, options.batch_rows);
		if (i == 0)
		{
			begin = now_ms();
			sound = sound && client_send_references(&share->client, options.references,
													reference_latitude, reference_longitude,
													tag, false);
			printf("  references sent and sealed: %.1f ms\n", now_ms() - begin);
		}
		if (!sound)
		{
			fprintf(stderr, "client %d: %s %s\n", i, share->client.message.error.message,
					share->client.message.error.detail);
			return EXIT_FAILURE;
		}
	}

	search_all(shares);			/* builds the dataset on every device */
	for (int i = 0; i < options.repeats; i++)
		times[i] = search_all(shares);
	qsort(times, (size_t) options.repeats, sizeof(double), compare_times);
	median = times[options.repeats / 2];
	printf("  median %.1f ms (%.1f to %.1f of %d): %.2f T pairs/s, %.1f M observations/s\n",
		   median, times[0], times[options.repeats - 1], options.repeats,
		   (double) options.observations * (double) options.references / median * 1e-9,
		   (double) options.observations / median * 1e-3);
	print_devices(&engine);
	sound = sample_right(latitude, longitude, answers, reference_latitude, reference_longitude);
	printf("  %d answers checked: %s\n", CHECKED, sound ? "right" : "WRONG");
	for (int i = 0; i < options.clients; i++)
		client_close(&shares[i].client);
	engine_stop(&engine);
	return sound ? EXIT_SUCCESS : EXIT_FAILURE;
}
