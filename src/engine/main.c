/*
 * main.c
 *		geonn-engine: the process that owns the devices.
 *
 * geonn's supervisor starts the engine and sends it its settings; tests and
 * benchmarks do so in its place.  Started by hand, for a debugger, the engine
 * has settings of its own (engine_settings.h).  It listens at a Unix socket
 * (protocol.h says what is said there), searches on the CPU and on every GPU
 * that CUDA shows, and knows nothing of PostgreSQL.
 *
 *	main.c			options; ends with the supervisor
 *	engine_settings.c	what the supervisor sets
 *	server.c		clients, supervisor, signals; event_loop.c waits for them
 *	session.c		one client's dataset and batches; session_receive.c has its messages
 *	calls.c			what sessions work for, and statistics.c
 *	gauges.c		what GPUs say of themselves
 *	batch_memory.c	the shared memory of batches; batch_shares.c divides it
 *	dataset.c		references
 *	scheduler.c		searches and devices brought together
 *	device.h		what a device is; backends.c lists them: cpu/device.c, and cuda/
 *
 * It ends when its supervisor does, in three ways that cover for each other:
 * the kernel's parent-death signal, a check of the parent after asking for it,
 * and the end of file on the supervisor's channel.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <getopt.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/channel.h"
#include "engine/base/log.h"
#include "engine/cpu/path.h"
#include "engine/search/backends.h"
#include "engine/server/batch_memory.h"
#include "engine/server/datasets.h"
#include "engine/server/engine_settings.h"
#include "engine/server/server.h"

/* blocks that the C library has from the system one by one */
#define LARGE_BLOCK_BYTES (64 * 1024)

static const char usage[] =
"geonn-engine searches nearest neighbours for the PostgreSQL extension geonn,\n"
"whose supervisor starts it and sends it its settings.\n"
"\n"
"Usage: geonn-engine --socket PATH [OPTION]...\n"
"\n"
"  --socket PATH                   listen at this Unix socket\n"
"  --cpu-path PATH                 vector instructions that the CPU device uses:\n"
"                                  portable, avx2 or avx512; the default is the\n"
"                                  best that the processor has\n"
"  --version                       print the version\n"
"  --help                          print this\n";

struct arguments
{
	const char *socket_path;
	const char *cpu_path;		/* NULL: the best one */
};

/*
 * Returns -1 to go on, or the exit status.
 */
static int
parse_arguments(int count, char **words, struct arguments *arguments)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"cpu-path", required_argument, NULL, 'p'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}
	};
	int			option;

	while ((option = getopt_long(count, words, "", options, NULL)) != -1)
	{
		switch (option)
		{
			case 's':
				arguments->socket_path = optarg;
				break;
			case 'p':
				arguments->cpu_path = optarg;
				break;
			case 'V':
				puts("geonn-engine " GEONN_VERSION);
				return EXIT_SUCCESS;
			case 'h':
				fputs(usage, stdout);
				return EXIT_SUCCESS;
			default:
				fputs(usage, stderr);
				return EXIT_FAILURE;
		}
	}
	if (arguments->socket_path == NULL || optind < count)
	{
		fputs(usage, stderr);
		return EXIT_FAILURE;
	}
	return -1;
}

/*
 * Whether the supervisor's descriptor is open and leads to our parent.
 */
static bool
has_supervisor(void)
{
	struct ucred peer;
	socklen_t	length = sizeof(peer);

	return getsockopt(GEONN_SUPERVISOR_DESCRIPTOR, SOL_SOCKET, SO_PEERCRED,
					  &peer, &length) == 0 && peer.pid == getppid();
}

/*
 * Die with the supervisor, and never wait for it to read the log.  Returns
 * false if it is gone already.
 */
static bool
follow_supervisor(void)
{
	pid_t		supervisor = getppid();

	fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
	fcntl(GEONN_SUPERVISOR_DESCRIPTOR, F_SETFD, FD_CLOEXEC);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return getppid() == supervisor;
}

/*
 * Offer this process first when the system runs out of memory: it holds no
 * data, and the supervisor starts another.
 */
static void
be_expendable(void)
{
	int			file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	ssize_t		written;

	if (file < 0)
		return;
	written = write(file, "1000", 4);
	(void) written;
	close(file);
}

/*
 * Each session takes up to GEONN_RING_SLOTS + 1 descriptors and each dataset
 * GEONN_FILE_KINDS: have as many as the system allows, rather than what suits a
 * shell.
 */
static void
raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return;
	datasets_set_descriptors(limit.rlim_cur);
	batch_shares_set_descriptors(limit.rlim_cur);
}

/*
 * Give large blocks back to the system when they are freed.  The C library would do so at
 * first, but keep larger and larger ones once it has seen some freed.
 */
static void
return_freed_memory(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
#endif
}

int
main(int argument_count, char **words)
{
	static struct device devices[GEONN_DEVICES_MAX];
	struct arguments arguments = {0};
	struct server_options options = {0};
	int			status = parse_arguments(argument_count, words, &arguments);
	struct failure failure;

	if (status >= 0)
		return status;
	if (!cpu_path_choose(arguments.cpu_path, &failure))
	{
		log_line(LOG_ERROR, "--cpu-path: %s", failure.message);
		return EXIT_FAILURE;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);	/* a limit on files is one on memfds */
	options.socket_path = arguments.socket_path;
	options.supervised = has_supervisor();
	if (options.supervised && !follow_supervisor())
		return EXIT_FAILURE;
	be_expendable();
	raise_descriptor_limit();
	return_freed_memory();
	if (!engine_settings_begin(options.supervised))
		return EXIT_FAILURE;
	options.devices = devices;
	options.device_count = backends_find(devices, &options.no_gpu);
	return server_run(&options);
}
