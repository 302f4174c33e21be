/*
 * connection.c
 *		A backend's connection to the engine: messages, waits, and how they
 *		fail.
 *
 * Every wait is for the socket or the backend's latch, and ends early if the
 * statement is cancelled.  If the connection ends, the engine is gone; if the
 * engine sent an error before, that error is raised.
 */
#include "postgres.h"

#include <sys/socket.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "client/connection.h"
#include "client/engine_start.h"
#include "client/engine_version.h"
#include "supervisor/state.h"

static void
close_file(GeonnConnection *connection)
{
	if (connection->file >= 0)
		close(connection->file);
	connection->file = -1;
}

static void
release_connection(void *argument)
{
	GeonnConnection *connection = argument;

	close_file(connection);
	if (connection->socket >= 0)
		close(connection->socket);
	connection->socket = -1;
	if (!connection->given_away)
		ReleaseExternalFD();
	connection->given_away = true;
}

GeonnConnection *
geonn_connection_adopt(int socket, pid_t engine_pid)
{
	GeonnConnection *connection = palloc0(sizeof(GeonnConnection));

	connection->socket = socket;
	connection->engine_pid = engine_pid;
	connection->file = -1;
	connection->release.func = release_connection;
	connection->release.arg = connection;
	MemoryContextRegisterResetCallback(CurrentMemoryContext,
									   &connection->release);
	return connection;
}

int
geonn_connection_give_away(GeonnConnection *connection)
{
	int			socket = connection->socket;

	connection->socket = -1;
	connection->given_away = true;
	return socket;
}

void
geonn_connection_close(GeonnConnection *connection)
{
	release_connection(connection);
}

static GeonnConnection *
make_connection(void)
{
	if (!AcquireExternalFD())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not connect to the geonn engine: %m"),
				 errdetail("This session holds too many files and connections already."),
				 errhint("Increase max_files_per_process (now %d).",
						 max_files_per_process)));
	return geonn_connection_adopt(-1, 0);
}

/* ---- errors ---- */

void
geonn_connection_violation(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("the geonn engine sent %s", what),
			 errdetail("This is a bug in geonn."),
			 errhint("Please report it with the server log of this time.")));
}

static void
raise_engine_error(const GeonnConnection *connection,
				   const struct geonn_error *error)
{
	static const int sqlstates[] = {
		[GEONN_ERROR_MEMORY] = ERRCODE_OUT_OF_MEMORY,
		[GEONN_ERROR_LIMIT] = ERRCODE_PROGRAM_LIMIT_EXCEEDED,
		[GEONN_ERROR_NO_DEVICE] = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		[GEONN_ERROR_DEVICE] = ERRCODE_SYSTEM_ERROR,
		[GEONN_ERROR_NO_DATASET] = ERRCODE_CONNECTION_FAILURE,
		[GEONN_ERROR_SAME_TAG] = ERRCODE_UNIQUE_VIOLATION
	};
	int			sqlstate = error->code < lengthof(sqlstates) ? sqlstates[error->code] : 0;

	if (error->message[0] == '\0')
		geonn_connection_violation("an error without a message");
	if (error->code == GEONN_ERROR_VERSION)
		geonn_raise_other_version(error->detail, connection->engine_pid);
	ereport(ERROR,
			(errcode(sqlstate != 0 ? sqlstate : ERRCODE_INTERNAL_ERROR),
			 errmsg("%s", error->message),
			 error->detail[0] != '\0' ? errdetail("%s", error->detail) : 0,
			 error->hint[0] != '\0' ? errhint("%s", error->hint) : 0));
}

/* Raise the error of a broken connection: the last error that the engine sent, or the error that the engine has ended. */
static void
raise_lost(GeonnConnection *connection)
{
	union geonn_message message;

	if (geonn_channel_find_last(connection->socket, GEONN_ERROR, &message))
		raise_engine_error(connection, &message.error);
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("the geonn engine ended while it worked for this statement"),
			 errhint("The server log says why. The next statement starts the engine again.")));
}

static void
raise_transfer_failure(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("could not %s the geonn engine: %m", what),
			 errhint("Run the statement again; if it fails again, the server log may say why.")));
}

/* ---- messages ---- */

/* Wait for the socket, until the deadline at the latest (0: none).  Returns whether the socket is ready. */
static bool
wait_for_socket(GeonnConnection *connection, int event, GeonnWait wait, TimestampTz deadline)
{
	long		timeout = -1;
	int			events;

	CHECK_FOR_INTERRUPTS();
	event |= WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;
	if (deadline != 0)
	{
		event |= WL_TIMEOUT;
		timeout = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
												  deadline);
	}
	events = WaitLatchOrSocket(MyLatch, event, connection->socket, timeout,
							   geonn_wait_event(wait));
	if (events & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return (events & WL_SOCKET_MASK) != 0;
}

bool
geonn_connection_wait(GeonnConnection *connection, GeonnWait wait, TimestampTz deadline)
{
	while (!wait_for_socket(connection, WL_SOCKET_READABLE, wait, deadline))
	{
		if (deadline != 0 && GetCurrentTimestamp() >= deadline)
			return false;
	}
	return true;
}

void
geonn_connection_send(GeonnConnection *connection, int type, void *message)
{
	geonn_connection_send_file(connection, type, message, -1);
}

bool
geonn_connection_try_send(GeonnConnection *connection, int type, void *message)
{
	return geonn_channel_send(connection->socket, type, message, -1) == GEONN_CHANNEL_OK;
}

bool
geonn_connection_is_answered(GeonnConnection *connection, GeonnWait wait)
{
	char		byte;

	(void) geonn_connection_wait(connection, wait, 0);
	return recv(connection->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Handle ETOOMANYREFS: pause before the next attempt to send a descriptor; after the last attempt, raise an error. */
static void
wait_for_descriptors(int tries)
{
	if (tries >= GEONN_CROWDED_TRIES)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not send to the geonn engine: %m"),
				 errdetail("It was tried %d times.", tries),
				 errhint("%s", GEONN_CROWDED_HINT)));
	geonn_pause(GEONN_WAIT_ENGINE, GEONN_CROWDED_PAUSE_MS);
}

void
geonn_connection_send_file(GeonnConnection *connection, int type, void *message,
						   int descriptor)
{
	int			tries = 0;

	for (;;)
	{
		switch (geonn_channel_send(connection->socket, type, message, descriptor))
		{
			case GEONN_CHANNEL_OK:
				return;
			case GEONN_CHANNEL_AGAIN:
				(void) wait_for_socket(connection, WL_SOCKET_WRITEABLE, GEONN_WAIT_ENGINE, 0);
				break;
			case GEONN_CHANNEL_CLOSED:
				raise_lost(connection);
				break;
			default:
				if (errno == ETOOMANYREFS)
				{
					wait_for_descriptors(++tries);
					break;
				}
				raise_transfer_failure("send to");
		}
	}
}

enum geonn_channel_status
geonn_connection_await(GeonnConnection *connection, GeonnWait wait, TimestampTz deadline,
					   union geonn_message *message)
{
	close_file(connection);
	for (;;)
	{
		enum geonn_channel_status status = geonn_channel_receive(connection->socket, message,
																 &connection->file);

		if (status != GEONN_CHANNEL_AGAIN || wait == GEONN_NO_WAIT ||
			!geonn_connection_wait(connection, wait, deadline))
			return status;
	}
}

bool
geonn_connection_receive(GeonnConnection *connection, GeonnWait wait,
						 union geonn_message *message)
{
	switch (geonn_connection_await(connection, wait, 0, message))
	{
		case GEONN_CHANNEL_AGAIN:
			return false;
		case GEONN_CHANNEL_OK:
			if (message->header.type == GEONN_ERROR)
				raise_engine_error(connection, &message->error);
			return true;
		case GEONN_CHANNEL_CLOSED:
			raise_lost(connection);
			break;
		case GEONN_CHANNEL_OTHER_VERSION:
			geonn_raise_other_version("", connection->engine_pid);
			break;
		case GEONN_CHANNEL_MALFORMED:
			geonn_connection_violation("a malformed message");
			break;
		case GEONN_CHANNEL_FAILED:
			raise_transfer_failure("receive from");
			break;
	}
	pg_unreachable();
}

int
geonn_connection_take_file(GeonnConnection *connection)
{
	int			file = connection->file;

	connection->file = -1;
	return file;
}

/* ---- connecting ---- */

/*
 * Exchange versions.  Returns false if the engine ended before it answered, because it was already
 * ending when this process connected.
 */
static bool
greet(GeonnConnection *connection)
{
	struct geonn_hello hello = {.release = GEONN_VERSION};
	union geonn_message message;
	enum geonn_channel_status status;

	if (geonn_channel_send(connection->socket, GEONN_HELLO, &hello,
						   -1) != GEONN_CHANNEL_OK)
		return false;
	status = geonn_connection_await(connection, GEONN_WAIT_START, 0, &message);
	if (status == GEONN_CHANNEL_CLOSED || status == GEONN_CHANNEL_FAILED)
		return false;
	if ((status == GEONN_CHANNEL_OK || status == GEONN_CHANNEL_OTHER_VERSION) &&
		message.header.type == GEONN_ERROR)
		raise_engine_error(connection, &message.error);
	if (status == GEONN_CHANNEL_OTHER_VERSION)
		geonn_raise_other_version("", connection->engine_pid);
	if (status != GEONN_CHANNEL_OK || message.header.type != GEONN_WELCOME)
		geonn_connection_violation("a message other than a welcome");

	if (strcmp(message.welcome.release, GEONN_VERSION) != 0)
		geonn_raise_other_version(message.welcome.release, connection->engine_pid);
	return true;
}

GeonnConnection *
geonn_connection_open(void)
{
	GeonnConnection *connection = make_connection();

	/* Try twice, because the first engine may have been ending. */
	for (int tries = 0; tries < 2; tries++)
	{
		connection->socket = geonn_engine_connect(&connection->engine_pid);
		if (greet(connection))
			return connection;
		close(connection->socket);
		connection->socket = -1;
	}
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("the geonn engine ended before it answered"),
			 errhint("The server log says why. The next statement starts the engine again.")));
}

GeonnConnection *
geonn_connection_open_running(void)
{
	GeonnConnection *connection = geonn_connection_try();

	if (connection == NULL || greet(connection))
		return connection;
	geonn_connection_close(connection);
	return NULL;
}

GeonnConnection *
geonn_connection_try(void)
{
	GeonnConnection *connection = make_connection();

	connection->socket = geonn_channel_connect(GEONN_SOCKET_FILE,
											   &connection->engine_pid);
	if (connection->socket >= 0)
		return connection;
	geonn_connection_close(connection);
	return NULL;
}
