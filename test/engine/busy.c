/*
 * busy.c
 *		What keeps an engine busy: searches that take long, and sorts.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "busy.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/random.h"

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

struct hard_search
busy_hard_search(enum geonn_device_choice device, enum hardship hardship)
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
 * Send a search's observations in all slots, the same in each; whether they
 * are on their way.
 */
bool
busy_begin(struct client *client, enum geonn_device_choice device, const struct hard_search *hard)
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

/* wait until no session is left in an engine */
bool
busy_await_no_session(const struct engine *engine)
{
	struct geonn_engine_status status;
	double		begin = now_ms();

	do
	{
		if (!engine_status(engine, &status, NULL, 0))
			return false;
	} while (status.sessions > 0 && wait_more(begin));
	return status.sessions == 0;
}

/*
 * Send observations to the dataset that another session has, in one batch.
 */
bool
busy_join(struct client *client, enum geonn_device_choice device, uint64_t dataset,
		  const struct hard_search *hard)
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

/*
 * Send references whose tags are in disorder, without a seal.
 */
bool
busy_send_unsorted(struct client *client, enum geonn_device_choice device, size_t count)
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
