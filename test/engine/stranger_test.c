/*
 * stranger_test.c
 *		Processes of two operating system users do not talk: the engine to no
 *		client, and a client to no engine, that runs as another user.
 *
 * The folder of the socket and its mode keep strangers away, too; here they
 * are let in on purpose.  Only root can be two users, so any other user skips this.
 *
 * rooms: client engine/server
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/engine_client.h"
#include "../lib/verdict.h"

/* whoever has no files, on all systems */
#define STRANGER 65534

static void
become(uid_t user)
{
	if (seteuid(user) != 0)
	{
		perror("seteuid");
		exit(EXIT_FAILURE);
	}
}

static int
unix_socket(const char *path, struct sockaddr_un *address)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	snprintf(address->sun_path, sizeof(address->sun_path), "%s", path);
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

/*
 * Say hello as a stranger.  Returns whether the engine lets that happen, and closes
 * without a word.
 */
static bool
is_sent_away(const struct engine *engine)
{
	struct sockaddr_un address;
	struct geonn_hello hello = {.release = GEONN_VERSION};
	struct pollfd wait = {.events = POLLIN};
	union geonn_message message;
	bool		sent_away;

	become(STRANGER);
	wait.fd = unix_socket(engine->socket_path, &address);
	if (connect(wait.fd, (struct sockaddr *) &address, sizeof(address)) != 0)
	{
		perror("connect");
		exit(EXIT_FAILURE);
	}
	(void) geonn_channel_send(wait.fd, GEONN_HELLO, &hello, -1);
	sent_away = poll(&wait, 1, 60000) == 1 && recv(wait.fd, &message, sizeof(message), 0) <= 0;
	close(wait.fd);
	become(0);
	return sent_away;
}

/*
 * Listen as a stranger, and connect as the module does.
 */
static bool
is_not_trusted(void)
{
	struct sockaddr_un address;
	char		folder[] = "/tmp/geonn-stranger-XXXXXX";
	char		path[sizeof(folder) + sizeof("/socket")];
	int			listener;
	int			connected;
	int			reason;
	pid_t		peer;

	if (mkdtemp(folder) == NULL || chmod(folder, 0777) != 0)
		return false;
	become(STRANGER);
	snprintf(path, sizeof(path), "%s/socket", folder);
	listener = unix_socket(path, &address);
	if (bind(listener, (struct sockaddr *) &address, sizeof(address)) != 0 ||
		listen(listener, 1) != 0)
	{
		perror("listen");
		exit(EXIT_FAILURE);
	}
	become(0);
	connected = geonn_channel_connect(path, &peer);
	reason = errno;
	unlink(path);
	rmdir(folder);
	close(listener);
	return connected < 0 && reason == EACCES;
}

int
main(int argument_count, char **words)
{
	struct engine engine;
	struct geonn_engine_status status;
	struct stat file;

	if (argument_count < 2)
		return EXIT_FAILURE;
	if (geteuid() != 0)
	{
		puts("ok - strangers are sent away # SKIP only root can be two users");
		return EXIT_SUCCESS;
	}
	engine_start(&engine, words[1], NULL);
	report("only its owner may connect to the socket",
		   stat(engine.socket_path, &file) == 0 && (file.st_mode & 0777) == 0600);
	chmod(engine.socket_path, 0777);
	report("the engine sends a client away that runs as another user", is_sent_away(&engine));
	report("and serves its own user", engine_status(&engine, &status, NULL, 0));
	report("a client does not talk to an engine that runs as another user", is_not_trusted());
	engine_stop(&engine);
	return summed_up();
}
