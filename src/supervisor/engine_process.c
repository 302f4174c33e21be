/*
 * engine_process.c
 *		The engine as the supervisor's child: start it, forward its log lines,
 *		and report how it ended.
 *
 * The engine is not a PostgreSQL process.  Between fork and exec the child
 * sheds everything that it inherits from PostgreSQL: signal handlers (some set
 * latches in shared memory), ignored signals (which exec would keep), and
 * every descriptor (data files, the postmaster's pipe).  It makes
 * async-signal-safe calls only, and leaves by _exit.  All signals are blocked
 * across the fork, so that no handler runs in the child.
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/protocol.h"
#include "base/settings.h"
#include "supervisor/engine_process.h"
#include "supervisor/state.h"

/* the child's descriptors; it closes all above these */
#define CHILD_CHANNEL	GEONN_SUPERVISOR_DESCRIPTOR
#define CHILD_STATUS	(GEONN_SUPERVISOR_DESCRIPTOR + 1)

/* how many bytes of log one call forwards, so that a talkative engine cannot hold up the loop */
#define LOG_BYTES_AT_ONCE 65536

/* the descriptors while the engine is being started; -1: none */
typedef struct Launch
{
	int			null;			/* /dev/null */
	int			log[2];			/* pipe: read here, written by the child */
	int			channel[2];		/* sockets: the supervisor's, the child's */
	int			status[2];		/* pipe that exec closes: errno of a failure */
} Launch;

void
engine_process_init(EngineProcess *process)
{
	*process = (EngineProcess) {.channel = -1,.log = -1};
}

static void
close_descriptor(int *descriptor)
{
	if (*descriptor >= 0)
		close(*descriptor);
	*descriptor = -1;
}

/*
 * Called in the child: close every descriptor from this one on.
 */
static void
close_from(unsigned int first)
{
	struct rlimit limit;
	unsigned int end = 65536;

#ifdef SYS_close_range
	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return;
#endif

	/*
	 * A kernel before 5.9.  The kernel gives out the lowest free descriptors,
	 * so the supervisor's few are far below this end even where the limit is
	 * higher.
	 */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < end)
		end = (unsigned int) limit.rlim_cur;
	for (unsigned int descriptor = first; descriptor < end; descriptor++)
		close((int) descriptor);
}

/*
 * Called in the child, which becomes the engine.  It makes async-signal-safe calls alone.
 */
static void
become_engine(const Launch *launch, pid_t supervisor, const char *program,
			  char *const *arguments)
{
	struct sigaction standard;
	sigset_t	none;
	int			null;
	int			log;
	int			channel;
	int			status;
	int			reason;

	memset(&standard, 0, sizeof(standard));
	standard.sa_handler = SIG_DFL;
	for (int number = 1; number < NSIG; number++)
		sigaction(number, &standard, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);

	/* no signal comes if the supervisor ended before this request */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != supervisor)
		_exit(1);

	/* first move the descriptors out of the way of their targets, then to these */
	null = fcntl(launch->null, F_DUPFD, CHILD_STATUS + 1);
	log = fcntl(launch->log[1], F_DUPFD, CHILD_STATUS + 1);
	channel = fcntl(launch->channel[1], F_DUPFD, CHILD_STATUS + 1);
	status = fcntl(launch->status[1], F_DUPFD, CHILD_STATUS + 1);
	if (null >= 0 && log >= 0 && channel >= 0 && status >= 0 &&
		dup2(null, STDIN_FILENO) >= 0 &&
		dup2(log, STDOUT_FILENO) >= 0 &&
		dup2(log, STDERR_FILENO) >= 0 &&
		dup2(channel, CHILD_CHANNEL) >= 0 &&
		dup3(status, CHILD_STATUS, O_CLOEXEC) >= 0)
	{
		close_from(CHILD_STATUS + 1);
		status = CHILD_STATUS;
		execv(program, arguments);
	}

	reason = errno;
	if (write(status, &reason, sizeof(reason)) != sizeof(reason))
		_exit(2);
	_exit(1);
}

/*
 * Read the errno of a failed exec.  Returns 0 if the pipe ended without one,
 * since a successful exec closes it.
 */
static int
exec_failure(int status)
{
	int			reason;
	ssize_t		length;

	do
		length = read(status, &reason, sizeof(reason));
	while (length < 0 && errno == EINTR);
	return length == sizeof(reason) ? reason : 0;
}

static bool
open_launch(Launch *launch, const char **failed_step)
{
	*failed_step = "open /dev/null";
	launch->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (launch->null < 0)
		return false;

	/* non-blocking, so that neither side ever waits for the other because of the log */
	*failed_step = "create a pipe";
	if (pipe2(launch->log, O_CLOEXEC | O_NONBLOCK) != 0)
		return false;
	if (pipe2(launch->status, O_CLOEXEC) != 0)
		return false;

	*failed_step = "create a socket pair";
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
					  launch->channel) == 0;
}

static bool
run(EngineProcess *process, Launch *launch, const char *program,
	const char **failed_step)
{
	char	   *const arguments[] = {
		unconstify(char *, program),
		"--socket", GEONN_SOCKET_FILE,
		NULL
	};
	pid_t		supervisor = getpid();
	pid_t		pid;
	sigset_t	all;
	sigset_t	former;
	int			reason;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &former);
	pid = fork();
	if (pid == 0)
		become_engine(launch, supervisor, program, arguments);
	reason = errno;
	sigprocmask(SIG_SETMASK, &former, NULL);
	errno = reason;
	if (pid < 0)
	{
		*failed_step = "create a process";
		return false;
	}

	close_descriptor(&launch->status[1]);
	reason = exec_failure(launch->status[0]);
	if (reason != 0)
	{
		waitpid(pid, NULL, 0);
		*failed_step = NULL;
		errno = reason;
		return false;
	}

	process->pid = pid;
	process->channel = launch->channel[0];
	process->log = launch->log[0];
	process->line_length = 0;
	launch->channel[0] = -1;
	launch->log[0] = -1;
	return true;
}

bool
engine_process_start(EngineProcess *process, const char *program,
					 const char **failed_step)
{
	Launch		launch = {-1, {-1, -1}, {-1, -1}, {-1, -1}};
	bool		started;
	int			reason;

	started = open_launch(&launch, failed_step) &&
		run(process, &launch, program, failed_step);
	reason = errno;

	close_descriptor(&launch.null);
	for (int side = 0; side < 2; side++)
	{
		close_descriptor(&launch.log[side]);
		close_descriptor(&launch.channel[side]);
		close_descriptor(&launch.status[side]);
	}
	errno = reason;
	return started;
}

/*
 * Log one line of the engine's at the level that it begins with.  The engine's
 * errors are logged at a lower level than ERROR, which would end the
 * supervisor.
 */
static void
log_line(EngineProcess *process)
{
	static const struct
	{
		const char *text;
		int			level;
	}			prefixes[] = {{"LOG: ", LOG}, {"WARNING: ", WARNING}, {"ERROR: ", WARNING}};
	char	   *text = process->line;
	int			level = LOG;

	text[process->line_length] = '\0';
	process->line_length = 0;
	for (char *c = text; *c != '\0'; c++)
	{
		if ((unsigned char) *c < ' ')
			*c = ' ';
	}

	for (int i = 0; i < (int) lengthof(prefixes); i++)
	{
		if (strncmp(text, prefixes[i].text, strlen(prefixes[i].text)) != 0)
			continue;
		text += strlen(prefixes[i].text);
		level = prefixes[i].level;
		break;
	}
	if (*text != '\0')
		ereport(level, (errmsg("geonn engine: %s", text)));
}

void
engine_process_forward_log(EngineProcess *process)
{
	char		buffer[4096];
	ssize_t		length;
	int			taken = 0;

	while (process->log >= 0 && taken < LOG_BYTES_AT_ONCE)
	{
		length = read(process->log, buffer, sizeof(buffer));
		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && errno == EAGAIN)
			return;
		if (length <= 0)
		{
			if (process->line_length > 0)
				log_line(process);
			close_descriptor(&process->log);
			return;
		}

		for (ssize_t i = 0; i < length; i++)
		{
			if (buffer[i] == '\n' ||
				process->line_length == sizeof(process->line) - 1)
				log_line(process);
			if (buffer[i] != '\n')
				process->line[process->line_length++] = buffer[i];
		}
		taken += length;
	}
}

void
engine_process_close_channel(EngineProcess *process)
{
	close_descriptor(&process->channel);
}

bool
engine_process_reap(EngineProcess *process, char *how, size_t room)
{
	int			status;

	if (waitpid(process->pid, &status, WNOHANG) != process->pid)
		return false;

	if (WIFSIGNALED(status))
		snprintf(how, room, "was terminated by signal %d: %s",
				 WTERMSIG(status), pg_strsignal(WTERMSIG(status)));
	else
		snprintf(how, room, "exited with exit code %d", WEXITSTATUS(status));

	/* the engine's last lines, without waiting: a child of the engine's could hold the pipe open for ever */
	engine_process_forward_log(process);
	if (process->line_length > 0)
		log_line(process);
	close_descriptor(&process->log);
	close_descriptor(&process->channel);
	process->pid = 0;
	return true;
}
