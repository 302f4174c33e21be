/*
 * engine_list.c
 *		Fetch a list from the engine: the calls under way, or the statistics.
 */
#include "postgres.h"

#include <unistd.h>

#include "utils/memutils.h"

#include "client/connection.h"
#include "client/engine_list.h"

/*
 * Read this many bytes of a list from the file that the engine sent.
 */
static bool
read_all(int file, char *place, Size bytes)
{
	Size		done = 0;

	while (done < bytes)
	{
		ssize_t		got = pread(file, place + done, bytes - done, done);

		if (got <= 0)
			return false;
		done += got;
	}
	return true;
}

void *
geonn_engine_list(enum geonn_listing listing, Size entry_bytes, struct geonn_listed *listed)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn list",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	GeonnConnection *connection = geonn_connection_open_running();
	struct geonn_list list = {.listing = listing};
	union geonn_message message;
	void	   *entries = NULL;
	uint64		bytes;
	int			file;

	MemoryContextSwitchTo(former);
	if (connection != NULL)
	{
		geonn_connection_send(connection, GEONN_LIST, &list);
		(void) geonn_connection_receive(connection, GEONN_WAIT_ENGINE, &message, &file);
		if (message.header.type != GEONN_LISTED || file < 0 ||
			!geonn_file_is_sealed(file, &bytes) ||
			bytes / entry_bytes != message.listed.entries || bytes % entry_bytes != 0)
		{
			if (file >= 0)
				close(file);
			geonn_connection_violation("a message other than a list");
		}
		*listed = message.listed;
		entries = MemoryContextAllocExtended(former, Max(bytes, 1),
											 MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
		if (entries == NULL || !read_all(file, entries, bytes))
		{
			close(file);
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("could not read a list of %llu bytes from the geonn engine",
							(unsigned long long) bytes),
					 errhint("Free memory of the server, and run the statement again.")));
		}
		close(file);
	}
	MemoryContextDelete(context);
	return entries;
}
