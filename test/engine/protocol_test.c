/*
 * protocol_test.c
 *		Clients that break the engine's protocol: their sessions end with an
 *		error, and no other session notices.  Supervisors that do: the engine ends.
 *
 * Usage: protocol_test ENGINE [cpu|cuda [SEED [sanitized]]]
 *
 * rooms: engine/server common
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/random.h"
#include "nearest.h"

/*
 * Whether this last message of a client ends its session with such an error.
 */
static bool
refused(struct client *client, uint32_t code)
{
	bool		right = client_expect(client, GEONN_ERROR) &&
		client->message.error.code == code && client->message.error.message[0] != '\0' &&
		client_receive(client, PATIENCE_MS) == 0;

	client_close(client);
	return right;
}

static void
test_abuse(const struct engine *engine)
{
	struct geonn_hello hello = {.release = "0.0-other"};
	struct geonn_seal seal = {0};
	struct geonn_status status = {.gauges = 2};
	struct geonn_open open = {.device = 77};
	struct geonn_allocate allocate = {.slot = 9,.rows = 10,.room = 10};
	struct geonn_references references = {.slot = 0,.rows = 10};
	struct geonn_search search = {
		.slot = 0,
		.rows = 10,
		.k = 1,
		.max_distance = INFINITY
	};
	struct client client;
	bool		right;

	client_connect(&client, engine);
	client_send(&client, GEONN_HELLO, &hello);
	report("a client of another version gets the version error",
		   refused(&client, GEONN_ERROR_VERSION));

	client_connect(&client, engine);
	hello.header.magic = GEONN_PROTOCOL_MAGIC;
	hello.header.version = GEONN_PROTOCOL_VERSION + 1;
	hello.header.type = GEONN_HELLO;
	right = send(client.socket, &hello, sizeof(hello), 0) == sizeof(hello);
	right = right && client_receive(&client, PATIENCE_MS) == GEONN_ERROR &&
		client.message.error.code == GEONN_ERROR_VERSION;
	client_close(&client);
	report("a client of another protocol version gets the version error", right);

	client_connect(&client, engine);
	client_send(&client, GEONN_SEAL, &seal);
	right = refused(&client, GEONN_ERROR_PROTOCOL);

	client_connect(&client, engine);
	right = right && client_hello(&client);
	client_send(&client, GEONN_STATUS, &status);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);

	client_connect(&client, engine);
	right = right && client_open(&client, request.device, 0);
	client_send(&client, GEONN_SEARCH, &search);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);

	client_connect(&client, engine);
	right = right && !client_open(&client, request.device, 12345678) &&
		client.message.error.code == GEONN_ERROR_NO_DATASET;
	client_close(&client);
	report("messages out of turn end the session", right);

	client_connect(&client, engine);
	right = !client_open(&client, open.device, 0) &&
		client.message.error.code == GEONN_ERROR_PROTOCOL;
	client_close(&client);

	client_connect(&client, engine);
	right = right && client_open(&client, request.device, 0);
	client_send(&client, GEONN_ALLOCATE, &allocate);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);

	client_connect(&client, engine);
	right = right && client_open(&client, request.device, 0);
	allocate.slot = 0;
	allocate.rows = GEONN_BATCH_ROWS_MAX + 1;
	client_send(&client, GEONN_ALLOCATE, &allocate);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);

	client_connect(&client, engine);
	right = right && client_open(&client, request.device, 0);
	client_send(&client, GEONN_REFERENCES, &references);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);

	client_connect(&client, engine);
	right = right && client_open(&client, request.device, 0) && client_allocate(&client, 0, 9, 9);
	client_send(&client, GEONN_REFERENCES, &references);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);
	report("slots, rows and choices out of range end the session", right);

	client_connect(&client, engine);
	right = client_open(&client, request.device, 0) && client_allocate(&client, 0, 10, 10);
	for (int i = 0; i < 10; i++)
		client.slots[0].columns.latitude[i] = i == 7 ? NAN : 0;
	client_send(&client, GEONN_REFERENCES, &references);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);
	report("a reference that is no place on Earth ends the session", right);

	for (int bad = 0; bad < 4; bad++)
	{
		static const double values[] = {NAN, INFINITY, 1e300, -90.5};
		double		zero[10] = {0};
		int64_t		tag[10] = {0};

		client_connect(&client, engine);
		right = right && client_open(&client, request.device, 0) && client_allocate(&client, 0, 10, 10) &&
			client_send_references(&client, 10, zero, zero, tag, false);
		for (int i = 0; i < 10; i++)
			client.slots[0].columns.latitude[i] = i == 7 ? values[bad] : 0;
		client_send(&client, GEONN_SEARCH, &search);
		right = right && refused(&client, GEONN_ERROR_PROTOCOL);
	}
	report("an observation that is no place on Earth ends the session", right);
}

/*
 * Questions that no client may ask, and datasets that none may open.
 */
static void
test_abuse_of_questions(const struct engine *engine)
{
	static const struct
	{
		const char *what;
		struct geonn_search search;
	}			questions[] = {
		{"more than 1,024 neighbours",
		{.rows = 5,.k = GEONN_K_MAX + 1,.max_distance = INFINITY}},
		{"a negative distance", {.rows = 5,.k = 1,.max_distance = -1}},
		{"a distance that is no number", {.rows = 5,.k = 1,.max_distance = NAN}},
		{"an unknown algorithm",
		{.rows = 5,.k = 1,.max_distance = INFINITY,.algorithm = GEONN_ALGORITHM_BRUTE + 1}},
		{"an unknown flag",
		{.rows = 5,.k = 1,.max_distance = INFINITY,.flags = 32}},
		{"the extremes of weights without a count",
		{.rows = 5,.k = 1,.max_distance = INFINITY,.flags = GEONN_SEARCH_EXTREMES}},
		{"the places of points",
		{.rows = 5,.k = 1,.max_distance = INFINITY,.flags = GEONN_SEARCH_PLACES}},
		{"shapes that ask for points",
		{.rows = 5,.k = 1,.max_distance = INFINITY,.flags = GEONN_SEARCH_SHAPES}},
		{"to resume what was not begun",
		{.rows = 5,.k = 0,.max_distance = INFINITY,.flags = GEONN_SEARCH_RESUME}},
		{"to begin past the rows",
		{.first = 5,.rows = 5,.k = 1,.max_distance = INFINITY}},
		{"no rows", {.rows = 0,.k = 1,.max_distance = INFINITY}},
		{"more rows than the batch has",
		{.rows = 11,.k = 1,.max_distance = INFINITY}},
		{"a count within too many radii", {.rows = 5,.radii = GEONN_RADII_MAX + 1}},
		{"a count within radii that do not rise", {.rows = 5,.radii = 2,.radius = {3, 3}}},
		{"a count within a negative radius", {.rows = 5,.radii = 1,.radius = {-1}}},
		{"a count within a radius that is no number", {.rows = 5,.radii = 2,.radius = {1, NAN}}},
		{"a count of neighbours", {.rows = 5,.k = 1,.radii = 1,.radius = {1}}},
		{"a count with ties", {.rows = 5,.flags = GEONN_SEARCH_TIES,.radii = 1,.radius = {1}}},
		{"clusters of some references", {.rows = 5,.min_points = 1}},
		{"clusters past the references", {.first = 10,.rows = 10,.min_points = 1}},
		{"clusters of neighbours", {.rows = 10,.k = 1,.min_points = 1}},
		{"clusters with ties", {.rows = 10,.flags = GEONN_SEARCH_TIES,.min_points = 1}},
		{"thinning of no references", {.rows = 5,.k = 1,.flags = GEONN_SEARCH_THIN}},
		{"thinning of crowds", {.rows = 10,.flags = GEONN_SEARCH_THIN,.min_points = 2}},
		{"clusters within radii", {.rows = 10,.radii = 1,.radius = {1},.min_points = 1}},
		{"an assignment of an unknown dataset", {.rows = 5,.max_distance = INFINITY,.asking = UINT64_MAX}},
		{"a slot without a batch",
		{.slot = 1,.rows = 5,.k = 1,.max_distance = INFINITY}},
		{"a slot out of range",
		{.slot = GEONN_RING_SLOTS,.rows = 5,.k = 1,.max_distance = INFINITY}}
	};
	static const struct
	{
		const char *what;
		bool		cut_off;	/* a search is, at its first observation */
		uint32_t	k;				/* of the search that began */
		struct geonn_search search; /* to resume it */
	}			resumptions[] = {
		{"what was answered", false, 0,
		{.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}},
		{"another observation", true, 0,
		{.first = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}},
		{"all within by one neighbour", true, 0,
		{.k = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}},
		{"eight neighbours by nine", true, 8,
		{.k = 9,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}},
		{"eight neighbours by all within", true, 8,
		{.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}},
		{"neighbours by neighbours with ties", true, 8,
		{.k = 8,.flags = GEONN_SEARCH_TIES,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}},
		{"any distance by some distance", true, 0,
		{.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = 1}},
		{"the index by brute force", true, 0,
		{.algorithm = GEONN_ALGORITHM_BRUTE,.max_distance = INFINITY}}
	};
	static const struct geonn_open datasets[] = {
		{.metric = 1000},
		{.columns = GEONN_COLUMNS_ALL + 1},
		{.columns = UINT32_MAX},
		{.columns = GEONN_COLUMN_WEIGHT << 1},
		{.columns = GEONN_COLUMN_WEIGHT | GEONN_COLUMN_WEIGHT << 3},
		{.columns = GEONN_COLUMN_PARTY << 1},
		{.columns = GEONN_COLUMN_ARC,.metric = GEONN_METRIC_SPHEROID},
		{.columns = GEONN_COLUMN_SEGMENT},
		{.columns = GEONN_COLUMN_GROUP | GEONN_COLUMN_MEASURE}
	};
	struct client_question all_within = {.max_distance = INFINITY};
	double		zero[10] = {0};
	int64_t		tag[10] = {0};
	struct client_points points = {
		.count = 10,
		.latitude = zero,
		.longitude = zero,
		.tag = tag
	};
	struct client_answers answers = {0};
	struct client client;
	bool		right = true;

	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
	{
		struct geonn_search search = questions[i].search;
		bool		rejected;

		client_connect(&client, engine);
		rejected = client_open(&client, request.device, 0) && client_allocate(&client, 0, 10, 10) &&
			client_send_dataset(&client, &points, false);
		client_send(&client, GEONN_SEARCH, &search);
		rejected = rejected && refused(&client, GEONN_ERROR_PROTOCOL);
		if (!rejected)
			printf("# not refused: %s\n", questions[i].what);
		right = right && rejected;
	}
	report("questions out of range end the session", right);

	/* what was cut off is resumed once, from its own observation, as it was asked */
	for (size_t i = 0; i < sizeof(resumptions) / sizeof(resumptions[0]); i++)
	{
		struct geonn_search begin = {
			.rows = 10,
			.k = resumptions[i].k,
			.algorithm = GEONN_ALGORITHM_INDEX,
			.max_distance = INFINITY
		};
		struct geonn_search resume = resumptions[i].search;
		bool		rejected;

		client_connect(&client, engine);
		rejected = client_open(&client, request.device, 0) && client_allocate(&client, 0, 10, 4) &&
			client_send_dataset(&client, &points, false) &&
			client_collect(&client, &all_within, &points, &answers);
		client_free_answers(&answers);
		if (resumptions[i].cut_off)
		{
			client_send(&client, GEONN_SEARCH, &begin);
			rejected = rejected && client_expect(&client, GEONN_RESULTS) &&
				client.message.results.flags == GEONN_RESULTS_PARTIAL &&
				client.message.results.observations == 0 && client.message.results.pairs == 4;
		}
		resume.rows = 10;
		resume.flags |= GEONN_SEARCH_RESUME;
		client_send(&client, GEONN_SEARCH, &resume);
		rejected = rejected && refused(&client, GEONN_ERROR_PROTOCOL);
		if (!rejected)
			printf("# not refused: %s\n", resumptions[i].what);
		right = right && rejected;
	}
	report("only what was cut off can be resumed", right);

	right = true;
	for (size_t i = 0; i < sizeof(datasets) / sizeof(datasets[0]); i++)
	{
		client_connect(&client, engine);
		right = !client_create(&client, request.device, datasets[i].metric, datasets[i].columns) &&
			client.message.header.type == GEONN_ERROR &&
			client.message.error.code == GEONN_ERROR_PROTOCOL && right;
		client_close(&client);
	}
	report("unknown metrics and columns open no dataset", right);
}

/*
 * A sealed file that says it has as many bytes as a file can have, and has none.
 */
static int
empty_giant(void)
{
	int			descriptor = memfd_create("giant", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(descriptor, INT64_MAX) == 0)
		fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	return descriptor;
}

/*
 * Files that cannot stay with a dataset.
 */
static void
test_abuse_of_files(const struct engine *engine)
{
	const int	sealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int			sound = text_file("text", sealed);
	int			pipes[2];
	const struct
	{
		const char *what;
		uint32_t	kind;
		int			descriptor;
	}			files[] = {
		{"no file", GEONN_FILE_RECORDS, -1},
		{"a file of an unknown kind", GEONN_FILE_KINDS, sound},
		{"a second one of its kind", GEONN_FILE_GROUPS, sound},
		{"one that can be written", GEONN_FILE_RECORDS, text_file("text", F_SEAL_SHRINK | F_SEAL_GROW)},
		{"one that can shrink", GEONN_FILE_RECORDS, text_file("text", F_SEAL_WRITE | F_SEAL_GROW)},
		{"one that can grow", GEONN_FILE_RECORDS, text_file("text", F_SEAL_WRITE | F_SEAL_SHRINK)},
		{"one whose sum with two others is small again", GEONN_FILE_RECORDS, empty_giant()},
		{"a file with a name", GEONN_FILE_RECORDS, open(request.engine_program, O_RDONLY | O_CLOEXEC)},
		{"a pipe", GEONN_FILE_RECORDS, pipe(pipes) == 0 ? pipes[0] : -1}
	};
	struct client client;
	bool		right = true;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
	{
		bool		rejected;

		client_connect(&client, engine);
		rejected = client_open(&client, request.device, 0);
		client_leave(&client, GEONN_FILE_GROUPS, sound);
		client_leave(&client, files[i].kind, files[i].descriptor);
		rejected = rejected && refused(&client, GEONN_ERROR_PROTOCOL);
		if (!rejected)
			printf("# not refused: %s\n", files[i].what);
		right = right && rejected;
		if (files[i].descriptor >= 0 && files[i].descriptor != sound)
			close(files[i].descriptor);
	}
	close(pipes[1]);

	/* and once it is sealed, none at all */
	client_connect(&client, engine);
	right = right && client_open(&client, request.device, 0) &&
		client_send_references(&client, 0, NULL, NULL, NULL, false);
	client_leave(&client, GEONN_FILE_VALUES, sound);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);
	close(sound);
	report("files that are not sealed, or too many, end the session", right);
}

/*
 * Datasets that cannot be kept.
 */
static void
test_abuse_of_labels(const struct engine *engine)
{
	struct geonn_seal seal = {.keep = 1};
	struct geonn_engine_status status;
	struct client client;
	bool		right;

	client_connect(&client, engine);
	right = client_open(&client, request.device, 0);
	client_send(&client, GEONN_SEAL, &seal);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);
	report("a dataset without a label cannot be kept",
		   right && engine_status(engine, &status, NULL, 0) && status.kept == 0);

	/* nor one whose client goes before it is sealed */
	client_connect(&client, engine);
	right = client_open_labelled(&client, request.device, "subject", "version");
	client_close(&client);
	client_connect(&client, engine);
	right = right && client_open_labelled(&client, request.device, "subject", "version") &&
		!client.sealed;
	client_close(&client);
	report("a dataset that was not sealed is not kept",
		   right && engine_status(engine, &status, NULL, 0) && status.kept == 0);
}

/*
 * Random messages of right and wrong sizes: whatever they say, the engine
 * lives and serves others.
 */
static void
test_noise(const struct engine *engine)
{
	struct points points = uniform_points(10);
	union geonn_message noise;

	for (int round = 0; round < 300; round++)
	{
		struct client client;

		client_connect(&client, engine);
		if (round % 2 == 1)
			client_open(&client, request.device, 0);
		for (int i = 0; i < 20; i++)
		{
			static const int types[] = {
#define MESSAGE_TYPE(type, number, structure, member) type,
				GEONN_MESSAGES(MESSAGE_TYPE)
#undef MESSAGE_TYPE
			};
			int			type = types[random_bits() % (sizeof(types) / sizeof(types[0]))];
			size_t		size = geonn_message_size(type);
			unsigned char *bytes = (unsigned char *) &noise;

			for (size_t j = sizeof(struct geonn_header); j < sizeof(noise); j++)
				bytes[j] = random_bits() % 3 == 0 ? (unsigned char) random_bits() : 0;
			noise.header.magic = random_bits() % 10 ? GEONN_PROTOCOL_MAGIC : 1;
			noise.header.version = random_bits() % 10 ? GEONN_PROTOCOL_VERSION : GEONN_PROTOCOL_VERSION + 1;
			noise.header.type = (uint16_t) type;
			if (random_bits() % 10 == 0)
				size = 1 + random_bits() % sizeof(noise);
			if (send(client.socket, bytes, size, MSG_NOSIGNAL) < 0)
				break;
		}
		client_close(&client);
	}
	report("random messages do no harm",
		   search_right(engine, &points, &points, 10, 10, 1, 1));
	points_free(&points);
}

/* ---- settings ---- */

#define HEADER_OF(type) {GEONN_PROTOCOL_MAGIC, GEONN_PROTOCOL_VERSION, type}

/* in the range of all settings, and not what an engine begins with by hand */
static const struct geonn_configure sound_settings = {
	.header = HEADER_OF(GEONN_CONFIGURE),
	.cpu_threads = 3,
	.transfer_memory_limit = 123456789
};

/*
 * Whether the engine works with these settings, as far as its status tells them.
 */
static bool
has_settings(const struct engine *engine, const struct geonn_configure *settings)
{
	struct geonn_engine_status status;
	struct geonn_device_status cpu;

	return engine_status(engine, &status, &cpu, 1) &&
		(settings->cpu_threads == 0 || cpu.threads == settings->cpu_threads) &&
		status.transfer_memory_limit == settings->transfer_memory_limit;
}

/*
 * Whether an engine whose first message is this one ends in order, says nothing and never
 * listens.
 */
static bool
does_not_start(const void *message, size_t bytes)
{
	struct engine engine;
	union geonn_message answer;
	int			status;
	bool		right;

	engine_launch(&engine, request.engine_program, NULL);
	right = send(engine.supervisor, message, bytes, MSG_NOSIGNAL) == (ssize_t) bytes &&
		engine_answer(&engine, &answer) == 0 && access(engine.socket_path, F_OK) != 0;
	status = engine_stop(&engine);
	return right && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE;
}

static void
test_first_message(void)
{
	const size_t sound = sizeof(struct geonn_configure);
	const struct
	{
		const char *what;
		struct geonn_header header;
		size_t		bytes;
	}			shapes[] = {
		{"nothing but a header", HEADER_OF(GEONN_CONFIGURE), sizeof(struct geonn_header)},
		{"half a header", HEADER_OF(GEONN_CONFIGURE), 4},
		{"a byte too few", HEADER_OF(GEONN_CONFIGURE), sound - 1},
		{"a byte too many", HEADER_OF(GEONN_CONFIGURE), sound + 1},
		{"more than any message has", HEADER_OF(GEONN_CONFIGURE), sizeof(union geonn_message) + 8},
		{"another magic", {1, GEONN_PROTOCOL_VERSION, GEONN_CONFIGURE}, sound},
		{"no type", HEADER_OF(0), sound},
		{"a type that does not exist", HEADER_OF(UINT16_MAX), sound},
		{"ping", HEADER_OF(GEONN_PING), sizeof(struct geonn_ping)},
		{"what the engine says", HEADER_OF(GEONN_PONG), sizeof(struct geonn_ping)},
		{"what a client says", HEADER_OF(GEONN_HELLO), sizeof(struct geonn_hello)}
	};
	static const struct
	{
		const char *what;
		struct geonn_configure settings;
	}			ranges[] = {
		{"too many threads", {.cpu_threads = 1025}},
		{"more threads than 32 bits can say", {.cpu_threads = (UINT64_C(1) << 32) + 1}},
		{"too many sessions", {.max_sessions = UINT64_C(1) << 31}},
		{"more sessions than 32 bits can say", {.max_sessions = UINT64_C(1) << 32}},
		{"too much memory for batches", {.transfer_memory_limit = UINT64_C(1) << 63}},
		{"too much memory on GPUs", {.gpu_memory_limit = UINT64_C(1) << 63}},
		{"too much memory for kept datasets", {.kept_memory_limit = UINT64_MAX}}
	};
	bool		right = true;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
	{
		char		bytes[sizeof(union geonn_message) + 8] = {0};
		bool		rejected;

		memcpy(bytes, &sound_settings, sizeof(sound_settings));
		memcpy(bytes, &shapes[i].header, sizeof(shapes[i].header));
		rejected = does_not_start(bytes, shapes[i].bytes);
		if (!rejected)
			printf("# not refused: %s\n", shapes[i].what);
		right = right && rejected;
	}
	report("without its settings in the first message the engine does not start", right);

	right = true;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
	{
		struct geonn_configure settings = ranges[i].settings;
		bool		rejected;

		settings.header = sound_settings.header;
		rejected = does_not_start(&settings, sizeof(settings));
		if (!rejected)
			printf("# not refused: %s\n", ranges[i].what);
		right = right && rejected;
	}
	report("nor with settings out of range", right);
}

/*
 * Settings of any size: an engine works with them as they are, or does not start.
 */
static void
test_any_settings(void)
{
	bool		right = true;

	for (int i = 0; i < 40 && right; i++)
	{
		struct geonn_configure settings = {
			.header = sound_settings.header,
			.cpu_threads = random_bits() >> (53 + random_below(11)),
			.max_sessions = random_bits() >> (32 + random_below(32)),
			.transfer_memory_limit = 1 + (random_bits() >> (1 + random_below(63))),
			.kept_memory_limit = random_bits() >> random_below(16)
		};
		struct engine engine;

		if (settings.cpu_threads > 1024 || settings.max_sessions > INT32_MAX ||
			settings.kept_memory_limit > INT64_MAX)
			right = does_not_start(&settings, sizeof(settings));
		else
		{
			right = engine_try_start(&engine, request.engine_program, NULL, &settings) &&
				has_settings(&engine, &settings);
			right = engine_stop(&engine) == 0 && right;
		}
	}
	report("random settings are used as they are, or keep the engine from starting", right);
}

/*
 * The rest of what a supervisor can do wrong.
 */
static void
test_supervisor(void)
{
	struct geonn_configure settings = sound_settings;
	struct geonn_status ask = {0};
	int			file = text_file("text", 0);
	struct engine engine;
	union geonn_message answer;
	int			status;
	bool		right;

	engine_launch(&engine, request.engine_program, NULL);
	status = engine_stop(&engine);
	report("without any message the engine ends with its supervisor",
		   WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);

	/* the supervisor sees that from the engine's version, and the engine is no use */
	settings.header.version++;
	engine_launch(&engine, request.engine_program, NULL);
	right = send(engine.supervisor, &settings, sizeof(settings), 0) == sizeof(settings) &&
		engine_answer(&engine, &answer) == GEONN_PONG && access(engine.socket_path, F_OK) != 0;
	status = engine_stop(&engine);
	report("a supervisor of another protocol version gets an answer, and no engine",
		   right && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);

	engine_launch(&engine, request.engine_program, NULL);
	right = geonn_channel_send(engine.supervisor, GEONN_CONFIGURE, &settings, file) == GEONN_CHANNEL_OK &&
		engine_answer(&engine, &answer) == GEONN_PONG && has_settings(&engine, &sound_settings) &&
		descriptors_of(engine.pid, "memfd:text", true) == 0;
	close(file);
	report("a descriptor that comes with the settings is closed", right);

	right = geonn_channel_send(engine.supervisor, GEONN_STATUS, &ask, -1) == GEONN_CHANNEL_OK &&
		engine_answer(&engine, &answer) == GEONN_ENGINE_STATUS && answer.engine_status.devices > 0;
	for (uint32_t devices = right ? answer.engine_status.devices : 0, i = 0; i < devices; i++)
		right = right && engine_answer(&engine, &answer) == GEONN_DEVICE_STATUS &&
			answer.device_status.number == i && answer.device_status.name[0] != '\0' &&
			(i > 0 || answer.device_status.threads == sound_settings.cpu_threads);
	report("a supervisor that asks for the status gets it with all devices", right);

	settings.max_sessions = UINT64_MAX;
	right = geonn_channel_send(engine.supervisor, GEONN_CONFIGURE, &settings, -1) == GEONN_CHANNEL_OK &&
		engine_answer(&engine, &answer) == 0;
	status = engine_stop(&engine);
	report("later settings that are out of range end the engine", right && WIFEXITED(status));
}

/*
 * Settings from a client, whatever it has said before.
 */
static void
test_client_configures(void)
{
	struct geonn_configure settings = {.cpu_threads = 1,.transfer_memory_limit = 1 << 20};
	struct geonn_ping ping = {.number = 1};
	double		zero[1] = {0};
	int64_t		tag[1] = {0};
	struct engine engine;
	bool		right = true;

	engine_start(&engine, request.engine_program, &sound_settings);
	for (int state = 0; state < 8; state++)
	{
		struct client client;

		client_connect(&client, &engine);
		if (state / 2 == 1)
			right = right && client_hello(&client);
		if (state / 2 >= 2)
			right = right && client_open(&client, request.device, 0);
		if (state / 2 == 3)
			right = right && client_allocate(&client, 0, 1, 1) &&
				client_send_references(&client, 1, zero, zero, tag, false);
		if (state % 2 == 0)
			client_send(&client, GEONN_CONFIGURE, &settings);
		else
			client_send(&client, GEONN_PING, &ping);
		right = refused(&client, GEONN_ERROR_PROTOCOL) && right;
	}
	report("a client that says what the supervisor says is refused, and changes no setting",
		   right && has_settings(&engine, &sound_settings));
	engine_stop(&engine);
}

int
main(int argument_count, char **words)
{
	struct engine engine;

	tests_begin(argument_count, words);
	random_state = request.seed;
	engine_start(&engine, request.engine_program, NULL);
	test_abuse(&engine);
	test_abuse_of_questions(&engine);
	test_abuse_of_files(&engine);
	test_abuse_of_labels(&engine);
	test_noise(&engine);
	engine_stop(&engine);
	test_first_message();
	test_any_settings();
	test_supervisor();
	test_client_configures();
	return summed_up();
}
