/*
 * known_devices.c
 *		The devices of the engine that answered last, also after its end.
 *
 * Backends that look at the devices must not start the engine, as it takes the
 * GPUs.  So the supervisor asks each engine for its devices once it listens,
 * and again when settings change, and writes them to a file.  The file stays
 * when engine, supervisor or server end: it says which devices were found
 * last.  It is in a folder that base backups leave out, since a backup may be
 * restored on another host.
 *
 * The file has the engine's messages as they came.  Files of another version
 * of the protocol, and those that are not whole, are passed over.
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "supervisor/files.h"
#include "supervisor/known_devices.h"
#include "supervisor/state.h"

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
		geonn_state_replace_file(GEONN_DEVICES_FILE, arriving.devices,
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
		memchr(device->name, '\0', sizeof(device->name)) != NULL &&
		memchr(device->uuid, '\0', sizeof(device->uuid)) != NULL;
}

int
known_devices_read(struct geonn_device_status *devices)
{
	int			file = open(GEONN_DEVICES_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t		length;
	int			count;

	if (file < 0)
		return 0;
	length = read(file, devices, GEONN_DEVICES_MAX * sizeof(*devices));
	close(file);
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
