/*
 * engine_process.c
 *		The engine as a process: its start and end, its time, its descriptors.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/channel.h"

const char *engine_turn_ms = "50";

#define DEFAULT_TRANSFER_BYTES (UINT64_C(1) << 30)

void
give_up(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e3 + (double) now.tv_nsec * 1e-6;
}

double
cpu_ms_of(pid_t process)
{
	clockid_t	clock;
	struct timespec time = {0};

	if (clock_getcpuclockid(process, &clock) == 0)
		clock_gettime(clock, &time);
	return (double) time.tv_sec * 1e3 + (double) time.tv_nsec * 1e-6;
}

bool
wait_more(double since)
{
	usleep(2000);
	return now_ms() - since < PATIENCE_MS;
}

bool
has_ended(pid_t process)
{
	char		path[32];
	char		line[200] = "";
	const char *name_end;
	FILE	   *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int) process);
	file = fopen(path, "r");
	if (file == NULL)
		return true;
	name_end = fgets(line, sizeof(line), file) != NULL ? strrchr(line, ')') : NULL;
	fclose(file);
	return name_end == NULL || strncmp(name_end, ") Z", 3) == 0 || strncmp(name_end, ") X", 3) == 0;
}

void
engine_launch(struct engine *engine, const char *program, const char *cpu_path)
{
	static int	started;
	const char *command[] = {
		"geonn-engine", "--socket", engine->socket_path, "--cpu-turn-ms", engine_turn_ms,
		cpu_path != NULL ? "--cpu-path" : NULL, cpu_path, NULL
	};
	int			pair[2];

	snprintf(engine->socket_path, sizeof(engine->socket_path),
			 "/tmp/geonn-test-%d-%d.sock", (int) getpid(), started++);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		give_up("socketpair");
	engine->pid = fork();
	if (engine->pid < 0)
		give_up("fork");
	if (engine->pid == 0)
	{
		/* dup2 onto itself would keep close-on-exec */
		int			other = fcntl(pair[1], F_DUPFD, GEONN_SUPERVISOR_DESCRIPTOR + 1);

		dup2(other, GEONN_SUPERVISOR_DESCRIPTOR);
		close(other);
		execv(program, (char *const *) command);
		give_up(program);
	}
	close(pair[1]);
	engine->supervisor = pair[0];
}

int
engine_answer(struct engine *engine, union geonn_message *message)
{
	struct pollfd wait = {.fd = engine->supervisor,.events = POLLIN};
	bool		received = poll(&wait, 1, PATIENCE_MS) == 1 &&
		geonn_channel_receive(engine->supervisor, message, NULL) == GEONN_CHANNEL_OK;

	return received ? message->header.type : 0;
}

bool
engine_try_start(struct engine *engine, const char *program, const char *cpu_path,
				 const struct geonn_configure *settings)
{
	struct geonn_configure configure = {0};
	union geonn_message message;

	if (settings != NULL)
		configure = *settings;
	if (configure.transfer_memory_limit == 0)
		configure.transfer_memory_limit = DEFAULT_TRANSFER_BYTES;
	engine_launch(engine, program, cpu_path);
	return geonn_channel_send(engine->supervisor, GEONN_CONFIGURE, &configure, -1) == GEONN_CHANNEL_OK &&
		engine_answer(engine, &message) == GEONN_PONG;
}

void
engine_start_on(struct engine *engine, const char *program, const char *cpu_path,
				const struct geonn_configure *settings)
{
	if (engine_try_start(engine, program, cpu_path, settings))
		return;
	fprintf(stderr, "%s did not start\n", program);
	exit(EXIT_FAILURE);
}

void
engine_start(struct engine *engine, const char *program,
			 const struct geonn_configure *settings)
{
	engine_start_on(engine, program, NULL, settings);
}

int
engine_stop(struct engine *engine)
{
	int			status;

	close(engine->supervisor);
	if (waitpid(engine->pid, &status, 0) != engine->pid)
		give_up("waitpid");
	/* one that was killed leaves it */
	if (status != 0)
		unlink(engine->socket_path);
	return status;
}

int
descriptors_of(pid_t process, const char *name, bool named)
{
	char		path[64];
	DIR		   *folder;
	struct dirent *entry;
	int			count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int) process);
	folder = opendir(path);
	while (folder != NULL && (entry = readdir(folder)) != NULL)
	{
		char		target[64] = "";

		count += readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) > 0 &&
			(strstr(target, name) != NULL) == named;
	}
	if (folder != NULL)
		closedir(folder);
	return count;
}
