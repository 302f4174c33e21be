/*
 * nearest.c
 *		Searches for the nearest reference, held against the definition.
 *
 * The definition is a loop over all references with geodesy.h's distance, in order;
 * nearest_oracle holds the same distances against a higher precision.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "nearest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/geodesy.h"
#include "../lib/random.h"

struct request request;

void
tests_begin(int argument_count, char **words)
{
	if (argument_count < 2)
	{
		fprintf(stderr, "usage: %s ENGINE [cpu|cuda [SEED [sanitized]]]\n", words[0]);
		exit(EXIT_FAILURE);
	}
	request.engine_program = words[1];
	request.device = argument_count > 2 && strcmp(words[2], "cuda") == 0 ?
		GEONN_DEVICE_CUDA : GEONN_DEVICE_CPU;
	if (argument_count > 3)
		random_state = strtoull(words[3], NULL, 10);
	request.seed = random_state;
	request.sanitized = argument_count > 4 && strcmp(words[4], "sanitized") == 0;
	printf("# seed %llu, device %s\n", (unsigned long long) request.seed,
		   request.device == GEONN_DEVICE_CUDA ? "cuda" : "cpu");
}

struct points
points_create(size_t count)
{
	struct points points = {
		.count = count,
		.latitude = calloc(count + 1, sizeof(double)),
		.longitude = calloc(count + 1, sizeof(double)),
		.tag = calloc(count + 1, sizeof(int64_t))
	};

	if (!points.latitude || !points.longitude || !points.tag)
		exit(EXIT_FAILURE);
	for (size_t i = 0; i < count; i++)
		points.tag[i] = (int64_t) i;
	return points;
}

void
points_free(struct points *points)
{
	free(points->latitude);
	free(points->longitude);
	free(points->tag);
}

struct points
uniform_points(size_t count)
{
	struct points points = points_create(count);

	for (size_t i = 0; i < count; i++)
	{
		points.latitude[i] = asin(random_between(-1, 1)) * (180 / M_PI);
		points.longitude[i] = random_between(-180, 180);
	}
	return points;
}

struct points
clustered_points(size_t count, double degrees)
{
	struct points points = points_create(count);
	double		latitude = 0;
	double		longitude = 0;

	for (size_t i = 0; i < count; i++)
	{
		if (i % 200 == 0)
		{
			latitude = random_between(-89, 89);
			longitude = random_between(-179, 179);
		}
		points.latitude[i] = latitude + random_between(-degrees, degrees);
		points.longitude[i] = longitude + random_between(-degrees, degrees);
	}
	return points;
}

struct points
grid_points(double step)
{
	size_t		rows = (size_t) (180 / step) + 1;
	size_t		columns = (size_t) (360 / step) + 1;
	struct points points = points_create(rows * columns);

	for (size_t i = 0; i < points.count; i++)
	{
		points.latitude[i] = -90 + step * (double) (i / columns);
		points.longitude[i] = -180 + step * (double) (i % columns);
	}
	return points;
}

struct points
antipodes_of(const struct points *points)
{
	struct points antipodes = points_create(points->count);

	for (size_t i = 0; i < points->count; i++)
	{
		antipodes.latitude[i] = -points->latitude[i];
		antipodes.longitude[i] = points->longitude[i] + 180;
	}
	return antipodes;
}

struct points
repeated_points(size_t count, size_t different)
{
	struct points some = uniform_points(different);
	struct points points = points_create(count);

	for (size_t i = 0; i < count; i++)
	{
		size_t		source = random_bits() % different;

		points.latitude[i] = some.latitude[source];
		points.longitude[i] = some.longitude[source];
	}
	points_free(&some);
	return points;
}

static bool
bits_equal(double a, double b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

bool
answers_right(const struct points *references, const struct points *observations,
			  const struct answer *answers, size_t stride)
{
	struct geonn_vector *places = calloc(references->count + 1, sizeof(*places));
	bool		right = true;

	for (size_t i = 0; i < references->count; i++)
		places[i] = geonn_unit_vector(references->latitude[i], references->longitude[i]);
	for (size_t i = 0; i < observations->count && right; i += stride)
	{
		struct geonn_vector place = geonn_unit_vector(observations->latitude[i],
													  observations->longitude[i]);
		double		smallest = INFINITY;
		int64_t		tag = -1;

		for (size_t j = 0; j < references->count; j++)
		{
			double		distance = geonn_distance_of(place, places[j]);

			if (distance < smallest)
			{
				smallest = distance;
				tag = references->tag[j];
			}
		}
		right = answers[i].count == 1 && answers[i].tag == tag &&
			bits_equal(answers[i].distance, smallest);
		if (!right)
			printf("# observation %zu (%.17g, %.17g): tag %lld at %.17g m, expected %lld at %.17g m\n",
				   i, observations->latitude[i], observations->longitude[i],
				   (long long) answers[i].tag, answers[i].distance, (long long) tag, smallest);
	}
	free(places);
	return right;
}

bool
search_right(const struct engine *engine, const struct points *references,
			 const struct points *observations, uint32_t rows, uint32_t room,
			 int slots, size_t stride)
{
	struct answer *answers = calloc(observations->count + 1, sizeof(*answers));
	struct client client;
	bool		right;

	client_connect(&client, engine);
	right = client_open(&client, request.device, 0);
	for (int i = 0; right && i < slots; i++)
		right = client_allocate(&client, (uint32_t) i, rows, room);
	right = right &&
		client_send_references(&client, references->count, references->latitude,
							   references->longitude, references->tag, false) &&
		client_search(&client, observations->count, observations->latitude,
					  observations->longitude, answers) &&
		answers_right(references, observations, answers, stride);
	if (client.message.header.type == GEONN_ERROR)
		printf("# %s\n", client.message.error.message);
	client_close(&client);
	free(answers);
	return right;
}
