/*
 * recognition_test.c
 *		Which datasets the engine takes for the same: those that are, to the bit.
 *
 * Usage: recognition_test ENGINE [cpu|cuda [SEED [sanitized]]]
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nearest.h"

/* more than one piece of each column (dataset_contents.c), and a small dataset */
#define REFERENCES 40000
#define FEW_REFERENCES 1500

#define SEALED (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* all that a dataset is made of */
struct contents
{
	struct points points;
	int32_t    *group;			/* [points.count] */
	int32_t    *identity;		/* [points.count] */
	double	   *radius;			/* [points.count] */
	int64_t    *low;			/* [points.count] of all windows */
	int64_t    *high;			/* [points.count] of all windows but the last */
	int64_t    *last_high;		/* [points.count] */
	uint16_t   *edges;			/* [points.count] */
	const char *files[GEONN_FILE_KINDS];	/* NULL: none */
	enum geonn_metric metric;
	uint32_t	columns;
};

static struct contents
make_contents(size_t count, uint32_t columns)
{
	struct contents contents = {
		.points = uniform_points(count),
		.group = calloc(count, sizeof(int32_t)),
		.identity = calloc(count, sizeof(int32_t)),
		.radius = calloc(count, sizeof(double)),
		.low = calloc(count, sizeof(int64_t)),
		.high = calloc(count, sizeof(int64_t)),
		.last_high = calloc(count, sizeof(int64_t)),
		.edges = calloc(count, sizeof(uint16_t)),
		.columns = columns
	};

	if (contents.group == NULL || contents.identity == NULL || contents.radius == NULL ||
		contents.low == NULL || contents.high == NULL || contents.last_high == NULL ||
		contents.edges == NULL)
		exit(EXIT_FAILURE);
	for (size_t i = 0; i < count; i++)
	{
		contents.group[i] = (int32_t) (i % 7);
		contents.identity[i] = (int32_t) (i / 2);
		contents.radius[i] = (double) (i % 5);
		contents.low[i] = (int64_t) (i % 11);
		contents.high[i] = contents.last_high[i] = (int64_t) (i % 13) + 11;
	}
	return contents;
}

static void
free_contents(struct contents *contents)
{
	points_free(&contents->points);
	free(contents->group);
	free(contents->identity);
	free(contents->radius);
	free(contents->low);
	free(contents->high);
	free(contents->last_high);
	free(contents->edges);
}

/*
 * Send all but the seal's answer, as a dataset that the client has opened.
 */
static bool
send_contents(struct client *client, const struct contents *contents, bool order_by_tag)
{
	const struct client_points references = {
		.count = contents->points.count,
		.latitude = contents->points.latitude,
		.longitude = contents->points.longitude,
		.tag = contents->points.tag,
		.group = contents->group,
		.identity = contents->identity,
		.radius = contents->radius,
		.low = {contents->low, contents->low, contents->low},
		.high = {contents->high, contents->high, contents->last_high},
		.edges = contents->edges
	};

	for (uint32_t kind = 0; kind < GEONN_FILE_KINDS; kind++)
	{
		int			file;

		if (contents->files[kind] == NULL)
			continue;
		file = text_file(contents->files[kind], SEALED);
		client_leave(client, kind, file);
		close(file);
	}
	return client_allocate(client, 0, 16384, 16384) &&
		client_send_dataset(client, &references, order_by_tag);
}

/*
 * Send a dataset in a session of its own.  Returns the dataset that it then has, or 0, and
 * whether that was recognised.
 */
static uint64_t
sent_dataset(const struct engine *engine, const struct contents *contents, bool order_by_tag,
			 bool *recognised)
{
	struct client client;
	uint64_t	dataset = 0;

	client_connect(&client, engine);
	if (client_create(&client, request.device, contents->metric, contents->columns) &&
		send_contents(&client, contents, order_by_tag))
		dataset = client.dataset;
	*recognised = client.recognised;
	client_close(&client);
	return dataset;
}

static bool
is_recognised(const struct engine *engine, const struct contents *contents)
{
	bool		recognised;

	return sent_dataset(engine, contents, false, &recognised) != 0 && recognised;
}

static bool
is_new(const struct engine *engine, const struct contents *contents)
{
	bool		recognised;

	return sent_dataset(engine, contents, false, &recognised) != 0 && !recognised;
}

static void
test_same(const struct engine *engine)
{
	struct contents contents = make_contents(REFERENCES, 0);
	struct points observations = uniform_points(500);
	struct answer answers[500];
	struct geonn_engine_status status;
	struct client client;
	uint64_t	first;
	uint64_t	second;
	bool		recognised;
	bool		right;

	first = sent_dataset(engine, &contents, false, &recognised);
	right = first != 0 && !recognised;
	second = sent_dataset(engine, &contents, false, &recognised);
	report("the same references again are the kept dataset", right && recognised && second == first);

	client_connect(&client, engine);
	right = client_create(&client, request.device, contents.metric, contents.columns) &&
		send_contents(&client, &contents, false) && client.dataset == first &&
		engine_status(engine, &status, NULL, 0) && status.datasets == 1 && status.kept == 1 &&
		client_search(&client, 500, observations.latitude, observations.longitude, answers) &&
		answers_right(&contents.points, &observations, answers, 1);
	client_close(&client);
	client_connect(&client, engine);
	right = right && client_attach(&client, request.device, first) &&
		client.references == REFERENCES;
	client_close(&client);
	report("which then is its session's, and no other is left", right);
	points_free(&observations);
	free_contents(&contents);
}

/*
 * References in the opposite order, with the same tags.
 */
static void
turn_around(struct points *points)
{
	for (size_t i = 0; i < points->count / 2; i++)
	{
		size_t		other = points->count - 1 - i;
		double		latitude = points->latitude[i];
		double		longitude = points->longitude[i];
		int64_t		tag = points->tag[i];

		points->latitude[i] = points->latitude[other];
		points->longitude[i] = points->longitude[other];
		points->tag[i] = points->tag[other];
		points->latitude[other] = latitude;
		points->longitude[other] = longitude;
		points->tag[other] = tag;
	}
}

static void
test_order(const struct engine *engine)
{
	struct contents contents = make_contents(REFERENCES, 0);
	uint64_t	first;
	uint64_t	second;
	bool		recognised;
	bool		right;

	first = sent_dataset(engine, &contents, false, &recognised);
	turn_around(&contents.points);
	second = sent_dataset(engine, &contents, true, &recognised);
	right = first != 0 && recognised && second == first;
	second = sent_dataset(engine, &contents, false, &recognised);
	report("the order that counts is that of the sealed dataset",
		   right && second != 0 && !recognised);
	free_contents(&contents);
}

/*
 * Whether a dataset is taken for a new one with this bit of a value turned, and, with the
 * bit turned back, for the one that was there before.
 */
static bool
bit_matters(const struct engine *engine, const struct contents *contents, void *values,
			size_t value_bytes, size_t place, unsigned bit)
{
	unsigned char *byte = (unsigned char *) values + place * value_bytes + bit / 8;
	bool		right;

	*byte ^= (unsigned char) (1 << bit % 8);
	right = is_new(engine, contents);
	*byte ^= (unsigned char) (1 << bit % 8);
	return right && is_recognised(engine, contents);
}

static void
test_bits(const struct engine *engine, size_t count, const char *property)
{
	const size_t places[] = {0, count / 5, count / 2, count - 1};
	struct contents contents = make_contents(count, GEONN_COLUMNS_ALL);
	bool		right = is_new(engine, &contents);

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		right = right &&
			bit_matters(engine, &contents, contents.points.latitude, 8, places[i], 0) &&
			bit_matters(engine, &contents, contents.points.longitude, 8, places[i], 0) &&
			bit_matters(engine, &contents, contents.points.tag, 8, places[i], 0) &&
			bit_matters(engine, &contents, contents.points.tag, 8, places[i], 63) &&
			bit_matters(engine, &contents, contents.group, 4, places[i], 0) &&
			bit_matters(engine, &contents, contents.identity, 4, places[i], 31) &&
			bit_matters(engine, &contents, contents.radius, 8, places[i], 63) &&
			bit_matters(engine, &contents, contents.low, 8, places[i], 0) &&
			bit_matters(engine, &contents, contents.last_high, 8, places[i], 63) &&
			bit_matters(engine, &contents, contents.edges, 2, places[i], 11);
	contents.points.longitude[77] = 0.0;
	right = right && is_new(engine, &contents);
	contents.points.longitude[77] = -0.0;
	report(property, right && is_new(engine, &contents) && is_recognised(engine, &contents));
	free_contents(&contents);
}

static void
test_shape(const struct engine *engine)
{
	struct contents contents = make_contents(REFERENCES, 0);
	bool		right = is_new(engine, &contents);

	contents.metric = GEONN_METRIC_SPHEROID;
	right = right && is_new(engine, &contents);
	contents.metric = GEONN_METRIC_SPHERE;
	contents.columns = GEONN_COLUMN_GROUP;
	right = right && is_new(engine, &contents);
	memcpy(contents.identity, contents.group, REFERENCES * sizeof(int32_t));
	contents.columns = GEONN_COLUMN_IDENTITY;
	right = right && is_new(engine, &contents);
	contents.columns = 0;
	contents.points.count--;
	right = right && is_new(engine, &contents);
	contents.points.count++;
	report("so do metric, columns and the number of references",
		   right && is_recognised(engine, &contents));
	free_contents(&contents);
}

static void
test_contents_of_files(const struct engine *engine)
{
	char	   *large = malloc(200001);
	struct contents contents = make_contents(REFERENCES, 0);
	bool		right;

	if (large == NULL)
		exit(EXIT_FAILURE);
	memset(large, 'x', 200000);
	large[200000] = '\0';
	contents.files[GEONN_FILE_RECORDS] = large;
	contents.files[GEONN_FILE_GROUPS] = "groups";
	right = is_new(engine, &contents) && is_recognised(engine, &contents);
	for (int place = 0; place < 200000; place += 39999)
		right = right && bit_matters(engine, &contents, large, 1, (size_t) place, 0);
	large[199999] = '\0';
	right = right && is_new(engine, &contents);
	large[199999] = 'x';
	contents.files[GEONN_FILE_GROUPS] = "group";
	right = right && is_new(engine, &contents);
	contents.files[GEONN_FILE_GROUPS] = NULL;
	contents.files[GEONN_FILE_VALUES] = "groups";
	right = right && is_new(engine, &contents);
	contents.files[GEONN_FILE_VALUES] = "";
	right = right && is_new(engine, &contents);
	contents.files[GEONN_FILE_VALUES] = NULL;
	report("and every byte of every file", right && is_new(engine, &contents) &&
		   is_recognised(engine, &contents));
	free(large);
	free_contents(&contents);
}

/*
 * Open with a label; send the dataset, if the engine has none, to be kept under it.
 */
static bool
send_labelled(const struct engine *engine, const struct contents *contents, const char *subject,
			  const char *version, struct client *client)
{
	client_connect(client, engine);
	if (!client_open_labelled(client, request.device, subject, version))
		return false;
	client->keep = true;
	strcpy((char *) client->note, version);
	return client->sealed || send_contents(client, contents, false);
}

static void
test_labels(const struct engine *engine)
{
	struct contents contents = make_contents(REFERENCES, 0);
	struct client client;
	uint64_t	first;
	uint64_t	second;
	bool		recognised;
	bool		right;

	first = sent_dataset(engine, &contents, false, &recognised);
	right = first != 0 && send_labelled(engine, &contents, "s", "1", &client) &&
		client.recognised && client.dataset == first;
	client_close(&client);
	right = right && send_labelled(engine, &contents, "s", "1", &client) && client.sealed &&
		client.dataset == first && strcmp((char *) client.note, "1") == 0;
	client_close(&client);
	report("a dataset without a label gets that of one that is the same", right);

	right = send_labelled(engine, &contents, "s", "2", &client) && client.recognised &&
		client.dataset == first;
	client_close(&client);
	right = right && send_labelled(engine, &contents, "s", "2", &client) && client.sealed &&
		strcmp((char *) client.note, "2") == 0;
	client_close(&client);
	report("and so does one of another version", right);

	right = send_labelled(engine, &contents, "t", "1", &client) && !client.sealed &&
		!client.recognised;
	second = client.dataset;
	client_close(&client);
	right = right && send_labelled(engine, &contents, "s", "2", &client) && client.sealed &&
		client.dataset == first;
	client_close(&client);
	right = right && send_labelled(engine, &contents, "t", "1", &client) && client.sealed &&
		client.dataset == second;
	client_close(&client);
	report("but not one of another subject", right);

	right = is_recognised(engine, &contents) &&
		send_labelled(engine, &contents, "s", "2", &client) && client.sealed;
	client_close(&client);
	report("and one that is sent without a label leaves the other's", right);
	free_contents(&contents);
}

/*
 * Each session has all of its references in the engine when the first one seals them.
 */
static void
test_at_a_time(const struct engine *engine)
{
	enum
	{
		SESSIONS = 6
	};
	struct contents contents = make_contents(REFERENCES, 0);
	struct client clients[SESSIONS];
	struct geonn_engine_status before;
	struct geonn_engine_status after;
	bool		right = engine_status(engine, &before, NULL, 0);
	int			recognised = 0;

	for (int i = 0; i < SESSIONS; i++)
	{
		client_connect(&clients[i], engine);
		right = right && client_create(&clients[i], request.device, contents.metric, 0) &&
			client_allocate(&clients[i], 0, REFERENCES, REFERENCES);
		memcpy(clients[i].slots[0].columns.latitude, contents.points.latitude, REFERENCES * 8);
		memcpy(clients[i].slots[0].columns.longitude, contents.points.longitude, REFERENCES * 8);
		memcpy(clients[i].slots[0].columns.tag, contents.points.tag, REFERENCES * 8);
		client_send(&clients[i], GEONN_REFERENCES,
					&(struct geonn_references) {.rows = REFERENCES});
	}
	for (int i = 0; i < SESSIONS; i++)
	{
		right = right && client_expect(&clients[i], GEONN_RELEASED);
		client_send(&clients[i], GEONN_SEAL, &(struct geonn_seal) {.order_by_tag = i % 2});
	}

	/* one of them does not wait for the answer */
	client_close(&clients[SESSIONS - 1]);
	for (int i = 0; i < SESSIONS - 1; i++)
	{
		right = right && client_expect(&clients[i], GEONN_SEALED) &&
			clients[i].message.sealed.references == REFERENCES;
		recognised += right && clients[i].message.sealed.recognised == 1;
	}
	right = right && recognised >= SESSIONS - 2 &&
		engine_status(engine, &after, NULL, 0) && after.kept == before.kept + 1;
	for (int i = 0; i < SESSIONS - 1; i++)
		client_close(&clients[i]);
	report("of sessions that seal the same at a time one has its own dataset", right);
	free_contents(&contents);
}

static void
test_memory(void)
{
	struct contents contents = make_contents(REFERENCES, 0);
	struct contents others = make_contents(REFERENCES, 0);
	struct geonn_engine_status status;
	struct engine engine;
	bool		right;

	/* a dataset of 40,000 references takes some 2.3 MB */
	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.kept_memory_limit = 3000000});
	right = is_new(&engine, &contents) && is_recognised(&engine, &contents) &&
		is_new(&engine, &others) && is_recognised(&engine, &others) &&
		is_new(&engine, &contents) && engine_status(&engine, &status, NULL, 0) &&
		status.kept == 1 && status.kept_memory <= 3000000;
	engine_stop(&engine);
	report("datasets without labels leave when their memory is needed, as all do", right);

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.kept_memory_limit = 1000000});
	right = is_new(&engine, &contents) && is_new(&engine, &contents);
	engine_stop(&engine);
	engine_start(&engine, request.engine_program, NULL);
	right = right && is_new(&engine, &contents) && is_new(&engine, &contents) &&
		engine_status(&engine, &status, NULL, 0) && status.kept == 0;
	engine_stop(&engine);
	report("without the memory none is recognised", right);
	free_contents(&contents);
	free_contents(&others);
}

int
main(int argument_count, char **words)
{
	struct engine engine;

	tests_begin(argument_count, words);
	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.kept_memory_limit = 1000000000});
	test_same(&engine);
	test_order(&engine);
	test_bits(&engine, REFERENCES, "every bit of every column counts, 0 and -0 are not the same");
	test_bits(&engine, FEW_REFERENCES, "nor are they in a few references");
	test_shape(&engine);
	test_contents_of_files(&engine);
	test_labels(&engine);
	test_at_a_time(&engine);
	engine_stop(&engine);
	test_memory();
	return summed_up();
}
