/*
 * main.c
 *		geonn-engine: the process that owns the devices.
 *
 * The engine is started by geonn's supervisor, or by hand for tests and
 * benchmarks.  It listens at a Unix socket (protocol.h says what is said
 * there), searches on the CPU and on every GPU that CUDA shows, and knows
 * nothing of PostgreSQL.
 *
 *	main.c			options; ends with the supervisor
 *	server.c		clients, supervisor, signals; event_loop.c waits for them
 *	session.c		one client's dataset and batches; session_receive.c has its messages
 *	calls.c			what sessions work for, and statistics.c
 *	gauges.c		what GPUs say of themselves
 *	batch_memory.c	the shared memory of batches; batch_shares.c divides it
 *	dataset.c		references
 *	scheduler.c		searches and devices brought together
 *	device.h		what a device is; backends.c lists them: cpu_device.c, and cuda/
 *
 * It ends when its supervisor does, in three ways that cover for each other:
 * the kernel's parent-death signal, a check of the parent after asking for it,
 * and the end of file on the supervisor's channel.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
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

#include "../common/channel.h"
#include "admission.h"
#include "backends.h"
#include "batch_memory.h"
#include "cpu_path.h"
#include "datasets.h"
#include "log.h"
#include "scheduler.h"
#include "server.h"
#include "thread_pool.h"

/* blocks that the C library has from the system one by one */
#define LARGE_BLOCK_BYTES (64 * 1024)

static const char usage[] =
"geonn-engine searches nearest neighbours for the PostgreSQL extension geonn,\n"
"whose supervisor starts it.\n"
"\n"
"Usage: geonn-engine --socket PATH [OPTION]...\n"
"\n"
"  --socket PATH                   listen at this Unix socket\n"
"  --cpu-threads N                 threads of the CPU device; 0, the default,\n"
"                                  means one for each core\n"
"  --cpu-path PATH                 vector instructions that the CPU device uses:\n"
"                                  portable, avx2 or avx512; the default is the\n"
"                                  best that the processor has\n"
"  --transfer-memory-limit BYTES   memory that all batches together may take\n"
"  --gpu-memory-limit BYTES        memory to take on each GPU; 0, the default,\n"
"                                  means what is free\n"
"  --kept-memory-limit BYTES       memory for datasets that no session uses; 0,\n"
	"                                  the default, means that none is kept\n"
"  --max-sessions N                processes that may have sessions at a time; 0, the\n"
"                                  default, means any number\n"
"  --version                       print the version\n"
"  --help                          print this\n";

struct arguments
{
	const char *socket_path;
	unsigned long cpu_threads;
	const char *cpu_path;		/* NULL: the best one */
	unsigned long long transfer_memory_limit;
	unsigned long long gpu_memory_limit;
	unsigned long long kept_memory_limit;
	uint32_t	max_sessions;
};

/*
 * A whole decimal number up to this limit.
 */
static bool
parse_number(const char *text, unsigned long long limit, unsigned long long *number)
{
	char	   *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 &&
		*number <= limit;
}

/*
 * Returns -1 to go on, or the exit status.
 */
static int
parse_arguments(int count, char **words, struct arguments *arguments)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"cpu-threads", required_argument, NULL, 't'},
		{"cpu-path", required_argument, NULL, 'p'},
		{"transfer-memory-limit", required_argument, NULL, 'm'},
		{"gpu-memory-limit", required_argument, NULL, 'g'},
		{"kept-memory-limit", required_argument, NULL, 'k'},
		{"max-sessions", required_argument, NULL, 'n'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}
	};
	unsigned long long number;
	int			option;

	while ((option = getopt_long(count, words, "", options, NULL)) != -1)
	{
		switch (option)
		{
			case 's':
				arguments->socket_path = optarg;
				break;
			case 't':
				if (!parse_number(optarg, THREAD_POOL_MAX, &number))
				{
					log_line(LOG_ERROR, "--cpu-threads takes a number from 0 to %d, not \"%s\"",
							 THREAD_POOL_MAX, optarg);
					return EXIT_FAILURE;
				}
				arguments->cpu_threads = (unsigned long) number;
				break;
			case 'p':
				arguments->cpu_path = optarg;
				break;
			case 'm':
				if (!parse_number(optarg, INT64_MAX, &number))
				{
					log_line(LOG_ERROR, "--transfer-memory-limit takes a number of bytes, not \"%s\"",
							 optarg);
					return EXIT_FAILURE;
				}
				arguments->transfer_memory_limit = number;
				break;
			case 'g':
				if (!parse_number(optarg, INT64_MAX, &number))
				{
					log_line(LOG_ERROR, "--gpu-memory-limit takes a number of bytes, not \"%s\"",
							 optarg);
					return EXIT_FAILURE;
				}
				arguments->gpu_memory_limit = number;
				break;
			case 'k':
				if (!parse_number(optarg, INT64_MAX, &number))
				{
					log_line(LOG_ERROR, "--kept-memory-limit takes a number of bytes, not \"%s\"",
							 optarg);
					return EXIT_FAILURE;
				}
				arguments->kept_memory_limit = number;
				break;
			case 'n':
				if (!parse_number(optarg, INT32_MAX, &number))
				{
					log_line(LOG_ERROR, "--max-sessions takes a number from 0 to %d, not \"%s\"",
							 INT32_MAX, optarg);
					return EXIT_FAILURE;
				}
				arguments->max_sessions = (uint32_t) number;
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
	struct arguments arguments = {
		.transfer_memory_limit = 1ULL << 30
	};
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
	options.supervised = has_supervisor();
	if (options.supervised && !follow_supervisor())
		return EXIT_FAILURE;
	be_expendable();
	raise_descriptor_limit();
	return_freed_memory();
	thread_pool_set_threads((unsigned) arguments.cpu_threads);
	batch_memory_set_limit(arguments.transfer_memory_limit);
	scheduler_set_gpu_memory_limit(arguments.gpu_memory_limit);
	datasets_set_kept_limit(arguments.kept_memory_limit);
	admission_set_limit(arguments.max_sessions);

	options.socket_path = arguments.socket_path;
	options.devices = devices;
	options.device_count = backends_find(devices, &options.no_gpu);
	return server_run(&options);
}
