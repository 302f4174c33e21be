/*
 * engine_process.c
 *		The engine as the supervisor's child: start it, forward its log lines,
 *		and report how it ended.
 *
 * The engine is not a PostgreSQL process, and keeps nothing of what its parent
 * has from PostgreSQL.  No code of this process runs in the child: posix_spawn
 * resets its signals and moves its descriptors.  Those that are open beside them
 * the engine closes itself, and it asks for a signal at its supervisor's end
 * (engine/main.c).
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/protocol.h"
#include "base/settings.h"
#include "supervisor/engine_process.h"
#include "supervisor/state.h"

/* One call forwards at most this many bytes of log, so that a talkative engine cannot hold up the loop. */
#define LOG_BYTES_AT_ONCE 65536

static void
close_descriptor(int *descriptor)
{
	if (*descriptor >= 0)
		close(*descriptor);
	*descriptor = -1;
}

/* Run the program, with these ends of the log's pipe and of the channel.  Returns 0, or the errno of the failure. */
static int
run(const char *program, int log, int channel, pid_t *pid)
{
	char	   *const arguments[] = {
		unconstify(char *, program),
		"--socket", GEONN_SOCKET_FILE,
		NULL
	};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t	all;
	sigset_t	none;
	int			reason;

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawn_file_actions_init(&files);
	if (posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDWR, 0) != 0 ||
		posix_spawn_file_actions_adddup2(&files, log, STDOUT_FILENO) != 0 ||
		posix_spawn_file_actions_adddup2(&files, log, STDERR_FILENO) != 0 ||
		posix_spawn_file_actions_adddup2(&files, channel, GEONN_SUPERVISOR_DESCRIPTOR) != 0)
		reason = ENOMEM;
	else
		reason = posix_spawn(pid, program, &files, &attributes, arguments, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return reason;
}

bool
engine_process_start(EngineProcess *process, const char *program,
					 const char **failed_step)
{
	int			log[2] = {-1, -1};	/* read here, written by the engine */
	int			channel[2] = {-1, -1};	/* the supervisor's, the engine's */
	int			reason;

	/* Both ends of the pipe are non-blocking: neither side ever waits for the other because of the log. */
	*failed_step = "create a pipe";
	reason = pipe2(log, O_CLOEXEC | O_NONBLOCK) == 0 ? 0 : errno;
	if (reason == 0)
	{
		*failed_step = "create a socket pair";
		reason = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
							channel) == 0 ? 0 : errno;
	}
	if (reason == 0)
	{
		reason = run(program, log[1], channel[1], &process->pid);
		*failed_step = reason == EAGAIN || reason == ENOMEM ? "create a process" : NULL;
	}
	if (reason == 0)
	{
		process->channel = channel[0];
		process->log = log[0];
		process->line_length = 0;
	}
	else
	{
		process->pid = 0;
		close_descriptor(&log[0]);
		close_descriptor(&channel[0]);
	}
	close_descriptor(&log[1]);
	close_descriptor(&channel[1]);
	errno = reason;
	return reason == 0;
}

/*
 * Log one line of the engine at the level with which the line begins; but errors as WARNING,
 * because a report at level ERROR would end the supervisor.
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

	Assert(process->line_length < (int) sizeof(process->line));
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

	Assert(process->pid > 0);
	if (waitpid(process->pid, &status, WNOHANG) != process->pid)
		return false;

	if (WIFSIGNALED(status))
		snprintf(how, room, "was terminated by signal %d: %s",
				 WTERMSIG(status), pg_strsignal(WTERMSIG(status)));
	else
		snprintf(how, room, "exited with exit code %d", WEXITSTATUS(status));

	/* Read the engine's last lines without waiting: a child of the engine could hold the pipe open for ever. */
	engine_process_forward_log(process);
	if (process->line_length > 0)
		log_line(process);
	close_descriptor(&process->log);
	close_descriptor(&process->channel);
	process->pid = 0;
	return true;
}
