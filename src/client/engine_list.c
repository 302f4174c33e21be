/*
 * engine_list.c
 *		Fetch a list from the engine: the calls under way, or the statistics.
 */
#include "postgres.h"

#include <unistd.h>

#include "client/connection.h"
#include "client/engine_list.h"

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
	GeonnConnection *connection = geonn_connection_open_running();
	struct geonn_list list = {.listing = listing};
	union geonn_message message;
	void	   *entries;
	uint64		bytes;

	if (connection == NULL)
		return NULL;
	geonn_connection_send(connection, GEONN_LIST, &list);
	(void) geonn_connection_receive(connection, GEONN_WAIT_ENGINE, &message);
	if (message.header.type != GEONN_LISTED || connection->file < 0 ||
		!geonn_file_is_sealed(connection->file, &bytes) ||
		bytes / entry_bytes != message.listed.entries || bytes % entry_bytes != 0)
		geonn_connection_violation("a message other than a list");
	*listed = message.listed;
	entries = palloc_extended(Max(bytes, 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (entries == NULL || !read_all(connection->file, entries, bytes))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not read a list of %llu bytes from the geonn engine",
						(unsigned long long) bytes),
				 errhint("Free memory of the server, and run the statement again.")));
	geonn_connection_close(connection);
	return entries;
}
