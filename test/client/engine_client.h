/*
 * engine_client.h
 *		A client of the engine for tests and benchmarks: starts an engine, and
 *		speaks protocol.h to it, waiting where the module would wait on a latch.
 *
 * What can't happen in a sound test (no memory, no process) ends the program
 * with a message.
 */
#ifndef ENGINE_CLIENT_H
#define ENGINE_CLIENT_H

#include <sys/types.h>

#include "../../src/common/channel.h"

/* an engine that this program started, as its supervisor */
struct engine
{
	pid_t		pid;
	int			supervisor;		/* our end of its supervisor's channel */
	char		socket_path[100];
};

struct client_slot
{
	void	   *start;			/* NULL until allocated */
	size_t		bytes;
	struct geonn_batch_columns columns;
	bool		sent;			/* references or observations under way */
	uint32_t	rows;			/* observations sent */
	size_t		offset;			/* of the first of them in the caller's arrays */
};

struct client
{
	int			socket;
	struct client_slot slots[GEONN_RING_SLOTS];
	union geonn_message message;	/* the last one received */
	int			descriptor;		/* that came with it, or -1 */
};

/* one answer: tag and distance, or count 0 */
struct answer
{
	uint32_t	count;
	int64_t		tag;
	double		distance;
};

/* Start a program as the engine, with one more option if not NULL. */
extern void engine_start(struct engine *engine, const char *program,
						 const char *option, const char *value);

/* Close the supervisor's channel and wait for the engine's exit status. */
extern int	engine_stop(struct engine *engine);

/* Connect; the client has said nothing yet. */
extern void client_connect(struct client *client, const struct engine *engine);
extern void client_close(struct client *client);

extern void client_send(struct client *client, int type, void *message);

/*
 * Wait for a message and return its type; 0 at the end of the connection, -1
 * where nothing came for the time.
 */
extern int	client_receive(struct client *client, int timeout_ms);

/* client_receive, and whether the type is this one */
extern bool client_expect(struct client *client, int type);

/* hello, and open or attach (dataset 0: open); whether that worked */
extern bool client_open(struct client *client, enum geonn_device_choice device,
						uint64_t dataset);

/* Allocate a slot's batch and map it. */
extern bool client_allocate(struct client *client, uint32_t slot, uint32_t rows,
							uint32_t room);

/* Send all references, batch by batch, and seal. */
extern bool client_send_references(struct client *client, size_t count,
								   const double *latitude, const double *longitude,
								   const int64_t *tag, bool order_by_tag);

/*
 * Search all observations through all slots that have been allocated, and put
 * the answers in order into the array.
 */
extern bool client_search(struct client *client, size_t count,
						  const double *latitude, const double *longitude,
						  struct answer *answers);

/* Ask an engine for its status, over a connection of its own. */
extern bool engine_status(const struct engine *engine,
						  struct geonn_engine_status *status,
						  struct geonn_device_status *devices, int devices_max);

/* milliseconds on a clock that only goes forward */
extern double now_ms(void);

#endif							/* ENGINE_CLIENT_H */
