/*
 * main.c
 *		geonn-engine: the process that owns the devices.
 *
 * geonn's supervisor starts the engine and sends it its settings; tests and
 * benchmarks do the same in its place.  An engine that is started by hand, for
 * a debugger, has settings of its own (server.h).  The engine listens
 * at a Unix socket, where clients speak the protocol of protocol.h.  It
 * searches on the CPU and on every GPU that CUDA shows, and knows nothing of
 * PostgreSQL.
 *
 * The engine ends when its supervisor ends.  Three ways to notice that cover
 * for each other: the kernel's parent-death signal, a check of the parent
 * after asking for that signal, and the end of file on the supervisor's
 * channel.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <getopt.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/channel.h"
#include "engine/base/log.h"
#include "engine/cpu/base/path.h"
#include "engine/cpu/turn.h"
#include "engine/search/ways.h"
#include "engine/server/batch_memory.h"
#include "engine/server/datasets.h"
#include "engine/server/server.h"

/* malloc() maps each block of at least this many bytes alone (M_MMAP_THRESHOLD) */
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
"  --ways                          print which way of which device answers which\n"
"                                  question\n"
"  --cpu-turn-ms MS                how long a search's turn on the CPU should take,\n"
"                                  for tests; 0: each turn does very little\n"
"  --version                       print the version\n"
"  --help                          print this\n";

struct arguments
{
	const char *socket_path;
	const char *cpu_path;		/* NULL: the best path */
};

/*
 * Read the command line.  Returns -1 if the engine is to go on, otherwise the
 * exit status with which it ends.
 */
static int
parse_arguments(int count, char **words, struct arguments *arguments)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"cpu-path", required_argument, NULL, 'p'},
		{"cpu-turn-ms", required_argument, NULL, 't'},
		{"ways", no_argument, NULL, 'w'},
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
			case 't':
				cpu_turn_set_ms(atoll(optarg));
				break;
			case 'w':
				ways_print(stdout);
				return EXIT_SUCCESS;
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

/* Return the process at the other end of the supervisor's descriptor; 0: none. */
static pid_t
channel_peer(void)
{
	struct ucred peer;
	socklen_t	length = sizeof(peer);

	return getsockopt(GEONN_SUPERVISOR_DESCRIPTOR, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ?
		peer.pid : 0;
}

/* Return whether the process at the other end has closed the channel. */
static bool
has_hung_up(void)
{
	struct pollfd channel = {.fd = GEONN_SUPERVISOR_DESCRIPTOR};

	return poll(&channel, 1, 0) == 1 && channel.revents & POLLHUP;
}

/* Close all descriptors that this process has inherited, except the standard ones and the supervisor's. */
static void
close_inherited(void)
{
	const unsigned first = GEONN_SUPERVISOR_DESCRIPTOR + 1;
	struct rlimit limit;
	unsigned	end = 65536;

#ifdef SYS_close_range
	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return;
#endif

	/*
	 * A kernel before 5.9 has no close_range().  The kernel gives out the lowest free descriptors,
	 * so the supervisor's few are far below this end even where the limit is higher.
	 */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < end)
		end = (unsigned) limit.rlim_cur;
	for (unsigned descriptor = first; descriptor < end; descriptor++)
		close((int) descriptor);
}

/*
 * Have the kernel kill this process when the supervisor dies, and never wait for the supervisor to
 * read the log.  Returns false if the supervisor is gone already.
 */
static bool
follow_supervisor(pid_t supervisor)
{
	close_inherited();
	fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
	fcntl(GEONN_SUPERVISOR_DESCRIPTOR, F_SETFD, FD_CLOEXEC);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return getppid() == supervisor;
}

/*
 * When the system runs out of memory, have the kernel choose this process first: the engine holds
 * no data, and the supervisor starts another.
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
 * Raise the limit of descriptors to as many as the system allows: each session
 * takes up to GEONN_RING_SLOTS + 1 of them and each dataset GEONN_FILE_KINDS,
 * and the usual limit is meant for a shell.
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
 * Have the C library give large blocks back to the system when they are freed.  By default it does
 * so only at first: after each free of a large block it keeps blocks up to that size.
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
	struct arguments arguments = {0};
	int			status = parse_arguments(argument_count, words, &arguments);
	pid_t		peer;
	bool		supervised;
	struct failure failure;

	if (status >= 0)
		return status;
	if (!cpu_path_choose(arguments.cpu_path, &failure))
	{
		log_line(LOG_ERROR, "--cpu-path: %s", failure.message);
		return EXIT_FAILURE;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);	/* a write beyond a limit on the size of files, which applies to memfds too, fails
								 * instead of ending the process */
	peer = channel_peer();
	supervised = peer != 0 && peer == getppid();
	/* The supervisor may have ended before this process began: then its end of the channel is closed. */
	if (supervised ? !follow_supervisor(peer) : peer != 0 && has_hung_up())
		return EXIT_FAILURE;
	be_expendable();
	raise_descriptor_limit();
	return_freed_memory();
	return server_run(arguments.socket_path, supervised);
}
