/*
 * lifetime_test.c
 *		What lives how long in the engine, and with how much memory: the engine
 *		itself and its settings, datasets, batches.
 *
 * Usage: lifetime_test ENGINE [cpu|cuda [SEED [sanitized]]]
 *
 * "sanitized" leaves out what depends on hiding GPUs, which compute-sanitizer
 * shows all the same, and on address space, of which the compiler's sanitizers
 * take what they want.
 *
 * rooms: engine engine/server
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nearest.h"

static void
test_status(const struct engine *engine)
{
	struct geonn_engine_status status;
	struct geonn_device_status devices[2];
	bool		right = engine_status(engine, &status, devices, 2);

	report("the status tells pid, version, the CPU, and why no GPU is used",
		   right && status.pid == engine->pid && strcmp(status.release, GEONN_VERSION) == 0 &&
		   status.devices >= 1 && devices[0].kind == GEONN_KIND_CPU &&
		   devices[0].state == GEONN_DEVICE_READY && devices[0].threads >= 1 &&
		   devices[0].name[0] != '\0' && devices[0].memory_total > 0 &&
		   (status.devices > 1) == (status.no_gpu_reason[0] == '\0'));
}

static void
test_attach(const struct engine *engine)
{
	struct points references = uniform_points(500);
	struct points observations = uniform_points(300);
	struct answer answers[300];
	struct client leader;
	struct client worker;
	struct client late;
	struct geonn_engine_status status;
	uint64_t	dataset;
	double		begun;
	bool		right;

	client_connect(&leader, engine);
	right = client_open(&leader, request.device, 0);
	dataset = leader.message.opened.dataset;

	/* not before it is sealed */
	client_connect(&worker, engine);
	right = right && !client_open(&worker, request.device, dataset) &&
		worker.message.header.type == GEONN_ERROR;
	client_close(&worker);

	right = right && client_allocate(&leader, 0, 500, 500) &&
		client_send_references(&leader, 500, references.latitude,
							   references.longitude, references.tag, false);
	client_connect(&worker, engine);
	right = right && client_open(&worker, request.device, dataset) &&
		engine_status(engine, &status, NULL, 0) && status.datasets == 1 && status.sessions == 2;
	client_close(&leader);
	right = right && client_allocate(&worker, 0, 300, 300) &&
		client_search(&worker, 300, observations.latitude, observations.longitude, answers) &&
		answers_right(&references, &observations, answers, 1);
	client_close(&worker);

	/* and no longer than a session holds it */
	begun = now_ms();
	while (engine_status(engine, &status, NULL, 0) && status.datasets > 0 && wait_more(begun));
	client_connect(&late, engine);
	right = right && status.datasets == 0 && !client_open(&late, request.device, dataset);
	client_close(&late);
	report("a dataset serves every session that attached to it, and goes with the last", right);
	points_free(&references);
	points_free(&observations);
}

/*
 * A client has a dataset's number of an engine that has ended.
 */
static void
test_attach_to_next_engine(void)
{
	struct points points = uniform_points(500);
	uint64_t	datasets[2];
	bool		right = true;

	for (int i = 0; i < 2; i++)
	{
		struct engine engine;
		struct client owner;
		struct client late;

		engine_start(&engine, request.engine_program, NULL);
		client_connect(&owner, &engine);
		right = right && client_open(&owner, request.device, 0);
		datasets[i] = owner.message.opened.dataset;
		right = right && client_allocate(&owner, 0, 500, 500) &&
			client_send_references(&owner, 500, points.latitude, points.longitude, points.tag, false);
		if (i == 1)
		{
			client_connect(&late, &engine);
			right = right && datasets[0] != datasets[1] && !client_open(&late, request.device, datasets[0]) &&
				late.message.header.type == GEONN_ERROR && late.message.error.code == GEONN_ERROR_NO_DATASET;
			client_close(&late);
		}
		client_close(&owner);
		engine_stop(&engine);
	}
	report("a number of a dataset of one engine is none of the next engine's", right);
	points_free(&points);
}

/*
 * Whether this descriptor's file has this text, and no process can change it.
 */
static bool
has_text(int descriptor, const char *text)
{
	char		found[32] = "";
	uint64_t	bytes;

	return geonn_file_is_sealed(descriptor, &bytes) && bytes == strlen(text) &&
		pread(descriptor, found, sizeof(found) - 1, 0) == (ssize_t) bytes &&
		strcmp(found, text) == 0 && pwrite(descriptor, "x", 1, 0) < 0;
}

/*
 * Files of text_file that a process has open.
 */
static int
text_files_of(pid_t process)
{
	return descriptors_of(process, "memfd:text", true);
}

static void
test_files(const struct engine *engine)
{
	const int	sealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int			values = text_file("values", sealed);
	int			nothing = text_file("", sealed);
	struct points points = uniform_points(3);
	struct client leader;
	struct client workers[2];
	double		begun;
	bool		right;

	client_connect(&leader, engine);
	right = client_open(&leader, request.device, 0) && leader.references == 0 &&
		client_allocate(&leader, 0, 3, 3);
	client_leave(&leader, GEONN_FILE_VALUES, values);
	client_leave(&leader, GEONN_FILE_GROUPS, nothing);
	close(values);
	close(nothing);
	right = right && client_send_references(&leader, 3, points.latitude, points.longitude,
											points.tag, false);
	for (int i = 0; i < 2; i++)
	{
		client_connect(&workers[i], engine);
		right = right && client_attach(&workers[i], request.device, leader.dataset) &&
			workers[i].references == 3 && workers[i].files[GEONN_FILE_RECORDS] < 0 &&
			has_text(workers[i].files[GEONN_FILE_VALUES], "values") &&
			has_text(workers[i].files[GEONN_FILE_GROUPS], "") &&
			text_files_of(engine->pid) == 2;
		if (i == 0)
			client_close(&leader);
	}
	client_close(&workers[0]);
	client_close(&workers[1]);
	begun = now_ms();
	while (text_files_of(engine->pid) > 0 && wait_more(begun));
	report("files stay with a dataset, for all sessions that attach to it, and go with it",
		   right && text_files_of(engine->pid) == 0);
	points_free(&points);
}

/*
 * Send so many references under a label, to be kept with the version as note, if the
 * engine has none; *kept says whether it had.  Then search them.
 */
static bool
search_labelled(const struct engine *engine, const struct points *references,
				const char *subject, const char *version, bool *kept)
{
	struct points observations = uniform_points(20);
	struct answer answers[20];
	struct client client;
	bool		right;

	client_connect(&client, engine);
	right = client_open_labelled(&client, request.device, subject, version) &&
		client_allocate(&client, 0, 1024, 1024);
	*kept = client.sealed;
	if (client.sealed)
		right = right && client.references == references->count &&
			strcmp((char *) client.note, version) == 0;
	else
	{
		client.keep = true;
		strcpy((char *) client.note, version);
		right = right && client_send_references(&client, references->count,
												references->latitude, references->longitude,
												references->tag, false);
	}
	right = right && client_search(&client, 20, observations.latitude,
								   observations.longitude, answers) &&
		answers_right(references, &observations, answers, 1);
	client_close(&client);
	points_free(&observations);
	return right;
}

static bool
is_kept(const struct engine *engine, const struct points *references, const char *subject,
		const char *version)
{
	bool		kept;

	return search_labelled(engine, references, subject, version, &kept) && kept;
}

static bool
is_sent(const struct engine *engine, const struct points *references, const char *subject,
		const char *version)
{
	bool		kept;

	return search_labelled(engine, references, subject, version, &kept) && !kept;
}

static void
test_kept(void)
{
	struct points points = uniform_points(1000);
	struct points others = uniform_points(500);
	struct geonn_engine_status status;
	struct engine engine;
	struct client client;
	struct answer answers[1000];
	bool		right;

	/* a dataset of 1,000 references takes some 68 kB, one of 500 some 39 kB */
	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.kept_memory_limit = 125000});
	report("a dataset is kept under its label",
		   is_sent(&engine, &points, "a", "1") && is_kept(&engine, &points, "a", "1") &&
		   is_kept(&engine, &points, "a", "1"));
	report("one version of a subject is",
		   is_sent(&engine, &others, "a", "2") && is_kept(&engine, &others, "a", "2") &&
		   is_sent(&engine, &points, "a", "1") && is_kept(&engine, &points, "a", "1"));
	right = is_sent(&engine, &others, "b", "1") && is_kept(&engine, &points, "a", "1") &&
		is_sent(&engine, &others, "c", "1") && is_kept(&engine, &points, "a", "1") &&
		is_kept(&engine, &others, "c", "1") && is_sent(&engine, &others, "b", "1");
	report("the least recently used one leaves when its memory is needed",
		   right && is_kept(&engine, &others, "c", "1") && is_sent(&engine, &points, "a", "1") &&
		   engine_status(&engine, &status, NULL, 0) && status.kept == 2 &&
		   status.kept_memory > 95000 && status.kept_memory <= 125000);

	/* the version may be known only when the dataset is sealed */
	client_connect(&client, &engine);
	right = client_open_labelled(&client, request.device, "a", "5") && !client.sealed &&
		client_allocate(&client, 0, 1024, 1024);
	client.keep = true;
	strcpy((char *) client.note, "6");
	strcpy((char *) client.version, "6");
	right = right && client_send_references(&client, points.count, points.latitude, points.longitude,
											points.tag, false);
	client_close(&client);
	report("the version is that of the seal", right && is_kept(&engine, &points, "a", "6") &&
		   is_sent(&engine, &points, "a", "5") && is_sent(&engine, &points, "a", "1"));

	/* while it is searched it can still leave, and stays for that */
	client_connect(&client, &engine);
	right = client_open_labelled(&client, request.device, "a", "1") && client.sealed &&
		client_allocate(&client, 0, 1000, 1000) && is_sent(&engine, &points, "d", "1") &&
		is_sent(&engine, &points, "a", "1") &&
		client_search(&client, 1000, points.latitude, points.longitude, answers) &&
		answers_right(&points, &points, answers, 1);
	client_close(&client);
	report("one that leaves serves the sessions that have it", right);
	engine_stop(&engine);

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.kept_memory_limit = 50000});
	report("one that is too large is not kept",
		   is_sent(&engine, &points, "a", "1") && is_sent(&engine, &points, "a", "1"));
	engine_stop(&engine);
	points_free(&points);
	points_free(&others);
}

/* bytes of a process's address space */
static rlim_t
address_space_of(pid_t process)
{
	char		path[64];
	unsigned long long pages = 0;
	FILE	   *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int) process);
	file = fopen(path, "r");
	if (file == NULL || fscanf(file, "%llu", &pages) != 1)
		exit(EXIT_FAILURE);
	fclose(file);
	return pages * (rlim_t) sysconf(_SC_PAGESIZE);
}

static void
test_kept_where_memory_is_short(void)
{
	struct points points = uniform_points(1 << 17);
	struct geonn_engine_status status;
	struct rlimit limit;
	struct engine engine;
	bool		right;

	/* room for some datasets of 7 MB, once all that stays has been allocated */
	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.kept_memory_limit = 1000000000});
	right = search_right(&engine, &points, &points, 1024, 1024, 1, 1000);
	limit.rlim_cur = limit.rlim_max = address_space_of(engine.pid) + (48 << 20);
	right = right && prlimit(engine.pid, RLIMIT_AS, &limit, NULL) == 0;
	for (int i = 0; i < 20; i++)
	{
		char		subject[8];

		snprintf(subject, sizeof(subject), "%d", i);
		right = right && is_sent(&engine, &points, subject, "1");
	}
	report("datasets without a session leave where memory is short",
		   right && is_kept(&engine, &points, "19", "1") &&
		   engine_status(&engine, &status, NULL, 0) && status.kept < 20);
	engine_stop(&engine);
	points_free(&points);
}

static void
test_batch_memory(const struct engine *engine)
{
	struct geonn_allocate allocate = {.rows = 1000,.room = 1000};
	struct client client;
	bool		right;

	client_connect(&client, engine);
	right = client_open(&client, request.device, 0);
	client_send(&client, GEONN_ALLOCATE, &allocate);
	right = right && client_expect(&client, GEONN_BATCH) && client.descriptor >= 0 &&
		ftruncate(client.descriptor, 0) != 0 && ftruncate(client.descriptor, 1 << 30) != 0 &&
		fcntl(client.descriptor, F_ADD_SEALS, F_SEAL_WRITE) != 0 &&
		geonn_batch_map(client.descriptor, 1 << 30) == NULL;
	close(client.descriptor);
	right = right && client_allocate(&client, 0, 5000, 5000) &&
		client_allocate(&client, 0, 100, 100) && client.slots[0].columns.rows == 100;
	client_close(&client);
	report("a batch's memory can't be resized, and is checked before it is mapped", right);
}

/*
 * A client whose session the engine ended has its batches mapped still, and
 * may write to them until it notices.
 */
static void
test_memory_of_failed_session(const struct engine *engine)
{
	struct geonn_references references = {.slot = 0,.rows = 1};
	struct client failed_client;
	struct client next;
	bool		right;

	client_connect(&failed_client, engine);
	right = client_open(&failed_client, request.device, 0) &&
		client_allocate(&failed_client, 0, 777, 777) && client_allocate(&failed_client, 1, 777, 777);
	failed_client.slots[0].columns.latitude[0] = 1000;
	client_send(&failed_client, GEONN_REFERENCES, &references);
	right = right && client_expect(&failed_client, GEONN_ERROR);

	client_connect(&next, engine);
	right = right && client_open(&next, request.device, 0) &&
		client_allocate(&next, 0, 777, 777) && client_allocate(&next, 1, 777, 777);
	for (int i = 0; right && i < 2; i++)
	{
		next.slots[0].columns.latitude[0] = next.slots[1].columns.latitude[0] = 0;
		failed_client.slots[i].columns.latitude[0] = 45;
		right = next.slots[0].columns.latitude[0] == 0 && next.slots[1].columns.latitude[0] == 0;
	}
	client_close(&failed_client);
	client_close(&next);
	report("what a failed session still writes reaches no other session", right);
}

/*
 * Allocate until the engine has no more, then search with that.
 */
static void
test_short_of_batches(void)
{
	struct points points = uniform_points(3000);
	struct answer answers[3000];
	struct engine engine;
	struct client client;
	bool		right;
	int			batches = 1;

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.transfer_memory_limit = 45000});
	client_connect(&client, &engine);
	right = client_open(&client, GEONN_DEVICE_CPU, 0) && client_allocate(&client, 0, 1024, 1024);
	while (right && batches < GEONN_RING_SLOTS &&
		   client_allocate(&client, (uint32_t) batches, 1024, 1024))
		batches++;
	right = right && batches < GEONN_RING_SLOTS &&
		client.message.header.type == GEONN_BATCH && client.message.batch.rows == 0 &&
		client_send_references(&client, 3000, points.latitude, points.longitude,
							   points.tag, false) &&
		client_search(&client, 3000, points.latitude, points.longitude, answers) &&
		answers_right(&points, &points, answers, 10);
	client_close(&client);
	engine_stop(&engine);
	points_free(&points);
	report("a session that has batches goes on with them when the engine has no more", right);
}

static void
test_transfer_memory_limit(void)
{
	struct engine engine;
	struct client clients[60];
	struct geonn_engine_status status;
	bool		smaller = false;
	bool		refused = false;
	bool		right = true;

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.transfer_memory_limit = 1000000});
	for (int i = 0; i < 60; i++)
	{
		client_connect(&clients[i], &engine);
		right = right && client_open(&clients[i], GEONN_DEVICE_CPU, 0);
		if (client_allocate(&clients[i], 0, 16384, 16384))
			smaller = smaller || clients[i].slots[0].columns.rows < 16384;
		else
			refused = refused || (clients[i].message.header.type == GEONN_ERROR &&
								  clients[i].message.error.code == GEONN_ERROR_LIMIT);
		right = right && engine_status(&engine, &status, NULL, 0) &&
			status.transfer_memory <= 1000000;
	}
	for (int i = 0; i < 60; i++)
		client_close(&clients[i]);
	report("short transfer memory makes batches smaller", right && smaller);
	report("with none left a session gets an error with both numbers", right && refused);
	engine_stop(&engine);
}

static void
test_no_gpu(void)
{
	struct engine engine;
	struct client client;
	struct geonn_engine_status status;
	bool		right;

	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	engine_start(&engine, request.engine_program, NULL);
	unsetenv("CUDA_VISIBLE_DEVICES");
	client_connect(&client, &engine);
	right = !client_open(&client, GEONN_DEVICE_CUDA, 0) &&
		client.message.header.type == GEONN_ERROR &&
		client.message.error.code == GEONN_ERROR_NO_DEVICE &&
		client.message.error.hint[0] != '\0';
	client_close(&client);
	client_connect(&client, &engine);
	right = right && client_open(&client, GEONN_DEVICE_AUTO, 0) &&
		engine_status(&engine, &status, NULL, 0) && status.no_gpu_reason[0] != '\0';
	client_close(&client);
	engine_stop(&engine);
	report("without a GPU, cuda is an error with a hint and auto uses the CPU", right);
}

/* the supervisor's end of the channel gets the answer to that ping */
static bool
pong(struct engine *engine, uint64_t number)
{
	struct pollfd wait = {.fd = engine->supervisor,.events = POLLIN};
	union geonn_message message;

	return poll(&wait, 1, PATIENCE_MS) == 1 &&
		geonn_channel_receive(engine->supervisor, &message, NULL) == GEONN_CHANNEL_OK &&
		message.header.type == GEONN_PONG && message.pong.number == number;
}

/* the engine has new settings */
static bool
configured(struct engine *engine, struct geonn_configure *configure)
{
	static uint64_t number = 100;
	struct geonn_ping ping = {0};

	ping.number = ++number;
	return geonn_channel_send(engine->supervisor, GEONN_CONFIGURE, configure, -1) == GEONN_CHANNEL_OK &&
		geonn_channel_send(engine->supervisor, GEONN_PING, &ping, -1) == GEONN_CHANNEL_OK &&
		pong(engine, number);
}

/*
 * Whether a search on GPUs is refused for geonn.gpu_memory_limit, or not, as
 * expected; the CPU's never is.
 */
static bool
gpu_memory_allows(const struct engine *engine, bool expected)
{
	struct points points = uniform_points(20);
	struct answer answers[20];
	struct client client;
	bool		right;

	client_connect(&client, engine);
	right = client_open(&client, request.device, 0) && client_allocate(&client, 0, 20, 20) &&
		client_send_references(&client, 20, points.latitude, points.longitude, points.tag, false);
	if (client_search(&client, 20, points.latitude, points.longitude, answers))
		right = right && (expected || request.device == GEONN_DEVICE_CPU) &&
			answers_right(&points, &points, answers, 1);
	else
		right = right && !expected && request.device == GEONN_DEVICE_CUDA &&
			client.message.header.type == GEONN_ERROR &&
			client.message.error.code == GEONN_ERROR_LIMIT;
	client_close(&client);
	points_free(&points);
	return right;
}

static void
test_supervisor(void)
{
	struct geonn_ping ping = {.number = 42};
	struct geonn_configure configure = {.cpu_threads = 3,.transfer_memory_limit = 123456789};
	struct geonn_engine_status status;
	struct geonn_device_status cpu;
	struct engine engine;
	int			exit_status;
	bool		right;

	engine_start(&engine, request.engine_program, &(struct geonn_configure) {.cpu_threads = 1});
	right = engine_status(&engine, &status, &cpu, 1) && cpu.threads == 1;
	geonn_channel_send(engine.supervisor, GEONN_PING, &ping, -1);
	right = right && pong(&engine, 42);
	report("a ping is answered", right);

	right = configured(&engine, &configure) && engine_status(&engine, &status, &cpu, 1) &&
		cpu.threads == 3 && status.transfer_memory_limit == 123456789;
	configure.gpu_memory_limit = 1;
	right = right && configured(&engine, &configure) && gpu_memory_allows(&engine, false);
	configure.gpu_memory_limit = 0;
	right = right && configured(&engine, &configure) && gpu_memory_allows(&engine, true) &&
		status.pid == engine.pid;
	report("settings change without a restart", right);

	exit_status = engine_stop(&engine);
	report("the engine ends, and takes its socket along, when its supervisor does",
		   WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0 &&
		   access(engine.socket_path, F_OK) != 0);
}

/*
 * A supervisor that is killed takes the engine with it, even one that it had
 * no time to say goodbye to.
 */
static void
test_supervisor_killed(void)
{
	int			pair[2];
	struct engine engine;
	pid_t		child;
	double		begun;
	bool		gone = false;

	if (pipe(pair) != 0)
		exit(EXIT_FAILURE);
	fflush(stdout);
	child = fork();
	if (child == 0)
	{
		engine_start(&engine, request.engine_program, NULL);
		if (write(pair[1], &engine, sizeof(engine)) != sizeof(engine))
			_exit(1);
		pause();
	}
	if (read(pair[0], &engine, sizeof(engine)) == sizeof(engine))
	{
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		begun = now_ms();
		do
			gone = has_ended(engine.pid);
		while (!gone && wait_more(begun));
	}
	unlink(engine.socket_path);
	close(pair[0]);
	close(pair[1]);
	report("the engine dies with a supervisor that is killed", gone);
}

/*
 * An engine whose channel leads to another process than its parent takes nothing from there.
 */
static void
test_channel_of_another_process(void)
{
	struct geonn_configure settings = {.cpu_threads = 3,.transfer_memory_limit = 123456789};
	struct geonn_engine_status status;
	struct engine engine;
	struct client client;
	int			pair[2];
	pid_t		child;
	double		begun;
	bool		listens;

	snprintf(engine.socket_path, sizeof(engine.socket_path), "/tmp/geonn-test-%d-by-hand.sock",
			 (int) getpid());
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		exit(EXIT_FAILURE);
	geonn_channel_send(pair[0], GEONN_CONFIGURE, &settings, -1);
	fflush(stdout);
	child = fork();
	if (child == 0)
	{
		int			other = fcntl(pair[1], F_DUPFD, GEONN_SUPERVISOR_DESCRIPTOR + 1);

		dup2(other, GEONN_SUPERVISOR_DESCRIPTOR);
		close(other);
		if (fork() == 0)
			execl(request.engine_program, "geonn-engine", "--socket", engine.socket_path, NULL);
		wait(NULL);
		_exit(0);
	}
	close(pair[1]);
	begun = now_ms();
	do
		listens = client_try_connect(&client, &engine);
	while (!listens && wait_more(begun));
	if (listens)
		client_close(&client);
	listens = listens && engine_status(&engine, &status, NULL, 0);
	report("no process but its parent can be the engine's supervisor",
		   listens && status.transfer_memory_limit == 1 << 30);
	if (listens)
		kill(status.pid, SIGTERM);
	waitpid(child, NULL, 0);
	close(pair[0]);
}

int
main(int argument_count, char **words)
{
	struct engine engine;

	tests_begin(argument_count, words);
	engine_start(&engine, request.engine_program, NULL);
	test_status(&engine);
	test_attach(&engine);
	test_files(&engine);
	test_batch_memory(&engine);
	test_memory_of_failed_session(&engine);
	engine_stop(&engine);
	test_attach_to_next_engine();
	test_kept();
	if (request.device == GEONN_DEVICE_CPU && !request.sanitized)
		test_kept_where_memory_is_short();
	test_short_of_batches();
	test_transfer_memory_limit();
	if (!request.sanitized)
		test_no_gpu();
	test_supervisor();
	test_supervisor_killed();
	test_channel_of_another_process();
	return summed_up();
}
