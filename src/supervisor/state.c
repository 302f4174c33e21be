/*
 * state.c
 *		What the supervisor tells every backend: that it runs, its engine's
 *		state, and the devices of the engine that answered last.
 *
 * It does so by small files, so that geonn needs no shared memory and
 * works without being preloaded.
 *
 * The lock file shows which process is the supervisor: that process holds a
 * record lock (fcntl) on it.  Unlike flock, such a lock can be tested without
 * being taken, the test returns its holder's process id, and a forked child
 * does not inherit it.  The lock ends with the process, however that ends.  It
 * also ends when the process closes any descriptor of that file: so the
 * supervisor opens the file once, and only other processes test the lock.
 *
 * The state file holds the supervisor's last report, as lines of text: a session may have
 * another version of the module than the supervisor, and has to find there what to do about it.
 * Each report replaces the file by a rename.  A report is out of date if its author does not hold
 * the lock.
 *
 * Backends that look at the devices must not start the engine, as it takes the
 * GPUs.  So the supervisor asks each engine for its devices once it listens,
 * and again when settings change, and writes them to a third file, as the
 * messages came.  That file stays when engine, supervisor or server end: it says
 * which devices were found last.  It is in a folder that base backups leave out,
 * since a backup may be restored on another host.
 *
 * Files that are not whole, and devices of another version of the protocol, are
 * passed over.
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/file_perm.h"
#include "storage/fd.h"

#include "supervisor/state.h"

#define STATE_LINES		7

static const char *const state_names[] = {
	[ENGINE_STATE_STARTING] = "starting",
	[ENGINE_STATE_RUNNING] = "running",
	[ENGINE_STATE_FAILED] = "failed",
	[ENGINE_STATE_OFF] = "off"
};

int
geonn_state_hint(void)
{
	return errhint("Look at the owner and permissions of \"%s\" in the data directory, at the room on its disk, and at the limit on open files.",
				   PG_STAT_TMP_DIR);
}

void
geonn_state_raise(const char *step, const char *name)
{
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not %s \"%s\": %m", step, name),
			 geonn_state_hint()));
}

void
geonn_state_make_directory(void)
{
	if (MakePGDirectory(PG_STAT_TMP_DIR) != 0 && errno != EEXIST)
		geonn_state_raise("create directory", PG_STAT_TMP_DIR);
}

bool
geonn_state_lock(void)
{
	static int	lock_file = -1;
	struct flock lock = {.l_type = F_WRLCK,.l_whence = SEEK_SET};

	if (lock_file < 0)
	{
		geonn_state_make_directory();
		lock_file = open(GEONN_LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC,
						 pg_file_create_mode);
		if (lock_file < 0)
			geonn_state_raise("open file", GEONN_LOCK_FILE);
	}

	if (fcntl(lock_file, F_SETLK, &lock) == 0)
		return true;
	if (errno != EACCES && errno != EAGAIN)
		geonn_state_raise("lock file", GEONN_LOCK_FILE);
	return false;
}

pid_t
geonn_state_supervisor(void)
{
	struct flock lock = {.l_type = F_WRLCK,.l_whence = SEEK_SET};
	int			lock_file;
	int			result;

	lock_file = open(GEONN_LOCK_FILE, O_RDWR | O_CLOEXEC);
	if (lock_file < 0)
	{
		if (errno == ENOENT)
			return 0;
		geonn_state_raise("open file", GEONN_LOCK_FILE);
	}
	result = fcntl(lock_file, F_GETLK, &lock);
	close(lock_file);
	if (result != 0)
		geonn_state_raise("test the lock on file", GEONN_LOCK_FILE);
	return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

/* Replace the content of a file, by a rename.  A failure leaves the former file, and is logged. */
static void
replace_file(const char *name, const void *content, size_t length)
{
	char		name_new[MAXPGPATH];
	int			file;
	bool		written;

	snprintf(name_new, sizeof(name_new), "%s.new", name);
	file = open(name_new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
				pg_file_create_mode);
	if (file >= 0)
	{
		errno = ENOSPC;			/* for a short write, which sets no errno */
		written = write(file, content, length) == (ssize_t) length;
		if (close(file) == 0 && written && rename(name_new, name) == 0)
			return;
	}
	ereport(LOG,
			(errcode_for_file_access(),
			 errmsg("could not write file \"%s\": %m", name)));
}

/* Write a line: a key, a space and a value.  A line break in the value would end the line early, and becomes a space. */
static int
append_line(char *line, size_t room, const char *key, const char *text)
{
	int			length = snprintf(line, room, "%s %s\n", key, text);

	for (char *c = line; c < line + length - 1; c++)
	{
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	}
	return length;
}

void
geonn_state_write(const EngineReport *report)
{
	char		content[2048];
	int			length;

	length = snprintf(content, sizeof(content),
					  "state %s\nsupervisor %d\nengine %d\nattempt %llu\n",
					  state_names[report->state], (int) report->supervisor_pid,
					  (int) report->engine_pid,
					  (unsigned long long) report->attempt);
	length += append_line(content + length, sizeof(content) - length,
						  "message", report->message);
	length += append_line(content + length, sizeof(content) - length,
						  "detail", report->detail);
	length += append_line(content + length, sizeof(content) - length,
						  "hint", report->hint);

	Assert(length < (int) sizeof(content));
	/* If writing fails, statements that wait for the engine do not learn why it failed. */
	replace_file(GEONN_STATE_FILE, content, length);
}

void
geonn_state_remove(void)
{
	unlink(GEONN_STATE_FILE);
}

/* Read at most `room` bytes of a file.  Returns how many bytes were read; -1: the file cannot be read. */
static ssize_t
read_file(const char *name, void *content, size_t room)
{
	int			file = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t		length;

	if (file < 0)
		return -1;
	length = read(file, content, room);
	close(file);
	return length;
}

/* Take the first line off the text; it must have this key.  Returns the line's value; NULL: it has another key. */
static const char *
take_value(char **text, const char *key)
{
	size_t		length = strlen(key);
	char	   *end = strchr(*text, '\n');
	const char *value;

	if (end == NULL || strncmp(*text, key, length) != 0 ||
		(*text)[length] != ' ')
		return NULL;
	value = *text + length + 1;
	*end = '\0';
	*text = end + 1;
	return value;
}

bool
geonn_state_read(pid_t supervisor_pid, EngineReport *report)
{
	static const char *const keys[STATE_LINES] = {
		"state", "supervisor", "engine", "attempt", "message", "detail", "hint"
	};
	const char *values[STATE_LINES];
	char		content[2048];
	char	   *rest = content;
	ssize_t		length;

	length = read_file(GEONN_STATE_FILE, content, sizeof(content) - 1);
	if (length < 0)
		return false;
	content[length] = '\0';

	for (int i = 0; i < STATE_LINES; i++)
	{
		values[i] = take_value(&rest, keys[i]);
		if (values[i] == NULL)
			return false;
	}
	for (report->state = ENGINE_STATE_STARTING;
		 strcmp(values[0], state_names[report->state]) != 0;
		 report->state++)
	{
		if (report->state == ENGINE_STATE_OFF)
			return false;
	}
	report->supervisor_pid = strtol(values[1], NULL, 10);
	report->engine_pid = strtol(values[2], NULL, 10);
	report->attempt = strtoull(values[3], NULL, 10);
	strlcpy(report->message, values[4], sizeof(report->message));
	strlcpy(report->detail, values[5], sizeof(report->detail));
	strlcpy(report->hint, values[6], sizeof(report->hint));
	return report->supervisor_pid == supervisor_pid;
}

/* ---- devices ---- */

static bool
has_end(const char *text, size_t room)
{
	return memchr(text, '\0', room) != NULL;
}

/* The devices of the status that the supervisor is receiving. */
static struct
{
	uint32		expected;
	uint32		received;
	struct geonn_device_status devices[GEONN_DEVICES_MAX];
}			arriving;

void
known_devices_begin(void)
{
	arriving.expected = 0;
	arriving.received = 0;
}

bool
known_devices_receive(const union geonn_message *message)
{
	if (message->header.type == GEONN_ENGINE_STATUS)
	{
		arriving.expected = message->engine_status.devices;
		arriving.received = 0;
		return arriving.expected <= GEONN_DEVICES_MAX;
	}
	if (message->header.type != GEONN_DEVICE_STATUS ||
		arriving.received >= arriving.expected ||
		message->device_status.kind >= GEONN_DEVICE_KIND_COUNT)
		return false;

	Assert(arriving.received < GEONN_DEVICES_MAX);
	arriving.devices[arriving.received++] = message->device_status;
	if (arriving.received == arriving.expected)
		replace_file(GEONN_DEVICES_FILE, arriving.devices,
					 arriving.received * sizeof(arriving.devices[0]));
	return true;
}

static bool
is_sound(const struct geonn_device_status *device)
{
	return device->header.magic == GEONN_PROTOCOL_MAGIC &&
		device->header.version == GEONN_PROTOCOL_VERSION &&
		device->header.type == GEONN_DEVICE_STATUS &&
		device->kind < GEONN_DEVICE_KIND_COUNT &&
		has_end(device->name, sizeof(device->name)) && has_end(device->uuid, sizeof(device->uuid));
}

int
known_devices_read(struct geonn_device_status *devices)
{
	ssize_t		length = read_file(GEONN_DEVICES_FILE, devices, GEONN_DEVICES_MAX * sizeof(*devices));
	int			count;

	if (length <= 0 || length % sizeof(*devices) != 0)
		return 0;
	count = (int) (length / sizeof(*devices));
	for (int i = 0; i < count; i++)
	{
		if (!is_sound(&devices[i]))
			return 0;
	}
	return count;
}
