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
 * The state file holds the supervisor's last report; each report replaces the
 * file by a rename.  A report is out of date if its author does not hold the
 * lock.
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

int
geonn_state_hint(void)
{
	return errhint("Look at the owner and permissions of \"%s\" in the data directory, at the room on its disk, and at the limit on open files.",
				   PG_STAT_TMP_DIR);
}

void
geonn_state_make_directory(void)
{
	if (MakePGDirectory(PG_STAT_TMP_DIR) != 0 && errno != EEXIST)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not create directory \"%s\": %m",
						PG_STAT_TMP_DIR),
				 geonn_state_hint()));
}

__attribute__((noreturn))
static void
raise_lock_file(const char *step)
{
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not %s \"%s\": %m", step, GEONN_LOCK_FILE),
			 geonn_state_hint()));
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
			raise_lock_file("open file");
	}

	if (fcntl(lock_file, F_SETLK, &lock) == 0)
		return true;
	if (errno != EACCES && errno != EAGAIN)
		raise_lock_file("lock file");
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
		raise_lock_file("open file");
	}
	result = fcntl(lock_file, F_GETLK, &lock);
	close(lock_file);
	if (result != 0)
		raise_lock_file("test the lock on file");
	return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

/*
 * Put this content in place of a file's, by a rename.  A failure leaves the former file, and is logged.
 */
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
		errno = ENOSPC;			/* for a short write, which sets none */
		written = write(file, content, length) == (ssize_t) length;
		if (close(file) == 0 && written && rename(name_new, name) == 0)
			return;
	}
	ereport(LOG,
			(errcode_for_file_access(),
			 errmsg("could not write file \"%s\": %m", name)));
}

void
geonn_state_write(const EngineReport *report)
{
	/* if that fails, statements wait for an engine without an error that says why it fails */
	replace_file(GEONN_STATE_FILE, report, sizeof(*report));
}

void
geonn_state_remove(void)
{
	unlink(GEONN_STATE_FILE);
}

/*
 * Read a file into this room.  Returns how many bytes it has, at most room; -1: it cannot be read.
 */
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

static bool
has_end(const char *text, size_t room)
{
	return memchr(text, '\0', room) != NULL;
}

bool
geonn_state_read(pid_t supervisor_pid, EngineReport *report)
{
	return read_file(GEONN_STATE_FILE, report, sizeof(*report)) == sizeof(*report) &&
		report->supervisor_pid == supervisor_pid && report->state <= ENGINE_STATE_FAILED &&
		has_end(report->message, sizeof(report->message)) &&
		has_end(report->detail, sizeof(report->detail)) && has_end(report->hint, sizeof(report->hint));
}

/* ---- devices ---- */

/* the supervisor's: the status that is being received */
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

	arriving.devices[arriving.received++] = message->device_status;
	if (arriving.received == arriving.expected)
		replace_file(GEONN_DEVICES_FILE, arriving.devices,
					 arriving.received * sizeof(arriving.devices[0]));
	return true;
}

/*
 * Is this a device as this module writes it?
 */
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
